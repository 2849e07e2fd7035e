"""low-legalize: rewrite operations that a target lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from xdsl.context import Context
from xdsl.dialects import arith, math, memref, scf, vector
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerType,
    ModuleOp,
    ReducedPrecisionFloatType,
    UnitAttr,
    VectorType,
    f32,
    f64,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.dialects.integer_arith import DIVISIONS, known_number
from weft.dialects.levels import allowed_at
from weft.dialects.low import DEFINED, PARAMS
from weft.dialects.low_kernel import ShuffleOp, kernel_of
from weft.dialects.low_lanes import LANE_FORMS, LdexpOp
from weft.dialects.traversal import operations_in
from weft.passes.low import decompositions
from weft.passes.low.elementary import formulas
from weft.passes.low.elementary.lanes import F32, F64, FORMATS, Constants, Writer, integer_shape, shape_of
from weft.passes.low.float_ranges import float_range
from weft.passes.low.low_expand_math import MULTIPLY_ADDS, expand_multiply_add, logistic_of
from weft.passes.low.op_rewriter import SIXTEEN_BIT_FLOATS, OpRewriter, element_of, is_sixteen_bit_float, lanes_of, like
from weft.support.cpu_instructions import conversion_to_integer
from weft.support.errors import CompileError, did_you_mean
from weft.support.float_to_integer import register_bits
from weft.support.gpu_machine import GPU_KINDS
from weft.support.target import Target

if TYPE_CHECKING:
    from xdsl.ir import Attribute


TARGETS: Final = ("llvm", "c", "cuda", "opencl", "metal")
"""Kinds of target that this pass supports."""
UPSTREAM: Final = "upstream"
"""For functions converted to upstream dialects, whose divisions are defined for fewer operands."""
_LLVM: Final = ("llvm",)
_CPUS: Final = ("llvm", "c")
_C_FAMILY: Final = ("c", "cuda", "opencl", "metal")


@dataclass(frozen=True)
class LowLegalizePass(ModulePass):
    """Leave only operations that a target has: `low-legalize{target="llvm -mcpu=haswell"}`, `{target=cuda}`.

    ```mlir
    %s = arith.addf %a, %b : f16       ->     %a.wide = arith.extf %a : f16 to f32
                                              %b.wide = arith.extf %b : f16 to f32
                                              %s.wide = arith.addf %a.wide, %b.wide : f32
                                              %s = arith.truncf %s.wide : f32 to f16
    ```
    `RULES` lists what kinds of targets lack. Arithmetic on 16-bit floats is computed in `f32`: with more than twice
    their bits, the first rounding of `+ - * /` and the square root is harmless (Figueroa 1995); fused multiply-adds are
    rounded once as well (`elementary/formulas.py`). Divisions are defined for all operands, as in NumPy: x / 0 = 0, x
    mod 0 = 0, and the smallest number over -1 wraps to itself; conversions of floats to integers as on x86
    (`weft.support.float_to_integer`). Host functions in a program of kernels are prepared for LLVM. Raises
    `CompileError` for an unknown target, and for an integer power of truth values.

    Requires: low functions.

    Leaves: low functions of operations that the target has.
    """

    name = "low-legalize"

    target: str
    """As in `weft.build`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kind = self.target.split()[0] if self.target.split() else ""
        if kind not in TARGETS:
            raise CompileError(f"low-legalize: unknown target '{self.target}'{did_you_mean(kind, TARGETS)}")
        for function in op.ops:
            if not isinstance(function, FuncOp) or function.is_declaration:
                continue
            is_kernel = kernel_of(function) is not None
            if is_kernel or PARAMS in function.attributes or all(allowed_at("low", op.name) for op in function.walk()):
                for_host = kind in GPU_KINDS and not is_kernel
                legalize(function, "llvm" if for_host else self.target)


def legalize(function: FuncOp, target: str) -> None:
    context = _Legalization(target, Constants(function.body.block))
    pending = operations_in(function)
    pending.reverse()
    rules = _rules_of(context.kind)
    while pending:
        op = pending.pop()
        for rule in (*rules.get(type(op), ()), _widened):
            rewriter = rule(op, context)
            if rewriter is not None:
                pending.extend(reversed(rewriter.inserted))
                break


