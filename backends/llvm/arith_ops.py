"""`arith` and `math` ops, on scalars and on vectors: LLVM instructions, LLVM intrinsics, and calls of the C library.

Floating-point additions, subtractions and multiplications may be contracted to fused multiply-adds if the function
promises `contract` or the op allows it. `low-legalize` rewrites arithmetic on `bf16`, divisions by possible zeros,
which would trap, and out-of-range conversions to integers. LLVM lowers `sqrt`, `absf`, rounding and `fma` to
instructions, and other functions to calls of libm, lane by lane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr

from weft.backends.llvm.lane_masks import emit_lane_mask
from weft.backends.llvm.types import scalar_text, value_type, vector_text
from weft.backends.low_modules import predicate
from weft.dialects.integer_arith import known_number
from weft.dialects.low import DEFINED, ORDERED, ROUNDED
from weft.dialects.low_lanes import LdexpOp, with_lane_forms
from weft.dialects.upstream.arith import RemFOp
from weft.support.cpu_instructions import conversion_to_integer, has_intrinsic, range_intrinsic, range_lanes
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from weft.backends.llvm.emitter import FunctionEmitter, Rules
    from weft.backends.llvm.types import ValueType

_DIVISIONS: Final[dict[type[Operation], str]] = {
    arith.DivSIOp: "sdiv",
    arith.DivUIOp: "udiv",
    arith.RemSIOp: "srem",
    arith.RemUIOp: "urem",
}
_CONTRACTED: Final = (arith.AddfOp, arith.SubfOp, arith.MulfOp)
INSTRUCTIONS: Final[dict[type[Operation], str]] = {
    arith.AddiOp: "add",
    arith.SubiOp: "sub",
    arith.MuliOp: "mul",
    arith.AndIOp: "and",
    arith.OrIOp: "or",
    arith.XOrIOp: "xor",
    arith.ShLIOp: "shl",
    arith.ShRUIOp: "lshr",
    arith.ShRSIOp: "ashr",
    **_DIVISIONS,
    arith.AddfOp: "fadd",
    arith.SubfOp: "fsub",
    arith.MulfOp: "fmul",
    arith.DivfOp: "fdiv",
    RemFOp: "frem",
    arith.NegfOp: "fneg",
}
"""Op -> the instruction on operands of the result's type."""


def _by_name(*ops: type[Operation]) -> dict[type[Operation], str]:
    return {op: op.name.removeprefix("math.") for op in ops}


_MATH_INTRINSICS: Final[dict[type[Operation], str]] = {
    **_by_name(math.AcosOp, math.AsinOp, math.AtanOp, math.Atan2Op, math.CosOp, math.SinOp, math.TanOp),
    **_by_name(math.CoshOp, math.SinhOp, math.TanhOp, math.SqrtOp, math.FmaOp, math.CopySignOp),
    **_by_name(math.ExpOp, math.Exp2Op, math.LogOp, math.Log2Op, math.Log10Op),
    **_by_name(math.CeilOp, math.FloorOp, math.RoundOp, math.RoundEvenOp, math.TruncOp),
    **{math.AbsFOp: "fabs", math.PowFOp: "pow", vector.FMAOp: "fma"},
}
INTRINSICS: Final[dict[type[Operation], str]] = {
    arith.MinSIOp: "smin",
    arith.MaxSIOp: "smax",
    arith.MinUIOp: "umin",
    arith.MaxUIOp: "umax",
    arith.MaximumfOp: "maximum",
    arith.MinimumfOp: "minimum",
    arith.MaxnumfOp: "maxnum",
    arith.MinnumfOp: "minnum",
    math.AbsIOp: "abs",
    math.CountLeadingZerosOp: "ctlz",
    math.CountTrailingZerosOp: "cttz",
    math.CtPopOp: "ctpop",
    **_MATH_INTRINSICS,
}
"""Op -> the intrinsic on operands of the result's type."""
_FLAGGED: Final = (math.AbsIOp, math.CountLeadingZerosOp, math.CountTrailingZerosOp)
"""Their intrinsics have a flag: the result for the smallest integer, or for zero, is undefined."""
_LIBRARY: Final = _by_name(
    math.AcoshOp, math.AsinhOp, math.AtanhOp, math.CbrtOp, math.ErfOp, math.ExpM1Op, math.Log1pOp
)
_CASTS: Final = with_lane_forms(
    {
        arith.ExtSIOp: "sext",
        arith.ExtUIOp: "zext",
        arith.TruncIOp: "trunc",
        arith.SIToFPOp: "sitofp",
        arith.UIToFPOp: "uitofp",
        arith.ExtFOp: "fpext",
        arith.TruncFOp: "fptrunc",
    }
)


def emit_constant(emitter: FunctionEmitter, op: Operation) -> None:
    result = op.results[0]
    type_ = emitter.type_of(result, op)
    value = op.properties["value"]
    if isinstance(value, IntegerAttr | FloatAttr):
        emitter.bind(result, scalar_text(value.value.data, type_.element))
    elif isinstance(value, DenseIntOrFPElementsAttr):
        emitter.bind(result, vector_text(cast("list[float]", list(value.iter_values())), type_))
    else:
        raise CompileError.at(op, f"the llvm backend has no constants of the form {value.name}")


