"""Default kernels of matrix products: operand tiles in shared memory, results in registers."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Final

from weft.analysis.block_patterns import pattern_of
from weft.autoschedule.contraction import fuse_consumers, fuse_producer
from weft.autoschedule.contraction_roles import Roles, roles_of
from weft.autoschedule.kernels import BLOCK, THREAD, fused, to_threads, to_threads_in_lanes, total_of
from weft.autoschedule.rules import extent_of, op_of
from weft.dialects.element_types import bytes_of
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target

_EACH: Final = 4
"""Rows and columns of results of a thread."""
_SIDE: Final = 16
"""Threads along the rows, and along the columns, of a tile; half as many where there are few of either."""
_STEPS: Final = 16
"""Steps of the sum for which both factors are fetched at once: four elements of each for a thread. Half as many where
the sum has no more."""
_FETCHED_BYTES: Final = 16
"""What a thread moves at once, at most."""
_MOST_BLOCKS: Final = 65535
"""Blocks along y and z that every device has."""


class TilesRule:
    """A block of threads computes a tile of results, 4 x 4 a thread: it fetches some rows of the one factor and columns
    of the other into shared memory, together, adds up their products, and fetches the next. Rows of known length are
    fetched 16 bytes at a time where that is aligned.

    Elementwise producers are computed on the way in, elementwise consumers on the way out. Not applicable to products
    with vectors, and where rows or columns are so few that a tile would be empty.
    """

    name = "tiles in shared memory"

    def apply(self, sch: Schedule, block: BlockHandle, target: Target) -> bool:
        roles = roles_of(pattern_of(op_of(sch, block)))
        if roles is None or roles.row is None or roles.same_buffer or _is_small(roles):
            return False
        _Tiles(sch, block, roles, target).run()
        return True


def _is_small(roles: Roles) -> bool:
    return any(extent is not None and extent < _EACH * 2 for extent in (roles.row_count, roles.columns))


class _Tiles:
    """Schedules one product."""

    def __init__(self, sch: Schedule, block: BlockHandle, roles: Roles, target: Target) -> None:
        self.sch, self.block, self.roles = sch, block, roles
        most = _SIDE * _SIDE if target.gpu is None else target.gpu.max_threads_per_block
        lengths = (roles.row_count, roles.columns)
        fits = all(extent is None or extent > _SIDE * _EACH // 2 for extent in lengths) and most >= _SIDE * _SIDE
        self.side = _SIDE if fits else _SIDE // 2
        self.threads = self.side * self.side

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
        i0, i1, i2 = sch.split(row, factors=[None, self.side, _EACH])
        j0, j1, j2 = sch.split(loops[roles.column], factors=[None, self.side, _EACH])
        *slow, fast = (loops[at] for at in roles.reduced)
        count = extent_of(sch, fast)
        steps, step = sch.split(fast, factors=[None, _STEPS if count is None or count >= _STEPS else _STEPS // 2])
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
        around = {sch.get(loop) for loop in sch.get_loops(self.block)}
        own = [loop for loop in sch.get_loops(fetch) if sch.get(loop) not in around]
        lanes = self._lanes(fetch, own)
        if lanes > 1:
            to_threads_in_lanes(sch, own, self.threads, lanes)
        else:
            to_threads(sch, own, self.threads)

    def _lanes(self, fetch: BlockHandle, loops: Sequence[LoopHandle]) -> int:
        """How many neighbours in memory a thread fetches at once: no more than keep all threads busy; one where rows
        are not known to start at multiples of that."""
        (write,) = pattern_of(op_of(self.sch, fetch)).writes
        row, inner, work = write.type.get_shape()[-1], extent_of(self.sch, loops[-1]), total_of(self.sch, loops)
        if row < 0 or inner is None or work is None:
            return 1
        widest = min(_FETCHED_BYTES // bytes_of(write.element_type), work // self.threads)
        return gcd(row, inner, 1 << max(widest, 1).bit_length() - 1)
