"""Two-dimensional convolution of int64 images in NCHW layout, as a tensor expression.

python examples/te_conv2d.py
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te

N, CI, H, W, CO, K = 1, 1, 8, 8, 2, 3
OUT_H, OUT_W = H - K + 1, W - K + 1


def conv2d() -> ModuleOp:
    """C[b, k, i, j] = sum over q, di, dj of A[b, q, i + di, j + dj] * F[k, q, di, dj]: stride 1, no padding."""
    A = te.placeholder((N, CI, H, W), "int64", name="A")
    F = te.placeholder((CO, CI, K, K), "int64", name="F")
    q = te.reduce_axis((0, CI), name="q")
    di = te.reduce_axis((0, K), name="di")
    dj = te.reduce_axis((0, K), name="dj")
    C = te.compute(
        (N, CO, OUT_H, OUT_W),
        lambda b, k, i, j: te.sum(A[b, q, i + di, j + dj] * F[k, q, di, dj], axis=[q, di, dj]),
        name="C",
    )
    return te.create_func([A, F, C], name="conv")


def main() -> None:
    image = np.arange(N * CI * H * W).reshape(N, CI, H, W)
    weight = np.arange(CO * CI * K * K).reshape(CO, CI, K, K)
    result = np.empty((N, CO, OUT_H, OUT_W), np.int64)
    module = conv2d()
    print(module)
    weft.build(module, target="llvm")["conv"](image, weight, result)
    print(result)
    windows = np.lib.stride_tricks.sliding_window_view(image, (K, K), axis=(2, 3))
    np.testing.assert_array_equal(result, np.einsum("bqijyx,kqyx->bkij", windows, weight))


if __name__ == "__main__":
    main()
