"""Every benchmark, one after the other: what `make bench` runs.

    python benchmarks/run.py

Each is also a script or a command of its own; all take some ten minutes. Machines are shared and noisy: read the
ratios, and repeat before you believe one.
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
"""What `weft bench` measures (`weft_bench/`)."""


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
