"""Validates refutations of existence, by evaluating the IR at one iteration after the other.

Loops are fixed from the outermost one inwards; what ranges exclude is not looked at. No sets take part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from weft.analysis.accesses import Access, Conditions
from weft.analysis.index import Index
from weft.analysis.replay import Instance, NotTried, symbols_in, tried

if TYPE_CHECKING:
    from weft.analysis.coverage import Domain
    from weft.analysis.sets import Point
    from weft.dialects.index_map import Interval

TRIES = 4000
"""Partial loop points that one search looks at."""


def is_missed(domain: Domain, missed: Point, otherwise: bool = False) -> bool:
    """Whether an instance (`("iterator", position)` -> value) lies in a domain, and no loop point runs it; `otherwise`
    where that takes too many tries."""
    wanted = [missed["iterator", at] for at in range(len(domain.bindings))]
    loops = [*((loop.induction_variable, loop.extent) for loop in domain.loops), *domain.free_loops]
    search = Search(loops, domain.bindings, domain.conditions, wanted)
    symbols = symbols_in(missed)

    def question() -> bool:
        instance = Instance(symbols)
        inside = all(0 <= w < instance.number(e) for w, e in zip(wanted, domain.extents, strict=True))
        return inside and not search.finds(symbols)

    return tried(question, otherwise)


def is_never_written(writes: Sequence[Access], element: Point, otherwise: bool = False) -> bool:
    """Whether no loop point of some writes writes an element (`("place", dimension)` -> index); `otherwise` where that
    cannot be tried."""

    def question() -> bool:
        for write in writes:
            if write.indices is None:
                raise NotTried
            loops = [(loop.induction_variable, loop.extent) for loop in write.loops]
            wanted = [element["place", at] for at in range(len(write.indices))]
            if Search(loops, write.indices, write.conditions, wanted).finds(symbols_in(element)):
                return False
        return True

    return tried(question, otherwise)


@dataclass
class Search:
    """Looks for a loop point at which the conditions hold and the bindings are what is wanted."""

    loops: Sequence[tuple[SSAValue, int | SSAValue | Index]]
    bindings: Sequence[Index]
    conditions: Conditions
    wanted: Sequence[int]
    left: int = field(default=TRIES)

    def finds(self, symbols: dict[SSAValue, int]) -> bool:
        """Whether there is one. Raises `NotTried` when that takes too many tries."""
        return self._below(0, dict(symbols))

    def _below(self, at: int, given: dict[SSAValue, int]) -> bool:
        """Whether there is one with these values of the first `at` loops."""
        self.left -= 1
        if self.left < 0:
            raise NotTried
        instance = Instance(given)
        if not self._may_be(at, instance):
            return False
        if at == len(self.loops):
            return True
        value, extent = self.loops[at]
        return any(self._below(at + 1, {**given, value: number}) for number in range(instance.extent(extent)))

    def _may_be(self, at: int, instance: Instance) -> bool:
        """Whether ranges leave room for such a point."""
        extents = {value: _known_extent(instance, extent) for value, extent in self.loops[at:]}

        def range_of(value: SSAValue) -> Interval:
            if value in extents:
                extent = extents[value]
                return 0, None if extent is None else extent - 1
            try:
                number = instance.value(value)
            except NotTried:
                return None, None
            return number, number

        rooms = [index - number for index, number in zip(self.bindings, self.wanted, strict=True)]
        for index in (*rooms, *self.conditions.zeros):
            low, high = index.range(range_of)
            if (low is not None and low > 0) or (high is not None and high < 0):
                return False
        highs = (index.range(range_of)[1] for index in self.conditions.positives)
        return all(high is None or high >= 0 for high in highs)


def _known_extent(instance: Instance, extent: int | SSAValue | Index) -> int | None:
    try:
        return instance.extent(extent)
    except NotTried:
        return None
