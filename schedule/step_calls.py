"""Arguments of methods as operands and attributes of steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import AffineMapAttr, MemRefType
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineMap

from weft.dialects import sched
from weft.dialects import sched_parameters as kinds
from weft.dialects.attribute_values import attribute_of
from weft.dialects.sched import DECLARATIONS
from weft.dialects.sched_parameters import Kind
from weft.passes.schedule.index_maps import index_map_of, ranges_of, value_of
from weft.passes.schedule.primitive import BufferPosition, buffer_position, buffers_of
from weft.schedule.recording import BlockHandle, Handle, IntHandle, LoopHandle, Recorder
from weft.support.errors import CompileError

IndexMap: TypeAlias = Callable[..., object] | AffineMap
"""`lambda n, c: (n, c // 4, c % 4)`: from old indices to new ones, with `+`, `-`, and `*`, `//`, `%` by constants."""
BufferOf: TypeAlias = Sequence[str | int] | str
"""A buffer of a block: `("read", 0)`, `("write", 0)`, or its name."""


HANDLES: Mapping[Attribute, type[BlockHandle | LoopHandle | IntHandle]] = {
    sched.BLOCK: BlockHandle,
    sched.LOOP: LoopHandle,
    sched.INT: IntHandle,
}


class StepCalls(Recorder):
    def _step(self, name: str, /, **given: object) -> Any:
        step = DECLARATIONS[name]
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
            return [HANDLES[step.gives[0]](result) for result in results]
        return None if step.gives is None else HANDLES[step.gives](results[0])

    def _value(self, kind: Kind, value: Any, block: BlockHandle | None, known: Mapping[str, Any]) -> object:
        if kind in (kinds.FACTORS, kinds.TILE_FACTORS):
            return [sched.SAMPLED if isinstance(part, IntHandle) else part or 0 for part in value]
        if kind is kinds.FLOATS:
            return [float(part) for part in value]
        if kind is kinds.BLOCKS:
            return [name if isinstance(name, str) else self._replay.block(name.value).label for name in value]
        if kind is kinds.PADDING:
            given = isinstance(value, int | float | str | AffineMap)
            found = value if given else value_of(value, len(known["index_map"].results))
            return int(found) if isinstance(found, bool) else found
        if block is None:
            return value
        if kind in (kinds.READ_BUFFER, kinds.WRITTEN_BUFFER, kinds.READ_OR_WRITTEN_BUFFER):
            stated = kind is kinds.READ_OR_WRITTEN_BUFFER and known["buffer_type"] == "read"
            reading = stated or kind is kinds.READ_BUFFER
            if isinstance(value, int):
                return value
            return buffer_position(self._replay.block(block.value), value, ("read" if reading else "write",))[1]
        if kind is kinds.BUFFER:
            return self._buffer_position(block, value)
        if kind is kinds.BUFFER_MAP:
            return index_map_of(value, self._rank(block, known["buffer"]))
        if kind is kinds.BLOCK_MAP:
            return index_map_of(value, len(self._replay.block(block.value).iter_vars))
        if kind is kinds.REGION:
            iterators = len(self._replay.block(block.value).iter_vars)
            return ranges_of(value, iterators, self._rank(block, (known["buffer_type"], known["index"])))
        return value

    def _buffer_position(self, handle: BlockHandle, buffer: BufferOf) -> BufferPosition:
        if isinstance(buffer, str):
            return buffer_position(self._replay.block(handle.value), buffer)
        match tuple(buffer):
            case ("read" | "write" as verb, int(index)):
                return verb, index
            case other:
                raise CompileError(f"a buffer is given as ('read', 0), ('write', 0) or by its name, got {other!r}")

    def _rank(self, handle: BlockHandle, place: BufferPosition) -> int | None:
        block = self._replay.block(handle.value)
        found = buffers_of(block, place[0])
        type_ = found[place[1]].type if 0 <= place[1] < len(found) else None
        return type_.get_num_dims() if isinstance(type_, MemRefType) else None


def _handles(value: object) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, tuple | list) else [value]
