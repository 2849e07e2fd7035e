"""`arith` and `math`, on scalars and on the lanes of vectors: an op has one expression for both.

Integers wrap to their width, floating-point results are rounded to their type at each op. What has no meaning is an
error where it happens: division by zero, a quotient that overflows, a shift by the width or more, a float that does not
fit the integer it is converted to. Elementary functions are computed in double and rounded to the type of the op: the
result is within half a unit in the last place of the type, plus what the C library is off in double.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
    VectorType,
)

from weft.dialects.integer_arith import divide_truncating, remainder_truncating
from weft.dialects.intervals import INTERVALS_OF_ARITH, UNBOUNDED, Interval, union_of_intervals
from weft.interp import scalar_functions as functions
from weft.interp.registry import emits
from weft.interp.scalar_functions import ROUNDINGS, wrap
from weft.interp.values import array_of, finisher
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation, SSAValue

    from weft.interp.emitter import Emitter


Template: TypeAlias = "Callable[[Emitter, Operation, Sequence[str]], str]"
"""(emitter, op, one expression per operand) -> the expression of the mathematical result. Operand expressions are names
or literals and may be repeated."""
IntervalRule: TypeAlias = "Callable[[Interval], Interval]"
"""The range of the result of a conversion, by that of its operand."""

TEMPLATES: dict[str, tuple[Template, bool]] = {}
"""Op name -> its template, and whether its result is then rounded or wrapped."""


def lane_type(type_: Attribute) -> Attribute:
    """The type of a scalar, or of the lanes of a vector."""
    return type_.element_type if isinstance(type_, VectorType) else type_


def integer_width(type_: Attribute) -> int:
    """The width of an integer type; index counts as 64."""
    return type_.width.data if isinstance(type_, IntegerType) else 64


def interval_fits(interval: Interval, type_: Attribute) -> bool:
    """Whether integers in `interval` need no wrapping in `type_`."""
    if isinstance(type_, IndexType):
        return True
    if not isinstance(type_, IntegerType) or interval[0] is None or interval[1] is None:
        return False
    half = 1 << (type_.width.data - 1)
    return -half <= interval[0] and interval[1] < half


def elementwise(
    *op_classes: type[Operation],
    template: Template | str,
    finish: bool = True,
    interval: IntervalRule | None = None,
    silent: bool = False,
) -> None:
    """Give ops their meaning by an expression.

    A `template` given as text has `{0}`, `{1}`, ... for the operands. `finish`: round or wrap the result to its type.
    `interval`: the range of a converted integer (`INTERVALS_OF_ARITH` has those of arithmetic).
    `silent`: Python would compute the expression on None too, so unwritten operands need a check.
    """
    rule: Template = _from_text(template) if isinstance(template, str) else template
    TEMPLATES.update((op_class.name, (rule, finish)) for op_class in op_classes)

    def emit(emitter: Emitter, op: Operation) -> None:
        if isinstance(op.results[0].type, VectorType):
            _emit_lanes(emitter, op, rule, finish, silent)
        else:
            _emit_scalar(emitter, op, rule, finish, interval, silent)

    emits(*op_classes)(emit)


def _from_text(text: str) -> Template:
    return lambda emitter, op, operands: text.format(*operands)


def check_lane_type(op: Operation, type_: Attribute) -> None:
    """Refuse what the interpreter has no arithmetic for. Raises `CompileError`."""
    known = IntegerType | IndexType | Float16Type | BFloat16Type | Float32Type | Float64Type
    if not isinstance(lane_type(type_), known):
        raise CompileError.at(op, f"the interpreter cannot compute '{op.name}' on {type_}")


def _read(emitter: Emitter, op: Operation, operand: SSAValue, silent: bool) -> str:
    return emitter.written(operand, op) if silent else emitter.value(operand)


def _emit_scalar(
    emitter: Emitter, op: Operation, rule: Template, finish: bool, interval: IntervalRule | None, silent: bool
) -> None:
    result = op.results[0]
    check_lane_type(op, result.type)
    text = rule(emitter, op, [_read(emitter, op, operand, silent) for operand in op.operands])
    span = UNBOUNDED
    if interval is not None:
        span = interval(emitter.range_of(op.operands[0]))
    elif (of_two := INTERVALS_OF_ARITH.get(type(op))) is not None:
        span = of_two(*(emitter.range_of(operand) for operand in op.operands))
    assign(emitter, op, result, text, finish=finish, span=span)


def assign(
    emitter: Emitter,
    op: Operation,
    result: SSAValue,
    text: str,
    *,
    finish: bool = True,
    span: Interval = UNBOUNDED,
) -> None:
    """Lines that assign an expression to a scalar result, rounded or wrapped to its type when `finish`.

    `span` is what is known about an integer before it is wrapped.
    """
    type_ = result.type
    if not isinstance(type_, IntegerType | IndexType):
        name = emitter.define(result)
        emitter.line(rounded(emitter, name, text, type_) if finish else f"{name} = {text}", op)
    elif integer_width(type_) == 1:
        name = emitter.define(result)
        emitter.line(f"{name} = ({text}) & 1 == 1" if finish else f"{name} = {text}", op)
    else:
        fits = interval_fits(span, type_)
        name = emitter.define(result, span if fits and span != UNBOUNDED else None)
        emitter.line(f"{name} = {text}", op)
        if finish and not fits:
            half = 1 << (integer_width(type_) - 1)
            emitter.line(
                f"if not {-half} <= {name} < {half}: {name} = {emitter.helper(wrap)}({name}, {integer_width(type_)})",
                op,
            )


def rounded(emitter: Emitter, name: str, text: str, type_: Attribute) -> str:
    """A line that assigns a floating-point expression, rounded to its type, to `name`."""
    if isinstance(type_, Float32Type):
        return f"_cell[0] = {text}; {name} = _cell[0]"
    return f"{name} = {finished_scalar(emitter, text, type_)}"


def finished_scalar(emitter: Emitter, text: str, type_: Attribute) -> str:
    """An expression rounded or wrapped to the type of a scalar."""
    rounding = ROUNDINGS.get(type(type_))
    if rounding is not None:
        return f"{emitter.helper(rounding)}({text})"
    if not isinstance(type_, IntegerType):
        return text
    width = integer_width(type_)
    return f"({text}) & 1 == 1" if width == 1 else f"{emitter.helper(wrap)}({text}, {width})"


def _emit_lanes(emitter: Emitter, op: Operation, rule: Template, finish: bool, silent: bool) -> None:
    """Each lane by a comprehension; a scalar operand (the condition of a select) stands for all lanes."""
    check_lane_type(op, op.results[0].type)
    lanes: list[str] = []
    sources: list[str] = []
    operands: list[str] = []
    for operand in op.operands:
        if isinstance(operand.type, VectorType):
            lanes.append(f"_{len(lanes)}")
            sources.append(_read(emitter, op, operand, silent))
            operands.append(lanes[-1])
        else:
            operands.append(_read(emitter, op, operand, silent))
    text = rule(emitter, op, operands)
    name = emitter.define(op.results[0])
    source = f"zip({', '.join(sources)})" if len(sources) > 1 else sources[0]
    loop = f"for {', '.join(lanes)} in {source}"
    emitter.line(f"{name} = {finished_lanes(emitter, text, loop, lane_type(op.results[0].type), finish)}", op)


def finished_lanes(emitter: Emitter, text: str, loop: str, type_: Attribute, finish: bool = True) -> str:
    """A list of an expression over a comprehension `loop`, rounded or wrapped to `type_` when `finish`."""
    if not finish or isinstance(type_, IndexType | Float64Type):
        return f"[{text} {loop}]"
    if isinstance(type_, Float32Type):
        return f"{emitter.helper(array)}('f', [{text} {loop}]).tolist()"
    return f"[{finished_scalar(emitter, text, type_)} {loop}]"


def literal(value: float | int | bool) -> str | None:
    """The Python literal of a scalar, or None when there is no short one (infinities and NaN)."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    text = repr(value)
    return f"({text})" if text.startswith("-") else text


