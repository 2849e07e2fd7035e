"""Elementary functions: speed against PyTorch and NumPy. Their errors: `tests/fuzz/run_ulp.py`.

    python benchmarks/elementary_functions.py [exp tanh ...]   # one thread, 2^13 (in cache) and 2^20 elements

Contenders take turns in one process on fixed arrays; the time is the minimum of the rounds.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_variable] = "1"

import numpy as np  # noqa: E402

import weft  # noqa: E402
from weft import te  # noqa: E402

FUNCTIONS = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "erf", "sigmoid", "sin", "cos")
ROUNDS = 20


def kernel(function: str, dtype: str, count: int, lanes: int, target: str) -> Callable[..., Any]:
    """`function` on `count` elements, `lanes` at a time."""
    A = te.placeholder((count,), dtype, name="A")
    B = te.compute((count,), lambda i: getattr(te, function)(A[i]), name="B")
    sch = weft.Schedule(te.create_func([A, B], name="apply"))
    _, inner = sch.split(sch.get_loops("B")[0], factors=[None, lanes])
    sch.vectorize(inner)
    return weft.build(sch.mod, target=target)["apply"]


def contenders(function: str, dtype: str, count: int) -> dict[str, Callable[[], object]]:
    """Name -> a call on separate arrays."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="*", default=[])
    arguments = parser.parse_args()
    compare_speed(arguments.functions or list(FUNCTIONS))


if __name__ == "__main__":
    main()
