"""Executes `sched` steps on a module: handles are bound to ops, steps run primitives and samplers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, IntAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from weft.analysis.structure import child_blocks, consumers_of, find_block, loops_around, producers_of
from weft.dialects import sched
from weft.dialects.attribute_values import value_of
from weft.dialects.sched import DECLARATIONS
from weft.dialects.sched_parameters import (
    ANNOTATION,
    BLOCK_HANDLE,
    BUFFER,
    DECISION,
    DECISIONS,
    LOOP_OR_BLOCKS,
    IntType,
    Kind,
)
from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.primitive import BufferPlace
from weft.passes.schedule.registry import primitive_class
from weft.passes.schedule.sampling import SAMPLERS, Decision, Drawn, Place
from weft.support.errors import CompileError

_QUERIES: Mapping[str, Callable[..., Sequence[Operation]]] = {
    "get_loops": loops_around,
    "get_producers": producers_of,
    "get_consumers": consumers_of,
    "get_child_blocks": child_blocks,
}


@dataclass(frozen=True)
class Outcome:
    """What a step gives, one for each of its results, and what it drew."""

    found: Sequence[Drawn]
    decision: Attribute | None = None


@dataclass
class Replay:
    """Schedule state: what each handle stands for in `module`, and where sampling steps draw from."""

    module: ModuleOp
    random: Random = field(default_factory=lambda: Random(0))
    handles: dict[SSAValue, Drawn] = field(default_factory=dict[SSAValue, Drawn])

    def run(self, step: sched.StepOp) -> None:
        """Apply one step and bind its results. Raises `ScheduleError` or `CompileError`, changing nothing."""
        try:
            self.bind(step, self.evaluate(step).found)
        except CompileError as error:
            if error.location is None:
                raise CompileError.at(step, error.message) from error
            raise

    def evaluate(self, step: sched.StepOp) -> Outcome:
        """Apply one step; returns what it gives without binding it to the step's results."""
        if isinstance(step, sched.SamplingOp):
            sampler = SAMPLERS[step_name(step)](**self._arguments(step))
            decision = sampler.draw(self.random)
            return Outcome(sampler.results(decision), decision_attribute(decision))
        if isinstance(step, sched.GetBlockOp):
            return Outcome([find_block(self.module, step.label.data, None if step.func is None else step.func.data)])
        if isinstance(step, sched.QueryOp):
            return Outcome(_QUERIES[step_name(step)](*self._arguments(step).values()))
        return Outcome(self._apply_primitive(step))

    def bind(self, step: sched.StepOp, found: Sequence[Drawn]) -> None:
        """Let the results of a step stand for `found`, one each."""
        check_handles(step, len(found))
        for handle, op in zip(step.results, found, strict=False):
            self.handles[handle] = op

    def resolve(self, handle: SSAValue) -> Operation:
        """The op a handle stands for; a `CompileError` when the op is gone."""
        op = self._meaning(handle)
        if isinstance(op, int):
            raise CompileError(f"handle %{handle.name_hint or '?'} is an integer, a loop or block is needed")
        if isinstance(op, Place):
            what = "stay where it is" if op is Place.STAY else "be inlined"
            raise CompileError(
                f"handle %{handle.name_hint or '?'} is no loop: its block is to {what}, which only compute_at does"
            )
        if not _is_alive(op, self.module):
            kind = "loop" if isinstance(op, ForOp) else "block"
            raise CompileError(
                f"expired handle %{handle.name_hint or '?'}: the {kind} it stood for was consumed by an earlier step; "
                f"get it again with get_{'loops' if kind == 'loop' else 'block'}"
            )
        return op

    def _meaning(self, handle: SSAValue) -> Drawn:
        found = self.handles.get(handle)
        if found is None:
            raise CompileError(f"handle %{handle.name_hint or '?'} is not defined by a step that ran")
        return found

    def integer(self, handle: SSAValue) -> int:
        """The integer a handle stands for."""
        found = self._meaning(handle)
        if not isinstance(found, int):
            raise CompileError(f"handle %{handle.name_hint or '?'} is no integer")
        return found

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

    def _arguments(self, step: sched.StepOp) -> dict[str, object]:
        """The value of each parameter of a step."""
        handles = step.operands
        operands = iter([handle for handle in handles if not isinstance(handle.type, IntType)])
        sampled = [handle for handle in handles if isinstance(handle.type, IntType)]
        integers = iter([self.integer(handle) for handle in sampled])
        arguments: dict[str, object] = {}
        for parameter in DECLARATIONS[step_name(step)].parameters:
            name, kind = parameter.name, parameter.kind
            if kind.several:
                if kind is LOOP_OR_BLOCKS and not handles:
                    raise CompileError.at(step, f"{step.name} needs a handle for '{name}'")
                arguments[name] = tuple(self._op(operand, kind) for operand in operands)
            elif kind.handles:
                handle = next(operands, None)
                if handle is None:
                    for integer in sampled:
                        self.resolve(integer)  # an integer where a loop is needed
                    raise CompileError.at(step, f"{step.name} needs a handle for '{name}'")
                arguments[name] = self._op(handle, kind)
            elif kind is ANNOTATION and name not in step.properties:
                arguments[name] = IntegerAttr(_next(integers, step), i64)
            elif kind.optional:
                given = step.properties.get(name)
                arguments[name] = _plain(given) if kind in (DECISION, DECISIONS) else given
            elif kind.sampled and kind is not ANNOTATION:
                given = sched.integers_of(_property(step, name))
                arguments[name] = tuple(_next(integers, step) if n == sched.SAMPLED else n for n in given)
            elif kind is ANNOTATION:
                arguments[name] = step.properties[name]
            elif kind is BUFFER:
                arguments[name] = _buffer_place(step, name)
            else:
                arguments[name] = _plain(_property(step, name))
        return arguments

    def _apply_primitive(self, step: sched.StepOp) -> Sequence[Operation]:
        name = step_name(step)
        if name in ("compute_at", "reverse_compute_at"):
            place = self._meaning(step.operands[1]) if len(step.operands) == 2 else None
            if isinstance(place, Place):
                return self._put(place, name, self.block(step.operands[0]))
        return primitive_class(name)(**self._arguments(step)).apply()

    def _op(self, handle: SSAValue, kind: Kind) -> Operation:
        if len(kind.handles) > 1:
            return self.resolve(handle)
        return self.block(handle) if kind is BLOCK_HANDLE else self.loop(handle)

    def _put(self, place: Place, name: str, block: BlockOp) -> Sequence[Operation]:
        """compute_at of a sampled place that is no loop."""
        if place is Place.STAY:
            return ()
        inline = "compute_inline" if name == "compute_at" else "reverse_compute_inline"
        arguments: dict[str, object] = {"block": block}
        return primitive_class(inline)(**arguments).apply()


