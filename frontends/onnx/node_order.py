"""Topological order of the nodes of a graph; files may have any order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

from onnx import AttributeProto, GraphProto, NodeProto

from weft.support.errors import CompileError


def graphs_within(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            yield from attribute.graphs


def used_names(graph: GraphProto) -> set[str]:
    own = {entry.name for entry in (*graph.input, *graph.initializer)}
    own |= {entry.values.name for entry in graph.sparse_initializer}
    own.update(name for node in graph.node for name in node.output)
    used = {entry.name for entry in graph.output}
    for node in graph.node:
        used |= names_read(node)
    return {name for name in used if name and name not in own}


def names_read(node: NodeProto) -> set[str]:
    """The names that a node reads, including outer names that its graphs use."""
    found = {name for name in node.input if name}
    for graph in graphs_within(node):
        found |= used_names(graph)
    return found


def ordered(nodes: Sequence[NodeProto]) -> list[tuple[int, NodeProto]]:
    """Nodes with positions in the file, in topological order, otherwise that of the file; cycles are last. Raises
    `CompileError` for a name that two nodes compute."""
    makers: dict[str, int] = {}
    for number, node in enumerate(nodes):
        for name in node.output:
            if name and makers.setdefault(name, number) != number:
                raise CompileError(f"'{name}' is computed by node {makers[name]} and by node {number}")
    before = [{makers[name] for name in names_read(node) if name in makers} for node in nodes]
    if all(max(numbers, default=-1) < number for number, numbers in enumerate(before)):
        return list(enumerate(nodes))
    after: list[list[int]] = [[] for _ in nodes]
    for number, numbers in enumerate(before):
        for other in numbers:
            after[other].append(number)
    left = [len(numbers) for numbers in before]
    ready = [number for number, count in enumerate(left) if not count]
    heapify(ready)
    found: list[int] = []
    while ready:
        number = heappop(ready)
        found.append(number)
        for other in after[number]:
            left[other] -= 1
            if not left[other]:
                heappush(ready, other)
    rest = sorted(set(range(len(nodes))) - set(found))
    return [(number, nodes[number]) for number in (*found, *rest)]
