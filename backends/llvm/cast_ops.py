"""Conversions between types, on scalars and lane by lane.

A conversion from a floating-point value that no integer of the type comes near is undefined, as in LLVM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xdsl.dialects import arith, vector

from weft.backends.llvm.bfloat16 import from_integer, narrow, narrow_double, widen
from weft.dialects import low_lanes

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from weft.backends.llvm.emitter import FunctionEmitter, Rules

_INTEGER: Final[dict[type[Operation], str]] = {
    arith.ExtSIOp: "sext",
    arith.ExtUIOp: "zext",
    arith.TruncIOp: "trunc",
    low_lanes.ExtSIOp: "sext",
    low_lanes.ExtUIOp: "zext",
    low_lanes.TruncIOp: "trunc",
}
_TO_FLOAT: Final[dict[type[Operation], str]] = {
    arith.SIToFPOp: "sitofp",
    arith.UIToFPOp: "uitofp",
    low_lanes.SIToFPOp: "sitofp",
    low_lanes.UIToFPOp: "uitofp",
}
_TO_INTEGER: Final[dict[type[Operation], str]] = {
    arith.FPToSIOp: "fptosi",
    arith.FPToUIOp: "fptoui",
    low_lanes.FPToSIOp: "fptosi",
    low_lanes.FPToUIOp: "fptoui",
}


def emit_integer_cast(emitter: FunctionEmitter, op: Operation) -> None:
    _define_cast(emitter, op, _INTEGER[type(op)])


def _define_cast(emitter: FunctionEmitter, op: Operation, instruction: str) -> None:
    source = emitter.type_of(op.operands[0], op)
    target = emitter.type_of(op.results[0], op)
    text = emitter.text(op.operands[0])
    emitter.define(op.results[0], f"{instruction} {source.text} {text} to {target.text}")


def emit_index_cast(emitter: FunctionEmitter, op: Operation) -> None:
    """Between index, which is i64, and a signed integer: a cast of a known number stays known."""
    operand, result = op.operands[0], op.results[0]
    source = emitter.type_of(operand, op)
    target = emitter.type_of(result, op)
    if source is target:
        emitter.bind(result, emitter.text(operand))
        if operand in emitter.constants:
            emitter.constants[result] = emitter.constants[operand]
        return
    _define_cast(emitter, op, "sext" if source.bits < target.bits else "trunc")


def emit_bitcast(emitter: FunctionEmitter, op: Operation) -> None:
    if emitter.type_of(op.operands[0], op) is emitter.type_of(op.results[0], op):
        emitter.bind(op.results[0], emitter.text(op.operands[0]))
        return
    _define_cast(emitter, op, "bitcast")


def emit_extf(emitter: FunctionEmitter, op: Operation) -> None:
    source, target = emitter.type_of(op.operands[0], op), emitter.type_of(op.results[0], op)
    if source.element != "bfloat":
        _define_cast(emitter, op, "fpext")
        return
    wide = widen(emitter, source, emitter.text(op.operands[0]))
    if target.element == "float":
        emitter.bind(op.results[0], wide)
    else:
        emitter.define(op.results[0], f"fpext {source.of('float').text} {wide} to {target.text}")


def emit_truncf(emitter: FunctionEmitter, op: Operation) -> None:
    target = emitter.type_of(op.results[0], op)
    if target.element != "bfloat":
        _define_cast(emitter, op, "fptrunc")
        return
    source, text = emitter.type_of(op.operands[0], op), emitter.text(op.operands[0])
    rounded = narrow_double if source.element == "double" else narrow
    emitter.define(op.results[0], rounded(emitter, target, text))


def emit_to_float(emitter: FunctionEmitter, op: Operation) -> None:
    target = emitter.type_of(op.results[0], op)
    name = _TO_FLOAT[type(op)]
    if target.element != "bfloat":
        _define_cast(emitter, op, name)
        return
    source, text = emitter.type_of(op.operands[0], op), emitter.text(op.operands[0])
    emitter.define(op.results[0], from_integer(emitter, source, text, target, signed=name == "sitofp"))


def emit_to_integer(emitter: FunctionEmitter, op: Operation) -> None:
    source, text = emitter.type_of(op.operands[0], op), emitter.text(op.operands[0])
    target = emitter.type_of(op.results[0], op)
    if source.bits == 16:
        text, source = widen(emitter, source, text), source.of("float")
    emitter.define(op.results[0], f"{_TO_INTEGER[type(op)]} {source.text} {text} to {target.text}")


RULES: Final[Rules] = {
    **dict.fromkeys(_INTEGER, emit_integer_cast),
    **dict.fromkeys(_TO_FLOAT, emit_to_float),
    **dict.fromkeys(_TO_INTEGER, emit_to_integer),
    **dict.fromkeys((arith.IndexCastOp, low_lanes.IndexCastOp), emit_index_cast),
    **dict.fromkeys((arith.BitcastOp, vector.BitcastOp), emit_bitcast),
    arith.ExtFOp: emit_extf,
    arith.TruncFOp: emit_truncf,
}
