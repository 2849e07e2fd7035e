"""Reports errors of commands: a message, exit status 1, no traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from xdsl.utils.exceptions import DiagnosticException

from weft.support.errors import InternalError, WeftError

FAILURE = 1
INTERRUPTED = 130
"""The exit status of shells for a program that SIGINT ended."""


def run_tool(body: Callable[[], int], *, debug: bool) -> int:
    """Run `body` and return the exit status: its own, or 1 after printing what failed on standard error.

    What is no error of the user's is reported as a bug in weft; `debug` shows its traceback.
    """
    try:
        status = body()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader went away (`weft-opt ... | head`). Python's own flush at exit must not fail either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # the outermost frame: whatever it is becomes a message
        if debug and not is_users(error):
            raise
        sys.stdout.flush()
        print(message_of(error), file=sys.stderr)
        return FAILURE
    return status


def is_users(error: Exception) -> bool:
    """Whether `error` is about what the user gave, not a bug of ours."""
    return isinstance(error, (WeftError, DiagnosticException, OSError))


def message_of(error: Exception) -> str:
    """The message of `error` for the user."""
    if isinstance(error, WeftError):
        return str(error)
    if isinstance(error, DiagnosticException):
        return f"error: {error}"
    if isinstance(error, OSError):
        return f"error: {_file_error(error)}"
    if isinstance(error, RecursionError):
        return "error: the program is nested too deeply"
    if isinstance(error, InternalError):
        return f"internal error: {error}{_notes(error)}\n(--debug shows where)"
    return (
        f"internal error: {type(error).__name__}: {error}{_notes(error)}\n"
        "This is a bug in weft, not in your program. Please report it with the input. (--debug shows where)"
    )


def _notes(error: Exception) -> str:
    """The notes that the driver added."""
    return "".join(f", {note}" for note in getattr(error, "__notes__", ()))


def _file_error(error: OSError) -> str:
    if error.filename is None:
        return str(error)
    return f"cannot open '{error.filename}': {(error.strerror or str(error)).lower()}"
