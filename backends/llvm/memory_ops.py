"""Buffers: loads, stores, and the allocation of temporaries.

An address is the buffer's pointer plus an index, aligned to the element. Booleans are bytes in memory: any nonzero byte
reads as true, and 0 or 1 is written. `memref.alloca` becomes an alloca in the entry block, which LLVM promotes to
registers if the indices are constants after unrolling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, MemRefType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import BlockArgument
from xdsl.traits import SymbolTable

from weft.backends.llvm.emitter import NONTEMPORAL
from weft.backends.low_modules import base_and_index, check_stack
from weft.dialects import low
from weft.dialects.aliasing import overlapping
from weft.dialects.low import PARAMS, params_of
from weft.dialects.low_access import AccessMode, AccessPtrOp, PrefetchOp, access_by
from weft.dialects.low_registered import CallRegisteredOp
from weft.dialects.strides import strides_of
from weft.support.cpu_instructions import TABLE_LOOKUP, has_table_lookup
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xdsl.ir import Operation, SSAValue

    from weft.backends.llvm.emitter import FunctionEmitter, Rules
    from weft.backends.llvm.types import ValueType

BUFFER_ALIGNMENT: Final = 64
"""Default alignment of temporaries in bytes: a cache line, and the widest vector."""
_CACHE_LINE_BYTES: Final = 64
"""Bytes fetched by one prefetch."""
_PIECE_BYTES: Final = 16
"""Bytes of the pieces that LLVM splits non-temporal x86 vector stores into if they are aligned to it; otherwise it
splits them into scalars."""
PAGE_BYTES: Final = 4096
"""The maximum alignment of a local buffer."""


@dataclass(frozen=True)
class BufferOperand:
    """Operand `buffer` of a load or store; the index follows it."""

    buffer: int
    is_store: bool
    of_vectors: bool


ACCESSES: Final[Mapping[type[Operation], BufferOperand]] = {
    memref.LoadOp: BufferOperand(0, is_store=False, of_vectors=False),
    memref.StoreOp: BufferOperand(1, is_store=True, of_vectors=False),
    **dict.fromkeys(
        (vector.LoadOp, vector.MaskedLoadOp, low.GatherOp), BufferOperand(0, is_store=False, of_vectors=True)
    ),
    **dict.fromkeys((vector.StoreOp, low.ScatterOp), BufferOperand(1, is_store=True, of_vectors=True)),
    vector.MaskedStoreOp: BufferOperand(0, is_store=True, of_vectors=True),
}


def buffer_attributes(emitter: FunctionEmitter, buffer: SSAValue, op: Operation) -> str:
    """Buffers do not escape, unless their addresses are stored for registered functions, and do not overlap if that is
    promised."""
    type_, length = emitter.module.types.buffer(buffer.type, op)
    reads, writes = usage(buffer)
    words = [] if overlapping(buffer) else ["noalias"]
    if not _is_described(buffer):
        words.append("captures(none)")
    if not writes:
        words.append("readonly")
    elif not reads:
        words.append("writeonly")
    words.append(f"align {type_.bytes}")
    if length:
        words.append(f"dereferenceable({length * type_.bytes})")
    return " ".join(words)


def _is_described(buffer: SSAValue) -> bool:
    users = (use.operation for use in buffer.uses)
    return any(
        isinstance(op, CallRegisteredOp) or (isinstance(op, memref.CastOp) and _is_described(op.dest)) for op in users
    )


def usage(buffer: SSAValue) -> tuple[list[Operation], list[Operation]]:
    """Readers and writers."""
    reads: list[Operation] = []
    writes: list[Operation] = []
    for use in buffer.uses:
        kind = type(use.operation)
        if kind in ACCESSES:
            (writes if ACCESSES[kind].is_store else reads).append(use.operation)
        elif kind is memref.CastOp or kind is memref.ReinterpretCastOp:
            through = usage(use.operation.results[0])
            reads += through[0]
            writes += through[1]
        elif kind not in (memref.DeallocOp, PrefetchOp):
            access = _access_of(use.operation, use.index)
            if access is not AccessMode.WRITE:
                reads.append(use.operation)
            if access is not AccessMode.READ:
                writes.append(use.operation)
    return reads, writes


def _access_of(op: Operation, operand: int) -> AccessMode:
    """Calls have the access mode that the callee declares."""
    if isinstance(op, AccessPtrOp):
        return op.access.data
    if isinstance(op, CallRegisteredOp):
        return access_by(op, op.operands[operand]) or AccessMode.READ
    callee = SymbolTable.lookup_symbol(op, op.callee) if isinstance(op, CallOp) else None
    if isinstance(callee, FuncOp) and low.PARAMS in callee.attributes:
        return low.params_of(callee)[operand].access.data
    return AccessMode.READWRITE


def address(emitter: FunctionEmitter, op: Operation, base: SSAValue, index: SSAValue, *, in_bounds: bool = True) -> str:
    """The element must exist if `in_bounds`."""
    type_, _ = emitter.module.types.buffer(base.type, op)
    # Elements of a reversed view precede its first one.
    backwards = emitter.backwards.get(base)
    if backwards is None:
        backwards = emitter.backwards[base] = may_run_backwards(base)
    keyword = "" if not in_bounds else "inbounds " if backwards else "inbounds nuw "
    pointer, offset = emitter.text(base), emitter.text(index)
    if offset == "0":
        return pointer
    return emitter.emit(f"getelementptr {keyword}{type_.memory}, ptr {pointer}, i64 {offset}", "at")


def may_run_backwards(base: SSAValue) -> bool:
    """Whether a buffer is a parameter that may be a view with negative strides."""
    while isinstance(base.owner, memref.CastOp | memref.ReinterpretCastOp):
        base = base.owner.source
    function = base.owner.parent_op() if isinstance(base, BlockArgument) else None
    if not isinstance(base, BlockArgument) or not isinstance(function, FuncOp) or PARAMS not in function.attributes:
        return False
    params = params_of(function)
    strides = strides_of(params[base.index].type) if base.index < len(params) else None
    return any(stride is None or stride < 0 for stride in strides or ())


def addresses(emitter: FunctionEmitter, op: Operation, base: SSAValue, indices: SSAValue) -> str:
    """Pointers need not be in bounds."""
    type_, _ = emitter.module.types.buffer(base.type, op)
    lanes = emitter.type_of(indices, op)
    pointer, offsets = emitter.text(base), emitter.text(indices)
    return emitter.emit(f"getelementptr {type_.memory}, ptr {pointer}, {lanes.text} {offsets}", "at")


def _loaded(emitter: FunctionEmitter, type_: ValueType, instruction: str) -> str:
    if type_.element != "i1":
        return instruction
    loaded = emitter.emit(instruction, "byte")
    return f"icmp ne {type_.memory} {loaded}, {type_.of('i8').splat('0')}"


def as_stored(emitter: FunctionEmitter, type_: ValueType, text: str) -> str:
    """The memory representation of `text`."""
    if type_.element != "i1":
        return text
    return emitter.emit(f"zext {type_.text} {text} to {type_.memory}", "byte")


def _nontemporal(emitter: FunctionEmitter, op: Operation) -> str:
    flag = op.properties.get("nontemporal")
    if isinstance(flag, IntegerAttr) and flag != BoolAttr.from_bool(False):
        return f", !nontemporal {emitter.module.metadata.shared(NONTEMPORAL)}"
    return ""


def emit_load(emitter: FunctionEmitter, op: Operation) -> str:
    base, index = base_and_index(op, 0)
    type_ = emitter.type_of(op.results[0], op)
    if type_.lanes:
        emitter.holds_vectors = True
    at = address(emitter, op, base, index)
    return _loaded(emitter, type_, f"load {type_.memory}, ptr {at}, align {type_.bytes}{_nontemporal(emitter, op)}")


def emit_store(emitter: FunctionEmitter, op: Operation) -> None:
    value = op.operands[0]
    base, index = base_and_index(op, 1)
    type_ = emitter.type_of(value, op)
    if type_.lanes:
        emitter.holds_vectors = True
    at = address(emitter, op, base, index)
    # LLVM does not vectorise scalar loops with non-temporal stores.
    suffix = _nontemporal(emitter, op) if type_.lanes else ""
    store = f"store {type_.memory} {as_stored(emitter, type_, emitter.text(value))}, ptr {at}, align"
    if suffix and emitter.module.target.architecture == "x86_64":
        _store_nontemporal(emitter, type_, at, store, suffix)
    else:
        emitter.line(f"{store} {type_.bytes}{suffix}")


def _store_nontemporal(emitter: FunctionEmitter, type_: ValueType, at: str, store: str, suffix: str) -> None:
    """Callers guarantee only the alignment of elements, but usually provide `_PIECE_BYTES`."""
    if type_.lanes * type_.bytes % _PIECE_BYTES:
        emitter.line(f"{store} {type_.bytes}")
        return
    emitter.has_nontemporal_stores = True
    past, through, stored = (emitter.names.fresh(label) for label in ("past.caches", "through.caches", "stored"))
    number = emitter.emit(f"ptrtoint ptr {at} to i64", "number")
    beyond = emitter.emit(f"and i64 {number}, {_PIECE_BYTES - 1}", "beyond")
    aligned = emitter.emit(f"icmp eq i64 {beyond}, 0", "aligned")
    emitter.line(f"br i1 {aligned}, label %{past}, label %{through}")
    for label, rest in ((past, f"{_PIECE_BYTES}{suffix}"), (through, str(type_.bytes))):
        emitter.start_block(label)
        emitter.line(f"{store} {rest}")
        emitter.line(f"br label %{stored}")
    emitter.start_block(stored)


def emit_alloca(emitter: FunctionEmitter, op: Operation) -> None:
    result = op.results[0]
    type_, length = emitter.module.types.buffer(result.type, op)
    if length is None:
        raise CompileError.at(op, f"a local buffer needs a static size, got {result.type}")
    emitter.stack_bytes += length * type_.bytes
    check_stack(op, emitter.name, emitter.stack_bytes)
    aligned = _alignment(op)
    if aligned > PAGE_BYTES:
        raise CompileError.at(op, f"local buffers are aligned to {PAGE_BYTES} bytes at most, got {aligned}")
    name = emitter.name_of(result, "local")
    emitter.entry.append(f"  {name} = alloca [{length} x {type_.memory}], align {aligned}")


def _alignment(op: Operation) -> int:
    asked = op.properties.get("alignment")
    return max(BUFFER_ALIGNMENT, asked.value.data if isinstance(asked, IntegerAttr) else 0)


_SMALL_BYTES: Final = 4 << 10
"""Bytes of stack for a buffer whose size is known only at run time; larger ones are allocated by the runtime."""
_SMALL_BYTES_OF_FUNCTION: Final = 64 << 10


def emit_sized_alloc(emitter: FunctionEmitter, op: Operation) -> None:
    """Small buffers are on the stack, others are allocated by the runtime. Iterations share the stack memory, because
    they free the buffer."""
    result = op.results[0]
    _, length = emitter.module.types.buffer(result.type, op)
    if length is not None or emitter.small_bytes + _SMALL_BYTES > _SMALL_BYTES_OF_FUNCTION:
        emit_alloc(emitter, op)
        return
    emitter.small_bytes += _SMALL_BYTES
    bytes_ = _bytes(emitter, op)
    small = emitter.small_buffers[result] = f"%{emitter.names.fresh('small')}"
    emitter.entry.append(f"  {small} = alloca [{_SMALL_BYTES} x i8], align {BUFFER_ALIGNMENT}")
    fits = emitter.emit(f"icmp ule i64 {bytes_}, {_SMALL_BYTES}", "is.small")
    before, large, after = emitter.block, emitter.names.fresh("large"), emitter.names.fresh("allocated")
    emitter.line(f"br i1 {fits}, label %{after}, label %{large}")
    emitter.start_block(large)
    allocated = emitter.emit(_allocation(emitter, bytes_), "large.buffer")
    emitter.line(f"br label %{after}")
    emitter.start_block(after)
    emitter.name_of(result, "buffer")
    emitter.line(f"{emitter.text(result)} = phi ptr [ {small}, %{before} ], [ {allocated}, %{large} ]")


def emit_alloc(emitter: FunctionEmitter, op: Operation) -> None:
    """The runtime aligns buffers to a cache line."""
    allocation = _allocation(emitter, _bytes(emitter, op))
    emitter.name_of(op.results[0], "buffer")
    emitter.line(f"{emitter.text(op.results[0])} = {allocation}")


def _bytes(emitter: FunctionEmitter, op: Operation) -> str:
    result = op.results[0]
    type_, length = emitter.module.types.buffer(result.type, op)
    if _alignment(op) > BUFFER_ALIGNMENT:
        raise CompileError.at(op, f"temporaries are aligned to {BUFFER_ALIGNMENT} bytes, got {_alignment(op)}")
    if length is None:
        extent = emitter.text(op.operands[0])
        return emitter.emit(f"mul nuw nsw i64 {extent}, {type_.bytes}", "bytes") if type_.bytes > 1 else extent
    return str(length * type_.bytes)


def _allocation(emitter: FunctionEmitter, bytes_: str) -> str:
    emitter.module.declare(
        "weft_alloc", f"declare noalias nonnull align {BUFFER_ALIGNMENT} ptr @weft_alloc(i64) nounwind allocsize(0)"
    )
    return f"call ptr @weft_alloc(i64 {bytes_})"


def emit_sized_dealloc(emitter: FunctionEmitter, op: Operation) -> None:
    small = emitter.small_buffers.get(op.operands[0])
    if small is None:
        emit_dealloc(emitter, op)
        return
    is_small = emitter.emit(f"icmp eq ptr {emitter.text(op.operands[0])}, {small}", "is.small")
    free, after = emitter.names.fresh("free"), emitter.names.fresh("freed")
    emitter.line(f"br i1 {is_small}, label %{after}, label %{free}")
    emitter.start_block(free)
    emit_dealloc(emitter, op)
    emitter.line(f"br label %{after}")
    emitter.start_block(after)


def emit_dealloc(emitter: FunctionEmitter, op: Operation) -> None:
    emitter.module.declare("weft_free", "declare void @weft_free(ptr captures(none)) nounwind")
    emitter.line(f"call void @weft_free(ptr {emitter.text(op.operands[0])})")


def emit_view(emitter: FunctionEmitter, op: Operation) -> None:
    emitter.bind(op.results[0], address(emitter, op, op.operands[0], op.operands[1]))


def emit_masked_load(emitter: FunctionEmitter, op: Operation) -> str:
    base, index = base_and_index(op, 0, others=2)
    mask, otherwise = op.operands[2:]
    emitter.holds_vectors = True
    type_ = emitter.type_of(op.results[0], op)
    # If no lane is read, the address may be outside of the buffer.
    at = address(emitter, op, base, index, in_bounds=False)
    other = as_stored(emitter, type_, emitter.text(otherwise))
    load = f"call {type_.memory} @llvm.masked.load.{_memory_suffix(type_)}.p0"
    masked = f"{type_.of('i1').text} {emitter.text(mask)}, {type_.memory} {other}"
    return _loaded(emitter, type_, f"{load}(ptr align {type_.bytes} {at}, {masked})")


def emit_masked_store(emitter: FunctionEmitter, op: Operation) -> None:
    base, index = base_and_index(op, 0, others=2)
    mask, value = op.operands[2:]
    emitter.holds_vectors = True
    type_ = emitter.type_of(value, op)
    at = address(emitter, op, base, index, in_bounds=False)
    stored = as_stored(emitter, type_, emitter.text(value))
    emitter.line(
        f"call void @llvm.masked.store.{_memory_suffix(type_)}.p0({type_.memory} {stored}, "
        f"ptr align {type_.bytes} {at}, {type_.of('i1').text} {emitter.text(mask)})"
    )


def _memory_suffix(type_: ValueType) -> str:
    return (type_.of("i8") if type_.element == "i1" else type_).suffix


def _mask_text(emitter: FunctionEmitter, op: Operation, type_: ValueType, operand: int) -> str:
    i1 = type_.of("i1")
    return i1.typed(emitter.text(op.operands[operand]) if len(op.operands) > operand else i1.splat("true"))


def emit_gather(emitter: FunctionEmitter, op: Operation) -> str:
    type_ = emitter.type_of(op.results[0], op)
    emitter.holds_vectors = True
    if _is_table(emitter, op, type_):
        return _looked_up(emitter, op, type_)
    at = addresses(emitter, op, op.operands[0], op.operands[1])
    gather = f"call {type_.memory} @llvm.masked.gather.{_memory_suffix(type_)}.v{type_.lanes}p0"
    masked = f"{_mask_text(emitter, op, type_, 2)}, {type_.memory} zeroinitializer"
    return _loaded(emitter, type_, f"{gather}(<{type_.lanes} x ptr> align {type_.bytes} {at}, {masked})")


_TABLE_BYTES: Final = 256


def _is_table(emitter: FunctionEmitter, op: Operation, type_: ValueType) -> bool:
    """Whether a table that fits in registers is read."""
    base = op.operands[0].type
    is_small = isinstance(base, MemRefType) and base.get_shape() == (_TABLE_BYTES,)
    return is_small and type_.text.endswith("x i8>") and type_.lanes <= 64 and has_table_lookup(emitter.module.target)


def _looked_up(emitter: FunctionEmitter, op: Operation, type_: ValueType) -> str:
    """Bytes of the two halves of the table, in two vectors each, are selected; then by the highest bit of the index."""
    base, indices = op.operands[0], op.operands[1]
    lanes, wide = type_.lanes, "<64 x i8>"
    index = emitter.type_of(indices, op)
    narrow = emitter.emit(f"trunc {index.text} {emitter.text(indices)} to {type_.text}", "index")
    if lanes < 64:
        places = ", ".join(f"i32 {lane}" if lane < lanes else "i32 poison" for lane in range(64))
        narrow = emitter.emit(
            f"shufflevector {type_.text} {narrow}, {type_.text} poison, <64 x i32> <{places}>", "index"
        )
    parts: list[str] = []
    for part in range(4):
        at = emitter.emit(f"getelementptr i8, ptr {emitter.text(base)}, i64 {64 * part}", "part")
        parts.append(emitter.emit(f"load {wide}, ptr {at}, align 1", "part"))
    halves = [
        emitter.emit(f"call {wide} @llvm.{TABLE_LOOKUP}({wide} {low}, {wide} {narrow}, {wide} {high})", "half")
        for low, high in (parts[:2], parts[2:])
    ]
    is_high = emitter.emit(f"icmp slt {wide} {narrow}, zeroinitializer", "is_high")
    found = emitter.emit(f"select <64 x i1> {is_high}, {wide} {halves[1]}, {wide} {halves[0]}", "found")
    if lanes < 64:
        places = ", ".join(f"i32 {lane}" for lane in range(lanes))
        found = emitter.emit(f"shufflevector {wide} {found}, {wide} poison, <{lanes} x i32> <{places}>", "found")
    mask = _mask_text(emitter, op, type_, 2)
    return f"select {mask}, {type_.text} {found}, {type_.text} zeroinitializer"


def emit_scatter(emitter: FunctionEmitter, op: Operation) -> None:
    value, base, indices = op.operands[0], op.operands[1], op.operands[2]
    type_ = emitter.type_of(value, op)
    emitter.holds_vectors = True
    at = addresses(emitter, op, base, indices)
    stored = as_stored(emitter, type_, emitter.text(value))
    pointers = f"<{type_.lanes} x ptr> align {type_.bytes}"
    emitter.line(
        f"call void @llvm.masked.scatter.{_memory_suffix(type_)}.v{type_.lanes}p0({type_.memory} {stored}, "
        f"{pointers} {at}, {_mask_text(emitter, op, type_, 3)})"
    )


def emit_pointer(emitter: FunctionEmitter, op: Operation) -> None:
    base, index = base_and_index(op, 0)
    emitter.bind(op.results[0], address(emitter, op, base, index))


def emit_prefetch(emitter: FunctionEmitter, op: Operation) -> None:
    """One instruction per cache line."""
    base, index = base_and_index(op, 0)
    type_, _ = emitter.module.types.buffer(base.type, op)
    at = address(emitter, op, base, index, in_bounds=False)
    lanes = cast("IntegerAttr", op.properties["lanes"]).value.data
    for offset in range(0, lanes * type_.bytes, _CACHE_LINE_BYTES):
        line = at if offset == 0 else emitter.emit(f"getelementptr i8, ptr {at}, i64 {offset}", "at")
        emitter.line(f"call void @llvm.prefetch.p0(ptr {line}, i32 {int('for_write' in op.properties)}, i32 3, i32 1)")


RULES: Final[Rules] = {
    AccessPtrOp: emit_pointer,
    PrefetchOp: emit_prefetch,
    **dict.fromkeys((memref.LoadOp, vector.LoadOp), emit_load),
    **dict.fromkeys((memref.StoreOp, vector.StoreOp), emit_store),
    memref.AllocaOp: emit_alloca,
    memref.AllocOp: emit_sized_alloc,
    memref.DeallocOp: emit_sized_dealloc,
    memref.ViewOp: emit_view,
    vector.MaskedLoadOp: emit_masked_load,
    vector.MaskedStoreOp: emit_masked_store,
    low.GatherOp: emit_gather,
    low.ScatterOp: emit_scatter,
}
