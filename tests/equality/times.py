"""Time the libraries that two trees exported for the rows of `weft bench ops`, in turns in one process.

    for tree in BASE HEAD: .venv/bin/python tests/equality/rows.py --threads 1 --libraries FOLDER
    .venv/bin/python tests/equality/times.py BASE-FOLDER HEAD-FOLDER [TEXT...]

For each library that both folders have: the minima of the rounds in microseconds, the time of BASE divided by the time
of HEAD, and whether the results are equal. The rows are those of the tree in the working directory.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path.cwd() / "benchmarks"))

import weft
from weft.runtime.aligned_arrays import empty
from weft_bench.arrays import random
from weft_bench.ops import BY_HAND, DEFAULT
from weft_bench.problem import ALONE, ROW, STATIC, Problem
from weft_bench.problems import problems


def seconds(call: Callable[[], object], calls: int) -> float:
    """Seconds per call of `calls` calls."""
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def in_turns(calls: list[Callable[[], object]], budget: float) -> list[list[float]]:
    """Seconds per call of each contender, a list of rounds each. A turn takes about a millisecond, or one call."""
    counts = [max(1, round(1e-3 / max(seconds(call, 2), 1e-7))) for call in calls]
    count = min(counts)
    times: list[list[float]] = [[] for _ in calls]
    start = time.perf_counter()
    while time.perf_counter() - start < budget or len(times[0]) < 7:
        order = range(len(calls)) if len(times[0]) % 2 else reversed(range(len(calls)))
        for at in order:
            times[at].append(seconds(calls[at], count))
    return times


def row_of(name: str, rows: dict[str, Problem]) -> tuple[Problem, Problem] | None:
    """The row of a file name, and the problem of its version."""
    for problem in rows.values():
        label = problem.name.replace("/", " by ")
        for version, of in ((DEFAULT, problem), (BY_HAND, problem), (STATIC, problem.static), (ALONE, problem.alone)):
            if of is not None and name.rpartition(", threads ")[0] == f"{label}, {version}":
                return problem, of
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("head", type=Path)
    parser.add_argument("only", nargs="*", help="words in the names of libraries")
    parser.add_argument("--seconds", type=float, default=0.6, help="of each library's rounds (default: %(default)s)")
    options = parser.parse_intermixed_args()
    rows = {problem.name: problem for problem in problems([], None)}
    print(f"{'library':60} {'base us':>10} {'head us':>10} {'ratio':>6} {'median':>6}  result")
    for file in sorted(options.base.glob("*.so")):
        found = row_of(file.stem, rows)
        if options.only and not any(word in file.stem for word in options.only):
            continue
        if found is None or not (options.head / file.name).exists():
            print(f"{file.stem}: only in one tree", file=sys.stderr)
            continue
        problem, of = found
        generator = np.random.default_rng(0)
        inputs = [random(generator, *spec) for spec in problem.inputs]
        given = of.given(inputs[: len(of.inputs)])
        functions = [weft.load(folder / file.name)[ROW] for folder in (options.base, options.head)]
        results = [empty(*of.result) for _ in functions]
        for function, result in zip(functions, results, strict=True):
            function(*given, result)
        old, new = results
        if np.array_equal(old, new, equal_nan=old.dtype.kind == "f"):
            same = "equal"
        else:
            same = f"differs by {np.abs(old.astype(float) - new).max() / np.abs(old.astype(float)).max():.1e}"
        # Both write to one array, so that neither gains by the place of its result.
        calls = [partial(function, *given, old) for function in functions]
        times = in_turns(calls, options.seconds)
        base, head = (min(each) for each in times)
        median = statistics.median(a / b for a, b in zip(*times, strict=True))
        print(
            f"{file.stem:60} {base * 1e6:10.2f} {head * 1e6:10.2f} {base / head:6.3f} {median:6.3f}  {same}", flush=True
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
