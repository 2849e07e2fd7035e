"""Recurrent networks, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from weft.texpr.references.activations import sigmoid
from weft.texpr.references.arguments import Array

Activation = Callable[[Array, int], Array]
"""Function of data and direction."""

_FUNCTIONS: dict[str, tuple[Callable[[Array, float, float], Array], float, float]] = {
    "relu": (lambda x, a, b: np.maximum(x, 0), 0, 0),
    "sigmoid": (lambda x, a, b: sigmoid(x), 0, 0),
    "tanh": (lambda x, a, b: np.tanh(x), 0, 0),
    "affine": (lambda x, a, b: a * x + b, 1, 0),
    "leaky_relu": (lambda x, a, b: np.where(x < 0, a * x, x), 0.01, 0),
    "thresholded_relu": (lambda x, a, b: np.where(x > a, x, 0 * x), 1, 0),
    "scaled_tanh": (lambda x, a, b: a * np.tanh(b * x), 1, 1),
    "hard_sigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), 0.2, 0.5),
    "elu": (lambda x, a, b: np.where(x < 0, a * np.expm1(np.minimum(x, 0)), x), 1, 0),
    "softsign": (lambda x, a, b: x / (1 + np.abs(x)), 0, 0),
    "softplus": (lambda x, a, b: np.logaddexp(x, 0), 0, 0),
}
"""Functions of data and two parameters, and the parameters' defaults."""

Cell = Callable[[Array, list[Array], int], list[Array]]
"""(products of data and weights, states, direction) -> new states."""


def _scan(
    data: Array,
    weight: Array | None,
    directions: int,
    bias: Array | None,
    lengths: Array | None,
    states: Sequence[Array | None],
    hidden: int,
    direction: str,
    cell: Cell,
) -> tuple[Array, ...]:
    times, batch, _ = data.shape
    output = np.zeros((times, directions, batch, hidden))
    last = [np.zeros((directions, batch, hidden)) if s is None else s.astype(np.float64) for s in states]
    for d in range(directions):
        for b in range(batch):
            length = times if lengths is None else min(max(int(lengths[b]), 0), times)
            order = range(length)
            for t in reversed(order) if direction == "reverse" or d == 1 else order:
                row = data[t, b].astype(np.float64)
                given = row.reshape(directions, -1)[d] if weight is None else row @ weight[d].T
                given = given if bias is None else given + bias[d, : given.size]
                found = cell(given, [state[d, b] for state in last], d)
                for state, value in zip(last, found, strict=True):
                    state[d, b] = value
                output[t, d, b] = found[0]
    return (output, *last)


def _function(word: str) -> Callable[[Array], Array]:
    name, _, parameters = word.rstrip(")").partition("(")
    function, *defaults = _FUNCTIONS[name]
    given = [float(part) for part in parameters.split(",") if part]
    first, second = [*given, *defaults[len(given) :]]
    return lambda x: function(x, first, second)


def _of_direction(functions: Sequence[Callable[[Array], Array]]) -> Activation:
    return lambda x, d: functions[d if len(functions) > 1 else 0](x)


def _functions(activations: Sequence[str] | None, usual: Sequence[str]) -> list[Activation]:
    found = [_function(word) for word in (activations or usual)]
    return [_of_direction(found[at :: len(usual)]) for at in range(len(usual))]


def _clipped(value: Array, clip: float) -> Array:
    return np.clip(value, -clip, clip) if clip else value


def _scaled(
    weight: Array | None,
    weight_scale: Array | None,
    recurrence: Array,
    recurrence_scale: Array | None,
    zero: Array | None,
    state_scale: float,
) -> tuple[Array | None, Array, Callable[[Array], Array]]:
    if weight is not None and weight_scale is not None:
        weight = weight.astype(np.float64) * weight_scale[..., None]
    if recurrence_scale is not None:
        moved = recurrence.astype(np.float64) - (0.0 if zero is None else zero.astype(np.float64)[..., None])
        recurrence = moved * recurrence_scale[..., None]

    def rounded(state: Array) -> Array:
        if recurrence_scale is None and not state_scale:
            return state
        scale = state_scale or np.abs(state).max(initial=0.0) / 127 or 1.0
        return np.clip(np.rint(state / scale), -127, 127) * scale

    return weight, recurrence, rounded


