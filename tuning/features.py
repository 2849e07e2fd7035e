"""Features of a scheduled program for cost models: work by kind, bytes by cache level, loops by kind.

Counts include all iterations and are used as logarithms; values that the compiler keeps in registers count once.
Conditions of remainder loops are assumed to hold.

Kernels are counted as launched, after the passes that decide memories, barriers and access widths. The first warp in
the first iterations represents all accesses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import islice, product
from math import ceil, log2, prod
from typing import Final

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp, VectorType, i1
from xdsl.dialects.func import FuncOp
from xdsl.dialects.memref import AllocaOp, AllocOp, LoadOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from weft.analysis.accesses import Access, accesses
from weft.analysis.block_patterns import is_in_init
from weft.analysis.index import Index
from weft.autoschedule.rules import is_expensive
from weft.dialects.element_types import bytes_of
from weft.dialects.intervals import Interval
from weft.dialects.low_kernel import THREAD_AXES, BarrierOp, KernelAttr, LaunchOp, ThreadIdOp, kernel_of, space_of
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import NONTEMPORAL, PREFETCH, LoopKind
from weft.dialects.traversal import ancestors, copy_of, operations_in
from weft.passes.lower_tir_to_low import outline_kernels
from weft.passes.tir.tir_reuse_shared import ACCESSES
from weft.passes.tir.tir_unroll_registers import LARGEST_IN_REGISTERS
from weft.plans.cost import Cost, Work, cost
from weft.plans.traffic import LoopNest, Operand
from weft.support.errors import CompileError, ScheduleError, Violation
from weft.support.gpu_machine import GpuMachine
from weft.support.target import Target

_UNKNOWN: Final = 8
"""Assumed iterations of a loop of symbolic extent."""
_IN_CODE: Final = (LoopKind.VECTORIZED, LoopKind.UNROLLED)
_FREE: Final = ("arith.constant", "arith.index_cast", "arith.extf", "arith.extsi", "arith.extui")


@dataclass
class Counts(Cost):
    """Sums over the nests of a program. Cycles are not estimated for kernels."""

    vector_operations: float = 0.0
    scalar_operations: float = 0.0
    vector_functions: float = 0.0
    """Divisions and elementary functions, in vectors."""
    scalar_functions: float = 0.0
    vector_loads: float = 0.0
    """Of consecutive elements."""
    broadcast_loads: float = 0.0
    scalar_loads: float = 0.0
    """One per lane for lanes that are not consecutive."""
    vector_stores: float = 0.0
    scalar_stores: float = 0.0
    issued_bytes: float = 0.0
    distinct_bytes: float = 0.0
    """Of all buffers."""
    temporary_bytes: float = 0.0
    loop_iterations: float = 0.0
    """Iterations of loops that remain loops in the code."""
    largest_body: float = 0.0
    """Operations between two branches, with all copies of unrolled loops."""
    registers: float = 0.0
    """Vectors of the largest body; for kernels, the most words that a thread keeps in registers."""
    nests: float = 0.0
    parallel_iterations: float = 0.0
    idle_threads: float = 0.0
    """Percent."""
    prefetches: float = 0.0
    nontemporal_stores: float = 0.0
    loop_entries: float = 0.0
    """Starts of innermost loops: each ends with a mispredicted branch."""
    launches: float = 0.0
    """Of kernels, as all below."""
    block_threads: float = 0.0
    """In the largest block."""
    device_threads: float = 0.0
    """In all blocks."""
    shared_bytes: float = 0.0
    """Largest of a block."""
    shared_waves: float = 0.0
    """Cycles of accesses of warps: a bank delivers one word per cycle."""
    sectors: float = 0.0
    """32-byte sectors of device memory that warps access: fewest for adjacent elements."""
    barriers: float = 0.0


NAMES: Final = tuple(field.name for field in fields(Counts))


def counts_of(module: ModuleOp, target: Target) -> Counts:
    """0 for kernels that cannot be lowered. Raises `ScheduleError` for kernels beyond the limits of the target."""
    if target.gpu is not None:
        lowered = copy_of(module)
        try:
            outline_kernels(lowered, target)
        except CompileError:
            return Counts()  # the build reports the error
        return _kernel_counts(lowered, target.gpu)
    total = Counts()
    sizes: dict[SSAValue, float] = {}
    by_block: dict[BlockOp, list[Access]] = {}
    for access in accesses(module):
        if access.block is None:
            continue
        sizes[access.buffer] = float(_size(access.buffer))
        if not access.in_init:
            by_block.setdefault(access.block, []).append(access)
    for block, found in by_block.items():
        _add_nest(total, block, found, target)
    total.distinct_bytes = sum(sizes.values())
    total.temporary_bytes = sum(size for buffer, size in sizes.items() if isinstance(buffer.owner, Operation))
    return total


def features_of(module: ModuleOp, target: Target) -> tuple[float, ...]:
    """Logarithms in the order of `NAMES`. Raises as `counts_of` does."""
    return _logarithms(counts_of(module, target))


def _logarithms(counts: Counts) -> tuple[float, ...]:
    return tuple(log2(1.0 + getattr(counts, name)) for name in NAMES)


class Assessment:
    """Features of schedules of one program, the default first."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._registers: float | None = None
        """Words that a thread may keep in registers: the limit of the device, or the number of the default schedule if
        larger."""

    def __call__(self, module: ModuleOp) -> tuple[float, ...]:
        """Raises `ScheduleError` for kernels beyond the limits of the target, including the registers of a thread."""
        counts, gpu = counts_of(module, self._target), self._target.gpu
        if gpu is not None:
            if self._registers is None:
                self._registers = max(float(gpu.registers_per_thread), counts.registers)
            elif counts.registers > self._registers:
                text = f"a thread keeps {counts.registers:.0f} words, target {self._target.kind} has room for "
                violation = Violation(f"{text}{self._registers:.0f}")
                raise ScheduleError("lower-tir-to-low", 0, "what a thread keeps fits its registers", violation)
        return _logarithms(counts)


