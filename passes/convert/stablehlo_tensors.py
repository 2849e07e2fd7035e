"""Stablehlo ops that move, multiply and combine elements.

A rule takes the op and the values of its operands, and returns those of its results; those of `COMBINING_RULES` also
take a function that evaluates the region. Rules raise CompileError for unsupported forms.

Source: the StableHLO specification, "Ops".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final, TypeAlias, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, ComplexType, TensorType
from xdsl.ir import Attribute, Block, Operation

from weft.dialects import stablehlo
from weft.dialects.element_types import element_name
from weft.dialects.stablehlo import (
    ConvolutionOp,
    DotGeneralOp,
    GatherOp,
    KeyedAttr,
    ReduceOp,
    ReduceWindowOp,
    SliceOp,
    SortOp,
    TensorOp,
    numbers,
)
from weft.dialects.te import Combiner, identity_of
from weft.passes.convert.stablehlo_values import (
    MOST_SIZES,
    BroadcastView,
    Results,
    Sizes,
    Splat,
    Value,
    element_of,
    integer_of,
    sizes_of,
    tensor_of,
)
from weft.support.errors import CompileError
from weft.texpr import math as te
from weft.texpr import ops, reductions
from weft.texpr.expr import Expr, ExprLike, IterVar, as_expr, type_of
from weft.texpr.extern import Result, Statements, Written, extern
from weft.texpr.ops.arguments import compute, constant, is_one
from weft.texpr.ops.convolution import LETTERS
from weft.texpr.ops.cumulative import accumulated
from weft.texpr.ops.sorting import order_by
from weft.texpr.shapes import Extent, is_same, simplified
from weft.texpr.stablehlo import WIDE, dot_subscripts

Rule: TypeAlias = Callable[..., Results]
Region: TypeAlias = Callable[[Sequence[Expr]], list[Expr]]
"""Returns the results of a region for given arguments."""


def label(op: Operation) -> str:
    return op.name.rpartition(".")[2]


def result_shape(op: Operation, position: int = 0) -> tuple[int, ...]:
    return tuple(cast("TensorType[Attribute]", op.results[position].type).get_shape())


def result_dtype(op: Operation, position: int = 0) -> str:
    """Element type of a result, or of its complex parts. Raises `CompileError` for types that tensors do not
    support."""
    element = cast("TensorType[Attribute]", op.results[position].type).element_type
    if isinstance(element, ComplexType):
        element = cast("Attribute", element.element_type)
    name = element_name(element)
    if name is None:
        raise CompileError(f"elements of type {element} are not supported")
    return name


def _static_shape(op: Operation) -> tuple[int, ...]:
    shape = result_shape(op)
    if DYNAMIC_INDEX in shape:
        raise CompileError(f"the shape of {op.results[0].type} is not known")
    return shape


def _extents(value: Value, what: str) -> tuple[Extent, ...]:
    sizes = sizes_of(value)
    if sizes is None:
        raise CompileError(f"{what} is computed from data, not from extents")
    return sizes.elements


def _integers(value: Value, what: str) -> tuple[int, ...]:
    found = [integer_of(extent) for extent in _extents(value, what)]
    if None in found:
        raise CompileError(f"{what} is not constant")
    return tuple(cast("list[int]", found))


# Shapes


def _wanted(op: TensorOp, given: Sequence[Value]) -> tuple[Extent, ...]:
    """The shape of the result: the last operand of dynamic ops, else the declared one."""
    return _extents(given[0], "the shape") if given else _static_shape(op)


def _iota(op: TensorOp, *given: Value) -> Value:
    (axis,), dtype = op.keyword("dim"), result_dtype(op)
    return compute(_wanted(op, given), lambda *i: i[axis].astype(dtype), label(op))


def _broadcast_in_dim(op: TensorOp, source: Value, *given: Value) -> Value:
    dims, shape = op.keyword("dims"), _wanted(op, given)
    if isinstance(source, Splat):
        return Splat(source.number, shape, source.dtype)
    for axis, extent in zip(dims, source.shape, strict=True):
        if not is_one(extent) and not is_same(extent, shape[axis]):
            raise CompileError(f"extent {extent} does not broadcast to {shape[axis]}")
    if isinstance(source, Sizes) and shape == (1,):
        return Sizes(source.elements, (1,), source.dtype)
    places = tuple(None if is_one(extent) else axis for axis, extent in zip(dims, source.shape, strict=True))
    return BroadcastView(source, shape, places)


def _reshape(op: TensorOp, source: Value, *given: Value) -> Value:
    shape = _wanted(op, given)
    if isinstance(source, Sizes) and not given:
        return Sizes(source.elements, _static_shape(op), source.dtype)
    if isinstance(source, Splat):
        return Splat(source.number, shape, source.dtype)
    return ops.reshape(tensor_of(source, label(op)), shape, name=label(op))


def _get_dimension_size(op: TensorOp, source: Value) -> Value:
    return Sizes((source.shape[op.keyword("dim")[0]],), (), result_dtype(op))


# Data movement


def _transpose(op: TensorOp, source: Value) -> Value:
    order = op.keyword("dims")
    if isinstance(source, Splat):
        return Splat(source.number, tuple(source.shape[axis] for axis in order), source.dtype)
    return ops.transpose(tensor_of(source, label(op)), order, name=label(op))


def _reverse(op: TensorOp, source: Value) -> Value:
    dims = op.keyword("dims")
    return source if isinstance(source, Splat) or not dims else ops.flip(tensor_of(source, "x"), dims, name=label(op))


def _concatenate(op: TensorOp, *sources: Value) -> Value:
    sizes = [found for source in sources if (found := sizes_of(source)) is not None]
    is_first = op.keyword("dim") == (0,)
    shape = result_shape(op)
    if is_first and len(sizes) == len(sources) and prod(shape) <= MOST_SIZES:
        return Sizes(tuple(extent for one in sizes for extent in one.elements), shape, sizes[0].dtype)
    tensors = [tensor_of(source, f"{label(op)}_part") for source in sources]
    return ops.concatenate(tensors, op.keyword("dim")[0], name=label(op))


def _slice(op: SliceOp, source: Value) -> Value:
    starts, steps = numbers(op.start_indices), numbers(op.strides)
    counts = [-(-(e - s) // t) for s, e, t in zip(starts, numbers(op.limit_indices), steps, strict=True)]
    return _strided(source, starts, steps, counts, label(op))


def _real_dynamic_slice(op: TensorOp, source: Value, start: Value, limit: Value, strides: Value) -> Value:
    starts, ends = _extents(start, "start_indices"), _extents(limit, "limit_indices")
    steps = _integers(strides, "strides")
    counts = [simplified((e - s + (t - 1)) // t) for s, e, t in zip(starts, ends, steps, strict=True)]
    return _strided(source, starts, steps, counts, label(op))


def sized_slice(op: TensorOp, source: Value, start: Value, counts: Sequence[Extent]) -> Value:
    def element(*indices: Expr) -> Expr:
        firsts = [_inside(element_of(start, (as_expr(d),)), source.shape[d], n) for d, n in enumerate(counts)]
        return element_of(source, [i + first for i, first in zip(indices, firsts, strict=True)])

    return compute(counts, element, label(op))


def _strided(
    source: Value, starts: Sequence[Extent], steps: Sequence[int], counts: Sequence[Extent], name: str
) -> Value:
    if isinstance(source, Splat):
        return Splat(source.number, tuple(counts), source.dtype)
    first, count = integer_of(starts[0]) if starts else None, integer_of(counts[0]) if counts else None
    if isinstance(source, Sizes) and len(starts) == 1 and first is not None and count is not None:
        return Sizes(tuple(source.elements[first + k * steps[0]] for k in range(count)), (count,), source.dtype)

    def element(*indices: Expr) -> Expr:
        moved = [i * t if t != 1 else i for i, t in zip(indices, steps, strict=True)]
        return element_of(source, [i if s == 0 else i + s for i, s in zip(moved, starts, strict=True)])

    return compute(counts, element, name)


def _start(index: Value, extent: Extent, size: Extent) -> ExprLike:
    """First index of a slice of `size`, clamped to be in bounds of `extent`."""
    if isinstance(index, Splat) and isinstance(extent, int) and isinstance(size, int):
        return max(0, min(int(index.number), extent - size))
    return _inside(element_of(index, ()), extent, size)


def _inside(index: Expr, extent: Extent, size: Extent) -> Expr:
    """`index`, clamped so that `size` elements are in bounds; 64 bits, which combine to affine expressions."""
    last = as_expr(simplified(extent - size)).astype("int64")
    return reductions.max(reductions.min(index.astype("int64"), last), 0)


def _dynamic_slice(op: TensorOp, source: Value, *starts: Value) -> Value:
    sizes = op.keyword("sizes")
    first = [_start(s, e, n) for s, e, n in zip(starts, source.shape, sizes, strict=True)]
    return compute(
        sizes, lambda *i: element_of(source, [_plus(x, f) for x, f in zip(i, first, strict=True)]), label(op)
    )


def _plus(index: Expr, offset: ExprLike) -> Expr:
    return index if isinstance(offset, int) and offset == 0 else index + offset


def _dynamic_update_slice(op: TensorOp, source: Value, update: Value, *starts: Value) -> Value:
    first = [_start(s, e, n) for s, e, n in zip(starts, source.shape, update.shape, strict=True)]

    def element(*indices: Expr) -> Expr:
        places = [i - f for i, f in zip(indices, first, strict=True)]
        inside: list[Expr] = []
        for place, extent, size in zip(places, source.shape, update.shape, strict=True):
            if not is_same(extent, size):
                inside += [place >= 0, place < size]
        new = element_of(update, places)
        return te.if_then_else(reductions.all(*inside), new, element_of(source, indices)) if inside else new

    return compute(source.shape, element, label(op))


def _pad(op: TensorOp, source: Value, value: Value, *given: Value) -> Value:
    if not given:
        low, high, interior = (op.keyword(name) for name in ("low", "high", "interior"))
        return padded(source, value, low, high, interior, label(op))
    before, after = _extents(given[0], "edge_padding_low"), _extents(given[1], "edge_padding_high")
    return padded(source, value, before, after, _integers(given[2], "interior_padding"), label(op))


def padded(
    source: Value, value: Value, low: Sequence[Extent], high: Sequence[Extent], interior: Sequence[int], name: str
) -> Value:
    """Computes `pad`: `interior` values between neighbours, `low` and `high` around. Negative numbers remove
    elements."""
    if all(integer_of(count) == 0 for count in (*low, *high, *interior)):
        return source
    steps = [count + 1 for count in interior]
    spans = [
        simplified((extent - 1) * step + 1) if extent != 0 else 0
        for extent, step in zip(source.shape, steps, strict=True)
    ]
    shape = [simplified(span + (b + a)) for span, b, a in zip(spans, low, high, strict=True)]

    def element(*indices: Expr) -> Expr:
        places: list[Expr] = []
        inside: list[Expr] = []
        for i, before, after, step, span in zip(indices, low, high, steps, spans, strict=True):
            place = i if integer_of(before) == 0 else i - before
            if _may_be_positive(before):
                inside.append(place >= 0)
            if _may_be_positive(after):
                inside.append(place < span)
            if step != 1:
                inside.append(place % step == 0)
            places.append(place // step if step != 1 else place)
        found = element_of(source, places)
        return te.if_then_else(reductions.all(*inside), found, element_of(value, ())) if inside else found

    return compute(shape, element, name)


def _may_be_positive(extent: Extent) -> bool:
    number = integer_of(extent)
    return number is None or number > 0


# Gather and scatter


def _gather(op: GatherOp | stablehlo.DynamicGatherOp, source: Value, indices: Value, *given: Value) -> Value:
    sizes = numbers(op.slice_sizes) if isinstance(op, GatherOp) else _extents(given[0], "slice_sizes")
    return gathered(op.dimension_numbers, source, indices, sizes, label(op))


def gathered(layout: KeyedAttr, source: Value, indices: Value, sizes: Sequence[Extent], name: str) -> Value:
    """Slices of `sizes` with starts from `indices`, clamped to be in bounds."""
    offsets, collapsed = layout.dims("offset_dims"), layout.dims("collapsed_slice_dims")
    batching = dict(zip(layout.dims("operand_batching_dims"), layout.dims("start_indices_batching_dims"), strict=True))
    vector = layout.number("index_vector_dim")
    kept = [axis for axis in range(len(sizes)) if axis not in collapsed and axis not in batching]
    outer = iter(extent for axis, extent in enumerate(indices.shape) if axis != vector)
    inner = iter(sizes[axis] for axis in kept)
    rank = len(indices.shape) - (vector < len(indices.shape)) + len(offsets)
    shape = [next(inner) if axis in offsets else next(outer) for axis in range(rank)]

    def element(*places: Expr) -> Expr:
        batch = [place for axis, place in enumerate(places) if axis not in offsets]
        at = dict(zip(kept, (places[axis] for axis in offsets), strict=True))
        starts = index_vector(layout.dims("start_index_map"), indices, batch, vector)
        found: list[ExprLike] = []
        for axis, (extent, size) in enumerate(zip(source.shape, sizes, strict=True)):
            if axis in batching:
                found.append(batch[batching[axis] - (batching[axis] > vector)])
                continue
            offset: ExprLike = at.get(axis, 0)
            if axis in starts and not is_same(extent, size):
                start = _inside(starts[axis], extent, size)
                offset = start if isinstance(offset, int) else offset + start
            found.append(offset)
        return element_of(source, found)

    return compute(shape, element, name)


def index_vector(axes: Sequence[int], indices: Value, batch: Sequence[Expr], vector: int) -> dict[int, Expr]:
    if vector == len(indices.shape):
        return {axes[0]: element_of(indices, batch)}
    return {axis: element_of(indices, [*batch[:vector], k, *batch[vector:]]) for k, axis in enumerate(axes)}


# Products


def _sum_dtype(op: Operation) -> str:
    """Products are added in the result's type, or bytes for smaller integers."""
    return WIDE.get(result_dtype(op), result_dtype(op))


