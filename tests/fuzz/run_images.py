"""Fuzz convolutions and pools of symbolic extents: `python tests/fuzz/run_images.py --seeds 0:500`."""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from symbolic_images import ImageProgram, check


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:200", help="first:last, the last one excluded")
    given = parser.parse_args()
    first, last = map(int, given.seeds.split(":"))
    problems = 0
    for seed in range(first, last):
        try:
            problem = check(seed)
        except Exception:  # noqa: BLE001 - whatever is raised is the finding
            problem = traceback.format_exc()
        if problem:
            problems += 1
            print(f"{ImageProgram(seed)}\n  {problem}", flush=True)
    print(f"{last - first} programs, {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
