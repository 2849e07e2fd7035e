"""The programs that are fuzzed: small, with awkward extents, each with arguments and what NumPy says they give.

Inputs are small whole numbers, so that sums and products are exact in every element type here, in any order, fused or
not: an update that runs twice, or not at all, is seen whatever its size. Only programs with `exact` False (those that
take exponentials) need a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from program_text import ProgramText
from xdsl.dialects.builtin import ModuleOp

from weft import te

Array = np.ndarray[Any, Any]
FLOATS = ("float32", "float64", "float16")
DTYPES = ("float32", "float32", "float32", "float64", "float16", "int32", "int64", "int8")


@dataclass(frozen=True)
class Run:
    """Arguments of a call, and what it must give."""

    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]
    initial: tuple[Array | None, ...] = ()
    """What outputs hold before the call, where that matters."""

    def before(self) -> tuple[Array | None, ...]:
        """The values that each output comes with, or None."""
        return self.initial or (None,) * len(self.expected)


@dataclass(frozen=True)
class Program:
    """A module with one function `main` that takes `inputs`, then writes what must equal `expected`.

    `others` are further calls, of other sizes.
    """

    name: str
    module: ModuleOp
    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]
    exact: bool = True
    others: tuple[Run, ...] = ()
    text: ProgramText | None = None
    """What a random program was printed from."""
    initial: tuple[Array | None, ...] = ()

    def runs(self) -> tuple[Run, ...]:
        return (Run(self.inputs, self.expected, self.initial), *self.others)

    def equal(self, expected: Sequence[Array], found: Sequence[Array]) -> bool:
        """Whether arrays are what NumPy computed."""
        for want, got in zip(expected, found, strict=True):
            if self.exact:
                if not np.array_equal(want, got):
                    return False
            elif not np.allclose(want, got, rtol=64 * float(np.finfo(want.dtype).eps), atol=0):
                return False
        return True


class Draw:
    """Random choices for one program."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def choose(self, options: Sequence[Any]) -> Any:
        return options[int(self.random.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def number(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return int(self.random.integers(low, high + 1))

    def extent(self, high: int = 17) -> int:
        """An odd extent from 3 to `high`."""
        return 2 * int(self.random.integers(1, (high + 1) // 2)) + 1

    def array(self, shape: tuple[int, ...], dtype: str) -> Array:
        return self.random.integers(-3, 4, shape).astype(dtype)


def elementwise(draw: Draw) -> Program:
    """A chain of elementwise stages, one of which may read neighbours, a transposed tensor, or a row."""
    dtype = draw.choose(DTYPES)
    n, m = draw.extent(), draw.extent()
    link = draw.choose(("same", "shifted", "transposed", "row"))
    a, x = draw.array((n, m), dtype), draw.array((m,) if link == "row" else (n, m), dtype)
    A, X = te.placeholder(a.shape, dtype, name="A"), te.placeholder(x.shape, dtype, name="X")
    B = te.compute((n, m), lambda i, j: A[i, j] * 2 + 1, name="B")
    b = a * a.dtype.type(2) + a.dtype.type(1)
    if link == "same":
        C = te.compute((n, m), lambda i, j: te.max(B[i, j], X[i, j]), name="C")
        c = np.maximum(b, x)
    elif link == "shifted":
        C = te.compute((n - 2, m - 1), lambda i, j: B[i, j] + B[i + 2, j + 1] - X[i, j], name="C")
        c = b[:-2, :-1] + b[2:, 1:] - x[:-2, :-1]
    elif link == "transposed":
        C = te.compute((m, n), lambda i, j: B[j, i] - X[j, i], name="C")
        c = b.T - x.T
    else:
        C = te.compute((n, m), lambda i, j: B[i, j] + X[j], name="C")
        c = b + x
    D = te.compute(C.shape, lambda i, j: C[i, j] * C[i, j], name="D")
    E = te.compute(C.shape, lambda i, j: D[i, j] - C[i, j], name="E")
    d = c * c
    outputs, expected = [E], [d - c]
    if draw.chance(0.3):
        outputs, expected = [D, E], [d, d - c]
    return Program("elementwise", te.create_func([A, X, *outputs]), (a, x), tuple(expected))


def matmul_relu(draw: Draw) -> Program:
    """A matrix product, perhaps of a transposed matrix and with a bias, then relu."""
    dtype = draw.choose(DTYPES)
    n, m, length = draw.extent(), draw.extent(), draw.extent()
    transposed, biased = draw.chance(0.3), draw.chance(0.4)
    a, b, v = draw.array((n, length), dtype), draw.array((length, m), dtype), draw.array((m,), dtype)
    stored = np.ascontiguousarray(b.T) if transposed else b
    A = te.placeholder(a.shape, dtype, name="A")
    B = te.placeholder(stored.shape, dtype, name="B")
    V = te.placeholder(v.shape, dtype, name="V")
    k = te.reduce_axis((0, length), name="k")
    Y = te.compute((n, m), lambda i, j: te.sum(A[i, k] * (B[j, k] if transposed else B[k, j]), axis=k), name="Y")
    Z = te.compute((n, m), lambda i, j: Y[i, j] + V[j], name="Z") if biased else Y
    C = te.compute((n, m), lambda i, j: te.max(Z[i, j], te.const(0, dtype)), name="C")
    y = product(a, b)
    c = np.maximum(y + v if biased else y, y.dtype.type(0))
    parameters, inputs = ([A, B, V, C], (a, stored, v)) if biased else ([A, B, C], (a, stored))
    return Program("matmul_relu", te.create_func(parameters), inputs, (c,))


def bmm(draw: Draw) -> Program:
    """A batch of matrix products, plain or with relu."""
    dtype = draw.choose(DTYPES)
    batch, n, m, length = draw.extent(5), draw.extent(13), draw.extent(13), draw.extent(13)
    a, b = draw.array((batch, n, length), dtype), draw.array((batch, length, m), dtype)
    A, B = te.placeholder(a.shape, dtype, name="A"), te.placeholder(b.shape, dtype, name="B")
    k = te.reduce_axis((0, length), name="k")
    Y = te.compute((batch, n, m), lambda z, i, j: te.sum(A[z, i, k] * B[z, k, j], axis=k), name="Y")
    y = product(a, b)
    if draw.chance(0.3):
        return Program("bmm", te.create_func([A, B, Y]), (a, b), (y,))
    C = te.compute((batch, n, m), lambda z, i, j: te.max(Y[z, i, j], te.const(0, dtype)), name="C")
    return Program("bmm", te.create_func([A, B, C]), (a, b), (np.maximum(y, y.dtype.type(0)),))


def conv2d(draw: Draw) -> Program:
    """A 2-D convolution of a padded image, with stride and dilation, perhaps with relu."""
    dtype = draw.choose(DTYPES)
    channels, filters, height, width = draw.extent(3), draw.extent(3), draw.extent(11), draw.extent(11)
    rows, columns = draw.choose(((3, 3), (1, 3), (3, 1), (2, 3)))
    pad, stride, dilation = draw.choose((1, 1, 2)), draw.choose((1, 1, 2)), draw.choose((1, 1, 2))
    high = (height + 2 * pad - dilation * (rows - 1) - 1) // stride + 1
    wide = (width + 2 * pad - dilation * (columns - 1) - 1) // stride + 1
    if high < 1 or wide < 1:
        pad, stride, dilation, high, wide = 1, 1, 1, height + 3 - rows, width + 3 - columns
    x, w = draw.array((channels, height, width), dtype), draw.array((filters, channels, rows, columns), dtype)
    X, W = te.placeholder(x.shape, dtype, name="X"), te.placeholder(w.shape, dtype, name="W")
    P = te.compute(
        (channels, height + 2 * pad, width + 2 * pad),
        lambda c, i, j: te.if_then_else(
            te.all(i >= pad, i < height + pad, j >= pad, j < width + pad), X[c, i - pad, j - pad], te.const(0, dtype)
        ),
        name="P",
    )
    rc = te.reduce_axis((0, channels), name="rc")
    ry, rx = te.reduce_axis((0, rows), name="ry"), te.reduce_axis((0, columns), name="rx")
    Y = te.compute(
        (filters, high, wide),
        lambda f, i, j: te.sum(
            P[rc, i * stride + ry * dilation, j * stride + rx * dilation] * W[f, rc, ry, rx], axis=[rc, ry, rx]
        ),
        name="Y",
    )
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad)))
    y = np.zeros((filters, high, wide), dtype)
    for r in range(rows):
        for s in range(columns):
            top, left = r * dilation, s * dilation
            window = padded[
                :, top : top + (high - 1) * stride + 1 : stride, left : left + (wide - 1) * stride + 1 : stride
            ]
            y += np.einsum("fc,cij->fij", w[:, :, r, s].astype(wider(dtype)), window.astype(wider(dtype))).astype(dtype)
    if draw.chance(0.5):
        return Program("conv2d", te.create_func([X, W, Y]), (x, w), (y,))
    C = te.compute(y.shape, lambda f, i, j: te.max(Y[f, i, j], te.const(0, dtype)), name="C")
    return Program("conv2d", te.create_func([X, W, C]), (x, w), (np.maximum(y, y.dtype.type(0)),))


def row_reduction(draw: Draw) -> Program:
    """Rows reduced: their sums, what is left without the row's maximum, or a softmax."""
    kind = draw.choose(("sum", "centre", "softmax", "two"))
    dtype = draw.choose(FLOATS[:2] if kind == "softmax" else DTYPES)
    n, m = draw.extent(), draw.extent()
    a = draw.array((n, m), dtype)
    A = te.placeholder(a.shape, dtype, name="A")
    k, r = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, m), name="r")
    if kind == "sum":
        S = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="S")
        return Program("row_reduction", te.create_func([A, S]), (a,), (a.sum(1, dtype=dtype),))
    M = te.compute((n,), lambda i: te.max(A[i, k], axis=k), name="M")
    D = te.compute((n, m), lambda i, j: A[i, j] - M[i], name="D")
    d = a - a.max(1, keepdims=True)
    if kind == "centre":
        return Program("row_reduction", te.create_func([A, D]), (a,), (d,))
    if kind == "two":
        S = te.compute((n,), lambda i: te.sum(D[i, r], axis=r), name="S")
        F = te.compute((n, m), lambda i, j: D[i, j] * S[i], name="F")
        s = d.sum(1, dtype=dtype)
        return Program("row_reduction", te.create_func([A, F]), (a,), (d * s[:, None],))
    E = te.compute((n, m), lambda i, j: te.exp(D[i, j]), name="E")
    S = te.compute((n,), lambda i: te.sum(E[i, r], axis=r), name="S")
    F = te.compute((n, m), lambda i, j: E[i, j] / S[i], name="F")
    e = np.exp(d)
    return Program("row_reduction", te.create_func([A, F]), (a,), (e / e.sum(1, keepdims=True),), exact=False)


def wider(dtype: str) -> str:
    """A type in which sums of products of the inputs are exact; whole numbers are cut down to `dtype` afterwards."""
    return "float64" if dtype.startswith("float") else "int64"


def product(a: Array, b: Array) -> Array:
    kind = wider(str(a.dtype))
    return (a.astype(kind) @ b.astype(kind)).astype(a.dtype)


FAMILIES: dict[str, Callable[[Draw], Program]] = {
    "elementwise": elementwise,
    "matmul_relu": matmul_relu,
    "bmm": bmm,
    "conv2d": conv2d,
    "row_reduction": row_reduction,
}
"""The families that te describes; `cases` adds the random one."""
