"""Steps on what blocks are made of: nests that become blocks, and the code that stands for them."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import AffineMapAttr, IntegerAttr, StringAttr
from xdsl.irdl import EqAttrConstraint, irdl_op_definition, operand_def, prop_def, result_def, var_operand_def

from weft.dialects.sched_base import BLOCK, LOOP, StepOp


@irdl_op_definition
class BlockizeOp(StepOp):
    """A loop with everything in it, or several blocks with their loops, become one block."""

    name = "sched.blockize"
    HANDLE_TYPES: ClassVar = ((LOOP, BLOCK),)

    target = var_operand_def(EqAttrConstraint(LOOP) | EqAttrConstraint(BLOCK))
    block = result_def(BLOCK)


@irdl_op_definition
class TensorizeOp(StepOp):
    """The body of a block, or a loop, becomes the implementation of a tensor intrinsic."""

    name = "sched.tensorize"
    HANDLE_TYPES: ClassVar = ((BLOCK, LOOP),)

    target = operand_def(EqAttrConstraint(LOOP) | EqAttrConstraint(BLOCK))
    intrinsic = prop_def(StringAttr)


@irdl_op_definition
class StorageAlignOp(StepOp):
    """The stride of an axis of the index-th buffer that the block writes: a multiple of a factor, plus an offset."""

    name = "sched.storage_align"
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)
    index = prop_def(IntegerAttr)
    axis = prop_def(IntegerAttr)
    factor = prop_def(IntegerAttr)
    offset = prop_def(IntegerAttr)


@irdl_op_definition
class AnnotateBufferAccessOp(StepOp):
    """The region of the index-th buffer that the block reads or writes: begin and end of each dimension, in turn."""

    name = "sched.annotate_buffer_access"
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)
    index = prop_def(IntegerAttr)
    buffer_type = prop_def(StringAttr)
    region = prop_def(AffineMapAttr)


BLOCK_STEPS: tuple[type[StepOp], ...] = (BlockizeOp, TensorizeOp, StorageAlignOp, AnnotateBufferAccessOp)