def _shape(buffer: SSAValue) -> tuple[int, ...]:
    type_ = buffer.type
    shape = type_.get_shape() if isinstance(type_, MemRefType) else ()
    return tuple(_UNKNOWN if extent < 0 else extent for extent in shape)


def _element_bytes(buffer: SSAValue) -> int:
    return bytes_of(buffer.type.element_type) if isinstance(buffer.type, MemRefType) else 0


def _size(buffer: SSAValue) -> int:
    return prod(_shape(buffer)) * _element_bytes(buffer)


def _extent(loop: ForOp) -> int:
    return loop.extent if isinstance(loop.extent, int) else _UNKNOWN


def _iterations(loops: Sequence[ForOp]) -> float:
    return float(prod(_extent(loop) for loop in loops))


def _add_nest(total: Counts, block: BlockOp, found: Sequence[Access], target: Target) -> None:
    loops = max((access.loops for access in found), key=len)
    code = [loop for loop in loops if loop.kind.data not in _IN_CODE]
    copies = _iterations([loop for loop in loops if loop.kind.data is LoopKind.UNROLLED])
    lanes = _iterations([loop for loop in loops if loop.kind.data is LoopKind.VECTORIZED])
    widest = max(_element_bytes(access.buffer) for access in found)
    outer, form = _iterations(code), "vector" if lanes > 1 else "scalar"
    copies *= max(lanes * widest / target.vector_bytes, 1.0)
    work: dict[str, float] = {}
    body = 0.0
    for op in _computing(block):
        body += copies
        kind = f"{form}_functions" if is_expensive(op.name) else f"{form}_operations"
        work[kind] = work.get(kind, 0.0) + outer * copies
    issued = live = 0.0
    for access in found:
        kind, in_body, count = _instructions(access, target)
        body += in_body
        issued += count * (target.vector_bytes if kind.startswith("vector") else widest)
        work[kind] = work.get(kind, 0.0) + count
        live = max(live, in_body)
    total.registers = max(total.registers, live)
    total.largest_body = max(total.largest_body, body)
    window = max(target.processor.reorder_window / max(body, 1.0), 1.0)
    parallel = _iterations([loop for loop in loops if loop.kind.data is LoopKind.PARALLEL])
    threads = min(parallel, target.num_threads)
    share = parallel / (ceil(parallel / target.num_threads) * target.num_threads) if threads > 1 else 1.0
    entries = outer / max(_extent(code[-1]) if code else 1, 1)
    estimate = cost(
        Work(
            **{kind: sum(count for name, count in work.items() if name.endswith(kind)) for kind in _KINDS},
            iterations=outer,
            chained=_chained(found, code, window),
            loop_entries=entries,
            nest=nest_of(places_of(found), loops),
            threads=target.num_threads * share if threads > 1 else 1.0,
        ),
        target,
    )
    amounts = {
        **work,
        **vars(estimate),
        "issued_bytes": issued,
        "loop_iterations": outer,
        "loop_entries": entries,
        "nests": 1.0,
        "prefetches": outer * (PREFETCH in block.attributes),
        "nontemporal_stores": outer * (NONTEMPORAL in block.attributes),
        "parallel_iterations": parallel,
        "idle_threads": 100.0 * (1.0 - share),
    }
    for name, amount in amounts.items():
        setattr(total, name, getattr(total, name) + amount)


