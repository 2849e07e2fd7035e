"""Converters of products, convolutions, pools, norms, attention, recurrent networks and resizing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from weft.dialects.graph_shapes import Expression
from weft.frontends.graph_builder import Value, const
from weft.frontends.torch.converters import (
    Conversion,
    Converter,
    Scalar,
    apply,
    cast_to,
    extent_value,
    indices_of,
    known,
    register,
)
from weft.frontends.torch.library import torch
from weft.frontends.torch.symbols import UnsupportedError, torch_dtype


@register("aten._grouped_mm.default", "transformers.grouped_mm_fallback.default")
def _grouped_mm(
    cx: Conversion, x: Value, y: Value, offs: Value | None = None, bias: Value | None = None, out_dtype: object = None
) -> Value:
    if offs is None or (x.ndim, y.ndim) != (2, 3):
        raise UnsupportedError("groups of other than the rows of a matrix")
    if bias is not None:
        raise UnsupportedError("a bias")
    return cast_to(apply("grouped_matmul", x, y, offs), cx.dtype)


@register("aten.linear.default")
def _linear(cx: Conversion, x: Value, weight: Value, bias: Value | None) -> Value:
    if weight.ndim == 1:
        product = apply("matmul", x, weight)
        return product if bias is None else apply("add", product, bias)
    return apply("dense", x, weight, bias)


@register("aten.addmm.default", "aten.baddbmm.default")
def _addmm(cx: Conversion, bias: Value, x: Value, y: Value, *, beta: Scalar, alpha: Scalar) -> Value:
    product = apply("matmul", x, y)
    if alpha != 1:
        product = apply("multiply", product, cx.number(alpha, cx.dtype))
    if beta == 0:
        return product
    return apply("add", product, bias if beta == 1 else apply("multiply", bias, cx.number(beta, cx.dtype)))


@register("aten.addbmm.default")
def _addbmm(cx: Conversion, bias: Value, x: Value, y: Value, *, beta: Scalar, alpha: Scalar) -> Value:
    total = apply("sum", apply("matmul", x, y), axis=[0])
    total = total if alpha == 1 else apply("multiply", total, cx.number(alpha, cx.dtype))
    if beta == 0:
        return total
    return apply("add", total, bias if beta == 1 else apply("multiply", bias, cx.number(beta, cx.dtype)))


@register("aten._trilinear.default")
def _trilinear(
    cx: Conversion,
    first: Value,
    second: Value,
    third: Value,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int,
) -> Value:
    """Sums the product of three tensors after inserting axes of extent 1."""
    wide: list[Value] = []
    for value, axes in ((first, expand1), (second, expand2), (third, expand3)):
        for axis in sorted(axes):
            value = apply("expand_dims", value, axis)
        wide.append(value)
    product = apply("multiply", apply("multiply", wide[0], wide[1]), wide[2])
    return apply("sum", product, axis=list(sumdim))


@register("aten.convolution.default")
def _convolution(
    cx: Conversion,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Value:
    rank = weight.ndim - 2
    batched = x if x.ndim == rank + 2 else apply("expand_dims", x, 0)
    options = _given(rank, strides=(stride, 1), padding=(padding, 0), dilation=(dilation, 1))
    options |= _given(rank, output_padding=(output_padding, 0)) if transposed else {}
    options |= {"groups": groups} if groups != 1 else {}
    found = apply(f"conv{rank}d{'_transpose' if transposed else ''}", batched, weight, **options)
    if bias is not None:
        found = apply("add", found, apply("reshape", bias, (bias.shape[0], *[1] * rank)))
    return found if batched is x else apply("squeeze", found, axis=[0])


def _given(rank: int, **numbers: tuple[Sequence[int], int]) -> dict[str, Any]:
    return {name: _each(given, rank) for name, (given, default) in numbers.items() if set(given) != {default}}


def _each(numbers: Sequence[int], rank: int) -> list[int]:
    return list(numbers) * (rank if len(numbers) == 1 else 1)


def _windows(
    rank: int, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], ceil_mode: bool
) -> dict[str, Any]:
    options = _given(rank, kernel=(kernel, 0), strides=(stride or kernel, 0), padding=(padding, 0))
    return options | ({"ceil_mode": True} if ceil_mode else {})


def _batched(pool: Callable[..., Any]) -> Converter:
    def convert(cx: Conversion, x: Value, kernel: Sequence[int], *rest: Any) -> Any:
        if x.ndim > len(kernel) + 1:
            return pool(cx, x, list(kernel), *rest)
        found = pool(cx, apply("expand_dims", x, 0), list(kernel), *rest)
        if isinstance(found, tuple):
            return tuple(v and apply("squeeze", v, axis=[0]) for v in cast("tuple[Value | None, ...]", found))
        return apply("squeeze", found, axis=[0])

    return convert


@register("aten.avg_pool1d.default", "aten.avg_pool2d.default", "aten.avg_pool3d.default")
@_batched
def _avg_pool(
    cx: Conversion,
    x: Value,
    kernel: list[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None = None,
) -> Value:
    rank = x.ndim - 2
    windows = _windows(rank, kernel, stride, padding, ceil_mode)
    if "float" not in x.dtype:  # sums below 2^53 are exact, and so is the rounding of their quotients
        wide = cast_to(x, "float64")
        found = _avg_pool(cx, wide, kernel, stride, padding, ceil_mode, count_include_pad, divisor)
        return cast_to(apply("trunc", found), x.dtype)
    if divisor is not None:
        return apply("divide", apply(f"sum_pool{rank}d", x, **windows), const(divisor, x.dtype))
    return apply(f"avg_pool{rank}d", x, **windows, **({} if count_include_pad else {"count_include_pad": False}))


@register("aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default")
@_batched
def _max_pool(
    cx: Conversion,
    x: Value,
    kernel: list[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> tuple[Value | None, ...]:
    rank = x.ndim - 2
    windows = _windows(rank, kernel, stride, padding, ceil_mode) | _given(rank, dilation=(dilation, 1))
    if 1 in cx.used:
        return apply("max_pool_with_indices", x, **windows)
    return apply(f"max_pool{rank}d", x, **windows), None


def _adaptive(kind: str) -> Callable[..., Value]:
    def pool(cx: Conversion, x: Value, size: list[int]) -> Value:
        return apply("adaptive_pool", x, output_size=size, pool_type=kind)

    return pool


for _rank in (2, 3):
    register(f"aten._adaptive_avg_pool{_rank}d.default")(_batched(_adaptive("avg")))


@register("aten.adaptive_max_pool2d.default", "aten.adaptive_max_pool3d.default")
@_batched
def _adaptive_max(cx: Conversion, x: Value, size: list[int]) -> tuple[Value | None, ...]:
    if 1 in cx.used:
        return apply("adaptive_max_pool_with_indices", x, output_size=size)
    return _adaptive("max")(cx, x, size), None


@register("aten.layer_norm.default")
def _layer_norm(
    cx: Conversion, x: Value, shape: Sequence[int], weight: Value | None, bias: Value | None, eps: float, *_: object
) -> Value:
    axes = list(range(x.ndim - len(shape), x.ndim))
    return apply("layer_norm", x, weight, bias, axis=axes, epsilon=float(eps))


@register("aten.native_layer_norm.default")
def _native_layer_norm(
    cx: Conversion, x: Value, shape: Sequence[int], weight: Value | None, bias: Value | None, eps: float
) -> tuple[Value | None, ...]:
    found = _layer_norm(cx, x, shape, weight, bias, eps)
    return found, *_statistics(cx, x, list(range(x.ndim - len(shape), x.ndim)), eps, keepdims=True)


def _statistics(cx: Conversion, x: Value, axes: list[int], eps: float, *, keepdims: bool) -> list[Value | None]:
    """The mean and the reciprocal deviation, the second and third result, if used."""
    if not cx.used & {1, 2}:
        return [None, None]
    wide = cast_to(x, "float32") if x.dtype in ("float16", "bfloat16") else x
    variance = apply("var", wide, axis=axes, keepdims=keepdims)
    deviation = apply("rsqrt", apply("add", variance, const(eps, wide.dtype)))
    means = apply("mean", wide, axis=axes, keepdims=keepdims)
    return [cast_to(value, cx.results[at].dtype) for at, value in ((1, means), (2, deviation))]


@register("aten.rms_norm.default")
def _rms_norm(cx: Conversion, x: Value, shape: Sequence[int], weight: Value | None, eps: float | None) -> Value:
    least = torch.finfo(torch_dtype(x.dtype)).eps if eps is None else eps
    return apply("rms_norm", x, weight, axis=list(range(x.ndim - len(shape), x.ndim)), epsilon=float(least))


@register("aten._fused_rms_norm.default")
def _fused_rms_norm(
    cx: Conversion, x: Value, shape: Sequence[int], weight: Value | None, eps: float | None
) -> tuple[Value | None, ...]:
    found, least = _rms_norm(cx, x, shape, weight, eps), torch.finfo(torch_dtype(x.dtype)).eps if eps is None else eps
    if 1 not in cx.used:
        return found, None
    axes = list(range(x.ndim - len(shape), x.ndim))
    wide = cast_to(x, cx.results[1].dtype)
    squares = apply("mean", apply("square", wide), axis=axes, keepdims=True)
    return found, apply("rsqrt", apply("add", squares, const(least, wide.dtype)))


@register("aten.group_norm.default")
def _group_norm(
    cx: Conversion, x: Value, groups: int, weight: Value | None, bias: Value | None, eps: float, *_: object
) -> Value:
    return apply("group_norm", x, groups, weight, bias, epsilon=float(eps))


@register("aten.native_group_norm.default")
def _native_group_norm(
    cx: Conversion,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    n: Scalar,
    channels: Scalar,
    inner: Scalar,
    groups: int,
    eps: float,
) -> tuple[Value | None, ...]:
    found = _group_norm(cx, x, groups, weight, bias, eps)
    parts = apply("reshape", x, (x.shape[0], groups, -1)) if cx.used & {1, 2} else x
    return found, *_statistics(cx, parts, [2], eps, keepdims=False)


@register("aten._native_batch_norm_legit_no_training.default")
def _batch_norm(
    cx: Conversion,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value,
    variance: Value,
    momentum: float,
    eps: float,
) -> tuple[Value | None, ...]:
    empty = apply("full", (0,), 0.0, dtype=cx.results[1].dtype) if cx.used & {1, 2} else None
    return _normalized(x, weight, bias, mean, variance, eps), empty, empty


def _normalized(x: Value, weight: Value | None, bias: Value | None, mean: Value, variance: Value, eps: float) -> Value:
    gamma = apply("full", mean.shape, 1.0, dtype=mean.dtype) if weight is None else weight
    beta = apply("full", mean.shape, 0.0, dtype=mean.dtype) if bias is None else bias
    wide, gamma, beta = (cast_to(value, mean.dtype) for value in (x, gamma, beta))
    found = apply("batch_norm", wide, gamma, beta, mean, variance, epsilon=float(eps))
    return cast_to(found, x.dtype)


def _batch_statistics(x: Value, eps: float) -> tuple[Value, Value, Value]:
    axes = [axis for axis in range(x.ndim) if axis != 1]
    wide = cast_to(x, "float32") if x.dtype in ("float16", "bfloat16") else x
    mean, variance = apply("mean", wide, axis=axes), apply("var", wide, axis=axes)
    return mean, variance, apply("rsqrt", apply("add", variance, const(eps, wide.dtype)))


def _as_results(cx: Conversion, found: Sequence[Value | None]) -> tuple[Value | None, ...]:
    """Types of statistics may be wider than the data."""
    return tuple(v if v is None else cast_to(v, r.dtype) for v, r in zip(found, cx.results, strict=True))


@register("aten._native_batch_norm_legit.no_stats")
def _batch_norm_of_batch(
    cx: Conversion, x: Value, weight: Value | None, bias: Value | None, training: bool, momentum: float, eps: float
) -> tuple[Value | None, ...]:
    mean, variance, deviation = _batch_statistics(x, eps)
    return _as_results(cx, [_normalized(x, weight, bias, mean, variance, eps), mean, deviation])


@register("aten._native_batch_norm_legit_functional.default")
def _batch_norm_functional(
    cx: Conversion,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Value | None, ...]:
    if not training:
        found = _batch_norm(cx, x, weight, bias, running_mean, running_var, momentum, eps)
        return _as_results(cx, [*found, running_mean, running_var])
    mean, variance, deviation = _batch_statistics(x, eps)
    count = prod_of([extent for axis, extent in enumerate(x.shape) if axis != 1])
    if isinstance(count, int):
        unbiased = apply("multiply", variance, count / max(count - 1, 1))
    else:
        number = extent_value(count, variance.dtype)
        less = apply("maximum", apply("subtract", number, 1), 1)
        unbiased = apply("divide", apply("multiply", variance, number), less)
    moved = [
        apply("add", apply("multiply", cast_to(old, new.dtype), 1 - momentum), apply("multiply", new, momentum))
        for old, new in ((running_mean, mean), (running_var, unbiased))
    ]
    return _as_results(cx, [_normalized(x, weight, bias, mean, variance, eps), mean, deviation, *moved])


def prod_of(extents: Sequence[Any]) -> Any:
    total: Any = 1
    for extent in extents:
        total = total * extent
    return total


@register("aten.scaled_dot_product_attention.default")
def _attention(
    cx: Conversion,
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None,
    dropout_p: float,
    is_causal: bool,
    *,
    scale: float | None,
    enable_gqa: bool = False,
) -> Value:
    if dropout_p:
        raise UnsupportedError(f"dropout_p={dropout_p}: attention is without dropout; model.eval() turns it off")
    if isinstance(scale, Expression | Value):
        raise UnsupportedError("a scale that is computed")
    if mask is not None and mask.dtype != "bool":
        mask = cast_to(mask, query.dtype)
    found = apply(
        "attention",
        query,
        key,
        value,
        mask,
        is_causal=is_causal,
        scale=None if scale is None else float(scale),
        enable_gqa=enable_gqa,
    )
    if mask is None:
        return found
    # PyTorch returns zeros for a query without visible keys.
    seen = mask if mask.dtype == "bool" else apply("greater", mask, const(float("-inf"), mask.dtype))
    return apply("where", apply("any", seen, axis=[-1], keepdims=True), found, const(0.0, found.dtype))


@register("aten._scaled_dot_product_flash_attention_for_cpu.default")
def _flash_attention(
    cx: Conversion,
    query: Value,
    key: Value,
    value: Value,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Value | None,
    scale: float | None,
) -> tuple[Value | None, ...]:
    if 1 in cx.used:
        raise UnsupportedError(
            "the logarithms of the sums of attention, which training uses: torch.no_grad() avoids them"
        )
    return _attention(cx, query, key, value, attn_mask, dropout_p, is_causal, scale=scale), None


def _recurrent(kind: str, gates: Sequence[int], options: dict[str, Any]) -> Converter:
    """`gates` has the index in PyTorch's weights of each gate of graph operators."""

    def convert(
        cx: Conversion,
        x: Value,
        states: Any,
        weights: Sequence[Value],
        has_biases: bool,
        layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[Value, ...]:
        if train and dropout:
            raise UnsupportedError("dropout between layers in training: model.eval() turns it off")
        directions, size = 2 if bidirectional else 1, 4 if has_biases else 2
        if len(weights) != layers * directions * size:
            return _projected_lstm(cx, x, states, weights, layers, directions, batch_first)
        initial: list[Any] = list(cast("Sequence[Any]", states)) if isinstance(states, list | tuple) else [states]
        data = apply("swapaxes", x, 0, 1) if batch_first else x
        last: list[list[Value]] = [[] for _ in initial]
        for layer in range(layers):
            first = layer * directions
            of_layer = [weights[(first + at) * size : (first + at + 1) * size] for at in range(directions)]
            parts = [[_reordered(part, gates) for part in own] for own in of_layer]
            given = [apply("stack", [own[at] for own in parts], axis=0) for at in (0, 1)]
            if has_biases:
                given.append(apply("stack", [apply("concatenate", own[2:], axis=0) for own in parts], axis=0))
            begun = [_rows(state, first, directions) for state in initial]
            names = dict(zip(("initial_h", "initial_c"), begun, strict=False))
            direction = "bidirectional" if bidirectional else "forward"
            outputs = apply(kind, data, *given, **names, direction=direction, **options)
            for found, value in zip(last, outputs[1:], strict=True):
                found.append(value)
            # (times, directions, batch, hidden) -> (times, batch, directions * hidden)
            times, _, batch, hidden = outputs[0].shape
            data = apply("reshape", apply("swapaxes", outputs[0], 1, 2), (times, batch, directions * hidden))
        joined = [found[0] if len(found) == 1 else apply("concatenate", found, axis=0) for found in last]
        return apply("swapaxes", data, 0, 1) if batch_first else data, *joined

    return convert


def _projected_lstm(
    cx: Conversion,
    x: Value,
    states: Sequence[Value],
    weights: Sequence[Value],
    layers: int,
    directions: int,
    batch_first: bool,
) -> tuple[Value, ...]:
    """States are projected to fewer elements (Sak et al. 2014); a loop over the products of the data with their
    weights."""
    size = len(weights) // (layers * directions)
    data = apply("swapaxes", x, 0, 1) if batch_first else x
    last: list[list[Value]] = [[], []]
    for layer in range(layers):
        outputs: list[Value] = []
        for direction in range(directions):
            at = layer * directions + direction
            input_weight, state_weight, *biases, projection = weights[at * size : (at + 1) * size]
            rows = apply("dense", data, input_weight, apply("add", *biases) if biases else None)
            rows = apply("flip", rows, 0) if direction else rows

            def step(place: Value, state: Value, cell: Value, row: Value, *own: Value) -> list[Value]:
                del place
                gates = apply("add", row, apply("dense", state, own[0]))
                entered, kept, new, shown = apply("split", gates, 4, axis=1)
                added = apply("multiply", apply("sigmoid", entered), apply("tanh", new))
                cell = apply("add", apply("multiply", apply("sigmoid", kept), cell), added)
                found = apply("multiply", apply("sigmoid", shown), apply("tanh", cell))
                state = apply("dense", found, own[1])
                return [state, cell, state]

            begun = [apply("squeeze", _rows(state, at, 1), axis=[0]) for state in states]
            count = known(rows.shape[:1])[0]
            steps = count if isinstance(count, int) else str(count)
            *ends, found = cx.builder.emit_loop(step, steps, begun, [rows], [state_weight, projection])
            outputs.append(apply("flip", found, 0) if direction else found)
            for values, end in zip(last, ends, strict=True):
                values.append(end)
        data = outputs[0] if directions == 1 else apply("concatenate", outputs, axis=2)
    joined = [apply("stack", values, axis=0) for values in last]
    return apply("swapaxes", data, 0, 1) if batch_first else data, *joined


def _reordered(weight: Value, gates: Sequence[int]) -> Value:
    if list(gates) == list(range(len(gates))):
        return weight
    parts = apply("split", weight, len(gates), axis=0)
    return apply("concatenate", [parts[gate] for gate in gates], axis=0)


def _rows(x: Value, first: int, count: int) -> Value:
    return x if x.shape[0] == count else apply("strided_slice", x, begin=[first], end=[first + count], axes=[0])


register("aten.lstm.input")(_recurrent("lstm", (0, 3, 1, 2), {}))
register("aten.gru.input")(_recurrent("gru", (1, 0, 2), {"linear_before_reset": True}))


for _activation in ("tanh", "relu"):
    register(f"aten.rnn_{_activation}.input")(_recurrent("rnn", (0,), {"activations": [_activation]}))


def _resized(method: str, rank: int, exact: bool = False, antialias: bool = False) -> Converter:
    def convert(cx: Conversion, x: Value, size: Sequence[Any] | None, *rest: Any) -> Value:
        scales = rest[-1]
        corners = bool(rest[0]) if len(rest) > 1 else False
        out = known(cx.shape)[2:]
        options: dict[str, Any] = {"size": out, "method": method}
        if method == "nearest":
            options["coordinate_transformation_mode"] = "half_pixel" if exact else "asymmetric"
            options["rounding_method"] = "round_prefer_ceil" if exact else "floor"
        else:
            options["coordinate_transformation_mode"] = "align_corners" if corners else "half_pixel"
        if antialias and corners:
            raise UnsupportedError("align_corners=True with antialias")
        if antialias:
            options |= {"antialias": True, "exclude_outside": True}
            options |= {"cubic_alpha": -0.5} if method == "cubic" else {}
        if scales is not None and not corners:
            options["scales"] = [float(scale) for scale in scales]
        return apply(f"resize{rank}d", x, **options)

    return convert


for _rank, _linear_name in ((1, "linear"), (2, "bilinear"), (3, "trilinear")):
    register(f"aten.upsample_nearest{_rank}d.vec")(_resized("nearest", _rank))
    register(f"aten._upsample_nearest_exact{_rank}d.vec")(_resized("nearest", _rank, exact=True))
    register(f"aten.upsample_{_linear_name}{_rank}d.vec")(_resized("linear", _rank))
register("aten.upsample_bicubic2d.vec")(_resized("cubic", 2))
for _method, _label in (("linear", "bilinear"), ("cubic", "bicubic")):
    _antialiased = _resized(_method, 2, antialias=True)
    register(f"aten._upsample_{_label}2d_aa.vec")(_antialiased)

    def _by_axes(
        cx: Conversion, x: Value, size: Any, corners: bool, *scales: float | None, of: Any = _antialiased
    ) -> Value:
        return of(cx, x, size, corners, None if None in scales else scales)

    register(f"aten._upsample_{_label}2d_aa.default")(_by_axes)


@register("aten.grid_sampler_2d.default", "aten.grid_sampler_3d.default")
def _grid_sampler(
    cx: Conversion, x: Value, grid: Value, interpolation: int, padding: int, align_corners: bool
) -> Value:
    return apply(
        "grid_sample",
        x,
        grid,
        method=("linear", "nearest", "cubic")[interpolation],
        padding_mode=("zeros", "border", "reflection")[padding],
        align_corners=align_corners,
    )


@register("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default")
def _embedding_bag(
    cx: Conversion,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    factors: Value | None,
    include_last_offset: bool,
    padding_idx: int,
) -> tuple[Value | None, ...]:
    if cx.used - {0}:
        raise UnsupportedError("results in addition to the bags")
    if padding_idx >= 0:
        raise UnsupportedError(f"padding_idx={padding_idx}")
    place, modes = indices_of(indices, weight, 0), ("sum", "mean", "max")
    found = apply(
        "embedding_bag", weight, place, offsets, factors, mode=modes[mode], include_last_offset=include_last_offset
    )
    return found, None, None, None


@register("torchvision.roi_align.default")
def _roi_align(
    cx: Conversion,
    x: Value,
    rois: Value,
    spatial_scale: float,
    height: int,
    width: int,
    sampling_ratio: int,
    aligned: bool,
    position_sensitive: bool = False,
) -> Value:
    """A region is a row: the index of an image and two corners."""
    parts = apply("split", cast_to(rois, x.dtype), [1], axis=1)
    images = cast_to(apply("squeeze", parts[0], axis=[1]), "int64")
    options: dict[str, Any] = {"sampling_ratio": max(sampling_ratio, 0), "aligned": aligned}
    options |= {"position_sensitive": True} if position_sensitive else {}
    return apply("roi_align", x, parts[1], images, [height, width], spatial_scale=float(spatial_scale), **options)


def _pooled_regions(cx: Conversion, x: Value, rois: Value, scale: float, size: Sequence[int], mode: str) -> Value:
    """Borders are at whole elements; a region is a row as in `_roi_align`."""
    if 1 in cx.used:
        raise UnsupportedError("the places of elements, the second result")
    parts = apply("split", cast_to(rois, x.dtype), [1], axis=1)
    images = cast_to(apply("squeeze", parts[0], axis=[1]), "int64")
    return apply("roi_pool", x, parts[1], images, size, spatial_scale=float(scale), mode=mode)


@register("torchvision.roi_pool.default")
def _roi_pool(
    cx: Conversion, x: Value, rois: Value, spatial_scale: float, height: int, width: int
) -> tuple[Value | None, ...]:
    return _pooled_regions(cx, x, rois, spatial_scale, [height, width], "max"), None


@register("torchvision.ps_roi_pool.default")
def _ps_roi_pool(
    cx: Conversion, x: Value, rois: Value, spatial_scale: float, height: int, width: int
) -> tuple[Value | None, ...]:
    return _pooled_regions(cx, x, rois, spatial_scale, [height, width], "position_sensitive_avg"), None


@register("torchvision.ps_roi_align.default")
def _ps_roi_align(
    cx: Conversion, x: Value, rois: Value, spatial_scale: float, height: int, width: int, sampling_ratio: int
) -> tuple[Value | None, ...]:
    if 1 in cx.used:
        raise UnsupportedError("the channels that are read, the second result")
    return _roi_align(cx, x, rois, spatial_scale, height, width, sampling_ratio, True, position_sensitive=True), None


@register("torchvision.deform_conv2d.default")
def _deform_conv2d(
    cx: Conversion,
    x: Value,
    weight: Value,
    offset: Value,
    mask: Value,
    bias: Value,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Value:
    """The mask is ignored without `use_mask`."""
    strides, padding, dilation = [stride_h, stride_w], [pad_h, pad_w], [dilation_h, dilation_w]
    factors = mask if use_mask else None
    found = apply("deform_conv2d", x, offset, weight, factors, strides, padding, dilation, groups, offset_groups)
    return apply("add", found, apply("reshape", bias, (bias.shape[0], 1, 1)))


@register("aten.rrelu_with_noise_functional.default", "aten.rrelu_with_noise.default")
def _rrelu(
    cx: Conversion, x: Value, noise: Value, lower: float, upper: float, training: bool, generator: object
) -> Value | tuple[Value, ...]:
    """The functional form also returns the noise, which is unchanged outside of training."""
    if training:
        raise UnsupportedError("random slopes in training: model.eval() takes their mean")
    found = apply("leaky_relu", x, (lower + upper) / 2)
    return found if len(cx.results) == 1 else (found, noise)


@register("aten.conv_tbc.default")
def _conv_tbc(cx: Conversion, x: Value, weight: Value, bias: Value, pad: int) -> Value:
    """Data are (times, batch, channels), weights (width, channels, results)."""
    rows, kernel = apply("transpose", x, [1, 2, 0]), apply("transpose", weight, [2, 1, 0])
    found = apply("transpose", apply("conv1d", rows, kernel, padding=[pad]), [2, 0, 1])
    return apply("add", found, bias)
