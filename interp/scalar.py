"""`arith`: integers wrap to their width, floating-point results are rounded to their type at each op.

What has no meaning is an error where it happens: division by zero, a quotient that overflows, a shift by the width or
more, a float that does not fit the integer it is converted to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
    VectorType,
)

from weft.dialects.integer_arith import divide_truncating, remainder_truncating
from weft.dialects.intervals import UNBOUNDED, Interval, union_of_intervals
from weft.interp import scalar_functions as functions
from weft.interp.elementwise import (
    TEMPLATES,
    assign,
    check_lane_type,
    elementwise,
    finished_scalar,
    integer_width,
    lane_type,
)
from weft.interp.registry import emits
from weft.interp.values import array_of, finisher
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation

    from weft.interp.elementwise import Template
    from weft.interp.emitter import Emitter


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
        arguments = f"{emitter.operation_name(op)}, {quotient}, {integer_width(lane_type(type_))}"
        return f"{emitter.helper(functions.check_overflow)}({arguments})"

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
        amount = f"{emitter.helper(functions.check_shift)}({emitter.operation_name(op)}, {operands[1]}, {width})"
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
        arguments = f"{emitter.operation_name(op)}, {operands[0]}, {low}, {high}"
        return f"{emitter.helper(functions.float_to_int)}({arguments})"

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
