"""Adaptation of IPython: coloured text of operations, short tracebacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.support.errors import WeftError
from weft.support.shown import ir_html, running_shell
from weft.support.tracebacks import show_in_cell

if TYPE_CHECKING:
    from xdsl.ir import Operation


def register_formatters(shell: Any) -> None:
    """HTML and plain text of operations, except of classes that define a form."""
    formatters = shell.display_formatter.formatters
    formatters["text/html"].for_type_by_name("xdsl.ir.core", "Operation", operation_html)
    formatters["text/plain"].for_type_by_name("xdsl.ir.core", "Operation", _print_plain)


def operation_html(operation: Operation) -> str:
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
            pass  # its level has no scripts
    return ir_html(str(operation))


def _print_plain(operation: Operation, printer: Any, cycle: bool) -> None:
    printer.text(str(operation))


def adapt_shell() -> None:
    """Register the formatters with the running shell, and shorten its tracebacks unless it has another handler."""
    shell = running_shell()
    if shell is None:
        return
    register_formatters(shell)
    if not shell.custom_exceptions:
        shell.set_custom_exc((Exception,), show_in_cell)
