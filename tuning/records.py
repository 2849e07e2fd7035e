"""Records: measurements of a schedule of a program on a machine, and their form as lines of JSON."""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from functools import cache, cached_property
from importlib.metadata import version
from typing import Any, Final, TypeAlias, cast

from weft.support.errors import CompileError
from weft.support.machine import host_triple, process_cpu
from weft.support.target import Target

Decision: TypeAlias = int | tuple[int, ...]
FASTEST: Final = 3
"""The time of a record is the median of this number of its fastest repeats; others were disturbed."""
LONGEST_LINE: Final = 16 << 20
"""Characters of a line of an exported file."""
LONGEST_TRACE: Final = 1 << 20
"""Characters of a trace; traces of weft's rules have less than 1 % of it."""


@dataclass(frozen=True)
class Workload:
    """A function with its dependencies, at tir level, unscheduled."""

    key: str
    """Structural hash, which ignores the name of the function."""
    name: str
    ir: str
    """Module as text, the function first."""
    flops: int = 0
    """Of a call; 0 if unknown."""

    def __post_init__(self) -> None:
        _check_fields(self)


@dataclass(frozen=True)
class Record:
    """A schedule with its times, or a failure."""

    workload: str
    target: str
    machine: str
    """Kind of the machine that measured (`machine_kind`)."""
    trace: str
    """sched IR without decisions."""
    decisions: tuple[Decision | None, ...]
    """One per sampling step of the trace."""
    times: tuple[float, ...] = ()
    """Seconds per call of each repeat; empty after a failure."""
    failure: str = ""
    """The reason for the absence of times."""
    drift: float = 1.0
    """Slow-down of the machine since the search began: the ratio of times of one incumbent."""
    origin: str = ""
    """`default`, or the name of a space."""
    versions: str = ""
    date: str = ""
    """UTC, as `2026-11-23T19:00:00Z`."""

    def __post_init__(self) -> None:
        _check_fields(self)
        if bool(self.times) == bool(self.failure):
            raise CompileError("a record has either times or a failure")
        if not all(math.isfinite(time) and time > 0 for time in (*self.times, self.drift)):
            raise CompileError(f"the times of a record are seconds above 0, got {self.times} and drift {self.drift}")
        if self.seconds is not None and not 0 < self.seconds < math.inf:
            raise CompileError(f"the time of a record is {self.seconds} seconds, from {self.times} and {self.drift}")
        if len(self.trace) > LONGEST_TRACE:
            raise CompileError(f"the trace of a record has {len(self.trace):,} characters")

    @cached_property
    def seconds(self) -> float | None:
        """The time for comparisons; None after a failure."""
        return time_that_counts(self.times) / self.drift if self.times else None

    @cached_property
    def uid(self) -> bytes:
        return hashlib.blake2b(json.dumps(asdict(self)).encode(), digest_size=16).digest()


def time_that_counts(times: Sequence[float]) -> float:
    return statistics.median(sorted(times)[:FASTEST])


def to_line(entry: Workload | Record) -> str:
    return json.dumps({"kind": type(entry).__name__.lower(), **asdict(entry)})


def from_line(line: str) -> Workload | Record:
    """Raises `CompileError` if a line of an exported file has no entry."""
    if len(line) > LONGEST_LINE:
        raise CompileError(f"a line has {len(line):,} characters")
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CompileError(f"no JSON: {error}") from None
    if not isinstance(found, dict):
        raise CompileError("a line is a JSON object")
    values = cast("dict[str, Any]", found)
    kinds: Mapping[Any, type[Workload | Record]] = {"workload": Workload, "record": Record}
    kind = values.pop("kind", None)
    if not isinstance(kind, str) or kind not in kinds:
        raise CompileError(f"a line is of kind 'workload' or 'record', got {kind!r}")
    try:
        for name in ("decisions", "times"):
            if name in values:
                values[name] = tuples(values[name])
        return kinds[kind](**values)
    except RecursionError:
        raise CompileError(f"a {kind} has lists in lists in lists") from None
    except TypeError as error:
        raise CompileError(f"a {kind} has other fields: {error}") from None


def decisions_text(decisions: tuple[Decision | None, ...]) -> str:
    return json.dumps(decisions, separators=(",", ":"))


def tuples(value: Any) -> Any:
    return tuple(map(tuples, cast("list[Any]", value))) if isinstance(value, list) else value


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@cache
def versions() -> str:
    return f"weft {version('weft')}, llvmlite {version('llvmlite')}"


def machine_kind(target: str = "llvm") -> str:
    """The processor, `x86_64 znver4`, or for kernels the device, `cuda NVIDIA H100, 132 units`; times of one kind are
    comparable. Raises `DeviceError` if there is no device."""
    machine = Target.parse(target)
    if not machine.has_kernels:
        return f"{host_triple().split('-', 1)[0]} {process_cpu()}"
    from weft.runtime.gpu_library import device_for  # start-up: 363 ms

    return f"{machine.kind} {device_for(machine).model}"


def _check_fields(entry: Workload | Record) -> None:
    """Raises `CompileError` for values of undeclared types: files are untrusted."""
    for field in fields(entry):
        value: object = getattr(entry, field.name)
        match str(field.type):
            case "str":
                fits, wanted = is_text(value), "text"
            case "int":
                fits, wanted = _is_integer(value) and cast("int", value) >= 0, "an integer of at least 0"
            case "float":
                fits, wanted = _is_number(value), "a number"
            case "tuple[float, ...]":
                fits, wanted = _all(_is_number, value), "numbers"
            case _:
                fits, wanted = _all(_is_decision, value), "decisions"
        if not fits:
            raise CompileError(f"{type(entry).__name__.lower()}: '{field.name}' is {wanted}, got {str(value)[:80]!r}")


def _all(fits: Callable[[object], bool], value: object) -> bool:
    return isinstance(value, tuple) and all(map(fits, cast("tuple[object, ...]", value)))


def is_text(value: object) -> bool:
    """Whether a text has no unpaired surrogates, which files and the database cannot store."""
    try:
        return isinstance(value, str) and (value.isascii() or bool(value.encode()))
    except UnicodeEncodeError:
        return False


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63


def _is_number(value: object) -> bool:
    return isinstance(value, float) or _is_integer(value)


def _is_decision(value: object) -> bool:
    return value is None or _is_integer(value) or _all(_is_integer, value)
