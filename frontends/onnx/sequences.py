"""Converters of sequences and optionals. Lengths are known at import, so graphs contain only tensors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import numpy as np
from onnx import GraphProto

from weft.frontends.graph_builder import Value
from weft.frontends.onnx.control_flow import inside
from weft.frontends.onnx.known_tensors import Absent, Entry, Item, KnownTensor, TensorSequence
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import converts
from weft.support.argument_types import shown


@converts("SequenceConstruct")
def _construct(node: Node) -> Entry:
    return TensorSequence(tuple(node.item(index) for index in range(node.count)))


@converts("SequenceEmpty")
def _empty(node: Node) -> Entry:
    node.element_type("dtype")
    return TensorSequence(())


@converts("SequenceLength")
def _length(node: Node) -> Item:
    return KnownTensor(np.array(len(node.sequence(0)), np.int64), "int64")


_LONGEST: Final = 1024
"""Maximum number of elements of an axis that is split into a sequence, each of which may become a tensor."""


def _position(node: Node, index: int, length: int, most: int) -> int:
    place = int(node.number_at(index))
    if not -length <= place <= most:
        raise node.refuse(f"input {node.input_name(index)} = {place} is out of range of a sequence of {length} tensors")
    return place + length if place < 0 else place


@converts("SequenceAt")
def _at(node: Node) -> Item:
    items = node.sequence(0)
    return items[_position(node, 1, len(items), len(items) - 1)]


@converts("SequenceErase")
def _erase(node: Node) -> Entry:
    items = node.sequence(0)
    place = _position(node, 1, len(items), len(items) - 1) if node.has(1) else len(items) - 1
    return TensorSequence((*items[:place], *items[place + 1 :]))


@converts("SequenceInsert")
def _insert(node: Node) -> Entry:
    items = node.sequence(0)
    place = _position(node, 2, len(items), len(items)) if node.has(2) else len(items)
    return TensorSequence((*items[:place], node.item(1), *items[place:]))


@converts("SplitToSequence")
def _split(node: Node, data: Value, *, axis: int) -> Entry:
    extent = data.shape[axis]
    if not isinstance(extent, int):
        raise node.refuse(f"axis {axis} of the symbolic extent {extent} makes no sequence of known length")
    if extent > _LONGEST:
        raise node.refuse(f"a sequence of up to {extent} tensors is too long: at most {_LONGEST}")
    keeps = True
    if not node.has(1):
        keeps, sizes = node.flag("keepdims"), [1] * extent
    else:
        node.attribute("keepdims")  # ignored if sizes are given
        sizes = node.indices(1)
        if node.rank(1) == 0:
            if sizes[0] < 1:
                raise node.refuse(f"input 'split' must be at least 1, got {sizes[0]}")
            sizes = [min(sizes[0], extent - start) for start in range(0, extent, sizes[0])]
    if sum(sizes) != extent or min(sizes, default=0) < 0:
        raise node.refuse(f"input 'split' = {shown(sizes)} does not make {extent}")
    parts: list[Item] = []
    for end, size in zip(accumulate(sizes), sizes, strict=True):
        part = ops.strided_slice(data, [end - size], [end], [1], [axis])
        parts.append(part if keeps else ops.squeeze(part, [axis]))
    return TensorSequence(tuple(parts))


@converts("ConcatFromSequence")
def _concat(node: Node) -> Item:
    values = [node.scope.value_of(item) for item in node.sequence(0)]
    if not values:
        raise node.refuse("an empty sequence makes no tensor")
    is_new = node.flag("new_axis")
    axis = node.axis("axis", values[0].ndim + is_new)
    return ops.stack(values, axis) if is_new else ops.concatenate(values, axis)


@converts("SequenceMap")
def _map(node: Node) -> Sequence[Entry]:
    body: GraphProto = node.attribute("body")
    given = [node.entry(index) for index in range(node.count)]
    lengths = [len(entry.items) for entry in given if isinstance(entry, TensorSequence)]
    if not lengths or len(set(lengths)) > 1:
        raise node.refuse(f"the sequences must have one length, got {lengths}")
    rows: list[list[Item]] = []
    for place in range(lengths[0]):
        own = [entry.items[place] if isinstance(entry, TensorSequence) else entry for entry in given]
        names: dict[str, Entry | None] = dict(zip([entry.name for entry in body.input], own, strict=True))
        found = inside(node, f"body {place}", names, is_function=False).outputs_of(body)
        if any(isinstance(entry, TensorSequence | Absent) for entry in found):
            raise node.refuse("attribute 'body' must give tensors")
        rows.append([entry for entry in found if not isinstance(entry, TensorSequence | Absent)])
    return [TensorSequence(tuple(row[at] for row in rows)) for at in range(len(body.output))]


@converts("Optional")
def _optional(node: Node) -> Entry:
    node.attribute("type")
    return node.entry(0) if node.has(0) else Absent()


@converts("OptionalHasElement")
def _has_element(node: Node) -> Item:
    has = node.has(0) and not isinstance(node.entry(0), Absent)
    return KnownTensor(np.array(has), "bool")


@converts("OptionalGetElement")
def _get_element(node: Node) -> Entry:
    entry = node.entry(0)
    if isinstance(entry, Absent):
        raise node.refuse("input 'input' is an optional without a value")
    return entry
