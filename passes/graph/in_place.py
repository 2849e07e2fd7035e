"""Calls that overwrite a dead operand by a result. See docs/decisions/0105-donated-arguments.md.

Buffers of a function do not overlap: a call in place calls a copy of it with one parameter that it reads and writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, MemRefType, ModuleOp, NoneAttr, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.dialects.ptr import PtrType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.block_scopes import child_blocks, is_plain
from weft.analysis.extents import ExtentNames
from weft.analysis.index import Index
from weft.dialects.argument_attributes import has_argument_attribute
from weft.dialects.effects import is_pure
from weft.dialects.graph_shapes import EXTENTS, KnownExtent
from weft.dialects.integer_arith import constant_integer
from weft.dialects.low_access import AccessAttr, AccessMode
from weft.dialects.promises import PROMISES
from weft.dialects.strides import dynamic_extents
from weft.dialects.tir import AssumeShapeOp, BlockOp, ForOp
from weft.dialects.tir_kinds import DONATED, PARAMETER_ACCESS, RETURNED, SPATIAL
from weft.dialects.traversal import copy_of, operations_in
from weft.dialects.upstream.views import uncast
from weft.passes.index_builders import erase_if_unused
from weft.passes.module_edits import named_ops, symbol_uses
from weft.passes.tir.flat_signature import ParameterAccesses
from weft.passes.tir.tir_pass import buffer_type
from weft.support.errors import InternalError
from weft.support.names import free_name

_PRIVATE = StringAttr("private")
_RENAMES = (memref.CastOp, memref.ReinterpretCastOp)


class InPlaceFunctions:
    def __init__(self, module: ModuleOp) -> None:
        self._module = module
        self._names = named_ops(module)
        self._found: dict[tuple[str, int, int], bool] = {}
        self._copies: dict[tuple[str, int, int], FuncOp] = {}

    def may_overwrite(self, name: str, operand: int, result: int) -> bool:
        key = name, operand, result
        if key not in self._found:
            function = self._names.get(name)
            self._found[key] = isinstance(function, FuncOp) and may_overwrite(function, operand, result)
        return self._found[key]

    def overwriting(self, name: str, operand: int, result: int) -> FuncOp:
        """Returns the copy without parameter `result`, which writes to `operand`."""
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
        used = {symbol for op in self._module.ops for symbol, _ in symbol_uses(op)} if self._copies else set[str]()
        for name in {name for name, _, _ in self._copies} - used:
            function = self._names[name]
            if isinstance(function, FuncOp) and function.sym_visibility == _PRIVATE:
                Rewriter.erase_op(function)


def may_overwrite(function: FuncOp, operand: int, result: int) -> bool:
    """Returns whether a function of elementwise blocks writes all of `result`, and reads no element of `operand` after
    writing that of `result`: reads are in an earlier nest, or precede the write in its instance at the same indices."""
    if len(function.body.blocks) != 1 or PROMISES in function.attributes:
        return False
    source, target = function.args[operand], function.args[result]
    if not isinstance(source.type, MemRefType) or source.type != target.type:
        return False
    if not isinstance(source.type.layout, NoneAttr) or _attributes(function, operand) != _attributes(function, result):
        return False
    if copied_first(function, operand, result) is not None:
        return True
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
"""Ops of functions that may work in place, in addition to pure ops and ops with regions."""


def copied_first(function: FuncOp, operand: int, result: int) -> Operation | None:
    """Returns the loops that copy `operand` to `result`, if they contain no other op, precede all other accesses to
    `result`, and are the only reads of `operand`: a scatter, whose copy is redundant in place.

    Iterators of their block are, at the same dimensions, indices of the copy and of every access to `result`, so
    that instances access different elements.
    """
    source, target = function.args[operand], function.args[result]
    loads = [use.operation for use in source.uses if not isinstance(use.operation, _SHAPES)]
    others = [use.operation for use in target.uses if not isinstance(use.operation, _SHAPES)]
    if len(loads) != 1 or not isinstance(load := loads[0], memref.LoadOp) or len(list(load.res.uses)) != 1:
        return None
    store = next(iter(load.res.uses)).operation
    if store not in others or not isinstance(store, memref.StoreOp) or list(store.indices) != list(load.indices):
        return None
    nest: Operation = store
    extents: dict[SSAValue, int | SSAValue] = {}
    while isinstance(around := nest.parent_op(), ForOp):
        nest = around
        extents[around.induction_variable] = around.extent
    block = nest.parent_op()
    if not isinstance(block, BlockOp | FuncOp) or any(
        op not in (load, store) and not isinstance(op, ForOp) for op in operations_in(nest)
    ):
        return None
    iterators = list(block.iter_vars) if isinstance(block, BlockOp) else []
    extents |= dict(zip(iterators, block.extents, strict=True)) if isinstance(block, BlockOp) else {}
    if not _runs_over(store, extents):
        return None  # unwritten elements keep the caller's values
    if isinstance(block, BlockOp) and (set(block.iter_kinds) - {SPATIAL} or block.init is not None):
        return None
    kept = {d: index for d, index in enumerate(store.indices) if index in iterators}
    order = {op: place for place, op in enumerate(operations_in(function.body))}
    for op in others:
        if op is store:
            continue
        if not isinstance(op, memref.LoadOp | memref.StoreOp) or not block.is_ancestor(op) or nest.is_ancestor(op):
            return None
        if order[op] < order[nest] or any(op.indices[d] != index for d, index in kept.items()):
            return None
    return nest


def _attributes(function: FuncOp, position: int) -> Attribute | None:
    return function.arg_attrs.data[position] if isinstance(function.arg_attrs, ArrayAttr) else None


def _writes_each_once(store: memref.StoreOp, block: BlockOp) -> bool:
    return _runs_over(store, dict(zip(block.iter_vars, block.extents, strict=True)))


def _runs_over(store: memref.StoreOp, extents: Mapping[SSAValue, int | SSAValue]) -> bool:
    """Returns whether the indices are distinct variables that cover the buffer."""
    stated = [use.operation for use in store.memref.uses if isinstance(use.operation, AssumeShapeOp)]
    known = {dimension: value for op in stated for dimension, value in zip(op.dimensions, op.values, strict=True)}
    free = {variable for variable, extent in extents.items() if extent != 1}
    for dimension, (index, extent) in enumerate(zip(store.indices, buffer_type(store.memref).get_shape(), strict=True)):
        if extent == 1:
            continue
        if index not in free:
            return False
        free.remove(index)
        own = extents[index]
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
    copied = copied_first(copy, operand, result)
    if copied is not None:
        Rewriter.erase_op(copied)
        modes = [
            AccessMode.READWRITE if at == operand else ParameterAccesses().of(copy, at) for at in range(len(block.args))
        ]
        copy.attributes[PARAMETER_ACCESS] = ArrayAttr([AccessAttr(m) for at, m in enumerate(modes) if at != result])
    _replace_parameter(copy, block.args[operand], block.args[result])
    return copy


def _replace_parameter(function: FuncOp, source: BlockArgument, target: BlockArgument) -> None:
    block, result = function.body.block, target.index
    target.replace_all_uses_with(source)
    block.erase_arg(target)
    for user in [use.operation for use in source.uses]:
        if isinstance(user, AssumeShapeOp) and all(
            _is_dimension_of(source, at, value) for at, value in zip(user.dimensions, user.values, strict=True)
        ):
            Rewriter.erase_op(user)  # it stated that the result has the shape of the operand
    if isinstance(function.arg_attrs, ArrayAttr):
        function.arg_attrs = ArrayAttr([entry for at, entry in enumerate(function.arg_attrs) if at != result])
    function.update_function_type()


def _is_dimension_of(buffer: SSAValue, at: int, value: SSAValue) -> bool:
    op = value.owner
    return isinstance(op, memref.DimOp) and op.source is buffer and constant_integer(op.index) == at


# Callers


def write_over_operands(function: FuncOp, functions: InPlaceFunctions) -> None:
    """Let calls write results over temporaries of the same shape that they read last, or results that contain an
    operand."""
    _Caller(function, functions).run()


@dataclass
class _Life:
    first: int
    last: int


class _Caller:
    def __init__(self, function: FuncOp, functions: InPlaceFunctions) -> None:
        self._function = function
        self._functions = functions
        self._places: dict[Operation, int] = {}
        """The positions of the ops of the function, including nested ones."""
        self._lives: dict[SSAValue, _Life] = {}
        """The lives of temporaries and parameters whose only aliases are casts and which are not passed on."""
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
        """Merge the buffers of an operand and a result, if one is a replaceable temporary."""
        source, target = uncast(source), uncast(target)
        if source.type != target.type or not _have_equal_extents(source, target):
            return False
        if isinstance(_root(source), BlockArgument) and isinstance(target, BlockArgument):
            return self._donate(source, target)
        kept, gone = (source, target) if isinstance(target.owner, memref.AllocOp) else (target, source)
        root = _root(kept)
        if not isinstance(gone.owner, memref.AllocOp) or not isinstance(root.owner, memref.AllocOp | Block):
            return False
        if isinstance(root, BlockArgument) and kept is source and not self._is_donated(root):
            return False  # because the caller's data must not change
        if _elements(kept) is None or _elements(kept) != _elements(root):
            return False  # because it would keep more memory alive than necessary
        made = self._places.get(kept.owner, -1) if isinstance(kept.owner, Operation) else -1
        if not all(made < self._places[use.operation] for use in gone.uses):
            return False
        if isinstance(root, BlockArgument):
            _state_accesses(self._function, root, AccessMode.READWRITE if kept is source else AccessMode.WRITE)
        one, other = self._lives[root], self._lives.pop(gone)
        self._lives[root] = _Life(min(one.first, other.first), max(one.last, other.last))
        alloc = gone.owner
        gone.replace_all_uses_with(kept)
        kept.name_hint = kept.name_hint or gone.name_hint
        Rewriter.erase_op(alloc)
        return True

    def _is_donated(self, root: SSAValue) -> bool:
        return isinstance(root, BlockArgument) and has_argument_attribute(self._function, root.index, DONATED)

    def _donate(self, source: SSAValue, target: BlockArgument) -> bool:
        function, stated = self._function, self._function.attributes.get(RETURNED)
        if not isinstance(source, BlockArgument) or not self._is_donated(source) or not isinstance(stated, ArrayAttr):
            return False
        names = [name.data for name in stated if isinstance(name, StringAttr)]
        if target.name_hint not in names or source.name_hint is None or source.name_hint in names:
            return False
        _state_accesses(function, source, AccessMode.READWRITE)
        accesses = function.attributes[PARAMETER_ACCESS]
        if isinstance(accesses, ArrayAttr):
            function.attributes[PARAMETER_ACCESS] = ArrayAttr(a for at, a in enumerate(accesses) if at != target.index)
        names[names.index(target.name_hint)] = source.name_hint
        function.attributes[RETURNED] = ArrayAttr(map(StringAttr, names))
        one, other = self._lives[source], self._lives.pop(target)
        self._lives[source] = _Life(min(one.first, other.first), max(one.last, other.last))
        _replace_parameter(function, source, target)
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
    extents = _dynamic_extents(buffer)
    if extents is None or not isinstance(buffer.type, MemRefType):
        return None
    names = ExtentNames()
    dynamic = iter([names.extent(extent) for extent in extents])
    return EXTENTS.product([next(dynamic) if extent == DYNAMIC_INDEX else extent for extent in buffer.type.get_shape()])


def _dynamic_extents(buffer: SSAValue) -> Sequence[SSAValue] | None:
    op = buffer.owner
    if isinstance(buffer.type, MemRefType) and buffer.type.has_static_shape():
        return ()
    if isinstance(op, memref.AllocOp):
        return op.dynamic_sizes
    if isinstance(op, memref.ReinterpretCastOp):
        return op.sizes
    known: dict[int, SSAValue] = {}
    for user in (use.operation for use in buffer.uses):
        if isinstance(user, AssumeShapeOp):
            known |= dict(zip(user.dimensions, user.values, strict=True))
        elif isinstance(user, memref.DimOp) and (dimension := constant_integer(user.index)) is not None:
            known.setdefault(dimension, user.result)
    wanted = dynamic_extents(buffer.type)
    return [known[dimension] for dimension in wanted] if known.keys() >= set(wanted) else None


def _state_accesses(function: FuncOp, parameter: BlockArgument, access: AccessMode) -> None:
    """Results that will also be read are stated to be written first."""
    noted = function.attributes.get(PARAMETER_ACCESS)
    accesses = (
        list(noted)
        if isinstance(noted, ArrayAttr)
        else [AccessAttr(ParameterAccesses().of(function, argument.index)) for argument in function.args]
    )
    accesses[parameter.index] = AccessAttr(access)
    function.attributes[PARAMETER_ACCESS] = ArrayAttr(accesses)
