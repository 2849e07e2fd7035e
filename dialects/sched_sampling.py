"""Steps that draw: integers and a loop that later steps use. What was drawn is written down as their `decision`."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, var_result_def

from weft.dialects.sched_base import BLOCK, INT, LOOP, StepOp, verify_handles


class SamplingOp(StepOp):
    """A step that draws when it has no `decision`."""


@irdl_op_definition
class SamplePerfectTileOp(SamplingOp):
    """Factors whose product is the extent of a loop.

    `%t0, %t1 = sched.sample_perfect_tile %i {n = 2, max_innermost_factor = 16, decision = [16, 8]} : int, int`
    """

    name = "sched.sample_perfect_tile"
    HANDLE_TYPES: ClassVar = (LOOP,)

    loop = operand_def(LOOP)
    n = prop_def(IntegerAttr)
    max_innermost_factor = prop_def(IntegerAttr)
    decision = opt_prop_def(ArrayAttr[IntegerAttr])
    """The factors, outermost first."""
    factors = var_result_def(INT)

    def verify_(self) -> None:
        verify_handles(self, self.n.value.data)


@irdl_op_definition
class SampleCategoricalOp(SamplingOp):
    """One of several integers.

    `%v = sched.sample_categorical {candidates = [0, 16, 64], probs = [0.5, 0.25, 0.25], decision = 1} : int`
    """

    name = "sched.sample_categorical"

    candidates = prop_def(ArrayAttr[IntegerAttr])
    probs = prop_def(ArrayAttr[FloatAttr])
    decision = opt_prop_def(IntegerAttr)
    """The position of the candidate."""
    value = result_def(INT)


@irdl_op_definition
class SampleComputeLocationOp(SamplingOp):
    """A place for a producer: a loop for `compute_at`, or to be inlined, or to stay where it is.

    `%l = sched.sample_compute_location %b {decision = 1} : loop`
    """

    name = "sched.sample_compute_location"
    HANDLE_TYPES: ClassVar = (BLOCK,)

    block = operand_def(BLOCK)
    decision = opt_prop_def(IntegerAttr)
    """The position of the loop among those around the first consumer; -1 stay, -2 inline."""
    place = result_def(LOOP)


SAMPLING_STEPS: tuple[type[SamplingOp], ...] = (SamplePerfectTileOp, SampleCategoricalOp, SampleComputeLocationOp)
