"""`scatter` and `select_and_scatter`; see `stablehlo_tensors.py`.

An element is computed from the updates that cover it if the region is one op, or replaces the element. Other regions,
and several operands, become statements that apply one update at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import inf, prod
from typing import Any, cast

from xdsl.ir import Block, Operation

from weft.dialects.stablehlo import CompareOp, KeyedAttr, ScatterOp, SelectAndScatterOp, numbers
from weft.dialects.te import Combiner
from weft.passes.convert.stablehlo_tensors import COMBINERS, Region, index_vector, label, lone_kind, reduction
from weft.passes.convert.stablehlo_tensors import neutral as neutral_of
from weft.passes.convert.stablehlo_values import Parts, Results, Value, element_of, tensor_of
from weft.texpr import math as te
from weft.texpr import reductions
from weft.texpr.expr import Expr, as_expr, greatest, is_float, least
from weft.texpr.extern import Result, Statements, Written, extern
from weft.texpr.ops.arguments import compute, constant
from weft.texpr.reductions import all as all_of
from weft.texpr.reductions import max as larger
from weft.texpr.reductions import reduce_axis
from weft.texpr.shapes import Extent, is_same, simplified
from weft.texpr.tensor import Tensor


class _Scatter:
    """Maps updates to the elements that they cover, and elements to positions in an update's window."""

    def __init__(self, op: ScatterOp, source: Value, indices: Value, updates: Value) -> None:
        layout: KeyedAttr = op.scatter_dimension_numbers
        self._source, self._indices, self._updates = source, indices, updates
        self._scattered = layout.dims("scatter_dims_to_operand_dims")
        self._vector = layout.number("index_vector_dim")
        self._window = layout.dims("update_window_dims")
        places = [axis - (axis > self._vector) for axis in layout.dims("scatter_indices_batching_dims")]
        self._batching = dict(zip(layout.dims("input_batching_dims"), places, strict=True))
        """Maps batching dimensions of the operand to those of the updates."""
        absent = (*layout.dims("inserted_window_dims"), *self._batching)
        kept = [axis for axis in range(len(source.shape)) if axis not in absent]
        self._sizes = {axis: updates.shape[at] for axis, at in zip(kept, self._window, strict=True)}
        self.counts = [extent for axis, extent in enumerate(updates.shape) if axis not in self._window]
        """The number of updates along each dimension."""
        self.over = [reduce_axis((0, extent), f"u{axis}") for axis, extent in enumerate(self.counts)]

    def place(self, batch: Sequence[Expr], at: Sequence[Expr]) -> tuple[Expr, list[Expr]]:
        """Whether the update at `batch` covers the element `at`, and its position in the window. An update whose window
        is out of bounds covers nothing."""
        starts = index_vector(self._scattered, self._indices, batch, self._vector)
        starts |= {axis: batch[place] for axis, place in self._batching.items()}
        places: list[Expr] = []
        inside: list[Expr] = []
        for axis, extent in enumerate(self._source.shape):
            start = starts[axis].astype("int64") if axis in starts else None
            size = self._sizes.get(axis, 1)
            offset = at[axis] if start is None else at[axis] - start
            if start is not None:
                inside += [start >= 0, start <= simplified(extent - size)]
            if start is not None or not is_same(extent, size):
                inside += [offset >= 0, offset < size]
            if axis in self._sizes:
                places.append(offset)
        return all_of(*inside), places

    @property
    def window(self) -> list[Extent]:
        return [self._updates.shape[axis] for axis in self._window]

    def starts(self, batch: Sequence[Expr]) -> dict[int, Expr]:
        """First index of an update's window along each indexed or batched dimension."""
        found = index_vector(self._scattered, self._indices, batch, self._vector)
        found |= {axis: batch[place] for axis, place in self._batching.items()}
        return {axis: start.astype("int64") for axis, start in found.items()}

    def fits(self, starts: Mapping[int, Expr]) -> list[Expr]:
        found: list[Expr] = []
        for axis, start in starts.items():
            found += [start >= 0, start <= simplified(self._source.shape[axis] - self._sizes.get(axis, 1))]
        return found

    def element_at(self, starts: Mapping[int, Expr], place: Sequence[Expr]) -> list[Expr]:
        offsets = dict(zip(self._sizes, place, strict=True))
        parts = [[part[axis] for part in (starts, offsets) if axis in part] for axis in range(len(self._source.shape))]
        return [reduce(lambda x, y: x + y, found, as_expr(0)) for found in parts]

    def update(self, batch: Sequence[Expr], places: Sequence[Expr]) -> Expr:
        outer, inner = iter(batch), dict(zip(self._window, places, strict=True))
        rank = len(self._updates.shape)
        return element_of(self._updates, [inner[axis] if axis in inner else next(outer) for axis in range(rank)])

    def number(self, batch: Sequence[Expr]) -> Expr:
        return reduce(lambda total, pair: total * pair[1] + pair[0], zip(batch, self.counts, strict=True), as_expr(0))

    def batch(self, number: Expr) -> list[Expr]:
        found: list[Expr] = []
        for axis in reversed(range(len(self.counts))):
            found.insert(0, number % self.counts[axis] if axis else number)
            number = number // self.counts[axis]
        return found


