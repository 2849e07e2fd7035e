"""Recurrent networks with the semantics of ONNX: scans over time.

The products of the data with the weights are one contraction for all times (`<name>_inputs`). The remaining computation
depends on the previous step: statements (`te.extern`) run all steps of one sequence in one direction, and the sequences
of a batch are independent.

Weights may be quantized, with a scale for each gate element. Data are then integers, their scale is included in that of
the weights, and each step rounds the states to 8 bits: both products are int32 sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from weft.dialects.graph_traits import Recurrent, declare
from weft.support.argument_types import shown
from weft.texpr.expr import Expr, as_expr, error
from weft.texpr.extern import Result, Statements, Written, extern
from weft.texpr.math import abs as absolute
from weft.texpr.math import const, round, select, sigmoid, tanh
from weft.texpr.ops.arguments import compute, floating, integral, is_one_of, one_dtype, ranked, shaped, sum_dtype
from weft.texpr.ops.elementwise import cast as converted
from weft.texpr.ops.transforms import transpose
from weft.texpr.reductions import max as greater
from weft.texpr.reductions import min as less
from weft.texpr.reductions import reduce_axis
from weft.texpr.reductions import sum as sum_over
from weft.texpr.shapes import Extent, simplified
from weft.texpr.tensor import Tensor

__all__ = ["gru", "lstm", "rnn"]

_ACTIVATIONS: dict[str, Callable[[Expr], Expr]] = {
    "relu": lambda x: greater(x, 0.0),
    "sigmoid": sigmoid,
    "tanh": tanh,
}
_DIRECTIONS = ("forward", "reverse", "bidirectional")


@dataclass(frozen=True)
class _Cell:
    """The number of gates of an operator, its default activations, and the names of its states."""

    what: str
    gates: int
    activations: tuple[str, ...]
    states: tuple[str, ...]


_RNN: Final = _Cell("rnn", 1, ("tanh",), ("initial_h",))
_GRU: Final = _Cell("gru", 3, ("sigmoid", "tanh"), ("initial_h",))
_LSTM: Final = _Cell("lstm", 4, ("sigmoid", "tanh", "tanh"), ("initial_h", "initial_c"))


@dataclass(frozen=True)
class _CellWeights:
    """Weights of the data and of the states, their biases, and the scales of quantized weights."""

    data: Tensor
    states: Tensor
    bias: Tensor | None
    data_scale: Tensor | None
    states_scale: Tensor | None
    state_scale: float


@dataclass(frozen=True)
class _Options:
    """Attributes of all operators, and the lengths of sequences."""

    lengths: Tensor | None
    direction: str
    activations: Sequence[str] | None
    clip: float
    name: str


@dataclass(frozen=True)
class _Network:
    """The checked operands of a recurrent network with gates of `hidden` elements each."""

    what: str
    name: str
    inputs: Tensor
    """Products with the weights, plus biases, at [time, direction, sequence, gate * hidden + element]."""
    recurrence: Tensor
    """[direction, element of the state, gate * hidden + element]"""
    lengths: Tensor | None
    states: tuple[Tensor | None, ...]
    others: tuple[Tensor, ...]
    direction: str
    activations: tuple[Callable[[Expr], Expr], ...]
    clip: float
    dtype: str
    scales: Tensor | None
    """[direction, gate * hidden + element] of a quantized recurrence."""
    state_scale: float
    """The scale of states as 8-bit integers; 0: the maximum absolute state divided by 127, at each step."""

    @property
    def wide(self) -> str:
        return sum_dtype(self.dtype)

    @property
    def hidden(self) -> Extent:
        return self.recurrence.shape[1]

    def limited(self, value: Expr) -> Expr:
        return less(greater(value, -self.clip), self.clip) if self.clip else value

    def scan(self, scratch: Sequence[Extent], step: Callable[[Statements, _Step], None]) -> tuple[Tensor, ...]:
        """The output at each time, and the final states. `step` has buffers of `scratch` elements."""
        times, directions, batch = self.inputs.shape[:3]
        labels = [f"{self.name}_state{d}" for d in range(len(self.states))]
        shapes = [(times, directions, batch, self.hidden), *[(directions, batch, self.hidden)] * len(self.states)]
        results = [Result(shape, self.wide, label) for shape, label in zip(shapes, [self.name, *labels], strict=True)]
        memory = [
            Result((directions, batch, size), self.wide, f"{self.name}_memory{d}") for d, size in enumerate(scratch)
        ]
        if self.scales is not None:
            memory.append(Result((directions, batch, 1), self.wide, f"{self.name}_state_scale"))
            memory.append(Result((directions, batch, self.inputs.shape[3]), "int32", f"{self.name}_sums"))
        reads = [self.inputs, self.recurrence, self.lengths, self.scales, *self.states, *self.others]

        def write(code: Statements, indices: Sequence[Expr], output: Written, *buffers: Written) -> None:
            d, b = indices
            states = buffers[: len(self.states)]
            for state, initial in zip(states, self.states, strict=True):
                with code.loop(self.hidden, "h") as h:
                    value = const(0.0, self.wide) if initial is None else initial(d, b, h).astype(self.wide)
                    state.store(value, d, b, h)
            length = as_expr(times)
            if self.lengths is not None:
                length = greater(less(self.lengths(b).astype("int64"), times), 0)
            with code.loop(length, "s") as s:
                back = length - 1 - s
                time = {"forward": s, "reverse": back}.get(self.direction)
                time = select(d == 1, back, s) if time is None else time
                memory = buffers[len(self.states) :]
                step(code, _Step(time, d, b, output, states, memory[: len(scratch)], memory[len(scratch) :]))
            if self.lengths is not None:
                with code.loop(times - length, "s") as s, code.loop(self.hidden, "h") as h:
                    output.store(0.0, length + s, d, b, h)

        found = extern((directions, batch), [*results, *memory], [t for t in reads if t is not None], write, self.name)
        kept = found[: len(results)]
        if self.wide == self.dtype:
            return kept
        return tuple(converted(tensor, self.dtype, name=f"{tensor.name}_cast") for tensor in kept)

    def add_products(
        self,
        code: Statements,
        at: _Step,
        target: Written,
        factor: Callable[[Expr], Expr],
        first: Extent,
        count: Extent,
        into: Extent = 0,
    ) -> None:
        """Add `factor(k)` times row k of the recurrence, starting at gate element `first`, to `target`, for all k. The
        inner loop is along rows, so that it is not a reduction."""
        if self.scales is not None:
            self._add_integers(code, at, target, factor, self.scales, first, count, into)
            return
        with code.loop(self.hidden, "k") as k:
            value = factor(k)
            if self.state_scale:
                value = self._steps(value, const(self.state_scale, self.wide)) * self.state_scale
            with code.loop(count, "g") as g:
                place = g if isinstance(into, int) and into == 0 else g + into
                column = g if isinstance(first, int) and first == 0 else g + first
                product = value * self.recurrence(at.direction, k, column).astype(self.wide)
                target.store(target.load(*at.outer, place) + product, *at.outer, place)

    def _steps(self, value: Expr, scale: Expr) -> Expr:
        """A state divided by a scale, as a whole number of 8 bits."""
        return less(greater(round(value / scale), -_MOST), _MOST)

    def _add_integers(
        self,
        code: Statements,
        at: _Step,
        target: Written,
        factor: Callable[[Expr], Expr],
        scales: Tensor,
        first: Extent,
        count: Extent,
        into: Extent,
    ) -> None:
        """`add_products` with int32 sums."""
        scale, sums = at.rounding
        scale.store(self.state_scale, *at.outer, 0)
        if not self.state_scale:
            with code.loop(self.hidden, "k") as k:
                scale.store(greater(scale.load(*at.outer, 0), absolute(factor(k))), *at.outer, 0)
            most = scale.load(*at.outer, 0)
            scale.store(select(most > 0.0, most / _MOST, 1.0), *at.outer, 0)
        with code.loop(count, "g") as g:
            sums.store(0, *at.outer, g)
        with code.loop(self.hidden, "k") as k:
            steps = self._steps(factor(k), scale.load(*at.outer, 0)).astype("int32")
            with code.loop(count, "g") as g:
                product = steps * self.recurrence(at.direction, k, g + first).astype("int32")
                sums.store(sums.load(*at.outer, g) + product, *at.outer, g)
        with code.loop(count, "g") as g:
            total = sums.load(*at.outer, g).astype(self.wide)
            total = total * (scale.load(*at.outer, 0) * scales(at.direction, g + first).astype(self.wide))
            target.store(target.load(*at.outer, g + into) + total, *at.outer, g + into)


_MOST: Final = 127.0
"""The maximum state as an 8-bit integer."""
_INTEGERS: Final = ("int8", "uint8", "int16")
"""Integer types of data and weights."""


@dataclass(frozen=True)
class _Step:
    """One step of a sequence."""

    time: Expr
    direction: Expr
    sequence: Expr
    output: Written
    states: Sequence[Written]
    memory: Sequence[Written]
    rounding: Sequence[Written]
    """The scale of the states and the sums, for quantized weights."""

    @property
    def outer(self) -> tuple[Expr, Expr]:
        return self.direction, self.sequence


def _network(
    cell: _Cell,
    data: Tensor,
    weights: _CellWeights,
    states: Sequence[Tensor | None],
    options: _Options,
    peepholes: Tensor | None = None,
    *,
    apart: bool = False,
) -> _Network:
    """Check the operands. With `apart`, the recurrent bias of the last gate is not added."""
    what, gates, usual, name = cell.what, cell.gates, cell.activations, options.name
    bias, lengths, direction = weights.bias, options.lengths, options.direction
    x, w, r = (
        ranked(tensor, f"{what}: {label}", 3)
        for tensor, label in ((data, "data"), (weights.data, "weight"), (weights.states, "recurrence"))
    )
    weight_scale, recurrence_scale = weights.data_scale, weights.states_scale
    is_integer = weight_scale is not None or recurrence_scale is not None
    for tensor, label in ((x, "data"), (w, "weight"), (r, "recurrence")):
        if not is_integer:
            floating(tensor, f"{what}: {label}")
        elif tensor.dtype not in _INTEGERS:
            raise error(f"{what}: with scales the {label} must hold {', '.join(_INTEGERS)}, got {tensor.dtype}")
    if is_integer and (weight_scale is None or recurrence_scale is None):
        raise error(f"{what} takes weight_scale and recurrence_scale together")
    if not is_one_of(direction, _DIRECTIONS):
        raise error(f"{what}: the direction is one of {', '.join(_DIRECTIONS)}, got {shown(direction)}")
    given = options.activations
    words = tuple(usual if given is None else given)
    if len(words) != len(usual) or not all(is_one_of(word, tuple(_ACTIVATIONS)) for word in words):
        raise error(f"{what} takes {len(usual)} activations of {', '.join(_ACTIVATIONS)}, got {shown(given)}")
    directions = 2 if direction == "bidirectional" else 1
    times, batch, size = x.shape
    hidden = r.shape[2]
    shaped(w, f"{what}: weight", (directions, simplified(hidden * gates), size))
    shaped(r, f"{what}: recurrence", (directions, simplified(hidden * gates), hidden))
    if bias is not None:
        shaped(bias, f"{what}: bias", (directions, simplified(hidden * (2 * gates))))
    if lengths is not None:
        integral(shaped(lengths, f"{what}: sequence_lens", (batch,)), f"{what}: sequence_lens")
    for label, state in zip(cell.states, states, strict=True):
        if state is not None:
            shaped(state, f"{what}: {label}", (directions, batch, hidden))
    if peepholes is not None:
        shaped(peepholes, f"{what}: peepholes", (directions, simplified(hidden * 3)))
    for label, tensor in (("weight_scale", weight_scale), ("recurrence_scale", recurrence_scale)):
        if tensor is not None:
            floating(shaped(tensor, f"{what}: {label}", (directions, simplified(hidden * gates))), f"{what}: {label}")
    factors = (weight_scale, recurrence_scale) if is_integer else (x, w, r)
    dtype = one_dtype(what, *factors, bias, *states, peepholes)
    wide = sum_dtype(dtype)
    sums = "int32" if is_integer else wide
    i = reduce_axis((0, size), "i")

    def product(t: Expr, d: Expr, b: Expr, g: Expr) -> Expr:
        return sum_over(x(t, b, i).astype(sums) * w(d, g, i).astype(sums), axis=i)

    shape = (times, directions, batch, simplified(hidden * gates))
    is_last = bias is None and weight_scale is None
    inputs = compute(shape, product, f"{name}_inputs" if is_last else f"{name}_product", "tdbg")
    if weight_scale is not None:
        totals, by = inputs, weight_scale

        def scaled(t: Expr, d: Expr, b: Expr, g: Expr) -> Expr:
            return totals(t, d, b, g).astype(wide) * by(d, g).astype(wide)

        inputs = compute(shape, scaled, f"{name}_inputs" if bias is None else f"{name}_scaled", "tdbg")
    if bias is not None:
        products, biases = inputs, bias

        def biased(t: Expr, d: Expr, b: Expr, g: Expr) -> Expr:
            second = biases(d, g + hidden * gates).astype(wide)
            if apart:
                second = select(g < hidden * (gates - 1), second, 0.0)
            return products(t, d, b, g) + biases(d, g).astype(wide) + second

        inputs = compute(shape, biased, f"{name}_inputs", "tdbg")
    turned = transpose(r, (0, 2, 1), name=f"{name}_recurrence")
    others = tuple(tensor for tensor in (peepholes, bias if apart else None) if tensor is not None)
    functions = tuple(_ACTIVATIONS[word] for word in words)
    return _Network(
        what,
        name,
        inputs,
        turned,
        lengths,
        tuple(states),
        others,
        direction,
        functions,
        float(options.clip),
        dtype,
        recurrence_scale,
        _state_scale(what, weights.state_scale),
    )


def _state_scale(what: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < inf:
        raise error(f"{what}: state_scale must be a number from 0 on, got {shown(value)}")
    return float(value)


def rnn(
    data: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    direction: str = "forward",
    activations: Sequence[str] | None = None,
    clip: float = 0.0,
    weight_scale: Tensor | None = None,
    recurrence_scale: Tensor | None = None,
    state_scale: float = 0.0,
    *,
    name: str = "rnn",
) -> tuple[Tensor, Tensor]:
    """h = f(x W + h R + b) at each time: the states (times, directions, batch, hidden), and the last one.

    Data are (times, batch, inputs), weights (directions, gates * hidden, inputs), recurrent weights (directions, gates
    * hidden, hidden). The bias (directions, 2 * gates * hidden) is one for the data followed by one for the states;
    there is one gate here. `direction` is forward, reverse or bidirectional, with 2 directions. Steps after
    `sequence_lens` (batch) output 0 and keep the states. Initial states are (directions, batch, hidden), by default 0.
    `activations` are those of both directions: relu, sigmoid, tanh. If `clip` is not 0, their arguments are clamped to
    -clip .. clip. 16-bit floats are computed in float32.

    With `weight_scale` and `recurrence_scale` (directions, gates * hidden) data and weights are integers with their
    zero points subtracted: int8, uint8 or int16. x W is then the exact int32 sum times `weight_scale`, which includes
    the scale of the data. Before their product, states are rounded to whole multiples, -127 to 127, of `state_scale`,
    or if that is 0, of the maximum absolute state divided by 127, at each step. A nonzero `state_scale` also rounds the
    states of float weights.

    Dtypes: floats; `sequence_lens` are integers.
    Equals: `torch.nn.RNN`; ONNX RNN.
    """
    weights = _CellWeights(weight, recurrence, bias, weight_scale, recurrence_scale, state_scale)
    options = _Options(sequence_lens, direction, activations, clip, name)
    network = _network(_RNN, data, weights, [initial_h], options)
    (f,) = network.activations

    def step(code: Statements, at: _Step) -> None:
        (state,), (sums,) = at.states, at.memory
        with code.loop(network.hidden, "g") as g:
            sums.store(network.inputs(at.time, *at.outer, g), *at.outer, g)
        network.add_products(code, at, sums, lambda k: state.load(*at.outer, k), 0, network.hidden)
        with code.loop(network.hidden, "h") as h:
            value = f(network.limited(sums.load(*at.outer, h)))
            state.store(value, *at.outer, h)
            at.output.store(value, at.time, *at.outer, h)

    first, last = network.scan([network.hidden], step)
    return first, last


def gru(
    data: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    direction: str = "forward",
    activations: Sequence[str] | None = None,
    clip: float = 0.0,
    linear_before_reset: bool = False,
    weight_scale: Tensor | None = None,
    recurrence_scale: Tensor | None = None,
    state_scale: float = 0.0,
    *,
    name: str = "gru",
) -> tuple[Tensor, Tensor]:
    """Gated recurrent units (Cho et al. 2014), gates z, r and n: n = g(x Wn + (r * h) Rn + b), or with
    `linear_before_reset` g(x Wn + r * (h Rn + b)), then h = (1 - z) * n + z * h. The states, and the last one.

    Arguments as in `rnn`. The activations are f of z and r, and g.

    Dtypes: floats; `sequence_lens` are integers.
    Equals: ONNX GRU; `torch.nn.GRU` with `linear_before_reset`, its gates in another order.
    """
    weights = _CellWeights(weight, recurrence, bias, weight_scale, recurrence_scale, state_scale)
    options = _Options(sequence_lens, direction, activations, clip, name)
    network = _network(_GRU, data, weights, [initial_h], options, apart=linear_before_reset)
    f, g_of = network.activations
    hidden = network.hidden

    def step(code: Statements, at: _Step) -> None:
        (state,), (gates, reset) = at.states, at.memory
        with code.loop(simplified(hidden * 3), "g") as g:
            gates.store(network.inputs(at.time, *at.outer, g), *at.outer, g)
        network.add_products(code, at, gates, lambda k: state.load(*at.outer, k), 0, simplified(hidden * 2))
        with code.loop(simplified(hidden * 2), "g") as g:
            gates.store(f(network.limited(gates.load(*at.outer, g))), *at.outer, g)
        if linear_before_reset:
            with code.loop(hidden, "h") as h:
                apart = const(0.0, network.wide)
                if network.others:
                    apart = network.others[0](at.direction, h + hidden * 5).astype(network.wide)
                reset.store(apart, *at.outer, h)
            network.add_products(code, at, reset, lambda k: state.load(*at.outer, k), hidden * 2, hidden)
            with code.loop(hidden, "h") as h:
                more = gates.load(*at.outer, h + hidden) * reset.load(*at.outer, h)
                gates.store(gates.load(*at.outer, h + hidden * 2) + more, *at.outer, h + hidden * 2)
        else:
            with code.loop(hidden, "h") as h:
                reset.store(gates.load(*at.outer, h + hidden) * state.load(*at.outer, h), *at.outer, h)
            network.add_products(
                code, at, gates, lambda k: reset.load(*at.outer, k), hidden * 2, hidden, into=hidden * 2
            )
        with code.loop(hidden, "h") as h:
            new = g_of(network.limited(gates.load(*at.outer, h + hidden * 2)))
            update = gates.load(*at.outer, h)
            value = (1.0 - update) * new + update * state.load(*at.outer, h)
            state.store(value, *at.outer, h)
            at.output.store(value, at.time, *at.outer, h)

    first, last = network.scan([simplified(hidden * 3), hidden], step)
    return first, last


def lstm(
    data: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    initial_c: Tensor | None = None,
    peepholes: Tensor | None = None,
    direction: str = "forward",
    activations: Sequence[str] | None = None,
    clip: float = 0.0,
    input_forget: bool = False,
    weight_scale: Tensor | None = None,
    recurrence_scale: Tensor | None = None,
    state_scale: float = 0.0,
    *,
    name: str = "lstm",
) -> tuple[Tensor, Tensor, Tensor]:
    """Long short-term memory (Hochreiter and Schmidhuber 1997), gates i, o, f and c: cell = f * cell + i * g(c), then h
    = o * h(cell). The states h, the last of them, and the last cell.

    Arguments as in `rnn`. The activations are f of i, o and f, then g and h. `peepholes` (directions, 3 * hidden) are
    the weights of the cell in i, o and f (o uses the new cell); with `input_forget`, f is 1 - i.

    Dtypes: floats; `sequence_lens` are integers.
    Equals: ONNX LSTM; `torch.nn.LSTM`, its gates in another order.
    """
    weights = _CellWeights(weight, recurrence, bias, weight_scale, recurrence_scale, state_scale)
    options = _Options(sequence_lens, direction, activations, clip, name)
    network = _network(_LSTM, data, weights, [initial_h, initial_c], options, peepholes)
    f, g_of, h_of = network.activations
    hidden, wide = network.hidden, network.wide

    def step(code: Statements, at: _Step) -> None:
        (state, cell), (gates,) = at.states, at.memory
        with code.loop(simplified(hidden * 4), "g") as g:
            gates.store(network.inputs(at.time, *at.outer, g), *at.outer, g)
        network.add_products(code, at, gates, lambda k: state.load(*at.outer, k), 0, simplified(hidden * 4))
        with code.loop(hidden, "h") as h:

            def gate(number: int, known: Expr | None, h: Expr = h) -> Expr:
                value = gates.load(*at.outer, h + hidden * number if number else h)
                if known is not None and network.others:
                    place = h + hidden * number if number else h
                    value = value + network.others[0](at.direction, place).astype(wide) * known
                return network.limited(value)

            old = cell.load(*at.outer, h)
            entered = f(gate(0, old))
            kept = 1.0 - entered if input_forget else f(gate(2, old))
            new = kept * old + entered * g_of(gate(3, None))
            value = f(gate(1, new)) * h_of(new)
            cell.store(new, *at.outer, h)
            state.store(value, *at.outer, h)
            at.output.store(value, at.time, *at.outer, h)

    first, last, cell = network.scan([simplified(hidden * 4)], step)
    return first, last, cell


declare(Recurrent(), gru, lstm, rnn)
