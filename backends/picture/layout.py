"""Where everything in the picture of a graph stands: clusters are laid out first, then stand as boxes among nodes.

An edge that crosses the border of a cluster passes a *port* there: an item without height in the first or the last
layer of the cluster. So neither boxes nor clusters overlap, and no edge passes a box that it does not join.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from weft.backends.picture.graph_model import Edge, GraphModel
from weft.backends.picture.layers import Item, Link
from weft.backends.picture.placement import Placement, Point, place

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
