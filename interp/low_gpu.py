"""Kernels: a launch runs every block of threads, and the threads of a block as generators that meet at barriers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.func import FuncOp

from weft.dialects.tir_kinds import IN_STEP, LoopKind
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from weft.dialects.tir import ForOp


def refuse_threads_in_step(loop: ForOp) -> None:
    """Raise `CompileError` when `loop` is over the threads of a kernel that is being lowered."""
    if loop.kind.data is not LoopKind.THREAD_BINDING:
        return
    parent = loop.parent_op()
    while parent is not None and not isinstance(parent, FuncOp):
        parent = parent.parent_op()
    if parent is not None and IN_STEP in parent.attributes:
        raise CompileError.at(loop, "kernels are interpreted when they are functions; here their threads run in step")
