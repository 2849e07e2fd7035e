"""low-expand-math: expand elementary functions into polynomial approximations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from xdsl.context import Context
from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    ModuleOp,
    VectorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.dialects.integer_arith import known_number
from weft.dialects.low import PARAMS
from weft.dialects.low_kernel import kernel_of
from weft.dialects.traversal import operations_in
from weft.passes.low.elementary import formulas, hyperbolic
from weft.passes.low.elementary.lanes import F32, F64, Constants, Writer, shape_of
from weft.passes.low.op_rewriter import element_of, is_sixteen_bit_float
from weft.support.cpu_instructions import has_intrinsic
from weft.support.gpu_machine import GPU_KINDS
from weft.support.statistics import Statistic
from weft.support.target import Target

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from xdsl.ir import Attribute, Operation, SSAValue

    from weft.passes.low.elementary.lanes import Format, Formula, Shape

_EXPANDED: Final = Statistic("low-expand-math", "functions-expanded", "elementary functions replaced by formulas")
FORMULAS: Final[Mapping[type[Operation], Formula]] = {
    math.ExpOp: formulas.exp,
    math.Exp2Op: formulas.exp2,
    math.ExpM1Op: formulas.expm1,
    math.LogOp: formulas.log,
    math.Log2Op: formulas.log2,
    math.Log10Op: formulas.log10,
    math.Log1pOp: formulas.log1p,
    math.SinOp: formulas.sin,
    math.CosOp: formulas.cos,
    math.TanhOp: formulas.tanh,
    math.ErfOp: formulas.erf,
    math.PowFOp: formulas.pow_in_double,
    math.SinhOp: hyperbolic.sinh,
    math.CoshOp: hyperbolic.cosh,
    math.AsinhOp: hyperbolic.asinh,
    math.AcoshOp: hyperbolic.acosh,
    math.AtanhOp: hyperbolic.atanh,
}
LACKING: Final[Mapping[str, Collection[type[Operation]]]] = {"metal": (math.ErfOp, math.ExpM1Op, math.Log1pOp)}
"""Kind of target with kernels -> functions that its language lacks."""
MULTIPLY_ADDS: Final = (math.FmaOp, vector.FMAOp)
EXPANDED: Final = (*FORMULAS, *MULTIPLY_ADDS)
_IN_DOUBLE: Final = (math.PowFOp, math.SinhOp, math.CoshOp, math.AsinhOp, math.AcoshOp, math.AtanhOp)
"""Narrower types are computed in `f64`; there is no formula for `f64` itself."""
_SIMPLE_POWERS: Final = (-1.0, 0.0, 0.5, 1.0, 2.0)
"""LLVM has a shorter form."""


@dataclass(frozen=True)
class LowExpandMathPass(ModulePass):
    """Replace elementary functions by formulas of arithmetic, comparisons and selections:

    ```mlir
    %e = math.exp %x : vector<16xf32>   ->   %0 = arith.mulf %x, %log2e {low.ordered} : vector<16xf32>   ...
    ```
    The formulas hold over the whole range (NaN, infinities, signed zeros, subnormal arguments and results), with and
    without fused multiply-adds, within the bounds of `docs/decisions/0016-elementary-functions.md`, and without
    branches, except that `sin` and `cos` leave large arguments to the C library
    (`docs/decisions/0087-sines-and-transposed-tiles.md`). `1 + erf(x)` of f32, as in gelu, has a special formula, and
    `exp(x) / (1 + exp(x))` the logistic function's, a shorter one if all uses of the quotient round it to 16 bits.
    `f16` and `bf16` are computed in `f32`, hyperbolic functions and inverses below `f64` in `f64`; fused multiply-adds
    are rounded once. Scalars and vectors share formulas: results do not depend on the schedule, and LLVM can vectorize
    loops. Other types and functions remain calls of the C library.

    With a target (`low-expand-math{target="llvm -mcpu=cascadelake"}`), `low.ldexp` scales vectors of whole AVX-512
    registers, with the same results. On targets that run kernels, only kernels are expanded, and only functions that
    the language lacks.

    Requires: low functions.

    Leaves: low functions without the elementary functions that have a formula.
    """

    name = "low-expand-math"

    target: str = ""
    """As in `weft.build`; without one, no instruction is assumed."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kind = self.target.partition(" ")[0]
        for_kernels = kind in GPU_KINDS
        wanted = LACKING.get(kind, ()) if for_kernels else EXPANDED
        scales = _bytes_that_scale(self.target)
        for function in op.ops:
            if not isinstance(function, FuncOp) or not function.body.blocks:
                continue
            if kernel_of(function) is not None if for_kernels else PARAMS in function.attributes:
                expand(function, scales, wanted)


def _bytes_that_scale(target: str) -> int:
    """0 without such an instruction, or a named CPU: the code must run on any."""
    if "-mcpu=" not in target:
        return 0
    return 64 if has_intrinsic(Target.parse(target), "x86.avx512.mask.scalef.ps.512") else 0


