"""Names of a program in the languages that weft writes: identifiers, symbols and comments.

Programs call functions, arguments and blocks what they like. Whatever becomes text of a C-like language or of LLVM goes
through here.

    a symbol in machine code    matmul -> matmul    fork -> weft_function_fork    conv.2d -> weft_escaped_conv_2E2d
    an identifier in C          a.b -> a_b          for -> for_                   0 -> v_0
    text in a comment           a */ b -> a *\\2F b
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

RESERVED_FILE: Final = Path(__file__).with_name("reserved_names.txt")
"""What headers and libraries declare: `tests/helpers/reserved_names.py` makes it."""

_WORDS: Final = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class
    co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default
    delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using
    virtual void volatile wchar_t while xor xor_eq _Bool _Complex
"""
_TYPES: Final = """
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t half bfloat uint ushort uchar ulong size_t
    ptrdiff_t
"""
KEYWORDS: Final = frozenset((*_WORDS.split(), *_TYPES.split(), "main", "errno", "I", "NULL", "NAN", "INFINITY", "EOF"))
"""What no variable and no function is called in any language: words of C and C++, types and macros of our texts."""
_OF_CODE_GENERATION: Final = frozenset(
    ["memset_pattern4", "memset_pattern8", "memset_pattern16", "sincospi", "sincospif", "sincospil"]
)
"""Functions that LLVM may call on some systems, beyond those of glibc."""

_ODD: Final = re.compile(r"[^A-Za-z0-9_]")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN: Final = re.compile(r"[A-Za-z_.$][A-Za-z0-9_.$]*")
_UNFIT_FOR_COMMENTS: Final = re.compile(r"[^ -\[\]-~]|(?<=\*)/|(?<=/)\*|\?(?=\?)")


@cache
def reserved(kind: str) -> frozenset[str]:
    """The names of a kind of the file: "c macros", "c symbols", "opencl macros", "opencl symbols", "cuda symbols"."""
    sections = RESERVED_FILE.read_text().split("[")
    return frozenset(next(s.partition("]")[2] for s in sections if s.startswith(f"{kind}]")).split())


def in_comment(text: str) -> str:
    """`text` within a line of a comment of C, C++ or LLVM: in ASCII, neither ending the comment nor continuing it in
    the next line, by trigraphs neither. Other characters are written as `\\HH`, byte by byte."""
    return _UNFIT_FOR_COMMENTS.sub(lambda found: _escaped(found[0]), text)


def _escaped(character: str) -> str:
    return "".join(f"\\{byte:02X}" for byte in character.encode(errors="surrogatepass"))


def symbol_name(function_name: str) -> str:
    """The symbol of the function `@function_name` in machine code, which headers for C can declare.

    A function keeps its name where C can declare it, and neither the C library nor code generation has a function of
    that name: a program's `exp` must not become the `exp` that `math.exp` calls. Distinct functions have distinct
    symbols.
    """
    if not is_identifier(function_name):
        return f"weft_escaped_{escaped_identifier(function_name)}"
    if function_name in _taken_in_machine_code() or function_name.startswith(("weft_", "_")):
        return f"weft_function_{function_name}"
    return function_name


@cache
def _taken_in_machine_code() -> frozenset[str]:
    return KEYWORDS | reserved("c symbols") | reserved("c macros") | _OF_CODE_GENERATION


def is_identifier(name: str) -> bool:
    """Whether a language of the C family can call something `name`."""
    return _IDENTIFIER.fullmatch(name) is not None


def escaped_identifier(text: str) -> str:
    """The letters and digits of `text`, and what stands for the rest; distinct for distinct texts."""
    return "".join(map(_in_identifier, text))


def _in_identifier(character: str) -> str:
    if character == "_":
        return "__"
    if character.isascii() and character.isalnum():
        return character
    return "".join(f"_{byte:02X}" for byte in character.encode(errors="surrogatepass"))


def quoted(symbol: str) -> str:
    """`symbol` as LLVM text wants it behind `@`."""
    if _PLAIN.fullmatch(symbol):
        return symbol
    return '"' + "".join(c if (c.isalnum() and c.isascii()) or c in "_.$- " else _escaped(c) for c in symbol) + '"'


def identifier(hint: str, reserved: Iterable[str] = ()) -> str:
    """`hint` as an identifier that is none of `reserved`, and none that the languages or weft keep for themselves."""
    name = _ODD.sub("_", hint)
    if (
        not name.strip("_")
        or name[0].isdigit()
        or name.startswith(("__", "weft_", "get_", "as_", "convert_"))
        or "__" in name
    ):
        name = f"v_{name.strip('_')}".replace("__", "_").rstrip("_")
        while "__" in name:
            name = name.replace("__", "_")
    return f"{name}_" if name in reserved else name


class Scopes:
    """The names in use, by scope from outside to inside. A name may serve again when its scope is left."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self._reserved = frozenset(reserved)
        self._scopes: list[set[str]] = [set()]

    def enter(self) -> None:
        self._scopes.append(set())

    def leave(self) -> None:
        self._scopes.pop()

    def fresh(self, hint: str) -> str:
        """A name for a variable of the innermost scope: `hint`, else `hint_1`, `hint_2`, ..."""
        base = name = identifier(hint, self._reserved)
        number = 0
        while any(name in scope for scope in self._scopes) or name in self._reserved:
            number += 1
            name = f"{base}_{number}" if not base.endswith("_") else f"{base}{number}"
        self._scopes[-1].add(name)
        return name
