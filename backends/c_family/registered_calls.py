"""Calls of registered functions in C, and the C interface by which programs set them.

low.call_registered "env.twice"(%x) outs(%y)    ->   weft_call_registered("env.twice", (weft_array[]){
  extents(%n, %n) [memref<?xf32>, memref<?xf32>]       {(void *)x, (const int64_t[]){n}, 1, 2, 32, 1},
                                                       {(void *)y, (const int64_t[]){n}, 1, 2, 32, 1}}, 1, 1);
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weft.backends.names import CALL_REGISTERED, string_literal
from weft.dialects.low_registered import CallRegisteredOp, dlpack_type
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from weft.backends.c_family.emitter import FunctionEmitter, Rules

REGISTRATION: Final = """\
#ifndef WEFT_REGISTRATION
#define WEFT_REGISTRATION
/* An array that a function gets, whose elements lie row by row: "code" and "bits" say their type as in DLPack's
 * DLDataType: 0 signed integers, 1 unsigned ones, 2 IEEE floats, 4 bfloat16, 6 bool. "lanes" is 1. */
typedef struct weft_array {
  void *data;
  const int64_t *shape;
  int32_t rank;
  uint8_t code, bits;
  uint16_t lanes;
} weft_array;

/* A function that the program calls by a name: it reads the first "inputs" arrays, writes every element of the
 * "outputs" ones behind them, keeps no pointer, and returns 0. */
typedef int32_t (*weft_function)(void *context, const char *name, const weft_array *arrays, int32_t inputs,
                                 int32_t outputs);

/* Sets the function of a name; NULL for a name stands for all that have none of their own. Returns 0, or 1 when there
 * is no memory. */
int32_t weft_set_function(const char *name, weft_function function, void *context);

/* What went wrong in calls in this thread since this function was called last, NULL for nothing: a name without a
 * function, or a function that returned another number than 0. What such a function had to write is zero then. */
const char *weft_failure(void);
#endif
"""
"""The declarations, in C99 and, within `extern "C"`, in C++."""

_SET_FUNCTION: Final = """\
#if defined(__GNUC__)
#define WEFT_SHARED __attribute__((weak))
#else
#define WEFT_SHARED
#endif

struct weft_entry {
  struct weft_entry *next;
  const char *name;
  weft_function function;
  void *context;
};
WEFT_SHARED struct weft_entry *weft_entries;

WEFT_SHARED int32_t weft_set_function(const char *name, weft_function function, void *context) {
  struct weft_entry *entry = malloc(sizeof *entry);
  char *own = name == NULL ? NULL : malloc(strlen(name) + 1);
  if (entry == NULL || (name != NULL && own == NULL)) {
    free(entry);
    free(own);
    return 1;
  }
  if (own != NULL) memcpy(own, name, strlen(name) + 1);
  entry->next = weft_entries;
  entry->name = own;
  entry->function = function;
  entry->context = context;
  weft_entries = entry;
  return 0;
}"""
_FAILURE: Final = """\
#if defined(__GNUC__)
#define WEFT_THREAD __thread
#else
#define WEFT_THREAD
#endif

WEFT_SHARED WEFT_THREAD char weft_failure_text[256];
WEFT_SHARED WEFT_THREAD bool weft_failed;

WEFT_SHARED const char *weft_failure(void) {
  const bool failed = weft_failed;
  weft_failed = false;
  return failed ? weft_failure_text : NULL;
}"""
_CALL: Final = """\
// Calls the function that is set under a name; its results are zeros where there is none, or when it fails.
static void weft_call_registered(const char *name, const weft_array *arrays, int32_t inputs, int32_t outputs) {
  const struct weft_entry *found = NULL, *any = NULL;
  int32_t status = 0;
  for (const struct weft_entry *entry = weft_entries; entry != NULL && found == NULL; entry = entry->next) {
    if (entry->name == NULL && any == NULL) any = entry;
    if (entry->name != NULL && strcmp(entry->name, name) == 0) found = entry;
  }
  if (found == NULL) found = any;
  if (found != NULL && found->function != NULL) {
    status = found->function(found->context, name, arrays, inputs, outputs);
    if (status == 0) return;
    if (!weft_failed)
      snprintf(weft_failure_text, 256, "weft: the function set as '%s' failed with status %d", name, (int)status);
  } else if (!weft_failed) {
    snprintf(weft_failure_text, 256, "weft: no function is set under the name '%s' (weft_set_function)", name);
    fprintf(stderr, "%s\\n", weft_failure_text);
  }
  weft_failed = true;
  for (int32_t at = inputs; at < inputs + outputs; ++at) {
    size_t bytes = (arrays[at].bits + 7u) / 8u;
    for (int32_t axis = 0; axis < arrays[at].rank; ++axis) bytes *= (size_t)arrays[at].shape[axis];
    if (bytes > 0) memset(arrays[at].data, 0, bytes);
  }
}"""

HELPERS: Final = {"weft_set_function": _SET_FUNCTION, "weft_failure": _FAILURE, CALL_REGISTERED: _CALL}
"""All are part of a program that calls registered functions."""


def emit_call_registered(emitter: FunctionEmitter, op: CallRegisteredOp) -> None:
    if emitter.language.kind != "c":
        raise CompileError.at(op, f'"{op.callee.data}" is a function of the CPU: kernels cannot call it')
    rows: list[str] = []
    for buffer, element, extents in op.arrays():
        texts = [str(e) if isinstance(e, int) else emitter.expr(e).text for e in extents]
        shape = f"(const int64_t[]){{{', '.join(texts)}}}" if texts else "NULL"
        code, bits = dlpack_type(op, element)
        rows.append(f"{{(void *){emitter.expr(buffer).text}, {shape}, {len(texts)}, {code}, {bits}, 1}}")
    table = f"(weft_array[]){{{', '.join(rows)}}}" if rows else "NULL"
    for helper in HELPERS:
        emitter.module.helper(helper)
    emitter.line(f"{CALL_REGISTERED}({string_literal(op.callee.data)}, {table}, {len(op.inputs)}, {len(op.outputs)});")


RULES: Final[Rules] = {CallRegisteredOp: emit_call_registered}
