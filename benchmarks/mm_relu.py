"""mm_relu at 128: schedules against plain and NumPy, compile times, and the cost of each schedule primitive.

    python benchmarks/mm_relu.py [rounds]

Contenders are interleaved in one process and the minimum of each is reported. Compile times are warm (the first
compilation is discarded) and in CPU time, which is less sensitive to other load; compilation uses one thread. Arrays
stay in cache (three times 64 KiB).
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported

import statistics
import sys
import time
from pathlib import Path

import numpy as np
from xdsl.context import Context

import weft
from weft.backends.llvm.emit import emit_module
from weft.backends.llvm.jit import jit
from weft.dialects import sched
from weft.passes.lower_tir_to_low import LowerTirToLowPass
from weft.passes.schedule.replay import Replay
from weft.runtime.native_runtime import runtime_symbols

FILE = Path(__file__).parent.parent / "examples" / "mm_relu.mlir"
N = 128
FLOPS = 2 * N**3 + N**2
DOCUMENT = """
sched.func @schedule {
  %y = sched.get_block "Y" in @mm_relu : block
  %i, %j, %k = sched.get_loops %y : loop, loop, loop
  %j0, %j1 = sched.split %j {factors = [0, 4]} : loop, loop
  sched.reorder %j0, %k, %j1
  %c = sched.get_block "C" in @mm_relu : block
  sched.reverse_compute_at %c, %j0
  %init = sched.decompose_reduction %y, %k : block
}
"""
"""The schedule of the course text, without vectors and threads."""


def variants() -> dict[str, weft.Library]:
    """The program unscheduled, with the schedule of the course text, and with the schedule of the example."""
    text = FILE.read_text()
    plain = text[: text.index("// Tiles of")]
    return {
        "plain": weft.build(weft.parse(plain), default_schedule=False),
        "split, reorder, fuse": weft.build(weft.parse(plain + DOCUMENT)),
        "example, 1 thread": weft.build(weft.parse(text), target="llvm -num-threads=1"),
        "example, all threads": weft.build(weft.parse(text)),
    }


def measure_speed(rounds: int) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, (N, N)).astype(np.float32) for _ in range(2))
    c = np.empty((N, N), np.float32)
    expected = np.maximum(a @ b, 0)
    libraries = variants()
    best = {name: float("inf") for name in [*libraries, "NumPy, 1 thread"]}
    for name, library in libraries.items():
        c.fill(np.nan)
        library["mm_relu"](a, b, c)
        np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4, err_msg=name)
    for _ in range(rounds):
        for name, library in libraries.items():
            timing = library.time_evaluator("mm_relu", number=5, repeat=1)(a, b, c)
            best[name] = min(best[name], timing.min)
        start = time.perf_counter()
        for _ in range(5):
            np.maximum(np.matmul(a, b, out=c), 0, out=c)
        best["NumPy, 1 thread"] = min(best["NumPy, 1 thread"], (time.perf_counter() - start) / 5)
    print(f"mm_relu {N}, float32, minimum of {rounds}")
    for name, seconds in best.items():
        gflops = FLOPS / seconds / 1e9
        print(f"  {name:22} {seconds * 1e6:8.1f} us {gflops:7.1f} GFLOP/s {best['plain'] / seconds:6.1f}x plain")


def measure_compile(rounds: int) -> None:
    """From the scheduled program in memory to machine code, by stage."""
    module = weft.parse_file(FILE)
    sch = weft.Schedule(module)
    sch.replay(next(op for op in module.ops if isinstance(op, sched.FuncOp)))
    for op in list(sch.mod.ops):
        if isinstance(op, sched.FuncOp):
            op.detach()
    target = weft.Target("llvm")
    stages: dict[str, list[float]] = {"copy": [], "tir to low": [], "emit LLVM IR": [], "LLVM": []}
    for _ in range(rounds + 1):
        marks = [time.process_time()]
        copy = sch.mod.clone()
        marks.append(time.process_time())
        LowerTirToLowPass("llvm").apply(Context(), copy)
        marks.append(time.process_time())
        text = emit_module(copy, target)
        marks.append(time.process_time())
        jit(text, target, runtime_symbols([text], target))
        marks.append(time.process_time())
        for times, start, end in zip(stages.values(), marks[:-1], marks[1:], strict=True):
            times.append(end - start)
    print(f"scheduled mm_relu from IR in memory to machine code, median of {rounds}, warm, CPU time")
    medians = {name: statistics.median(times[1:]) for name, times in stages.items()}
    for name, seconds in medians.items():
        print(f"  {name:22} {seconds * 1e3:6.2f} ms")
    print(f"  {'total':22} {sum(medians.values()) * 1e3:6.2f} ms")


def measure_primitives(rounds: int) -> None:
    """Each step of the example's schedule, including its legality checks."""
    spent: dict[str, list[float]] = {}
    totals: list[float] = []
    for _ in range(rounds + 1):
        module = weft.parse_file(FILE)
        schedule = next(op for op in module.ops if isinstance(op, sched.FuncOp))
        replay = Replay(module)
        total = 0.0
        for step in schedule.body.block.ops:
            if isinstance(step, sched.StepOp):
                start = time.process_time()
                replay.run(step)
                seconds = time.process_time() - start
                spent.setdefault(step.name, []).append(seconds)
                total += seconds
        totals.append(total)
    print(f"schedule primitives on mm_relu, legality included, slowest use of each, median of {rounds}, warm, CPU time")
    for name, times in spent.items():
        uses = len(times) // (rounds + 1)
        slowest = max(statistics.median(times[uses + at :: uses]) for at in range(uses))
        print(f"  {name:28} {slowest * 1e3:6.2f} ms")
    print(f"  {'whole schedule':28} {statistics.median(totals[1:]) * 1e3:6.2f} ms")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    measure_speed(rounds)
    measure_compile(rounds)
    measure_primitives(rounds)


if __name__ == "__main__":
    main()
