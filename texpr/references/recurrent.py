"""Recurrent networks, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

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


def _function(word: str) -> Callable[[Array], Array]:
    name, _, parameters = word.rstrip(")").partition("(")
    function, *defaults = _FUNCTIONS[name]
    given = [float(part) for part in parameters.split(",") if part]
    first, second = [*given, *defaults[len(given) :]]
    return lambda x: function(x, first, second)


def _of_direction(functions: Sequence[Callable[[Array], Array]]) -> Activation:
    return lambda x, d: functions[d if len(functions) > 1 else 0](x)


@dataclass
class _Network:
    """The arguments that all networks take."""

    data: Array
    weight: Array | None
    recurrence: Array
    bias: Array | None
    sequence_lens: Array | None
    direction: str
    activations: Sequence[str] | None
    clip: float
    weight_scale: Array | None
    recurrence_scale: Array | None
    recurrence_zero_point: Array | None
    state_scale: float
    tile: Sequence[int]

    @property
    def hidden(self) -> int:
        return self.recurrence.shape[2]

    def functions(self, *usual: str) -> list[Activation]:
        found = [_function(word) for word in (self.activations or usual)]
        return [_of_direction(found[at :: len(usual)]) for at in range(len(usual))]

    def clipped(self, value: Array) -> Array:
        return np.clip(value, -self.clip, self.clip) if self.clip else value

    def second(self, d: int) -> Array:
        """The bias of products with states."""
        count: int = self.recurrence.shape[1]
        return np.zeros(count) if self.bias is None else self.bias[d, count:]

    def rounded(self, state: Array) -> Array:
        if self.recurrence_scale is None and not self.state_scale:
            return state
        scale = self.state_scale or np.abs(state).max(initial=0.0) / 127 or 1.0
        return np.clip(np.rint(state / scale), -127, 127) * scale

    @cached_property
    def rows(self) -> Array:
        """The weights of states."""
        if self.recurrence_scale is None:
            return self.recurrence
        zero = self.recurrence_zero_point
        moved = self.recurrence.astype(np.float64) - (0.0 if zero is None else zero.astype(np.float64)[..., None])
        return moved * self.recurrence_scale[..., None]

    def scan(self, states: Sequence[Array | None], cell: Cell) -> tuple[Array, ...]:
        (times, batch, _), directions, weight = self.data.shape, len(self.recurrence), self.weight
        if weight is not None and self.weight_scale is not None:
            weight = weight.astype(np.float64) * self.weight_scale[..., None]
        output = np.zeros((times, directions, batch, self.hidden))
        last = [np.zeros((directions, batch, self.hidden)) if s is None else s.astype(np.float64) for s in states]
        for d, b in np.ndindex(directions, batch):
            length = times if self.sequence_lens is None else min(max(int(self.sequence_lens[b]), 0), times)
            order = range(length)
            for t in reversed(order) if self.direction == "reverse" or d == 1 else order:
                row = self.data[t, b].astype(np.float64)
                given = row.reshape(directions, -1)[d] if weight is None else row @ weight[d].T
                given = given if self.bias is None else given + self.bias[d, : given.size]
                found = cell(given, [state[d, b] for state in last], d)
                for state, value in zip(last, found, strict=True):
                    state[d, b] = value
                output[t, d, b] = found[0]
        return (output, *last)


def rnn(initial_h: Array | None, **given: Any) -> tuple[Array, ...]:
    network = _Network(**given)
    (f,) = network.functions("tanh")

    def cell(row: Array, states: list[Array], d: int) -> list[Array]:
        return [f(network.clipped(row + network.rows[d] @ network.rounded(states[0]) + network.second(d)), d)]

    return network.scan([initial_h], cell)


def gru(initial_h: Array | None, linear_before_reset: bool, **given: Any) -> tuple[Array, ...]:
    network = _Network(**given)
    f, g = network.functions("sigmoid", "tanh")
    n, q = network.hidden, network.rounded

    def cell(row: Array, states: list[Array], d: int) -> list[Array]:
        (h,), second, rows = states, network.second(d), network.rows[d]
        gates = f(network.clipped(row[: 2 * n] + rows[: 2 * n] @ q(h) + second[: 2 * n]), d)
        update, reset = gates[:n], gates[n:]
        last, bias = rows[2 * n :], second[2 * n :]
        more = reset * (last @ q(h) + bias) if linear_before_reset else last @ q(reset * h) + bias
        return [(1 - update) * g(network.clipped(row[2 * n :] + more), d) + update * h]

    return network.scan([initial_h], cell)


def lstm(
    initial_h: Array | None, initial_c: Array | None, peepholes: Array | None, input_forget: bool, **given: Any
) -> tuple[Array, ...]:
    network = _Network(**given)
    f, g, out = network.functions("sigmoid", "tanh", "tanh")
    n, clipped = network.hidden, network.clipped

    def cell(row: Array, states: list[Array], d: int) -> list[Array]:
        h, old = states
        i, o, forget, c = np.split(row + network.rows[d] @ network.rounded(h) + network.second(d), 4)
        weights = np.zeros((3, n)) if peepholes is None else peepholes[d].reshape(3, n)
        entered = f(clipped(i + weights[0] * old), d)
        kept = 1 - entered if input_forget else f(clipped(forget + weights[2] * old), d)
        new = kept * old + entered * g(clipped(c), d)
        return [f(clipped(o + weights[1] * new), d) * out(new, d), new]

    return network.scan([initial_h, initial_c], cell)