def emit_instruction(emitter: FunctionEmitter, op: Operation) -> str:
    type_ = emitter.float_type_of(op.results[0], op)
    operands = ", ".join(emitter.texts(op))
    return f"{INSTRUCTIONS[type(op)]} {_flags(emitter, op)}{type_.text} {operands}"


def _flags(emitter: FunctionEmitter, op: Operation) -> str:
    overflow = op.properties.get("overflowFlags")
    if isinstance(overflow, arith.IntegerOverflowAttr):
        return "".join(f"{flag.value} " for flag in overflow.data)
    base = ""
    if type(op) in _CONTRACTED and ROUNDED not in op.attributes:
        base = "contract " if ORDERED in op.attributes else emitter.flags
    return emitter.module.flags_of(op, base)


def emit_division(emitter: FunctionEmitter, op: Operation) -> str:
    divisor = known_number(op.operands[1])
    is_signed = isinstance(op, arith.DivSIOp | arith.RemSIOp)
    if DEFINED not in op.attributes and (not divisor or (divisor == -1 and is_signed)):
        raise CompileError.at(
            op, f"{op.name} by what may be zero or overflow has no form in LLVM IR: run low-legalize first"
        )
    return emit_instruction(emitter, op)


def emit_intrinsic(emitter: FunctionEmitter, op: Operation) -> str:
    type_ = _function_type(emitter, op) if type(op) in _MATH_INTRINSICS else emitter.float_type_of(op.results[0], op)
    last = ", i1 false" if type(op) in _FLAGGED else ""
    flags = emitter.module.flags_of(op, "")
    return emitter.call(type_, INTRINSICS[type(op)], *emitter.texts(op), flags=flags, last=last)


def _function_type(emitter: FunctionEmitter, op: Operation) -> ValueType:
    type_ = emitter.float_type_of(op.results[0], op)
    if type_.bits == 16:
        raise CompileError.at(op, f"{op.name} of f16 has no form in LLVM IR: run low-legalize first")
    return type_


def emit_library_call(emitter: FunctionEmitter, op: Operation) -> str:
    type_ = _function_type(emitter, op)
    if type_.lanes:
        raise CompileError.at(op, f"{op.name} of vectors has no form in LLVM IR: run low-legalize first")
    name = _LIBRARY[type(op)] + ("f" if type_.element == "float" else "")
    emitter.module.declare(name, f"declare {type_.text} @{name}({type_.text}) nounwind willreturn memory(none)")
    return f"call {type_.text} @{name}({type_.text} {emitter.text(op.operands[0])})"


def emit_maxnum(emitter: FunctionEmitter, op: Operation) -> str:
    """The AVX-512DQ instruction, which orders +0 above -0, for vectors that fill registers."""
    type_ = emitter.float_type_of(op.results[0], op)
    width = range_lanes(emitter.module.target, type_.lanes, type_.bits) if type_.bits >= 32 else 0
    if not width or emitter.module.flags_of(op, ""):
        return emit_intrinsic(emitter, op)
    return emitter.by_parts(type_, width, emitter.texts(op), _range_maximum)


_GREATER: Final = 0b0101
"""`vrangeps` selects the greater number (bits 0 and 1), with its own sign (bits 2 and 3)."""


def _range_maximum(type_: ValueType, texts: list[str]) -> str:
    """The other operand if one is NaN."""
    bits = type_.lanes * type_.bits
    lhs, rhs = map(type_.typed, texts)
    rounding = ", i32 4" if bits == 512 else ""  # current mode; nothing is rounded
    return (
        f"call {type_.text} @llvm.{range_intrinsic(bits, type_.bits)}"
        f"({lhs}, {rhs}, i32 {_GREATER}, {type_.text} zeroinitializer, i{max(type_.lanes, 8)} -1{rounding})"
    )


_SCALEF: Final = {"float": ("ps.512", 16, "i16 -1"), "double": ("pd.512", 8, "i8 -1")}
"""Element -> suffix, lanes and full mask of the AVX-512 instruction for `low.ldexp`; its last argument is the current
rounding mode."""


def emit_ldexp(emitter: FunctionEmitter, op: Operation) -> str:
    """An AVX-512F instruction per register, or LLVM's expansion or calls of libm."""
    type_ = emitter.type_of(op.results[0], op)
    suffix, width, mask = _SCALEF[type_.element]
    intrinsic = f"x86.avx512.mask.scalef.{suffix}"

    def scaled(part: ValueType, texts: list[str]) -> str:
        p, n = map(part.typed, texts)
        return f"call {part.text} @llvm.{intrinsic}({p}, {n}, {part.text} zeroinitializer, {mask}, i32 4)"

    texts = emitter.texts(op)
    if type_.lanes and type_.lanes % width == 0 and has_intrinsic(emitter.module.target, intrinsic):
        return emitter.by_parts(type_, width, texts, scaled)
    return _portable_ldexp(emitter, type_, *texts)


