"""Build every row of `weft bench ops` without measuring it, and run it once, so that `record.py` sees its code and a
digest of its result. `WEFT_HOST_CPU` makes the rules choose for another processor.

    .venv/bin/python tests/equality/record.py OUT .venv/bin/python tests/equality/rows.py [TEXT...]
    .venv/bin/python tests/equality/rows.py [TEXT...] --threads 1 --libraries FOLDER    # for `times.py`

The rows are those of the tree in the working directory. A row that fails is reported, and the others are built.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path.cwd() / "benchmarks"))

from weft.driver.build import build
from weft.runtime.aligned_arrays import empty
from weft.runtime.library import Library
from weft.support.errors import WeftError
from weft.support.target import Target
from weft_bench.arrays import random
from weft_bench.ops import BY_HAND, DEFAULT, scheduled
from weft_bench.problem import ALONE, ROW, STATIC, Problem
from weft_bench.problems import problems

LABEL = "PYTEST_CURRENT_TEST"
"""The environment variable that labels texts of the recording."""
RECORDED = getattr(sys.modules.get("sitecustomize"), "record", None)
"""Appends a text to the recording: a function of `hook`, if this process is recorded."""


def versions(
    problem: Problem, target: Target, inputs: list[np.ndarray]
) -> Iterator[tuple[str, Problem, Callable[[], Library]]]:
    """The builders of the versions of a row."""
    yield DEFAULT, problem, lambda: build(problem.program(inputs), target)
    if problem.schedule is not None:
        yield BY_HAND, problem, lambda: build(scheduled(problem, target, inputs).mod, target, default_schedule=False)
    for version, other in ((STATIC, problem.static), (ALONE, problem.alone)):
        if other is not None:
            yield version, other, partial(build, other.program(inputs[: len(other.inputs)]), target)


def build_row(problem: Problem, target: Target, folder: Path | None) -> None:
    """Build the versions of a row, record digests of their results, and export them to `folder`."""
    generator = np.random.default_rng(0)
    inputs = [random(generator, *spec) for spec in problem.inputs]
    for version, row, make in versions(problem, target, inputs):
        name = f"{problem.name}, {version}, threads {target.num_threads}"
        os.environ[LABEL] = f"{name} (row)"
        library = make()
        given, result = row.given(inputs[: len(row.inputs)]), empty(*row.result)
        library[ROW](*given, result)
        if RECORDED is not None:
            RECORDED("result", blake2b(result.tobytes()).hexdigest())
        if folder is not None:
            library.export_library(folder / f"{name.replace('/', ' by ')}.so")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", help="words in the names of rows")
    parser.add_argument("--threads", type=int, nargs="+", default=(1, 2))
    parser.add_argument("--libraries", type=Path, help="export shared libraries to this folder, which exists")
    options = parser.parse_args()
    if RECORDED is not None and options.libraries:
        parser.error("--libraries is for runs without record.py, which would record the code of exports too")
    failed = 0
    for threads in options.threads:
        target = Target("llvm", num_threads=threads)
        for problem in problems(options.only, None):
            try:
                build_row(problem, target, options.libraries)
            except WeftError as error:
                failed += 1
                print(f"{problem.name} with {threads} threads: {error}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
