"""Pointers into buffers: a pair of a flat list and the place of an element in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.dialects.low_access import AccessPtrOp, StrideOp
from weft.dialects.low_tensor_cores import TileOp
from weft.dialects.strides import strides_of
from weft.dialects.tir_regions import AssumeStridesOp
from weft.interp.emitter import out_of_bounds
from weft.interp.registry import emits

if TYPE_CHECKING:
    from weft.interp.emitter import Emitter


@emits(AccessPtrOp)
def emit_access_ptr(emitter: Emitter, op: AccessPtrOp) -> None:
    """The place of the first element; all of the box must lie in the buffer."""
    buffer = emitter.buffer(op.buffer)
    at = emitter.element(buffer, op.indices, op)
    sizes = op.box_sizes or ()
    ends = [
        f"{emitter.value(index)} <= {extent} - {size}"
        for index, extent, size in zip(op.indices, buffer.extents, sizes, strict=False)
        if size > 1
    ]
    if ends:
        last = [f"{emitter.value(i)} + {size - 1}" for i, size in zip(op.indices, sizes, strict=True)]
        extents = ", ".join(str(extent) for extent in buffer.extents)
        values = f"{emitter.operation_name(op)}, {buffer.hint!r}, [{', '.join(last)}], [{extents}]"
        call = f"{emitter.helper(out_of_bounds)}({values})"
        emitter.line(f"if not ({' and '.join(ends)}): {call}", op)
    emitter.line(f"{emitter.define(op.pointer)} = ({buffer.data}, {at})", op)


@emits(StrideOp)
def emit_stride(emitter: Emitter, op: StrideOp) -> None:
    """Buffers lie row by row here, for the interpreter works on copies. Where elements of a caller's view lie must not
    show: its strides may be stated of another buffer, and go with pointers to tiles."""
    is_view = strides_of(op.buffer.type) is not None
    if is_view and any(not isinstance(use.operation, AssumeStridesOp | TileOp) for use in op.stride.uses):
        raise emitter.unsupported(op.stride)
    extents = emitter.buffer(op.buffer).extents[op.dimension.value.data + 1 :]
    known = 1
    for extent in extents:
        if not isinstance(extent, int):
            break
        known *= extent
    if all(isinstance(extent, int) for extent in extents):
        emitter.bind(op.stride, str(known), (known, known))
        return
    name = emitter.define(op.stride, (0, None))
    emitter.line(f"{name} = {' * '.join(str(extent) for extent in extents)}", op)
