"""Patterns of blocks: updates of accumulators, and the class of a block.

A reduction may be reassociated if its combiner is, or is declared, associative and commutative, and, if that changes
the rounding, its function has the assumption `reassoc`. Loops and names do not matter: patterns are derived from
accesses over the iterators.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from itertools import takewhile

from xdsl.dialects import arith, func, math, memref
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from weft.analysis.block_scopes import (
    ancestors,
    precedes,
    takes_pointers,
    updates_in_place,
    why_not_complete,
)
from weft.analysis.choices import Selection
from weft.analysis.index import Index
from weft.analysis.integer_ranges import range_of
from weft.analysis.reductions import why_not_reduction
from weft.dialects.combiners import COMBINATIONS
from weft.dialects.effects import underlying
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.promises import PROMISES, Promise, promises_of
from weft.dialects.strides import strides_of
from weft.dialects.tir import BlockOp, ForOp, InitOp
from weft.dialects.tir_kinds import COMMUTATIVE, IterKind
from weft.dialects.traversal import operations_in, operations_of
from weft.support.errors import InternalError, Violation


def is_in_init(op: Operation, block: BlockOp) -> bool:
    return any(isinstance(parent, InitOp) for parent in takewhile(lambda parent: parent is not block, ancestors(op)))


def combines_freely(block: BlockOp) -> bool:
    return has_known_combiners(block) and why_in_order(block) is None


def why_in_order(block: BlockOp) -> Violation | None:
    """A violation if reordering updates changes rounding without permission; None for unknown combiners."""
    function = next((op for op in ancestors(block) if isinstance(op, FuncOp)), None)
    if function is None or PROMISES not in function.attributes or COMMUTATIVE in block.attributes:
        return None
    if Promise.REASSOC in promises_of(function):
        return None
    choice = choice_of(block)
    if choice is not None and choice.compares_floats:
        detail = f'block "{block.label}" compares floats, and NaN and signed zeros give other results in another order'
        return Violation(detail, "not proved", {}, f'"{Promise.REASSOC.value}" in {PROMISES} of the function')
    for op in operations_in(block):
        if isinstance(op, memref.StoreOp) and not is_in_init(op, block):
            combine = op.value.owner
            rounds = isinstance(combine, arith.AddfOp | arith.MulfOp | math.FmaOp)
            if rounds and _known_update(op, {op.memref}) is not None and not _may_reassociate(combine):
                name = f"@{function.sym_name.data}"
                detail = f'block "{block.label}" combines by {combine.name}, which rounds differently in another order'
                legal = f'"{Promise.REASSOC.value}" in {PROMISES} of {name}, or fastmath<reassoc> on {combine.name}'
                return Violation(detail, "not proved", {}, legal)
    return None


def _may_reassociate(op: Operation) -> bool:
    flags = op.properties.get("fastmath")
    return isinstance(flags, arith.FastMathFlagsAttr) and FastMathFlag.REASSOC in flags.data


def has_known_combiners(block: BlockOp) -> bool:
    """Whether updates commute, up to rounding: stores combine the accumulator, by one known combiner, with a term
    that depends on no accumulator; or the block is declared commutative, or chooses the same value in any order."""
    if _chooses_freely(block):
        return True
    if takes_pointers(block):
        return False
    stores = [op for op in operations_in(block) if isinstance(op, memref.StoreOp) and not is_in_init(op, block)]
    accumulators = {store.memref for store in stores}
    combiners: dict[SSAValue, type[Operation] | None] = {}
    for store in stores:
        update = _known_update(store, accumulators)
        if update is None or combiners.setdefault(underlying(store.memref), update.operation) is not update.operation:
            return False
    return True


def _chooses_freely(block: BlockOp) -> bool:
    if COMMUTATIVE in block.attributes:
        return True
    choice = choice_of(block)
    return choice is not None and choice.why_in_order() is None


def choice_of(block: BlockOp) -> Selection | None:
    """The selections of a block whose stores all select an old or a new value."""
    stores = [op for op in operations_in(block) if isinstance(op, memref.StoreOp) and not is_in_init(op, block)]
    accumulators = {store.memref for store in stores}
    selects = [store.value.owner for store in stores if isinstance(store.value.owner, arith.SelectOp)]
    if not stores or len(selects) < len(stores) or len(accumulators) < len(stores) or takes_pointers(block):
        return None
    by_buffer = {store.memref: store for store in stores}
    for op in operations_in(block):
        if isinstance(op, memref.LoadOp) and op.memref in by_buffer and not is_in_init(op, block):
            store = by_buffer[op.memref]
            if list(op.indices) != list(store.indices) or not precedes(op, store):
                return None
    values: list[tuple[SSAValue, SSAValue]] = []
    for store, select in zip(stores, selects, strict=True):
        for old, new in ((select.lhs, select.rhs), (select.rhs, select.lhs)):
            if _is_old_value(old, store) and not _depends_on(new, accumulators):
                values.append((old, new))
                break
    return Selection(tuple(selects), tuple(values)) if len(values) == len(stores) else None


def _is_old_value(value: SSAValue, store: memref.StoreOp) -> bool:
    load = value.owner
    return (
        isinstance(load, memref.LoadOp)
        and load.memref is store.memref
        and list(load.indices) == list(store.indices)
        and load.parent is store.parent
    )


def _depends_on(value: SSAValue, buffers: set[SSAValue]) -> bool:
    pending, seen = [value.owner], set[Operation | Block]()
    while pending:
        op = pending.pop()
        if isinstance(op, Operation) and op not in seen:
            seen.add(op)
            for inner in operations_in(op):
                if isinstance(inner, memref.LoadOp) and inner.memref in buffers:
                    return True
                pending.extend(operand.owner for operand in inner.operands)
    return False


@dataclass(frozen=True)
class Update:
    """An accumulator whose old value each instance combines with a *term*."""

    store: memref.StoreOp
    term: SSAValue | None
    """None if the combining op computes the term itself (`fma`)."""
    operation: type[Operation] | None
    """None if the stored value is a choice between old value and term (`select`)."""
    choice: Selection | None = None
    """Set if the choice is proved to be commutative."""

    @property
    def is_idempotent(self) -> bool:
        """Whether start values may be combined repeatedly."""
        return self.operation is None or COMBINATIONS[self.operation].is_idempotent


def updates_of(block: BlockOp) -> tuple[Update, ...] | None:
    """The updates, or None if one is not recognised. A block declared or proved commutative may `select` between old
    and new values (argmax, argmin), of several accumulators at once."""
    stores = [op for op in operations_in(block) if isinstance(op, memref.StoreOp) and not is_in_init(op, block)]
    by_buffer = {store.memref: store for store in stores}
    if takes_pointers(block) or len(by_buffer) != len(stores) or not stores:
        return None
    choice = None if COMMUTATIVE in block.attributes else choice_of(block)
    if choice is not None and choice.why_in_order() is None:
        pairs = zip(stores, choice.values, strict=True)
        return tuple(Update(store, term, None, choice) for store, (_, term) in pairs)
    old_values: dict[SSAValue, memref.StoreOp] = {}
    for op in operations_in(block):
        if isinstance(op, memref.LoadOp) and op.memref in by_buffer and not is_in_init(op, block):
            store = by_buffer[op.memref]
            if not _is_old_value(op.res, store) or not precedes(op, store):
                return None
            old_values[op.res] = store
    updates = [_known_update(store, set(by_buffer)) or _choice(store, block, set(by_buffer)) for store in stores]
    found = tuple(update for update in updates if update is not None)
    if len(found) != len(stores):
        return None
    known = {*old_values, *(update.term for update in found if update.term is not None)}
    chosen = [update for update in found if update.operation is None]
    return found if all(_follows_from(update.store.value, known, block) for update in chosen) else None


def _known_update(store: memref.StoreOp, accumulators: set[SSAValue]) -> Update | None:
    update = store.value.owner
    if isinstance(update, math.FmaOp):
        old, terms, found = update.c, [update.a, update.b], Update(store, None, arith.AddfOp)
    elif isinstance(update, Operation) and type(update) in COMBINATIONS:
        old, term = update.operands
        if not _is_old_value(old, store):
            old, term = term, old
        terms, found = [term], Update(store, term, type(update))
    else:
        return None
    if not _is_old_value(old, store) or any(_depends_on(term, accumulators) for term in terms):
        return None
    return found


def _choice(store: memref.StoreOp, block: BlockOp, accumulators: set[SSAValue]) -> Update | None:
    select = store.value.owner
    if COMMUTATIVE not in block.attributes or not isinstance(select, arith.SelectOp):
        return None
    for old, term in ((select.lhs, select.rhs), (select.rhs, select.lhs)):
        if _is_old_value(old, store) and not _depends_on(term, accumulators):
            return Update(store, term, None)
    return None


def _follows_from(value: SSAValue, known: set[SSAValue], block: BlockOp) -> bool:
    if value in known or not block.is_ancestor(value.owner):
        return True
    op = value.owner
    if not isinstance(op, Operation) or op.regions or not is_pure_scalar(op):
        return False
    return all(_follows_from(operand, known, block) for operand in op.operands)


def neutral_value(operation: type[Operation] | None, type_: Attribute) -> float | None:
    """The neutral element for a type; integers are signed."""
    combination = None if operation is None else COMBINATIONS.get(operation)
    return None if combination is None else combination.neutral(type_)


def is_pure_scalar(op: Operation) -> bool:
    return op.name.startswith(("arith.", "math."))


_CASTS = (
    arith.ExtFOp,
    arith.TruncFOp,
    arith.ExtSIOp,
    arith.ExtUIOp,
    arith.TruncIOp,
    arith.SIToFPOp,
    arith.UIToFPOp,
    arith.FPToSIOp,
    arith.FPToUIOp,
)


class PatternKind(Enum):
    INJECTIVE = auto()
    """Each instance computes distinct elements: elementwise, broadcast, transpose, gather."""
    REDUCTION = auto()
    """Terms are combined, in any order, into elements that only spatial iterators index."""
    CONTRACTION = auto()
    """A sum of products of two elements; each index is at most one iterator or symbol, plus a constant."""
    CONVOLUTION = auto()
    """A sum of products of two elements, one of them indexed by the sum of a spatial and a reduce iterator."""
    WINDOW = auto()
    """Another reduction indexed by the sum of a spatial and a reduce iterator: pooling."""
    OPAQUE = auto()
    """Anything else: nested loops or blocks, calls, several writers, unknown combiners."""


@dataclass(frozen=True)
class Operand:
    op: memref.LoadOp | memref.StoreOp
    buffer: SSAValue
    indices: tuple[Index, ...]

    @property
    def element_type(self) -> Attribute:
        return self.type.element_type

    @property
    def type(self) -> MemRefType[Attribute]:
        type_ = self.buffer.type
        if not isinstance(type_, MemRefType):
            raise InternalError(f"{self.op.name} of a {type_}")
        return type_

    def dimensions_of(self, iterator: SSAValue) -> tuple[int, ...]:
        return tuple(at for at, index in enumerate(self.indices) if index.depends_on([iterator]))

    @property
    def is_diagonal(self) -> bool:
        return any(len(self.dimensions_of(iterator)) > 1 for iterator in self.iterators)

    @cached_property
    def iterators(self) -> frozenset[SSAValue]:
        return frozenset(
            value
            for index in self.indices
            for value in index.sources()
            if isinstance(value, BlockArgument) and isinstance(value.block.parent_op(), BlockOp)
        )

    def stride_of(self, iterator: SSAValue) -> int | None:
        """Stride in elements; 0 if unused, None if not constant."""
        place = Index({})
        for index, stride in zip(self.indices, self._strides, strict=True):
            if index.depends_on([iterator]):
                if stride is None:
                    return None
                place += index * stride
        # Recombine a quotient with its remainder.
        place = place.substitute({})
        factor = place.coefficient(iterator)
        return None if (place - Index({iterator: factor})).depends_on([iterator]) else factor

    @cached_property
    def _strides(self) -> tuple[int | None, ...]:
        stated = strides_of(self.type)
        if stated is not None:
            return stated
        strides: list[int | None] = []
        step: int | None = 1
        for extent in reversed(self.type.get_shape()):
            strides.append(step)
            step = None if step is None or extent < 0 else step * extent
        return tuple(reversed(strides))

    @property
    def is_gather(self) -> bool:
        return any(isinstance(value.owner, memref.LoadOp) for index in self.indices for value in index.sources())


@dataclass(frozen=True)
class BlockPattern:
    block: BlockOp
    kind: PatternKind
    reads: tuple[Operand, ...]
    writes: tuple[Operand, ...]
    updates: tuple[Update, ...] | None
    factors: tuple[Operand, Operand] | None = None
    """Without casts."""

    @property
    def spatial(self) -> tuple[BlockArgument, ...]:
        return self._iterators(IterKind.SPATIAL)

    @property
    def reduced(self) -> tuple[BlockArgument, ...]:
        return self._iterators(IterKind.REDUCE)

    def _iterators(self, wanted: IterKind) -> tuple[BlockArgument, ...]:
        return tuple(v for v, kind in zip(self.block.iter_vars, self.block.kinds, strict=True) if kind is wanted)

    def extent_of(self, iterator: BlockArgument) -> int | None:
        extent = self.block.extents[iterator.index]
        return extent if isinstance(extent, int) else None

    def most_of(self, iterator: BlockArgument) -> int | None:
        extent = self.block.extents[iterator.index]
        return extent if isinstance(extent, int) else Index.of(extent).range(range_of)[1]

    @property
    def is_reduction(self) -> bool:
        return self.kind not in (PatternKind.INJECTIVE, PatternKind.OPAQUE)

    @cached_property
    def instances(self) -> int | None:
        total = 1
        for extent in self.block.extents:
            if not isinstance(extent, int):
                return None
            total *= extent
        return total

    @cached_property
    def computing(self) -> tuple[Operation, ...]:
        """Scalar operations, except constants, casts and index arithmetic."""
        return tuple(
            op
            for op in operations_in(self.block)
            if is_pure_scalar(op)
            and not isinstance(op, (arith.ConstantOp, *_CASTS))
            and not isinstance(op.results[0].type, IndexType)
            and not is_in_init(op, self.block)
        )


def pattern_of(block: BlockOp) -> BlockPattern:
    if operations_of(block.body, BlockOp, ForOp, AccessPtrOp, func.CallOp):
        return BlockPattern(block, PatternKind.OPAQUE, (), (), None)
    own = [op for op in operations_in(block.body) if not is_in_init(op, block)]
    writes = tuple(_operand(op) for op in own if isinstance(op, memref.StoreOp))
    accumulators = {(write.buffer, write.indices) for write in writes if block.init is not None}
    loads = [_operand(op) for op in own if isinstance(op, memref.LoadOp)]
    reads = tuple(load for load in loads if (load.buffer, load.indices) not in accumulators)
    kind, updates, factors = PatternKind.OPAQUE, None, None
    if why_not_complete(block) is None or updates_in_place(block):
        kind = PatternKind.INJECTIVE
    elif writes and IterKind.REDUCE in block.kinds and why_not_reduction(block) is None and has_known_combiners(block):
        updates = updates_of(block)
        factors = _factors(updates)
        kind = _reduction_kind(block, reads, factors)
    return BlockPattern(block, kind, reads, writes, updates, factors)


def _operand(op: memref.LoadOp | memref.StoreOp) -> Operand:
    return Operand(op, op.memref, tuple(Index.of(index) for index in op.indices))


def _reduction_kind(block: BlockOp, reads: tuple[Operand, ...], factors: tuple[Operand, Operand] | None) -> PatternKind:
    if factors is None:
        return PatternKind.WINDOW if any(slides(block, read, least=2) for read in reads) else PatternKind.REDUCTION
    if any(slides(block, read) for read in reads):
        return PatternKind.CONVOLUTION
    single = all(
        len(index.terms) <= 1
        and all(factor == 1 and isinstance(atom, SSAValue) for atom, factor in index.terms.items())
        for operand in factors
        for index in operand.indices
    )
    gathers = any(operand.is_gather for operand in factors)
    return PatternKind.CONTRACTION if single and not gathers else PatternKind.REDUCTION


def slides(block: BlockOp, operand: Operand, *, least: int = 1) -> bool:
    """Whether an index adds a spatial and a reduce iterator of at least `least` iterations."""
    iterators = zip(block.iter_vars, block.kinds, block.extents, strict=True)
    kinds: dict[SSAValue, IterKind] = {
        v: kind for v, kind, extent in iterators if not isinstance(extent, int) or extent >= least
    }
    return bool(_sums_of_kinds(operand, kinds))


def sliding_iterators(block: BlockOp, operand: Operand) -> set[BlockArgument]:
    kinds: dict[SSAValue, IterKind] = dict(zip(block.iter_vars, block.kinds, strict=True))
    sums = _sums_of_kinds(operand, kinds)
    return {v for v in block.iter_vars for index in sums if kinds[v] is IterKind.SPATIAL and index.depends_on([v])}


def _sums_of_kinds(operand: Operand, kinds: Mapping[SSAValue, IterKind]) -> list[Index]:
    return [index for index in operand.indices if {kinds[v] for v in index.sources() if v in kinds} == set(IterKind)]


def _factors(updates: tuple[Update, ...] | None) -> tuple[Operand, Operand] | None:
    if updates is None or len(updates) != 1:
        return None
    (update,) = updates
    if update.operation not in (arith.AddfOp, arith.AddiOp):
        return None
    if update.term is None:
        fma = update.store.value.owner
        pair = (fma.a, fma.b) if isinstance(fma, math.FmaOp) else None
    else:
        product = without_casts(update.term).owner
        pair = (product.lhs, product.rhs) if isinstance(product, arith.MulfOp | arith.MuliOp) else None
    if pair is None:
        return None
    loads = [without_casts(value).owner for value in pair]
    first, second = loads
    if not isinstance(first, memref.LoadOp) or not isinstance(second, memref.LoadOp):
        return None
    return _operand(first), _operand(second)


def without_casts(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, _CASTS):
        value = value.owner.operands[0]
    return value
