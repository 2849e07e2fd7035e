"""Loops bound to thread axes, and the work that the threads of a block share.

Programs at tir level mean what their loops say, run in order. A loop that is bound to a thread axis may so stand inside
another loop over the same axis: where a nest fills shared memory and does not depend on the outer loop, each iteration
of the outer loop fills it again with the same values. A block of threads fills it once, together: thread t runs
iteration t of the inner loop (*cooperative fetching*).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product

from xdsl.dialects import memref
from xdsl.ir import Block, Operation, SSAValue

from weft.analysis.accesses import Access, accesses
from weft.analysis.dependence import Conflict, PairQuestion, conflict_between
from weft.analysis.structure import ancestors, stored_buffer
from weft.dialects.low_kernel import BLOCK_AXES, SHARED, THREAD_AXES, space_of
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import VIRTUAL, VIRTUAL_AXES, IterKind


def axis_of(loop: ForOp) -> str | None:
    """The thread axis that a loop is bound to."""
    return None if loop.thread_axis is None else loop.thread_axis.data


def runs_over_threads(loop: ForOp) -> bool:
    """Whether the iterations of a loop are threads of one block, virtual ones included."""
    return axis_of(loop) in (*THREAD_AXES, *VIRTUAL_AXES)


def runs_over_blocks(loop: ForOp) -> bool:
    """Whether the iterations of a loop are blocks of threads."""
    return axis_of(loop) in BLOCK_AXES


def is_shared(buffer: SSAValue) -> bool:
    """Whether the threads of a block share a buffer."""
    return space_of(buffer.type) == SHARED.data


def loops_of_axis(root: Operation, axis: str) -> Iterator[ForOp]:
    """The loops that are, or lie in, `root` and are bound to `axis`."""
    for op in root.walk():
        if isinstance(op, ForOp) and op.thread_axis is not None and op.thread_axis.data == axis:
            yield op


def nested_binding(loop: ForOp, axis: str) -> ForOp | None:
    """Another loop, around or inside of `loop`, that is bound to `axis` and does not share its work.

    A thread has one index on an axis: of two nested loops over it, only the iterations in which both are equal run.
    That is harmless when the inner one is cooperative.
    """
    if axis == VIRTUAL:
        return None
    for parent in ancestors(loop):
        if isinstance(parent, ForOp) and parent.thread_axis is not None and parent.thread_axis.data == axis:
            return None if is_cooperative(loop, parent) else parent
    others = (other for other in loops_of_axis(loop, axis) if other is not loop)
    return next((other for other in others if not is_cooperative(other, loop)), None)


def is_cooperative(inner: Operation, outer: ForOp) -> bool:
    """Whether `inner`, a loop or block inside `outer`, does the same in each iteration of `outer`: it fills shared
    memory only, in instances that may run again, and nothing that it uses depends on the loop variable."""
    return _is_cooperative(inner, outer, set())


def _is_cooperative(inner: Operation, outer: ForOp, asked: set[Operation]) -> bool:
    blocks = [op for op in inner.walk() if isinstance(op, BlockOp)]
    if not blocks or not all(_fills_shared_memory(block) for block in blocks):
        return False
    asked.update(blocks)
    if _depends_on(inner, outer.induction_variable):
        return False
    # What it reads must not differ between the iterations either.
    for buffer in {op.memref for op in inner.walk() if isinstance(op, memref.LoadOp)}:
        for use in buffer.uses:
            if stored_buffer(use.operation) is not buffer or not outer.is_ancestor(use.operation):
                continue
            writer = next((op for op in ancestors(use.operation) if isinstance(op, BlockOp)), None)
            if writer is None or (writer not in asked and not _is_cooperative(writer, outer, asked)):
                return False
    return True


def _fills_shared_memory(block: BlockOp) -> bool:
    """Whether a block stores to shared memory only, and running an instance of it again changes nothing."""
    if IterKind.REDUCE in block.kinds:
        return False
    stored = {buffer for op in block.walk() if (buffer := stored_buffer(op)) is not None}
    loaded = {op.memref for op in block.walk() if isinstance(op, memref.LoadOp)}
    return bool(stored) and all(is_shared(buffer) for buffer in stored) and stored.isdisjoint(loaded)


def _depends_on(inner: Operation, variable: SSAValue) -> bool:
    """Whether what `inner` does depends on a value, as far as the operations that compute from it tell."""
    return _reaches([operand for op in inner.walk() for operand in op.operands], variable, inner)


def _reaches(values: Iterable[SSAValue], wanted: SSAValue, inner: Operation) -> bool:
    seen: set[SSAValue] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        if value is wanted:
            return True
        if value in seen:
            continue
        seen.add(value)
        owner = value.owner
        if isinstance(owner, Block):
            holder = owner.parent_op()
            if isinstance(holder, ForOp | BlockOp) and not inner.is_ancestor(holder):
                pending.extend(holder.operands)
        else:
            pending.extend(owner.operands)
    return False


def differs_between_threads(value: SSAValue, axes: Sequence[str] = (*THREAD_AXES, *VIRTUAL_AXES)) -> bool:
    """Whether a value may differ between the threads of a block along `axes`: it depends on their places there, or on
    memory."""
    seen: set[SSAValue] = set()
    pending = [value]
    while pending:
        found = pending.pop()
        if found in seen:
            continue
        seen.add(found)
        owner = found.owner
        if isinstance(owner, Block):
            loop = owner.parent_op()
            if isinstance(loop, ForOp):
                if axis_of(loop) in axes:
                    return True
                pending.extend(loop.operands)
        elif owner.name.startswith(_COMPUTATIONS):
            pending.extend(owner.operands)
        else:
            return True
    return False


_COMPUTATIONS = ("arith.", "math.", "affine.apply", "memref.dim")


def thread_conflict(first: Access, second: Access, threads: Sequence[ForOp], carried: ForOp | None) -> Conflict | None:
    """An element that one thread touches in `first` and another thread of the block later in `second`.

    Later is: in the same iteration of the loops around both or, with `carried`, in a later iteration of that loop and
    the same one of the loops around it. Raises `NotProved`.
    """
    around = [loop for loop in first.loops if loop in second.loops and not runs_over_threads(loop)]
    common = [loop for loop in around if loop.parent is not None]  # a thread runs all of a box
    if carried is not None:
        common = common[: common.index(carried)]

    for thread in threads:
        for backwards in (False, True):

            def ordered(pair: PairQuestion, thread: ForOp = thread, backwards: bool = backwards) -> None:
                (pair.later if backwards else pair.earlier)(thread)
                if carried is not None:
                    pair.earlier(carried)

            conflict = conflict_between(first, second, common, ordered)
            if conflict is not None:
                return conflict
    return None


def kernel_around(loop: ForOp) -> ForOp:
    """The outermost bound loop around `loop`, or itself: what becomes a kernel."""
    bound = [op for op in ancestors(loop) if isinstance(op, ForOp) and axis_of(op) is not None]
    return bound[-1] if bound else loop


def block_conflict(kernel: ForOp, bound: ForOp | None = None, axis: str | None = None) -> Conflict | None:
    """An element that a block of threads touches in one loop of `kernel` over a block axis, and another block of
    threads in another loop over that axis, one of them writing. `bound` is taken to be bound to `axis`.

    The loops become one: what an iteration of the first leaves for another iteration of the second would have to pass
    from one block of threads to another, and these do not wait for each other. Of memory that each block of threads
    has of its own, only what one writes and the other one reads counts. Raises `NotProved`.
    """
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
            writes = first.is_write + second.is_write
            if first.buffer is not second.buffer or not writes:
                continue
            if writes == 2 and _is_of_each_block(first.buffer):
                continue
            for backwards in (False, True):

                def ordered(
                    pair: PairQuestion, one: ForOp = one, other: ForOp = other, backwards: bool = backwards
                ) -> None:
                    (pair.later if backwards else pair.earlier)(one, other)

                conflict = conflict_between(first, second, outside, ordered)
                if conflict is not None:
                    return conflict
    return None


def _is_of_each_block(buffer: SSAValue) -> bool:
    """Whether each block of threads has a buffer of its own: it is in memory of the threads."""
    return space_of(buffer.type) != "global"
