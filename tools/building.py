"""From a module at any level to functions that run here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType

from weft.tools.programs import functions_of, schedules_of

if TYPE_CHECKING:
    from weft.runtime.library import Library
    from weft.support.target import Target


def lower_to_tir(module: ModuleOp) -> None:
    """Give every function of tensors its form over buffers, in place. Raises `CompileError`."""
    types = (t for f in functions_of(module).values() for t in (*f.function_type.inputs, *f.function_type.outputs))
    if any(isinstance(t, TensorType) for t in types):
        from weft.passes.graph.lower_graph import LowerGraphPass

        LowerGraphPass().apply(Context(), module)


def build(module: ModuleOp, target: Target, *, scheduled: bool = True) -> Library:
    """Compile `module`, which is used up, after running the schedules in it (`scheduled`) or dropping them.

    Raises `CompileError`, and `ScheduleError` when a step of a schedule is refused.
    """
    from weft.passes.lower_tir_to_low import LowerTirToLowPass
    from weft.runtime.build import load_low_module

    lower_to_tir(module)
    for schedule in schedules_of(module):
        if scheduled:
            from weft.passes.schedule.replay import apply_schedule

            apply_schedule(module, schedule)
        schedule.detach()
        schedule.erase()
    LowerTirToLowPass(target.kind).apply(Context(), module)
    return load_low_module(module, target)
