"""Converters of recurrent networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known_tensors import Item
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import converts

_ACTIVATIONS: Final[dict[str, tuple[str, tuple[float | None, ...]]]] = {
    "affine": ("affine", (None, 0.0)),
    "elu": ("elu", (1.0,)),
    "hardsigmoid": ("hard_sigmoid", (0.2, 0.5)),
    "leakyrelu": ("leaky_relu", (0.01,)),
    "relu": ("relu", ()),
    "scaledtanh": ("scaled_tanh", (None, None)),
    "sigmoid": ("sigmoid", ()),
    "softplus": ("softplus", ()),
    "softsign": ("softsign", ()),
    "tanh": ("tanh", ()),
    "thresholdedrelu": ("thresholded_relu", (1.0,)),
}
"""Maps an activation in lower case, because ONNX ignores the case, to weft's name and the defaults of alpha and beta.
None marks a required one, which onnxruntime takes to be 0."""


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
    """The activations of both directions, or of each. Those with parameters consume them in order. Raises `Refusal` for
    others, and for parameters that no activation has."""
    parameters: list[list[float]] = [list(node.attribute(f"activation_{name}") or ()) for name in ("alpha", "beta")]
    if not node.has_attribute("activations"):
        node.attribute("activations")
        if any(parameters):
            raise node.refuse("attributes 'activation_alpha' and 'activation_beta' need 'activations'")
        return None
    found: list[str] = []
    for word in node.attribute("activations"):
        if word.lower() not in _ACTIVATIONS:
            raise node.refuse(f"attribute 'activations' has no activation '{word}'; known: {', '.join(_ACTIVATIONS)}")
        name, defaults = _ACTIVATIONS[word.lower()]
        values = [given.pop(0) if given else usual for given, usual in zip(parameters, defaults, strict=False)]
        if None in values:
            raise node.refuse(f"activation '{word}' needs activation_{('alpha', 'beta')[values.index(None)]}")
        found.append(f"{name}({', '.join(map(repr, values))})" if values else name)
    for name, given in zip(("alpha", "beta"), parameters, strict=True):
        if given:
            raise node.refuse(f"attribute 'activation_{name}' has {len(given)} values more than the activations use")
    half = len(found) // 2
    is_both = node.word("direction", "forward", "reverse", "bidirectional") == "bidirectional"
    return found[:half] if is_both and found[:half] == found[half:] else found
