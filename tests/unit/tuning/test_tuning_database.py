"""The database of tuning: what is found again, in which order, by several processes, and what files it refuses."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from weft.driver.traces import record_problem
from weft.support.errors import CompileError
from weft.tools.weft_cli import execute
from weft.tuning.database import Database
from weft.tuning.records import Record, Workload, from_line, machine_kind, to_line

MATMUL = Workload("5f", "matmul", "func.func @matmul() { return }", 1 << 21)
HERE = ("5f", "llvm -mcpu=znver4", "x86_64 znver4")
FAST = Record(*HERE, "sched.func @trace {}", ((4, 32), 1), (2e-3, 1e-3, 1.1e-3), origin="space", date="2026-11-23")
SAMPLED = """sched.func @trace {
  %b = sched.get_block "C" : block
  %i = sched.get_loops %b : loop
  %t0, %t1 = sched.sample_perfect_tile %i {n = 2, max_innermost_factor = 64} : int, int
  %v = sched.sample_categorical {candidates = [1, 2], probs = [0.5, 0.5]} : int
}"""
SLOW = replace(FAST, decisions=((128, 1), None), times=(9e-3,))
FAILED = replace(FAST, decisions=((64, 2), 0), times=(), failure="it takes longer than 10 s")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "tune.db") as found:
        yield found


def test_records_come_back_as_they_were(database: Database) -> None:
    assert database.add(MATMUL, SLOW, FAST, FAILED) == 3
    assert database.add(FAST, MATMUL) == 0
    with Database(database.path, must_exist=True) as again:
        assert list(again.records()) == [SLOW, FAST, FAILED]
        assert again.workloads() == [MATMUL] and again.workload("5f") == MATMUL and again.workload("6f") is None
        assert again.best(*HERE, limit=9) == [FAST, SLOW]
        assert again.known(*HERE, FAILED.trace, FAILED.decisions) == FAILED
        assert again.known(*HERE, FAILED.trace, ((64, 2), 1)) is None


def test_the_time_that_counts_is_that_of_undisturbed_repeats(database: Database) -> None:
    assert FAST.seconds == 1.1e-3
    disturbed = replace(FAST, times=(1e-3, 1e-3, 5e-3, 1e-3, 7e-3))
    assert disturbed.seconds == 1e-3
    # The machine was half as fast when it was measured: it is the better one.
    database.add(FAST, drifted := replace(FAST, times=(2e-3, 2e-3, 2e-3), drift=2.0))
    assert database.best(*HERE) == [drifted]
    assert FAILED.seconds is None


def test_other_targets_and_machines_are_other_places(database: Database) -> None:
    threads = replace(FAST, target="llvm -mcpu=znver4 -num-threads=2")
    elsewhere = replace(FAST, machine="x86_64 haswell", times=(1e-6,))
    database.add(MATMUL, FAST, SLOW, threads, elsewhere, replace(elsewhere, decisions=(), times=(1e-4,)))
    assert database.best(*HERE, limit=9) == [FAST, SLOW]
    # Those of this kind of machine first, then by time, and of each the best.
    assert database.elsewhere("5f", "x86_64 znver4", 9) == [FAST, threads, elsewhere]
    assert [place[1:] for place in database.places()] == [
        ("llvm -mcpu=znver4", "x86_64 haswell", 2, 0),
        ("llvm -mcpu=znver4", "x86_64 znver4", 2, 0),
        ("llvm -mcpu=znver4 -num-threads=2", "x86_64 znver4", 1, 0),
    ]


def test_a_search_begins_again_with_the_same_records(database: Database) -> None:
    database.add(SLOW)
    begun = database.begin_search("seed 0")
    database.add(FAST)
    assert database.begin_search("seed 0") == begun < database.begin_search("seed 1")
    assert database.best(*HERE, until=begun) == [SLOW]
    assert database.elsewhere("5f", "x86_64 znver4", 9, until=begun) == [SLOW]


def test_files_of_records(database: Database, tmp_path: Path) -> None:
    database.add(MATMUL, FAST, FAILED)
    file = StringIO()
    assert database.export(file) == 2
    lines = file.getvalue().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["workload", "record", "record"]
    wrong = [
        "[1]",
        "{",
        '{"kind": "code"}',
        to_line(FAST).replace('"drift": 1.0', '"drift": "1"'),
        '{"kind": "record"}',
    ]
    with Database(tmp_path / "other.db") as other:
        assert other.add(MATMUL, SLOW) == 1
        added, reasons = other.import_lines([*lines, "", *wrong], "records.jsonl")
        assert added == 2
        assert [reason.partition(" ")[0] for reason in reasons] == [f"records.jsonl:{n}:" for n in range(5, 10)]
        assert "'drift' is a number, got '1'" in reasons[3]
        assert other.merge(database) == 0 and database.merge(other) == 1
        assert set(other.records()) == set(database.records()) == {FAST, SLOW, FAILED}


def test_lines_hold_what_they_say() -> None:
    assert from_line(to_line(FAST)) == FAST and from_line(to_line(MATMUL)) == MATMUL
    for record, message in (
        (replace(FAST, times=(1.0,)), None),
        (dict(times=[]), "either times or a failure"),
        (dict(times=[-1.0]), "seconds above 0"),
        (dict(times=[float("nan")]), "seconds above 0"),
        (dict(decisions=[[1, "2"]]), "'decisions' is decisions"),
        (dict(trace=5), "'trace' is text"),
        (dict(origin="\ud800"), r"'origin' is text, got '\\ud800'"),
        (dict(trace="x" * (1 << 21)), "the trace of a record has 2,097,152 characters"),
        (dict(times=[5e-324], drift=4.0), "the time of a record is 0.0 seconds"),
        (dict(times=[1e300], drift=1e-300), "the time of a record is inf seconds"),
    ):
        if message is not None:
            line = json.dumps({**json.loads(to_line(FAST)), **record})
            with pytest.raises(CompileError, match=message):
                from_line(line)


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("origin", '"\\ud800"'),
        ("decisions", "[[1, 2], -1, 4611686018427387904, -1]"),
        ("decisions", "[1, 1]"),
        ("decisions", "[[4, 32], [1, 1]]"),
        ("decisions", "[[4, 32]]"),
        ("decisions", nested(400)),
        ("times", nested(900)),
        ("decisions", nested(100_000)),
        ("trace", '"sched.func @trace { %b = sched.no_step }"'),
        ("trace", '"builtin.module {}"'),
        ("drift", "1e400"),
        ("drift", "9" * 5000),
        ("self", "1"),
    ],
)
def test_the_worst_that_a_line_can_do_is_to_be_left_out(field: str, text: str, tmp_path: Path) -> None:
    good = to_line(replace(FAST, trace=SAMPLED))
    values = {name: json.dumps(value) for name, value in json.loads(good).items()} | {field: text}
    bad = "{" + ", ".join(f'"{name}": {value}' for name, value in values.items()) + "}"
    (tmp_path / "records.jsonl").write_text("\n".join([to_line(MATMUL), bad, good]))
    with Database(tmp_path / "tune.db") as database, (tmp_path / "records.jsonl").open() as file:
        added, reasons = database.import_lines(file, "records.jsonl", record_problem)
        assert added == 1 and len(reasons) == 1 and reasons[0].startswith("records.jsonl:2: ")
        assert list(database.records()) == [replace(FAST, trace=SAMPLED)]


@pytest.mark.parametrize("table", ["records", "workloads", "traces"])
def test_the_worst_that_a_row_can_do_is_to_be_left_out(table: str, database: Database) -> None:
    other = replace(FAST, workload="6f", trace="sched.func @other {}", decisions=())
    database.add(MATMUL, replace(MATMUL, key="6f", name="other"), FAST, other)
    columns = {
        "records": "workload target machine decisions times failure drift origin versions date",
        "workloads": "key name ir flops",
        "traces": "text",
    }
    values = (1, 1.5, b"\xff\xfe", "[[[1]]]", "-1", "[" * 100_000, b"CAST \xff")
    for column in columns[table].split():
        for value in values:
            execute_sql = database._connection.execute
            place = "CAST(? AS TEXT)" if isinstance(value, bytes) and value.startswith(b"CAST") else "?"
            execute_sql("BEGIN")
            execute_sql(f"UPDATE {table} SET {column} = {place} WHERE rowid = 1", (value,))
            assert other in database.records()
            assert all(workload.name == "other" for workload in database.workloads() if workload.key == "6f")
            for place in database.places():
                database.best(*place[:3])
            database.elsewhere("5f", "x86_64 other", 9)
            database.known(*HERE, FAST.trace, FAST.decisions)
            database.export(StringIO())
            execute_sql("ROLLBACK")
    assert set(database.records()) == {FAST, other}


def test_pruning_keeps_the_best(database: Database) -> None:
    other = replace(SLOW, workload="6f")
    database.add(MATMUL, replace(MATMUL, key="7f"), FAST, SLOW, FAILED, other)
    assert database.prune(keep=1) == 2
    assert list(database.records()) == [FAST, other]
    assert database.workloads() == [MATMUL]


def test_the_best_is_one_look_into_an_index(database: Database) -> None:
    plans: list[str] = []
    database._connection.set_trace_callback(lambda query: plans.append(query))
    database.best(*HERE)
    database.known(*HERE, FAST.trace, FAST.decisions)
    database._connection.set_trace_callback(None)
    for query, index in zip(plans, ("by_time", "by_candidate"), strict=True):
        steps = [row[3] for row in database._connection.execute(f"EXPLAIN QUERY PLAN {query}")]
        assert any(f"INDEX {index}" in step for step in steps)
        assert not [step for step in steps if step.startswith("SCAN") or "TEMP B-TREE" in step], steps


_WRITER = """
import sys
from weft.tuning.database import Database
from weft.tuning.records import Record
with Database(sys.argv[1]) as database:
    for at in range(40):
        print(at, flush=True)
        database.add(Record("5f", "llvm", sys.argv[2], "sched.func @trace {}", (at,), (1.0,)))
