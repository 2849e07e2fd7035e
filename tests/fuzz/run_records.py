"""Mutated records of tuning: lines of JSON that are imported, rows of the database, and builds with what is left.

    python tests/fuzz/run_records.py --cases 2000 --seed 7

The worst that a record may do is to be left out. An import ends with reasons, lookups give records that are whole, and
builds succeed; anything else is printed, and the status is 1.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any

import weft
from weft.driver.traces import record_problem
from weft.tools.db_command import _best, _list, _show
from weft.tuning.database import Database
from weft.tuning.records import Record, Workload, machine_kind, to_line, versions

TARGET = "llvm -num-threads=1"
PROGRAM = """
func.func @f(%A: memref<16x16xf32>, %B: memref<16x16xf32>) {
  %cst = arith.constant 2.0 : f32
  tir.for %i in 16 {
    tir.for %j in 16 {
      tir.block "B" iters(%vi: spatial<16>, %vj: spatial<16>) = [%i, %j] {
        %a = memref.load %A[%vi, %vj] : memref<16x16xf32>
        %0 = arith.mulf %a, %cst : f32
        memref.store %0, %B[%vi, %vj] : memref<16x16xf32>
      }
    }
  }
  func.return
}
"""
STEPS = """
  %b = sched.get_block "B" in @f : block
  %i, %j = sched.get_loops %b : loop, loop
  %x, %y = sched.sample_perfect_tile %j {n = 2, max_innermost_factor = 16} : int, int
  %o, %n = sched.split %j [%x, %y] : loop, loop
  %v = sched.sample_categorical {candidates = [0, 2, 4], probs = [0.5, 0.25, 0.25]} : int
  sched.annotate %b, %v {key = "tir.unroll"}
  sched.vectorize %n
