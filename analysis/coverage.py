"""Whether the loops around a block run every instance of it, and each only once.

The bindings map loop points to iterator points. An iterator point without a loop point is *missed*; two loop points on
one iterator point *repeat* it. Bindings that take every loop apart as digits of iterators (what split and fuse make)
are decided without sets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from weft.analysis.accesses import Conditions, Domain, is_fixed, is_symbol, range_of
from weft.analysis.index import Index
from weft.analysis.integer_ranges import Division, Product, leaves, meaning_of, without_clamp
from weft.analysis.layout_maps import are_determined
from weft.analysis.questions import Counterexample, Question, symbols_in
from weft.analysis.sets import NotProved, Row, Variable, sample_point, value_text, within_budget
from weft.analysis.structure import is_defined_in
from weft.analysis.validation import Missed
from weft.dialects.tir import ForOp

if TYPE_CHECKING:
    import islpy as isl


def are_digits(domain: Domain) -> bool:
    """Whether each iterator is a full mixed-radix number of loops of its own: then all is covered exactly once.

    Guards are allowed that keep an iterator inside its domain (`iterator < extent`) and nothing else.
    """
    used: set[SSAValue] = set()
    for index, extent in zip(domain.bindings, domain.extents, strict=True):
        if not extent.is_constant or index.constant != 0:
            return False
        weight = 1
        for atom, factor in sorted(index.terms.items(), key=lambda item: item[1]):
            size = domain.extent_of(atom) if isinstance(atom, SSAValue) else None
            if size is None or not isinstance(atom, SSAValue) or atom in used or factor != weight:
                return False
            used.add(atom)
            weight *= size
        inside = extent - index - 1
        if weight < extent.constant or (weight > extent.constant and inside not in domain.conditions.positives):
            return False
    if any(not isinstance(loop.extent, int) or loop.extent < 1 for loop in domain.loops):
        return False  # nothing runs when the loop does not
    keeps_inside = {extent - index - 1 for index, extent in zip(domain.bindings, domain.extents, strict=True)}
    return not domain.conditions.zeros and keeps_inside.issuperset(domain.conditions.positives)


def missed_instance(
    domain: Domain,
    *others: Domain,
    loops_run: bool = False,
    along: Sequence[int] | None = None,
    given: Sequence[Index] = (),
) -> Missed | None:
    """Iterator values that no loop point reaches; None when all are reached.

    `others` are further loops and bindings that run instances of the same domain. With `loops_run`, loops of symbolic
    extent are taken to run at least once. With `along`, only the iterators at these positions must take all of their
    values, for those values of the others that are reached at all. Nothing is missed where an index in `given` is
    negative: what is around the loops does not run there. Raises `NotProved` when the question cannot be decided.
    """
    given_parts = (domain, *others)
    parts = tuple(unfused(part) for part in given_parts)
    domain = parts[0]
    if any(are_digits(part) for part in parts):
        return None
    places: list[Variable] = [("iterator", at) for at in range(len(domain.bindings))]
    symbols = list(dict.fromkeys(symbol for part in parts for symbol in _symbols(part)))
    keep: list[Variable] = [*symbols, *places]
    loops = [loop for part in parts for loop in part.loops]
    extents = [*(loop.extent for loop in loops), *(extent for part in parts for _, extent in part.free_loops)]
    dynamic = [e if isinstance(e, Index) else Index.of(e) for e in extents if not isinstance(e, int)]
    running = [extent - 1 for extent in dynamic if loops_run]
    assumed = [index for index in running if all(is_fixed(value) for value in index.values())]
    missed = _box(domain, symbols, [*assumed, *given]).projection(keep)
    reached = [_reached(part).projection(keep) for part in parts]
    if along is not None:
        missed = _started(missed, reached, [len(symbols) + at for at in along])
    for points in reached:
        missed = _without(missed, points)
    if within_budget(missed.is_empty):
        return None
    _require_free(symbols)
    point = sample_point(missed, keep)
    return Missed(tuple(point[place] for place in places), symbols_in(point), given_parts)


def _started(points: isl.Set, reached: Sequence[isl.Set], free: Sequence[int]) -> isl.Set:
    """Those of `points` that are reached up to the values of the `free` dimensions."""
    import islpy as isl

    def restricted() -> isl.Set:
        lines = reached[0]
        for other in reached[1:]:
            lines = lines.union(other)
        for dimension in free:
            lines = lines.eliminate(isl.dim_type.set, dimension, 1)
        return points.intersect(lines)

    return within_budget(restricted)


def _without(points: isl.Set, others: isl.Set) -> isl.Set:
    return within_budget(lambda: points.subtract(others))


def _symbols(domain: Domain, fixed: Sequence[ForOp] = ()) -> list[SSAValue]:
    """The values that are the same for all points in one iteration of the `fixed` loops.

    Raises `NotProved` for others that are no loop values.
    """
    seen: dict[SSAValue, None] = {}
    indices = [*domain.bindings, *domain.extents, *domain.conditions.positives, *domain.conditions.zeros]
    indices.extend(Index.of(loop.extent) for loop in domain.loops)
    own = {loop.induction_variable for loop in domain.loops} | {value for value, _ in domain.free_loops}
    for index in indices:
        for value in index.values():
            if value not in own:
                seen.update((part, None) for part in _parts_of(value, own) if part not in own)
    for value in seen:
        if any(is_defined_in(value, loop) for loop in domain.loops if loop not in fixed):
            raise NotProved(f"it depends on {value_text(value)}, which is not affine in the loops")
    return list(seen)


def _parts_of(value: SSAValue, own: Collection[SSAValue]) -> Iterator[SSAValue]:
    """A product of symbols as it is, and what it is made of; quotients and products of loop values taken apart."""
    if is_fixed(value):
        yield value
    if value not in own:
        yield from leaves(value)


def _require_free(symbols: Sequence[SSAValue]) -> None:
    """A point with values of computed symbols, such as a product of extents, proves nothing: raises `NotProved`."""
    for value in symbols:
        if not is_symbol(value):
            raise NotProved(f"it depends on what {value_text(value)} is")


def unfused(domain: Domain) -> Domain:
    """The domain with quotients and remainders by symbols as loops of their own, in the place of the fused loop.

    `f` in 0 .. n*m-1 and the pair `f floordiv m`, `f mod m` determine each other, whatever n and m are; so do the loops
    that f was split into, under a guard that keeps their sum below n*m. A domain that is used in any other way stays as
    it is.
    """
    while (step := _unfuse_one(domain)) is not None:
        domain = step
    return domain


def _unfuse_one(domain: Domain) -> Domain | None:
    divisions: dict[tuple[Index, Index], dict[bool, SSAValue]] = {}
    free = {value for value, _ in domain.free_loops}
    for index in (*domain.bindings, *domain.conditions.positives, *domain.conditions.zeros):
        for value in index.values():
            for part in _divisions_in(value):
                meaning = meaning_of(part)
                if isinstance(meaning, Division) and part not in free:
                    digits = divisions.setdefault((meaning.numerator, meaning.divisor), {})
                    digits.setdefault(meaning.is_quotient, part)
    for (numerator, divisor), digits in divisions.items():
        if len(digits) == 2:
            found = _as_two_loops(domain, numerator, divisor, digits[True], digits[False])
            if found is not None:
                return found
    return None


def _divisions_in(value: SSAValue) -> Iterator[SSAValue]:
    """A value, if it is a quotient or remainder by a symbol, and those in its numerator."""
    meaning = meaning_of(value)
    if isinstance(meaning, Division):
        yield value
        for part in meaning.numerator.values():
            yield from _divisions_in(part)


def _as_two_loops(
    domain: Domain, numerator: Index, divisor: Index, quotient: SSAValue, remainder: SSAValue
) -> Domain | None:
    """The domain with a quotient and a remainder in the place of the loops that make up their numerator."""
    replaced = set(numerator.values())
    inside = [loop for loop in domain.loops if loop.induction_variable in replaced]
    made = [(value, extent) for value, extent in domain.free_loops if value in replaced]
    own = [i for i in domain.conditions.positives if i.mentions(replaced)]
    if len(inside) + len(made) != len(replaced) or any(i.mentions(replaced) for i in domain.conditions.zeros):
        return None
    product = _end_of(numerator, inside, made, own)
    outer = None if product is None else _divided(product, divisor)
    if product is None or outer is None:
        return None
    if numerator.single_value is None or own:
        question = Domain(tuple(inside), (numerator,), (product,), Conditions(tuple(own)), tuple(made))
        if missed_instance(question) is not None:
            return None
    rest = tuple(i for i in domain.conditions.positives if i not in own)
    result = replace(
        domain,
        loops=tuple(loop for loop in domain.loops if loop not in inside),
        conditions=replace(domain.conditions, positives=rest),
        free_loops=(
            *((value, extent) for value, extent in domain.free_loops if value not in replaced),
            (quotient, outer),
            (remainder, divisor),
        ),
    )
    used = [*result.bindings, *rest, *domain.conditions.zeros]
    return None if any(index.mentions(replaced) for index in used) else result


def _end_of(
    numerator: Index, loops: Sequence[ForOp], made: Sequence[tuple[SSAValue, int | Index]], conditions: Sequence[Index]
) -> Index | None:
    """The number that an index stays below: the extent of the loop that it is, or what its guard says."""
    value = numerator.single_value
    if value is not None:
        extents = [*((loop.induction_variable, loop.extent) for loop in loops), *made]
        for variable, extent in extents:
            if variable is value:
                return extent if isinstance(extent, Index) else Index.of(extent)
    for condition in conditions:
        end = condition + numerator + 1
        if not end.mentions(numerator.values()):
            return end
    return None


def _divided(product: Index, divisor: Index) -> Index | None:
    """The factor that makes a product of a divisor, when that is how the product was made."""
    value = product.single_value
    meaning = None if value is None else meaning_of(value)
    if isinstance(meaning, Product):
        for one, other in ((meaning.left, meaning.right), (meaning.right, meaning.left)):
            if without_clamp(one) == divisor:
                return other
    symbol = divisor.single_value
    if symbol is not None and product == divisor * product.coefficient(symbol):
        return Index({}, product.coefficient(symbol))
    return None


def _reached(domain: Domain) -> Question:
    """The points of a domain, with the iterator values that they run."""
    question = Question(own=(), opaque={value for value, _ in domain.free_loops})
    question.add("", domain)
    for value, extent in domain.free_loops:
        question.add_value("", value, extent)
    for at, (index, extent) in enumerate(zip(domain.bindings, domain.extents, strict=True)):
        place = _declare_place(question, at, extent)
        question.equal(Row({place: 1}, 0), question.row(index, question.naming("")))
    return question


def _box(domain: Domain, symbols: Sequence[SSAValue], assumed: Sequence[Index]) -> Question:
    """The iterator values of a domain, for symbols for which no index in `assumed` is negative."""
    question = Question(own=())
    for at, extent in enumerate(domain.extents):
        place = _declare_place(question, at, extent)
        question.positives.append(Row({place: 1}, 0))
    for symbol in symbols:
        question.row(Index({symbol: 1}), question.naming(""))  # with the assumptions about it
    for index in assumed:
        question.not_negative((index, ""))
    return question


def _declare_place(question: Question, at: int, extent: Index) -> Variable:
    """Iterator `at` lies in 0 .. extent-1."""
    place: Variable = ("iterator", at)
    if extent.is_constant:
        question.declare(place, 0, extent.constant - 1)
    else:
        question.declare(place, 0, None)
        question.less(Row({place: 1}, 0), question.row(extent, question.naming("")))
    return place


def repeated_instance(domain: Domain, fixed: Sequence[ForOp]) -> Counterexample | None:
    """Two loop points, equal in the `fixed` loops, that run the same instance; None when there are none.

    Raises `NotProved` when the question cannot be decided.
    """
    if are_digits(domain) and _uses_all_loops(domain, fixed):
        return None
    return _ordered_pair(domain, fixed, range(len(domain.bindings)), ())


def late_start(domain: Domain, steps: Sequence[int], fixed: Sequence[ForOp]) -> Counterexample | None:
    """Two loop points, equal in the `fixed` loops and in all iterators but those at the positions `steps`, of which the
    second one runs later and has 0 in all of these: the start of a reduction comes after a step of it.

    None when there are none. Raises `NotProved` when the question cannot be decided.
    """
    if are_digits(domain):
        return None
    same = [at for at in range(len(domain.bindings)) if at not in steps]
    return _ordered_pair(domain, fixed, same, steps)


def _ordered_pair(
    domain: Domain, fixed: Sequence[ForOp], same: Sequence[int], zero: Sequence[int]
) -> Counterexample | None:
    """Two loop points, equal in the `fixed` loops, the second of them later: in some iterators they are the `same`, and
    in the second point others are `zero`."""
    symbols = _symbols(domain, fixed)
    moving = [loop for loop in domain.loops if loop not in fixed and loop.extent != 1]
    values = [loop.induction_variable for loop in moving]
    if are_determined(values, [domain.bindings[position] for position in same], range_of):
        return None
    for at, loop in enumerate(moving):
        question = Question((outer.induction_variable for outer in fixed), own=_values_of(domain))
        question.add("first", domain)
        question.add("second", domain)
        for position in same:
            question.equate((domain.bindings[position], "first"), (domain.bindings[position], "second"))
        for position in zero:
            question.equate((domain.bindings[position], "second"), (Index({}), "second"))
        for outer in moving[:at]:
            question.same(outer)
        question.earlier(loop)
        found = question.counterexample()
        if found is not None:
            _require_free(symbols)
            return found
    return None


def runs_only(domain: Domain, other: Domain, loops: Sequence[ForOp]) -> bool:
    """Whether every instance that `domain` runs in an iteration of `loops`, which are around both, is one that `other`
    runs in that iteration. Raises `NotProved`."""
    symbols = list(dict.fromkeys([*_symbols(domain, loops), *_symbols(other, loops)]))
    places: list[Variable] = [("iterator", at) for at in range(len(domain.bindings))]
    outside = [loop.induction_variable for loop in loops]
    keep: list[Variable] = [*outside, *(value for value in symbols if value not in outside), *places]
    mine, theirs = (_reached(part).projection(keep) for part in (domain, other))
    return within_budget(lambda: mine.is_subset(theirs))


def instance_of_both(first: Domain, second: Domain) -> Counterexample | None:
    """A loop point of each domain, in one iteration of the loops that they share, that run the same instance; None when
    there are none. Raises `NotProved` when the question cannot be decided."""
    shared = [loop for loop in first.loops if loop in second.loops]
    symbols = [*_symbols(first, shared), *_symbols(second, shared)]
    question = Question((loop.induction_variable for loop in shared), own=_values_of(first) | _values_of(second))
    question.add("first", first)
    question.add("second", second)
    for left, right in zip(first.bindings, second.bindings, strict=True):
        question.equate((left, "first"), (right, "second"))
    found = question.counterexample()
    if found is not None:
        _require_free(symbols)
    return found


def _values_of(domain: Domain) -> set[SSAValue]:
    return {loop.induction_variable for loop in domain.loops}


def _uses_all_loops(domain: Domain, fixed: Sequence[ForOp]) -> bool:
    used = {value for index in domain.bindings for value in index.sources()}
    return all(loop.induction_variable in used or loop.extent == 1 for loop in domain.loops if loop not in fixed)
