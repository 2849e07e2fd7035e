"""Fuzz programs of symbolic extents: `python tests/fuzz/run_symbolic.py rows --seeds 0:500 [--target c] [--checked]`.

`subscripts` are sums over subscripts beyond the ends of axes, `rows` products, rows, scans and moves, `images`
convolutions and pools, `nets` convolutions with other operators around them. The exit status is 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import image_nets
import symbolic_images
import symbolic_programs
import symbolic_rows


def check_subscripts(seed: int, target: str = "", **_: Any) -> str:
    return symbolic_programs.check(seed, target or "llvm", interprets=seed % 8 == 0).problem


FAMILIES = {
    "subscripts": (symbolic_programs.SymbolicProgram, check_subscripts),
    "rows": (symbolic_rows.RowProgram, symbolic_rows.check),
    "images": (symbolic_images.ImageProgram, symbolic_images.check),
    "nets": (image_nets.ImageNet, image_nets.check),
}
SLOW = 15
"""Seconds of CPU time, C compilers included, after which a program is printed too."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--seeds", default="0:200", help="first:last, the last one excluded")
    parser.add_argument("--target", default="", help="in place of the target of each program")
    parser.add_argument("--checked", action="store_true", help="check bounds of accesses at run time")
    given = parser.parse_args()
    make, check = FAMILIES[given.family]
    first, last = map(int, given.seeds.split(":"))
    options = {"checked": True} if given.checked else {}
    warnings.simplefilter("ignore")
    problems = 0
    for seed in range(first, last):
        start = sum(os.times()[:4])
        try:
            problem = check(seed, given.target, **options)
        except Exception:  # noqa: BLE001 - whatever is raised is the finding
            problem = traceback.format_exc()
        if (taken := sum(os.times()[:4]) - start) > SLOW:
            print(f"{make(seed)}\n  {taken:.0f} s of CPU time", flush=True)
        if problem:
            problems += 1
            print(f"{make(seed)}\n  {problem}", flush=True)
    print(f"{last - first} programs, {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
