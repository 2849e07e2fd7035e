"""specialize-shapes: replace symbolic extents of a function by stated shapes of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    MemRefType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft.dialects.graph_control import CONTROL
from weft.dialects.graph_shapes import KnownExtent, lone_name, shape_of, symbol
from weft.dialects.input_shapes import Specialization, unify
from weft.dialects.integer_arith import constant_integer, evaluated
from weft.dialects.low_access import StrideOp
from weft.dialects.strides import dynamic_extents
from weft.dialects.tir import AccessRegionOp, AssumeShapeOp, BlockOp, ForOp
from weft.dialects.tir_assume import AssumeOp, Relation
from weft.dialects.traversal import copy_of, operations_in
from weft.passes.extent_values import ExtentValues
from weft.passes.graph.functions import add_preconditions, graph_functions, holds_graph_ops, substitute_extents
from weft.passes.graph.graph_infer_types import name_parameters
from weft.passes.index_builders import constant_before, index_attribute, insert_before, result_before
from weft.passes.lower_to_tir import lower_to_tir
from weft.passes.module_edits import entry_function, functions_of, named_ops
from weft.passes.tir.flat_signature import FlatSignature, Quantity, quantity_of
from weft.support.call_preconditions import CallPrecondition
from weft.support.errors import CompileError
from weft.support.input_axes import Axis, parse_axes
from weft.support.names import free_name


def specialize_shapes(
    module: ModuleOp, shapes: Mapping[str, Sequence[Axis]], name: str | None = None, what: str = "shapes"
) -> FuncOp:
    """Specialise a function in place, as `SpecializeShapesPass`; returns it."""
    function = entry_function(module, name)
    if not shapes:
        return function
    if holds_graph_ops(function) or function in graph_functions(module):
        name_parameters(function)
        types = {a.name_hint or f"arg{a.index}": a.type for a in function.args}
        known = {label: shape_of(type_) for label, type_ in types.items() if isinstance(type_, TensorType)}
        found = unify(cast("Mapping[str, Sequence[KnownExtent]]", known), shapes, what)
        specialize_graph(module, function, found)
        return function
    lower_to_tir(module)
    function = functions_of(module)[function.sym_name.data]
    specialize_buffers(function, unify(buffer_shapes(function), shapes, what))
    return function


# Graphs


def specialize_graph(module: ModuleOp, function: FuncOp, found: Specialization) -> None:
    """Includes copies of functions that control flow calls."""
    substitute_extents(function, found.values)
    add_preconditions(function, found.preconditions)
    names = named_ops(module)
    for op in operations_in(function):
        if not isinstance(op, CONTROL):
            continue
        given = op.taken_types()
        for field, attribute in list(op.properties.items()):
            if attribute not in op.callees:
                continue
            callee = cast("FuncOp", names[cast("SymbolRefAttr", attribute).string_value()])
            values = _passed_numbers(callee, given)
            if values:
                copy = copy_of(callee)
                copy.sym_name = StringAttr(free_name(callee.sym_name.data, names))
                names[copy.sym_name.data] = copy
                module.body.block.insert_op_after(copy, callee)
                op.properties[field] = SymbolRefAttr(copy.sym_name.data)
                specialize_graph(module, copy, Specialization(values))


def _passed_numbers(callee: FuncOp, given: Sequence[Attribute]) -> dict[str, KnownExtent]:
    values: dict[str, KnownExtent] = {}
    for argument, type_ in zip(callee.args, given, strict=True):
        if isinstance(argument.type, TensorType) and isinstance(type_, TensorType):
            for inner, outer in zip(shape_of(argument.type), shape_of(type_), strict=True):
                if (name := lone_name(inner)) is not None and isinstance(outer, int):
                    values[name] = outer
    return values


# Functions over buffers


def buffer_shapes(function: FuncOp) -> dict[str, list[KnownExtent]]:
    signature = FlatSignature.of(function)
    return {signature.labels[at]: signature.shape_of(function.args[at]) for at in signature.memrefs}


def specialize_buffers(function: FuncOp, found: Specialization) -> None:
    if not found:
        return
    signature = FlatSignature.of(function)
    symbols: dict[str, list[Quantity]] = {}
    for quantity, name in signature.of_quantity.items():
        if not quantity.is_stride:
            symbols.setdefault(name, []).append(quantity)
    values = {name: found.values.get(name, symbol(name)) for name in symbols}
    for name, quantities in symbols.items():
        if isinstance(number := values[name], int):
            for quantity in quantities:
                _set_extent(function, quantity, number)
    _state_numbers(function, {at: values[name] for at, name in signature.of_scalar.items() if name in values})
    _state_symbols(function, symbols, values, found)
    _propagate(function)


def _state_numbers(function: FuncOp, values: Mapping[int, KnownExtent]) -> None:
    first = _first(function)
    for position, number in values.items():
        if isinstance(number, int):
            argument = function.args[position]
            argument.replace_all_uses_with(constant_before(number, first))
            left, right = AffineExpr.dimension(0), AffineExpr.constant(number)
            insert_before(first, [AssumeOp(left, Relation.EQUAL, right, [argument])])


def _state_symbols(
    function: FuncOp,
    symbols: Mapping[str, Sequence[Quantity]],
    values: Mapping[str, KnownExtent],
    found: Specialization,
) -> None:
    first = _first(function)
    extents = ExtentValues(first, function)

    def dim(quantity: Quantity) -> SSAValue:
        constant = constant_before(quantity.dimension, first)
        return result_before(memref.DimOp(function.args[quantity.parameter], constant), first)

    is_equal: dict[Quantity, KnownExtent] = {}
    for name, quantities in symbols.items():
        value = values[name]
        if (wanted := lone_name(value)) is None or symbol(wanted) in extents:
            if not isinstance(value, int):
                is_equal.update(dict.fromkeys(quantities, value))
            continue
        extents.know(symbol(wanted), dim(quantities[0]))
        if wanted != name:
            for op in operations_in(function):
                if isinstance(op, memref.DimOp) and quantity_of(op.result) in quantities:
                    op.result.name_hint = wanted
    for buffer in function.args:
        own = [Quantity(buffer.index, at) for at in dynamic_extents(buffer.type)]
        if any(quantity in is_equal for quantity in own):
            stated = [extents.value(is_equal[q]) if q in is_equal else dim(q) for q in own]
            insert_before(first, [AssumeShapeOp(buffer, cast("list[SSAValue]", stated))])
    for text in found.preconditions:
        extents.assume(CallPrecondition(text))


def _first(function: FuncOp) -> Operation:
    first = function.body.block.first_op
    if first is None:
        raise CompileError.at(function, f"@{function.sym_name.data} has no terminator")
    return first


def _set_extent(function: FuncOp, quantity: Quantity, number: int) -> None:
    _retype(function.args[quantity.parameter], {quantity.dimension: number})
    function.update_function_type()


def _retype(buffer: SSAValue, numbers: Mapping[int, int]) -> None:
    """Numbers for dynamic extents, with casts for ops that fix an operand's type."""
    old = cast("MemRefType[Attribute]", buffer.type)
    shape = [numbers.get(at, extent) for at, extent in enumerate(old.get_shape())]
    type_ = MemRefType(old.element_type, shape, old.layout, old.memory_space)
    stated: list[tuple[AssumeShapeOp, list[SSAValue]]] = []
    for use in list(buffer.uses):
        if isinstance(op := use.operation, AssumeShapeOp):
            stated.append((op, [v for at, v in zip(op.dimensions, op.values, strict=True) if at not in numbers]))
    retyped = Rewriter.replace_value_with_new_type(buffer, type_)
    for op, values in stated:
        if values:
            made = AssumeShapeOp(retyped, values)
            made.location = op.location
            Rewriter.replace_op(op, made, [])
        else:
            Rewriter.erase_op(op)
    _cast_users(retyped, old)


