"""Recurrent networks with the semantics of ONNX: scans over time.

Products of the data and weights are one contraction for all times (`<name>_inputs`). The rest depends on the previous
step: statements (`te.extern`) run all steps of a sequence in one direction.

Weights may be quantized, with a scale for each gate element. Data are then integers, whose scale is part of that of the
weights, and each step rounds the states to 8 bits: both products are int32 sums.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from math import inf
from re import fullmatch
from typing import Final

from weft.dialects.graph_traits import Recurrent, declare
from weft.support.argument_types import shown
from weft.texpr.expr import Expr, ExprLike, as_expr, error
from weft.texpr.extern import Result, Statements, Written, extern
from weft.texpr.math import abs as absolute
from weft.texpr.math import const, exp, expm1, log1p, round, select, sigmoid, tanh
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


@dataclass(frozen=True)
class _Activation:
    apply: Callable[[Expr, float, float], Expr]
    """Function of the data and two parameters."""
    defaults: tuple[float, ...] = ()
    """Defaults of the parameters that it reads."""


_ACTIVATIONS: Final[dict[str, _Activation]] = {
    "relu": _Activation(lambda x, a, b: greater(x, 0.0)),
    "sigmoid": _Activation(lambda x, a, b: sigmoid(x)),
    "tanh": _Activation(lambda x, a, b: tanh(x)),
    "affine": _Activation(lambda x, a, b: x * a + b, (1.0, 0.0)),
    "leaky_relu": _Activation(lambda x, a, b: select(x < 0.0, x * a, x), (0.01,)),
    "thresholded_relu": _Activation(lambda x, a, b: select(x > a, x, x * 0.0), (1.0,)),
    "scaled_tanh": _Activation(lambda x, a, b: tanh(x * b) * a, (1.0, 1.0)),
    "hard_sigmoid": _Activation(lambda x, a, b: less(greater(x * a + b, 0.0), 1.0), (0.2, 0.5)),
    "elu": _Activation(lambda x, a, b: select(x < 0.0, expm1(x) * a, x), (1.0,)),
    "softsign": _Activation(lambda x, a, b: x / (absolute(x) + 1.0)),
    "softplus": _Activation(lambda x, a, b: greater(x, 0.0) + log1p(exp(-absolute(x)))),
}


def _activation(word: object) -> Callable[[Expr], Expr] | None:
    """The function called `tanh`, `elu(0.5)` etc., or None."""
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
    """The activation of a direction."""

    def apply(x: Expr, direction: Expr) -> Expr:
        first, *others = (function(x) for function in functions)
        return select(direction == 0, first, others[0]) if others else first

    return apply


_DIRECTIONS = ("forward", "reverse", "bidirectional")


@dataclass(frozen=True)
class _Cell:
    """The number of gates, default activations, and names of states."""

    what: str
    gates: int
    activations: tuple[str, ...]
    states: tuple[str, ...]


_RNN: Final = _Cell("rnn", 1, ("tanh",), ("initial_h",))
_GRU: Final = _Cell("gru", 3, ("sigmoid", "tanh"), ("initial_h",))
_LSTM: Final = _Cell("lstm", 4, ("sigmoid", "tanh", "tanh"), ("initial_h", "initial_c"))


@dataclass(frozen=True)
class _CellWeights:
    """Weights of data and states, biases, and scales of quantized weights."""

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
    """Attributes of all operators, and the lengths of sequences."""

    lengths: Tensor | None
    direction: str
    activations: Sequence[str] | None
    clip: float
    name: str


@dataclass(frozen=True)
class _Network:
    """Checked operands, with gates of `hidden` elements."""

    what: str
    name: str
    inputs: Tensor
    """Products with the weights and biases: [time, direction, sequence, gate * hidden + element], or
    [time, sequence, direction * (gates * hidden) + gate * hidden + element]."""
    recurrence: Tensor
    """[direction, element of the state, gate * hidden + element]; of integers
    [direction, group of elements, gate * hidden + element, element of the group]."""
    hidden: Extent
    gates: int
    lengths: Tensor | None
    states: tuple[Tensor | None, ...]
    others: tuple[Tensor, ...]
    direction: str
    activations: tuple[Callable[[Expr, Expr], Expr], ...]
    """Functions of the data and the direction."""
    clip: float
    dtype: str
    scales: Tensor | None
    """[direction, gate * hidden + element], of integers."""
    zeros: Tensor | None
    """[direction, gate * hidden + element], of integers; None: 0."""
    offset: int
    """The number that was added to all integers of the recurrence."""
    group: int
    """Integers of a group."""
    state_scale: float
    """The scale of states as 8-bit integers; 0: the maximum magnitude divided by 127, at each step."""

    @property
    def wide(self) -> str:
        return sum_dtype(self.dtype)

    @property
    def width(self) -> Extent:
        """Elements of all gates."""
        return simplified(self.hidden * self.gates)

    @property
    def padded(self) -> Extent:
        """Elements of all groups."""
        return simplified(self.recurrence.shape[1] * self.group)

    def given(self, at: _Step, g: Expr) -> Expr:
        """The product of the data and row `g` of the weights."""
        if len(self.inputs.shape) == 4:
            return self.inputs(at.time, *at.outer, g)
        direction, sequence = at.outer
        return self.inputs(at.time, sequence, direction * self.width + g).astype(self.wide)

    def limited(self, value: Expr) -> Expr:
        return less(greater(value, -self.clip), self.clip) if self.clip else value

    def scan(self, scratch: Sequence[Extent], step: Callable[[Statements, _Steps], None]) -> tuple[Tensor, ...]:
        """The output at each time, and the last of each state; `step` has buffers of `scratch` elements."""
        times, directions, batch = self.inputs.shape[0], self.recurrence.shape[0], self.batch
        labels = [f"{self.name}_state{d}" for d in range(len(self.states))]
        shapes = [(times, directions, batch, self.hidden), *[(directions, batch, self.hidden)] * len(self.states)]
        results = [Result(shape, self.wide, label) for shape, label in zip(shapes, [self.name, *labels], strict=True)]
        memory = [
            Result((directions, batch, size), self.wide, f"{self.name}_memory{d}") for d, size in enumerate(scratch)
        ]
        if self.scales is not None:
            steps = "int8" if self.group == _GROUPS["int8"] else "int16"
            memory.append(Result((directions, batch, 1), self.wide, f"{self.name}_state_scale"))
            memory.append(Result((directions, batch, self.padded), steps, f"{self.name}_steps"))
            memory.append(Result((directions, batch, 1), "int32", f"{self.name}_total"))
            memory.append(Result((directions, batch, self.width), "int32", f"{self.name}_sums"))
        reads = [self.inputs, self.recurrence, self.lengths, self.scales, self.zeros, *self.states, *self.others]

        together = _SEQUENCES if not isinstance(batch, int) else min(batch, _SEQUENCES)

        def write(code: Statements, indices: Sequence[Expr], output: Written, *buffers: Written) -> None:
            d, block = indices
            states, memory = buffers[: len(self.states)], buffers[len(self.states) :]
            own, rounding = memory[: len(scratch)], memory[len(scratch) :]
            is_single = together == 1

            def length_of(b: Expr) -> Expr:
                if self.lengths is None:
                    return as_expr(times)
                return greater(less(self.lengths(b).astype("int64"), times), 0)

            def step_of(s: Expr, b: Expr) -> _Step:
                back = length_of(b) - 1 - s
                time = {"forward": s, "reverse": back}.get(self.direction)
                time = select(d == 1, back, s) if time is None else time
                return _Step(time, d, b, output, states, own, rounding)

            @contextmanager
            def sequences() -> Generator[Expr]:
                """Statements for each sequence of the block."""
                if is_single:
                    yield block
                    return
                left = batch - block * together
                is_whole = isinstance(batch, int) and batch % together == 0
                with code.loop(together if is_whole else less(left, together), "c") as c:
                    yield block * together + c

            with sequences() as b:
                for state, initial in zip(states, self.states, strict=True):
                    with code.loop(self.hidden, "h") as h:
                        value = const(0.0, self.wide) if initial is None else initial(d, b, h).astype(self.wide)
                        state.store(value, d, b, h)
            with code.loop(length_of(block) if is_single else times, "s") as s:

                @contextmanager
                def each() -> Generator[_Step]:
                    with sequences() as b:
                        if is_single or self.lengths is None:
                            yield step_of(s, b)
                            return
                        with code.when(s < length_of(b)):
                            yield step_of(s, b)

                step(code, _Steps(each, own, rounding))
            if self.lengths is not None:
                with sequences() as b:
                    length = length_of(b)
                    with code.loop(times - length, "s") as s, code.loop(self.hidden, "h") as h:
                        output.store(0.0, length + s, d, b, h)

        blocks = batch if together == 1 else simplified((batch + (together - 1)) // together)
        found = extern((directions, blocks), [*results, *memory], [t for t in reads if t is not None], write, self.name)
        kept = found[: len(results)]
        if self.wide == self.dtype:
            return kept
        return tuple(converted(tensor, self.dtype, name=f"{tensor.name}_cast") for tensor in kept)

    @property
    def batch(self) -> Extent:
        return self.inputs.shape[2 if len(self.inputs.shape) == 4 else 1]

    def add_products(
        self,
        code: Statements,
        steps: _Steps,
        target: Written,
        factor: Callable[[_Step, Expr], Expr],
        first: Extent,
        count: Extent,
        into: Extent = 0,
    ) -> None:
        """Add `factor(k)` times row k of the recurrence, from gate element `first` on, to `target`, for all k. The
        inner loop is along rows, so that it is not a reduction."""
        if self.scales is not None:
            self._add_integers(code, steps, target, factor, self.scales, first, count, into)
            return

        def rounded(at: _Step, k: Expr) -> Expr:
            value = factor(at, k)
            if not self.state_scale:
                return value
            return self._steps(value, const(self.state_scale, self.wide)) * self.state_scale

        def add(start: ExprLike, columns: Extent, k: Expr, rows: int) -> None:
            with steps.each() as at:
                values = [rounded(at, k + row) for row in range(rows)]
                with code.loop(columns, "g") as g:
                    place, column = start + into + g, start + first + g
                    total = target.load(*at.outer, place)
                    for row, value in enumerate(values):
                        total = total + value * self.recurrence(at.direction, k + row, column).astype(self.wide)
                    target.store(total, *at.outer, place)

        def tile(start: ExprLike, columns: Extent) -> None:
            whole = simplified(self.hidden // _ROWS)
            with code.loop(whole, "k") as k:
                add(start, columns, k * _ROWS, _ROWS)
            rest = simplified(self.hidden - whole * _ROWS)
            if rest != 0:
                with code.loop(rest, "k") as k:
                    add(start, columns, k + whole * _ROWS, 1)

        self._tiled(code, count, tile)

    @staticmethod
    def _tiled(code: Statements, count: Extent, write: Callable[[ExprLike, Extent], None]) -> None:
        """`write(start, columns)` for tiles; one tile for a dynamic number."""
        if not isinstance(count, int):
            write(0, count)
            return
        tiles, rest = divmod(count, _COLUMNS)
        if tiles:
            with code.loop(tiles, "t") as t:
                write(t * _COLUMNS, _COLUMNS)
        if rest:
            write(tiles * _COLUMNS, rest)

    def _steps(self, value: Expr, scale: Expr) -> Expr:
        """A state divided by a scale, rounded to 8 bits."""
        return less(greater(round(value / scale), -_MOST), _MOST)

    def _add_integers(
        self,
        code: Statements,
        block: _Steps,
        target: Written,
        factor: Callable[[_Step, Expr], Expr],
        scales: Tensor,
        first: Extent,
        count: Extent,
        into: Extent,
    ) -> None:
        """`add_products` with int32 sums of groups. The sequences of a block read the same rows in turn."""
        scale, steps, total, sums = block.rounding
        groups, group = self.recurrence.shape[1], self.group
        with block.each() as at:
            self._round(code, at, lambda k: factor(at, k))
            with code.loop(count, "g") as g:
                sums.store(0, *at.outer, g)

        def add(start: ExprLike, columns: Extent) -> None:
            with (
                code.loop(simplified(groups // _TOGETHER), "k") as k,
                block.each() as at,
                code.loop(columns, "g") as g,
            ):
                value = sums.load(*at.outer, start + g)
                for at_once in range(_TOGETHER):
                    place = k * _TOGETHER + at_once
                    for element in range(group):
                        step = steps.load(*at.outer, place * group + element).astype("int32")
                        weight = self.recurrence(at.direction, place, start + g + first, element).astype("int32")
                        value = value + step * weight
                sums.store(value, *at.outer, start + g)

        self._tiled(code, count, add)
        with block.each() as at, code.loop(count, "g") as g:
            value = sums.load(*at.outer, g)
            if self.offset:
                value = value - total.load(*at.outer, 0) * self.offset
            if self.zeros is not None:
                value = value - total.load(*at.outer, 0) * self.zeros(at.direction, g + first).astype("int32")
            by = scale.load(*at.outer, 0) * scales(at.direction, g + first).astype(self.wide)
            target.store(target.load(*at.outer, g + into) + value.astype(self.wide) * by, *at.outer, g + into)

    def _round(self, code: Statements, at: _Step, factor: Callable[[Expr], Expr]) -> None:
        """Round the states of a sequence, with zeros for the rest of the last group."""
        scale, steps, total, _ = at.rounding
        padding = simplified(self.padded - self.hidden)
        scale.store(self.state_scale, *at.outer, 0)
        if not self.state_scale:
            with code.loop(self.hidden, "k") as k:
                scale.store(greater(scale.load(*at.outer, 0), absolute(factor(k))), *at.outer, 0)
            most = scale.load(*at.outer, 0)
            scale.store(select(most > 0.0, most / _MOST, 1.0), *at.outer, 0)
        with code.loop(self.hidden, "k") as k:
            step = self._steps(factor(k), scale.load(*at.outer, 0)).astype("int32")
            steps.store(step.astype(steps.dtype), *at.outer, k)
        if padding != 0:
            with code.loop(padding, "k") as k:
                steps.store(0, *at.outer, k + self.hidden)
        total.store(0, *at.outer, 0)
        if self.offset or self.zeros is not None:
            with code.loop(self.hidden, "k") as k:
                step = steps.load(*at.outer, k).astype("int32")
                total.store(total.load(*at.outer, 0) + step, *at.outer, 0)


_MOST: Final = 127.0
"""The maximum state as an 8-bit integer."""
_INTEGERS: Final = ("int8", "uint8", "int16")
"""Types of data and weights that are integers."""
_GROUPS: Final = {"int8": 4, "uint8": 4, "int16": 2}
"""Products that processors add to a sum at once, by type of the recurrence."""
_TOGETHER: Final = 4
"""Groups added to a sum in memory together."""
_ROWS: Final = 8
"""Rows of floats added to a sum in memory together."""
_COLUMNS: Final = 256
"""Columns of a tile: L1 contains their sums and rows of a group."""
_SEQUENCES: Final = 4
"""Sequences of a block: they read a tile of the recurrence in turn from L1."""


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
    """For integers: the scale of the states, the rounded states, their total, and the sums."""

    @property
    def outer(self) -> tuple[Expr, Expr]:
        return self.direction, self.sequence


@dataclass(frozen=True)
class _Steps:
    """A step of all sequences of a block."""

    each: Callable[[], AbstractContextManager[_Step]]
    """A context for each sequence."""
    memory: Sequence[Written]
    rounding: Sequence[Written]


def _state(at: _Step, k: Expr) -> Expr:
    """An element of the multiplied state."""
    return at.states[0].load(*at.outer, k)


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
    """Check the operands. With `apart`, the last gate's recurrent bias is not added."""
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
    factors = (weight_scale, recurrence_scale) if is_integer else (w, r)
    dtype = one_dtype(what, *(() if is_integer and w is not None else (x,)), *factors, bias, *states, peepholes)
    wide = sum_dtype(dtype)
    inputs = _inputs(name, x, w, weight_scale, gates, hidden, wide)
    if bias is not None:
        products, biases, is_flat = inputs, bias, w is None

        def biased(*indices: Expr) -> Expr:
            *_, column = indices
            d, g = (column // width, column % width) if is_flat else (indices[1], column)
            second = biases(d, g + width).astype(wide)
            if apart:
                second = select(g < hidden * (gates - 1), second, 0.0)
            return products(*indices).astype(wide) + biases(d, g).astype(wide) + second

        inputs = compute(inputs.shape, biased, f"{name}_inputs", "tbg" if is_flat else "tdbg")
    offset = 128 if is_integer and r.dtype == "int8" else 0
    recurrence = _groups_of(r, offset, name) if is_integer else transpose(r, (0, 2, 1), name=f"{name}_recurrence")
    others = tuple(tensor for tensor in (peepholes, bias if apart else None) if tensor is not None)
    return _Network(
        what,
        name,
        inputs,
        recurrence,
        hidden,
        gates,
        lengths,
        tuple(states),
        others,
        direction,
        activations,
        _not_negative(what, "clip", options.clip),
        dtype,
        recurrence_scale,
        weights.states_zero,
        offset,
        _GROUPS.get(r.dtype, 1),
        _not_negative(what, "state_scale", weights.state_scale),
    )


def _inputs(
    name: str, x: Tensor, w: Tensor | None, scale: Tensor | None, gates: int, hidden: Extent, wide: str
) -> Tensor:
    """The products of the data with their weights, without the bias."""
    if w is None:
        return x
    times, batch, size = x.shape
    sums = wide if scale is None else "int32"
    i = reduce_axis((0, size), "i")

    def product(t: Expr, d: Expr, b: Expr, g: Expr) -> Expr:
        return sum_over(x(t, b, i).astype(sums) * w(d, g, i).astype(sums), axis=i)

    shape = (times, w.shape[0], batch, simplified(hidden * gates))
    totals = compute(shape, product, f"{name}_product", "tdbg")
    if scale is None:
        return totals

    def scaled(t: Expr, d: Expr, b: Expr, g: Expr) -> Expr:
        return totals(t, d, b, g).astype(wide) * scale(d, g).astype(wide)

    return compute(shape, scaled, f"{name}_scaled", "tdbg")


def _groups_of(recurrence: Tensor, offset: int, name: str) -> Tensor:
    """Integers plus `offset`, at [direction, group, row, element of the group]; padded to whole groups, and to a
    multiple of the groups added at once."""
    directions, rows, hidden = recurrence.shape
    group = _GROUPS[recurrence.dtype]
    together = group * _TOGETHER
    count = simplified((hidden + (together - 1)) // together * _TOGETHER)
    dtype = "uint8" if offset else recurrence.dtype

    is_whole = simplified(count * group) == hidden

    def element(d: Expr, k: Expr, g: Expr, j: Expr) -> Expr:
        place = k * group + j
        value = recurrence(d, g, place if is_whole else less(place, hidden - 1))
        if offset:
            value = (value.astype("int16") + offset).astype(dtype)
        return value if is_whole else select(place < hidden, value, const(0, dtype))

    return compute((directions, count, rows, group), element, f"{name}_recurrence", "dkgj")


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
    *,
    name: str = "rnn",
) -> tuple[Tensor, Tensor]:
    """h = f(x W + h R + b) at each time: the states (times, directions, batch, hidden), and the last one.

    Data are (times, batch, inputs), weights (directions, gates * hidden, inputs), recurrent ones
    (directions, gates * hidden, hidden), the bias (directions, 2 * gates * hidden) holds one for the data and one for
    the states; there is one gate here. Without a weight the data are products with weights, (times, batch,
    directions * gates * hidden). `direction` is forward, reverse or bidirectional, with 2 directions. Steps after
    `sequence_lens` (batch) give 0 and leave the states, which are 0 at first unless given, as
    (directions, batch, hidden). `activations` are those of both directions, or those of the first and of the second:
    relu, sigmoid, tanh, softsign, softplus, and with defaults that others in parentheses replace, affine(1, 0),
    leaky_relu(0.01), thresholded_relu(1), scaled_tanh(1, 1), hard_sigmoid(0.2, 0.5), elu(1). If `clip` is not 0, their
    arguments are limited to the range from -clip to clip. Floats of 16 bits are computed in float32.

    With `weight_scale` and `recurrence_scale` (directions, gates * hidden) data and weights are integers less their
    zero points: int8, uint8 or int16. x W is then the exact sum of int32 times `weight_scale`, which contains the scale
    of the data. The recurrence has a zero point for each row in `recurrence_zero_point` (directions, gates * hidden).
    Without a weight there is only `recurrence_scale`, and the data are floats. States are rounded before their product
    to whole multiples, -127 to 127, of `state_scale`, or if that is 0, of a 127th of the greatest absolute one at each
    step; of floats they are rounded by a `state_scale` other than 0.

    Dtypes: floats; `sequence_lens` are integers.
    Equals: `torch.nn.RNN`; ONNX RNN.
    """
    weights = _CellWeights(weight, recurrence, bias, weight_scale, recurrence_scale, recurrence_zero_point, state_scale)
    options = _Options(sequence_lens, direction, activations, clip, name)
    network = _network(_RNN, data, weights, [initial_h], options)
    (f,) = network.activations

    def step(code: Statements, steps: _Steps) -> None:
        (sums,) = steps.memory
        with steps.each() as at, code.loop(network.hidden, "g") as g:
            sums.store(network.given(at, g), *at.outer, g)
        network.add_products(code, steps, sums, _state, 0, network.hidden)
        with steps.each() as at, code.loop(network.hidden, "h") as h:
            value = f(network.limited(sums.load(*at.outer, h)), at.direction)
            at.states[0].store(value, *at.outer, h)
            at.output.store(value, at.time, *at.outer, h)

    first, last = network.scan([network.hidden], step)
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
    *,
    name: str = "gru",
) -> tuple[Tensor, Tensor]:
    """Gated recurrent units (Cho et al. 2014), gates z, r and n: n = g(x Wn + (r * h) Rn + b), or with
    `linear_before_reset` g(x Wn + r * (h Rn + b)), then h = (1 - z) * n + z * h. The states, and the last one.

    Arguments as in `rnn`. The activations are f of z and r, and g.

    Dtypes: floats; `sequence_lens` are integers.
    Equals: ONNX GRU; `torch.nn.GRU` with `linear_before_reset`, its gates in another order.
    """
    weights = _CellWeights(weight, recurrence, bias, weight_scale, recurrence_scale, recurrence_zero_point, state_scale)
    options = _Options(sequence_lens, direction, activations, clip, name)
    network = _network(_GRU, data, weights, [initial_h], options, apart=linear_before_reset)
    f, g_of = network.activations
    hidden = network.hidden

    def step(code: Statements, steps: _Steps) -> None:
        gates, reset = steps.memory
        with steps.each() as at, code.loop(simplified(hidden * 3), "g") as g:
            gates.store(network.given(at, g), *at.outer, g)
        network.add_products(code, steps, gates, _state, 0, simplified(hidden * 2))
        with steps.each() as at, code.loop(simplified(hidden * 2), "g") as g:
            gates.store(f(network.limited(gates.load(*at.outer, g)), at.direction), *at.outer, g)
        if linear_before_reset:
            with steps.each() as at, code.loop(hidden, "h") as h:
                apart = const(0.0, network.wide)
                if network.others:
                    apart = network.others[0](at.direction, h + hidden * 5).astype(network.wide)
                reset.store(apart, *at.outer, h)
            network.add_products(code, steps, reset, _state, hidden * 2, hidden)
            with steps.each() as at, code.loop(hidden, "h") as h:
                more = gates.load(*at.outer, h + hidden) * reset.load(*at.outer, h)
                gates.store(gates.load(*at.outer, h + hidden * 2) + more, *at.outer, h + hidden * 2)
        else:
            with steps.each() as at, code.loop(hidden, "h") as h:
                reset.store(gates.load(*at.outer, h + hidden) * _state(at, h), *at.outer, h)
            network.add_products(
                code, steps, gates, lambda at, k: reset.load(*at.outer, k), hidden * 2, hidden, into=hidden * 2
            )
        with steps.each() as at, code.loop(hidden, "h") as h:
            new = g_of(network.limited(gates.load(*at.outer, h + hidden * 2)), at.direction)
            update = gates.load(*at.outer, h)
            value = (1.0 - update) * new + update * _state(at, h)
            at.states[0].store(value, *at.outer, h)
            at.output.store(value, at.time, *at.outer, h)

    first, last = network.scan([simplified(hidden * 3), hidden], step)
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
    weights = _CellWeights(weight, recurrence, bias, weight_scale, recurrence_scale, recurrence_zero_point, state_scale)
    options = _Options(sequence_lens, direction, activations, clip, name)
    network = _network(_LSTM, data, weights, [initial_h, initial_c], options, peepholes)
    f, g_of, h_of = network.activations
    hidden, wide = network.hidden, network.wide

    def step(code: Statements, steps: _Steps) -> None:
        (gates,) = steps.memory
        with steps.each() as at, code.loop(simplified(hidden * 4), "g") as g:
            gates.store(network.given(at, g), *at.outer, g)
        network.add_products(code, steps, gates, _state, 0, simplified(hidden * 4))
        with steps.each() as at, code.loop(hidden, "h") as h:
            state, cell = at.states

            def gate(number: int, known: Expr | None) -> Expr:
                value = gates.load(*at.outer, h + hidden * number if number else h)
                if known is not None and network.others:
                    place = h + hidden * number if number else h
                    value = value + network.others[0](at.direction, place).astype(wide) * known
                return network.limited(value)

            old = cell.load(*at.outer, h)
            entered = f(gate(0, old), at.direction)
            kept = 1.0 - entered if input_forget else f(gate(2, old), at.direction)
            new = kept * old + entered * g_of(gate(3, None), at.direction)
            value = f(gate(1, new), at.direction) * h_of(new, at.direction)
            cell.store(new, *at.outer, h)
            state.store(value, *at.outer, h)
            at.output.store(value, at.time, *at.outer, h)

    first, last, cell = network.scan([simplified(hidden * 4)], step)
    return first, last, cell


declare(Recurrent(), gru, lstm, rnn)