def _second(bias: Array | None, d: int, count: int) -> Array:
    return np.zeros(count) if bias is None else bias[d, count:]


def rnn(
    data: Array,
    weight: Array | None,
    recurrence: Array,
    bias: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    direction: str = "forward",
    activations: Sequence[str] | None = None,
    clip: float = 0.0,
    weight_scale: Array | None = None,
    recurrence_scale: Array | None = None,
    recurrence_zero_point: Array | None = None,
    state_scale: float = 0.0,
    tile: Sequence[int] = (),
) -> tuple[Array, ...]:
    (f,) = _functions(activations, ["tanh"])
    weight, recurrence, q = _scaled(
        weight, weight_scale, recurrence, recurrence_scale, recurrence_zero_point, state_scale
    )
    hidden = recurrence.shape[2]

    def cell(given: Array, states: list[Array], d: int) -> list[Array]:
        return [f(_clipped(given + recurrence[d] @ q(states[0]) + _second(bias, d, hidden), clip), d)]

    return _scan(data, weight, len(recurrence), bias, sequence_lens, [initial_h], hidden, direction, cell)


def gru(
    data: Array,
    weight: Array | None,
    recurrence: Array,
    bias: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    direction: str = "forward",
    activations: Sequence[str] | None = None,
    clip: float = 0.0,
    linear_before_reset: bool = False,
    weight_scale: Array | None = None,
    recurrence_scale: Array | None = None,
    recurrence_zero_point: Array | None = None,
    state_scale: float = 0.0,
    tile: Sequence[int] = (),
) -> tuple[Array, ...]:
    f, g = _functions(activations, ["sigmoid", "tanh"])
    weight, recurrence, q = _scaled(
        weight, weight_scale, recurrence, recurrence_scale, recurrence_zero_point, state_scale
    )
    n = recurrence.shape[2]

    def cell(given: Array, states: list[Array], d: int) -> list[Array]:
        (h,), second = states, _second(bias, d, 3 * n)
        gates = f(_clipped(given[: 2 * n] + recurrence[d, : 2 * n] @ q(h) + second[: 2 * n], clip), d)
        update, reset = gates[:n], gates[n:]
        rows = recurrence[d, 2 * n :]
        more = reset * (rows @ q(h) + second[2 * n :]) if linear_before_reset else rows @ q(reset * h) + second[2 * n :]
        return [(1 - update) * g(_clipped(given[2 * n :] + more, clip), d) + update * h]

    return _scan(data, weight, len(recurrence), bias, sequence_lens, [initial_h], n, direction, cell)


def lstm(
    data: Array,
    weight: Array | None,
    recurrence: Array,
    bias: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    initial_c: Array | None = None,
    peepholes: Array | None = None,
    direction: str = "forward",
    activations: Sequence[str] | None = None,
    clip: float = 0.0,
    input_forget: bool = False,
    weight_scale: Array | None = None,
    recurrence_scale: Array | None = None,
    recurrence_zero_point: Array | None = None,
    state_scale: float = 0.0,
    tile: Sequence[int] = (),
) -> tuple[Array, ...]:
    f, g, out = _functions(activations, ["sigmoid", "tanh", "tanh"])
    weight, recurrence, q = _scaled(
        weight, weight_scale, recurrence, recurrence_scale, recurrence_zero_point, state_scale
    )
    n = recurrence.shape[2]

    def cell(given: Array, states: list[Array], d: int) -> list[Array]:
        h, old = states
        i, o, forget, c = np.split(given + recurrence[d] @ q(h) + _second(bias, d, 4 * n), 4)
        weights = np.zeros((3, n)) if peepholes is None else peepholes[d].reshape(3, n)
        entered = f(_clipped(i + weights[0] * old, clip), d)
        kept = 1 - entered if input_forget else f(_clipped(forget + weights[2] * old, clip), d)
        new = kept * old + entered * g(_clipped(c, clip), d)
        return [f(_clipped(o + weights[1] * new, clip), d) * out(new, d), new]

    return _scan(data, weight, len(recurrence), bias, sequence_lens, [initial_h, initial_c], n, direction, cell)
