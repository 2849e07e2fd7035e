"""Steps on what blocks are made of: nests that become blocks, and the code that stands for them."""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import irdl_op_definition, operand_def, result_def

from weft.dialects.sched_base import BLOCK, LOOP, StepOp


@irdl_op_definition
class BlockizeOp(StepOp):
    """A loop with everything in it becomes one block."""

    name = "sched.blockize"
    HANDLE_TYPES: ClassVar = (LOOP,)

    loop = operand_def(LOOP)
    block = result_def(BLOCK)


BLOCK_STEPS: tuple[type[StepOp], ...] = (BlockizeOp,)
