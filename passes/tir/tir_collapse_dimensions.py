"""tir-collapse-dimensions: collapse dimensions traversed together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TypeAlias, TypeVar, cast

from xdsl.context import Context
from xdsl.dialects import affine, arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, MemRefType, ModuleOp, NoneAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue, Use
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.block_patterns import PatternKind, pattern_of
from weft.analysis.block_scopes import child_blocks, child_towards, function_of, is_plain, loops_around
from weft.analysis.index import Index
from weft.dialects.integer_arith import constant_integer
from weft.dialects.strides import dynamic_extents
from weft.dialects.tir import AssumeShapeOp, BlockOp
from weft.dialects.traversal import operations_in
from weft.passes.index_builders import (
    constant_before,
    detached_ops,
    erase_if_unused,
    extents_before,
    index_before,
    product_before,
    result_before,
    set_access,
)
from weft.passes.module_edits import calls_by_name, schedules_of
from weft.passes.schedule.nest_builders import new_loop, set_extents
from weft.passes.tir.tir_pass import buffer_type, tir_functions
from weft.support.errors import InternalError

_Pair: TypeAlias = tuple["SSAValue | BlockOp", int]
"""A dimension of a buffer, or an iterator of a block, and the next one."""
_Extent: TypeAlias = "int | SSAValue"
_Use: TypeAlias = tuple[Operation, int]
"""An operation and the number of an operand."""


@dataclass(frozen=True)
class CollapseDimensionsPass(ModulePass):
    """Collapse adjacent dimensions that a function always traverses together into one, and their loops into one.

    Applies where schedules cannot fuse: to symbolic extents, because loop values would be quotients by run-time
    numbers, and to transpositions, which access the fused dimensions at other strides. `[.., i, j, ..]` of extents `h`
    and `w` becomes `[.., i * w + j, ..]` of `h * w`, with the same row-major indices.

    Requires: functions of block loops.

    Leaves: unscheduled private functions that are only called, with fewer dimensions; callers reshape their buffers.
    """

    name = "tir-collapse-dimensions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [function for function in tir_functions(op) if _is_candidate(function)]
        if not functions or schedules_of(op):
            return
        calls = calls_by_name(op)
        for function in functions:
            if own := calls.get(function.sym_name.data):
                collapse(function, own)


def _is_candidate(function: FuncOp) -> bool:
    if function.sym_visibility is None or function.sym_visibility.data != "private":
        return False
    types = [type_ for type_ in function.function_type.inputs if isinstance(type_, MemRefType)]
    is_symbolic = any(DYNAMIC_INDEX in type_.get_shape()[1:] for type_ in types)
    return is_symbolic or any(map(_transposes, child_blocks(function)))


def _transposes(block: BlockOp) -> bool:
    accesses = [op for op in block.body.block.ops if isinstance(op, memref.LoadOp | memref.StoreOp)]
    orders = [[at for index in op.indices if (at := _iterator(block, index)) is not None] for op in accesses]
    return any(order != sorted(order) for order in orders)


def _iterator(block: BlockOp, index: SSAValue) -> int | None:
    return index.index if isinstance(index, BlockArgument) and index.block is block.body.block else None


def collapse(function: FuncOp, calls: Sequence[CallOp]) -> None:
    parts: list[list[list[int]]] = [[[at] for at in range(_rank(argument))] for argument in function.args]
    changed = False
    while (chosen := _Collapse.of(function)) is not None:
        chosen.rewrite()
        for buffer, at in sorted(chosen.buffers, key=lambda pair: -pair[1]):
            if isinstance(buffer, BlockArgument):
                own = parts[buffer.index]
                own[at : at + 2] = [own[at] + own[at + 1]]
        changed = True
    if not changed:
        return
    function.update_function_type()
    for call in calls:
        for at, (argument, own) in enumerate(zip(function.args, parts, strict=True)):
            if any(len(part) > 1 for part in own):
                call.operands[at] = _collapsed(call.operands[at], own, buffer_type(argument), call)


def _rank(value: SSAValue) -> int:
    return len(value.type.get_shape()) if isinstance(value.type, MemRefType) else 0


def _collapsed(
    buffer: SSAValue, parts: Sequence[Sequence[int]], type_: MemRefType[Attribute], call: CallOp
) -> SSAValue:
    extents, sizes = extents_before(buffer, call), list[Index]()
    for part in parts:
        size = Index.of(1)
        for at in part:
            size = product_before(size, Index.of(extents[at]), call)
        sizes.append(size)
    strides = [Index.of(1)]
    for size in reversed(sizes[1:]):
        strides.insert(0, product_before(strides[0], size, call))
    given: list[list[_Extent]] = []
    for indices, known in ((sizes, type_.get_shape()), (strides, type_.get_strides() or ())):
        is_known = [number not in (None, DYNAMIC_INDEX) for number in known]
        # Sizes that are dynamic in the type are operands, even if known.
        pairs = zip(indices, is_known, strict=True)
        given.append([index.constant if known else index_before(index, call) for index, known in pairs])
    shape, steps = given
    cast_ = memref.ReinterpretCastOp.from_dynamic(buffer, [0], shape, steps, type_)
    Rewriter.insert_op(cast_, InsertPoint.before(call))
    cast_.result.name_hint = buffer.name_hint
    return cast_.result


@dataclass(frozen=True)
class _Collapse:
    """Pairs of the same two extents."""

    extents: tuple[_Extent, _Extent]
    buffers: tuple[tuple[SSAValue, int], ...]
    blocks: tuple[tuple[BlockOp, int], ...]

    @staticmethod
    def of(function: FuncOp) -> _Collapse | None:
        return next((found for found in _joined_pairs(function) if found._may_be_one()), None)

    def _may_be_one(self) -> bool:
        """The inner extent is symbolic or elements change their order, no pairs overlap, and lost extents of parameters
        have no other uses, or are extents of other dimensions, too."""
        if not self.blocks or (isinstance(self.extents[1], int) and not self._moves_elements()):
            return False
        members = {*self.buffers, *self.blocks}
        if any((holder, at + 1) in members for holder, at in members):
            return False
        return all(self._kept_place(extent) is not None for extent in self._other_uses())

    def _other_uses(self) -> dict[OpResult, list[Use]]:
        """The extents that are dimensions of collapsed parameters, with their uses outside of the pairs."""
        covered, lost = set(self._uses()), self._lost()
        found: dict[OpResult, list[Use]] = {}
        for extent in self.extents:
            if (
                isinstance(extent, OpResult)
                and isinstance(dim := extent.op, memref.DimOp)
                and (dim.source, constant_integer(dim.index)) in lost
            ):
                others = [use for use in extent.uses if (use.operation, use.index) not in covered]
                if others:
                    found[extent] = others
        return found

    def _lost(self) -> set[tuple[SSAValue, int | None]]:
        """The dimensions of buffers that are in a pair."""
        return {(buffer, number) for buffer, at in self.buffers for number in (at, at + 1)}

    def _kept_place(self, extent: SSAValue) -> tuple[BlockArgument, int] | None:
        """A dimension of a parameter that has an extent and is in no pair, or None."""
        lost = self._lost()
        for buffer in function_of(self.blocks[0][0]).args:
            for op, first in _telling(buffer):
                for at, value in zip(dynamic_extents(buffer.type), op.operands[first:], strict=False):
                    if value == extent and (buffer, at) not in lost:
                        return buffer, at
        return None

    def _moves_elements(self) -> bool:
        blocks = dict.fromkeys(block for block, _ in self.blocks)
        return any(map(_transposes, blocks)) and all(pattern_of(b).kind is PatternKind.INJECTIVE for b in blocks)

    def _uses(self) -> Iterator[_Use]:
        for buffer, at in self.buffers:
            symbolic = [number for number in dynamic_extents(buffer.type) if number in (at, at + 1)]
            for op, first in _telling(buffer):
                yield from ((op, first + dynamic_extents(buffer.type).index(number)) for number in symbolic)
        for block, at in self.blocks:
            symbolic = [number for number, extent in enumerate(block.extents) if not isinstance(extent, int)]
            for number in (at, at + 1):
                if number in symbolic:
                    yield block, symbolic.index(number)
                    yield loops_around(block)[number], 0
        for product in self._products():
            yield from ((product, 0), (product, 1))

    def _products(self) -> list[arith.MuliOp]:
        inner, both = self.extents[1], set(self.extents)
        users = dict.fromkeys(use.operation for use in inner.uses) if isinstance(inner, SSAValue) else ()
        return [op for op in users if isinstance(op, arith.MuliOp) and set(op.operands) == both]

    def rewrite(self) -> None:
        self._keep_extents()
        products, extent = self._products(), self._extent()
        if isinstance(extent, SSAValue):
            for product in products:
                Rewriter.replace_op(product, [], [extent])
        for buffer, at in _grouped(self.buffers):
            _join_dimensions(buffer, at, extent)
        for block, at in _grouped(self.blocks):
            _join_loops(block, at, extent)
        erase_if_unused(value for value in self.extents if isinstance(value, SSAValue))

    def _keep_extents(self) -> None:
        """Let uses outside of the pairs read the extents of other dimensions."""
        for extent, uses in self._other_uses().items():
            place = self._kept_place(extent)
            if place is None:
                raise InternalError("an extent that is used after its dimension is collapsed is lost")
            buffer, at = place
            kept = memref.DimOp(buffer, constant_before(at, extent.op))
            kept.result.name_hint = extent.name_hint
            value = result_before(kept, extent.op)
            for use in uses:
                use.operation.operands[use.index] = value

    def _extent(self) -> _Extent:
        outer, inner = self.extents
        if isinstance(outer, int) and isinstance(inner, int):
            return outer * inner
        for buffer, at in self.buffers:
            for value in self.extents:
                if isinstance(value, OpResult) and isinstance(value.op, memref.DimOp) and value.op.source is buffer:
                    joined = sum(holder is buffer and number < at for holder, number in self.buffers)
                    dim = memref.DimOp(buffer, constant_before(at - joined, value.op))
                    dim.result.name_hint = value.name_hint
                    return result_before(dim, value.op)
        function = function_of(self.blocks[0][0])
        users = {child_towards(function, op) for op, _ in self._uses()}
        first = next(op for op in function.body.block.ops if op in users)
        return index_before(product_before(Index.of(outer), Index.of(inner), first), first)


_HolderT = TypeVar("_HolderT", SSAValue, BlockOp)


def _grouped(pairs: Iterable[tuple[_HolderT, int]]) -> Iterable[tuple[_HolderT, list[int]]]:
    found: dict[_HolderT, list[int]] = {}
    for holder, at in pairs:
        found.setdefault(holder, []).append(at)
    return found.items()


def _kept(count: int, first: Collection[int]) -> list[int]:
    return [at for at in range(count) if at - 1 not in first]


def _join_dimensions(buffer: SSAValue, pairs: Collection[int], extent: _Extent) -> None:
    old = buffer_type(buffer)
    kept = _kept(old.get_num_dims(), pairs)
    joined = extent if isinstance(extent, int) else DYNAMIC_INDEX
    shape = [joined if at in pairs else old.get_shape()[at] for at in kept]
    type_ = MemRefType(old.element_type, shape, old.layout, old.memory_space)
    alone, stated = set(kept) - set(pairs), dict[Operation, list[SSAValue]]()
    for op, first in _telling(buffer):
        own = dict(zip(dynamic_extents(old), op.operands[first:], strict=False))
        extents = (extent if at in pairs else own.get(at) for at in kept)
        stated[op] = [value for value in extents if isinstance(value, SSAValue)]
    for use in list(buffer.uses):
        op = use.operation
        if isinstance(op, memref.LoadOp | memref.StoreOp):
            set_access(op, buffer, [op.indices[at] for at in kept])
        elif isinstance(op, AssumeShapeOp):
            Rewriter.replace_op(op, AssumeShapeOp(buffer, stated[op]))
        elif isinstance(op, memref.DimOp) and op.result != extent and (at := constant_integer(op.index)) in alone:
            op.operands[1] = constant_before(kept.index(at), op)
    if isinstance(buffer, OpResult):
        new = memref.AllocOp(stated[buffer.op], (), type_, cast("memref.AllocOp", buffer.op).alignment)
        new.location = buffer.op.location
        new.memref.name_hint = buffer.name_hint
        Rewriter.replace_op(buffer.op, new)
    else:
        Rewriter.replace_value_with_new_type(buffer, type_)


def _join_loops(block: BlockOp, pairs: Collection[int], extent: _Extent) -> None:
    loops, kept = loops_around(block), _kept(len(block.iter_vars), pairs)
    variables = [loop.induction_variable for loop in loops]
    for at in pairs:
        outer, inner = loops[at], loops[at + 1]
        hints = [loop.induction_variable.name_hint or "i" for loop in (outer, inner)]
        joined = new_loop(extent, "_".join(hints), outer)
        joined.body.block.add_ops(detached_ops(inner.body.block))
        Rewriter.insert_op(joined, InsertPoint.before(outer))
        variables[at] = joined.induction_variable
        Rewriter.erase_op(outer)
    extents = [extent if at in pairs else block.extents[at] for at in kept]
    block.iter_kinds = ArrayAttr([block.iter_kinds.data[at] for at in kept])
    block.set_bindings([AffineExpr.dimension(at) for at in range(len(kept))], [variables[at] for at in kept])
    set_extents(block, extents)
    for at in sorted(pairs, reverse=True):
        block.body.block.erase_arg(block.iter_vars[at + 1])


def _joined_pairs(function: FuncOp) -> Iterator[_Collapse]:
    extents: dict[_Pair, tuple[_Extent, _Extent]] = {}
    links: dict[_Pair, list[_Pair]] = {}
    apart = set[_Pair]()
    for pair, own, joined in chain(_pairs_of_blocks(function), _pairs_of_buffers(function)):
        links[pair] = [other for other in joined if other is not None]
        if own is None or None in joined:
            apart.add(pair)
        else:
            extents[pair] = own
    seen = set[_Pair]()
    for start in links:
        if start in seen:
            continue
        found, pending = dict.fromkeys([start]), [start]
        while pending:
            new = [pair for pair in links.get(pending.pop(), ()) if pair not in found]
            found.update(dict.fromkeys(new))
            pending.extend(new)
        seen.update(found)
        if apart.isdisjoint(found) and len(both := {extents.get(pair) for pair in found}) == 1:
            blocks = tuple((holder, at) for holder, at in found if isinstance(holder, BlockOp))
            buffers = tuple((holder, at) for holder, at in found if isinstance(holder, SSAValue))
            if (own := both.pop()) is not None:
                yield _Collapse(own, buffers, blocks)


_Found: TypeAlias = tuple[_Pair, "tuple[_Extent, _Extent] | None", "list[_Pair | None]"]
"""A pair, its extents if known, and the pairs that accesses combine with it; None for an access that uses only one
member."""


def _pairs_of_blocks(function: FuncOp) -> Iterator[_Found]:
    for block in child_blocks(function):
        loops, variables, plain = loops_around(block), block.iter_vars, is_plain(block)
        for at, (outer, inner) in enumerate(pairwise(variables)):
            joined = [
                _indexed(use, step, outer, inner) for step, v in enumerate((outer, inner)) for use in _index_uses(v)
            ]
            may_join = (
                plain
                and block.kinds[at] is block.kinds[at + 1]
                and list(loops[at].body.block.ops) == [loops[at + 1]]
                and all(loop.induction_variable.has_one_use() for loop in loops[at : at + 2])
            )
            yield (block, at), (block.extents[at], block.extents[at + 1]) if may_join else None, joined


def _indexed(use: Use, step: int, outer: BlockArgument, inner: BlockArgument) -> _Pair | None:
    """Dimensions that both index; `step` is 0 for a use of `outer`, else 1."""
    op = use.operation
    if not isinstance(op, memref.LoadOp | memref.StoreOp):
        return None
    at = use.index - _first_index(op) - step
    return (op.memref, at) if at >= 0 and [*map(_equal_value, op.indices[at : at + 2])] == [outer, inner] else None


def _index_uses(iterator: SSAValue) -> Iterator[Use]:
    for use in iterator.uses:
        op = use.operation
        if isinstance(op, affine.ApplyOp) and _equal_value(op.result) == iterator:
            yield from op.result.uses
        else:
            yield use


def _equal_value(index: SSAValue) -> SSAValue:
    """Iterators of extent 1 are 0."""
    if type(index) is BlockArgument:
        return index
    return Index.of(index).simplified().single_value or index


def _first_index(op: memref.LoadOp | memref.StoreOp) -> int:
    return len(op.operands) - len(op.indices)


def _pairs_of_buffers(function: FuncOp) -> Iterator[_Found]:
    allocated = [op.memref for op in operations_in(function) if isinstance(op, memref.AllocOp)]
    for buffer in (*function.args, *allocated):
        if not isinstance(buffer.type, MemRefType) or not isinstance(buffer.type.layout, NoneAttr):
            continue
        extents = _extents_of(buffer)
        for at, (outer, inner) in enumerate(pairwise(extents)):
            joined = [_indexing(use, at) for use in buffer.uses if not _tells_extents(use)]
            yield (buffer, at), None if outer is None or inner is None else (outer, inner), joined


def _tells_extents(use: Use) -> bool:
    op = use.operation
    return isinstance(op, AssumeShapeOp) or (isinstance(op, memref.DimOp) and constant_integer(op.index) is not None)


def _indexing(use: Use, at: int) -> _Pair | None:
    op = use.operation
    if not isinstance(op, memref.LoadOp | memref.StoreOp) or use.index != _first_index(op) - 1:
        return None
    outer, inner = map(_equal_value, op.indices[at : at + 2])
    if not isinstance(outer, BlockArgument) or not isinstance(block := outer.block.parent_op(), BlockOp):
        return None
    following = block.iter_vars[outer.index + 1 : outer.index + 2]
    return (block, outer.index) if tuple(following) == (inner,) else None


def _extents_of(buffer: SSAValue) -> list[_Extent | None]:
    shape = buffer_type(buffer).get_shape()
    found: list[_Extent | None] = [None if extent == DYNAMIC_INDEX else extent for extent in shape]
    for op, first in _telling(buffer):
        for at, value in zip(dynamic_extents(buffer.type), op.operands[first:], strict=False):
            found[at] = value
    for use in buffer.uses:
        if isinstance(use.operation, memref.DimOp) and (at := constant_integer(use.operation.index)) is not None:
            found[at] = use.operation.result if found[at] in (None, use.operation.result) else None
    return found


def _telling(buffer: SSAValue) -> Iterator[_Use]:
    if isinstance(buffer, OpResult):
        yield buffer.op, 0
    for use in buffer.uses:
        if isinstance(use.operation, AssumeShapeOp):
            yield use.operation, 1