def expand(function: FuncOp, scales: int = 0, wanted: Collection[type[Operation]] = EXPANDED) -> None:
    """Expand `wanted` functions. `scales`: bytes of vectors that one instruction scales by powers of two, or 0."""
    calls = [op for op in operations_in(function) if type(op) in wanted]
    if calls:
        constants = Constants(function.body.block)
        for call in calls:
            if isinstance(call, MULTIPLY_ADDS):
                expand_multiply_add(call, constants)
            else:
                _expand(call, constants, scales)


_FORMATS: Final[Mapping[type[Attribute], Format]] = {
    Float16Type: F32,
    BFloat16Type: F32,
    Float32Type: F32,
    Float64Type: F64,
}
"""The format in which a type is computed."""


def _shape(type_: Attribute, *, in_double: bool) -> Shape | None:
    extents = type_.get_shape() if isinstance(type_, VectorType) else (0,)
    format_ = _FORMATS.get(type(element_of(type_)))
    if format_ is None or len(extents) != 1 or (in_double and format_ is F64):
        return None
    return shape_of(F64 if in_double else format_, extents[0])


def _expand(op: Operation, constants: Constants, scales: int) -> None:
    type_: Attribute = op.results[0].type
    shape = _shape(type_, in_double=isinstance(op, _IN_DOUBLE))
    if shape is None or (isinstance(op, math.PowFOp) and known_number(op.rhs) in _SIMPLE_POWERS):
        return
    if isinstance(op, math.ErfOp) and isinstance(element_of(type_), Float32Type):
        total = _one_plus(op)
        if total is not None:
            _replace(total, formulas.one_plus_erf, constants, shape, operands=[op.operand])
            Rewriter.erase_op(op)
            return
    if isinstance(op, math.ExpOp):
        quotient = logistic_of(op)
        if quotient is not None:
            total = quotient.rhs.owner
            formula = formulas.short_logistic if _is_narrowed(quotient.result) else formulas.logistic
            _replace(quotient, formula, constants, shape, operands=[op.operand])
            Rewriter.erase_op(cast("Operation", total))
            Rewriter.erase_op(op)
            return
    has_ldexp = scales > 0 and shape.bytes > 0 and shape.bytes % scales == 0
    _replace(op, FORMULAS[type(op)], constants, shape, has_ldexp=has_ldexp)


def logistic_of(op: math.ExpOp) -> arith.DivfOp | None:
    """t / (1 + t) of an otherwise unused exponential t."""
    users = {use.operation for use in op.result.uses}
    total = next((user for user in users if isinstance(user, arith.AddfOp)), None)
    quotient = next((user for user in users if isinstance(user, arith.DivfOp)), None)
    if total is None or quotient is None or len(users) != 2 or total.result.has_more_than_one_use():
        return None
    is_quotient = quotient.lhs is op.result and quotient.rhs is total.result
    other = total.rhs if total.lhs is op.result else total.lhs
    return quotient if is_quotient and known_number(other) == 1.0 else None


def _is_narrowed(value: SSAValue) -> bool:
    """Whether all uses round to floats of 16 bits."""
    users = [use.operation for use in value.uses]
    return all(isinstance(user, arith.TruncFOp) and is_sixteen_bit_float(user.result.type) for user in users)


def _one_plus(op: math.ErfOp) -> Operation | None:
    users = [use.operation for use in op.result.uses]
    if len(users) != 1 or not isinstance(users[0], arith.AddfOp):
        return None
    (other,) = (operand for operand in users[0].operands if operand is not op.result)
    return users[0] if known_number(other) == 1.0 else None


def expand_multiply_add(op: Operation, constants: Constants, *, has_double: bool = True) -> Writer | None:
    """None unless floats have 16 bits."""
    type_ = op.results[0].type
    if not is_sixteen_bit_float(type_):
        return None
    shape = _shape(type_, in_double=has_double and isinstance(element_of(type_), BFloat16Type))
    return None if shape is None else _replace(op, formulas.multiply_add, constants, shape)


def _replace(
    op: Operation,
    formula: Formula,
    constants: Constants,
    shape: Shape,
    *,
    has_ldexp: bool = False,
    operands: Sequence[SSAValue] | None = None,
) -> Writer:
    type_: Attribute = op.results[0].type
    _EXPANDED.add()
    writer = Writer(op, constants, shape, has_ldexp=has_ldexp)
    is_small = writer.float_type != type_
    operands = op.operands if operands is None else operands
    if is_small:
        operands = [writer.op(arith.ExtFOp, (operand,), writer.float_type) for operand in operands]
    value = formula(*(writer.lanes(operand) for operand in operands)).value
    writer.replace(writer.op(arith.TruncFOp, (value,), type_) if is_small else value)
    return writer
