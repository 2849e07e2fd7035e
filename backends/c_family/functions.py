"""Functions, calls, and the module's constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, MemRefType

from weft.backends.c_family import (
    arith_ops,
    control_ops,
    gpu_ops,
    memory_ops,
    registered_calls,
    results,
    tile_ops,
    vector_ops,
)
from weft.backends.c_family import expression as c
from weft.backends.c_family.emitter import FunctionEmitter, ModuleEmitter
from weft.backends.c_family.expression import EQUALITY, CExpr, number
from weft.backends.c_family.index_ranges import IndexRange, assumed
from weft.backends.c_family.memory_ops import buffer_type, memory_type
from weft.backends.low_modules import check_outside, check_parameter_count, is_external
from weft.backends.names import is_identifier
from weft.dialects import low_kernel
from weft.dialects.aliasing import overlapping
from weft.dialects.effects import is_pure
from weft.dialects.low import PARAMS, params_of, symbols_of
from weft.dialects.low_access import AccessMode
from weft.dialects.promises import Promise, promises_of
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xdsl.dialects.func import FuncOp
    from xdsl.ir import SSAValue

    from weft.backends.c_family.emitter import Rules


def accesses_of(function: FuncOp) -> tuple[AccessMode, ...]:
    if low_kernel.kernel_of(function) is not None:
        return low_kernel.argument_accesses(function)
    if PARAMS not in function.attributes:
        return (AccessMode.READWRITE,) * len(function.args)
    check_parameter_count(function)
    return (*(param.access.data for param in params_of(function)), *(AccessMode.READ for _ in symbols_of(function)))


def bind_parameters(
    emitter: FunctionEmitter, function: FuncOp, known: Mapping[int, IndexRange] | None = None
) -> list[str]:
    """Returns the declarations. `known`: ranges by position."""
    parameters: list[str] = []
    emitter.promises = promises_of(function)
    emitter.module.contracts = emitter.module.contracts and Promise.CONTRACT in emitter.promises
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


def _buffer_parameter(
    emitter: FunctionEmitter, function: FuncOp, argument: SSAValue, name: str, access: AccessMode
) -> str:
    language = emitter.language
    element, _ = buffer_type(emitter, argument.type, function)
    emitter.values[argument] = CExpr(name, "ptr")
    const = "const " if access is AccessMode.READ else ""
    space = language.spaces.get("global", "") if emitter.kernel_threads else ""
    others = overlapping(argument)
    restrict = f"{language.restrict} " if language.restrict and not others else ""
    type_ = memory_type(emitter, element, function)
    if any(memory_type(emitter, buffer_type(emitter, o.type, function)[0], function) != type_ for o in others):
        type_ = emitter.module.shared_type(type_)
    return f"{space}{const}{type_} *{restrict}{name}"


def _number_parameter(emitter: FunctionEmitter, function: FuncOp, argument: SSAValue, name: str) -> str:
    element = emitter.wide_element(argument.type, function)
    type_ = emitter.language.type(element, function)
    emitter.values[argument] = CExpr(name, element)
    if element == "idx64":
        _bind_index(emitter, argument, name)
    elif element == "i1" and emitter.kernel_threads and emitter.language.kind != "cuda":
        type_ = emitter.language.memory_type("i1", function)  # kernels have no boolean parameters
        emitter.values[argument] = CExpr(f"{name} != 0", "i1", EQUALITY, size=1)
    form = emitter.language.by_value if emitter.kernel_threads else "{type} {name}"
    return form.format(type=type_, name=name)


def _bind_index(emitter: FunctionEmitter, argument: SSAValue, name: str) -> None:
    """Kernels have an int, whose range callers check."""
    fact = emitter.ranges.setdefault(argument, IndexRange.number())
    if not fact.fits_int or not emitter.kernel_threads:
        return
    short = emitter.names.fresh(name)
    type_ = emitter.language.types["idx32"]
    emitter.line(f"const {type_} {short} = ({type_}){name};")
    emitter.values[argument] = CExpr(short, "idx32")


def emit_call(emitter: FunctionEmitter, op: func.CallOp) -> CExpr | None:
    name = op.callee.string_value()
    module = emitter.module
    outside = module.outside.get(name)
    if outside is not None and not is_identifier(name):
        raise CompileError.at(op, f"{emitter.language.name} has no way to call a function named '{name}'")
    if outside is not None and len(op.results) == 1 and is_pure(op):
        if emitter.language.kind == "c":
            module.used_outside[name] = outside
        return c.call(name, tuple(emitter.exprs(op)), emitter.wide_element(op.results[0].type, op))
    if emitter.language.kind != "c":
        raise CompileError.at(op, f"{op.name} of @{name} has no form in {emitter.language.name}")
    arguments = ", ".join(expr.text for expr in emitter.exprs(op))
    if outside is not None:
        module.used_outside[name] = outside
        text = f"{name}({arguments})"
    elif name in module.symbols:
        text = f"{module.symbols[name]}({arguments})"
        if op.results:
            raise CompileError.at(op, f"functions at low level return nothing, but @{name} gives results")
    else:
        raise CompileError.at(op, f"the module has no function @{name}")
    if not op.results or op.results[0].first_use is None:
        emitter.line(f"{text};")
        return None
    result = op.results[0]
    expr = CExpr(text, emitter.wide_element(result.type, op), size=1, calls=True)
    return emitter.variable(result.name_hint or "result", expr, op)


def prototype(emitter: FunctionEmitter, function: func.FuncOp) -> str:
    check_outside(function)
    results, name = list(function.function_type.outputs), function.sym_name.data
    types: list[str] = []
    for type_ in function.function_type.inputs:
        element = emitter.element(type_, function)
        types.append("void *" if element == "ptr" else memory_type(emitter, element, function))
    result = memory_type(emitter, emitter.element(results[0], function), function) if results else "void"
    return f"extern {result} {name}({', '.join(types) or 'void'});"


def emit_get_global(emitter: FunctionEmitter, op: memref.GetGlobalOp) -> None:
    name = op.name_.string_value()
    if name not in emitter.module.symbols:
        raise CompileError.at(op, f"the module has no memref.global @{name}")
    emitter.values[op.memref] = CExpr(emitter.module.symbols[name], "ptr")


def global_text(module: ModuleEmitter, emitter: FunctionEmitter, op: memref.GlobalOp) -> str:
    """A variable without initial value is zero, a constant without one is external."""
    element, length = buffer_type(emitter, op.type, op)
    name = op.sym_name.data
    if length is None:
        raise CompileError.at(op, f"memref.global @{name} needs a static size, got {op.type}")
    type_ = memory_type(emitter, element, op)
    qualifier = module.language.constant
    if is_external(op):
        return f"extern {qualifier.replace('static ', '')} {type_} {module.symbols[name]}[{length}];"
    if op.constant is None:
        qualifier = qualifier.replace("const", "").replace("  ", " ").strip()
    value = op.initial_value
    shown = "{0}"
    if isinstance(value, DenseIntOrFPElementsAttr):
        numbers = cast("tuple[float, ...]", tuple(value.iter_values()))
        spelled = "i8" if element == "i1" else "idx64" if element == "index" else element
        texts = [number(v, spelled).text for v in numbers]
        shown = _wrapped_list(texts * length if len(texts) == 1 and length > 1 else texts)
    aligned = module.language.aligned.format(16) if module.language.aligned else ""
    return f"{aligned}{qualifier} {type_} {module.symbols[name]}[{length}] = {shown};"


def _wrapped_list(texts: list[str]) -> str:
    if sum(map(len, texts)) < 90:
        return f"{{{', '.join(texts)}}}"
    rows = [", ".join(texts[start : start + 12]) for start in range(0, len(texts), 12)]
    return "{\n  " + ",\n  ".join(rows) + "\n}"


RULES: Final[Rules] = {
    **arith_ops.RULES,
    **control_ops.RULES,
    **gpu_ops.RULES,
    **memory_ops.RULES,
    **registered_calls.RULES,
    **results.RULES,
    **tile_ops.RULES,
    **vector_ops.RULES,
    func.CallOp: emit_call,
    memref.GetGlobalOp: emit_get_global,
}
