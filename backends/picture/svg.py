"""Graph functions as SVG: one standalone file, without scripts, fonts or other external resources.

Colours suit light and dark pages: light boxes with dark text, everything else medium grey. Hovering over a box or an
edge shows its types in IR syntax.

    weft-opt model.mlir -t svg > model.svg            every graph function
    weft-opt model.mlir -t 'svg{func=main}'           one of them
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import IO, ClassVar
from xml.sax.saxutils import escape

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from weft.backends.picture.graph_model import GraphModel, NodeKind, PictureNode, graph_models
from weft.backends.picture.layout import Drawing, Point, Rectangle

_MARGIN = 20.0
_FUNCTION_TITLE = 30.0
"""Height of the title of a function, in pixels."""
_FUNCTION_GAP = 30.0
_TITLE_SIZE = 13.0
_LINE_SIZE = 11.0
_CHARACTER = 0.61
"""Width relative to the font size."""
_EDGE_SPACE = 10.0
"""Minimum distance of edges at a side of a box."""

_GREY = "#7b828c"

_STYLE = "\n".join(
    [
        "text { font-family: 'DejaVu Sans Mono', ui-monospace, Menlo, Consolas, monospace; text-anchor: middle; }",
        f".title {{ font-size: {_TITLE_SIZE:g}px; font-weight: bold; fill: #111827; }}",
        f".line {{ font-size: {_LINE_SIZE:g}px; fill: #374151; }}",
        f".name {{ font-size: 16px; font-weight: bold; fill: {_GREY}; text-anchor: start; }}",
        f".cluster-title {{ font-size: {_LINE_SIZE:g}px; fill: {_GREY}; text-anchor: start; }}",
        f".cluster {{ fill: {_GREY}; fill-opacity: 0.07; stroke: {_GREY}; stroke-dasharray: 5 4; }}",
        f".edge {{ fill: none; stroke: {_GREY}; stroke-width: 1.4; }}",
        ".grip { fill: none; stroke: #000000; stroke-opacity: 0; stroke-width: 9; }",
        ".edge-group:hover .edge { stroke: #ea580c; stroke-width: 2.4; }",
        *(
            f".{kind.name.lower()} {{ fill: {kind.fill}; stroke: {kind.border}; "
            f"stroke-width: {2.4 if kind is NodeKind.OUTPUT else 1.2}; }}"
            for kind in NodeKind
        ),
    ]
)


@dataclass(frozen=True)
class SvgTarget(Target):
    """Graph functions (or the one called `func`) as a standalone SVG. Raises `CompileError` if there is none."""

    name: ClassVar[str] = "svg"

    func: str | None = None
    """The graph function to draw; all of them by default."""

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        output.write(svg_text(graph_models(module, self.func)))


def svg_text(graphs: Sequence[GraphModel]) -> str:
    drawings = [
        Drawing(graph, [_size(node) for node in graph.nodes], [_width(c.title, _LINE_SIZE) for c in graph.clusters])
        for graph in graphs
    ]
    names = [_width(f"@{graph.name}", 16.0) for graph in graphs]
    width = max([*(drawing.width for drawing in drawings), *names]) + 2 * _MARGIN
    parts: list[str] = []
    y = _MARGIN
    for graph, drawing in zip(graphs, drawings, strict=True):
        parts.append(f'<g transform="translate({_MARGIN:g} {_number(y)})">')
        parts.append(f'<text class="name" x="0" y="16">{_escape(f"@{graph.name}")}</text>')
        parts.append(f'<g transform="translate(0 {_FUNCTION_TITLE:g})">')
        parts += _clusters(graph, drawing)
        parts += _edges(graph, drawing)
        parts += [_node(node, box) for node, box in zip(graph.nodes, drawing.nodes, strict=True)]
        parts += ["</g>", "</g>"]
        y += _FUNCTION_TITLE + drawing.height + _FUNCTION_GAP
    return "\n".join([*_head(_number(width), _number(y - _FUNCTION_GAP + _MARGIN), graphs), *parts, "</svg>", ""])


def _head(width: str, height: str, graphs: Sequence[GraphModel]) -> list[str]:
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{_escape(', '.join(f'@{graph.name}' for graph in graphs))}</title>",
        f"<style>\n{_STYLE}\n</style>",
        '<defs><marker id="weft-arrow" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" '
        f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0.5L8 4L0 7.5z" fill="{_GREY}"/></marker></defs>',
    ]


def _size(node: PictureNode) -> tuple[float, float]:
    small = node.kind is NodeKind.CONSTANT
    texts = [_width(node.title, _LINE_SIZE if small else _TITLE_SIZE)]
    texts += [_width(line, _LINE_SIZE) for line in node.lines]
    edges = (max(node.inputs, node.outputs) + 1) * _EDGE_SPACE
    width = max(max(texts) + (14.0 if small else 24.0), edges)
    return (round(width, 1), (9.0 if small else 14.0) + _title_height(node) + 15.0 * len(node.lines))


def _title_height(node: PictureNode) -> float:
    return 14.0 if node.kind is NodeKind.CONSTANT else 17.0


def _width(text: str, size: float) -> float:
    """Pixels; East Asian characters take two columns, combining ones none."""
    places = sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
    return places * size * _CHARACTER


def _clusters(graph: GraphModel, drawing: Drawing) -> list[str]:
    """Outer clusters precede inner ones."""
    parts: list[str] = []
    for cluster, box in zip(graph.clusters, drawing.clusters, strict=True):
        if box is not None:
            parts.append(f'<rect class="cluster" {_box(box)} rx="8"/>')
            x, y = _number(box.x + 12), _number(box.y + 17)
            parts.append(f'<text class="cluster-title" x="{x}" y="{y}">{_escape(cluster.title)}</text>')
    return parts


def _edges(graph: GraphModel, drawing: Drawing) -> list[str]:
    """Each edge has a wide invisible twin, which is easier to hover over."""
    parts: list[str] = []
    for edge, points in zip(graph.edges, drawing.edges, strict=True):
        path = _path(points)
        parts.append(
            f'<g class="edge-group"><title>{_escape(edge.hover)}</title><path class="grip" d="{path}"/>'
            f'<path class="edge" d="{path}" marker-end="url(#weft-arrow)"/></g>'
        )
    return parts


def _path(points: Sequence[Point]) -> str:
    """Straight between vertically aligned points, else a curve with vertical ends."""
    parts = [f"M{_number(points[0][0])} {_number(points[0][1])}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        end = f"{_number(x1)} {_number(y1)}"
        if abs(x0 - x1) < 0.5:
            parts.append(f"L{end}")
        else:
            middle = _number((y0 + y1) / 2)
            parts.append(f"C{_number(x0)} {middle} {_number(x1)} {middle} {end}")
    return "".join(parts)


def _node(node: PictureNode, box: Rectangle) -> str:
    corner = {NodeKind.OPERATION: 3, NodeKind.CALL: 3, NodeKind.CONSTANT: 6}.get(node.kind, 14)
    x = _number(box.x + box.width / 2)
    small = node.kind is NodeKind.CONSTANT
    y = box.y + (4.5 if small else 7.0) + _title_height(node) - 4.0
    texts = [f'<text class="{"line" if small else "title"}" x="{x}" y="{_number(y)}">{_escape(node.title)}</text>']
    for line in node.lines:
        y += 15.0
        texts.append(f'<text class="line" x="{x}" y="{_number(y)}">{_escape(line)}</text>')
    hover = f"<title>{_escape(node.hover)}</title>"
    return f'<g>{hover}<rect class="{node.kind.name.lower()}" {_box(box)} rx="{corner}"/>{"".join(texts)}</g>'


def _box(box: Rectangle) -> str:
    numbers = {"x": box.x, "y": box.y, "width": box.width, "height": box.height}
    return " ".join(f'{name}="{_number(value)}"' for name, value in numbers.items())


def _number(value: float) -> str:
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")


def _escape(text: str) -> str:
    """ASCII, independent of the file's encoding."""
    return escape(text, {'"': "&quot;"}).encode("ascii", "xmlcharrefreplace").decode("ascii")
