"""Compile examples/mm_relu.mlir, run it on arrays, check the results, and time it with and without its schedule.

python examples/run_mm_relu.py            (what `make run` does)
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from weft.driver.build import build
from weft.driver.programs import parse_file
from weft.interp.interpreter import Interpreter
from weft.support.target import Target

FILE = Path(__file__).with_name("mm_relu.mlir")
N = 128
FLOPS = 2 * N**3 + N**2
"""A multiply and an add per N^3 terms, a maximum per result."""
ROUNDS = 7


def main() -> int:
    module = parse_file(FILE)
    target = Target("llvm")
    print(f"{FILE.name}: C = max(A @ B, 0), {N}x{N}, float32, for {target}")

    start = time.perf_counter()
    plain = build(module.clone(), target, scheduled=False, default_schedule=False)["mm_relu"]
    middle = time.perf_counter()
    scheduled = build(module.clone(), target, scheduled=True)["mm_relu"]
    end = time.perf_counter()
    print(f"  built    plain in {(middle - start) * 1e3:.0f} ms, scheduled in {(end - middle) * 1e3:.0f} ms")

    random = np.random.default_rng(0)
    a, b = (random.uniform(-1, 1, (N, N)).astype(np.float32) for _ in range(2))
    interpreted = np.empty((N, N), np.float32)
    Interpreter(module).call("mm_relu", a, b, interpreted)
    good = True
    for name, function in (("plain", plain), ("scheduled", scheduled)):
        c = np.full((N, N), np.nan, np.float32)
        function(a, b, c)
        with_numpy = float(np.abs(c - np.maximum(a @ b, 0)).max())
        with_interpreter = float(np.abs(c - interpreted).max())
        agrees = with_numpy < 1e-4 and with_interpreter < 1e-4  # False for NaN
        good = good and agrees
        print(
            f"  checked  {name}: {'agrees' if agrees else 'DIFFERS'}, max abs error {with_numpy:.1e} against NumPy, "
            f"{with_interpreter:.1e} against the interpreter"
        )

    seconds = {"plain": float("inf"), "scheduled": float("inf")}
    for _ in range(ROUNDS):  # interleaved, so that other load affects both alike
        for name, function in (("plain", plain), ("scheduled", scheduled)):
            c = np.empty((N, N), np.float32)
            measured = function.time_evaluator(number=1, repeat=1, min_repeat_ms=20.0)(a, b, c).min
            seconds[name] = min(seconds[name], measured)
    for name, best in seconds.items():
        print(f"  timed    {name:9}  {best * 1e3:7.4f} ms  {FLOPS / best / 1e9:7.2f} GFLOP/s  (minimum of {ROUNDS})")
    print(f"  speed-up {seconds['plain'] / seconds['scheduled']:.1f}x")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
