"""`math`: elementary functions, computed in double and rounded to the type of the op.

The result is within half a unit in the last place of the type, plus what the C library is off in double.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import Float64Type

from weft.interp import scalar_functions as functions
from weft.interp.elementwise import elementwise, integer_width, lane_type

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from weft.interp.emitter import Emitter


def _function(op_class: type[Operation], function: Callable[..., float], fallback: Callable[..., object]) -> None:
    """A function of Python's `math`, NumPy's where that one raises."""
    helper = functions.total(function, fallback)
    elementwise(
        op_class,
        template=lambda emitter, op, operands: f"{emitter.helper(helper)}({', '.join(operands)})",
    )


for _op_class, _math_function, _numpy_function in (
    (math_dialect.AcosOp, math.acos, np.arccos),
    (math_dialect.AcoshOp, math.acosh, np.arccosh),
    (math_dialect.AsinOp, math.asin, np.arcsin),
    (math_dialect.AsinhOp, math.asinh, np.arcsinh),
    (math_dialect.AtanOp, math.atan, np.arctan),
    (math_dialect.AtanhOp, math.atanh, np.arctanh),
    (math_dialect.Atan2Op, math.atan2, np.arctan2),
    (math_dialect.CbrtOp, math.cbrt, np.cbrt),
    (math_dialect.CosOp, math.cos, np.cos),
    (math_dialect.CoshOp, math.cosh, np.cosh),
    (math_dialect.ErfOp, math.erf, np.sign),
    (math_dialect.ExpOp, math.exp, np.exp),
    (math_dialect.Exp2Op, math.exp2, np.exp2),
    (math_dialect.ExpM1Op, math.expm1, np.expm1),
    (math_dialect.LogOp, math.log, np.log),
    (math_dialect.Log10Op, math.log10, np.log10),
    (math_dialect.Log1pOp, math.log1p, np.log1p),
    (math_dialect.Log2Op, math.log2, np.log2),
    (math_dialect.PowFOp, math.pow, np.power),
    (math_dialect.FPowIOp, math.pow, np.power),
    (math_dialect.SinOp, math.sin, np.sin),
    (math_dialect.SinhOp, math.sinh, np.sinh),
    (math_dialect.SqrtOp, math.sqrt, np.sqrt),
    (math_dialect.TanOp, math.tan, np.tan),
    (math_dialect.TanhOp, math.tanh, np.tanh),
    (math_dialect.CopySignOp, math.copysign, np.copysign),
    (math_dialect.RsqrtOp, functions.reciprocal_root, np.sqrt),
):
    _function(_op_class, _math_function, _numpy_function)


def _integral(op_class: type[Operation], rounding: Callable[[float], int]) -> None:
    elementwise(
        op_class,
        template=lambda emitter, op, operands: (
            f"{emitter.helper(functions.to_integral)}({operands[0]}, {emitter.helper(rounding)})"
        ),
        finish=False,
    )


_integral(math_dialect.CeilOp, math.ceil)
_integral(math_dialect.FloorOp, math.floor)
_integral(math_dialect.TruncOp, math.trunc)
_integral(math_dialect.RoundEvenOp, round)
_integral(math_dialect.RoundOp, functions.half_away)

elementwise(math_dialect.AbsFOp, template="abs({0})", finish=False)
elementwise(math_dialect.AbsIOp, template="abs({0})")


def fma_template(emitter: Emitter, op: Operation, operands: Sequence[str]) -> str:
    """`a * b + c` rounded once; the op's own rounding follows for what is narrower than double."""
    is_double = isinstance(lane_type(op.results[0].type), Float64Type)
    function = functions.fma_double if is_double else functions.fma_narrow
    return f"{emitter.helper(function)}({', '.join(operands)})"


elementwise(math_dialect.FmaOp, template=fma_template)


def _bits(text: str) -> Callable[[Emitter, Operation, Sequence[str]], str]:
    """A count over the bits of `{0}`, unsigned; `{1}` is the width."""

    def rule(emitter: Emitter, op: Operation, operands: Sequence[str]) -> str:
        width = integer_width(lane_type(op.results[0].type))
        return text.format(f"({operands[0]} & {(1 << width) - 1})", width)

    return rule


elementwise(math_dialect.CountLeadingZerosOp, template=_bits("{1} - {0}.bit_length()"))
elementwise(math_dialect.CountTrailingZerosOp, template=_bits("(({0} & -{0}).bit_length() - 1 if {0} else {1})"))
elementwise(math_dialect.CtPopOp, template=_bits("{0}.bit_count()"))
elementwise(
    math_dialect.IPowIOp,
    template=lambda emitter, op, operands: (
        f"{emitter.helper(functions.int_power)}({emitter.operation_name(op)}, {operands[0]}, {operands[1]}, "
        f"{integer_width(lane_type(op.results[0].type))})"
    ),
)
