"""Counts of what passes did, as LLVM's statistics: declared beside the pass, raised where it happens.

    HOISTED = Statistic("tir-hoist-checks", "guards-hoisted", "guards that are tested once, before their loop")
    ...
    HOISTED.add()

`weft-opt --pass-statistics` prints those of the passes that ran. A count is of the process: `Counts` tells what was
added since it was made.
"""

from __future__ import annotations

from collections.abc import Iterable

_DECLARED: dict[str, list[Statistic]] = {}
"""Pass -> its statistics."""


class Statistic:
    """A count that the pass called `pass_name` keeps."""

    def __init__(self, pass_name: str, name: str, description: str) -> None:
        self.pass_name, self.name, self.description = pass_name, name, description
        self.value = 0
        _DECLARED.setdefault(pass_name, []).append(self)

    def add(self, count: int = 1) -> None:
        """Raise the count."""
        self.value += count


def statistics_of(pass_name: str) -> tuple[Statistic, ...]:
    """The statistics that a pass declares; its module must have been imported."""
    return tuple(_DECLARED.get(pass_name, ()))


class Counts:
    """What statistics count from now on."""

    def __init__(self) -> None:
        self._before = {statistic: statistic.value for known in _DECLARED.values() for statistic in known}

    def table(self, passes: Iterable[str]) -> str:
        """The statistics of `passes`, a line each: count, name, meaning."""
        lines = ["Pass statistics report"]
        for name in dict.fromkeys(passes):
            rows = [(s.value - self._before.get(s, 0), s) for s in statistics_of(name)]
            if rows:
                lines.append(f"'{name}'")
                lines.extend(f"  (S) {count:6} {s.name} - {s.description}" for count, s in rows)
        if len(lines) == 1:
            lines.append("  none of the passes that ran has statistics")
        return "\n".join(lines)
