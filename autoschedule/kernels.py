"""Default schedules of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from math import gcd
from typing import Final

from weft.analysis.block_patterns import BlockPattern, Operand, PatternKind, pattern_of
from weft.analysis.dependence import is_temporary
from weft.analysis.structure import function_of, holds_one_nest
from weft.autoschedule.inlining import fuse_consumers, fuse_producer
from weft.autoschedule.nests import consecutive, iterators_of, leading, nests_over_rows
from weft.autoschedule.rules import (
    Sampled,
    extent_of,
    fused,
    loop_of,
    op_of,
    own_loops,
    product,
    total_of,
)
from weft.dialects.element_types import bytes_of
from weft.dialects.low_kernel import BLOCK_AXES
from weft.dialects.promises import ALL_PROMISES, promises_of
from weft.dialects.tir_kinds import IterKind
from weft.plans.roles import ContractionRoles, contraction_roles
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target

BLOCK: Final = "blockIdx.x"
THREAD: Final = "threadIdx.x"
_THREADS: Final = 256
"""Threads of a block: enough to hide that memory is slow, few enough that several blocks run on a processor."""
_WARP: Final = 32


def threads_for(sch: Schedule, work: int | None, target: Target) -> int:
    """How many threads share some steps: a power of two from a warp on, no more than there are steps; None is many. A
    search may choose their number, up to what a device takes."""
    most = _most_threads(target)
    threads = min(_THREADS, most)
    while work is not None and threads > _WARP and threads > work:
        threads //= 2
    many = most if work is None else min(most, 2 * max(work, _WARP) - 1)
    return Sampled(sch).size(threads, many, least=_WARP)


def _most_threads(target: Target) -> int:
    return _THREADS if target.gpu is None else target.gpu.max_threads_per_block


def rows_to_blocks(sch: Schedule, rows: Sequence[LoopHandle]) -> bool:
    """An iteration of some nested loops for each block of threads; says whether there are few enough of them.

    Loops of known extents become one. Others are bound each: in which row a block is must not be a matter of divisions
    by numbers that only calls tell, for what lies in a kernel has a size that is known.
    """
    if total_of(sch, rows) is not None:
        sch.bind(fused(sch, rows), BLOCK)
        return True
    if len(rows) > len(BLOCK_AXES):
        return False
    for loop, axis in zip(reversed(rows), BLOCK_AXES, strict=False):
        sch.bind(loop, axis)
    return True


def to_threads(sch: Schedule, loops: Sequence[LoopHandle], threads: int, lanes: int = 1) -> None:
    """Nested loops shared among the threads of a block, neighbours next to each other, `lanes` of them for each."""
    _, thread, *vector = sch.split(fused(sch, loops), factors=[None, threads, *([lanes] if lanes > 1 else [])])
    sch.bind(thread, THREAD)
    for loop in vector:
        sch.vectorize(loop)


def cut_for_blocks(sch: Schedule, loops: Sequence[LoopHandle], target: Target) -> list[LoopHandle]:
    """Nested loops as one over blocks of threads and one over the threads of a block, an iteration a thread."""
    threads = threads_for(sch, total_of(sch, loops), target)
    return sch.split(fused(sch, loops), factors=[None, threads])


def result_for_thread(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """The spatial loops become one, and its iterations threads; neighbouring threads write neighbouring elements.

    A reduction runs within a thread, in a register, and elementwise consumers are computed on its way out. Not
    applicable where the results are not proved to be independent, and to reductions whose elements are found by
    divisions by extents that only calls tell.
    """
    spatial, reduced = _loops(sch, block)
    if not spatial and not reduced:
        return False  # a block in no loop is a kernel of one thread as it is
    if not spatial:
        sch.bind(sch.add_unit_loop(reduced[0]), THREAD)
        return True
    if reduced and len(spatial) > 1 and total_of(sch, spatial[1:]) is None:
        return False
    if IterKind.REDUCE in op_of(sch, block).kinds[: len(spatial)]:
        sch.reorder(*spatial, *reduced)
    write = _register(sch, block) if reduced else None
    outer, thread = cut_for_blocks(sch, spatial, target)
    _close(sch, block, write, thread, reduced)
    sch.bind(outer, BLOCK)
    sch.bind(thread, THREAD)
    return True


def inner_loops_for_thread(sch: Schedule, block: BlockHandle, target: Target, *, in_register: bool) -> bool:
    """The three innermost spatial loops go to threads and blocks of threads; others run within a thread.

    For blocks whose results are not proved to be independent when all loops are one: the proof takes products of
    extents that are known at run time only. Reductions run in a register as in `result_for_thread`, or in the memory of
    the result.
    """
    spatial, reduced = _loops(sch, block)
    if not spatial or (in_register and not reduced):
        return False
    *around, last = spatial[-len(BLOCK_AXES) :]
    inner = spatial[: -len(BLOCK_AXES)]
    write = _register(sch, block) if in_register and total_of(sch, inner) is not None else None
    outer, thread = cut_for_blocks(sch, [last], target)
    sch.reorder(*around, outer, thread, *inner, *reduced)
    _close(sch, block, write, thread, [*inner, *reduced])
    for loop, axis in zip((outer, *reversed(around)), BLOCK_AXES, strict=False):
        sch.bind(loop, axis)
    sch.bind(thread, THREAD)
    return True


def _loops(sch: Schedule, block: BlockHandle) -> tuple[list[LoopHandle], list[LoopHandle]]:
    """The spatial loops of a plain block, and those of its reduction."""
    pairs = list(zip(sch.get_loops(block), op_of(sch, block).kinds, strict=True))
    spatial = [loop for loop, kind in pairs if kind is IterKind.SPATIAL]
    return spatial, [loop for loop, kind in pairs if kind is IterKind.REDUCE]


def _register(sch: Schedule, block: BlockHandle) -> BlockHandle | None:
    """The block that copies a result out of the register that it is reduced in, with what is computed from it; None for
    several results at once."""
    if len(pattern_of(op_of(sch, block)).writes) != 1:
        return None
    write = sch.cache_write(block, 0, "local")
    fuse_consumers(sch, write)
    return write


def _close(
    sch: Schedule, block: BlockHandle, write: BlockHandle | None, thread: LoopHandle, inner: list[LoopHandle]
) -> None:
    """Let each thread start a reduction before the loops inside of it, and copy out what it has behind them."""
    if write is not None:
        sch.reverse_compute_at(write, thread)
        sch.decompose_reduction(block, inner[0])


_SUMS: Final = (PatternKind.REDUCTION, PatternKind.CONTRACTION)
"""Windows of neighbouring results overlap: a thread for each result reads them better."""
_FEW_RESULTS: Final = 1024
"""Results up to which a thread for each would leave most of a device idle."""
_SHORT: Final = 32
"""Steps up to which a thread reduces alone."""


def reduction_for_block(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """A block of threads for each result: its threads share the steps of the reduction, and combine what they have.

    Not applicable to short reductions, to those of which neighbouring results are neighbours in memory while steps are
    not (a thread for each result then reads memory as well), and to combiners that may not change places.
    """
    pattern = pattern_of(op_of(sch, block))
    if pattern.kind not in _SUMS or leading(pattern) + len(pattern.reduced) != len(iterators_of(pattern)):
        return False
    loops = sch.get_loops(block)
    rows, steps = loops[: leading(pattern)], loops[leading(pattern) :]
    work, results = total_of(sch, steps), total_of(sch, rows)
    few = results is not None and results <= _FEW_RESULTS
    pays = (work is None or work > _SHORT) and (few or consecutive(pattern, iterators_of(pattern)[-1], writes=0))
    if not Sampled(sch).decide(pays):
        return False
    rows = rows or [sch.add_unit_loop(steps[0])]
    to_threads(sch, steps, threads_for(sch, work, target))
    return rows_to_blocks(sch, rows)


def rows_for_blocks(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """A block of threads for each row: its threads share the elements of every nest, and reduce together; what one nest
    leaves of a row for the next stays in shared memory.

    Not applicable where nothing is reduced, where what is reduced is not all of a row (products, windows), and where a
    row is too long to be kept, or of a length that is known at run time only.
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
    threads = threads_for(sch, None if None in work else max(size or 1 for size in work), target)
    for member in members:
        if own := sch.get_loops(member)[shared:]:
            to_threads(sch, own, threads)
    return rows_to_blocks(sch, sch.get_loops(members[0])[:shared])


