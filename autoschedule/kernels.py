"""Default schedules of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from weft.analysis.block_patterns import BlockPattern, Operand, PatternKind
from weft.analysis.block_scopes import function_of, holds_one_nest
from weft.analysis.dependence import is_temporary
from weft.autoschedule.executor import THREAD, planned, to_threads
from weft.autoschedule.nests import consecutive, iterators_of, leading, nests_over_rows
from weft.autoschedule.rules import Rule, Sampled, fused, loop_of, op_of, product, total_of
from weft.dialects.element_types import bytes_of
from weft.dialects.low_kernel import BLOCK_AXES
from weft.dialects.promises import ALL_PROMISES, promises_of
from weft.dialects.tir_kinds import IterKind
from weft.plans.decisions import Decisions
from weft.plans.roles import ContractionRoles, contraction_roles
from weft.plans.tile_plan import CopyLoops, Loop, LoopSplit, ResultCopy, Staged, TilePlan
from weft.schedule.recording import BlockHandle
from weft.schedule.schedule import Schedule
from weft.support.gpu_machine import GpuMachine
from weft.support.target import Target

BLOCK: Final = "blockIdx.x"
_THREADS: Final = 256
"""Threads per block: enough to hide the latency of memory, few enough for several blocks per multiprocessor."""


def threads_for(work: int | None, target: Target, decisions: Decisions) -> int:
    """Threads that share `work` steps: a power of two of at least a warp, and at most `work` (None counts as many). A
    search may choose up to the limit of the device."""
    device = _device(target)
    most, warp = device.max_threads_per_block, device.warp_size
    threads = min(_THREADS, most)
    while work is not None and threads > warp and threads > work:
        threads //= 2
    many = most if work is None else min(most, 2 * max(work, warp) - 1)
    return decisions.size(threads, many, least=warp)


def _device(target: Target) -> GpuMachine:
    return target.gpu or GpuMachine()


def _total(pattern: BlockPattern, loops: Sequence[Loop]) -> int | None:
    return product(pattern.extent_of(pattern.block.iter_vars[at]) for (at, *_) in loops)


def _loops(pattern: BlockPattern) -> tuple[list[Loop], list[Loop]]:
    return [(v.index,) for v in pattern.spatial], [(v.index,) for v in pattern.reduced]


@planned()
def result_for_thread(pattern: BlockPattern, target: Target, decisions: Decisions) -> TilePlan | None:
    """Fuse the spatial loops and bind their iterations to threads; adjacent threads write adjacent elements.

    Not applicable if results are not proved independent, or to reductions whose indices need divisions by symbolic
    extents.
    """
    spatial, reduced = _loops(pattern)
    if not spatial and not reduced:
        return None  # a block in no loop is a kernel of one thread as it is
    if not spatial:
        return TilePlan(unit=THREAD, registers=0, threads=())
    if reduced and len(spatial) > 1 and _total(pattern, spatial[1:]) is None:
        return None
    split = LoopSplit(spatial[0], (None, threads_for(_total(pattern, spatial), target, decisions)))
    block, thread = split.parts
    # A reduction of several results runs in memory.
    in_register = len(reduced) > 0 and len(pattern.writes) == 1
    return TilePlan(
        outermost=(*spatial, *reduced) if IterKind.REDUCE in pattern.block.kinds[: len(spatial)] else (),
        fused=(tuple(spatial),),
        splits=(split,),
        result=ResultCopy(thread) if in_register else None,
        start=reduced[0] if in_register else None,
        registers=0,
        bound=((block, BLOCK), (thread, THREAD)),
        threads=(),
    )


def inner_loops_for_thread(*, in_register: bool) -> Rule:
    """Bind the three innermost spatial loops to threads and thread blocks; the others run within a thread.

    For blocks whose results are not proved independent with all loops fused, which involves products of symbolic
    extents. Reductions run in a register, or in the memory of the result.
    """

    @planned()
    def inner_loops(pattern: BlockPattern, target: Target, decisions: Decisions) -> TilePlan | None:
        spatial, reduced = _loops(pattern)
        if not spatial or (in_register and not reduced):
            return None
        *around, last = spatial[-len(BLOCK_AXES) :]
        inner = (*spatial[: -len(BLOCK_AXES)], *reduced)
        split = LoopSplit(last, (None, threads_for(_total(pattern, [last]), target, decisions)))
        block, thread = split.parts
        is_known = _total(pattern, spatial[: -len(BLOCK_AXES)]) is not None
        is_kept = in_register and is_known and len(pattern.writes) == 1
        return TilePlan(
            splits=(split,),
            order=(*around, block, thread, *inner),
            result=ResultCopy(thread) if is_kept else None,
            start=inner[0] if is_kept else None,
            registers=0,
            bound=(*zip((block, *reversed(around)), BLOCK_AXES, strict=False), (thread, THREAD)),
            threads=(),
        )

    return inner_loops


_SUMS: Final = (PatternKind.REDUCTION, PatternKind.CONTRACTION)
"""Patterns whose results are reduced by threads together. Pooling is excluded: windows of neighbouring results overlap,
so one thread per result reads them better."""
_FEW_RESULTS: Final = 1024
"""Maximum number of results for which one thread per result would leave most of a device idle."""
_SHORT: Final = 32
"""Maximum number of steps that one thread reduces alone."""


@planned()
def reduction_for_block(pattern: BlockPattern, target: Target, decisions: Decisions) -> TilePlan | None:
    """Use a thread block for each result: its threads share the reduction steps and combine their results.

    Not applicable to short reductions, to those contiguous in memory along results but not along steps (one thread per
    result then reads memory as well), and to combiners that are not commutative.
    """
    rows, steps = _loops(pattern)
    if pattern.kind not in _SUMS or leading(pattern) != len(rows):
        return None
    work, results = _total(pattern, steps), _total(pattern, rows)
    few = results is not None and results <= _FEW_RESULTS
    pays = (work is None or work > _SHORT) and (few or consecutive(pattern, iterators_of(pattern)[-1], writes=0))
    if not decisions.decide(pays) or (results is None and len(rows) > len(BLOCK_AXES)):
        return None
    # Rows must not depend on divisions by symbolic extents.
    blocks = rows[:1] if results is not None else rows[::-1]
    split = LoopSplit(steps[0], (None, threads_for(work, target, decisions)))
    return TilePlan(
        fused=(*([tuple(rows)] if rows and results is not None else []), tuple(steps)),
        splits=(split,),
        registers=0,
        bound=((split.parts[1], THREAD), *zip(blocks, BLOCK_AXES, strict=False)),
        unit="" if rows else BLOCK,
        threads=(),
    )


def rows_for_blocks(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """Use a thread block for each row: threads share the elements of every nest and reduce together; rows passed
    between nests stay in shared memory.

    Not applicable without a reduction, if one covers less than a row (products, windows), or if a row does not fit in
    shared memory or has a symbolic length.
    """
    first = op_of(sch, block)
    patterns, shared = nests_over_rows(first, _rows)
    reducing = [pattern for pattern in patterns if pattern.is_reduction]
    if len(patterns) < 2 or not reducing or any(leading(pattern) != shared for pattern in reducing):
        return False
    kept = [_bytes_of_a_row(pattern, write, shared) for pattern in patterns for write in pattern.writes]
    if target.gpu is None or None in kept or sum(size or 0 for size in kept) * 2 > target.gpu.max_shared_bytes:
        return False
    if not Sampled(sch).decide(True):
        return False
    function = function_of(first).sym_name.data
    members = [sch.get_block(pattern.block.label, function) for pattern in patterns]
    sch.merge(*(sch.get_loops(member)[shared - 1] for member in members))
    work = [total_of(sch, sch.get_loops(member)[shared:]) for member in members]
    threads = threads_for(None if None in work else max(size or 1 for size in work), target, Sampled(sch))
    for member in members:
        if own := sch.get_loops(member)[shared:]:
            to_threads(sch, own, threads)
    rows = sch.get_loops(members[0])[:shared]
    if total_of(sch, rows) is not None:
        rows = [fused(sch, rows)]
    for loop, axis in zip(reversed(rows), BLOCK_AXES, strict=False):
        sch.bind(loop, axis)
    return len(rows) <= len(BLOCK_AXES)


def _rows(pattern: BlockPattern) -> int:
    """All loops except reduction loops, or all except the last if elementwise."""
    if pattern.kind is PatternKind.REDUCTION:
        return leading(pattern)
    return max(len(iterators_of(pattern)) - 1, 0) if pattern.kind is PatternKind.INJECTIVE else 0


def _bytes_of_a_row(pattern: BlockPattern, write: Operand, shared: int) -> int | None:
    """Bytes of a row in a temporary, 0 for outputs of the program; None if its length is unknown."""
    if not is_temporary(write.buffer):
        return 0
    elements = product(pattern.extent_of(v) for v in pattern.spatial if v.index >= shared)
    return None if elements is None else elements * bytes_of(write.element_type)


def in_one_thread(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """Run a whole nest in one thread, in order.

    Not applicable if the function has all assumptions (`tir.promises`) of weft's own functions: other rules apply.
    """
    function = function_of(op_of(sch, block))
    if promises_of(function) == ALL_PROMISES:
        return False
    loops = sch.get_loops(block)
    sch.bind(sch.add_unit_loop(loops[0] if loops else block), BLOCK)
    return True


def shared_loops_for_thread(sch: Schedule, block: BlockHandle, target: Target, *, inner: bool) -> bool:
    """Bind the outermost loop of a nest of several blocks to threads, fused with the `inner` ones down to the first
    with more than one nest. Each thread runs the rest in order."""
    loops = sch.get_loops(block)
    count = 1 + sum(1 for _ in takewhile(lambda loop: holds_one_nest(loop_of(sch, loop)), loops))
    if not inner and count == 1:
        return False
    shared = loops[: count if inner else 1]
    threads = threads_for(total_of(sch, shared), target, Sampled(sch))
    outer, thread = sch.split(fused(sch, shared), factors=[None, threads])
    sch.bind(outer, BLOCK)
    sch.bind(thread, THREAD)
    return True


_EACH: Final = 4
"""The default number of rows and columns of results per thread."""
_SIDE: Final = 16
"""The number of threads along the rows, and along the columns, of a tile. It is halved if there are few rows or
columns."""
_STEPS: Final = 16
"""The number of steps of the sum for which both factors are fetched at once: four elements of each per thread. It is
halved if the sum is shorter."""
_FETCHED_BYTES: Final = 16
"""Maximum number of bytes that a thread moves at once."""


@planned()
def tiles_in_shared_memory(pattern: BlockPattern, target: Target, decisions: Decisions) -> TilePlan | None:
    """Compute a tile of results per thread block, 4 x 4 per thread: the block fetches rows of one factor and columns of
    the other into shared memory, and fuses elementwise producers and consumers.

    Not applicable to products with vectors, and if there are too few rows or columns for a tile.
    """
    roles = contraction_roles(pattern)
    if roles is None or roles.row is None or roles.same_buffer or _is_small(roles) or not decisions.decide(True):
        return None
    device = _device(target)
    most, lengths = device.max_threads_per_block, (roles.row_count, roles.columns)
    fits = all(extent is None or extent > _SIDE * _EACH // 2 for extent in lengths) and most >= _SIDE * _SIDE
    sides = [side for side in (_SIDE // 2, _SIDE, 2 * _SIDE) if side * side <= most]
    side = decisions.choose(sides, _SIDE if fits else _SIDE // 2)
    each = decisions.choose((_EACH // 2, _EACH, 2 * _EACH), _EACH)
    steps = _steps(roles, side * each, target, decisions)
    *slow, fast = ((at,) for at in roles.reduced)
    splits = (
        LoopSplit((roles.row,), (None, side, each)),
        LoopSplit((roles.column,), (None, side, each)),
        LoopSplit(fast, (None, steps)),
    )
    (rows, thread, row), (columns, neighbour, column), (fetches, step) = (split.parts for split in splits)
    others: tuple[Loop, ...] = tuple((at,) for at in sorted((*roles.batch, *roles.rows)))
    joined: list[tuple[Loop, ...]] = [(thread, neighbour)]
    tiles = None if roles.row_count is None else -(-roles.row_count // (side * each))
    if max(_total(pattern, others) or 1, tiles or 1) > min(device.max_grid[1:]):
        joined.append((*others, rows, columns))
        blocks = [(joined[-1][0], BLOCK)]
    else:
        joined += [others] if others else []
        blocks = [(rows, "blockIdx.y"), (columns, BLOCK), *((others[0], "blockIdx.z") for _ in others[:1])]
    loops = CopyLoops(threads=side * side, thread_bytes=_FETCHED_BYTES)
    return TilePlan(
        splits=splits,
        order=(*others, rows, columns, thread, neighbour, *slow, fetches, step, row, column),
        joined=tuple(joined),
        staged=tuple(
            Staged(factor.position, fetches, scope="shared", fuses_producer=True, loops=loops)
            for factor in (roles.left, roles.right)
        ),
        result=ResultCopy(thread, kept=0, is_first=True),
        start=(*slow, fetches)[0],
        registers=0,
        bound=(*blocks, (thread, THREAD)),
        threads=(),
    )


def _steps(roles: ContractionRoles, side: int, target: Target, decisions: Decisions) -> int:
    count = roles.extents[roles.reduced[-1]]
    default = _STEPS if count is None or count >= _STEPS else _STEPS // 2
    row = side * (roles.left.element_bytes + roles.right.element_bytes)
    most = default if target.gpu is None else target.gpu.max_shared_bytes // row
    steps = {default, *(size for size in (_STEPS // 2, _STEPS, 2 * _STEPS) if size <= most)}
    return decisions.choose(sorted(steps), default)


def _is_small(roles: ContractionRoles) -> bool:
    return any(extent is not None and extent < _EACH * 2 for extent in (roles.row_count, roles.columns))