def scatter(op: ScatterOp, values: Sequence[Value], region: Region) -> Results:
    """Combine each element with the updates that cover it, by searching all updates.

    If several replace one element, the last is used; the specification does not state the order. Updates of several
    operands, and regions of several ops, are applied one at a time.
    """
    kind = lone_kind(op.body.block)
    combiner = None if kind is None else COMBINERS[kind][values[0].dtype == "bool"]
    if len(values) != 3 or (combiner is None and not _returns_update(op)):
        return _in_order(op, values, region)
    source, name = values[0], label(op)
    updates = _Scatter(op, *values)

    def alone(*at: Expr) -> Expr:
        covers, places = updates.place([], at)
        old = element_of(source, at)
        return te.if_then_else(covers, region([old, updates.update([], places)])[0], old)

    if not updates.over:
        return compute(source.shape, alone, name)
    if kind is not None:
        return compute(source.shape, _combining(updates, source, kind, region), name)

    def last(*at: Expr) -> Expr:
        number = te.if_then_else(updates.place(updates.over, at)[0], updates.number(updates.over), -1)
        return reductions.max(number, axis=updates.over)

    winners = compute(source.shape, last, f"{name}_last")

    def replaced(*at: Expr) -> Expr:
        batch = updates.batch(winners(*at))
        new = updates.update(batch, updates.place(batch, at)[1])
        return te.if_then_else(winners(*at) >= 0, new, element_of(source, at))

    return compute(source.shape, replaced, name)


def _in_order(op: ScatterOp, values: Sequence[Value], region: Region) -> Results:
    """Apply the updates in row-major order."""
    count, name = len(values) // 2, label(op)
    sources = [tensor_of(value, f"{name}_operand{at}") for at, value in enumerate(values[:count])]
    indices = tensor_of(values[count], f"{name}_indices")
    given = [tensor_of(value, f"{name}_updates{at}") for at, value in enumerate(values[count + 1 :])]
    updates = [_Scatter(op, source, indices, update) for source, update in zip(sources, given, strict=True)]
    first, shape = updates[0], sources[0].shape

    def write(code: Statements, _: Sequence[Expr], *results: Written) -> None:
        with code.loops(shape, _names(shape)) as at:
            for result, source in zip(results, sources, strict=True):
                result.store(source(*at), *at)
        with code.loops(first.counts, [f"u{d}" for d in range(len(first.counts))]) as batch:
            starts = first.starts(batch)
            with code.when(all_of(*first.fits(starts))), code.loops(first.window, _names(first.window)) as place:
                element = first.element_at(starts, place)
                old = [result.load(*element) for result in results]
                new = [update.update(batch, place) for update in updates]
                for result, value in zip(results, region([*old, *new]), strict=True):
                    result.store(value, *element)

    labels = [name] if count == 1 else [f"{name}{at}" for at in range(count)]
    made = [Result(source.shape, source.dtype, text) for source, text in zip(sources, labels, strict=True)]
    return list(extern((), made, [*sources, indices, *given], write, name))


