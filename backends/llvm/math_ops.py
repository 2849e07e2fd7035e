"""Mathematical functions: LLVM intrinsics, and calls of the C library where LLVM has none.

LLVM lowers `sqrt`, `absf`, rounding and `fma` to instructions; the rest become calls of libm, lane by lane for vectors.
16-bit floats are computed in `float` and rounded.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xdsl.dialects import math

from weft.backends.llvm.arith_ops import float_op
from weft.backends.llvm.resources import ir_text
from weft.backends.llvm.types import value_type
from weft.dialects.low_lanes import LdexpOp
from weft.support.cpu_instructions import has_intrinsic
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdsl.ir import Operation

    from weft.backends.llvm.emitter import FunctionEmitter, Rules
    from weft.backends.llvm.types import ValueType

_INTRINSICS: Final[dict[type[Operation], str]] = {
    math.AbsFOp: "fabs",
    math.AcosOp: "acos",
    math.AsinOp: "asin",
    math.AtanOp: "atan",
    math.Atan2Op: "atan2",
    math.CeilOp: "ceil",
    math.CopySignOp: "copysign",
    math.CosOp: "cos",
    math.CoshOp: "cosh",
    math.ExpOp: "exp",
    math.Exp2Op: "exp2",
    math.FloorOp: "floor",
    math.LogOp: "log",
    math.Log2Op: "log2",
    math.Log10Op: "log10",
    math.PowFOp: "pow",
    math.RoundOp: "round",
    math.RoundEvenOp: "roundeven",
    math.SinOp: "sin",
    math.SinhOp: "sinh",
    math.SqrtOp: "sqrt",
    math.TanOp: "tan",
    math.TanhOp: "tanh",
    math.TruncOp: "trunc",
}
_LIBRARY: Final[dict[type[Operation], str]] = {
    math.AcoshOp: "acosh",
    math.AsinhOp: "asinh",
    math.AtanhOp: "atanh",
    math.CbrtOp: "cbrt",
    math.ErfOp: "erf",
    math.ExpM1Op: "expm1",
    math.Log1pOp: "log1p",
}
_BIT_INTRINSICS: Final[dict[type[Operation], tuple[str, str]]] = {
    math.AbsIOp: ("abs", ", i1 false"),
    math.CountLeadingZerosOp: ("ctlz", ", i1 false"),
    math.CountTrailingZerosOp: ("cttz", ", i1 false"),
    math.CtPopOp: ("ctpop", ""),
}
"""Op -> intrinsic and its last argument: the results for the smallest number and for zero are defined."""
_SMALL: Final = ("half", "bfloat")


def emit_intrinsic(emitter: FunctionEmitter, op: Operation) -> None:
    name = _INTRINSICS[type(op)]
    flags = emitter.module.flags_of(op, "")
    float_op(emitter, op, lambda type_, texts: emitter.call(type_, name, *texts, flags=flags), widened=_SMALL)


def emit_rsqrt(emitter: FunctionEmitter, op: Operation) -> None:
    """1 / sqrt(x), both correctly rounded: the approximation that CPUs offer is good to 12 or 14 bits only."""
    flags = emitter.module.flags_of(op, "")

    def instruction(type_: ValueType, texts: list[str]) -> str:
        root = emitter.emit(emitter.call(type_, "sqrt", *texts, flags=flags), "root")
        return f"fdiv {flags}{type_.text} {type_.splat('1.0')}, {root}"

    float_op(emitter, op, instruction, widened=_SMALL)


def emit_library_call(emitter: FunctionEmitter, op: Operation) -> None:
    name = _LIBRARY[type(op)]

    def instruction(type_: ValueType, texts: list[str]) -> str:
        scalar = value_type(type_.element)
        function = name if type_.element == "double" else f"{name}f"
        emitter.module.declare(
            function, f"declare {scalar.text} @{function}({scalar.text}) nounwind willreturn memory(none)"
        )
        return each_lane(
            emitter, type_, texts, lambda lanes: f"call {scalar.text} @{function}({scalar.text} {lanes[0]})"
        )

    float_op(emitter, op, instruction, widened=_SMALL)


_SCALEF: Final = {"float": ("ps.512", 16, "i16 -1"), "double": ("pd.512", 8, "i8 -1")}
"""Element -> suffix, lanes and full mask of the AVX-512 instruction for `low.ldexp`; its last argument is the rounding
that is in effect."""


def emit_ldexp(emitter: FunctionEmitter, op: Operation) -> None:
    """One instruction a register of AVX-512F; elsewhere LLVM's expansion, or calls of libm."""
    suffix, width, mask = _SCALEF[emitter.type_of(op.results[0], op).element]
    intrinsic = f"x86.avx512.mask.scalef.{suffix}"
    has_it = has_intrinsic(emitter.module.target, intrinsic)

    def scaled(part: ValueType, texts: list[str]) -> str:
        p, n = map(part.typed, texts)
        return f"call {part.text} @llvm.{intrinsic}({p}, {n}, {part.text} zeroinitializer, {mask}, i32 4)"

    def instruction(type_: ValueType, texts: list[str]) -> str:
        if not has_it or not type_.lanes or type_.lanes % width:
            return _portable_ldexp(emitter, type_, *texts)
        return each_part(emitter, type_, width, texts, scaled)

    float_op(emitter, op, instruction)


