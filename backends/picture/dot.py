"""Graph functions as DOT, the language of Graphviz: one digraph, a cluster per function.

weft-opt model.mlir -t dot | dot -Tpdf -o model.pdf
weft-opt model.mlir -t 'dot{func=main}'           one of the functions
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from weft.backends.picture.graph_model import Edge, GraphModel, NodeKind, PictureNode, graph_models

_MORE = {NodeKind.CONSTANT: ', fontsize=9, margin="0.08,0.03", height=0.3', NodeKind.OUTPUT: ", penwidth=2"}


@dataclass(frozen=True)
class DotTarget(Target):
    """Graph functions (or the one called `func`) as a DOT digraph. Raises `CompileError` if there is none."""

    name: ClassVar[str] = "dot"

    func: str | None = None
    """The graph function to draw; all of them by default."""

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        output.write(dot_text(graph_models(module, self.func)))


def dot_text(graphs: Sequence[GraphModel]) -> str:
    lines = [
        "digraph {",
        '  graph [fontname="monospace", bgcolor="transparent", fontcolor="#7b828c", color="#7b828c"]',
        # Incoming edges are in operand order.
        '  node [shape=box, fontname="monospace", fontsize=11, ordering=in]',
        '  edge [color="#7b828c", arrowsize=0.7]',
    ]
    for number, graph in enumerate(graphs):
        lines.append(f"  subgraph cluster_{number} {{")
        lines.append(f"    label={_quoted('@' + graph.name)}; labeljust=l; penwidth=0")
        lines += _scope(graph, number, None, "    ")
        lines += [f"    {_edge(edge, number)}" for edge in graph.edges]
        lines.append("  }")
    return "\n".join([*lines, "}", ""])


def _scope(graph: GraphModel, number: int, here: int | None, indent: str) -> Iterator[str]:
    """Nodes and non-empty inner clusters; None is no cluster."""
    for position, node in enumerate(graph.nodes):
        if node.cluster == here:
            yield f"{indent}{_node(node, f'n{number}_{position}')}"
    for position, cluster in enumerate(graph.clusters):
        inside = list(_scope(graph, number, position, f"{indent}  ")) if cluster.parent == here else []
        if inside:
            look = 'labeljust=l; fontsize=10; penwidth=1; style="dashed,rounded"'
            yield f"{indent}subgraph cluster_{number}_{position} {{"
            yield f"{indent}  label={_quoted(cluster.title)}; {look}"
            yield from inside
            yield f"{indent}}}"


def _node(node: PictureNode, name: str) -> str:
    label = _quoted("\n".join((node.title, *node.lines)))
    style = "filled" if node.kind in (NodeKind.OPERATION, NodeKind.CALL) else "rounded,filled"
    look = f'style="{style}", fillcolor="{node.kind.fill}", color="{node.kind.border}"{_MORE.get(node.kind, "")}'
    return f"{name} [label={label}, tooltip={_quoted(node.hover)}, {look}]"


def _edge(edge: Edge, number: int) -> str:
    return f"n{number}_{edge.source} -> n{number}_{edge.target} [tooltip={_quoted(edge.hover)}]"


def _quoted(text: str) -> str:
    """A backslash starts an escape in labels (`\\N` is the node's name), and `&` an HTML entity, also for non-ASCII
    characters."""
    escaped = text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped.encode("ascii", "xmlcharrefreplace").decode("ascii")}"'
