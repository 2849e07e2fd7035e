"""Steps on loops: how they are taken apart, put together, ordered and run."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, var_operand_def, var_result_def

from weft.dialects.sched_base import LOOP, StepOp, verify_handles


@irdl_op_definition
class SplitOp(StepOp):
    """A loop into nested loops with the given extents; 0 is inferred."""

    name = "sched.split"
    HANDLE_TYPES: ClassVar = (LOOP,)
    CONSUMES: ClassVar = True

    loop = operand_def(LOOP)
    factors = prop_def(ArrayAttr[IntegerAttr])
    loops = var_result_def(LOOP)

    def verify_(self) -> None:
        verify_handles(self, len(self.factors))


@irdl_op_definition
class FuseOp(StepOp):
    """Nested loops into one."""

    name = "sched.fuse"
    HANDLE_TYPES: ClassVar = (LOOP,)
    CONSUMES: ClassVar = True

    loops = var_operand_def(LOOP)
    fused = result_def(LOOP)


@irdl_op_definition
class ReorderOp(StepOp):
    """Loops of one chain into the given order."""

    name = "sched.reorder"
    HANDLE_TYPES: ClassVar = (LOOP,)

    loops = var_operand_def(LOOP)


@irdl_op_definition
class TileOp(StepOp):
    """Adjacent loops split by one factor each, the tile loops moved inside."""

    name = "sched.tile"
    HANDLE_TYPES: ClassVar = (LOOP,)
    CONSUMES: ClassVar = True

    loops = var_operand_def(LOOP)
    factors = prop_def(ArrayAttr[IntegerAttr])
    tiled = var_result_def(LOOP)

    def verify_(self) -> None:
        verify_handles(self, 2 * len(self.loops))


class _LoopKindOp(StepOp):
    HANDLE_TYPES: ClassVar = (LOOP,)

    loop = operand_def(LOOP)


@irdl_op_definition
class ParallelOp(_LoopKindOp):
    """Iterations may run on several threads."""

    name = "sched.parallel"


@irdl_op_definition
class VectorizeOp(_LoopKindOp):
    """Iterations become vector lanes."""

    name = "sched.vectorize"


@irdl_op_definition
class UnrollOp(_LoopKindOp):
    """The body is repeated."""

    name = "sched.unroll"
