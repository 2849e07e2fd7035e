"""Random functions of StableHLO: `python tests/fuzz/run_stablehlo.py 500 [FIRST_SEED] [--size 30]`.

Each program of `stablehlo_programs.py` is interpreted and built; the results are compared with NumPy's. XLA computes
programs of static shapes without quantised tensors too, if JAX is installed. A refusal is counted, anything else is a
finding.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from stablehlo_programs import LongStablehloProgram

import weft
from weft.interp.interpreter import Interpreter
from weft.support.errors import CompileError

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from stablehlo_reference import xla_results


def difference(found: Any, expected: Sequence[Any], what: str) -> str | None:
    """What differs between results and those expected, None if nothing does."""
    results = found if isinstance(found, tuple | list) else (found,)
    for at, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        array = np.asarray(result)
        if (array.shape, array.dtype) != (wanted.shape, wanted.dtype) or not np.array_equal(array, wanted):
            return f"{what}: result {at} is\n{array}\nnot\n{wanted}"
    return None


def problem_of(program: LongStablehloProgram, *, with_xla: bool) -> str | None:
    """What is wrong with the results of a program, None if nothing is. Raises `CompileError` if it is refused."""
    module = weft.parse(program.text)
    found = difference(Interpreter(module).call("main", *program.arguments), program.expected, "interpreted")
    found = found or difference(weft.build(module)["main"](*program.arguments), program.expected, "compiled")
    if found is None and with_xla and not any(part in program.text for part in ("?", "!quant")):
        found = difference(xla_results(program.text, program.arguments), program.expected, "XLA")
    return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=int)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("--size", type=int, default=30, help="operations of a program (default 30)")
    parser.add_argument("--refused", action="store_true", help="print the messages of refusals")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    with_xla = find_spec("jax") is not None
    outcomes = Counter[str]()
    for seed in range(options.first, options.first + options.cases):
        program = LongStablehloProgram(seed, options.size)
        try:
            problem = problem_of(program, with_xla=with_xla)
        except CompileError as error:
            outcomes["refused"] += 1
            if options.refused:
                print(f"{seed}: {error}")
            continue
        except Exception as error:  # noqa: BLE001 - each is a finding
            problem = f"{type(error).__name__}: {error}"
        outcomes["equal" if problem is None else "wrong"] += 1
        if problem is not None:
            print(f"seed {seed}: {problem}\n{program.text}\n{program.arguments}", flush=True)
    print(dict(outcomes))
    return 1 if outcomes["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
