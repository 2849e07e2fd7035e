"""Every benchmark, one after the other: what `make bench` runs.

    python benchmarks/run.py

Each is also a script of its own. Machines are shared and noisy: read the ratios, and repeat before you believe one.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARKS = (
    "mm_relu.py",
    "startup.py",
    "call_overhead.py",
    "llvm_matmul_low.py",
    "interp_speed.py",
    "schedule_cost.py",
)


def main() -> int:
    folder = Path(__file__).parent
    failed = 0
    for name in BENCHMARKS:
        print(f"== benchmarks/{name}", flush=True)
        failed += subprocess.run([sys.executable, folder / name], check=False).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
