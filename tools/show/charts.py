"""Charts as SVG, with a title and a description for screen readers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape

from weft.support.names import one_line
from weft.tools.show.report import Roofline, SearchReport, TaskReport
from weft.tools.show.tables import attainable, intensity, speed, time_text

_WIDTH, _HEIGHT = 760, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 16, 48


def roofline_chart(roofline: Roofline, name: str) -> str:
    """Returns speed over arithmetic intensity, on logarithmic axes: limits as lines, kernels as numbered points, filled
    if measured. Empty without peaks, or without a kernel that computes."""
    peaks = roofline.peaks
    points = [
        (number, row.names[0], x, speed(row), limit)
        for number, row in enumerate(roofline.rows, 1)
        if (x := intensity(row)) is not None and (limit := attainable(roofline, row)) is not None
    ]
    if peaks is None or not points:
        return ""
    ridge = peaks.gflops / peaks.memory
    xs = [x for _, _, x, _, _ in points]
    low_x, high_x = _decades(min([*xs, ridge / 8]), max([*xs, ridge * 4]))
    ys = [y for _, _, _, reached, limit in points for y in (reached, limit) if y]
    low_y, high_y = _decades(min([*ys, peaks.memory * low_x]), peaks.gflops * 1.5)
    across, up = _scale(low_x, high_x, _LEFT, _WIDTH - _RIGHT), _scale(low_y, high_y, _HEIGHT - _BOTTOM, _TOP)
    parts = [*_axes(across, up, (low_x, high_x), (low_y, high_y), ("FLOP per byte", "GFLOP/s"))]
    for bandwidth, place in ((peaks.cache, "cache"), (peaks.memory, "memory")):
        start, corner = max(low_x, low_y / bandwidth), min(peaks.gflops / bandwidth, high_x)
        y0, y1 = up(start * bandwidth), up(corner * bandwidth)
        parts.append(f'<path class="roof {place}" d="M{across(start):.1f} {y0:.1f}L{across(corner):.1f} {y1:.1f}"/>')
        parts.append(_text(across(start) + 28, y0 - 2, f"{place} {bandwidth:.4g} GB/s", "note"))
    top = up(peaks.gflops)
    first = across(max(peaks.gflops / peaks.cache, low_x))
    parts.append(f'<path class="roof" d="M{first:.1f} {top:.1f}L{across(high_x):.1f} {top:.1f}"/>')
    parts.append(_text(across(high_x) - 4, top - 7, f"{peaks.gflops:.4g} GFLOP/s", "note end"))
    for number, kernel, x, reached, limit in points:
        y = limit if reached is None else reached
        state = f"at most {limit:.4g} GFLOP/s" if reached is None else f"{reached:.4g} of {limit:.4g} GFLOP/s"
        hover = f"<title>{_escape(f'{number}: {kernel}, {x:.4g} FLOP per byte, {state}')}</title>"
        kind = "limit" if reached is None else "measured"
        parts.append(f'<g>{hover}<circle class="{kind}" cx="{across(x):.1f}" cy="{up(y):.1f}" r="5"/>')
        parts.append(f"{_text(across(x) + 8, up(y) + 4, str(number), 'mark')}</g>")
    timed = "measured speeds" if any(speed(row) for row in roofline.rows) else "the speeds that the limits allow"
    about = f"{len(points)} kernel{'s' * (len(points) != 1)} with {timed}; the table has the numbers."
    return _svg(parts, f"Roofline of {name}", about)


def convergence_chart(task: TaskReport) -> str:
    """Returns the times of trials, the minimum so far, and the time of the default schedule."""
    measured = [(at, trial.seconds) for at, trial in enumerate(task.trials, 1) if trial.seconds is not None]
    if not measured:
        return ""
    times = [seconds for _, seconds in measured]
    count = max(len(task.trials), 2)
    # Slow trials would compress the range of the fast ones.
    low, high = min(times) * 0.9, min(max(times) * 1.05, min(times) * 20)
    across, up = _linear(1, count, _LEFT, _WIDTH - _RIGHT), _scale(low, high, _HEIGHT - _BOTTOM, _TOP)
    parts = [_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 10, "trial", "label middle")]
    for seconds in _ticks(low, high):
        parts.append(f'<path class="grid" d="M{_LEFT} {up(seconds):.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(_text(_LEFT - 8, up(seconds) + 4, time_text(seconds), "note end"))
    for at in sorted({1, *(round(count * part / 4) for part in range(1, 5))}):
        parts.append(_text(across(at), _HEIGHT - _BOTTOM + 18, str(at), "note middle"))
    if (default := task.default_seconds) is not None and default <= high:
        parts.append(f'<path class="default" d="M{_LEFT} {up(default):.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(_text(_WIDTH - _RIGHT - 4, up(default) - 6, f"default {time_text(default)}", "note end"))
    path, best = "", math.inf
    for at, seconds in measured:
        if seconds < best:
            corner, level = f"{across(at):.1f}", f"{up(min(seconds, high)):.1f}"
            path += f"H{corner}V{level}" if path else f"M{corner} {level}"
            best = seconds
        hover = f"<title>trial {at}: {time_text(seconds)}</title>"
        parts.append(
            f'<circle class="trial" cx="{across(at):.1f}" cy="{up(min(seconds, high)):.1f}" r="3">{hover}</circle>'
        )
    parts.append(f'<path class="best" d="{path}H{_WIDTH - _RIGHT}"/>')
    for at, trial in enumerate(task.trials, 1):
        if trial.failure:
            x, y = across(at), _TOP + 6
            cross = f"M{x - 4:.1f} {y - 4}l8 8m0 -8l-8 8"
            parts.append(
                f'<path class="failed" d="{cross}"><title>trial {at} failed: {_escape(trial.failure)}</title></path>'
            )
    failed = sum(bool(trial.failure) for trial in task.trials)
    about = f"{len(task.trials)} trials, {failed} failed; the fastest takes {time_text(best)}"
    about += "." if task.default_seconds is None else f", the default schedule {time_text(task.default_seconds)}."
    about += f" Slower ones than {time_text(high)} are drawn at that height." if max(times) > high else ""
    return _svg(parts, f"Convergence of {task.name}", about)


def weight_chart(report: SearchReport) -> str:
    weights = [(task.name, task.weight) for task in report.tasks if task.weight]
    total = sum(weight for _, weight in weights)
    if not total:
        return ""
    bar, left = 26, 210
    parts: list[str] = []
    for at, (name, weight) in enumerate(weights):
        y, width = _TOP + at * bar, max((_WIDTH - left - 90) * weight / total, 1)
        parts.append(_text(left - 10, y + 15, _cut(name), "label end"))
        parts.append(f'<rect class="bar" x="{left}" y="{y}" width="{width:.1f}" height="{bar - 8}"/>')
        parts.append(_text(left + width + 8, y + 15, f"{weight / total:.0%}", "note"))
    about = ", ".join(f"{name} {weight / total:.0%}" for name, weight in weights)
    return _svg(parts, "Weights of the tasks", about, _TOP * 2 + bar * len(weights))


def _svg(parts: Sequence[str], title: str, about: str, height: int = _HEIGHT) -> str:
    label = _escape(f"{title}: {about}")
    head = f'<svg class="chart" role="img" viewBox="0 0 {_WIDTH} {height}" aria-label="{label}">'
    return f"{head}{''.join(parts)}</svg>"


def _axes(
    across: Callable[[float], float],
    up: Callable[[float], float],
    xs: tuple[float, float],
    ys: tuple[float, float],
    names: tuple[str, str],
) -> Iterator[str]:
    for x in _powers(*xs):
        yield f'<path class="grid" d="M{across(x):.1f} {_TOP}V{_HEIGHT - _BOTTOM}"/>'
        yield _text(across(x), _HEIGHT - _BOTTOM + 18, f"{x:g}", "note middle")
    for y in _powers(*ys):
        yield f'<path class="grid" d="M{_LEFT} {up(y):.1f}H{_WIDTH - _RIGHT}"/>'
        yield _text(_LEFT - 8, up(y) + 4, f"{y:g}", "note end")
    yield _text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, names[0], "label middle")
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    yield f'<text class="label middle" transform="translate(16 {middle:.0f}) rotate(-90)">{names[1]}</text>'


def _powers(low: float, high: float) -> list[float]:
    return [10.0**power for power in range(round(math.log10(low)), round(math.log10(high)) + 1)]


def _ticks(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low > 4 else (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
    return [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]


def _decades(low: float, high: float) -> tuple[float, float]:
    return 10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high))


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    linear = _linear(math.log(low), math.log(high), start, end)
    return lambda value: linear(math.log(value))


def _linear(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    return lambda value: start + (end - start) * (value - low) / ((high - low) or 1.0)


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{_escape(text)}</text>'


def _cut(text: str, longest: int = 28) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _escape(text: str) -> str:
    return escape(one_line(text))
