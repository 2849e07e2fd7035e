"""Converters of Fourier transforms, and of the matrix that maps them to mel frequencies."""

from __future__ import annotations

import numpy as np

from weft.dialects.graph_shapes import KnownExtent, subtract
from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known_tensors import Item, KnownTensor
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import converts


@converts("DFT", since=17)
def _dft(
    node: Node, data: Value, length: KnownExtent | None = None, stated: int = -2, *, inverse: bool, onesided: bool
) -> Item:
    stated = node.integer("axis") if node.declares_attribute("axis") else stated
    if not -data.ndim <= stated < data.ndim - 1 or stated == -1:
        raise node.refuse(f"axis {stated} must be one of a signal of rank {data.ndim}, before the last one")
    axis, wide = stated % data.ndim, _wide(_with_both_parts(node, data))
    return ops.cast(ops.dft(wide, axis, length, inverse, onesided), data.dtype)


def _with_both_parts(node: Node, data: Value) -> Value:
    """Adds imaginary parts of zero if calls decide whether the last axis has any."""
    parts = data.shape[-1]
    if parts is None or isinstance(parts, int):
        return data
    reason = "the last axis of the data holds real parts, or real and imaginary ones"
    node.require(1, parts, reason)
    node.require(0, subtract(2, parts), reason)
    return ops.pad(data, [(0, 0)] * (data.ndim - 1) + [(0, subtract(2, parts))])


def _wide(data: Value) -> Value:
    """The data in float64: cancellation in a sum over a signal leaves errors of the size of the largest elements."""
    return data if data.dtype == "float64" else ops.cast(data, "float64")


@converts("STFT", since=17)
def _stft(
    node: Node,
    signal: Value,
    step: int,
    window: Value | None = None,
    length: KnownExtent | None = None,
    *,
    onesided: bool,
) -> Item:
    if window is not None and window.dtype != signal.dtype:
        raise node.refuse(f"input 'window' must hold {signal.dtype} as the signal, got {window.dtype}")
    if window is None and length is None:
        if signal.ndim < 2:
            raise node.refuse(
                f"input 'signal' has an axis of signals and one of their elements, got rank {signal.ndim}"
            )
        length = signal.shape[1]
    window = None if window is None else _wide(window)
    if signal.ndim == 3:
        signal = _with_both_parts(node, signal)
    return ops.cast(ops.stft(_wide(signal), step, window, length, onesided), signal.dtype)


@converts("MelWeightMatrix", since=17)
def _mel_weights(node: Node, bins: int, length: int, rate: int, low: float, high: float) -> Item:
    dtype = node.element_type("output_datatype") or "float32"
    rows = length // 2 + 1
    if bins < 1 or length < 1 or rate < 1 or not 0 <= low < high < np.inf:
        raise node.refuse(f"no {bins} triangles fit from {low} to {high} Hz, at {rate} samples of {length} a second")
    node.check_room(rows, bins)
    first, last = (2595 * np.log10(1 + edge / 700) for edge in (low, high))
    # ONNX's reference divides by bins + 2, so that the last triangle ends below the upper edge.
    mels = first + np.arange(bins + 2) * (last - first) / (bins + 2)
    edges = ((length + 1) * (700 * np.expm1(mels / 2595 * np.log(10))) // rate).astype(np.int64)
    if edges[-1] > rows:
        raise node.refuse(f"input 'upper_edge_hertz' = {high} exceeds half of the rate of {rate} samples per second")
    weights = np.zeros((rows, bins), np.float64)
    for column, (left, center, right) in enumerate(zip(edges, edges[1:], edges[2:], strict=False)):
        if left == center:
            weights[center, column] = 1
        else:
            weights[left : center + 1, column] = np.arange(center - left + 1) / (center - left)
        if right > center:
            weights[center:right, column] = (right - np.arange(center, right)) / (right - center)
    return KnownTensor(weights.astype(dtype), dtype)
