"""`tvm.tir.Schedule`, and its trace as Python."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Block, Region, SSAValue

from weft.analysis.block_scopes import find_function
from weft.dialects import sched
from weft.dialects import sched_parameters as kinds
from weft.dialects.tir import ReadsOp
from weft.frontends.script.regions import buffers_in_text_order
from weft.frontends.script.schedule import Schedule as _Schedule
from weft.frontends.script.show import show_text
from weft.passes.schedule.primitive import buffers_of
from weft.passes.schedule.replay import step_name
from weft.schedule.recording import BlockHandle, LoopHandle
from weft.schedule.traces import calls_of, steps_of
from weft.support.errors import CompileError
from weft.texpr.shapes import items
from weft.tvm.contrib.clang import CSource
from weft.tvm.ir.module import IRModule

if TYPE_CHECKING:
    from weft.dialects.sched_parameters import Kind
    from weft.dialects.tir import ForOp
    from weft.passes.schedule.primitive import BufferPosition

_NUMBER = "tvm.number"
"""Attribute of a step: the number of a given buffer in TVM's order."""
_LETTERS = {sched.BLOCK: "b", sched.LOOP: "l", sched.INT: "v"}


class Trace(sched.FuncOp):
    """Prints as a Python function."""

    def __str__(self) -> str:
        def name(handle: SSAValue, taken: Collection[str]) -> str:
            return f"{_LETTERS[cast('Any', handle.type)]}{len(taken) - 1}"

        shown = self.clone()
        for step in steps_of(shown):
            if isinstance(number := step.attributes.get(_NUMBER), IntegerAttr):
                at = step.properties.get("buffer")
                key, value = ("index", number) if at is None else ("buffer", ArrayAttr([StringAttr("read"), number]))
                step.properties[key] = value
        calls = list(calls_of(shown, "sch", name, named=True))
        for at, step in enumerate(steps_of(self)):
            if step_name(step) == "split":  # TVM prints options that have no effect in weft
                calls[at] = f"{calls[at][:-1]}, preserve_unit_iters=True, disable_predication=False)"
        head = ("# from weft.tvm import tir", "def apply_trace(sch: tir.Schedule) -> None:")
        return "\n".join((*head, *(f"    {call}" for call in calls or ["pass"])))

    def show(self, *styles: object, color: bool | None = None) -> None:
        show_text(f"{self}\n", color=color)


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
        if not isinstance(mod, ModuleOp):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"Schedule: expected a module or a function, got {type(mod).__name__}")
        super().__init__(IRModule.of(mod), seed)
        self.func_working_on: str | None = None
        self._given: int | None = None
        """The number of the given buffer of the running step."""
        self.trace: Trace = Trace("trace", Region(Block()))  # pyright: ignore[reportIncompatibleVariableOverride]

    def _value(self, kind: Kind, value: Any, block: BlockHandle | None, known: Mapping[str, Any]) -> object:
        """Buffers are numbered as in `T.reads`."""
        stated = kind is kinds.READ_OR_WRITTEN_BUFFER and known["buffer_type"] == "read"
        if block is not None and isinstance(value, int) and (stated or kind is kinds.READ_BUFFER):
            return self._number(block, value)
        found = super()._value(kind, value, block, known)
        if block is not None and kind is kinds.BUFFER and not isinstance(value, str):
            verb, number = cast("BufferPosition", found)
            return (verb, self._number(block, number)) if verb == "read" else found
        return found

    def _number(self, block: BlockHandle, number: int) -> int:
        """weft's number of TVM's buffer `number`; accumulators count if `T.reads` names them."""
        self._given = number
        op = self._replay.block(block.value)
        stated = [region.buffer for region in op.body.block.ops if isinstance(region, ReadsOp)]
        order, read = list(dict.fromkeys([*stated, *buffers_in_text_order(op)])), buffers_of(op, "read")
        if not 0 <= number < len(order) or order[number] not in read:
            return len(read)
        return read.index(order[number])

    def _step(self, name: str, /, **given: object) -> Any:
        """Names created loops as TVM does: `i_0`, `i_1`, `i_j_fused`."""
        if name == "annotate" and isinstance(given["ann_val"], CSource):
            given = {**given, "ann_key": "pragma_import_c", "ann_val": str(given["ann_val"])}
        self._given = None
        names = list[str]()
        if name in ("split", "fuse"):
            loops = (loop for value in given.values() for loop in items(value) if isinstance(loop, LoopHandle))
            names = [self._loop_name(loop) for loop in loops]
        found = super()._step(name, **given)
        if self._given is not None:
            cast("sched.StepOp", self.trace.body.block.last_op).attributes[_NUMBER] = IntegerAttr(self._given, i64)
        for at, loop in enumerate(cast("tuple[LoopHandle, ...]", items(found) if names else ())):
            new = f"{names[0]}_{at}" if name == "split" else f"{'_'.join(names)}_fused"
            # The setter drops numbers after underscores.
            cast("ForOp", self.get(loop)).induction_variable._name = new  # pyright: ignore[reportPrivateUsage]
        return found

    def _loop_name(self, loop: LoopHandle) -> str:
        try:
            return cast("ForOp", self.get(loop)).induction_variable.name_hint or "i"
        except CompileError:
            return "i"  # the step refuses the handle

    def get_block(self, name: str, func_name: str | None = None) -> BlockHandle:
        """Searches the function of `work_on` by default."""
        return super().get_block(name, func_name or self.func_working_on)

    get_sblock = get_block
    """`get_block` in newer versions of TVM."""

    def work_on(self, func_name: str) -> None:
        self.func_working_on = find_function(self.mod, func_name).sym_name.data

    def enter_postproc(self) -> None:
        """No effect: postprocessors use ordinary steps."""

    def copy(self) -> Schedule:
        """Handles are invalid in the copy: get them by name."""
        made = Schedule(self.original)
        made.replay(self.trace)
        return made

    def show(self, *styles: object, color: bool | None = None, **options: object) -> None:
        self.mod.show(color=color)
        self.trace.show(color=color)
