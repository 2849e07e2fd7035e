"""Tracebacks of user errors end at the user's line. `WEFT_FULL_TRACEBACK=1` in the environment shows all frames.

Importing weft replaces Python's own `sys.excepthook`, not another hook; `driver/notebooks.py` handles IPython's cells.
Internal errors keep their frames.
"""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Any, Final

_FULL: Final = "WEFT_FULL_TRACEBACK"
_HINT: Final = f"(the frames inside weft are not shown: {_FULL}=1 shows them)"


def filter_tracebacks() -> None:
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print_shortened


def shortened(error: BaseException, traceback: TracebackType | None) -> TracebackType | None:
    """Returns the part down to the last line of the user; all of it for other errors."""
    entries: list[TracebackType] = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    whole = entries[0] if entries else None
    if not entries or os.environ.get(_FULL, "0") not in ("", "0") or not _is_user_error(error, entries[-1]):
        return whole
    import sysconfig  # start-up: 1 ms

    standard, installed = (sysconfig.get_path(name) + os.sep for name in ("stdlib", "purelib"))
    users = [at for at, entry in enumerate(entries) if _is_user_code(entry, standard, installed)]
    if not users:
        return whole
    kept: TracebackType | None = None
    for entry in reversed(entries[: users[-1] + 1]):
        kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept


def _is_user_error(error: BaseException, last: TracebackType) -> bool:
    """Errors of weft, and built-in errors of a `raise` statement of weft."""
    if not _is_weft(last):
        return False
    errors = sys.modules.get("weft.support.errors")
    if errors is not None and isinstance(error, errors.WeftError):
        return not isinstance(error, errors.InternalError)
    import linecache  # start-up: 1 ms

    line = linecache.getline(last.tb_frame.f_code.co_filename, last.tb_lineno).strip()
    return isinstance(error, (TypeError, ValueError, AttributeError)) and line.startswith("raise ")


def _module(entry: TracebackType) -> str:
    return str(entry.tb_frame.f_globals.get("__name__", ""))


def _is_weft(entry: TracebackType) -> bool:
    return _module(entry).partition(".")[0] in ("weft", "xdsl")


def _is_user_code(entry: TracebackType, standard: str, installed: str) -> bool:
    """Exclude weft, xDSL and the standard library, below which packages are `installed`."""
    file = entry.tb_frame.f_code.co_filename
    is_standard = file.startswith("<frozen") or (file.startswith(standard) and not file.startswith(installed))
    return not _is_weft(entry) and not is_standard


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


def show_in_cell(
    shell: Any, kind: type[BaseException], error: BaseException, traceback: TracebackType, tb_offset: int | None = None
) -> None:
    """Handle an exception of a cell, as IPython's `set_custom_exc` calls it."""
    short = shortened(error, traceback)
    shell.showtraceback((kind, error.with_traceback(short), short), tb_offset=tb_offset)
    if _length(short) < _length(traceback):
        print(_HINT, file=sys.stderr)
