"""`weft explore --repl`: one command a line, from a terminal or a pipe."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Final, TextIO

from weft.support.errors import CompileError
from weft.tools.explore.commands import completions_of_line, run_line
from weft.tools.explore.operations import Reply, Workbench
from weft.tools.failures import FAILURE, message_of

_QUIT: Final = ("quit", "exit", "q")


def run_repl(workbench: Workbench, source: TextIO, output: TextIO) -> int:
    """Returns 1 if the input is no terminal and a command failed."""
    is_terminal = source.isatty()
    if is_terminal:
        _with_history(workbench)
    status = 0
    while (line := _read(workbench, source, output, is_terminal)) is not None and line not in _QUIT:
        if line and not line.startswith("#"):
            status |= _run(workbench, line, source, output)
    if is_terminal:
        print(file=output)
    return 0 if is_terminal else status


def _prompt(workbench: Workbench) -> str:
    return "> " if workbench.opened is None else f"[{workbench.opened.at}] > "


def _read(workbench: Workbench, source: TextIO, output: TextIO, is_terminal: bool) -> str | None:
    if is_terminal:
        try:
            return input(_prompt(workbench)).strip()
        except EOFError:
            return None
        except KeyboardInterrupt:
            print(file=output)
            return ""
    line = source.readline()
    if not line:
        return None
    print(f"{_prompt(workbench)}{line.rstrip()}", file=output)
    return line.strip()


def _run(workbench: Workbench, line: str, source: TextIO, output: TextIO) -> int:
    try:
        reply = run_line(workbench, line)
    except FileExistsError as error:
        reply = _confirmed(workbench, line, error, source, output)
    except KeyboardInterrupt:
        if not source.isatty():
            raise
        print("cancelled", file=output)
        return FAILURE
    except Exception as error:  # noqa: BLE001 - every failure is a message, and the session goes on
        print(message_of(error), file=output, flush=True)
        return FAILURE
    if reply is not None:
        print(reply.text, file=output, flush=True)
    return 0


def _confirmed(
    workbench: Workbench, line: str, problem: FileExistsError, source: TextIO, output: TextIO
) -> Reply | None:
    """Ask whether to replace a file."""
    print(f"{problem}: overwrite? [y/N] ", end="", file=output, flush=True)
    if source.readline().strip().lower() not in ("y", "yes"):
        print("not saved", file=output)
        return None
    return run_line(workbench, line, overwrite=True)


def _with_history(workbench: Workbench) -> None:
    try:
        readline: Any = importlib.import_module("readline")
    except ImportError:
        return

    def complete(_: str, number: int) -> str | None:
        line = readline.get_line_buffer()[: readline.get_endidx()]
        begin = readline.get_begidx()
        try:
            found = completions_of_line(workbench, line)
        except CompileError:
            return None
        texts = [one.text[begin - one.start :] for one in found if one.start <= begin]
        return texts[number] if number < len(texts) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" ,()={}")
    readline.parse_and_bind("tab: complete")
    sys.stdout.flush()
