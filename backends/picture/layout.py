"""Where everything in the picture of a graph stands.

*Clusters* are laid out first, then stand as boxes among nodes. An edge that crosses the border of a cluster passes a
*port* there: an item without height in the first or the last layer of the cluster. So neither boxes nor clusters
overlap, and no edge passes a box that it does not join.

Each is a layered drawing of an acyclic graph, after Sugiyama, Tagawa and Toda, "Methods for visual understanding of
hierarchical system structures" (1981): longest path layers; a link over several layers gets a *bend* in each layer it
passes, so that it only joins neighbours; then sweeps down and up that order each layer by the barycentre of its
neighbours. Layers are rows. Within a row, items keep their order and a gap between them, and stand as near as that
allows to the places where their links come straight down: least squares, solved exactly row by row by pooling adjacent
violators, in sweeps down and up. Between two rows links bend; beside the items of a row they go straight down, so that
no link crosses an item.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import TypeAlias

from weft.backends.picture.graph_model import Edge, GraphModel

_ORDER_SWEEPS = 24


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
        for layer in self.layers:
            self._set_order(layer, list(layer))
        best, fewest = [list(layer) for layer in self.layers], self.crossings()
        for sweep in range(_ORDER_SWEEPS):
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


PADDING = 16.0
"""Between the border of a cluster and what is in it, in pixels."""
TITLE_BAND = 14.0
"""Above that, for the title of the cluster."""
_PORT_WIDTH = 2.0

Scope: TypeAlias = int | None
"""A cluster, or None for what is in no cluster."""
_Value: TypeAlias = tuple[int, int]
"""A node and the number of one of its results."""


@dataclass(frozen=True)
class Rectangle:
    """Left, top, width and height, in pixels."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Drawing:
    """The places of nodes, clusters (None for an empty one) and edges of a `GraphModel`, in its order."""

    nodes: tuple[Rectangle, ...]
    clusters: tuple[Rectangle | None, ...]
    edges: tuple[tuple[Point, ...], ...]
    """See `Placement.routes`."""
    width: float
    height: float


def lay_out(graph: GraphModel, sizes: Sequence[tuple[float, float]], title_widths: Sequence[float]) -> Drawing:
    """Place a graph whose nodes have the given widths and heights, and whose cluster titles the given widths."""
    layout = _Layout(graph, sizes, title_widths)
    outermost = layout.solve(None)
    layout.fix(None, 0.0, 0.0)
    return Drawing(
        tuple(layout.nodes[node] for node in range(len(graph.nodes))),
        tuple(layout.clusters.get(cluster) for cluster in range(len(graph.clusters))),
        tuple(layout.route(number) for number in range(len(graph.edges))),
        outermost.width,
        outermost.height,
    )


def spread(position: int, count: int, width: float) -> float:
    """Where the `position`-th of `count` edges meets a border of this width, from its middle."""
    return ((position + 1) / (count + 1) - 0.5) * width


_UNPLACED = Placement((), (), (), 0.0, 0.0)


@dataclass
class _Solved:
    """A scope laid out by itself: what its items stand for, and where they are from its own top left corner."""

    item_of_node: dict[int, int] = field(default_factory=dict[int, int])
    item_of_cluster: dict[Scope, int] = field(default_factory=dict[Scope, int])
    in_ports: dict[_Value, int] = field(default_factory=dict[_Value, int])
    out_ports: dict[_Value, int] = field(default_factory=dict[_Value, int])
    link_of_edge: dict[int, int] = field(default_factory=dict[int, int])
    items: list[Item] = field(default_factory=list[Item])
    links: dict[Link, int] = field(default_factory=dict[Link, int])
    placement: Placement = _UNPLACED
    left: float = 0.0
    """Of its content."""
    top: float = 0.0
    width: float = 0.0
    height: float = 0.0

    def add(self, item: Item) -> int:
        self.items.append(item)
        return len(self.items) - 1

    def port(self, ports: dict[_Value, int], value: _Value, item: Item) -> int:
        """The port of a value; edges of one value share it."""
        if value not in ports:
            ports[value] = self.add(item)
        return ports[value]

    def port_offset(self, port: int) -> float:
        """Where a port is on the border, from its middle."""
        return self.left + self.placement.centres[port] - self.width / 2