@dataclass
class _Legalization:
    target: str
    constants: Constants

    def __post_init__(self) -> None:
        self.kind = self.target.split()[0]
        self.lacking = {"llvm": (BFloat16Type,), UPSTREAM: ()}.get(self.kind, (BFloat16Type, Float16Type))
        """Unsupported by arithmetic of the target."""

    @cached_property
    def machine(self) -> Target:
        return Target.parse(self.target)

    def writer(self, op: Operation, type_: Attribute) -> Writer:
        element, lanes = element_of(type_), lanes_of(type_)
        if isinstance(element, IntegerType | IndexType):
            return Writer(op, self.constants, integer_shape(element, lanes))
        return Writer(op, self.constants, shape_of(FORMATS[element], lanes))


Rule: TypeAlias = Callable[[Operation, _Legalization], OpRewriter | None]
"""Returns the inserted ops; None if the target has the operation."""


_KEPT: Final = ("arith.constant", "arith.extf", "arith.truncf", "arith.select", "arith.bitcast")
_COMPUTING: Final = ("arith.", "math.", "vector.fma", "low.cmpf")
_FROM_INTEGER: Final = tuple(form for kind in (arith.SIToFPOp, arith.UIToFPOp) for form in (kind, LANE_FORMS[kind]))
_TO_INTEGER: Final = frozenset(form for kind in (arith.FPToSIOp, arith.FPToUIOp) for form in (kind, LANE_FORMS[kind]))


@cache
def _computes(kind: type[Operation]) -> bool:
    return kind.name not in _KEPT and (kind.name.startswith(_COMPUTING) or kind in _TO_INTEGER or kind is ShuffleOp)


def _widened(op: Operation, context: _Legalization) -> OpRewriter | None:
    if not _computes(type(op)):
        return None
    # LLVM's functions, unlike its arithmetic, need f32.
    lacking = SIXTEEN_BIT_FLOATS if op.name.startswith("math.") or type(op) in _TO_INTEGER else context.lacking
    if not any(type(element_of(value.type)) in lacking for value in (*op.operands, *op.results)):
        return None
    rewriter = OpRewriter(op)
    operands = [_extended(rewriter, operand) for operand in op.operands]
    (result,) = op.results
    type_ = like(result.type, f32) if is_sixteen_bit_float(result.type) else result.type
    computed = rewriter.op(type(op), operands, type_, op.properties, op.attributes)
    rewriter.replace(_truncated(rewriter, computed, result.type))
    return rewriter


def _extended(rewriter: OpRewriter, value: SSAValue) -> SSAValue:
    if not is_sixteen_bit_float(value.type):
        return value
    wide = like(value.type, f32)
    number = known_number(value)
    if number is not None:
        constant = (
            DenseIntOrFPElementsAttr.from_list(VectorType(f32, wide.get_shape()), [number])
            if isinstance(wide, VectorType)
            else FloatAttr(number, f32)
        )
        return rewriter.op(arith.ConstantOp, (), wide, {"value": constant})
    result = rewriter.op(arith.ExtFOp, (value,), wide)
    result.name_hint = value.name_hint
    return result


def _truncated(rewriter: OpRewriter, value: SSAValue, type_: Attribute) -> SSAValue:
    return value if value.type == type_ else rewriter.op(arith.TruncFOp, (value,), type_)


def _ldexp(op: Operation, context: _Legalization) -> OpRewriter | None:
    writer = context.writer(op, op.results[0].type)
    writer.replace(formulas.ldexp(*map(writer.lanes, op.operands)).value)
    return writer


def _multiply_add(op: Operation, context: _Legalization) -> OpRewriter | None:
    return expand_multiply_add(op, context.constants, has_double=context.kind != "metal")


