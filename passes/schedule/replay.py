"""Execute `sched` steps on a module: bind handles to ops, run primitives and samplers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar, cast

from xdsl.dialects.builtin import ArrayAttr, IntAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from weft.analysis.block_scopes import (
    child_blocks,
    consumers_of,
    find_block_or_root,
    loops_around,
    output_blocks,
    producers_of,
)
from weft.dialects import sched
from weft.dialects.attribute_values import attribute_of, value_of
from weft.dialects.sched import DECLARATIONS
from weft.dialects.sched_parameters import (
    ANNOTATION,
    BUFFER,
    DECISION,
    DECISIONS,
    REQUIRED,
    IntType,
)
from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.primitive import BufferPosition, primitive_class
from weft.passes.schedule.sampling import SAMPLERS, ComputeLocation, Decision, HandleValue, Sampler
from weft.support.errors import CompileError
from weft.support.rewrites import may_rewrite

_QUERIES: Mapping[str, Callable[..., Sequence[Operation]]] = {
    "get_loops": loops_around,
    "get_producers": producers_of,
    "get_consumers": consumers_of,
    "get_child_blocks": child_blocks,
    "get_output_blocks": output_blocks,
}
_INLINING: Mapping[str, str] = {"compute_at": "compute_inline", "reverse_compute_at": "reverse_compute_inline"}

T = TypeVar("T")
OperationT = TypeVar("OperationT", bound=Operation)


@dataclass(frozen=True)
class StepOutcome:
    found: Sequence[HandleValue]
    decision: Attribute | None = None


@dataclass
class Replay:
    """The object of each handle in `module`, and the random generator of sampling steps."""

    module: ModuleOp
    random: Random = field(default_factory=lambda: Random(0))
    handles: dict[SSAValue, HandleValue] = field(default_factory=dict[SSAValue, HandleValue])

    def run(self, step: sched.StepOp) -> None:
        """Apply one step and bind its results. Raises `ScheduleError` or `CompileError`, and then changes nothing."""
        try:
            self.bind(step, self.evaluate(step).found)
        except CompileError as error:
            if error.location is None:
                raise CompileError.at(step, error.message) from error
            raise

    def evaluate(self, step: sched.StepOp) -> StepOutcome:
        """`run`, without binding its results."""
        if isinstance(step, sched.SamplingOp):
            sampler = SAMPLERS[step_name(step)](**self._arguments(step))
            decision = self.draw(sampler)
            return StepOutcome(sampler.results(decision), attribute_of(decision))
        if isinstance(step, sched.GetBlockOp):
            func = None if step.func is None else step.func.data
            return StepOutcome([find_block_or_root(self.module, step.label.data, func)])
        if isinstance(step, sched.QueryOp):
            return StepOutcome(_QUERIES[step_name(step)](*self._arguments(step).values()))
        return StepOutcome(self._apply_primitive(step))

    def draw(self, sampler: Sampler) -> Decision:
        return sampler.draw(self.random)

    def bind(self, step: sched.StepOp, found: Sequence[HandleValue]) -> None:
        check_handles(step, len(found))
        for handle, op in zip(step.results, found, strict=False):
            self.handles[handle] = op

    def resolve(self, handle: SSAValue) -> Operation:
        """Raises `CompileError` if the op was erased."""
        op, name = self.handles.get(handle), f"handle %{handle.name_hint or '?'}"
        if isinstance(op, ComputeLocation):
            what = "stay where it is" if op is ComputeLocation.STAY else "be inlined"
            raise CompileError(f"{name} is not a loop: its block is to {what}, which only compute_at does")
        if not isinstance(op, Operation):
            raise CompileError(f"{name} is not a loop or block that a step returned")
        if op.get_toplevel_object() is not self.module:
            kind = "loop" if isinstance(op, ForOp) else "block"
            raise CompileError(
                f"expired {name}: the {kind} it stood for was consumed by an earlier step; "
                f"get it again with get_{'loops' if kind == 'loop' else 'block'}"
            )
        return op

    def integer(self, handle: SSAValue) -> int:
        found = self.handles.get(handle)
        if not isinstance(found, int):
            raise CompileError(f"handle %{handle.name_hint or '?'} is not an integer that a step returned")
        return found

    def block(self, handle: SSAValue) -> BlockOp:
        return self._resolve_as(handle, BlockOp, "block")

    def loop(self, handle: SSAValue) -> ForOp:
        return self._resolve_as(handle, ForOp, "loop")

    def _resolve_as(self, handle: SSAValue, kind: type[OperationT], word: str) -> OperationT:
        op = self.resolve(handle)
        if not isinstance(op, kind):
            raise CompileError(f"handle %{handle.name_hint or '?'} is not a {word}")
        return op

    def _arguments(self, step: sched.StepOp) -> dict[str, object]:
        handles = iter([handle for handle in step.operands if not isinstance(handle.type, IntType)])
        integers = iter([self.integer(handle) for handle in step.operands if isinstance(handle.type, IntType)])
        arguments: dict[str, object] = {}
        declaration = DECLARATIONS[step_name(step)]
        for handle in step.operands if not declaration.on_root else ():
            if isinstance(self.handles.get(handle), FuncOp):
                raise CompileError.at(step, f"{step.name} takes no root block: give a block of the function")
        for parameter in declaration.parameters:
            name, kind, given = parameter.name, parameter.kind, step.properties.get(parameter.name)
            if kind.several:
                arguments[name] = tuple(self.resolve(handle) for handle in handles)
            elif kind.handles:
                arguments[name] = self.resolve(_next(handles, step))
            elif kind is ANNOTATION:
                arguments[name] = IntegerAttr(_next(integers, step), i64) if given is None else given
            elif given is None and not kind.optional:
                if parameter.default is REQUIRED:
                    raise CompileError.at(step, f"{step.name} needs the property '{name}'")
                arguments[name] = parameter.default
            elif kind.sampled:
                numbers = sched.integers_of(given)
                arguments[name] = tuple(_next(integers, step) if n == sched.SAMPLED else n for n in numbers)
            elif kind is BUFFER:
                arguments[name] = _buffer_position(step, name, given)
            elif kind.optional and kind not in (DECISION, DECISIONS):
                arguments[name] = given
            else:
                arguments[name] = plain_value(given)
        return arguments

    def _apply_primitive(self, step: sched.StepOp) -> Sequence[Operation]:
        """A compute_at whose sampled location is not a loop inlines the block, or does nothing."""
        name = step_name(step)
        place = self.handles.get(step.operands[-1]) if name in _INLINING else None
        if place is ComputeLocation.STAY:
            return ()
        if place is ComputeLocation.INLINE:
            arguments: dict[str, object] = {"block": self.block(step.operands[0])}
            return primitive_class(_INLINING[name])(**arguments).apply()
        return primitive_class(name)(**self._arguments(step)).apply()


def check_decisions(steps: Sequence[sched.SamplingOp], decisions: Sequence[Decision | None]) -> None:
    """Decisions are None, an integer or several; valid values depend on the program. Raises `CompileError`."""
    if len(decisions) != len(steps):
        raise CompileError(f"{len(decisions)} decisions for {len(steps)} sampling steps")
    for step, decision in zip(steps, decisions, strict=True):
        draws_several = any(parameter.kind is DECISIONS for parameter in DECLARATIONS[step_name(step)].parameters)
        if decision is not None and isinstance(decision, int) is draws_several:
            wanted = "several integers" if draws_several else "an integer"
            raise CompileError(f"{step.name} decides for {wanted}, got {decision}")


def set_decision(step: sched.StepOp, decision: Decision | None) -> None:
    """None draws one."""
    step.properties.pop("decision", None)
    if decision is not None:
        step.properties["decision"] = attribute_of(decision)


def step_name(step: sched.StepOp) -> str:
    return step.name.removeprefix("sched.")


def _next(values: Iterator[T], step: sched.StepOp) -> T:
    value = next(values, None)
    if value is None:
        raise CompileError.at(step, f"{step.name} needs another handle")
    return value


def check_handles(step: sched.StepOp, given: int) -> None:
    if step.results and given != len(step.results):
        raise CompileError.at(step, f"{step.name} gives {given} handles, {len(step.results)} are named")


def _buffer_position(step: sched.StepOp, name: str, given: Attribute | None) -> BufferPosition:
    match given:
        case ArrayAttr(data=(StringAttr(data=verb), IntegerAttr(value=IntAttr(data=index)))):
            return verb, index
        case value:
            raise CompileError.at(step, f"{step.name}: '{name}' is like [\"write\", 0], got {value}")


def plain_value(value: Attribute | None) -> object:
    found = None if value is None else value_of(value)
    return tuple(cast("list[object]", found)) if isinstance(found, list) else found


def apply_schedule(module: ModuleOp, schedule: sched.FuncOp, seed: int = 0) -> Replay:
    """`seed` is that of sampling steps without a decision."""
    replay = Replay(module, Random(seed))
    for step in schedule.body.block.ops:
        if isinstance(step, sched.StepOp) and may_rewrite(step.name, step):
            replay.run(step)
    return replay
