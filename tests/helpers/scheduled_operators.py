"""Operators of all kinds, one a default schedule: products, windows, normalizations, rearrangements."""

from typing import Any

import numpy as np
from operator_cases import Case, Input
from operator_references import adapted, attended, convolved, normalized, pooled, softmax

from weft.te import ops
from weft.texpr.references import reference_of

BORDER, NONE, ONE = ((1, 1), (1, 1)), ((0, 0), (0, 0)), (1, 1)


def linear(x: Any, w: Any, b: Any) -> Any:
    return np.maximum(x @ w.T + b, 0)


CASES = [
    Case(
        "linear", lambda x, w, b: ops.relu(ops.dense(x, w, b)), [Input((5, 33)), Input((19, 33)), Input((19,))], linear
    ),
    Case(
        "batches",
        lambda a, b: ops.batch_matmul(a, b, transpose_b=False),
        [Input((2, 9, 17)), Input((2, 17, 5))],
        np.matmul,
    ),
    Case(
        "conv2d",
        lambda x, w: ops.conv2d(x, w, 1, 1),
        [Input((1, 3, 9, 20)), Input((6, 3, 3, 3))],
        lambda x, w: convolved(x, w, ONE, BORDER, ONE),
    ),
    Case(
        "groups",
        lambda x, w: ops.conv2d(x, w, 2, groups=2),
        [Input((1, 4, 7, 7)), Input((6, 2, 3, 3))],
        lambda x, w: convolved(x, w, (2, 2), NONE, ONE, 2),
    ),
    Case(
        "depthwise",
        lambda x, w: ops.depthwise_conv2d(x, w, 1, 1),
        [Input((1, 4, 6, 18)), Input((4, 1, 3, 3))],
        lambda x, w: convolved(x, w, ONE, BORDER, ONE, 4),
    ),
    Case("softmax", ops.softmax, [Input((6, 37))], softmax),
    Case("softmax of columns", lambda x: ops.softmax(x, 0), [Input((6, 37))], lambda x: softmax(x, 0)),
    Case(
        "layer norm",
        ops.layer_norm,
        [Input((6, 37)), Input((37,)), Input((37,))],
        lambda x, g, b: normalized(x, -1) * g + b,
    ),
    Case(
        "group norm",
        lambda x: ops.group_norm(x, 2),
        [Input((2, 4, 3, 5))],
        lambda x: normalized(x.reshape(2, 2, -1), 2).reshape(x.shape),
    ),
    Case("mean of one number", ops.mean, [Input(())], np.mean),
    Case("variance of all", ops.var, [Input((3, 21))], np.var),
    Case(
        "attention",
        ops.attention,
        [Input((2, 5, 16), low=-1, high=1), Input((2, 6, 16), low=-1, high=1), Input((2, 6, 9))],
        lambda q, k, v: attended(q, k, v, 0.25),
    ),
    Case("max pool", lambda x: ops.max_pool2d(x, 3, 2, 1), [Input((1, 3, 9, 18))], lambda x: pooled(x, "max", 3, 2, 1)),
    Case("mean pool", lambda x: ops.global_pool(x), [Input((2, 3, 5, 6))], lambda x: adapted(x, "avg", (1, 1))),
    Case("transpose", ops.transpose, [Input((5, 37))], np.transpose),
    Case("reshape", lambda x: ops.reshape(x, (10, -1)), [Input((4, 25))], lambda x: x.reshape(10, -1)),
    Case(
        "concatenate",
        lambda a, b: ops.concatenate([a, b], 1),
        [Input((5, 17)), Input((5, 20))],
        lambda a, b: np.concatenate([a, b], 1),
    ),
    Case("cumsum", lambda x: ops.cumsum(x, 1), [Input((3, 37))], lambda x: np.cumsum(x, 1)),
    Case("argmax", lambda x: ops.argmax(x, 1), [Input((5, 37))], lambda x: np.argmax(x, 1)),
    Case("take", lambda x, i: ops.take(x, i, 0), [Input((5, 19)), Input((7,), "int32", 0, 4)], lambda x, i: x[i]),
    Case("nothing", lambda x: ops.relu(x), [Input((0, 5))], lambda x: x),
    Case(
        "symbolic",
        lambda a, b: ops.relu(ops.matmul(a, b)),
        [Input(("m", "k")), Input(("k", "n"))],
        lambda a, b: np.maximum(a @ b, 0),
        {"m": 7, "k": 9, "n": 21},
    ),
    Case("gelu", ops.gelu, [Input((7, 19))], reference_of("gelu")),
    Case("hardswish", ops.hardswish, [Input((7, 19))], reference_of("hardswish")),
    Case(
        "select",
        lambda c, x, y: ops.where(c, x, y),
        [Input((7, 1), "bool"), Input((19,)), Input((7, 19))],
        np.where,
    ),
    Case("sum of rows", lambda x: ops.sum(x, 1), [Input((9, 37))], lambda x: x.sum(1)),
    Case("sum of columns", lambda x: ops.sum(x, 0, True), [Input((9, 37))], lambda x: x.sum(0, keepdims=True)),
    Case("least", lambda x: ops.min(x, [0, 2]), [Input((3, 9, 5))], lambda x: x.min((0, 2))),
    Case("rms norm", ops.rms_norm, [Input((6, 37)), Input((37,))], reference_of("rms_norm")),
    Case("instance norm", ops.instance_norm, [Input((2, 3, 5, 7))], reference_of("instance_norm")),
    Case("log softmax", ops.log_softmax, [Input((6, 37))], reference_of("log_softmax")),
    Case(
        "convolution of lines",
        lambda x, w: ops.conv1d(x, w, 2, 1),
        [Input((2, 3, 19)), Input((5, 3, 3))],
        lambda x, w: convolved(x, w, (2,), ((1, 1),), (1,)),
    ),
    Case(
        "convolution of volumes",
        ops.conv3d,
        [Input((1, 2, 4, 5, 6)), Input((3, 2, 2, 2, 2))],
        lambda x, w: convolved(x, w, (1, 1, 1), ((0, 0),) * 3, (1, 1, 1)),
    ),
    Case(
        "transposed convolution",
        lambda x, w: ops.conv2d_transpose(x, w, 2, 1),
        [Input((1, 3, 4, 5)), Input((3, 2, 3, 3))],
        lambda x, w: reference_of("conv2d_transpose")(x, w, 2, 1),
    ),
    Case(
        "mean pool with a border",
        lambda x: ops.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
        [Input((1, 3, 9, 18))],
        lambda x: pooled(x, "avg", 3, 2, 1, count_include_pad=False),
    ),
    Case("mirrored border", lambda x: ops.pad(x, 2, "reflect"), [Input((5, 9))], lambda x: np.pad(x, 2, "reflect")),
    Case(
        "flip and tile",
        lambda x: ops.tile(ops.flip(x, 1), (2, 1)),
        [Input((3, 9))],
        lambda x: np.tile(x[:, ::-1], (2, 1)),
    ),
    Case(
        "one hot",
        lambda i: ops.one_hot(i, 5),
        [Input((11,), "int32", -1, 5)],
        lambda i: (i[:, None] == np.arange(5)).astype(np.float32),
    ),
    Case(
        "resize",
        lambda x: ops.resize2d(x, (7, 9)),
        [Input((1, 2, 4, 5))],
        lambda x: reference_of("resize2d")(x, (7, 9)),
    ),
    Case(
        "einsum",
        lambda a, b: ops.einsum("bij,bkj->ik", a, b),
        [Input((3, 5, 7)), Input((3, 6, 7))],
        lambda a, b: np.einsum("bij,bkj->ik", a, b),
    ),
]
