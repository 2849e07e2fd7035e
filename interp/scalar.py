"""`arith` and `math`, on scalars and lanes of vectors.

Integers wrap to their width; floats are rounded to their type at each op. Division by zero, a quotient that
overflows, and a shift by the width or more are errors. Conversions of floats to integers are total
(`weft.support.float_to_integer`). Elementary functions are computed in double and rounded: the error is half a unit
in the last place, plus that of the C library in double.
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
    DenseIntOrFPElementsAttr,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
    VectorType,
)

from weft.dialects.element_types import element_name
from weft.dialects.integer_arith import divide_truncating, remainder_truncating
from weft.dialects.intervals import INTERVALS_OF_ARITH, UNBOUNDED, Interval, union_of_intervals
from weft.dialects.upstream.arith import RemFOp
from weft.interp import scalar_functions as functions
from weft.interp.registry import emits
from weft.interp.scalar_functions import wrap
from weft.interp.values import array_of, finisher
from weft.support.errors import CompileError
from weft.support.float_to_integer import float_to_integer
from weft.support.narrow_floats import ROUNDINGS, bits_to_float, float_to_bits

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation, SSAValue

    from weft.interp.emitter import Emitter


Template: TypeAlias = "Callable[[Emitter, Operation, Sequence[str]], str]"
"""(emitter, op, an expression per operand) -> the exact result's expression. Operand expressions are names or
literals."""
IntervalRule: TypeAlias = "Callable[[Interval], Interval]"
"""The range of a conversion's result, from that of its operand."""

TEMPLATES: dict[str, tuple[Template, bool]] = {}
"""Op name -> template, and whether its result is rounded or wrapped."""


def lane_type(type_: Attribute) -> Attribute:
    return type_.element_type if isinstance(type_, VectorType) else type_


def integer_width(type_: Attribute) -> int:
    """The width; 64 for index."""
    return type_.width.data if isinstance(type_, IntegerType) else 64


def interval_fits(interval: Interval, type_: Attribute) -> bool:
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
    converts: bool = False,
    **helpers: object,
) -> None:
    """Define ops by a `template`, possibly text (`_from_text`) with Python functions as `helpers`. `finish`: round
    or wrap the result. `interval`: the range of a converted integer (`INTERVALS_OF_ARITH` has the others). `silent`:
    Python would accept None, so unwritten operands need a check."""
    rule: Template = _from_text(template, converts=converts, **helpers) if isinstance(template, str) else template
    TEMPLATES.update((op_class.name, (rule, finish)) for op_class in op_classes)

    def emit(emitter: Emitter, op: Operation) -> None:
        if isinstance(op.results[0].type, VectorType):
            _emit_lanes(emitter, op, rule, finish, silent)
        else:
            _emit_scalar(emitter, op, rule, finish, interval, silent)

    emits(*op_classes)(emit)


def _from_text(text: str, *, converts: bool = False, **helpers: object) -> Template:
    """In `text`, `{0}`, `{1}`, ... are the operands and `{all}` their list, `{s[0]}`, `{u[0]}` integers read as
    signed and unsigned, `{width}` the result's width, `{op}` the op, and `{name}` a function of `helpers`.
    `converts`: operands are not of the result's type."""

    def rule(emitter: Emitter, op: Operation, operands: Sequence[str]) -> str:
        type_ = lane_type((op.operands if converts else op.results)[0].type)
        fields: dict[str, object] = {name: emitter.helper(helper) for name, helper in helpers.items()}
        if "{op}" in text:
            fields["op"] = emitter.operation_name(op)
        return text.format(
            *operands,
            all=", ".join(operands),
            s=[_signed(type_, operand) for operand in operands],
            u=[_unsigned(type_, operand) for operand in operands],
            width=integer_width(lane_type(op.results[0].type)),
            **fields,
        )

    return rule


def _signed(type_: Attribute, operand: str) -> str:
    """An i1 is 0 or -1."""
    return f"(-{operand})" if integer_width(type_) == 1 else operand


def _unsigned(type_: Attribute, operand: str) -> str:
    return f"({operand} & {(1 << integer_width(type_)) - 1})"


