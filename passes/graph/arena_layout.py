"""Placement of buffers with lifetimes in one arena, or in slots for devices that cannot address parts of memory.

Sizes are polynomials of extents (`graph_shapes`). With numeric sizes, each buffer in turn gets the smallest
sufficient gap (best fit, Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference, 2020).
Symbolic offsets keep this order of buffers: each starts at the maximal end of lower ones alive with it, so that
lifetimes of overlapping buffers are disjoint for all extents (docs/decisions/0047-memory-plan.md).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from weft.dialects.graph_shapes import (
    Expression,
    ExtentOperation,
    KnownExtent,
    add,
    evaluate,
    floordiv,
    is_not_negative,
    multiply,
    names_in,
    subtract,
)

ALIGNMENT: Final = 64
"""Alignment of buffers in bytes: a cache line, and the widest vector."""
_TYPICAL_EXTENT: Final = 64
"""The value of symbolic extents that determines the order of buffers."""
_ROUNDED_FROM: Final = 1024
"""Minimum bytes per unit of an extent for which a coefficient is rounded up, instead of the size at the call; wastes at
most 1/16."""
_MOST_ALTERNATIVES: Final = 4
"""Limit of the sizes whose maximum is taken at the call; more are replaced by an upper bound."""
_MOST_PLACEMENTS: Final = 4096
"""Limit of placements of single buffers in the search for better orders."""

Greatest = tuple[KnownExtent, ...]
"""The maximum of several polynomials."""


@dataclass(frozen=True)
class Lifetime:
    """First and last step, from 1, at which a buffer is alive, and its bytes."""

    first: int
    last: int
    size: KnownExtent


@dataclass(frozen=True)
class ArenaLayout:
    """Offsets of buffers, and size of the arena, in bytes."""

    offsets: Sequence[Greatest]
    size: Greatest


def arena_layout(lifetimes: Sequence[Lifetime], not_negative: Collection[str]) -> ArenaLayout:
    """Returns offsets, multiples of `ALIGNMENT`. `not_negative` names non-negative numbers."""
    sizes = [aligned(lifetime.size, not_negative) for lifetime in lifetimes]
    spans = [(lifetime.first, lifetime.last) for lifetime in lifetimes]
    typical = [_typical(size) for size in sizes]
    offsets = place_buffers(spans, typical)
    if all(isinstance(size, int) for size in sizes):
        end = max((offset + size for offset, size in zip(offsets, typical, strict=True)), default=0)
        return ArenaLayout([(offset,) for offset in offsets], (end,))
    found: list[Greatest] = [(0,)] * len(sizes)
    ends: list[Greatest] = [(0,)] * len(sizes)
    below = _Alive(max(last for _, last in spans))
    for buffer in sorted(range(len(sizes)), key=lambda at: (offsets[at], at)):
        first, last = spans[buffer]
        others = [end for other in below.overlapping(first, last) for end in ends[other]]
        found[buffer] = _greatest(others, not_negative)
        ends[buffer] = tuple(offset + sizes[buffer] for offset in found[buffer])
        below.insert(first, last, buffer)
    return ArenaLayout(found, _greatest((end for several in ends for end in several), not_negative))


@dataclass(frozen=True)
class SlotLayout:
    """Slots of buffers, and sizes of slots in bytes."""

    slots: Sequence[int]
    sizes: Sequence[Greatest]


def slot_layout(lifetimes: Sequence[Lifetime], not_negative: Collection[str]) -> SlotLayout:
    """Returns slots, which contain one buffer at a time, at their start."""
    spans = [(lifetime.first, lifetime.last) for lifetime in lifetimes]
    typical = [_typical(lifetime.size) for lifetime in lifetimes]
    slots = share_slots(spans, typical)
    members: list[list[KnownExtent]] = [[] for _ in set(slots)]
    for slot, lifetime in zip(slots, lifetimes, strict=True):
        members[slot].append(lifetime.size)
    return SlotLayout(slots, [_greatest(sizes, not_negative) for sizes in members])


# Symbolic sizes


def aligned(size: KnownExtent, not_negative: Collection[str]) -> KnownExtent:
    """Rounds a size up to a multiple of `ALIGNMENT`, or slightly more."""
    if isinstance(size, int):
        return _rounded(size)
    if all(_is_rounded_whole(monomial, factor, not_negative) for monomial, factor in size.terms):
        terms = ((monomial, _rounded(factor)) for monomial, factor in size.terms)
        return Expression(tuple(terms))
    return multiply(floordiv(add(size, ALIGNMENT - 1), ALIGNMENT), ALIGNMENT)


def _rounded(number: int) -> int:
    return -(-number // ALIGNMENT) * ALIGNMENT


def _is_rounded_whole(monomial: tuple[str | ExtentOperation, ...], factor: int, not_negative: Collection[str]) -> bool:
    if factor % ALIGNMENT == 0 or not monomial:
        return True
    return factor >= _ROUNDED_FROM and is_not_negative(Expression(((monomial, 1),)), not_negative)


def _typical(size: KnownExtent) -> int:
    if isinstance(size, int):
        return size
    return max(evaluate(size, dict.fromkeys(names_in(size), _TYPICAL_EXTENT)), ALIGNMENT)


def _greatest(sizes: Iterable[KnownExtent], not_negative: Collection[str]) -> Greatest:
    numbers: list[int] = []
    kept: list[KnownExtent] = []
    for size in dict.fromkeys(sizes):
        if isinstance(size, int):
            numbers.append(size)
        elif not any(_is_at_least(other, size, not_negative) for other in kept):
            kept = [other for other in kept if not _is_at_least(size, other, not_negative)]
            kept.append(size)
    number = max(numbers, default=0)
    if not kept or (number and not any(_is_at_least(size, number, not_negative) for size in kept)):
        kept.append(number)
    if len(kept) > _MOST_ALTERNATIVES and _are_not_negative(_monomials(kept), not_negative):
        kept = [_at_least_each(kept)]
    return tuple(kept)


def _monomials(sizes: Iterable[KnownExtent]) -> list[KnownExtent]:
    found = {monomial: None for size in sizes if isinstance(size, Expression) for monomial, _ in size.terms if monomial}
    return [Expression(((monomial, 1),)) for monomial in found]


def _are_not_negative(sizes: Iterable[KnownExtent], not_negative: Collection[str]) -> bool:
    return all(is_not_negative(size, not_negative) for size in sizes)


def _is_at_least(left: KnownExtent, right: KnownExtent, not_negative: Collection[str]) -> bool:
    if is_not_negative(subtract(left, right), not_negative):
        return True
    most = _not_less(right, not_negative)
    return most != right and is_not_negative(subtract(left, most), not_negative)


def _not_less(size: KnownExtent, not_negative: Collection[str]) -> KnownExtent:
    """Returns an upper bound without the quotients of `aligned`: n for (4 * n + 63) // 64."""
    total: KnownExtent = 0
    for monomial, factor in size.terms if isinstance(size, Expression) else (((), size),):
        atom = monomial[0] if len(monomial) == 1 else None
        term: KnownExtent = Expression(((monomial, factor),)) if monomial else factor
        if isinstance(atom, ExtentOperation) and factor > 0 and isinstance(atom.left, Expression):
            terms = dict(atom.left.terms)
            if (
                atom.kind == "floordiv"
                and atom.right == ALIGNMENT
                and terms.pop((), 0) < ALIGNMENT
                and is_not_negative(Expression(tuple(terms.items())), not_negative)
            ):
                rounded = tuple((inner, -(-times // ALIGNMENT) * factor) for inner, times in terms.items())
                term = Expression(rounded)
        total += term
    return total


def _at_least_each(sizes: Iterable[KnownExtent]) -> KnownExtent:
    """Returns the greatest coefficient of each monomial, or 0: an upper bound, since no monomial is negative."""
    total: dict[tuple[str | ExtentOperation, ...], int] = {}
    for size in sizes:
        for monomial, factor in (((), size),) if isinstance(size, int) else size.terms:
            total[monomial] = max(factor, total.get(monomial, 0))
    found: KnownExtent = 0
    for monomial, factor in total.items():
        if factor:
            found += Expression(((monomial, factor),)) if monomial else factor
    return found


# Numbers


def place_buffers(spans: Sequence[tuple[int, int]], sizes: Sequence[int]) -> list[int]:
    """Returns offsets. `spans` are the first and last steps of lifetimes."""
    least = _most_at_once(spans, sizes)
    best: list[int] = []
    best_end = -1
    for key in _ORDERS:
        order = sorted(range(len(sizes)), key=lambda at: key(spans[at], sizes[at]))
        spent = 0
        while True:
            offsets = _best_fit(order, spans, sizes)
            ends = [offset + size for offset, size in zip(offsets, sizes, strict=True)]
            end = max(ends, default=0)
            if not best or end < best_end:
                best, best_end = offsets, end
            if end == least or best_end == least:
                return best
            spent += len(order)
            # Buffers at the top are placed first in the next round.
            top = [at for at in order if ends[at] == end]
            if spent >= _MOST_PLACEMENTS or order[: len(top)] == top:
                break
            order = [*top, *(at for at in order if ends[at] != end)]
    return best


def share_slots(spans: Sequence[tuple[int, int]], sizes: Sequence[int]) -> list[int]:
    """Returns slots, from 0. Each buffer in turn gets the free slot that grows least, then wastes least (greedy by
    size, Pisarchyk and Lee)."""
    best: list[int] = []
    least = -1
    for key in _ORDERS:
        found, rooms = _least_growth(sorted(range(len(sizes)), key=lambda at: key(spans[at], sizes[at])), spans, sizes)
        if least < 0 or sum(rooms) < least:
            best, least = found, sum(rooms)
    return best


def _least_growth(
    order: Sequence[int], spans: Sequence[tuple[int, int]], sizes: Sequence[int]
) -> tuple[list[int], list[int]]:
    slots = [0] * len(sizes)
    rooms: list[int] = []
    taken: list[list[tuple[int, int]]] = []
    """The spans of each slot, in order."""
    for buffer in order:
        span, size = spans[buffer], sizes[buffer]
        free = [slot for slot, others in enumerate(taken) if _is_free(others, span)]
        slot = min(free, key=lambda at: (max(size - rooms[at], 0), rooms[at]), default=len(rooms))
        if slot == len(rooms):
            rooms.append(0)
            taken.append([])
        rooms[slot] = max(rooms[slot], size)
        insort(taken[slot], span)
        slots[buffer] = slot
    return slots, rooms


def _is_free(others: Sequence[tuple[int, int]], span: tuple[int, int]) -> bool:
    """Returns whether `span` is disjoint from sorted, disjoint `others`."""
    at = bisect_left(others, span)
    return (at == 0 or others[at - 1][1] < span[0]) and (at == len(others) or span[1] < others[at][0])


_ORDERS: Final[tuple[Callable[[tuple[int, int], int], tuple[int, ...]], ...]] = (
    # Greatest first; ties by longest lifetime.
    lambda span, size: (-size, span[0] - span[1], span[0]),
    # Greatest product of size and lifetime first.
    lambda span, size: (-size * (span[1] - span[0] + 1), span[0]),
    lambda span, size: (span[0] - span[1], -size, span[0]),
    lambda span, size: (span[0], -size),
)
"""Orders in which buffers are placed."""


def _most_at_once(spans: Sequence[tuple[int, int]], sizes: Sequence[int]) -> int:
    """Returns the most bytes alive at one step, a lower bound of the arena."""
    if not spans:
        return 0
    changes = [0] * (max(last for _, last in spans) + 2)
    for (first, last), size in zip(spans, sizes, strict=True):
        changes[first] += size
        changes[last + 1] -= size
    return max(accumulate(changes))


def _best_fit(order: Sequence[int], spans: Sequence[tuple[int, int]], sizes: Sequence[int]) -> list[int]:
    offsets = [0] * len(sizes)
    placed = _Alive(max((last for _, last in spans), default=0))
    for buffer in order:
        first, last = spans[buffer]
        size, end, found, room = sizes[buffer], 0, -1, 0
        for offset, above in sorted((offsets[at], offsets[at] + sizes[at]) for at in placed.overlapping(first, last)):
            gap = offset - end
            if gap >= size and (found < 0 or gap < room):
                found, room = end, gap
            end = max(end, above)
        offsets[buffer] = end if found < 0 else found
        placed.insert(first, last, buffer)
    return offsets


class _Alive:
    """Intervals of steps 1 .. `last` in an interval tree: even steps are above odd ones, multiples of 4 above these,
    and so on. The uppermost node that an interval contains stores it."""

    def __init__(self, last: int) -> None:
        self._levels = range(last.bit_length() + 1)
        self._at: list[list[tuple[int, int, int]]] = [[] for _ in range(last + 1)]

    def insert(self, first: int, last: int, number: int) -> None:
        level = ((first - 1) ^ last).bit_length() - 1
        self._at[last >> level << level].append((first, last, number))

    def overlapping(self, first: int, last: int) -> list[int]:
        found = [number for step in range(first, last + 1) for _, _, number in self._at[step]]
        for step in {first >> level << level for level in self._levels} - {0, first}:
            found += [number for _, end, number in self._at[step] if end >= first]
        for step in {-(-last >> level) << level for level in self._levels} - {last}:
            if step < len(self._at):
                found += [number for start, _, number in self._at[step] if start <= last]
        return found
