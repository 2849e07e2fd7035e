"""Compile times, warm, in one process: from tensor expressions and a schedule to machine code.

    python benchmarks/compile_time.py [rounds] [program ...]

Wall time, minima of rounds after a warm-up, on a quiet machine. Each program is compiled with the schedule below,
including the legality checks of its steps, and with the default schedule of the target. `te` builds the program,
`schedule` runs the steps, `check` verifies the program before lowering (skipped by `verify=False`), `passes` lower it,
`LLVM` parses, optimises and generates code, `link` makes it callable.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te

TARGET = "llvm -num-threads=1"
LANES = 16
STAGES = ("te", "schedule", "check", "passes", "LLVM IR", "LLVM", "link")


def matmul() -> ModuleOp:
    n = 1024
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_func([a, b, c], name="matmul")


def schedule_matmul(sch: weft.Schedule) -> None:
    """Register tiles of 4 x 64 results, with packed panels of B."""
    c = sch.get_block("C")
    sch.cache_read(c, 1, "global")
    i, j, k = sch.get_loops(c)
    i0, i1 = sch.split(i, factors=[None, 4])
    j0, j1 = sch.split(j, factors=[None, 64])
    tile = sch.cache_write(c, 0, "local")
    sch.reorder(j0, i0, k, i1, j1)
    sch.transform_layout(c, ("read", 1), lambda row, column: (column // 64, row, column % 64))
    sch.reverse_compute_at(tile, i0)
    init = sch.decompose_reduction(c, k)
    for block in (c, init, tile):
        *_, column = sch.get_loops(block)
        sch.vectorize(sch.split(column, factors=[None, LANES])[1])
        for loop in sch.get_loops(block)[-3:-1]:
            sch.unroll(loop)


def schedule_matmul_in_vectors(sch: weft.Schedule) -> None:
    """`schedule_matmul` with vectorised packing of panels: no loop is left to LLVM."""
    schedule_matmul(sch)
    *_, column = sch.get_loops("B_global")
    sch.vectorize(sch.split(column, factors=[None, LANES])[1])


def softmax() -> ModuleOp:
    n = 1024
    x = te.placeholder((n, n), name="X")
    k, r = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="r")
    most = te.compute((n,), lambda i: te.max(x[i, k], axis=k), name="most")
    e = te.compute((n, n), lambda i, j: te.exp(x[i, j] - most[i]), name="E")
    total = te.compute((n,), lambda i: te.sum(e[i, r], axis=r), name="total")
    y = te.compute((n, n), lambda i, j: e[i, j] / total[i], name="Y")
    return te.create_func([x, y], name="softmax")


def schedule_softmax(sch: weft.Schedule) -> None:
    """Row by row, with vectorised exponentials and quotients."""
    row, _ = sch.get_loops("Y")
    for block in ("total", "E", "most"):
        sch.compute_at(block, row)
    for block in ("E", "Y"):
        *_, column = sch.get_loops(block)
        sch.vectorize(sch.split(column, factors=[None, LANES])[1])
    sch.parallel(row)


def conv2d() -> ModuleOp:
    x, w = te.placeholder((1, 64, 56, 56), name="X"), te.placeholder((64, 64, 3, 3), name="W")
    padded = te.compute(
        (1, 64, 58, 58),
        lambda n, c, i, j: te.if_then_else(te.all(i >= 1, i < 57, j >= 1, j < 57), x[n, c, i - 1, j - 1], 0.0),
        name="padded",
    )
    c, r, s = (te.reduce_axis((0, extent), name=name) for extent, name in ((64, "c"), (3, "r"), (3, "s")))
    y = te.compute(
        (1, 64, 56, 56),
        lambda n, f, i, j: te.sum(padded[n, c, i + r, j + s] * w[f, c, r, s], axis=[c, r, s]),
        name="Y",
    )
    return te.create_func([x, w, y], name="conv2d")


def schedule_conv2d(sch: weft.Schedule) -> None:
    """Register tiles of 8 columns x 32 filters: filters in lanes, from weights packed by 32; results are transposed
    when stored. All copies are vectors: no loop is left to LLVM.
    """
    y = sch.get_block("Y")
    weights, result = sch.cache_read(y, 1, "global"), sch.cache_write(y, 0, "local")
    sch.transform_layout(y, ("read", 1), lambda f, c, r, s: (f // 32, c, r, s, f % 32))
    sch.transform_layout(y, ("write", 0), lambda n, f, i, j: (n, i, j, f))
    n, f, i, j, c, r, s = sch.get_loops(y)
    j0, j1 = sch.split(j, factors=[None, 8])
    f0, f1, lanes = sch.split(f, factors=[None, 2, LANES])
    sch.reorder(n, i, f0, j0, c, r, s, j1, f1, lanes)
    sch.reverse_compute_at(result, j0)
    init = sch.decompose_reduction(y, c)
    *_, rows, columns = sch.get_loops(result)
    sch.reorder(columns, *sch.split(rows, factors=[None, LANES]))
    rows, *others = sch.get_loops(weights)
    outer, inner = sch.split(rows, factors=[None, LANES])
    sch.reorder(outer, *others, inner)
    *_, columns = sch.get_loops("padded")
    sch.split(columns, factors=[None, LANES])
    for block in (y, init, result, weights, "padded"):
        *_, lanes = sch.get_loops(block)
        sch.vectorize(lanes)
    for block in (y, init, result):
        for loop in sch.get_loops(block)[-3:-1]:
            sch.unroll(loop)
    sch.unroll(s)
    sch.parallel(i)


PROGRAMS: dict[str, tuple[Callable[[], ModuleOp], Callable[[weft.Schedule], None]]] = {
    "matmul 1024": (matmul, schedule_matmul),
    "matmul 1024, packed by vectors": (matmul, schedule_matmul_in_vectors),
    "softmax 1024 x 1024": (softmax, schedule_softmax),
    "conv2d 64 -> 64, 56 x 56, 3 x 3": (conv2d, schedule_conv2d),
}


@dataclass(frozen=True)
class Times:
    """Milliseconds per stage, and of the stages of the build."""

    stages: dict[str, float]
    build: dict[str, float]

    @property
    def total(self) -> float:
        return sum(self.stages.values())


def compile_once(make: Callable[[], ModuleOp], schedule: Callable[[weft.Schedule], None] | None, verify: bool) -> Times:
    """`schedule` is None for the default schedule."""
    start = time.perf_counter()
    module = make()
    made = time.perf_counter()
    if schedule is not None:
        sch = weft.Schedule(module)
        schedule(sch)
        module = sch.mod
    scheduled = time.perf_counter()
    library = weft.build(module, target=TARGET, default_schedule=schedule is None, verify=verify)
    end = time.perf_counter()
    build = dict(library.timing.milliseconds)
    stages = dict.fromkeys(STAGES, 0.0)
    stages["te"] = (made - start) * 1e3
    stages["schedule"] = (scheduled - made) * 1e3 + build.get("schedule", 0.0)
    stages["check"] = build.get("check of tir", 0.0)
    stages["LLVM IR"] = build["LLVM IR"]
    stages["LLVM"] = sum(ms for stage, ms in build.items() if stage.startswith("LLVM:"))
    stages["link"] = sum(build[stage] for stage in ("runtime", "link", "entries for Python"))
    stages["passes"] = (end - scheduled) * 1e3 + (scheduled - made) * 1e3 - sum(stages.values()) + stages["te"]
    return Times(stages, build)


def best_of(rounds: int, run: Callable[[], Times]) -> Times:
    """The round with the least total, after a warm-up round."""
    run()
    return min((run() for _ in range(rounds)), key=lambda times: times.total)


def main(rounds: int = 20, *names: str) -> None:
    chosen = {name: both for name, both in PROGRAMS.items() if not names or any(part in name for part in names)}
    print(f"target: {weft.Target.parse(TARGET)}; minima of {rounds} rounds, ms")
    head = "".join(f"{stage:>10}" for stage in (*STAGES, "total"))
    for name, (make, schedule) in chosen.items():
        print(f"\n{name}\n{'':24}{head}")
        slowest: dict[str, float] = {}
        for label, own, verify in (
            ("schedule of a user", schedule, True),
            ("the same, verify=False", schedule, False),
            ("default schedule", None, True),
        ):
            times = best_of(rounds, partial(compile_once, make, own, verify))
            numbers = (*(times.stages[stage] for stage in STAGES), times.total)
            print(f"{label:24}" + "".join(f"{ms:10.1f}" for ms in numbers))
            slowest = slowest or times.build
        top = sorted(slowest.items(), key=lambda item: -item[1])[:5]
        print("slowest of the build: " + ", ".join(f"{stage} {ms:.1f}" for stage, ms in top))


if __name__ == "__main__":
    main(*(int(word) if word.isdecimal() else word for word in sys.argv[1:]))  # pyright: ignore[reportArgumentType]