def check_lane_type(op: Operation, type_: Attribute) -> None:
    """Raises `CompileError` if the interpreter lacks arithmetic for a type."""
    lane = lane_type(type_)
    if not isinstance(lane, IntegerType | IndexType) and element_name(lane) not in ROUNDINGS:
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
    """Round or wrap the expression if `finish`. `span` is the range before wrapping."""
    type_ = result.type
    if not isinstance(type_, IntegerType | IndexType) or integer_width(type_) == 1:
        name = emitter.define(result)
        emitter.line(rounded(emitter, name, text, type_) if finish else f"{name} = {text}", op)
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
    if isinstance(type_, Float32Type):
        return f"_cell[0] = {text}; {name} = _cell[0]"
    return f"{name} = {finished_scalar(emitter, text, type_)}"


def finished_scalar(emitter: Emitter, text: str, type_: Attribute) -> str:
    rounding = None if isinstance(type_, Float64Type) else ROUNDINGS.get(element_name(type_) or "")
    if rounding is not None:
        return f"{emitter.helper(rounding)}({text})"
    if not isinstance(type_, IntegerType):
        return text
    width = integer_width(type_)
    return f"({text}) & 1 == 1" if width == 1 else f"{emitter.helper(wrap)}({text}, {width})"


def _emit_lanes(emitter: Emitter, op: Operation, rule: Template, finish: bool, silent: bool) -> None:
    """A scalar operand (the condition of a select) is for all lanes."""
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
    if not finish or isinstance(type_, IndexType | Float64Type):
        return f"[{text} {loop}]"
    if isinstance(type_, Float32Type):
        return f"{emitter.helper(array)}('f', [{text} {loop}]).tolist()"
    return f"[{finished_scalar(emitter, text, type_)} {loop}]"


def literal(value: float | int | bool) -> str | None:
    """The literal of a scalar, unless infinite or NaN."""
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


def combined(
    emitter: Emitter, op: Operation, combining: type[Operation], left: str, right: str, type_: Attribute | None = None
) -> str:
    """Combine scalars, by default of `op`'s result type, by an op of `arith`."""
    rule, finish = TEMPLATES[combining.name]
    text = rule(emitter, op, [left, right])
    return finished_scalar(emitter, text, type_ or op.results[0].type) if finish else text


elementwise(arith.AddfOp, template="{0} + {1}")
elementwise(arith.SubfOp, template="{0} - {1}")
elementwise(arith.MulfOp, template="{0} * {1}")
elementwise(arith.NegfOp, template="-{0}", finish=False)


elementwise(arith.DivfOp, template="{0} / {1} if {1} else {divide}({0}, {1})", divide=functions.divide)
elementwise(RemFOp, template="{function}({all})", function=functions.total(math.fmod, np.fmod))
for _op_class, _relation, _of_others in (
    (arith.MaximumfOp, ">", functions.maximum),
    (arith.MinimumfOp, "<", functions.minimum),
):
    _text = f"({{0}} if {{0}} {_relation} {{1}} else {{1}} if {{1}} {_relation} {{0}} else {{of_others}}({{0}}, {{1}}))"
    elementwise(_op_class, template=_text, finish=False, of_others=_of_others)
for _op_class, _function in ((arith.MaxnumfOp, functions.maximum_number), (arith.MinnumfOp, functions.minimum_number)):
    elementwise(_op_class, template="{function}({all})", finish=False, silent=True, function=_function)


elementwise(arith.AddiOp, template="{0} + {1}")
elementwise(arith.SubiOp, template="{0} - {1}")
elementwise(arith.MuliOp, template="{0} * {1}")
elementwise(arith.AndIOp, template="{0} & {1}", finish=False)
elementwise(arith.OrIOp, template="{0} | {1}", finish=False)
elementwise(arith.XOrIOp, template="{0} ^ {1}", finish=False)
elementwise(arith.MaxSIOp, template="{s[0]} if {s[0]} >= {s[1]} else {s[1]}")
elementwise(arith.MinSIOp, template="{s[0]} if {s[0]} <= {s[1]} else {s[1]}")
elementwise(arith.MaxUIOp, template="{u[0]} if {u[0]} >= {u[1]} else {u[1]}")
elementwise(arith.MinUIOp, template="{u[0]} if {u[0]} <= {u[1]} else {u[1]}")
elementwise(arith.DivUIOp, template="{u[0]} // {u[1]}")
elementwise(arith.CeilDivUIOp, template="-(-{u[0]} // {u[1]})")
elementwise(arith.RemUIOp, template="{u[0]} % {u[1]}")


