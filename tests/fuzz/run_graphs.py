"""Fuzz graphs: `python tests/fuzz/run_graphs.py --cases 2000 --seed 0 --jobs 2 [--target c]`.

Each seed is a random graph function, which is interpreted, lowered, and compiled for the target; all must agree.
Cases run in worker processes; one that ends is a finding. The exit status is 1 when anything was found.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

CASES_A_WORKER = 100


def _problem(seed: int, target: str) -> str:
    """What is wrong with a graph, as text; empty when nothing is."""
    folder = Path(__file__).parent
    sys.path[:0] = [str(folder), str(folder.parent / "helpers")]
    from graph_checking import check
    from graph_programs import GraphProgram

    try:
        check(GraphProgram(seed), target)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is a finding)
        return f"{type(error).__name__}: {error}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed; the others follow")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--target", default="llvm")
    options = parser.parse_args()
    found = 0
    for first in range(options.seed, options.seed + options.cases, CASES_A_WORKER * options.jobs):
        seeds = range(first, min(first + CASES_A_WORKER * options.jobs, options.seed + options.cases))
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
            futures: dict[int, Future[str]] = {seed: pool.submit(_problem, seed, options.target) for seed in seeds}
            for seed, future in futures.items():
                try:
                    problem = future.result()
                except BrokenProcessPool:
                    problem = "the process ended (this seed, or one that ran beside it)"
                if problem:
                    found += 1
                    print(f"seed {seed}: {problem[:1500]}", flush=True)
    print(f"{options.cases} graphs from seed {options.seed} on {options.target}: {found} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
