"""Converters of nodes that hold graphs: If, Loop, Scan.

A nested graph becomes a function, which takes the outer values that it uses. A branch known to be taken is inlined; a
loop whose values change their shape between steps is unrolled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, cast

import numpy as np
from onnx import GraphProto

from weft.dialects.graph_shapes import KnownExtent, ShapeError, show_extent, sum_text
from weft.frontends.graph_builder import Value, const
from weft.frontends.onnx.importer import GraphScope, UnconvertedError, scope_of
from weft.frontends.onnx.indexing import reversed_sequences
from weft.frontends.onnx.known_tensors import Absent, Entry, Item, KnownTensor, TensorSequence, tensors_of
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.node_order import used_names
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import converts
from weft.support.call_preconditions import CallPrecondition
from weft.support.errors import CompileError

_UNROLLED: Final = 64
"""Maximum number of steps of a loop that is unrolled."""


def _captured(node: Node, *graphs: GraphProto) -> dict[str, Entry]:
    """Outer names that the graphs of a node use, with values of the function. Raises `UnconvertedError` for one that
    could not be converted."""
    found: dict[str, Entry] = {}
    for name in sorted(set[str]().union(*map(used_names, graphs))):
        entry = scope_of(node).find(name)
        if entry is None:
            raise UnconvertedError
        if any(isinstance(item, Value) for item in tensors_of(entry)):
            found[name] = entry
    return found


def _values_of(entries: Iterable[Entry]) -> list[Value]:
    return [item for entry in entries for item in tensors_of(entry) if isinstance(item, Value)]


def _with_values(entry: Entry, values: Iterator[Value]) -> Entry:
    if isinstance(entry, TensorSequence):
        return TensorSequence(tuple(next(values) if isinstance(item, Value) else item for item in entry.items))
    return next(values) if isinstance(entry, Value) else entry


def _emitted(scope: GraphScope, entry: Entry) -> Entry:
    if isinstance(entry, TensorSequence):
        return TensorSequence(tuple(map(scope.value_of, entry.items)))
    return entry if isinstance(entry, Absent) else scope.value_of(entry)


def inside(node: Node, label: str, names: dict[str, Entry | None], *, is_function: bool) -> GraphScope:
    scope = scope_of(node)
    return scope.within(f"{scope.place}{node.proto.name or node.operator}/{label}", names, is_function=is_function)


def _several(found: Value | tuple[Value, ...]) -> list[Value]:
    return list(found) if isinstance(found, tuple) else [found]


@converts("If")
def _if(node: Node) -> Sequence[Entry]:
    branches: dict[str, GraphProto] = {name: node.attribute(name) for name in ("then_branch", "else_branch")}
    known = node.scope.known_of(node.item(0))
    known = None if known is None or known.is_symbolic else known
    if known is not None:
        label = "then_branch" if bool(known.array.reshape(-1)[0]) else "else_branch"
        return inside(node, label, {}, is_function=False).outputs_of(branches[label])
    captured = _captured(node, *branches.values())
    made: dict[str, list[Entry]] = {}

    def taking(label: str, *values: Value) -> list[Value]:
        rest = iter(values)
        names: dict[str, Entry | None] = {name: _with_values(entry, rest) for name, entry in captured.items()}
        scope = inside(node, label, names, is_function=True)
        made[label] = [_emitted(scope, entry) for entry in scope.outputs_of(branches[label])]
        return _values_of(made[label])

    def then(*values: Value) -> list[Value]:
        return taking("then_branch", *values)

    def otherwise(*values: Value) -> list[Value]:
        return taking("else_branch", *values)

    condition = node.value(0)
    condition = condition if condition.ndim == 0 else ops.reshape(condition, ())
    emit = scope_of(node).shared.builder.emit_if
    try:
        found = iter(_several(emit(condition, then, otherwise, *_values_of(captured.values()))))
        kinds = [[(type(entry), len(tensors_of(entry))) for entry in made[label]] for label in branches]
        if kinds[0] != kinds[1]:
            raise node.refuse("the branches give sequences of different lengths, or only one gives an optional")
    except CompileError as error:
        refusal = node.refuse(f"{error.message}: input 'cond' must be known at import")
        refusal.unbound = node.scope.sources_of(condition)
        raise refusal from None
    return [_with_values(entry, found) for entry in made["then_branch"]]


@converts("Loop")
def _loop(node: Node) -> Sequence[Entry]:
    body: GraphProto = node.attribute("body")
    steps = node.item(0) if node.has(0) else None
    count = None if steps is None else steps_of(node, steps)
    if node.has(1) and node.scope.known_of(node.item(1)) is not None and not bool(node.number_at(1)):
        count = 0
    if count is None:
        raise node.refuse("input 'M' is missing: a loop whose number of steps depends on data is not supported")
    carried = [node.entry(index) for index in range(2, node.count)]
    shared = scope_of(node).shared
    before = dict(shared.problems)
    try:
        if count != 0:
            tensors = [entry for entry in carried if not isinstance(entry, TensorSequence | Absent)]
            if len(tensors) < len(carried):
                raise node.refuse("sequences change their length from step to step")
            return _compiled_loop(node, body, count, tensors)
    except (CompileError, ShapeError, UnconvertedError):
        # Values may change their shapes, or be known only in each step.
        if not isinstance(count, int) or count > _UNROLLED:
            raise
        shared.problems.clear()
        shared.problems.update(before)
    return _written_out(node, body, cast("int", count), carried)


def steps_of(node: Node, steps: Item) -> KnownExtent:
    """One that depends on data is a new extent. 0 if the condition is false."""
    depends = [node.scope.known_of(item) is None for item in (steps, *([node.item(1)] if node.has(1) else []))]
    if not any(depends):
        return node.extents(0)[0]
    number = ops.reshape(node.scope.value_of(steps), ())
    if depends[1:] == [True]:
        number = ops.where(ops.reshape(node.value(1), ()), number, 0)
    return node.scope.sizes().extent(number)


def _checked_condition(node: Node, scope: GraphScope, entry: Entry) -> None:
    known = None if isinstance(entry, TensorSequence | Absent) else scope.known_of(entry)
    known = None if known is None or known.is_symbolic else known
    if known is None or not bool(np.all(known.array)):
        raise node.refuse("a condition of the attribute 'body' that depends on data is not supported")


def _compiled_loop(node: Node, body: GraphProto, count: KnownExtent, carried: Sequence[Item]) -> Sequence[Item]:
    first = [node.scope.value_of(item) for item in carried]
    captured = _captured(node, body)
    number = len(first)

    def step(place: Value, *values: Value) -> list[Value]:
        rest = iter(values[number:])
        names: dict[str, Entry | None] = {name: _with_values(entry, rest) for name, entry in captured.items()}
        own = [place, KnownTensor(np.array(True), "bool"), *values[:number]]
        names |= dict(zip([entry.name for entry in body.input], own, strict=True))
        scope = inside(node, "body", names, is_function=True)
        condition, *outputs = scope.outputs_of(body)
        _checked_condition(node, scope, condition)
        return _outputs(node, scope, outputs, first)

    steps = count if isinstance(count, int) else str(count)
    found = scope_of(node).shared.builder.emit_loop(step, steps, first, captured=_values_of(captured.values()))
    return _several(found)


def _tensor(node: Node, scope: GraphScope, entry: Entry) -> Value:
    if isinstance(entry, TensorSequence | Absent):
        raise node.refuse("attribute 'body' must give tensors, not sequences or optionals")
    return scope.value_of(entry)


def _outputs(node: Node, scope: GraphScope, outputs: Sequence[Entry], carried: Sequence[Value]) -> list[Value]:
    """Carried values have the shapes that they have before the loop, whose extents are those of the body."""
    found = [_tensor(node, scope, entry) for entry in outputs]
    for at, (value, before) in enumerate(zip(found, carried, strict=False)):
        pairs = list(zip(before.shape, value.shape, strict=False))
        if before.ndim == value.ndim and value.shape != before.shape and all([node.equal(*pair) for pair in pairs]):
            ones = [sum_text(own) for extent, own in pairs if extent == 1 and own is not None and own != 1]
            if all(node.scope.require(CallPrecondition(f"{own} == 1 # a loop keeps shapes")) for own in ones):
                found[at] = ops.prefix(value, before.shape) if ones else ops.broadcast_to(value, before.shape)
    return found


def _written_out(node: Node, body: GraphProto, count: int, carried: Sequence[Entry]) -> Sequence[Entry]:
    current, rows = list(carried), list[list[Entry]]()
    for place in range(count):
        own = [KnownTensor(np.array(place, np.int64), "int64"), KnownTensor(np.array(True), "bool"), *current]
        names: dict[str, Entry | None] = dict(zip([entry.name for entry in body.input], own, strict=True))
        scope = inside(node, f"step {place}", names, is_function=False)
        condition, *outputs = scope.outputs_of(body)
        if place + 1 < count:
            _checked_condition(node, scope, condition)
        current, row = outputs[: len(current)], outputs[len(current) :]
        rows.append(row)
    if not rows and len(node.proto.output) > len(current):
        raise node.refuse("a loop of no steps stacks nothing, whose shape is not known")
    scope = scope_of(node)
    stacked = [ops.stack([_tensor(node, scope, entry) for entry in column]) for column in zip(*rows, strict=True)]
    return [*current, *stacked]


@converts("Scan", since=9)
def _scan(node: Node) -> Sequence[Item]:
    body: GraphProto = node.attribute("body")
    values = node.values()
    number = len(values) - node.integer("num_scan_inputs", 1, len(values))
    scanned = values[number:]
    outputs = len(body.output) - number
    into, out = (
        (node.integers(f"scan_{kind}_axes") or [0] * length, node.integers(f"scan_{kind}_directions") or [0] * length)
        for kind, length in (("input", len(scanned)), ("output", outputs))
    )
    rows = [
        ops.flip(_first(value, axis), 0) if backwards else _first(value, axis)
        for value, axis, backwards in zip(scanned, *into, strict=True)
    ]
    count = rows[0].shape[0]
    if count is None:
        raise node.refuse("the extent of the scanned axis must be known")
    for at, row in enumerate(rows):
        if not node.equal(count, row.shape[0]):
            raise node.refuse(f"scanned tensors have {count} and {show_extent(row.shape[0])} elements along their axes")
        rows[at] = row if row.shape[0] == count else ops.broadcast_to(row, [count, *row.shape[1:]])
    found = _scanned(node, body, values[:number], rows, count, _captured(node, body))
    stacked = [
        ops.moveaxis(ops.flip(value, 0) if backwards else value, 0, axis)
        for value, axis, backwards in zip(found[number:], *out, strict=True)
    ]
    return [*found[:number], *stacked]


def _scanned(
    node: Node,
    body: GraphProto,
    states: Sequence[Value],
    rows: Sequence[Value],
    count: KnownExtent,
    captured: dict[str, Entry],
    length: Value | None = None,
) -> list[Value]:
    """Final states and stacked outputs of a body over the first axis of `rows`. Steps from `length` on keep states and
    output 0."""
    number, taken = len(states), len(states) + len(rows)

    def step(place: Value, *given: Value) -> list[Value]:
        rest = iter(given[taken:])
        names: dict[str, Entry | None] = {name: _with_values(entry, rest) for name, entry in captured.items()}
        names |= dict(zip([entry.name for entry in body.input], given[:taken], strict=True))
        scope = inside(node, "body", names, is_function=True)
        found = _outputs(node, scope, scope.outputs_of(body), given[:number])
        if length is None:
            return found
        is_within = ops.less(place, next(rest))
        others = [*given[:number], *(const(0, value.dtype) for value in found[number:])]
        return [ops.where(is_within, value, other) for value, other in zip(found, others, strict=True)]

    steps = count if isinstance(count, int) else str(count)
    same = [*_values_of(captured.values()), *([] if length is None else [length])]
    return _several(scope_of(node).shared.builder.emit_loop(step, steps, states, rows, same))


@converts("Scan", until=8)
def _batched_scan(node: Node) -> Sequence[Item]:
    """Scans axis 1 of each sequence of a batch, axis 0, as a loop within a loop."""
    body: GraphProto = node.attribute("body")
    values = node.values(1)
    number = len(values) - node.integer("num_scan_inputs", 1, len(values))
    directions = node.integers("directions", count=len(values) - number) or [0] * (len(values) - number)
    lengths = node.optional(0)
    ranks = [1] * number + [2] * len(directions)
    for at, (value, rank) in enumerate(zip(values, ranks, strict=True)):
        if value.ndim < rank:
            raise node.refuse(f"input {at + 1} has {value.ndim} axes, needs at least {rank}: batch, then steps")
    batch, count = values[number].shape[:2]
    if batch is None or count is None:
        raise node.refuse("the extents of the batch and of the scanned axis must be known")
    sized = [*zip(values, ranks, strict=True), *([] if lengths is None else [(lengths, 1)])]
    for value, rank in sized:
        if value.ndim < rank or not all(map(node.equal, (batch, count), value.shape[:rank])):
            shapes = ", ".join(f"({', '.join(map(show_extent, value.shape))})" for value, _ in sized)
            raise node.refuse(f"inputs have one batch, and scanned ones as many steps, got shapes {shapes}")
    rows = [
        value if not backwards else ops.flip(value, 1) if lengths is None else reversed_sequences(value, lengths, 0, 1)
        for value, backwards in zip(values[number:], directions, strict=True)
    ]
    captured = _captured(node, body)
    outer = [*values[:number], *rows, *([] if lengths is None else [ops.cast(lengths, "int64")])]

    def one(place: Value, *given: Value) -> list[Value]:
        del place
        own, rest = given[: len(outer)], iter(given[len(outer) :])
        names = {name: _with_values(entry, rest) for name, entry in captured.items()}
        length = None if lengths is None else own[-1]
        return _scanned(node, body, own[:number], own[number : len(values)], count, names, length)

    steps = batch if isinstance(batch, int) else str(batch)
    builder = scope_of(node).shared.builder
    return _several(builder.emit_loop(one, steps, [], outer, _values_of(captured.values())))


def _first(value: Value, axis: int) -> Value:
    return value if axis == 0 else ops.moveaxis(value, axis, 0)