def _portable_ldexp(emitter: FunctionEmitter, type_: ValueType, p: str, n: str) -> str:
    whole = type_.of("i32")
    saturated = f"call {whole.text} @llvm.fptosi.sat.{whole.suffix}.{type_.suffix}({type_.text} {n})"
    exponent = emitter.emit(saturated, "exponent")
    scaled = f"@llvm.ldexp.{type_.suffix}.{whole.suffix}"
    return f"call {type_.text} {scaled}({type_.text} {p}, {whole.text} {exponent})"


def each_lane(emitter: FunctionEmitter, type_: ValueType, texts: list[str], call: Callable[[list[str]], str]) -> str:
    """The instruction that gives the results of `call` (texts of one lane) in every lane of `type_`."""
    if not type_.lanes:
        return call(texts)
    result = "poison"
    instruction = ""
    for lane in range(type_.lanes):
        scalars = [emitter.emit(f"extractelement {type_.text} {text}, i64 {lane}", "lane") for text in texts]
        called = emitter.emit(call(scalars), "called")
        instruction = f"insertelement {type_.text} {result}, {type_.scalar} {called}, i64 {lane}"
        if lane + 1 < type_.lanes:
            result = emitter.emit(instruction, "lanes")
    return instruction


def each_part(
    emitter: FunctionEmitter,
    type_: ValueType,
    width: int,
    texts: list[str],
    call: Callable[[ValueType, list[str]], str],
) -> str:
    """The instruction that gives the results of `call` (type and texts of `width` lanes) in all lanes of `type_`, whose
    number `width` divides."""
    part = value_type(type_.element, width)
    if part is type_:
        return call(part, texts)
    result, instruction = "poison", ""
    for start in range(0, type_.lanes, width):
        extract = f"call {part.text} @llvm.vector.extract.{part.suffix}.{type_.suffix}"
        parts = [emitter.emit(f"{extract}({type_.text} {text}, i64 {start})", "part") for text in texts]
        called = emitter.emit(call(part, parts), "called")
        insert = f"call {type_.text} @llvm.vector.insert.{type_.suffix}.{part.suffix}"
        instruction = f"{insert}({type_.text} {result}, {part.text} {called}, i64 {start})"
        if start + width < type_.lanes:
            result = emitter.emit(instruction, "lanes")
    return instruction


def emit_bits(emitter: FunctionEmitter, op: Operation) -> None:
    name, last = _BIT_INTRINSICS[type(op)]
    type_ = emitter.type_of(op.results[0], op)
    (text,) = emitter.texts(op)
    emitter.define(op.results[0], f"call {type_.text} @llvm.{name}.{type_.suffix}({type_.text} {text}{last})")


def emit_float_integer_power(emitter: FunctionEmitter, op: Operation) -> None:
    """`pow` in double, whose result for an integer power is right for negative bases also."""
    base_text, power_text = emitter.texts(op)
    base, power = (emitter.type_of(operand, op) for operand in op.operands)
    if base.element == "bfloat":
        raise CompileError.at(op, "math.fpowi of bf16 has no lowering in the llvm backend: use f32")
    double = base.of("double")
    wide = base_text if base is double else emitter.emit(f"fpext {base.text} {base_text} to {double.text}", "wide")
    exponent = emitter.emit(f"sitofp {power.text} {power_text} to {double.text}", "exponent")
    result = emitter.call(double, "pow", wide, exponent)
    if base is not double:
        result = f"fptrunc {double.text} {emitter.emit(result, 'power')} to {base.text}"
    emitter.define(op.results[0], result)


_POWER: Final = Path(__file__).with_name("integer_power.ll")


def integer_power_ir(element: str, name: str) -> str:
    """The function `name` that raises an integer type to a power of its own."""
    return ir_text(_POWER, element=element, name=name)


def emit_integer_power(emitter: FunctionEmitter, op: Operation) -> None:
    type_ = emitter.type_of(op.results[0], op)
    element = type_.element
    if element == "i1":
        raise CompileError.at(op, "math.ipowi of i1 has no lowering in the llvm backend")
    name = emitter.module.helper(f"weft.ipow.{element}", partial(integer_power_ir, element))
    texts = emitter.texts(op)
    emitter.define(
        op.results[0],
        each_lane(
            emitter,
            type_,
            texts,
            lambda lanes: f"call {element} @{name}({element} {lanes[0]}, {element} {lanes[1]})",
        ),
    )


RULES: Final[Rules] = {
    **dict.fromkeys(_INTRINSICS, emit_intrinsic),
    **dict.fromkeys(_LIBRARY, emit_library_call),
    **dict.fromkeys(_BIT_INTRINSICS, emit_bits),
    LdexpOp: emit_ldexp,
    math.RsqrtOp: emit_rsqrt,
    math.FPowIOp: emit_float_integer_power,
    math.IPowIOp: emit_integer_power,
}
