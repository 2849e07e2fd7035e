"""Kernels: a launch runs every block of threads, and the threads of a block meet at barriers and shuffles.

A kernel is compiled to a Python generator, one for each thread. It pauses at barriers, shuffles and ops on tensor cores
with a `Meeting`; in order "interleaved" it also pauses around stores, and all blocks of threads run at once, so that
races show. In other orders the blocks run one after the other, and so do the threads of a block from one meeting to the
next: forward, reversed or shuffled. A barrier or shuffle that not all threads reach is an error, and so is a read of
memory that was never written.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    FixedBitwidthType,
    Float16Type,
    Float32Type,
    IndexType,
    IntegerType,
    MemRefType,
)
from xdsl.dialects.func import FuncOp

from weft.dialects import low_gpu, low_kernel
from weft.dialects.low_gpu import AtomicKind, ShuffleMode
from weft.dialects.low_kernel import BLOCK_AXES, THREAD_AXES
from weft.dialects.tir_kinds import IN_STEP, LoopKind
from weft.interp.errors import InterpreterError
from weft.interp.low_tensor_cores import meet
from weft.interp.meetings import Meeting
from weft.interp.registry import emits
from weft.interp.rounding import round_bf16, round_f16, round_f32, wrap
from weft.interp.scalar_functions import maximum, minimum
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.dialects.memref import AllocaOp
    from xdsl.ir import Attribute, Operation

    from weft.dialects.tir import ForOp
    from weft.interp.emitter import Emitter

IDS, MEMORY = "_ids", "_memory"
"""Parameters of a compiled kernel: the place of the thread on all axes, and the shared memory of its block."""
WARP = 32

Thread: TypeAlias = "Generator[Meeting | None, Any, Any]"


def refuse_threads_in_step(loop: ForOp) -> None:
    """Raise `CompileError` when `loop` is over the threads of a kernel that is being lowered."""
    if loop.kind.data is not LoopKind.THREAD_BINDING:
        return
    parent = loop.parent_op()
    while parent is not None and not isinstance(parent, FuncOp):
        parent = parent.parent_op()
    if parent is not None and IN_STEP in parent.attributes:
        raise CompileError.at(loop, "kernels are interpreted when they are functions; here their threads run in step")


def begin_kernel(emitter: Emitter, function: FuncOp) -> list[str]:
    """Prepare to write the body of a kernel; gives the parameters besides those of the function."""
    emitter.in_kernel = True
    emitter.interleaved = [IDS]
    emitter.pauses_at_stores = emitter.options.order in INTERLEAVED
    emitter.line("if False: yield")
    if any(isinstance(op, low_gpu.AsyncCopyOp) for op in function.walk()):
        emitter.line(f"_copies = {emitter.helper(AsyncCopies)}()")
    return [IDS, MEMORY]


def emit_shared_alloca(emitter: Emitter, op: AllocaOp, count: str) -> str:
    """The name of the memory that the threads of a block share."""
    data = emitter.fresh(op.memref.name_hint or "shared")
    fill = "None" if emitter.options.check_uninitialised else "0"
    key = f"{data!r}"
    emitter.line(f"{data} = {MEMORY}.get({key})")
    emitter.line(f"if {data} is None: {data} = {MEMORY}[{key}] = [{fill}] * ({count})", op)
    return data


@emits(low_kernel.LaunchOp)
def emit_launch(emitter: Emitter, op: low_kernel.LaunchOp) -> None:
    arguments = "".join(f"{emitter.argument(value)}, " for value in op.arguments)
    grid, block = (", ".join(emitter.written(v, op) for v in values) for values in (op.grid, op.block))
    order, seed = emitter.options.order, emitter.options.seed
    emitter.line(
        f"{emitter.helper(launch)}({emitter.operation_name(op)}, {emitter.callee(op.kernel.string_value())}, "
        f"({grid}), ({block}), ({arguments}), {order!r}, {seed})",
        op,
    )


@emits(low_kernel.ThreadIdOp)
def emit_thread_id(emitter: Emitter, op: low_kernel.ThreadIdOp) -> None:
    extent = op.static_extent
    name = emitter.define(op.result, (0, None if extent is None else extent - 1))
    emitter.line(f"{name} = {IDS}[{(*BLOCK_AXES, *THREAD_AXES).index(op.axis.data)}]", op)


@emits(low_gpu.BarrierOp)
def emit_barrier(emitter: Emitter, op: low_gpu.BarrierOp) -> None:
    emitter.line(f"yield {emitter.constant(Meeting(op), 'barrier')}", op)


@emits(low_gpu.ShuffleOp)
def emit_shuffle(emitter: Emitter, op: low_gpu.ShuffleOp) -> None:
    value, offset = emitter.value(op.value), emitter.written(op.offset, op)
    name = emitter.define(op.result, maybe_unwritten=True)
    emitter.line(f"{name} = yield {emitter.helper(Meeting)}({emitter.operation_name(op)}, {value}, {offset})", op)


@emits(low_gpu.AtomicOp)
def emit_atomic(emitter: Emitter, op: low_gpu.AtomicOp) -> None:
    buffer = emitter.buffer(op.buffer)
    index, value = emitter.element(buffer, op.indices, op), emitter.written(op.value, op)
    combine = emitter.constant(_combiner(op.kind.data, op.value.type), f"atomic_{op.kind.data}")
    name = emitter.define(op.old)
    with emitter.store():
        emitter.line(f"{name} = {buffer.data}[{index}]", op)
        emitter.line(f"{buffer.data}[{index}] = {combine}({name}, {value})", op)


def _combiner(kind: AtomicKind, type_: Attribute) -> Callable[[Any, Any], Any]:
    is_integer = isinstance(type_, IntegerType | IndexType)
    if kind is AtomicKind.MIN:
        return min if is_integer else minimum
    if kind is AtomicKind.MAX:
        return max if is_integer else maximum
    if kind is AtomicKind.AND:
        return lambda a, b: a & b
    if kind is AtomicKind.OR:
        return lambda a, b: a | b
    if isinstance(type_, IntegerType):
        width = type_.width.data
        return lambda a, b: wrap(a + b, width)
    if isinstance(type_, Float32Type):
        return lambda a, b: round_f32(a + b)
    if isinstance(type_, Float16Type):
        return lambda a, b: round_f16(a + b)
    if isinstance(type_, BFloat16Type):
        return lambda a, b: round_bf16(a + b)
    return lambda a, b: a + b


class AsyncCopies:
    """The copies of one thread that have not arrived yet, by group."""

    def __init__(self) -> None:
        self.groups: list[list[tuple[list[Any], int, list[Any], int, int]]] = [[]]

    def start(self, source: list[Any], at: int, target: list[Any], to: int, count: int) -> None:
        self.groups[-1].append((source, at, target, to, count))

    def commit(self) -> None:
        self.groups.append([])

    def wait(self, pending: int) -> None:
        """Let all groups arrive but the last `pending` committed ones."""
        while len(self.groups) - 1 > pending:
            for source, at, target, to, count in self.groups.pop(0):
                target[to : to + count] = source[at : at + count]


@emits(low_gpu.AsyncCopyOp)
def emit_async_copy(emitter: Emitter, op: low_gpu.AsyncCopyOp) -> None:
    element = cast("MemRefType[Attribute]", op.source.type).element_type
    if not isinstance(element, FixedBitwidthType):
        raise CompileError.at(op, f"'{op.name}' copies elements of a known size, got {element}")
    count = max(1, op.bytes * 8 // element.bitwidth)
    source, target = emitter.buffer(op.source), emitter.buffer(op.target)
    at = emitter.element(source, [op.source_index], op, last_lanes=count)
    to = emitter.element(target, [op.target_index], op, last_lanes=count)
    emitter.line(
        f"if ({at}) % {count} or ({to}) % {count}: {emitter.helper(unaligned)}({emitter.operation_name(op)})", op
    )
    emitter.line(f"_copies.start({source.data}, {at}, {target.data}, {to}, {count})", op)


def unaligned(op: Operation) -> None:
    raise InterpreterError(op, f"'{op.name}' copies from or to a place that is not aligned to its size")


@emits(low_gpu.AsyncCommitOp)
def emit_async_commit(emitter: Emitter, op: low_gpu.AsyncCommitOp) -> None:
    if _has_copies(op):
        emitter.line("_copies.commit()", op)


@emits(low_gpu.AsyncWaitOp)
def emit_async_wait(emitter: Emitter, op: low_gpu.AsyncWaitOp) -> None:
    if _has_copies(op):
        emitter.line(f"_copies.wait({op.groups})", op)


def _has_copies(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, FuncOp):
        parent = parent.parent_op()
    return parent is not None and any(isinstance(inner, low_gpu.AsyncCopyOp) for inner in parent.walk())


def launch(
    op: Operation,
    kernel: Callable[..., Thread],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    arguments: tuple[Any, ...],
    order: str,
    seed: int,
) -> None:
    """Run every block of a grid. The blocks run in the order that the threads run in, too."""
    if min(block) < 1 or min(grid) < 0:
        raise InterpreterError(op, f"'{op.name}' starts {grid} blocks of {block} threads")
    places = [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]
    threads = [(x, y, z) for z in range(block[2]) for y in range(block[1]) for x in range(block[0])]
    generator = random.Random(seed)
    if order == "reversed":
        places.reverse()
    elif order == "shuffled":
        generator.shuffle(places)
    running: list[Iterator[None]] = []
    for place in places:
        memory: dict[str, Any] = {}
        block_of_threads = [kernel(*arguments, (*place, *thread), memory) for thread in threads]
        running.append(_Block(block_of_threads, order, generator).rounds())
        if order not in INTERLEAVED:
            for _ in running.pop():
                pass
    while running:
        running = [one for one in running if next(one, running) is None]


INTERLEAVED = ("interleaved", "privatised")
"""Orders in which threads advance from store to store."""


@dataclass
class _Block:
    """The threads of one block while they run. `waiting` is where each has stopped, None for one that has ended."""

    threads: list[Thread]
    order: str
    generator: random.Random
    waiting: dict[int, Meeting] = field(default_factory=dict[int, Meeting])
    ended: set[int] = field(default_factory=set[int])

    def rounds(self) -> Iterator[None]:
        """Run the block. Pauses where the threads of other blocks may run."""
        yield from self._advance(dict.fromkeys(range(len(self.threads))))
        while self.waiting:
            yield from self._advance(self._shuffle() or self._pass_barrier())

    def _advance(self, answers: dict[int, Any]) -> Iterator[None]:
        """Let the threads in `answers` run to where they meet others; each is given what it waited for."""
        running = list(answers)
        if self.order == "reversed":
            running.reverse()
        elif self.order == "shuffled":
            self.generator.shuffle(running)
        if self.order in INTERLEAVED:
            while running:
                running = [thread for thread in running if self._step(thread, answers.pop(thread, None))]
                yield
            return
        for thread in running:
            answer = answers[thread]
            while self._step(thread, answer):
                answer = None

    def _step(self, thread: int, answer: Any) -> bool:
        """Let one thread run to where it pauses; whether it can go on by itself."""
        try:
            meeting = self.threads[thread].send(answer)
        except StopIteration:
            self.ended.add(thread)
            return False
        if meeting is None:
            return True
        self.waiting[thread] = meeting
        return False

    def _shuffle(self) -> dict[int, Any]:
        """What the threads of the warps that have met at a shuffle get, by thread."""
        answers: dict[int, Any] = {}
        for start in range(0, len(self.threads), WARP):
            lanes = list(range(start, min(start + WARP, len(self.threads))))
            op = next((self.waiting[t].op for t in lanes if t in self.waiting and _is_of_warp(self.waiting[t])), None)
            if op is None:
                continue
            for lane in lanes:
                meeting = self.waiting.get(lane)
                if meeting is None or meeting.op is not op:
                    raise InterpreterError(
                        op, f"'{op.name}' is not reached by all threads of a warp: {lane} is missing"
                    )
            meetings = [self.waiting.pop(lane) for lane in lanes]
            if isinstance(op, low_gpu.ShuffleOp):
                answers.update(zip(lanes, _shuffled(op, meetings), strict=True))
            else:
                meet(op, [meeting.value for meeting in meetings])
                answers.update(dict.fromkeys(lanes))
        return answers

    def _pass_barrier(self) -> dict[int, Any]:
        """Check that all threads wait at one barrier, which gives them nothing."""
        first, meeting = next(iter(self.waiting.items()))
        for thread in range(len(self.threads)):
            other = self.waiting.get(thread)
            if other is None or other.op is not meeting.op:
                where = "has ended" if other is None else "waits at another one"
                raise InterpreterError(
                    meeting.op,
                    f"'{meeting.op.name}' is not reached by all threads of a block: thread {first} waits, "
                    f"thread {thread} {where}",
                )
        self.waiting.clear()
        return dict.fromkeys(range(len(self.threads)))


def _is_of_warp(meeting: Meeting) -> bool:
    return not isinstance(meeting.op, low_gpu.BarrierOp)


def _shuffled(op: low_gpu.ShuffleOp, lanes: Sequence[Meeting]) -> list[Any]:
    """What each lane of a warp gets; None, never written, from a lane that does not exist."""
    width = op.lanes
    results: list[Any] = []
    for lane, meeting in enumerate(lanes):
        own, group = lane % width, lane - lane % width
        match op.mode.data:
            case ShuffleMode.DOWN:
                source = own + meeting.offset
            case ShuffleMode.UP:
                source = own - meeting.offset
            case ShuffleMode.XOR:
                source = own ^ meeting.offset
            case ShuffleMode.IDX:
                source = meeting.offset % width
        if not 0 <= source < width:
            source = own
        results.append(lanes[group + source].value if group + source < len(lanes) else None)
    return results
