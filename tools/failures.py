"""Errors of commands: a message and exit status 1, without a traceback."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from io import TextIOWrapper
from typing import NoReturn, cast

from xdsl.utils.exceptions import DiagnosticException

from weft.support.errors import CompileError, InternalError, Remark, WeftError, did_you_mean
from weft.support.garbage import fewer_collections

FAILURE = 1
INTERRUPTED = 130
"""The exit status of a program that SIGINT ended, by the convention of shells."""


class ArgumentParser(argparse.ArgumentParser):
    """Raises `CompileError` for wrong flags. Flags cannot be abbreviated."""

    def __init__(self, **options: object) -> None:
        super().__init__(allow_abbrev=False, **options)  # pyright: ignore[reportArgumentType]
        self.register("type", int, _integer)

    def parse_args(self, args: Sequence[str]) -> argparse.Namespace:  # pyright: ignore[reportIncompatibleMethodOverride]
        found, unknown = self.parse_known_args(args)
        if unknown:
            flag = unknown[0].partition("=")[0]
            hint = did_you_mean(flag, self._option_string_actions) if flag.startswith("-") else ""
            what = "unknown flag" if flag.startswith("-") else "one word too many:"
            self.error(f"{what} '{flag}'{hint if 'did you mean' in hint else ''}")
        return found

    def error(self, message: str) -> NoReturn:
        raise CompileError(f"{message} ('{self.prog} --help' lists the flags)")


def _integer(text: str) -> int:
    number = int(text)
    if not -(1 << 63) <= number < 1 << 63:
        raise argparse.ArgumentTypeError(f"takes integers of at most 64 bits, got {text}")
    return number


@contextmanager
def shown_warnings(show: Callable[[Warning], None]) -> Generator[None]:
    """Pass remarks, and Python warnings that would be shown, to `show`."""

    def receive(message: Warning | str, *_: object) -> None:
        show(message if isinstance(message, Warning) else UserWarning(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", Remark)
        warnings.showwarning = receive
        yield


def print_warning(warning: Warning) -> None:
    sys.stdout.flush()
    print(warning if isinstance(warning, Remark) else f"warning: {warning}", file=sys.stderr, flush=True)


def versions() -> str:
    from llvmlite import binding

    llvm = ".".join(str(part) for part in cast("tuple[int, ...]", binding.llvm_version_info))
    compiler = f"LLVM {llvm} (llvmlite {version('llvmlite')})"
    return f"weft {version('weft')}\nxDSL {version('xdsl')}\n{compiler}"


def run_tool(body: Callable[[], int], *, debug: bool) -> int:
    """Returns the exit status of `body`, or 1 after printing a failure. An error that the user did not cause is
    reported as a bug; `debug` shows its traceback."""
    if isinstance(sys.stdout, TextIOWrapper):  # file names may contain characters that the encoding lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with fewer_collections():
            status = body()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader ended (`weft-opt ... | head`). Python's flush at exit must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # the outermost frame reports every exception
        if debug and not is_user_error(error):
            raise
        sys.stdout.flush()
        print(message_of(error), file=sys.stderr)
        return FAILURE
    return status


def is_user_error(error: Exception) -> bool:
    """Returns False for a bug."""
    return isinstance(error, (WeftError, DiagnosticException, OSError))


def message_of(error: Exception) -> str:
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
    return "".join(f", {note}" for note in getattr(error, "__notes__", ()))


def _file_error(error: OSError) -> str:
    if error.filename is None:
        return str(error)
    return f"cannot open '{error.filename}': {(error.strerror or str(error)).lower()}"
