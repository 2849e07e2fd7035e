"""`convert-stablehlo-to-graph`: functions of StableHLO with loops become graph functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.dialects.chlo import ScanOp
from weft.dialects.element_types import element_name, joined_attributes
from weft.dialects.stablehlo import WhileOp
from weft.frontends.graph_builder import BlockBuilder, Value, var
from weft.frontends.stablehlo_graph import import_stablehlo, is_registered_call
from weft.passes.convert.convert_stablehlo_to_te import (
    callee_of,
    erase_inlined,
    reached_functions,
    stablehlo_functions,
)
from weft.passes.convert.stablehlo_complex import complex_type
from weft.passes.convert.upstream_functions import convertible
from weft.support.errors import CompileError, remark
from weft.support.names import new_name
from weft.texpr.shapes import value_name
from weft.texpr.stablehlo_complex import PARTS
from weft.texpr.stablehlo_quantized import on_integers


def convert_loops(module: ModuleOp, *, strict: bool = False) -> bool:
    """Convert functions with loops or calls of registered functions, and their callers, in place. Returns whether there
    were any. Raises `CompileError` for unsupported ops."""
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration}
    looping = [function for function in stablehlo_functions(functions) if _holds_loop(function, functions, ())]
    looping = convertible(module, ConvertStablehloToGraphPass.name, looping, strict=strict)
    if not looping:
        return False
    reached = {function.sym_name.data: reached_functions(function, functions) for function in looping}
    sources = [_source(module, name, functions, callees) for name, callees in reached.items()]
    for function, (source, parameters) in zip(looping, sources, strict=True):
        _convert(module, function, source, parameters)
    erase_inlined(module, set[str]().union(*reached.values()))
    return True


def _source(
    module: ModuleOp, name: str, functions: Mapping[str, FuncOp], callees: set[str]
) -> tuple[ModuleOp, list[Value]]:
    """A copy of the module with @name as @main and integers for quantised elements, and the parameters of @name."""
    source = module.clone()
    copies = {op.sym_name.data: op for op in source.ops if isinstance(op, FuncOp)}
    needed = {each: functions[each] for each in (name, *callees) if each in functions}
    plain = on_integers(needed)
    for each, function in needed.items():
        if plain[each] is not function:
            Rewriter.replace_op(copies[each], plain[each])
    parameters = _parameters(plain[name])
    for op in source.ops:
        if isinstance(op, FuncOp) and op.sym_name.data == name:
            op.sym_name = StringAttr("main")
        elif isinstance(op, FuncOp) and op.sym_name.data == "main":
            op.sym_name = StringAttr(f"{name}.main")
    return source, parameters


def _holds_loop(function: FuncOp, functions: Mapping[str, FuncOp], around: tuple[str, ...]) -> bool:
    name = function.sym_name.data
    if name in around:
        return False
    for op in function.body.walk():
        called = functions.get(callee_of(op) or "")
        if isinstance(op, ScanOp | WhileOp) or is_registered_call(op):
            return True
        if called is not None and _holds_loop(called, functions, (*around, name)):
            return True
    return False


def _convert(module: ModuleOp, function: FuncOp, source: ModuleOp, parameters: list[Value]) -> None:
    name, last = function.sym_name.data, module.body.block.last_op
    function.sym_name = StringAttr(f"{name}.stablehlo")
    try:
        import_stablehlo(BlockBuilder(module), source, parameters, name)
    except CompileError:
        function.sym_name = StringAttr(name)
        while module.body.block.last_op is not last:
            Rewriter.erase_op(module.body.block.last_op)  # pyright: ignore[reportArgumentType]
        raise
    new = next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == name)
    new.location = function.location
    if function.sym_visibility is not None:
        new.sym_visibility = function.sym_visibility
    new.attributes.update(function.attributes)
    new.arg_attrs = joined_attributes(function.arg_attrs, new.arg_attrs)
    Rewriter.erase_op(function)


def _parameters(function: FuncOp) -> list[Value]:
    taken: set[str] = set()
    extents: set[str] = set()
    found: list[Value] = []
    for position, argument in enumerate(function.args):
        if not isinstance(argument.type, TensorType):
            raise CompileError.at(function, f"@{function.sym_name.data}: parameters are tensors, got {argument.type}")
        type_ = argument.type
        kind = complex_type(type_)
        dtype = element_name(type_.element_type) if kind is None else PARTS[kind]
        if dtype is None:
            raise CompileError.at(
                function, f"@{function.sym_name.data}: elements of type {type_.element_type} are not supported"
            )
        shape = [new_name("n", extents) if size == DYNAMIC_INDEX else size for size in type_.get_shape()]
        shape += [] if kind is None else [2]
        name = new_name(value_name(argument.name_hint or f"arg{position}"), taken)
        found.append(var(name, shape, dtype))
    return found


@dataclass(frozen=True)
class ConvertStablehloToGraphPass(ModulePass):
    """Convert functions of StableHLO with `while`, `chlo.scan` or a `custom_call` of a registered function to graph
    functions: loops and conditionals become `graph.while`, `graph.loop` and `graph.if`, calls `graph.call_dps`, and the
    ops between them functions of tensor expressions.

    Requires: functions on tensors whose ops are all of stablehlo and chlo. Functions without loops are left unchanged,
    for `convert-stablehlo-to-te`.

    Leaves: graph functions of the same names and types. `weft.build` and `weft run` begin with this pass.

    Raises `CompileError` for an unsupported op.
    """

    name = "convert-stablehlo-to-graph"

    strict: bool = False
    """It is an error, not a remark, if no function is converted."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not convert_loops(op, strict=self.strict):
            remark(op, f"{self.name}: no function of StableHLO holds a loop", strict=self.strict)
