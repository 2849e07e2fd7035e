"""CPU time of each schedule step in typical schedules: tiles, caches, tensor cores, reductions, convolutions.

    python benchmarks/step_cost.py [rounds] [--only matmul,conv2d] [--slowest 10]

Each schedule is applied `rounds` times after a warm-up; the least time of each step, including legality checks, is
reported. The table has a row for each primitive; look-ups (`get_block`, `get_loops`) are not steps here.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
sys.path[:0] = [str(EXAMPLES), str(EXAMPLES / "gpu")]

import gpu_programs  # noqa: E402
import schedule_cost  # noqa: E402
import tensorize_tmm16  # noqa: E402

import weft  # noqa: E402
from weft import te  # noqa: E402
from weft.dialects.sched import StepOp  # noqa: E402
from weft.passes.schedule.replay import Replay, StepOutcome  # noqa: E402


def conv2d_relu() -> weft.Schedule:
    """An unscheduled padded convolution (NHWC, stride 2) with bias and rectifier."""
    X, F, B = (te.placeholder(s, name=n) for s, n in (((1, 56, 56, 64), "X"), ((3, 3, 64, 128), "F"), ((128,), "B")))

    def inside(n: Any, y: Any, x: Any, c: Any) -> Any:
        rows, columns = te.logical_and(y >= 1, y < 57), te.logical_and(x >= 1, x < 57)
        return te.if_then_else(te.logical_and(rows, columns), X[n, y - 1, x - 1, c], 0.0)

    P = te.compute((1, 58, 58, 64), inside, name="pad")
    ry, rx, rc = (te.reduce_axis((0, e), name=n) for e, n in ((3, "ry"), (3, "rx"), (64, "rc")))
    C = te.compute(
        (1, 28, 28, 128),
        lambda n, y, x, o: te.sum(P[n, 2 * y + ry, 2 * x + rx, rc] * F[ry, rx, rc, o], axis=[ry, rx, rc]),
        name="conv",
    )
    D = te.compute((1, 28, 28, 128), lambda n, y, x, o: C[n, y, x, o] + B[o], name="bias")
    E = te.compute((1, 28, 28, 128), lambda n, y, x, o: te.max(D[n, y, x, o], 0.0), name="relu")
    return weft.Schedule(te.create_func([X, F, B, E]))


def conv2d_cpu() -> weft.Schedule:
    """Tiles at four levels, the results of a tile in a cache, the padding computed at its use."""
    sch = conv2d_relu()
    sch.compute_inline("bias")
    write = sch.cache_write("conv", 0, "global")
    n, y, x, o, ry, rx, rc = sch.get_loops("conv")
    n0, n1, n2, n3 = sch.split(n, factors=sch.sample_perfect_tile(n, 4, decision=[1, 1, 1, 1]))
    y0, y1, y2, y3 = sch.split(y, factors=sch.sample_perfect_tile(y, 4, decision=[4, 1, 7, 1]))
    x0, x1, x2, x3 = sch.split(x, factors=sch.sample_perfect_tile(x, 4, decision=[1, 7, 2, 2]))
    o0, o1, o2, o3 = sch.split(o, factors=sch.sample_perfect_tile(o, 4, decision=[4, 1, 2, 16]))
    (ry0, ry1), (rx0, rx1), (rc0, rc1) = (
        sch.split(loop, factors=factors) for loop, factors in ((ry, [1, 3]), (rx, [3, 1]), (rc, [16, 4]))
    )
    sch.reorder(n0, y0, x0, o0, n1, y1, x1, o1, ry0, rx0, rc0, n2, y2, x2, o2, ry1, rx1, rc1, n3, y3, x3, o3)
    sch.reverse_compute_at(write, o1)
    sch.reverse_compute_at("relu", o0)
    sch.compute_at("pad", rc0)
    sch.parallel(sch.fuse(n0, y0, x0))
    sch.vectorize(o3)
    sch.unroll(x3)
    sch.vectorize(sch.get_loops(write)[-1])
    sch.decompose_reduction("conv", ry0)
    return sch


def conv2d_gpu() -> weft.Schedule:
    """Blocks, virtual threads, threads; all threads of a block load both inputs into shared memory."""
    sch = conv2d_relu()
    sch.compute_inline("pad")
    sch.compute_inline("bias")
    write = sch.cache_write("conv", 0, "local")
    n, y, x, o, ry, rx, rc = sch.get_loops("conv")
    tilings = (
        (n, [1, 1, 1, 1, 1]), (y, [7, 1, 4, 1, 1]), (x, [7, 1, 2, 2, 1]), (o, [2, 2, 16, 1, 2])
    )  # fmt: skip
    blocks, virtual, threads, outer, inner = zip(*(sch.split(loop, factors=f) for loop, f in tilings), strict=True)
    (ry0, ry1), (rx0, rx1), (rc0, rc1) = (
        sch.split(loop, factors=factors) for loop, factors in ((ry, [3, 1]), (rx, [1, 3]), (rc, [8, 8]))
    )
    sch.reorder(*blocks, *virtual, *threads, ry0, rx0, rc0, ry1, rx1, rc1, *outer, *inner)
    block, lane, thread = (sch.fuse(*loops) for loops in (blocks, virtual, threads))
    sch.bind(block, "blockIdx.x")
    sch.bind(lane, "vthread.x")
    sch.bind(thread, "threadIdx.x")
    sch.reverse_compute_at(write, thread)
    for index in range(2):
        fetch = sch.cache_read("conv", index, "shared")
        sch.compute_at(fetch, rc0)
        elements = sch.fuse(*sch.get_loops(fetch)[-3:])
        _, together, neighbours = sch.split(elements, factors=[None, 128, 2])
        sch.vectorize(neighbours)
        sch.bind(together, "threadIdx.x")
    sch.reverse_compute_inline("relu")
    sch.annotate(block, "pragma_auto_unroll_max_step", 512)
    sch.decompose_reduction("conv", ry0)
    return sch


def row_sums() -> weft.Schedule:
    """A row reduction in partial sums, combined by threads."""
    A = te.placeholder((256, 4096), name="A")
    k = te.reduce_axis((0, 4096), name="k")
    sch = weft.Schedule(te.create_func([A, te.compute((256,), lambda i: te.sum(A[i, k], axis=k), name="S")]))
    k = sch.get_loops("S")[1]
    _, ki = sch.split(k, factors=[None, 16])
    partial_sums = sch.rfactor(ki, 1)
    sch.reverse_compute_at("S", sch.get_loops(partial_sums)[0])
    sch.parallel(sch.get_loops(partial_sums)[0])
    *_, outer, lanes = sch.get_loops(partial_sums)
    sch.reorder(lanes, outer)
    sch.decompose_reduction(partial_sums, outer)
    sch.vectorize(sch.get_loops(partial_sums)[1])
    return sch


def mm_relu() -> weft.Schedule:
    sch = weft.Schedule(schedule_cost.matmul_relu())
    schedule_cost.schedule(sch)
    return sch


SCHEDULES: dict[str, Callable[[], object]] = {
    "mm_relu": mm_relu,
    "conv2d_cpu": conv2d_cpu,
    "conv2d_gpu": conv2d_gpu,
    "row_sums": row_sums,
    "tmm16": partial(tensorize_tmm16.tensorized, 256),
    **{f"gpu {case.name}": partial(case.schedule, **case.sizes) for case in gpu_programs.CUDA_CASES},
}


@contextmanager
def timed_steps() -> Iterator[list[tuple[str, float]]]:
    """The primitive and the CPU time in ms of each step that runs in the `with` block."""
    times: list[tuple[str, float]] = []
    evaluate = Replay.evaluate

    def timed(self: Replay, step: StepOp) -> StepOutcome:
        start = time.process_time()
        try:
            return evaluate(self, step)
        finally:
            name = step.name.removeprefix("sched.")
            if not name.startswith("get_"):
                times.append((name, (time.process_time() - start) * 1e3))

    Replay.evaluate = timed
    try:
        yield times
    finally:
        Replay.evaluate = evaluate


def measure(run: Callable[[], object], rounds: int) -> list[tuple[str, float]]:
    """The least time of each step of a schedule."""
    least: list[tuple[str, float]] = []
    for _ in range(rounds + 1):
        gc.collect()
        with timed_steps() as times:
            run()
        least = list(map(min, least, times)) if least else times
    return least


def quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rounds", type=int, nargs="?", default=5)
    parser.add_argument("--only", default="", help="schedules whose names contain one of these")
    parser.add_argument("--slowest", type=int, default=0, help="list so many of the slowest steps")
    options = parser.parse_args()
    wanted = options.only.split(",")
    found = [
        (name, *step)
        for name, run in SCHEDULES.items()
        if any(part in name for part in wanted)
        for step in measure(run, options.rounds)
    ]
    rows: dict[str, list[float]] = defaultdict(list)
    for _, primitive, ms in found:
        rows[primitive].append(ms)
    rows = {"all": [ms for *_, ms in found], **dict(sorted(rows.items(), key=lambda row: -sum(row[1])))}
    print(f"{'':24}{'steps':>6}{'median':>9}{'p90':>9}{'most':>9}{'sum':>9}  CPU ms, minimum of {options.rounds}")
    for primitive, times in rows.items():
        numbers = (quantile(times, 0.5), quantile(times, 0.9), max(times), sum(times))
        print(f"  {primitive:22}{len(times):6}" + "".join(f"{number:9.2f}" for number in numbers))
    for name, primitive, ms in sorted(found, key=lambda row: -row[2])[: options.slowest]:
        print(f"  {ms:9.2f}  {primitive} in {name}")


if __name__ == "__main__":
    main()
