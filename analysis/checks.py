"""Checks of tir programs: coverage of domains, bounds of accesses, outputs, independence of parallel iterations.

They run at level boundaries and after parsing. Errors are raised as `CompileError`, unless validation contradicts
(docs/decisions/0008-counterexamples-and-fuzzing.md). A check undecided within the budget passes; the interpreter
checks it at run time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product, takewhile
from math import prod
from typing import Final, NoReturn, TypeAlias

from xdsl.dialects import memref
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from weft.analysis.accesses import Access, Context, Domain, accesses, domain_of, is_loop_value, is_symbol, range_of
from weft.analysis.block_scopes import (
    ancestors,
    buffers_loaded,
    buffers_written,
    guards_of,
    parts_of,
    precedes,
    reduced_store_indices,
    scope_of,
    stored_buffer,
)
from weft.analysis.bounds import Bounds, check_bounds
from weft.analysis.coverage import (
    instance_of_both,
    missed_instance,
    read_is_covered,
    repeated_instance,
    uncovered_element,
)
from weft.analysis.dependence import buffer_name, is_exact, is_temporary
from weft.analysis.independence import NO_WAIT, carried_conflict
from weft.analysis.index import Index
from weft.analysis.questions import Counterexample, instances_where, point_text
from weft.analysis.sets import NotProved
from weft.analysis.threads import axis_of, block_conflict, kernel_around, nested_binding
from weft.dialects.effects import is_same_elements, opaque_op, underlying
from weft.dialects.low import PARAMS
from weft.dialects.low_kernel import THREAD_AXES
from weft.dialects.tir import AccessRegionOp, BlockOp, ForOp, ReadsOp, WritesOp
from weft.dialects.tir_kinds import IN_STEP, IterKind, LoopKind
from weft.dialects.traversal import operations_in, operations_of
from weft.support.errors import CompileError


def check_program(root: Operation) -> None:
    """Check a function, or those of a module with tir loops or blocks. Functions of the low signature have lost
    their assumptions."""
    for op in operations_in(root):
        if not isinstance(op, FuncOp) or PARAMS in op.attributes:
            continue
        if op is root or bool(operations_of(op, BlockOp, ForOp)):
            check_function(op)


def check_function(function: FuncOp) -> None:
    found = accesses(function)
    bounds = Bounds(function)
    for access in found:
        check_bounds(bounds, access)
    if IN_STEP in function.attributes or not operations_of(function, BlockOp):
        return  # loops were checked before blocks were lowered, barriers when they were inserted
    for op in operations_in(function):
        if isinstance(op, BlockOp):
            check_outputs(op)
            check_coverage(op)
            check_regions(op, found)
    check_reads(found)
    for op in operations_in(function):
        if isinstance(op, ForOp) and op.kind.data in (LoopKind.PARALLEL, LoopKind.VECTORIZED, LoopKind.THREAD_BINDING):
            check_independence(op)
            check_thread_axis(op)
            if axis_of(op) is not None and kernel_around(op) is op:
                check_blocks(op)


def check_independence(loop: ForOp) -> None:
    """Concurrent iterations must be independent, except that lanes of a vectorized loop and threads of a block may
    accumulate into one element: they are combined, or run in order."""
    threads = axis_of(loop) in THREAD_AXES
    try:
        conflict = carried_conflict(loop, reductions=loop.kind.data is LoopKind.PARALLEL, inits=not threads)
    except NotProved:
        return
    if conflict is not None and conflict.exact and conflict.happens(otherwise=True):
        kind = loop.kind.data.value
        raise CompileError.at(loop, f"the loop is {kind}, but {conflict.describe()} at the same time")


def check_blocks(kernel: ForOp) -> None:
    try:
        conflict = block_conflict(kernel)
    except NotProved:
        return
    if conflict is not None and conflict.exact and conflict.happens(otherwise=True):
        raise CompileError.at(conflict.second.op, f"{conflict.describe()} in another thread block: {NO_WAIT}")


def check_thread_axis(loop: ForOp) -> None:
    if loop.thread_axis is None:
        return
    axis = loop.thread_axis.data
    other = nested_binding(loop, axis)
    if other is not None:
        raise CompileError.at(
            loop,
            f"loop %{loop.induction_variable.name_hint} and loop %{other.induction_variable.name_hint} in or around it "
            f"are both bound to {axis}: a thread has one index there, so only iterations with equal values would run",
        )


def check_outputs(block: BlockOp) -> None:
    for op, dimension, variable in reduced_store_indices(block):
        raise CompileError.at(
            op,
            f'block "{block.label}": reduce iterator %{variable.name_hint} is in index {dimension} of the output '
            f"{buffer_name(stored_buffer(op) or op.operands[0])}; an iterator that picks the output element is spatial",
        )


def check_regions(block: BlockOp, found: Sequence[Access]) -> None:
    """Accesses not known exactly (through pointers, data-dependent) are assumed to be as declared; loads of the init
    are exempt."""
    regions = [op for op in block.body.block.ops if isinstance(op, AccessRegionOp)]
    if not regions:
        return
    context = Context.around(regions[0])
    for access in found:
        if block not in access.blocks or not isinstance(access.op, memref.LoadOp | memref.StoreOp):
            continue
        kind = WritesOp if access.is_write else ReadsOp
        stated = [op for op in regions if isinstance(op, kind) and underlying(op.buffer) is access.buffer]
        if not stated or (access.init_of is block and not access.is_write) or not is_exact(access):
            continue
        if not all(is_same_elements(op.buffer) for op in stated):
            continue
        corners = [[context.resolve(v) for v in op.corner_operands] for op in stated]
        boxes: list[Box] = [
            ([Index.of_expr(e, operands) for e in op.corner.data.results], op.box_sizes)
            for op, operands in zip(stated, corners, strict=True)
        ]
        if all(is_loop_value(v) or is_symbol(v) for corner, _ in boxes for low in corner for v in low.values()):
            found_outside = _outside_of_boxes(access, boxes)
            if found_outside is not None:
                _report_uncovered(block, stated[0], access, boxes, found_outside)


Box: TypeAlias = tuple[Sequence[Index], Sequence[int]]
"""Corner and sizes of a region of a buffer."""

_MOST_SIDES: Final = 64
"""The most combinations of sides of declared regions that are tried."""


def _outside_of_boxes(access: Access, boxes: Sequence[Box]) -> Counterexample | None:
    sides: list[list[Index]] = []
    for corner, sizes in boxes:
        beside: list[Index] = []
        for index, low, size in zip(access.indices or (), corner, sizes, strict=True):
            least, most = (index - low).range(range_of)
            beside += [low - index - 1] if least is None or least < 0 else []
            beside += [index - low - size] if most is None or most >= size else []
        sides.append(beside)
    if prod(map(len, sides)) > _MOST_SIDES:
        return None
    for beyond in product(*sides):
        try:
            found = instances_where(access, *beyond).counterexample()
        except NotProved:
            continue
        if found is not None and found.holds():
            return found
    return None


def _report_uncovered(
    block: BlockOp, region: AccessRegionOp, access: Access, boxes: Sequence[Box], found: Counterexample
) -> NoReturn:
    def number(index: Index) -> int:
        return index.evaluate(partial(found.value, ""))

    name, verb = buffer_name(access.buffer), "writes" if access.is_write else "reads"
    element = ", ".join(str(number(index)) for index in access.indices or ())
    stated = " and ".join(
        f"{name}[{', '.join(f'{number(low)}:{number(low) + size}' for low, size in zip(*box, strict=True))}]"
        for box in boxes
    )
    when = point_text(found.iteration("", access.loops))
    raise CompileError.at(
        region,
        f'block "{block.label}" {verb} {name}[{element}] in iteration {when}, where its {region.name} states '
        f"{stated}; legal: regions that cover every access, or none, and they are inferred",
    )


def check_coverage(block: BlockOp) -> None:
    """Loops must run every instance, and a non-idempotent one once. Parts are checked together."""
    domain = domain_of(block)
    parts = parts_of(block)
    others = [domain_of(part) for part in parts if part is not block]
    try:
        if block is parts[0]:
            _check_same_domain(parts)
            along = _needed_iterators(block)
            if (along is None or along) and not _is_cut_by_surroundings(parts):
                given = [index for part in parts for index in Context.around(part).conditions.inequalities]
                missed = missed_instance(domain, *others, loops_run=True, along=along, given=given)
                if missed is not None and missed.holds(otherwise=True):
                    _report_missed(block, missed.place)
        if not _is_idempotent(block):
            restarting = _restarting_loops(block, domain.loops)
            repeated = repeated_instance(domain, restarting)
            if repeated is not None and repeated.holds(otherwise=True):
                _report_repeated(block, domain, repeated)
            for part, other in zip(parts[parts.index(block) + 1 :], others[parts.index(block) :], strict=True):
                if scope_of(part) is not scope_of(block):
                    continue  # In other instances of the enclosing block.
                shared = [loop for loop in domain.loops if loop in other.loops]
                if len(restarting) > len(shared) and len(_restarting_loops(part, other.loops)) > len(shared):
                    continue
                both = instance_of_both(domain, other)
                if both is not None and both.holds(otherwise=True):
                    _report_run_by_both(block, part, domain, other, both)
    except NotProved:
        return


def _is_cut_by_surroundings(parts: Sequence[BlockOp]) -> bool:
    """Whether guards over iterators of enclosing blocks select the instances, so that each instance of those
    excludes others, and their own coverage and guards determine which run."""
    for part in parts:
        around = [v for op in ancestors(part) if isinstance(op, BlockOp) for v in op.iter_vars]
        if any(side.depends_on(around) for guard in guards_of(part) for side in guard):
            return True
    return False


def _check_same_domain(parts: Sequence[BlockOp]) -> None:
    def domain(block: BlockOp) -> tuple[Index, ...]:
        # Each part may compute an extent separately.
        return tuple(Index.of(extent).simplified(range_of) for extent in block.extents)

    first = parts[0]
    for part in parts[1:]:
        if part.iter_kinds != first.iter_kinds or domain(part) != domain(first):
            raise CompileError.at(
                part, f'blocks "{first.label}" and "{part.label}" are parts of one block, but their iterators differ'
            )


def _needed_iterators(block: BlockOp) -> list[int] | None:
    """Iterators that must take all values; None for all. Unwritten elements of a temporary are harmless unless read
    (`check_reads`); computed ones need every reduction step."""
    if not all(is_temporary(buffer) for buffer in buffers_written(block)) or opaque_op(block) is not None:
        return None
    return [at for at, kind in enumerate(block.kinds) if kind is IterKind.REDUCE]


def _is_idempotent(block: BlockOp) -> bool:
    """Whether an instance reads no element that it writes, unless it wrote it earlier."""
    both = set(buffers_written(block)) & set(buffers_loaded(block))
    if not both or block.init is not None:
        return not both
    innermost = next((op for op in ancestors(block) if isinstance(op, ForOp)), None)
    found = accesses(block)
    of_buffers = [[access for access in found if access.buffer is buffer] for buffer in both]
    try:
        return all(a.is_write or read_is_covered(a, same, innermost) for same in of_buffers for a in same)
    except NotProved:
        return False


def _restarting_loops(block: BlockOp, loops: Sequence[ForOp]) -> list[ForOp]:
    """Loops in which every iteration restarts the accumulation, so that repetition is harmless: with an init, those
    outside of the first that a reduce iterator is bound to; with a separate init block, those around both."""
    if block.init is not None:
        reduced = {value for index in Context.around(block).steps_of(block) for value in index.sources()}
        return list(takewhile(lambda loop: loop.induction_variable not in reduced, loops))
    written = set(buffers_written(block))
    for loop in reversed(loops):
        for op in operations_in(loop):
            if stored_buffer(op) in written and precedes(op, block):
                return list(loops[: loops.index(loop) + 1])
    return []


def _report_missed(block: BlockOp, missed: Sequence[int]) -> NoReturn:
    instance = point_text((v.name_hint or f"v{at}", missed[at]) for at, v in enumerate(block.iter_vars))
    loops = domain_of(block).loops
    values = [loop.induction_variable for loop in loops]
    depend = bool(block.guards) or any(Index.of(loop.extent).depends_on(values) for loop in loops)
    legal = "; legal: loops over the whole domain, and an `if` in the body of the block" if depend else ""
    raise CompileError.at(
        block,
        f'block "{block.label}": the loops do not cover the domain: instance {instance} never runs{legal}',
    )


def _report_repeated(block: BlockOp, domain: Domain, repeated: Counterexample) -> NoReturn:
    first, second = (_iteration_text(domain, repeated, role) for role in ("first", "second"))
    raise CompileError.at(
        block,
        f'block "{block.label}": the loops run an instance twice: in iterations {first} and {second}; '
        "it reads what it writes, so the result would change",
    )


def _report_run_by_both(block: BlockOp, part: BlockOp, domain: Domain, other: Domain, both: Counterexample) -> NoReturn:
    first, second = _iteration_text(domain, both, "first"), _iteration_text(other, both, "second")
    raise CompileError.at(
        part,
        f'block "{part.label}": iteration {second} runs an instance that block "{block.label}", a part of the same '
        f"block, runs in iteration {first}; it reads what it writes, so the result would change",
    )


def _iteration_text(domain: Domain, found: Counterexample, role: str) -> str:
    return point_text(found.iteration(role, domain.loops))


def check_reads(found: Sequence[Access]) -> None:
    for access in found:
        if access.is_write or not is_temporary(access.buffer):
            continue
        writes = [a for a in found if a.is_write and a.buffer is access.buffer]
        try:
            missed = uncovered_element(access, writes)
        except NotProved:
            continue
        if missed is not None and missed.holds(otherwise=True):
            place = ", ".join(map(str, missed.place))
            raise CompileError.at(access.op, f"reads {buffer_name(access.buffer)}[{place}], which nothing writes")