class _Layout:
    """Sizes from the inside out (`solve`), then places from the outside in (`fix`)."""

    def __init__(self, graph: GraphModel, sizes: Sequence[tuple[float, float]], title_widths: Sequence[float]) -> None:
        self.graph = graph
        self.sizes = sizes
        self.title_widths = title_widths
        self.ways = [_way(graph, edge) for edge in graph.edges]
        self.solved: dict[Scope, _Solved] = {}
        self.origins: dict[Scope, Point] = {}
        self.nodes: dict[int, Rectangle] = {}
        self.clusters: dict[Scope, Rectangle] = {}
        self.edges_in: dict[Scope, list[int]] = defaultdict(list)
        for number, way in enumerate(self.ways):
            for scope in way.scopes:
                self.edges_in[scope].append(number)
        # An empty cluster is not drawn.
        self.filled = {scope for node in graph.nodes for scope in _scopes_around(graph, node.cluster)}

    def solve(self, here: Scope) -> _Solved:
        """Lay out a scope, after those inside of it."""
        solved = self.solved[here] = _Solved()
        for number, cluster in enumerate(self.graph.clusters):
            if cluster.parent == here and number in self.filled:
                inner = self.solve(number)
                solved.item_of_cluster[number] = solved.add(Item(inner.width, inner.height, compound=True))
        for number, node in enumerate(self.graph.nodes):
            if node.cluster == here:
                solved.item_of_node[number] = solved.add(Item(*self.sizes[number]))
        for number in self.edges_in[here]:
            link = self.link(solved, here, number)
            solved.link_of_edge[number] = solved.links.setdefault(link, len(solved.links))
        solved.placement = place(solved.items, list(solved.links))
        solved.width, solved.height = solved.placement.width, solved.placement.height
        if here is not None:
            self.add_border(solved, self.title_widths[here])
        return solved

    def link(self, solved: _Solved, here: Scope, number: int) -> Link:
        """The part of an edge that lies in a scope."""
        edge, way = self.graph.edges[number], self.ways[number]
        value = (edge.source, edge.result)
        step = way.scopes.index(here)
        if step == 0:
            source = solved.item_of_node[edge.source]
            count = self.graph.nodes[edge.source].outputs
            source_offset = spread(edge.result, count, self.sizes[edge.source][0])
        elif step <= way.turn:
            inner = self.solved[way.scopes[step - 1]]
            source = solved.item_of_cluster[way.scopes[step - 1]]
            source_offset = inner.port_offset(inner.out_ports[value])
        else:
            source, source_offset = solved.port(solved.in_ports, value, Item(_PORT_WIDTH, 0.0, at_top=True)), 0.0
        if step == len(way.scopes) - 1:
            target = solved.item_of_node[edge.target]
            count = self.graph.nodes[edge.target].inputs
            target_offset = spread(edge.operand, count, self.sizes[edge.target][0])
        elif step >= way.turn:
            inner = self.solved[way.scopes[step + 1]]
            target = solved.item_of_cluster[way.scopes[step + 1]]
            target_offset = inner.port_offset(inner.in_ports[value])
        else:
            target, target_offset = solved.port(solved.out_ports, value, Item(_PORT_WIDTH, 0.0, at_bottom=True)), 0.0
        return Link(source, target, source_offset, target_offset)

    def add_border(self, solved: _Solved, title_width: float) -> None:
        """Make room for border and title; the title stands at the top left, clear of the edges that come in."""
        entries = [solved.placement.centres[port] for port in solved.in_ports.values()]
        title_end = title_width + PADDING
        solved.left = max(PADDING, title_end + PADDING / 2 - min(entries, default=title_end))
        solved.top = PADDING + TITLE_BAND
        solved.width = max(solved.left + solved.placement.width, title_end) + PADDING
        solved.height = solved.top + solved.placement.height + PADDING

    def fix(self, here: Scope, x: float, y: float) -> None:
        """Place what is in a scope whose top left corner is given."""
        solved = self.solved[here]
        left, top = self.origins[here] = (x + solved.left, y + solved.top)
        if here is not None:
            self.clusters[here] = Rectangle(x, y, solved.width, solved.height)
        for node, item in solved.item_of_node.items():
            width, height = self.sizes[node]
            centre = left + solved.placement.centres[item]
            self.nodes[node] = Rectangle(centre - width / 2, top + solved.placement.tops[item], width, height)
        for cluster, item in solved.item_of_cluster.items():
            centre = left + solved.placement.centres[item]
            self.fix(cluster, centre - self.solved[cluster].width / 2, top + solved.placement.tops[item])

    def route(self, number: int) -> tuple[Point, ...]:
        """The points of an edge, through every scope on its way."""
        points: dict[Point, None] = {}
        for scope in self.ways[number].scopes:
            solved, (left, top) = self.solved[scope], self.origins[scope]
            for x, y in solved.placement.routes[solved.link_of_edge[number]]:
                points[round(left + x, 2), round(top + y, 2)] = None
        return tuple(points)


@dataclass(frozen=True)
class _Way:
    """The scopes an edge passes, from that of its source to that of its target; from `turn` on it goes inwards."""

    scopes: tuple[Scope, ...]
    turn: int


def _way(graph: GraphModel, edge: Edge) -> _Way:
    out = _scopes_around(graph, graph.nodes[edge.source].cluster)
    into = _scopes_around(graph, graph.nodes[edge.target].cluster)
    turn = next(position for position, scope in enumerate(out) if scope in into)
    inwards = into[: into.index(out[turn])]
    return _Way((*out[: turn + 1], *reversed(inwards)), turn)


def _scopes_around(graph: GraphModel, cluster: Scope) -> list[Scope]:
    """`cluster` and the scopes around it, innermost first."""
    found: list[Scope] = [cluster]
    while cluster is not None:
        cluster = graph.clusters[cluster].parent
        found.append(cluster)
    return found
