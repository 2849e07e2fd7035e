"""Results of TVM's MetaSchedule for four programs, for `tuning_results.py against`. Requires apache-tvm and xgboost.

    python benchmarks/tuning_tvm.py search TVM.json FOLDER --cpu znver4 [--seconds 150] [--only WORD]
    python benchmarks/tuning_tvm.py time TVM.json FOLDER --cpu znver4

Runs in a separate environment, outside of the checkout's folder (whose `tvm` is weft's). Each search ends with the
batch in which its time is over. `time` measures the best schedule of each again. TVM.json has the best time, the number
of trials and the seconds of each search; times are from TVM's evaluator, on one thread, with arguments in cache if they
fit.
"""

# ruff: noqa: TID251 (this is the other TVM)

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

os.environ["TVM_NUM_THREADS"] = "1"

import numpy as np
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule as ms

import tvm
from tvm import te

BUILD = 200.0
"""Time limit of a build in seconds. The first build of a process parses all of TVM's intrinsics, which on a busy
machine takes longer than the default of 30 seconds, so that every candidate would fail.
"""


def matmul(n: int) -> list[te.Tensor]:
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    return [a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")]


def conv(channels: int, filters: int, size: int, window: int) -> list[te.Tensor]:
    """NCHW, stride 1, SAME padding."""
    border = window // 2
    x = te.placeholder((1, channels, size, size), name="X")
    w = te.placeholder((filters, channels, window, window), name="W")
    padded = x
    if border:
        padded = te.compute(
            (1, channels, size + 2 * border, size + 2 * border),
            lambda n, c, i, j: te.if_then_else(
                te.all(i >= border, i < size + border, j >= border, j < size + border),
                x[n, c, i - border, j - border],
                0.0,
            ),
            name="padded",
        )
    c, p, q = (
        te.reduce_axis((0, extent), name=name) for extent, name in zip((channels, window, window), "cpq", strict=True)
    )
    y = te.compute(
        (1, filters, size, size),
        lambda n, f, i, j: te.sum(padded[n, c, i + p, j + q] * w[f, c, p, q], axis=(c, p, q)),
        name="Y",
    )
    return [x, w, y]


def softmax(rows: int, columns: int) -> list[te.Tensor]:
    x = te.placeholder((rows, columns), name="X")
    k, m = te.reduce_axis((0, columns), name="k"), te.reduce_axis((0, columns), name="m")
    largest = te.compute((rows,), lambda i: te.max(x[i, m], axis=m), name="largest")
    power = te.compute((rows, columns), lambda i, j: te.exp(x[i, j] - largest[i]), name="power")
    total = te.compute((rows,), lambda i: te.sum(power[i, k], axis=k), name="total")
    return [x, te.compute((rows, columns), lambda i, j: power[i, j] / total[i], name="Y")]


PROGRAMS = {
    "matmul 1024": lambda: matmul(1024),
    "conv2d 64->64 56x56 3x3": lambda: conv(64, 64, 56, 3),
    "softmax 1024x1024": lambda: softmax(1024, 1024),
    "conv2d 256->64 56x56 1x1": lambda: conv(256, 64, 56, 1),
}


@derived_object
class Clock(ms.measure_callback.PyMeasureCallback):
    """Ends a search with the batch in which its time is over."""

    def __init__(self, end: float) -> None:
        self._end = end

    def apply(self, task_scheduler, task_id, measure_candidates, builder_results, runner_results) -> None:
        if time.monotonic() > self._end:
            raise RuntimeError


def search(tensors: list[te.Tensor], target: tvm.target.Target, strategy: str, seconds: float, folder: Path) -> float:
    """Tune a program; returns the seconds of the search."""
    folder.mkdir(parents=True)
    function = te.create_prim_func(tensors)
    begin = time.monotonic()
    callbacks = [ms.measure_callback.AddToDatabase(), ms.measure_callback.UpdateCostModel(), Clock(begin + seconds)]
    try:
        ms.tune_tir(
            tvm.IRModule({"main": function.with_attr("global_symbol", "main")}),
            target,
            str(folder),
            max_trials_global=100_000,
            num_trials_per_iter=16,
            measure_callbacks=callbacks,
            num_tuning_cores=2,
            builder=ms.builder.LocalBuilder(max_workers=2, timeout_sec=BUILD),
            strategy=strategy,
            seed=0,
        )
    except RuntimeError:  # raised by Clock; its message is lost in C++
        if time.monotonic() < begin + seconds:
            raise
    return time.monotonic() - begin


def timed(tensors: list[te.Tensor], target: tvm.target.Target, folder: Path) -> dict[str, float]:
    """The time of the best schedule in a folder, measured by TVM's evaluator."""
    records = ms.database.JSONDatabase(work_dir=str(folder)).get_all_tuning_records()
    best = min(records, key=lambda record: min(map(float, record.run_secs or [1e10])))
    schedule = tvm.s_tir.Schedule(best.workload.mod)
    best.trace.apply_to_schedule(schedule, remove_postproc=False)
    built = tvm.compile(schedule.mod, target=target)
    random = np.random.default_rng(0)
    shapes = [tuple(int(extent) for extent in tensor.shape) for tensor in tensors]
    arguments = [tvm.runtime.tensor(random.uniform(-1, 1, shape).astype("float32")) for shape in shapes]
    evaluate = built.mod.time_evaluator if hasattr(built, "mod") else built.time_evaluator
    found = evaluate("main", tvm.cpu(), number=5, repeat=30, min_repeat_ms=5)(*arguments)
    return {"seconds": min(found.results), "trials": len(records)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("search", "time"))
    parser.add_argument("result", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cpu", required=True)
    parser.add_argument("--strategy", default="evolutionary", help="or replay-trace, which draws")
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    target = tvm.target.Target({"kind": "llvm", "mcpu": given.cpu, "num-cores": 1})
    found = json.loads(given.result.read_text()) if given.result.is_file() else {}
    for at, (name, program) in enumerate(PROGRAMS.items()):
        folder = given.folder / str(at)
        if given.only not in name:
            continue
        if given.what == "search" and name not in found:
            found[name] = {
                "strategy": given.strategy,
                "wall": search(program(), target, given.strategy, given.seconds, folder),
            }
        found[name].update(timed(program(), target, folder))
        given.result.write_text(json.dumps(found, indent=1))
        print(name, found[name], flush=True)


if __name__ == "__main__":
    main()
