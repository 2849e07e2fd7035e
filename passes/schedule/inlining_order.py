"""Inlining of blocks that update a buffer in place: is the value still there at the place of use?

When a producer becomes part of its reader (or the reader of its producer), instances of the two alternate. What one of
them overwrites, an instance of the other that comes later may not need any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.ir import SSAValue

from weft.analysis.accesses import Access, accesses, is_fixed, range_of
from weft.analysis.dependence import PairSystem, add_domain, conflict_between, is_exact, undecided, whole_buffer
from weft.analysis.index import Index
from weft.analysis.replay import Order
from weft.analysis.sets import Naming, NotProved, Variable
from weft.analysis.structure import precedes
from weft.dialects.tir import BlockOp, ForOp
from weft.support.errors import Violation


def overwritten_before_use(block: BlockOp, reader: BlockOp, buffer: SSAValue) -> Violation | None:
    """An instance of `block` whose inputs an earlier instance of `reader` overwrites, when `reader` computes what it
    needs of `buffer` itself."""
    (store,) = (a for a in accesses(block) if a.is_write and a.buffer is buffer)
    for read, write in _pairs(block, reader, buffer):
        for load in (a for a in accesses(reader) if not a.is_write and a.buffer is buffer):
            common = _common_loops(load, write)
            again = precedes(write.op, load.op) or load.loops != write.loops
            for level in range(len(common) + again):

                def ordered(
                    order: Order, load: Access = load, level: int = level, common: list[ForOp] = common
                ) -> None:
                    if isinstance(order, PairSystem):
                        moved = _third_instance(order, load)
                        _same_element(order, (store, order.first), (load, moved))
                        _add_order(order, common, level, order.second, moved)

                violation = _conflict(read, write, ordered, is_exact(load) and is_exact(store))
                if violation is not None:
                    return violation
    return None


def overwritten_by_consumer(producer: BlockOp, block: BlockOp, buffer: SSAValue) -> Violation | None:
    """An instance of `producer` whose inputs `block` overwrites in an earlier one, when each instance of `producer`
    does what `block` does with the element of `buffer`."""
    (store,) = (a for a in accesses(producer) if a.is_write and a.buffer is buffer)
    for read, write in _pairs(producer, block, buffer):
        load = next(a for a in accesses(block) if not a.is_write and a.buffer is buffer)
        if load.loops != write.loops or store.loops != read.loops:
            return Violation("it writes what its producer reads, in loops of its own", "not proved")
        for level in range(len(store.loops) + precedes(store.op, read.op)):

            def ordered(order: Order, load: Access = load, level: int = level) -> None:
                if isinstance(order, PairSystem):
                    moved = _third_instance(order, store)
                    _same_element(order, (load, order.second), (store, moved))
                    _add_order(order, list(store.loops), level, moved, order.first)

            violation = _conflict(read, write, ordered, is_exact(load) and is_exact(store))
            if violation is not None:
                return violation
    return None


def _pairs(block: BlockOp, other: BlockOp, buffer: SSAValue) -> Iterator[tuple[Access, Access]]:
    """What `block` reads, but for `buffer`, with each write of it by `other`."""
    writes = [access for access in accesses(other) if access.is_write]
    for read in accesses(block):
        if not read.is_write and read.buffer is not buffer:
            yield from ((read, write) for write in writes if write.buffer is read.buffer)


def _conflict(read: Access, write: Access, ordered: Callable[[Order], object], exact: bool) -> Violation | None:
    if read.indices is None or write.indices is None:
        return whole_buffer(read, write)
    try:
        conflict = conflict_between(read, write, (), ordered)
    except NotProved as error:
        return undecided(error)
    if conflict is None:
        return None
    if not exact:
        return Violation(f"{conflict.describe()} may come before it: the subscripts are not affine", "not proved")
    return conflict.violation("and would change places")


def _common_loops(first: Access, second: Access) -> list[ForOp]:
    return [loop for loop, other in zip(first.loops, second.loops, strict=False) if loop is other]


def _third_instance(system: PairSystem, access: Access) -> Naming:
    """An instance of a third access: the values of its loops, in its domain."""

    def name(value: SSAValue) -> Variable:
        variable: Variable = value if is_fixed(value) else ("third", value)
        system.declare(variable, *range_of(value))
        return variable

    add_domain(system, access.loops, access.conditions, name)
    return name


def _same_element(system: PairSystem, one: tuple[Access, Naming], other: tuple[Access, Naming]) -> None:
    for left, right in zip(one[0].indices or (), other[0].indices or (), strict=True):
        system.equal(system.row(left, one[1]), system.row(right, other[1]))


def _add_order(system: PairSystem, loops: list[ForOp], level: int, first: Naming, second: Naming) -> None:
    """The first instance runs earlier: equal in the loops outside of a level, earlier there; past the last level, both
    are one."""
    for at, loop in enumerate(loops[: level + 1]):
        value = Index.of(loop.induction_variable)
        left, right = system.row(value, first), system.row(value, second)
        if at < level:
            system.equal(left, right)
        else:
            system.less(left, right)
