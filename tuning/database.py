"""The tuning database: a SQLite file of records that several processes may read and write.

Each record is committed when added, so that a killed search loses only the measurement in progress. Traces are stored
once, without decisions.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TextIO

from weft.support.errors import CompileError
from weft.tuning.records import Record, Workload, decisions_text, from_line, is_text, to_line, tuples

_APPLICATION: Final = 0x77656674
"""`weft`, in the header of the file."""
_VERSION: Final = 1
_PATIENCE: Final = 60.0
"""Seconds to wait for another process that writes."""
_SCHEMA: Final = """
CREATE TABLE workloads (key TEXT PRIMARY KEY, name TEXT NOT NULL, ir TEXT NOT NULL, flops INTEGER NOT NULL);
CREATE TABLE traces (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE records (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  uid BLOB NOT NULL UNIQUE,
  workload TEXT NOT NULL,
  target TEXT NOT NULL,
  machine TEXT NOT NULL,
  trace INTEGER NOT NULL REFERENCES traces (id),
  decisions TEXT NOT NULL,
  seconds REAL,
  times TEXT NOT NULL,
  failure TEXT NOT NULL,
  drift REAL NOT NULL,
  origin TEXT NOT NULL,
  versions TEXT NOT NULL,
  date TEXT NOT NULL
);
CREATE INDEX by_time ON records (workload, target, machine, seconds) WHERE seconds IS NOT NULL;
CREATE INDEX by_candidate ON records (workload, target, machine, trace, decisions);
CREATE TABLE searches (key TEXT PRIMARY KEY, last_record INTEGER NOT NULL);
"""
_MODELS: Final = """
CREATE TABLE IF NOT EXISTS models (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  target TEXT NOT NULL,
  machine TEXT NOT NULL,
  last_record INTEGER NOT NULL,
  text TEXT NOT NULL
)
"""
_WINDOWS: Final = "CREATE TABLE IF NOT EXISTS windows (key TEXT PRIMARY KEY, trials INTEGER NOT NULL)"
_KEPT_MODELS: Final = 4
"""Cost models kept per target and kind of machine. A resumed search starts with the model that it had."""
_COLUMNS: Final = (
    "r.workload, r.target, r.machine, t.text, r.decisions, r.times, r.failure, r.drift, r.origin, r.versions, r.date"
)
_RECORDS: Final = f"SELECT {_COLUMNS} FROM records r JOIN traces t ON t.id = r.trace"
_PLACE: Final = "r.workload = ? AND r.target = ? AND r.machine = ?"


class Database:
    """The records in a file, which is created unless `must_exist`. For one thread, in a `with` block or until `close`.

    Every method raises `CompileError` if the file is no database of weft or has a newer format, or if the system
    refuses to read or write.
    """

    def __init__(self, path: str | Path, *, must_exist: bool = False) -> None:
        self.path = Path(path)
        if must_exist and not os.path.isfile(self.path):
            raise CompileError(f"there is no database '{path}'")
        with self._errors():
            self._connection = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
            # Text that is not UTF-8 belongs to damaged rows.
            self._connection.text_factory = _text
        try:
            with self._errors():
                self._prepare()
        except CompileError:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        execute = self._connection.execute
        application, found = self._pragma("application_id"), self._pragma("user_version")
        if not application and not found:
            execute("PRAGMA journal_mode = WAL")
            with self._changes():
                if not self._pragma("application_id"):  # another process may have been first
                    if execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()[0]:
                        raise CompileError(f"'{self.path}' is a database of something else")
                    for statement in _SCHEMA.split(";"):
                        execute(statement)
                    execute(f"PRAGMA application_id = {_APPLICATION}")
                    execute(f"PRAGMA user_version = {_VERSION}")
            application, found = self._pragma("application_id"), self._pragma("user_version")
        if application != _APPLICATION:
            raise CompileError(f"'{self.path}' is a database of something else")
        if found != _VERSION:
            raise CompileError(f"'{self.path}' has format {found}, this weft reads {_VERSION}")
        execute(_MODELS)
        execute(_WINDOWS)
        # A write-ahead log preserves commits if the process ends.
        execute("PRAGMA synchronous = NORMAL")

    def _pragma(self, name: str) -> int:
        return self._connection.execute(f"PRAGMA {name}").fetchone()[0]

    @contextmanager
    def _errors(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise CompileError(f"database '{self.path}': {error}") from error

    @contextmanager
    def _changes(self) -> Generator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def add(self, *entries: Workload | Record) -> int:
        """Add entries in one transaction; returns the number of new records."""
        with self._errors(), self._changes():
            return self._add(entries)

    def _add(self, entries: Iterable[Workload | Record]) -> int:
        execute, added = self._connection.execute, 0
        for entry in entries:
            if isinstance(entry, Workload):
                values = entry.key, entry.name, entry.ir, entry.flops
                execute("INSERT OR IGNORE INTO workloads VALUES (?, ?, ?, ?)", values)
                continue
            (trace,) = execute("SELECT id FROM traces WHERE text = ?", (entry.trace,)).fetchone() or (None,)
            if trace is None:
                trace = execute("INSERT INTO traces (text) VALUES (?)", (entry.trace,)).lastrowid
            place = (entry.workload, entry.target, entry.machine, trace, decisions_text(entry.decisions))
            measured = (entry.seconds, json.dumps(entry.times), entry.failure, entry.drift)
            about = (entry.origin, entry.versions, entry.date)
            added += execute(
                f"INSERT OR IGNORE INTO records VALUES (NULL, {', '.join('?' * 13)})",
                (entry.uid, *place, *measured, *about),
            ).rowcount
        return added

    def best(
        self, workload: str, target: str, machine: str, limit: int = 1, *, until: int | None = None
    ) -> list[Record]:
        """Records, fastest first; with `until` (see `begin_search`) only up to that record."""
        last = "" if until is None else " AND r.id <= ?"
        query = f"{_RECORDS} WHERE {_PLACE} AND r.seconds IS NOT NULL{last} ORDER BY r.seconds LIMIT ?"
        values = (workload, target, machine, *(() if until is None else (until,)), limit)
        return list(self._select(query, values))

    def elsewhere(self, workload: str, machine: str, limit: int, *, until: int | None = None) -> list[Record]:
        """The fastest schedules for other machines or targets, as starting points of a search."""
        query = (
            f"{_RECORDS} WHERE r.id IN (SELECT id FROM (SELECT id, ROW_NUMBER() OVER"
            " (PARTITION BY target, machine ORDER BY seconds) AS place FROM records"
            " WHERE workload = ? AND seconds IS NOT NULL AND id <= ?) WHERE place = 1)"
            " ORDER BY r.machine = ? DESC, r.seconds LIMIT ?"
        )
        return list(self._select(query, (workload, (1 << 62) if until is None else until, machine, limit)))

    def known(
        self, workload: str, target: str, machine: str, trace: str, decisions: tuple[int | tuple[int, ...] | None, ...]
    ) -> Record | None:
        query = f"{_RECORDS} WHERE {_PLACE} AND t.text = ? AND r.decisions = ? ORDER BY r.id LIMIT 1"
        values = (workload, target, machine, trace, decisions_text(decisions))
        return next(self._select(query, values), None)

    def number(self, record: Record) -> int:
        """A number that increases in insertion order; 0 if the record is absent."""
        with self._errors():
            row = self._connection.execute("SELECT id FROM records WHERE uid = ?", (record.uid,)).fetchone()
        return 0 if row is None else row[0]

    def workload(self, key: str) -> Workload | None:
        return next(self._workloads("SELECT * FROM workloads WHERE key = ?", (key,)), None)

    def workloads(self) -> list[Workload]:
        return list(self._workloads("SELECT * FROM workloads ORDER BY name, key", ()))

    def _workloads(self, query: str, values: Sequence[Any]) -> Iterator[Workload]:
        with self._errors():
            for row in self._connection.execute(query, values):
                try:
                    yield Workload(*row)
                except CompileError:
                    continue  # damaged

    def records(self, workload: str | None = None) -> Iterator[Record]:
        """Records in insertion order."""
        if workload is None:
            return self._select(f"{_RECORDS} ORDER BY r.id", ())
        return self._select(f"{_RECORDS} WHERE r.workload = ? ORDER BY r.id", (workload,))

    def places(self) -> list[tuple[str, str, str, int, int]]:
        """Workload, target, machine, and numbers of records and failures."""
        query = (
            "SELECT workload, target, machine, COUNT(*), SUM(seconds IS NULL) FROM records"
            " GROUP BY workload, target, machine ORDER BY workload, target, machine"
        )
        with self._errors():
            rows = self._connection.execute(query).fetchall()
        return [row for row in rows if all(map(is_text, row[:3]))]  # others are damaged

    def _select(self, query: str, values: Sequence[Any]) -> Iterator[Record]:
        with self._errors():
            for row in self._connection.execute(query, values):
                try:
                    yield _record(row)
                except (CompileError, TypeError, ValueError, RecursionError):
                    continue  # damaged

    def begin_search(self, key: str) -> int:
        """The last record at the first start of this search: a restarted one begins with the same records, and so
        proposes the same candidates."""
        with self._errors(), self._changes():
            execute = self._connection.execute
            execute("INSERT OR IGNORE INTO searches SELECT ?, IFNULL(MAX(id), 0) FROM records", (key,))
            return execute("SELECT last_record FROM searches WHERE key = ?", (key,)).fetchone()[0]

    def window(self, key: str, trials: int) -> int:
        """Concurrent trials at the first start of this search: `trials` if it starts now."""
        with self._errors(), self._changes():
            execute = self._connection.execute
            execute("INSERT OR IGNORE INTO windows VALUES (?, ?)", (key, trials))
            return execute("SELECT trials FROM windows WHERE key = ?", (key,)).fetchone()[0]

    def save_model(self, target: str, machine: str, text: str) -> None:
        with self._errors(), self._changes():
            execute = self._connection.execute
            values = "?, ?, IFNULL((SELECT MAX(id) FROM records), 0), ?"
            execute(
                f"INSERT INTO models (target, machine, last_record, text) VALUES ({values})", (target, machine, text)
            )
            kept = "SELECT id FROM models WHERE target = ? AND machine = ? ORDER BY id DESC LIMIT ?"
            execute(
                f"DELETE FROM models WHERE target = ? AND machine = ? AND id NOT IN ({kept})",
                (target, machine, target, machine, _KEPT_MODELS),
            )

    def model(self, target: str, machine: str, *, until: int) -> str | None:
        """The last model stored when `until` was the last record (see `begin_search`)."""
        query = "SELECT text FROM models WHERE target = ? AND machine = ? AND last_record <= ? ORDER BY id DESC LIMIT 1"
        with self._errors():
            row = self._connection.execute(query, (target, machine, until)).fetchone()
        return None if row is None else row[0]

    def export(self, file: TextIO) -> int:
        """Write lines of JSON; returns the number of records."""
        count = 0
        for workload in self.workloads():
            file.write(to_line(workload) + "\n")
        for record in self.records():
            file.write(to_line(record) + "\n")
            count += 1
        return count

    def import_lines(
        self, lines: Iterable[str], name: str, problem: Callable[[Record], str] = lambda record: ""
    ) -> tuple[int, list[str]]:
        """Returns the number of new records, and the reason for each skipped line. `problem` returns why a record
        cannot be used, or an empty text."""
        reasons: list[str] = []

        def entries() -> Iterator[Workload | Record]:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    entry = from_line(line)
                    if isinstance(entry, Record) and (reason := problem(entry)):
                        raise CompileError(reason)
                    yield entry
                except CompileError as error:
                    reasons.append(f"{name}:{number}: {error.message}")

        with self._errors(), self._changes():
            return self._add(entries()), reasons

    def merge(self, other: Database) -> int:
        """Returns the number of new records."""
        with self._errors(), self._changes():
            return self._add([*other.workloads()]) + self._add(other.records())

    def prune(self, keep: int) -> int:
        """Keep the fastest `keep` records per workload, target and kind of machine, no failures; returns the number
        removed."""
        query = (
            "DELETE FROM records WHERE id NOT IN (SELECT id FROM (SELECT id, ROW_NUMBER() OVER"
            " (PARTITION BY workload, target, machine ORDER BY seconds) AS place FROM records"
            " WHERE seconds IS NOT NULL) WHERE place <= ?)"
        )
        with self._errors():
            execute = self._connection.execute
            with self._changes():
                removed = execute(query, (keep,)).rowcount
                execute("DELETE FROM workloads WHERE key NOT IN (SELECT workload FROM records)")
                execute("DELETE FROM traces WHERE id NOT IN (SELECT trace FROM records)")
                execute("DELETE FROM searches")
                execute("DELETE FROM windows")
            execute("VACUUM")
        return removed


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


def _record(row: Sequence[Any]) -> Record:
    workload, target, machine, trace, decisions, times, failure, drift, origin, versions, date = row
    measured = (tuples(json.loads(times)), failure, drift)
    return Record(workload, target, machine, trace, tuples(json.loads(decisions)), *measured, origin, versions, date)
