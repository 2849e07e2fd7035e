"""Kernels: a launch runs every thread block; the threads of a block synchronise at barriers and ops of warps.

Each thread is a Python generator, which pauses at barriers, shuffles and ops on tensor cores with a
`Synchronisation`. In order "interleaved" it also pauses around stores, and all thread blocks run concurrently, so
that races show; else they run sequentially. Barriers and shuffles that not all threads reach, and reads of unwritten
memory, are errors.

Before distribution to threads, ops on tiles run once. For `wmma`, whose layout is unspecified, thread l holds the n
elements from l * n on, in row-major order and cyclically.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from xdsl.dialects.builtin import (
    FixedBitwidthType,
    MemRefType,
    f32,
)
from xdsl.dialects.func import FuncOp

from weft.dialects import low_kernel, low_tensor_cores
from weft.dialects.combiners import op_named
from weft.dialects.low_kernel import BLOCK_AXES, THREAD_AXES, ShuffleMode
from weft.dialects.low_tensor_cores import WARP, Family, FragmentAttr, FragmentRole, Order
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.interp.emitter import INTERLEAVED
from weft.interp.errors import InterpreterError
from weft.interp.registry import emits
from weft.interp.scalar import combined
from weft.support.errors import CompileError
from weft.support.narrow_floats import round_f32

if TYPE_CHECKING:
    from xdsl.dialects.memref import AllocaOp
    from xdsl.ir import Attribute, Operation

    from weft.interp.emitter import Emitter


@dataclass(frozen=True)
class Synchronisation:
    """The request of a thread, with operands at an op of its warp."""

    op: Operation
    value: Any = None
    offset: int = 0


Pointer: TypeAlias = "tuple[list[Any], int]"
Matrix: TypeAlias = "list[list[Any]]"


@emits(low_tensor_cores.TileLoadOp, low_tensor_cores.TileStoreOp)
def emit_tile_copy(emitter: Emitter, op: low_tensor_cores.Copy) -> None:
    rows, columns = op.fragment.tile
    emitter.store_call(copy_tile, op, *map(emitter.value, op.operands), rows, columns)


def copy_tile(source: Pointer, source_rows: int, target: Pointer, target_rows: int, rows: int, columns: int) -> None:
    (read, first), (written, start) = source, target
    for row in range(rows):
        at, to = first + row * source_rows, start + row * target_rows
        written[to : to + columns] = read[at : at + columns]


@emits(low_tensor_cores.TileFillOp)
def emit_tile_fill(emitter: Emitter, op: low_tensor_cores.TileFillOp) -> None:
    rows, columns = op.fragment.tile
    target, distance = emitter.value(op.target), emitter.value(op.target_rows)
    emitter.store_call(fill_tile, op, target, distance, float(op.value.value.data), rows, columns)


def fill_tile(target: Pointer, target_rows: int, value: float, rows: int, columns: int) -> None:
    written, start = target
    for row in range(rows):
        written[start + row * target_rows : start + row * target_rows + columns] = [value] * columns


@emits(low_tensor_cores.TileMmaOp)
def emit_tile_mma(emitter: Emitter, op: low_tensor_cores.TileMmaOp) -> None:
    fragments = (emitter.constant(fragment, "fragment") for fragment in (op.a_fragment, op.b_fragment))
    emitter.store_call(multiply_tiles, op, *map(emitter.value, op.operands), *fragments)


def multiply_tiles(
    a: Pointer,
    a_rows: int,
    b: Pointer,
    b_rows: int,
    c: Pointer,
    c_rows: int,
    a_fragment: FragmentAttr,
    b_fragment: FragmentAttr,
) -> None:
    left, right = matrix_of(a, a_rows, a_fragment), matrix_of(b, b_rows, b_fragment)
    memory, start = c
    m, n, _ = a_fragment.shape
    sums = [memory[start + row * c_rows : start + row * c_rows + n] for row in range(m)]
    for row, line in enumerate(multiplied(left, right, sums)):
        memory[start + row * c_rows : start + row * c_rows + n] = line


def matrix_of(tile: Pointer, distance: int, fragment: FragmentAttr) -> Matrix:
    memory, start = tile
    rows, columns = fragment.tile
    found = [memory[start + row * distance : start + row * distance + columns] for row in range(rows)]
    return found if fragment.order is Order.ROW else [list(column) for column in zip(*found, strict=True)]


def multiplied(a: Matrix, b: Matrix, c: Sequence[Sequence[Any]]) -> Matrix:
    """A * B + C, rounded once: hardware rounds more often, and in an unspecified order."""
    columns = list(zip(*b, strict=True))
    return [
        [
            round_f32(sum((x * y for x, y in zip(row, column, strict=True)), 0.0) + before)
            for column, before in zip(columns, line, strict=True)
        ]
        for row, line in zip(a, c, strict=True)
    ]


Lanes: TypeAlias = "Sequence[Sequence[Any]]"
"""Operands of a warp op, by thread."""


@emits(*low_tensor_cores.TENSOR_CORE_OPS)
def emit_warp_op(emitter: Emitter, op: low_tensor_cores.WarpOp) -> None:
    operands = ", ".join(emitter.value(operand) for operand in op.operands)
    emitter.line(f"yield {emitter.call(Synchronisation, op, f'({operands},)')}", op)


def run_warp_op(op: Operation, lanes: Lanes) -> None:
    """Raises `InterpreterError` if threads of the warp are missing or differ."""
    if len(lanes) != WARP:
        raise InterpreterError(op, f"'{op.name}' is for {WARP} threads, and the warp has {len(lanes)}")
    _MEANINGS[op.name](op, lanes)


def _agreed(op: Operation, lanes: Lanes, operand: int) -> Any:
    values = [lane[operand] for lane in lanes]
    for number, value in enumerate(values):
        if not _is_same(values[0], value):
            raise InterpreterError(op, f"'{op.name}': threads 0 and {number} of a warp name different tiles")
    return values[0]


def _is_same(first: Any, second: Any) -> bool:
    if not isinstance(first, tuple):
        return first == second
    (memory, at), (other, place) = cast("tuple[Pointer, Pointer]", (first, second))
    return memory is other and at == place


def _aligned(op: Operation, place: int, count: int) -> None:
    if place % count:
        raise InterpreterError(op, f"'{op.name}': a row starts at element {place}, which is no multiple of {count}")


def _bounded(op: Operation, pointer: Pointer, count: int) -> None:
    memory, at = pointer
    if not 0 <= at <= len(memory) - count:
        raise InterpreterError(
            op, f"access out of bounds: '{op.name}' takes {count} elements from {at} of {len(memory)}"
        )


def _registers(op: Operation, lanes: Lanes, operand: int, count: int) -> list[Pointer]:
    found = [lane[operand] for lane in lanes]
    for pointer in found:
        _bounded(op, pointer, count)
    return found


def _scatter(fragment: FragmentAttr, registers: Sequence[Pointer], tile: Sequence[Any]) -> None:
    count = fragment.elements_per_thread
    for lane, (memory, at) in enumerate(registers):
        memory[at : at + count] = [tile[(lane * count + number) % len(tile)] for number in range(count)]


def _gathered(fragment: FragmentAttr, registers: Sequence[Pointer]) -> list[Any]:
    rows, columns = fragment.tile
    count = fragment.elements_per_thread
    return [element for memory, at in registers for element in memory[at : at + count]][: rows * columns]


def _row_starts(
    op: low_tensor_cores.WmmaLoadOp | low_tensor_cores.WmmaStoreOp, tile: Pointer, distance: int
) -> Iterator[int]:
    """Rows of a tile in memory, aligned to a thread's elements (PTX ISA, "Matrix Storage")."""
    (memory, at), (rows, columns) = tile, op.fragment.tile
    for row in range(rows):
        start = at + row * distance
        _bounded(op, (memory, start), columns)
        _aligned(op, start, op.fragment.elements_per_thread)
        yield start


