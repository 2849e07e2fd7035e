"""Widens the body of a loop to vectors, op by op."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    IndexType,
    IntegerType,
    i1,
)
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from weft.analysis.index import Index
from weft.dialects import low_lanes
from weft.dialects.low import GatherOp, ScatterOp
from weft.dialects.low_access import PrefetchOp
from weft.dialects.low_kernel import SHARED
from weft.dialects.tir import ForOp
from weft.passes.tir.guards import constraint_of
from weft.passes.tir.lane_accumulators import LaneReduction
from weft.passes.tir.lane_analysis import DIVISIONS, Lanes, Reduction, is_traced, needs_an_active_lane
from weft.passes.tir.lane_values import LaneValues
from weft.passes.tir.nest import buffer_type, detached_ops

_INDEX = IndexType()


class Vectorizer(LaneValues):
    """Replaces a loop that `analyse` found no obstacle in.

    Ops whose operands are the same for all lanes move as they are. Index arithmetic that differs between lanes is not
    emitted: places are read off its normal form, and only what needs lanes of indices computes them.
    """

    def __init__(self, lanes: Lanes, count: int) -> None:
        super().__init__(lanes, count)
        self.mask: SSAValue | None = None
        """The lanes that run, where not all do."""
        self.known_masks: dict[SSAValue, tuple[bool, ...]] = {}
        """Masks that are constants."""
        self.reduced: list[LaneReduction] = []
        """Reductions over the lanes."""
        self.dead: list[Operation] = []
        """Ops of the body that have been replaced: erased at the end, for what follows may still trace through them."""

    def run(self) -> None:
        """Put the vector form in the place of the loop."""
        for op in detached_ops(self.loop.body.block):
            self.visit(op)
        parent = self.loop.parent
        if parent is not None:
            parent.insert_ops_before(self.ops, self.loop)
        for op in reversed(self.dead):
            op.drop_all_references()
        self.loop.detach()
        self.loop.drop_all_references()

    # Ops

    def visit(self, op: Operation) -> None:
        """Emit the vector form of a detached op of the body."""
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
            case scf.IfOp():
                self.condition(op)
            case _:
                self.compute(op)

    def compute(self, op: Operation) -> None:
        if not any(operand in self.lanes.varying for operand in op.operands):
            self.emit(op)
            return
        if op.results[0] not in self.lanes.varying:
            # Index arithmetic in which the lane cancels out.
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
        """The lanes of a condition that only the lane decides."""
        if isinstance(op, arith.AndIOp):
            sides = [self.known_masks.get(self.vectors.get(v, v)) for v in op.operands]
            left, right = sides
            if left is None or right is None:
                return None
            return tuple(one and other for one, other in zip(left, right, strict=True))
        constraint = constraint_of(op, self.ranges) if isinstance(op, arith.CmpiOp) else None
        split = None if constraint is None else self.offsets(constraint.index.simplified(self.ranges))
        if constraint is None or split is None or not split[0].is_constant:
            return None
        values = [split[0].constant + offset for offset in split[1]]
        return tuple((v == 0) != constraint.negated if constraint.equality else v >= 0 for v in values)

    def load(self, op: memref.LoadOp) -> None:
        place = Index.of(op.indices[0]).simplified(self.ranges)
        hint = op.res.name_hint
        if not self.lanes.varies(place):
            self.emit(op)
            return
        self.dead.append(op)
        element = op.res.type
        type_ = self.type_of(element)
        split = self.offsets(place)
        if split is not None and split[1] == tuple(range(self.count)):
            base = self.scalar(split[0])
            if self.mask is None:
                new: Operation = vector.LoadOp(op.memref, [base], type_)
            elif self.is_promotable(op.memref, split[0]):
                lanes = self.value(vector.LoadOp(op.memref, [base], type_), hint)
                new = low_lanes.SelectOp(self.mask, lanes, self.zeros(element))
            else:
                new = vector.MaskedLoadOp(op.memref, [base], self.mask, self.zeros(element))
        elif split is not None and not any(split[1]) and self.mask is None:
            shared = memref.LoadOp.create(operands=[op.memref, self.scalar(split[0])], result_types=[element])
            self.vectors[op.res] = self.broadcast(self.value(shared, hint))
            return
        else:
            new = GatherOp(op.memref, self.index_vector(place), self.mask, type_)
        self.vectors[op.res] = self.value(new, hint)

    def store(self, op: memref.StoreOp) -> None:
        place = Index.of(op.indices[0]).simplified(self.ranges)
        if not self.lanes.varies(place):
            if op in self.lanes.reductions:
                op.operands[0] = self.reduce(op, self.lanes.reductions[op])
            self.emit(op)
            return
        self.dead.append(op)
        lanes = self.vector_of(op.value)
        split = self.offsets(place)
        if split is None or split[1] != tuple(range(self.count)):
            self.emit(ScatterOp(lanes, op.memref, self.index_vector(place), self.mask))
        elif self.mask is None:
            self.emit(vector.StoreOp(lanes, op.memref, [self.scalar(split[0])], op.nontemporal))
        elif self.is_promotable(op.memref, split[0]):
            base = self.scalar(split[0])
            old = self.value(vector.LoadOp(op.memref, [base], self.type_of(op.value.type)))
            self.emit(vector.StoreOp(self.select(self.mask, lanes, old), op.memref, [base]))
        else:
            self.emit(vector.MaskedStoreOp(op.memref, [self.scalar(split[0])], self.mask, lanes))

    def prefetch(self, op: PrefetchOp) -> None:
        """What lies together is asked for at once; what does not is not asked for."""
        place = Index.of(op.index).simplified(self.ranges)
        if not self.lanes.varies(place):
            self.emit(op)
            return
        self.dead.append(op)
        split = self.offsets(place)
        if split is not None and split[1] == tuple(range(self.count)):
            for_write = op.for_write is not None
            self.emit(PrefetchOp(op.buffer, [self.scalar(split[0])], self.count, for_write=for_write))

    def is_promotable(self, buffer: SSAValue, base: Index) -> bool:
        """Whether all lanes from `base` on lie in a buffer of the stack frame, which no other thread sees.

        Then inactive lanes may touch memory as well, if they leave it as it was. LLVM keeps such a buffer in registers
        only when no masked access to it is left.
        """
        if not isinstance(buffer.owner, memref.AllocaOp) or buffer_type(buffer).memory_space == SHARED:
            return False
        low, high = base.range(self.ranges)
        size = buffer_type(buffer).get_shape()[0]
        return low is not None and high is not None and low >= 0 and high + self.count <= size

    def reduce(self, store: memref.StoreOp, reduction: Reduction) -> SSAValue:
        """All lanes combined with the value that the load found."""
        lanes = self.vector_of(reduction.operand)
        element = reduction.operand.type
        neutral = neutral_element(reduction.kind, element)
        if self.mask is not None:
            lanes = self.select(self.mask, lanes, self.constant(element, [neutral]))
        flags: dict[str, Attribute] = {"kind": vector.CombiningKindAttr(reduction.kind)}
        is_reordered = isinstance(reduction.combine, arith.AddfOp | arith.MulfOp)
        flags["fastmath"] = arith.FastMathFlagsAttr([FastMathFlag.REASSOC] if is_reordered else "none")
        combined = vector.ReductionOp.create(operands=[lanes], result_types=[element], properties=flags)
        new = reduction.combine.clone_without_regions()
        new.operands = [reduction.load.res, self.value(combined)]
        self.reduced.append(LaneReduction(reduction.load, combined, new, store, neutral))
        return self.value(new, reduction.combine.results[0].name_hint)

    # Control flow

    def inner_loop(self, loop: ForOp) -> None:
        """The loop stays, around the vector form of its body."""
        with self.scope() as ops:
            for op in detached_ops(loop.body.block):
                self.visit(op)
        loop.body.block.add_ops(ops)
        self.emit(loop)

    def condition(self, op: scf.IfOp) -> None:
        if op.cond in self.lanes.varying:
            self.masked(op)
        else:
            self.uniform(op)

    def uniform(self, op: scf.IfOp) -> None:
        """All lanes go the same way: the `scf.if` stays."""
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
        with self.scope() as ops:
            old = detached_ops(block)
            for op in old[:-1]:
                self.visit(op)
            values = [
                self.vector_of(value) if lanes else value
                for value, lanes in zip(old[-1].operands, varying, strict=True)
            ]
            self.dead.append(old[-1])
            self.emit(scf.YieldOp(*values))
        new = Block()
        new.add_ops(ops)
        return Region(new)

    def masked(self, op: scf.IfOp) -> None:
        """Lanes go different ways: both regions run, each under its mask, and lanes select the results."""
        condition = self.vectors[op.cond]
        outer = self.mask
        self.dead.append(op)
        lanes = self.known_masks.get(condition)
        if lanes is not None and len(set(lanes)) == 1:
            region = op.true_region if lanes[0] else op.false_region
            if region.blocks:
                self.vectors.update(zip(op.results, self.unguarded_branch(region.block), strict=True))
            return
        on = condition if outer is None else self.arith(arith.AndIOp, outer, condition)
        # A constant mask of several outcomes has an active lane for either branch; one under another mask may not.
        then = self.branch(op.true_region, on, op)
        otherwise: list[SSAValue] = []
        if op.false_region.blocks:
            inverse = self.arith(arith.XOrIOp, condition, self.constant(i1, [1]))
            off = inverse if outer is None else self.arith(arith.AndIOp, outer, inverse)
            otherwise = self.branch(op.false_region, off, op)
        for result, yes, no in zip(op.results, then, otherwise, strict=True):
            self.vectors[result] = self.select(condition, yes, no)

    def branch(self, region: Region, mask: SSAValue, op: scf.IfOp) -> list[SSAValue]:
        """The ops of `region` under `mask`; the lanes of what it yields."""
        outer, self.mask = self.mask, mask
        block = region.block
        if mask not in self.known_masks and needs_an_active_lane(block, self.lanes):
            values = self.guarded_branch(block, mask, op)
        else:
            values = self.unguarded_branch(block)
        self.mask = outer
        return values

    def unguarded_branch(self, block: Block) -> list[SSAValue]:
        ops = detached_ops(block)
        for inner in ops[:-1]:
            self.visit(inner)
        self.dead.append(ops[-1])
        return [self.vector_of(value) for value in ops[-1].operands]

    def guarded_branch(self, block: Block, mask: SSAValue, op: scf.IfOp) -> list[SSAValue]:
        """The same, run only when some lane is active."""
        properties: dict[str, Attribute] = {
            "kind": vector.CombiningKindAttr(vector.CombiningKindFlag.OR),
            "fastmath": arith.FastMathFlagsAttr("none"),
        }
        some = self.value(vector.ReductionOp.create(operands=[mask], result_types=[i1], properties=properties))
        then = self.region(block, [True] * len(op.results))
        types = [self.type_of(r.type) for r in op.results]
        otherwise = Region()
        if types:
            with self.scope() as ops:
                self.emit(scf.YieldOp(*[self.zeros(r.type) for r in op.results]))
            empty = Block()
            empty.add_ops(ops)
            otherwise = Region(empty)
        new = scf.IfOp(some, types, then, otherwise)
        self.emit(new)
        return list(new.results)


def neutral_element(kind: vector.CombiningKindFlag, element: Attribute) -> float | int:
    """What a masked lane contributes to a reduction: nothing."""
    flag = vector.CombiningKindFlag
    if isinstance(element, AnyFloat):
        return {
            flag.ADD: -0.0,
            flag.MUL: 1.0,
            flag.MAXIMUMF: float("-inf"),
            flag.MINIMUMF: float("inf"),
            flag.MAXNUMF: float("nan"),
            flag.MINNUMF: float("nan"),
        }[kind]
    width = element.width.data if isinstance(element, IntegerType) else 64
    return {
        flag.ADD: 0,
        flag.MUL: 1,
        flag.OR: 0,
        flag.XOR: 0,
        flag.AND: -1,
        flag.MINUI: -1,
        flag.MAXUI: 0,
        flag.MINSI: (1 << (width - 1)) - 1,
        flag.MAXSI: -(1 << (width - 1)),
    }[kind]
