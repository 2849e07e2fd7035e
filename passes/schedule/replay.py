"""Running `sched` steps on a module: handles become ops, steps become primitives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from weft.analysis.structure import child_blocks, consumers_of, find_block, loops_around, producers_of
from weft.dialects import sched
from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.registry import LOOP_OR_BLOCK, LOOPS, PRIMITIVES, is_handle, parameters, primitive_class
from weft.support.errors import CompileError, InternalError


@dataclass
class Replay:
    """Schedule state: which op each handle stands for in `module`."""

    module: ModuleOp
    handles: dict[SSAValue, Operation] = field(default_factory=dict[SSAValue, Operation])

    def run(self, step: sched.StepOp) -> None:
        """Apply one step and bind its results. Raises `ScheduleError` or `CompileError`, changing nothing."""
        try:
            self.bind(step, self.evaluate(step))
        except CompileError as error:
            if error.location is None:
                raise CompileError.at(step, error.message) from error
            raise

    def evaluate(self, step: sched.StepOp) -> Sequence[Operation]:
        """Apply one step; returns what it gives without binding it to the step's results."""
        found = self._query(step)
        return self._apply_primitive(step) if found is None else found

    def bind(self, step: sched.StepOp, found: Sequence[Operation]) -> None:
        """Let the results of a step stand for `found`, one each."""
        check_handles(step, len(found))
        for handle, op in zip(step.results, found, strict=False):
            self.handles[handle] = op

    def resolve(self, handle: SSAValue) -> Operation:
        """The op a handle stands for; a `CompileError` when the op is gone."""
        op = self.handles.get(handle)
        if op is None:
            raise CompileError(f"handle %{handle.name_hint or '?'} is not defined by a step that ran")
        if not _is_alive(op, self.module):
            kind = "loop" if isinstance(op, ForOp) else "block"
            raise CompileError(
                f"expired handle %{handle.name_hint or '?'}: the {kind} it stood for was consumed by an earlier step; "
                f"get it again with get_{'loops' if kind == 'loop' else 'block'}"
            )
        return op

    def block(self, handle: SSAValue) -> BlockOp:
        op = self.resolve(handle)
        if not isinstance(op, BlockOp):
            raise CompileError(f"handle %{handle.name_hint or '?'} is a loop, a block is needed")
        return op

    def loop(self, handle: SSAValue) -> ForOp:
        op = self.resolve(handle)
        if not isinstance(op, ForOp):
            raise CompileError(f"handle %{handle.name_hint or '?'} is a block, a loop is needed")
        return op

    def _query(self, step: sched.StepOp) -> Sequence[Operation] | None:
        """Steps that only look."""
        if isinstance(step, sched.GetBlockOp):
            return [find_block(self.module, step.label.data, None if step.func is None else step.func.data)]
        if isinstance(step, sched.GetLoopsOp):
            return loops_around(self.block(step.block))
        if isinstance(step, sched.GetProducersOp):
            return producers_of(self.block(step.block))
        if isinstance(step, sched.GetConsumersOp):
            return consumers_of(self.block(step.block))
        if isinstance(step, sched.GetChildBlocksOp):
            return child_blocks(self.block(step.block))
        return None

    def _apply_primitive(self, step: sched.StepOp) -> Sequence[Operation]:
        name = step.name.removeprefix("sched.")
        if name not in PRIMITIVES:
            raise InternalError(f"no primitive for the step {step.name}")
        operands = iter(step.operands)
        arguments: dict[str, object] = {}
        for parameter, kind in parameters(name):
            if kind == LOOPS:
                arguments[parameter] = tuple(self.loop(operand) for operand in operands)
            elif is_handle(kind):
                handle = next(operands, None)
                if handle is None:
                    raise CompileError.at(step, f"{step.name} needs a handle for '{parameter}'")
                arguments[parameter] = self._handle(handle, kind)
            elif kind is Attribute:
                arguments[parameter] = _property(step.properties, parameter, step)
            else:
                arguments[parameter] = _plain(step.properties, parameter, step)
        return primitive_class(name)(**arguments).apply()

    def _handle(self, handle: SSAValue, kind: object) -> Operation:
        if kind == LOOP_OR_BLOCK:
            return self.resolve(handle)
        return self.block(handle) if kind is BlockOp else self.loop(handle)


def check_handles(step: sched.StepOp, given: int) -> None:
    """A step names all of the handles that it gives, or none."""
    if step.results and given != len(step.results):
        raise CompileError.at(step, f"{step.name} gives {given} handles, {len(step.results)} are named")


def _property(properties: Mapping[str, Attribute], name: str, step: sched.StepOp) -> Attribute:
    value = properties.get(name)
    if value is None:
        raise CompileError.at(step, f"{step.name} needs the property '{name}'")
    return value


def _plain(properties: Mapping[str, Attribute], name: str, step: sched.StepOp) -> object:
    value = _property(properties, name, step)
    if isinstance(value, IntegerAttr):
        return value.value.data
    if isinstance(value, StringAttr):
        return value.data
    if isinstance(value, ArrayAttr):
        elements: tuple[Attribute, ...] = value.data
        return tuple(e.value.data for e in elements if isinstance(e, IntegerAttr))
    raise CompileError.at(step, f"{step.name} needs the property '{name}'")


def _is_alive(op: Operation, module: ModuleOp) -> bool:
    root: Operation = op
    while (parent := root.parent_op()) is not None:
        root = parent
    return root is module


def apply_schedule(module: ModuleOp, schedule: sched.FuncOp) -> Replay:
    """Run every step of `schedule` on `module`, in order."""
    replay = Replay(module)
    for step in schedule.body.block.ops:
        if isinstance(step, sched.StepOp):
            replay.run(step)
    return replay
