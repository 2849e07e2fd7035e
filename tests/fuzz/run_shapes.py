"""Random functions over tensors of static and dynamic shapes: `python tests/fuzz/run_shapes.py 1500 [FIRST_SEED]`.

Each program of `shaped_programs.py` and of `stablehlo_programs.py` is built and called; its results are compared with
NumPy's. A program may be refused by a `CompileError`; anything else is a finding.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from shaped_programs import ShapedProgram
from stablehlo_programs import StablehloProgram

import weft
from weft.support.errors import CompileError

Program = ShapedProgram | StablehloProgram


def program_of(seed: int) -> Program:
    """A program of tensors for even seeds, of stablehlo for odd ones."""
    return StablehloProgram(seed) if seed % 2 else ShapedProgram(seed)


def problem_of(program: Program, target: str = "llvm") -> str | None:
    """What is wrong with the results of a program, None if nothing is. Raises `CompileError` if it is refused."""
    found = weft.build(program.text, target)["main"](*program.arguments)
    results = found if isinstance(found, tuple) else (found,)
    for at, (result, wanted) in enumerate(zip(results, program.expected, strict=True)):
        array = np.asarray(result)
        if (array.shape, array.dtype) != (wanted.shape, wanted.dtype):
            return f"result {at} is {array.dtype}{array.shape}, not {wanted.dtype}{wanted.shape}"
        if not np.array_equal(array, wanted):
            return f"result {at} is\n{array}\nnot\n{wanted}"
    return None


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=int)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--refused", action="store_true", help="print the messages of refusals")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    outcomes = Counter[str]()
    for seed in range(options.first, options.first + options.cases):
        program = program_of(seed)
        try:
            problem = problem_of(program, options.target)
        except CompileError as error:
            outcomes["refused"] += 1
            if options.refused:
                print(f"{seed}: {error}")
            continue
        except Exception as error:  # noqa: BLE001 - each is a finding
            problem = f"{type(error).__name__}: {error}"
        outcomes["equal" if problem is None else "wrong"] += 1
        if problem is not None:
            print(f"seed {seed}: {problem}\n{program.text}\n{program.arguments}")
    print(dict(outcomes))
    return 1 if outcomes["wrong"] else 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    sys.exit(main(sys.argv[1:]))