def _reduction(op: Operation, context: _Legalization) -> OpRewriter | None:
    """Sums and products round after every lane; extrema are exact in wider types."""
    reduction = cast("vector.ReductionOp", op)
    type_ = op.results[0].type
    if not isinstance(type_, context.lacking):
        return None
    rewriter = OpRewriter(op)
    kind = reduction.kind.data.value
    lanes = _extended(rewriter, op.operands[0])
    if kind not in ("add", "mul"):
        accumulator = [_extended(rewriter, operand) for operand in op.operands[1:]]
        wide = rewriter.op(vector.ReductionOp, [lanes, *accumulator], f32, op.properties)
        rewriter.replace(_truncated(rewriter, wide, type_))
        return rewriter
    combine = arith.AddfOp if kind == "add" else arith.MulfOp
    scalars = [rewriter.extract(lanes, lane) for lane in range(lanes_of(op.operands[0].type))]
    total = _extended(rewriter, op.operands[1]) if len(op.operands) > 1 else scalars.pop(0)
    rounded = _truncated(rewriter, total, type_)
    for scalar in scalars:
        combined = rewriter.op(combine, (total, scalar), f32, {"fastmath": arith.FastMathFlagsAttr("none")})
        rounded = _truncated(rewriter, combined, type_)
        total = _extended(rewriter, rounded)
    rewriter.replace(rounded)
    return rewriter


def _negation(op: Operation, context: _Legalization) -> OpRewriter | None:
    if not isinstance(element_of(op.results[0].type), context.lacking):
        return None
    writer = context.writer(op, op.results[0].type)
    writer.replace((writer.lanes(op.operands[0]).bits ^ 0x8000).numbers.value)
    return writer


def _integer_to_float(op: Operation, context: _Legalization) -> OpRewriter | None:
    """Via `f64`: exact or accurate enough that rounding happens once."""
    (operand,), (result,) = op.operands, op.results
    if not isinstance(element_of(result.type), context.lacking):
        return None
    writer = context.writer(op, operand.type)
    if writer.shape.integer_bits == 64:
        signed = isinstance(op, arith.SIToFPOp | LANE_FORMS[arith.SIToFPOp])
        operand = decompositions.sticky(writer.bits(operand), signed=signed).value
    wide = writer.op(type(op), (operand,), like(result.type, f32 if writer.shape.integer_bits <= 16 else f64))
    writer.replace(_truncated(writer, wide, result.type))
    return writer


def _extend_bf16(op: Operation, context: _Legalization) -> OpRewriter | None:
    (operand,), (result,) = op.operands, op.results
    if not isinstance(element_of(operand.type), BFloat16Type):
        return None
    wide = context.writer(op, like(result.type, f32))
    value = decompositions.from_bf16(context.writer(op, operand.type).lanes(operand), wide).value
    wide.replace(value if value.type == result.type else wide.op(arith.ExtFOp, (value,), result.type))
    return wide


def _truncate_to_bf16(op: Operation, context: _Legalization) -> OpRewriter | None:
    (operand,), (result,) = op.operands, op.results
    if not isinstance(element_of(result.type), BFloat16Type):
        return None
    writer = context.writer(op, operand.type)
    value = writer.lanes(operand)
    if writer.format is F64:
        value = decompositions.to_odd_float(value, context.writer(op, like(operand.type, f32)))
    writer.replace(decompositions.to_bf16(value, context.writer(op, result.type)).value)
    return writer


# Floats of a byte or less: their bits, numbers only between a bitcast and a conversion.


def _small_float(value: SSAValue) -> ReducedPrecisionFloatType | None:
    element = element_of(value.type)
    return element if isinstance(element, ReducedPrecisionFloatType) else None


def _defined_by(user: Operation, value: SSAValue, *kinds: type[Operation]) -> Operation:
    """Raises `CompileError` unless one of `kinds` defines a small float, or its bits."""
    owner = value.owner
    if not isinstance(owner, kinds):
        small = element_of(value.type)
        message = f"{user.name}: a value of {small} stands between arith.bitcast and arith.extf or arith.truncf only"
        raise CompileError.at(user, message)
    return owner


