"""Data-dependent results: the runtime copies them to memory of the caller's allocator.

low.return_result %x extents(%k)       ->   call void @weft_return_result(ptr %y, ptr %x, i64 %bytes)
  memref<?x2xf32> in %y                     store i64 %k, ptr %y + 8; store i64 2, ptr %y + 16
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weft.backends.names import RETURN_RESULT
from weft.dialects.element_types import bytes_of
from weft.dialects.low_results import ReturnResultOp

if TYPE_CHECKING:
    from weft.backends.llvm.emitter import FunctionEmitter, Rules


def emit_return_result(emitter: FunctionEmitter, op: ReturnResultOp) -> None:
    emitter.module.declare(RETURN_RESULT, f"declare void @{RETURN_RESULT}(ptr, ptr, i64)")
    extents = [str(e) if isinstance(e, int) else emitter.text(e) for e in op.sizes()]
    size, descriptor = str(bytes_of(op.shape.element_type)), emitter.text(op.descriptor)
    for extent in extents:
        size = emitter.emit(f"mul i64 {size}, {extent}", "bytes")
    emitter.line(f"call void @{RETURN_RESULT}(ptr {descriptor}, ptr {emitter.text(op.source)}, i64 {size})")
    for axis, extent in enumerate(extents):
        at = emitter.emit(f"getelementptr i64, ptr {descriptor}, i64 {axis + 1}", "at")
        emitter.line(f"store i64 {extent}, ptr {at}")


RULES: Final[Rules] = {ReturnResultOp: emit_return_result}
