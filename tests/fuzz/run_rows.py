"""Fuzz rows, products and moves of symbolic extents: `python tests/fuzz/run_rows.py --seeds 0:500 [--target c]`."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from symbolic_rows import RowProgram, check


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:200", help="first:last, the last one excluded")
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--checked", action="store_true", help="check bounds of accesses at run time")
    given = parser.parse_args()
    first, last = map(int, given.seeds.split(":"))
    problems = 0
    for seed in range(first, last):
        start = time.process_time()
        try:
            problem = check(seed, given.target, checked=given.checked)
        except Exception:  # noqa: BLE001 - whatever is raised is the finding
            problem = traceback.format_exc()
        if (taken := time.process_time() - start) > 15:
            print(f"{RowProgram(seed)}\n  {taken:.0f} s of CPU time", flush=True)
        if problem:
            problems += 1
            print(f"{RowProgram(seed)}\n  {problem}", flush=True)
    print(f"{last - first} programs, {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
