"""Programs with a transform script, which is the schedule of its payload, and its search space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr

from weft.dialects.effects import op_name

if TYPE_CHECKING:
    from weft.schedule.transform.scripts import ScriptProgram

OF_SCRIPT: Final = "sched.of_script"
"""Unit attribute of the schedule of a script, which tuned schedules of the same function replace."""


def take_script(module: ModuleOp, *, scheduled: bool = True) -> ScriptProgram | None:
    """Convert the payload of a module's script to block loops, in place, with the schedule that the script chooses if
    `scheduled`. Raises `CompileError`."""
    if not any(op_name(op).startswith("transform.") for op in module.ops):
        return None
    from weft.schedule.transform.scripts import ScriptProgram, has_script, replace_body  # start-up: 196 ms

    if not has_script(module):
        return None
    program = ScriptProgram(module)
    replace_body(module, program.payload())
    if scheduled:
        trace = program.trace
        trace.sym_name = StringAttr("transform")
        trace.attributes[OF_SCRIPT] = UnitAttr()
        module.body.block.add_op(trace)
    return program