def _signed_division(
    quotient: str, positive: str, *, overflows: bool = True, **helpers: Callable[..., int]
) -> Template:
    """`positive` is for operands known to be non-negative."""
    general = _from_text(quotient, converts=False, **helpers)

    def rule(emitter: Emitter, op: Operation, operands: Sequence[str]) -> str:
        lows = [emitter.range_of(operand)[0] for operand in op.operands]
        if all(low is not None and low >= 0 for low in lows):
            return positive.format(*operands)
        text, type_ = general(emitter, op, operands), lane_type(op.results[0].type)
        if not overflows or isinstance(type_, IndexType):
            return text
        return emitter.call(functions.check_overflow, op, text, integer_width(type_))

    return rule


elementwise(
    arith.DivSIOp, template=_signed_division("{divide}({s[0]}, {s[1]})", "{0} // {1}", divide=divide_truncating)
)
elementwise(arith.FloorDivSIOp, template=_signed_division("{s[0]} // {s[1]}", "{0} // {1}"))
elementwise(arith.CeilDivSIOp, template=_signed_division("-(-{s[0]} // {s[1]})", "-(-{0} // {1})"))
elementwise(
    arith.RemSIOp,
    template=_signed_division(
        "{remainder}({s[0]}, {s[1]})", "{0} % {1}", overflows=False, remainder=remainder_truncating
    ),
)
for _shift, _text in ((arith.ShLIOp, "{s[0]} <<"), (arith.ShRUIOp, "{u[0]} >>"), (arith.ShRSIOp, "{s[0]} >>")):
    elementwise(_shift, template=f"{_text} {{check}}({{op}}, {{1}}, {{width}})", check=functions.check_shift)


def _extended(op_class: type[Operation], text: str) -> None:
    rule = _from_text(text)

    def emit(emitter: Emitter, op: Operation) -> None:
        type_ = op.operands[0].type
        if isinstance(type_, VectorType):
            raise CompileError.at(op, f"the interpreter cannot compute '{op.name}' on {type_}")
        check_lane_type(op, type_)
        whole = emitter.fresh("whole")
        emitter.line(f"{whole} = {rule(emitter, op, [emitter.value(operand) for operand in op.operands])}", op)
        assign(emitter, op, op.results[0], whole)
        assign(emitter, op, op.results[1], f"{whole} >> {integer_width(type_)}")

    emits(op_class)(emit)


_extended(arith.AddUIExtendedOp, "{u[0]} + {u[1]}")
_extended(arith.MulSIExtendedOp, "{s[0]} * {s[1]}")
_extended(arith.MulUIExtendedOp, "{u[0]} * {u[1]}")


_INTEGER_PREDICATES = tuple(
    _from_text(f"{{{kind}[0]}} {relation} {{{kind}[1]}}", converts=True)
    for kind, relations in (("s", ("==", "!=", "<", "<=", ">", ">=")), ("u", ("<", "<=", ">", ">=")))
    for relation in relations
)
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
    return _INTEGER_PREDICATES[cast("arith.CmpiOp", op).predicate.value.data](emitter, op, operands)


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


def _same(span: Interval) -> Interval:
    return span


def _unsigned_span(span: Interval) -> Interval:
    return span if span[0] is not None and span[0] >= 0 else UNBOUNDED


elementwise(arith.ExtFOp, template="{0}", finish=False, silent=True)
elementwise(arith.TruncFOp, template="{0}")
elementwise(arith.ExtSIOp, template="{s[0]}", interval=_same, silent=True, converts=True)
elementwise(arith.ExtUIOp, template="{u[0]}", interval=_unsigned_span, converts=True)
elementwise(arith.TruncIOp, template="{0}", interval=_same, silent=True)
elementwise(arith.IndexCastOp, template="{s[0]}", interval=_same, silent=True, converts=True)


def _to_float(number: str) -> Template:
    double = _from_text(f"float({number})", converts=True)
    narrow = _from_text(f"{{convert}}({number})", converts=True, convert=functions.int_to_double)

    def rule(emitter: Emitter, op: Operation, operands: Sequence[str]) -> str:
        is_double = isinstance(lane_type(op.results[0].type), Float64Type)
        return (double if is_double else narrow)(emitter, op, operands)

    return rule


elementwise(arith.SIToFPOp, template=_to_float("{s[0]}"))
elementwise(arith.UIToFPOp, template=_to_float("{u[0]}"))


