"""Build every row of `weft bench ops` without measuring it, so that `record.py` sees its code. Run it with the
environment variable `WEFT_HOST_CPU` for the rules of another processor.

    .venv/bin/python tests/equality/record.py OUT .venv/bin/python tests/equality/rows.py [TEXT]
"""

import os
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from weft.driver.build import build
from weft.support.errors import WeftError
from weft.support.target import Target
from weft_bench.arrays import random
from weft_bench.ops import weft_versions
from weft_bench.problems import problems


def main() -> None:
    only = sys.argv[1:]
    for threads in (1, 2):
        target = Target("llvm", num_threads=threads)
        for problem in problems([*only], None):
            os.environ["PYTEST_CURRENT_TEST"] = f"{problem.name} with {threads} threads (row)"
            generator = np.random.default_rng(0)
            inputs = [random(generator, *spec) for spec in problem.inputs]
            try:
                for make in weft_versions(problem, target, inputs).values():
                    make()
                if problem.alone is not None:
                    build(problem.alone.program(inputs[: len(problem.alone.inputs)]), target)
            except WeftError as error:
                sys.exit(f"{problem.name} with {threads} threads: {error}")


if __name__ == "__main__":
    main()
