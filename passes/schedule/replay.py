"""Executes `sched` steps on a module: handles are bound to ops, steps run primitives and samplers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, IntAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from weft.analysis.structure import child_blocks, consumers_of, find_block, loops_around, producers_of
from weft.dialects import sched
from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.primitive import BufferPlace
from weft.passes.schedule.registry import (
    INTS,
    LOOP_OR_BLOCK,
    LOOP_OR_BLOCKS,
    LOOPS,
    OPTIONAL,
    PRIMITIVES,
    is_handle,
    parameters,
    primitive_class,
)
from weft.passes.schedule.sampling import (
    Decision,
    Drawn,
    Place,
    SampleCategorical,
    SampleComputeLocation,
    SamplePerfectTile,
    Sampler,
)
from weft.support.errors import CompileError, InternalError


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
            sampler = self._sampler(step)
            decision = sampler.draw(self.random)
            return Outcome(sampler.results(decision), decision_attribute(decision))
        found = self._query(step)
        return Outcome(self._apply_primitive(step) if found is None else found)

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
            return child_blocks(self.resolve(step.target))
        return None

    def _apply_primitive(self, step: sched.StepOp) -> Sequence[Operation]:
        name = step.name.removeprefix("sched.")
        if name not in PRIMITIVES:
            raise InternalError(f"no primitive for the step {step.name}")
        operands = iter([operand for operand in step.operands if operand.type != sched.INT])
        integers = iter([self.integer(operand) for operand in step.operands if operand.type == sched.INT])
        if name in ("compute_at", "reverse_compute_at"):
            place = self._meaning(step.operands[1]) if len(step.operands) == 2 else None
            if isinstance(place, Place):
                return self._put(place, name, self.block(step.operands[0]))
        arguments: dict[str, object] = {}
        for parameter, kind in parameters(name):
            if kind == LOOPS:
                arguments[parameter] = tuple(self.loop(operand) for operand in operands)
            elif kind == LOOP_OR_BLOCKS:
                if not step.operands:
                    raise CompileError.at(step, f"{step.name} needs a handle for '{parameter}'")
                arguments[parameter] = tuple(self.resolve(operand) for operand in operands)
            elif is_handle(kind):
                handle = next(operands, None)
                if handle is None:
                    for integer in (operand for operand in step.operands if operand.type == sched.INT):
                        self.resolve(integer)  # an integer where a loop is needed
                    raise CompileError.at(step, f"{step.name} needs a handle for '{parameter}'")
                arguments[parameter] = self._handle(handle, kind)
            elif kind is Attribute and parameter not in step.properties:
                arguments[parameter] = IntegerAttr(_next(integers, step), i64)
            elif kind is Attribute:
                arguments[parameter] = _property(step.properties, parameter, step)
            elif kind == OPTIONAL:
                arguments[parameter] = step.properties.get(parameter)
            elif kind is AffineMapAttr:
                arguments[parameter] = _index_map(step.properties, parameter, step)
            elif kind == BufferPlace:
                arguments[parameter] = _buffer_place(step.properties, parameter, step)
            elif kind == INTS:
                given = sched.integers_of(_property(step.properties, parameter, step))
                arguments[parameter] = tuple(_next(integers, step) if n == sched.SAMPLED else n for n in given)
            else:
                arguments[parameter] = _plain(step.properties, parameter, step)
        return primitive_class(name)(**arguments).apply()

    def _handle(self, handle: SSAValue, kind: object) -> Operation:
        if kind == LOOP_OR_BLOCK:
            return self.resolve(handle)
        return self.block(handle) if kind is BlockOp else self.loop(handle)

    def _put(self, place: Place, name: str, block: BlockOp) -> Sequence[Operation]:
        """compute_at of a sampled place that is no loop."""
        if place is Place.STAY:
            return ()
        inline = "compute_inline" if name == "compute_at" else "reverse_compute_inline"
        arguments: dict[str, object] = {"block": block}
        return primitive_class(inline)(**arguments).apply()

    def _sampler(self, step: sched.SamplingOp) -> Sampler:
        properties = step.properties
        if isinstance(step, sched.SamplePerfectTileOp):
            decision = tuple(sched.integers_of(step.decision)) if step.decision is not None else None
            limit = step.max_innermost_factor.value.data
            return SamplePerfectTile(self.loop(step.loop), step.n.value.data, limit, decision)
        decision = None if "decision" not in properties else _integer(properties, "decision", step)
        if isinstance(step, sched.SampleCategoricalOp):
            probs = tuple(p.value.data for p in step.probs)
            return SampleCategorical(tuple(sched.integers_of(step.candidates)), probs, decision)
        if isinstance(step, sched.SampleComputeLocationOp):
            return SampleComputeLocation(self.block(step.block), decision)
        raise InternalError(f"no sampler for the step {step.name}")


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


def _property(properties: Mapping[str, Attribute], name: str, step: sched.StepOp) -> Attribute:
    value = properties.get(name)
    if value is None:
        raise CompileError.at(step, f"{step.name} needs the property '{name}'")
    return value


def _integer(properties: Mapping[str, Attribute], name: str, step: sched.StepOp) -> int:
    value = _property(properties, name, step)
    if not isinstance(value, IntegerAttr):
        raise CompileError.at(step, f"{step.name}: '{name}' is an integer, got {value}")
    return value.value.data


def _index_map(properties: Mapping[str, Attribute], name: str, step: sched.StepOp) -> AffineMapAttr:
    value = _property(properties, name, step)
    if not isinstance(value, AffineMapAttr):
        raise CompileError.at(step, f"{step.name}: '{name}' is an affine map, got {value}")
    return value


def _buffer_place(properties: Mapping[str, Attribute], name: str, step: sched.StepOp) -> BufferPlace:
    match _property(properties, name, step):
        case ArrayAttr(data=(StringAttr(data=verb), IntegerAttr(value=IntAttr(data=index)))):
            return verb, index
        case value:
            raise CompileError.at(step, f"{step.name}: '{name}' is like [\"write\", 0], got {value}")


def _plain(properties: Mapping[str, Attribute], name: str, step: sched.StepOp) -> object:
    value = _property(properties, name, step)
    if isinstance(value, IntegerAttr):
        return value.value.data
    if isinstance(value, StringAttr):
        return value.data
    raise CompileError.at(step, f"{step.name}: '{name}' is an integer or a string, got {value}")


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
