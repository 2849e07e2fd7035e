"""The layout of the picture of a graph function.

*Clusters* are laid out first, then placed as boxes among nodes. An edge crosses their border at a *port*: an item
without height in the first or last row. Thus no boxes overlap, and no edge crosses an unrelated box.

Each scope is a layered drawing of an acyclic graph, after Sugiyama, Tagawa and Toda, "Methods for visual understanding
of hierarchical system structures" (1981). Rows are longest-path layers. A link gets a *bend* in each row that it
passes, so that links join adjacent rows. Sweeps down and up order each row by the barycentre of its neighbours. Items
keep their order and a minimum gap, as close as possible to positions with vertical links: least squares, row by row, by
pooling adjacent violators. Links curve between rows and are vertical within a row, so that none crosses an item.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from graphlib import TopologicalSorter
from itertools import combinations, pairwise
from math import inf
from typing import TypeAlias

from weft.backends.picture.graph_model import Edge, GraphModel

GAP = 22.0
"""Minimum gap between two items of a row, in pixels."""
_ROW_GAP = 34.0
_BORDER_GAP = 6.0
"""Gap between the items of a cluster and the ends of edges at its border, where all are vertical."""
_STEEPNESS = 0.12
"""The distance of rows grows by this fraction of the widest horizontal offset of a link between them, against flat
links."""
_WIDEST_ROW_GAP = 90.0
_ORDER_SWEEPS = 24
_SWEEPS = 32
"""The first half considers neighbours above or below, the second half both."""


@dataclass(frozen=True)
class Item:
    """Items `at_top` are alone in the first row, those `at_bottom` in the last: there edges cross the border. Links to
    a `compound` item should be vertical, because they continue inside; others align centres. Sizes are in pixels."""

    width: float
    height: float
    compound: bool = False
    at_top: bool = False
    at_bottom: bool = False


_BEND = Item(2.0, 0.0)


@dataclass(frozen=True)
class Link:
    """Offsets in pixels from the centres of the bottom of `source` and the top of `target`."""

    source: int
    target: int
    source_offset: float = 0.0
    target_offset: float = 0.0


@dataclass(frozen=True)
class Neighbour:
    """The other end of a link to an adjacent row, with the offsets there and here."""

    item: int
    offset: float
    own_offset: float


Point: TypeAlias = tuple[float, float]


class Layering:
    """Bends are numbered after items. `items`, `row_of`, `centres` (x) and `tops` (y) are indexed by number; `rows`
    contains numbers from left to right; `above` and `below` are neighbours. Positions are relative to the top left
    corner."""

    def __init__(self, items: Sequence[Item], links: Sequence[Link]) -> None:
        """`links` must be acyclic."""
        self.items = list(items)
        self.proper = len(items)
        self.depth_of, self.row_of = longest_path_layers(items, links)
        """The longest path to an item without bends."""
        self.rows: list[list[int]] = [[] for _ in range(max(self.row_of, default=-1) + 1)]
        self.above: list[list[Neighbour]] = [[] for _ in items]
        self.below: list[list[Neighbour]] = [[] for _ in items]
        self.place: list[int] = []
        """Positions in the row."""
        for item, row in enumerate(self.row_of):
            self._append(item, row)
        self.chains: dict[tuple[int, float], list[int]] = defaultdict(list)
        """The bends below a start of links, shared by its links."""
        self.bends = [self._bends_of(link) for link in links]
        self._order()
        self.centres = [0.0] * len(self.items)
        self._centre()
        heights = [max((self.items[item].height for item in row), default=0.0) for row in self.rows]
        self.row_tops, self.height = self._row_tops(heights)
        self.row_ends = [top + height for top, height in zip(self.row_tops, heights, strict=True)]
        self.tops = [
            self.row_tops[row] + (heights[row] - item.height) / 2
            for item, row in zip(self.items, self.row_of, strict=True)
        ]
        self.width = max((x + item.width / 2 for x, item in zip(self.centres, self.items, strict=True)), default=0.0)
        self.routes = [self._route(link, bends) for link, bends in zip(links, self.bends, strict=True)]
        """The points of a link: a segment with equal x is straight, others curve between vertical ends."""

    def _append(self, item: int, row: int) -> None:
        self.place.append(len(self.rows[row]))
        self.rows[row].append(item)

    def _bends_of(self, link: Link) -> list[int]:
        chain = self.chains[link.source, link.source_offset]
        ends = [(link.source, link.source_offset), *((bend, 0.0) for bend in chain)]
        first = self.row_of[link.source] + 1
        count = self.row_of[link.target] - first
        for row in range(first + len(chain), first + count):
            bend = len(self.items)
            self.items.append(_BEND)
            self.row_of.append(row)
            self._append(bend, row)
            self.above.append([])
            self.below.append([])
            self._join(*ends[-1], bend, 0.0)
            chain.append(bend)
            ends.append((bend, 0.0))
        self._join(*ends[count], link.target, link.target_offset)
        return chain[:count]

    def _join(self, upper: int, upper_offset: float, lower: int, lower_offset: float) -> None:
        self.below[upper].append(Neighbour(lower, lower_offset, upper_offset))
        self.above[lower].append(Neighbour(upper, upper_offset, lower_offset))

    def crossings(self) -> int:
        count = 0
        for row in self.rows:
            ends = sorted(
                ((self.place[item], n.own_offset), (self.place[n.item], n.offset))
                for item in row
                for n in self.below[item]
            )
            count += sum(a < b and a_end > b_end for (a, a_end), (b, b_end) in combinations(ends, 2))
        return count

    def _order(self) -> None:
        best, fewest = [list(row) for row in self.rows], self.crossings()
        for sweep in range(_ORDER_SWEEPS):
            if not fewest:
                break
            down = sweep % 2 == 0
            for row in self.rows if down else reversed(self.rows):
                self._sort_by_barycentre(row, self.above if down else self.below)
            for row in self.rows:
                self._exchange_neighbours(row)
            if (count := self.crossings()) < fewest:
                best, fewest = [list(row) for row in self.rows], count
        for row, order in zip(self.rows, best, strict=True):
            self._set_order(row, order)

    def _set_order(self, row: list[int], order: list[int]) -> None:
        row[:] = order
        for place, item in enumerate(order):
            self.place[item] = place

    def _sort_by_barycentre(self, row: list[int], neighbours: Sequence[Sequence[Neighbour]]) -> None:
        """Items without neighbours keep their relative position."""
        centre: dict[int, float] = {}
        for place, item in enumerate(row):
            places = [self.place[n.item] + n.offset / (self.items[n.item].width or 1.0) for n in neighbours[item]]
            centre[item] = sum(places) / len(places) if places else place
        self._set_order(row, sorted(row, key=lambda item: centre[item]))

    def _exchange_neighbours(self, row: list[int]) -> None:
        for at in range(len(row) - 1):
            left, right = row[at], row[at + 1]
            if self._crossings_of(left, right) > self._crossings_of(right, left):
                row[at], row[at + 1] = right, left
                self.place[left], self.place[right] = at + 1, at

    def _crossings_of(self, left: int, right: int) -> int:
        count = 0
        for neighbours in (self.above, self.below):
            ends = [(self.place[n.item], n.offset) for n in neighbours[right]]
            for n in neighbours[left]:
                end = (self.place[n.item], n.offset)
                count += sum(end > other for other in ends)
        return count

    def _centre(self) -> None:
        for row in self.rows:
            right = 0.0
            for item in row:
                self.centres[item] = right + self.items[item].width / 2
                right += self.items[item].width + GAP
        both = [above + below for above, below in zip(self.above, self.below, strict=True)]
        for sweep in range(_SWEEPS):
            down = sweep % 2 == 0
            one_side = self.above if down else self.below
            for row in self.rows if down else reversed(self.rows):
                self._settle(row, one_side if sweep < _SWEEPS // 2 else both)
        # Twice, because straightening a link may free space for an adjacent one.
        for chain in [*self.chains.values(), *self.chains.values()]:
            self._straighten(chain)
        left = min((x - item.width / 2 for x, item in zip(self.centres, self.items, strict=True)), default=0.0)
        self.centres = [x - left for x in self.centres]

    def _settle(self, row: list[int], neighbours: Sequence[Sequence[Neighbour]]) -> None:
        """The best positions that order and gaps allow."""
        wanted: list[float] = []
        weights: list[float] = []
        for item in row:
            pulls = [(self._weight(item, n), self._straight(item, n)) for n in neighbours[item]]
            weight = sum(w for w, _ in pulls)
            wanted.append(sum(w * x for w, x in pulls) / weight if pulls else self.centres[item])
            weights.append(weight if pulls else 0.05)
        gaps = [self._distance(left, right) for left, right in pairwise(row)]
        for item, x in zip(row, nearest_with_gaps(wanted, weights, gaps), strict=True):
            self.centres[item] = x

    def _distance(self, left: int, right: int) -> float:
        return (self.items[left].width + self.items[right].width) / 2 + GAP

    def _straight(self, item: int, neighbour: Neighbour) -> float:
        there = neighbour.offset if self.items[neighbour.item].compound else 0.0
        here = neighbour.own_offset if self.items[item].compound else 0.0
        return self.centres[neighbour.item] + there - here

    def _weight(self, item: int, neighbour: Neighbour) -> float:
        """Long links first, because crooked ones are hard to follow. The longest path to an item, the spine of the
        picture, precedes constants and items without other links, which can be anywhere."""
        bends = (item >= self.proper) + (neighbour.item >= self.proper)
        if bends:
            return 3.0 if bends == 1 else 8.0
        upper, lower = sorted((item, neighbour.item), key=lambda i: self.row_of[i])
        if len(self.above[upper]) + len(self.below[upper]) == 1:
            return 0.1
        return 1.0 if self.depth_of[upper] == self.depth_of[lower] - 1 else 0.2

    def _straighten(self, chain: Sequence[int]) -> None:
        """Align as many successive bends as neighbours allow, and the item before or after them."""
        start = 0
        while start < len(chain):
            low, high = self._room(chain[start])
            end = start + 1
            while end < len(chain):
                next_low, next_high = self._room(chain[end])
                if max(low, next_low) > min(high, next_high):
                    break
                low, high = max(low, next_low), min(high, next_high)
                end += 1
            run = chain[start:end]
            ends = [*self.above[run[0]], *self.below[run[-1]]]
            wishes = [self.centres[n.item] + n.offset for n in ends]
            wishes.append(sum(self.centres[bend] for bend in run) / len(run))
            x = next((wish for wish in wishes if low <= wish <= high), min(max(wishes[-1], low), high))
            for bend in run:
                self.centres[bend] = x
            start = end

    def _room(self, item: int) -> tuple[float, float]:
        """The range of the centre that keeps the gaps in the row."""
        row, place = self.rows[self.row_of[item]], self.place[item]
        low, high = -inf, inf
        if place > 0:
            low = self.centres[row[place - 1]] + self._distance(row[place - 1], item)
        if place + 1 < len(row):
            high = self.centres[row[place + 1]] - self._distance(item, row[place + 1])
        return low, high

    def _row_tops(self, heights: Sequence[float]) -> tuple[list[float], float]:
        tops: list[float] = []
        y = end = 0.0
        for row, height in zip(self.rows, heights, strict=True):
            tops.append(y)
            end = y + height
            joined = [(item, n) for item in row for n in self.below[item]]
            sidesteps = [abs(self.centres[i] + n.own_offset - self.centres[n.item] - n.offset) for i, n in joined]
            widest = max(sidesteps, default=0.0)
            ports = any(self.items[i].at_top or self.items[n.item].at_bottom for i, n in joined)
            gap = min(_ROW_GAP, _BORDER_GAP + widest) if ports else _ROW_GAP
            y = end + min(gap + _STEEPNESS * widest, _WIDEST_ROW_GAP)
        return tops, end

    def _route(self, link: Link, bends: Sequence[int]) -> tuple[Point, ...]:
        start, end = self.centres[link.source] + link.source_offset, self.centres[link.target] + link.target_offset
        points = [(start, self.tops[link.source] + self.items[link.source].height)]
        points.append((start, self.row_ends[self.row_of[link.source]]))
        for bend in bends:
            row = self.row_of[bend]
            points += [(self.centres[bend], self.row_tops[row]), (self.centres[bend], self.row_ends[row])]
        points += [(end, self.row_tops[self.row_of[link.target]]), (end, self.tops[link.target])]
        return tuple(dict.fromkeys(points))


def longest_path_layers(items: Sequence[Item], links: Sequence[Link]) -> tuple[list[int], list[int]]:
    """The longest path to each item, and its row. `links` must be acyclic. Items without sources, and trees that feed
    only one item, are directly above their first target, not at the top, such as a constant and its transposition."""
    targets: list[list[int]] = [[] for _ in items]
    sources: list[list[int]] = [[] for _ in items]
    for link in links:
        targets[link.source].append(link.target)
        sources[link.target].append(link.source)
    order = list(TopologicalSorter(dict(enumerate(sources))).static_order())
    first = 1 if any(item.at_top for item in items) else 0
    row = [0 if item.at_top else first for item in items]
    for item in order:
        row[item] = max([row[item], *(row[source] + 1 for source in sources[item])])
    last = max((n for n, item in zip(row, items, strict=True) if not item.at_bottom), default=-1) + 1
    depth = [last if item.at_bottom else n for n, item in zip(row, items, strict=True)]
    row = list(depth)
    hanging: set[int] = set()
    for item in order:
        if not items[item].at_top and all(s in hanging and len(targets[s]) == 1 for s in sources[item]):
            hanging.add(item)
    for item in reversed(order):
        if item in hanging and targets[item]:
            row[item] = min(row[target] for target in targets[item]) - 1
    return depth, row


def nearest_with_gaps(wanted: Sequence[float], weights: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """Minimise the weighted sum of `(x[i] - wanted[i]) ** 2` with `x[i + 1] - x[i] >= gaps[i]`: isotonic regression of
    `wanted` minus the gaps, by pooling adjacent violators. Weights are positive."""
    starts = [0.0]
    for gap in gaps:
        starts.append(starts[-1] + gap)
    pools: list[tuple[float, float, int]] = []  # mean, weight, count
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


PADDING = 16.0
"""Padding between the border of a cluster and its content, in pixels."""
TITLE_BAND = 14.0
"""Height of a cluster's title, in pixels."""