def _dot_general(op: DotGeneralOp, left: Value, right: Value) -> Value:
    operands = tensor_of(left, "lhs"), tensor_of(right, "rhs")
    return ops.einsum(dot_subscripts(op), *operands, out_dtype=_sum_dtype(op), name=label(op))


def _convolution(op: ConvolutionOp | stablehlo.DynamicConvOp, data: Value, kernel: Value, *given: Value) -> Value:
    """Computes a convolution by `te.ops.conv1d`, `conv2d` or `conv3d`.

    The input is padded first if elements are inserted or removed, the kernel mirrored if its window is, and the result
    transposed if its layout differs.
    """
    left, right, output = op.dimension_numbers.data
    rank = len(output) - 2
    if rank not in LETTERS:
        raise CompileError(f"convolutions over {rank} spatial dimensions are not supported, over 1 to 3 are")
    flat: Sequence[Extent] = numbers(op.padding) if isinstance(op, ConvolutionOp) else _extents(given[0], "padding")
    flat = flat or (0,) * (2 * rank)
    groups, batches = (cast("Any", group).value.data for group in (op.feature_group_count, op.batch_group_count))
    if batches != 1:
        if groups != 1:
            raise CompileError(f"feature_group_count = {groups} and batch_group_count = {batches} are not supported")
        data, groups = _batch_groups_as_features(data, batches, left.index("b"), left.index("f"), label(op)), batches
    strides, inner, dilation = (
        numbers(given) or (1,) * rank for given in (op.window_strides, op.lhs_dilation, op.rhs_dilation)
    )
    pads: list[tuple[Extent, Extent]] = list(zip(flat[::2], flat[1::2], strict=True))
    if any(step != 1 for step in inner) or any((integer_of(pad) or 0) < 0 or integer_of(pad) is None for pad in flat):
        around = {axis: pads[int(letter)] for axis, letter in enumerate(left) if letter.isdigit()}
        between = {axis: inner[int(letter)] - 1 for axis, letter in enumerate(left) if letter.isdigit()}
        axes = range(len(left))
        low, high = ([around.get(axis, (0, 0))[side] for axis in axes] for side in range(2))
        zero = Splat(0, (), data.dtype)
        data = padded(data, zero, low, high, [between.get(axis, 0) for axis in axes], f"{label(op)}_pad")
        pads = [(0, 0)] * rank
    mirrored = [axis for axis, letter in enumerate(right) if letter.isdigit() and _is_mirrored(op, int(letter))]
    weight = tensor_of(kernel, "kernel")
    if mirrored:
        weight = ops.flip(weight, mirrored, name=f"{label(op)}_mirrored")
    named = {"b": "N", "f": "C", "o": "O", "i": "I", **{str(d): c for d, c in enumerate(LETTERS[rank])}}
    layout = "".join(named[letter] for letter in left)
    wanted = "".join(named[letter] for letter in output)
    direct = layout == wanted
    found = getattr(ops, f"conv{rank}d")(
        tensor_of(data, "data"),
        weight,
        strides,
        tuple(pads),
        dilation,
        groups,
        layout,
        "".join(named[letter] for letter in right),
        _sum_dtype(op),
        name=label(op),
    )
    return found if direct else ops.transpose(found, [layout.index(c) for c in wanted], name=f"{label(op)}_layout")


