"""Mathematical functions, by the table of the language: precise ones, or fast ones where an op allows them (`afn`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xdsl.dialects import arith, math, vector

from weft.backends.c_family import expression as c
from weft.backends.c_family.arith_ops import plain_float, wrapped
from weft.backends.c_family.expression import number
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from weft.backends.c_family.emitter import FunctionEmitter, Rules

_FUNCTIONS: Final = (
    *(math.AbsFOp, math.AcosOp, math.AcoshOp, math.AsinOp, math.AsinhOp, math.AtanOp, math.Atan2Op, math.AtanhOp),
    *(math.CbrtOp, math.CeilOp, math.CopySignOp, math.CosOp, math.CoshOp, math.ErfOp, math.ExpOp, math.Exp2Op),
    *(math.ExpM1Op, math.FloorOp, math.FmaOp, math.LogOp, math.Log10Op, math.Log1pOp, math.Log2Op, math.PowFOp),
    *(math.RoundOp, math.RoundEvenOp, math.RsqrtOp, math.SinOp, math.SinhOp, math.SqrtOp, math.TanOp, math.TanhOp),
    *(math.TruncOp, vector.FMAOp),
)
_BITS: Final[dict[type[Operation], str]] = {
    math.CountLeadingZerosOp: "weft_clz",
    math.CountTrailingZerosOp: "weft_ctz",
    math.CtPopOp: "weft_popcount",
}


def _is_fast(op: Operation) -> bool:
    flags = op.properties.get("fastmath")
    return isinstance(flags, arith.FastMathFlagsAttr) and any(f.value in ("afn", "fast") for f in flags.data)


def emit_function(emitter: FunctionEmitter, op: Operation) -> None:
    element = plain_float(emitter, op)
    name = op.name.partition(".")[2]
    operands = tuple(emitter.exprs(op))
    fast = emitter.language.fast_functions.get(name) if element == "f32" and _is_fast(op) else None
    emitter.define(op.results[0], c.call(fast or _function(emitter, op, name, element), operands, element), op)


def _function(emitter: FunctionEmitter, op: Operation, name: str, element: str) -> str:
    spelled = emitter.language.functions.get(name, ("", ""))[element == "f64"]
    if not spelled:
        raise CompileError.at(op, f"{emitter.language.name} has no function for {op.name} of {element}")
    if spelled in emitter.language.helpers:
        emitter.module.helper(spelled)
    return spelled


def emit_bits(emitter: FunctionEmitter, op: Operation) -> None:
    element = emitter.element(op.results[0].type, op)
    if element in ("i1", "index"):
        raise CompileError.at(op, f"{op.name} of {element} has no form in {emitter.language.name}")
    helper = emitter.module.helper(f"{_BITS[type(op)]}_{element}")
    emitter.define(op.results[0], c.call(helper, tuple(emitter.exprs(op)), element), op)


def emit_absolute(emitter: FunctionEmitter, op: Operation) -> None:
    """The smallest number is its own absolute value."""
    element = emitter.element(op.results[0].type, op)
    if element in ("i1", "index"):
        raise CompileError.at(op, f"{op.name} of {element} has no form in {emitter.language.name}")
    operand = emitter.atom(op.operands[0], op)
    negative = wrapped(emitter, op, "-", number(0, "i32"), operand, element)
    below = c.binary("<", operand, number(0, "i32"), "i1")
    emitter.define(op.results[0], c.conditional(below, negative, operand), op)


RULES: Final[Rules] = {
    **dict.fromkeys(_FUNCTIONS, emit_function),
    **dict.fromkeys(_BITS, emit_bits),
    math.AbsIOp: emit_absolute,
}