@emits(arith.ConstantOp)
def emit_constant(emitter: Emitter, op: arith.ConstantOp) -> None:
    type_, attribute = op.result.type, op.value
    if isinstance(attribute, DenseIntOrFPElementsAttr):
        _emit_dense(emitter, op, attribute)
        return
    if not isinstance(attribute, IntegerAttr | FloatAttr):
        raise CompileError.at(op, f"the interpreter cannot read the constant {attribute}")
    check_lane_type(op, type_)
    value = finisher(type_)(attribute.value.data)
    text = literal(value)
    interval = (value, value) if isinstance(value, int) and not isinstance(value, bool) else None
    emitter.bind(op.result, emitter.constant(value, "number") if text is None else text, interval)


def _emit_dense(emitter: Emitter, op: arith.ConstantOp, attribute: DenseIntOrFPElementsAttr[Any]) -> None:
    type_ = cast("VectorType[Attribute] | TensorType[Attribute]", op.result.type)
    check_lane_type(op, type_.element_type)
    values = [*map(finisher(type_.element_type), attribute.get_values())]
    if isinstance(type_, TensorType):
        tensor = array_of(values, type_.get_shape(), type_.element_type)
        tensor.flags.writeable = False
        emitter.bind(op.result, emitter.constant(tensor, "tensor"))
    else:
        emitter.bind(op.result, emitter.constant(values, "lanes"))


