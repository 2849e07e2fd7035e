"""Divergence analysis and widening of vectorized loops."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, cast

from xdsl.dialects import affine, arith, memref, scf, vector
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerType,
    VectorType,
    i1,
    i64,
)
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from weft.analysis.index import Atom, Index, Quotient, RangeOf, Remainder, quotient, remainder
from weft.dialects import low_lanes
from weft.dialects.aliasing import overlapping
from weft.dialects.combiners import COMBINATIONS, Combination
from weft.dialects.effects import only_computes
from weft.dialects.integer_arith import DIVISIONS
from weft.dialects.low import GatherOp, ScatterOp
from weft.dialects.low_access import PrefetchOp
from weft.dialects.low_kernel import SHARED
from weft.dialects.low_lanes import CmpiOp
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import REASSOCIATE, LoopKind
from weft.dialects.traversal import blocks_of
from weft.passes.index_builders import arith_op, detached_ops, divided, index_attribute, materialize
from weft.passes.tir.guards import conjuncts, constraint_of
from weft.passes.tir.tir_pass import buffer_type, remembered_ranges
from weft.support.errors import InternalError


@dataclass(frozen=True)
class AccumulatorUpdate:
    """`buffer[place] = combine(buffer[place], operand)` with one place for all lanes."""

    load: memref.LoadOp
    combine: Operation
    operand: SSAValue
    combination: Combination


@dataclass
class LaneAnalysis:
    loop: ForOp
    varying: set[SSAValue] = field(default_factory=set[SSAValue])
    """Values that differ between lanes."""
    reductions: dict[memref.StoreOp, AccumulatorUpdate] = field(default_factory=dict[memref.StoreOp, AccumulatorUpdate])
    obstacle: str | None = None
    """Why the loop cannot become vector operations."""
    ranges: RangeOf = field(default_factory=remembered_ranges)
    """Valid until the loop is replaced."""

    def varies(self, index: Index) -> bool:
        return any(value in self.varying for value in index.values())


def analyse(loop: ForOp) -> LaneAnalysis:
    lanes = LaneAnalysis(loop, {loop.induction_variable})
    _scan(loop.body.block, lanes)
    return lanes


def _scan(block: Block, lanes: LaneAnalysis) -> None:
    for op in block.ops:
        if lanes.obstacle is None:
            _scan_op(op, lanes)


def _scan_op(op: Operation, lanes: LaneAnalysis) -> None:
    match op:
        case memref.LoadOp():
            if lanes.varies(place_of(op, lanes)):
                lanes.varying.add(op.res)
        case memref.StoreOp():
            if not lanes.varies(place_of(op, lanes)):
                _scan_shared_store(op, lanes)
        case scf.IfOp():
            for block in blocks_of(op):
                _scan(block, lanes)
            varying = op.cond in lanes.varying
            yielded = [v for block in blocks_of(op) if block.last_op for v in block.last_op.operands]
            for result in op.results:
                if varying or any(v in lanes.varying for v in yielded):
                    lanes.varying.add(result)
        case ForOp():
            if op.dynamic_extent is not None and lanes.varies(Index.of(op.dynamic_extent)):
                lanes.obstacle = "the extent of an inner loop differs between lanes"
            elif op.kind.data is LoopKind.THREAD_BINDING:
                lanes.obstacle = "an inner loop is bound to threads"
            _scan(op.body.block, lanes)
        case scf.YieldOp() | PrefetchOp():
            pass
        case _:
            _scan_value_op(op, lanes)


def _scan_value_op(op: Operation, lanes: LaneAnalysis) -> None:
    if not op.name.startswith(("arith.", "math.")) and not isinstance(op, affine.ApplyOp):
        lanes.obstacle = f"{op.name} has no vector form"
    elif any(isinstance(v.type, VectorType) for v in (*op.operands, *op.results)):
        lanes.obstacle = "it holds vectors already"
    elif any(operand in lanes.varying for operand in op.operands):
        # The lane may cancel.
        is_uniform = is_traced(op) and not lanes.varies(Index.of(op.results[0]).simplified(lanes.ranges))
        lanes.varying.update(() if is_uniform else op.results)


def is_traced(op: Operation) -> bool:
    """Whether `Index.of` looks through `op`."""
    if len(op.results) != 1 or not isinstance(op.results[0].type, IndexType):
        return False
    return Index.of(op.results[0]).single_value is not op.results[0]


def place_of(op: memref.LoadOp | memref.StoreOp | PrefetchOp, lanes: LaneAnalysis) -> Index:
    return Index.of(op.indices[0]).simplified(lanes.ranges)


def _scan_shared_store(op: memref.StoreOp, lanes: LaneAnalysis) -> None:
    """All lanes store to one element: a reduction that may be reordered, or a uniform value."""
    users = [use.operation for buffer in (op.memref, *overlapping(op.memref)) for use in buffer.uses]
    others = [user for user in users if user is not op and lanes.loop.is_ancestor(user)]
    reduction = _reduction_of(op, lanes)
    if reduction is not None and others == [reduction.load]:
        lanes.reductions[op] = reduction
    elif op.value in lanes.varying or any(isinstance(other, memref.LoadOp) for other in others):
        lanes.obstacle = "lanes store different values to one place"


def _reduction_of(op: memref.StoreOp, lanes: LaneAnalysis) -> AccumulatorUpdate | None:
    if not isinstance(op.value, OpResult):
        return None
    combine = op.value.op
    combination = COMBINATIONS.get(type(combine))
    if combination is None or combine.parent is not op.parent or not op.value.has_one_use():
        return None
    if isinstance(combine, arith.AddfOp | arith.MulfOp) and REASSOCIATE not in lanes.loop.attributes:
        return None
    left, right = combine.operands
    for accumulator, operand in ((left, right), (right, left)):
        load = accumulator.owner
        if (
            isinstance(load, memref.LoadOp)
            and load.memref is op.memref
            and load.parent is op.parent
            and accumulator.has_one_use()
            and place_of(load, lanes) == place_of(op, lanes)
        ):
            return AccumulatorUpdate(load, combine, operand, combination)
    return None


def needs_an_active_lane(block: Block, lanes: LaneAnalysis) -> bool:
    """Whether a block has uniform accesses, loops, or divisions of uniform values."""
    for op in block.walk():
        if isinstance(op, ForOp):
            return True
        if isinstance(op, memref.LoadOp | memref.StoreOp) and not lanes.varies(place_of(op, lanes)):
            return True
        if isinstance(op, DIVISIONS) and not any(operand in lanes.varying for operand in op.operands):
            return True
    return False


_INDEX = IndexType()
MOST_SHUFFLED: Final = 4
"""Vectors from which lanes are shuffled; with more, a gather loads each lane separately."""
_WRAP: Final = 1 << 63
"""Modulus of indices that wrap around."""
_AT_LEAST = arith.CMPI_COMPARISON_OPERATIONS.index("sge")


@lru_cache(maxsize=256)
def _vector_type(element: Attribute, count: int) -> VectorType:
    return VectorType(element, [count])


def _width_of(lanes: SSAValue) -> int:
    return cast("VectorType", lanes.type).get_shape()[0]


def lanes_constant(type_: VectorType, elements: Sequence[int] | Sequence[float]) -> arith.ConstantOp:
    """A single element is broadcast."""
    # from_list is typed for either kind of element, not for both.
    data = cast("Sequence[int]", elements if len(elements) > 1 else list(elements) * type_.get_shape()[0])
    if isinstance(type_.element_type, IndexType):
        dense = _index_lanes(type_, tuple(data))
    else:
        dense = DenseIntOrFPElementsAttr.from_list(cast("VectorType[IntegerType]", type_), data)
    return arith.ConstantOp.create(result_types=[type_], properties={"value": dense})


@lru_cache(maxsize=1024)
def _index_lanes(type_: VectorType, lanes: tuple[int, ...]) -> Attribute:
    """Modulo 2^64; cached, because a program repeats the same few."""
    wrapped = [index_attribute(lane).value.data for lane in lanes]
    return DenseIntOrFPElementsAttr.from_list(cast("VectorType[IntegerType]", type_), wrapped)


@dataclass(frozen=True)
class LaneReduction:
    """`buffer[place] = combine(buffer[place], vector.reduction of lanes)`, as emitted."""

    load: memref.LoadOp
    reduction: vector.ReductionOp
    combine: Operation
    store: memref.StoreOp
    neutral: float | int
    """The neutral element of the combiner."""

    @property
    def lanes(self) -> SSAValue:
        return self.reduction.operands[0]


class Vectorizer:
    """Replaces a loop for which `analyse` found no obstacle.

    Ops with uniform operands move unchanged. Varying index arithmetic is not emitted: addresses are derived from its
    normal form, and lanes of indices are computed where used.
    """

    def __init__(self, lanes: LaneAnalysis, count: int, *, shuffles: bool = True) -> None:
        """`shuffles`: load lanes in a few vectors as these."""
        self.lanes = lanes
        self.shuffles = shuffles
        self.loop = lanes.loop
        self.variable = lanes.loop.induction_variable
        self.count = count
        self.ranges = lanes.ranges
        self.location = lanes.loop.location
        self.ops: list[Operation] = []
        self.vectors: dict[SSAValue, SSAValue] = {}
        """Vectors of values that differ between lanes."""
        self.distances: dict[Index, tuple[Index, tuple[int, ...]] | None] = {}
        """Base and offsets of indices that are not affine in the lane."""
        self.made: ChainMap[object, SSAValue] = ChainMap()
        """Vectors created on demand (broadcasts, constants, lanes of indices), by scope."""
        self.mask: SSAValue | None = None
        """None if all lanes are active."""
        self.known_masks: dict[SSAValue, tuple[bool, ...]] = {}
        """Constant masks."""
        self.reduced: list[LaneReduction] = []
        self.dead: list[Operation] = []
        """Replaced ops, erased at the end because later ops may still trace through them."""

    def run(self) -> None:
        for op in detached_ops(self.loop.body.block):
            self.visit(op)
        parent = self.loop.parent
        if parent is not None:
            parent.insert_ops_before(self.ops, self.loop)
        for op in reversed(self.dead):
            op.drop_all_references()
        self.loop.detach()
        self.loop.drop_all_references()

    def visit(self, op: Operation) -> None:
        self.location = op.location
        match op:
            case memref.LoadOp():
                self.load(op)
            case memref.StoreOp():
                self.store(op)
            case PrefetchOp():
                self.prefetch(op)
            case ForOp():
                self.inner_loop(op)
            case scf.IfOp() if op.cond in self.lanes.varying:
                self.masked(op)
            case scf.IfOp():
                self.uniform(op)
            case _:
                self.compute(op)

    def compute(self, op: Operation) -> None:
        if not any(operand in self.lanes.varying for operand in op.operands):
            self.emit(op)
            return
        if op.results[0] not in self.lanes.varying:
            # The lane cancels.
            op.results[0].replace_all_uses_with(self.scalar(Index.of(op.results[0]).simplified(self.ranges)))
            self.dead.append(op)
            return
        if is_traced(op):
            self.dead.append(op)
            return
        hint = op.results[0].name_hint
        if (lanes := self.constant_lanes(op)) is not None:
            mask = self.constant(i1, [int(lane) for lane in lanes])
            self.known_masks[mask] = lanes
            self.vectors[op.results[0]] = mask
            self.dead.append(op)
            return
        operands = [self.vector_of(operand) for operand in op.operands]
        if isinstance(op, DIVISIONS) and self.mask is not None:
            operands[1] = self.select(self.mask, operands[1], self.constant(op.operands[1].type, [1]))
        op_class = low_lanes.LANE_FORMS.get(type(op), type(op))
        if isinstance(op, arith.SelectOp) and op.cond not in self.lanes.varying:
            op_class, operands[0] = arith.SelectOp, op.cond
        new = op_class.create(
            operands=operands,
            result_types=[self.type_of(r.type) for r in op.results],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
        )
        self.vectors[op.results[0]] = self.value(new, hint)
        self.dead.append(op)

    def select(self, mask: SSAValue, on: SSAValue, off: SSAValue) -> SSAValue:
        return self.value(low_lanes.SelectOp.create(operands=[mask, on, off], result_types=[on.type]))

    def constant_lanes(self, op: Operation) -> tuple[bool, ...] | None:
        """Lanes for which a condition holds, if it depends only on the lane."""
        if isinstance(op, arith.AndIOp):
            left, right = (self.known_masks.get(self.vectors.get(v, v)) for v in op.operands)
            if left is None or right is None:
                return None
            return tuple(one and other for one, other in zip(left, right, strict=True))
        constraint = constraint_of(op, self.ranges) if isinstance(op, arith.CmpiOp) else None
        split = None if constraint is None else self.offsets(constraint.index.simplified(self.ranges))
        if constraint is None or split is None:
            return None
        low, high = split[0].range(self.ranges)
        if low is None or high is None or (constraint.equality and low != high):
            return None
        if low + min(split[1]) < -_WRAP or high + max(split[1]) >= _WRAP:
            return None
        if constraint.equality:
            return tuple((low + offset == 0) != constraint.negated for offset in split[1])
        lanes = tuple(low + offset >= 0 for offset in split[1])
        return lanes if lanes == tuple(high + offset >= 0 for offset in split[1]) else None

    def load(self, op: memref.LoadOp) -> None:
        place = place_of(op, self.lanes)
        hint = op.res.name_hint
        if not self.lanes.varies(place):
            self.emit(op)
            return
        self.dead.append(op)
        element = op.res.type
        type_ = self.type_of(element)
        if (first := self.consecutive(place)) is not None:
            base = self.scalar(first)
            if self.mask is None:
                new: Operation = vector.LoadOp(op.memref, [base], type_)
            elif self.is_promotable(op.memref, first):
                lanes = self.value(vector.LoadOp(op.memref, [base], type_), hint)
                new = low_lanes.SelectOp(self.mask, lanes, self.zeros(element))
            else:
                new = vector.MaskedLoadOp(op.memref, [base], self.mask, self.zeros(element))
        elif (split := self.offsets(place)) is not None and not any(split[1]) and self.mask is None:
            shared = memref.LoadOp.create(operands=[op.memref, self.scalar(split[0])], result_types=[element])
            self.vectors[op.res] = self.broadcast(self.value(shared, hint))
            return
        elif split is not None and (shuffled := self.shuffled(op, *split)) is not None:
            self.vectors[op.res] = shuffled
            return
        else:
            new = GatherOp(op.memref, self.index_vector(place), self.mask, type_)
        self.vectors[op.res] = self.value(new, hint)

    def shuffled(self, op: memref.LoadOp, base: Index, offsets: Sequence[int]) -> SSAValue | None:
        """Load lanes at constant distances as vectors, and shuffle them; None for too many vectors. Loads stay between
        the first and the last accessed element. Unknown active lanes are loaded under a mask, if the array is of
        symbolic size and no lanes share an element, else None."""
        count = self.count
        runs = (True,) * count if self.mask is None else self.known_masks.get(self.mask)
        unknown = self.mask if runs is None else None
        is_symbolic = DYNAMIC_INDEX in buffer_type(op.memref).get_shape()
        if unknown is not None and is_symbolic and len(set(offsets)) == count:
            runs = (True,) * count
        if not self.shuffles or runs is None or not any(runs):
            return None
        active = [offset for offset, on in zip(offsets, runs, strict=True) if on]
        first, span = min(active), max(active) - min(active) + 1
        if span > MOST_SHUFFLED * count:
            return None
        width = min(span, count)
        # Inactive lanes read the first element; the last vector ends at the last element.
        places = [offset - first if on else 0 for offset, on in zip(offsets, runs, strict=True)]
        starts = [min(place // width * width, span - width) for place in places]
        found: SSAValue | None = None
        taken = places
        """Lanes of `found` that contain the elements loaded so far."""
        for start in dict.fromkeys(starts):
            own = [place - start if at == start else None for at, place in zip(starts, places, strict=True)]
            from_element, type_ = self.scalar(base + (first + start)), _vector_type(op.res.type, width)
            if unknown is None:
                load: Operation = vector.LoadOp(op.memref, [from_element], type_)
            else:
                lane_of = {place: lane for lane, place in enumerate(own)}
                moved = self.moved_mask(unknown, tuple(lane_of.get(at, count) for at in range(count)))
                load = vector.MaskedLoadOp(op.memref, [from_element], moved, self.zeros(op.res.type))
            lanes = self.value(load, op.res.name_hint)
            if found is None:
                found, taken = lanes, [position or 0 for position in own]
            else:
                size = _width_of(found)
                mask = [old if new is None else size + new for old, new in zip(taken, own, strict=True)]
                found, taken = self.shuffle(found, lanes, mask), list(range(count))
        if found is not None and taken != list(range(count)):
            found = self.shuffle(found, found, taken)
        if found is None or self.mask is None or unknown is not None:
            return found
        return self.select(self.mask, found, self.zeros(op.res.type))

    def shuffle(self, left: SSAValue, right: SSAValue, mask: Sequence[int]) -> SSAValue:
        element = cast("VectorType", left.type).element_type
        return self.value(
            vector.ShuffleOp(left, right, DenseArrayBase.from_list(i64, mask), result_type=self.type_of(element))
        )

    def moved_mask(self, mask: SSAValue, places: tuple[int, ...]) -> SSAValue:
        """The mask of lanes at `places`, false beyond it. Uniform conditions are combined last, so rows share the
        rest."""
        if (found := self.made.get(("moved", mask, places))) is not None:
            return found
        parts = list(conjuncts(mask))
        shared = [part for part in parts if isinstance(part.owner, vector.BroadcastOp)]
        moved = self.constant(i1, [int(place < self.count) for place in places])
        for at, part in enumerate(part for part in parts if part not in shared):
            key = ("moved", part, places)
            own = self.made.get(key) or self.made.setdefault(key, self.shuffle(part, self.zeros(i1), places))
            moved = self.arith(arith.AndIOp, moved, own) if at else own
        for part in shared:
            moved = self.arith(arith.AndIOp, moved, part)
        return self.made.setdefault(("moved", mask, places), moved)

    def store(self, op: memref.StoreOp) -> None:
        place = place_of(op, self.lanes)
        if not self.lanes.varies(place):
            if op in self.lanes.reductions:
                op.operands[0] = self.reduce(op, self.lanes.reductions[op])
            self.emit(op)
            return
        self.dead.append(op)
        lanes = self.vector_of(op.value)
        if (first := self.consecutive(place)) is None:
            self.emit(ScatterOp(lanes, op.memref, self.index_vector(place), self.mask))
            return
        base = self.scalar(first)
        if self.mask is None:
            self.emit(vector.StoreOp(lanes, op.memref, [base], op.nontemporal))
        elif self.is_promotable(op.memref, first):
            old = self.value(vector.LoadOp(op.memref, [base], self.type_of(op.value.type)))
            self.emit(vector.StoreOp(self.select(self.mask, lanes, old), op.memref, [base]))
        else:
            self.emit(vector.MaskedStoreOp(op.memref, [base], self.mask, lanes))

    def prefetch(self, op: PrefetchOp) -> None:
        place = place_of(op, self.lanes)
        if not self.lanes.varies(place):
            self.emit(op)
            return
        self.dead.append(op)
        if (first := self.consecutive(place)) is not None:
            for_write = op.for_write is not None
            self.emit(PrefetchOp(op.buffer, [self.scalar(first)], self.count, for_write=for_write))

    def consecutive(self, place: Index) -> Index | None:
        split = self.offsets(place)
        return split[0] if split is not None and split[1] == tuple(range(self.count)) else None

    def is_promotable(self, buffer: SSAValue, base: Index) -> bool:
        """Whether all lanes from `base` on are in a buffer of the stack frame, which no other thread accesses.

        Inactive lanes may then access it, too, without changing it. LLVM promotes it to registers only if no access is
        masked.
        """
        if not isinstance(buffer.owner, memref.AllocaOp) or buffer_type(buffer).memory_space == SHARED:
            return False
        low, high = base.range(self.ranges)
        size = buffer_type(buffer).get_shape()[0]
        return low is not None and high is not None and low >= 0 and high + self.count <= size

    def reduce(self, store: memref.StoreOp, reduction: AccumulatorUpdate) -> SSAValue:
        lanes = self.vector_of(reduction.operand)
        element = reduction.operand.type
        neutral = reduction.combination.neutral(element)
        if self.mask is not None:
            lanes = self.select(self.mask, lanes, self.constant(element, [neutral]))
        flags: dict[str, Attribute] = {"kind": vector.CombiningKindAttr(reduction.combination.kind)}
        is_reordered = isinstance(reduction.combine, arith.AddfOp | arith.MulfOp)
        flags["fastmath"] = arith.FastMathFlagsAttr([FastMathFlag.REASSOC] if is_reordered else "none")
        combined = vector.ReductionOp.create(operands=[lanes], result_types=[element], properties=flags)
        new = reduction.combine.clone_without_regions()
        new.operands = [reduction.load.res, self.value(combined)]
        self.reduced.append(LaneReduction(reduction.load, combined, new, store, neutral))
        return self.value(new, reduction.combine.results[0].name_hint)

    def inner_loop(self, loop: ForOp) -> None:
        ops = detached_ops(loop.body.block)
        with self.scope(loop.body.block):
            for op in ops:
                self.visit(op)
        self.emit(loop)

    def uniform(self, op: scf.IfOp) -> None:
        varying = [result in self.lanes.varying for result in op.results]
        then, otherwise = (self.region(r.block, varying) if r.blocks else Region() for r in op.regions)
        types = [self.type_of(r.type) if v else r.type for r, v in zip(op.results, varying, strict=True)]
        new = scf.IfOp(op.cond, types, then, otherwise)
        self.dead.append(op)
        self.emit(new)
        for old, result, lanes in zip(op.results, new.results, varying, strict=True):
            result.name_hint = old.name_hint
            if lanes:
                self.vectors[old] = result
            else:
                old.replace_all_uses_with(result)

    def region(self, block: Block, varying: Sequence[bool]) -> Region:
        with self.scope(Block()) as new:
            yielded = zip(self.visit_branch(block), varying, strict=True)
            self.emit(scf.YieldOp(*[self.vector_of(value) if lanes else value for value, lanes in yielded]))
        return Region(new)

    def visit_branch(self, block: Block) -> Sequence[SSAValue]:
        *ops, end = detached_ops(block)
        for op in ops:
            self.visit(op)
        self.dead.append(end)
        return end.operands

    def masked(self, op: scf.IfOp) -> None:
        condition = self.vectors[op.cond]
        outer = self.mask
        self.dead.append(op)
        lanes = self.known_masks.get(condition)
        if lanes is not None and len(set(lanes)) == 1:
            region = op.true_region if lanes[0] else op.false_region
            yielded = self.visit_branch(region.block) if region.blocks else ()
            self.vectors.update(zip(op.results, map(self.vector_of, yielded), strict=True))
            return
        on = condition if outer is None else self.both(outer, condition)
        start = len(self.ops)
        # A constant mask with both outcomes has an active lane for either branch; one under another mask may not.
        then = self.branch(op.true_region, on, op)
        otherwise: list[SSAValue] = []
        if op.false_region.blocks:
            inverse = self.arith(arith.XOrIOp, condition, self.constant(i1, [1]))
            off = inverse if outer is None else self.arith(arith.AndIOp, outer, inverse)
            otherwise = self.branch(op.false_region, off, op)
        for result, yes, no in zip(op.results, then, otherwise, strict=True):
            is_chosen = then.count(yes) == 1 and self.loads_otherwise(condition, yes, no, start)
            self.vectors[result] = yes if is_chosen else self.select(condition, yes, no)

    def loads_otherwise(self, condition: SSAValue, yes: SSAValue, no: SSAValue, start: int) -> bool:
        """Let the masked load of `yes` yield `no` in the other lanes; return whether this is possible: the load is one
        of the ops from `start` on, and its value has no other use."""
        load = yes.owner
        if not isinstance(load, vector.MaskedLoadOp) or load.mask is not condition or yes.first_use is not None:
            return False
        at = next((at for at in range(start, len(self.ops)) if self.ops[at] is load), None)
        if at is None or not all(map(only_computes, self.ops[at + 1 :])):
            return False
        self.ops.append(self.ops.pop(at))
        load.operands[len(load.operands) - 1] = no
        return True

    def both(self, outer: SSAValue, condition: SSAValue) -> SSAValue:
        """The conjunction of masks; a constant if both are and some lane remains."""
        left, right = self.known_masks.get(outer), self.known_masks.get(condition)
        if left is not None and right is not None:
            lanes = tuple(one and other for one, other in zip(left, right, strict=True))
            if any(lanes):
                mask = self.constant(i1, [int(lane) for lane in lanes])
                self.known_masks[mask] = lanes
                return mask
        return self.arith(arith.AndIOp, outer, condition)

    def branch(self, region: Region, mask: SSAValue, op: scf.IfOp) -> list[SSAValue]:
        outer, self.mask = self.mask, mask
        if mask not in self.known_masks and needs_an_active_lane(region.block, self.lanes):
            values = self.guarded_branch(region.block, mask, op)
        else:
            values = [self.vector_of(value) for value in self.visit_branch(region.block)]
        self.mask = outer
        return values

    def guarded_branch(self, block: Block, mask: SSAValue, op: scf.IfOp) -> list[SSAValue]:
        properties: dict[str, Attribute] = {
            "kind": vector.CombiningKindAttr(vector.CombiningKindFlag.OR),
            "fastmath": arith.FastMathFlagsAttr("none"),
        }
        some = self.value(vector.ReductionOp.create(operands=[mask], result_types=[i1], properties=properties))
        then = self.region(block, [True] * len(op.results))
        types = [self.type_of(r.type) for r in op.results]
        otherwise = Region()
        if types:
            with self.scope(Block()) as empty:
                self.emit(scf.YieldOp(*[self.zeros(r.type) for r in op.results]))
            otherwise = Region(empty)
        new = scf.IfOp(some, types, then, otherwise)
        self.emit(new)
        return list(new.results)

    def emit(self, op: Operation) -> None:
        op.location = self.location
        self.ops.append(op)

    def value(self, op: Operation, hint: str | None = None) -> SSAValue:
        self.emit(op)
        if hint is not None:
            op.results[0].name_hint = hint
        return op.results[0]

    @contextmanager
    def scope(self, block: Block) -> Generator[Block]:
        outer, self.ops = self.ops, []
        self.made = self.made.new_child()
        yield block
        block.add_ops(self.ops)
        self.made = self.made.parents
        self.ops = outer

    def type_of(self, element: Attribute) -> VectorType:
        return _vector_type(element, self.count)

    def constant(self, element: Attribute, elements: Sequence[int] | Sequence[float]) -> SSAValue:
        key = ("constant", element, tuple(elements))
        if (found := self.made.get(key)) is not None:
            return found
        type_ = self.type_of(element)
        return self.made.setdefault(key, self.value(lanes_constant(type_, elements)))

    def zeros(self, element: Attribute) -> SSAValue:
        return self.constant(element, [0.0] if isinstance(element, AnyFloat) else [0])

    def scalar(self, index: Index) -> SSAValue:
        if (found := self.made.get(index)) is not None:
            return found
        value, ops = materialize(index)
        for op in ops:
            self.emit(op)
        return self.made.setdefault(index, value)

    def broadcast(self, value: SSAValue) -> SSAValue:
        if (found := self.made.get(value)) is not None:
            return found
        op = vector.BroadcastOp.create(operands=[value], result_types=[self.type_of(value.type)])
        return self.made.setdefault(value, self.value(op, value.name_hint))

    def vector_of(self, value: SSAValue) -> SSAValue:
        if value in self.vectors:
            return self.vectors[value]
        if value not in self.lanes.varying:
            return self.broadcast(value)
        if isinstance(value.type, IndexType):
            return self.index_vector(Index.of(value).simplified(self.ranges))
        raise InternalError(f"no lanes were made of %{value.name_hint}, a {value.type}")

    def offsets(self, index: Index) -> tuple[Index, tuple[int, ...]] | None:
        """A uniform index plus a constant for each lane."""
        factor = index.coefficient(self.variable)
        rest = index - Index({self.variable: factor})
        if not self.lanes.varies(rest):
            return rest, tuple(factor * lane for lane in range(self.count))
        if index not in self.distances:
            self.distances[index] = self._distances(index)
        return self.distances[index]

    def _distances(self, index: Index) -> tuple[Index, tuple[int, ...]] | None:
        if any(v in self.lanes.varying and v is not self.variable for v in index.values()):
            return None
        first, offsets = self._at_lane(index, 0), [0] * self.count
        # The last lane decides whether the next multiple of a divisor is reached.
        for lane in range(self.count - 1, 0, -1):
            distance = self._at_lane(index, lane) - first
            if not distance.is_constant:
                return None
            offsets[lane] = distance.constant
        return first, tuple(offsets)

    def _at_lane(self, index: Index, lane: int) -> Index:
        return index.substitute({self.variable: Index({}, lane)}, self.ranges).simplified(self.ranges)

    def index_vector(self, index: Index) -> SSAValue:
        if (found := self.made.get(("lanes", index))) is not None:
            return found
        split = self.offsets(index)
        if split is not None:
            base, offsets = split
            if base.is_constant:
                return self.constant(_INDEX, [base.constant + o for o in offsets])
            result = self.broadcast(self.scalar(base))
            if any(offsets):
                result = self.arith(arith.AddiOp, result, self.constant(_INDEX, offsets))
        else:
            result = self._sum_of_terms(index)
        return self.made.setdefault(("lanes", index), result)

    def arith(self, op_class: type[Operation], left: SSAValue, right: SSAValue) -> SSAValue:
        return self.value(arith_op(op_class, left, right))

    def _sum_of_terms(self, index: Index) -> SSAValue:
        shared: dict[Atom, int] = {}
        total: SSAValue | None = None
        for atom, factor in index.terms.items():
            if not self.lanes.varies(Index({atom: 1})):
                shared[atom] = factor
                continue
            term = self._atom_vector(atom)
            if factor != 1:
                term = self.arith(arith.MuliOp, term, self.constant(_INDEX, [factor]))
            total = term if total is None else self.arith(arith.AddiOp, total, term)
        rest = Index(shared, index.constant)
        if total is None:
            return self.broadcast(self.scalar(rest))
        return total if rest == Index({}) else self.arith(arith.AddiOp, total, self.broadcast(self.scalar(rest)))

    def _wrapped_lanes(self, atom: Quotient | Remainder) -> SSAValue | None:
        """Lanes of a quotient or remainder that passes at most one multiple of the divisor: a comparison replaces a
        division per lane."""
        split, divisor = self.offsets(atom.numerator), atom.divisor
        is_shift = divisor & (divisor - 1) == 0
        if split is None or is_shift or not 0 <= min(split[1]) <= max(split[1]) <= divisor:
            return None
        base, offsets = split
        first = self.broadcast(self.scalar(remainder(base, divisor, self.ranges)))
        reached = self.arith(arith.AddiOp, first, self.constant(_INDEX, offsets))
        past = self.value(CmpiOp(reached, self.constant(_INDEX, [divisor]), _AT_LEAST))
        if isinstance(atom, Remainder):
            return self.select(past, self.arith(arith.SubiOp, reached, self.constant(_INDEX, [divisor])), reached)
        whole = self.broadcast(self.scalar(quotient(base, divisor, self.ranges)))
        return self.select(past, self.arith(arith.AddiOp, whole, self.constant(_INDEX, [1])), whole)

    def _atom_vector(self, atom: Atom) -> SSAValue:
        if atom is self.variable:
            return self.constant(_INDEX, range(self.count))
        if isinstance(atom, SSAValue):
            return self.vectors[atom]
        if (wrapped := self._wrapped_lanes(atom)) is not None:
            return wrapped
        numerator = self.index_vector(atom.numerator)
        divisor = self.constant(_INDEX, [atom.divisor])
        return divided(atom, numerator, divisor, self.ranges, self.arith)
