"""Record all code that weft generates while a command runs, to compare two trees (`compare.py`).

    .venv/bin/python tests/equality/record.py OUT .venv/bin/python -m pytest tests/numeric
    .venv/bin/python tests/equality/record.py OUT .venv/bin/python tests/equality/rows.py
    .venv/bin/python tests/equality/record.py OUT .venv/bin/lit tests/filecheck

Several commands may write to one folder. The recording holds each text once, and for each test or command line the
texts that it generated: LLVM IR, C, CUDA, OpenCL, Metal. `WEFT_HOST_CPU` makes the rules choose for another processor.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

HOOK = Path(__file__).parent / "hook"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the recording, a folder that is made")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what to run, with its arguments")
    options = parser.parse_args()
    if not options.command:
        parser.error("a command is required")
    (options.folder / "texts").mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join([str(HOOK), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "WEFT_RECORDING": str(options.folder.absolute()),
        "WEFT_CACHE": "0",
        "PYTHONHASHSEED": "0",
    }
    return subprocess.run(options.command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
