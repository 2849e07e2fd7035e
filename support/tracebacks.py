"""Tracebacks of errors about what a user gave: they end at the user's line, without the frames of weft and xDSL.

`WEFT_FULL_TRACEBACK=1` in the environment shows all frames. `filter_tracebacks` is called when weft is imported: it
replaces Python's own `sys.excepthook`, and handles exceptions of IPython's cells. A hook that is already
installed stays. Internal errors of weft keep their frames.
"""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from types import TracebackType
from typing import Any, Final

_FULL: Final = "WEFT_FULL_TRACEBACK"
_STDLIB: Final = sysconfig.get_path("stdlib") + os.sep
_INSTALLED: Final = sysconfig.get_path("purelib") + os.sep
_HINT: Final = f"(the frames inside weft are not shown: {_FULL}=1 shows them)"


def filter_tracebacks() -> None:
    """Shorten the tracebacks that this process prints from now on."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print_shortened
    shell = _shell()
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((Exception,), _show_in_cell)


def shortened(error: BaseException, traceback: TracebackType | None) -> TracebackType | None:
    """The part of `traceback` down to the last line of the user; all of it if `error` is not about what a user gave,
    or was not raised in weft."""
    entries: list[TracebackType] = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    whole = entries[0] if entries else None
    if not entries or os.environ.get(_FULL, "0") not in ("", "0") or not _is_users(error, entries[-1]):
        return whole
    users = [at for at, entry in enumerate(entries) if _is_user_code(entry)]
    if not users:
        return whole
    kept: TracebackType | None = None
    for entry in reversed(entries[: users[-1] + 1]):
        kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept


def _is_users(error: BaseException, last: TracebackType) -> bool:
    """True for errors of weft, and for built-in errors that a `raise` statement of weft raised on purpose."""
    if not _is_weft(last):
        return False
    errors = sys.modules.get("weft.support.errors")
    if errors is not None and isinstance(error, errors.WeftError):
        return not isinstance(error, errors.InternalError)
    line = linecache.getline(last.tb_frame.f_code.co_filename, last.tb_lineno).strip()
    return isinstance(error, (TypeError, ValueError, AttributeError)) and line.startswith("raise ")


def _module(entry: TracebackType) -> str:
    return str(entry.tb_frame.f_globals.get("__name__", ""))


def _is_weft(entry: TracebackType) -> bool:
    return _module(entry).partition(".")[0] in ("weft", "xdsl")


def _is_user_code(entry: TracebackType) -> bool:
    file = entry.tb_frame.f_code.co_filename
    of_python = file.startswith("<frozen") or (file.startswith(_STDLIB) and not file.startswith(_INSTALLED))
    return not _is_weft(entry) and not of_python


def _print_shortened(kind: type[BaseException], error: BaseException, traceback: TracebackType | None, /) -> None:
    short = shortened(error, traceback)
    sys.__excepthook__(kind, error.with_traceback(short), short)
    if short is not None and _length(short) < _length(traceback):
        print(_HINT, file=sys.stderr)


def _length(traceback: TracebackType | None) -> int:
    count = 0
    while traceback is not None:
        count, traceback = count + 1, traceback.tb_next
    return count


def _shell() -> Any:
    """The running shell of IPython, or None."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def _show_in_cell(
    shell: Any, kind: type[BaseException], error: BaseException, traceback: TracebackType, tb_offset: int | None = None
) -> None:
    short = shortened(error, traceback)
    shell.showtraceback((kind, error.with_traceback(short), short), tb_offset=tb_offset)
    if _length(short) < _length(traceback):
        print(_HINT, file=sys.stderr)
