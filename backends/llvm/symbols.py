"""How functions are named in machine code.

A function keeps its name, except where code generation itself calls that name: a program's `exp` must not become the
`exp` that `math.exp` calls.
"""

from __future__ import annotations

import re
from typing import Final

_MATH: Final = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs fdim floor
    fma fmax fmaximum fmaximum_num fmin fminimum fminimum_num fmod frexp hypot ldexp lgamma llrint llround log log10
    log1p log2 logb lrint lround modf nearbyint pow remainder rint round roundeven sin sincos sincospi sinh sqrt tan
    tanh tgamma trunc
"""
_OTHERS: Final = """
    abort abs aligned_alloc bcmp bzero calloc exit free labs main malloc memccpy memchr memcmp memcpy memmove mempcpy
    memset memset_pattern4 memset_pattern8 memset_pattern16 printf putchar puts realloc strlen
"""
_RESERVED: Final = frozenset(_OTHERS.split()) | {f"{n}{suffix}" for n in _MATH.split() for suffix in ("", "f", "l")}
_PLAIN: Final = re.compile(r"[A-Za-z_.$][A-Za-z0-9_.$]*")


def symbol_name(function_name: str) -> str:
    """The symbol of the function `@function_name`."""
    if function_name in _RESERVED or function_name.startswith(("llvm.", "weft_", "weft.", "__", "\1")):
        return f"weft.function.{function_name}"
    return function_name


def quoted(symbol: str) -> str:
    """`symbol` as LLVM text wants it behind `@`."""
    if _PLAIN.fullmatch(symbol):
        return symbol
    return '"' + "".join(c if (c.isalnum() and c.isascii()) or c in "_.$- " else _escaped(c) for c in symbol) + '"'


def _escaped(character: str) -> str:
    return "".join(f"\\{byte:02X}" for byte in character.encode())
