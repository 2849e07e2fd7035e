"""A long search, killed at random: no record may be lost, and no trial may be repeated.

    python benchmarks/tuning_kills.py FOLDER [--minutes 30] [--kills 10] [--seed 0] [--under "nice -n 10"]

`weft tune` searches the default space of a small product, repeatedly with the same command, and is killed (SIGKILL)
after random times that add up to `--minutes`. After each kill, the earlier records must be a prefix of the records.
Finally the same command with a few more trials must terminate, and each candidate must be in the database once. A test
has a short form of this (`tests/numeric/tuning/test_tuning.py`).
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from tuning_scale import TARGET, matmul

from weft.tuning.database import Database
from weft.tuning.records import Record

_NOWHERE = subprocess.DEVNULL
SIZE = 128
MORE = 16
"""Additional trials of the last search."""


def records_of(path: Path) -> list[Record]:
    """The records, without incomplete ones."""
    if not path.is_file():
        return []
    with Database(path) as database:
        return [*database.records()]


def killed_after(command: list[str], seconds: float) -> bool:
    """Run a command and kill its process group after `seconds`; returns whether it was still running."""
    with subprocess.Popen(command, stdout=_NOWHERE, stderr=_NOWHERE, start_new_session=True) as process:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--under", default="", help="a command that runs the command that follows it")
    given = parser.parse_args()
    given.folder.mkdir(parents=True)
    program, path = given.folder / "matmul.mlir", given.folder / "tune.db"
    program.write_text(str(matmul(SIZE)))
    weft = str(Path(sys.executable).parent / "weft")
    words = [*given.under.split(), weft, "tune", str(program), "--target", TARGET, "--database", str(path), "--trials"]
    random = Random(given.seed)
    shares = [random.random() + 0.1 for _ in range(given.kills)]
    seen: list[Record] = []
    kills, begin = 0, time.monotonic()
    for share in shares:
        kills += killed_after([*words, "100000"], share / sum(shares) * given.minutes * 60)
        found = records_of(path)
        if found[: len(seen)] != seen:
            raise SystemExit(f"after {kills} kills records are missing: {len(seen)} before, {len(found)} now")
        print(f"{time.monotonic() - begin:6.0f} s: killed {kills} times, {len(found)} records", flush=True)
        seen = found
    trials = len(seen) - 1 + MORE
    subprocess.run([*words, str(trials)], check=True, stdout=subprocess.DEVNULL)
    found = records_of(path)
    candidates = {(record.trace, record.decisions) for record in found}
    if found[: len(seen)] != seen or len(found) != trials + 1 or len(candidates) != len(found):
        raise SystemExit(f"{trials} trials and the default gave {len(found)} records of {len(candidates)} candidates")
    print(f"killed {kills} times: {len(found)} records, each candidate once, none lost")


if __name__ == "__main__":
    main()
