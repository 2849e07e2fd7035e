"""Calls that write a result over an operand that nothing reads any more.

A function promises that its buffers do not overlap, so it cannot be given one buffer twice. Where it may work in place,
the call is of a copy of it that has one parameter in the place of the two, which it reads and writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, MemRefType, ModuleOp, NoneAttr, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.dialects.ptr import PtrType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.extents import ExtentNames
from weft.analysis.index import Index
from weft.analysis.structure import child_blocks, is_plain
from weft.dialects.effects import is_pure
from weft.dialects.graph_shapes import EXTENTS, KnownExtent
from weft.dialects.integer_arith import constant_integer
from weft.dialects.low_access import AccessAttr, AccessMode
from weft.dialects.promises import PROMISES
from weft.dialects.tir import AssumeShapeOp, BlockOp
from weft.dialects.tir_kinds import PARAMETER_ACCESS, SPATIAL
from weft.dialects.traversal import copy_of, operations_in
from weft.dialects.upstream.views import uncast
from weft.passes.index_ops import erase_if_unused
from weft.passes.module_functions import named_ops, symbol_uses
from weft.passes.tir.flat_signature import ParameterAccesses
from weft.passes.tir.nest import buffer_type
from weft.support.errors import InternalError
from weft.support.names import free_name

_PRIVATE = StringAttr("private")
_RENAMES = (memref.CastOp, memref.ReinterpretCastOp)


class InPlaceFunctions:
    """The functions of a module that may write a result over an operand, and their copies that do."""

    def __init__(self, module: ModuleOp) -> None:
        self._module = module
        self._names = named_ops(module)
        self._found: dict[tuple[str, int, int], bool] = {}
        self._copies: dict[tuple[str, int, int], FuncOp] = {}

    def may_overwrite(self, name: str, operand: int, result: int) -> bool:
        """Whether the function writes each element of parameter `result` after the last read of that of `operand`."""
        key = name, operand, result
        if key not in self._found:
            function = self._names.get(name)
            self._found[key] = isinstance(function, FuncOp) and may_overwrite(function, operand, result)
        return self._found[key]

    def overwriting(self, name: str, operand: int, result: int) -> FuncOp:
        """The copy of a function that has no parameter `result`, and writes to `operand` in its place."""
        key = name, operand, result
        if key not in self._copies:
            function = self._names[name]
            if not isinstance(function, FuncOp):
                raise InternalError(f"@{name} is no function")
            copy = _without_result(function, operand, result)
            copy.sym_name = StringAttr(free_name(f"{name}_in_place", self._names))
            copy.sym_visibility = _PRIVATE
            self._names[copy.sym_name.data] = copy
            Rewriter.insert_op(copy, InsertPoint.after(function))
            self._copies[key] = copy
        return self._copies[key]

    def erase_unused(self) -> None:
        """Erase the private functions that only their copies are called instead of."""
        used = {symbol for op in self._module.ops for symbol, _ in symbol_uses(op)} if self._copies else set[str]()
        for name in {name for name, _, _ in self._copies} - used:
            function = self._names[name]
            if isinstance(function, FuncOp) and function.sym_visibility == _PRIVATE:
                Rewriter.erase_op(function)


def may_overwrite(function: FuncOp, operand: int, result: int) -> bool:
    """Whether a function of elementwise blocks writes all of `result`, and reads no element of `operand` once that of
    `result` is written: reads are of the instance that writes, at the same indices and before it writes, or stand in
    nests that end before."""
    if len(function.body.blocks) != 1 or PROMISES in function.attributes:
        return False
    source, target = function.args[operand], function.args[result]
    if not isinstance(source.type, MemRefType) or source.type != target.type:
        return False
    if not isinstance(source.type.layout, NoneAttr) or _attributes(function, operand) != _attributes(function, result):
        return False
    stores = [use.operation for use in target.uses if not isinstance(use.operation, _SHAPES)]
    loads = [use.operation for use in source.uses if not isinstance(use.operation, _SHAPES)]
    if len(stores) != 1 or not all(isinstance(load, memref.LoadOp) for load in loads):
        return False
    blocks, store = child_blocks(function), stores[0]
    if not all(is_plain(block) and set(block.iter_kinds) <= {SPATIAL} for block in blocks):
        return False
    if not all(isinstance(op, _KNOWN) or op.regions or is_pure(op) for op in operations_in(function.body)):
        return False
    block = store.parent_op()
    if not isinstance(store, memref.StoreOp) or not isinstance(block, BlockOp) or not _writes_each_once(store, block):
        return False
    order = {op: place for place, op in enumerate(operations_in(function.body))}
    nest: Operation = block
    while nest.parent is not function.body.block and (around := nest.parent_op()) is not None:
        nest = around
    return all(_is_before(load, store, block, nest, order) for load in loads if isinstance(load, memref.LoadOp))


_SHAPES = (memref.DimOp, AssumeShapeOp)
_KNOWN = (memref.AllocOp, memref.LoadOp, memref.StoreOp, ReturnOp, scf.YieldOp, *_SHAPES)
"""Ops of functions that may work in place, besides those that only compute, or hold others."""


def _attributes(function: FuncOp, position: int) -> Attribute | None:
    return function.arg_attrs.data[position] if isinstance(function.arg_attrs, ArrayAttr) else None


def _writes_each_once(store: memref.StoreOp, block: BlockOp) -> bool:
    """Whether the instances of a block store to all elements of a buffer, each to one of its own: the indices are the
    iterators, which run over its extents."""
    stated = [use.operation for use in store.memref.uses if isinstance(use.operation, AssumeShapeOp)]
    known = {dimension: value for op in stated for dimension, value in zip(op.dimensions, op.values, strict=True)}
    free = {v for v, extent in zip(block.iter_vars, block.extents, strict=True) if extent != 1}
    for dimension, (index, extent) in enumerate(zip(store.indices, buffer_type(store.memref).get_shape(), strict=True)):
        if extent == 1:
            continue
        if index not in free or not isinstance(index, BlockArgument):
            return False
        free.remove(index)
        own = block.extents[index.index]
        dim = own.owner if isinstance(own, SSAValue) else None
        if isinstance(dim, memref.DimOp) and dim.source is store.memref and constant_integer(dim.index) == dimension:
            continue
        if own != (known.get(dimension) if extent == DYNAMIC_INDEX else extent):
            return False
    return not free


def _is_before(
    load: memref.LoadOp, store: memref.StoreOp, block: BlockOp, nest: Operation, order: dict[Operation, int]
) -> bool:
    if block.is_ancestor(load):
        same = all(Index.of(a) == Index.of(b) for a, b in zip(load.indices, store.indices, strict=True))
        return same and order[load] < order[store]
    return order[load] < order[nest]


def _without_result(function: FuncOp, operand: int, result: int) -> FuncOp:
    copy = copy_of(function)
    copy.attributes.pop(PARAMETER_ACCESS, None)
    block = copy.body.block
    source = block.args[operand]
    block.args[result].replace_all_uses_with(source)
    block.erase_arg(block.args[result])
    for user in [use.operation for use in source.uses]:
        if isinstance(user, AssumeShapeOp) and all(_is_dimension_of(source, value) for value in user.values):
            Rewriter.erase_op(user)  # which stated that the result has the shape of the operand
    if isinstance(copy.arg_attrs, ArrayAttr):
        copy.arg_attrs = ArrayAttr([entry for at, entry in enumerate(copy.arg_attrs) if at != result])
    copy.update_function_type()
    return copy


def _is_dimension_of(buffer: SSAValue, value: SSAValue) -> bool:
    return isinstance(value.owner, memref.DimOp) and value.owner.source is buffer


# Callers


def write_over_operands(function: FuncOp, functions: InPlaceFunctions) -> None:
    """Let calls write results over temporaries of the same shape of which they are the last readers, in place. A result
    of the function is overwritten as a temporary is, once it holds what the call reads."""
    _Caller(function, functions).run()


@dataclass
class _Life:
    """The places of the first and the last op that takes a buffer under any name, among the ops of a function."""

    first: int
    last: int


class _Caller:
    """A function whose calls may work in place."""

    def __init__(self, function: FuncOp, functions: InPlaceFunctions) -> None:
        self._function = function
        self._functions = functions
        self._places: dict[Operation, int] = {}
        """Of the ops of the function, those in others too."""
        self._lives: dict[SSAValue, _Life] = {}
        """Of temporaries and parameters that have no names but casts, and are not passed on."""
        passed_on = set[SSAValue]()
        for place, op in enumerate(function.body.block.ops):
            for inner in operations_in(op):
                self._places[inner] = place
                if isinstance(inner, (*_RENAMES, *_SHAPES)):
                    continue
                gives_another = any(isinstance(result.type, MemRefType | PtrType) for result in inner.results)
                for operand in inner.operands:
                    if isinstance(operand.type, MemRefType):
                        root = _root(operand)
                        life = self._lives.setdefault(root, _Life(place, place))
                        life.last = place
                        passed_on |= {root} if gives_another else set()
        for root in passed_on:
            del self._lives[root]

    def run(self) -> None:
        for op in list(self._function.body.block.ops):
            if isinstance(op, CallOp):
                self._try(op)

    def _try(self, call: CallOp) -> None:
        """Let a call write over an operand, if it can write over one."""
        name, given, place = call.callee.string_value(), list(call.arguments), self._places[call]
        roots = [_root(value) for value in given]
        alone = [at for at, root in enumerate(roots) if root in self._lives and roots.count(root) == 1]
        first = [at for at in alone if self._lives[roots[at]].first == place]
        last = [at for at in alone if self._lives[roots[at]].last == place]
        for result in reversed(first):
            for operand in last:
                if (
                    operand != result
                    and self._functions.may_overwrite(name, operand, result)
                    and self._merge(given[operand], given[result])
                ):
                    copy = self._functions.overwriting(name, operand, result)
                    new = CallOp(copy.sym_name.data, [v for at, v in enumerate(call.arguments) if at != result], ())
                    new.location = call.location
                    self._places[new] = place
                    Rewriter.replace_op(call, new)
                    erase_if_unused([given[result]])
                    return

    def _merge(self, source: SSAValue, target: SSAValue) -> bool:
        """Let the buffer of an operand be that of a result, if one of them is a temporary for which the other one can
        stand."""
        source, target = uncast(source), uncast(target)
        if source.type != target.type or not _have_equal_extents(source, target):
            return False
        kept, gone = (source, target) if isinstance(target.owner, memref.AllocOp) else (target, source)
        root = _root(kept)
        if not isinstance(gone.owner, memref.AllocOp) or not isinstance(root.owner, memref.AllocOp | Block):
            return False
        if isinstance(root, BlockArgument) and kept is source:
            return False  # what callers pass stays as it is
        if _elements(kept) is None or _elements(kept) != _elements(root):
            return False  # it would keep more memory alive than it needs
        made = self._places.get(kept.owner, -1) if isinstance(kept.owner, Operation) else -1
        if not all(made < self._places[use.operation] for use in gone.uses):
            return False
        if isinstance(root, BlockArgument):
            _state_accesses(self._function, root)
        one, other = self._lives[root], self._lives.pop(gone)
        self._lives[root] = _Life(min(one.first, other.first), max(one.last, other.last))
        alloc = gone.owner
        gone.replace_all_uses_with(kept)
        kept.name_hint = kept.name_hint or gone.name_hint
        Rewriter.erase_op(alloc)
        return True


def _root(buffer: SSAValue) -> SSAValue:
    while isinstance(op := buffer.owner, _RENAMES):
        buffer = op.operands[0]
    return buffer


def _have_equal_extents(one: SSAValue, other: SSAValue) -> bool:
    extents = [_dynamic_extents(buffer) for buffer in (one, other)]
    if extents[0] is None or extents[1] is None:
        return False
    return [Index.of(extent) for extent in extents[0]] == [Index.of(extent) for extent in extents[1]]


def _elements(buffer: SSAValue) -> KnownExtent | None:
    """The number of elements of a buffer."""
    extents = _dynamic_extents(buffer)
    if extents is None or not isinstance(buffer.type, MemRefType):
        return None
    names = ExtentNames()
    dynamic = iter([names.extent(extent) for extent in extents])
    return EXTENTS.product([next(dynamic) if extent == DYNAMIC_INDEX else extent for extent in buffer.type.get_shape()])


def _dynamic_extents(buffer: SSAValue) -> Sequence[SSAValue] | None:
    """The dynamic extents of a buffer, None where they are not known."""
    op = buffer.owner
    if isinstance(buffer.type, MemRefType) and buffer.type.has_static_shape():
        return ()
    if isinstance(op, memref.AllocOp):
        return op.dynamic_sizes
    if isinstance(op, memref.ReinterpretCastOp):
        return op.sizes
    users = [use.operation for use in buffer.uses]
    return next((list(user.values) for user in users if isinstance(user, AssumeShapeOp)), None)


def _state_accesses(function: FuncOp, result: BlockArgument) -> None:
    """State that a result, which the function is about to read as well, is written before."""
    noted = function.attributes.get(PARAMETER_ACCESS)
    accesses = (
        list(noted)
        if isinstance(noted, ArrayAttr)
        else [AccessAttr(ParameterAccesses().of(function, argument.index)) for argument in function.args]
    )
    accesses[result.index] = AccessAttr(AccessMode.WRITE)
    function.attributes[PARAMETER_ACCESS] = ArrayAttr(accesses)
