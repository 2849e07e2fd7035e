"""Padded copies of buffers: the nest that fills one from the buffer, and the one that writes its valid part back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType, MemRefType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from weft.analysis.accesses import range_of
from weft.analysis.index import Index, exprs_of
from weft.analysis.structure import function_of
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import SPATIAL
from weft.passes.index_ops import materialize
from weft.passes.schedule.caching import free_label
from weft.passes.schedule.copying import alloc_like, dynamic_extents, insert_alloc, memref_type
from weft.passes.schedule.padding_domains import bindings_of, own_loops
from weft.passes.schedule.padding_values import Number
from weft.passes.schedule.rewriting import nest, new_loop, set_guards
from weft.support.errors import InternalError

Extent = int | SSAValue


@dataclass(frozen=True)
class Axis:
    """A dimension of a buffer, as a block indexes it: iterator `position` plus `rest`; without an iterator, `rest`."""

    position: int | None
    rest: Index
    is_whole: bool = False
    """Whether the index depends on iterators in another way: the copy has the whole dimension."""


@dataclass(frozen=True)
class PaddedCopy:
    """A buffer, how its dimensions are indexed, the accesses that go to the copy, and what it is padded with.

    The copy has no dimension for an index that is constant.
    """

    buffer: SSAValue
    axes: tuple[Axis, ...]
    accesses: tuple[memref.LoadOp | memref.StoreOp, ...]
    padding: Number = 0

    @property
    def values(self) -> tuple[SSAValue, ...]:
        """What is loaded from it."""
        return tuple(op.res for op in self.accesses if isinstance(op, memref.LoadOp))

    def padded_with(self, number: Number) -> PaddedCopy:
        return replace(self, padding=number)

    def of(self, accesses: Sequence[memref.LoadOp | memref.StoreOp]) -> PaddedCopy:
        return replace(self, accesses=tuple(accesses))


@dataclass(frozen=True)
class _Dimension:
    """A dimension of a copy: the axis it comes from, its extent, and the extent of the valid part."""

    axis: Axis
    extent: Extent
    valid: Extent


def copy_in(
    rewriter: PatternRewriter, block: BlockOp, copy: PaddedCopy, old: Sequence[Extent], new: Sequence[Extent]
) -> Operation:
    """Make the copy, let the accesses of the block go there, and give the nest that fills it: detached.

    `old` and `new` are the extents of the iterators of the block.
    """
    dimensions, alloc = _allocate(rewriter, block, copy, old, new)
    _redirect(block, copy, alloc.memref)
    body, places = _body(len(dimensions))
    conditions: list[SSAValue] = []
    for place, dimension in zip(places, dimensions, strict=True):
        if dimension.valid != dimension.extent:
            valid, operations = materialize(Index.of(dimension.valid))
            test = arith.CmpiOp(place, valid, "slt")
            body.add_ops([*operations, test])
            conditions.append(test.result)
    load, operations = _load(copy, _indices(copy, places))
    value = load.res
    if conditions:
        constant = arith.ConstantOp(_number(copy.padding, load.res.type))
        inside = Region(Block([*operations, load, scf.YieldOp(load.res)]))
        choice = scf.IfOp(
            _conjunction(conditions, body),
            [load.res.type],
            inside,
            Region(Block([constant, scf.YieldOp(constant.result)])),
        )
        body.add_op(choice)
        value = choice.results[0]
    else:
        body.add_ops([*operations, load])
    body.add_op(memref.StoreOp.get(value, alloc.memref, places))
    return _nest(block, copy, body, dimensions, [d.extent for d in dimensions])


def copy_out(
    rewriter: PatternRewriter, block: BlockOp, copy: PaddedCopy, old: Sequence[Extent], new: Sequence[Extent]
) -> Operation:
    """Make the copy, let the accesses of the block go there, and give the nest that writes the valid part back."""
    dimensions, alloc = _allocate(rewriter, block, copy, old, new)
    _redirect(block, copy, alloc.memref)
    body, places = _body(len(dimensions))
    load = memref.LoadOp.get(alloc.memref, places)
    load.res.name_hint = (copy.buffer.name_hint or "x").lower()
    body.add_op(load)
    indices: list[SSAValue] = []
    for index in _indices(copy, places):
        value, operations = materialize(index)
        body.add_ops(operations)
        indices.append(value)
    body.add_op(memref.StoreOp.get(load.res, copy.buffer, indices))
    return _nest(block, copy, body, dimensions, [d.valid for d in dimensions])


def _allocate(
    rewriter: PatternRewriter, block: BlockOp, copy: PaddedCopy, old: Sequence[Extent], new: Sequence[Extent]
) -> tuple[list[_Dimension], memref.AllocOp]:
    """The copy's dimensions, and its allocation, which is put behind that of the buffer."""
    type_ = memref_type(copy.buffer)
    needs_sizes = any(a.is_whole and e == DYNAMIC_INDEX for a, e in zip(copy.axes, type_.get_shape(), strict=True))
    known = dynamic_extents(copy.buffer) if needs_sizes else None
    sizes = iter(() if known is None else known.values)
    dimensions: list[_Dimension] = []
    for axis, extent in zip(copy.axes, type_.get_shape(), strict=True):
        size: Extent = next(sizes) if known is not None and extent == DYNAMIC_INDEX else extent
        if axis.position is not None:
            dimensions.append(_Dimension(axis, new[axis.position], old[axis.position]))
        elif axis.is_whole:
            dimensions.append(_Dimension(axis, size, size))
    shape = [d.extent if isinstance(d.extent, int) else DYNAMIC_INDEX for d in dimensions]
    values = [d.extent for d in dimensions if not isinstance(d.extent, int)]
    hint = f"{copy.buffer.name_hint or 'buffer'}_pad"
    alloc = alloc_like(MemRefType(type_.element_type, shape, memory_space=type_.memory_space), values, hint)
    alloc.location = block.location
    insert_alloc(rewriter, copy.buffer, alloc, () if known is None else known.operations)
    return dimensions, alloc


