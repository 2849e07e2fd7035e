"""What a block computes, read off its accesses: elementwise, a reduction, a contraction, a sum over windows.

Everything is over the iterators of the block itself, wherever its loops stand. Nothing is guessed and no name counts:
what is not understood is `OPAQUE`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property

from xdsl.dialects import arith, func, math, memref
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from weft.analysis.combiners import Update, combines_freely, is_in_init, is_pure_scalar, updates_of
from weft.analysis.index import Index
from weft.analysis.structure import why_not_complete, why_not_reduction
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.strides import strides_of
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import IterKind
from weft.dialects.traversal import operations_in
from weft.support.errors import InternalError

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
    """What a block computes."""

    INJECTIVE = auto()
    """Each instance computes elements of its own from what it reads: elementwise, broadcasts, transposes, gathers."""
    REDUCTION = auto()
    """Terms are combined, in any order, into elements that only spatial iterators choose."""
    CONTRACTION = auto()
    """A reduction whose combiner is a sum, and whose term is the product of two elements; each index is a single
    iterator, a constant, or of symbols alone."""
    CONVOLUTION = auto()
    """A sum of products of two elements, one of them at a place that adds a spatial and a reduce iterator."""
    WINDOW = auto()
    """Another reduction with an index that adds a spatial and a reduce iterator: pooling."""
    OPAQUE = auto()
    """Anything else: nested loops or blocks, calls, several writers, combiners that are not known."""


@dataclass(frozen=True)
class Operand:
    """One load or store of a block, over its iterators."""

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
        """The dimensions whose index is computed from an iterator."""
        return tuple(at for at, index in enumerate(self.indices) if index.depends_on([iterator]))

    @property
    def is_diagonal(self) -> bool:
        """Whether an iterator is in the indices of several dimensions."""
        return any(len(self.dimensions_of(iterator)) > 1 for iterator in self.iterators)

    @cached_property
    def iterators(self) -> frozenset[SSAValue]:
        """The block iterators (of any block) that some index is computed from."""
        return frozenset(
            value
            for index in self.indices
            for value in index.sources()
            if isinstance(value, BlockArgument) and isinstance(value.block.parent_op(), BlockOp)
        )

    def stride_of(self, iterator: SSAValue) -> int | None:
        """How many elements further the next value of an iterator is; 0 where it is not used, None where that is not
        the same number everywhere or not known."""
        place = Index({})
        for index, stride in zip(self.indices, self._strides, strict=True):
            if index.depends_on([iterator]):
                if stride is None:
                    return None
                place += index * stride
        # A quotient and the remainder that goes with it are one loop again.
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
        """Whether an index is computed from what was loaded."""
        return any(isinstance(value.owner, memref.LoadOp) for index in self.indices for value in index.sources())


@dataclass(frozen=True)
class BlockPattern:
    """A block and what it computes."""

    block: BlockOp
    kind: PatternKind
    reads: tuple[Operand, ...]
    """Loads outside of the init, without those of accumulators."""
    writes: tuple[Operand, ...]
    """Stores outside of the init."""
    updates: tuple[Update, ...] | None
    """How a reduction combines into each accumulator, where that is known."""
    factors: tuple[Operand, Operand] | None = None
    """What a contraction or convolution multiplies, as loaded: casts may stand between."""

    @property
    def spatial(self) -> tuple[BlockArgument, ...]:
        return self._iterators(IterKind.SPATIAL)

    @property
    def reduced(self) -> tuple[BlockArgument, ...]:
        return self._iterators(IterKind.REDUCE)

    def _iterators(self, wanted: IterKind) -> tuple[BlockArgument, ...]:
        return tuple(v for v, kind in zip(self.block.iter_vars, self.block.kinds, strict=True) if kind is wanted)

    def extent_of(self, iterator: BlockArgument) -> int | None:
        """The extent of an iterator of the block; None when it is known at run time only."""
        extent = self.block.extents[iterator.index]
        return extent if isinstance(extent, int) else None

    @property
    def is_reduction(self) -> bool:
        return self.kind not in (PatternKind.INJECTIVE, PatternKind.OPAQUE)

    @cached_property
    def instances(self) -> int | None:
        """How many instances there are; None when that is known at run time only."""
        total = 1
        for extent in self.block.extents:
            if not isinstance(extent, int):
                return None
            total *= extent
        return total

    @cached_property
    def computing(self) -> tuple[Operation, ...]:
        """The scalar operations of an instance, without constants, casts and index arithmetic."""
        return tuple(
            op
            for op in operations_in(self.block)
            if is_pure_scalar(op)
            and not isinstance(op, (arith.ConstantOp, *_CASTS))
            and not isinstance(op.results[0].type, IndexType)
            and not is_in_init(op, self.block)
        )


def pattern_of(block: BlockOp) -> BlockPattern:
    """What a block computes."""
    if any(isinstance(op, BlockOp | ForOp | AccessPtrOp | func.CallOp) for op in operations_in(block.body)):
        return BlockPattern(block, PatternKind.OPAQUE, (), (), None)
    own = [op for op in operations_in(block.body) if not is_in_init(op, block)]
    writes = tuple(_operand(op) for op in own if isinstance(op, memref.StoreOp))
    accumulators = {(write.buffer, write.indices) for write in writes if block.init is not None}
    loads = [_operand(op) for op in own if isinstance(op, memref.LoadOp)]
    reads = tuple(load for load in loads if (load.buffer, load.indices) not in accumulators)
    kind, updates, factors = PatternKind.OPAQUE, None, None
    if why_not_complete(block) is None:
        kind = PatternKind.INJECTIVE
    elif IterKind.REDUCE in block.kinds and why_not_reduction(block) is None and combines_freely(block):
        updates = updates_of(block)
        factors = _factors(updates)
        kind = _reduction_kind(block, reads, factors)
    return BlockPattern(block, kind, reads, writes, updates, factors)


def _operand(op: memref.LoadOp | memref.StoreOp) -> Operand:
    return Operand(op, op.memref, tuple(Index.of(index) for index in op.indices))


def _reduction_kind(block: BlockOp, reads: tuple[Operand, ...], factors: tuple[Operand, Operand] | None) -> PatternKind:
    if any(slides(block, read) for read in reads):
        return PatternKind.WINDOW if factors is None else PatternKind.CONVOLUTION
    if factors is None:
        return PatternKind.REDUCTION
    single = all(
        len(index.terms) <= 1
        and all(factor == 1 and isinstance(atom, SSAValue) for atom, factor in index.terms.items())
        for operand in factors
        for index in operand.indices
    )
    gathers = any(operand.is_gather for operand in factors)
    return PatternKind.CONTRACTION if single and not gathers else PatternKind.REDUCTION


def slides(block: BlockOp, operand: Operand) -> bool:
    """Whether an index adds a spatial and a reduce iterator of the block."""
    kinds: dict[SSAValue, IterKind] = dict(zip(block.iter_vars, block.kinds, strict=True))
    return any({kinds[v] for v in index.sources() if v in kinds} == set(IterKind) for index in operand.indices)


def _factors(updates: tuple[Update, ...] | None) -> tuple[Operand, Operand] | None:
    """The two loads whose product is added, where a reduction is that."""
    if updates is None or len(updates) != 1:
        return None
    (update,) = updates
    if update.operation not in (arith.AddfOp, arith.AddiOp):
        return None
    if update.term is None:
        fma = update.store.value.owner
        pair = (fma.a, fma.b) if isinstance(fma, math.FmaOp) else None
    else:
        product = _without_casts(update.term).owner
        pair = (product.lhs, product.rhs) if isinstance(product, arith.MulfOp | arith.MuliOp) else None
    if pair is None:
        return None
    loads = [_without_casts(value).owner for value in pair]
    first, second = loads
    if not isinstance(first, memref.LoadOp) or not isinstance(second, memref.LoadOp):
        return None
    return _operand(first), _operand(second)


def _without_casts(value: SSAValue) -> SSAValue:
    """The value that was cast, possibly several times."""
    while isinstance(value.owner, _CASTS):
        value = value.owner.operands[0]
    return value
