"""The tuning database at scale: times of opening, the best schedule of a workload, look-up of a candidate, and
insertion.

    python benchmarks/tuning_database.py [records]

100,000 records by default: 200 workloads, two targets and 250 schedules each, of five traces. Medians and minima of
many calls; the file is in the page cache.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import perf_counter

from weft.tuning.database import Database
from weft.tuning.records import Record, Workload

TARGETS = ("llvm -mcpu=znver4", "llvm -mcpu=znver4 -num-threads=1")
MACHINE = "x86_64 znver4"
WORKLOADS, TRACES, CALLS = 200, 5, 200


def record(at: int, random: Random) -> Record:
    workload, target = f"{at % WORKLOADS:064x}", TARGETS[at // WORKLOADS % 2]
    trace = f"sched.func @trace{at % TRACES} {{\n" + '  %b = sched.get_block "C" : block\n' * 40 + "}"
    decisions = *(random.randrange(64) for _ in range(12)), at
    seconds = tuple(random.uniform(1e-4, 1e-2) for _ in range(8))
    return Record(workload, target, MACHINE, trace, decisions, seconds, origin="default space", date="2026-11-26")


def milliseconds(call: Callable[[], object], calls: int = CALLS) -> str:
    times: list[float] = []
    for _ in range(calls):
        begin = perf_counter()
        call()
        times.append(perf_counter() - begin)
    return f"median {statistics.median(times) * 1e3:.3f} ms, minimum {min(times) * 1e3:.3f} ms"


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    random = Random(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tune.db"
        with Database(path) as database:
            database.add(
                *(Workload(f"{at:064x}", f"f{at}", "func.func @f() { return }" * 40) for at in range(WORKLOADS))
            )
            begin = perf_counter()
            for at in range(0, count, 1000):
                database.add(*(record(at + j, random) for j in range(min(1000, count - at))))
            print(f"{count} records added in {perf_counter() - begin:.1f} s, a thousand at a time")
        print(f"size            {path.stat().st_size / 1e6:.1f} MB")
        print("open            " + milliseconds(lambda: Database(path, must_exist=True).close()))
        with Database(path) as database:
            keys = [(f"{at % WORKLOADS:064x}", TARGETS[at % 2], MACHINE) for at in range(WORKLOADS)]
            known = next(database.records())
            place = (known.workload, known.target, known.machine, known.trace)
            new = iter([record(count + at, random) for at in range(CALLS)])
            print("best            " + milliseconds(lambda: database.best(*random.choice(keys))))
            print("known candidate " + milliseconds(lambda: database.known(*place, known.decisions)))
            print("new candidate   " + milliseconds(lambda: database.known(*place, (1, 2, 3))))
            print("add one         " + milliseconds(lambda: database.add(next(new))))


if __name__ == "__main__":
    main()
