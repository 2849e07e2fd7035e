"""Run the programs of the families that are named (all without names), and save what they give:
`python run_all.py results.npz [family ...]`. The interpreter decides what `tvm` is: that of TVM, or with
`python -m weft.tvm` weft."""

import sys
import traceback
from importlib import import_module
from pathlib import Path

import numpy as np

PRIMITIVES = ("cache", "inline", "motion", "reduction", "other")
FAMILIES = ("tensor_ir", "te", "relax", "trace", "dlight", *PRIMITIVES)


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    found: dict[str, np.ndarray] = {}
    for family in sys.argv[2:] or FAMILIES:
        programs = import_module(f"{family}_programs").PROGRAMS
        for name, case in programs.items():
            try:
                for at, array in enumerate(case()):
                    found[f"{family}.{name}.{at}"] = array
            except Exception as error:  # noqa: BLE001 - a program that fails is a result
                print(f"{family}.{name}: {type(error).__name__}: {str(error).splitlines()[0][:200]}")
                if "-v" in sys.argv:
                    traceback.print_exc()
        results = sum(key.startswith(f"{family}.") for key in found)
        print(f"{family}: {results} results of {len(programs)} programs")
    np.savez(sys.argv[1], **found)


if __name__ == "__main__":
    main()