def _extend_small(op: Operation, context: _Legalization) -> OpRewriter | None:
    small = _small_float(op.operands[0])
    if small is None:
        return None
    bitcast = _defined_by(op, op.operands[0], *_BITCASTS)
    chain, byte = [bitcast], bitcast.operands[0]
    if small.bitwidth < 8:
        chain.append(_defined_by(op, byte, arith.TruncIOp, LANE_FORMS[arith.TruncIOp]))
        byte = chain[-1].operands[0]
    type_ = op.results[0].type
    wide = context.writer(op, like(type_, f32))
    code = context.writer(op, byte.type).bits(byte)
    value = decompositions.from_small(code, wide, small.SEMANTICS).value
    if value.type != type_:
        value = wide.op(arith.ExtFOp if element_of(type_) == f64 else arith.TruncFOp, (value,), type_)
    wide.replace(value)
    _erase_unused(chain)
    return wide


def _truncate_to_small(op: Operation, context: _Legalization) -> OpRewriter | None:
    bitcast = op if isinstance(op, _BITCASTS) else op.operands[0].owner
    if not isinstance(bitcast, _BITCASTS) or (small := _small_float(bitcast.operands[0])) is None:
        return None
    if small.bitwidth < 8 and op is bitcast:
        return None
    truncation = _defined_by(op, bitcast.operands[0], arith.TruncFOp)
    number = truncation.operands[0]
    writer = context.writer(op, number.type)
    single = context.writer(op, like(number.type, f32))
    if writer.format is F32:
        value = writer.lanes(number)
    elif writer.format is F64:
        value = decompositions.to_odd_float(writer.lanes(number), single)
    else:
        value = single.lanes(writer.op(arith.ExtFOp, (number,), like(number.type, f32)))
    byte = decompositions.to_small(value, context.writer(op, op.results[0].type), small.SEMANTICS)
    writer.replace(byte.value)
    _erase_unused([truncation] if op is bitcast else [bitcast, truncation])
    return writer


def _erase_unused(ops: Sequence[Operation]) -> None:
    for op in ops:
        if op.results[0].first_use is None:
            op.detach()
            op.erase()


_BITCASTS: Final = (arith.BitcastOp, vector.BitcastOp)


def _to_integer(op: Operation, context: _Legalization) -> OpRewriter | None:
    (operand,), (result,) = op.operands, op.results
    if DEFINED in op.attributes or is_sixteen_bit_float(operand.type):
        return None
    bits = cast("IntegerType", element_of(result.type)).width.data
    signed, is_double = op.name.endswith("fptosi"), element_of(operand.type) == f64
    low, high, may_be_nan = float_range(operand)
    least, beyond = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else (0, 2**bits)
    if not may_be_nan and least <= low and high < beyond:
        op.attributes[DEFINED] = UnitAttr()
        return None
    width = register_bits(bits, signed=signed, is_double=is_double)
    x, register = (
        context.writer(op, operand.type).lanes(operand),
        context.writer(op, like(result.type, IntegerType(width))),
    )
    if bits != width or not signed:
        small = context.writer(op, result.type)
        register.replace(decompositions.to_integer(x, register, small, bits, signed=signed).value)
        return register
    lanes = lanes_of(result.type)
    if context.kind == "llvm" and conversion_to_integer(context.machine, lanes, 64 if is_double else 32, bits):
        return None
    register.replace(decompositions.to_register(x, register, is_below=high < 2.0 ** (bits - 1)).value)
    return register


def _division(op: Operation, context: _Legalization) -> OpRewriter | None:
    divisor = known_number(op.operands[1])
    if DEFINED in op.attributes or decompositions.is_instruction(type(op), divisor):
        return None
    writer = context.writer(op, op.results[0].type)
    lhs, rhs = map(writer.bits, op.operands)
    if context.kind in _CPUS and isinstance(op, arith.RemSIOp) and _wraps_loaded_index(op):
        # 1 - rhs <= lhs < rhs, as one unsigned comparison.
        is_inside = rhs.compare("sgt", 0) & (lhs + (rhs + -1)).compare("ult", rhs + (rhs + -1))
        remainder = arith.RemSIOp(op.lhs, op.rhs)
        outside = [remainder, scf.YieldOp(remainder.result)]
        chosen = scf.IfOp(is_inside.value, [op.result.type], [scf.YieldOp(op.lhs)], outside)
        inner = context.writer(remainder, op.result.type)
        inner.replace(decompositions.divided(type(op), inner.bits(op.lhs), inner.bits(op.rhs), divisor).value)
        writer.replace(writer.insert(chosen))
        return writer
    writer.replace(decompositions.divided(type(op), lhs, rhs, divisor).value)
    return writer