def _batch_groups_as_features(data: Value, groups: int, batch: int, feature: int, name: str) -> Value:
    """Input of a convolution of `batch_group_count` groups, with groups of images as features: group g of the output
    features depends on group g of both."""
    images, features = data.shape[batch], data.shape[feature]
    count = simplified(images // groups)
    shape = list(data.shape)
    shape[batch], shape[feature] = count, simplified(features * groups)

    def element(*indices: Expr) -> Expr:
        at = list(indices)
        at[batch] = indices[feature] // features * count + indices[batch]
        at[feature] = indices[feature] % features
        return element_of(data, at)

    return compute(shape, element, f"{name}_groups")


def _is_mirrored(op: ConvolutionOp | stablehlo.DynamicConvOp, axis: int) -> bool:
    return op.window_reversal is not None and bool(numbers(op.window_reversal)[axis])


# Reductions

COMBINERS: Final[Mapping[str, tuple[Combiner | None, Combiner]]] = {
    "add": (Combiner.SUM, Combiner.ANY),
    "multiply": (Combiner.PROD, Combiner.ALL),
    "maximum": (Combiner.MAX, Combiner.ANY),
    "minimum": (Combiner.MIN, Combiner.ALL),
    "and": (None, Combiner.ALL),
    "or": (None, Combiner.ANY),
}
"""Maps the op of a region to the reduction of numbers, and that of truth values."""


def neutral(combiner: Combiner, dtype: str) -> int | float:
    return identity_of(combiner, [type_of(dtype)])[0]


def reduction(combiner: Combiner) -> Callable[..., Expr]:
    return getattr(reductions, str(combiner.value))


def lone_kind(block: Block) -> str | None:
    lone = stablehlo.lone_op(block)
    return None if lone is None or label(lone) not in COMBINERS else label(lone)


def _combined(
    kind: str | None,
    name: str,
    values: Sequence[Expr],
    initial: Sequence[Value],
    over: Sequence[IterVar],
    region: Region,
) -> list[Expr]:
    """Initial values are neutral, as the specification requires."""
    if not over:
        return region([*(element_of(value, ()) for value in initial), *values])
    dtype = values[0].dtype
    combiner = None if kind is None else COMBINERS[kind][dtype == "bool"]
    if combiner is not None:
        (start,) = initial
        found = reduction(combiner)(values[0], axis=list(over))
        is_neutral = isinstance(start, Splat) and start.number == neutral(combiner, dtype)
        return [found] if is_neutral else region([element_of(start, ()), found])
    starts = [cast("Splat", value).number for value in initial]
    dtypes = [value.dtype for value in values]

    def combine(left: Sequence[Expr], right: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(region([*left, *right]))

    reducer = reductions.comm_reducer(
        combine, lambda *_: tuple(constant(s, d) for s, d in zip(starts, dtypes, strict=True)), name
    )
    return list(cast("Sequence[Expr]", reducer(tuple(values), axis=list(over))))


def _reduce(op: ReduceOp, values: Sequence[Value], region: Region) -> Results:
    sources, initial = values[: op.operand_count], values[op.operand_count :]
    dims, shape = numbers(op.dimensions), sources[0].shape
    kind = lone_kind(op.body.block)

    def places(indices: Sequence[Expr], over: Mapping[int, Expr]) -> list[Expr]:
        rest = iter(indices)
        return [over[axis] if axis in over else next(rest) for axis in range(len(shape))]

    kept = [extent for axis, extent in enumerate(shape) if axis not in dims]
    reduced = {axis: shape[axis] for axis in dims}
    return _Reduction(label(op), kind, sources, initial, kept, reduced, places, region).result()


_Places: TypeAlias = Callable[[Sequence[Expr], Mapping[int, Expr]], list[Expr]]
"""Returns the indices of an operand, for those of the result and of the reduced axes."""


@dataclass(frozen=True)
class _Reduction:
    """Elements of tensors, combined along axes of the extents `reduced` for each element of `shape`."""

    name: str
    kind: str | None
    sources: Sequence[Value]
    initial: Sequence[Value]
    shape: Sequence[Extent]
    reduced: Mapping[int, Extent]
    places: _Places
    region: Region

    def result(self) -> Results:
        is_known = self.kind is not None and COMBINERS[self.kind][self.sources[0].dtype == "bool"] is not None
        has_constants = all(isinstance(value, Splat) for value in self.initial)
        return self._at_once() if not self.reduced or is_known or has_constants else self._in_order()

    def _at_once(self) -> Results:
        over = {axis: reductions.reduce_axis((0, extent), f"k{axis}") for axis, extent in self.reduced.items()}

        def element(*indices: Expr) -> list[Expr]:
            at = self.places(indices, over)
            inner = [element_of(source, at) for source in self.sources]
            return _combined(self.kind, self.name, inner, self.initial, list(over.values()), self.region)

        return computed_together(self.shape, element, self.name)

    def _in_order(self) -> Results:
        """Combine one element at a time, starting from non-constant initial values."""
        name, reduced = self.name, self.reduced
        tensors = [tensor_of(value, f"{name}_operand{at}") for at, value in enumerate(self.sources)]
        starts = [tensor_of(value, f"{name}_initial{at}") for at, value in enumerate(self.initial)]

        def write(code: Statements, indices: Sequence[Expr], *totals: Written) -> None:
            for total, start in zip(totals, starts, strict=True):
                total.store(start(), *indices)
            with code.loops([*reduced.values()], [f"k{axis}" for axis in reduced]) as inner:
                at = self.places(indices, dict(zip(reduced, inner, strict=True)))
                old = [total.load(*indices) for total in totals]
                found = self.region([*old, *(tensor(*at) for tensor in tensors)])
                for total, value in zip(totals, found, strict=True):
                    total.store(value, *indices)

        labels = [name] if len(tensors) == 1 else [f"{name}{at}" for at in range(len(tensors))]
        made = [Result(tuple(self.shape), tensor.dtype, text) for tensor, text in zip(tensors, labels, strict=True)]
        return list(extern(self.shape, made, [*tensors, *starts], write, name))


def computed_together(shape: Sequence[Extent], element: Callable[..., list[Expr]], name: str) -> Results:
    """One computation of several tensors."""

    def one_or_more(*indices: Expr) -> Any:
        found = element(*indices)
        return found[0] if len(found) == 1 else tuple(found)

    found: Any = compute(shape, one_or_more, name)
    return found


def _sort(op: SortOp, values: Sequence[Value], region: Region) -> Results:
    tensors = [tensor_of(value, f"{label(op)}_operand") for value in values]
    shape = tensors[0].shape
    along = (-1 if op.dimension is None else int(op.dimension.value.data)) % len(shape)

    def is_before(left: Sequence[Expr], right: Sequence[Expr]) -> Expr:
        return region([value for pair in zip(left, right, strict=True) for value in pair])[0]

    order = order_by(tensors, along, is_before, shape[along], f"{label(op)}_order")

    def element(*at: Expr) -> list[Expr]:
        return [tensor(*at[:along], order(*at), *at[along + 1 :]) for tensor in tensors]

    return computed_together(shape, element, label(op))


@dataclass(frozen=True)
class _Windows:
    """Windows of tensors, with a number per dimension. Elements are inserted by `inner` first, then around."""

    sizes: Sequence[Extent]
    strides: Sequence[int]
    inner: Sequence[int]
    dilation: Sequence[int]
    low: Sequence[Extent]
    high: Sequence[Extent]

    def cumulative(self, shape: Sequence[Extent]) -> tuple[int, bool] | None:
        """The axis along which each window contains an element and all before it, and False; or all after it, and
        True."""
        along = [axis for axis, size in enumerate(self.sizes) if not is_one(size)]
        if len(along) != 1 or any(step != 1 for step in (*self.strides, *self.inner, *self.dilation)):
            return None
        (axis,) = along
        if not is_same(self.sizes[axis], shape[axis]):
            return None
        others = [pad for pads in (self.low, self.high) for at, pad in enumerate(pads) if at != axis]
        if any(integer_of(pad) != 0 for pad in others):
            return None
        last = simplified(shape[axis] - 1)
        for pads, opposite, is_reversed in ((self.low, self.high, False), (self.high, self.low, True)):
            if is_same(pads[axis], last) and integer_of(opposite[axis]) == 0:
                return axis, is_reversed
        return None


def _reduce_window(op: ReduceWindowOp, values: Sequence[Value], region: Region) -> Results:
    sizes = numbers(op.window_dimensions)
    ones, flat = (1,) * len(sizes), numbers(op.padding) or (0,) * (2 * len(sizes))
    strides, inner, dilation = (
        numbers(given) or ones for given in (op.window_strides, op.base_dilations, op.window_dilations)
    )
    windows = _Windows(sizes, strides, inner, dilation, flat[::2], flat[1::2])
    return _reduce_windows(values, windows, op.body.block, region)


def dynamic_reduce_window(values: Sequence[Value], block: Block, region: Region) -> Results:
    """`stablehlo.reduce_window` whose last five operands are its windows, a custom call of JAX."""
    *values, sizes, strides, inner, dilation, padding = values
    flat = _extents(padding, "padding")
    windows = _Windows(
        _extents(sizes, "window_dimensions"),
        _integers(strides, "window_strides"),
        _integers(inner, "base_dilations"),
        _integers(dilation, "window_dilations"),
        flat[::2],
        flat[1::2],
    )
    return _reduce_windows(values, windows, block, region)


def _reduce_windows(values: Sequence[Value], windows: _Windows, block: Block, region: Region) -> Results:
    count, name = len(values) // 2, "reduce_window"
    sources, initial = values[:count], values[count:]
    kind = lone_kind(block)
    along = windows.cumulative(sources[0].shape)
    if along is not None and (kind is None or _is_neutral(kind, initial[0])):
        return _cumulative(sources, kind, *along, region)
    strides, dilation = windows.strides, windows.dilation
    around = [
        padded(source, start, windows.low, windows.high, [step - 1 for step in windows.inner], f"{name}_pad")
        for source, start in zip(sources, initial, strict=True)
    ]
    spans = [(size - 1) * gap + 1 for size, gap in zip(windows.sizes, dilation, strict=True)]
    shape = [
        simplified((extent - span) // step + 1)
        for extent, span, step in zip(around[0].shape, spans, strides, strict=True)
    ]

    def places(indices: Sequence[Expr], over: Mapping[int, Expr]) -> list[Expr]:
        at: list[Expr] = []
        for axis, index in enumerate(indices):
            place = index * strides[axis] if strides[axis] != 1 else index
            if axis in over:
                place = place + (over[axis] * dilation[axis] if dilation[axis] != 1 else over[axis])
            at.append(place)
        return at

    reduced = {axis: size for axis, size in enumerate(windows.sizes) if not is_one(size)}
    return _Reduction(name, kind, around, initial, shape, reduced, places, region).result()


def _is_neutral(kind: str, start: Value) -> bool:
    combiner = COMBINERS[kind][start.dtype == "bool"]
    return combiner is not None and isinstance(start, Splat) and start.number == neutral(combiner, start.dtype)


_CUMULATIVE: Final = {"add": ops.cumsum, "multiply": ops.cumprod, "maximum": ops.cummax, "minimum": ops.cummin}


def _cumulative(sources: Sequence[Value], kind: str | None, axis: int, is_reversed: bool, region: Region) -> Results:
    """Combine each element with all before, or after, it along an axis, in order."""
    tensors = [tensor_of(source, f"x{at}") for at, source in enumerate(sources)]
    if kind in _CUMULATIVE and tensors[0].dtype != "bool":
        return _CUMULATIVE[kind](tensors[0], axis, reverse=is_reversed, name="reduce_window")

    def combine(before: Sequence[Expr], here: Sequence[Expr]) -> list[Expr]:
        return region([*before, *here])

    return accumulated(combine, tensors, axis, reverse=is_reversed, name="reduce_window")


RULES: Final[Mapping[str, Rule]] = {
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.convolution": _convolution,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.dynamic_broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.dynamic_conv": _convolution,
    "stablehlo.dynamic_gather": _gather,
    "stablehlo.dynamic_iota": _iota,
    "stablehlo.dynamic_pad": _pad,
    "stablehlo.dynamic_reshape": _reshape,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.gather": _gather,
    "stablehlo.get_dimension_size": _get_dimension_size,
    "stablehlo.iota": _iota,
    "stablehlo.pad": _pad,
    "stablehlo.real_dynamic_slice": _real_dynamic_slice,
    "stablehlo.reshape": _reshape,
    "stablehlo.reverse": _reverse,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
}
"""Maps an op to the rule that computes it from its operands."""

COMBINING_RULES: Final[Mapping[str, Rule]] = {
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.sort": _sort,
}
"""Maps an op to the rule that computes it from its operands and its region."""
