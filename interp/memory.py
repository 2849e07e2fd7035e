"""Buffers as flat lists (`memref`), and pointers into them: a pair of a flat list and the place of an element in it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

from xdsl.dialects import memref, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseIntOrFPElementsAttr, NoneAttr
from xdsl.traits import SymbolTable

from weft.dialects.low_access import AccessPtrOp, StrideOp
from weft.dialects.low_kernel import SHARED
from weft.dialects.low_tensor_cores import TileOp
from weft.dialects.strides import strides_of
from weft.dialects.tir import AssumeStridesOp
from weft.interp.emitter import out_of_bounds
from weft.interp.kernels import emit_shared_alloca
from weft.interp.registry import emits
from weft.interp.values import MAX_ELEMENTS, array_of_dense, flat_list
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.dialects.builtin import MemRefType
    from xdsl.ir import Attribute, Operation, SSAValue

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
        extents = ", ".join(map(str, buffer.extents))
        place = (repr(buffer.hint), f"[{', '.join(last)}]", f"[{extents}]")
        emitter.refuse(f"not ({' and '.join(ends)})", out_of_bounds, op, *place)
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


@emits(memref.AllocOp, memref.AllocaOp)
def emit_alloc(emitter: Emitter, op: memref.AllocOp | memref.AllocaOp) -> None:
    type_ = op.memref.type
    if op.symbol_operands:
        raise CompileError.at(op, "the interpreter allocates buffers of identity layout only")
    sizes = [emitter.written(size, op) for size in op.dynamic_sizes]
    extents = emitter.extents_of(type_, iter(sizes))
    if sizes:
        refuse_negative_extents(emitter, op, sizes)
    count = " * ".join(str(extent) for extent in extents) or "1"
    if sizes or math.prod(type_.get_shape()) > MAX_ELEMENTS:
        most = f"the interpreter allocates at most {MAX_ELEMENTS:,}"
        emitter.refuse(f"{count} > {MAX_ELEMENTS}", f"'{op.name}' of {{:,}} elements: {most}", op, count)
    if isinstance(op, memref.AllocaOp) and type_.memory_space == SHARED and emitter.in_kernel:
        data = emit_shared_alloca(emitter, op, count)
    else:
        data = emitter.fresh(op.memref.name_hint or "buffer")
        fill = "None" if emitter.options.check_uninitialised else "0"
        emitter.line(f"{data} = [{fill}] * ({count})", op)
    emitter.bind_buffer(op.memref, data, extents)
    emitter.keep_private(op.memref)


def refuse_negative_extents(emitter: Emitter, op: Operation, sizes: Sequence[str]) -> None:
    """A line that checks the extents of what `op` makes."""
    message = f"'{op.name}' needs extents of at least 0, got {', '.join(['{}'] * len(sizes))}"
    emitter.refuse(f"min({', '.join(sizes)}, 0) < 0", message, op, *sizes)


@emits(memref.DeallocOp)
def emit_dealloc(emitter: Emitter, op: memref.DeallocOp) -> None:
    """An emptied list makes every later access an IndexError, which is told as a use after the deallocation."""
    emitter.line(f"{emitter.buffer(op.memref).data}.clear()", op)


def check_alive(emitter: Emitter, buffer: SSAValue, op: Operation) -> None:
    """A line for accesses to several elements, which an emptied list would not refuse."""
    if any(isinstance(use.operation, memref.DeallocOp) for use in buffer.uses):
        emitter.line(f"if not {emitter.buffer(buffer).data}: {emitter.helper(deallocated)}()", op)


def deallocated() -> None:
    raise IndexError("the buffer was deallocated")


@emits(memref.LoadOp)
def emit_load(emitter: Emitter, op: memref.LoadOp) -> None:
    buffer = emitter.buffer(op.memref)
    index = emitter.element(buffer, op.indices, op)
    name = emitter.define(op.res, maybe_unwritten=True)
    emitter.line(f"{name} = {buffer.data}[{index}]", op)


@emits(memref.StoreOp)
def emit_store(emitter: Emitter, op: memref.StoreOp) -> None:
    buffer = emitter.buffer(op.memref)
    index = emitter.element(buffer, op.indices, op)
    with emitter.store():
        emitter.line(f"{buffer.data}[{index}] = {emitter.value(op.value)}", op)


@emits(memref.DimOp)
def emit_dim(emitter: Emitter, op: memref.DimOp) -> None:
    bind_extent(emitter, op, emitter.buffer(op.source).extents)


def bind_extent(emitter: Emitter, op: memref.DimOp | tensor.DimOp, extents: Sequence[int | str]) -> None:
    """The extent by its own name, so that what is bounded by it is known to be."""
    index = emitter.value(op.index)
    if not index.isdigit():
        raise CompileError.at(op, f"the interpreter needs a constant dimension for '{op.name}'")
    if int(index) >= len(extents):
        raise CompileError.at(op, f"'{op.name}' asks for dimension {index} of {op.source.type}")
    extent = extents[int(index)]
    emitter.bind(op.result, str(extent), (extent, extent) if isinstance(extent, int) else (0, None))


@emits(memref.CastOp)
def emit_cast(emitter: Emitter, op: memref.CastOp) -> None:
    """The same memory by another type; the extents that the type states are checked."""
    buffer, type_ = emitter.buffer(op.source), cast("MemRefType[Attribute]", op.dest.type)
    for dimension, (extent, known) in enumerate(zip(type_.get_shape(), buffer.extents, strict=True)):
        if extent not in (DYNAMIC_INDEX, known):
            message = f"'{op.name}': dimension {dimension} is stated to be {{}}, but is {{}}"
            emitter.refuse(f"{known} != {extent}", message, op, extent, known)
    extents = [
        known if extent == DYNAMIC_INDEX else extent
        for extent, known in zip(type_.get_shape(), buffer.extents, strict=True)
    ]
    emitter.bind_buffer(op.dest, buffer.data, extents)


@emits(memref.ReinterpretCastOp)
def emit_reinterpret_cast(emitter: Emitter, op: memref.ReinterpretCastOp) -> None:
    """The same elements by other extents; dense buffers alone are interpreted (CompileError)."""
    buffer = emitter.buffer(op.source)
    sizes = iter(emitter.written(size, op) for size in op.sizes)
    extents = [next(sizes) if size == DYNAMIC_INDEX else size for size in op.static_sizes.get_values()]
    if not _is_dense(op):
        raise CompileError.at(op, f"the interpreter views buffers as dense ones, '{op.name}' gives {op.result.type}")
    count = " * ".join(map(str, extents)) or "1"
    emitter.refuse(f"len({buffer.data}) < {count}", f"'{op.name}' views more elements than the buffer has", op)
    emitter.bind_buffer(op.result, buffer.data, extents)


def _is_dense(op: memref.ReinterpretCastOp) -> bool:
    """Whether the offset is 0 and the strides are products of the extents behind them. Strides that vary are, for the
    type has no layout that says otherwise."""
    if op.static_offsets.get_values() != (0,) or not isinstance(op.result.type.layout, NoneAttr):
        return False
    dense = 1
    for size, stride in zip(op.static_sizes.get_values()[::-1], op.static_strides.get_values()[::-1], strict=True):
        if stride != DYNAMIC_INDEX and dense != DYNAMIC_INDEX and stride != dense:
            return False
        dense = DYNAMIC_INDEX if DYNAMIC_INDEX in (size, dense) else dense * size
    return True


@emits(memref.GetGlobalOp)
def emit_get_global(emitter: Emitter, op: memref.GetGlobalOp) -> None:
    """The elements of a constant of the module; of a variable there is no memory that calls share."""
    name = op.name_.string_value()
    data = SymbolTable.lookup_symbol(op, op.name_)
    if not isinstance(data, memref.GlobalOp):
        raise CompileError.at(op, f"the module has no memref.global @{name}")
    if data.type != op.memref.type:
        raise CompileError.at(op, f"memref.global @{name} is {data.type}, not {op.memref.type}")
    if data.constant is None or not isinstance(data.initial_value, DenseIntOrFPElementsAttr):
        raise CompileError.at(op, f"the interpreter reads constant globals only, and @{name} is none")
    array = array_of_dense(data.initial_value)
    if array is None or array.size != math.prod(data.type.get_shape()):
        raise CompileError.at(op, f"memref.global @{name} of type {data.type} has no such elements")
    elements = emitter.constant(flat_list(array), op.memref.name_hint or name)
    emitter.bind_buffer(op.memref, elements, data.type.get_shape())
