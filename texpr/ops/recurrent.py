"""Recurrent networks with the semantics of ONNX: scans over time.

Products of data and weights are one contraction for all times (`<name>_inputs`); statements (`te.extern`) then run all
steps of a sequence in one direction.

Quantized weights have a scale per gate element, which contains that of the integer data; each step rounds states to 8
bits, so that both products are int32 sums.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from math import inf
from re import fullmatch
from typing import Final

from weft.dialects.graph_traits import Recurrent, declare
from weft.support.argument_types import shown
from weft.texpr import reductions as te
from weft.texpr.expr import Expr, as_expr, error
from weft.texpr.extern import Result, Statements, Written, extern
from weft.texpr.math import abs as absolute
from weft.texpr.math import const, exp, expm1, log1p, round, select, sigmoid, tanh
from weft.texpr.ops.arguments import (
    compute,
    floating,
    integers,
    integral,
    is_one_of,
    one_dtype,
    ranked,
    shaped,
    sum_dtype,
)
from weft.texpr.ops.elementwise import cast as converted
from weft.texpr.shapes import Extent, is_same, simplified
from weft.texpr.tensor import Tensor

__all__ = ["gru", "lstm", "rnn"]


@dataclass(frozen=True)
class _Activation:
    apply: Callable[[Expr, float, float], Expr]
    """Function of the data and two parameters."""
    defaults: tuple[float, ...] = ()
    """Defaults of the parameters that it reads."""


_ACTIVATIONS: Final[dict[str, _Activation]] = {
    "relu": _Activation(lambda x, a, b: te.max(x, 0.0)),
    "sigmoid": _Activation(lambda x, a, b: sigmoid(x)),
    "tanh": _Activation(lambda x, a, b: tanh(x)),
    "affine": _Activation(lambda x, a, b: x * a + b, (1.0, 0.0)),
    "leaky_relu": _Activation(lambda x, a, b: select(x < 0.0, x * a, x), (0.01,)),
    "thresholded_relu": _Activation(lambda x, a, b: select(x > a, x, x * 0.0), (1.0,)),
    "scaled_tanh": _Activation(lambda x, a, b: tanh(x * b) * a, (1.0, 1.0)),
    "hard_sigmoid": _Activation(lambda x, a, b: te.min(te.max(x * a + b, 0.0), 1.0), (0.2, 0.5)),
    "elu": _Activation(lambda x, a, b: select(x < 0.0, expm1(x) * a, x), (1.0,)),
    "softsign": _Activation(lambda x, a, b: x / (absolute(x) + 1.0)),
    "softplus": _Activation(lambda x, a, b: te.max(x, 0.0) + log1p(exp(-absolute(x)))),
}


def _activation(word: object) -> Callable[[Expr], Expr] | None:
    match = fullmatch(r"(\w+)(?:\((.*)\))?", word) if isinstance(word, str) else None
    known = _ACTIVATIONS.get(match[1]) if match else None
    if match is None or known is None:
        return None
    try:
        given = [] if match[2] is None else [float(part) for part in match[2].split(",")]
    except ValueError:
        return None
    if len(given) > len(known.defaults):
        return None
    first, second, *_ = (*given, *known.defaults[len(given) :], 0.0, 0.0)
    return lambda x: known.apply(x, first, second)


def _of_direction(functions: Sequence[Callable[[Expr], Expr]]) -> Callable[[Expr, Expr], Expr]:
    def apply(x: Expr, direction: Expr) -> Expr:
        first, *others = (function(x) for function in functions)
        return select(direction == 0, first, others[0]) if others else first

    return apply


_DIRECTIONS = ("forward", "reverse", "bidirectional")


@dataclass(frozen=True)
class _Cell:
    what: str
    gates: int
    activations: tuple[str, ...]
    states: tuple[str, ...]


_RNN: Final = _Cell("rnn", 1, ("tanh",), ("initial_h",))
_GRU: Final = _Cell("gru", 3, ("sigmoid", "tanh"), ("initial_h",))
_LSTM: Final = _Cell("lstm", 4, ("sigmoid", "tanh", "tanh"), ("initial_h", "initial_c"))


@dataclass(frozen=True)
class _CellWeights:
    data: Tensor | None
    """None if the data are products with the weights."""
    states: Tensor
    bias: Tensor | None
    data_scale: Tensor | None
    states_scale: Tensor | None
    states_zero: Tensor | None
    state_scale: float


@dataclass(frozen=True)
class _Options:
    lengths: Tensor | None
    direction: str
    activations: Sequence[str] | None
    clip: float
    tile: Sequence[int]
    name: str


@dataclass(frozen=True)
class _Part:
    """Consecutive gate elements, which are multiplied by one state."""

    first: Extent
    count: Extent
    columns: int
    """Gate elements of a tile."""
    weights: Tensor
    """[direction, tile, group of state elements, gate element of the tile, element of the group]; zeros after the last
    gate and state element."""

    @property
    def tiles(self) -> Extent:
        return self.weights.shape[1]

    @property
    def padded(self) -> Extent:
        return simplified(self.tiles * self.columns)


@dataclass(frozen=True)
class _Network:
    what: str
    name: str
    inputs: Tensor
    """Products with the weights: [time, direction, sequence, gate * hidden + element], or
    [time, sequence, direction * (gates * hidden) + gate * hidden + element]."""
    parts: tuple[_Part, ...]
    hidden: Extent
    gates: int
    lengths: Tensor | None
    states: tuple[Tensor | None, ...]
    bias: Tensor | None
    peepholes: Tensor | None
    apart: bool
    """Whether the recurrent bias of the last gate is added to its product before the gates are."""
    direction: str
    activations: tuple[Callable[[Expr, Expr], Expr], ...]
    """Functions of the data and the direction."""
    clip: float
    dtype: str
    rounded: str
    """The type that states are rounded to before they are multiplied; empty if they are not rounded."""
    scales: Tensor | None
    """[direction, gate * hidden + element], of integers."""
    zeros: Tensor | None
    """[direction, gate * hidden + element], of integers; None: 0."""
    offset: int
    """The number that was added to all integers of the recurrence."""
    group: int
    """State elements of a group."""
    sequences: int
    """Sequences of a block: they read a tile of the weights in turn, from L1 or L2."""
    state_scale: float
    """The scale of states as 8-bit integers; 0: the maximum magnitude divided by 127, at each step."""

    @property
    def wide(self) -> str:
        return sum_dtype(self.dtype)

    @property
    def sums(self) -> str:
        return self.wide if self.scales is None else "int32"

    @property
    def width(self) -> Extent:
        return simplified(self.hidden * self.gates)

    @property
    def groups(self) -> Extent:
        return self.parts[0].weights.shape[2]

    @property
    def batch(self) -> Extent:
        return self.inputs.shape[2 if len(self.inputs.shape) == 4 else 1]

    def given(self, at: _Step, gate: int, h: Expr) -> Expr:
        g = self.place(gate, h)
        if len(self.inputs.shape) == 4:
            value = self.inputs(at.time, *at.outer, g)
        else:
            direction, sequence = at.outer
            value = self.inputs(at.time, sequence, direction * self.width + g)
        value = value.astype(self.wide)
        if self.bias is None:
            return value
        value = value + self.bias(at.direction, g).astype(self.wide)
        return value if self.apart and gate == self.gates - 1 else value + self.second_bias(at, g)

    def second_bias(self, at: _Step, g: Expr) -> Expr:
        if self.bias is None:
            return const(0.0, self.wide)
        return self.bias(at.direction, g + self.width).astype(self.wide)

    def place(self, gate: int, h: Expr) -> Expr:
        return h + self.hidden * gate if gate else h

    def limited(self, value: Expr) -> Expr:
        return te.min(te.max(value, -self.clip), self.clip) if self.clip else value

    def scan(self, scratch: Sequence[Extent], step: Callable[[Statements, _Block], None]) -> tuple[Tensor, ...]:
        """Outputs of all times, and last states; `step` has buffers of `scratch` elements."""
        times, directions, batch = self.inputs.shape[0], self.parts[0].weights.shape[0], self.batch
        labels = [f"{self.name}_state{d}" for d in range(len(self.states))]
        shapes = [(times, directions, batch, self.hidden), *[(directions, batch, self.hidden)] * len(self.states)]
        results = [Result(shape, self.wide, label) for shape, label in zip(shapes, [self.name, *labels], strict=True)]

        def buffer(size: Extent, dtype: str, label: str) -> Result:
            return Result((directions, batch, size), dtype, f"{self.name}_{label}")

        sums = [buffer(part.padded, self.sums, f"sums{at}") for at, part in enumerate(self.parts)]
        memory = [buffer(size, self.wide, f"memory{at}") for at, size in enumerate(scratch)]
        rounding: list[Result] = []
        if self.rounded:
            rounding.append(buffer(simplified(self.groups * self.group), self.rounded, "rounded"))
        if self.scales is not None:
            rounding += [buffer(1, self.wide, "state_scale"), buffer(1, "int32", "total")]
        others = [self.lengths, self.scales, self.zeros, *self.states, self.bias, self.peepholes]
        reads = [self.inputs, *(part.weights for part in self.parts), *(t for t in others if t is not None)]
        together = self.sequences if not isinstance(batch, int) else max(min(batch, self.sequences), 1)

        def write(code: Statements, indices: Sequence[Expr], output: Written, *buffers: Written) -> None:
            d, place = indices
            found = iter(buffers)
            states, own_sums, own, own_rounding = (
                list(islice(found, len(kind))) for kind in (self.states, sums, memory, rounding)
            )

            def step_at(b: Expr, time: Expr) -> _Step:
                return _Step(time, d, b, output, states, own_sums, own, own_rounding)

            begin = place * together
            is_whole = isinstance(batch, int) and batch % together == 0
            count = together if is_whole else te.min(batch - begin, together)
            block = _Block(self, code, d, begin, count, step_at, as_expr(0))
            with block.sequences() as b:
                for state, initial in zip(states, self.states, strict=True):
                    with code.loop(self.hidden, "h") as h:
                        value = const(0.0, self.wide) if initial is None else initial(d, b, h).astype(self.wide)
                        state.store(value, d, b, h)
                # Products of ended sequences are computed, but unused.
                first = self.hidden if self.lengths is None else 0
                rest = simplified(self.groups * self.group - first)
                if self.rounded and not is_same(rest, 0):
                    with code.loop(rest, "h") as h:
                        own_rounding[0].store(const(0, self.rounded), d, b, h + first)
                for buffer, size in zip(own, scratch if self.lengths is not None else (), strict=False):
                    with code.loop(size, "h") as h:
                        buffer.store(0.0, d, b, h)
            is_single = together == 1
            with code.loop(block.length(begin) if is_single else times, "s") as s:
                step(code, replace(block, time=s))
            if self.lengths is not None:
                with block.sequences() as b:
                    length = block.length(b)
                    with code.loop(times - length, "s") as s, code.loop(self.hidden, "h") as h:
                        output.store(0.0, length + s, d, b, h)

        blocks = batch if together == 1 else simplified((batch + (together - 1)) // together)
        kept = extern((directions, blocks), [*results, *sums, *memory, *rounding], reads, write, self.name)
        kept = kept[: len(results)]
        if self.wide == self.dtype:
            return kept
        return tuple(converted(tensor, self.dtype, name=f"{tensor.name}_cast") for tensor in kept)

    def product(self, at: _Step, part: int, g: Expr) -> Expr:
        """Element `g` of the product of a part, after `_Block.multiply`."""
        value = at.sums[part].load(*at.outer, g)
        if self.scales is None:
            return value
        _, scale, total = at.rounding
        column = self.parts[part].first + g
        if self.offset:
            value = value - total.load(*at.outer, 0) * self.offset
        if self.zeros is not None:
            value = value - total.load(*at.outer, 0) * self.zeros(at.direction, column).astype("int32")
        by = scale.load(*at.outer, 0) * self.scales(at.direction, column).astype(self.wide)
        return value.astype(self.wide) * by


@dataclass(frozen=True)
class _Block:
    """A step of the sequences of a block, in one direction."""

    network: _Network
    code: Statements
    direction: Expr
    first: Expr
    count: Expr | int
    at: Callable[[Expr, Expr], _Step]
    """The step of a sequence at a time."""
    time: Expr
    """Steps since the first."""

    @contextmanager
    def sequences(self) -> Generator[Expr]:
        with self.code.loop(self.count, "c") as c:
            yield self.first + c

    def length(self, b: Expr) -> Expr:
        times, lengths = self.network.inputs.shape[0], self.network.lengths
        return as_expr(times) if lengths is None else te.max(te.min(lengths(b).astype("int64"), times), 0)

    @contextmanager
    def each(self) -> Generator[_Step]:
        with self.sequences() as b:
            back = self.length(b) - 1 - self.time
            time = {"forward": self.time, "reverse": back}.get(self.network.direction)
            time = select(self.direction == 1, back, self.time) if time is None else time
            if self.network.lengths is None:
                yield self.at(b, time)
                return
            with self.code.when(self.time < self.length(b)):
                yield self.at(b, time)

    def multiply(self, part: int, factor: Callable[[_Step], Written]) -> None:
        if self.network.rounded:
            with self.each() as at:
                self._round(at, lambda k: factor(at).load(*at.outer, k))
        if isinstance(self.count, int):
            full, rest = divmod(self.count, _WHOLE)
            self._tiles(part, factor, _WHOLE, range(full))
            self._tiles(part, factor, rest, range(full, full + (rest > 0)))
            return
        for sequences in _TILES:
            self._tiles(part, factor, sequences, range(-(-self.network.sequences // _WHOLE)))

    def _tiles(self, part: int, factor: Callable[[_Step], Written], sequences: int, groups: range) -> None:
        code, tiles = self.code, self.network.parts[part].tiles
        if not groups:
            return

        def tile(number: Expr, together: int) -> None:
            with code.loop(len(groups), "c") as c:
                place = (c + groups.start) * _WHOLE
                if isinstance(self.count, int):
                    self._tile(part, factor, self.first + place, sequences, number, together)
                    return
                left = self.count - place
                with code.when(left >= sequences if sequences == _WHOLE else left == sequences):
                    self._tile(part, factor, self.first + place, sequences, number, together)

        together = _TILES[sequences]
        left = simplified(tiles % together)
        with code.loop(simplified(tiles // together), "t") as t:
            tile(t * together, together)
        if not is_same(left, 0):
            with code.loop(left, "t") as t:
                tile(tiles - left + t, 1)

    def _tile(
        self, part: int, factor: Callable[[_Step], Written], first: Expr, sequences: int, tile: Expr, tiles: int
    ) -> None:
        code, network = self.code, self.network
        columns, weights = network.parts[part].columns, network.parts[part].weights

        @contextmanager
        def each_sum() -> Generator[tuple[_Step, Expr]]:
            with code.loop(sequences, "c", unrolled=True) as c:
                yield self.at(first + c, self.time), c

        with each_sum() as (at, _), code.loop(columns * tiles, "g") as g:
            at.sums[part].store(const(0, network.sums), *at.outer, tile * columns + g)
        with code.loop(network.groups, "k") as k, each_sum() as (at, _):
            source = at.rounding[0] if network.rounded else factor(at)
            with code.loop(tiles, "t", unrolled=True) as t, code.loop(columns, "g") as g:
                place = (tile + t) * columns + g
                total = at.sums[part].load(*at.outer, place)
                for j in range(network.group):
                    value = source.load(*at.outer, k * network.group + j).astype(network.sums)
                    total = total + value * weights(at.direction, tile + t, k, g, j).astype(network.sums)
                at.sums[part].store(total, *at.outer, place)

    def _round(self, at: _Step, factor: Callable[[Expr], Expr]) -> None:
        code, network, target = self.code, self.network, at.rounding[0]
        if network.scales is None:
            with code.loop(network.hidden, "k") as k:
                value = factor(k)
                if network.state_scale:
                    scale = const(network.state_scale, network.wide)
                    value = _steps(value, scale) * network.state_scale
                target.store(value.astype(network.rounded), *at.outer, k)
            return
        _, scale, total = at.rounding
        scale.store(network.state_scale, *at.outer, 0)
        if not network.state_scale:
            with code.loop(network.hidden, "k") as k:
                scale.store(te.max(scale.load(*at.outer, 0), absolute(factor(k))), *at.outer, 0)
            most = scale.load(*at.outer, 0)
            scale.store(select(most > 0.0, most / _MOST, 1.0), *at.outer, 0)
        with code.loop(network.hidden, "k") as k:
            step = _steps(factor(k), scale.load(*at.outer, 0)).astype("int32")
            target.store(step.astype(network.rounded), *at.outer, k)
        total.store(0, *at.outer, 0)
        if network.offset or network.zeros is not None:
            with code.loop(network.hidden, "k") as k:
                step = target.load(*at.outer, k).astype("int32")
                total.store(total.load(*at.outer, 0) + step, *at.outer, 0)


def _steps(value: Expr, scale: Expr) -> Expr:
    return te.min(te.max(round(value / scale), -_MOST), _MOST)


_MOST: Final = 127.0
"""The maximum state as an 8-bit integer."""
_INTEGERS: Final = ("int8", "uint8", "int16")
"""Types of data and weights that are integers."""
_NARROW: Final = ("bfloat16", "float16")
"""Types of the recurrence that may differ from that of other operands."""
_GROUPS: Final = {"int8": 4, "uint8": 4, "int16": 2, "bfloat16": 2}
"""Products that processors add to a sum at once, by type of the recurrence."""
_TILES: Final = {4: 1, 3: 1, 2: 2, 1: 4}
"""Sequences of a group -> tiles whose sums are computed together, in registers, while their weights are read once."""
_WHOLE: Final = max(_TILES)


@dataclass(frozen=True)
class _Step:
    time: Expr
    direction: Expr
    sequence: Expr
    output: Written
    states: Sequence[Written]
    sums: Sequence[Written]
    """Products of the parts, of padded gate elements."""
    memory: Sequence[Written]
    rounding: Sequence[Written]
    """Rounded states; of integers their scale and total in addition."""

    @property
    def outer(self) -> tuple[Expr, Expr]:
        return self.direction, self.sequence


def _state(at: _Step) -> Written:
    return at.states[0]


def _network(
    cell: _Cell,
    data: Tensor,
    weights: _CellWeights,
    states: Sequence[Tensor | None],
    options: _Options,
    peepholes: Tensor | None = None,
    *,
    apart: bool = False,
    parts: Sequence[int] | None = None,
) -> _Network:
    """Check the operands. With `apart`, the last gate's recurrent bias is not added. `parts`: gates multiplied at a
    time, all by default.
    """
    what, gates, usual, name = cell.what, cell.gates, cell.activations, options.name
    bias, lengths, direction = weights.bias, options.lengths, options.direction
    x, r = ranked(data, f"{what}: data", 3), ranked(weights.states, f"{what}: recurrence", 3)
    w = None if weights.data is None else ranked(weights.data, f"{what}: weight", 3)
    weight_scale, recurrence_scale = weights.data_scale, weights.states_scale
    is_integer = weight_scale is not None or recurrence_scale is not None
    for tensor, label, rounded in (
        (x, "data", is_integer and w is not None),
        (w, "weight", is_integer),
        (r, "recurrence", is_integer),
    ):
        if tensor is None:
            continue
        if not rounded:
            floating(tensor, f"{what}: {label}")
        elif tensor.dtype not in _INTEGERS:
            raise error(f"{what}: with scales the {label} must hold {', '.join(_INTEGERS)}, got {tensor.dtype}")
    if w is None and weight_scale is not None:
        raise error(f"{what} takes weight_scale with a weight")
    if is_integer and (recurrence_scale is None or (w is not None and weight_scale is None)):
        raise error(f"{what} takes weight_scale and recurrence_scale together")
    if weights.states_zero is not None and recurrence_scale is None:
        raise error(f"{what} takes recurrence_zero_point with recurrence_scale")
    if not is_one_of(direction, _DIRECTIONS):
        raise error(f"{what}: the direction is one of {', '.join(_DIRECTIONS)}, got {shown(direction)}")
    given = options.activations
    directions = 2 if direction == "bidirectional" else 1
    functions = [_activation(word) for word in (usual if given is None else given)]
    known = [function for function in functions if function is not None]
    if len(functions) not in {len(usual), directions * len(usual)} or len(known) != len(functions):
        raise error(f"{what} takes {len(usual)} activations of {', '.join(_ACTIVATIONS)}, got {shown(given)}")
    activations = tuple(_of_direction(known[at :: len(usual)]) for at in range(len(usual)))
    times, batch, size = x.shape
    hidden = r.shape[2]
    width = simplified(hidden * gates)
    if w is None:
        shaped(x, f"{what}: data", (times, batch, simplified(width * directions)))
    else:
        shaped(w, f"{what}: weight", (directions, width, size))
    shaped(r, f"{what}: recurrence", (directions, width, hidden))
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
            floating(shaped(tensor, f"{what}: {label}", (directions, width)), f"{what}: {label}")
    if weights.states_zero is not None:
        label = f"{what}: recurrence_zero_point"
        integral(shaped(weights.states_zero, label, (directions, width)), label)
    factors = (weight_scale, recurrence_scale) if is_integer else (w, *(() if r.dtype in _NARROW else (r,)))
    dtype = one_dtype(what, *(() if is_integer and w is not None else (x,)), *factors, bias, *states, peepholes)
    wide = sum_dtype(dtype)
    inputs = _inputs(name, x, w, weight_scale, gates, hidden, wide)
    offset = 128 if is_integer and r.dtype == "int8" else 0
    group = _GROUPS.get(r.dtype, 1)
    rounded = wide if weights.state_scale else ""
    if is_integer:
        rounded = "int8" if group == _GROUPS["int8"] else "int16"
    elif r.dtype == "bfloat16":
        rounded = r.dtype
    sequences, columns = integers(options.tile, f"{what}: tile", 2, least=1)
    taken, known = 0, list[_Part]()
    for count in parts or (gates,):
        label = f"{name}_recurrence{len(known) or ''}"
        first, size = simplified(hidden * taken), simplified(hidden * count)
        known.append(_part_of(r, first, size, _columns_for(size, columns), group, offset, label))
        taken += count
    return _Network(
        what,
        name,
        inputs,
        tuple(known),
        hidden,
        gates,
        lengths,
        tuple(states),
        bias,
        peepholes,
        apart,
        direction,
        activations,
        _not_negative(what, "clip", options.clip),
        dtype,
        rounded,
        recurrence_scale,
        weights.states_zero,
        offset,
        group,
        sequences,
        _not_negative(what, "state_scale", weights.state_scale),
    )


def _inputs(
    name: str, x: Tensor, w: Tensor | None, scale: Tensor | None, gates: int, hidden: Extent, wide: str
) -> Tensor:
    if w is None:
        return x
    times, batch, size = x.shape
    sums = wide if scale is None else "int32"
    i = te.reduce_axis((0, size), "i")

    def product(t: Expr, d: Expr, b: Expr, g: Expr) -> Expr:
        return te.sum(x(t, b, i).astype(sums) * w(d, g, i).astype(sums), axis=i)

    shape = (times, w.shape[0], batch, simplified(hidden * gates))
    totals = compute(shape, product, f"{name}_product", "tdbg")
    if scale is None:
        return totals

    def scaled(t: Expr, d: Expr, b: Expr, g: Expr) -> Expr:
        return totals(t, d, b, g).astype(wide) * scale(d, g).astype(wide)

    return compute(shape, scaled, f"{name}_scaled", "tdbg")


def _columns_for(count: Extent, most: int) -> int:
    """Half of `most` if padding to `most` adds a quarter or more."""
    half = most // 2
    is_padded = isinstance(count, int) and half and 4 * (-count % most) >= count
    return half if is_padded and -count % half < -count % most else most


def _part_of(
    recurrence: Tensor, first: Extent, count: Extent, columns: int, group: int, offset: int, name: str
) -> _Part:
    directions, _, hidden = recurrence.shape
    tiles, groups = (simplified((size + (by - 1)) // by) for size, by in ((count, columns), (hidden, group)))
    dtype = "uint8" if offset else recurrence.dtype
    ends = [(tiles * columns, count), (groups * group, hidden)]
    is_padded = [not is_same(simplified(padded), size) for padded, size in ends]

    def element(d: Expr, t: Expr, k: Expr, g: Expr, j: Expr) -> Expr:
        places = [t * columns + g, k * group + j]
        row, column = (
            te.min(place, size - 1) if padded else place
            for place, padded, (_, size) in zip(places, is_padded, ends, strict=True)
        )
        value = recurrence(d, first + row, column)
        if offset:
            value = (value.astype("int16") + offset).astype(dtype)
        for place, padded, (_, size) in zip(places, is_padded, ends, strict=True):
            value = select(place < size, value, const(0, dtype)) if padded else value
        return value

    weights = compute((directions, tiles, groups, columns, group), element, name, "dtkgj")
    return _Part(first, count, columns, weights)


def _not_negative(what: str, label: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < inf:
        raise error(f"{what}: {label} must be a number from 0 on, got {shown(value)}")
    return float(value)


def rnn(
    data: Tensor,
    weight: Tensor | None,
    recurrence: Tensor,
    bias: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    direction: str = "forward",
    activations: Sequence[str] | None = None,
    clip: float = 0.0,
    weight_scale: Tensor | None = None,
    recurrence_scale: Tensor | None = None,
    recurrence_zero_point: Tensor | None = None,
    state_scale: float = 0.0,
    tile: Sequence[int] = (8, 32),
    *,
    name: str = "rnn",
) -> tuple[Tensor, Tensor]:
    """h = f(x W + h R + b) at each time: the states (times, directions, batch, hidden), and the last one.

    Data are (times, batch, inputs), weights (directions, gates * hidden, inputs), recurrent ones (directions, gates *
    hidden, hidden); the bias (directions, 2 * gates * hidden) has one for the data, then one for the states; there is
    one gate. Without a weight, data are products with weights, (times, batch, directions * gates * hidden). `direction`
    is forward, reverse or bidirectional (2 directions). Steps after `sequence_lens` (batch) give 0 and keep the states.
    Initial states are (directions, batch, hidden), by default 0. `activations` of both directions, or of the first and
    the second: relu, sigmoid, tanh, softsign, softplus, and, with defaults, affine(1, 0), leaky_relu(0.01),
    thresholded_relu(1), scaled_tanh(1, 1), hard_sigmoid(0.2, 0.5), elu(1). A nonzero `clip` limits their arguments to
    -clip to clip. 16-bit floats use float32.

    With `weight_scale` and `recurrence_scale` (directions, gates * hidden), data and weights are integers less their
    zero points: int8, uint8 or int16. x W is the exact int32 sum times `weight_scale`, which contains the data's scale.
    `recurrence_zero_point` (directions, gates * hidden) has one per row. Without a weight, data are floats and only
    `recurrence_scale` is given. Before their product, states are rounded to multiples, -127 to 127, of `state_scale`,
    or if 0, of a 127th of the greatest absolute one at each step; with float recurrences only if it is not 0. A 16-bit
    float recurrence may differ from other floats' dtype; bfloat16 rounds states to bfloat16.

    A thread computes `tile[0]` sequences. Weights of states are packed in tiles of `tile[1]` gate elements, with sums
    of up to 4 sequences in registers. Results do not depend on `tile`.

    Dtypes: floats; `sequence_lens` are integers.
    Equals: `torch.nn.RNN`; ONNX RNN.
    """
    weights = _CellWeights(weight, recurrence, bias, weight_scale, recurrence_scale, recurrence_zero_point, state_scale)
    options = _Options(sequence_lens, direction, activations, clip, tile, name)
    network = _network(_RNN, data, weights, [initial_h], options)
    (f,) = network.activations

    def step(code: Statements, block: _Block) -> None:
        block.multiply(0, _state)
        with block.each() as at, code.loop(network.hidden, "h") as h:
            value = f(network.limited(network.given(at, 0, h) + network.product(at, 0, h)), at.direction)
            at.states[0].store(value, *at.outer, h)
            at.output.store(value, at.time, *at.outer, h)

    first, last = network.scan([], step)
    return first, last


def gru(
    data: Tensor,
    weight: Tensor | None,
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
    recurrence_zero_point: Tensor | None = None,
    state_scale: float = 0.0,
    tile: Sequence[int] = (8, 32),
    *,
    name: str = "gru",
) -> tuple[Tensor, Tensor]:
    """Gated recurrent units (Cho et al. 2014), gates z, r and n: n = g(x Wn + (r * h) Rn + b), or with
    `linear_before_reset` g(x Wn + r * (h Rn + b)), then h = (1 - z) * n + z * h. The states and the last one.

    Arguments as in `rnn`. Activations: f of z and r, and g.

    Dtypes: floats; `sequence_lens` are integers.
    Equals: ONNX GRU; `torch.nn.GRU` with `linear_before_reset`, its gates in another order.
    """
    weights = _CellWeights(weight, recurrence, bias, weight_scale, recurrence_scale, recurrence_zero_point, state_scale)
    options = _Options(sequence_lens, direction, activations, clip, tile, name)
    parts = None if linear_before_reset else (2, 1)
    network = _network(_GRU, data, weights, [initial_h], options, apart=linear_before_reset, parts=parts)
    f, g_of = network.activations
    hidden = network.hidden

    def gate(at: _Step, number: int, h: Expr) -> Expr:
        value = network.given(at, number, h) + network.product(at, 0, network.place(number, h))
        return f(network.limited(value), at.direction)

    def finish(at: _Step, h: Expr, update: Expr, inner: Expr) -> None:
        new = g_of(network.limited(network.given(at, 2, h) + inner), at.direction)
        value = (1.0 - update) * new + update * _state(at).load(*at.outer, h)
        at.states[0].store(value, *at.outer, h)
        at.output.store(value, at.time, *at.outer, h)

    def step(code: Statements, block: _Block) -> None:
        block.multiply(0, _state)
        if linear_before_reset:
            with block.each() as at, code.loop(hidden, "h") as h:
                place = network.place(2, h)
                inner = network.product(at, 0, place) + network.second_bias(at, place)
                finish(at, h, gate(at, 0, h), gate(at, 1, h) * inner)
            return
        with block.each() as at, code.loop(hidden, "h") as h:
            update, reset = at.memory
            update.store(gate(at, 0, h), *at.outer, h)
            reset.store(gate(at, 1, h) * _state(at).load(*at.outer, h), *at.outer, h)
        block.multiply(1, lambda at: at.memory[1])
        with block.each() as at, code.loop(hidden, "h") as h:
            finish(at, h, at.memory[0].load(*at.outer, h), network.product(at, 1, h))

    first, last = network.scan([] if linear_before_reset else [hidden, hidden], step)
    return first, last


def lstm(
    data: Tensor,
    weight: Tensor | None,
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
    recurrence_zero_point: Tensor | None = None,
    state_scale: float = 0.0,
    tile: Sequence[int] = (8, 32),
    *,
    name: str = "lstm",
) -> tuple[Tensor, Tensor, Tensor]:
    """Long short-term memory (Hochreiter and Schmidhuber 1997), gates i, o, f and c: cell = f * cell + i * g(c), then h
    = o * h(cell). The states h, the last one, and the last cell.

    Arguments as in `rnn`. Activations: f of i, o and f, then g and h. `peepholes` (directions, 3 * hidden) weight the
    cell in i, o and f (o uses the new cell); with `input_forget`, f is 1 - i.

    Dtypes: floats; `sequence_lens` are integers.
    Equals: ONNX LSTM; `torch.nn.LSTM`, its gates in another order.
    """
    weights = _CellWeights(weight, recurrence, bias, weight_scale, recurrence_scale, recurrence_zero_point, state_scale)
    options = _Options(sequence_lens, direction, activations, clip, tile, name)
    network = _network(_LSTM, data, weights, [initial_h, initial_c], options, peepholes)
    f, g_of, h_of = network.activations
    hidden, wide = network.hidden, network.wide

    def step(code: Statements, block: _Block) -> None:
        block.multiply(0, _state)
        with block.each() as at, code.loop(hidden, "h") as h:
            state, cell = at.states

            def gate(number: int, known: Expr | None) -> Expr:
                place = network.place(number, h)
                value = network.given(at, number, h) + network.product(at, 0, place)
                if known is not None and peepholes is not None:
                    value = value + peepholes(at.direction, place).astype(wide) * known
                return network.limited(value)

            old = cell.load(*at.outer, h)
            entered = f(gate(0, old), at.direction)
            kept = 1.0 - entered if input_forget else f(gate(2, old), at.direction)
            new = kept * old + entered * g_of(gate(3, None), at.direction)
            value = f(gate(1, new), at.direction) * h_of(new, at.direction)
            cell.store(new, *at.outer, h)
            state.store(value, *at.outer, h)
            at.output.store(value, at.time, *at.outer, h)

    first, last, cell = network.scan([], step)
    return first, last, cell


declare(Recurrent(), gru, lstm, rnn)
