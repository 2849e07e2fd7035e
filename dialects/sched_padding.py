"""Steps on padding and windows: domains made multiples, borders apart from the inside, rows that are kept."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from weft.dialects.sched_base import BLOCK, LOOP, StepOp


@irdl_op_definition
class PadEinsumOp(StepOp):
    """The iterators of a block run up to multiples, over padded copies of what it reads and writes."""

    name = "sched.pad_einsum"
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)
    padding = prop_def(ArrayAttr[IntegerAttr])


@irdl_op_definition
class DecomposePaddingOp(StepOp):
    """A block that pads, as a block that fills before a loop and one that copies the inside."""

    name = "sched.decompose_padding"
    HANDLE_TYPES: ClassVar = (BLOCK, LOOP)

    block = operand_def(BLOCK)
    loop = operand_def(LOOP)
    fill = result_def(BLOCK)


@irdl_op_definition
class RollingBufferOp(StepOp):
    """The index-th buffer that the block writes keeps what the windows of neighbouring iterations share."""

    name = "sched.rolling_buffer"
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)
    index = prop_def(IntegerAttr)


PADDING_STEPS: tuple[type[StepOp], ...] = (DecomposePaddingOp, PadEinsumOp, RollingBufferOp)
