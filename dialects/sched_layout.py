"""Steps on layouts: of buffers, of what they hold, and of the iterators of blocks."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, var_result_def

from weft.dialects.sched_base import BLOCK, LOOP, StepOp


@irdl_op_definition
class TransformLayoutOp(StepOp):
    """A buffer that the block accesses, given as `["write", 0]` or `["read", 0]`, in another layout."""

    name = "sched.transform_layout"
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)
    buffer = prop_def(ArrayAttr[Attribute])
    index_map = prop_def(AffineMapAttr)
    pad_value = opt_prop_def(Attribute)
    """A number, or a map from the new indices to one."""


@irdl_op_definition
class TransformBlockLayoutOp(StepOp):
    """The iterators of a block, and the loops around it, in another layout."""

    name = "sched.transform_block_layout"
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)
    index_map = prop_def(AffineMapAttr)
    loops = var_result_def(LOOP)


@irdl_op_definition
class ReindexOp(StepOp):
    """A copy, with a dimension for each iterator that indexes it, of a buffer that the block accesses."""

    name = "sched.reindex"
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)
    buffer = prop_def(ArrayAttr[Attribute])
    copy = result_def(BLOCK)


class _ReindexCacheOp(StepOp):
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)
    index = prop_def(IntegerAttr)
    scope = prop_def(StringAttr)
    index_map = prop_def(AffineMapAttr)
    copy = result_def(BLOCK)


@irdl_op_definition
class ReindexCacheReadOp(_ReindexCacheOp):
    """A copy of the index-th buffer that the block reads, at indices that a map gives for the iterators."""

    name = "sched.reindex_cache_read"


@irdl_op_definition
class ReindexCacheWriteOp(_ReindexCacheOp):
    """A copy of the index-th buffer that the block writes, at indices that a map gives for the iterators."""

    name = "sched.reindex_cache_write"


@irdl_op_definition
class RecodeOp(StepOp):
    """A copy of the index-th buffer that the block reads, which holds its numbers as other integers."""

    name = "sched.recode"
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)
    index = prop_def(IntegerAttr)
    encoding = prop_def(StringAttr)
    blocks = var_result_def(BLOCK)


LAYOUT_STEPS: tuple[type[StepOp], ...] = (
    TransformLayoutOp,
    TransformBlockLayoutOp,
    ReindexOp,
    ReindexCacheReadOp,
    ReindexCacheWriteOp,
    RecodeOp,
)
