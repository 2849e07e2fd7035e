"""Ops that compute each lane alone: one Python expression, used for scalars and, in a comprehension, for vectors."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    VectorType,
)

from weft.dialects.intervals import INTERVALS_OF_ARITH, UNBOUNDED
from weft.interp.registry import emits
from weft.interp.scalar_functions import ROUNDINGS, wrap
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation, SSAValue

    from weft.dialects.intervals import Interval
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
