"""Distribution of outer loops over threads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from weft.analysis.block_patterns import BlockPattern
from weft.analysis.index import Index
from weft.analysis.plain_nests import holds_one_nest
from weft.autoschedule.machine import pays_threads
from weft.autoschedule.rules import extent_of, loop_of, op_of
from weft.dialects.tir import BlockOp
from weft.dialects.tir_kinds import IterKind, LoopKind
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.target import Target

PARTS_OF_A_THREAD: Final = 4
"""Iterations for each thread that leave none of them idle for long."""


def share_among_threads(sch: Schedule, block: BlockHandle, patterns: Iterable[BlockPattern], target: Target) -> bool:
    """Run the outermost loops around a block on several threads, if `patterns`, what runs there, is worth it: as many
    of them, fused, as give every thread something to do. Says whether it did."""
    if not pays_threads(patterns, target):
        return False
    loops = _outer_loops(sch, block)
    wanted = target.num_threads * PARTS_OF_A_THREAD
    count, total = 0, 1
    while count < len(loops) and total < wanted:
        extent = extent_of(sch, loops[count])
        total = wanted if extent is None else total * extent
        count += 1
    if count == 0 or total < 2:
        return False
    sch.parallel(sch.fuse(*loops[:count]) if count > 1 else loops[0])
    return True


def _outer_loops(sch: Schedule, handle: BlockHandle) -> Sequence[LoopHandle]:
    """The serial loops around a block, outermost first, each the only thing in the one before, over which no reduction
    runs."""
    block = op_of(sch, handle)
    reducing = _reducing(block)
    found: list[LoopHandle] = []
    for handle_ in sch.get_loops(handle):
        loop = loop_of(sch, handle_)
        if loop.kind.data is not LoopKind.SERIAL or loop.induction_variable in reducing:
            break
        found.append(handle_)
        if not holds_one_nest(loop):
            break
    return found


def _reducing(block: BlockOp) -> set[object]:
    """The loop variables that a reduce iterator is computed from."""
    bindings = Index.of_map(block.bindings.data, block.binding_operands)
    pairs = zip(block.kinds, bindings, strict=True)
    return {value for kind, binding in pairs if kind is IterKind.REDUCE for value in binding.sources()}