def _wraps_loaded_index(op: arith.RemSIOp) -> bool:
    """A loaded integer over a loop invariant, as an index by an extent: most are in range, and a predicted branch is
    faster than a 64-bit division.
    """
    return (
        op.result.type in (IndexType(), i64)
        and op.parent not in (op.rhs.owner, op.rhs.owner.parent)
        and _is_loaded(op.lhs)
        and not _is_loaded(op.rhs)
    )


def _is_loaded(value: SSAValue) -> bool:
    while isinstance(value, OpResult) and isinstance(value.op, arith.ExtSIOp | arith.ExtUIOp | arith.IndexCastOp):
        value = value.op.operands[0]
    return isinstance(value, OpResult) and isinstance(value.op, memref.LoadOp)


def _integer_power(op: Operation, context: _Legalization) -> OpRewriter | None:
    type_ = op.results[0].type
    if element_of(type_) == IntegerType(1):
        raise CompileError.at(op, "math.ipowi of i1 has no form in any target: extend it first")
    writer = context.writer(op, type_)
    base, power = map(writer.bits, op.operands)
    writer.replace(decompositions.integer_power(base, power, lambda inner: context.writer(inner, type_)).value)
    return writer


def _add_extended(op: Operation, context: _Legalization) -> OpRewriter | None:
    writer = context.writer(op, op.results[0].type)
    lhs, rhs = map(writer.bits, op.operands)
    total = lhs + rhs
    writer.replace(total.value, total.compare("ult", lhs).value)
    return writer


def _multiply_extended(op: Operation, context: _Legalization) -> OpRewriter | None:
    type_ = op.results[0].type
    writer = context.writer(op, type_)
    bits = writer.shape.integer_bits
    if bits not in (8, 16, 32):
        return None
    wide = context.writer(op, like(type_, IntegerType(2 * bits)))
    extend = arith.ExtSIOp if isinstance(op, arith.MulSIExtendedOp) else arith.ExtUIOp
    lhs, rhs = (writer.bits(operand).cast(extend, wide) for operand in op.operands)
    product = lhs * rhs
    halves = (product.cast(arith.TruncIOp, writer), (product >> bits).cast(arith.TruncIOp, writer))
    writer.replace(*(half.value for half in halves))
    return writer


def _shuffle(op: Operation, context: _Legalization) -> OpRewriter | None:
    """Threads of a warp exchange at least 32 bits."""
    shuffle = cast("ShuffleOp", op)
    type_ = shuffle.value.type
    if not isinstance(type_, IntegerType) or type_.width.data >= 32:
        return None
    rewriter = OpRewriter(op)
    wide = rewriter.insert(arith.ExtSIOp(shuffle.value, i32))
    moved = rewriter.insert(ShuffleOp(shuffle.mode.data, wide, shuffle.offset, shuffle.lanes))
    rewriter.replace(rewriter.insert(arith.TruncIOp(moved, type_)))
    return rewriter


def _reciprocal_root(op: Operation, context: _Legalization) -> OpRewriter | None:
    """Both correctly rounded: CPU instructions have 12 or 14 correct bits. Kernel languages have a function for f32,
    used if permitted (`afn`).
    """
    type_ = op.results[0].type
    if is_sixteen_bit_float(type_):
        return None
    flags = op.properties.get("fastmath")
    allowed = isinstance(flags, arith.FastMathFlagsAttr) and any(flag.value in ("afn", "fast") for flag in flags.data)
    if allowed and context.kind in GPU_KINDS and element_of(type_) == f32:
        return None
    # Two roundings in f32 reach 1.5 ulp; CPUs compute it in f64.
    is_wide = not allowed and context.kind in _CPUS and element_of(type_) == f32
    wide = like(type_, f64) if is_wide else type_
    writer = context.writer(op, wide)
    x = writer.op(arith.ExtFOp, op.operands, wide) if is_wide else op.operands[0]
    root = writer.op(math.SqrtOp, (x,), wide, op.properties)
    quotient = writer.op(arith.DivfOp, (writer.number(1.0).value, root), wide, op.properties)
    writer.replace(_truncated(writer, quotient, type_))
    return writer


