"""Tensor expressions in the style of TVM's tests."""

import numpy as np
from running import check, data, run

from tvm import te, tirx, topi

PROGRAMS = {}
N, M, K = 12, 10, 8
A, B = data(N, K), data(K, M, seed=1)
V = data(64, seed=3)


def program(outputs, expected, *arrays):
    """A function of placeholders and outputs, run on arrays and a result of the shape of `expected`."""

    def case():
        expected_array = np.asarray(expected)
        func = te.create_prim_func(outputs())
        return check(run(func, *arrays, np.zeros(expected_array.shape, expected_array.dtype)), expected_array)

    return case


def matrices():
    return te.placeholder((N, K), name="A"), te.placeholder((K, M), name="B")


def vector(name="X", dtype="float32"):
    return te.placeholder((64,), name=name, dtype=dtype)


def matmul():
    a, b = matrices()
    k = te.reduce_axis((0, K), name="k")
    return [a, b, te.compute((N, M), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")]


PROGRAMS["matmul"] = program(matmul, A @ B, A, B)


def matmul_bias_relu():
    a, b = matrices()
    k = te.reduce_axis((0, K), name="k")
    c = te.compute((N, M), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    half, zero = tirx.const(0.5, "float32"), tirx.const(0, "float32")
    d = te.compute((N, M), lambda i, j: tirx.max(c[i, j] + half, zero), name="D")
    return [a, b, d]


PROGRAMS["matmul_bias_relu"] = program(matmul_bias_relu, np.maximum(A @ B + np.float32(0.5), 0), A, B)


def elementwise(function):
    def outputs():
        x = vector()
        return [x, te.compute((64,), lambda i: function(x[i]), name="Y")]

    return outputs


PROGRAMS["exp"] = program(elementwise(te.exp), np.exp(V), V)
PROGRAMS["tanh_of_sqrt"] = program(elementwise(lambda x: te.tanh(te.sqrt(x * x))), np.tanh(np.sqrt(V * V)), V)
PROGRAMS["sigmoid"] = program(elementwise(te.sigmoid), 1 / (1 + np.exp(-V)), V)
PROGRAMS["if_then_else"] = program(
    elementwise(lambda x: te.if_then_else(x > 0, x, x * tirx.const(0.1, "float32"))),
    np.where(V > 0, V, V * np.float32(0.1)), V,
)  # fmt: skip
PROGRAMS["select"] = program(elementwise(lambda x: tirx.Select(x < tirx.const(0, "float32"), -x, x)), np.abs(V), V)
PROGRAMS["cast"] = program(elementwise(lambda x: (x * 10.0).astype("int32")), (V * 10).astype("int32"), V)


def shift():
    x = vector(dtype="int32")
    return [x, te.compute((64,), lambda i: (x[i] >> 1) & 7, name="Y")]


W = np.arange(64, dtype="int32") * 3
PROGRAMS["shift"] = program(shift, (W >> 1) & 7, W)


def reduced(combine, axes):
    def outputs():
        a = te.placeholder((N, K), name="A")
        if axes == 1:
            k = te.reduce_axis((0, K), name="k")
            return [a, te.compute((N,), lambda i: combine(a[i, k], axis=k), name="R")]
        i, k = te.reduce_axis((0, N), name="i"), te.reduce_axis((0, K), name="k")
        return [a, te.compute((1,), lambda _: combine(a[i, k], axis=[i, k]), name="R")]

    return outputs


PROGRAMS["row_sums"] = program(reduced(te.sum, 1), A.sum(1), A)
PROGRAMS["row_maxima"] = program(reduced(te.max, 1), A.max(1), A)
PROGRAMS["minimum"] = program(reduced(te.min, 2), A.min().reshape(1), A)


def product_of_rows():
    a = te.placeholder((N, K), name="A")
    prod = te.comm_reducer(lambda x, y: x * y, lambda t: tirx.const(1, dtype=t), name="prod")
    k = te.reduce_axis((0, K), name="k")
    return [a, te.compute((N,), lambda i: prod(a[i, k], axis=k), name="R")]


PROGRAMS["own_reducer"] = program(product_of_rows, A.prod(1), A)


def transpose():
    a = te.placeholder((N, K), name="A")
    return [a, te.compute((K, N), lambda i, j: a[j, i], name="T")]


PROGRAMS["transpose"] = program(transpose, A.T.copy(), A)


def convolution():
    x = te.placeholder((1, 4, 10, 10), name="X")
    w = te.placeholder((6, 4, 3, 3), name="W")
    c, i, j = (te.reduce_axis((0, n), name=name) for n, name in ((4, "c"), (3, "i"), (3, "j")))
    y = te.compute(
        (1, 6, 8, 8), lambda n, f, h, v: te.sum(x[n, c, h + i, v + j] * w[f, c, i, j], axis=[c, i, j]), name="Y"
    )
    return [x, w, y]


X, F = data(1, 4, 10, 10), data(6, 4, 3, 3, seed=2)
_WINDOWS = np.lib.stride_tricks.sliding_window_view(X, (3, 3), axis=(2, 3))
PROGRAMS["conv2d"] = program(convolution, np.einsum("nchwij,fcij->nfhw", _WINDOWS, F), X, F)


def padded():
    x = vector()
    p = te.compute(
        (68,), lambda i: te.if_then_else(te.all(i >= 2, i < 66), x[i - 2], tirx.const(0, "float32")), name="P"
    )
    return [x, te.compute((64,), lambda i: p[i] + p[i + 4], name="Y")]


PROGRAMS["padding"] = program(padded, np.pad(V, 2)[:64] + np.pad(V, 2)[4:], V)


def softmax():
    a = te.placeholder((N, K), name="A")
    return [a, topi.nn.softmax(a)]


_E = np.exp(A - A.max(1, keepdims=True))
PROGRAMS["topi_softmax"] = program(softmax, _E / _E.sum(1, keepdims=True), A)


def topi_chain():
    a, b = matrices()
    return [a, b, topi.nn.relu(topi.matmul(a, b))]


PROGRAMS["topi_matmul_relu"] = program(topi_chain, np.maximum(A @ B, 0), A, B)


def topi_sum():
    a = te.placeholder((N, K), name="A")
    return [a, topi.sum(topi.exp(a), axis=1, keepdims=True)]


PROGRAMS["topi_sum_of_exp"] = program(topi_sum, np.exp(A).sum(1, keepdims=True), A)


def strided():
    x = vector()
    return [x, te.compute((16,), lambda i: x[i * 4] + x[i * 4 + tirx.floormod(i, 4)], name="Y")]


_I = np.arange(16)
PROGRAMS["strided"] = program(strided, V[_I * 4] + V[_I * 4 + _I % 4], V)
