"""Integer and floating-point arithmetic, comparisons, selection and constants, on scalars and lane by lane.

Floating-point additions, subtractions and multiplications may be contracted to fused multiply-adds. `maximumf` and
`minimumf` stand in `extrema_ops.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr

from weft.backends.llvm.bfloat16 import narrow, widen
from weft.backends.llvm.constants import scalar_text, vector_text
from weft.dialects import low_lanes
from weft.dialects.low import ORDERED, ROUNDED
from weft.support.errors import CompileError, InternalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdsl.ir import Operation

    from weft.backends.llvm.emitter import FunctionEmitter, Rules
    from weft.backends.llvm.types import ValueType

_INTEGER: Final[dict[type[Operation], str]] = {
    arith.AddiOp: "add",
    arith.SubiOp: "sub",
    arith.MuliOp: "mul",
    arith.AndIOp: "and",
    arith.OrIOp: "or",
    arith.XOrIOp: "xor",
    arith.ShLIOp: "shl",
    arith.ShRUIOp: "lshr",
    arith.ShRSIOp: "ashr",
}
_INTEGER_INTRINSICS: Final[dict[type[Operation], str]] = {
    arith.MinSIOp: "smin",
    arith.MaxSIOp: "smax",
    arith.MinUIOp: "umin",
    arith.MaxUIOp: "umax",
}
_CONTRACT: Final = "contract "
_FLOAT: Final[dict[type[Operation], str]] = {
    arith.AddfOp: "fadd",
    arith.SubfOp: "fsub",
    arith.MulfOp: "fmul",
    arith.DivfOp: "fdiv",
}
_FLOAT_INTRINSICS: Final[dict[type[Operation], str]] = {
    arith.MaxnumfOp: "maxnum",
    arith.MinnumfOp: "minnum",
}


def emit_constant(emitter: FunctionEmitter, op: Operation) -> None:
    result = op.results[0]
    type_ = emitter.type_of(result, op)
    value = op.properties["value"]
    if isinstance(value, IntegerAttr):
        number: float = value.value.data
    elif isinstance(value, FloatAttr):
        number = value.value.data
    elif isinstance(value, DenseIntOrFPElementsAttr):
        lanes = cast("list[float]", list(value.iter_values()))
        emitter.bind(result, vector_text(lanes, type_))
        if lanes.count(lanes[0]) == len(lanes):
            emitter.constants[result] = lanes[0]
        return
    else:
        raise CompileError.at(op, f"the llvm backend has no constants of the form {value.name}")
    emitter.bind(result, scalar_text(number, type_.element))
    emitter.constants[result] = number


def emit_integer(emitter: FunctionEmitter, op: Operation) -> None:
    lhs, rhs = emitter.texts(op)
    result = op.results[0]
    type_ = emitter.type_of(result, op)
    overflow = op.properties.get("overflowFlags")
    flags = ""
    if isinstance(overflow, arith.IntegerOverflowAttr) and overflow.data:
        flags = "".join(f"{flag.value} " for flag in overflow.data)
    emitter.define(result, f"{_INTEGER[type(op)]} {flags}{type_.text} {lhs}, {rhs}")


def emit_integer_intrinsic(emitter: FunctionEmitter, op: Operation) -> None:
    lhs, rhs = emitter.texts(op)
    result = op.results[0]
    emitter.define(result, emitter.call(emitter.type_of(result, op), _INTEGER_INTRINSICS[type(op)], lhs, rhs))


def float_op(
    emitter: FunctionEmitter,
    op: Operation,
    instruction: Callable[[ValueType, list[str]], str],
    *,
    widened: tuple[str, ...] = ("bfloat",),
) -> None:
    """Define the result of `op`, whose operands all have its type, by `instruction` (type, operand texts). 16-bit
    floats listed in `widened` are computed in `float` and rounded."""
    texts = emitter.texts(op)
    result = op.results[0]
    type_ = emitter.type_of(result, op)
    if type_.element not in widened:
        emitter.define(result, instruction(type_, texts))
        return
    texts = [widen(emitter, type_, text) for text in texts]
    computed = emitter.emit(instruction(type_.of("float"), texts), "computed")
    emitter.define(result, narrow(emitter, type_, computed))


def emit_float(emitter: FunctionEmitter, op: Operation) -> None:
    name = _FLOAT[type(op)]
    if name == "fdiv" or ROUNDED in op.attributes:
        base = ""
    else:
        base = _CONTRACT if ORDERED in op.attributes else emitter.module.flags
    flags = emitter.module.flags_of(op, base)
    float_op(emitter, op, lambda type_, texts: f"{name} {flags}{type_.text} {texts[0]}, {texts[1]}")


def emit_float_intrinsic(emitter: FunctionEmitter, op: Operation) -> None:
    name = _FLOAT_INTRINSICS[type(op)]
    flags = emitter.module.flags_of(op, "")
    float_op(emitter, op, lambda type_, texts: emitter.call(type_, name, *texts, flags=flags))


def emit_negation(emitter: FunctionEmitter, op: Operation) -> None:
    type_ = emitter.type_of(op.results[0], op)
    if type_.element == "bfloat":
        (text,) = emitter.texts(op)
        emitter.define(op.results[0], f"xor {type_.text} {text}, {type_.splat('-32768')}")
        return
    flags = emitter.module.flags_of(op, "")
    float_op(emitter, op, lambda type_, texts: f"fneg {flags}{type_.text} {texts[0]}", widened=())


def emit_integer_comparison(emitter: FunctionEmitter, op: Operation) -> None:
    lhs, rhs = emitter.texts(op)
    type_ = emitter.type_of(op.operands[0], op)
    emitter.define(op.results[0], f"icmp {_predicate(op, arith.CMPI_COMPARISON_OPERATIONS)} {type_.text} {lhs}, {rhs}")


def emit_float_comparison(emitter: FunctionEmitter, op: Operation) -> None:
    lhs, rhs = emitter.texts(op)
    type_ = emitter.type_of(op.operands[0], op)
    if type_.element == "bfloat":
        lhs, rhs, type_ = widen(emitter, type_, lhs), widen(emitter, type_, rhs), type_.of("float")
    flags = emitter.module.flags_of(op, "")
    predicate = _predicate(op, arith.CMPF_COMPARISON_OPERATIONS)
    emitter.define(op.results[0], f"fcmp {flags}{predicate} {type_.text} {lhs}, {rhs}")


def _predicate(op: Operation, names: list[str]) -> str:
    predicate = op.properties["predicate"]
    if not isinstance(predicate, IntegerAttr):
        raise InternalError(f"{op.name} has the predicate {predicate}")
    return names[predicate.value.data]


def emit_select(emitter: FunctionEmitter, op: Operation) -> None:
    condition, lhs, rhs = emitter.texts(op)
    condition_type = emitter.type_of(op.operands[0], op)
    type_ = emitter.type_of(op.results[0], op)
    emitter.define(
        op.results[0],
        f"select {condition_type.text} {condition}, {type_.text} {lhs}, {type_.text} {rhs}",
    )


def emit_add_extended(emitter: FunctionEmitter, op: Operation) -> None:
    lhs, rhs = emitter.texts(op)
    type_ = emitter.type_of(op.results[0], op)
    emitter.define(op.results[0], f"add {type_.text} {lhs}, {rhs}")
    emitter.define(op.results[1], f"icmp ult {type_.text} {emitter.text(op.results[0])}, {lhs}")


def emit_mul_extended(emitter: FunctionEmitter, op: Operation) -> None:
    """The low and the high half of a product, of twice the width."""
    low, high = op.results
    type_ = emitter.type_of(low, op)
    element = f"i{2 * type_.bits}"
    wide = f"<{type_.lanes} x {element}>" if type_.lanes else element
    extend = "sext" if isinstance(op, arith.MulSIExtendedOp) else "zext"
    lhs, rhs = (emitter.emit(f"{extend} {type_.text} {text} to {wide}", "wide") for text in emitter.texts(op))
    product = emitter.emit(f"mul {wide} {lhs}, {rhs}", "product")
    shift = f"splat ({element} {type_.bits})" if type_.lanes else str(type_.bits)
    shifted = emitter.emit(f"lshr {wide} {product}, {shift}", "shifted")
    emitter.define(low, f"trunc {wide} {product} to {type_.text}")
    emitter.define(high, f"trunc {wide} {shifted} to {type_.text}")


RULES: Final[Rules] = {
    arith.ConstantOp: emit_constant,
    **dict.fromkeys(_INTEGER, emit_integer),
    **dict.fromkeys(_INTEGER_INTRINSICS, emit_integer_intrinsic),
    **dict.fromkeys(_FLOAT, emit_float),
    **dict.fromkeys(_FLOAT_INTRINSICS, emit_float_intrinsic),
    arith.NegfOp: emit_negation,
    **dict.fromkeys((arith.CmpiOp, low_lanes.CmpiOp), emit_integer_comparison),
    **dict.fromkeys((arith.CmpfOp, low_lanes.CmpfOp), emit_float_comparison),
    **dict.fromkeys((arith.SelectOp, low_lanes.SelectOp), emit_select),
    arith.AddUIExtendedOp: emit_add_extended,
    **dict.fromkeys((arith.MulSIExtendedOp, arith.MulUIExtendedOp), emit_mul_extended),
}