def _cast_users(buffer: SSAValue, type_: MemRefType[Attribute]) -> None:
    fixed = [use for use in buffer.uses if not isinstance(use.operation, _POLYMORPHIC)]
    if not fixed:
        return
    cast_op = memref.CastOp.get(buffer, type_)
    owner = buffer.owner
    point = InsertPoint.after(owner) if isinstance(owner, Operation) else InsertPoint.at_start(owner)
    Rewriter.insert_op(cast_op, point)
    for use in fixed:
        use.operation.operands[use.index] = cast_op.dest


_POLYMORPHIC: Final = (
    memref.LoadOp,
    memref.StoreOp,
    memref.DimOp,
    memref.CastOp,
    memref.ReinterpretCastOp,
    AccessRegionOp,
    AssumeShapeOp,
    StrideOp,
)
"""Ops that accept a buffer of any extents."""


def _propagate(function: FuncOp) -> None:
    """Fold sizes of loops, blocks and temporaries, and stated extents."""
    changed = True
    while changed:
        changed = False
        for op in list(operations_in(function)):
            match op:
                case memref.AllocOp():
                    changed |= _make_static(op)
                case AssumeShapeOp():
                    changed |= _fix_stated(function, op)
                case ForOp() if isinstance(op.extent, SSAValue):
                    if (number := constant_integer(op.extent)) is not None:
                        op.operands = []
                        op.properties["static_extent"] = index_attribute(max(number, 0))
                case BlockOp() if op.extent_operands:
                    _fix_block(op)
                case _ if len(op.results) == 1 and isinstance(op.results[0].type, IndexType):
                    number = _number(op)
                    if number is not None and not isinstance(op, arith.ConstantOp):
                        Rewriter.replace_op(op, arith.ConstantOp(index_attribute(number)))
                        changed = True
                case _:
                    pass


