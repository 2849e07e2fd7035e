"""Layered drawing of an acyclic graph, first half: which layer each item stands in, and the order within a layer.

After Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system structures" (1981): longest
path layers; a link over several layers gets a *bend* in each layer it passes, so that it only joins neighbours; then
sweeps down and up that order each layer by the barycentre of its neighbours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_SWEEPS = 24


@dataclass(frozen=True)
class Item:
    """A rectangle that stands in one layer. Sizes are in pixels.

    Items `at_top` have the first layer for themselves, those `at_bottom` the last: there edges cross the border. Links
    to a `compound` item should come straight down to their places on it, for they go on inside; to others they may
    bend, and the centres stand one below the other.
    """

    width: float
    height: float
    compound: bool = False
    at_top: bool = False
    at_bottom: bool = False


@dataclass(frozen=True)
class Link:
    """From the bottom of item `source` to the top of item `target`; offsets are from the centre of each, in pixels."""

    source: int
    target: int
    source_offset: float = 0.0
    target_offset: float = 0.0


@dataclass(frozen=True)
class Neighbour:
    """The other end of a link to the next layer, seen from an item: whom it joins, where there, and where here."""

    item: int
    offset: float
    own_offset: float


class Layering:
    """Items and bends in ordered layers. Bends are numbered on after the items; links of one source place share them.

    `items`, `layer_of` and `depth_of` (of items proper: how many links lead there at most) are by number; `layers`
    holds numbers from left to right; `above` and `below` give the neighbours of a number in the layer over and under
    it; `routes` the bends of each link, from source to target.
    """

    def __init__(self, items: Sequence[Item], links: Sequence[Link], bend_width: float) -> None:
        self.items = list(items)
        self.proper = len(items)
        """How many are items, not bends."""
        self.depth_of, self.layer_of = longest_path_layers(items, links)
        self.layers: list[list[int]] = [[] for _ in range(max(self.layer_of, default=-1) + 1)]
        for item, layer in enumerate(self.layer_of):
            self.layers[layer].append(item)
        self.above: list[list[Neighbour]] = [[] for _ in items]
        self.below: list[list[Neighbour]] = [[] for _ in items]
        self._bends: dict[tuple[int, float, int], int] = {}
        self._bend = Item(bend_width, 0.0)
        self.routes = [list(self._route(link)) for link in links]
        self.place = [0] * len(self.items)
        """The position of each item and bend in its layer."""
        self._order()

    def is_bend(self, item: int) -> bool:
        return item >= self.proper

    def _route(self, link: Link) -> Iterator[int]:
        """Join the ends of a link through bends, new ones or those of a link that starts at the same place."""
        at, offset = link.source, link.source_offset
        for layer in range(self.layer_of[link.source] + 1, self.layer_of[link.target]):
            key = (link.source, link.source_offset, layer)
            bend = self._bends.get(key)
            if bend is None:
                bend = self._bends[key] = len(self.items)
                self.items.append(self._bend)
                self.layer_of.append(layer)
                self.layers[layer].append(bend)
                self.above.append([])
                self.below.append([])
                self._join(at, bend, offset, 0.0)
            at, offset = bend, 0.0
            yield bend
        self._join(at, link.target, offset, link.target_offset)

    def _join(self, upper: int, lower: int, upper_offset: float, lower_offset: float) -> None:
        self.below[upper].append(Neighbour(lower, lower_offset, upper_offset))
        self.above[lower].append(Neighbour(upper, upper_offset, lower_offset))

    def crossings(self) -> int:
        """How many pairs of joined neighbours cross."""
        count = 0
        for layer in self.layers:
            ends = sorted(
                ((self.place[item], n.own_offset), (self.place[n.item], n.offset))
                for item in layer
                for n in self.below[item]
            )
            for index, (start, end) in enumerate(ends):
                count += sum(other_start > start and other_end < end for other_start, other_end in ends[index + 1 :])
        return count

    def _order(self) -> None:
        """Sweep down and up; keep the order with the fewest crossings."""
        self._start_depth_first()
        best, fewest = [list(layer) for layer in self.layers], self.crossings()
        for sweep in range(_SWEEPS):
            if not fewest:
                break
            down = sweep % 2 == 0
            for layer in self.layers if down else reversed(self.layers):
                self._sort_by_barycentre(layer, self.above if down else self.below)
            for layer in self.layers:
                self._exchange_neighbours(layer)
            if (count := self.crossings()) < fewest:
                best, fewest = [list(layer) for layer in self.layers], count
        for layer, order in zip(self.layers, best, strict=True):
            self._set_order(layer, order)

    def _set_order(self, layer: list[int], order: list[int]) -> None:
        layer[:] = order
        for place, item in enumerate(order):
            self.place[item] = place

    def _start_depth_first(self) -> None:
        """Order each layer as a walk up from the last items meets them: it keeps operands in their order."""
        met: dict[int, int] = {}
        for root in range(self.proper):
            stack = [root] if not self.below[root] else []
            while stack:
                item = stack.pop()
                if item not in met:
                    met[item] = len(met)
                    sources = sorted(self.above[item], key=lambda n: n.own_offset, reverse=True)
                    stack.extend(n.item for n in sources)
        for layer in self.layers:
            self._set_order(layer, sorted(layer, key=lambda item: met[item]))

    def _sort_by_barycentre(self, layer: list[int], neighbours: Sequence[Sequence[Neighbour]]) -> None:
        """Order a layer by the mean place of the neighbours on one side; items without any stay as far through it."""
        centre: dict[int, float] = {}
        for place, item in enumerate(layer):
            places = [self.place[n.item] + n.offset / (self.items[n.item].width or 1.0) for n in neighbours[item]]
            centre[item] = sum(places) / len(places) if places else place
        self._set_order(layer, sorted(layer, key=lambda item: centre[item]))

    def _exchange_neighbours(self, layer: list[int]) -> None:
        """Swap two items that stand side by side wherever that takes crossings away."""
        for at in range(len(layer) - 1):
            left, right = layer[at], layer[at + 1]
            if self._crossings_of(left, right) > self._crossings_of(right, left):
                layer[at], layer[at + 1] = right, left
                self.place[left], self.place[right] = at + 1, at

    def _crossings_of(self, left: int, right: int) -> int:
        """How often links of two items of a layer cross when they stand in this order."""
        count = 0
        for neighbours in (self.above, self.below):
            ends = [(self.place[n.item], n.offset) for n in neighbours[right]]
            for n in neighbours[left]:
                end = (self.place[n.item], n.offset)
                count += sum(end > other for other in ends)
        return count


def longest_path_layers(items: Sequence[Item], links: Sequence[Link]) -> tuple[list[int], list[int]]:
    """How many links lead to each item at most, and its layer, below those of all its sources.

    `links` must be acyclic. Items that nothing feeds, and trees of what only they feed, hang right above their first
    target: a constant and its transposition stand by their use, not at the top of the picture.
    """
    targets: dict[int, list[int]] = defaultdict(list)
    sources: dict[int, list[int]] = defaultdict(list)
    for link in links:
        targets[link.source].append(link.target)
        sources[link.target].append(link.source)
    waiting = [len(sources[item]) for item in range(len(items))]
    first = 1 if any(item.at_top for item in items) else 0
    layer = [0 if item.at_top else first for item in items]
    order = [item for item in range(len(items)) if not waiting[item]]
    for item in order:
        for target in targets[item]:
            layer[target] = max(layer[target], layer[item] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                order.append(target)
    last = max((n for n, item in zip(layer, items, strict=True) if not item.at_bottom), default=-1) + 1
    depth = [last if item.at_bottom else n for n, item in zip(layer, items, strict=True)]
    layer = list(depth)
    hanging: set[int] = set()
    for item in order:
        if not items[item].at_top and all(s in hanging and len(targets[s]) == 1 for s in sources[item]):
            hanging.add(item)
    for item in reversed(order):
        if item in hanging and targets[item]:
            layer[item] = min(layer[target] for target in targets[item]) - 1
    return depth, layer
