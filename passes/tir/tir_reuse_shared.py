"""tir-reuse-shared: let shared-memory buffers share storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from xdsl.dialects import memref, scf, vector
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from weft.analysis.index import Index
from weft.dialects.element_types import bytes_of
from weft.dialects.low_kernel import SHARED, AtomicOp, BarrierOp
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import ASYNC
from weft.dialects.traversal import blocks_of
from weft.passes.index_builders import index_before
from weft.passes.tir.tir_partition_blocks import thread_bodies
from weft.passes.tir.tir_pass import KernelPass, allocate_before, buffer_type, range_of

ACCESSES: Final = (
    *(memref.LoadOp, memref.StoreOp, vector.LoadOp, vector.StoreOp, vector.MaskedLoadOp, vector.MaskedStoreOp),
    AtomicOp,
)
"""Ops on flat buffers whose only operand of type index is the accessed index."""
_ALIGNMENT: Final = 16
"""Bytes; the widest access."""


@dataclass(frozen=True)
class ReuseSharedPass(KernelPass):
    """Let buffers of space "shared" and one element type with disjoint live ranges share an arena.

    ```mlir
    %S = memref.alloca() : memref<256xf32, "shared">
    %T = memref.alloca() : memref<64xf32, "shared">
    WRITE %S[%t]  low.barrier  READ %S[%u]  low.barrier  WRITE %T[%t]  low.barrier  READ %T[%u]
    // becomes
    %arena = memref.alloca() : memref<256xf32, "shared">
    WRITE %arena[%t]  low.barrier  READ %arena[%u]  low.barrier  WRITE %arena[%t] ...
    ```
    Two buffers may overlap if each access of the one precedes each of the other, with an always executed barrier in
    between, in the kernel's body and in branches of its conditions. Buffers used in the same loop, and targets of
    asynchronous copies, do not overlap. Larger buffers are placed first, at the lowest offset without a conflict.

    Requires: kernels with barriers (`tir-insert-barriers`), over flat buffers (`tir-flatten`).

    Leaves: the same, with fewer buffers in shared memory.
    """

    name = "tir-reuse-shared"

    def rewrite(self, function: FuncOp) -> None:
        for body in thread_bodies(function):
            _reuse(body, function)


@dataclass(frozen=True)
class _SharedRange:
    alloca: memref.AllocaOp
    start: int

    @property
    def end(self) -> int:
        return self.start + _elements(self.alloca)


def _reuse(body: Block, function: FuncOp) -> None:
    groups: dict[object, list[memref.AllocaOp]] = {}
    for op in function.walk():
        if isinstance(op, memref.AllocaOp) and _may_move(op, body):
            groups.setdefault(buffer_type(op.memref).element_type, []).append(op)
    for group in groups.values():
        for arena in _arenas(_placed(group, body)):
            _merge(arena, min((place.alloca for place in arena), key=group.index))


def _may_move(op: memref.AllocaOp, body: Block) -> bool:
    users = [use.operation for use in op.memref.uses]
    kernel = body.parent_op()
    return (
        buffer_type(op.memref).memory_space == SHARED
        and ASYNC not in op.attributes
        and kernel is not None
        and bool(users)
        and all(isinstance(user, ACCESSES) and kernel.is_ancestor(user) for user in users)
    )


def _elements(op: memref.AllocaOp) -> int:
    return buffer_type(op.memref).get_shape()[0]


def _placed(group: Sequence[memref.AllocaOp], body: Block) -> list[_SharedRange]:
    placed: list[_SharedRange] = []
    step = max(1, _ALIGNMENT // bytes_of(buffer_type(group[0].memref).element_type))
    for alloca in sorted(group, key=_elements, reverse=True):
        others = [p for p in placed if not _have_disjoint_live_ranges(body, alloca.memref, p.alloca.memref)]
        starts = sorted({0, *(-(-p.end // step) * step for p in others)})
        end = _elements(alloca)
        start = next(s for s in starts if all(s + end <= p.start or p.end <= s for p in others))
        placed.append(_SharedRange(alloca, start))
    return placed


def _arenas(places: Sequence[_SharedRange]) -> list[list[_SharedRange]]:
    groups: list[list[_SharedRange]] = []
    for place in sorted(places, key=lambda p: (p.start, p.end)):
        if groups and place.start < max(p.end for p in groups[-1]):
            groups[-1].append(place)
        else:
            groups.append([place])
    return [group for group in groups if len(group) > 1]


def _merge(arena: Sequence[_SharedRange], earliest: memref.AllocaOp) -> None:
    first = min(place.start for place in arena)
    element = buffer_type(earliest.memref).element_type
    size = max(place.end for place in arena) - first
    alignment = max(p.alloca.alignment.value.data if p.alloca.alignment else _ALIGNMENT for p in arena)
    type_ = MemRefType(element, [size], memory_space=SHARED)
    whole = allocate_before(earliest, memref.AllocaOp, type_, "arena", IntegerAttr(alignment, i64))
    for place in arena:
        for use in list(place.alloca.memref.uses):
            user = use.operation
            at = next(n for n, operand in enumerate(user.operands) if isinstance(operand.type, IndexType))
            if place.start > first:
                index = Index.of(user.operands[at]) + (place.start - first)
                user.operands[at] = index_before(index.simplified(range_of), user)
            user.operands[use.index] = whole.memref
        Rewriter.erase_op(place.alloca)


def _uses(op: Operation, buffer: SSAValue) -> bool:
    return any(operand is buffer for inner in op.walk() for operand in inner.operands)


def _have_disjoint_live_ranges(body: Block, one: SSAValue, other: SSAValue) -> bool:
    ops = list(body.ops)
    ones = [at for at, op in enumerate(ops) if _uses(op, one)]
    others = [at for at, op in enumerate(ops) if _uses(op, other)]
    if not ones or not others:
        return True
    if ones == others and len(ones) == 1 and isinstance(ops[ones[0]], scf.IfOp):
        return all(_have_disjoint_live_ranges(branch, one, other) for branch in blocks_of(ops[ones[0]]))
    if others[-1] < ones[0]:
        one, other, ones, others = other, one, others, ones
    if ones[-1] >= others[0]:
        return False
    barriers = [at for at, op in enumerate(ops) if _surely_passes(op)]
    return all(
        any(first < barrier < second for barrier in barriers)
        or _has_barrier_beside(ops[first], one, after=True)
        or _has_barrier_beside(ops[second], other, after=False)
        for first in ones
        for second in others
    )


def _surely_passes(op: Operation) -> bool:
    if isinstance(op, BarrierOp):
        return True
    if isinstance(op, ForOp):
        return isinstance(op.extent, int) and op.extent > 0 and any(map(_surely_passes, op.body.block.ops))
    blocks = blocks_of(op)
    return isinstance(op, scf.IfOp) and len(blocks) == 2 and all(any(map(_surely_passes, b.ops)) for b in blocks)


def _has_barrier_beside(op: Operation, buffer: SSAValue, *, after: bool) -> bool:
    return bool(op.regions) and all(
        _waits_beside(block, buffer, after=after)
        for block in blocks_of(op)
        if any(_uses(inner, buffer) for inner in block.ops)
    )


def _waits_beside(block: Block, buffer: SSAValue, *, after: bool) -> bool:
    ops = list(block.ops)
    for op in reversed(ops) if after else ops:
        if not _uses(op, buffer):
            if _surely_passes(op):
                return True
        elif not _has_barrier_beside(op, buffer, after=after):
            return False
    return True
