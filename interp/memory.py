"""Buffers as flat lists (`memref`), and pointers: pairs of a flat list and an index."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects import memref, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseIntOrFPElementsAttr, NoneAttr, UnrankedMemRefType
from xdsl.traits import SymbolTable

from weft.dialects.effects import underlying
from weft.dialects.element_types import bytes_of
from weft.dialects.low_access import AccessPtrOp, StrideOp
from weft.dialects.low_kernel import SHARED
from weft.dialects.low_tensor_cores import TileOp
from weft.dialects.strides import Arithmetic, strides_of
from weft.dialects.tir import AssumeStridesOp
from weft.dialects.upstream.memref_transpose import TransposeOp
from weft.dialects.upstream.views import StridedView, mixed_lists
from weft.interp.emitter import out_of_bounds, place_in_view
from weft.interp.kernels import emit_shared_alloca
from weft.interp.registry import emits
from weft.interp.values import MAX_ELEMENTS, array_of_dense, flat_list
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.ir import Operation, SSAValue

    from weft.interp.emitter import Emitter
    from weft.interp.values import Scalar


@emits(AccessPtrOp)
def emit_access_ptr(emitter: Emitter, op: AccessPtrOp) -> None:
    """The whole box must be in bounds."""
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
    """Row-major: the interpreter works on copies. The layout of a caller's view must not be visible: its strides are
    only stated for other buffers and used with pointers to tiles."""
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
    message = f"'{op.name}' needs extents of at least 0, got {', '.join(['{}'] * len(sizes))}"
    emitter.refuse(f"min({', '.join(sizes)}, 0) < 0", message, op, *sizes)


@emits(memref.DeallocOp)
def emit_dealloc(emitter: Emitter, op: memref.DeallocOp) -> None:
    """Later accesses raise IndexError, reported as use after deallocation."""
    emitter.line(f"{emitter.buffer(op.memref).data}.clear()", op)


def check_alive(emitter: Emitter, buffer: SSAValue, op: Operation) -> None:
    """A check before accesses to several elements, which would not raise on an empty list."""
    if any(isinstance(use.operation, memref.DeallocOp) for use in buffer.uses):
        emitter.line(f"if not {emitter.buffer(buffer).data}: {emitter.helper(deallocated)}()", op)


def deallocated() -> None:
    raise IndexError("the buffer was deallocated")


@emits(memref.LoadOp)
def emit_load(emitter: Emitter, op: memref.LoadOp) -> None:
    load_element(emitter, op, op.memref, op.indices)


def load_element(emitter: Emitter, op: Operation, source: SSAValue, indices: Sequence[SSAValue]) -> None:
    buffer = emitter.buffer(source)
    index = emitter.element(buffer, indices, op)
    name = emitter.define(op.results[0], maybe_unwritten=True)
    emitter.line(f"{name} = {buffer.data}[{index}]", op)


@emits(memref.StoreOp)
def emit_store(emitter: Emitter, op: memref.StoreOp) -> None:
    store_element(emitter, op, op.memref, op.indices)


def store_element(emitter: Emitter, op: Operation, target: SSAValue, indices: Sequence[SSAValue]) -> None:
    buffer = emitter.buffer(target)
    index = emitter.element(buffer, indices, op)
    with emitter.store():
        emitter.line(f"{buffer.data}[{index}] = {emitter.value(op.operands[0])}", op)


@emits(memref.CopyOp)
def emit_copy(emitter: Emitter, op: memref.CopyOp) -> None:
    """Copy all elements at once, because views of one buffer may overlap."""
    source, target = emitter.buffer(op.source), emitter.buffer(op.destination)
    sizes = [f"({', '.join(map(str, buffer.extents))})" for buffer in (source, target)]
    if source.extents != target.extents:
        emitter.refuse(f"{sizes[0]} != {sizes[1]}", f"'{op.name}' copies {{}} to {{}}", op, *sizes)
    names = [emitter.fresh(f"i{at}") for at in range(len(source.extents))]
    loops = "".join(f" for {name} in range({extent})" for name, extent in zip(names, source.extents, strict=True))
    places = [
        emitter.flat_index(names, buffer.extents) if buffer.strides is None else place_in_view(names, buffer)
        for buffer in (source, target)
    ]
    elements = emitter.fresh("copied")
    emitter.line(f"{elements} = [({places[1]}, {source.data}[{places[0]}]){loops or ' for _ in range(1)'}]", op)
    place, element = emitter.fresh("place"), emitter.fresh("element")
    with emitter.store(), emitter.nested(f"for {place}, {element} in {elements}:", op):
        emitter.line(f"{target.data}[{place}] = {element}", op)


@emits(memref.DimOp)
def emit_dim(emitter: Emitter, op: memref.DimOp) -> None:
    bind_extent(emitter, op, emitter.buffer(op.source).extents)


def bind_extent(emitter: Emitter, op: memref.DimOp | tensor.DimOp, extents: Sequence[int | str]) -> None:
    """Bounds by this name are then recognised."""
    index = emitter.value(op.index)
    if not index.isdigit():
        raise CompileError.at(op, f"the interpreter needs a constant dimension for '{op.name}'")
    if int(index) >= len(extents):
        raise CompileError.at(op, f"'{op.name}' reads dimension {index} of {op.source.type}")
    extent = extents[int(index)]
    emitter.bind(op.result, str(extent), (extent, extent) if isinstance(extent, int) else (0, None))


@emits(memref.CastOp)
def emit_cast(emitter: Emitter, op: memref.CastOp) -> None:
    """Extents stated in the type are checked."""
    if isinstance(op.dest.type, UnrankedMemRefType) or isinstance(op.source.type, UnrankedMemRefType):
        raise CompileError.at(op, f"'{op.name}': the interpreter has no buffers without a rank")
    buffer, type_ = emitter.buffer(op.source), op.dest.type
    for dimension, (extent, known) in enumerate(zip(type_.get_shape(), buffer.extents, strict=True)):
        if extent not in (DYNAMIC_INDEX, known):
            message = f"'{op.name}': dimension {dimension} is stated to be {{}}, but is {{}}"
            emitter.refuse(f"{known} != {extent}", message, op, extent, known)
    extents = [
        known if extent == DYNAMIC_INDEX else extent
        for extent, known in zip(type_.get_shape(), buffer.extents, strict=True)
    ]
    emitter.bind_buffer(op.dest, buffer.data, extents, buffer.strides, buffer.offset)


@emits(memref.ReinterpretCastOp)
def emit_reinterpret_cast(emitter: Emitter, op: memref.ReinterpretCastOp) -> None:
    source = op.source
    if emitter.buffer(source).strides is not None:
        source = underlying(source)
    buffer = emitter.buffer(source)
    numbers = _arithmetic(emitter, op)
    (offset,), extents, strides = ([numbers.of(number) for number in values] for values in mixed_lists(op))
    if buffer.strides is not None:
        raise CompileError.at(op, f"the interpreter does not have the memory around a view, '{op.name}' of one")
    is_dense = isinstance(op.result.type.layout, NoneAttr) and offset == 0
    last = " + ".join([str(offset), *(f"({e} - 1) * {s}" for e, s in zip(extents, strides, strict=True))])
    empty = " or ".join(f"{extent} == 0" for extent in extents) or "False"
    condition = f"not ({empty}) and {last} >= len({buffer.data})"
    emitter.refuse(condition, f"'{op.name}' views more elements than the buffer has", op)
    emitter.bind_buffer(op.result, buffer.data, extents, None if is_dense else strides, offset)


@emits(memref.ViewOp)
def emit_view(emitter: Emitter, op: memref.ViewOp) -> None:
    memory, type_ = emitter.buffer(op.source), op.result.type
    shift = emitter.written(op.byte_shift, op)
    extents = emitter.extents_of(type_, iter([emitter.written(size, op) for size in op.sizes]))
    count = " * ".join(str(extent) for extent in extents) or "1"
    size = bytes_of(type_.element_type)
    ends = f"{shift} + {count} * {size}"
    message = f"'{op.name}' views bytes {{}} to {{}} of a buffer of {{}} bytes"
    emitter.refuse(f"{shift} < 0 or {ends} > {memory.extents[0]}", message, op, shift, ends, memory.extents[0])
    data = emitter.fresh(op.result.name_hint or "view")
    emitter.line(f"{data} = {emitter.helper(ElementsInBytes)}({memory.data}, {shift}, {size}, {count})", op)
    emitter.bind_buffer(op.result, data, extents)


class ElementsInBytes(Sequence["Scalar | None"]):
    """An element is stored at its first byte, so that views with other elements see it."""

    def __init__(self, memory: list[Scalar | None], start: int, size: int, count: int) -> None:
        self._memory = memory
        self._start = start
        self._size = size
        self._count = count

    def __len__(self) -> int:
        return self._count if self._memory else 0  # empty lists were deallocated

    def __getitem__(self, place: Any) -> Any:
        return self._memory[self._in_memory(place)]

    def __setitem__(self, place: Any, value: Any) -> None:
        self._memory[self._in_memory(place)] = value

    def clear(self) -> None:
        self._memory.clear()

    def _in_memory(self, place: int | slice[int, int, None]) -> int | slice[int, int, int]:
        places = range(self._start, self._start + self._count * self._size, self._size)
        if isinstance(place, int):
            return places[place]
        part = places[place]
        return slice(part.start, part.stop, part.step)


def _computed(emitter: Emitter, op: Operation, text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        name = emitter.fresh("place")
        emitter.line(f"{name} = {text}", op)
        return name


def _arithmetic(emitter: Emitter, op: Operation) -> Arithmetic[int | str]:
    def of(value: int | SSAValue) -> int | str:
        return value if isinstance(value, int) else emitter.written(value, op)

    def plus(left: int | str, right: int | str) -> int | str:
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        return right if left == 0 else left if right == 0 else _computed(emitter, op, f"{left} + {right}")

    def times(left: int | str, right: int | str) -> int | str:
        if isinstance(left, int) and isinstance(right, int):
            return left * right
        return right if left == 1 else left if right == 1 else _computed(emitter, op, f"{left} * {right}")

    return Arithmetic(of, plus, times)


@emits(memref.SubviewOp, TransposeOp, memref.CollapseShapeOp, memref.ExpandShapeOp)
def emit_part(emitter: Emitter, op: Operation) -> None:
    buffer, numbers = emitter.buffer(op.operands[0]), _arithmetic(emitter, op)
    if isinstance(op, memref.SubviewOp):
        parts = zip(*([numbers.of(number) for number in values] for values in mixed_lists(op)), strict=True)
        for at, ((offset, size, step), extent) in enumerate(zip(parts, buffer.extents, strict=True)):
            message = f"'{op.name}' leaves dimension {at}: {{}} elements from {{}} with stride {{}}, the extent is {{}}"
            leaves = f"{offset} < 0 or {offset} + ({size} - 1) * {step} >= {extent}"
            emitter.refuse(f"{size} > 0 and ({leaves})", message, op, size, offset, step, extent)
    strides = buffer.strides or numbers.row_major(buffer.extents)
    view = StridedView(buffer.data, buffer.offset, buffer.extents, strides).part(op, numbers)
    keeps_order = buffer.strides is None and isinstance(op, memref.CollapseShapeOp | memref.ExpandShapeOp)
    emitter.bind_buffer(op.results[0], view.buffer, view.shape, None if keeps_order else view.strides, view.offset)


@emits(memref.GetGlobalOp)
def emit_get_global(emitter: Emitter, op: memref.GetGlobalOp) -> None:
    """Variables are not supported, because calls share no memory."""
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
