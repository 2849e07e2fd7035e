"""Mathematical functions: LLVM intrinsics, and calls of the C library, on scalars, where LLVM has none.

LLVM lowers `sqrt`, `absf`, rounding and `fma` to instructions; the rest become calls of libm, lane by lane for vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xdsl.dialects import math, vector

from weft.dialects.low_lanes import LdexpOp
from weft.support.cpu_instructions import has_intrinsic
from weft.support.errors import CompileError

if TYPE_CHECKING:
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
    math.FmaOp: "fma",
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
    vector.FMAOp: "fma",
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


def emit_intrinsic(emitter: FunctionEmitter, op: Operation) -> None:
    type_ = _computing_type(emitter, op)
    flags = emitter.module.flags_of(op, "")
    emitter.define(op.results[0], emitter.call(type_, _INTRINSICS[type(op)], *emitter.texts(op), flags=flags))


def _computing_type(emitter: FunctionEmitter, op: Operation) -> ValueType:
    type_ = emitter.float_type_of(op.results[0], op)
    if type_.bits == 16:
        raise CompileError.at(op, f"{op.name} of f16 has no form in LLVM IR: run low-legalize first")
    return type_


def emit_library_call(emitter: FunctionEmitter, op: Operation) -> None:
    type_ = _computing_type(emitter, op)
    if type_.lanes:
        raise CompileError.at(op, f"{op.name} of vectors has no form in LLVM IR: run low-legalize first")
    name = _LIBRARY[type(op)] + ("f" if type_.element == "float" else "")
    emitter.module.declare(name, f"declare {type_.text} @{name}({type_.text}) nounwind willreturn memory(none)")
    emitter.define(op.results[0], f"call {type_.text} @{name}({type_.text} {emitter.text(op.operands[0])})")


_SCALEF: Final = {"float": ("ps.512", 16, "i16 -1"), "double": ("pd.512", 8, "i8 -1")}
"""Element -> suffix, lanes and full mask of the AVX-512 instruction for `low.ldexp`; its last argument is the rounding
that is in effect."""


def emit_ldexp(emitter: FunctionEmitter, op: Operation) -> None:
    """One instruction a register of AVX-512F; elsewhere LLVM's expansion, or calls of libm."""
    type_ = emitter.type_of(op.results[0], op)
    suffix, width, mask = _SCALEF[type_.element]
    intrinsic = f"x86.avx512.mask.scalef.{suffix}"

    def scaled(part: ValueType, texts: list[str]) -> str:
        p, n = map(part.typed, texts)
        return f"call {part.text} @llvm.{intrinsic}({p}, {n}, {part.text} zeroinitializer, {mask}, i32 4)"

    texts = emitter.texts(op)
    if type_.lanes and type_.lanes % width == 0 and has_intrinsic(emitter.module.target, intrinsic):
        emitter.define(op.results[0], emitter.by_parts(type_, width, texts, scaled))
    else:
        emitter.define(op.results[0], _portable_ldexp(emitter, type_, *texts))


def _portable_ldexp(emitter: FunctionEmitter, type_: ValueType, p: str, n: str) -> str:
    whole = type_.of("i32")
    saturated = f"call {whole.text} @llvm.fptosi.sat.{whole.suffix}.{type_.suffix}({type_.text} {n})"
    exponent = emitter.emit(saturated, "exponent")
    scaled = f"@llvm.ldexp.{type_.suffix}.{whole.suffix}"
    return f"call {type_.text} {scaled}({type_.text} {p}, {whole.text} {exponent})"


def emit_bits(emitter: FunctionEmitter, op: Operation) -> None:
    name, last = _BIT_INTRINSICS[type(op)]
    type_ = emitter.type_of(op.results[0], op)
    (text,) = emitter.texts(op)
    emitter.define(op.results[0], f"call {type_.text} @llvm.{name}.{type_.suffix}({type_.text} {text}{last})")


RULES: Final[Rules] = {
    **dict.fromkeys(_INTRINSICS, emit_intrinsic),
    **dict.fromkeys(_LIBRARY, emit_library_call),
    **dict.fromkeys(_BIT_INTRINSICS, emit_bits),
    LdexpOp: emit_ldexp,
}
