"""`bufferization`: tensors from the contents of buffers, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from xdsl.dialects import bufferization

from weft.dialects.strides import INTEGERS
from weft.dialects.upstream.bufferization import DeallocTensorOp, MaterializeInDestinationOp, ToBufferOp, ToTensorOp
from weft.interp.errors import InterpreterError
from weft.interp.registry import emit_nothing, emits, evaluates
from weft.interp.tensor import shape_of_result
from weft.interp.values import Array, BufferStorage, array_of, carrier_dtype, flat_list, places

if TYPE_CHECKING:
    from xdsl.dialects.builtin import MemRefType, TensorType
    from xdsl.ir import Attribute, Operation

    from weft.interp.emitter import Emitter

emits(DeallocTensorOp)(emit_nothing)


@evaluates(bufferization.AllocTensorOp)
def alloc_tensor(op: bufferization.AllocTensorOp, *values: int | Array) -> Array:
    copied = next((value for value in values if isinstance(value, np.ndarray)), None)
    if copied is not None:
        return copied
    type_ = cast("TensorType[Attribute]", op.tensor.type)
    sizes = [value for value in values if isinstance(value, int)]
    return np.zeros(shape_of_result(op, sizes), carrier_dtype(type_.element_type))


def _places(buffer: BufferStorage) -> list[int]:
    strides = INTEGERS.row_major(buffer.shape) if buffer.strides is None else buffer.strides
    return places(buffer.shape, strides, buffer.offset)


@evaluates(ToTensorOp)
def to_tensor(op: ToTensorOp, buffer: BufferStorage) -> Array:
    return elements_of(op, buffer, cast("MemRefType[Attribute]", op.memref.type).element_type)


def elements_of(op: Operation, buffer: BufferStorage, type_: Attribute) -> Array:
    """Raises `InterpreterError` if an element was never written."""
    elements = [buffer.data[place] for place in _places(buffer)]
    if None in elements:
        raise InterpreterError(op, f"reads {buffer.name}, of which an element was never written")
    written = [element for element in elements if element is not None]
    return array_of(written, buffer.shape, type_)


def write_elements(target: BufferStorage, source: Array) -> None:
    for place, element in zip(_places(target), flat_list(source), strict=True):
        target.data[place] = element


@evaluates(MaterializeInDestinationOp)
def materialize(op: MaterializeInDestinationOp, source: Array, target: Array | BufferStorage) -> Array | None:
    if not isinstance(target, BufferStorage):
        return source
    if source.shape != tuple(target.shape):
        raise InterpreterError(op, f"'{op.name}' of shape {source.shape} in {target.name} of shape {target.shape}")
    write_elements(target, source)
    return None


@emits(ToBufferOp)
def emit_to_buffer(emitter: Emitter, op: ToBufferOp) -> None:
    """A copy, which the program may write."""
    value = emitter.value(op.tensor)
    data = emitter.fresh(op.memref.name_hint or "buffer")
    emitter.line(f"{data} = {emitter.helper(flat_list)}({value})", op)
    extents = emitter.read_extents(op.memref, f"{value}.shape", op)
    emitter.bind_buffer(op.memref, data, extents)


@emits(bufferization.CloneOp)
def emit_clone(emitter: Emitter, op: bufferization.CloneOp) -> None:
    source = emitter.buffer(op.input)
    data = emitter.fresh(op.output.name_hint or "buffer")
    emitter.line(f"{data} = [{source.data}[at] for at in {emitter.helper(_places)}({emitter.argument(op.input)})]", op)
    emitter.bind_buffer(op.output, data, source.extents)