_KINDS: Final = ("operations", "functions", "loads", "stores")
"""Suffixes of fields of `Counts`."""


def _chained(found: Sequence[Access], code: Sequence[ForOp], window: float) -> float:
    """Dependent updates. Those of other results overlap, in the same body and in a `window` of following iterations."""
    read = {(access.buffer, access.indices) for access in found if not access.is_write}
    sums = [access for access in found if access.is_write and (access.buffer, access.indices) in read]
    if not sums:
        return 0.0
    unrolled = [loop for loop in sums[0].loops if loop.kind.data is LoopKind.UNROLLED]
    steps = _iterations(code) * _iterations([loop for loop in unrolled if not _depends(sums[0], loop)])
    beside, at = 1.0, len(code)
    while at and _depends(sums[0], code[at - 1]):
        at -= 1
        beside *= _extent(code[at])
    return steps / min(beside, window)


def _computing(block: BlockOp) -> Iterator[Operation]:
    for op in operations_in(block):
        computes = op.results and not isinstance(op, LoadOp) and not op.name.startswith(_FREE)
        if computes and not is_in_init(op, block):
            yield op


def _instructions(access: Access, target: Target) -> tuple[str, float, float]:
    """The kind of an access, and its instructions in the innermost body and in all iterations, without loops out of
    which it is hoisted."""
    code = [loop for loop in access.loops if loop.kind.data not in _IN_CODE]
    while code and not _depends(access, code[-1]):
        code.pop()
    used = [loop for loop in access.loops if loop.kind.data in _IN_CODE and _depends(access, loop)]
    copies = _iterations([loop for loop in used if loop.kind.data is LoopKind.UNROLLED])
    vector = [loop for loop in used if loop.kind.data is LoopKind.VECTORIZED]
    lanes = _iterations(vector)
    verb = "stores" if access.is_write else "loads"
    if not vector:
        in_lanes = any(loop.kind.data is LoopKind.VECTORIZED for loop in access.loops)
        kind = "broadcast_loads" if in_lanes and not access.is_write else f"scalar_{verb}"
    elif len(vector) == 1 and _is_consecutive(access, vector[0]):
        kind = f"vector_{verb}"
        copies *= max(lanes * _element_bytes(access.buffer) / target.vector_bytes, 1.0)
    else:
        kind = f"scalar_{verb}"
        copies *= lanes
    return kind, copies, copies * _iterations(code)


