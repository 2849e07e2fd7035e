"""Traces: simplification and decisions."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Region, SSAValue

from weft.dialects import sched
from weft.passes.schedule.sampling import Decision
from weft.support.argument_types import checked

LOOKING = (sched.QueryOp, sched.SamplingOp)
"""Steps that change nothing."""


def steps_of(trace: sched.FuncOp) -> list[sched.StepOp]:
    """The steps of a trace, in order."""
    return [step for step in trace.body.block.ops if isinstance(step, sched.StepOp)]


@checked
def decisions_of(trace: sched.FuncOp) -> list[Decision | None]:
    """The decision of each sampling step, in order; None where it has none yet. `Schedule.replay` takes such a list."""
    found: list[Decision | None] = []
    for step in steps_of(trace):
        if isinstance(step, sched.SamplingOp):
            decision = step.properties.get("decision")
            if isinstance(decision, IntegerAttr):
                found.append(decision.value.data)
            else:
                found.append(tuple(sched.integers_of(decision)) if decision is not None else None)
    return found


@checked
def simplify_trace(trace: sched.FuncOp) -> sched.FuncOp:
    """A new trace that does the same, without the steps that only look or draw and whose results nobody uses."""
    used: set[SSAValue] = set()
    kept: list[sched.StepOp] = []
    for step in reversed(steps_of(trace)):
        if isinstance(step, LOOKING) and used.isdisjoint(step.results):
            continue
        used.update(step.operands)
        kept.append(step)
    mapping: dict[SSAValue, SSAValue] = {}
    body = Block([step.clone(value_mapper=mapping) for step in reversed(kept)])
    return sched.FuncOp(trace.sym_name.data, Region(body))
