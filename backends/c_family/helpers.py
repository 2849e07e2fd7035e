"""Helper functions for operations without an operator in C.

A helper is named by operation and types: `weft_floordiv_i32`, `weft_f32_to_bf16`. Texts are templates (`$T` the type,
`$U` the unsigned type of the same size, `$inline`, and types of low such as `$i32`); a language may override them.
"""

from __future__ import annotations

import re
from string import Template
from typing import TYPE_CHECKING, Final

from weft.support.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.backends.c_family.language import Language


def unary_helpers(expressions: Mapping[str, str]) -> dict[str, str]:
    """`weft_f32_as_i32` converts from f32 to i32, `weft_clz_i32` is on i32."""
    texts: dict[str, str] = {}
    for name, expression in expressions.items():
        _, first, *conversion, last = name.split("_")
        texts[name] = f"$inline ${last} {name}(${first if conversion else last} x) {{\n  return {expression};\n}}"
    return texts


_OF_TWO: Final = {
    "div": ("a / b, rounded towards zero; a / 0 is 0.", "b == 0 ? 0 : b == -1 ? ($T)(0 - ($W)a) : ($T)(a / b)"),
    "rem": ("a - b * (a / b); 0 when b is 0.", "b == 0 || b == -1 ? 0 : ($T)(a % b)"),
    "udiv": ("a / b of unsigned numbers; a / 0 is 0.", "b == 0 ? 0 : ($T)(($U)a / ($U)b)"),
    "urem": ("The remainder of a / b of unsigned numbers; 0 when b is 0.", "b == 0 ? 0 : ($T)(($U)a % ($U)b)"),
    "uceildiv": (
        "a / b of unsigned numbers, rounded up; a / 0 is 0.",
        "b == 0 ? 0 : ($T)(($U)a / ($U)b + (($U)a % ($U)b != 0))",
    ),
    "maximum": (
        "The greater one, NaN when either is; -0 is less than +0.",
        "a != a || a > b ? a : b != b || b > a ? b : signbit(a) ? b : a",
    ),
    "minimum": (
        "The lesser one, NaN when either is; -0 is less than +0.",
        "a != a || a < b ? a : b != b || b < a ? b : signbit(a) ? a : b",
    ),
}
"""Helper with two parameters -> comment and expression."""
_ROUNDED_QUOTIENTS: Final = {"floordiv": ("down", "-", "!="), "ceildiv": ("up", "+", "==")}
_BY_TYPE: Final = {
    **{
        family: f"// {comment}\n$inline $T $name($T a, $T b) {{\n  return {expression};\n}}"
        for family, (comment, expression) in _OF_TWO.items()
    },
    **{
        family: f"""\
// a / b, rounded {direction}; a / 0 is 0.
$inline $T $name($T a, $T b) {{
  if (b == 0) return 0;
  if (b == -1) return ($T)(0 - ($W)a);
  return ($T)(a / b {sign} (a % b != 0 && (a < 0) {signs} (b < 0)));
}}"""
        for family, (direction, sign, signs) in _ROUNDED_QUOTIENTS.items()
    },
    "popcount": """\
// How many bits are set.
$inline $T $name($T a) {
  $U rest = ($U)a;
  $T count = 0;
  while (rest != 0) {
    rest = ($U)(rest & (rest - 1));
    ++count;
  }
  return count;
}""",
    "clz": """\
// Zero bits in front of the first set one.
$inline $T $name($T a) {
  $U rest = ($U)a;
  $T count = $bits;
  while (rest != 0) {
    rest = ($U)(rest >> 1);
    --count;
  }
  return count;
}""",
    "ctz": """\
// Zero bits behind the last set one.
$inline $T $name($T a) {
  $U rest = ($U)a;
  $T count = 0;
  if (rest == 0) return $bits;
  while ((rest & 1) == 0) {
    rest = ($U)(rest >> 1);
    ++count;
  }
  return count;
}""",
}
_NAMED: Final = {
    "weft_f16_to_f32": """\
$inline $f32 weft_f16_to_f32($f16 x) {
  const $u32 size = x & 0x7FFFu, sign = (x & 0x8000u) << 16;
  if (size < 0x0400u) return ($f32)size * ((x & 0x8000u) != 0 ? -0x1p-24f : 0x1p-24f);
  const $u32 offset = size >= 0x7C00u ? 0x70000000u : 0x38000000u;
  return weft_i32_as_f32(($i32)(sign | ((size << 13) + offset)));
}""",
    **unary_helpers(
        {
            "weft_bf16_to_f32": "weft_i32_as_f32(($i32)(($u32)x << 16))",
            "weft_f64_to_f16": "weft_round_f64(x, 10, -14, 0x7C00u)",
            "weft_f32_to_f16": "weft_round_f64(x, 10, -14, 0x7C00u)",
            "weft_f64_to_bf16": "weft_round_f64(x, 7, -126, 0x7F80u)",
        }
    ),
    "weft_f32_to_bf16": """\
// Rounded to nearest, ties to even; a NaN stays one.
$inline $bf16 weft_f32_to_bf16($f32 x) {
  const $u32 bits = ($u32)weft_f32_as_i32(x);
  if (x != x) return ($bf16)(bits >> 16 | 64u);
  return ($bf16)((bits + ((bits >> 16 & 1u) + 32767u)) >> 16);
}""",
    "weft_round_f64": """\
// The bits of the 16-bit float with m bits of mantissa and smallest exponent emin that is nearest, ties to even.
$inline $u16 weft_round_f64($f64 x, int m, int emin, $u64 inf) {
  const $u64 bits = ($u64)weft_f64_as_i64(x), size = bits & 0x7FFFFFFFFFFFFFFFu, one = 1;
  const $u16 sign = ($u16)(bits >> 48 & 0x8000u);
  if (x != x) return ($u16)(sign | inf | ((size >> (52 - m)) & ((one << m) - 1)) | (one << (m - 1)));
  const $u64 mantissa = (bits & 0xFFFFFFFFFFFFFu) | ((size >> 52) != 0 ? one << 52 : 0);
  const int exponent = (int)(size >> 52) - 1023;
  const int least = exponent < emin ? emin : exponent;
  const int shift = 52 - m + least - exponent > 63 ? 63 : 52 - m + least - exponent;
  $u64 rounded = mantissa >> shift;
  const $u64 rest = mantissa & ((one << shift) - 1), middle = one << shift >> 1;
  rounded += (rest > middle || (rest == middle && (rounded & 1) != 0)) ? 1 : 0;
  const $u64 encoded = (($u64)(least - emin) << m) + rounded;
  return ($u16)(sign | (encoded > inf ? inf : encoded));
}""",
}
_CALL: Final = re.compile(r"\b(weft_\w+)\(")


def helper_texts(language: Language, own: Mapping[str, str]) -> list[str]:
    """`own`: name -> text, empty for common ones. Dependences precede their users."""
    texts: dict[str, str] = {}

    def add(name: str) -> None:
        if name in texts:
            return
        text = helper_text(language, name, own.get(name) or language.helpers.get(name))
        for called in _CALL.findall(text):
            if called != name:
                add(called)
        texts[name] = text

    for name in own:
        add(name)
    return list(texts.values())


def helper_text(language: Language, name: str, own: str | None = None) -> str:
    types = {**language.types, **{f"u{bits}": language.unsigned[f"i{bits}"] for bits in (8, 16, 32, 64)}}
    named = own or _NAMED.get(name)
    if named is not None:
        return Template(named).substitute(types, inline=language.inline)
    family, _, element = name.removeprefix("weft_").rpartition("_")
    if family not in _BY_TYPE:
        raise InternalError(f"there is no helper function {name}")
    unsigned = language.unsigned.get(element, "")
    return Template(_BY_TYPE[family]).substitute(
        types,
        inline=language.inline,
        name=name,
        T=language.types[element],
        U=unsigned,
        W=language.unsigned["i32"] if element in ("i8", "i16") else unsigned,
        bits=element[1:],
    )