Scope: TypeAlias = int | None
"""A cluster, None for the top level."""


@dataclass(frozen=True)
class Rectangle:
    """Pixels."""

    x: float
    y: float
    width: float
    height: float


class _What(Enum):
    """A port is where a value enters or leaves."""

    NODE = auto()
    CLUSTER = auto()
    ENTRY = auto()
    EXIT = auto()


_Key: TypeAlias = tuple[_What, int, int]
"""Kind, number of the node or cluster, and result number."""
_PORTS = {_What.ENTRY: Item(2.0, 0.0, at_top=True), _What.EXIT: Item(2.0, 0.0, at_bottom=True)}


@dataclass
class _Solved:
    """Items start at (`left`, `top`)."""

    item_of: dict[_Key, int]
    link_of: dict[int, int]
    """Edge -> link."""
    layering: Layering
    left: float = 0.0
    top: float = 0.0
    width: float = field(init=False)
    height: float = field(init=False)

    def __post_init__(self) -> None:
        self.width, self.height = self.layering.width, self.layering.height

    def add_border(self, title_width: float) -> None:
        """Space for the border, and the title clear of incoming edges."""
        entries = [self.layering.centres[item] for (what, _, _), item in self.item_of.items() if what is _What.ENTRY]
        title_end = title_width + PADDING
        self.left = max(PADDING, title_end + PADDING / 2 - min(entries, default=title_end))
        self.top = PADDING + TITLE_BAND
        self.width = max(self.left + self.layering.width, title_end) + PADDING
        self.height = self.top + self.layering.height + PADDING


