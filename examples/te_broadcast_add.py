"""Addition of a row to each row of a matrix: NumPy's broadcasting, as a tensor expression.

python examples/te_broadcast_add.py
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te


def broadcast_add() -> ModuleOp:
    """C[i, j] = A[i, j] + B[j]; one function for every number of rows and columns."""
    m, n = te.var("m"), te.var("n")
    A = te.placeholder((m, n), "int64", name="A")
    B = te.placeholder((n,), "int64", name="B")
    C = te.compute((m, n), lambda i, j: A[i, j] + B[j], name="C")
    return te.create_func([A, B, C], name="add")


def main() -> None:
    module = broadcast_add()
    print(module)
    add = weft.build(module, target="llvm")["add"]
    for m, n in ((4, 4), (3, 7)):
        a = np.arange(m * n).reshape(m, n)
        b = np.arange(n, 0, -1)
        c = np.empty((m, n), np.int64)
        add(a, b, c)
        print(c)
        np.testing.assert_array_equal(c, a + b)


if __name__ == "__main__":
    main()
