"""Index maps on a box of indices: image, injectivity, missed indices, and inverses. See docs/decisions/0007-layouts.md.

`f: (n, c) -> (n, c floordiv 4, c mod 4)` on 3 x 30 maps into a box of 3 x 8 x 4, is injective, misses `4 * co + ci
>= 30`, and has the inverse `(n, co, ci) -> (n, 4 * co + ci)`. Answers are exact, by integer sets; extents may be
symbols.

An inverse is derived from digits (`index.mixed_radix`) if possible; `x floordiv 4` and `x mod 4` are recombined. The
inverse of an access, `AccessInverse`, is the instance that touches an element: `B[v * 16 + w]` touches `e` at `(e
floordiv 16, e mod 16)`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from string import ascii_lowercase
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineMap

from weft.analysis.accesses import Conditions, is_symbol, range_of
from weft.analysis.dependence import undecided
from weft.analysis.index import Atom, Index, Quotient, RangeOf, Remainder, exprs_of, mixed_radix, quotient, remainder
from weft.analysis.questions import Question, point_text, points_that_agree
from weft.analysis.sets import NotProved, Variable, dimension_limits, index_of_aff, smallest_point, within_budget
from weft.dialects.intervals import Interval
from weft.dialects.tir import BlockOp
from weft.support.errors import Violation

if TYPE_CHECKING:
    import islpy as isl


def inverse_by_digits(
    results: Sequence[Index],
    outputs: Sequence[SSAValue],
    inputs: Sequence[SSAValue],
    range_of_input: RangeOf,
    range_of_output: RangeOf,
) -> tuple[Index, ...] | None:
    """The inputs as functions of the outputs, the values of `results`, if digits determine them."""
    solver = _Solver(set(inputs), range_of_input, range_of_output)
    for result, output in zip(results, outputs, strict=True):
        solver.read(result, Index.of(output))
    for value in inputs:
        low, high = range_of_input(value)
        if low is not None and low == high:
            solver.known[Index.of(value)] = Index({}, low)
    found = [solver.known.get(Index.of(value)) for value in inputs]
    complete = [index for index in found if index is not None]
    return tuple(complete) if len(complete) == len(found) else None


def are_determined(variables: Sequence[SSAValue], results: Sequence[Index], ranges: RangeOf) -> bool:
    """Whether `results`, which may contain other values, determine the `variables` as digits."""
    return inverse_by_digits(results, placeholders(len(results)), variables, ranges, lambda _: (None, None)) is not None


_PLACEHOLDERS: list[SSAValue] = []


def placeholders(count: int) -> tuple[SSAValue, ...]:
    while len(_PLACEHOLDERS) < count:
        _PLACEHOLDERS.extend(Block(arg_types=[IndexType()]).args)
    return tuple(_PLACEHOLDERS[:count])


class _Solver:
    def __init__(self, inputs: set[SSAValue], range_of_input: RangeOf, range_of_output: RangeOf) -> None:
        self.known: dict[Index, Index] = {}
        self.inputs = inputs
        self.range_of_input = range_of_input
        self.range_of_output = range_of_output
        self._pieces: dict[Index, dict[int, tuple[int | None, Index]]] = {}
        """Numerator -> weight -> (number of values of the piece, None for all remaining ones; the piece)."""

    def read(self, numerator: Index, value: Index) -> None:
        if numerator in self.known:
            return
        self.known[numerator] = value
        rest = value - numerator.constant
        digits: list[tuple[int, tuple[Atom, int | None, bool], int | None]] = []
        for atom, factor in numerator.terms.items():
            low, high = Index({atom: 1}).range(self.range_of_input)
            if low is None or low < 0 or (factor < 0 and high is None):
                return
            if factor < 0 and high is not None:  # -c * a is c * (high - a) minus a constant
                rest = rest + -factor * high
            digits.append((abs(factor), (atom, high, factor < 0), high))
        ordered = list(mixed_radix(digits))
        following_weights: list[int | None] = [*(weight for weight, _, _ in ordered[1:]), None]
        for (weight, _, reach), following in zip(ordered, following_weights, strict=False):
            if reach is None or weight <= reach or (following is not None and following % weight):
                return
        for (weight, (atom, high, turned), _), following in zip(ordered, following_weights, strict=False):
            digit = quotient(rest, weight, self.range_of_output)
            if following is not None:
                digit = remainder(digit, following // weight, self.range_of_output)
            self._found(atom, Index({}, high or 0) - digit if turned else digit)

    def _found(self, atom: Atom, value: Index) -> None:
        if isinstance(atom, SSAValue):
            if atom in self.inputs:
                self.known.setdefault(Index.of(atom), value)
            return
        numerator, weight, count = atom.numerator, 1, None
        inner = next(iter(numerator.terms), None)
        within = inner if inner is not None and numerator == Index({inner: 1}) else None
        if isinstance(atom, Remainder):
            count = atom.divisor
            if isinstance(within, Quotient):
                numerator, weight = within.numerator, within.divisor
        else:
            weight = atom.divisor
            if isinstance(within, Remainder) and within.divisor % weight == 0:  # (x mod 16) floordiv 4
                numerator, count = within.numerator, within.divisor // weight
        pieces = self._pieces.setdefault(numerator, {})
        pieces[weight] = (count, value)
        whole = self._joined(numerator, pieces)
        if whole is not None:
            self.read(numerator, whole)

    def _joined(self, numerator: Index, pieces: dict[int, tuple[int | None, Index]]) -> Index | None:
        low, high = numerator.range(self.range_of_input)
        if low is None or low < 0:
            return None
        weight, total = 1, Index({})
        while high is None or weight <= high:
            if weight not in pieces:
                return None
            count, piece = pieces[weight]
            total = piece * weight + total
            if count is None:
                return total
            weight *= count
        return total


MAX_PIECES = 16
"""Parts of a missed set, each of which becomes a loop nest."""


@dataclass(frozen=True)
class Piece:
    """New indices in the box of `spans` with `inequalities >= 0` and `equalities == 0`."""

    inequalities: tuple[Index, ...]
    equalities: tuple[Index, ...]
    spans: tuple[tuple[int, int] | None, ...]
    """First and last value per dimension; None if they depend on symbols."""


class LayoutMap:
    """An index map on the box `0 <= index < extents`. Methods raise `NotProved` past the budget of isl."""

    def __init__(self, map_: AffineMap, extents: Sequence[Index]) -> None:
        self.map = map_
        self.old_extents = tuple(extents)
        self.inputs: tuple[SSAValue, ...] = tuple(Block(arg_types=[IndexType()] * len(extents)).args)
        self.outputs: tuple[SSAValue, ...] = tuple(Block(arg_types=[IndexType()] * len(map_.results)).args)
        self.symbols = list(dict.fromkeys(value for extent in extents for value in extent.values()))
        self.results = tuple(self.applied([Index.of(value) for value in self.inputs], self._range))

    def renamed(self, names: Mapping[SSAValue, SSAValue]) -> LayoutMap:
        if not self.symbols:
            return self
        renamed = LayoutMap(self.map, [extent.renamed(names) for extent in self.old_extents])
        renamed.inputs, renamed.outputs = self.inputs, self.outputs
        renamed.results = tuple(index.renamed(names) for index in self.results)
        return renamed

    def applied(self, indices: Sequence[Index], ranges: Callable[[SSAValue], Interval] = range_of) -> list[Index]:
        mapping = dict(zip(self.inputs, indices, strict=True))
        dims = [Index.of(value) for value in self.inputs]
        return [Index.of_expr(e, dims).substitute(mapping, ranges).simplified(ranges) for e in self.map.results]

    def at(self, index: Sequence[int]) -> list[int]:
        return list(self.map.eval(index, ()))

    def really_missed(self, index: Sequence[int]) -> bool:
        """Whether no old index maps to a new one, by the inverse if it exists. For static extents."""
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

    def _question(self, values: Sequence[SSAValue], extents: Sequence[Index]) -> Question:
        question = Question(own=())
        question.share(self.symbols)
        for value, extent in zip(values, extents, strict=True):
            question.add_value("", value, extent)
        return question

    def _mapped(self) -> Question:
        question = self._question(self.inputs, self.old_extents)
        for output, index in zip(self.outputs, self.results, strict=True):
            question.equate((Index.of(output), ""), (index, ""))
        return question

    def collision(self) -> tuple[list[int], list[int]] | None:
        if are_determined(self.inputs, self.results, self._range):
            return None
        extents = dict(zip(self.inputs, self.old_extents, strict=True))
        found = points_that_agree(extents, self.results, own=self.inputs)
        if found is None:
            return None
        self._require_free()
        first, second = ([found.value(role, value) for value in self.inputs] for role in ("first", "second"))
        return first, second

    def _require_free(self) -> None:
        for value in self.symbols:
            stands_in = isinstance(value.owner, Block) and value.owner.parent is None
            if not stands_in and not is_symbol(value):
                raise NotProved(f"it depends on what %{value.name_hint or '?'} is")

    def negative(self) -> tuple[list[int], int] | None:
        """An old index with a negative image, and the dimension."""
        for dimension, index in enumerate(self.results):
            low = index.range(self._range)[0]
            if low is not None and low >= 0:
                continue
            question = self._question(self.inputs, self.old_extents)
            question.not_negative((index * -1 - 1, ""))
            found = question.counterexample()
            if found is not None:
                self._require_free()
                return [found.value("", value) for value in self.inputs], dimension
        return None

    @cached_property
    def _limits(self) -> list[tuple[int | None, int | None]]:
        known = [index.range(self._range) if _is_exact(index) else (None, None) for index in self.results]
        if all(low is not None and high is not None for low, high in known):
            return known
        image = self._image()
        spans = _spans(image, len(self.symbols), len(self.outputs))
        return [(None, None) if span is None else span for span in spans]

    @cached_property
    def new_extents(self) -> tuple[Index, ...] | None:
        result: list[Index] = []
        for (_, high), index in zip(self._limits, self.results, strict=True):
            top = Index({}, high) if high is not None else self._top(index)
            if top is None:
                return None
            result.append(top + 1)
        return tuple(result)

    def _top(self, index: Index) -> Index | None:
        """The maximum, over symbolic extents, of an index that is monotonic in each value."""
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
        return self._question(self.outputs, self._known_extents()).projection([*self.symbols, *self.outputs])

    def _known_extents(self) -> tuple[Index, ...]:
        if self.new_extents is None:
            raise NotProved("an extent of the new box is not an expression in the old ones")
        return self.new_extents

    def count(self) -> int | None:
        """The number of missed indices, for injective maps on static extents."""
        extents, old_extents = self._known_extents(), self.old_extents
        return None if self.symbols else prod(e.constant for e in extents) - prod(e.constant for e in old_extents)

    def missed(self) -> tuple[Piece, ...]:
        if self.count() == 0:
            return ()
        rest = self._missed_set()
        return () if within_budget(rest.is_empty) else self._pieces(rest)

    def missed_index(self) -> list[int] | None:
        if self.count() == 0:
            return None
        rest = self._missed_set()
        if within_budget(rest.is_empty):
            return None
        self._require_free()
        variables: list[Variable] = [*self.symbols, *self.outputs]
        point = smallest_point(rest, variables)
        return [point[output] for output in self.outputs]

    def _missed_set(self) -> isl.Set:
        box, image = self._new_box(), self._image()
        return within_budget(lambda: box.subtract(image).coalesce())

    def image(self) -> Piece | None:
        """The image, or None if it is not a conjunction."""
        pieces = self._pieces(within_budget(lambda: self._image().coalesce()), in_spans=False)
        return pieces[0] if len(pieces) == 1 else None

    def _pieces(self, points: isl.Set, in_spans: bool = True) -> tuple[Piece, ...]:
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
        inequalities: list[Index] = []
        equalities: list[Index] = []
        for constraint in basic.get_constraints():
            index = index_of_aff(constraint.get_aff(), [*self.symbols, *self.outputs])
            (equalities if constraint.is_equality() else inequalities).append(index)
        return Piece(tuple(inequalities), tuple(equalities), tuple(spans))

    def inverse(self) -> tuple[Index, ...] | None:
        """Old indices over `outputs`, valid on the image of an injective map, if single expressions."""
        told = None
        if self.new_extents is not None:
            told = inverse_by_digits(self.results, self.outputs, self.inputs, self._range, self._range_of_output)
        return self._inverse_by_sets() if told is None else told

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
            result.append(index_of_aff(pieces[0][1], [*self.symbols, *self.outputs]))
        return tuple(result)

    def names(self, hints: Sequence[str | None]) -> list[str]:
        """Names for new indices: that of an unchanged old index; `c_o` and `c_i`, or `c_a`, `c_b`, ... for parts of
        c; `n_c_fused` for a combination."""
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
    return [index.substitute(mapping, range_of).simplified(range_of) for index in indices]


def _is_exact(index: Index) -> bool:
    values = list(index.values())
    return len(values) == len(set(values)) and not any(
        isinstance(atom, Remainder) and not atom.numerator.single_value for atom in index.terms
    )


def _spans(points: isl.Set, skip: int, count: int) -> list[tuple[int, int] | None]:
    if within_budget(points.is_empty):
        return [None] * count
    return [dimension_limits(points, at) for at in range(skip, skip + count)]


@dataclass(frozen=True)
class AccessInverse:
    """The instance that touches an element: `back` maps the element minus `shifts` to each variable."""

    variables: tuple[SSAValue, ...]
    extents: tuple[Index, ...]
    indices: tuple[Index, ...]
    shifts: tuple[Index, ...]
    placeholders: tuple[SSAValue, ...]
    back: tuple[Index, ...]

    def instance(self, element: Sequence[Index]) -> tuple[Index, ...]:
        moved = (place - shift for place, shift in zip(element, self.shifts, strict=True))
        mapping = dict(zip(self.placeholders, moved, strict=True))
        return tuple(index.substitute(mapping, range_of).simplified(range_of) for index in self.back)

    def conditions(self, element: Sequence[Index]) -> Conditions:
        instance = self.instance(element)
        inequalities = [end for index, extent in zip(instance, self.extents, strict=True)
                     for end in (index, extent - index - 1)]  # fmt: skip
        mapping = dict(zip(self.variables, instance, strict=True))
        equalities = [(index.substitute(mapping, range_of) - place).simplified(range_of)
                 for index, place in zip(self.indices, element, strict=True)]  # fmt: skip
        return Conditions(tuple(inequalities), tuple(index for index in equalities if index != Index({})))


def inverse_in_block(block: BlockOp, operands: Sequence[SSAValue]) -> AccessInverse | Violation:
    extents: dict[SSAValue, Index] = {
        v: Index.of(extent) for v, extent in zip(block.iter_vars, block.extents, strict=True)
    }
    return access_inverse(extents, [Index.of(operand) for operand in operands])


def access_inverse(domain: Mapping[SSAValue, Index], given: Sequence[Index]) -> AccessInverse | Violation:
    """The inverse over variables (variable -> extent), or a violation if not unique, which names two instances on one
    element."""
    variables = tuple(domain)
    indices = tuple(index.simplified(range_of) for index in given)

    def ranges(value: SSAValue) -> Interval:
        extent = domain.get(value)
        return range_of(value) if extent is None else (0, extent.constant - 1 if extent.is_constant else None)

    parts: list[Index] = []
    shifts: list[Index] = []
    for index in indices:
        own = _own_part(index, variables)
        low = None if own is None else own.range(ranges)[0]
        if own is None or low is None:
            return Violation(f"index {index!r} is not an affine function of the iterators alone", "not proved")
        parts.append(own - low)
        shifts.append(index - own + low)
    extents = tuple(domain.values())
    element = placeholders(len(parts))
    back = inverse_by_digits(parts, element, variables, ranges, lambda _: (None, None))
    if back is not None:
        return AccessInverse(variables, extents, indices, tuple(shifts), element, back)
    exprs = exprs_of([*(Index.of(variable) for variable in variables), *parts])[0][len(variables) :]
    layout = LayoutMap(AffineMap(len(variables), 0, tuple(exprs)), extents)
    try:
        if (collision := layout.collision()) is not None:
            return _same_element(variables, layout, *collision)
        back = layout.inverse()
    except NotProved as error:
        return undecided(error)
    if back is None:
        return Violation("no single expression says which instance touches an element", "not proved")
    return AccessInverse(variables, extents, indices, tuple(shifts), layout.outputs, back)


def _own_part(index: Index, variables: Collection[SSAValue]) -> Index | None:
    own: dict[Atom, int] = {}
    for atom, factor in index.terms.items():
        values = list(Index({atom: 1}).values())
        if not Index({atom: 1}).depends_on(variables):
            continue
        if any(value not in variables for value in values):
            return None
        own[atom] = factor
    return Index(own)


def _same_element(variables: Sequence[SSAValue], layout: LayoutMap, first: list[int], second: list[int]) -> Violation:
    instances = {
        f"{role} instance": {v.name_hint or "?": number for v, number in zip(variables, point, strict=True)}
        for role, point in (("first", first), ("second", second))
    }
    one, other = (point_text(point.items()) for point in instances.values())
    return Violation(
        f"instances {one} and {other} touch the same element",
        counterexample=instances,
        validate=lambda: layout.at(first) == layout.at(second),
    )