def _to_integer(emitter: Emitter, op: Operation, operands: Sequence[str]) -> str:
    source, target = lane_type(op.operands[0].type), lane_type(op.results[0].type)
    signed, is_double = op.name.endswith("fptosi"), isinstance(source, Float64Type)
    convert = emitter.helper(float_to_integer)
    return f"{convert}({operands[0]}, {integer_width(target)}, signed={signed}, is_double={is_double})"


elementwise(arith.FPToSIOp, arith.FPToUIOp, template=_to_integer)


def bitcast_template(emitter: Emitter, op: Operation, operands: Sequence[str]) -> str:
    source, target = lane_type(op.operands[0].type), lane_type(op.results[0].type)
    from_int, to_int = (isinstance(t, IntegerType | IndexType) for t in (source, target))
    if from_int and to_int:
        return operands[0]
    if not from_int and not to_int and source != target:
        bits = _bits(emitter, source, float_to_bits, operands[0])
        return _bits(emitter, target, bits_to_float, bits)
    if from_int:
        return _bits(emitter, target, bits_to_float, operands[0])
    return operands[0] if source == target else _bits(emitter, source, float_to_bits, operands[0])


def _bits(emitter: Emitter, float_type: Attribute, function: object, operand: str) -> str:
    return f"{emitter.helper(function)}({operand}, {element_name(float_type)!r})"


elementwise(arith.BitcastOp, template=bitcast_template, finish=False, silent=True)


_FUNCTIONS: tuple[type[Operation], ...] = (
    *(math_dialect.AcosOp, math_dialect.AsinOp, math_dialect.AtanOp, math_dialect.Atan2Op),
    *(math_dialect.AcoshOp, math_dialect.AsinhOp, math_dialect.AtanhOp),
    *(math_dialect.CosOp, math_dialect.SinOp, math_dialect.TanOp),
    *(math_dialect.CoshOp, math_dialect.SinhOp, math_dialect.TanhOp),
    *(math_dialect.ExpOp, math_dialect.Exp2Op, math_dialect.ExpM1Op, math_dialect.SqrtOp, math_dialect.CbrtOp),
    *(math_dialect.LogOp, math_dialect.Log2Op, math_dialect.Log10Op, math_dialect.Log1pOp, math_dialect.CopySignOp),
)
"""Functions of the same name in `math` and NumPy."""
_NAMES = [(op, op.name.removeprefix("math.")) for op in _FUNCTIONS]
for _op_class, _math_function, _numpy_function in (
    *((op, getattr(math, name), getattr(np, name)) for op, name in _NAMES),
    (math_dialect.ErfOp, math.erf, np.sign),
    (math_dialect.PowFOp, math.pow, np.power),
    (math_dialect.FPowIOp, math.pow, np.power),
    (math_dialect.RsqrtOp, functions.reciprocal_root, np.sqrt),
):
    elementwise(_op_class, template="{function}({all})", function=functions.total(_math_function, _numpy_function))


for _op_class, _rounding in (
    (math_dialect.CeilOp, math.ceil),
    (math_dialect.FloorOp, math.floor),
    (math_dialect.TruncOp, math.trunc),
    (math_dialect.RoundEvenOp, round),
    (math_dialect.RoundOp, functions.half_away),
):
    elementwise(
        _op_class,
        template="{integral}({0}, {rounding})",
        finish=False,
        integral=functions.to_integral,
        rounding=_rounding,
    )

elementwise(math_dialect.AbsFOp, template="abs({0})", finish=False)
elementwise(math_dialect.AbsIOp, template="abs({0})")


def fma_template(emitter: Emitter, op: Operation, operands: Sequence[str]) -> str:
    """`a * b + c` rounded once; for types narrower than double, rounding follows."""
    is_double = isinstance(lane_type(op.results[0].type), Float64Type)
    function = functions.fma_double if is_double else functions.fma_narrow
    return f"{emitter.helper(function)}({', '.join(operands)})"


elementwise(math_dialect.FmaOp, template=fma_template)


elementwise(math_dialect.CountLeadingZerosOp, template="{width} - {u[0]}.bit_length()")
elementwise(math_dialect.CountTrailingZerosOp, template="(({u[0]} & -{u[0]}).bit_length() - 1 if {u[0]} else {width})")
elementwise(math_dialect.CtPopOp, template="{u[0]}.bit_count()")
elementwise(math_dialect.IPowIOp, template="{power}({op}, {all}, {width})", power=functions.int_power)
