"""Kernels and launches of upstream's `gpu` dialect at the low level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from xdsl.dialects import arith, gpu
from xdsl.dialects.builtin import DenseArrayBase, FunctionType, IndexType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.memref import GlobalOp

from weft.analysis.block_scopes import function_of
from weft.analysis.index import Index
from weft.dialects.integer_arith import constant_integer
from weft.dialects.low_kernel import KERNEL, BarrierOp, KernelAttr, ShuffleMode, ShuffleOp, ThreadIdOp, kernel_of
from weft.dialects.traversal import operations_in, operations_of
from weft.dialects.upstream import gpu as upstream
from weft.passes.index_builders import constant_before, index_before, result_before
from weft.passes.low.op_rewriter import OpRewriter
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation, SSAValue

WARP: Final = 32
"""Threads that can shuffle with each other."""


def kernel_modules(module: ModuleOp) -> dict[str, gpu.ModuleOp]:
    return {op.sym_name.data: op for op in module.ops if isinstance(op, gpu.ModuleOp)}


def kernels_in(kernels: gpu.ModuleOp) -> list[gpu.FuncOp]:
    return [op for op in kernels.body.block.ops if isinstance(op, gpu.FuncOp)]


def problem_of_module(kernels: gpu.ModuleOp, module: ModuleOp) -> tuple[Operation, str] | None:
    """The reason why kernels cannot be converted, regardless of their bodies."""
    for op in kernels.body.block.ops:
        if isinstance(op, gpu.FuncOp):
            if threads_of(op, module) is None:
                return op, "its blocks have no constant number of threads (known_block_size)"
        elif not isinstance(op, GlobalOp):
            return op, f"{op.name} is in a gpu.module"
    return None


def threads_of(kernel: gpu.FuncOp, module: ModuleOp) -> tuple[int, ...] | None:
    """Threads per block on each axis, as the kernel states, else as all launches agree."""
    stated = kernel.attributes.get(upstream.BLOCK_SIZE, kernel.known_block_size)
    if isinstance(stated, DenseArrayBase):
        return tuple(stated.get_values())
    found: set[tuple[int, ...]] = set()
    for op in operations_in(module):
        if isinstance(op, gpu.LaunchFuncOp) and op.kernel.string_value().endswith(f".{kernel.sym_name.data}"):
            sizes = [constant_integer(size) for size in block_of(op)]
            found.add(tuple(size for size in sizes if size is not None))
    return found.pop() if len(found) == 1 and all(len(sizes) == 3 for sizes in found) else None


def grid_of(launch: gpu.LaunchFuncOp) -> tuple[SSAValue, ...]:
    return launch.gridSizeX, launch.gridSizeY, launch.gridSizeZ


def block_of(launch: gpu.LaunchFuncOp) -> tuple[SSAValue, ...]:
    return launch.blockSizeX, launch.blockSizeY, launch.blockSizeZ


def take_kernel(kernel: gpu.FuncOp, name: str, threads: tuple[int, ...]) -> FuncOp:
    """A detached function, still with upstream operations."""
    body = kernel.detach_region(kernel.body)
    function = FuncOp(name, FunctionType.from_lists(list(body.block.arg_types), []), body)
    function.location = kernel.location
    function.attributes[KERNEL] = KernelAttr.of(threads, name)
    for op in operations_of(function, gpu.ReturnOp):
        OpRewriter(op).become(ReturnOp())
    return function


def _axis(op: Operation) -> str:
    return str(cast("gpu.ThreadIdOp", op).dimension.data)


def _threads(op: Operation) -> int:
    kernel = cast("KernelAttr", kernel_of(function_of(op)))
    return kernel.threads_per_axis["xyz".index(_axis(op))]


def _thread_id(op: Operation) -> None:
    OpRewriter(op).become(ThreadIdOp(f"threadIdx.{_axis(op)}", _threads(op)))


def _block_id(op: Operation) -> None:
    OpRewriter(op).become(ThreadIdOp(f"blockIdx.{_axis(op)}"))


def _block_dim(op: Operation) -> None:
    OpRewriter(op).replace(constant_before(_threads(op), op))


def _global_id(op: Operation) -> None:
    block = result_before(ThreadIdOp(f"blockIdx.{_axis(op)}"), op)
    thread = result_before(ThreadIdOp(f"threadIdx.{_axis(op)}", _threads(op)), op)
    OpRewriter(op).replace(index_before(Index.of(block) * _threads(op) + Index.of(thread), op))


def _barrier(op: Operation) -> None:
    OpRewriter(op).become(BarrierOp())


def _shuffle(op: Operation) -> None:
    """For a lane that does not exist, upstream's value is undefined, and that of low is the thread's own."""
    shuffle = cast("upstream.ShuffleOp", op)
    width = constant_integer(shuffle.width)
    if width is None or shuffle.valid.first_use is not None:
        raise CompileError.at(
            op, f"{op.name} has a low form for a constant width, and if its result 'valid' has no uses"
        )
    rewriter = OpRewriter(op)
    offset = rewriter.op(arith.IndexCastOp, (shuffle.offset,), IndexType())
    mode = ShuffleMode(shuffle.mode.data.value)
    shuffle.shuffle_result.replace_all_uses_with(rewriter.insert(ShuffleOp(mode, shuffle.value, offset, width)))
    rewriter.erase()


KERNEL_REWRITES: Final[Mapping[type[Operation], Callable[[Operation], None]]] = {
    gpu.ThreadIdOp: _thread_id,
    gpu.BlockIdOp: _block_id,
    gpu.BlockDimOp: _block_dim,
    gpu.GlobalIdOp: _global_id,
    gpu.BarrierOp: _barrier,
    upstream.ShuffleOp: _shuffle,
}
"""Rewrites of ops that only occur in kernels."""
