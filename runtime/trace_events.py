"""Traces in the trace-event format of Perfetto (ui.perfetto.dev) and chrome://tracing (docs/graphs.md).

The build and the calls are separate processes of a trace.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from weft.runtime.kernel_report import KernelRow
    from weft.runtime.kernel_times import Event
    from weft.support.stopwatch import Span

_BUILD: Final = 1
_RUN: Final = 2
"""Numbers of processes in the trace."""


def trace_events(spans: Sequence[Span], runs: Sequence[Sequence[Event]], rows: Iterable[KernelRow]) -> dict[str, Any]:
    """Returns JSON."""
    by_symbol = {symbol: row for row in rows for symbol in (row.symbol, *row.versions)}
    origin = min([*(span.start for span in spans), *(event.start for run in runs for event in run)], default=0.0)
    events: list[dict[str, Any]] = [
        *_names(_BUILD, "build", {0: "this process", **{s.process: f"helper {s.process}" for s in spans if s.process}}),
        *_names(_RUN, "run", _thread_names(event.thread for run in runs for event in run)),
    ]
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        row = by_symbol.get(span.name)
        name = span.name if row is None else row.title
        events.append(_event(_BUILD, span.process, name, "build", span.start - origin, span.end - span.start, row))
    for run in runs:
        # The caller runs one kernel at a time.
        kernels = [event for event in run if event.kernel]
        starts = [event.start for event in kernels]
        for event in run:
            around = event if event.kernel else kernels[max(bisect_right(starts, event.start) - 1, 0)]
            row = by_symbol.get(around.kernel)
            name = around.kernel if row is None else row.title
            kind = "chunk" if not event.kernel else "call" if event.kernel.startswith("@") else "kernel"
            took = event.end - event.start
            events.append(_event(_RUN, event.thread, name, kind, event.start - origin, took, row))
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _thread_names(threads: Iterable[int]) -> dict[int, str]:
    return {number: f"thread {number}" if number else "caller" for number in sorted({0, *threads})}


def _names(process: int, name: str, threads: Mapping[int, str]) -> list[dict[str, Any]]:
    entries = [("process_name", 0, name), *(("thread_name", number, text) for number, text in threads.items())]
    return [{"ph": "M", "pid": process, "tid": tid, "name": key, "args": {"name": text}} for key, tid, text in entries]


def _event(
    process: int, thread: int, name: str, kind: str, start: float, seconds: float, row: KernelRow | None
) -> dict[str, Any]:
    event: dict[str, Any] = {"ph": "X", "pid": process, "tid": thread, "name": name, "cat": kind}
    event |= {"ts": round(start * 1e6, 3), "dur": round(seconds * 1e6, 3)}
    if row is not None:
        event["args"] = {"operators": ", ".join(row.holds), "symbol": row.symbol}
        event["args"] |= {} if row.flops is None else {"FLOP of all calls": row.flops}
    return event
