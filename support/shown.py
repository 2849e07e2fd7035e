"""Text in notebooks: monospaced, IR with colours."""

from __future__ import annotations

import builtins
import html
import re
from collections.abc import Sequence
from typing import Any, Final

from weft.support.columns import aligned_columns

MONOSPACED: Final = "font-family:ui-monospace,Menlo,Consolas,monospace;line-height:1.3;overflow-x:auto"
"""Style of a block of text, in CSS."""

_PIECES: Final = re.compile(
    r"(?P<comment>//[^\n]*)"
    r'|(?P<string>"(?:[^"\\]|\\.)*")'
    r"|(?P<value>%[\w.$-]+)"
    r"|(?P<symbol>@[\w.$-]+)"
    r"|(?P<attribute>[#!][\w.$-]+)"
    r"|(?P<operation>\b[a-z_]\w*\.[\w.]+)"
    r"|(?P<type>\b(?:[fiu]|bf|si|ui)\d+\b|\b(?:index|memref|tensor|vector)\b)"
    r"|(?P<number>(?<![\w.])-?\d[\w.]*(?:e[+-]\d+)?)"
)
_COLORS: Final = {
    "comment": "#6e7781;font-style:italic",
    "string": "#1a7f37",
    "value": "#0550ae",
    "symbol": "#8250df",
    "attribute": "#0a7ea4",
    "operation": "#8250df;font-weight:bold",
    "type": "#0a7ea4",
    "number": "#b35900",
}
"""Colours that are readable on white and on black, the same as those of scripts."""


def running_shell() -> Any:
    """Returns None outside of IPython, which defines `get_ipython`."""
    get_ipython: object = getattr(builtins, "get_ipython", None)
    return get_ipython() if callable(get_ipython) else None


def text_html(text: str) -> str:
    return f'<pre style="{MONOSPACED}">{html.escape(text)}</pre>'


def ir_html(text: str) -> str:
    parts: list[str] = []
    end = 0
    for found in _PIECES.finditer(text):
        color = _COLORS[found.lastgroup or "comment"]
        parts += (html.escape(text[end : found.start()]), f'<span style="color:{color}">{html.escape(found[0])}</span>')
        end = found.end()
    return f'<pre style="{MONOSPACED}">{"".join(parts)}{html.escape(text[end:])}</pre>'


class ShownAsText:
    """Mixin: notebooks show `str(self)`, not `repr(self)`."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": text_html(str(self))}


def table_bundle(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, str]:
    """A table for `_repr_mimebundle_`."""

    def line(kind: str, cells: Sequence[str]) -> str:
        start = f'<{kind} style="text-align:left;vertical-align:top">'
        return f"<tr>{''.join(f'{start}{html.escape(cell)}</{kind}>' for cell in cells)}</tr>"

    body = "".join([line("th", header), *(line("td", row) for row in rows)])
    return {
        "text/plain": f"{title}\n{aligned_columns([header, *rows], range(len(header)))}",
        "text/html": f'<p>{html.escape(title)}</p><table style="{MONOSPACED}">{body}</table>',
    }
