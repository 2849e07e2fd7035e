"""Calls of registered functions: array descriptors on the stack, and a call of the runtime.

    low.call_registered "env.twice"(%x) outs(%y)          store ptr %x, ptr %arrays
      extents(%n, %n) [memref<?xf32>, memref<?xf32>]  ->  store ptr %extents, ptr %shape
                                                          ...
                                                          call void @weft_call_registered(ptr @name, ptr %arrays, ...)

`runtime/registered_functions.ll` has the layout of a descriptor, which the C header declares as `weft_array`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weft.backends.llvm.types import byte_text
from weft.backends.names import CALL_REGISTERED
from weft.dialects.low_registered import CallRegisteredOp, dlpack_type

if TYPE_CHECKING:
    from weft.backends.llvm.emitter import FunctionEmitter, ModuleEmitter, Rules

_ARRAY: Final = "{ ptr, ptr, i32, i8, i8, i16 }"


def emit_call_registered(emitter: FunctionEmitter, op: CallRegisteredOp) -> None:
    arrays = list(op.arrays())
    rank = sum(len(extents) for _, _, extents in arrays)
    table, shapes = (f"%{emitter.names.fresh(hint)}" for hint in ("arrays", "extents"))
    emitter.entry += [
        f"  {table} = alloca [{max(1, len(arrays))} x {_ARRAY}], align 8",
        f"  {shapes} = alloca [{max(1, rank)} x i64], align 8",
    ]
    first = 0
    for number, (buffer, element, extents) in enumerate(arrays):
        row = emitter.emit(f"getelementptr {_ARRAY}, ptr {table}, i64 {number}", "array")
        shape = emitter.emit(f"getelementptr i64, ptr {shapes}, i64 {first}", "shape")
        for axis, extent in enumerate(extents):
            at = emitter.emit(f"getelementptr i64, ptr {shape}, i64 {axis}", "at")
            emitter.line(f"store i64 {extent if isinstance(extent, int) else emitter.text(extent)}, ptr {at}")
        code, bits = dlpack_type(op, element)
        fields = (
            f"ptr {emitter.text(buffer)}",
            f"ptr {shape}",
            f"i32 {len(extents)}",
            f"i8 {code}",
            f"i8 {bits}",
            "i16 1",
        )
        for field, value in enumerate(fields):
            at = emitter.emit(f"getelementptr {_ARRAY}, ptr {row}, i64 0, i32 {field}", "at")
            emitter.line(f"store {value}, ptr {at}")
        first += len(extents)
    emitter.module.declare(CALL_REGISTERED, f"declare void @{CALL_REGISTERED}(ptr, ptr, i32, i32)")
    name = _name(emitter.module, op.callee.data)
    emitter.forget_tiles()
    emitter.line(f"call void @{CALL_REGISTERED}(ptr {name}, ptr {table}, i32 {len(op.inputs)}, i32 {len(op.outputs)})")


def _name(module: ModuleEmitter, callee: str) -> str:
    key = f"registered {callee}"
    if key not in module.globals:
        module.globals[key] = module.names.fresh("registered.name")
        data = callee.encode() + b"\0"
        module.declare(key, f"@{module.globals[key]} = private constant [{len(data)} x i8] {byte_text(data)}")
    return f"@{module.globals[key]}"


RULES: Final[Rules] = {CallRegisteredOp: emit_call_registered}
