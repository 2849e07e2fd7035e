"""Index maps on a box of indices: where they take it, whether two indices meet, what they miss, and the way back.

`f: (n, c) -> (n, c floordiv 4, c mod 4)` on 3 x 30 takes the box into a box of 3 x 8 x 4, keeps indices apart, misses
`4 * co + ci >= 30`, and is undone by `(n, co, ci) -> (n, 4 * co + ci)`. The questions are exact, by integer sets;
extents may be symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import ascii_lowercase
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineMap

from weft.analysis.accesses import is_symbol, range_of
from weft.analysis.index import Index, Quotient, Remainder
from weft.analysis.layout_inverse import are_determined, inverse_by_digits
from weft.analysis.sets import NotProved, Point, Row, System, Variable, sample_point, within_budget
from weft.dialects.intervals import Interval

if TYPE_CHECKING:
    import islpy as isl

MAX_PIECES = 16
"""More parts than that of what a map misses are not worth a nest each."""


@dataclass(frozen=True)
class Piece:
    """New indices that satisfy `positives >= 0` and `zeros == 0`, and lie in the box of `spans`."""

    positives: tuple[Index, ...]
    zeros: tuple[Index, ...]
    spans: tuple[tuple[int, int] | None, ...]
    """First and last value in each dimension; None where they depend on symbols."""


class LayoutMap:
    """An index map on the box `0 <= index < extents`, and its answers. Raises `NotProved` past the budget of sets."""

    def __init__(self, map_: AffineMap, extents: Sequence[Index]) -> None:
        self.map = map_
        self.old_extents = tuple(extents)
        self.inputs: tuple[SSAValue, ...] = tuple(Block(arg_types=[IndexType()] * len(extents)).args)
        """Stand for the old indices; they are in no function."""
        self.outputs: tuple[SSAValue, ...] = tuple(Block(arg_types=[IndexType()] * len(map_.results)).args)
        """Stand for the new indices."""
        self.symbols = list(dict.fromkeys(value for extent in extents for value in extent.values()))
        self.results = tuple(self.applied([Index.of(value) for value in self.inputs], self._range))

    def applied(self, indices: Sequence[Index], ranges: Callable[[SSAValue], Interval] = range_of) -> list[Index]:
        """The new indices of something at the old `indices`, simplified by ranges."""
        mapping = dict(zip(self.inputs, indices, strict=True))
        dims = [Index.of(value) for value in self.inputs]
        return [Index.of_expr(e, dims).substitute(mapping, ranges).simplified(ranges) for e in self.map.results]

    def at(self, index: Sequence[int]) -> list[int]:
        """Where the map takes one index: the map itself, without any simplification."""
        return list(self.map.eval(index, ()))

    def really_missed(self, index: Sequence[int]) -> bool:
        """Whether no old index is taken to a new one, by the way back where there is one; asked of static extents."""
        back = self.inverse()
        if back is None or self.symbols:
            return True
        values = dict(zip(self.outputs, index, strict=True))
        old = [expression.evaluate(values.__getitem__) for expression in back]
        inside = all(0 <= i < extent.constant for i, extent in zip(old, self.old_extents, strict=True))
        return not inside or self.at(old) != list(index)

    def _range(self, value: SSAValue) -> Interval:
        if value in self.inputs:
            extent = self.old_extents[self.inputs.index(value)]
            return 0, extent.constant - 1 if extent.is_constant else None
        return range_of(value)

    def _box(self, system: System, values: Sequence[SSAValue], extents: Sequence[Index], role: str = "") -> None:
        """Each value lies from 0 to its extent."""
        for symbol in self.symbols:
            system.declare(symbol, *range_of(symbol))
        for value, extent in zip(values, extents, strict=True):
            variable: Variable = (role, value) if role else value
            if extent.is_constant:
                system.declare(variable, 0, extent.constant - 1)
            else:
                system.declare(variable, 0, None)
                system.less(Row({variable: 1}, 0), system.row(extent, lambda v: v))
            if system.bounds[variable] != (0, 0):
                system.positives.append(Row({variable: 1}, 0))

    def _mapped(self) -> System:
        """Old and new indices that belong together."""
        system = System()
        self._box(system, self.inputs, self.old_extents)
        for output, index in zip(self.outputs, self.results, strict=True):
            system.bounds.setdefault(output, (None, None))
            system.equal(Row({output: 1}, 0), system.row(index, lambda v: v))
        return system

    def collision(self) -> tuple[list[int], list[int]] | None:
        """Two old indices that the map takes to one new index; None when there are none."""
        if are_determined(self.inputs, self.results, self._range):
            return None
        for dimension in range(len(self.inputs)):
            system = System()
            rows: list[list[Row]] = []
            for role in ("first", "second"):
                self._box(system, self.inputs, self.old_extents, role)

                def name(value: SSAValue, role: str = role) -> Variable:
                    return (role, value) if value in self.inputs else value

                rows.append([system.row(index, name) for index in self.results])
            for left, right in zip(*rows, strict=True):
                system.equal(left, right)
            moved = self.inputs[dimension]
            system.less(Row({("first", moved): 1}, 0), Row({("second", moved): 1}, 0))
            point = system.find_point()
            if point is not None:
                self._require_free()
                first, second = ([point.get((role, v), 0) for v in self.inputs] for role in ("first", "second"))
                return first, second
        return None

    def _require_free(self) -> None:
        for value in self.symbols:
            stands_in = isinstance(value.owner, Block) and value.owner.parent is None
            if not stands_in and not is_symbol(value):
                raise NotProved(f"it depends on what %{value.name_hint or '?'} is")

    def negative(self) -> tuple[list[int], int] | None:
        """An old index that the map takes below zero, and in which dimension; None when there is none."""
        for dimension, index in enumerate(self.results):
            low = index.range(self._range)[0]
            if low is not None and low >= 0:
                continue
            system = System()
            self._box(system, self.inputs, self.old_extents)
            system.less(system.row(index, lambda v: v), Row({}, 0))
            point = system.find_point()
            if point is not None:
                self._require_free()
                return [point.get(value, 0) for value in self.inputs], dimension
        return None

    @cached_property
    def _limits(self) -> list[tuple[int | None, int | None]]:
        """First and last value in each new dimension."""
        known = [index.range(self._range) if _is_exact(index) else (None, None) for index in self.results]
        if all(low is not None and high is not None for low, high in known):
            return known
        image = self._image()
        spans = _spans(image, len(self.symbols), len(self.outputs))
        return [(None, None) if span is None else span for span in spans]

    @cached_property
    def new_extents(self) -> tuple[Index, ...] | None:
        """The extent of each new dimension; None when one is no expression in the old extents."""
        result: list[Index] = []
        for (_, high), index in zip(self._limits, self.results, strict=True):
            top = Index({}, high) if high is not None else self._top(index)
            if top is None:
                return None
            result.append(top + 1)
        return tuple(result)

    def _top(self, index: Index) -> Index | None:
        """The greatest value of an index over symbolic extents, where it grows with each of its values."""
        result = Index({}, index.constant)
        for atom, factor in index.terms.items():
            low, high = Index({atom: 1}).range(self._range)
            if factor < 0:
                if low is None:
                    return None
                result += low * factor
            elif high is not None:
                result += high * factor
            elif isinstance(atom, SSAValue) and atom in self.inputs:
                result += (self.old_extents[self.inputs.index(atom)] - 1) * factor
            elif isinstance(atom, Quotient) and (inner := self._top(atom.numerator)) is not None:
                result += (inner // atom.divisor) * factor
            else:
                return None
        return result

    def _image(self) -> isl.Set:
        return self._mapped().projection([*self.symbols, *self.outputs])

    def _new_box(self) -> isl.Set:
        system = System()
        self._box(system, self.outputs, self._known_extents())
        return system.projection([*self.symbols, *self.outputs])

    def _known_extents(self) -> tuple[Index, ...]:
        if self.new_extents is None:
            raise NotProved("an extent of the new box is no expression in the old ones")
        return self.new_extents

    def count(self) -> int | None:
        """How many new indices no old one is taken to, when extents are static and no two old ones meet."""
        old = new = 1
        for extent in self.old_extents:
            old *= extent.constant if extent.is_constant else 0
        for extent in self._known_extents():
            new *= extent.constant if extent.is_constant else 0
        return None if self.symbols else new - old

    def missed(self) -> tuple[Piece, ...]:
        """The new indices that no old one is taken to, in parts. Asked when no two old ones meet."""
        if self.count() == 0:
            return ()
        rest = self._missed_set()
        return () if within_budget(rest.is_empty) else self._pieces(rest)

    def missed_index(self) -> list[int] | None:
        """One of the missed indices, or None."""
        if self.count() == 0:
            return None
        rest = self._missed_set()
        if within_budget(rest.is_empty):
            return None
        self._require_free()
        variables: list[Variable] = [*self.symbols, *self.outputs]
        point = _smallest(rest, variables)
        return [point[output] for output in self.outputs]

    def _missed_set(self) -> isl.Set:
        box, image = self._new_box(), self._image()
        return within_budget(lambda: box.subtract(image).coalesce())

    def image(self) -> Piece | None:
        """The new indices that some old one is taken to; None when they are no conjunction of conditions."""
        pieces = self._pieces(within_budget(lambda: self._image().coalesce()), in_spans=False)
        return pieces[0] if len(pieces) == 1 else None

    def _pieces(self, points: isl.Set, in_spans: bool = True) -> tuple[Piece, ...]:
        """The parts of a set, by their conditions besides those of their spans, or of the new box."""
        box = self._new_box()
        parts = within_budget(lambda: points.compute_divs().coalesce()).get_basic_sets()
        if len(parts) > MAX_PIECES:
            raise NotProved(f"what the index map misses falls into {len(parts)} parts")
        return tuple(self._piece(part, box, in_spans) for part in parts)

    def _piece(self, part: isl.BasicSet, box: isl.Set, in_spans: bool) -> Piece:
        import islpy as isl

        spans = _spans(isl.Set.from_basic_set(part), len(self.symbols), len(self.outputs))
        known = box
        for at, span in enumerate(spans):
            if span is not None and in_spans:
                place = len(self.symbols) + at
                known = known.lower_bound_val(isl.dim_type.set, place, span[0])
                known = known.upper_bound_val(isl.dim_type.set, place, span[1])
        simpler = within_budget(lambda: isl.Set.from_basic_set(part).gist(known).compute_divs()).get_basic_sets()
        (basic,) = simpler if len(simpler) == 1 else (part,)
        positives: list[Index] = []
        zeros: list[Index] = []
        for constraint in basic.get_constraints():
            index = self._of_constraint(constraint)
            (zeros if constraint.is_equality() else positives).append(index)
        return Piece(tuple(positives), tuple(zeros), tuple(spans))

    def _of_constraint(self, constraint: isl.Constraint) -> Index:
        return self._index_of(constraint.get_aff())

    def _index_of(self, aff: isl.Aff, scale: int = 1) -> Index:
        """`scale * aff` as an index over symbols and new indices. The scale makes all coefficients whole."""
        import islpy as isl

        kind = isl.dim_type
        values = [*self.symbols, *self.outputs]

        def whole(value: isl.Val) -> int:
            scaled = value.mul(isl.Val(scale))
            if not scaled.is_int():
                raise NotProved("a coefficient is a fraction")
            return scaled.to_python()

        result = Index({}, whole(aff.get_constant_val()))
        for at, value in enumerate(values):
            factor = whole(aff.get_coefficient_val(kind.in_, at))
            result += Index({value: factor})
        for at in range(aff.dim(kind.div)):
            factor = whole(aff.get_coefficient_val(kind.div, at))
            if factor:
                inner = aff.get_div(at)
                divisor: int = inner.get_denominator_val().to_python()
                result += (self._index_of(inner, divisor) // divisor) * factor
        return _with_remainders(result)

    def inverse(self) -> tuple[Index, ...] | None:
        """The old indices over `outputs`, right for the new indices that an old one is taken to. Asked when no two old
        ones meet; None when no single expression says it."""
        told = self.inverse_by_digits()
        return self._inverse_by_sets() if told is None else told

    def inverse_by_digits(self) -> tuple[Index, ...] | None:
        """The inverse where the new indices are numbers whose digits are the old ones: then no two old ones meet."""
        if self.new_extents is None:
            return None
        return inverse_by_digits(self.results, self.outputs, self.inputs, self._range, self._range_of_output)

    def _range_of_output(self, value: SSAValue) -> Interval:
        if value not in self.outputs:
            return range_of(value)
        extent = self._known_extents()[self.outputs.index(value)]
        return 0, extent.constant - 1 if extent.is_constant else None

    def _inverse_by_sets(self) -> tuple[Index, ...] | None:
        import islpy as isl

        kept: list[Variable] = [*self.symbols, *self.outputs, *self.inputs]
        count = len(self.symbols) + len(self.outputs)
        points = self._mapped().projection(kept)

        def inverted() -> isl.PwMultiAff:
            both = isl.Map.from_range(points).move_dims(isl.dim_type.in_, 0, isl.dim_type.out, 0, count)
            return both.as_pw_multi_aff().coalesce()

        way_back = within_budget(inverted)
        result: list[Index] = []
        for at in range(len(self.inputs)):
            pieces: list[tuple[isl.Set, isl.Aff]] = within_budget(lambda at=at: way_back.get_pw_aff(at)).get_pieces()
            if len(pieces) != 1:
                return None
            result.append(self._index_of(pieces[0][1]))
        return tuple(result)

    def names(self, hints: Sequence[str | None]) -> list[str]:
        """Names for new indices: that of an old index that stays as it is, else `c_o` and `c_i`, or `c_a`, `c_b`, ...
        for parts of c, and `n_c_fused` for several indices together."""
        used = [sorted(expr.used_dims()) for expr in self.map.results]
        bases = ["_".join(hints[at] or "v" for at in dims) or "v" for dims in used]
        names: list[str] = []
        for at, (base, dims) in enumerate(zip(bases, used, strict=True)):
            parts, before = bases.count(base), bases[:at].count(base)
            name = base if len(dims) < 2 else f"{base}_fused"
            suffix = "" if parts == 1 else "_" + ("oi" if parts == 2 else ascii_lowercase)[before % 26]
            names.append(name + suffix)
        return names


def substituted(indices: Sequence[Index], mapping: Mapping[SSAValue, Index]) -> list[Index]:
    """Indices over other values, simplified by their ranges."""
    return [index.substitute(mapping, range_of).simplified(range_of) for index in indices]


def _is_exact(index: Index) -> bool:
    """Whether each value occurs once, so that the interval of the index is taken whole at its ends."""
    values = list(index.values())
    return len(values) == len(set(values)) and not any(
        isinstance(atom, Remainder) and not atom.numerator.single_value for atom in index.terms
    )


def _smallest(points: isl.Set, variables: Sequence[Variable]) -> Point:
    """The lexicographically least point of a set that is not empty, or any where there is no least."""
    import islpy as isl

    try:
        return sample_point(within_budget(points.lexmin), variables)
    except (NotProved, isl.Error):
        return sample_point(points, variables)


def _spans(points: isl.Set, skip: int, count: int) -> list[tuple[int, int] | None]:
    """First and last value of `count` dimensions after the first `skip`; None where there is no bound."""
    if within_budget(points.is_empty):
        return [None] * count
    spans: list[tuple[int, int] | None] = []
    for at in range(skip, skip + count):
        low, high = (within_budget(lambda f=f, at=at: f(at)) for f in (points.dim_min_val, points.dim_max_val))
        spans.append((low.to_python(), high.to_python()) if low.is_int() and high.is_int() else None)
    return spans


def _with_remainders(index: Index) -> Index:
    """`x - c * (x floordiv c)` is `x mod c`."""
    for atom, factor in index.terms.items():
        if not isinstance(atom, Quotient) or factor % atom.divisor:
            continue
        times = -factor // atom.divisor
        without = index - Index({atom: factor}) - atom.numerator * times
        if len(without.terms) + 1 < len(index.terms):
            return _with_remainders(without + Index({Remainder(atom.numerator, atom.divisor): times}))
    return index