class Drawing:
    """Sizes are computed from the inside out (`_solve`), then positions from the outside in (`_fix`). An empty cluster
    is None. Edges are as in `Layering.routes`."""

    def __init__(self, graph: GraphModel, sizes: Sequence[tuple[float, float]], title_widths: Sequence[float]) -> None:
        self._graph = graph
        self._sizes = sizes
        self._title_widths = title_widths
        self._parts = [_parts(graph, edge) for edge in graph.edges]
        self._solved: dict[Scope, _Solved] = {}
        self._origins: dict[Scope, Point] = {}
        self._boxes: dict[_Key, Rectangle] = {}
        self._filled = {cluster for node in graph.nodes for cluster in _clusters_around(graph, node.cluster)}
        outermost = self._solve(None)
        self._fix(None, 0.0, 0.0)
        self.nodes = [self._boxes[_What.NODE, node, 0] for node in range(len(graph.nodes))]
        self.clusters = [self._boxes.get((_What.CLUSTER, cluster, 0)) for cluster in range(len(graph.clusters))]
        self.edges = [self._route(number) for number in range(len(graph.edges))]
        self.width, self.height = outermost.width, outermost.height

    def _solve(self, here: Scope) -> _Solved:
        items: dict[_Key, Item] = {}
        for number, cluster in enumerate(self._graph.clusters):
            if cluster.parent == here and number in self._filled:
                inner = self._solve(number)
                items[_What.CLUSTER, number, 0] = Item(inner.width, inner.height, compound=True)
        for number, node in enumerate(self._graph.nodes):
            if node.cluster == here:
                items[_What.NODE, number, 0] = Item(*self._sizes[number])
        ends = [(number, part[here]) for number, part in enumerate(self._parts) if here in part]
        for _, pair in ends:
            items.update({key: _PORTS[key[0]] for key in pair if key[0] in _PORTS})
        item_of = {key: number for number, key in enumerate(items)}
        links: dict[Link, int] = {}
        link_of: dict[int, int] = {}
        for number, (start, end) in ends:
            offsets = self._offset(number, start, is_source=True), self._offset(number, end, is_source=False)
            link_of[number] = links.setdefault(Link(item_of[start], item_of[end], *offsets), len(links))
        solved = self._solved[here] = _Solved(item_of, link_of, Layering(list(items.values()), list(links)))
        if here is not None:
            solved.add_border(self._title_widths[here])
        return solved

    def _offset(self, number: int, key: _Key, *, is_source: bool) -> float:
        edge = self._graph.edges[number]
        what, place, _ = key
        if what is _What.NODE:
            node = self._graph.nodes[place]
            position, count = (edge.result, node.outputs) if is_source else (edge.operand, node.inputs)
            return ((position + 1) / (count + 1) - 0.5) * self._sizes[place][0]
        if what is _What.CLUSTER:
            inner = self._solved[place]
            port = inner.item_of[_What.EXIT if is_source else _What.ENTRY, edge.source, edge.result]
            return inner.left + inner.layering.centres[port] - inner.width / 2
        return 0.0

    def _fix(self, here: Scope, x: float, y: float) -> None:
        solved = self._solved[here]
        left, top = self._origins[here] = (x + solved.left, y + solved.top)
        for key, number in solved.item_of.items():
            item = solved.layering.items[number]
            corner = left + solved.layering.centres[number] - item.width / 2, top + solved.layering.tops[number]
            self._boxes[key] = Rectangle(*corner, item.width, item.height)
            if key[0] is _What.CLUSTER:
                self._fix(key[1], *corner)

    def _route(self, number: int) -> tuple[Point, ...]:
        points: dict[Point, None] = {}
        for scope in self._parts[number]:
            solved, (left, top) = self._solved[scope], self._origins[scope]
            for x, y in solved.layering.routes[solved.link_of[number]]:
                points[round(left + x, 2), round(top + y, 2)] = None
        return tuple(points)


