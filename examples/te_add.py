"""Element-wise addition of two int64 matrices, as a tensor expression.

python examples/te_add.py
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te


def add() -> ModuleOp:
    """C[i, j] = A[i, j] + B[i, j] over 4x4 matrices."""
    A = te.placeholder((4, 4), "int64", name="A")
    B = te.placeholder((4, 4), "int64", name="B")
    C = te.compute((4, 4), lambda i, j: A[i, j] + B[i, j], name="C")
    return te.create_func([A, B, C], name="add")


def main() -> None:
    a = np.arange(16).reshape(4, 4)
    b = np.arange(16, 0, -1).reshape(4, 4)
    c = np.empty((4, 4), np.int64)
    module = add()
    print(module)
    weft.build(module, target="llvm")["add"](a, b, c)
    print(c)
    np.testing.assert_array_equal(c, a + b)


if __name__ == "__main__":
    main()
