"""Low kernels and their launches in upstream's `gpu` dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from xdsl.dialects import arith, gpu, memref, vector
from xdsl.dialects.builtin import (
    DenseArrayBase,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.memref import GlobalOp
from xdsl.ir import Block, Region

from weft.analysis.block_scopes import function_of
from weft.dialects.combiners import UPSTREAM_KINDS, op_named
from weft.dialects.low_kernel import (
    AsyncCommitOp,
    AsyncCopyOp,
    AsyncWaitOp,
    AtomicOp,
    BarrierOp,
    LaunchOp,
    ShuffleMode,
    ShuffleOp,
    ThreadIdOp,
    kernel_of,
)
from weft.dialects.traversal import operations_of
from weft.dialects.upstream import gpu as upstream_gpu
from weft.dialects.upstream.memref import ATOMIC_KINDS
from weft.passes.low.op_rewriter import OpRewriter
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Operation, SSAValue

KERNELS: Final = "kernels"
"""The name of the `gpu.module` that contains the kernels."""
WORKGROUP: Final = IntegerAttr(3, IntegerType(64))
"""The memory space that the threads of a block share, as LLVM numbers it for NVIDIA and AMD."""


def _thread_id(op: Operation) -> None:
    thread_id = cast("ThreadIdOp", op)
    where, _, axis = thread_id.axis.data.partition(".")
    kind = gpu.BlockIdOp if where == "blockIdx" else gpu.ThreadIdOp
    OpRewriter(op).become(kind(gpu.DimensionAttr(gpu.DimensionEnum(axis))))


def _barrier(op: Operation) -> None:
    OpRewriter(op).become(gpu.BarrierOp())


def _atomic(op: Operation) -> None:
    atomic = cast("AtomicOp", op)
    combiner = op_named(atomic.kind.data.value, atomic.value.type)
    name = next(name for name, op_class in UPSTREAM_KINDS.items() if op_class is combiner)
    kind = IntegerAttr(ATOMIC_KINDS.index(name), i64)
    rewriter = OpRewriter(op)
    rewriter.replace(
        rewriter.op(memref.AtomicRMWOp, (atomic.value, atomic.buffer, *atomic.indices), atomic.old.type, {"kind": kind})
    )


def _async_copy(op: Operation) -> None:
    copy = cast("AsyncCopyOp", op)
    rewriter = OpRewriter(op)
    element = cast("MemRefType[Attribute]", copy.source.type).element_type
    lanes = VectorType(element, [copy.bytes // getattr(element, "size", 4)])
    moved = rewriter.insert(vector.LoadOp(copy.source, [copy.source_index], lanes))
    rewriter.become(vector.StoreOp(moved, copy.target, [copy.target_index]))


def _erase_wait(op: Operation) -> None:
    """Copies are synchronous."""
    OpRewriter(op).erase()


def _shuffle(op: Operation) -> None:
    """Convert all modes to the one that selects a lane of the warp."""
    shuffle = cast("ShuffleOp", op)
    writer = OpRewriter(op)
    lane = _lane(writer, op)
    last = writer.index(shuffle.lanes - 1)
    place = writer.combine(arith.AndIOp, lane, last)
    first = writer.combine(arith.SubiOp, lane, place)
    match shuffle.mode.data:
        case ShuffleMode.DOWN | ShuffleMode.UP as mode:
            kind = arith.AddiOp if mode is ShuffleMode.DOWN else arith.SubiOp
            other = writer.combine(kind, place, shuffle.offset)
            # The comparison is unsigned: a negative position is also greater than the last.
            inside = writer.insert(arith.CmpiOp(other, last, "ule"))
            other = writer.op(arith.SelectOp, (inside, other, place), IndexType())
        case ShuffleMode.XOR:
            other = writer.combine(arith.XOrIOp, place, shuffle.offset)
            inside = writer.insert(arith.CmpiOp(other, last, "ule"))
            other = writer.op(arith.SelectOp, (inside, other, place), IndexType())
        case ShuffleMode.IDX:
            other = writer.combine(arith.AndIOp, shuffle.offset, last)
    source = writer.op(arith.IndexCastOp, (writer.combine(arith.AddiOp, first, other),), i32)
    width = writer.insert(arith.ConstantOp(IntegerAttr(32, i32)))
    value = shuffle.value
    if isinstance(value.type, IndexType):
        value = writer.op(arith.IndexCastOp, (value,), i64)
    shuffled = upstream_gpu.ShuffleOp.create(
        operands=(value, source, width),
        result_types=[value.type, i1],
        properties={"mode": upstream_gpu.ShuffleModeAttr(upstream_gpu.ShuffleMode.IDX)},
    )
    result = writer.insert(shuffled)
    if isinstance(shuffle.value.type, IndexType):
        result = writer.op(arith.IndexCastOp, (result,), IndexType())
    writer.replace(result)


def _lane(writer: OpRewriter, op: Operation) -> SSAValue:
    """The lane of this thread in its warp; x is the fastest axis."""
    kernel = kernel_of(function_of(op))
    if kernel is None:
        raise CompileError.at(op, f"convert-low-to-upstream: {op.name} is outside of a kernel")
    x, y, _ = kernel.threads_per_axis
    ids = [writer.insert(gpu.ThreadIdOp(gpu.DimensionAttr(axis))) for axis in gpu.DimensionEnum]
    rows = writer.combine(arith.AddiOp, writer.combine(arith.MuliOp, ids[2], writer.index(y)), ids[1])
    linear = writer.combine(arith.AddiOp, writer.combine(arith.MuliOp, rows, writer.index(x)), ids[0])
    return writer.combine(arith.AndIOp, linear, writer.index(31))


def _launch(op: Operation) -> None:
    launch = cast("LaunchOp", op)
    kernel = SymbolRefAttr(KERNELS, [launch.kernel.string_value()])
    OpRewriter(op).become(gpu.LaunchFuncOp(kernel, launch.grid, launch.block, kernelOperands=launch.arguments))


KERNEL_REWRITES: Final[Mapping[type[Operation], Callable[[Operation], None]]] = {
    ThreadIdOp: _thread_id,
    BarrierOp: _barrier,
    ShuffleOp: _shuffle,
    AtomicOp: _atomic,
    AsyncCopyOp: _async_copy,
    AsyncCommitOp: _erase_wait,
    AsyncWaitOp: _erase_wait,
    LaunchOp: _launch,
}


def move_kernels(module: ModuleOp) -> None:
    kernels = [op for op in module.ops if isinstance(op, FuncOp) and kernel_of(op) is not None]
    if not kernels:
        return
    body = Block()
    for function in kernels:
        for buffer in operations_of(function, memref.AllocaOp):
            if buffer.memref.type.memory_space == WORKGROUP:
                body.add_op(_shared(function, buffer))
        body.add_op(_kernel(function))
    module.attributes["gpu.container_module"] = UnitAttr()
    module.body.block.add_op(gpu.ModuleOp.build(properties={"sym_name": StringAttr(KERNELS)}, regions=[Region(body)]))


def _shared(function: FuncOp, buffer: memref.AllocaOp) -> GlobalOp:
    name = f"{function.sym_name.data}_{buffer.memref.name_hint or 'shared'}"
    OpRewriter(buffer).become(memref.GetGlobalOp(name, buffer.memref.type))
    return GlobalOp.get(
        StringAttr(name), buffer.memref.type, initial_value=UnitAttr(), sym_visibility=StringAttr("private")
    )


def _kernel(function: FuncOp) -> gpu.FuncOp:
    kernel = kernel_of(function)
    body = function.detach_region(function.body)
    for op in [op for op in body.block.ops if isinstance(op, ReturnOp)]:
        OpRewriter(op).become(gpu.ReturnOp([]))
    types = FunctionType.from_lists(list(body.block.arg_types), [])
    function.detach()
    converted = gpu.FuncOp(function.sym_name.data, types, body)
    converted.attributes[upstream_gpu.KERNEL] = UnitAttr()
    if kernel is not None:
        if max(kernel.threads_per_axis) >= 1 << 31:
            raise CompileError.at(function, f"convert-low-to-upstream: blocks of {kernel.threads_per_axis} threads")
        converted.attributes[upstream_gpu.BLOCK_SIZE] = DenseArrayBase.from_list(i32, kernel.threads_per_axis)
    return converted
