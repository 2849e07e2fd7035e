"""Reports on the kernels of a model: `lib.report()`, and with times `lib.profile("main", x)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from weft.support.columns import WIDTH, bytes_text, fitted_columns
from weft.support.shown import ShownAsText

_CLOCK: Final = "or the clock was slower while the peaks were measured"
_NEAR: Final = f"""\
peak above 100%: bytes count as from L2, or from memory if they exceed it; some of
these were in a nearer cache, {_CLOCK}"""
_CHEAP: Final = f"""\
peak above 100%: the peak is that of multiply-adds of float32; products of 8 or 16
bits are cheaper, and Winograd convolutions count as the direct ones,
{_CLOCK}"""


@dataclass(frozen=True)
class KernelRow:
    """A kernel within one call."""

    symbol: str
    names: tuple[str, ...]
    """Functions of the program with this kernel."""
    holds: tuple[str, ...]
    """Operators that it computes."""
    calls: int
    constant_bytes: int
    """Of its constant operands."""
    flops: int | None = None
    """Floating-point operations; None if they depend on unknown extents."""
    moved_bytes: int | None = None
    """Lower bound of the bytes read and written."""
    seconds: float | None = None
    """Of all its calls together, once measured."""
    flops_formula: str = ""
    """`flops` in terms of the symbols of the function, unless it is a number."""
    bytes_formula: str = ""
    versions: tuple[str, ...] = ()
    """Symbols of versions of the kernel for few iterations, one of which a call may run in its place."""

    @property
    def title(self) -> str:
        return self.names[0] + (f" (+{len(self.names) - 1})" if len(self.names) > 1 else "")


@dataclass(frozen=True)
class MachinePeaks:
    gflops: float
    """10^9 operations per second on 32-bit floats."""
    memory: float
    """GB/s of memory."""
    cache: float
    """GB/s of L2."""
    cache_bytes: int
    """L2 of all threads together."""

    def seconds(self, flops: int, moved_bytes: int) -> float:
        bandwidth = self.cache if moved_bytes <= self.cache_bytes else self.memory
        return max(flops / (self.gflops * 1e9), moved_bytes / (bandwidth * 1e9))


class ReportSource(Protocol):
    def functions(self) -> Sequence[str]: ...

    def rows(self, name: str, shapes: Mapping[str, Sequence[int] | int] | None) -> Sequence[KernelRow]: ...

    def temporary_bytes(self, name: str, shapes: Mapping[str, Sequence[int] | int] | None) -> int | None: ...

    def temporary_formula(self, name: str) -> str:
        """In terms of the symbols; empty if unknown."""
        ...

    def registered(self, name: str) -> Sequence[str]: ...

    def peaks(self) -> MachinePeaks | None: ...


@dataclass(frozen=True)
class Report(ShownAsText):
    """`print` shows a table of kernels."""

    function: str
    rows: tuple[KernelRow, ...]
    temporary_bytes: int | None = None
    seconds: float | None = None
    """Of the measured call."""
    peaks: MachinePeaks | None = None
    """If times were measured."""
    temporary_formula: str = ""
    """In terms of the symbols of the function, unless it is a number."""
    registered: tuple[str, ...] = ()
    """Functions whose time is spent between kernels."""

    def timed(self, seconds: Mapping[str, float], calls: Mapping[str, int], total: float) -> Report:
        def measured(row: KernelRow) -> KernelRow:
            symbols = (row.symbol, *row.versions)
            spent, count = (sum(found.get(symbol, 0) for symbol in symbols) for found in (seconds, calls))
            return replace(row, seconds=float(spent), calls=int(count))

        return replace(self, rows=tuple(map(measured, self.rows)), seconds=total)

    def share_of_peak(self, row: KernelRow) -> float | None:
        """The lower bound of the time, from arithmetic and traffic, over the measured one."""
        if self.peaks is None or not row.seconds or not row.calls or row.flops is None or row.moved_bytes is None:
            return None
        return self.peaks.seconds(row.flops // row.calls, row.moved_bytes // row.calls) * row.calls / row.seconds

    def __str__(self) -> str:
        return self._timed_text(self.seconds) if self.seconds is not None else self._text()

    def _text(self) -> str:
        lines = [["kernel", "calls", "constants", "MFLOP", "MB", "holds"]]
        for row in self.rows:
            flops = f"{row.flops_formula} FLOP" if row.flops_formula else _millions(row.flops)
            moved = f"{row.bytes_formula} B" if row.bytes_formula else _millions(row.moved_bytes)
            cells = [row.title, str(row.calls), bytes_text(row.constant_bytes), flops, moved]
            lines.append([*cells, ", ".join(row.holds)])
        return f"{self._title()}\n{fitted_columns(lines, (0, 5), WIDTH)}{self._outside()}"

    def _timed_text(self, seconds: float) -> str:
        """Kernels of less than half a percent share a line."""
        lines = [["kernel", "calls", "MFLOP", "ms", "part", "GFLOP/s", "GB/s", "peak"]]
        folded = [row for row in self.rows if _percent(row.seconds or 0.0, seconds) == "0%"]
        folded = folded if len(folded) > 1 else []
        lines += [self._cells(row, seconds) for row in self.rows if row not in folded]
        if folded:
            share = _percent(spent := sum(row.seconds or 0.0 for row in folded), seconds)
            calls = sum(row.calls for row in folded)
            lines.append([f"{len(folded)} kernels of 0% each", str(calls), "", _ms(spent), share, "", "", ""])
        rest = max(seconds - sum(row.seconds or 0.0 for row in self.rows), 0.0)
        if _percent(rest, seconds) != "0%":
            lines.append(["between kernels", "", "", _ms(rest), _percent(rest, seconds), "", "", ""])
        known = [row.flops for row in self.rows if row.flops is not None]
        flops = _millions(sum(known)) if len(known) == len(self.rows) else "-"
        rate = _rate(sum(known), seconds) if len(known) == len(self.rows) else "-"
        lines.append(["total", str(sum(row.calls for row in self.rows)), flops, _ms(seconds), "", rate, "", ""])
        notes = self._outside()
        above = [row for row in self.rows if (self.share_of_peak(row) or 0.0) > 1.005]
        for reason in dict.fromkeys(_CHEAP if self._is_bound_by_arithmetic(row) else _NEAR for row in above):
            notes += f"\n{reason}"
        return f"{self._title()}\n{fitted_columns(lines, (0,), WIDTH)}{notes}"

    def _is_bound_by_arithmetic(self, row: KernelRow) -> bool:
        if self.peaks is None or row.flops is None or row.moved_bytes is None:
            return False
        return self.peaks.seconds(row.flops, 0) > self.peaks.seconds(0, row.moved_bytes)

    def _title(self) -> str:
        size = self.temporary_formula and f"{self.temporary_formula} B"
        size = size if self.temporary_bytes is None else bytes_text(self.temporary_bytes)
        memory = f", {size} of temporaries" if size else ""
        title = f"@{self.function}: {len(self.rows)} kernel{'s' * (len(self.rows) != 1)}{memory}"
        if self.peaks is not None and self.seconds is not None:
            title += (
                f"\npeaks {self.peaks.gflops:.4g} GFLOP/s, {self.peaks.memory:.4g} GB/s of memory, "
                f"{self.peaks.cache:.4g} GB/s of cache"
            )
        return title

    def _outside(self) -> str:
        return f"\nregistered functions, between kernels: {', '.join(self.registered)}" if self.registered else ""

    def _cells(self, row: KernelRow, total: float) -> list[str]:
        seconds, share = row.seconds or 0.0, self.share_of_peak(row)
        return [
            row.title,
            str(row.calls),
            _millions(row.flops),
            _ms(seconds),
            _percent(seconds, total),
            _rate(row.flops, seconds),
            _rate(row.moved_bytes, seconds),
            "-" if share is None else f"{share:.0%}",
        ]


def report_from(source: ReportSource, name: str, shapes: Mapping[str, Sequence[int] | int] | None) -> Report:
    rows, size = tuple(source.rows(name, shapes)), source.temporary_bytes(name, shapes)
    formula = source.temporary_formula(name) if size is None else ""
    return Report(name, rows, size, temporary_formula=formula, registered=tuple(source.registered(name)))


def _percent(seconds: float, total: float) -> str:
    return f"{seconds / total:.0%}" if total else "-"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.4f}"


def _millions(number: int | None) -> str:
    return "-" if number is None else f"{number / 1e6:.4g}"


def _rate(number: int | None, seconds: float) -> str:
    return f"{number / seconds / 1e9:.4g}" if number is not None and seconds else "-"
