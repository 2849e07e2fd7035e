"""tir-unroll-registers: unroll loops over registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from xdsl.dialects import memref
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from weft.analysis.block_scopes import ancestors
from weft.analysis.index import Index
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind, LoopKindAttr
from weft.dialects.traversal import operations_in
from weft.passes.tir.tir_pass import LOCAL, KernelPass, buffer_type, repetitions

LARGEST_IN_REGISTERS: Final = 256
"""Elements of a buffer that may be promoted to registers of a thread."""
_COPIES = 1024
"""Copies of a body."""


@dataclass(frozen=True)
class UnrollRegistersPass(KernelPass):
    """Unroll the serial loops of kernels that index small buffers of space "local".

    ```mlir
    %C = memref.alloca() : memref<8xf32, "local">
    tir.for %i in 8 { memref.store %zero, %C[%i] }
    // becomes
    tir.for %i in 8 unrolled { memref.store %zero, %C[%i] }
    ```
    Registers are not addressable: only a buffer whose indices are all constants needs no memory. Loops of static extent
    are unrolled, to at most 1024 copies of a body.

    Requires: kernels over flat buffers (`tir-flatten`).

    Leaves: the same; loops over registers are of kind `unrolled`.
    """

    name = "tir-unroll-registers"

    def rewrite(self, function: FuncOp) -> None:
        for alloca in [op for op in function.walk() if isinstance(op, memref.AllocaOp)]:
            type_ = buffer_type(alloca.memref)
            if type_.memory_space == LOCAL and type_.get_shape()[0] <= LARGEST_IN_REGISTERS:
                unroll_loops_over(alloca.memref)


def unroll_loops_over(buffer: SSAValue) -> None:
    for use in list(buffer.uses):
        user = use.operation
        indices = [operand for operand in user.operands if operand is not buffer]
        picking = {v for operand in indices for v in Index.of(operand).values()}
        loops = [loop for loop in ancestors(user) if isinstance(loop, ForOp) and loop.induction_variable in picking]
        for loop in loops:
            if loop.kind.data is LoopKind.SERIAL and isinstance(loop.extent, int) and _copies(loop) <= _COPIES:
                loop.kind = LoopKindAttr(LoopKind.UNROLLED)


def _copies(loop: ForOp) -> int:
    extent = loop.extent if isinstance(loop.extent, int) else 1
    return extent * max((repetitions(op, loop) for op in operations_in(loop.body)), default=1)
