"""Layered drawing of an acyclic graph, second half: where each item stands, and the way of each link.

Layers are rows. Within a row, items keep their order and a gap between them, and stand as near as that allows to the
places where their links come straight down: least squares, solved exactly row by row by pooling adjacent violators,
in sweeps down and up. Between two rows links bend; beside the items of a row they go straight down, so that no link
crosses an item.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import TypeAlias

from weft.backends.picture.layers import Item, Layering, Link, Neighbour

Point: TypeAlias = tuple[float, float]

GAP = 22.0
"""Between two items of a row, in pixels."""
_BEND_WIDTH = 2.0
_ROW_GAP = 34.0
_BORDER_GAP = 6.0
"""Between the items of a cluster and the ends of edges at its border, where all go straight down."""
_STEEPNESS = 0.12
"""Rows move apart by this share of the widest sidestep of a link between them, so that no link lies flat."""
_WIDEST_ROW_GAP = 90.0
_SWEEPS = 32
"""The first half looks at the neighbours above or below, the second at both."""


@dataclass(frozen=True)
class Placement:
    """Centres of the items in x, their tops in y, and the points of each link, all from the top left corner."""

    centres: tuple[float, ...]
    tops: tuple[float, ...]
    routes: tuple[tuple[Point, ...], ...]
    """Between two points of equal x a link is straight, else it bends from upright to upright."""
    width: float
    height: float


def place(items: Sequence[Item], links: Sequence[Link]) -> Placement:
    """Stand items in layers so that every link goes down and nothing overlaps. `links` must be acyclic."""
    layering = Layering(items, links, _BEND_WIDTH)
    centres = _centres(layering, links)
    left = min((x - item.width / 2 for x, item in zip(centres, layering.items, strict=True)), default=0.0)
    centres = [x - left for x in centres]
    heights = [max((layering.items[i].height for i in layer), default=0.0) for layer in layering.layers]
    row_tops = _row_tops(layering, centres, heights)
    tops = [
        row_tops[layer] + (heights[layer] - item.height) / 2
        for item, layer in zip(layering.items, layering.layer_of, strict=True)
    ]
    routes = tuple(
        _route(layering, link, bends, centres, tops, row_tops, heights)
        for link, bends in zip(links, layering.routes, strict=True)
    )
    width = max((x + item.width / 2 for x, item in zip(centres, layering.items, strict=True)), default=0.0)
    height = row_tops[-1] + heights[-1] if heights else 0.0
    return Placement(tuple(centres[: len(items)]), tuple(tops[: len(items)]), routes, width, height)


def _centres(layering: Layering, links: Sequence[Link]) -> list[float]:
    """The x of each item and bend."""
    centres = [0.0] * len(layering.items)
    for layer in layering.layers:
        right = 0.0
        for item in layer:
            centres[item] = right + layering.items[item].width / 2
            right += layering.items[item].width + GAP
    both = [above + below for above, below in zip(layering.above, layering.below, strict=True)]
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        one_side = layering.above if down else layering.below
        for layer in layering.layers if down else reversed(layering.layers):
            _settle(layering, layer, one_side if sweep < _SWEEPS // 2 else both, centres)
    # Twice: a link that was straightened may have made room for one beside it.
    for chain in [*_chains(layering, links), *_chains(layering, links)]:
        _straighten(layering, chain, centres)
    return centres


def _chains(layering: Layering, links: Sequence[Link]) -> list[list[int]]:
    """The bends of each place that links start from, top to bottom: links share them, the longest has them all."""
    longest: dict[tuple[int, float], list[int]] = {}
    for link, route in zip(links, layering.routes, strict=True):
        start = (link.source, link.source_offset)
        longest[start] = max(longest.get(start, []), route, key=len)
    return list(longest.values())


def _straighten(layering: Layering, chain: Sequence[int], centres: list[float]) -> None:
    """Stand as many bends in a row as can be one below the other, as long as their neighbours leave room.

    Straight below what comes before them, or above what comes after, where that can be.
    """
    start = 0
    while start < len(chain):
        low, high = _room(layering, chain[start], centres)
        end = start + 1
        while end < len(chain):
            next_low, next_high = _room(layering, chain[end], centres)
            if max(low, next_low) > min(high, next_high):
                break
            low, high = max(low, next_low), min(high, next_high)
            end += 1
        run = chain[start:end]
        ends = [*layering.above[run[0]], *layering.below[run[-1]]]
        wishes = [centres[n.item] + n.offset for n in ends] + [sum(centres[bend] for bend in run) / len(run)]
        x = next((wish for wish in wishes if low <= wish <= high), min(max(wishes[-1], low), high))
        for bend in run:
            centres[bend] = x
        start = end


def _room(layering: Layering, item: int, centres: Sequence[float]) -> tuple[float, float]:
    """How far an item may move without coming nearer to its neighbours in the row than the gap."""
    row, place = layering.layers[layering.layer_of[item]], layering.place[item]
    low, high = -inf, inf
    if place > 0:
        left = row[place - 1]
        low = centres[left] + (layering.items[left].width + layering.items[item].width) / 2 + GAP
    if place + 1 < len(row):
        right = row[place + 1]
        high = centres[right] - (layering.items[right].width + layering.items[item].width) / 2 - GAP
    return low, high


def _settle(
    layering: Layering, layer: list[int], neighbours: Sequence[Sequence[Neighbour]], centres: list[float]
) -> None:
    """Move the items of a row to the best places that their order and gaps allow."""
    wanted: list[float] = []
    weights: list[float] = []
    for item in layer:
        pulls = [(_weight(layering, item, n), _straight(layering, item, n, centres)) for n in neighbours[item]]
        weight = sum(w for w, _ in pulls)
        wanted.append(sum(w * x for w, x in pulls) / weight if pulls else centres[item])
        weights.append(weight if pulls else 0.05)
    sizes = [layering.items[item].width for item in layer]
    gaps = [(a + b) / 2 + GAP for a, b in pairwise(sizes)]
    for item, x in zip(layer, nearest_with_gaps(wanted, weights, gaps), strict=True):
        centres[item] = x


def _straight(layering: Layering, item: int, neighbour: Neighbour, centres: Sequence[float]) -> float:
    """Where an item stands straight above or below its neighbour."""
    there = neighbour.offset if layering.items[neighbour.item].compound else 0.0
    here = neighbour.own_offset if layering.items[item].compound else 0.0
    return centres[neighbour.item] + there - here


def _weight(layering: Layering, item: int, neighbour: Neighbour) -> float:
    """How much a link wants to be upright.

    Long ones most, for a crooked one is hard to follow. Then the longest path to an item, the spine of the picture,
    before its other sources, such as constants, and before items without other links, which can stand anywhere.
    """
    bends = layering.is_bend(item) + layering.is_bend(neighbour.item)
    if bends:
        return 3.0 if bends == 1 else 8.0
    upper, lower = sorted((item, neighbour.item), key=lambda i: layering.layer_of[i])
    if len(layering.above[upper]) + len(layering.below[upper]) == 1:
        return 0.1
    return 1.0 if layering.depth_of[upper] == layering.depth_of[lower] - 1 else 0.2


def nearest_with_gaps(wanted: Sequence[float], weights: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """The places x, with `x[i + 1] - x[i] >= gaps[i]`, that minimise the weighted sum of `(x[i] - wanted[i]) ** 2`.

    Isotonic regression of what is wanted less the gaps, by pooling adjacent violators. Weights are positive.
    """
    starts = [0.0]
    for gap in gaps:
        starts.append(starts[-1] + gap)
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many
    for target, weight, start in zip(wanted, weights, starts, strict=False):
        mean, count = target - start, 1
        while pools and pools[-1][0] >= mean:
            other, other_weight, other_count = pools.pop()
            mean = (mean * weight + other * other_weight) / (weight + other_weight)
            weight += other_weight
            count += other_count
        pools.append((mean, weight, count))
    means = [mean for mean, _, count in pools for _ in range(count)]
    return [mean + start for mean, start in zip(means, starts, strict=False)]


def _row_tops(layering: Layering, centres: Sequence[float], heights: Sequence[float]) -> list[float]:
    """The y of each row."""
    tops: list[float] = []
    y = 0.0
    for layer, height in zip(layering.layers, heights, strict=True):
        tops.append(y)
        sidesteps = [
            abs(centres[item] + n.own_offset - centres[n.item] - n.offset)
            for item in layer
            for n in layering.below[item]
        ]
        widest = max(sidesteps, default=0.0)
        ports = any(
            layering.items[i].at_top or layering.items[n.item].at_bottom for i in layer for n in layering.below[i]
        )
        gap = min(_ROW_GAP, _BORDER_GAP + widest) if ports else _ROW_GAP
        y += height + min(gap + _STEEPNESS * widest, _WIDEST_ROW_GAP)
    return tops


def _route(
    layering: Layering,
    link: Link,
    bends: Sequence[int],
    centres: Sequence[float],
    tops: Sequence[float],
    row_tops: Sequence[float],
    heights: Sequence[float],
) -> tuple[Point, ...]:
    """The points of a link: down to the end of the row, straight through the rows between, to the top of its target."""
    source_row, target_row = layering.layer_of[link.source], layering.layer_of[link.target]
    start, end = centres[link.source] + link.source_offset, centres[link.target] + link.target_offset
    points = [(start, tops[link.source] + layering.items[link.source].height)]
    points.append((start, row_tops[source_row] + heights[source_row]))
    for bend in bends:
        row = layering.layer_of[bend]
        points += [(centres[bend], row_tops[row]), (centres[bend], row_tops[row] + heights[row])]
    points += [(end, row_tops[target_row]), (end, tops[link.target])]
    return tuple(dict.fromkeys(points))
