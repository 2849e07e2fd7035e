"""Where buffers lie in an arena: none overlaps another one that is alive with it, and little is wasted."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Sequence

import pytest
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.dialects.func import FuncOp

from weft.dialects.arena import ARENA_BYTES, arena_attribute, arena_sizes, planned_bytes
from weft.dialects.graph_shapes import KnownExtent, evaluate, multiply, parse_extent, symbol
from weft.passes.graph.arena_layout import (
    ALIGNMENT,
    ArenaLayout,
    Lifetime,
    aligned,
    arena_layout,
    place_buffers,
    slot_layout,
)


def check(lifetimes: Sequence[Lifetime], layout: ArenaLayout, extents: dict[str, int]) -> int:
    """Assert that no two buffers overlap while both are alive; the size of the arena."""

    def number(several: Sequence[KnownExtent]) -> int:
        return max(evaluate(extent, extents) for extent in several)

    places = [
        (number(offset), number(offset) + evaluate(lifetime.size, extents))
        for offset, lifetime in zip(layout.offsets, lifetimes, strict=True)
    ]
    size = number(layout.size)
    for (one, first), (other, second) in itertools.combinations(zip(places, lifetimes, strict=True), 2):
        together = first.first <= second.last and second.first <= first.last
        apart = one[1] <= other[0] or other[1] <= one[0]
        assert not together or apart, (first, one, second, other, extents)
    for start, end in places:
        assert start >= 0
        assert start % ALIGNMENT == 0
        assert end <= size
    return size


def parsed(text: str) -> KnownExtent:
    extent = parse_extent(text)
    assert extent is not None
    return extent


@pytest.mark.parametrize(
    ("lifetimes", "size"),
    [
        ([], 0),
        ([(1, 2, 0)], 0),
        ([(1, 2, 1)], 64),
        ([(1, 2, 64), (3, 4, 128)], 128),
        ([(1, 2, 64), (2, 3, 128)], 192),
        # The last one fits the gap that the first leaves.
        ([(1, 4, 640), (2, 6, 64), (5, 6, 640)], 704),
    ],
)
def test_sizes_of_small_plans(lifetimes: list[tuple[int, int, int]], size: int) -> None:
    found = [Lifetime(*lifetime) for lifetime in lifetimes]
    assert check(found, arena_layout(found, ()), {}) == size


def test_many_random_plans_have_no_overlap() -> None:
    draw = random.Random(5)
    for _ in range(40):
        count = draw.randint(2, 24)
        steps = [sorted(draw.choices(range(1, count + 1), k=2)) for _ in range(count)]
        found = [Lifetime(first, last, draw.choice([0, 4, 64, 100, 4096, 70000])) for first, last in steps]
        check(found, arena_layout(found, ()), {})


def test_random_symbolic_plans_have_no_overlap() -> None:
    draw = random.Random(6)
    sizes = ["4 * n", "256 * n", "4000 * n", "64 * n * m", "4 * m", "100", "8192", "4 * n + 12", "4 * (n floordiv 2)"]
    for _ in range(12):
        count = draw.randint(2, 16)
        steps = [sorted(draw.choices(range(1, count + 1), k=2)) for _ in range(count)]
        found = [Lifetime(first, last, parsed(draw.choice(sizes))) for first, last in steps]
        layout = arena_layout(found, {"n", "m"})
        for n, m in ((0, 0), (1, 1), (1, 300), (300, 1), (7, 13), (64, 64)):
            check(found, layout, {"n": n, "m": m})


def check_slots(lifetimes: Sequence[Lifetime], extents: dict[str, int], names: set[str]) -> int:
    """Assert that no two buffers are alive in one slot, and that each fits its slot; the size of all slots."""
    layout = slot_layout(lifetimes, names)
    sizes = [max(evaluate(size, extents) for size in several) for several in layout.sizes]
    for (slot, first), (other, second) in itertools.combinations(zip(layout.slots, lifetimes, strict=True), 2):
        assert slot != other or first.last < second.first or second.last < first.first, (first, second)
    for slot, lifetime in zip(layout.slots, lifetimes, strict=True):
        assert evaluate(lifetime.size, extents) <= sizes[slot]
    return sum(sizes)


def test_slots() -> None:
    assert check_slots([], {}, set()) == 0
    # The second one shares its slot with the fourth, which is as large, and not with the first, which is alive.
    steps = [(1, 2, 8), (2, 3, 100), (3, 4, 9), (4, 5, 100)]
    assert check_slots([Lifetime(*step) for step in steps], {}, set()) == 109
    draw = random.Random(8)
    for _ in range(40):
        count = draw.randint(2, 24)
        steps = [sorted(draw.choices(range(1, count + 1), k=2)) for _ in range(count)]
        extents = {"n": draw.choice([0, 1, 300]), "m": draw.choice([0, 1, 300])}
        sizes = ["4 * n", "256 * n", "64 * n * m", "4 * m", "8192", "4 * (n floordiv 2)"]
        found = [Lifetime(first, last, parsed(draw.choice(sizes))) for first, last in steps]
        check_slots(found, extents, {"n", "m"})


@pytest.mark.slow
def test_slots_of_graphs_take_little_more_than_an_arena() -> None:
    draw = random.Random(9)
    total = best = 0
    for _ in range(300):
        spans, sizes = random_graph_lifetimes(draw)
        found = [Lifetime(*span, size) for span, size in zip(spans, sizes, strict=True)]
        total += check_slots(found, {}, set())
        best += check(found, arena_layout(found, ()), {})
    assert total <= 1.15 * best


def test_names_that_may_be_negative_are_compared_at_the_call() -> None:
    found = [Lifetime(1, 2, parsed("64 * n")), Lifetime(2, 3, 64), Lifetime(1, 3, parsed("64 * n + 64 * k + 128"))]
    layout = arena_layout(found, {"n"})
    for n, k in ((1, -1), (4, -3), (2, 5)):
        check(found, layout, {"n": n, "k": k})


def test_sizes_of_one_extent_are_planned_as_numbers() -> None:
    """Multiples of one extent need nothing but its multiples at the call."""
    n = symbol("n")
    found = [Lifetime(at, at + 1, multiply(n, 64 * (1 + at % 3)) or 0) for at in range(1, 30)]
    layout = arena_layout(found, {"n"})
    assert all(len(offset) == 1 for offset in layout.offsets)
    assert layout.size == (multiply(n, 64 * 5),)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("1", "64"),
        ("128 * n", "128 * n"),
        ("4000 * n + 4", "4032 * n + 64"),
        ("4 * n", "64 * ((4 * n + 63) floordiv 64)"),
    ],
)
def test_sizes_are_rounded_up(size: str, expected: str) -> None:
    assert aligned(parsed(size), {"n"}) == parsed(expected)


def test_planned_bytes() -> None:
    function = FuncOp("f", ((), ()))
    assert planned_bytes(function, {}) is None
    function.attributes[ARENA_BYTES] = arena_attribute([640])
    assert function.attributes[ARENA_BYTES] == IntegerAttr(640, i64)
    assert planned_bytes(function, {}) == 640
    function.attributes[ARENA_BYTES] = arena_attribute([parsed("64 * n + 64"), parsed("128 * m")])
    assert function.attributes[ARENA_BYTES] == StringAttr("max(64 * n + 64, 128 * m)")
    assert planned_bytes(function, {"n": 3, "m": 1}) == 256
    assert planned_bytes(function, {"n": 3, "m": 3}) == 384
    with pytest.raises(KeyError, match="m"):
        planned_bytes(function, {"n": 3})
    function.attributes[ARENA_BYTES] = ArrayAttr([arena_attribute([parsed("64 * n"), 128]), arena_attribute([100])])
    assert planned_bytes(function, {"n": 1}) == 228
    assert planned_bytes(function, {"n": 3}) == 292


def best_by_search(spans: Sequence[tuple[int, int]], sizes: Sequence[int]) -> int:
    """The least arena. In a least plan that is pushed down, each buffer lies at 0 or on another one that is alive with
    it, so placing buffers in each order, each at 0 or at an end of those placed before, finds it."""
    count = len(sizes)
    overlaps = [
        [a != b and spans[a][0] <= spans[b][1] and spans[b][0] <= spans[a][1] for b in range(count)]
        for a in range(count)
    ]
    best = sum(sizes)
    seen: set[tuple[int, ...]] = set()

    def place(offsets: tuple[int, ...], end: int) -> None:
        nonlocal best
        if end >= best or offsets in seen:
            return
        seen.add(offsets)
        left = [buffer for buffer in range(count) if offsets[buffer] < 0]
        if not left:
            best = end
            return
        for buffer in left:
            others = [o for o in range(count) if offsets[o] >= 0 and overlaps[buffer][o]]
            for start in {0, *(offsets[o] + sizes[o] for o in others)}:
                stop = start + sizes[buffer]
                if all(stop <= offsets[o] or offsets[o] + sizes[o] <= start for o in others):
                    place((*offsets[:buffer], start, *offsets[buffer + 1 :]), max(end, stop))

    place((-1,) * count, 0)
    return best


def random_graph_lifetimes(draw: random.Random) -> tuple[list[tuple[int, int]], list[int]]:
    """The lifetimes of the values of a random graph of up to eight operators."""
    count = draw.randint(5, 8)
    last = list(range(1, count + 1))
    for step in range(2, count + 2):
        for used in draw.sample(range(step - 1), k=min(step - 1, draw.randint(1, 2))):
            last[used] = max(last[used], step)
    return [(at + 1, last[at]) for at in range(count)], [64 * draw.randint(1, 12) for _ in range(count)]


@pytest.mark.slow
def test_plans_are_close_to_the_best_ones() -> None:
    draw = random.Random(7)
    for _ in range(50):
        spans, sizes = random_graph_lifetimes(draw)
        offsets = place_buffers(spans, sizes)
        found = max(offset + size for offset, size in zip(offsets, sizes, strict=True))
        assert found <= 1.1 * best_by_search(spans, sizes)


def chain(count: int) -> list[Lifetime]:
    """The values of a long program, of which a few are alive at a time."""
    return [Lifetime(at, min(at + 1 + at % 5, count), 64 * (1 + at % 7)) for at in range(1, count)]


def test_long_chains_take_what_is_alive_at_a_time() -> None:
    found = chain(600)
    layout = arena_layout(found, ())
    assert check(found[:50], ArenaLayout(layout.offsets[:50], layout.size), {}) <= 64 * 7 * 6


@pytest.mark.slow
def test_the_time_of_a_plan_grows_as_its_length() -> None:
    seconds: list[float] = []
    for count in (2_500, 10_000):
        start = time.process_time()
        arena_layout(chain(count), ())
        seconds.append(time.process_time() - start)
    assert seconds[1] < 8 * seconds[0]


def test_sizes_that_are_maxima() -> None:
    """Sizes of a symbolic arena are separated by the commas of the outer `max` alone."""
    function = FuncOp("f", ((), ()))
    sizes = ["16 * max(n, m - 1)", "4 * (n + max(m, 2))"]
    function.attributes[ARENA_BYTES] = StringAttr(f"max({', '.join(sizes)})")
    assert arena_sizes(function) == [sizes]
    assert planned_bytes(function, {"n": 1, "m": 3}) == 32
    function.attributes[ARENA_BYTES] = StringAttr("max(n, 2) + max(m, 4)")
    assert arena_sizes(function) == [["max(n, 2) + max(m, 4)"]]


def test_sizes_with_negative_terms_are_bounded() -> None:
    """The rows of relative positions, `2 * n - 1`: each offset is the maximum of a few sizes, whatever the length."""
    texts = ("128 * n - 64", "128 * m - 64 * k", "64 * n * m - 64 * m", "64 * k * k - 64 * n", "192 * k - 128 * m")
    sizes = [parsed(texts[at % len(texts)]) for at in range(60)]
    lifetimes = [Lifetime(at, at + 2 + at % 4, size) for at, size in enumerate(sizes, 1)]
    layout = arena_layout(lifetimes, {"n", "m", "k"})
    assert max(map(len, layout.offsets)) <= 5
    for extents in ({"n": 9, "m": 7, "k": 5}, {"n": 100, "m": 8, "k": 11}, {"n": 3, "m": 2, "k": 2}):
        check(lifetimes, layout, extents)
