"""Fuzz bounds of symbolic extents: `python tests/fuzz/run_symbolic.py --seeds 0:2000 [--target c]`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from symbolic_programs import SymbolicProgram, check


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:200", help="first:last, the last one excluded")
    parser.add_argument("--target", default="llvm")
    given = parser.parse_args()
    first, last = map(int, given.seeds.split(":"))
    counts: Counter[str] = Counter()
    for seed in range(first, last):
        outcome = check(seed, given.target, interprets=seed % 8 == 0)
        counts.update(
            programs=1,
            built=outcome.built,
            right=outcome.right,
            refused=outcome.refused,
            remarks=bool(outcome.remarks),
            problems=bool(outcome.problem),
        )
        if outcome.problem:
            print(f"{SymbolicProgram(seed)}\n  {outcome.problem}", flush=True)
    print(dict(counts))
    return 1 if counts["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
