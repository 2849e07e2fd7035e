"""What every schedule is: a module, the trace of its steps, and handles that stand for loops, blocks and integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from weft.dialects import sched
from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.replay import Replay, check_handles
from weft.support.errors import CompileError


@dataclass(frozen=True)
class BlockHandle:
    """A block of the scheduled module. Compare `sch.get(handle)` to look at the op itself."""

    value: SSAValue


@dataclass(frozen=True)
class LoopHandle:
    """A loop of the scheduled module; a step that takes the loop apart consumes it."""

    value: SSAValue


class Recorder:
    """Runs steps on a copy of a module and records them. `Schedule` gives them names."""

    def __init__(self, mod: ModuleOp) -> None:
        self.mod: ModuleOp = mod.clone()
        """The module as scheduled so far."""
        self.trace: sched.FuncOp = sched.FuncOp("trace", Region(Block()))
        """The steps so far: IR that prints, parses, and replays on the original module."""
        self._replay = Replay(self.mod)

    def replay(self, trace: sched.FuncOp) -> None:
        """Run the steps of another schedule's trace (or of a parsed `sched.func`) on this module.

        Raises `CompileError` where a step gives another number of handles here, besides what steps raise by themselves;
        the steps before it stay.
        """
        mapping: dict[SSAValue, SSAValue] = {}
        for step in trace.body.block.ops:
            if isinstance(step, sched.StepOp):
                recorded = self._record(step.clone(value_mapper=mapping))
                mapping.update(zip(step.results, recorded.results, strict=False))
                check_handles(step, len(recorded.results))

    def get(self, handle: BlockHandle | LoopHandle) -> Operation:
        """The op that a handle stands for now."""
        return self._replay.resolve(handle.value)

    def get_block(self, name: str, func_name: str | None = None) -> BlockHandle:
        """The block called `name`; unknown or ambiguous names raise `CompileError` with near names."""
        properties: dict[str, Attribute] = {"label": StringAttr(name)}
        if func_name is not None:
            properties["func"] = StringAttr(func_name)
        return self._blocks(sched.GetBlockOp, [], properties)[0]

    def _block(self, block: BlockHandle | str) -> BlockHandle:
        return self.get_block(block) if isinstance(block, str) else block

    def _run(
        self,
        kind: type[sched.StepOp],
        operands: Sequence[BlockHandle | LoopHandle],
        properties: dict[str, Attribute] | None = None,
    ) -> sched.StepOp:
        for handle in operands:
            if not isinstance(handle, BlockHandle | LoopHandle):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise CompileError(f"expected a handle that the schedule gave, got {handle!r}")
        values = [handle.value for handle in operands]
        for value in values:
            owner = value.owner.parent_op() if isinstance(value.owner, Operation) else None
            if owner is not self.trace:
                raise CompileError("the handle belongs to another schedule")
        return self._record(kind.create(operands=values, properties=properties or {}))

    def _record(self, step: sched.StepOp) -> sched.StepOp:
        """Run a step and add it, with a result for each handle it gives, to the trace."""
        try:
            found = self._replay.evaluate(step)
        except Exception:
            step.erase()
            raise
        given = list(found) if type(step).get_irdl_definition().results else []
        recorded = type(step).create(
            operands=list(step.operands),
            result_types=[sched.LOOP if isinstance(op, ForOp) else sched.BLOCK for op in given],
            properties=dict(step.properties),
        )
        for result, op in zip(recorded.results, given, strict=True):
            result.name_hint = _hint(op)
        self._replay.bind(recorded, given)
        step.erase()
        self.trace.body.block.add_op(recorded)
        return recorded

    def _loops(
        self,
        kind: type[sched.StepOp],
        operands: Sequence[BlockHandle | LoopHandle],
        properties: dict[str, Attribute] | None = None,
    ) -> list[LoopHandle]:
        return [LoopHandle(result) for result in self._run(kind, operands, properties).results]

    def _blocks(
        self,
        kind: type[sched.StepOp],
        operands: Sequence[BlockHandle | LoopHandle],
        properties: dict[str, Attribute] | None = None,
    ) -> list[BlockHandle]:
        return [BlockHandle(result) for result in self._run(kind, operands, properties).results]


def _hint(op: Operation) -> str | None:
    """The name a handle prints with: that of its loop, or the block's in lower case."""
    if isinstance(op, ForOp):
        return op.induction_variable.name_hint
    if isinstance(op, BlockOp):
        name = op.label.lower()
        return name if SSAValue.is_valid_name(name) else "block"
    return None


def integers(values: Sequence[int]) -> ArrayAttr[IntegerAttr]:
    return ArrayAttr([IntegerAttr(value, i64) for value in values])