def _in_double(op: Operation, context: _Legalization) -> OpRewriter | None:
    """`f32` in `f64`: the C library may be 2 ulp off."""
    del context
    type_ = op.results[0].type
    if element_of(type_) != f32:
        return None
    wide, rewriter = like(type_, f64), OpRewriter(op)
    value = rewriter.op(type(op), (rewriter.op(arith.ExtFOp, op.operands, wide),), wide, op.properties)
    rewriter.replace(_truncated(rewriter, value, type_))
    return rewriter


def _logistic_in_double(op: Operation, context: _Legalization) -> OpRewriter | None:
    """t / (1 + t) with t = exp(x): three roundings in `f32` reach 2.5 ulp."""
    power, total = (operand.owner for operand in op.operands)
    type_ = op.results[0].type
    if not isinstance(power, math.ExpOp) or element_of(type_) != f32 or logistic_of(power) is not op:
        return None
    wide = like(type_, f64)
    writer = context.writer(op, wide)
    t = writer.op(math.ExpOp, (writer.op(arith.ExtFOp, (power.operand,), wide),), wide, power.properties)
    below = writer.op(arith.AddfOp, (writer.number(1.0).value, t), wide, op.properties)
    writer.replace(_truncated(writer, writer.op(arith.DivfOp, (t, below), wide, op.properties), type_))
    for unused in (total, power):
        Rewriter.erase_op(cast("Operation", unused))
    return writer


def _float_to_integer_power(op: Operation, context: _Legalization) -> OpRewriter | None:
    """`pow` of `f64` also handles negative bases."""
    base, power = op.operands
    type_ = base.type
    wide = like(type_, f64)
    rewriter = OpRewriter(op)
    if type_ != wide:
        base = rewriter.op(arith.ExtFOp, (base,), wide)
    to_float = LANE_FORMS[arith.SIToFPOp] if isinstance(wide, VectorType) else arith.SIToFPOp
    exponent = rewriter.op(to_float, (power,), wide)
    result = rewriter.op(math.PowFOp, (base, exponent), wide, op.properties)
    rewriter.replace(_truncated(rewriter, result, type_))
    return rewriter


def _lane_by_lane(op: Operation, context: _Legalization) -> OpRewriter | None:
    type_ = op.results[0].type
    if not isinstance(type_, VectorType) or is_sixteen_bit_float(type_):
        return None
    rewriter = OpRewriter(op)
    rewriter.replace(
        rewriter.lane_by_lane(lambda scalars: rewriter.op(type(op), scalars, type_.element_type, op.properties))
    )
    return rewriter


def _has_extrema(op: Operation, context: _Legalization) -> bool:
    """Whether the x86 forms are shorter: not with fast-math flags."""
    flags = op.properties.get("fastmath")
    has_flags = isinstance(flags, arith.FastMathFlagsAttr) and bool(flags.data)
    is_wide = isinstance(element_of(op.results[0].type), Float32Type | Float64Type)
    return is_wide and not has_flags and decompositions.has_extrema(context.machine)


def _extremum(op: Operation, context: _Legalization) -> OpRewriter | None:
    type_ = op.results[0].type
    if not isinstance(type_, VectorType) or not _has_extrema(op, context):
        return None
    writer = context.writer(op, type_)
    lhs, rhs = map(writer.lanes, op.operands)
    known = [known_number(operand) for operand in op.operands]
    is_maximum = isinstance(op, arith.MaximumfOp)
    if known == [None, None]:
        result = decompositions.maximum(lhs, rhs, context.machine) if is_maximum else decompositions.minimum(lhs, rhs)
    elif None in known and any(str(number) == "0.0" for number in known):
        x, zero = (lhs, rhs) if known[0] is None else (rhs, lhs)
        form = decompositions.maximum_with_zero if is_maximum else decompositions.minimum_with_zero
        result = form(x, zero)
    else:
        return None
    writer.replace(result.value)
    return writer


