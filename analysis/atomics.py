"""Reductions over blocks of threads by atomic operations on device memory.

The threads of a block wait for each other, and so reduce together. Blocks of threads do not: one of them may run when
another one has ended, or while it runs. What they have in common is an element that each updates at once, whatever the
others do; the order of the updates is anything, and nothing else may touch the element until the kernel has ended. So
it is for a thread that updates an accumulator which an earlier kernel starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from xdsl.dialects import memref
from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerType, MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from weft.analysis.accesses import Access, Context, accesses
from weft.analysis.combiners import updates_of
from weft.analysis.dependence import conflict_between, undecided
from weft.analysis.sets import NotProved
from weft.analysis.structure import ancestors
from weft.analysis.threads import axis_of
from weft.dialects.combiners import OPS_BY_NAME
from weft.dialects.low_gpu import AtomicKind
from weft.dialects.low_kernel import BLOCK_AXES, THREAD_AXES, space_of
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import ACROSS_THREADS, IterKind
from weft.support.errors import Violation

_KINDS: Final = {op_class: kind for kind in AtomicKind for op_class in OPS_BY_NAME[kind.value]}
"""Combiner -> the atomic operation that does it."""
_WIDTHS: Final = (32, 64)
UPDATES, STARTS, READS = 7, 8, 9
"""The requirements of `bind` that are about atomic operations."""


@dataclass(frozen=True)
class AtomicUpdate:
    """`store` puts back what `load` got, with `term` combined into it."""

    kind: AtomicKind
    load: memref.LoadOp
    store: memref.StoreOp
    term: SSAValue


def combining_loop(block: BlockOp, bound: ForOp | None = None, axis: str | None = None) -> ForOp | None:
    """The loop over whose iterations `block` has to combine by atomic operations, None when there is none: a loop over
    blocks of threads that a reduce iterator is bound to or, when the accumulator is started elsewhere, over threads.
    `bound` is taken to be bound to `axis`."""
    if ACROSS_THREADS in block.attributes or IterKind.REDUCE not in _kinds_around(block):
        return None
    wanted = (*BLOCK_AXES, *THREAD_AXES) if block.init is None else BLOCK_AXES
    loops = [op for op in ancestors(block) if isinstance(op, ForOp) and op.extent != 1]
    found = [loop for loop in loops if (axis if loop is bound else axis_of(loop)) in wanted]
    reduced = _reduced_over(block) if found else set[SSAValue]()
    return next((loop for loop in reversed(found) if loop.induction_variable in reduced), None)


def _kinds_around(block: BlockOp) -> Iterator[IterKind]:
    for op in (block, *ancestors(block)):
        if isinstance(op, BlockOp):
            yield from op.kinds


def _reduced_over(block: BlockOp) -> set[SSAValue]:
    """What the reduce iterators of a block, and of those around it, are computed from."""
    found: set[SSAValue] = set()
    for op in (block, *ancestors(block)):
        if isinstance(op, BlockOp):
            bindings = Context.around(op).resolve_map(op)
            for index, kind in zip(bindings, op.kinds, strict=True):
                if kind is IterKind.REDUCE:
                    found |= index.sources()
    return found


def atomic_updates(block: BlockOp) -> tuple[AtomicUpdate, ...] | str:
    """How a block updates its accumulators by atomic operations, or why it cannot."""
    name = f'block "{block.label}"'
    updates = updates_of(block)
    if updates is None:
        return f"{name} does more than to combine a value into each of its accumulators"
    found: list[AtomicUpdate] = []
    for update in updates:
        buffer = update.store.memref
        if update.operation is None:
            return f"{name} takes the one or the other of several values at once"
        combining = update.store.value.owner
        kind = _KINDS.get(type(combining)) if isinstance(combining, Operation) else None
        if kind is None or not isinstance(combining, Operation):
            combiner = combining.name if isinstance(combining, Operation) else update.operation.name
            return f"{name} combines by {combiner}, for which there is no atomic operation"
        element = update.store.value.type
        if not _is_combined(element):
            return f"{name} combines elements of {element}, and atomic operations are on i32, i64, f32 and f64"
        if isinstance(buffer.type, MemRefType) and space_of(buffer.type) != "global":
            return f"%{buffer.name_hint} is in memory of space {buffer.type.memory_space}, not in that of the device"
        old, term = combining.operands if combining.operands[1] is update.term else reversed(combining.operands)
        if not isinstance(old.owner, memref.LoadOp) or not old.has_one_use() or not update.store.value.has_one_use():
            return f"{name} needs the old value of %{buffer.name_hint} for more than to combine into it"
        found.append(AtomicUpdate(kind, old.owner, update.store, term))
    return tuple(found)


def _is_combined(element: Attribute) -> bool:
    if isinstance(element, IntegerType):
        return element.width.data in _WIDTHS
    return isinstance(element, Float32Type | Float64Type)


def why_not_atomic(block: BlockOp, loop: ForOp, kernel: ForOp) -> tuple[int, Violation] | None:
    """Why `block` may not combine over `loop` by atomic operations, by requirement of `bind`; None when it may."""
    updates = atomic_updates(block)
    if isinstance(updates, str):
        legal = "sums, minima, maxima, bitwise and, or; or rfactor, whose second block is in a kernel of its own"
        return UPDATES, Violation(updates, legal=legal)
    variable = f"%{loop.induction_variable.name_hint}"
    earlier = f"decompose_reduction before the loops of the kernel, whose outermost is %{_name(kernel)}"
    if block.init is not None:
        detail = f'block "{block.label}" starts what it combines into itself, in one of the iterations of {variable}'
        return STARTS, Violation(detail, legal=earlier)
    own = {op for update in updates for op in (update.load, update.store)}
    found = [a for a in accesses(kernel) if any(a.buffer is update.store.memref for update in updates)]
    outside = tuple(op for op in ancestors(kernel) if isinstance(op, ForOp))
    for update in updates:
        ours = next(a for a in found if a.op is update.store)
        for other in found:
            if other.buffer is ours.buffer and other.op not in own:
                problem = _touches(ours, other, outside)
                if problem is not None:
                    return (STARTS if other.is_write else READS), problem
    return None


def _name(loop: ForOp) -> str:
    return loop.induction_variable.name_hint or "?"


def _touches(ours: Access, other: Access, outside: tuple[ForOp, ...]) -> Violation | None:
    """Whether `other` touches what `ours` combines into, in the same kernel."""
    try:
        conflict = conflict_between(ours, other, outside, lambda order: None)
    except NotProved as error:
        return undecided(error)
    if conflict is None:
        return None
    legal = "in an earlier kernel, or in a later one: a nest of its own"
    return conflict.violation("in the same kernel, whose blocks of threads do not wait for each other", legal)
