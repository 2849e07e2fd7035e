"""How functions are named in machine code: by identifiers of C, so that headers can declare them.

A function keeps its name, except where it is none that C can declare, or where code generation or the C library has
a function of that name: a program's `exp` must not become the `exp` that `math.exp` calls.

    matmul -> matmul      exp -> weft_function_exp      conv.2d_a -> weft_escaped_conv_2E2d__a
"""

from __future__ import annotations

import re
from typing import Final

_MATH: Final = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs fdim floor
    fma fmax fmaximum fmaximum_num fmin fminimum fminimum_num fmod frexp hypot ldexp lgamma llrint llround log log10
    log1p log2 logb lrint lround modf nan nearbyint nextafter pow remainder remquo rint round roundeven scalbn sin
    sincos sincospi sinh sqrt tan tanh tgamma trunc
"""
_LIBRARY: Final = """
    abort abs accept aligned_alloc atof atoi bcmp bind bsearch bzero calloc close connect div drem exit free gamma
    getenv index j0 j1 jn labs link listen main malloc memccpy memchr memcmp memcpy memmove mempcpy memset
    memset_pattern16 memset_pattern4 memset_pattern8 open pipe printf putchar puts qsort raise rand random read realloc
    recv remove rename rindex select send signal significand sleep strlen sync system time write y0 y1 yn
"""
_WORDS: Final = """
    alignas alignof and asm auto bool break case catch char class compl concept const consteval constexpr constinit
    continue decltype default delete do double else enum explicit export extern false float for friend goto if inline
    int int16_t int32_t int64_t int8_t long mutable namespace new noexcept not nullptr operator or private protected
    public register requires restrict return short signed sizeof static struct switch template this throw true try
    typedef typeid typename uint16_t uint32_t uint64_t uint8_t union unsigned using virtual void volatile while xor
"""
C_WORDS: Final = frozenset(_WORDS.split())
"""Words that C, C++, and the types of our headers keep for themselves."""
_RESERVED: Final = (
    C_WORDS | frozenset(_LIBRARY.split()) | {f"{name}{suffix}" for name in _MATH.split() for suffix in ("", "f", "l")}
)
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN: Final = re.compile(r"[A-Za-z_.$][A-Za-z0-9_.$]*")


def symbol_name(function_name: str) -> str:
    """The symbol of the function `@function_name`; distinct functions have distinct symbols."""
    if not _IDENTIFIER.fullmatch(function_name):
        return "weft_escaped_" + "".join(map(_in_identifier, function_name))
    if function_name in _RESERVED or function_name.startswith(("weft_", "_")):
        return f"weft_function_{function_name}"
    return function_name


def _in_identifier(character: str) -> str:
    if character == "_":
        return "__"
    if character.isascii() and character.isalnum():
        return character
    return "".join(f"_{byte:02X}" for byte in character.encode())


def quoted(symbol: str) -> str:
    """`symbol` as LLVM text wants it behind `@`."""
    if _PLAIN.fullmatch(symbol):
        return symbol
    return '"' + "".join(c if (c.isalnum() and c.isascii()) or c in "_.$- " else _escaped(c) for c in symbol) + '"'


def _escaped(character: str) -> str:
    return "".join(f"\\{byte:02X}" for byte in character.encode())
