"""Whole functions and modules: parameters, comments, and the order of the parts of a text."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.dialects.memref import GlobalOp

from weft.backends.c_family.assumptions import assumed
from weft.backends.c_family.emitter import FunctionEmitter, ModuleEmitter
from weft.backends.c_family.expression import EQUALITY, Expr
from weft.backends.c_family.index_ranges import IndexRange
from weft.backends.c_family.memory_ops import buffer_type, memory_type
from weft.backends.low_modules import check_parameter_count
from weft.dialects import low_kernel
from weft.dialects.low import PARAMS, params_of, symbols_of
from weft.dialects.low_access import Access
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xdsl.ir import SSAValue

    from weft.backends.c_family.emitter import Rules


@cache
def rules() -> Rules:
    """Op class -> the rule that writes it. The tables are loaded on first use."""
    from weft.backends.c_family import (
        arith_ops,
        call_ops,
        cast_ops,
        control_ops,
        division_ops,
        gpu_ops,
        math_ops,
        memory_ops,
        tensor_core_ops,
        vector_ops,
    )

    return {
        **arith_ops.RULES,
        **call_ops.RULES,
        **cast_ops.RULES,
        **control_ops.RULES,
        **division_ops.RULES,
        **gpu_ops.RULES,
        **math_ops.RULES,
        **memory_ops.RULES,
        **tensor_core_ops.RULES,
        **vector_ops.RULES,
    }


def accesses_of(function: FuncOp) -> tuple[Access, ...]:
    """How a function accesses each of its arguments."""
    if low_kernel.kernel_of(function) is not None:
        return low_kernel.argument_accesses(function)
    if PARAMS not in function.attributes:
        return (Access.READWRITE,) * len(function.args)
    check_parameter_count(function)
    return (*(param.access.data for param in params_of(function)), *(Access.READ for _ in symbols_of(function)))


def bind_parameters(
    emitter: FunctionEmitter, function: FuncOp, known: Mapping[int, IndexRange] | None = None
) -> list[str]:
    """Bind the parameters of `function`; returns their declarations. `known`: facts about some, by position."""
    parameters: list[str] = []
    emitter.ranges.update(assumed(function))
    for position, fact in (known or {}).items():
        emitter.ranges[function.args[position]] = fact
    for argument, access in zip(function.args, accesses_of(function), strict=True):
        if emitter.lanes(argument.type, function):
            raise CompileError.at(function, f"a parameter of @{emitter.name} is a vector: {argument.type}")
        name = emitter.names.fresh(argument.name_hint or "arg")
        if isinstance(argument.type, MemRefType):
            parameters.append(_buffer_parameter(emitter, function, argument, name, access))
        else:
            parameters.append(_number_parameter(emitter, function, argument, name))
    return parameters


def _buffer_parameter(emitter: FunctionEmitter, function: FuncOp, argument: SSAValue, name: str, access: Access) -> str:
    language = emitter.language
    element, _ = buffer_type(emitter, argument.type, function)
    emitter.values[argument] = Expr(name, "ptr")
    const = "const " if access is Access.READ else ""
    space = language.spaces.get("global", "") if emitter.kernel_threads else ""
    restrict = f"{language.restrict} " if language.restrict else ""
    return f"{space}{const}{memory_type(emitter, element, function)} *{restrict}{name}"


def _number_parameter(emitter: FunctionEmitter, function: FuncOp, argument: SSAValue, name: str) -> str:
    kind = emitter.element(argument.type, function)
    element = "idx64" if kind == "index" else kind
    if kind == "index":
        _bind_index(emitter, argument, name)
        type_ = emitter.language.type("idx64", function)
        form = emitter.language.by_value if emitter.kernel_threads else "{type} {name}"
        return form.format(type=type_, name=name)
    type_ = emitter.language.type(element, function)
    emitter.values[argument] = Expr(name, element)
    if kind == "i1" and emitter.kernel_threads and emitter.language.kind != "cuda":
        type_ = emitter.language.memory_type("i1", function)  # kernels take no truth values
        emitter.values[argument] = Expr(f"{name} != 0", "i1", EQUALITY, size=1)
    form = emitter.language.by_value if emitter.kernel_threads else "{type} {name}"
    return form.format(type=type_, name=name)


def _bind_index(emitter: FunctionEmitter, argument: SSAValue, name: str) -> None:
    """An index parameter; in kernels, where callers check that it is small, an int."""
    fact = emitter.ranges.setdefault(argument, IndexRange.number())
    if not fact.fits_int or not emitter.kernel_threads:
        emitter.values[argument] = Expr(name, "idx64")
        return
    short = emitter.names.fresh(name)
    type_ = emitter.language.types["idx32"]
    emitter.line(f"const {type_} {short} = ({type_}){name};")
    emitter.values[argument] = Expr(short, "idx32")


def new_module_emitter(
    module: ModuleEmitter, functions: list[FuncOp], outside: list[FuncOp], data: list[GlobalOp]
) -> None:
    """Give the functions and constants of a module their names."""
    for function in outside:
        module.outside[function.sym_name.data] = function
        module.symbols[function.sym_name.data] = function.sym_name.data
    for op in (*functions, *data):
        module.add_symbol(op.sym_name.data)
