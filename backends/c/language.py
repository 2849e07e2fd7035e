"""C99. 16-bit floats are represented by their bits."""

from __future__ import annotations

from typing import Final

from weft.backends.c_family import registered_calls, results, tile_ops
from weft.backends.c_family.language import GNU_MAY_ALIAS, Language
from weft.backends.names import KEYWORDS, reserved

_ONE_OR_TWO: Final = {
    **{"absf": "fabs", "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan"},
    **{"atan2": "atan2", "atanh": "atanh", "cbrt": "cbrt", "ceil": "ceil", "copysign": "copysign", "cos": "cos"},
    **{"cosh": "cosh", "erf": "erf", "exp": "exp", "exp2": "exp2", "expm1": "expm1", "floor": "floor", "fma": "fma"},
    **{"log": "log", "log10": "log10", "log1p": "log1p", "log2": "log2", "powf": "pow", "round": "round"},
    **{"remf": "fmod", "roundeven": "rint", "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "tan": "tan", "tanh": "tanh"},
    **{"trunc": "trunc", "maxnumf": "fmax", "minnumf": "fmin"},
}
"""Op -> function of math.h; that of float has the suffix f."""
MATH_H: Final = {op: (f"{name}f", name) for op, name in _ONE_OR_TWO.items()}

_MATH: Final = frozenset(name for pair in MATH_H.values() for name in pair)


_BITCASTS: Final = (("f32", "i32"), ("i32", "f32"), ("f64", "i64"), ("i64", "f64"))


def _bitcast(source: str, target: str) -> str:
    return (
        f"$inline ${target} weft_{source}_as_{target}(${source} x) {{\n"
        f"  ${target} result;\n  memcpy(&result, &x, sizeof result);\n  return result;\n}}"
    )


_ALLOC: Final = """\
// Memory for so many elements; aborts when there is none.
static void *weft_alloc(size_t count, size_t size) {
  void *room = count > (size_t)-1 / size ? NULL : malloc(count > 0 ? count * size : 1);
  if (room == NULL) {
    fprintf(stderr, "weft: out of memory: %zu elements of %zu bytes\\n", count, size);
    abort();
  }
  return room;
}"""

MAY_ALIAS: Final = f"""\
#if defined(__GNUC__)
#define WEFT_MAY_ALIAS {GNU_MAY_ALIAS}
#else
#define WEFT_MAY_ALIAS
#endif"""
_NO_CONTRACTION: Final = """\
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=off")
#else
#pragma STDC FP_CONTRACT OFF
#endif"""

C: Final = Language(
    name="C",
    kind="c",
    types={
        **{"i1": "bool", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t"},
        **{"f16": "weft_f16", "bf16": "weft_bf16", "f32": "float", "f64": "double", "ptr": "void *"},
        **{"idx32": "int", "idx64": "int64_t"},
    },
    unsigned={
        **{f"i{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
        **{"idx32": "uint32_t", "idx64": "uint64_t"},
    },
    functions=MATH_H,
    helpers={
        **{f"weft_{a}_as_{b}": _bitcast(a, b) for a, b in _BITCASTS},
        "weft_alloc": _ALLOC,
        **registered_calls.HELPERS,
        **results.HELPERS,
        **tile_ops.HELPERS,
    },
    reserved=KEYWORDS | reserved("c macros") | _MATH | {"signbit", "malloc", "free", "abort", "memcpy", "fprintf"},
    reserved_symbols=KEYWORDS | reserved("c macros") | reserved("c symbols"),
    pointer_types={"i1": "uint8_t"},
    no_contraction=_NO_CONTRACTION,
    shared_type="typedef {type} WEFT_MAY_ALIAS {name};",
    unroll=lambda trips: f"WEFT_UNROLL({trips})",
    lanes=lambda lanes: f"WEFT_LANES({max(lanes // 2, 1)})",
)
