"""Loops bound to thread axes: work that the threads of a block share, and reductions across thread blocks.

In *cooperative fetching*, a nest fills shared memory in a loop bound to a thread axis, independently of an outer
loop over the same axis. In loop order each iteration of the outer loop fills it with the same values; a thread block
fills it once, thread t runs iteration t of the inner loop (docs/decisions/0011-kernels.md).

Thread blocks do not synchronize: they combine by atomic operations on elements of device memory that no other op
accesses until the kernel has ended (docs/decisions/0024-atomic-reductions.md). So does a thread that updates an
accumulator that an earlier kernel initializes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Final

from xdsl.dialects import memref
from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerType, MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from weft.analysis.accesses import Access, Context, accesses
from weft.analysis.block_patterns import updates_of
from weft.analysis.block_scopes import ancestors, stored_buffer
from weft.analysis.dependence import Conflict, PairQuestion, conflict_between, may_conflict, or_undecided
from weft.dialects.aliasing import with_overlapping
from weft.dialects.low_kernel import ATOMIC_KINDS, BLOCK_AXES, SHARED, THREAD_AXES, AtomicKind, space_of
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import ACROSS_THREADS, VIRTUAL, VIRTUAL_AXES, IterKind
from weft.support.errors import Violation


def axis_of(loop: ForOp) -> str | None:
    return None if loop.thread_axis is None else loop.thread_axis.data


def runs_over_threads(loop: ForOp) -> bool:
    return axis_of(loop) in (*THREAD_AXES, *VIRTUAL_AXES)


def runs_over_blocks(loop: ForOp) -> bool:
    return axis_of(loop) in BLOCK_AXES


def is_shared(buffer: SSAValue) -> bool:
    return space_of(buffer.type) == SHARED.data


def loops_of_axis(root: Operation, axis: str) -> Iterator[ForOp]:
    for op in root.walk():
        if isinstance(op, ForOp) and axis_of(op) == axis:
            yield op


def nested_binding(loop: ForOp, axis: str) -> ForOp | None:
    """Another, not cooperative loop over `axis`, around or inside of `loop`: only iterations of both with equal
    values would run."""
    if axis == VIRTUAL:
        return None
    for parent in ancestors(loop):
        if isinstance(parent, ForOp) and axis_of(parent) == axis:
            return None if is_cooperative(loop, parent) else parent
    others = (other for other in loops_of_axis(loop, axis) if other is not loop)
    return next((other for other in others if not is_cooperative(other, loop)), None)


def is_cooperative(inner: Operation, outer: ForOp) -> bool:
    """Whether `inner`, a loop or block, has the same effect in each iteration of `outer`: it only fills shared memory,
    in idempotent instances, independently of the loop variable."""
    return _is_cooperative(inner, outer, set())


def _is_cooperative(inner: Operation, outer: ForOp, asked: set[Operation]) -> bool:
    blocks = [op for op in inner.walk() if isinstance(op, BlockOp)]
    if not blocks or not all(_fills_shared_memory(block) for block in blocks):
        return False
    asked.update(blocks)
    if outer.induction_variable in _sources(operand for op in inner.walk() for operand in op.operands):
        return False
    # The buffers that it reads must not differ between the iterations either.
    for buffer in with_overlapping(op.memref for op in inner.walk() if isinstance(op, memref.LoadOp)):
        for use in buffer.uses:
            if stored_buffer(use.operation) is not buffer or not outer.is_ancestor(use.operation):
                continue
            writer = next((op for op in ancestors(use.operation) if isinstance(op, BlockOp)), None)
            if writer is None or (writer not in asked and not _is_cooperative(writer, outer, asked)):
                return False
    return True


def _fills_shared_memory(block: BlockOp) -> bool:
    if IterKind.REDUCE in block.kinds:
        return False
    stored = {buffer for op in block.walk() if (buffer := stored_buffer(op)) is not None}
    loaded = {op.memref for op in block.walk() if isinstance(op, memref.LoadOp)}
    return bool(stored) and all(is_shared(buffer) for buffer in stored) and stored.isdisjoint(loaded)


def _sources(values: Iterable[SSAValue]) -> Iterator[SSAValue]:
    seen: set[SSAValue] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        if value not in seen:
            seen.add(value)
            yield value
            owner = value.owner
            if isinstance(owner, Operation):
                pending.extend(owner.operands)
            elif isinstance(holder := owner.parent_op(), ForOp | BlockOp):
                pending.extend(holder.operands)


def differs_between_threads(value: SSAValue, axes: Sequence[str] = (*THREAD_AXES, *VIRTUAL_AXES)) -> bool:
    for found in _sources([value]):
        owner = found.owner
        if isinstance(owner, Operation):
            if not owner.name.startswith(_COMPUTATIONS):
                return True
        elif isinstance(loop := owner.parent_op(), ForOp) and axis_of(loop) in axes:
            return True
    return False


_COMPUTATIONS = ("arith.", "math.", "affine.apply", "memref.dim")


def thread_conflict(first: Access, second: Access, threads: Sequence[ForOp], carried: ForOp | None) -> Conflict | None:
    """An element that one thread touches in `first` and another of the block later in `second`. Raises `NotProved`.

    Later means in the same iteration of the loops around both or, with `carried`, in a later one of that loop and
    the same one of loops around it.
    """
    around = [loop for loop in first.loops if loop in second.loops and not runs_over_threads(loop)]
    common = [loop for loop in around if loop.parent is not None]  # a thread executes all iterations over a box
    if carried is not None:
        common = common[: common.index(carried)]

    carry = () if carried is None else (carried,)
    orders = [order for thread in threads for order in (((thread, *carry), ()), (carry, (thread,)))]
    conflicts = (conflict_between(first, second, common, earlier=before, later=after) for before, after in orders)
    return next(filter(None, conflicts), None)


def kernel_around(loop: ForOp) -> ForOp:
    bound = [op for op in ancestors(loop) if isinstance(op, ForOp) and axis_of(op) is not None]
    return bound[-1] if bound else loop


def block_conflict(kernel: ForOp, bound: ForOp | None = None, axis: str | None = None) -> Conflict | None:
    """An element that a thread block touches in one loop of `kernel` over a block axis, and another block in another
    such loop, at least one writing; two writes only in memory that blocks share. `bound` counts as bound to `axis`.
    Raises `NotProved`."""
    loops = [op for op in kernel.walk() if isinstance(op, ForOp)]
    axes = {loop: axis if loop is bound else axis_of(loop) for loop in loops}
    over_blocks = [loop for loop, axis in axes.items() if axis in BLOCK_AXES]
    outside = [op for op in ancestors(kernel) if isinstance(op, ForOp)]
    pairs = [
        (one, other)
        for one, other in combinations(over_blocks, 2)
        if axes[one] == axes[other] and not one.is_ancestor(other) and (one.extent, other.extent) != (1, 1)
    ]
    found = {loop: accesses(loop) for pair in pairs for loop in pair}
    for one, other in pairs:
        for first, second in product(found[one], found[other]):
            if not may_conflict(first, second):
                continue
            if first.is_write and second.is_write and _is_of_each_block(first.buffer):
                continue
            for order in (PairQuestion.earlier, PairQuestion.later):
                conflict = conflict_between(first, second, outside, lambda pair, o=order, a=one, b=other: o(pair, a, b))
                if conflict is not None:
                    return conflict
    return None


def _is_of_each_block(buffer: SSAValue) -> bool:
    return space_of(buffer.type) != "global"


_WIDTHS: Final = (32, 64)
UPDATES, STARTS, READS = 7, 8, 9
"""The requirements of `bind` on atomic operations."""


@dataclass(frozen=True)
class AtomicUpdate:
    """`store` writes the value of `load` combined with `term`."""

    kind: AtomicKind
    load: memref.LoadOp
    store: memref.StoreOp
    term: SSAValue


def combining_loop(block: BlockOp, bound: ForOp | None = None, axis: str | None = None) -> ForOp | None:
    """The loop over which `block` must combine by atomic operations: over thread blocks, bound to a reduce iterator,
    or over threads if the accumulator is initialized elsewhere. `bound` counts as bound to `axis`."""
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
    found: set[SSAValue] = set()
    for op in (block, *ancestors(block)):
        if isinstance(op, BlockOp):
            found.update(*(index.sources() for index in Context.around(op).steps_of(op)))
    return found


def atomic_updates(block: BlockOp) -> tuple[AtomicUpdate, ...] | str:
    """The updates as atomic operations, or why they cannot be."""
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
        kind = ATOMIC_KINDS.get(type(combining)) if isinstance(combining, Operation) else None
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
    """Explain why `block` may not combine over `loop` by atomic operations, with the number of the requirement of
    `bind`."""
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
    found = accesses(kernel)
    outside = tuple(op for op in ancestors(kernel) if isinstance(op, ForOp))
    for update in updates:
        ours = next(a for a in found if a.op is update.store)
        for other in found:
            if other.op not in own and may_conflict(ours, other):
                problem = _touches(ours, other, outside)
                if problem is not None:
                    return (STARTS if other.is_write else READS), problem
    return None


def _name(loop: ForOp) -> str:
    return loop.induction_variable.name_hint or "?"


@or_undecided
def _touches(ours: Access, other: Access, outside: tuple[ForOp, ...]) -> Violation | None:
    conflict = conflict_between(ours, other, outside)
    if conflict is None:
        return None
    legal = "in an earlier kernel, or in a later one: a nest of its own"
    return conflict.violation("in the same kernel, whose thread blocks do not wait for each other", legal)
