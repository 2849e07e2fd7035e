"""Statistics of passes, like LLVM's, declared next to the pass.

    HOISTED = Statistic("tir-hoist-checks", "guards-hoisted", "guards that are tested once, before their loop")
    ...
    HOISTED.add()

A statistic is global to the process.
"""

from __future__ import annotations

from collections.abc import Iterable

_DECLARED: dict[str, list[Statistic]] = {}
"""Maps a pass to its statistics."""


class Statistic:
    def __init__(self, pass_name: str, name: str, description: str) -> None:
        self.pass_name, self.name, self.description = pass_name, name, description
        self.value = 0
        _DECLARED.setdefault(pass_name, []).append(self)

    def add(self, count: int = 1) -> None:
        self.value += count


def statistics_of(pass_name: str) -> tuple[Statistic, ...]:
    """The module of the pass must have been imported."""
    return tuple(_DECLARED.get(pass_name, ()))


class Counts:
    """Increments of all statistics since its creation."""

    def __init__(self) -> None:
        self._before = {statistic: statistic.value for known in _DECLARED.values() for statistic in known}

    def table(self, passes: Iterable[str]) -> str:
        """Returns one line per statistic: count, name, meaning."""
        lines = ["Pass statistics report"]
        for name in dict.fromkeys(passes):
            rows = [(s.value - self._before.get(s, 0), s) for s in statistics_of(name)]
            if rows:
                lines.append(f"'{name}'")
                lines.extend(f"  (S) {count:6} {s.name} - {s.description}" for count, s in rows)
        if len(lines) == 1:
            lines.append("  none of the passes that ran has statistics")
        return "\n".join(lines)