def _wmma_load(op: low_tensor_cores.WmmaLoadOp, lanes: Lanes) -> None:
    fragment, columns = op.fragment, op.fragment.tile[1]
    source = memory, _ = _agreed(op, lanes, 0)
    tile: list[Any] = []
    for start in _row_starts(op, source, _agreed(op, lanes, 1)):
        tile.extend(memory[start : start + columns])
    _scatter(fragment, _registers(op, lanes, 2, fragment.elements_per_thread), tile)


def _wmma_store(op: low_tensor_cores.WmmaStoreOp, lanes: Lanes) -> None:
    fragment, columns = op.fragment, op.fragment.tile[1]
    target = memory, _ = _agreed(op, lanes, 1)
    tile = _gathered(fragment, _registers(op, lanes, 0, fragment.elements_per_thread))
    for row, start in enumerate(_row_starts(op, target, _agreed(op, lanes, 2))):
        memory[start : start + columns] = tile[row * columns : (row + 1) * columns]


def _wmma_mma(op: low_tensor_cores.WmmaMmaOp, lanes: Lanes) -> None:
    c_fragment = op.a_fragment.with_role(FragmentRole.C, Order.ROW, f32)
    tiles = [
        _gathered(fragment, _registers(op, lanes, operand, fragment.elements_per_thread))
        for operand, fragment in enumerate((op.a_fragment, op.b_fragment, c_fragment))
    ]
    a, b, c = (
        matrix_of((tile, 0), fragment.tile[1], fragment)
        for tile, fragment in zip(tiles, (op.a_fragment, op.b_fragment, c_fragment), strict=True)
    )
    result = [element for row in _multiplied(op, a, b, c) for element in row]
    _scatter(c_fragment, [lane[2] for lane in lanes], result)


