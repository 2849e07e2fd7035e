"""`tvm.tir.Schedule`, and its trace as Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region, SSAValue

from weft.dialects import sched
from weft.dialects import sched_parameters as kinds
from weft.dialects.sched import DECLARATIONS
from weft.frontends.script.schedule import Schedule as _Schedule
from weft.frontends.script.show import show_text
from weft.passes.schedule.replay import step_name
from weft.schedule.recording import BlockHandle, IntHandle, LoopHandle
from weft.schedule.traces import argument_texts, steps_of
from weft.support.errors import CompileError
from weft.tvm.contrib.clang import CSource
from weft.tvm.ir.module import IRModule

if TYPE_CHECKING:
    from weft.dialects.sched_parameters import Step
    from weft.dialects.tir import ForOp

BlockRV, LoopRV, ExprRV = BlockHandle, LoopHandle, IntHandle
_LETTERS = {sched.BLOCK: "b", sched.LOOP: "l", sched.INT: "v"}
_STATED = {"split": ("preserve_unit_iters=True", "disable_predication=False")}
"""Options that TVM prints, and that have no effect in weft."""


class Trace(sched.FuncOp):
    """The steps of a schedule; printed, a Python function that applies them."""

    def __str__(self) -> str:
        names: dict[SSAValue, str] = {}
        lines = ["# from weft.tvm import tir", "def apply_trace(sch: tir.Schedule) -> None:"]
        for step in steps_of(self):
            call = f"sch.{step_name(step)}({', '.join(_arguments(step, names))})"
            for result in step.results:
                names[result] = f"{_LETTERS[cast('Any', result.type)]}{len(names)}"
            targets = ", ".join(names[result] for result in step.results)
            one = isinstance(DECLARATIONS.get(step_name(step)) and DECLARATIONS[step_name(step)].gives, tuple)
            comma = "," if one and len(step.results) == 1 else ""
            lines.append(f"    {targets}{comma} = {call}" if targets else f"    {call}")
        return "\n".join(lines if len(lines) > 2 else [*lines, "    pass"])

    def show(self, *styles: object, color: bool | None = None) -> None:
        """Show the function, in colours where the output has them."""
        del styles
        show_text(str(self) + "\n", color=color)

    def as_python(self) -> list[str]:
        """The calls, one a line."""
        return [line.strip() for line in str(self).splitlines()[2:]]

    @property
    def insts(self) -> list[sched.StepOp]:
        return steps_of(self)

    def apply_to_schedule(self, sch: Schedule, remove_postproc: bool = False) -> None:
        """Run the steps on another schedule."""
        del remove_postproc
        sch.replay(self)


def _arguments(step: sched.StepOp, names: Mapping[SSAValue, str]) -> list[str]:
    """The arguments by name, but those of any number."""
    given = list(argument_texts(step, names))
    if isinstance(step, sched.GetBlockOp):
        return [f"name={given[0]}", *given[1:]]
    own = DECLARATIONS[step_name(step)].parameters
    if len(given) > len(own) or own[0].kind in (kinds.LOOP_HANDLES, kinds.LOOPS_OF_BLOCKS):
        return given
    named = [text if "=" in text else f"{p.argument}={text}" for text, p in zip(given, own, strict=False)]
    return [*named, *_STATED.get(step_name(step), ())]


class Schedule(_Schedule):
    __doc__ = _Schedule.__doc__

    mod: IRModule  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(
        self,
        mod: ModuleOp,
        *,
        seed: int | None = None,
        debug_mask: str | int = "none",
        error_render_level: str = "detail",
        enable_check: bool = True,
    ) -> None:
        """A schedule of a copy of a module or a function. `debug_mask`, `error_render_level` and `enable_check` have no
        effect: each step is checked, and errors show the program."""
        del debug_mask, error_render_level, enable_check
        if not isinstance(mod, ModuleOp):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"Schedule: expected a module or a function, got {type(mod).__name__}")
        super().__init__(IRModule.of(mod), seed)
        self.trace: Trace = Trace("trace", Region(Block()))  # pyright: ignore[reportIncompatibleVariableOverride]

    def _call(self, step: Step, given: Mapping[str, object]) -> object:
        """Run a step; loops that it makes are named as TVM does: `i_0`, `i_1`, `i_j_fused`."""
        if step.name == "annotate" and isinstance(given["ann_val"], CSource):
            given = {**given, "ann_key": "pragma_import_c", "ann_val": str(given["ann_val"])}
        before = [self._loop_name(loop) for loop in _loops(given)] if step.name in ("split", "fuse") else []
        found = cast("Any", super())._call(step, given)
        if step.name == "split":
            for at, loop in enumerate(cast("list[LoopHandle]", found)):
                self._rename(loop, f"{before[0]}_{at}")
        elif step.name == "fuse":
            self._rename(cast("LoopHandle", found), f"{'_'.join(before)}_fused")
        return found

    def _loop_name(self, loop: LoopHandle) -> str:
        try:
            return cast("ForOp", self.get(loop)).induction_variable.name_hint or "i"
        except CompileError:
            return "i"  # the step refuses the handle

    def _rename(self, loop: LoopHandle, name: str) -> None:
        # Past the setter, which drops numbers behind underscores.
        cast("ForOp", self.get(loop)).induction_variable._name = name  # pyright: ignore[reportPrivateUsage]

    def get_sblock(self, name: str, func_name: str | None = None) -> BlockHandle:
        """`get_block`, as newer versions of TVM call it."""
        return self.get_block(name, func_name)

    def show(self, *styles: object, color: bool | None = None, **options: object) -> None:
        """Show the script of the module, and the trace."""
        del styles, options
        self.mod.show(color=color)
        self.trace.show(color=color)


def _loops(given: Mapping[str, object]) -> list[LoopHandle]:
    return [
        loop
        for value in given.values()
        for loop in (cast("tuple[object, ...]", value) if isinstance(value, tuple | list) else (value,))
        if isinstance(loop, LoopHandle)
    ]
