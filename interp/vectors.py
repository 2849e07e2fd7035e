"""`vector`: one-dimensional vectors as lists of lanes. Masked-off lanes access no memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects import vector
from xdsl.dialects.builtin import VectorType

from weft.dialects.combiners import op_of_kind
from weft.interp.emitter import BufferSource
from weft.interp.errors import InterpreterError
from weft.interp.memory import check_alive
from weft.interp.registry import emits
from weft.interp.scalar import bitcast_template, check_lane_type, combined, elementwise, fma_template
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Attribute, Operation, SSAValue

    from weft.interp.emitter import Emitter


def lane_count(op: Operation, type_: Attribute) -> int:
    """Raises `CompileError` unless the vector has one dimension."""
    shape = type_.get_shape() if isinstance(type_, VectorType) else ()
    if len(shape) != 1:
        raise CompileError.at(op, f"the interpreter has vectors of one dimension only, '{op.name}' has {type_}")
    return shape[0]


def _lanes_at(
    emitter: Emitter, op: Operation, base: SSAValue, indices: Sequence[SSAValue], count: int, mask: str | None = None
) -> tuple[BufferSource, str]:
    buffer = emitter.buffer(base)
    check_alive(emitter, base, op)
    if buffer.strides is not None and buffer.strides[-1:] != (1,):
        raise CompileError.at(op, f"the lanes of '{op.name}' follow each other in memory, those of {base.type} may not")
    index = emitter.element(buffer, list(indices), op, count, mask)
    first = emitter.fresh("first")
    emitter.line(f"{first} = {index}", op)
    return buffer, first


@emits(vector.LoadOp)
def emit_load(emitter: Emitter, op: vector.LoadOp) -> None:
    load_lanes(emitter, op, op.base, op.indices)


def load_lanes(emitter: Emitter, op: Operation, base: SSAValue, indices: Sequence[SSAValue]) -> None:
    count = lane_count(op, op.results[0].type)
    buffer, first = _lanes_at(emitter, op, base, indices, count)
    name = emitter.define(op.results[0], maybe_unwritten=True)
    emitter.line(f"{name} = {buffer.data}[{first}:{first} + {count}]", op)


@emits(vector.StoreOp)
def emit_store(emitter: Emitter, op: vector.StoreOp) -> None:
    store_lanes(emitter, op, op.base, op.indices)


def store_lanes(emitter: Emitter, op: Operation, base: SSAValue, indices: Sequence[SSAValue]) -> None:
    value = op.operands[0]
    count = lane_count(op, value.type)
    buffer, first = _lanes_at(emitter, op, base, indices, count)
    with emitter.store():
        emitter.line(f"{buffer.data}[{first}:{first} + {count}] = {emitter.value(value)}", op)


@emits(vector.MaskedLoadOp)
def emit_masked_load(emitter: Emitter, op: vector.MaskedLoadOp) -> None:
    count = lane_count(op, op.result.type)
    mask = emitter.written(op.mask, op)
    buffer, first = _lanes_at(emitter, op, op.base, op.indices, count, mask)
    name = emitter.define(op.result, maybe_unwritten=True)
    lanes = f"for lane, (on, off) in enumerate(zip({mask}, {emitter.value(op.pass_thru)}), {first})"
    emitter.line(f"{name} = [{buffer.data}[lane] if on else off {lanes}]", op)


@emits(vector.MaskedStoreOp)
def emit_masked_store(emitter: Emitter, op: vector.MaskedStoreOp) -> None:
    count = lane_count(op, op.value_to_store.type)
    mask = emitter.written(op.mask, op)
    buffer, first = _lanes_at(emitter, op, op.base, op.indices, count, mask)
    lane, on, value = emitter.fresh("lane"), emitter.fresh("on"), emitter.fresh("value")
    source = f"enumerate(zip({mask}, {emitter.value(op.value_to_store)}), {first})"
    with emitter.store(), emitter.nested(f"for {lane}, ({on}, {value}) in {source}:", op, loop=True):
        emitter.line(f"if {on}: {buffer.data}[{lane}] = {value}", op)


@emits(vector.CreateMaskOp)
def emit_create_mask(emitter: Emitter, op: vector.CreateMaskOp) -> None:
    count = lane_count(op, op.mask_vector.type)
    limit = emitter.written(op.mask_dim_sizes[0], op)
    name = emitter.define(op.mask_vector)
    emitter.line(f"{name} = [lane < {limit} for lane in range({count})]", op)


def _pass_on(emitter: Emitter, result: SSAValue, *sources: SSAValue) -> None:
    if any(emitter.maybe_unwritten(source) for source in sources):
        emitter.mark_unwritten(result)


@emits(vector.BroadcastOp)
def emit_broadcast(emitter: Emitter, op: vector.BroadcastOp) -> None:
    count = lane_count(op, op.vector.type)
    source = emitter.value(op.source)
    if isinstance(op.source.type, VectorType):
        have = lane_count(op, op.source.type)
        if have not in (1, count):
            raise CompileError.at(op, f"'{op.name}' cannot make {op.vector.type} of {op.source.type}")
        text = source if have == count else f"{source} * {count}"
    else:
        text = f"[{source}] * {count}"
    emitter.line(f"{emitter.define(op.vector)} = {text}", op)
    _pass_on(emitter, op.vector, op.source)


@emits(vector.ShuffleOp)
def emit_shuffle(emitter: Emitter, op: vector.ShuffleOp) -> None:
    """Lanes of -1 are undefined, like unwritten memory."""
    lane_count(op, op.v1.type)
    lane_count(op, op.v2.type)
    mask = op.mask.get_values()
    both = emitter.fresh("both")
    emitter.line(f"{both} = {emitter.value(op.v1)} + {emitter.value(op.v2)}", op)
    lanes = ", ".join("None" if lane < 0 else f"{both}[{lane}]" for lane in mask)
    emitter.line(f"{emitter.define(op.result, maybe_unwritten=-1 in mask)} = [{lanes}]", op)
    _pass_on(emitter, op.result, op.v1, op.v2)


def _lane_position(emitter: Emitter, op: vector.ExtractOp | vector.InsertOp, type_: Attribute) -> str:
    count = lane_count(op, type_)
    positions = op.get_mixed_position()
    if len(positions) != 1:
        raise CompileError.at(op, f"'{op.name}' names one lane, got {len(positions)}")
    position = positions[0]
    if isinstance(position, int):
        if not 0 <= position < count:
            raise CompileError.at(op, f"'{op.name}' names lane {position} of {type_}")
        return str(position)
    text = emitter.written(position, op)
    emitter.refuse(f"not 0 <= {text} < {count}", no_such_lane, op, text, count)
    return text


def no_such_lane(op: Operation, position: int, count: int) -> None:
    raise InterpreterError(op, f"'{op.name}' names lane {position} of {count}", index=[position], shape=[count])


@emits(vector.ExtractOp)
def emit_extract(emitter: Emitter, op: vector.ExtractOp) -> None:
    position = _lane_position(emitter, op, op.vector.type)
    emitter.line(f"{emitter.define(op.result)} = {emitter.value(op.vector)}[{position}]", op)
    _pass_on(emitter, op.result, op.vector)


@emits(vector.InsertOp)
def emit_insert(emitter: Emitter, op: vector.InsertOp) -> None:
    position = _lane_position(emitter, op, op.dest.type)
    source = emitter.value(op.source)
    name = emitter.define(op.result)
    emitter.line(f"{name} = {emitter.value(op.dest)}[:]; {name}[{position}] = {source}", op)
    _pass_on(emitter, op.result, op.source, op.dest)


@emits(vector.ReductionOp)
def emit_reduction(emitter: Emitter, op: vector.ReductionOp) -> None:
    """Lanes are reduced in order, after the accumulator if any; each step rounds."""
    lane_count(op, op.vector.type)
    type_ = op.dest.type
    check_lane_type(op, type_)
    combiner = op_of_kind(op.kind.data, type_)
    if combiner is None:
        raise CompileError.at(op, f"'{op.name}' of kind {op.kind.data.value} does not combine {type_}")
    source = emitter.written(op.vector, op)
    name = emitter.define(op.dest)
    if op.acc is None:
        emitter.line(f"{name} = {source}[0]", op)
        source += "[1:]"
    else:
        emitter.line(f"{name} = {emitter.written(op.acc, op)}", op)
    lane = emitter.fresh("lane")
    with emitter.nested(f"for {lane} in {source}:", op, loop=True):
        emitter.line(f"{name} = {combined(emitter, op, combiner, name, lane)}", op)


elementwise(vector.FMAOp, template=fma_template)


def _bitcast(emitter: Emitter, op: Operation, operands: Any) -> str:
    source, target = op.operands[0].type, op.results[0].type
    if lane_count(op, source) != lane_count(op, target):
        raise CompileError.at(op, f"the interpreter casts lane by lane, '{op.name}' goes from {source} to {target}")
    return bitcast_template(emitter, op, operands)


elementwise(vector.BitcastOp, template=_bitcast, finish=False, silent=True)