def _rows(pattern: BlockPattern) -> int:
    """How many outer loops of a nest may be rows: all but those of a reduction, or the last of what is elementwise."""
    if pattern.kind is PatternKind.REDUCTION:
        return leading(pattern)
    return max(len(iterators_of(pattern)) - 1, 0) if pattern.kind is PatternKind.INJECTIVE else 0


def _bytes_of_a_row(pattern: BlockPattern, write: Operand, shared: int) -> int | None:
    """What a nest keeps of a row; nothing of results of the program. None when its length is not known."""
    if not is_temporary(write.buffer):
        return 0
    elements = product(pattern.extent_of(v) for v in pattern.spatial if v.index >= shared)
    return None if elements is None else elements * bytes_of(write.element_type)


def in_one_thread(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """One thread runs all of a nest, in order.

    Not applicable in functions that promise all that weft's own do: there the other rules apply.
    """
    function = function_of(op_of(sch, block))
    if promises_of(function) == ALL_PROMISES:
        return False
    loops = sch.get_loops(block)
    sch.bind(sch.add_unit_loop(loops[0] if loops else block), BLOCK)
    return True


def shared_loops_for_thread(sch: Schedule, block: BlockHandle, target: Target, *, inner: bool) -> bool:
    """The outermost loop of a nest of several blocks becomes threads, together with the `inner` ones down to the first
    that holds more than one nest. Each thread runs the rest in order."""
    loops = sch.get_loops(block)
    count = 1 + sum(1 for _ in takewhile(lambda loop: holds_one_nest(loop_of(sch, loop)), loops))
    if not inner and count == 1:
        return False
    outer, thread = cut_for_blocks(sch, loops[: count if inner else 1], target)
    sch.bind(outer, BLOCK)
    sch.bind(thread, THREAD)
    return True


_EACH: Final = 4
"""Rows and columns of results of a thread, by default."""
_SIDE: Final = 16
"""Threads along the rows, and along the columns, of a tile; half as many where there are few of either."""
_STEPS: Final = 16
"""Steps of the sum for which both factors are fetched at once: four elements of each for a thread. Half as many where
the sum has no more."""
_FETCHED_BYTES: Final = 16
"""What a thread moves at once, at most."""
_MOST_BLOCKS: Final = 65535
"""Blocks along y and z that every device has."""


def tiles_in_shared_memory(sch: Schedule, block: BlockHandle, target: Target) -> bool:
    """A block of threads computes a tile of results, 4 x 4 a thread: it fetches some rows of the one factor and columns
    of the other into shared memory, together, adds up their products, and fetches the next. Rows of known length are
    fetched 16 bytes at a time where that is aligned.

    Elementwise producers are computed on the way in, elementwise consumers on the way out. Not applicable to products
    with vectors, and where rows or columns are so few that a tile would be empty.
    """
    roles = contraction_roles(pattern_of(op_of(sch, block)))
    if roles is None or roles.row is None or roles.same_buffer or _is_small(roles) or not Sampled(sch).decide(True):
        return False
    _Tiles(sch, block, roles, target).run()
    return True


def _is_small(roles: ContractionRoles) -> bool:
    return any(extent is not None and extent < _EACH * 2 for extent in (roles.row_count, roles.columns))


class _Tiles:
    """Schedules one product."""

    def __init__(self, sch: Schedule, block: BlockHandle, roles: ContractionRoles, target: Target) -> None:
        self.sch, self.block, self.roles = sch, block, roles
        most = _most_threads(target)
        lengths = (roles.row_count, roles.columns)
        fits = all(extent is None or extent > _SIDE * _EACH // 2 for extent in lengths) and most >= _SIDE * _SIDE
        sides = [side for side in (_SIDE // 2, _SIDE, 2 * _SIDE) if side * side <= most]
        self.side = Sampled(sch).choose(sides, _SIDE if fits else _SIDE // 2)
        self.threads = self.side * self.side
        self.each = Sampled(sch).choose((_EACH // 2, _EACH, 2 * _EACH), _EACH)
        """Rows and columns of results of a thread."""
        count = roles.extents[roles.reduced[-1]]
        default = _STEPS if count is None or count >= _STEPS else _STEPS // 2
        row = self.side * self.each * (roles.left.element_bytes + roles.right.element_bytes)
        most_steps = default if target.gpu is None else target.gpu.max_shared_bytes // row
        steps = {default, *(size for size in (_STEPS // 2, _STEPS, 2 * _STEPS) if size <= most_steps)}
        self.steps = Sampled(sch).choose(sorted(steps), default)
        """Steps of the sum for which both factors are fetched at once."""

    def run(self) -> None:
        sch, block = self.sch, self.block
        write = sch.cache_write(block, 0, "local")
        fuse_consumers(sch, write)
        thread, steps, outermost = self._cut()
        sch.reverse_compute_at(write, thread)
        self._bind(thread)
        for factor in (self.roles.left, self.roles.right):
            self._fetch(factor.position, steps)
        sch.decompose_reduction(block, outermost)

    def _cut(self) -> tuple[LoopHandle, LoopHandle, LoopHandle]:
        """Split the loops and put them into order; gives the loop over threads, that over steps, and the outermost one
        of the reduction."""
        sch, roles = self.sch, self.roles
        loops = sch.get_loops(self.block)
        row = loops[0 if roles.row is None else roles.row]
        i0, i1, i2 = sch.split(row, factors=[None, self.side, self.each])
        j0, j1, j2 = sch.split(loops[roles.column], factors=[None, self.side, self.each])
        *slow, fast = (loops[at] for at in roles.reduced)
        steps, step = sch.split(fast, factors=[None, self.steps])
        self.others = [loops[at] for at in sorted((*roles.batch, *roles.rows))]
        self.tile = (i0, j0)
        sch.reorder(*self.others, i0, j0, i1, j1, *slow, steps, step, i2, j2)
        return sch.fuse(i1, j1), steps, (*slow, steps)[0]

    def _bind(self, thread: LoopHandle) -> None:
        sch = self.sch
        rows, columns = self.tile
        blocks = total_of(sch, self.others)
        tiles = total_of(sch, [rows])
        if max(blocks or 1, tiles or 1) > _MOST_BLOCKS:
            sch.bind(fused(sch, [*self.others, rows, columns]), BLOCK)
        else:
            sch.bind(rows, "blockIdx.y")
            sch.bind(columns, BLOCK)
            if self.others:
                sch.bind(fused(sch, self.others), "blockIdx.z")
        sch.bind(thread, THREAD)

    def _fetch(self, position: int, steps: LoopHandle) -> None:
        """Copy what a block of threads needs of a factor for some steps, all threads together."""
        sch = self.sch
        fetch = sch.cache_read(self.block, position, "shared")
        fuse_producer(sch, fetch)
        sch.compute_at(fetch, steps)
        own = own_loops(sch, fetch, self.block)
        to_threads(sch, own, self.threads, self._lanes(fetch, own))

    def _lanes(self, fetch: BlockHandle, loops: Sequence[LoopHandle]) -> int:
        """How many neighbours in memory a thread fetches at once: no more than keep all threads busy; one where rows
        are not known to start at multiples of that."""
        (write,) = pattern_of(op_of(self.sch, fetch)).writes
        row, inner, work = write.type.get_shape()[-1], extent_of(self.sch, loops[-1]), total_of(self.sch, loops)
        if row < 0 or inner is None or work is None:
            return 1
        widest = min(_FETCHED_BYTES // bytes_of(write.element_type), work // self.threads)
        lanes = gcd(row, inner, 1 << max(widest, 1).bit_length() - 1)
        return Sampled(self.sch).size(lanes, lanes)
