"""The tables of a report, as rows of cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weft.runtime.kernel_report import KernelRow
from weft.support.columns import bytes_text
from weft.tools.show.report import BufferRow, LoweringStage, MemoryRow, Roofline, SearchReport


@dataclass(frozen=True)
class Table:
    """The first `names` columns are text, the others numbers."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int = 1


BUFFER_COLUMNS = ("buffer", "type", "place", "size", "loaded", "stored", "from L2", "from L3", "from memory")


def buffer_cells(row: BufferRow) -> tuple[str, ...]:
    caches = ("-", "-", "-") if row.from_caches is None else tuple(map(bytes_text, row.from_caches))
    return (row.name, row.type, row.place, _size(row.size), _size(row.loaded), _size(row.stored), *caches)


def buffer_table(rows: Iterable[BufferRow]) -> Table:
    return Table(BUFFER_COLUMNS, tuple(map(buffer_cells, rows)), 3)


def memory_table(rows: Iterable[MemoryRow]) -> Table:
    cells = ((f"@{r.function}" if r.function else "-", *buffer_cells(r.buffer)[:4]) for r in rows)
    return Table(("function", "buffer", "type", "place", "size"), tuple(cells), 4)


def stage_table(stages: Sequence[LoweringStage]) -> Table:
    rows: list[tuple[str, ...]] = []
    before: dict[str, str] = {}
    for stage in stages:
        after = dict(stage.parts)
        changed = sum(before.get(name) != text for name, text in after.items()) + len(before.keys() - after.keys())
        rows.append((stage.name, stage.summary, str(changed) if before else "-", f"{stage.milliseconds:.1f}"))
        before = after
    return Table(("pass", "summary", "changed", "ms"), tuple(rows), 2)


def kernel_table(roofline: Roofline) -> Table:
    is_timed = any(row.seconds is not None for row in roofline.rows)
    header = ("kernel", "holds", "calls", "MFLOP", "moved", "FLOP/byte", "limit")
    rows: list[tuple[str, ...]] = []
    for row in roofline.rows:
        limit = attainable(roofline, row)
        cells = (
            row.title,
            ", ".join(row.holds),
            str(row.calls),
            _formula(row.flops_formula, "FLOP", _scaled(row.flops, 1e6)),
        )
        cells += (_formula(row.bytes_formula, "B", _size(row.moved_bytes)),)
        cells += (_number(intensity(row)), "-" if limit is None else f"{limit:.4g} GFLOP/s")
        if is_timed:
            rate = speed(row)
            share = None if limit is None or rate is None else rate / limit
            cells += (time_text(row.seconds), _number(rate), "-" if share is None else f"{share:.0%}")
        rows.append(cells)
    return Table((*header, *(("time", "GFLOP/s", "of limit") if is_timed else ())), tuple(rows), 2)


def _formula(text: str, unit: str, number: str) -> str:
    return f"{text} {unit}" if text else number


def task_table(report: SearchReport) -> Table:
    total = sum(task.weight or 0.0 for task in report.tasks)
    rows: list[tuple[str, ...]] = []
    for task in report.tasks:
        best, default, weight = task.seconds, task.default_seconds, task.weight
        rate = "-" if best is None or not task.flops else f"{task.flops / best / 1e9:.4g}"
        gain = "-" if best is None or default is None else f"{default / best:.2f}"
        share = "-" if weight is None or not total else f"{weight / total:.0%}"
        failed = sum(bool(trial.failure) for trial in task.trials)
        calls = "-" if task.calls is None else str(task.calls)
        numbers = (calls, share, str(len(task.trials)), str(failed), time_text(default), time_text(best), gain, rate)
        rows.append((task.name, task.target, task.machine, *numbers))
    header = ("task", "target", "machine", "calls", "weight", "trials", "failed", "default", "best", "gain", "GFLOP/s")
    return Table(header, tuple(rows), 3)


def intensity(row: KernelRow) -> float | None:
    """Returns the operations per moved byte."""
    return row.flops / row.moved_bytes if row.flops and row.moved_bytes else None


def speed(row: KernelRow) -> float | None:
    """Returns GFLOP/s."""
    return row.flops / row.seconds / 1e9 if row.flops and row.seconds else None


def attainable(roofline: Roofline, row: KernelRow) -> float | None:
    """Returns the GFLOP/s that the machine allows."""
    if roofline.peaks is None or not row.flops or not row.moved_bytes:
        return None
    calls = max(row.calls, 1)
    return row.flops / calls / roofline.peaks.seconds(row.flops // calls, row.moved_bytes // calls) / 1e9


def time_text(seconds: float | None) -> str:
    """Returns text such as `12.3 us`, or `-` for None."""
    if seconds is None:
        return "-"
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _size(number: int | None) -> str:
    return "?" if number is None else bytes_text(number)


def _scaled(number: int | None, unit: float) -> str:
    return "-" if number is None else f"{number / unit:.4g}"


def _number(number: float | None) -> str:
    return "-" if number is None else f"{number:.4g}"
