"""Converters of recurrent networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known import Item
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import converts

_ACTIVATIONS: Final = {"Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh"}
"""Activations without parameters -> weft's operators."""


@converts("RNN", "GRU", "LSTM", since=7)
def _recurrent(
    node: Node,
    data: Value,
    weight: Value,
    recurrence: Value,
    *,
    direction: str,
    clip: float = 0.0,
    hidden_size: int | None = None,
    input_forget: bool = False,
    layout: bool = False,
    linear_before_reset: bool = False,
) -> Sequence[Item]:
    hidden = recurrence.shape[-1]
    if hidden_size is not None and not node.equal(hidden, hidden_size):
        raise node.refuse(f"attribute 'hidden_size' must be that of the weights, {hidden}")
    states = [node.optional(at) for at in ((5, 6) if node.operator == "LSTM" else (5,))]
    options: dict[str, Any] = {
        "bias": node.optional(3),
        "sequence_lens": node.optional(4),
        "direction": direction,
        "activations": activations_of(node),
        "clip": clip,
    }
    for name, state in zip(("initial_h", "initial_c"), states, strict=False):
        options[name] = ops.swapaxes(state, 0, 1) if layout and state is not None else state
    if node.operator == "LSTM":
        options |= {"peepholes": node.optional(7), "input_forget": input_forget}
    elif node.operator == "GRU":
        options["linear_before_reset"] = linear_before_reset
    apply = {"RNN": ops.rnn, "GRU": ops.gru, "LSTM": ops.lstm}[node.operator]
    steps, *last = apply(ops.swapaxes(data, 0, 1) if layout else data, weight, recurrence, **options)
    if not layout:
        return [steps, *last]
    return [_batch_first(steps), *(ops.swapaxes(state, 0, 1) for state in last)]


def _batch_first(steps: Value) -> Value:
    return ops.transpose(steps, [2, 0, 1, 3])


def activations_of(node: Node) -> list[str] | None:
    """The activations of both directions. Raises `Refusal` for activations with parameters."""
    for name in ("activation_alpha", "activation_beta"):
        if node.attribute(name):
            raise node.refuse(f"attribute '{name}' = {node.attribute(name)} is not supported")
    if not node.gives("activations"):
        node.attribute("activations")
        return None
    given: list[str] = node.attribute("activations")
    for word in given:
        if word not in _ACTIVATIONS:
            raise node.refuse(f"attribute 'activations' must be of {', '.join(_ACTIVATIONS)}, got '{word}'")
    if node.word("direction", "forward", "reverse", "bidirectional") == "bidirectional":
        half = len(given) // 2
        if given[:half] != given[half:]:
            raise node.refuse(f"attribute 'activations' must be the same in both directions, got {given}")
        given = given[:half]
    return [_ACTIVATIONS[word] for word in given]
