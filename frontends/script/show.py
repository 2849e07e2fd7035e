"""Scripts with colours, for terminals and notebooks."""

from __future__ import annotations

import html
import io
import keyword
import os
import sys
import token
import tokenize
from collections.abc import Callable, Iterator
from enum import StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING

from weft.frontends.script.printer import print_script
from weft.support.shown import MONOSPACED, running_shell

if TYPE_CHECKING:
    from typing import TextIO

    from xdsl.dialects.builtin import ModuleOp


_NAMESPACES = ("T", "I", "G")
"""Names of `weft.script.tir`, `weft.script.ir` and `weft.graph` in scripts."""


class Style(StrEnum):
    """Colours are readable on white and black."""

    PLAIN = "plain", "", ""
    KEYWORD = "keyword", "1;35", "color:#8250df;font-weight:bold"
    NAMESPACE = "namespace", "36", "color:#0a7ea4"
    WORD = "word", "36", "color:#0a7ea4"
    DEFINITION = "definition", "1;34", "color:#0550ae;font-weight:bold"
    NUMBER = "number", "33", "color:#b35900"
    STRING = "string", "32", "color:#1a7f37"
    COMMENT = "comment", "2;3", "color:#6e7781;font-style:italic"
    DECORATOR = "decorator", "33", "color:#b35900"

    terminal: str
    html: str

    def __new__(cls, label: str, terminal: str, html: str) -> Style:
        style = str.__new__(cls, label)
        style._value_ = label
        style.terminal, style.html = terminal, html
        return style


def pieces(text: str) -> Iterator[tuple[Style, str]]:
    """Pieces of one style; their concatenation is `text`."""
    starts = [0, *accumulate(map(len, text.splitlines(keepends=True)))]
    place = 0
    before, last = "", ""
    for found in tokenize.generate_tokens(io.StringIO(text).readline):
        if found.type in (token.INDENT, token.DEDENT, token.NEWLINE, tokenize.NL, token.ENDMARKER):
            continue
        start, end = (starts[row - 1] + column for row, column in (found.start, found.end))
        yield Style.PLAIN, text[place:start]
        yield _style(found, before, last), text[start:end]
        place = end
        before, last = last, found.string
    yield Style.PLAIN, text[place:]


def _style(found: tokenize.TokenInfo, before: str, last: str) -> Style:
    match found.type:
        case token.NUMBER:
            return Style.NUMBER
        case token.STRING:
            return Style.STRING
        case tokenize.COMMENT:
            return Style.COMMENT
        case token.NAME if keyword.iskeyword(found.string):
            return Style.KEYWORD
        case token.NAME if last in ("def", "class"):
            return Style.DEFINITION
        case token.NAME if found.string in _NAMESPACES and last == "@":
            return Style.DECORATOR
        case token.NAME if found.string in _NAMESPACES and last != ".":
            return Style.NAMESPACE
        case token.NAME if last == "." and before in (*_NAMESPACES, "axis"):
            return Style.WORD
        case token.OP if found.string == "@":
            return Style.DECORATOR
        case _:
            return Style.PLAIN


def terminal_text(text: str) -> str:
    return "".join(
        f"\x1b[{style.terminal}m{piece}\x1b[0m" if style.terminal else piece for style, piece in pieces(text)
    )


def html_text(text: str) -> str:
    spans = (
        f'<span style="{style.html}">{html.escape(piece)}</span>' if style.html else html.escape(piece)
        for style, piece in pieces(text)
    )
    return f'<pre style="{MONOSPACED}">{"".join(spans)}</pre>'


class Script(str):
    __slots__ = ()

    @property
    def text(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_text(self)

    def __repr__(self) -> str:
        return str(self)


def show(module: ModuleOp, *, color: bool | None = None, file: TextIO | None = None) -> None:
    """Show the script of a module: as HTML in a notebook, otherwise as text, in colours on a terminal.

    `color` overrides the choice of colours, `file` replaces standard output. The environment variable `NO_COLOR`
    (https://no-color.org) turns colours off if `color` is None. Raises the errors of `print_script`.
    """
    show_text(print_script(module), color=color, file=file)


def show_text(text: str, *, color: bool | None = None, file: TextIO | None = None) -> None:
    if file is not None and not hasattr(file, "write"):
        raise TypeError(f"show: argument 'file' must be a text file, got a value of type {type(file).__name__}")
    display = _notebook_display() if file is None and color is None else None
    if display is not None:
        display(Script(text))
        return
    output = sys.stdout if file is None else file
    if color is None:
        color = output.isatty() and not os.environ.get("NO_COLOR")
    print(terminal_text(text) if color else text, end="", file=output)


def _notebook_display() -> Callable[[object], object] | None:
    """Kernels of notebooks define `get_ipython`."""
    if not hasattr(running_shell(), "kernel"):
        return None
    from importlib import import_module

    display: Callable[[object], object] = import_module("IPython.display").display
    return display
