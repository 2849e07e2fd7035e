"""Footprints: the bounding box of the elements that one iteration of a loop accesses.

Per dimension, an index is an outer part (values fixed in the iteration: enclosing loop variables, symbols) plus an
inner part with a known range. Accesses have one box if their outer parts differ by constants; otherwise callers use
the whole extent. A box is an over-approximation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import TypeAlias

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from weft.analysis.accesses import Access, is_fixed, is_iterator, is_loop_value, range_of, values_of_iteration
from weft.analysis.index import Atom, Index, Quotient, RangeOf, Remainder, mixed_radix, quotient, remainder
from weft.analysis.questions import instances_where, places
from weft.analysis.sets import NotProved
from weft.analysis.threads import runs_over_threads
from weft.dialects.tir import BlockOp, ForOp

IsFixed: TypeAlias = Callable[[SSAValue], bool]


@dataclass(frozen=True)
class Span:
    """`lower <= index < lower + extent`, with `lower` fixed in the iteration. `tight` if every multiple of `step` is
    attained."""

    lower: Index
    extent: int
    tight: bool
    step: int = 1
    runs: Runs | None = None
    """Set if the values form runs with gaps, as for windows whose distance exceeds their length."""

    @property
    def count(self) -> int:
        if self.runs is not None:
            return ((self.extent - self.runs.length) // self.runs.period + 1) * self.runs.count(self.step)
        return (self.extent - 1) // self.step + 1

    def in_runs(self, period: int, length: int) -> Span:
        """The span up to the end of the last run, if that has fewer values."""
        last = (self.extent - 1) // period * period
        span = replace(self, extent=last + length, tight=False, runs=Runs(period, length))
        return span if length <= period and span.count < self.count else self


@dataclass(frozen=True)
class Runs:
    """Values less than `length` above a multiple of `period`."""

    period: int
    length: int

    def count(self, step: int) -> int:
        return (self.length - 1) // step + 1


def span_of(index: Index, fixed: Collection[SSAValue] | IsFixed, ranges: RangeOf = range_of) -> Span | None:
    """The span, unless unbounded. A set `fixed` is extended by values fixed in the function and iterators of the
    enclosing block."""
    if not callable(fixed):
        return span_of(index, lambda v: v in fixed or is_iterator(v) or (is_fixed(v) and not is_loop_value(v)), ranges)
    outer: dict[Atom, int] = {}
    inner: dict[Atom, int] = {}
    digits: dict[Atom, Span] = {}
    for atom, factor in index.terms.items():
        values = [atom] if isinstance(atom, SSAValue) else list(atom.numerator.values())
        is_outer = all(map(fixed, values))
        part = None if is_outer else _span_of_digit(atom, fixed, ranges)
        if part is not None:
            digits[atom] = part
        else:
            (outer if is_outer else inner)[atom] = factor
    low, high = Index(inner).range(ranges)
    if low is None or high is None:
        return None
    lower, extent, step = Index(outer, index.constant + low), high - low + 1, _step_of(inner, ranges)
    for atom, part in digits.items():
        factor = index.terms[atom]
        lower += (part.lower if factor > 0 else part.lower + (part.extent - 1)) * factor
        extent += abs(factor) * (part.extent - 1)
        step = gcd(step, factor * part.step if part.extent > 1 else 0)
    tight = _takes_every_value(inner, ranges) if not digits else len(digits) == 1 and not inner and step in (-1, 1)
    span = Span(lower, extent, tight and all(part.tight for part in digits.values()), abs(step) or 1)
    if digits:
        return span
    return min((span.in_runs(*runs) for runs in _runs_of(inner, ranges)), key=lambda found: found.count, default=span)


def _runs_of(inner: dict[Atom, int], ranges: RangeOf) -> list[tuple[int, int]]:
    """Candidates (period, length); terms that are not multiples of the period determine the length."""
    reach: dict[int, int] = {}
    for atom, factor in inner.items():
        low, high = Index({atom: 1}).range(ranges)
        if low != high:
            reach[abs(factor)] = reach.get(abs(factor), 0) + abs(factor) * ((high or 0) - (low or 0))
    return [(period, 1 + sum(reach[factor] for factor in reach if factor % period)) for period in reach]


def _span_of_digit(atom: Atom, fixed: IsFixed, ranges: RangeOf) -> Span | None:
    """The span of a quotient or remainder, unless only the divisor bounds it."""
    if isinstance(atom, SSAValue):
        return None
    inner, divisor = span_of(atom.numerator, fixed, ranges), atom.divisor
    if inner is None:
        return None
    offset = remainder(inner.lower, divisor, ranges)
    first, last = offset.range(ranges)
    first, last = first or 0, divisor - 1 if last is None else last
    if isinstance(atom, Quotient):
        extent = (last + inner.extent - 1) // divisor + 1
        tight = inner.tight and first == last
        return Span(quotient(inner.lower, divisor, ranges), extent, tight)
    if last + inner.extent <= divisor:
        return Span(offset, inner.extent, inner.tight, inner.step)
    return Span(Index({}), divisor, tight=True) if inner.tight and inner.extent >= divisor else None


def source_of(atom: Atom) -> SSAValue | None:
    while not isinstance(atom, SSAValue):
        ((inner, factor), *others) = atom.numerator.terms.items() or ((None, 0),)
        if inner is None or others or factor != 1:
            return None
        atom = inner
    return atom


def preimage(atom: Atom, span: Span) -> Span | None:
    """Values of `source_of(atom)` for which the atom is in a span."""
    while not isinstance(atom, SSAValue):
        if span.step != 1 or (span.runs is not None and isinstance(atom, Remainder)):
            return None
        ((inner, _),) = atom.numerator.terms.items()
        divisor, lower = atom.divisor, span.lower - atom.numerator.constant
        if isinstance(atom, Quotient):
            runs = span.runs and Runs(span.runs.period * divisor, span.runs.length * divisor)
            lower += span.lower * (divisor - 1)
            span = Span(lower, span.extent * divisor, span.tight, runs=runs)
        else:
            low, high = atom.numerator.range(range_of)
            if low is None or high is None:
                return None
            first, count = low // divisor, high // divisor - low // divisor + 1
            runs = Runs(divisor, span.extent) if count > 1 and span.extent < divisor else None
            span = Span(lower + first * divisor, divisor * (count - 1) + span.extent, span.tight, runs=runs)
        atom = inner
    return span


def _step_of(inner: dict[Atom, int], ranges: RangeOf) -> int:
    return gcd(*(factor for atom, factor in inner.items() if len(set(Index({atom: 1}).range(ranges))) > 1))


def _takes_every_value(inner: dict[Atom, int], ranges: RangeOf) -> bool:
    """Whether a sum of loop variables attains every value between its bounds (`mixed_radix`)."""
    digits: list[tuple[int, SSAValue, int]] = []
    for atom, factor in inner.items():
        low, high = Index({atom: 1}).range(ranges)
        if low is None or high is None or not isinstance(atom, SSAValue) or not is_loop_value(atom):
            return False
        if low < high:
            digits.append((abs(factor), atom, high - low))
    return all(reach is not None and weight <= reach + 1 for weight, _, reach in mixed_radix(digits))


def hull(spans: Sequence[Span | None]) -> Span | None:
    """The smallest common span; None if one is unknown or lower bounds are incomparable."""
    first = spans[0] if spans else None
    if first is None:
        return None
    low, high, tight, step = 0, first.extent, first.tight, first.step if first.extent > 1 else 0
    distances = [0]
    for span in spans[1:]:
        if span is None:
            return None
        distance = span.lower - first.lower
        if not distance.is_constant:
            return None
        distances.append(distance.constant)
        touching = distance.constant <= high and distance.constant + span.extent >= low
        tight = tight and span.tight and touching
        step = gcd(step, span.step if span.extent > 1 else 0, distance.constant)
        low = min(low, distance.constant)
        high = max(high, distance.constant + span.extent)
    whole = Span(first.lower + low, high - low, tight, step or 1)
    known = [span for span in spans if span is not None]
    period = max(span.runs.period if span.runs is not None else span.step for span in known)
    starts = [(distance - low) % period for distance in distances]
    ends = [start + _length_of_run(span, period) for start, span in zip(starts, known, strict=True)]
    return whole.in_runs(period, max(ends))


def _length_of_run(span: Span, period: int) -> int:
    if span.runs is not None and span.runs.period == period:
        return span.runs.length
    return 1 if span.step == period else span.extent


def box_of(found: Sequence[Access], loop: ForOp | None, *, by_all_threads: bool = False) -> tuple[Span | None, ...]:
    """A span per dimension of the accesses in an iteration of `loop`, which contains them, or in the whole scope;
    None for a dimension that may be touched entirely. With `by_all_threads`, loops over threads of a block are inner
    loops."""
    around = [] if loop is None else [outer for outer in found[0].loops if outer.is_ancestor(loop)]
    if by_all_threads:
        around = [outer for outer in around if not runs_over_threads(outer)]
    fixed = [outer.induction_variable for outer in around]
    indices = [access.indices for access in found if access.indices is not None]
    if len(indices) < len(found):
        type_ = found[0].buffer.type
        return (None,) * (type_.get_num_dims() if isinstance(type_, MemRefType) else 0)
    fixed += [value for value in values_of_iteration(found, around) if _stands_first(value)]
    return tuple(
        hull([span_of(index.simplified(range_of), fixed) for index in dimension])
        for dimension in zip(*indices, strict=True)
    )


def static_box(found: Sequence[Access], box: Sequence[Span | None]) -> tuple[Span | None, ...]:
    result: list[Span | None] = []
    for dimension, span in enumerate(box):
        bounds = [_bounds(access, dimension) for access in found if access.conditions.inequalities]
        if len(bounds) < len(found) or (span is not None and (span.step > 1 or span.runs)) or not all(bounds):
            result.append(span)
            continue
        low, high = min(b[0] for b in bounds if b), max(b[1] for b in bounds if b)
        result.append(Span(Index({}, low), high - low + 1, tight=False))
    return tuple(result)


def _bounds(access: Access, dimension: int) -> tuple[int, int] | None:
    if access.indices is None or not access.conditions.exact:
        return None
    question = instances_where(access)
    question.add_place("", [access.indices[dimension]])
    try:
        return question.limits(*places(1))
    except NotProved:
        return None


def _stands_first(value: SSAValue) -> bool:
    op = value.owner
    while isinstance(op, Operation) and not isinstance(op, ForOp | BlockOp):
        op = op.prev_op
    return op is None