def _extremum_of_lanes(op: Operation, context: _Legalization) -> OpRewriter | None:
    """On x86, where LLVM compares scalars in general registers."""
    kind = _EXTREMA.get(cast("vector.ReductionOp", op).kind.data.value)
    if kind is None or not _has_extrema(op, context):
        return None
    lanes = context.writer(op, op.operands[0].type).lanes(op.operands[0])
    rewriter = context.writer(op, op.results[0].type)
    result = decompositions.extremum_of_lanes(lanes, rewriter, is_maximum=kind is arith.MaximumfOp).value
    for accumulator in op.operands[1:]:
        result = rewriter.op(kind, (result, accumulator), result.type, {"fastmath": arith.FastMathFlagsAttr("none")})
    rewriter.replace(result)
    return rewriter


_EXTREMA: Final = {"maximumf": arith.MaximumfOp, "minimumf": arith.MinimumfOp}
"""Kind of reduction -> op that combines two lanes."""
_LIBRARY: Final = (math.AcoshOp, math.AsinhOp, math.AtanhOp, math.CbrtOp, math.ErfOp, math.ExpM1Op, math.Log1pOp)
"""LLVM has no intrinsics for these."""
_INEXACT: Final = (math.AcoshOp, math.AsinhOp, math.AtanhOp, math.CoshOp, math.Log10Op, math.SinhOp, math.TanhOp)
"""Up to 2 ulp off for `f32` in glibc."""
RULES: Final[tuple[tuple[tuple[str, ...], tuple[type[Operation], ...], Rule], ...]] = (
    (TARGETS, MULTIPLY_ADDS, _multiply_add),
    (TARGETS, (arith.NegfOp,), _negation),
    (TARGETS, _FROM_INTEGER, _integer_to_float),
    ((*TARGETS, UPSTREAM), tuple(_TO_INTEGER), _to_integer),
    (TARGETS, (vector.ReductionOp,), _reduction),
    (_LLVM, (arith.ExtFOp,), _extend_bf16),
    (_LLVM, (arith.TruncFOp,), _truncate_to_bf16),
    ((*TARGETS, UPSTREAM), (arith.ExtFOp,), _extend_small),
    ((*TARGETS, UPSTREAM), (*_BITCASTS, arith.ExtUIOp, LANE_FORMS[arith.ExtUIOp]), _truncate_to_small),
    # C, CUDA, OpenCL and Metal divide by functions, which index ranges often reduce to operators.
    ((*_LLVM, UPSTREAM), DIVISIONS, _division),
    ((UPSTREAM,), (LdexpOp,), _ldexp),
    ((*TARGETS, UPSTREAM), (math.IPowIOp,), _integer_power),
    (TARGETS, (arith.AddUIExtendedOp,), _add_extended),
    (_C_FAMILY, (arith.MulSIExtendedOp, arith.MulUIExtendedOp), _multiply_extended),
    (_C_FAMILY, (ShuffleOp,), _shuffle),
    (TARGETS, (math.RsqrtOp,), _reciprocal_root),
    (TARGETS, (math.FPowIOp,), _float_to_integer_power),
    (("c",), _INEXACT, _in_double),
    (("c",), (arith.DivfOp,), _logistic_in_double),
    (_LLVM, _LIBRARY, _lane_by_lane),
    (_LLVM, (arith.MaximumfOp, arith.MinimumfOp), _extremum),
    (_LLVM, (vector.ReductionOp,), _extremum_of_lanes),
)
"""Kinds of target, operations that they lack for some types, and the rewrite. The first applicable rule is used;
without one, arithmetic on 16-bit floats is widened."""


@cache
def _rules_of(kind: str) -> Mapping[type[Operation], tuple[Rule, ...]]:
    found: dict[type[Operation], tuple[Rule, ...]] = {}
    for kinds, ops, rule in RULES:
        if kind in kinds:
            for op in ops:
                found[op] = (*found.get(op, ()), rule)
    return found
