"""Windows: the rows of a buffer that an iteration computes, and their shift per iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from weft.analysis.accesses import Conditions, is_fixed, range_of
from weft.analysis.dependence import add_domain, buffer_name, declaring
from weft.analysis.index import Index
from weft.analysis.sets import NotProved, Row, System
from weft.analysis.structure import loops_around
from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.padding_domains import bindings_of, own_loops
from weft.passes.schedule.rewriting import guards_of


@dataclass(frozen=True)
class Window:
    """In an iteration of `loop`, indices `lower .. lower + extent - 1` of a dimension are computed by the iterations of
    `rows`; in the next iteration the window begins up to `step` later, which is less than `extent`, and never earlier.
    """

    loop: ForOp
    dimension: int
    rows: ForOp
    step: int
    extent: int
    lower: Index
    """Over the loops around `rows`."""

    @property
    def shared(self) -> int:
        """How many of the indices the iteration before has surely computed."""
        return self.extent - self.step

    def new_rows(self, row: Index) -> tuple[Index, Index] | None:
        """The guard (left < right) that `row`, one of the last `step` indices, is not in the window of the iteration
        before; None where that is always so, and where the first iteration would not run all of them."""
        value = self.loop.induction_variable
        before = self.lower.substitute({value: Index({value: 1}, -1)})
        first = [lower.substitute({value: Index({})}) for lower in (before, self.lower)]
        steady = self.lower - before == Index({}, self.step)
        if steady or first[1] - first[0] != Index({}, self.step):
            return None
        return (before + (self.extent - 1)).simplified(range_of), row.simplified(range_of)


@dataclass(frozen=True)
class NoWindow:
    """Why a dimension has no window that overlaps the next one."""

    reason: str


def window_of(
    block: BlockOp, buffer: SSAValue, indices: Sequence[Index], dimension: int, loop: ForOp, common: Sequence[ForOp]
) -> Window | NoWindow:
    """How a dimension of a buffer that `block` stores at `indices` moves with one of the `common` loops, which are
    around the block and the readers of the buffer."""
    value = loop.induction_variable
    name = f"dimension {dimension} of {buffer_name(buffer)}"
    iterators: dict[SSAValue, int] = {v: at for at, v in enumerate(block.iter_vars)}
    mine = [v for v in indices[dimension].values() if v in iterators]
    rest = indices[dimension] - Index.of(mine[0]) if len(mine) == 1 else indices[dimension]
    if len(mine) != 1 or not all(is_fixed(other) for other in rest.values()):
        return NoWindow(f"{name} is not indexed by one iterator")
    position = iterators[mine[0]]
    binding = bindings_of(block)[position]
    rows = [own for own in own_loops(block) if binding.coefficient(own.induction_variable) == 1]
    if len(rows) != 1 or not binding.depends_on([value]):
        return NoWindow(f"{name} does not move with %{value.name_hint or '?'}")
    (inner,) = rows
    variable = inner.induction_variable
    lower = binding - Index.of(variable)
    known = [around.induction_variable for around in common]
    if any(other not in known and not is_fixed(other) for other in lower.values()):
        return NoWindow(f"{name} is computed by several loops")
    step = _largest_step(lower, loop)
    if step is None:
        return NoWindow(f"{name} does not move steadily forward with %{value.name_hint or '?'}")
    if not isinstance(inner.extent, int) or step >= inner.extent:
        extent = inner.extent if isinstance(inner.extent, int) else "many"
        return NoWindow(f"{name} moves by {step} with %{value.name_hint or '?'} and spans {extent}")
    window = Window(loop, dimension, inner, step, inner.extent, lower + rest)
    reason = _why_not_alone(block, position, window)
    return window if reason is None else NoWindow(reason)


def _largest_step(lower: Index, loop: ForOp) -> int | None:
    """By how much an index grows at most from an iteration of a loop to the next; None where it does not grow, may get
    less in some iteration, or that is not known."""
    value = loop.induction_variable
    following = lower.substitute({value: Index({value: 1}, 1)})
    distance = following - lower
    if distance.is_constant:
        return distance.constant if distance.constant > 0 else None
    system = System()
    naming = declaring(system)
    add_domain(system, [*loops_around(loop), loop], Conditions(), naming)
    system.less(system.row(Index({value: 1}, 1), naming), system.row(Index.of(loop.extent), naming))
    system.bounds["step"] = (None, None)
    system.equal(Row({"step": 1}, 0), system.row(distance, naming))
    try:
        limits = system.limits("step")
    except NotProved:
        return None
    return None if limits is None or limits[0] < 0 or limits[1] < 1 else limits[1]


def _why_not_alone(block: BlockOp, position: int, window: Window) -> str | None:
    """Nothing but the index of its dimension depends on the two loops of a window."""
    value, rows = window.loop.induction_variable, window.rows.induction_variable
    for at, binding in enumerate(bindings_of(block)):
        if at != position and binding.depends_on([value, rows]):
            name = block.iter_vars[at].name_hint or str(at)
            return f"iterator %{name} moves with the window too"
    if any(use.operation is not block for use in rows.uses):
        return f"%{rows.name_hint or '?'} is used for more than the window"
    for left, right in guards_of(block):
        room = right - left
        if (room - bindings_of(block)[position] * room.coefficient(rows)).depends_on([value, rows]):
            return f"the guard {left!r} < {right!r} is no guard on the elements alone"
    for loop in _loops_between(window.loop, block):
        if not isinstance(loop.extent, int) and not is_fixed(loop.extent):
            return f"the extent of %{loop.induction_variable.name_hint or '?'} may differ between iterations"
    return None


def _loops_between(outer: ForOp, block: BlockOp) -> list[ForOp]:
    found: list[ForOp] = []
    parent = block.parent_op()
    while parent is not None and parent is not outer:
        if isinstance(parent, ForOp):
            found.append(parent)
        parent = parent.parent_op()
    return found
