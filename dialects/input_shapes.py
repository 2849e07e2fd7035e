"""User-stated input shapes, unified with a program's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from weft.dialects.graph_shapes import (
    Expression,
    KnownExtent,
    ShapeError,
    lone_name,
    names_in,
    parse_extent,
    show_shape,
    substitute,
    subtract,
    sum_text,
    symbol,
)
from weft.support.errors import CompileError, did_you_mean
from weft.support.input_axes import Axis, show_axes

Range: TypeAlias = tuple[int, int]
"""Least and greatest value."""
_RENAMED: Final = "."
"""Prefix of symbols of the program that are renamed to stated names."""


@dataclass(frozen=True)
class Specialization:
    """Substitutions and bounds due to stated shapes."""

    values: Mapping[str, KnownExtent] = field(default_factory=dict[str, KnownExtent])
    """Symbol -> the extent that replaces it."""
    bounds: Mapping[Expression, Range] = field(default_factory=dict[Expression, Range])
    """Ranges of extents, in terms of the new symbols."""

    @property
    def preconditions(self) -> list[str]:
        found: list[str] = []
        for extent, (least, most) in self.bounds.items():
            text, reason = sum_text(extent), f" # its stated range is {least}..{most}"
            found += [f"{least} <= {text}{reason}"] * (least > 0) + [f"{text} <= {most}{reason}"]
        return found

    def __bool__(self) -> bool:
        return bool(self.values or self.bounds)


def unify(
    shapes: Mapping[str, Sequence[KnownExtent]], stated: Mapping[str, Sequence[Axis]], what: str = "shapes"
) -> Specialization:
    """Values and bounds of symbols in the inputs' `shapes` that follow from `stated` axes: a number replaces a symbol,
    a name renames one, and one name makes symbols equal.

    Raises `CompileError` for an unknown input, another rank, and contradictions; `what` names the stated shapes.
    """
    for name, axes in stated.items():
        if name not in shapes:
            raise CompileError(f"{what}: there is no input '{name}'{did_you_mean(name, shapes)}")
        shape = shapes[name]
        if len(axes) != len(shape):
            raise CompileError(
                f"{what}: '{name}' has {len(shape)} axes, {show_shape(shape)}, got {len(axes)}: {show_axes(axes)}"
            )
    pairs = [
        (extent, axis, f"axis {at} of '{name}'")
        for name, axes in stated.items()
        for at, (extent, axis) in enumerate(zip(shapes[name], axes, strict=True))
    ]
    renamed = {name for extent, axis, _ in pairs if axis.extent is not None and (name := lone_name(extent)) is not None}
    # A stated name denotes a program's symbol only if no axis renames it: `m x n` may swap two names.
    apart = {name: symbol(_RENAMED + name) for name in renamed}
    unifier = _Unifier(what)
    for extent, axis, place in pairs:
        unifier.state(substitute(extent, apart), axis, place)
    return unifier.solved(
        {n: n for shape in shapes.values() for e in shape for n in names_in(e)}
        | {name: _RENAMED + name for name in renamed}
    )


@dataclass
class _Unifier:
    what: str
    values: dict[str, KnownExtent] = field(default_factory=dict[str, KnownExtent])
    sources: dict[str, str] = field(default_factory=dict[str, str])
    """The axis that determined a symbol."""
    deferred: list[tuple[KnownExtent, KnownExtent, str]] = field(
        default_factory=list[tuple[KnownExtent, KnownExtent, str]]
    )
    """Equations of expressions, solved last."""
    ranges: list[tuple[KnownExtent, Range, str]] = field(default_factory=list[tuple[KnownExtent, Range, str]])

    def state(self, extent: KnownExtent, axis: Axis, place: str) -> None:
        """Add an axis of an input."""
        wanted = extent if axis.extent is None else self._extent(axis.extent, place)
        if axis.bounds is not None:
            self.ranges.append((wanted, axis.bounds, place))
        if axis.extent is None:
            return
        if isinstance(extent, int) and isinstance(wanted, int):
            if extent != wanted:
                raise CompileError(f"{self.what}: {place} is {extent} in the program, got {wanted}")
        elif (name := lone_name(extent)) is not None:
            self._bind(name, wanted, place)
        else:
            self.deferred.append((extent, wanted, place))

    def _extent(self, extent: int | str, place: str) -> KnownExtent:
        if isinstance(extent, int):
            return extent
        try:
            found = parse_extent(extent)
        except ShapeError as error:
            raise CompileError(f"{self.what}: {place}: {error}") from None
        if found is None:
            raise CompileError(f"{self.what}: {place}: an extent is a number, a name or an expression, got '?'")
        return found

    def _resolved(self, extent: KnownExtent) -> KnownExtent:
        for _ in range(len(self.values) + 1):
            known = {name: self.values[name] for name in names_in(extent) if name in self.values}
            if not known:
                return extent
            extent = substitute(extent, known)
        raise CompileError(f"{self.what}: '{_show(extent)}' is stated in terms of itself")

    def _bind(self, name: str, wanted: KnownExtent, place: str) -> None:
        known, wanted = self._resolved(symbol(name)), self._resolved(wanted)
        if known == wanted:
            return
        lone = lone_name(known)
        if lone is not None and lone not in names_in(wanted):
            self.values[lone] = wanted
            self.sources[lone] = place
        elif (other := lone_name(wanted)) is not None and other not in names_in(known):
            self.values[other] = known
            self.sources[other] = place
        else:
            giver = next((self.sources[n] for n in (name, *self.sources) if n in self.sources), "another axis")
            text = f"{_show(known)} by {giver}, but {_show(wanted)} by {place}"
            raise CompileError(f"{self.what}: '{name.removeprefix(_RENAMED)}' is {text}")

    def _decide(self, extent: KnownExtent, wanted: KnownExtent, place: str) -> None:
        """A number determines an expression's only symbol."""
        left, right = self._resolved(extent), self._resolved(wanted)
        difference = subtract(left, right)
        if difference == 0:
            return
        names = names_in(difference)
        (one, *others) = names or ("",)
        if one and not others and isinstance(right, int) and (number := _root(difference, one)) is not None:
            if number < 0:
                raise CompileError(f"{self.what}: {place} is {_show(left)} in the program, which is never {right}")
            self._bind(one, number, place)
        elif (name := lone_name(right)) is not None and isinstance(left, int):
            self._bind(name, left, place)
        else:
            raise CompileError(f"{self.what}: {place} is {_show(left)} in the program, got {_show(right)}")

    def solved(self, symbols: Mapping[str, str]) -> Specialization:
        """Values of `symbols`, named as they map, and all ranges."""
        for extent, wanted, place in self.deferred:
            self._decide(extent, wanted, place)
        bounds: dict[Expression, tuple[Range, str]] = {}
        for extent, (least, most), place in self.ranges:
            found = self._resolved(extent)
            if isinstance(found, int):
                if not least <= found <= most:
                    raise CompileError(f"{self.what}: {place} is {found}, not in its range {least}..{most}")
                continue
            (low, high), first = bounds.get(found, ((least, most), place))
            if max(low, least) > min(high, most):
                raise CompileError(
                    f"{self.what}: '{_show(found)}' is {low}..{high} by {first}, but {least}..{most} by {place}"
                )
            bounds[found] = (max(low, least), min(high, most)), first
        values = {name: self._resolved(symbol(own)) for name, own in symbols.items() if own in self.values}
        return Specialization(values, {extent: numbers for extent, (numbers, _) in bounds.items()})


def _root(difference: KnownExtent, name: str) -> int | None:
    constant, slope = (substitute(difference, {name: number}) for number in (0, 1))
    if not isinstance(constant, int) or not isinstance(slope, int) or slope == constant:
        return None
    root, rest = divmod(-constant, slope - constant)
    return root if rest == 0 and substitute(difference, {name: root}) == 0 else None


def _show(extent: KnownExtent) -> str:
    return str(extent).replace(_RENAMED, "")
