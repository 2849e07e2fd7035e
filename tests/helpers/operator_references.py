"""What operators are, in NumPy: references that several tests compare with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def softmax(x: Any, axis: int = -1) -> Any:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def normalized(x: Any, axes: Any, epsilon: float = 1e-5) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def last_two(a: Any) -> Any:
    return np.swapaxes(a, -1, -2)


def attended(q: Any, k: Any, v: Any, scale: float, mask: Any = 0.0) -> Any:
    scores = q @ last_two(k) * scale + mask
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True) @ v


def windows(x: Any, sizes: Sequence[int], strides: Sequence[int], dilation: Sequence[int]) -> Any:
    """(N, C, ...) as (N, C, positions..., offsets...)."""
    rank = len(sizes)
    spans = [(size - 1) * gap + 1 for size, gap in zip(sizes, dilation, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(x, spans, tuple(range(2, 2 + rank)))
    steps = tuple(slice(None, None, step) for step in strides)
    gaps = tuple(slice(None, None, gap) for gap in dilation)
    return view[(slice(None), slice(None), *steps, *gaps)]


def bordered(x: Any, padding: Any, value: Any = 0) -> Any:
    return np.pad(x, ((0, 0), (0, 0), *padding), constant_values=value)


def convolved(x: Any, w: Any, strides: Any, padding: Any, dilation: Any, groups: int = 1) -> Any:
    """The convolution of (N, C, ...) with (O, C / groups, ...), by windows of each group."""
    rank = x.ndim - 2
    view = windows(bordered(x, padding), w.shape[2:], strides, dilation)
    parts: list[Any] = []
    letters, offsets = "hwd"[:rank], "rst"[:rank]
    for data, kernel in zip(np.split(view, groups, 1), np.split(w, groups, 0), strict=True):
        parts.append(np.einsum(f"nc{letters}{offsets},oc{offsets}->no{letters}", data, kernel))
    return np.concatenate(parts, 1).astype(x.dtype)


def pooled(
    x: Any, kind: str, kernel: Any, strides: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:  # fmt: skip
    """By windows over the data and over ones that say which elements count."""
    rank = x.ndim - 2
    sizes, steps, around, gaps = (
        value if isinstance(value, tuple) else (value,) * rank
        for value in (kernel, kernel if strides is None else strides, padding, dilation)
    )
    border = [pair if isinstance(pair, tuple) else (pair, pair) for pair in around]
    low = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    data, ones = bordered(x, border, low if kind == "max" else 0), bordered(np.ones(x.shape), border, count_include_pad)
    if ceil_mode:
        extra: list[tuple[int, int]] = []
        for extent, size, step, gap, pair, n in zip(
            data.shape[2:], sizes, steps, gaps, border, x.shape[2:], strict=True
        ):
            span = (size - 1) * gap + 1
            count = -(-(extent - span) // step) + 1
            count -= (count - 1) * step >= n + pair[0]
            extra.append((0, max((count - 1) * step + span - extent, 0)))
        data, ones = bordered(data, extra, low if kind == "max" else 0), bordered(ones, extra)
    axes = tuple(range(-rank, 0))
    view = windows(data, sizes, steps, gaps)
    if kind == "max":
        return view.max(axes)
    total = view.sum(axes, dtype=x.dtype)
    return total if kind == "sum" else total / windows(ones, sizes, steps, gaps).sum(axes)


def adapted(x: Any, kind: str, sizes: tuple[int, ...]) -> Any:
    """Part by part."""
    result = np.zeros((*x.shape[:2], *sizes), x.dtype)
    for place in np.ndindex(*sizes):
        parts = [
            slice(i * extent // size, -(-(i + 1) * extent // size))
            for i, extent, size in zip(place, x.shape[2:], sizes, strict=True)
        ]
        window = x[(slice(None), slice(None), *parts)].reshape(*x.shape[:2], -1)
        result[(slice(None), slice(None), *place)] = getattr(window, {"avg": "mean"}.get(kind, kind))(-1)
    return result