def combined(emitter: Emitter, op: Operation, combining: type[Operation], left: str, right: str) -> str:
    """The expression of two scalars combined by an op of `arith`, as `op` does, whose first result has their type."""
    rule, finish = TEMPLATES[combining.name]
    text = rule(emitter, op, [left, right])
    return finished_scalar(emitter, text, op.results[0].type) if finish else text


# Floating point

elementwise(arith.AddfOp, template="{0} + {1}")
elementwise(arith.SubfOp, template="{0} - {1}")
elementwise(arith.MulfOp, template="{0} * {1}")
elementwise(arith.NegfOp, template="-{0}", finish=False)


def _call(function: object) -> Template:
    """A template that calls a Python function on the operands."""
    return lambda emitter, op, operands: f"{emitter.helper(function)}({', '.join(operands)})"


def _guarded(fast: str, function: object) -> Template:
    """A template with a fast path in line, `{call}` where the function must decide."""

    def rule(emitter: Emitter, op: Operation, operands: Sequence[str]) -> str:
        return fast.format(*operands, call=f"{emitter.helper(function)}({', '.join(operands)})")

    return rule


elementwise(arith.DivfOp, template=_guarded("{0} / {1} if {1} else {call}", functions.divide))
elementwise(
    arith.MaximumfOp,
    template=_guarded("({0} if {0} > {1} else {1} if {1} > {0} else {call})", functions.maximum),
    finish=False,
)
elementwise(
    arith.MinimumfOp,
    template=_guarded("({0} if {0} < {1} else {1} if {1} < {0} else {call})", functions.minimum),
    finish=False,
)
elementwise(arith.MaxnumfOp, template=_call(functions.maximum_number), finish=False, silent=True)
elementwise(arith.MinnumfOp, template=_call(functions.minimum_number), finish=False, silent=True)

# Integers


def _signed(type_: Attribute, operand: str) -> str:
    """The signed value: that of i1 is 0 or -1."""
    return f"(-{operand})" if integer_width(lane_type(type_)) == 1 else operand


def _unsigned(type_: Attribute, operand: str) -> str:
    return f"({operand} & {(1 << integer_width(lane_type(type_))) - 1})"


def _on_signed(text: str) -> Template:
    return lambda emitter, op, operands: text.format(*(_signed(op.results[0].type, x) for x in operands))


def _on_unsigned(text: str) -> Template:
    return lambda emitter, op, operands: text.format(*(_unsigned(op.results[0].type, x) for x in operands))


elementwise(arith.AddiOp, template="{0} + {1}")
elementwise(arith.SubiOp, template="{0} - {1}")
elementwise(arith.MuliOp, template="{0} * {1}")
elementwise(arith.AndIOp, template="{0} & {1}", finish=False)
elementwise(arith.OrIOp, template="{0} | {1}", finish=False)
elementwise(arith.XOrIOp, template="{0} ^ {1}", finish=False)
elementwise(arith.MaxSIOp, template=_on_signed("{0} if {0} >= {1} else {1}"))
elementwise(arith.MinSIOp, template=_on_signed("{0} if {0} <= {1} else {1}"))
elementwise(arith.MaxUIOp, template=_on_unsigned("{0} if {0} >= {1} else {1}"))
elementwise(arith.MinUIOp, template=_on_unsigned("{0} if {0} <= {1} else {1}"))
elementwise(arith.DivUIOp, template=_on_unsigned("{0} // {1}"))
elementwise(arith.CeilDivUIOp, template=_on_unsigned("-(-{0} // {1})"))
elementwise(arith.RemUIOp, template=_on_unsigned("{0} % {1}"))


def _quotient(text: str, positive: str) -> Template:
    """A signed division; `positive` is its text where both sides are known to be at least 0."""

    def rule(emitter: Emitter, op: Operation, operands: Sequence[str]) -> str:
        type_ = op.results[0].type
        lows = [emitter.range_of(operand)[0] for operand in op.operands]
        if all(low is not None and low >= 0 for low in lows):
            return positive.format(*operands)
        signed = [_signed(type_, x) for x in operands]
        quotient = text.format(*signed, divide=emitter.helper(divide_truncating))
        if isinstance(lane_type(type_), IndexType):
            return quotient
        return emitter.call(functions.check_overflow, op, quotient, integer_width(lane_type(type_)))

    return rule