def step_name(step: sched.StepOp) -> str:
    """The name of a step in the tables of declarations and primitives."""
    return step.name.removeprefix("sched.")


def decision_attribute(decision: Decision) -> Attribute:
    """A decision as it stands in a trace."""
    if isinstance(decision, int):
        return IntegerAttr(decision, i64)
    return ArrayAttr([IntegerAttr(factor, i64) for factor in decision])


def _next(integers: Iterator[int], step: sched.StepOp) -> int:
    value = next(integers, None)
    if value is None:
        raise CompileError.at(step, f"{step.name} needs another sampled integer")
    return value


def check_handles(step: sched.StepOp, given: int) -> None:
    """A step names all of the handles that it gives, or none."""
    if step.results and given != len(step.results):
        raise CompileError.at(step, f"{step.name} gives {given} handles, {len(step.results)} are named")


def _property(step: sched.StepOp, name: str) -> Attribute:
    value = step.properties.get(name)
    if value is None:
        raise CompileError.at(step, f"{step.name} needs the property '{name}'")
    return value


def _buffer_place(step: sched.StepOp, name: str) -> BufferPlace:
    match _property(step, name):
        case ArrayAttr(data=(StringAttr(data=verb), IntegerAttr(value=IntAttr(data=index)))):
            return verb, index
        case value:
            raise CompileError.at(step, f"{step.name}: '{name}' is like [\"write\", 0], got {value}")


def _plain(value: Attribute | None) -> object:
    """What a primitive or a sampler takes for a property."""
    found = None if value is None else value_of(value)
    return tuple(cast("list[object]", found)) if isinstance(found, list) else found


def _is_alive(op: Operation, module: ModuleOp) -> bool:
    root: Operation = op
    while (parent := root.parent_op()) is not None:
        root = parent
    return root is module


def apply_schedule(module: ModuleOp, schedule: sched.FuncOp, seed: int = 0) -> Replay:
    """Run every step of `schedule` on `module`, in order. Sampling steps without a decision draw from `seed`."""
    replay = Replay(module, Random(seed))
    for step in schedule.body.block.ops:
        if isinstance(step, sched.StepOp):
            replay.run(step)
    return replay
