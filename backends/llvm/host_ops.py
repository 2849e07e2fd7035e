"""Host functions of GPU programs: they compute extents, and allocate temporaries and launch kernels through the
runtime.

    %T = memref.alloc(%n) : memref<?xf32>            %T = call ptr @weft_alloc(i64 %bytes)
    %w = memref.get_global @w : memref<4xf32>    ->  %w = call ptr @weft_constant(ptr @w, i64 16)
    %c = memref.load %p[%zero] : memref<1xi1>         %byte = call i8 @weft_read_byte(ptr %p)
    low.launch @k blocks(%g, ...) ... (%A, %n)       store ptr %A, ptr %slots
                                                     store i64 %n, ptr %slot
                                                     call void @weft_launch(ptr @k.name, i64 %g, ..., ptr %places)

Host code only passes pointers (or runtime handles) on. The arguments of a kernel are stored in consecutive 8-byte
slots; the launch receives an array of pointers to them, as in CUDA's driver API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xdsl.dialects import memref

from weft.backends.llvm import arith_ops, call_ops, control_ops, memory_ops
from weft.backends.llvm.types import byte_text
from weft.backends.names import quoted, symbol_name
from weft.dialects.integer_arith import constant_integer
from weft.dialects.low_kernel import LaunchOp, is_host_condition
from weft.dialects.low_registered import CallRegisteredOp
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Operation

    from weft.backends.llvm.emitter import FunctionEmitter, Rules

SYMBOLS: Final = ("weft_alloc", "weft_free", "weft_constant", "weft_read_byte", "weft_launch")
"""The functions that a device's runtime defines."""


def emit_get_constant(emitter: FunctionEmitter, op: memref.GetGlobalOp) -> str:
    call_ops.emit_get_global(emitter, op)
    result = op.results[0]
    type_, length = emitter.module.types.buffer(result.type, op)
    emitter.module.declare("weft_constant", "declare ptr @weft_constant(ptr, i64) nounwind")
    return f"call ptr @weft_constant(ptr {emitter.text(result)}, i64 {(length or 0) * type_.bytes})"


def emit_condition(emitter: FunctionEmitter, op: Operation) -> str:
    """The runtime reads it from the device after it was computed."""
    emitter.module.declare("weft_read_byte", "declare i8 @weft_read_byte(ptr) nounwind")
    byte = emitter.emit(f"call i8 @weft_read_byte(ptr {emitter.text(op.operands[0])})", "byte")
    return f"icmp ne i8 {byte}, 0"


def emit_view(emitter: FunctionEmitter, op: Operation) -> None:
    """The start of a buffer under another type: some devices cannot address parts of buffers."""
    if constant_integer(op.operands[1]) != 0:
        raise CompileError.at(op, "host code of a GPU program views buffers from their start on")
    call_ops.emit_cast(emitter, op)


def emit_launch(emitter: FunctionEmitter, op: LaunchOp) -> None:
    slots, places = (f"%{emitter.names.fresh(hint)}" for hint in ("slots", "places"))
    count = max(1, len(op.arguments))
    emitter.entry += [f"  {slots} = alloca [{count} x i64], align 8", f"  {places} = alloca [{count} x ptr], align 8"]
    for number, argument in enumerate(op.arguments):
        type_ = emitter.type_of(argument, op)
        slot = emitter.emit(f"getelementptr i64, ptr {slots}, i64 {number}", "slot")
        place = emitter.emit(f"getelementptr ptr, ptr {places}, i64 {number}", "place")
        emitter.line(f"store ptr {slot}, ptr {place}")
        stored = memory_ops.as_stored(emitter, type_, emitter.text(argument))
        emitter.line(f"store {type_.memory} {stored}, ptr {slot}")
    extents = ", ".join(f"i64 {emitter.text(extent)}" for extent in (*op.grid, *op.block))
    emitter.module.declare("weft_launch", f"declare void @weft_launch(ptr, {', '.join(['i64'] * 6)}, ptr) nounwind")
    emitter.line(f"call void @weft_launch(ptr {_name(emitter, op.kernel.string_value())}, {extents}, ptr {places})")


def _name(emitter: FunctionEmitter, kernel: str) -> str:
    """A C string. No other global has the name, because kernels are symbols of the module."""
    module = emitter.module
    if kernel not in module.globals:
        symbol = symbol_name(kernel)
        module.globals[kernel] = quoted(module.names.fresh(f"{symbol}.name"))
        data = symbol.encode() + b"\0"
        module.declare(kernel, f"@{module.globals[kernel]} = private constant [{len(data)} x i8] {byte_text(data)}")
    return f"@{module.globals[kernel]}"


HOST_RULES: Final[Rules] = {
    **arith_ops.RULES,
    **call_ops.RULES,
    **control_ops.RULES,
    memref.AllocOp: memory_ops.emit_alloc,
    memref.DeallocOp: memory_ops.emit_dealloc,
    memref.GetGlobalOp: emit_get_constant,
    memref.LoadOp: emit_condition,
    memref.ViewOp: emit_view,
    LaunchOp: emit_launch,
}


def check_host_functions(functions: Iterable[FuncOp]) -> None:
    """Raises `CompileError` at an op that the host cannot execute, such as an access to device memory."""
    for function in functions:
        for op in function.walk():
            if isinstance(op, CallRegisteredOp):
                raise CompileError.at(
                    op,
                    f'graph.call_dps "{op.callee.data}": functions that are registered get arrays in the memory of the '
                    "CPU, which a GPU program has none of; build it for llvm or c",
                )
            is_access = isinstance(op, memref.LoadOp) and not is_host_condition(op)
            if is_access or (op is not function and type(op) not in HOST_RULES):
                touches = isinstance(op, memref.LoadOp | memref.StoreOp)
                raise CompileError.at(
                    op,
                    f"host code of a GPU program computes extents and starts kernels; {op.name} is for kernels"
                    + (": bind a loop around it to a GPU axis" if touches else ""),
                )
