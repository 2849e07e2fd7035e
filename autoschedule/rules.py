"""The interface of rules, and their common parts: handles, machine parameters, threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Final, TypeAlias

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import BFloat16Type, Float16Type, IntegerType
from xdsl.ir import Attribute, Block

from weft.analysis.block_patterns import BlockPattern, Operand
from weft.analysis.block_scopes import holds_one_nest
from weft.analysis.index import Index
from weft.dialects.element_types import bytes_of
from weft.dialects.integer_arith import DIVISIONS
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import IterKind, LoopKind
from weft.dialects.upstream.arith import RemFOp
from weft.plans import fitted
from weft.plans.cost import threads_pay_from
from weft.plans.decisions import Decisions
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.support.errors import InternalError
from weft.support.target import Target

Rule: TypeAlias = Callable[[Schedule, BlockHandle, Target], bool]
"""A function that schedules one kind of block, and the blocks that it fuses into its loops, through the methods of a
schedule.

The block is plain (`analysis.block_scopes`). A rule returns False if it does not apply. A `ScheduleError` means the
same: the steps of the rule are undone, so a rule may try steps that it cannot prove legal. A rule reads the
computation of a block (`analysis.block_patterns`), never its name.
"""


class Sampled(Decisions):
    """Decides by sampling steps of a schedule, which a search (`weft.tune`) controls."""

    def __init__(self, sch: Schedule) -> None:
        self._sch = sch

    @property
    def are_open(self) -> bool:
        return self._sch.is_of_search

    def choose(self, options: Sequence[int], default: int) -> int:
        if not self.are_open or len(options) < 2:
            return default
        if default not in options:
            options = sorted({*options, default})
        even = [1 / len(options)] * len(options)
        return self._sch.get(self._sch.sample_categorical([*options], even, decision=options.index(default)))


def loop_of(sch: Schedule, handle: LoopHandle) -> ForOp:
    loop = sch.get(handle)
    if not isinstance(loop, ForOp):
        raise InternalError(f"a loop handle refers to {loop.name}")
    return loop


def extent_of(sch: Schedule, handle: LoopHandle) -> int | None:
    extent = loop_of(sch, handle).extent
    return extent if isinstance(extent, int) else None


def op_of(sch: Schedule, handle: BlockHandle) -> BlockOp:
    block = sch.get(handle)
    if not isinstance(block, BlockOp):
        raise InternalError(f"a block handle refers to {block.name}")
    return block


def product(extents: Iterable[int | None]) -> int | None:
    known = list(extents)
    numbers = [extent for extent in known if extent is not None]
    return prod(numbers) if len(numbers) == len(known) else None


def total_of(sch: Schedule, loops: Sequence[LoopHandle]) -> int | None:
    return product(extent_of(sch, loop) for loop in loops)


def fused(sch: Schedule, loops: Sequence[LoopHandle]) -> LoopHandle:
    return sch.fuse(*loops) if len(loops) > 1 else loops[0]


def own_loops(sch: Schedule, copy: BlockHandle, block: BlockHandle) -> list[LoopHandle]:
    """Loops around a copy but not around the block that uses it."""
    around = {sch.get(loop) for loop in sch.get_loops(block)}
    return [loop for loop in sch.get_loops(copy) if sch.get(loop) not in around]


def keep_in_registers(sch: Schedule, loops: Sequence[LoopHandle], lanes: int) -> None:
    """Vectorize the last loop by `lanes` (0: the whole loop), and unroll the others."""
    *unrolled, last = loops
    if lanes and extent_of(sch, last) != lanes:
        outer, last = sch.split(last, [None, lanes])
        unrolled.append(outer)
    sch.vectorize(last)
    for loop in unrolled:
        sch.unroll(loop)


PARTS_OF_A_THREAD: Final = 4
"""The number of iterations per thread that keeps the threads balanced."""


def needs_more_parts(iterations: int | None, target: Target) -> bool:
    """Whether loops have too few iterations for the threads. Unknown numbers are enough."""
    return iterations is not None and iterations < target.num_threads * PARTS_OF_A_THREAD


def share_among_threads(sch: Schedule, block: BlockHandle, pays: bool, target: Target, most: int | None = None) -> None:
    """If the work `pays`, run on several threads the fewest outermost loops, at most `most` and fused, that give every
    thread `PARTS_OF_A_THREAD` iterations."""
    if target.num_threads == 1 or not (pays or sch.is_of_search):
        return
    loops = _outer_loops(sch, block)[:most]
    count = 0
    while pays and count < len(loops) and needs_more_parts(total_of(sch, loops[:count]), target):
        count += 1
    total = total_of(sch, loops[:count])
    count = Sampled(sch).choose(range(len(loops) + 1), 0 if total is not None and total < 2 else count)
    if count:
        sch.parallel(fused(sch, loops[:count]))


def _outer_loops(sch: Schedule, handle: BlockHandle) -> Sequence[LoopHandle]:
    """Serial non-reduction loops, outermost first, each the only op in the previous one."""
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
    bindings = Index.of_map(block.bindings.data, block.binding_operands)
    pairs = zip(block.kinds, bindings, strict=True)
    return {value for kind, binding in pairs if kind is IterKind.REDUCE for value in binding.sources()}


def lanes_for(pattern: BlockPattern, target: Target) -> int:
    """Lanes, at least 2, of the widest type computed with; halves are computed in single precision."""
    types: Iterable[Attribute] = (
        *(operand.element_type for operand in (*pattern.reads, *pattern.writes)),
        *(op.results[0].type for op in pattern.computing if op.results[0].type != _BOOL),
    )
    widest = max((4 if isinstance(t, Float16Type | BFloat16Type) else bytes_of(t) for t in types), default=4)
    return max(target.vector_bytes // widest, 2)


_BOOL = IntegerType(1)


def cost_of(pattern: BlockPattern) -> int:
    """Approximate lane operations of an instance, including its loops."""
    if any(isinstance(op, ForOp) for op in pattern.block.body.block.ops):
        return _steps(pattern.block.body.block)
    return 1 + sum(fitted.FUNCTION if is_expensive(op.name) else 1 for op in pattern.computing)


_UNKNOWN_EXTENT: Final = 64
"""The assumed number of iterations of a loop in a block if its extent is not a number."""


def _steps(block: Block) -> int:
    total = 0
    for op in block.ops:
        times = (op.extent if isinstance(op.extent, int) else _UNKNOWN_EXTENT) if isinstance(op, ForOp) else 1
        total += times * max(sum(_steps(inner) for region in op.regions for inner in region.blocks), 1)
    return total


def is_expensive(name: str) -> bool:
    return name in _EXPENSIVE or (name.startswith("math.") and name not in _CHEAP_FUNCTIONS)


_EXPENSIVE: Final = frozenset(op.name for op in (arith.DivfOp, RemFOp, *DIVISIONS))
_CHEAP_FUNCTIONS: Final = frozenset(op.name for op in (math.AbsFOp, math.FmaOp))


def l2_bytes_of(target: Target) -> int:
    return target.l2_bytes * target.num_threads


def largest_caches(target: Target) -> int:
    """Beyond these bytes, arrays are read from memory: L3, or all L2 caches if larger."""
    return max(l2_bytes_of(target), target.l3_bytes)


def least_bytes(operand: Operand) -> int:
    """Bytes of the buffer of an operand; a symbolic extent counts as 1."""
    return prod(max(extent, 1) for extent in operand.type.get_shape()) * bytes_of(operand.element_type)


def pays_threads(patterns: Iterable[BlockPattern], target: Target) -> bool:
    """Whether the work justifies waking other threads. Unknown numbers of instances count as large."""
    if target.num_threads == 1:
        return False
    total = 0
    for pattern in patterns:
        if pattern.instances is None:
            return True
        total += pattern.instances * cost_of(pattern)
    return fitted.ELEMENT * total >= threads_pay_from(target.processor)


def streams_lines(panel_bytes: int | None, target: Target) -> bool:
    """Whether each vector of a panel is a cache line neither in L1 nor prefetched by hardware: vectors as long as
    lines, and the rest of the panel streamed since the last tile."""
    processor = target.processor
    if processor.prefetches_across_pages or target.vector_bytes < processor.line_bytes:
        return False
    return panel_bytes is not None and panel_bytes >= 2 * target.l1_bytes
