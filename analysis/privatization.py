"""Privatization of temporaries, and coverage of reads by earlier writes.

Writes that fill a box around a read, the common case of a copy, are decided without isl.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
    is_fixed,
    is_loop_value,
    is_symbol,
    range_of,
)
from weft.analysis.dependence import buffer_name, is_determined, is_exact, is_temporary
from weft.analysis.index import Index, Quotient, Remainder
from weft.analysis.questions import Question, symbols_in
from weft.analysis.sets import NotProved, Row, Variable, sample_point, within_budget
from weft.analysis.structure import is_inside
from weft.analysis.validation import Missed
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import IterKind, LoopKind

if TYPE_CHECKING:
    import islpy as isl


def fills_box_around(write: Access, read: Access) -> bool:
    """Whether the loops of `write` that are not around `read` too write every element of a box that holds what `read`
    touches, in each iteration of the loops around both. False when that does not meet the eye.

    In a dimension, `write` touches `base + v`, with v in 0 .. size-1 made of loops that no other dimension uses, and
    `base` the same in `read`; then `read - base` has to lie in 0 .. size-1.
    """
    if write.indices is None or read.indices is None or write.conditions.positives or write.conditions.zeros:
        return False
    common = {loop.induction_variable for loop in write.loops if loop in read.loops}
    extents: dict[SSAValue, int] = {}
    for loop in write.loops:
        if loop.induction_variable not in common:
            if not isinstance(loop.extent, int) or loop.extent < 1:
                return False
            extents[loop.induction_variable] = loop.extent
    used: set[SSAValue] = set()
    for written, wanted in zip(write.indices, read.indices, strict=True):
        parts = _parts(written, extents, common)
        if parts is None or not used.isdisjoint(parts[1]):
            return False
        base, steps = parts
        used.update(steps)
        size = _size({value: (factor, extents[value]) for value, factor in steps.items()})
        low, high = (wanted - base).simplified(range_of).range(range_of)
        if size is None or low is None or high is None or low < 0 or high >= size:
            return False
    return True


def _parts(
    index: Index, loops: Collection[SSAValue], common: Collection[SSAValue]
) -> tuple[Index, dict[SSAValue, int]] | None:
    """An index as what is the same in one iteration of the `common` loops, and coefficients of `loops`."""
    base = Index({}, index.constant)
    steps: dict[SSAValue, int] = {}
    for atom, factor in index.terms.items():
        if not isinstance(atom, Quotient | Remainder) and atom in loops:
            steps[atom] = factor
            continue
        part = Index({atom: factor})
        if not all(value in common or is_fixed(value) for value in part.values()):
            return None
        base = base + part
    return base, steps


def _size(steps: Mapping[SSAValue, tuple[int, int]]) -> int | None:
    """How many numbers from 0 on a sum of digits takes, given factor and extent of each; None if it leaves some out."""
    size = 1
    for factor, extent in sorted(steps.values()):
        if extent == 1:
            continue
        if factor != size:
            return None
        size *= extent
    return size


def is_private(buffer: SSAValue, loop: ForOp, found: Sequence[Access] | None = None) -> bool:
    """Whether each iteration of `loop` is proved to be able to have its own `buffer`, see `has_own`."""
    try:
        return has_own(loop, buffer, accesses(loop) if found is None else found)
    except NotProved:
        return False


def has_own(loop: ForOp, buffer: SSAValue, found: Sequence[Access]) -> bool:
    """Whether each iteration of `loop` can have its own `buffer`: no value of it crosses an iteration.

    So it is when the buffer is a temporary used nowhere outside the loop, and every element that an iteration reads was
    surely written earlier in the same iteration. `found` holds the accesses of the loop, in program order. Raises
    `NotProved` when that cannot be decided, or depends on what is not known of some access.
    """
    if not is_temporary(buffer) or not all(is_inside(use.operation, loop) for use in buffer.uses):
        return False
    inside = [a for a in found if a.buffer is buffer]
    if all(a.is_write or read_is_covered(a, inside, loop) for a in inside):
        return True
    if not all(is_exact(a) for a in inside):
        raise NotProved(f"whether an iteration reads of {buffer_name(buffer)} only what it wrote depends on the data")
    return False


def read_is_covered(read: Access, found: Sequence[Access], loop: ForOp | None) -> bool:
    """Whether every element that `read` touches was surely written before, in the same iteration of `loop`.

    A write counts when it stands before the read in program order, with the loops around both in the same iteration,
    or when it runs in an earlier iteration of one of these loops inside `loop` (rows that a circular buffer keeps).
    Where the data say which element is read, all that the buffer has in that dimension must have been written.
    `found` is in program order. Raises `NotProved`.
    """
    settled = _settled_values(found, read)
    free = _free_dimensions(read, settled)
    read = _of_anything(read, free, settled)
    if not is_determined(read, settled):
        return False
    writes = [a for a in _before(read, found, loop) if a.is_write and is_determined(a, settled)]
    if not free and any(_surely_same(write, read) or fills_box_around(write, read) for write in writes):
        return True
    earlier = [] if settled else [a for a in found if a.is_write and is_determined(a, settled)]
    return _uncovered_is_empty(read, free, writes, earlier, settled, loop)


def _settled_values(found: Sequence[Access], read: Access) -> dict[SSAValue, None]:
    """Values that are computed in the body of a loop around `read`, as the remainder by a symbol of what was fused: one
    number in an iteration, whoever uses it."""
    around = set(read.loops)
    return {
        value: None
        for access in found
        for index in (*(access.indices or ()), *access.conditions.positives, *access.conditions.zeros)
        for value in index.values()
        if not is_loop_value(value) and not is_fixed(value) and value.owner.parent_op() in around
    }


def _free_dimensions(read: Access, settled: Collection[SSAValue]) -> dict[int, Index]:
    """The dimensions in which it is not known what `read` touches, with the extent of each."""
    extents = _extents(read.buffer)
    unknown = [d for d, index in enumerate(read.indices or ()) if not _is_made_of_known(index, settled)]
    return {d: extents[d] for d in unknown} if len(extents) > max(unknown, default=-1) else {}


def _extents(buffer: SSAValue) -> list[Index]:
    """The extents of a buffer, none where they are not all written down."""
    type_ = buffer.type
    if not isinstance(type_, MemRefType):
        return []
    dynamic = iter(buffer.owner.dynamic_sizes if isinstance(buffer.owner, memref.AllocOp) else ())
    extents = [next(dynamic, None) if extent == DYNAMIC_INDEX else extent for extent in type_.get_shape()]
    return [Index.of(extent) for extent in extents if extent is not None] if None not in extents else []


def _of_anything(read: Access, free: Collection[int], settled: Collection[SSAValue]) -> Access:
    """`read` without what is not known of it: it then touches any element along the `free` dimensions."""
    if read.indices is None:
        return read
    conditions = read.conditions
    known = Conditions(
        tuple(index for index in conditions.positives if _is_made_of_known(index, settled)),
        tuple(index for index in conditions.zeros if _is_made_of_known(index, settled)),
    )
    indices = tuple(Index.of(0) if d in free else index for d, index in enumerate(read.indices))
    return replace(read, indices=indices, conditions=known)


def _is_made_of_known(index: Index, settled: Collection[SSAValue]) -> bool:
    return all(is_loop_value(v) or is_fixed(v) or v in settled for v in index.values())


def _before(read: Access, found: Sequence[Access], loop: ForOp | None) -> list[Access]:
    """Writes that run before `read` in the same iteration of the loops around both.

    The init of the read's own block counts without its condition where the first step of the reduction is in the same
    iteration of `loop`: a legal program has that step first.
    """
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
    """An access of an init as if it ran in every step of the reductions that `loop` runs as a whole."""
    block = access.init_of
    if block is None:
        return access
    steps = zip(Context.around(block).resolve_map(block), block.kinds, strict=True)
    starts = {index for index, kind in steps if kind is IterKind.REDUCE}
    at = -1 if loop is None else access.loops.index(loop)
    outside = {around.induction_variable for around in access.loops[: at + 1]}
    zeros = tuple(z for z in access.conditions.zeros if z not in starts or z.depends_on(outside))
    return replace(access, conditions=replace(access.conditions, zeros=zeros))


def _surely_same(write: Access, read: Access) -> bool:
    """The common case: the same element in the same iteration, under no more conditions than the read."""
    return (
        write.indices == read.indices
        and write.loops == read.loops
        and set(write.conditions.positives) <= set(read.conditions.positives)
        and set(write.conditions.zeros) <= set(read.conditions.zeros)
    )


def uncovered_element(read: Access, writes: Sequence[Access]) -> Missed | None:
    """An element that `read` touches in some iteration and none of `writes` ever does.

    The order in which they run is not looked at. Loops of the writes whose extent is a symbol are taken to run at least
    once: a program is not wrong because a reduction over nothing would leave its result unwritten. None when there is
    no such element, or when that is not known exactly. Raises `NotProved`.
    """
    if not is_exact(read) or not all(is_exact(write) for write in writes):
        return None
    extents = {Index.of(loop.extent) for write in writes for loop in write.loops if not isinstance(loop.extent, int)}
    running = [extent - 1 for extent in extents if all(is_symbol(value) for value in extent.values())]
    places: list[Variable] = [("place", d) for d in range(len(read.indices or ()))]
    keep = [*_fixed_values([read, *writes]), *places]
    remaining = _touched(read, keep, frozenset(), running)
    for write in writes:
        touched = _touched(write, keep, frozenset())
        remaining = within_budget(lambda r=remaining, t=touched: r.subtract(t))
        if within_budget(remaining.is_empty):
            return None
    point = sample_point(remaining, keep)
    domains = tuple(Domain(write.loops, write.indices or (), (), write.conditions) for write in writes)
    return Missed(tuple(point[place] for place in places), symbols_in(point), domains)


def _uncovered_is_empty(
    read: Access,
    free: Mapping[int, Index],
    writes: Sequence[Access],
    earlier: Sequence[Access],
    settled: Mapping[SSAValue, None],
    loop: ForOp | None,
) -> bool:
    """Whether all that `read` touches (anything along `free` dimensions) is written by `writes` in the same iteration
    of the loops around both, or by `earlier` ones in an earlier iteration of a serial loop inside `loop`."""
    outer: list[Variable] = [loop.induction_variable for loop in read.loops]
    places: list[Variable] = [("place", d) for d in range(len(read.indices or ()))]
    sizes = (value for extent in free.values() for value in extent.values())
    keep = [*dict.fromkeys([*_fixed_values([read, *writes, *earlier]), *sizes, *settled]), *outer, *places]
    common = frozenset((*settled, *(loop.induction_variable for loop in read.loops)))
    remaining = _touched(read, keep, common, settled=settled, free=free)
    for write in writes:
        touched = _touched(write, keep, common, opaque=settled)
        remaining = within_budget(lambda r=remaining, t=touched: r.subtract(t))
        if within_budget(remaining.is_empty):
            return True
    for write in earlier:
        for level in _levels(read, write, loop):
            shared = frozenset(around.induction_variable for around in read.loops[:level])
            touched = _touched(write, keep, shared, before=read.loops[level])
            remaining = within_budget(lambda r=remaining, t=touched: r.subtract(t))
            if within_budget(remaining.is_empty):
                return True
    return False


def _levels(read: Access, write: Access, loop: ForOp | None) -> list[int]:
    """The positions of the loops around both, inside `loop`, whose iterations run one after the other."""
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
    """The values outside of all loops that the accesses and their loops depend on."""
    seen: dict[Variable, None] = {}
    for access in found:
        extents = [Index.of(loop.extent) for loop in access.loops if not isinstance(loop.extent, int)]
        parts = (*(access.indices or ()), *access.conditions.positives, *access.conditions.zeros, *extents)
        seen.update((value, None) for index in parts for value in index.values() if is_fixed(value) or is_symbol(value))
    return list(seen)


def _touched(
    access: Access,
    keep: list[Variable],
    common: Collection[SSAValue],
    assumed: Sequence[Index] = (),
    opaque: Collection[SSAValue] = (),
    settled: Collection[SSAValue] = (),
    before: ForOp | None = None,
    free: Mapping[int, Index] | None = None,
) -> isl.Set:
    """The elements that `access` touches, as a set over the symbols, the `common` loop values, and the place, where
    none of `assumed` is negative.

    With `before`, in iterations of that loop before the one that is kept. Values in `opaque` are any numbers. Of those
    in `settled` it is used how they are computed; the set may be larger then. Along `free` dimensions, which come with
    their extents, it is all that the buffer has.
    """
    question = Question(common, opaque=opaque)
    naming = question.naming("own")
    question.add("own", access)
    for index in assumed:
        question.not_negative((index, "own"))
    for d, index in enumerate(access.indices or ()):
        place: Variable = ("place", d)
        if free is not None and d in free:
            question.declare(place, 0, None)
            question.less(Row({place: 1}, 0), question.row(free[d], naming))
        else:
            question.bounds.setdefault(place, (None, None))
            question.equal(Row({place: 1}, 0), question.row(index, naming))
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
