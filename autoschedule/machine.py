"""Machine parameters of the rules: vector lanes, and the least work for which a thread pays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import BFloat16Type, Float16Type, IntegerType
from xdsl.ir import Attribute

from weft.analysis.block_patterns import BlockPattern
from weft.dialects.element_types import bytes_of
from weft.passes.tir.vectorizer import DIVISIONS
from weft.support.target import Target

_WORK_OF_A_THREAD: Final = 1 << 16
"""Vectorised elements of one operation, some 10 us of one core, from which on waking another thread pays."""
_COST_OF_A_FUNCTION: Final = 8
"""Operations that a function such as the exponential is worth, and a division."""


def lanes_for(pattern: BlockPattern, target: Target) -> int:
    """How many lanes of the widest type that a block computes with fill a register, at least 2.

    Halves are computed in single precision.
    """
    types: Iterable[Attribute] = (
        *(operand.element_type for operand in (*pattern.reads, *pattern.writes)),
        *(op.results[0].type for op in pattern.computing if op.results[0].type != _BOOL),
    )
    widest = max((4 if isinstance(t, Float16Type | BFloat16Type) else bytes_of(t) for t in types), default=4)
    return max(target.vector_bytes // widest, 2)


_BOOL = IntegerType(1)


def cost_of(pattern: BlockPattern) -> int:
    """About how many operations on lanes an instance is."""
    return 1 + sum(_COST_OF_A_FUNCTION if is_expensive(op.name) else 1 for op in pattern.computing)


def is_expensive(name: str) -> bool:
    """Whether an operation takes many times as long as an addition."""
    return name in _EXPENSIVE or (name.startswith("math.") and name not in _CHEAP_FUNCTIONS)


_EXPENSIVE: Final = frozenset(op.name for op in (arith.DivfOp, *DIVISIONS))
_CHEAP_FUNCTIONS: Final = frozenset(op.name for op in (math.AbsFOp, math.FmaOp))


def second_caches(target: Target) -> int:
    """Bytes of the second caches of all threads."""
    return target.l2_bytes * target.num_threads


def largest_caches(target: Target) -> int:
    """Bytes beyond which arrays come from memory: of the third cache, or where there is none that is larger, of the
    second ones."""
    return max(second_caches(target), target.l3_bytes)


def keeps_up_with_streams(target: Target) -> bool:
    """Whether the processor's own prefetching goes on across pages and keeps up with streams that are read. Measured on
    a Zen 4, where asking ahead of them takes up to a quarter more time, and a Zen 3, up to a half
    (docs/decisions/0025-prefetching.md)."""
    return target.cpu.startswith("znver")


def prefers_one_stream(target: Target) -> bool:
    """Whether one row that is read from memory arrives as fast as four at a time. So on a Zen 4; on a Zen 3 four take
    0.83 to 0.96 of the time (docs/decisions/0034-rows-from-memory-on-zen-3.md)."""
    return target.cpu in ("znver4", "znver5")


def pays_past_caches(target: Target) -> bool:
    """Whether one core fills the memory, so that it pays to store past the caches what is larger than they: lines that
    are overwritten whole are not read before. Measured on a Zen 3 and a Zen 4, where it takes 0.7 to 0.8 of the time,
    and on a Cascade Lake, where it takes up to 1.4 times as long (docs/decisions/0028-streaming-stores.md)."""
    return target.cpu.startswith("znver")


def pays_threads(patterns: Iterable[BlockPattern], target: Target) -> bool:
    """Whether the work of some blocks is worth waking the other threads. A number of instances that is known at run
    time only is taken for large."""
    if target.num_threads == 1:
        return False
    total = 0
    for pattern in patterns:
        if pattern.instances is None:
            return True
        total += pattern.instances * cost_of(pattern)
    return total >= _WORK_OF_A_THREAD * 2
