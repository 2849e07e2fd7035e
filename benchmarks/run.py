"""All benchmarks in sequence, as run by `make bench`.

    python benchmarks/run.py

Each is also a separate script or command; all take about ten minutes. On shared, noisy machines only ratios are
meaningful, and only if repeatable.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPTS = (
    "mm_relu.py",
    "startup.py",
    "call_overhead.py",
    "llvm_matmul_low.py",
    "interp_speed.py",
    "schedule_cost.py",
    "step_cost.py",
    "elementary_functions.py",
    "compile_time.py",
    "compile_time.py",
)
COMMANDS = ("ladder", "ops")
"""The benchmarks of `weft bench` (`weft_bench/`)."""


def main() -> int:
    folder = Path(__file__).parent
    runs = {f"benchmarks/{name}": [folder / name] for name in SCRIPTS}
    runs |= {f"weft bench {name}": ["-m", "weft.tools.weft_cli", "bench", name] for name in COMMANDS}
    failed = 0
    for title, words in runs.items():
        print(f"== {title}", flush=True)
        failed += subprocess.run([sys.executable, *words], check=False).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
