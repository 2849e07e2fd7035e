"""Inspect or change a tuning database.

weft db tune.db list                    the workloads, with the numbers of measured schedules by machine
weft db tune.db best                    the fastest schedule of each
weft db tune.db show matmul             the fastest schedule of a workload as sched IR and as Python
weft db tune.db export records.jsonl    all records as lines of JSON
weft db tune.db import records.jsonl    add the records of such files
weft db tune.db merge other.db          add the records of other databases
weft db tune.db prune --keep 8          keep the fastest records of each workload, and no failures
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from weft.driver.traces import record_problem, trace_with_decisions
from weft.schedule.traces import trace_as_python
from weft.support.errors import CompileError, did_you_mean
from weft.support.files import check_output
from weft.tuning.database import Database
from weft.tuning.records import Record, Workload

_ACTIONS: Final = ("list", "best", "show", "export", "import", "prune", "merge")
_KEY_LETTERS: Final = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("database", help="the file of the database")
    parser.add_argument("action", choices=_ACTIONS)
    parser.add_argument("names", nargs="*", help="a workload, by its name or a prefix of its key; or files")
    parser.add_argument(
        "--keep",
        type=int,
        default=8,
        metavar="N",
        help="the number of records of each workload that prune keeps (default 8)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Returns 1 if lines of a file were skipped. Raises `CompileError` and `OSError`."""
    action, names = str(arguments.action), list(arguments.names)
    needed = {"show": "a workload", "export": "a file", "import": "files", "merge": "databases"}.get(action)
    if needed and not names:
        raise CompileError(f"weft db {arguments.database} {action}: name {needed}")
    if action in ("list", "best", "prune", "show", "export") and len(names) > (action in ("show", "export")):
        raise CompileError(f"weft db {arguments.database} {action}: one word too many: '{names[-1]}'")
    with Database(arguments.database, must_exist=action not in ("import", "merge")) as database:
        match action:
            case "list":
                _list(database)
            case "best":
                _best(database)
            case "show":
                _show(database, names[0])
            case "export":
                check_output(Path(names[0]), Path(arguments.database))
                with open(names[0], "w", encoding="utf-8") as file:
                    print(f"exported  {database.export(file)} records to {names[0]}")
            case "import":
                return max([_import(database, name) for name in names])
            case "merge":
                for name in names:
                    with Database(name, must_exist=True) as other:
                        print(f"added     {database.merge(other)} records of {name}")
            case _:
                if arguments.keep < 1:
                    raise CompileError(f"--keep must be at least 1, got {arguments.keep}")
                print(f"removed   {database.prune(arguments.keep)} records")
    return 0


def _list(database: Database) -> None:
    known = {workload.key: workload for workload in database.workloads()}
    for key, target, machine, count, failures in database.places():
        name = known[key].name if key in known else "?"
        failed = f", {failures} failed" if failures else ""
        print(f"{key[:_KEY_LETTERS]}  {name}  {count} records{failed}  {target}  on {machine}")


def _best(database: Database) -> None:
    known = {workload.key: workload for workload in database.workloads()}
    for key, target, machine, _, _ in database.places():
        for record in database.best(key, target, machine):
            workload = known.get(key)
            print(f"{key[:_KEY_LETTERS]}  {_summary(record, workload)}  {target}  on {machine}")


def _summary(record: Record, workload: Workload | None) -> str:
    seconds = record.seconds
    if seconds is None:
        return record.failure
    flops = 0 if workload is None else workload.flops
    speed = f", {flops / seconds / 1e9:.2f} GFLOP/s" if flops else ""
    return f"{'?' if workload is None else workload.name}  {seconds * 1e6:.4g} us{speed}  by {record.origin or '?'}"


def _show(database: Database, name: str) -> None:
    known = {workload.key: workload for workload in database.workloads()}
    found = [key for key, workload in known.items() if workload.name == name or key.startswith(name)]
    if not found:
        raise CompileError(f"there is no workload '{name}'{did_you_mean(name, [w.name for w in known.values()])}")
    for key, target, machine, _, _ in database.places():
        if key not in found:
            continue
        for record in database.best(key, target, machine):
            print(f"{key[:_KEY_LETTERS]}  {_summary(record, known[key])}")
            print(f"{target}  on {machine}, {record.versions}, {record.date}")
            try:
                trace = trace_with_decisions(record.trace, record.decisions)
                print(f"{trace!s}\n\n{trace_as_python(trace)}")
            except CompileError as error:  # for a record of another version of weft
                print(f"this weft cannot read its trace: {error.message}")


def _import(database: Database, name: str) -> int:
    with open(name, encoding="utf-8", errors="replace") as file:
        added, reasons = database.import_lines(file, name, record_problem)
    print(f"added     {added} records of {name}")
    sys.stdout.flush()
    for reason in reasons:
        print(f"left out  {reason}", file=sys.stderr)
    return 1 if reasons else 0
