"""IR in notebooks: modules and operations of xDSL as coloured text, when weft is imported in IPython."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from weft.support.errors import WeftError
from weft.support.shown import ir_html

if TYPE_CHECKING:
    from xdsl.ir import Operation


def register_formatters(shell: Any) -> None:
    """Register HTML and plain text of operations with an IPython shell. Classes with a form of their own keep it."""
    formatters = shell.display_formatter.formatters
    formatters["text/html"].for_type_by_name("xdsl.ir.core", "Operation", operation_html)
    formatters["text/plain"].for_type_by_name("xdsl.ir.core", "Operation", _print_plain)


def operation_html(operation: Operation) -> str:
    """An operation as HTML: a module that has a script as script, anything else as IR."""
    own = getattr(operation, "_repr_html_", None)
    if own is not None:
        return own()
    from xdsl.dialects.builtin import ModuleOp

    from weft.frontends.script.printer import print_script  # start-up: 193 ms
    from weft.frontends.script.show import html_text  # start-up: 204 ms

    if isinstance(operation, ModuleOp):
        try:
            return html_text(print_script(operation))
        except WeftError:
            pass  # not at a level that scripts have
    return ir_html(str(operation))


def _print_plain(operation: Operation, printer: Any, cycle: bool) -> None:
    printer.text(str(operation))


def register_if_interactive() -> None:
    """Register with the IPython shell that runs, if one does."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is not None:
        register_formatters(shell)