def _depends(access: Access, loop: ForOp) -> bool:
    return access.indices is None or any(index.depends_on([loop.induction_variable]) for index in access.indices)


def _is_consecutive(access: Access, loop: ForOp) -> bool:
    *outer, last = access.indices or (Index({}),)
    variable = loop.induction_variable
    return last.coefficient(variable) == 1 and not any(index.depends_on([variable]) for index in outer)


def places_of(found: Sequence[Access]) -> list[Access]:
    """One access per distinct buffer and index."""
    return list({(access.buffer, access.indices): access for access in found}.values())


def nest_of(found: Sequence[Access], loops: Sequence[ForOp]) -> LoopNest:
    def operand(access: Access) -> Operand:
        sources = [set(index.sources()) for index in access.indices or ()]
        boxes = [_box(access, sources, loops[depth:]) for depth in range(len(loops) + 1)]
        return Operand(_shape(access.buffer), _element_bytes(access.buffer), boxes)

    return LoopNest([_extent(loop) for loop in loops], [operand(access) for access in found])


def _box(access: Access, sources: Sequence[Collection[SSAValue]], inner: Sequence[ForOp]) -> tuple[int, ...]:
    """Elements of each dimension that the loops touch; `sources` are those of the indices."""
    shape = _shape(access.buffer)
    if access.indices is None:
        return shape
    ranges: dict[SSAValue, Interval] = {loop.induction_variable: (0, _extent(loop) - 1) for loop in inner}
    extents: list[int] = []
    for extent, index, used in zip(shape, access.indices, sources, strict=True):
        low, high = (0, 0) if ranges.keys().isdisjoint(used) else index.range(lambda at: ranges.get(at, (0, 0)))
        span = extent if low is None or high is None else min(extent, high - low + 1)
        extents.append(max(span, 1))
    return tuple(extents)


def _kernel_counts(module: ModuleOp, gpu: GpuMachine) -> Counts:
    total = Counts()
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    kernels = {op.sym_name.data: (op, kernel) for op in functions if (kernel := kernel_of(op)) is not None}
    for function in functions:
        if function.sym_name.data in kernels:
            continue
        total.distinct_bytes += sum(map(_size, function.args))
        for op in function.walk():
            if isinstance(op, AllocOp):
                total.temporary_bytes += _size(op.memref)
            elif isinstance(op, LaunchOp):
                times = _iterations([loop for loop in ancestors(op) if isinstance(loop, ForOp)])
                grid = [Index.of(extent) for extent in op.grid]
                blocks = prod(extent.constant if extent.is_constant else _UNKNOWN for extent in grid)
                _add_kernel(total, *kernels[op.kernel.string_value()], blocks, times, gpu)
    total.distinct_bytes += total.temporary_bytes
    return total


def _add_kernel(
    total: Counts, function: FuncOp, kernel: KernelAttr, blocks: int, launches: float, gpu: GpuMachine
) -> None:
    temporaries = [op.memref for op in function.walk() if isinstance(op, AllocaOp)]
    shared = sum(_size(buffer) for buffer in temporaries if space_of(buffer.type) == "shared")
    kept = sum(_words(buffer, gpu) for buffer in temporaries if space_of(buffer.type) == "local")
    threads = kernel.threads_per_block
    total.launches += launches
    total.block_threads = max(total.block_threads, float(threads))
    total.device_threads += blocks * threads * launches
    total.shared_bytes = max(total.shared_bytes, float(shared))
    total.registers = max(total.registers, kept)
    lanes = _lanes(function, kernel.threads_per_axis, gpu.warp_size)
    for op, times in _executed(function.body.block, float(blocks * threads * launches)):
        if isinstance(op, BarrierOp):
            total.barriers += times
        elif isinstance(op, ForOp):
            total.loop_iterations += times
        elif isinstance(op, ACCESSES):
            _add_access(total, op, times, lanes, gpu)
        elif op.name.startswith(_COMPUTING) and not op.name.startswith(_FREE) and op.results:
            type_ = op.results[0].type
            if type_ not in (IndexType(), i1):
                form = "vector" if isinstance(type_, VectorType) else "scalar"
                name = f"{form}_functions" if is_expensive(op.name) else f"{form}_operations"
                setattr(total, name, getattr(total, name) + times)


