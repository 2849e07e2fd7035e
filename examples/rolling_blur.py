"""Two consecutive 3x3 stencils: the rows between them are in a rolling buffer of three.

    python examples/rolling_blur.py

Computed at its use, each row of the first stencil would be computed three times. `rolling_buffer` keeps the two that
the next row needs again, so every row is computed once, and at most three are in memory.
"""

from __future__ import annotations

import numpy as np

import weft
from weft import te

HEIGHT, WIDTH = 1080, 1920


def blur(source: te.Tensor, name: str) -> te.Tensor:
    """The sums of all windows of 3x3 elements."""
    y, x = te.reduce_axis((0, 3), name="y"), te.reduce_axis((0, 3), name="x")
    rows, columns = (extent - 2 for extent in source.shape)
    return te.compute((rows, columns), lambda i, j: te.sum(source[i + y, j + x], axis=[y, x]), name=name)


def program() -> weft.Schedule:
    A = te.placeholder((HEIGHT + 4, WIDTH + 4), "float32", name="A")
    return weft.Schedule(te.create_func([A, blur(blur(A, "B"), "C")], name="blur"))


def schedule(sch: weft.Schedule, *, rolling: bool) -> None:
    """Bands of rows in parallel; within a band, a row of B just before the row of C that uses it."""
    band, row = sch.split(sch.get_loops("C")[0], [8, None])
    sch.parallel(band)
    sch.compute_at("B", row)
    if rolling:
        sch.rolling_buffer("B", 0)
    for block in ("B_first", "B", "C") if rolling else ("B", "C"):
        *_, columns, y, x = sch.get_loops(block)
        outer, lanes = sch.split(columns, [None, 16])
        sch.reorder(outer, y, x, lanes)
        sch.vectorize(lanes)


def main() -> None:
    a = np.random.default_rng(0).integers(0, 8, (HEIGHT + 4, WIDTH + 4)).astype("float32")
    expected = a
    for _ in range(2):
        rows, columns = (extent - 2 for extent in expected.shape)
        expected = sum(expected[i : i + rows, j : j + columns] for i in range(3) for j in range(3))
    for name, rolling in (("each row three times", False), ("each row once", True)):
        sch = program()
        schedule(sch, rolling=rolling)
        lib = weft.build(sch.mod, target="llvm -num-threads=2")
        c = np.empty((HEIGHT, WIDTH), "float32")
        lib["blur"](a, c)
        if not np.array_equal(c, expected):
            raise SystemExit(f"{name}: not what NumPy computes")
        time = lib.time_evaluator("blur", number=3, repeat=3)(a, c)
        print(f"{name}: {time}")
    print("both equal NumPy")


if __name__ == "__main__":
    main()