elementwise(arith.DivSIOp, template=_quotient("{divide}({0}, {1})", "{0} // {1}"))
elementwise(arith.FloorDivSIOp, template=_quotient("{0} // {1}", "{0} // {1}"))
elementwise(arith.CeilDivSIOp, template=_quotient("-(-{0} // {1})", "-(-{0} // {1})"))


def _remainder(emitter: Emitter, op: Operation, operands: Sequence[str]) -> str:
    lows = [emitter.range_of(operand)[0] for operand in op.operands]
    if all(low is not None and low >= 0 for low in lows):
        return f"{operands[0]} % {operands[1]}"
    signed = ", ".join(_signed(op.results[0].type, x) for x in operands)
    return f"{emitter.helper(remainder_truncating)}({signed})"


elementwise(arith.RemSIOp, template=_remainder)


def _shift(text: str) -> Template:
    """`{0}` shifted by the checked `{1}`; `{2}` is the unsigned value of `{0}`."""

    def rule(emitter: Emitter, op: Operation, operands: Sequence[str]) -> str:
        type_ = op.results[0].type
        width = integer_width(lane_type(type_))
        amount = emitter.call(functions.check_shift, op, operands[1], width)
        return text.format(_signed(type_, operands[0]), amount, _unsigned(type_, operands[0]))

    return rule


elementwise(arith.ShLIOp, template=_shift("{0} << {1}"))
elementwise(arith.ShRUIOp, template=_shift("{2} >> {1}"))
elementwise(arith.ShRSIOp, template=_shift("{0} >> {1}"))


def _extended(op_class: type[Operation], low: str, high: str, signed: bool) -> None:
    """Ops with two results: what fits, and what does not."""

    def emit(emitter: Emitter, op: Operation) -> None:
        type_ = op.operands[0].type
        if isinstance(type_, VectorType):
            raise CompileError.at(op, f"the interpreter cannot compute '{op.name}' on {type_}")
        check_lane_type(op, type_)
        exact = _signed if signed else _unsigned
        operands = [exact(type_, emitter.value(operand)) for operand in op.operands]
        width = integer_width(type_)
        whole = emitter.fresh("whole")
        emitter.line(f"{whole} = {low.format(*operands)}", op)
        assign(emitter, op, op.results[0], whole)
        assign(emitter, op, op.results[1], high.format(whole, width))

    emits(op_class)(emit)


_extended(arith.AddUIExtendedOp, "{0} + {1}", "{0} >> {1}", signed=False)
_extended(arith.MulSIExtendedOp, "{0} * {1}", "{0} >> {1}", signed=True)
_extended(arith.MulUIExtendedOp, "{0} * {1}", "{0} >> {1}", signed=False)

# Comparisons and selection

_INTEGER_PREDICATES = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
_FIRST_UNSIGNED = 6
_FLOAT_PREDICATES = (
    "False",
    "{0} == {1}",
    "{0} > {1}",
    "{0} >= {1}",
    "{0} < {1}",
    "{0} <= {1}",
    "({0} < {1} or {0} > {1})",
    "({0} == {0} and {1} == {1})",
    "(not ({0} < {1} or {0} > {1}))",
    "(not {0} <= {1})",
    "(not {0} < {1})",
    "(not {0} >= {1})",
    "(not {0} > {1})",
    "{0} != {1}",
    "({0} != {0} or {1} != {1})",
    "True",
)


def _compare_integers(emitter: Emitter, op: Operation, operands: Sequence[str]) -> str:
    predicate = cast("arith.CmpiOp", op).predicate.value.data
    exact = _unsigned if predicate >= _FIRST_UNSIGNED else _signed
    type_ = op.operands[0].type
    return f"{exact(type_, operands[0])} {_INTEGER_PREDICATES[predicate]} {exact(type_, operands[1])}"


def _compare_floats(emitter: Emitter, op: Operation, operands: Sequence[str]) -> str:
    return _FLOAT_PREDICATES[cast("arith.CmpfOp", op).predicate.value.data].format(*operands)


elementwise(arith.CmpiOp, template=_compare_integers, finish=False, silent=True)
elementwise(arith.CmpfOp, template=_compare_floats, finish=False, silent=True)