_COMPUTING: Final = ("arith.", "math.", "vector.fma")


def _executed(block: Block, times: float) -> Iterator[tuple[Operation, float]]:
    """Ops with numbers of executions, loops with their iterations."""
    for op in block.ops:
        if isinstance(op, ForOp):
            inner = times * _extent(op)
            if op.kind.data not in _IN_CODE:
                yield op, inner
            yield from _executed(op.body.block, inner)
        elif isinstance(op, scf.IfOp):
            yield from _executed(op.true_region.block, times)
        else:
            yield op, times


def _lanes(function: FuncOp, threads: tuple[int, int, int], warp: int) -> list[dict[SSAValue, int]]:
    places = [place[::-1] for place in islice(product(*map(range, reversed(threads))), warp)]
    axes = {op.result: op.axis.data for op in function.walk() if isinstance(op, ThreadIdOp)}
    own = {value: THREAD_AXES.index(axis) for value, axis in axes.items() if axis in THREAD_AXES}
    return [{value: place[at] for value, at in own.items()} for place in places]


def _place(op: Operation) -> tuple[SSAValue, Index, int]:
    buffer = next(operand for operand in op.operands if isinstance(operand.type, MemRefType))
    place = next(operand for operand in op.operands if isinstance(operand.type, IndexType))
    types: list[Attribute] = [value.type for value in (*op.results, *op.operands)]
    counts = [prod(type_.get_shape()) for type_ in types if isinstance(type_, VectorType)]
    return buffer, Index.of(place), max(counts, default=1)


def _add_access(
    total: Counts, op: Operation, times: float, lanes: Sequence[Mapping[SSAValue, int]], gpu: GpuMachine
) -> None:
    buffer, index, count = _place(op)
    space, size = space_of(buffer.type), _element_bytes(buffer)
    if space == "local":
        return
    name = f"{'vector' if count > 1 else 'scalar'}_{'loads' if op.results else 'stores'}"
    setattr(total, name, getattr(total, name) + times)
    starts = {index.evaluate(lambda value, at=lane: at.get(value, 0)) * size for lane in lanes}
    if space == "shared":
        banks = [word % gpu.banks for word in _pieces(starts, count * size, gpu.word_bytes)]
        total.shared_waves += times / len(lanes) * max(map(banks.count, set(banks)))
    else:
        total.sectors += times / len(lanes) * len(_pieces(starts, count * size, gpu.sector_bytes))


def _pieces(starts: Iterable[int], size: int, piece: int) -> set[int]:
    return {at for start in starts for at in range(start // piece, (start + size - 1) // piece + 1)}


def _words(buffer: SSAValue, gpu: GpuMachine) -> float:
    """Words of registers for a thread's buffer; 0 if it stays in memory, because it is large or its indices are not
    constant after unrolling."""
    elements = prod(_shape(buffer))
    if elements > LARGEST_IN_REGISTERS:
        return 0.0
    picked: dict[Index, float] = {}
    for use in buffer.uses:
        if isinstance(use.operation, ACCESSES):
            _, index, count = _place(use.operation)
            loops = [loop for loop in ancestors(use.operation) if isinstance(loop, ForOp)]
            unrolled: dict[SSAValue, ForOp] = {
                loop.induction_variable: loop for loop in loops if loop.kind.data in _IN_CODE
            }
            values = set(index.values())
            if not unrolled.keys() >= values:
                return 0.0
            picked[index] = max(picked.get(index, 0.0), count * _iterations([unrolled[value] for value in values]))
    return min(sum(picked.values()), float(elements)) * max(_element_bytes(buffer) / gpu.word_bytes, 1.0)
