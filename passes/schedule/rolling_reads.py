"""Reads and writes around a window, as integer-set questions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

from xdsl.ir import Operation, SSAValue

from weft.analysis.accesses import Access, accesses, is_fixed, range_of
from weft.analysis.dependence import add_domain, buffer_name, evaluate, instances_where, is_exact, undecided
from weft.analysis.index import Index
from weft.analysis.replay import instance_at, tried
from weft.analysis.sets import NotProved, Point, System, Variable
from weft.analysis.structure import precedes
from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.padding_domains import bindings_of
from weft.passes.schedule.rolling_windows import Window
from weft.support.errors import Violation


def outside_of(read: Access, window: Window) -> Violation | None:
    """A read of an element that does not lie in the window of its iteration."""
    if read.indices is None:
        return Violation("a call reads the whole buffer", "not proved")
    place = read.indices[window.dimension] - window.lower
    low, high = place.simplified(range_of).range(range_of)
    if low is not None and high is not None and low >= 0 and high < window.extent:
        return None
    for outside in (-place - 1, place - window.extent):
        point = _point_where(read, outside)
        if point is None:
            continue
        if not is_exact(read):
            return Violation("what it reads is not affine in the loops", "not proved")
        iteration = {
            loop.induction_variable.name_hint or "?": point.get(loop.induction_variable, 0) for loop in read.loops
        }
        first = evaluate(window.lower, lambda value, point=point: point.get(value, 0))
        element = evaluate(read.indices[window.dimension], lambda value, point=point: point.get(value, 0))
        text = ", ".join(f"{name}={value}" for name, value in iteration.items())
        detail = (
            f"iteration ({text}) reads index {element} of dimension {window.dimension}, "
            f"its window is {first}..{first + window.extent - 1}"
        )
        return Violation(
            detail, "refuted", {"iteration": iteration}, replay=partial(_really_outside, read, window, point)
        )
    return None


def _really_outside(read: Access, window: Window, point: Point) -> bool:
    """Whether a read runs at a point, and leaves the window of that iteration."""

    def question() -> bool:
        instance = instance_at(point, "", read.loops)
        place = instance.element(read)[1][window.dimension] - instance.number(window.lower)
        return instance.runs(read.op) and not 0 <= place < window.extent

    return tried(question)


def _point_where(read: Access, positive: Index) -> Point | None:
    """An instance of a read in which an index is not negative."""
    system = instances_where(read, positive)
    return None if system.is_empty() else system.find_point()


def changed_between(block: BlockOp, other: Operation, window: Window, outside: Sequence[ForOp]) -> Violation | None:
    """`other` writes something that `block` reads for an element, after one iteration of the window's loop computes
    that element and before another one does. `outside` are the loops around the window's loop."""
    for read in accesses(block):
        for write in accesses(other):
            if read.is_write or not write.is_write or read.buffer is not write.buffer:
                continue
            try:
                violation = _changed(block, read, write, window, outside)
            except NotProved as error:
                violation = undecided(error)
            if violation is not None:
                return violation
    return None


def _changed(block: BlockOp, read: Access, write: Access, window: Window, outside: Sequence[ForOp]) -> Violation | None:
    if read.indices is None or write.indices is None:
        return Violation(f"a call touches {buffer_name(read.buffer)}", "not proved")
    system = System()
    shared = {loop.induction_variable for loop in outside}
    kept, again, writer = (_named(system, role, shared) for role in ("kept", "again", "writer"))
    add_domain(system, read.loops, read.conditions, kept)
    add_domain(system, read.loops, read.conditions, again)
    add_domain(system, write.loops, write.conditions, writer)
    for index in bindings_of(block):
        system.equal(system.row(index, kept), system.row(index, again))
    for left, right in zip(read.indices, write.indices, strict=True):
        system.equal(system.row(left, again), system.row(right, writer))
    value = Index.of(window.loop.induction_variable)
    first, last, between = (system.row(value, naming) for naming in (kept, again, writer))
    is_first = precedes(write.op, block)
    system.less(first, last)
    system.less(first, between, by=1 if is_first else 0)
    system.less(between, last, by=0 if is_first else 1)
    point = None if system.is_empty() else system.find_point()
    if point is None:
        return None
    if not (is_exact(read) and is_exact(write)):
        return Violation("the subscripts or conditions are not affine", "not proved")
    variable = window.loop.induction_variable
    name = variable.name_hint or "?"
    values = [point.get((role, variable), 0) for role in ("kept", "writer", "again")]

    def value_again(value: SSAValue, point: Point = point) -> int:
        return point.get(again(value), 0)

    place = ", ".join(str(evaluate(index, value_again)) for index in read.indices)
    owner = f'block "{write.block.label}"' if write.block else write.op.name
    detail = (
        f"iterations {name}={values[0]} and {name}={values[2]} compute an element from "
        f"{buffer_name(read.buffer)}[{place}], which {owner} writes in iteration {name}={values[1]}"
    )
    roles = ("computed", "written", "computed again")
    return Violation(
        detail,
        "refuted",
        {role: {name: v} for role, v in zip(roles, values, strict=True)},
        replay=lambda: _really_changed(block, read, write, values, point),
    )


def _really_changed(block: BlockOp, read: Access, write: Access, iterations: Sequence[int], point: Point) -> bool:
    """Whether two runs of an instance of a block read what is written in between, or at the same time, as the
    iterations of the loop say."""

    def question() -> bool:
        kept, again = (instance_at(point, role, read.loops) for role in ("kept", "again"))
        writer = instance_at(point, "writer", write.loops)
        is_first = precedes(write.op, block)
        first, between, last = iterations
        in_order = first < between <= last if is_first else first <= between < last
        return (
            in_order
            and all(kept.value(variable) == again.value(variable) for variable in block.iter_vars)
            and kept.runs(read.op)
            and again.runs(read.op)
            and writer.runs(write.op)
            and again.element(read) == writer.element(write)
        )

    return tried(question)


def _named(system: System, role: str, shared: Collection[SSAValue]) -> Callable[[SSAValue], Variable]:
    """Values of one role; those of the shared loops, and what is fixed in the function, are the same in all roles."""

    def name(value: SSAValue) -> Variable:
        variable: Variable = value if value in shared or is_fixed(value) else (role, value)
        system.declare(variable, *range_of(value))
        return variable

    return name
