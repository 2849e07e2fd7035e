"""Functions composed of graph operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from weft.dialects.graph import ConstantOp, dense_value
from weft.frontends import graph_builder
from weft.frontends.data_sizes import DataSizes
from weft.frontends.graph_builder import Value, operator
from weft.interp.values import array_of_dense
from weft.support.errors import CompileError
from weft.texpr.shapes import items

__all__ = [
    "affine_grid", "attention", "batch_norm", "collapse_sum_to", "cross_entropy_with_logits", "hamming_window",
    "index_put", "index_tensor", "layout_transform", "linear", "median", "nll_loss", "nonzero", "prelu",
    "slice_scatter", "std", "unique", "variance",
]  # fmt: skip


@dataclass(frozen=True)
class Sized:
    """Results with extents that depend on data; `build` makes them."""

    build: Callable[[DataSizes], Any]


def _op(name: str, *args: Any, **options: Any) -> Any:
    return operator(name)(*args, **options)


def scalar_of(value: Any) -> Any:
    """The number in a constant of rank 0; other values are unchanged."""
    if isinstance(value, Value) and isinstance(value.ssa.owner, ConstantOp) and not value.shape:
        return np.asarray(array_of_dense(dense_value(value.ssa.owner))).item()
    return value


def match_shape(sizes: Value, names: Sequence[str], at_most: Sequence[Any] = ()) -> Sized:
    """Bind names of extents to the integers of `sizes`: see `BlockBuilder.match_shape`."""
    return Sized(lambda data: data.bind(sizes, names, at_most))


def _shape(shape: Any) -> tuple[Any, ...]:
    return tuple(extent if isinstance(extent, int) else str(extent) for extent in items(shape))


def nll_loss(
    predictions: Value, targets: Value, weights: Value | None = None, reduction: str = "mean", ignore_index: int = -100
) -> Any:
    """The loss of log probabilities; the class axis is 1, or the only one."""
    axis = min(predictions.ndim - 1, 1)
    counts = _op("not_equal", targets, ignore_index)
    kept = _op("where", counts, targets, 0)
    chosen = _op("gather", predictions, axis, _op("expand_dims", _op("cast", kept, "int64"), axis))
    ones = _op("full", (predictions.shape[axis],), 1, predictions.dtype)
    weight = _op("take", ones if weights is None else weights, kept) * _op("cast", counts, predictions.dtype)
    loss = _op("negative", _op("squeeze", chosen, axis)) * weight
    if reduction == "none":
        return loss
    total = _op("sum", loss)
    return total / _op("sum", weight) if reduction == "mean" else total


def cross_entropy_with_logits(predictions: Value, labels: Value) -> Any:
    total = _op("negative", _op("sum", predictions * labels))
    return total / predictions.shape[0] if predictions.ndim > 1 else total


def slice_scatter(input_tensor: Value, src: Value, start: Any, end: Any, step: Any, axis: int = 0) -> Any:
    extent = input_tensor.shape[axis]
    if not isinstance(extent, int):
        raise CompileError("slice_scatter: the axis has a constant extent in weft")
    rows = np.arange(extent)[slice(scalar_of(start), scalar_of(end), scalar_of(step))]
    rest = [1 if at != axis % input_tensor.ndim else len(rows) for at in range(input_tensor.ndim)]
    places = _op("broadcast_to", _op("reshape", graph_builder.const(rows, "int64"), rest), _shape(src.shape))
    return _op("scatter_elements", input_tensor, places, src, axis)


def layout_transform(x: Value, index_map: Callable[..., Any], pad_value: Any = None) -> Any:
    """Move the element of `x` at `indices` to `index_map(*indices)`; other elements are `pad_value`."""
    extents = cast("tuple[int, ...]", x.shape)
    if not all(isinstance(extent, int) for extent in x.shape):
        raise CompileError("layout_transform: weft transforms tensors of constant extents here")
    places = np.arange(int(np.prod(extents))).reshape(extents)
    new = np.array([items(index_map(*map(int, at))) for at in np.ndindex(places.shape)]).reshape(places.size, -1)
    shape = tuple(map(int, new.max(axis=0) + 1))
    source = np.full(shape, -1)
    source[tuple(new.T)] = places.reshape(-1)
    if pad_value is None and (source < 0).any():
        raise CompileError(
            f"layout_transform: the shape {shape} has elements to which no element of x is moved: pad_value="
        )
    flat = _op("take", _op("flatten", x), graph_builder.const(np.maximum(source, 0).reshape(-1), "int64"), 0)
    moved = _op("reshape", flat, shape)
    return (
        moved
        if not (source < 0).any()
        else _op("where", graph_builder.const(source >= 0, "bool"), moved, scalar_of(pad_value))
    )


def collapse_sum_to(data: Value, shape: Any) -> Any:
    """Sum over the axes along which `shape` was broadcast."""
    wanted = _shape(shape)
    lead = data.ndim - len(wanted)
    reduced = _op("sum", data, list(range(lead))) if lead else data
    kept = [at for at, extent in enumerate(wanted) if extent == 1 and reduced.shape[at] != 1]
    return _op("sum", reduced, kept, keepdims=True) if kept else reduced


def _places(indices: Any) -> Value:
    parts = [_op("cast", part, "int64") for part in items(indices)]
    shape = _shape(np.broadcast_shapes(*(part.shape for part in parts)))
    return _op("stack", [_op("broadcast_to", part, shape) for part in parts], -1)


def _axes_first(places: Value) -> Value:
    return _op("transpose", places, [places.ndim - 1, *range(places.ndim - 1)])


def index_tensor(data: Value, indices: Any) -> Any:
    """`data[indices]`, without negative indices."""
    return _op("gather_nd", data, _axes_first(_places(indices)))


def index_put(data: Value, indices: Any, values: Value, accumulate: bool = False) -> Any:
    """`data` with `data[indices] = values`."""
    places = _places(indices)
    shape = _shape((*places.shape[:-1], *data.shape[cast("int", places.shape[-1]) :]))
    given = _op("broadcast_to", values, shape)
    return _op("scatter_nd", data, _axes_first(places), given, "add" if accumulate else "none")


def affine_grid(data: Value, size: Any, align_corners: bool = True) -> Any:
    """Coordinates of each pixel after the map `data`, (batch, 2, 3)."""
    height, width = cast("tuple[int, int]", items(size))
    lines = [
        np.linspace(-1, 1, extent) if align_corners else (2 * np.arange(extent) + 1) / extent - 1
        for extent in (height, width)
    ]
    y, x = cast("list[NDArray[np.float64]]", np.meshgrid(*lines, indexing="ij"))
    pixels = graph_builder.const(np.stack([x, y, np.ones_like(x)]).reshape(3, -1), data.dtype)
    return _op("reshape", _op("matmul", data, pixels), _shape((data.shape[0], 2, height, width)))


def hamming_window(
    window_size: Any, periodic: Any = True, alpha: Any = 0.54, beta: Any = 0.46, dtype: str = "float32"
) -> Any:
    """`alpha - beta * cos(2 pi k / size)`, over `size - 1` unless `periodic`."""
    size, first, second = int(scalar_of(window_size)), float(scalar_of(alpha)), float(scalar_of(beta))
    step = 2 * np.pi / (size if scalar_of(periodic) else size - 1)
    return graph_builder.const(first - second * np.cos(step * np.arange(size)), dtype)


def median(x: Value, axis: Any = None, keepdims: bool = False) -> Any:
    """The lower median, with its indices along one axis."""
    axes = [at % x.ndim for at in cast("tuple[int, ...]", items(axis))] if axis is not None else list(range(x.ndim))
    order = [at for at in range(x.ndim) if at not in axes] + axes
    kept = [x.shape[at] for at in order[: x.ndim - len(axes)]]
    count = int(np.prod(cast("list[int]", [x.shape[at] for at in axes])))
    flat = _op("reshape", _op("transpose", x, order), _shape([*kept, count]))
    middle = (count - 1) // 2
    found = [
        _op("strided_slice", part, [middle], [middle + 1], 1, [-1])
        for part in (_op("sort", flat), _op("argsort", flat))
    ]
    shape = [1 if at in axes else extent for at, extent in enumerate(x.shape)] if keepdims else kept
    values, places = (_op("reshape", part, _shape(shape)) for part in found)
    return (values, _op("cast", places, "int64")) if axis is not None and len(axes) == 1 else values


def variance(x: Value, axis: Any = None, keepdims: bool = False) -> Any:
    return _op("mean", _op("square", x - _op("mean", x, axis, keepdims=True)), axis, keepdims)


def std(x: Value, axis: Any = None, keepdims: bool = False) -> Any:
    return _op("sqrt", variance(x, axis, keepdims))


def nonzero(x: Value) -> Sized:
    """The coordinates of nonzero elements, a row for each axis."""
    return Sized(lambda sizes: sizes.nonzero(x))


def unique(
    x: Value,
    sorted: Any = True,
    return_index: Any = False,
    return_inverse: Any = False,
    return_counts: Any = False,
    axis: Any = None,
) -> Sized:
    """Distinct elements or slices; optionally the first positions, the places of the elements' values, and the
    counts."""

    def build(sizes: DataSizes) -> Any:
        along = scalar_of(axis)
        values, index, inverse, counts = sizes.unique(x, along, is_sorted=bool(scalar_of(sorted)))
        inverse = _op("reshape", inverse, _shape(x.shape)) if along is None else inverse
        asked = [(return_index, index), (return_inverse, inverse), (return_counts, counts)]
        found = (values, *(part for flag, part in asked if scalar_of(flag)))
        return found if len(found) > 1 else values

    return Sized(build)


def prelu(data: Value, alpha: Value, axis: int = 1) -> Any:
    shape = [alpha.shape[0] if at == axis % data.ndim else 1 for at in range(data.ndim)]
    return _op("prelu", data, _op("reshape", alpha, _shape(shape)))


def check_neutral(name: str, given: Any, *neutral: Any) -> None:
    if given not in neutral:
        raise CompileError(f"{name}={given!r}: weft has {' or '.join(map(repr, neutral))} alone")


def in_layout(x: Value, layout: str, wanted: str | None) -> Any:
    """Change the layout. Raises CompileError for layouts with blocks."""
    if wanted in (None, "", layout):
        return x
    if sorted(wanted or "") != sorted(layout) or not layout.isalpha():
        raise CompileError(f"out_layout={wanted!r}: a layout with the axes of {layout}")
    return _op("transpose", x, [layout.index(letter) for letter in wanted or ""])


def batch_norm(
    data: Value, gamma: Value, beta: Value, moving_mean: Value, moving_var: Value, axis: int = 1,
    epsilon: float = 1e-5, center: bool = True, scale: bool = True, momentum: float = 0.1, training: bool = True,
) -> Any:  # fmt: skip
    """The normalized tensor, and the statistics, which training updates."""
    axes = [at for at in range(data.ndim) if at != axis % data.ndim]
    if not training:
        used = (moving_mean, moving_var)
    else:
        mean = _op("mean", data, axes, keepdims=True)
        used = _op("mean", data, axes), _op("mean", _op("square", data - mean), axes)
        moving_mean, moving_var = (
            old * (1 - momentum) + new * momentum for old, new in zip((moving_mean, moving_var), used, strict=True)
        )
    wanted = (gamma if scale else None, beta if center else None)
    return _op("batch_norm", data, *wanted, *used, axis, epsilon), moving_mean, moving_var


def channels_first(function: Callable[[Value], Any], data: Value, axis: int) -> Any:
    """Apply a function of channels on axis 1."""
    order = [at for at in range(data.ndim) if at != axis % data.ndim]
    order.insert(1, axis % data.ndim)
    if order == list(range(data.ndim)):
        return function(data)
    moved = function(_op("transpose", data, order))
    return _op("transpose", moved, [order.index(at) for at in range(data.ndim)])


def attention(
    query: Value, key: Value, value: Value, bias: Value | None = None, scale: Any = None,
    causal_mask: str | None = None, window_size: int | None = None,
) -> Any:  # fmt: skip
    """Attention of (batch, sequence, heads, width)."""
    check_neutral("causal_mask", causal_mask, None, "TopLeft", "BottomRight")
    check_neutral("window_size", window_size, None)
    if causal_mask == "BottomRight" and query.shape[1] != key.shape[1]:
        rows, columns = query.shape[1], key.shape[1]
        if bias is not None or not isinstance(rows, int) or not isinstance(columns, int):
            raise CompileError("causal_mask='BottomRight': weft has it for constant lengths and without a bias")
        seen = np.tril(np.ones((rows, columns), bool), columns - rows)
        bias, causal_mask = graph_builder.const(np.where(seen, 0, -np.inf), query.dtype), None
    q, k, v = (_op("transpose", part, [0, 2, 1, 3]) for part in (query, key, value))
    options = {"is_causal": causal_mask is not None, "scale": None if scale is None else scalar_of(scale)}
    return _op("transpose", _op("attention", q, k, v, bias, **options), [0, 2, 1, 3])


def linear(data: Value, weight: Value, bias: Value | None = None, out_dtype: Any = None) -> Any:
    """`matmul(data, permute_dims(weight)) + bias`."""
    product = _op("matmul", data, _op("transpose", weight), **({} if out_dtype is None else {"out_dtype": out_dtype}))
    return product if bias is None else _op("add", product, bias)
