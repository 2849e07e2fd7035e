"""Coverage of iteration domains by loops, and of reads by earlier writes. Functions raise `NotProved` if undecided.

An iterator point that no loop point is bound to is *missed*; two loop points with the same iterator point *repeat*
it. A read is *covered* in an iteration of a loop if earlier writes in it touch all of its elements. Two cases are
decided without integer sets: bindings that are mixed-radix numbers of all loops, as after split and fuse, and writes
that fill a box around the read, as copies do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import SSAValue

from weft.analysis.accesses import (
    Access,
    Conditions,
    Context,
    Domain,
    accesses,
    dynamic_extents,
    is_fixed,
    is_loop_value,
    is_symbol,
    range_of,
    values_of_iteration,
)
from weft.analysis.block_scopes import loops_around
from weft.analysis.dependence import is_determined, is_exact
from weft.analysis.footprint import span_of
from weft.analysis.index import Index, mixed_radix
from weft.analysis.integer_ranges import Division, Product, leaves, meaning_of, without_clamp
from weft.analysis.layout_maps import are_determined
from weft.analysis.questions import Counterexample, Missed, Question, places, symbols_in
from weft.analysis.sets import NotProved, Row, Variable, sample_point, value_text, within_budget
from weft.dialects.tir import AssumeShapeOp, BlockOp, ForOp
from weft.dialects.tir_kinds import LoopKind

if TYPE_CHECKING:
    import islpy as isl


def are_digits(domain: Domain) -> bool:
    """Whether each iterator is a mixed-radix number of separate loops, so that every point runs exactly once. Guards
    may only state `iterator < extent`."""
    used: set[SSAValue] = set()
    for index, extent in zip(domain.bindings, domain.extents, strict=True):
        if not extent.is_constant or index.constant != 0:
            return False
        digits: list[tuple[int, SSAValue, int]] = []
        for atom, factor in index.terms.items():
            size = domain.loop_extents.get(atom) if isinstance(atom, SSAValue) else None
            if not isinstance(size, int) or not isinstance(atom, SSAValue) or atom in used:
                return False
            used.add(atom)
            digits.append((factor, atom, size - 1))
        if any(reach is None or weight != reach + 1 for weight, _, reach in mixed_radix(digits)):
            return False
        end = sum(weight * maximum for weight, _, maximum in digits) + 1
        inside = extent - index - 1
        if end < extent.constant or (end > extent.constant and inside not in domain.conditions.inequalities):
            return False
    if any(not isinstance(loop.extent, int) or loop.extent < 1 for loop in domain.loops):
        return False  # a loop of extent 0 has no iterations
    keeps_inside = {extent - index - 1 for index, extent in zip(domain.bindings, domain.extents, strict=True)}
    return not domain.conditions.equalities and keeps_inside.issuperset(domain.conditions.inequalities)


def missed_instance(
    domain: Domain,
    *others: Domain,
    loops_run: bool = False,
    along: Sequence[int] | None = None,
    given: Sequence[Index] = (),
) -> Missed | None:
    """An iterator point that no loop point of `domain` or the `others`, of the same block, reaches.

    With `loops_run`, loops of symbolic extent run at least once. With `along`, only these iterators must take all
    values, for the reached values of the others. Points at which an index in `given` is negative are not missed: the
    context does not execute there.
    """
    given_parts = (domain, *others)
    parts = tuple(unfused(part) for part in given_parts)
    domain = parts[0]
    if any(are_digits(part) for part in parts):
        return None
    place = places(len(domain.bindings))
    symbols = list(dict.fromkeys(symbol for part in parts for symbol in _symbols(part)))
    keep: list[Variable] = [*symbols, *place]
    extents = [extent for part in parts for extent in part.loop_extents.values() if not isinstance(extent, int)]
    running = [(e if isinstance(e, Index) else Index.of(e)) - 1 for e in extents if loops_run]
    assumed = [index for index in running if all(is_fixed(value) for value in index.values())]
    missed = _box(domain, symbols, [*assumed, *given]).projection(keep)
    reached = [_reached(part).projection(keep) for part in parts]
    if along is not None:
        missed = _started(missed, reached, [len(symbols) + at for at in along])
    remaining = _without(missed, reached)
    if remaining is None:
        return None
    _require_free(symbols)
    point = sample_point(remaining, keep)
    return Missed(tuple(point[variable] for variable in place), symbols_in(point), given_parts)


def _started(points: isl.Set, reached: Sequence[isl.Set], free: Sequence[int]) -> isl.Set:
    import islpy as isl

    def restricted() -> isl.Set:
        lines = reached[0]
        for other in reached[1:]:
            lines = lines.union(other)
        for dimension in free:
            lines = lines.eliminate(isl.dim_type.set, dimension, 1)
        return points.intersect(lines)

    return within_budget(restricted)


def _without(points: isl.Set, others: Iterable[isl.Set]) -> isl.Set | None:
    if within_budget(points.is_empty):
        return None
    for other in others:
        points = within_budget(lambda left=points, other=other: left.subtract(other))
        if within_budget(points.is_empty):
            return None
    return points


def _symbols(domain: Domain, fixed: Sequence[ForOp] = ()) -> list[SSAValue]:
    """Values that are constant within an iteration of the `fixed` loops; others must be loop variables."""
    seen: dict[SSAValue, None] = {}
    own = domain.loop_extents.keys()
    for index in (*domain.bindings, *domain.extents, *domain.conditions.indices, *dynamic_extents(domain.loops)):
        for value in index.values():
            if value not in own:
                seen.update((part, None) for part in _parts_of(value, own) if part not in own)
    for value in seen:
        if any(loop.is_ancestor(value.owner) for loop in domain.loops if loop not in fixed):
            raise NotProved(f"it depends on {value_text(value)}, which is not affine in the loops")
    return list(seen)


def _parts_of(value: SSAValue, own: Collection[SSAValue]) -> Iterator[SSAValue]:
    """Products of symbols and their factors; of other products and quotients only the factors."""
    if is_fixed(value):
        yield value
    if value not in own:
        yield from leaves(value)


def _require_free(symbols: Sequence[SSAValue]) -> None:
    """Symbols must not be computed, such as a product of extents: a point may then be infeasible."""
    for value in symbols:
        if not is_symbol(value):
            raise NotProved(f"it depends on what {value_text(value)} is")


def unfused(domain: Domain) -> Domain:
    """Replace fused loops by separate loops for their quotients and remainders by symbols
    (docs/decisions/0010-symbols.md). Domains with other uses of fused variables stay unchanged."""
    while (step := _unfuse_one(domain)) is not None:
        domain = step
    return domain


def _unfuse_one(domain: Domain) -> Domain | None:
    divisions: dict[tuple[Index, Index], dict[bool, SSAValue]] = {}
    free = {value for value, _ in domain.free_loops}
    for index in (*domain.bindings, *domain.conditions.indices):
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
    meaning = meaning_of(value)
    if isinstance(meaning, Division):
        yield value
        for part in meaning.numerator.values():
            yield from _divisions_in(part)


def _as_two_loops(
    domain: Domain, numerator: Index, divisor: Index, quotient: SSAValue, remainder: SSAValue
) -> Domain | None:
    replaced = set(numerator.values())
    inside = [loop for loop in domain.loops if loop.induction_variable in replaced]
    made = [(value, extent) for value, extent in domain.free_loops if value in replaced]
    own = [i for i in domain.conditions.inequalities if i.mentions(replaced)]
    if len(inside) + len(made) != len(replaced) or any(i.mentions(replaced) for i in domain.conditions.equalities):
        return None
    product = _end_of(numerator, inside, made, own)
    outer = None if product is None else _divided(product, divisor)
    if product is None or outer is None:
        return None
    if numerator.single_value is None or own:
        question = Domain(tuple(inside), (numerator,), (product,), Conditions(tuple(own)), tuple(made))
        if missed_instance(question) is not None:
            return None
    rest = tuple(i for i in domain.conditions.inequalities if i not in own)
    result = replace(
        domain,
        loops=tuple(loop for loop in domain.loops if loop not in inside),
        conditions=replace(domain.conditions, inequalities=rest),
        free_loops=(
            *((value, extent) for value, extent in domain.free_loops if value not in replaced),
            (quotient, outer),
            (remainder, divisor),
        ),
    )
    used = [*result.bindings, *rest, *domain.conditions.equalities]
    return None if any(index.mentions(replaced) for index in used) else result


def _end_of(
    numerator: Index, loops: Sequence[ForOp], made: Sequence[tuple[SSAValue, int | Index]], conditions: Sequence[Index]
) -> Index | None:
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
    question = Question(own=(), opaque={value for value, _ in domain.free_loops})
    question.add("", domain)
    for value, extent in domain.free_loops:
        question.add_value("", value, extent)
    for at, extent in enumerate(domain.extents):
        question.bound_place("", at, extent)
    question.add_place("", domain.bindings)
    return question


def _box(domain: Domain, symbols: Sequence[SSAValue], assumed: Sequence[Index]) -> Question:
    question = Question(own=())
    for at, extent in enumerate(domain.extents):
        question.bound_place("", at, extent)
    for symbol in symbols:
        question.row(Index({symbol: 1}), question.naming(""))  # with the assumptions about it
    for index in assumed:
        question.not_negative((index, ""))
    return question


def repeated_instance(domain: Domain, fixed: Sequence[ForOp]) -> Counterexample | None:
    """Two loop points, equal in the `fixed` loops, that run the same instance."""
    if are_digits(domain) and _uses_all_loops(domain, fixed):
        return None
    return _ordered_pair(domain, fixed, range(len(domain.bindings)), ())


def late_start(domain: Domain, steps: Sequence[int], fixed: Sequence[ForOp]) -> Counterexample | None:
    """A reduction that starts after one of its steps: loop points, equal in the `fixed` loops and in iterators other
    than `steps`, which are 0 in the later point."""
    if are_digits(domain):
        return None
    same = [at for at in range(len(domain.bindings)) if at not in steps]
    return _ordered_pair(domain, fixed, same, steps)


def _ordered_pair(
    domain: Domain, fixed: Sequence[ForOp], same: Sequence[int], zero: Sequence[int]
) -> Counterexample | None:
    """The second point is later, and 0 in the iterators `zero`."""
    symbols = _symbols(domain, fixed)
    moving = [loop for loop in domain.loops if loop not in fixed and loop.extent != 1]
    values = [loop.induction_variable for loop in moving]
    if are_determined(values, [domain.bindings[position] for position in same], range_of):
        return None
    for at, loop in enumerate(moving):
        question = _same_instance(domain, domain, fixed, same)
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
    """Whether `other` runs every instance of `domain` in one iteration of the common `loops`."""
    symbols = list(dict.fromkeys([*_symbols(domain, loops), *_symbols(other, loops)]))
    outside = [loop.induction_variable for loop in loops]
    keep = [*outside, *(value for value in symbols if value not in outside), *places(len(domain.bindings))]
    mine, theirs = (_reached(part).projection(keep) for part in (domain, other))
    return within_budget(lambda: mine.is_subset(theirs))


def instance_of_both(first: Domain, second: Domain) -> Counterexample | None:
    """Loop points of both domains, in one iteration of common loops, that run the same instance."""
    shared = [loop for loop in first.loops if loop in second.loops]
    symbols = [*_symbols(first, shared), *_symbols(second, shared)]
    found = _same_instance(first, second, shared, range(len(first.bindings))).counterexample()
    if found is not None:
        _require_free(symbols)
    return found


def _same_instance(first: Domain, second: Domain, shared: Sequence[ForOp], same: Iterable[int]) -> Question:
    own = {loop.induction_variable for loop in (*first.loops, *second.loops)}
    question = Question((loop.induction_variable for loop in shared), own=own)
    question.add("first", first)
    question.add("second", second)
    for at in same:
        question.equate((first.bindings[at], "first"), (second.bindings[at], "second"))
    return question


def _uses_all_loops(domain: Domain, fixed: Sequence[ForOp]) -> bool:
    used = {value for index in domain.bindings for value in index.sources()}
    return all(loop.induction_variable in used or loop.extent == 1 for loop in domain.loops if loop not in fixed)


def fills_box_around(write: Access, read: Access) -> bool:
    """Whether loops around only `write` fill a dense box around what `read` touches, in each iteration of the common
    loops. Sufficient, not necessary: in each dimension, `write` touches `base + v` with v in 0 .. size-1 over loops
    that no other dimension uses, and `read - base` is in 0 .. size-1."""
    if write.indices is None or read.indices is None or write.conditions.inequalities or write.conditions.equalities:
        return False
    common = [loop.induction_variable for loop in write.loops if loop in read.loops]
    own = [loop for loop in write.loops if loop not in read.loops]
    if any(not isinstance(loop.extent, int) or loop.extent < 1 for loop in own):
        return False
    used: list[SSAValue] = []
    for written, wanted in zip(write.indices, read.indices, strict=True):
        span = span_of(written, common)
        if span is None or not span.tight:
            return False
        low, high = (wanted - span.lower).simplified(range_of).range(range_of)
        if low is None or high is None or low < 0 or high >= span.extent:
            return False
        used += [loop.induction_variable for loop in own if written.mentions([loop.induction_variable])]
    return len(used) == len(set(used))


def read_is_covered(read: Access, found: Sequence[Access], loop: ForOp | None) -> bool:
    """Whether every element that `read` touches was certainly written before, in the same iteration of `loop`.

    A write counts if it precedes the read in the same iteration of the loops around both, or runs in an earlier
    iteration of one of these inside `loop` (the rows that a circular buffer keeps). In a dimension with a
    data-dependent index, the whole extent must have been written. `found` is in program order.
    """
    settled = values_of_iteration(found, read.loops)
    free = _free_dimensions(read, settled)
    read = _of_anything(read, free, settled)
    if not is_determined(read, settled):
        return False
    writes = [a for a in _before(read, found, loop) if a.is_write and is_determined(a, settled)]
    if not free and any(write.surely_covers(read) or fills_box_around(write, read) for write in writes):
        return True
    earlier = [] if settled else [a for a in found if a.is_write and is_determined(a, settled)]
    return _uncovered_is_empty(read, free, writes, earlier, settled, loop)


def reads_own_stores(block: BlockOp, buffer: SSAValue) -> bool:
    """Whether each instance provably stores what it reads of the buffer before."""
    found = [access for access in accesses(block) if access.buffer is buffer]
    around = loops_around(block)
    innermost = around[-1] if around else None
    try:
        return all(access.is_write or read_is_covered(access, found, innermost) for access in found)
    except NotProved:
        return False


def _free_dimensions(read: Access, settled: Collection[SSAValue]) -> dict[int, Index]:
    extents = _extents(read.buffer)
    unknown = [d for d, index in enumerate(read.indices or ()) if not _is_made_of_known(index, settled)]
    return {d: extents[d] for d in unknown} if len(extents) > max(unknown, default=-1) else {}


def _extents(buffer: SSAValue) -> list[Index]:
    type_ = buffer.type
    if not isinstance(type_, MemRefType):
        return []
    stated = next((use.operation for use in buffer.uses if isinstance(use.operation, AssumeShapeOp)), None)
    owner = buffer.owner
    dynamic = iter(owner.dynamic_sizes if isinstance(owner, memref.AllocOp) else stated.values if stated else ())
    extents = [next(dynamic, None) if extent == DYNAMIC_INDEX else extent for extent in type_.get_shape()]
    return [Index.of(extent) for extent in extents if extent is not None] if None not in extents else []


def _of_anything(read: Access, free: Collection[int], settled: Collection[SSAValue]) -> Access:
    if read.indices is None:
        return read
    conditions = read.conditions
    known = Conditions(
        tuple(index for index in conditions.inequalities if _is_made_of_known(index, settled)),
        tuple(index for index in conditions.equalities if _is_made_of_known(index, settled)),
    )
    indices = tuple(Index.of(0) if d in free else index for d, index in enumerate(read.indices))
    return replace(read, indices=indices, conditions=known)


def _is_made_of_known(index: Index, settled: Collection[SSAValue]) -> bool:
    return all(is_loop_value(v) or is_fixed(v) or v in settled for v in index.values())


def _before(read: Access, found: Sequence[Access], loop: ForOp | None) -> list[Access]:
    """Accesses before `read` in the same iteration of the loops around both. The init of its block is included
    without condition if the first reduction step is in the same iteration of `loop`: in a legal program that step
    runs first."""
    result: list[Access] = []
    for access in found:
        if access.op is read.op:
            break
        if access.init_of is not None and access.init_of in read.blocks and not read.in_init:
            result.append(_without_first_step(access, loop))
        else:
            result.append(access)
    return result


def _without_first_step(access: Access, loop: ForOp | None) -> Access:
    block = access.init_of
    if block is None:
        return access
    starts = Context.around(block).steps_of(block)
    at = -1 if loop is None else access.loops.index(loop)
    outside = {around.induction_variable for around in access.loops[: at + 1]}
    equalities = tuple(z for z in access.conditions.equalities if z not in starts or z.depends_on(outside))
    return replace(access, conditions=replace(access.conditions, equalities=equalities))


def uncovered_element(read: Access, writes: Sequence[Access]) -> Missed | None:
    """An element that `read` touches in some iteration and none of `writes` ever does; None also for inexact
    accesses. Loops of symbolic extent around the writes are assumed to run: an empty reduction that leaves its
    result unwritten is no error."""
    if not is_exact(read) or not all(is_exact(write) for write in writes):
        return None
    extents = {extent for write in writes for extent in dynamic_extents(write.loops)}
    running = [extent - 1 for extent in extents if all(is_symbol(value) for value in extent.values())]
    place = places(len(read.indices or ()))
    keep = [*_fixed_values([read, *writes]), *place]
    assumed = [*running, *_inside_symbolic_extents(read)]
    remaining = _without(_touched(read, keep, (), assumed), (_touched(write, keep, ()) for write in writes))
    if remaining is None:
        return None
    point = sample_point(remaining, keep)
    domains = tuple(Domain(write.loops, write.indices or (), (), write.conditions) for write in writes)
    return Missed(tuple(point[variable] for variable in place), symbols_in(point), domains)


def _inside_symbolic_extents(read: Access, free: Collection[int] = ()) -> list[Index]:
    """Indices, not negative if a read is within symbolic extents: reads beyond them are conditions of the call."""
    return [
        bound
        for dim, (index, extent) in enumerate(zip(read.indices or (), _extents(read.buffer), strict=False))
        if not extent.is_constant and dim not in free
        for bound in (index, extent - 1 - index)
    ]


def _uncovered_is_empty(
    read: Access,
    free: Mapping[int, Index],
    writes: Sequence[Access],
    earlier: Sequence[Access],
    settled: Sequence[SSAValue],
    loop: ForOp | None,
) -> bool:
    outer = [loop.induction_variable for loop in read.loops]
    sizes = (value for extent in free.values() for value in extent.values())
    fixed = dict.fromkeys([*_fixed_values([read, *writes, *earlier]), *sizes, *settled])
    keep = [*fixed, *outer, *places(len(read.indices or ()))]
    common = [*settled, *outer]

    def written() -> Iterator[isl.Set]:
        for write in writes:
            yield _touched(write, keep, common, opaque=settled)
        for write in earlier:
            for level in _levels(read, write, loop):
                yield _touched(write, keep, outer[:level], before=read.loops[level])

    inside = _inside_symbolic_extents(read, free)
    return _without(_touched(read, keep, common, inside, settled=settled, free=free), written()) is None


def _levels(read: Access, write: Access, loop: ForOp | None) -> list[int]:
    found: list[int] = []
    inside = loop is None
    for level, (around, other) in enumerate(zip(read.loops, write.loops, strict=False)):
        if around is not other:
            break
        if inside and around.kind.data in (LoopKind.SERIAL, LoopKind.UNROLLED):
            found.append(level)
        inside = inside or around is loop
    return found


def _fixed_values(found: Sequence[Access]) -> list[Variable]:
    values = (value for access in found for index in access.expressions for value in index.values())
    return list(dict.fromkeys(value for value in values if is_fixed(value) or is_symbol(value)))


def _touched(
    access: Access,
    keep: list[Variable],
    common: Iterable[SSAValue],
    assumed: Sequence[Index] = (),
    opaque: Collection[SSAValue] = (),
    settled: Collection[SSAValue] = (),
    before: ForOp | None = None,
    free: Mapping[int, Index] | None = None,
) -> isl.Set:
    """The elements that `access` touches, over symbols, `common` values and element indices, if no index in
    `assumed` is negative.

    With `before`, only iterations of that loop before its value in the set. `opaque` values are unconstrained.
    Definitions of `settled` values are constraints; the set may then be an over-approximation. `free` dimensions
    have the given extents.
    """
    question = Question(common, opaque=opaque)
    naming = question.naming("own")
    question.add("own", access)
    for index in assumed:
        question.not_negative((index, "own"))
    question.add_place("own", access.indices or (), free)
    if before is not None:
        kept: Variable = before.induction_variable
        question.declare(kept, *range_of(before.induction_variable))
        question.less(question.row(Index.of(before.induction_variable), naming), Row({kept: 1}, 0))
    for value in keep:
        if isinstance(value, SSAValue) and is_symbol(value):
            question.row(Index({value: 1}), naming)  # with the assumptions about it
    for value in settled:
        question.bounds.setdefault(value, (None, None))
        question.equal(Row({value: 1}, 0), question.row(Index({value: 1}), naming))
    return question.projection(keep, may_grow=bool(settled))
