"""Calls of internal and external functions, and the module's constants.

A constant is the bytes of its elements, which LLVM parses fastest: `@name = private constant [4 x i8] c"\\00..."`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr

from weft.backends.llvm.memory_ops import BUFFER_ALIGNMENT
from weft.backends.llvm.types import byte_text
from weft.backends.low_modules import check_outside, check_starts_together, is_external
from weft.backends.names import quoted, symbol_name
from weft.dialects.low import PARAMS
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from weft.backends.llvm.emitter import FunctionEmitter, ModuleEmitter, Rules
    from weft.backends.llvm.types import ValueType


_TRUTH: Final = bytes([0] + [1] * 255)
"""Byte of a boolean -> its canonical form, 0 or 1."""


def emit_call(emitter: FunctionEmitter, op: func.CallOp) -> str | None:
    """Functions at low level have no results; with `low.params`, a declared one is in another object."""
    emitter.forget_tiles()
    name = op.callee.string_value()
    texts = [_as_passed(emitter, emitter.type_of(a, op), emitter.text(a)) for a in op.arguments]
    outside = emitter.module.outside.get(name)
    if outside is None or PARAMS in outside.attributes:
        if op.results:
            raise CompileError.at(op, f"functions at low level return nothing, but @{name} gives results")
        types = [emitter.type_of(argument, op).element for argument in op.arguments]
        arguments = ", ".join(f"{type_} {text}" for type_, text in zip(types, texts, strict=True))
        symbol = quoted(symbol_name(name))
        if outside is not None:
            emitter.module.declare(name, f"declare void @{symbol}({', '.join(types)})")
        emitter.line(f"call void @{symbol}({arguments})")
        return None
    parameters, result = outside_types(emitter.module, outside)
    arguments = ", ".join(f"{type_} {text}" for type_, text in zip(parameters, texts, strict=True))
    emitter.module.declare(name, f"declare {result} @{quoted(name)}({', '.join(parameters)})")
    instruction = f"call {result} @{quoted(name)}({arguments})"
    if not op.results:
        emitter.line(instruction)
        return None
    given = emitter.type_of(op.results[0], op)
    if given.element != given.text:
        instruction = f"bitcast {given.element} {emitter.emit(instruction, 'given')} to {given.text}"
    return instruction


def _as_passed(emitter: FunctionEmitter, type_: ValueType, text: str) -> str:
    if type_.element == type_.text:
        return text
    return emitter.emit(f"bitcast {type_.text} {text} to {type_.element}", "passed")


_EXTENSIONS: Final = {"i1": "zeroext", "i8": "signext", "i16": "signext"}
"""The C ABI for integers narrower than `int`."""


def outside_types(emitter: ModuleEmitter, function: func.FuncOp) -> tuple[list[str], str]:
    """Parameter and result types in the C ABI."""
    check_outside(function)
    results = list(function.function_type.outputs)
    parameters: list[str] = []
    for type_ in function.function_type.inputs:
        found = emitter.types.of(type_, function)
        parameters.append(" ".join(filter(None, (found.element, _EXTENSIONS.get(found.element)))))
    if not results:
        return parameters, "void"
    result = emitter.types.of(results[0], function)
    return parameters, " ".join(filter(None, (_EXTENSIONS.get(result.element), result.element)))


def emit_get_global(emitter: FunctionEmitter, op: memref.GetGlobalOp) -> None:
    name = op.name_.string_value()
    if name not in emitter.module.globals:
        raise CompileError.at(op, f"the module has no memref.global @{name}")
    emitter.bind(op.memref, f"@{quoted(emitter.module.globals[name])}")


def emit_cast(emitter: FunctionEmitter, op: Operation) -> None:
    check_starts_together(op)
    emitter.bind(op.results[0], emitter.text(op.operands[0]))


def global_text(emitter: ModuleEmitter, op: memref.GlobalOp) -> str:
    """A variable without initial value is zero, a constant without one is external."""
    type_, length = emitter.types.buffer(op.type, op)
    name = op.sym_name.data
    if length is None:
        raise CompileError.at(op, f"memref.global @{name} needs a static size, got {op.type}")
    size = length * type_.bytes
    value = op.initial_value
    data = bytes(value.data.data) if isinstance(value, DenseIntOrFPElementsAttr) else b""
    splat = len(data) == type_.bytes
    if data and not splat and len(data) != size:
        raise CompileError.at(op, f"memref.global @{name} of {size} bytes has a value of {len(data)}")
    if splat and any(data):
        data *= length
    if type_.element == "i1":
        data = data.translate(_TRUTH)  # xDSL encodes true as all ones
    kind = "constant" if op.constant is not None else "global"
    alignment = max(BUFFER_ALIGNMENT, op.alignment.value.data if op.alignment is not None else 0)
    if is_external(op):
        return f"@{quoted(emitter.globals[name])} = external constant [{size} x i8], align {alignment}"
    head = f"@{quoted(emitter.globals[name])} = private unnamed_addr {kind}"
    return f"{head} [{size} x i8] {byte_text(data)}, align {alignment}"


RULES: Final[Rules] = {
    func.CallOp: emit_call,
    memref.GetGlobalOp: emit_get_global,
    **dict.fromkeys((memref.CastOp, memref.ReinterpretCastOp), emit_cast),
}
