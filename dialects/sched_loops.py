"""Steps on loops: how they are taken apart, put together, ordered and run; and notes on loops and blocks."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import (
    EqAttrConstraint,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from weft.dialects.sched_base import BLOCK, INT, LOOP, StepOp, verify_handles

_LOOP_OR_BLOCK = EqAttrConstraint(LOOP) | EqAttrConstraint(BLOCK)


@irdl_op_definition
class SplitOp(StepOp):
    """A loop into nested loops with the given extents; 0 is inferred.

    `sched.split %i {factors = [0, 4]}`, or with sampled integers `sched.split %i [%t0, 4]`.
    """

    name = "sched.split"
    HANDLE_TYPES: ClassVar = (LOOP,)
    INTEGERS: ClassVar = "factors"
    CONSUMES: ClassVar = True

    loop = operand_def(LOOP)
    sampled = var_operand_def(INT)
    factors = prop_def(ArrayAttr[IntegerAttr])
    disable_predication = opt_prop_def(BoolAttr)
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
    INTEGERS: ClassVar = "factors"
    CONSUMES: ClassVar = True

    handles = var_operand_def(EqAttrConstraint(LOOP) | EqAttrConstraint(INT))
    """The loops, then the sampled integers among the factors."""
    factors = prop_def(ArrayAttr[IntegerAttr])
    tiled = var_result_def(LOOP)

    def verify_(self) -> None:
        verify_handles(self, 2 * sum(handle.type == LOOP for handle in self.handles))


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


@irdl_op_definition
class BindOp(StepOp):
    """Each iteration is a thread, or a block of threads, of a GPU axis."""

    name = "sched.bind"
    HANDLE_TYPES: ClassVar = (LOOP,)

    loop = operand_def(LOOP)
    thread_axis = prop_def(StringAttr)


@irdl_op_definition
class MergeOp(StepOp):
    """Loops that follow each other into one."""

    name = "sched.merge"
    HANDLE_TYPES: ClassVar = (LOOP,)
    CONSUMES: ClassVar = True

    loops = var_operand_def(LOOP)
    merged = result_def(LOOP)


@irdl_op_definition
class LoopPartitionOp(StepOp):
    """A loop into loops that follow each other, with the given extents; 0 is inferred, and a loop has what is left."""

    name = "sched.loop_partition"
    HANDLE_TYPES: ClassVar = (LOOP,)
    INTEGERS: ClassVar = "factors"
    CONSUMES: ClassVar = True

    loop = operand_def(LOOP)
    sampled = var_operand_def(INT)
    factors = prop_def(ArrayAttr[IntegerAttr])
    parts = var_result_def(LOOP)

    def verify_(self) -> None:
        leaves_some = len(self.results) == len(self.factors) + 1 and all(f.value.data for f in self.factors)
        verify_handles(self, len(self.factors) + leaves_some)


@irdl_op_definition
class AddUnitLoopOp(StepOp):
    """A loop of one iteration around a loop or block."""

    name = "sched.add_unit_loop"
    HANDLE_TYPES: ClassVar = ((LOOP, BLOCK),)

    target = operand_def(_LOOP_OR_BLOCK)
    loop = result_def(LOOP)


@irdl_op_definition
class ReorderBlockIterVarOp(StepOp):
    """The iterators of a block in another order."""

    name = "sched.reorder_block_iter_var"
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)
    new_order = prop_def(ArrayAttr[IntegerAttr])


@irdl_op_definition
class AnnotateOp(StepOp):
    """A note on a loop or block.

    `sched.annotate %i {key = "note", value = 4}`, or with a sampled integer `sched.annotate %i, %t {key = "note"}`.
    """

    name = "sched.annotate"
    HANDLE_TYPES: ClassVar = ((LOOP, BLOCK), INT)

    target = operand_def(_LOOP_OR_BLOCK)
    sampled = opt_operand_def(INT)
    key = prop_def(StringAttr)
    value = opt_prop_def(Attribute)

    def verify_(self) -> None:
        if (self.sampled is None) == (self.value is None):
            raise VerifyException("sched.annotate takes a value or a sampled integer")


@irdl_op_definition
class UnannotateOp(StepOp):
    """A note on a loop or block goes away."""

    name = "sched.unannotate"
    HANDLE_TYPES: ClassVar = ((LOOP, BLOCK),)

    target = operand_def(_LOOP_OR_BLOCK)
    key = prop_def(StringAttr)


LOOP_STEPS: tuple[type[StepOp], ...] = (
    SplitOp,
    FuseOp,
    ReorderOp,
    TileOp,
    ParallelOp,
    VectorizeOp,
    UnrollOp,
    BindOp,
    MergeOp,
    LoopPartitionOp,
    AddUnitLoopOp,
    ReorderBlockIterVarOp,
    AnnotateOp,
    UnannotateOp,
)
