"""Batched matrix multiplication followed by ReLU, as a tensor expression.

python examples/te_bmm_relu.py
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te

BATCH, M = 16, 128


def bmm_relu() -> ModuleOp:
    """C[n, i, j] = max(Y[n, i, j], 0) with Y[n, i, j] = sum over k of A[n, i, k] * B[n, k, j]."""
    A = te.placeholder((BATCH, M, M), "float32", name="A")
    B = te.placeholder((BATCH, M, M), "float32", name="B")
    k = te.reduce_axis((0, M), name="k")
    Y = te.compute((BATCH, M, M), lambda n, i, j: te.sum(A[n, i, k] * B[n, k, j], axis=k), name="Y")
    C = te.compute((BATCH, M, M), lambda n, i, j: te.max(Y[n, i, j], 0.0), name="C")
    return te.create_func([A, B, C], name="bmm_relu")


def main() -> None:
    random = np.random.default_rng(0)
    a, b = (random.uniform(-1, 1, (BATCH, M, M)).astype(np.float32) for _ in range(2))
    c = np.empty((BATCH, M, M), np.float32)
    module = bmm_relu()
    print(module)
    weft.build(module, target="llvm")["bmm_relu"](a, b, c)
    np.testing.assert_allclose(c, np.maximum(a @ b, 0), rtol=1e-4, atol=1e-4)
    print("agrees with NumPy")


if __name__ == "__main__":
    main()
