"""Elementary functions: speed against PyTorch and NumPy, and errors over the whole range.

    python benchmarks/elementary_functions.py                  # speed: one thread, 2^13 (in cache) and 2^20 elements
    python benchmarks/elementary_functions.py --errors         # every f32 number there is: minutes a function
    python benchmarks/elementary_functions.py --errors exp --mcpu x86-64 --part 1/4

Contenders take turns in one process, arguments and results stay where they are; the time is the minimum of the rounds.
The errors are in units in the last place, against NumPy in double.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_variable] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "helpers"))

import numpy as np  # noqa: E402
from ulps import EXACT, errors  # noqa: E402

import weft  # noqa: E402
from weft import te  # noqa: E402

FUNCTIONS = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "erf", "sigmoid")
ROUNDS = 20
CHUNK = 1 << 17


def kernel(function: str, dtype: str, count: int, lanes: int, target: str) -> Callable[..., Any]:
    """`function` of `count` elements, `lanes` at a time."""
    A = te.placeholder((count,), dtype, name="A")
    B = te.compute((count,), lambda i: getattr(te, function)(A[i]), name="B")
    sch = weft.Schedule(te.create_func([A, B], name="apply"))
    _, inner = sch.split(sch.get_loops("B")[0], factors=[None, lanes])
    sch.vectorize(inner)
    return weft.build(sch.mod, target=target)["apply"]


def contenders(function: str, dtype: str, count: int) -> dict[str, Callable[[], object]]:
    """Name -> a call on arrays of its own."""
    x = np.random.default_rng(0).uniform(-5, 5, count).astype(dtype)
    if function.startswith("log"):
        x = abs(x) + np.asarray(1e-3, dtype)
    found: dict[str, Callable[[], object]] = {}
    lanes = 64 if dtype == "float32" else 32
    run, y = kernel(function, dtype, count, lanes, "llvm -num-threads=1"), np.empty_like(x)
    found["weft"] = lambda: run(x, y)
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed: left out")
    else:
        torch.set_num_threads(1)
        source, result = torch.from_numpy(x.copy()), torch.empty(count, dtype=getattr(torch, dtype))
        apply = getattr(torch, function)
        found["PyTorch"] = lambda: apply(source, out=result)
    if hasattr(np, function):
        other, ufunc = np.empty_like(x), getattr(np, function)
        found["NumPy"] = lambda: ufunc(x, out=other)
    return found


def compare_speed(functions: list[str]) -> None:
    print("| function | type | elements | weft, ns each | PyTorch / weft | NumPy / weft |\n|---|---|---|---|---|---|")
    for count in (1 << 13, 1 << 20):
        for dtype in ("float32", "float64"):
            for function in functions:
                calls = contenders(function, dtype, count)
                repeat = max(1, (1 << 16) // count)
                best = dict.fromkeys(calls, float("inf"))
                for _ in range(ROUNDS):
                    for name, call in calls.items():
                        start = time.perf_counter()
                        for _ in range(repeat):
                            call()
                        best[name] = min(best[name], (time.perf_counter() - start) / repeat)
                ratios = [f"{best[n] / best['weft']:.2f}" if n in best else "" for n in ("PyTorch", "NumPy")]
                own = best["weft"] / count * 1e9
                print(f"| {function} | {dtype} | {count} | {own:.2f} | {ratios[0]} | {ratios[1]} |", flush=True)


def measure_errors(functions: list[str], cpu: str, stride: int, part: tuple[int, int]) -> None:
    """The largest error over all f32 numbers, or every `stride`-th, of one part of all encodings."""
    target = "llvm -num-threads=1" + (f" -mcpu={cpu}" if cpu else "")
    which, parts = part
    size = (1 << 32) // parts
    print(f"target {target}, part {which} of {parts}\n")
    print("| function | largest error, ulp | at | numbers |\n|---|---|---|---|")
    for function in functions:
        run = kernel(function, "float32", CHUNK, 16, target)
        result = np.empty(CHUNK, np.float32)
        worst, place, seen = 0.0, 0.0, 0
        for start in range((which - 1) * size, which * size, CHUNK * stride):
            codes = np.arange(start, start + CHUNK * stride, stride, dtype=np.uint64)
            numbers = codes.astype(np.uint32).view(np.float32)
            run(numbers, result)
            with np.errstate(all="ignore"):
                exact = EXACT[function](numbers.astype(np.float64))
                # What is rounded correctly needs no closer look.
                (off,) = np.nonzero(exact.astype(np.float32).view(np.int32) != result.view(np.int32))
            found = errors(result[off], exact[off])
            if len(off) and found.max() > worst:
                worst, place = float(found.max()), float(numbers[off[np.argmax(found)]])
            seen += CHUNK
        print(f"| {function} | {worst:.4f} | {place!r} | {seen} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="*", default=[])
    parser.add_argument("--errors", action="store_true", help="errors instead of speed")
    parser.add_argument("--mcpu", default="", help="the CPU whose code is checked; this machine must run it")
    parser.add_argument(
        "--stride", type=int, default=1, help="every how manieth number is looked at; odd, or low bits would be zeros"
    )
    parser.add_argument("--part", default="1/1", help="part k of n of all numbers, as k/n")
    arguments = parser.parse_args()
    if arguments.stride % 2 == 0:
        parser.error(f"--stride must be odd, got {arguments.stride}")
    functions: list[str] = arguments.functions or list(FUNCTIONS)
    which, _, parts = str(arguments.part).partition("/")
    part = (int(which), int(parts))
    if arguments.errors:
        measure_errors([f for f in functions if f in EXACT], arguments.mcpu, arguments.stride, part)
    else:
        compare_speed(functions)


if __name__ == "__main__":
    main()