def _multiplied(op: Operation, a: Matrix, b: Matrix, c: Matrix) -> Matrix:
    if any(None in row for matrix in (a, b, c) for row in matrix):
        raise InterpreterError(op, f"'{op.name}' uses a fragment that was never written")
    return multiplied(a, b, c)


def _ldmatrix(op: low_tensor_cores.LdmatrixOp, lanes: Lanes) -> None:
    matrices: list[Matrix] = []
    for first in range(0, 8 * op.matrices, 8):
        rows: Matrix = []
        for lane in range(first, first + 8):
            memory, at = lanes[lane][0]
            _bounded(op, (memory, at), 8)
            _aligned(op, at, 8)
            rows.append(memory[at : at + 8])
        matrices.append([list(column) for column in zip(*rows, strict=True)] if op.is_transposed else rows)
    for lane, (memory, at) in enumerate(_registers(op, lanes, 1, 2 * op.matrices)):
        for number, matrix in enumerate(matrices):
            column = 2 * (lane % 4)
            memory[at + 2 * number : at + 2 * number + 2] = matrix[lane // 4][column : column + 2]


def _mma_sync(op: low_tensor_cores.MmaSyncOp, lanes: Lanes) -> None:
    a = FragmentAttr.of(Family.MMA, FragmentRole.A, Order.ROW, (16, 8, 16), op.element)
    fragments = [a, a.with_role(FragmentRole.B, Order.ROW, op.element), a.with_role(FragmentRole.C, Order.ROW, f32)]
    matrices: list[Matrix] = []
    for operand, fragment in enumerate(fragments):
        rows, columns = fragment.matrix
        matrix: Matrix = [[None] * columns for _ in range(rows)]
        count = fragment.elements_per_thread
        for lane, (memory, at) in enumerate(_registers(op, lanes, operand, count)):
            for number in range(count):
                row, column = fragment.place(lane, number)
                matrix[row][column] = memory[at + number]
        matrices.append(matrix)
    result = _multiplied(op, *matrices)
    for lane, values in enumerate(lanes):
        memory, at = values[2]
        for number in range(4):
            row, column = fragments[2].place(lane, number)
            memory[at + number] = result[row][column]


_MEANINGS: Final[dict[str, Callable[[Any, Lanes], None]]] = {
    low_tensor_cores.WmmaLoadOp.name: _wmma_load,
    low_tensor_cores.WmmaStoreOp.name: _wmma_store,
    low_tensor_cores.WmmaMmaOp.name: _wmma_mma,
    low_tensor_cores.LdmatrixOp.name: _ldmatrix,
    low_tensor_cores.MmaSyncOp.name: _mma_sync,
}


IDS, MEMORY = "_ids", "_memory"
"""Parameters of a compiled kernel: the thread's ids on all axes, and its block's shared memory."""

Thread: TypeAlias = "Generator[Synchronisation | None, Any, Any]"


def refuse_threads_in_step(function: FuncOp) -> None:
    for op in function.walk():
        if op.has_trait(low_kernel.InKernel) or (isinstance(op, ForOp) and op.kind.data is LoopKind.THREAD_BINDING):
            raise CompileError.at(op, "kernels are interpreted when they are functions; here their threads run in step")


def begin_kernel(emitter: Emitter, function: FuncOp) -> list[str]:
    """Returns the parameters in addition to the function's."""
    emitter.in_kernel = True
    emitter.interleaved = [IDS]
    emitter.pauses_at_stores = emitter.options.order in INTERLEAVED
    emitter.line("if False: yield")
    emitter.has_async_copies = any(isinstance(op, low_kernel.AsyncCopyOp) for op in function.walk())
    if emitter.has_async_copies:
        emitter.line(f"_copies = {emitter.helper(AsyncCopies)}()")
    return [IDS, MEMORY]


def emit_shared_alloca(emitter: Emitter, op: AllocaOp, count: str) -> str:
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


@emits(low_kernel.BarrierOp)
def emit_barrier(emitter: Emitter, op: low_kernel.BarrierOp) -> None:
    emitter.line(f"yield {emitter.constant(Synchronisation(op), 'barrier')}", op)


@emits(low_kernel.ShuffleOp)
def emit_shuffle(emitter: Emitter, op: low_kernel.ShuffleOp) -> None:
    value, offset = emitter.value(op.value), emitter.written(op.offset, op)
    name = emitter.define(op.result, maybe_unwritten=True)
    emitter.line(f"{name} = yield {emitter.call(Synchronisation, op, value, offset)}", op)


@emits(low_kernel.AtomicOp)
def emit_atomic(emitter: Emitter, op: low_kernel.AtomicOp) -> None:
    buffer = emitter.buffer(op.buffer)
    index, value = emitter.element(buffer, op.indices, op), emitter.written(op.value, op)
    combining = op_named(op.kind.data.value, op.value.type)
    name = emitter.define(op.old)
    with emitter.store():
        emitter.line(f"{name} = {buffer.data}[{index}]", op)
        emitter.line(f"{buffer.data}[{index}] = {combined(emitter, op, combining, name, value)}", op)


class AsyncCopies:
    def __init__(self) -> None:
        self.groups: list[list[tuple[list[Any], int, list[Any], int, int]]] = [[]]

    def start(self, source: list[Any], at: int, target: list[Any], to: int, count: int) -> None:
        self.groups[-1].append((source, at, target, to, count))

    def commit(self) -> None:
        self.groups.append([])

    def wait(self, pending: int) -> None:
        """Complete all except the last `pending` committed groups."""
        while len(self.groups) - 1 > pending:
            for source, at, target, to, count in self.groups.pop(0):
                target[to : to + count] = source[at : at + count]


@emits(low_kernel.AsyncCopyOp)
def emit_async_copy(emitter: Emitter, op: low_kernel.AsyncCopyOp) -> None:
    element = cast("MemRefType[Attribute]", op.source.type).element_type
    if not isinstance(element, FixedBitwidthType):
        raise CompileError.at(op, f"'{op.name}' copies elements of a known size, got {element}")
    count = max(1, op.bytes * 8 // element.bitwidth)
    source, target = emitter.buffer(op.source), emitter.buffer(op.target)
    at = emitter.element(source, [op.source_index], op, last_lanes=count)
    to = emitter.element(target, [op.target_index], op, last_lanes=count)
    message = f"'{op.name}' copies from or to a place that is not aligned to its size"
    emitter.refuse(f"({at}) % {count} or ({to}) % {count}", message, op)
    emitter.line(f"_copies.start({source.data}, {at}, {target.data}, {to}, {count})", op)


@emits(low_kernel.AsyncCommitOp)
def emit_async_commit(emitter: Emitter, op: low_kernel.AsyncCommitOp) -> None:
    if emitter.has_async_copies:
        emitter.line("_copies.commit()", op)


@emits(low_kernel.AsyncWaitOp)
def emit_async_wait(emitter: Emitter, op: low_kernel.AsyncWaitOp) -> None:
    if emitter.has_async_copies:
        emitter.line(f"_copies.wait({op.groups})", op)


def launch(
    op: Operation,
    kernel: Callable[..., Thread],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    arguments: tuple[Any, ...],
    order: str,
    seed: int,
) -> None:
    """The order of blocks is also that of threads."""
    if min(block) < 1 or min(grid) < 0:
        raise InterpreterError(op, f"'{op.name}' starts {grid} blocks of {block} threads")
    places = [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]
    threads = [(x, y, z) for z in range(block[2]) for y in range(block[1]) for x in range(block[0])]
    generator = random.Random(seed)
    _put_in_order(places, order, generator)
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


def _put_in_order(parts: list[Any], order: str, generator: random.Random) -> None:
    if order == "reversed":
        parts.reverse()
    elif order == "shuffled":
        generator.shuffle(parts)


@dataclass
class _Block:
    """The running threads of a block, and their requests (`waiting`)."""

    threads: list[Thread]
    order: str
    generator: random.Random
    waiting: dict[int, Synchronisation] = field(default_factory=dict[int, Synchronisation])
    ended: set[int] = field(default_factory=set[int])

    def rounds(self) -> Iterator[None]:
        """Pauses where threads of other blocks may run."""
        yield from self._advance(dict.fromkeys(range(len(self.threads))))
        while self.waiting:
            yield from self._advance(self._shuffle() or self._pass_barrier())

    def _advance(self, answers: dict[int, Any]) -> Iterator[None]:
        running = list(answers)
        _put_in_order(running, self.order, self.generator)
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
        try:
            request = self.threads[thread].send(answer)
        except StopIteration:
            self.ended.add(thread)
            return False
        if request is None:
            return True
        self.waiting[thread] = request
        return False

    def _shuffle(self) -> dict[int, Any]:
        """Results, by thread, of warp ops that all threads reached."""
        answers: dict[int, Any] = {}
        for start in range(0, len(self.threads), WARP):
            lanes = list(range(start, min(start + WARP, len(self.threads))))
            waiting = (self.waiting[lane].op for lane in lanes if lane in self.waiting)
            op = next((op for op in waiting if not isinstance(op, low_kernel.BarrierOp)), None)
            if op is None:
                continue
            for lane in lanes:
                request = self.waiting.get(lane)
                if request is None or request.op is not op:
                    raise InterpreterError(
                        op, f"'{op.name}' is not reached by all threads of a warp: {lane} is missing"
                    )
            requests = [self.waiting.pop(lane) for lane in lanes]
            if isinstance(op, low_kernel.ShuffleOp):
                answers.update(zip(lanes, _shuffled(op, requests), strict=True))
            else:
                run_warp_op(op, [request.value for request in requests])
                answers.update(dict.fromkeys(lanes))
        return answers

    def _pass_barrier(self) -> dict[int, Any]:
        first, request = next(iter(self.waiting.items()))
        for thread in range(len(self.threads)):
            other = self.waiting.get(thread)
            if other is None or other.op is not request.op:
                where = "has ended" if other is None else "waits at another one"
                raise InterpreterError(
                    request.op,
                    f"'{request.op.name}' is not reached by all threads of a block: thread {first} waits, "
                    f"thread {thread} {where}",
                )
        self.waiting.clear()
        return dict.fromkeys(range(len(self.threads)))


def _shuffled(op: low_kernel.ShuffleOp, lanes: Sequence[Synchronisation]) -> list[Any]:
    """The value of each lane; None (never written) from a missing one."""
    width = op.lanes
    results: list[Any] = []
    for lane, request in enumerate(lanes):
        own, group = lane % width, lane - lane % width
        match op.mode.data:
            case ShuffleMode.DOWN:
                source = own + request.offset
            case ShuffleMode.UP:
                source = own - request.offset
            case ShuffleMode.XOR:
                source = own ^ request.offset
            case ShuffleMode.IDX:
                source = request.offset % width
        if not 0 <= source < width:
            source = own
        results.append(lanes[group + source].value if group + source < len(lanes) else None)
    return results
