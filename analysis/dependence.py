"""Dependence analysis: whether instances of two accesses touch the same element.

Accesses *conflict* if at least one writes and some pair of their instances touches the same element. A loop that
both instances share is one variable of the system, other loops are two. A conflict that involves opaque values
(loaded subscripts, non-affine conditions), or parameters that may overlap (`dialects/aliasing.py`), is possible, not
proved.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from itertools import combinations, product
from typing import ParamSpec, TypeVar

from xdsl.dialects import memref
from xdsl.ir import OpResult, SSAValue

from weft.analysis.accesses import Access, is_fixed, is_loop_value, is_symbol
from weft.analysis.block_patterns import combines_freely, why_in_order
from weft.analysis.index import Index, mixed_radix
from weft.analysis.integer_ranges import leaves, small_values
from weft.analysis.questions import Question, point_text
from weft.analysis.sets import NotProved, Point
from weft.dialects.aliasing import buffer_name as buffer_name
from weft.dialects.aliasing import is_exposed, may_overlap, overlap_advice, overlap_text
from weft.dialects.effects import opaque_advice, opaque_text
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import IterKind
from weft.support.errors import Violation


@dataclass(frozen=True)
class Conflict:
    """Two instances that touch the same element; the first runs first."""

    first: Access
    second: Access
    point: Point
    """Values of `("first", value)`, `("second", value)`, and of values shared by both instances."""
    exact: bool
    """False if opaque values are involved."""
    question: Question = field(compare=False)
    values: Mapping[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """The values of symbols at which it was found."""

    def describe(self) -> str:
        first, second = self._instance_text(self.first, "first"), self._instance_text(self.second, "second")
        given = ", ".join(f"{name} = {number}" for name, number in self._named_values().items())
        return f"with {given}: {first}; {second}" if given else f"{first}; {second}"

    def _named_values(self) -> dict[str, int]:
        return {value.name_hint or f"symbol{at}": number for at, (value, number) in enumerate(self.values.items())}

    def counterexample(self) -> dict[str, dict[str, int]]:
        symbols = {"symbols": self._named_values()} if self.values else {}
        return symbols | {
            "first iteration": self._loop_values(self.first, "first"),
            "second iteration": self._loop_values(self.second, "second"),
        }

    def _loop_values(self, access: Access, role: str) -> dict[str, int]:
        values = [loop.induction_variable for loop in access.loops]
        return {
            value.name_hint or f"loop{at}": self.question.value(role, self.point, value)
            for at, value in enumerate(values)
        }

    def _instance_text(self, access: Access, role: str) -> str:
        verb = "writes" if access.is_write else "reads"
        block = f' of block "{access.block.label}"' if access.block is not None else ""
        iteration = f"iteration {point_text(self._loop_values(access, role).items())}{block}"
        if access.is_opaque:
            return f"{iteration} {opaque_text(access.op)}"
        if access.indices is None:
            return f"{iteration} {verb} {buffer_name(access.buffer)}"
        value_at = partial(self.question.value, role, self.point)
        at = ", ".join(str(index.evaluate(value_at)) for index in access.indices)
        return f"{iteration} {verb} {buffer_name(access.buffer)}[{at}]"

    def happens(self, otherwise: bool = False) -> bool:
        """Whether evaluation confirms it; `otherwise` if a value cannot be evaluated."""
        return self.question.holds(self.point, otherwise)

    def violation(self, consequence: str, legal: str | None = None) -> Violation:
        told = self.describe()
        opaque = next((access.op for access in (self.first, self.second) if access.is_opaque), None)
        if opaque is not None:
            return Violation(f"{told} {consequence}", "not proved", {}, opaque_advice(opaque))
        if self.first.block is not None and self.first.block is self.second.block:
            in_order = why_in_order(self.first.block)
            known = (legal, None if in_order is None else in_order.legal)
            legal = "; or ".join(text for text in known if text is not None) or None
        if self.exact:
            counterexample = self.counterexample()
            return Violation(f"{told} {consequence}", "refuted", counterexample, legal, validate=self.happens)
        if self.first.buffer is not self.second.buffer:
            told += f" {consequence}: {overlap_text(self.first.buffer, self.second.buffer)}"
            return Violation(told, "not proved", {}, overlap_advice(self.first.buffer))
        if self.first.indices is None or self.second.indices is None:
            told += f", which may be the same element, {consequence}"
        else:
            told += " may touch the same element: the subscripts or conditions are not affine"
        return Violation(told, "not proved", {}, legal)


def unknown_elements(first: Access, second: Access) -> Violation:
    if first.buffer is not second.buffer:
        return Violation(overlap_text(first.buffer, second.buffer), "not proved", {}, overlap_advice(first.buffer))
    for access in (first, second):
        if access.is_opaque:
            detail = f"{access.block_text()}{opaque_text(access.op)}"
            return Violation(detail, "not proved", {}, opaque_advice(access.op))
    return Violation("a call touches the whole buffer", "not proved")


def undecided(error: NotProved) -> Violation:
    return Violation(str(error), "not proved")


P = ParamSpec("P")
R = TypeVar("R")


def or_undecided(question: Callable[P, R]) -> Callable[P, R | Violation]:

    @wraps(question)
    def ask(*args: P.args, **kwargs: P.kwargs) -> R | Violation:
        try:
            return question(*args, **kwargs)
        except NotProved as error:
            return undecided(error)

    return ask


class PairQuestion(Question):
    def __init__(
        self,
        first: Access,
        second: Access,
        shared: Collection[ForOp],
        values: Mapping[SSAValue, int] | None = None,
    ) -> None:
        """`shared` loops are in the same iteration; `values` are those of symbols."""
        super().__init__((loop.induction_variable for loop in shared), values=values)
        self.add("first", first)
        self.add("second", second)
        if first.buffer is second.buffer:
            self.same_element("first", first.indices, "second", second.indices)


def conflict_between(
    first: Access,
    second: Access,
    shared: Collection[ForOp],
    ordered: Callable[[PairQuestion], object] | None = None,
    *,
    earlier: Sequence[ForOp] = (),
    later: Sequence[ForOp] = (),
) -> Conflict | None:
    """Instances that touch one element. Raises `NotProved`.

    They are in one iteration of the `shared` loops, the first in an `earlier` or `later` iteration of other loops than
    the second, under the constraints that `ordered` adds. With products or quotients of symbols, a conflict is exact if
    it exists for some small values of them.
    """

    def pair(values: Mapping[SSAValue, int] | None = None) -> PairQuestion:
        question = PairQuestion(first, second, shared, values)
        for loop in earlier:
            question.earlier(loop)
        for loop in later:
            question.later(loop)
        if ordered is not None:
            ordered(question)
        return question

    same = first.buffer is second.buffer
    question = pair()
    if question.is_empty():
        return None
    if not question.is_linear:
        for values in small_values([*first.expressions, *second.expressions]):
            numbered = pair(values)
            point = numbered.find_candidate()
            if point is not None:
                exact = same and numbered.is_exact and is_known(first) and is_known(second)
                return Conflict(first, second, {**point, **values}, exact, numbered, values)
    point = question.find_candidate()
    if point is None:
        return None
    exact = same and question.is_exact and is_exact(first) and is_exact(second)
    return Conflict(first, second, point, exact, question)


def loops_of_element(first: Access, second: Access) -> frozenset[ForOp]:
    """Loops in which instances on one element agree, by a cheap sufficient test: loops of extent 1, and mixed-radix
    digits of a common subscript."""
    single = {loop for loop in first.loops if loop.extent == 1 and loop in second.loops}
    if first.indices is None or first.indices != second.indices or first.buffer is not second.buffer:
        return frozenset(single)
    extents: dict[SSAValue, int | SSAValue] = {
        loop.induction_variable: loop.extent for loop in first.loops if loop in second.loops
    }
    same: set[SSAValue] = {loop.induction_variable for loop in single}
    while found := [value for index in first.indices for value in _digits(index, extents, same)]:
        same.update(found)
    return frozenset(single.union(loop for loop in first.loops if loop.induction_variable in same))


def _digits(index: Index, extents: Mapping[SSAValue, int | SSAValue], same: Collection[SSAValue]) -> list[SSAValue]:
    """Loop variables that `index` determines (`mixed_radix`). Values in `same` are equal and carry no weight."""
    weights: list[tuple[int, SSAValue, int | None]] = []
    for atom, weight in index.terms.items():
        if not isinstance(atom, SSAValue):
            return []
        if atom in extents and atom not in same:
            extent = extents[atom]
            weights.append((abs(weight), atom, max(extent - 1, 0) if isinstance(extent, int) else None))
        elif atom not in same and not is_fixed(atom):
            return []
    digits: list[SSAValue] = []
    for weight, value, reach in mixed_radix(weights):
        digits = [*digits, value] if reach is not None and weight > reach else []
    return digits


def conflicting_pairs(found: Sequence[Access]) -> Iterator[tuple[Access, Access]]:
    """Unordered pairs, also of a write with itself, on one buffer, or on parameters that may overlap, at least one a
    write."""
    by_buffer: dict[SSAValue, list[Access]] = {}
    for access in found:
        by_buffer.setdefault(access.buffer, []).append(access)
    for group in by_buffer.values():
        if not any(a.is_write for a in group):
            continue
        distinct = _without_duplicates(group)
        for position, a in enumerate(distinct):
            for b in distinct[position:]:
                if a.is_write or b.is_write:
                    yield a, b
    yield from _overlapping_pairs(by_buffer)


def _overlapping_pairs(by_buffer: Mapping[SSAValue, Sequence[Access]]) -> Iterator[tuple[Access, Access]]:
    if not any(map(is_exposed, by_buffer)):
        return
    for first, second in combinations(by_buffer, 2):
        if may_overlap(first, second):
            for a, b in product(_without_duplicates(by_buffer[first]), _without_duplicates(by_buffer[second])):
                if a.is_write or b.is_write:
                    yield a, b


def may_conflict(first: Access, second: Access) -> bool:
    if not (first.is_write or second.is_write):
        return False
    return first.buffer is second.buffer or may_overlap(first.buffer, second.buffer)


def _without_duplicates(group: Sequence[Access]) -> list[Access]:
    """A write subsumes a read of the same elements."""
    kept: dict[tuple[object, ...], Access] = {}
    for access in group:
        key = (access.indices, access.loops, access.conditions, access.in_init, access.blocks)
        if key not in kept or access.is_write:
            kept[key] = access
    return list(kept.values())


def is_accumulation(first: Access, second: Access) -> bool:
    reduces = any(IterKind.REDUCE in block.kinds for block in first.blocks)
    return reduces and not first.in_init and not second.in_init and _combine_freely(first, second)


def is_reduction_step(first: Access, second: Access) -> bool:
    """Whether both belong to one reduction, init or update, that may be reordered."""
    return first.block is not None and IterKind.REDUCE in first.block.kinds and _combine_freely(first, second)


def _combine_freely(first: Access, second: Access) -> bool:
    same = first.block is second.block and first.indices is not None and first.indices == second.indices
    return same and first.buffer is second.buffer and first.block is not None and combines_freely(first.block)


def is_exact(access: Access) -> bool:
    """Whether an access is affine in loop variables and symbols."""
    return _is_made_of(access, lambda v: is_loop_value(v) or is_symbol(v))


def is_known(access: Access) -> bool:
    """Whether the instances are known exactly once the symbols have values."""
    return _is_made_of(access, lambda v: all(is_loop_value(part) or is_symbol(part) for part in leaves(v)))


def is_determined(access: Access, common: Collection[SSAValue]) -> bool:
    """Whether an access is affine in loop variables and values that are the same for all of its instances: fixed in
    the function, or constant in an iteration (`common`)."""
    return _is_made_of(access, lambda v: is_loop_value(v) or is_fixed(v) or v in common)


def _is_made_of(access: Access, is_fine: Callable[[SSAValue], bool]) -> bool:
    if access.indices is None or not access.conditions.exact:
        return False
    return all(is_fine(value) for index in access.expressions for value in index.values())


def loop_name(loop: ForOp) -> str:
    return f"%{loop.induction_variable.name_hint or '?'}"


def is_temporary(buffer: SSAValue) -> bool:
    return isinstance(buffer, OpResult) and isinstance(buffer.op, memref.AllocOp)
