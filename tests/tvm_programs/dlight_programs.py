"""Functions that dlight schedules by rules, in the style of TVM's tests."""

import numpy as np
from running import check, data, run
from tvm.s_tir import dlight as dl

import tvm
from tvm import te, tirx

PROGRAMS = {}
M, N = 24, 40
A, X, Y, S = data(M, N), data(N, seed=1), data(M, seed=2), data(16)


def program(outputs, expected, *arrays):
    def case():
        mod = tvm.IRModule({"main": te.create_prim_func(outputs()).with_attr("global_symbol", "main")})
        with tvm.target.Target("llvm"):
            mod = dl.ApplyDefaultSchedule(dl.cpu.GEMV(), dl.cpu.Reduction())(mod)
        result = np.zeros(np.asarray(expected).shape, np.asarray(expected).dtype)
        return check(run(mod, *arrays, result), expected)

    return case


def matrix(name="A"):
    return te.placeholder((M, N), name=name)


def reduction(combine, value=lambda a, i, k: a[i, k], axis=1):
    def outputs():
        a = matrix()
        k = te.reduce_axis((0, N if axis == 1 else M), name="k")
        body = (lambda i: combine(value(a, i, k), axis=k)) if axis == 1 else (lambda j: combine(value(a, k, j), axis=k))
        return [a, te.compute((M if axis == 1 else N,), body, name="R")]

    return outputs


def gemv(bias=False, scale=1.0, transposed=False):
    def outputs():
        a, x = matrix(), te.placeholder((M if transposed else N,), name="X")
        k = te.reduce_axis((0, M if transposed else N), name="k")
        body = (lambda j: te.sum(a[k, j] * x[k], axis=k)) if transposed else (lambda i: te.sum(a[i, k] * x[k], axis=k))
        y = te.compute((N if transposed else M,), body, name="Y")
        if not bias:
            return [a, x, y] if scale == 1.0 else [a, x, te.compute(y.shape, lambda i: y[i] * scale, name="Z")]
        b = te.placeholder(y.shape, name="b")
        return [a, x, b, te.compute(y.shape, lambda i: y[i] + b[i], name="Z")]

    return outputs


def chain(*functions):
    def step(last, function, name):
        return te.compute((M, N), lambda i, j: function(last[i, j]), name=name)

    def outputs():
        a = value = matrix()
        for at, function in enumerate(functions):
            value = step(value, function, f"v{at}")
        return [a, value]

    return outputs


def softmax():
    from tvm import topi

    a = matrix()
    return [a, topi.nn.softmax(a, axis=-1)]


def rms_norm():
    a = matrix()
    k = te.reduce_axis((0, N), name="k")
    squares = te.compute((M,), lambda i: te.sum(a[i, k] * a[i, k], axis=k), name="squares")
    return [a, te.compute((M, N), lambda i, j: a[i, j] / te.sqrt(squares[i] / N + 1e-5), name="Y")]


def row_difference():
    a = matrix()
    k = te.reduce_axis((0, N), name="k")
    largest = te.compute((M,), lambda i: te.max(a[i, k], axis=k), name="largest")
    return [a, te.compute((M, N), lambda i, j: a[i, j] - largest[i], name="Y")]


E = np.exp(A - A.max(1, keepdims=True))
PROGRAMS.update(
    gemv=program(gemv(), A @ X, A, X),
    gemv_bias=program(gemv(bias=True), A @ X + Y, A, X, Y),
    gemv_scaled=program(gemv(scale=0.5), A @ X * np.float32(0.5), A, X),
    gemv_transposed=program(gemv(transposed=True), A.T @ Y, A, Y),
    gemv_transposed_bias=program(gemv(bias=True, transposed=True), A.T @ Y + X, A, Y, X),
    row_sum=program(reduction(te.sum), A.sum(1), A),
    row_max=program(reduction(te.max), A.max(1), A),
    row_min=program(reduction(te.min), A.min(1), A),
    column_sum=program(reduction(te.sum, axis=0), A.sum(0), A),
    column_max=program(reduction(te.max, axis=0), A.max(0), A),
    sum_of_squares=program(reduction(te.sum, lambda a, i, k: a[i, k] * a[i, k]), (A * A).sum(1), A),
    sum_of_exp=program(reduction(te.sum, lambda a, i, k: te.exp(a[i, k])), np.exp(A).sum(1), A),
    exp=program(chain(te.exp), np.exp(A), A),
    relu=program(chain(lambda x: tirx.max(x, tirx.const(0, "float32"))), np.maximum(A, 0), A),
    tanh_exp=program(chain(te.exp, te.tanh), np.tanh(np.exp(A)), A),
    three_steps=program(chain(lambda x: x + 1.0, lambda x: x * 2.0, te.exp), np.exp((A + 1) * 2), A),
    sigmoid=program(chain(te.sigmoid), 1 / (1 + np.exp(-A)), A),
    softmax=program(softmax, E / E.sum(1, keepdims=True), A),
    rms_norm=program(rms_norm, A / np.sqrt((A * A).mean(1, keepdims=True) + 1e-5), A),
    row_difference=program(row_difference, A - A.max(1, keepdims=True), A),
)