def _number(op: Operation) -> int | None:
    if isinstance(op, memref.DimOp):
        at, type_ = constant_integer(op.index), op.source.type
        extent = type_.get_shape()[at] if isinstance(type_, MemRefType) and at is not None else DYNAMIC_INDEX
        return None if extent == DYNAMIC_INDEX else extent
    return evaluated(op, [constant_integer(operand) for operand in op.operands])


def _make_static(op: memref.AllocOp) -> bool:
    dynamic = dynamic_extents(op.memref.type)
    found = {at: constant_integer(value) for at, value in zip(dynamic, op.dynamic_sizes, strict=True)}
    numbers = {at: number for at, number in found.items() if number is not None and number >= 0}
    if numbers:
        kept = [value for at, value in zip(dynamic, op.dynamic_sizes, strict=True) if at not in numbers]
        type_ = op.memref.type
        shape = [numbers.get(at, extent) for at, extent in enumerate(type_.get_shape())]
        made = memref.AllocOp(
            kept, op.symbol_operands, MemRefType(type_.element_type, shape, type_.layout, type_.memory_space)
        )
        made.properties.update({k: v for k, v in op.properties.items() if k != "operandSegmentSizes"})
        made.attributes.update(op.attributes)
        made.location = op.location
        Rewriter.replace_op(op, made)
        _cast_users(made.memref, type_)
    return bool(numbers)


def _fix_stated(function: FuncOp, op: AssumeShapeOp) -> bool:
    numbers: dict[int, int] = {}
    for at, value in zip(op.dimensions, op.values, strict=True):
        if (number := constant_integer(value)) is not None:
            if number < 0:
                raise CompileError.at(op, f"an extent of a parameter is {number} for these shapes")
            numbers[at] = number
    if numbers and isinstance(op.buffer, BlockArgument):
        _retype(op.buffer, numbers)
        function.update_function_type()
        return True
    return False


def _fix_block(op: BlockOp) -> None:
    extents = [
        e if isinstance(e, int) or (number := constant_integer(e)) is None else max(number, 0) for e in op.extents
    ]
    if any(isinstance(old, SSAValue) and isinstance(new, int) for old, new in zip(op.extents, extents, strict=True)):
        bindings, guards = op.bindings.data.results, op.guards
        operands, body = (op.binding_operands, op.guard_operands), op.detach_region(op.body)
        made = BlockOp(
            op.label, op.iter_kinds.data, extents, bindings, operands[0], body, guards, operands[1], op.attributes
        )
        made.location = op.location
        Rewriter.replace_op(op, made)


@dataclass(frozen=True)
class SpecializeShapesPass(ModulePass):
    """Specialise a function to stated shapes of its parameters: `specialize-shapes{shapes="x=b:1..8 x 128"}`.

    A number replaces a symbolic extent in the whole function, a name renames it, symbols of one name are equal, and an
    inclusive range becomes a precondition of calls. Functions other than graphs are lowered to buffers first.

    Raises `CompileError` for an unknown parameter, another rank, and shapes that contradict each other or the program.

    Requires: functions of any level above low.

    Leaves: the function with fewer symbols.
    """

    name = "specialize-shapes"

    shapes: tuple[str, ...]
    """Shapes of parameters, each `NAME=AXES`."""
    func: str | None = None
    """The function, if several are not called by others."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        shapes: dict[str, tuple[Axis, ...]] = {}
        for text in self.shapes:
            name, equals, axes = text.partition("=")
            if not equals or name in shapes:
                raise CompileError(f"specialize-shapes takes NAME=AXES once for each parameter, got '{text}'")
            shapes[name] = parse_axes(axes, f"shape of '{name}'")
        specialize_shapes(op, shapes, self.func)
