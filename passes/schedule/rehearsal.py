"""Primitives that move blocks or loops: what they do is tried on a copy when loops run in parallel there.

`parallel` and `vectorize` prove that the iterations of a loop are independent, as the program is then. A block that
later comes under such a loop, or a loop that changes places with it, may undo that.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import fields, replace
from typing import ClassVar

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter

from weft.analysis.independence import dependent_iterations
from weft.analysis.structure import function_of
from weft.analysis.threads import axis_of
from weft.dialects.low_kernel import BLOCK_AXES, THREAD_AXES
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.dialects.traversal import copy_of, operations_in
from weft.passes.schedule.loop_kinds import reduces_in_lanes
from weft.passes.schedule.primitive import Plan, PlanPattern, Primitive
from weft.support.errors import InternalError

KEEPS_INDEPENDENCE = "loops that run in parallel stay independent"


class MovingPrimitive(Primitive):
    """A primitive with one more requirement, `INDEPENDENCE`, that is asked of the result.

    Subclasses write `draft()`, which is `plan()` without that requirement.
    """

    INDEPENDENCE: ClassVar[int]

    @abstractmethod
    def draft(self) -> Plan:
        """Check every other requirement, and say what to do."""

    def plan(self) -> Plan:
        plan = self.draft()
        function = function_of(plan.anchor)
        parallel = [op for op in operations_in(function) if _runs_in_parallel(op)]
        if parallel:
            self._rehearse(function, plan.anchor)
        return plan

    def _rehearse(self, function: FuncOp, anchor: Operation) -> None:
        """Apply the primitive to a copy of the function, and look at the loops there, new ones too."""
        copy = copy_of(function)
        twins = dict(zip(operations_in(function), operations_in(copy), strict=True))
        originals = {twin: original for original, twin in twins.items()}
        arguments: dict[str, object] = {}
        for field in fields(self):
            value: object = getattr(self, field.name)
            arguments[field.name] = (
                tuple(_twin(part, twins) for part in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
                if isinstance(value, tuple)
                else _twin(value, twins)
            )
        rehearsed: MovingPrimitive = replace(self, **arguments)
        plan = rehearsed.draft()
        PlanPattern(plan).match_and_rewrite(plan.anchor, PatternRewriter(plan.anchor))
        for op in operations_in(copy):
            if not isinstance(op, ForOp) or not _runs_in_parallel(op):
                continue
            loop = originals.get(op)
            inits = axis_of(op) not in THREAD_AXES  # threads reduce together, as bind allows
            together = axis_of(op) in (*THREAD_AXES, *BLOCK_AXES) or reduces_in_lanes(op)
            reductions = not together
            consequence = f"and %{op.induction_variable.name_hint} is {op.kind.data.value}"
            violation = dependent_iterations(op, consequence, reductions=reductions, inits=inits)
            if violation is None:
                continue
            if (
                isinstance(loop, ForOp)
                and dependent_iterations(loop, "", reductions=reductions, inits=inits) is not None
            ):
                continue  # it was so before
            legal = violation.legal or f"make %{op.induction_variable.name_hint} {op.kind.data.value} afterwards"
            self.refuse(self.INDEPENDENCE, replace(violation, legal=legal), loop or anchor)


def _runs_in_parallel(op: Operation) -> bool:
    return isinstance(op, ForOp) and op.kind.data in (LoopKind.PARALLEL, LoopKind.VECTORIZED, LoopKind.THREAD_BINDING)


def _twin(value: object, twins: dict[Operation, Operation]) -> object:
    if not isinstance(value, Operation):
        return value
    if value not in twins:
        raise InternalError(f"{value.name} is not in the function that is copied")
    return twins[value]
