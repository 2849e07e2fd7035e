"""Emission of a `low` module as LLVM IR text, in one walk.

    func.func @scale(%A: memref<128xf32>, %s: f32)      ; @scale(A: memref<128xf32> readwrite, s: f32)
                                                 ->     define void @scale(ptr noalias ... %A, float %s) nounwind {

Parameters are a pointer per buffer and scalars by value, in order, then an `i64` per symbol. The text may call the
runtime: `weft_parallel_for`, `weft_alloc`, `weft_free`, `weft_call_registered`. Emission does not transform the
program: unrolling is loop metadata for LLVM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp

from weft.backends.llvm import (
    arith_ops,
    call_ops,
    control_ops,
    memory_ops,
    parallel_ops,
    registered_calls,
    results,
    tile_ops,
    vector_ops,
)
from weft.backends.llvm.call_ops import global_text
from weft.backends.llvm.emitter import FunctionEmitter, ModuleEmitter
from weft.backends.llvm.host_ops import HOST_RULES, check_host_functions
from weft.backends.llvm.memory_ops import buffer_attributes, usage
from weft.backends.llvm.pass_selection import pass_selection_lines
from weft.backends.llvm.work_left import work_left
from weft.backends.low_modules import check_parameter_count, contents, described, is_external, used_globals
from weft.backends.names import quoted, symbol_name
from weft.dialects.low import PARAMS, imported_ir, params_of
from weft.dialects.low_access import AccessMode
from weft.dialects.low_kernel import kernel_of
from weft.dialects.promises import promises_of
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.memref import GlobalOp

    from weft.backends.llvm.emitter import Rules
    from weft.dialects.low import ParamAttr
    from weft.support.target import Target


def emit_module(module: ModuleOp, target: Target) -> str:
    """Raises `CompileError` for types or forms that this backend lacks, `InternalError` for ops that are not legal at
    low level."""
    return _text(module, target, RULES, *contents(module))


def emit_host_functions(module: ModuleOp, target: Target) -> str:
    """The functions that are not kernels. Raises as `check_host_functions` does."""
    functions, outside, data = contents(module)
    functions = [function for function in functions if kernel_of(function) is None]
    check_host_functions(functions)
    used = used_globals(functions)
    return _text(
        module, target, HOST_RULES, functions, outside, [op for op in data if op.sym_name.data in used], host=True
    )


def _text(
    module: ModuleOp,
    target: Target,
    rules: Rules,
    functions: list[FuncOp],
    outside: list[FuncOp],
    data: list[GlobalOp],
    *,
    host: bool = False,
) -> str:
    names = [symbol_name(function.sym_name.data) for function in functions]
    emitter = ModuleEmitter(target, rules, names, on_device=host)
    emitter.outside = {function.sym_name.data: function for function in outside}
    for op in data:
        name = op.sym_name.data
        emitter.globals[name] = name if is_external(op) else emitter.names.fresh(symbol_name(name))
    for function in functions:
        emitter.functions.append(_function_text(emitter, function))
    parts = [f'target triple = "{target.triple}"', *(global_text(emitter, op) for op in data), *emitter.functions]
    if emitter.declarations:
        parts.append("\n".join(emitter.declarations.values()))
    imports = imported_ir(module)
    metadata = emitter.metadata.lines()
    # Imported functions should be inlined.
    if not (imports or target.reassociate):
        metadata += pass_selection_lines(work_left(functions), len(metadata))
    if metadata:
        parts.append("\n".join(metadata))
    text = "\n\n".join(parts) + "\n"
    if imports:
        from weft.backends.llvm.link import link_ir  # start-up: 10 ms

        return link_ir(text, imports)
    return text


RULES: Final[Rules] = {
    **arith_ops.RULES,
    **call_ops.RULES,
    **control_ops.RULES,
    **memory_ops.RULES,
    **parallel_ops.RULES,
    **registered_calls.RULES,
    **results.RULES,
    **tile_ops.RULES,
    **vector_ops.RULES,
}


def _function_text(module: ModuleEmitter, function: FuncOp) -> str:
    name = function.sym_name.data
    emitter = FunctionEmitter(module, name, symbol_name(name), promises_of(function))
    params = params_of(function) if PARAMS in function.attributes else ()
    if params:
        _check_params(function, params, accesses=not module.on_device)
    parameters: list[str] = []
    for argument in function.args:
        type_ = emitter.type_of(argument, function)
        if type_.lanes:
            raise CompileError.at(function, f"a parameter of @{emitter.name} is a vector: {argument.type}")
        is_buffer = isinstance(argument.type, MemRefType)
        known = is_buffer and not module.on_device
        attributes = f" {buffer_attributes(emitter, argument, function)}" if known else ""
        parameters.append(f"{type_.element}{attributes} {emitter.take_argument(argument, type_)}")
    emitter.reserve_tiles(function)
    emitter.block_ops(function.body.block)
    head = f"define void @{quoted(emitter.symbol)}({', '.join(parameters)}) nounwind {{"
    return f"; {described(function)}\n{head}\n{emitter.body_text()}\n}}"


def _check_params(function: FuncOp, params: tuple[ParamAttr, ...], *, accesses: bool) -> None:
    """Raises unless parameters agree with the signature; `accesses`: access modes, too."""
    name = function.sym_name.data
    check_parameter_count(function)
    for param, argument in zip(params, function.args[: len(params)], strict=True):
        if isinstance(param.type, MemRefType) != isinstance(argument.type, MemRefType):
            raise CompileError.at(
                function,
                f"parameter '{param.label.data}' of @{name} is {param.type} to callers and {argument.type} here",
            )
        if accesses and isinstance(argument.type, MemRefType) and param.access.data is AccessMode.READ:
            _, writes = usage(argument)
            if writes:
                raise CompileError.at(
                    writes[0], f"{writes[0].name} writes parameter '{param.label.data}' of @{name}, which is only read"
                )