def _names(extents: Sequence[Extent]) -> list[str]:
    return [f"d{d}" for d in range(len(extents))]


def select_and_scatter(op: SelectAndScatterOp, values: Sequence[Value], select: Region, scatter: Region) -> Value:
    """Combine each element with the updates of the windows that select it. Selected positions are computed first."""
    operand, source, initial = values
    rank = len(operand.shape)
    sizes, steps = (numbers(given) or (1,) * rank for given in (op.window_dimensions, op.window_strides))
    low = (numbers(op.padding) or (0,) * (2 * rank))[::2]
    chooser, combining = (_lone_op(region.block) for region in op.regions)
    kind = None if combining is None else label(combining)
    combiner = COMBINERS[kind][source.dtype == "bool"] if kind is not None and kind in COMBINERS else None
    direction = chooser.comparison_direction.data if isinstance(chooser, CompareOp) else ""
    if combiner is None or direction not in ("GE", "GT", "LE", "LT") or isinstance(operand, Parts):
        return _selected_in_order(op, values, sizes, steps, low, select, scatter)
    is_greatest = direction.startswith("G")
    over = [reduce_axis((0, size), f"k{axis}") for axis, size in enumerate(sizes)]
    worst = least(operand.dtype) if is_greatest else greatest(operand.dtype)
    if is_float(operand.dtype):
        worst = -inf if is_greatest else inf
    count = prod(sizes)

    def better(left: Sequence[Expr], right: Sequence[Expr]) -> tuple[Expr, ...]:
        # Position `count` is the border. In order, later elements replace earlier ones unless `select` holds.
        is_left_first = left[1] < right[1]
        keeps_left = select([left[0], right[0]])[0]
        keeps_right = select([right[0], left[0]])[0]
        chosen = te.select(is_left_first, keeps_left, ~keeps_right)
        chosen = te.select(left[1] == count, constant(False, "bool"), (right[1] == count) | chosen)
        return te.select(chosen, left[0], right[0]), te.select(chosen, left[1], right[1])

    reducer = reductions.comm_reducer(
        better, lambda *_: (constant(worst, operand.dtype), constant(count, "int64")), f"{label(op)}_select"
    )

    def winner(*place: Expr) -> Any:
        at = [p * s + k - b for p, s, k, b in zip(place, steps, over, low, strict=True)]
        inside = all_of(*(t for a, extent in zip(at, operand.shape, strict=True) for t in (a >= 0, a < extent)))
        value = te.if_then_else(inside, element_of(operand, at), constant(worst, operand.dtype))
        offset = reduce(lambda total, pair: total * pair[1] + pair[0], zip(over, sizes, strict=True), as_expr(0))
        return reducer((value, te.select(inside, offset.astype("int64"), constant(count, "int64"))), axis=over)

    _, chosen = cast("tuple[Tensor, Tensor]", compute(source.shape, winner, f"{label(op)}_chosen"))
    neutral = constant(neutral_of(combiner, source.dtype), source.dtype)

    def element(*at: Expr) -> Expr:
        windows = [reduce_axis((0, size), f"o{axis}") for axis, size in enumerate(sizes)]
        moved = [a + b - o for a, b, o in zip(at, low, windows, strict=True)]
        places = [m // s for m, s in zip(moved, steps, strict=True)]
        tests = [m % s == 0 for m, s in zip(moved, steps, strict=True) if s != 1]
        tests += [t for p, extent in zip(places, source.shape, strict=True) for t in (p >= 0, p < extent)]
        offset = reduce(lambda total, pair: total * pair[1] + pair[0], zip(windows, sizes, strict=True), as_expr(0))
        inside = all_of(*tests)
        is_chosen = te.if_then_else(inside, chosen(*places) == offset.astype("int64"), constant(False, "bool"))
        update = te.if_then_else(is_chosen, element_of(source, places), neutral)
        return scatter([element_of(initial, ()), reduction(combiner)(update, axis=windows)])[0]

    return compute(operand.shape, element, label(op))


def _selected_in_order(
    op: SelectAndScatterOp,
    values: Sequence[Value],
    sizes: Sequence[int],
    steps: Sequence[int],
    low: Sequence[int],
    select: Region,
    scatter: Region,
) -> Value:
    """Complex numbers are pairs of tensors."""
    name = label(op)
    operands, sources, initials = (
        [tensor_of(side, f"{name}_{what}") for side in (value.both if isinstance(value, Parts) else (value,))]
        for value, what in zip(values, ("operand", "source", "initial"), strict=True)
    )
    shape, rank = operands[0].shape, len(operands[0].shape)

    def write(code: Statements, _: Sequence[Expr], chosen: Written, *results: Written) -> None:
        with code.loops(shape, _names(shape)) as at:
            for result, initial in zip(results, initials, strict=True):
                result.store(initial(), *at)
        with code.loops(sources[0].shape, [f"p{d}" for d in range(rank)]) as place:
            for axis in range(max(rank, 1)):
                chosen.store(-1, axis)
            with code.loops(sizes, [f"k{d}" for d in range(rank)]) as offset:
                here = [p * s + k - b for p, s, k, b in zip(place, steps, offset, low, strict=True)]
                tests = [t for a, extent in zip(here, shape, strict=True) for t in (a >= 0, a < extent)]
                with code.when(all_of(*tests)):
                    best = [larger(chosen.load(axis), 0) for axis in range(rank)]
                    pair = [operand(*at) for at in (best, here) for operand in operands]
                    is_new = (chosen.load(0) < 0) | ~select(pair)[0]
                    places = [te.select(is_new, a.astype("int64"), b) for a, b in zip(here, best, strict=True)]
                    for axis, value in enumerate(places):
                        chosen.store(value, axis)
            with code.when(chosen.load(0) >= 0):
                found = [chosen.load(axis) for axis in range(rank)]
                given = [*(result.load(*found) for result in results), *(source(*place) for source in sources)]
                for result, value in zip(results, scatter(given), strict=True):
                    result.store(value, *found)

    labels = [name] if len(operands) == 1 else [f"{name}_real", f"{name}_imaginary"]
    made = [Result((max(rank, 1),), "int64", f"{name}_chosen")]
    made += [Result(shape, operand.dtype, text) for operand, text in zip(operands, labels, strict=True)]
    found = extern((), made, [*operands, *sources, *initials], write, name)[1:]
    return found[0] if len(found) == 1 else Parts(found[0], found[1], values[0].dtype)


def _lone_op(block: Block) -> Any:
    ops = list(block.ops)
    is_lone = len(ops) == 2 and tuple(ops[0].operands) == tuple(block.args) and len(block.args) == 2
    return ops[0] if is_lone and tuple(ops[1].operands) == tuple(ops[0].results) else None


def _combining(updates: _Scatter, source: Value, kind: str, region: Region) -> Callable[..., Expr]:
    """Elements of an operand, combined by `kind` with all updates that cover them."""
    combiner = cast("Combiner", COMBINERS[kind][source.dtype == "bool"])
    neutral = constant(neutral_of(combiner, source.dtype), source.dtype)

    def element(*at: Expr) -> Expr:
        covers, places = updates.place(updates.over, at)
        new = te.if_then_else(covers, updates.update(updates.over, places), neutral)
        return region([element_of(source, at), reduction(combiner)(new, axis=updates.over)])[0]

    return element


def _returns_update(op: ScatterOp) -> bool:
    block = op.body.block
    return len(list(block.ops)) == 1 and tuple(cast("Operation", block.last_op).operands) == (block.args[1],)