def _redirect(block: BlockOp, copy: PaddedCopy, buffer: SSAValue) -> None:
    """Let the accesses go to the copy, at their iterators."""
    for op in copy.accesses:
        indices: list[SSAValue] = []
        for axis, operand in zip(copy.axes, op.indices, strict=True):
            if axis.position is not None:
                indices.append(block.iter_vars[axis.position])
            elif axis.is_whole:
                indices.append(operand)
        values = [op.value] if isinstance(op, memref.StoreOp) else []
        op.operands = [*values, buffer, *indices]


def _body(rank: int) -> tuple[Block, list[SSAValue]]:
    body = Block(arg_types=[IndexType()] * rank)
    for at, variable in enumerate(body.args):
        variable.name_hint = f"v{at}"
    return body, list(body.args)


def _indices(copy: PaddedCopy, places: Sequence[SSAValue]) -> list[Index]:
    """The indices of the buffer at a place of the copy."""
    remaining = iter(places)
    found: list[Index] = []
    for axis in copy.axes:
        if axis.position is not None:
            found.append(Index.of(next(remaining)) + axis.rest)
        else:
            found.append(Index.of(next(remaining)) if axis.is_whole else axis.rest)
    return found


def _load(copy: PaddedCopy, indices: Sequence[Index]) -> tuple[memref.LoadOp, list[Operation]]:
    operations: list[Operation] = []
    values: list[SSAValue] = []
    for index in indices:
        value, new = materialize(index)
        operations.extend(new)
        values.append(value)
    load = memref.LoadOp.get(copy.buffer, values)
    load.res.name_hint = (copy.buffer.name_hint or "x").lower()
    return load, operations


def _conjunction(conditions: Sequence[SSAValue], body: Block) -> SSAValue:
    """All conditions at once, computed at the end of a body."""
    result = conditions[0]
    for condition in conditions[1:]:
        both = arith.AndIOp(result, condition)
        body.add_op(both)
        result = both.result
    return result


def _nest(
    block: BlockOp, copy: PaddedCopy, body: Block, dimensions: Sequence[_Dimension], extents: Sequence[Extent]
) -> Operation:
    """A block that is called after the copy, over what one run of the loops of `block` alone needs.

    An iterator that does not grow is bound as in `block`, to copies of its loops; there is a new loop for any other
    dimension.
    """
    loops: list[ForOp] = []
    copies: dict[SSAValue, Index] = {}
    own: dict[SSAValue, ForOp] = {loop.induction_variable: loop for loop in own_loops(block)}
    bindings: list[Index] = []
    for dimension, extent in zip(dimensions, extents, strict=True):
        position = dimension.axis.position
        if position is None or dimension.valid != dimension.extent:
            loops.append(new_loop(extent, f"ax{len(loops)}", block))
            bindings.append(Index.of(loops[-1].induction_variable))
            continue
        binding = bindings_of(block)[position]
        for value in binding.values():
            if value in own and value not in copies:
                loops.append(new_loop(own[value].extent, f"ax{len(loops)}", block))
                copies[value] = Index.of(loops[-1].induction_variable)
        bindings.append(binding.substitute(copies, range_of))
    exprs, operands = exprs_of(bindings)
    label = free_label(function_of(block), f"{copy.buffer.name_hint or 'buffer'}_pad")
    new = BlockOp(label, [SPATIAL] * len(dimensions), list(extents), exprs, operands, Region(body))
    for op in (new, *new.walk()):
        op.location = block.location
    outermost = nest(loops, [new]) or new
    guards = [(index, Index.of(extent)) for index, extent in zip(bindings, extents, strict=True)]
    set_guards(new, [*guards, *((Index({}, -1), index) for index in bindings)])
    return outermost


def _number(number: Number, type_: Attribute) -> FloatAttr | IntegerAttr:
    if isinstance(type_, AnyFloat):
        return FloatAttr(float(number), type_)
    if isinstance(type_, IntegerType | IndexType):
        return IntegerAttr(int(number), type_)
    raise InternalError(f"no number of type {type_}")