"""


def _writer(path: Path, machine: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _WRITER, str(path), machine]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_write_at_once_and_one_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    with _writer(path, "a") as first, _writer(path, "b") as second:
        assert second.stdout is not None
        for _ in range(20):
            written = int(second.stdout.readline())
        second.kill()
        first.communicate()
    assert first.returncode == 0
    with Database(path) as database:
        counts = {machine: count for _, _, machine, count, _ in database.places()}
        assert counts["a"] == 40 and counts["b"] >= written
        assert database._connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_files_that_are_no_databases(tmp_path: Path) -> None:
    (text := tmp_path / "text.db").write_text("not a database, but long enough to have a header of one" * 20)
    with pytest.raises(CompileError, match=r"text\.db': file is not a database"):
        Database(text)
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE t (x)")
    with pytest.raises(CompileError, match="a database of something else"):
        Database(tmp_path / "other.db")
    with pytest.raises(CompileError, match="there is no database"):
        Database(tmp_path / "none.db", must_exist=True)
    with pytest.raises(CompileError, match="unable to open"):
        Database(tmp_path / "no folder" / "tune.db")
    with Database(tmp_path / "new.db") as database:
        database._connection.execute("PRAGMA user_version = 7")
    with pytest.raises(CompileError, match="has format 7, this weft reads 1"):
        Database(tmp_path / "new.db")


def test_a_full_disk_is_an_error_that_loses_nothing(database: Database) -> None:
    database.add(FAST)
    database._connection.execute("PRAGMA max_page_count = 12")
    with pytest.raises(CompileError, match="database or disk is full"):
        for at in range(200):
            database.add(replace(SLOW, trace="x" * 1000, decisions=(at,)))
    assert database.best(*HERE) == [FAST]


def test_the_kind_of_a_machine_has_architecture_and_processor() -> None:
    assert len(machine_kind().split()) == 2


def _weft(*words: object) -> int:
    return execute([str(word) for word in words])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, lines = tmp_path / "tune.db", tmp_path / "records.jsonl"
    tiles = "%t0, %t1 = sched.sample_perfect_tile %i {n = 2, max_innermost_factor = 16} : int, int"
    trace = f'sched.func @trace {{ %c = sched.get_block "C" : block %i = sched.get_loops %c : loop {tiles} }}'
    with Database(path) as database:
        measured = [replace(record, trace=trace, decisions=record.decisions[:1]) for record in (FAST, SLOW, FAILED)]
        database.add(MATMUL, *measured)
    assert _weft("db", path, "list") == 0
    place = "llvm -mcpu=znver4  on x86_64 znver4"
    assert capsys.readouterr().out == f"5f  matmul  3 records, 1 failed  {place}\n"
    assert _weft("db", path, "best") == 0
    assert capsys.readouterr().out == f"5f  matmul  1100 us, 1.91 GFLOP/s  by space  {place}\n"
    assert _weft("db", path, "show", "matmul") == 0
    shown = capsys.readouterr().out
    assert (
        "decision = [4, 32]" in shown and "FuncOp(" not in shown and "t0, t1 = sch.sample_perfect_tile(i, n=2" in shown
    )
    assert _weft("db", path, "export", lines) == 0
    with lines.open("a") as file:
        file.write("x\n")
    assert _weft("db", tmp_path / "other.db", "import", lines) == 1
    told = capsys.readouterr()
    assert "added     3 records" in told.out and "records.jsonl:5: no JSON" in told.err
    assert _weft("db", path, "merge", tmp_path / "other.db") == 0
    assert _weft("db", path, "prune", "--keep", 1) == 0
    assert "removed   2 records" in capsys.readouterr().out


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    with Database(path := tmp_path / "tune.db") as database:
        database.add(MATMUL, FAST)
    for words, message in (
        (["show"], "name a workload"),
        (["show", "matmol"], "there is no workload 'matmol', did you mean 'matmul'"),
        (["list", "x"], "one word too many: 'x'"),
        (["prune", "--keep", 0], "--keep must be at least 1"),
        (["merge", tmp_path / "none.db"], "there is no database"),
        (["sort"], "invalid choice: 'sort'"),
    ):
        with pytest.raises(CompileError, match=message):
            _weft("db", path, *words)
