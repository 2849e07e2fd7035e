"""Run command lines with junk in this process: `python tests/fuzz/run_commands.py --lines 2000 --seed 1`."""

from __future__ import annotations

import argparse
import resource
import tempfile
from pathlib import Path

from command_lines import Runner, write_files


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        runner = Runner(options.seed, Path(folder))
        runner.run(options.lines)
    for finding in runner.findings.values():
        print(f"== {' '.join(map(repr, finding.words))[:500]}: {finding.what}\n{finding.report}")
    print(f"{runner.count} command lines, {runner.accepted} accepted, {len(runner.findings)} findings")
    return bool(runner.findings)


if __name__ == "__main__":
    raise SystemExit(main())