@emits(arith.SelectOp)
def emit_select(emitter: Emitter, op: arith.SelectOp) -> None:
    condition = emitter.written(op.cond, op)
    first, second = emitter.value(op.lhs), emitter.value(op.rhs)
    span = union_of_intervals(emitter.range_of(op.lhs), emitter.range_of(op.rhs))
    name = emitter.define(op.result, None if span == UNBOUNDED else span)
    if isinstance(op.cond.type, VectorType):
        emitter.line(f"{name} = [a if c else b for c, a, b in zip({condition}, {first}, {second})]", op)
    else:
        emitter.line(f"{name} = {first} if {condition} else {second}", op)
    if emitter.maybe_unwritten(op.lhs) or emitter.maybe_unwritten(op.rhs):
        emitter.mark_unwritten(op.result)


# Conversions


def _same(span: Interval) -> Interval:
    return span


def _from_signed(emitter: Emitter, op: Operation, operands: Sequence[str]) -> str:
    return _signed(op.operands[0].type, operands[0])


def _from_unsigned(emitter: Emitter, op: Operation, operands: Sequence[str]) -> str:
    return _unsigned(op.operands[0].type, operands[0])


def _unsigned_span(span: Interval) -> Interval:
    return span if span[0] is not None and span[0] >= 0 else UNBOUNDED


elementwise(arith.ExtFOp, template="{0}", finish=False, silent=True)
elementwise(arith.TruncFOp, template="{0}")
elementwise(arith.ExtSIOp, template=_from_signed, interval=_same, silent=True)
elementwise(arith.ExtUIOp, template=_from_unsigned, interval=_unsigned_span)
elementwise(arith.TruncIOp, template="{0}", interval=_same, silent=True)
elementwise(arith.IndexCastOp, template=_from_signed, interval=_same, silent=True)


def _to_float(signed: bool) -> Template:
    def rule(emitter: Emitter, op: Operation, operands: Sequence[str]) -> str:
        exact = (_signed if signed else _unsigned)(op.operands[0].type, operands[0])
        if isinstance(lane_type(op.results[0].type), Float64Type):
            return f"float({exact})"
        return f"{emitter.helper(functions.int_to_double)}({exact})"

    return rule


def _to_integer(signed: bool) -> Template:
    def rule(emitter: Emitter, op: Operation, operands: Sequence[str]) -> str:
        width = integer_width(lane_type(op.results[0].type))
        low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
        return emitter.call(functions.float_to_int, op, operands[0], low, high)

    return rule


elementwise(arith.SIToFPOp, template=_to_float(signed=True))
elementwise(arith.UIToFPOp, template=_to_float(signed=False))
elementwise(arith.FPToSIOp, template=_to_integer(signed=True))
elementwise(arith.FPToUIOp, template=_to_integer(signed=False))


def bitcast_template(emitter: Emitter, op: Operation, operands: Sequence[str]) -> str:
    source, target = lane_type(op.operands[0].type), lane_type(op.results[0].type)
    from_int, to_int = (isinstance(t, IntegerType | IndexType) for t in (source, target))
    if from_int and to_int:
        return operands[0]
    if not from_int and not to_int and source != target:
        bits = _bits(emitter, source, functions.float_to_bits, operands[0])
        return _bits(emitter, target, functions.bits_to_float, bits)
    if from_int:
        return _bits(emitter, target, functions.bits_to_float, operands[0])
    return operands[0] if source == target else _bits(emitter, source, functions.float_to_bits, operands[0])


def _bits(emitter: Emitter, float_type: Attribute, function: object, operand: str) -> str:
    brain = isinstance(float_type, BFloat16Type)
    width = 16 if brain else getattr(float_type, "bitwidth", 64)
    return f"{emitter.helper(function)}({operand}, {width}, {brain})"


elementwise(arith.BitcastOp, template=bitcast_template, finish=False, silent=True)


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
    elementwise(_op_class, template=_call(functions.total(_math_function, _numpy_function)))


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
    return _call(function)(emitter, op, operands)


elementwise(math_dialect.FmaOp, template=fma_template)


def _count_bits(text: str) -> Template:
    """A count over the bits of `{0}`, unsigned; `{1}` is the width."""

    def rule(emitter: Emitter, op: Operation, operands: Sequence[str]) -> str:
        type_ = op.results[0].type
        return text.format(_unsigned(type_, operands[0]), integer_width(lane_type(type_)))

    return rule


elementwise(math_dialect.CountLeadingZerosOp, template=_count_bits("{1} - {0}.bit_length()"))
elementwise(math_dialect.CountTrailingZerosOp, template=_count_bits("(({0} & -{0}).bit_length() - 1 if {0} else {1})"))
elementwise(math_dialect.CtPopOp, template=_count_bits("{0}.bit_count()"))
elementwise(
    math_dialect.IPowIOp,
    template=lambda emitter, op, operands: emitter.call(
        functions.int_power, op, *operands, integer_width(lane_type(op.results[0].type))
    ),
)
