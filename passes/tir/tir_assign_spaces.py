"""tir-assign-spaces: memory spaces of temporaries in kernels."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.dialects.builtin import NoneAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from weft.analysis.accesses import Access, accesses
from weft.analysis.block_scopes import ancestors, block_around, buffers_written
from weft.analysis.independence import is_private
from weft.analysis.threads import runs_over_blocks, runs_over_threads
from weft.dialects.low_kernel import SHARED
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import ACROSS_THREADS
from weft.passes.index_builders import insert_at_start
from weft.passes.tir.tir_pass import LOCAL, TirPass, buffer_type, set_memory_space
from weft.passes.tir.tir_place_buffers import private_loop
from weft.support.errors import CompileError

GLOBAL = (NoneAttr(), StringAttr("global"))


@dataclass(frozen=True)
class AssignSpacesPass(TirPass):
    """Assign each temporary without a memory space to a thread, a thread block or the device:

    - a thread ("local"), if each thread provably reads only elements that it wrote;
    - a thread block ("shared"), if it is allocated in the kernel (`tir-place-buffers` moves it there if no value leaves
      an iteration of the block loops);
    - the device, otherwise; it stays outside of kernels.

    ```mlir
    tir.for %b in 8 thread_binding<"blockIdx.x"> { tir.for %t in 64 thread_binding<"threadIdx.x"> {
      %T = memref.alloc() : memref<512xf32>  ... T[%b * 64 + %t] is written, then read ... } }
    // becomes
      %T = memref.alloc() : memref<512xf32, "local">
    ```
    Raises CompileError if more threads need its values than the space allows.

    Requires: kernels of one loop per axis (`tir-bind-threads`).

    Leaves: temporaries with memory spaces.
    """

    name = "tir-assign-spaces"

    def rewrite(self, function: FuncOp) -> None:
        allocations = [op for op in function.walk() if isinstance(op, memref.AllocOp)]
        found = [access for access in accesses(function) if not _is_combined(access)] if allocations else []
        for alloc in allocations:
            users = {kernel for use in alloc.memref.uses if (kernel := _threads_around(use.operation)) is not None}
            if not users:
                continue
            space = buffer_type(alloc.memref).memory_space
            kernel = next(iter(users)) if len(users) == 1 else None
            if space == SHARED:
                _place_shared(alloc, kernel)
            elif space in (LOCAL, *GLOBAL):
                _place_own(alloc, kernel, found, required=space == LOCAL)


def _is_combined(access: Access) -> bool:
    """Whether a combination across threads leaves the result in each thread's accumulators, all local if several."""
    block = block_around(access.op)
    if access.is_write or block is None or ACROSS_THREADS not in block.attributes:
        return False
    stored = buffers_written(block)
    alone = len(stored) == 1 or all(buffer_type(buffer).memory_space == LOCAL for buffer in stored)
    return alone and access.buffer in stored


def _threads_around(op: Operation) -> ForOp | None:
    around = (parent for parent in ancestors(op) if isinstance(parent, ForOp))
    return next((loop for loop in around if runs_over_threads(loop) or runs_over_blocks(loop)), None)


def _place_own(alloc: memref.AllocOp, kernel: ForOp | None, found: list[Access], *, required: bool) -> None:
    if kernel is not None and is_private(alloc.memref, kernel, found):
        loop = private_loop(alloc, found)
        if loop is not None:
            insert_at_start(loop.body.block, alloc)
        set_memory_space(alloc.memref, LOCAL)
    elif required:
        raise CompileError.at(
            alloc,
            f'%{alloc.memref.name_hint} is in memory of space "local", which is private to each thread, but not every '
            "element that a thread reads was surely written by the same thread",
        )
    elif _threads_around(alloc) is not None:
        set_memory_space(alloc.memref, SHARED)


def _place_shared(alloc: memref.AllocOp, kernel: ForOp | None) -> None:
    if _threads_around(alloc) is not None:
        return
    around = [] if kernel is None else [p for p in (kernel, *ancestors(kernel)) if isinstance(p, ForOp)]
    if kernel is None or any(runs_over_blocks(loop) and loop.extent != 1 for loop in around):
        raise CompileError.at(
            alloc,
            f'%{alloc.memref.name_hint} is in memory of space "shared", which is private to a thread block, but '
            "not every element that is read was surely written in the same thread block",
        )
    insert_at_start(kernel.body.block, alloc)