def _parts(graph: GraphModel, edge: Edge) -> dict[Scope, tuple[_Key, _Key]]:
    """The scopes of an edge, and the items it joins there."""
    out = _clusters_around(graph, graph.nodes[edge.source].cluster)
    into = _clusters_around(graph, graph.nodes[edge.target].cluster)
    common: Scope = None
    while out and into and out[-1] == into[-1]:
        common = out.pop()
        into.pop()
    starts: list[_Key] = [(_What.NODE, edge.source, 0), *((_What.CLUSTER, cluster, 0) for cluster in out)]
    ends: list[_Key] = [(_What.NODE, edge.target, 0), *((_What.CLUSTER, cluster, 0) for cluster in into)]
    leaving, entering = (_What.EXIT, edge.source, edge.result), (_What.ENTRY, edge.source, edge.result)
    parts: dict[Scope, tuple[_Key, _Key]] = {cluster: (starts[i], leaving) for i, cluster in enumerate(out)}
    parts[common] = starts[-1], ends[-1]
    return parts | {into[i]: (entering, ends[i]) for i in reversed(range(len(into)))}


def _clusters_around(graph: GraphModel, cluster: Scope) -> list[int]:
    found: list[int] = []
    while cluster is not None:
        found.append(cluster)
        cluster = graph.clusters[cluster].parent
    return found
