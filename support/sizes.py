"""Sizes of symbols as text: `s=1,128`, `b=1 s=1,128` (all combinations), with weights `s=1:0.5,128:0.5`."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from weft.support.errors import CompileError

Sizes: TypeAlias = Mapping[str, int]
"""Values of some symbols."""
SizesLike: TypeAlias = "str | Mapping[str, int | Sequence[int]] | Sequence[Mapping[str, int | Sequence[int]]]"
"""Text, the sizes of each symbol, or a sequence of these."""
MOST_VERSIONS: Final = 64
"""The maximum number of sizes with versions, each of which is compiled."""
AUTO: Final = "auto"
_SIZE: Final = re.compile(r"(\d+)(?::(\d+(?:\.\d*)?|\.\d+))?\Z", re.ASCII)


@dataclass(frozen=True)
class WeightedSizes:
    """Sizes, and the share of calls with them."""

    sizes: Sizes
    weight: float = 1.0


@dataclass(frozen=True)
class OnUse:
    """Versions that are built on use."""

    versions: int = 8
    """The maximum number of versions of a function."""
    is_in_background: bool = False
    """Whether calls use the general function while a version is built."""

    @staticmethod
    def parse(text: str) -> OnUse | None:
        """Parse `auto`, `auto versions=4` or `auto background`; None for text without `auto`. Raises `CompileError`."""
        first, *words = text.split() or ("",)
        if first != AUTO:
            return None
        found = OnUse()
        for word in words:
            name, _, number = word.partition("=")
            if word == "background":
                found = OnUse(found.versions, True)
            elif name == "versions" and number.isdecimal() and int(number) > 0:
                found = OnUse(int(number), found.is_in_background)
            else:
                raise CompileError(f"specialize: '{AUTO}' takes 'background' and 'versions=N', got '{word}'")
        return found


def parse_sizes(text: str, what: str, *, is_weighted: bool = False) -> list[WeightedSizes]:
    """Raises `CompileError`; `what` names the option."""
    choices: dict[str, list[tuple[int, float]]] = {}
    for word in re.sub(r"\s*([=,:])\s*", r"\1", text).split():
        name, equals, values = word.partition("=")
        if not equals or not name or not values:
            raise CompileError(f"{what} takes SYMBOL=SIZE,SIZE, got '{word}'")
        if name in choices:
            raise CompileError(f"{what} gives '{name}' twice")
        choices[name] = []
        for value in values.split(","):
            found = _SIZE.match(value)
            if found is None or (found[2] and not is_weighted):
                kind = "a size of at least 0" + ", and a weight such as 128:0.5" * is_weighted
                raise CompileError(f"{what}: '{name}' takes {kind}, got '{value}'")
            choices[name].append((int(found[1]), float(found[2] or 1.0)))
    if not choices:
        raise CompileError(f"{what} takes SYMBOL=SIZE,SIZE, got '{text}'")
    return [
        WeightedSizes(
            {name: size for name, (size, _) in zip(choices, chosen, strict=True)},
            math.prod(weight for _, weight in chosen),
        )
        for chosen in itertools.product(*choices.values())
    ]


def shown_sizes(sizes: Sizes) -> str:
    return " ".join(f"{name}={size}" for name, size in sizes.items())


def versions_of(value: SizesLike, what: str = "specialize") -> tuple[Sizes, ...]:
    """Returns distinct sizes, those of more symbols first. Raises `CompileError`."""
    found: dict[tuple[tuple[str, int], ...], Sizes] = {}
    if isinstance(value, str):
        parts = [entry.sizes for entry in parse_sizes(value, what)]
    else:
        parts = [s for given in ([value] if isinstance(value, Mapping) else value) for s in _combined(given, what)]
    for sizes in parts:
        found.setdefault(tuple(sorted(sizes.items())), sizes)
    if len(found) > MOST_VERSIONS:
        raise CompileError(f"{what}: at most {MOST_VERSIONS} versions, got {len(found)}")
    return tuple(sorted(found.values(), key=lambda sizes: -len(sizes)))


def _combined(given: Mapping[str, int | Sequence[int]], what: str) -> list[Sizes]:
    choices = {name: [size] if isinstance(size, int) else list(size) for name, size in given.items()}
    if not choices or not all(choices.values()):
        raise CompileError(f"{what}: each symbol has sizes, got {dict(given)}")
    for name, sizes in choices.items():
        for size in sizes:
            if size < 0:
                raise CompileError(f"{what}: a size of '{name}' is an integer of at least 0, got {size}")
    return [dict(zip(choices, chosen, strict=True)) for chosen in itertools.product(*choices.values())]
