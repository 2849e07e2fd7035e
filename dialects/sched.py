"""sched: schedules as IR. A trace is a `sched.func`: it prints, parses, verifies, replays, and can be rewritten.

```mlir
sched.func @schedule {
  %y = sched.get_block "Y" in @mm_relu : block
  %i, %j, %k = sched.get_loops %y : loop, loop, loop
  %j0, %j1 = sched.split %j {factors = [0, 4]} : loop, loop
  sched.reorder %j0, %k, %j1
}
```
Handles are SSA values. A step that takes a loop apart *consumes* its handle: the verifier rejects a later use. All
steps share one form: operands, then properties in braces, then result types.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Dialect, Operation
from xdsl.irdl import (
    EqAttrConstraint,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

from weft.dialects.sched_base import (
    BLOCK,
    INT,
    LOOP,
    SAMPLED,
    BlockType,
    FuncOp,
    IntType,
    LoopType,
    StepOp,
    integers_of,
)
from weft.dialects.sched_blocks import BLOCK_STEPS, AnnotateBufferAccessOp, BlockizeOp, StorageAlignOp, TensorizeOp
from weft.dialects.sched_layout import (
    LAYOUT_STEPS,
    RecodeOp,
    ReindexCacheReadOp,
    ReindexCacheWriteOp,
    ReindexOp,
    TransformBlockLayoutOp,
    TransformLayoutOp,
)
from weft.dialects.sched_loops import (
    LOOP_STEPS,
    AddUnitLoopOp,
    AnnotateOp,
    BindOp,
    FuseOp,
    LoopPartitionOp,
    MergeOp,
    ParallelOp,
    ReorderBlockIterVarOp,
    ReorderOp,
    SplitOp,
    TileOp,
    UnannotateOp,
    UnrollOp,
    VectorizeOp,
)
from weft.dialects.sched_padding import PADDING_STEPS, DecomposePaddingOp, PadEinsumOp, RollingBufferOp
from weft.dialects.sched_sampling import (
    SAMPLING_STEPS,
    SampleCategoricalOp,
    SampleComputeLocationOp,
    SamplePerfectTileOp,
    SamplingOp,
)
from weft.support.locations import record_places

__all__ = [
    "BLOCK",
    "INT",
    "LOOP",
    "SAMPLED",
    "SCHED",
    "STEPS",
    "AddUnitLoopOp",
    "AnnotateBufferAccessOp",
    "AnnotateOp",
    "BindOp",
    "BlockizeOp",
    "DecomposePaddingOp",
    "FuncOp",
    "FuseOp",
    "LoopPartitionOp",
    "MergeOp",
    "PadEinsumOp",
    "ParallelOp",
    "RecodeOp",
    "ReindexCacheReadOp",
    "ReindexCacheWriteOp",
    "ReindexOp",
    "ReorderBlockIterVarOp",
    "ReorderOp",
    "RollingBufferOp",
    "SampleCategoricalOp",
    "SampleComputeLocationOp",
    "SamplePerfectTileOp",
    "SamplingOp",
    "SplitOp",
    "StepOp",
    "StorageAlignOp",
    "TensorizeOp",
    "TileOp",
    "TransformBlockLayoutOp",
    "TransformLayoutOp",
    "UnannotateOp",
    "UnrollOp",
    "VectorizeOp",
    "integers_of",
]


@irdl_op_definition
class GetBlockOp(StepOp):
    """`%y = sched.get_block "Y" in @mm_relu : block`. The function may be left out when only one has such a block."""

    name = "sched.get_block"

    label = prop_def(StringAttr)
    func = opt_prop_def(StringAttr)
    block = result_def(BLOCK)

    @classmethod
    def parse_leading(cls, parser: Parser) -> dict[str, Attribute]:
        properties: dict[str, Attribute] = {"label": StringAttr(parser.parse_str_literal("block name"))}
        if parser.parse_optional_keyword("in") is not None:
            properties["func"] = parser.parse_symbol_name()
        return properties

    def print_leading(self, printer: Printer) -> frozenset[str]:
        printer.print_string(" ")
        printer.print_string_literal(self.label.data)
        if self.func is not None:
            printer.print_string(" in ")
            printer.print_symbol_name(self.func.data)
        return frozenset({"label", "func"})


@irdl_op_definition
class GetLoopsOp(StepOp):
    """The loops around a block, outermost first."""

    name = "sched.get_loops"
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)
    loops = var_result_def(LOOP)


class _RelatedBlocksOp(StepOp):
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)
    blocks = var_result_def(BLOCK)


@irdl_op_definition
class GetProducersOp(_RelatedBlocksOp):
    """The blocks in the same scope that write what the block reads."""

    name = "sched.get_producers"


@irdl_op_definition
class GetConsumersOp(_RelatedBlocksOp):
    """The blocks in the same scope that read what the block writes."""

    name = "sched.get_consumers"


@irdl_op_definition
class GetChildBlocksOp(StepOp):
    """The blocks inside the body of a block or loop that are in no other block there, in order."""

    name = "sched.get_child_blocks"
    HANDLE_TYPES: ClassVar = ((LOOP, BLOCK),)

    target = operand_def(EqAttrConstraint(LOOP) | EqAttrConstraint(BLOCK))
    blocks = var_result_def(BLOCK)


class _MoveOp(StepOp):
    HANDLE_TYPES: ClassVar = (BLOCK, LOOP)

    block = operand_def(BLOCK)
    loop = operand_def(LOOP)
    preserve_unit_loops = opt_prop_def(BoolAttr)
    index = opt_prop_def(IntegerAttr)
    """The place in the body of the loop; -1 is the last, -2 the first."""


@irdl_op_definition
class ComputeAtOp(_MoveOp):
    """A producer under a loop of its consumers."""

    name = "sched.compute_at"


@irdl_op_definition
class ReverseComputeAtOp(_MoveOp):
    """A consumer under a loop of its producers."""

    name = "sched.reverse_compute_at"


class _InlineOp(StepOp):
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)


@irdl_op_definition
class ComputeInlineOp(_InlineOp):
    """A producer into its readers."""

    name = "sched.compute_inline"


@irdl_op_definition
class ReverseComputeInlineOp(_InlineOp):
    """A consumer into its only producer."""

    name = "sched.reverse_compute_inline"


class _CacheOp(StepOp):
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)
    index = prop_def(IntegerAttr)
    scope = prop_def(StringAttr)
    consumer_blocks = opt_prop_def(ArrayAttr[StringAttr])
    """The names of the blocks that read the copy."""
    cache = result_def(BLOCK)


@irdl_op_definition
class CacheReadOp(_CacheOp):
    """A copy of the index-th buffer that the block reads, in another scope."""

    name = "sched.cache_read"


@irdl_op_definition
class CacheWriteOp(_CacheOp):
    """A copy of the index-th buffer that the block writes: computed in another scope, then copied out."""

    name = "sched.cache_write"


@irdl_op_definition
class CacheInplaceOp(StepOp):
    """A copy of the index-th buffer that the block reads and writes: copied in before, and back afterwards."""

    name = "sched.cache_inplace"
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)
    index = prop_def(IntegerAttr)
    scope = prop_def(StringAttr)
    copies = var_result_def(BLOCK)


@irdl_op_definition
class CacheIndexOp(StepOp):
    """Indices at which the block loads, computed before its nest."""

    name = "sched.cache_index"
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)
    scope = prop_def(StringAttr)
    cse_thresh = prop_def(IntegerAttr)
    caches = var_result_def(BLOCK)


class _CacheAtOp(StepOp):
    HANDLE_TYPES: ClassVar = (LOOP, BLOCK)

    loop = operand_def(LOOP)
    block = operand_def(BLOCK)
    index = prop_def(IntegerAttr)
    scope = prop_def(StringAttr)
    cache = result_def(BLOCK)


@irdl_op_definition
class ReadAtOp(_CacheAtOp):
    """A copy, in each iteration of a loop, of what is read there of the index-th buffer that the block reads."""

    name = "sched.read_at"


@irdl_op_definition
class WriteAtOp(_CacheAtOp):
    """A copy, in each iteration of a loop, of what the block writes there of the index-th buffer that it writes."""

    name = "sched.write_at"


@irdl_op_definition
class SetScopeOp(StepOp):
    """The memory space of the index-th buffer that the block writes."""

    name = "sched.set_scope"
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)
    index = prop_def(IntegerAttr)
    scope = prop_def(StringAttr)


@irdl_op_definition
class DecomposeReductionOp(StepOp):
    """The init of a reduction block as a block of its own before a loop."""

    name = "sched.decompose_reduction"
    HANDLE_TYPES: ClassVar = (BLOCK, LOOP)

    block = operand_def(BLOCK)
    loop = operand_def(LOOP)
    init = result_def(BLOCK)


@irdl_op_definition
class FuseReductionEpilogueOp(StepOp):
    """What a block combines with the result of a reduction, into the init of that."""

    name = "sched.fuse_reduction_epilogue"
    HANDLE_TYPES: ClassVar = (BLOCK, BLOCK)

    reduction_block = operand_def(BLOCK)
    epilogue_block = operand_def(BLOCK)


@irdl_op_definition
class RfactorOp(StepOp):
    """A reduction in two steps: partial results for each iteration of a loop, then a block that combines them."""

    name = "sched.rfactor"
    HANDLE_TYPES: ClassVar = (LOOP,)

    loop = operand_def(LOOP)
    factor_axis = prop_def(IntegerAttr)
    partial = result_def(BLOCK)


STEPS: tuple[type[StepOp], ...] = (
    GetBlockOp,
    GetLoopsOp,
    GetProducersOp,
    GetConsumersOp,
    GetChildBlocksOp,
    *SAMPLING_STEPS,
    *LOOP_STEPS,
    ComputeAtOp,
    ReverseComputeAtOp,
    ComputeInlineOp,
    ReverseComputeInlineOp,
    CacheReadOp,
    CacheWriteOp,
    CacheInplaceOp,
    CacheIndexOp,
    ReadAtOp,
    WriteAtOp,
    SetScopeOp,
    DecomposeReductionOp,
    FuseReductionEpilogueOp,
    RfactorOp,
    *BLOCK_STEPS,
    *PADDING_STEPS,
    *LAYOUT_STEPS,
)

_OPERATIONS: list[type[Operation]] = [FuncOp, *STEPS]

SCHED = Dialect("sched", record_places(_OPERATIONS), [BlockType, LoopType, IntType])
