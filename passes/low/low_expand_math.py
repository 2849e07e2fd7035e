"""low-expand-math: elementary functions become polynomial code on lanes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, ModuleOp, VectorType
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from weft.dialects.low import PARAMS
from weft.passes.low.elementary import error_function, exponential, hyperbolic, logarithm
from weft.passes.low.elementary.lanes import F32, F64, Constants, Format, Writer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xdsl.ir import Attribute, Operation, SSAValue

    from weft.passes.low.elementary.lanes import Formula

FORMULAS: Final[Mapping[type[Operation], Formula]] = {
    math.ExpOp: exponential.exp,
    math.Exp2Op: exponential.exp2,
    math.ExpM1Op: exponential.expm1,
    math.LogOp: logarithm.log,
    math.Log2Op: logarithm.log2,
    math.Log10Op: logarithm.log10,
    math.Log1pOp: logarithm.log1p,
    math.TanhOp: hyperbolic.tanh,
    math.ErfOp: error_function.erf,
}


@dataclass(frozen=True)
class LowExpandMathPass(ModulePass):
    """Replace elementary functions of vectors by formulas of arithmetic, comparisons and selections:

    ```mlir
    %e = math.exp %x : vector<16xf32>   ->   %0 = arith.mulf %x, %log2e {low.ordered} : vector<16xf32>   ...
    ```
    The formulas have no branches, hold over the whole range (NaN, infinities, zeros with their signs, subnormal
    arguments and results), and stay within the bounds of `docs/decisions/0015-elementary-functions.md`, with and
    without fused multiply-adds. Vectors of `f16` and `bf16` are computed in `f32` and rounded. Scalars, other types,
    and functions without a formula stay.
    """

    name = "low-expand-math"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp) and PARAMS in function.attributes and function.body.blocks:
                expand(function)


def expand(function: FuncOp) -> None:
    """Expand the elementary functions of one low function."""
    calls = [op for op in function.walk() if type(op) in FORMULAS and isinstance(op.results[0].type, VectorType)]
    if calls:
        constants = Constants(function.body.block)
        for call in calls:
            _expand(call, constants)


_FORMATS: Final[Mapping[type[Attribute], Format]] = {
    Float16Type: F32,
    BFloat16Type: F32,
    Float32Type: F32,
    Float64Type: F64,
}


def _expand(op: Operation, constants: Constants) -> None:
    (result,) = op.results
    type_ = result.type
    format_ = _FORMATS.get(type(type_.element_type if isinstance(type_, VectorType) else type_))
    block = op.parent
    if format_ is None or block is None:
        return
    writer = Writer(op, block, constants, format_, type_)
    is_small = writer.float_type != type_
    operands: list[SSAValue] = list(op.operands)
    if is_small:
        operands = [writer.op(arith.ExtFOp, (operand,), writer.float_type) for operand in operands]
    value = FORMULAS[type(op)](*(writer.lanes(operand) for operand in operands)).value
    if is_small:
        value = writer.op(arith.TruncFOp, (value,), type_)
    value.name_hint = result.name_hint
    result.replace_all_uses_with(value)
    op.detach()
    op.erase()