def _portable_ldexp(emitter: FunctionEmitter, type_: ValueType, p: str, n: str) -> str:
    whole = type_.of("i32")
    saturated = f"call {whole.text} @llvm.fptosi.sat.{whole.suffix}.{type_.suffix}({type_.text} {n})"
    exponent = emitter.emit(saturated, "exponent")
    scaled = f"@llvm.ldexp.{type_.suffix}.{whole.suffix}"
    return f"call {type_.text} {scaled}({type_.text} {p}, {whole.text} {exponent})"


def emit_integer_comparison(emitter: FunctionEmitter, op: Operation) -> str:
    if (mask := emit_lane_mask(emitter, op)) is not None:
        return mask
    lhs, rhs = emitter.texts(op)
    return f"icmp {predicate(op)} {emitter.type_of(op.operands[0], op).text} {lhs}, {rhs}"


def emit_float_comparison(emitter: FunctionEmitter, op: Operation) -> str:
    lhs, rhs = emitter.texts(op)
    type_ = emitter.float_type_of(op.operands[0], op)
    return f"fcmp {emitter.module.flags_of(op, '')}{predicate(op)} {type_.text} {lhs}, {rhs}"


def emit_select(emitter: FunctionEmitter, op: Operation) -> str:
    condition, lhs, rhs = emitter.texts(op)
    condition_type = emitter.type_of(op.operands[0], op)
    type_ = emitter.type_of(op.results[0], op)
    return f"select {condition_type.text} {condition}, {type_.text} {lhs}, {type_.text} {rhs}"


def emit_mul_extended(emitter: FunctionEmitter, op: Operation) -> None:
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


def emit_cast(emitter: FunctionEmitter, op: Operation) -> str:
    for value in (op.operands[0], op.results[0]):
        emitter.float_type_of(value, op)
    return _cast(emitter, op, _CASTS[type(op)])


def _cast(emitter: FunctionEmitter, op: Operation, instruction: str) -> str:
    source, target = emitter.type_of(op.operands[0], op), emitter.type_of(op.results[0], op)
    return f"{instruction} {source.text} {emitter.text(op.operands[0])} to {target.text}"


def emit_to_integer(emitter: FunctionEmitter, op: Operation) -> str:
    """An x86 instruction defined for all floats, or LLVM's, for floats in range."""
    (operand,), (result,) = op.operands, op.results
    source, target = emitter.float_type_of(operand, op), emitter.type_of(result, op)
    if DEFINED in op.attributes:
        return _cast(emitter, op, "fptosi" if op.name.endswith("fptosi") else "fptoui")
    conversion = conversion_to_integer(emitter.module.target, target.lanes, source.bits, target.bits)
    if conversion is None or op.name.endswith("fptoui"):
        raise CompileError.at(op, f"{op.name} of what may not fit has no form in LLVM IR: run low-legalize first")

    def converted(part: ValueType, texts: list[str]) -> str:
        given = value_type(source.element, conversion.lanes).typed(texts[0])
        rest = f", {part.text} zeroinitializer, i{max(conversion.lanes, 8)} -1" if conversion.masked else ""
        rounding = ", i32 4" if conversion.has_rounding else ""
        return f"call {part.text} @llvm.{conversion.name}({given}{rest}{rounding})"

    return emitter.by_parts(target, conversion.lanes, [emitter.text(operand)], converted, source)


def emit_index_cast(emitter: FunctionEmitter, op: Operation) -> str | None:
    operand, result = op.operands[0], op.results[0]
    source = emitter.type_of(operand, op)
    target = emitter.type_of(result, op)
    if source is not target:
        return _cast(emitter, op, "sext" if source.bits < target.bits else "trunc")
    emitter.bind(result, emitter.text(operand))
    return None


def emit_bitcast(emitter: FunctionEmitter, op: Operation) -> str | None:
    if emitter.type_of(op.operands[0], op).text != emitter.type_of(op.results[0], op).text:
        return _cast(emitter, op, "bitcast")
    emitter.bind(op.results[0], emitter.text(op.operands[0]))
    return None


_SCALARS: Final[Rules] = {
    arith.ConstantOp: emit_constant,
    **dict.fromkeys(INSTRUCTIONS, emit_instruction),
    **dict.fromkeys(_DIVISIONS, emit_division),
    **dict.fromkeys(INTRINSICS, emit_intrinsic),
    **dict.fromkeys(_LIBRARY, emit_library_call),
    arith.MaxnumfOp: emit_maxnum,
    LdexpOp: emit_ldexp,
    arith.CmpiOp: emit_integer_comparison,
    arith.CmpfOp: emit_float_comparison,
    arith.SelectOp: emit_select,
    **dict.fromkeys((arith.MulSIExtendedOp, arith.MulUIExtendedOp), emit_mul_extended),
    **dict.fromkeys(_CASTS, emit_cast),
    **dict.fromkeys((arith.FPToSIOp, arith.FPToUIOp), emit_to_integer),
    arith.IndexCastOp: emit_index_cast,
    **dict.fromkeys((arith.BitcastOp, vector.BitcastOp), emit_bitcast),
}
RULES: Final = with_lane_forms(_SCALARS)
