"""Data-dependent results in C, and the interface by which programs set their allocator.

low.return_result %x extents(%k)      ->   weft_return_result(y, x, 8u * (size_t)k);
  memref<?x2xf32> in %y                    y[1] = k;
                                           y[2] = 2;
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weft.backends.names import RETURN_RESULT, SET_ALLOCATOR
from weft.dialects.element_types import bytes_of
from weft.dialects.low_results import ReturnResultOp
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from weft.backends.c_family.emitter import FunctionEmitter, Rules

ALLOCATION: Final = """\
#ifndef WEFT_ALLOCATION
#define WEFT_ALLOCATION
/* Allocates a result whose size depends on data: "old" is NULL, or the memory of an earlier result, which is not needed
 * any more. Returns memory for "bytes" bytes, at least 1, that is aligned as that of malloc. */
typedef void *(*weft_allocator)(void *context, void *old, int64_t bytes);

/* Sets the function that allocates results from now on; NULL stands for realloc of the C library. */
void weft_set_allocator(weft_allocator function, void *context);
#endif
"""
"""The declarations, in C99 and, within `extern "C"`, in C++."""

_SET: Final = """\
#if defined(__GNUC__)
#define WEFT_COMMON __attribute__((weak))
#else
#define WEFT_COMMON
#endif

WEFT_COMMON weft_allocator weft_allocator_function;
WEFT_COMMON void *weft_allocator_context;

WEFT_COMMON void weft_set_allocator(weft_allocator function, void *context) {
  weft_allocator_function = function;
  weft_allocator_context = context;
}"""
_RETURN: Final = """\
// Copies a result to memory of the allocator, and leaves the address in the descriptor.
static void weft_return_result(void *descriptor, const void *data, size_t bytes) {
  void *memory;
  const size_t size = bytes > 0 ? bytes : 1;
  memcpy(&memory, descriptor, sizeof memory);
  memory = weft_allocator_function == NULL ? realloc(memory, size)
                                           : (*weft_allocator_function)(weft_allocator_context, memory, (int64_t)size);
  if (memory == NULL) {
    fprintf(stderr, "weft: out of memory allocating %zu bytes\\n", bytes);
    abort();
  }
  memcpy(descriptor, &memory, sizeof memory);
  if (bytes > 0) memcpy(memory, data, bytes);
}"""

HELPERS: Final = {SET_ALLOCATOR: _SET, RETURN_RESULT: _RETURN}
"""All are part of a program with data-dependent results."""


def emit_return_result(emitter: FunctionEmitter, op: ReturnResultOp) -> None:
    if emitter.language.kind != "c":
        raise CompileError.at(op, "results whose size depends on data are returned by functions of the CPU")
    for helper in HELPERS:
        emitter.module.helper(helper)
    extents = [str(e) if isinstance(e, int) else emitter.expr(e).text for e in op.sizes()]
    size = " * ".join([f"{bytes_of(op.shape.element_type)}u", *(f"(size_t)({extent})" for extent in extents)])
    descriptor = emitter.expr(op.descriptor).text
    emitter.line(f"{RETURN_RESULT}({descriptor}, {emitter.expr(op.source).text}, {size});")
    for axis, extent in enumerate(extents):
        emitter.line(f"{descriptor}[{axis + 1}] = {extent};")


RULES: Final[Rules] = {ReturnResultOp: emit_return_result}
