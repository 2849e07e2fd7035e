"""Discrete Fourier transforms, as products with matrices of roots of unity."""

from __future__ import annotations

import math

from weft.texpr import reductions as te
from weft.texpr.expr import Expr, as_expr, error
from weft.texpr.math import cast, cos, select, sin
from weft.texpr.ops.arguments import (
    checked_axis,
    compute,
    counts,
    floating,
    integers,
    one_dtype,
    ranked,
    shaped,
    sum_dtype,
)
from weft.texpr.ops.reductions import float_of
from weft.texpr.shapes import Extent, shape_text, simplified
from weft.texpr.tensor import Tensor

__all__ = ["dft", "stft"]


def _parts(what: str, source: Tensor) -> int:
    last = source.shape[-1] if source.shape else 0
    if not isinstance(last, int) or last not in (1, 2):
        raise error(
            f"{what}: the last axis of the data holds real parts, or real and imaginary ones: {source.name} has the "
            f"shape {shape_text(source.shape)}"
        )
    return last


def _length(value: object, what: str) -> Extent:
    (found,) = counts(value, what, 1)
    if isinstance(found, int) and found < 1:
        raise error(f"{what} must be at least 1, got {found}")
    return found


def _roots(rows: Extent, length: Extent, taps: Extent, inverse: bool, dtype: str, name: str) -> Tensor:
    """The contribution of part p of tap n to part q of frequency k, at [k, n, p, q]: exp(-2 pi i k n / length), or its
    conjugate for the inverse.
    """
    period = float_of(length, dtype)

    def element(k: Expr, n: Expr, p: Expr, q: Expr) -> Expr:
        # exact, unlike a large angle
        angle = cast(k * n % length, dtype) * (2 * math.pi) / period
        real, imaginary = cos(angle), sin(angle) if inverse else 0.0 - sin(angle)
        return select(p == q, real, select(p < q, imaginary, 0.0 - imaginary))

    return compute((rows, taps, 2, 2), element, name, "knpq")


def dft(
    data: Tensor,
    axis: int = -2,
    length: object = None,
    inverse: bool = False,
    onesided: bool = False,
    *,
    name: str = "dft",
) -> Tensor:
    """The discrete Fourier transform along an axis. The last axis has real and imaginary parts, or only real ones; the
    result has both.

    The axis is truncated or zero-padded to `length`, by default its extent. The inverse is divided by the length.
    `onesided` gives length // 2 + 1 frequencies; their inverse is real, with a last axis of extent 1 and a default
    length of 2 * (extent - 1). A product with `<name>_roots`: length^2 multiplications per transform. 16-bit floats use
    float32. Raises CompileError if `axis` is the last, and for other last extents.

    Dtypes: floats.
    Equals: `np.fft.fft(data, length, axis)`, its parts apart, and `ifft`, `rfft`, `irfft`; ONNX DFT.
    """
    source = floating(data, "dft: data")
    parts = _parts("dft", source)
    along = checked_axis("dft", axis, source.ndim)
    if along == source.ndim - 1:
        raise error(f"dft: axis {axis} of {source.name} is that of real and imaginary parts")
    extent = source.shape[along]
    is_real = inverse and onesided
    whole = simplified((extent - 1) * 2) if is_real else extent
    period = whole if length is None else _length(length, "dft: length")
    taps = extent
    if length is not None:
        taps = simplified(te.min(as_expr(extent), simplified(period // 2 + 1) if is_real else period))
    wide = sum_dtype(source.dtype)
    rows = simplified(period // 2 + 1) if onesided and not inverse else period
    roots = _roots(rows, period, taps, inverse, wide, f"{name}_roots")
    n, p = te.reduce_axis((0, taps), "n"), te.reduce_axis((0, parts), "p")

    def element(*i: Expr) -> Expr:
        value = source(*i[:along], n, *i[along + 1 : -1], p).astype(wide)
        if is_real:  # the other frequencies are their conjugates
            value = select((n > 0) & (n * 2 < period), value * 2.0, value)
        total = te.sum(value * roots(i[along], n, p, i[-1]), axis=[n, p])
        return (total / float_of(period, wide) if inverse else total).astype(source.dtype)

    shape = (*source.shape[:along], rows, *source.shape[along + 1 : -1], 1 if is_real else 2)
    return compute(shape, element, name)


def stft(
    signal: Tensor,
    frame_step: int,
    window: Tensor | None = None,
    frame_length: object = None,
    onesided: bool = True,
    *,
    name: str = "stft",
) -> Tensor:
    """Discrete Fourier transforms (B, frames, frequencies, 2) of windowed frames of signals (B, L, 1), or complex ones
    (B, L, 2), in steps of `frame_step`.

    Frames have the length of the window, or `frame_length`, and are inside the signal. `onesided` gives frame_length //
    2 + 1 frequencies. Stages: `<name>_roots`, `<name>_window` (roots times window), `<name>`, a product over frames.
    16-bit floats use float32. Raises CompileError for a frame longer than the signal.

    Dtypes: floats.
    Equals: `torch.stft(signal, frame_length, frame_step, window=window, center=False)`, its parts apart; ONNX STFT.
    """
    what = "stft"
    source = floating(ranked(signal, f"{what}: signal", 3), f"{what}: signal")
    parts = _parts(what, source)
    (step,) = integers(frame_step, f"{what}: frame_step", 1, least=1)
    if window is None and frame_length is None:
        raise error(f"{what} needs window= or frame_length=")
    one_dtype(what, source, window)
    size: Extent
    if frame_length is None and window is not None:
        size = ranked(window, f"{what}: window", 1).shape[0]
    else:
        size = _length(frame_length, f"{what}: frame_length")
        if window is not None:
            shaped(window, f"{what}: window", (size,))
    extent = source.shape[1]
    if isinstance(extent, int) and isinstance(size, int) and extent < size:
        raise error(f"{what}: a frame of {size} elements does not fit into {source.name} of {extent}")
    wide = sum_dtype(source.dtype)
    rows = simplified(size // 2 + 1) if onesided else size
    roots = _roots(rows, size, size, False, wide, f"{name}_roots")
    if window is not None:
        whole, weights = roots, window
        shape = whole.shape

        def weighted(k: Expr, n: Expr, p: Expr, q: Expr) -> Expr:
            return whole(k, n, p, q) * weights(n).astype(wide)

        roots = compute(shape, weighted, f"{name}_window", "knpq")
    n, p = te.reduce_axis((0, size), "n"), te.reduce_axis((0, parts), "p")

    def element(b: Expr, f: Expr, k: Expr, q: Expr) -> Expr:
        value = source(b, f * step + n, p).astype(wide)
        return te.sum(value * roots(k, n, p, q), axis=[n, p]).astype(source.dtype)

    frames = simplified((extent - size) // step + 1)
    return compute((source.shape[0], frames, rows, 2), element, name, "bfkq")
