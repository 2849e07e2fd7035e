"""`Schedule`: each method runs one step on a module and records it. The methods are made from the declarations of the
steps.

Type checkers read `schedule.pyi`, which a test compares with `docs/generators/schedule_stub.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import AffineMapAttr, MemRefType
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineMap

from weft.dialects import sched
from weft.dialects import sched_parameters as kinds
from weft.dialects.attribute_values import attribute_of
from weft.dialects.sched import DECLARATIONS, QUERY_STEPS
from weft.dialects.sched_parameters import REQUIRED, Kind, Step
from weft.passes.schedule.annotate import Annotation
from weft.passes.schedule.index_maps import index_map_of, ranges_of, value_of
from weft.passes.schedule.primitive import BufferPlace, buffer_place, buffers_of
from weft.schedule.recording import BlockHandle, Handle, IntHandle, LoopHandle, Recorder, step_methods
from weft.support.errors import CompileError

__all__ = ["Annotation", "BlockHandle", "BufferOf", "IndexMap", "IntHandle", "LoopHandle", "Schedule", "signature_of"]

IndexMap: TypeAlias = Callable[..., object] | AffineMap
"""`lambda n, c: (n, c // 4, c % 4)`: from old indices to new ones, with `+`, `-`, and `*`, `//`, `%` by constants."""
BufferOf: TypeAlias = Sequence[str | int] | str
"""A buffer of a block: `("read", 0)`, `("write", 0)`, or its name."""


_HANDLES: Mapping[Attribute, type[BlockHandle | LoopHandle | IntHandle]] = {
    sched.BLOCK: BlockHandle,
    sched.LOOP: LoopHandle,
    sched.INT: IntHandle,
}


class Schedule(Recorder):
    """A module being scheduled, and the trace of what was done.

    The given module stays as it is: the schedule works on a copy. Names and parameters follow the field's:
    `sch.split(loop, factors=[None, 4])`, `sch.cache_read(block, 0, "local")`. Every method checks that the result means
    the same; one that is refused raises `ScheduleError` and changes nothing. A used-up handle raises `CompileError`.
    """

    def _call(self, step: Step, given: Mapping[str, object]) -> object:
        """Run a step with the arguments of its method."""
        known = {parameter.name: given[parameter.argument] for parameter in step.parameters}
        operands: list[Handle] = []
        properties: dict[str, Attribute] = {}
        for parameter in step.parameters:
            kind, value = parameter.kind, known[parameter.name]
            if kind.handles:
                operands.extend(self._block(part) if isinstance(part, str) else part for part in _handles(value))
                continue
            if kind.sampled:
                operands.extend(part for part in _handles(value) if isinstance(part, IntHandle))
            absent = kind.optional and (value == parameter.default or (kind is kinds.BLOCKS and not value))
            if isinstance(value, IntHandle) or absent:
                continue
            block = next((operand for operand in operands if isinstance(operand, BlockHandle)), None)
            known[parameter.name] = value = self._value(kind, value, block, known)
            properties[parameter.name] = AffineMapAttr(value) if isinstance(value, AffineMap) else attribute_of(value)
        results = self._run(sched.STEPS[step.name], operands, properties).results
        if isinstance(step.gives, tuple):
            return [_HANDLES[step.gives[0]](result) for result in results]
        return None if step.gives is None else _HANDLES[step.gives](results[0])

    def _value(self, kind: Kind, value: Any, block: BlockHandle | None, known: Mapping[str, Any]) -> object:
        """The value of a step for an argument that its annotation accepts; `known` are the values of those before, and
        the other arguments."""
        if kind in (kinds.FACTORS, kinds.TILE_FACTORS):
            return [sched.SAMPLED if isinstance(part, IntHandle) else part or 0 for part in value]
        if kind is kinds.FLOATS:
            return [float(part) for part in value]
        if kind is kinds.BLOCKS:
            return [name if isinstance(name, str) else self._replay.block(name.value).label for name in value]
        if kind is kinds.PADDING:
            given = isinstance(value, int | float | AffineMap)
            found = value if given else value_of(value, len(known["index_map"].results))
            return int(found) if isinstance(found, bool) else found
        if block is None:
            return value
        if kind in (kinds.READ_BUFFER, kinds.WRITTEN_BUFFER, kinds.READ_OR_WRITTEN_BUFFER):
            stated = kind is kinds.READ_OR_WRITTEN_BUFFER and known["buffer_type"] == "read"
            reading = stated or kind is kinds.READ_BUFFER
            if isinstance(value, int):
                return value
            return buffer_place(self._replay.block(block.value), value, ("read" if reading else "write",))[1]
        if kind is kinds.BUFFER:
            return self._buffer_place(block, value)
        if kind is kinds.BUFFER_MAP:
            return index_map_of(value, self._rank(block, known["buffer"]))
        if kind is kinds.BLOCK_MAP:
            return index_map_of(value, len(self._replay.block(block.value).iter_vars))
        if kind is kinds.REGION:
            iterators = len(self._replay.block(block.value).iter_vars)
            return ranges_of(value, iterators, self._rank(block, (known["buffer_type"], known["index"])))
        return value

    def _buffer_place(self, handle: BlockHandle, buffer: BufferOf) -> BufferPlace:
        if isinstance(buffer, str):
            return buffer_place(self._replay.block(handle.value), buffer)
        match tuple(buffer):
            case ("read" | "write" as verb, int(index)):
                return verb, index
            case other:
                raise CompileError(f"a buffer is given as ('read', 0), ('write', 0) or by its name, got {other!r}")

    def _rank(self, handle: BlockHandle, place: BufferPlace) -> int | None:
        """The number of dimensions of a buffer; None when there is no such buffer, which the primitive refuses."""
        block = self._replay.block(handle.value)
        found = buffers_of(block, place[0])
        type_ = found[place[1]].type if 0 <= place[1] < len(found) else None
        return type_.get_num_dims() if isinstance(type_, MemRefType) else None


def _handles(value: object) -> Sequence[Any]:
    """The handles and names that an argument holds."""
    return cast("Sequence[Any]", value) if isinstance(value, tuple | list) else [value]


def signature_of(step: Step) -> Signature:
    """The signature of the method of a step."""
    parameters, position = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)], Parameter.POSITIONAL_OR_KEYWORD
    for declared in step.parameters:
        variadic = declared.kind in (kinds.LOOP_HANDLES, kinds.LOOPS_OF_BLOCKS)
        if declared.keyword_only:
            position = Parameter.KEYWORD_ONLY
        kind = Parameter.VAR_POSITIONAL if variadic else position
        if variadic:
            position = Parameter.KEYWORD_ONLY
        default = Parameter.empty if declared.default is REQUIRED else declared.default
        parameters.append(Parameter(declared.argument, kind, default=default, annotation=declared.kind.argument))
    if isinstance(step.gives, tuple):
        result = f"list[{_HANDLES[step.gives[0]].__name__}]"
    else:
        result = "None" if step.gives is None else _HANDLES[step.gives].__name__
    return Signature(parameters, return_annotation=result)


def _method(step: Step) -> Callable[..., object]:
    signature = signature_of(step)
    names = [parameter.argument for parameter in step.parameters]
    variadic = any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in signature.parameters.values())
    defaults = {parameter.argument: parameter.default for parameter in step.parameters}

    def method(self: Schedule, *args: object, **keywords: object) -> object:
        given = {names[0]: args} if variadic else dict(zip(names, args, strict=False))  # they were checked to fit
        return self._call(step, {**defaults, **given, **keywords})  # pyright: ignore[reportPrivateUsage]

    summary, separator, details = step.doc.partition("\n\n")
    see = "" if step.name in QUERY_STEPS else f" See `{step.class_name}`."
    method.__name__, method.__qualname__ = step.name, f"Schedule.{step.name}"
    method.__doc__ = f"{summary}{see}{separator}{details}"
    method.__annotations__ = {
        **{name: parameter.annotation for name, parameter in signature.parameters.items() if name != "self"},
        "return": signature.return_annotation,
    }
    method.__signature__ = signature
    return method


for _step in DECLARATIONS.values():
    setattr(Schedule, _step.name, _method(_step))
step_methods(Schedule)