"""
MORE = (
    "sched.parallel %i",
    "sched.unroll %i",
    'sched.bind %i {thread = "threadIdx.x"}',
    "sched.fuse %i, %o : loop",
    "sched.reorder %o, %i",
    "sched.split %o {factors = [0, 3]} : loop, loop",
    'sched.annotate %b {key = "prefetch", value = [["write", 0, [0, 64]]]}',
    'sched.set_scope %b {buffer_index = 0, storage_scope = "shared"}',
    'sched.cache_read %b {buffer_index = 0, storage_scope = "local"} : block',
    "sched.compute_inline %b",
    "sched.vectorize %i",
    'sched.tensorize %n {intrin = "none"}',
)
WEIRD: tuple[Any, ...] = (
    None, True, 0, -1, 1, 3, 1 << 62, 1 << 70, 1.5, -0.0, 1e308, 5e-324, float("nan"), float("inf"), "", "x", "\0",
    "\ud800", "ж" * 9, "a" * 3000, [], [[]], [[[1]]], [1, "2"], [1, 2], [None], [1e-9], {}, {"a": 1}, [[1, 2], -1],
    "sched.func @trace {}", "default", "llvm", '[[1, 2], -1, "x"]', "[1,", "[" * 5000 + "]" * 5000,
)  # fmt: skip
FIELDS = ("kind", "workload", "target", "machine", "trace", "decisions", "times", "failure", "drift", "origin", "date")


def workload() -> tuple[weft.ModuleOp, Workload]:
    """The program, and how a database calls it."""
    from weft.driver.tuned_schedules import tasks_of

    module = weft.parse(PROGRAM)
    (task,) = tasks_of(module)
    return module, Workload(task.key, "f", str(module), 256)


def records(key: str) -> list[Record]:
    text = f"sched.func @trace {{{STEPS}}}"
    place = (key, str(weft.Target.parse(TARGET)), machine_kind(TARGET))
    measured = {"origin": "space", "versions": versions(), "date": "2026-11-28T00:00:00Z"}
    return [
        Record(*place, text, ((16 // n, n), at), (1e-6 * (at + 1),), **measured) for at, n in ((0, 1), (1, 4), (2, 16))
    ]


def mutated_text(rng: random.Random, text: str) -> str:
    text = text if text.strip() else "\n"
    match rng.randrange(6):
        case 0:
            at = rng.randrange(len(text) + 1)
            return text[:at] + rng.choice('{}[]%,"\\\0\ud800é 0-9x=:@') + text[at + rng.randrange(2) :]
        case 1:
            return text[: rng.randrange(len(text) + 1)]
        case 2:
            words = text.split(" ")
            at = rng.randrange(len(words))
            words[at] = rng.choice((*words, "0", "-1", "9223372036854775807", "[]", "true"))
            return " ".join(words)
        case 3:
            lines = text.splitlines()
            lines.insert(rng.randrange(1, len(lines) + 1), "  " + rng.choice(MORE))
            return "\n".join(lines)
        case 4:
            lines = text.splitlines()
            del lines[rng.randrange(len(lines))]
            return "\n".join(lines)
        case _:
            return text.replace(*rng.choice((("16", "0"), ("2", "-2"), ("%n", "%i"), ("4", "1e9"), ("B", "C"))))


def mutated_line(rng: random.Random, record: Record) -> str:
    """A line of an exported file, with one or two changes."""
    values: dict[str, Any] = json.loads(to_line(record))
    for _ in range(rng.randrange(1, 3)):
        name = rng.choice(FIELDS)
        match rng.randrange(6):
            case 0:
                values[name] = rng.choice(WEIRD)
            case 1:
                values.pop(name, None)
            case 2:
                values[rng.choice(("self", "other", "seconds", ""))] = rng.choice(WEIRD)
            case 3:
                values["decisions"] = [rng.choice(WEIRD) for _ in range(rng.randrange(4))]
            case _:
                values["trace"] = mutated_text(rng, str(values.get("trace") or "x"))
    values["times"] = values.get("times", [1e-9]) if rng.randrange(2) else [1e-9]
    line = json.dumps(values, ensure_ascii=rng.randrange(2) == 0)
    if rng.randrange(5) == 0:
        line = mutated_text(rng, line)
    return line


def mutate_rows(rng: random.Random, path: Path) -> None:
    """Change columns of a database as SQLite lets anybody do, whatever their declared types."""
    columns = {
        "records": ("workload", "target", "machine", "trace", "decisions", "seconds", "times", "failure", "drift",
                    "origin", "versions", "date"),
        "traces": ("text",),
        "workloads": ("key", "name", "ir", "flops"),
    }  # fmt: skip
    connection = sqlite3.connect(path)
    connection.text_factory = bytes
    for _ in range(rng.randrange(1, 4)):
        table = rng.choice(("records", "records", "records", "traces", "workloads"))
        column = rng.choice(columns[table])
        value = rng.choice((*WEIRD, b"\xff\xfe", b"", "[[16, 1], 0]", "[1e-9]"))
        if isinstance(value, str):
            value = value.encode(errors="surrogatepass")
            expression = "CAST(? AS TEXT)"
        else:
            value = json.dumps(value).encode() if isinstance(value, list | dict) else value
            expression = "?"
        if isinstance(value, int) and value >= 1 << 63:
            value = float(value)
        with suppress(sqlite3.IntegrityError):  # NULL, or a key twice
            connection.execute(
                f"UPDATE {table} SET {column} = {expression} WHERE rowid % 3 = ?", (value, rng.randrange(3))
            )
    if rng.randrange(2):
        (text,) = connection.execute("SELECT text FROM traces LIMIT 1").fetchone()
        text = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
        changed = mutated_text(rng, text).encode(errors="surrogatepass")
        connection.execute("UPDATE OR IGNORE traces SET text = CAST(? AS TEXT)", (changed,))
    connection.commit()
    connection.close()


def look_up(path: Path, module: weft.ModuleOp, key: str, *, run: bool) -> None:
    """What reads a database. Raises what escapes."""
    with Database(path, must_exist=True) as database:
        _list(database)
        _best(database)
        for name in ("f", key):
            try:
                _show(database, name)
            except weft.CompileError as error:
                if "there is no workload" not in error.message:
                    raise
        for record in database.records():
            record_problem(record)
        database.elsewhere(key, "x86_64 other", 9)
        with tempfile.TemporaryFile("w") as file:
            database.export(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = weft.build(module, TARGET, database=path)
    if run:
        import numpy as np

        a = np.arange(256, dtype=np.float32).reshape(16, 16)
        b = np.zeros_like(a)
        library["f"](a, b)
        np.testing.assert_array_equal(b, 2 * a)


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """A description, and what may not raise, for each case."""
    module, program = workload()
    good = records(program.key)
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        path = folder / "tune.db"
        for file in folder.glob("tune.db*"):
            file.unlink()
        if number % 2:
            lines = [mutated_line(rng, rng.choice(good)) for _ in range(rng.randrange(1, 5))]

            def imported(lines: list[str] = lines, path: Path = path, number: int = number) -> None:
                with Database(path) as database:
                    added, reasons = database.import_lines(
                        [to_line(program), *lines, to_line(good[0])], "f", record_problem
                    )
                    assert added + len(reasons) <= len(lines) + 1
                    assert added >= 1
                look_up(path, module, program.key, run=number % 8 == 1)

            yield f"lines {lines}", imported
        else:

            def changed(rng: random.Random = rng, path: Path = path, number: int = number) -> None:
                with Database(path) as database:
                    database.add(program, *good)
                mutate_rows(rng, path)
                look_up(path, module, program.key, run=number % 8 == 0)

            yield "rows", changed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        for number, (text, case) in enumerate(cases(arguments.seed, arguments.cases, Path(name))):
            try:
                with redirect_stdout(StringIO()):
                    case()
            except Exception:  # noqa: BLE001  whatever escapes is a finding
                failures += 1
                print(f"case {number}: {text[:2000]}\n{traceback.format_exc()}", flush=True)
    print(f"{arguments.cases} cases of seed {arguments.seed}: {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
