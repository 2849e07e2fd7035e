"""Versions of loops for interior and border."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, cast

from xdsl.dialects import arith, scf
from xdsl.ir import OpResult, SSAValue

from weft.analysis.accesses import loop_with_variable
from weft.analysis.block_scopes import vectorized_loop_around
from weft.analysis.bounds import Extents
from weft.analysis.index import Atom, Index, RangeOf
from weft.dialects.effects import only_computes
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import INTERIOR, LoopKind
from weft.dialects.traversal import copy_of, operations_in
from weft.passes.index_builders import (
    compare_before,
    conjunction_before,
    divided_up,
    if_around,
    index_before,
    insert_at_start,
    insert_before,
)
from weft.passes.schedule.nest_builders import set_loop_extent
from weft.passes.tir.guards import comparisons, conjuncts, decide_ifs, replace_by_truth
from weft.passes.tir.loop_pieces import extreme, restrict
from weft.passes.tir.speculation import speculate
from weft.passes.tir.tir_pass import range_of_difference, remembered_ranges

_NARROWED: Final = 8
"""Least number of lanes for which half the vector length is faster."""


def make_interior_version(loop: ForOp, extents: Extents) -> bool:
    """Split `loop` where conditions of its whole body change; return whether there are any.

    ```mlir
    tir.for %i in ceil(%n / 4) { tir.for %r in 4 unrolled { tir.for %l in 8 vectorized {
      scf.if %i * 4 + %r < %n and %j * 8 + %l < %m { BODY } } } }
    // becomes
    scf.if %j * 8 + 7 < %m { tir.for %i in %n floordiv 4 { ... { BODY } } }
    else { tir.for %i in %n floordiv 4 { ... { scf.if %j * 8 + %l < %m { BODY } } } }
    tir.for %i from %n floordiv 4 { ... { scf.if %i * 4 + %r < %n and %j * 8 + %l < %m { BODY } } }
    ```
    Conditions that differ between lanes remain in the interior, all at the border; they become masks. `extents` are
    those of the function.
    """
    loop.attributes.pop(INTERIOR, None)
    half = _half_of_lanes(loop)
    if half is not None:
        narrow, few = half
        choice = if_around(compare_before("slt", few, Index({}), loop), [narrow], [])
        insert_before(loop, [choice])
        insert_at_start(choice.false_region.block, loop)
        _cut(narrow, extents, is_narrow=True)
    return _cut(loop, extents) or half is not None


def _cut(loop: ForOp, extents: Extents, *, is_narrow: bool = False) -> bool:
    """If it `is_narrow`, some lanes are always idle."""
    uniform, of_lanes = _conditions(loop)
    inside, masked = (_version(loop, known, extents) for known in ([*uniform, *of_lanes], [*uniform]))
    speculate_lanes(loop, extents)
    if not uniform and not of_lanes:
        return False
    low, high = _range(loop, _distinct(uniform.values()), Index({}), Index.of(loop.extent))
    needed = _distinct(of_lanes.values())
    head = copy_of(loop)
    insert_before(loop, [head])
    if is_narrow or not needed:
        middle = [(masked if is_narrow else inside, low, high)]
        insert_before(loop, [middle[0][0]])
    elif any(index.depends_on([loop.induction_variable]) for index in needed):
        first, last = _range(loop, needed, low, high)
        middle = [(masked, low, first), (inside, first, last), (copy_of(masked), last, high)]
        insert_before(loop, [piece for piece, _, _ in middle])
    else:
        condition = conjunction_before([compare_before("sge", each, Index({}), loop) for each in needed], loop)
        insert_before(loop, [if_around(condition, [inside], [masked])])
        middle = [(inside, low, high), (masked, low, high)]
    for piece, start, end in ((head, Index({}), low), *middle, (loop, high, Index.of(loop.extent))):
        restrict(piece, start, end)
    return True


def _half_of_lanes(loop: ForOp) -> tuple[ForOp, Index] | None:
    """A copy with half of the lanes, and an index that is negative if the other half is always idle."""
    vectors = [op for op in operations_in(loop.body) if isinstance(op, ForOp) and op.kind.data is LoopKind.VECTORIZED]
    lanes = vectors[0].extent if vectors else 0
    if not isinstance(lanes, int) or lanes < _NARROWED or any(vector.extent != lanes for vector in vectors):
        return None
    guards = guards_of_lanes(loop)
    for last, size in guards.sizes.items():
        if size != lanes or last.depends_on([loop.induction_variable]):
            continue
        if all(_is_guarded(vector, last, guards) for vector in vectors):
            copy = copy_of(loop)
            for op in operations_in(copy.body):
                if isinstance(op, ForOp) and op.kind.data is LoopKind.VECTORIZED:
                    set_loop_extent(op, lanes // 2)
            return copy, last - lanes // 2
    return None


def _is_guarded(vector: ForOp, last: Index, guards: Guards) -> bool:
    effects = [op for op in vector.body.block.ops if not only_computes(op)]
    lane = Index.of(vector.induction_variable)
    return all(isinstance(op, scf.IfOp) and guards.distances.get(op.cond, {}).get(last) == lane for op in effects)


def _conditions(loop: ForOp) -> tuple[dict[arith.CmpiOp, Index], dict[arith.CmpiOp, Index]]:
    """Comparisons uniform over lanes, and others, with an index that is non-negative if they hold in a whole
    iteration."""
    ranges = remembered_ranges()
    uniform: dict[arith.CmpiOp, Index] = {}
    of_lanes: dict[arith.CmpiOp, Index] = {}
    for op in operations_in(loop.body):
        if type(op) is not scf.IfOp:
            continue
        for comparison, constraint in comparisons(op.cond, ranges):
            if constraint.equality or not loop.is_ancestor(comparison):
                continue
            least = _least_in(loop, constraint.index, ranges)
            if least is not None and _is_affine(least, loop.induction_variable):
                vector = vectorized_loop_around(comparison)
                is_uniform = vector is None or not constraint.index.depends_on([vector.induction_variable])
                (uniform if is_uniform else of_lanes)[comparison] = least
    return uniform, of_lanes


def _is_affine(index: Index, variable: SSAValue) -> bool:
    return not (index - Index({variable: index.coefficient(variable)})).depends_on([variable])


def _range(loop: ForOp, needed: Sequence[Index], low: Index, high: Index) -> tuple[Index, Index]:
    """Iterations in `low .. high-1` for which no index of `needed` is negative."""
    lows: list[Index] = []
    highs: list[Index] = []
    for index in needed:
        factor = index.coefficient(loop.induction_variable)
        rest = index - Index({loop.induction_variable: factor})
        if factor > 0:
            lows.append(divided_up(-rest, factor))
        elif factor < 0:
            highs.append(rest // -factor + 1)
        else:
            holds = compare_before("sge", rest, Index({}), loop)
            chosen = arith.SelectOp(holds, index_before(high, loop), index_before(low, loop))
            insert_before(loop, [chosen])
            highs.append(Index.of(chosen.result))
    start = extreme([extreme(lows, low, arith.MaxSIOp, loop)], high, arith.MinSIOp, loop)
    if not highs:
        return start, high
    return start, extreme([extreme(highs, high, arith.MinSIOp, loop)], start, arith.MaxSIOp, loop)


def _least_in(loop: ForOp, index: Index, ranges: RangeOf) -> Index | None:
    inner = _inner_part(index, loop)
    low, _ = inner.range(ranges)
    return None if low is None else (index - inner + low).simplified(ranges)


def _inner_part(index: Index, loop: ForOp) -> Index:
    body = loop.body.block

    def is_inner(atom: Atom) -> bool:
        return any(value.owner is not body and body.is_ancestor(value.owner) for value in Index({atom: 1}).values())

    return Index({atom: factor for atom, factor in index.terms.items() if is_inner(atom)})


def _distinct(indices: Iterable[Index]) -> list[Index]:
    least: dict[Index, int] = {}
    for index in indices:
        terms = index - index.constant
        least[terms] = min(index.constant, least.get(terms, index.constant))
    return [terms + constant for terms, constant in least.items()]


def _version(loop: ForOp, known: Sequence[arith.CmpiOp], extents: Extents) -> ForOp:
    mapping: dict[SSAValue, SSAValue] = {}
    copy = copy_of(loop, mapping)
    for comparison in known:
        replace_by_truth(cast("OpResult", mapping[comparison.result]).op, True)
    decide_ifs(copy)
    speculate_lanes(copy, extents)
    return copy


@dataclass
class Guards:
    """Conditions `last - distance >= 0` on code without results."""

    distances: dict[SSAValue, dict[Index, Index]]
    """Condition -> `last` -> distance."""
    sizes: dict[Index, int]
    """`last` -> number of distances."""


def guards_of_lanes(loop: ForOp) -> Guards:
    ranges = remembered_ranges()
    guards = Guards({}, {})
    for op in operations_in(loop.body):
        if type(op) is not scf.IfOp or op.results or op.false_region.blocks:
            continue
        parts = [constraint for _, constraint in comparisons(op.cond, ranges)]
        found: dict[Index, Index] = {}
        for constraint in parts:
            distance = -_inner_part(constraint.index, loop)
            low, high = distance.range(ranges)
            if low == 0 and high and not constraint.equality:
                last = constraint.index + distance
                found[last] = distance
                guards.sizes[last] = max(guards.sizes.get(last, 0), high + 1)
        if len(found) == len(parts) == len([*conjuncts(op.cond)]):
            guards.distances[op.cond] = found
    return guards


def speculate_lanes(loop: ForOp, extents: Extents) -> None:
    guards = guards_of_lanes(loop)
    whole = {
        condition: [found[last] for last in guards.sizes]
        for condition, found in guards.distances.items()
        if len(found) == len(guards.sizes)
    }
    if whole and all(map(_is_reached, guards.sizes)):
        speculate(loop, whole, guards.sizes, extents)


def _is_reached(last: Index) -> bool:
    for value in list(last.values()):
        loop = loop_with_variable(value)
        if loop is not None and last.coefficient(value) < 0:
            last = last.substitute({value: Index.of(loop.extent) - 1})
    low, _ = range_of_difference(last, Index({}))
    return low is not None and low >= 0
