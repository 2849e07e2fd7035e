"""A lit test format whose commands are forks of one process that has imported weft's tools already.

Each command of a RUN line is a process of its own, with the streams and the exit status that a shell would give it.
weft's tools, `xdsl-opt` and `filecheck` run in the fork; other programs are executed from it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import IO, Any

import lit.Test
from lit.formats import ShTest
from lit.ShCommands import Command, Pipeline, Seq
from lit.ShUtil import ShParser
from lit.TestRunner import (
    applySubstitutions,
    getDefaultSubstitutions,
    getTempPaths,
    kPdbgRegex,
    parseIntegratedTestScript,
)

_MESSAGES = 30_000
"""Characters of output that a report of a failure shows at most."""


@cache
def _tools() -> dict[str, Callable[[], Any]]:
    """What runs in a fork, imported and used once, so that forks find everything in place."""
    import filecheck.main
    import xdsl.tools.xdsl_opt

    import weft.tools.weft_cli
    import weft.tools.weft_opt

    examples = Path(__file__).parents[2] / "examples"
    for program, target, output in (("mm_relu", "llvm", "llvm-ir"), ("gpu/window_sum", "cuda", "cuda")):
        pipeline = f"apply-schedule,lower-tir-to-low{{target={target}}}"
        with contextlib.redirect_stdout(io.StringIO()):
            weft.tools.weft_opt.WeftOptMain(args=[f"{examples}/{program}.mlir", "-p", pipeline, "-t", output]).execute()
    return {
        "filecheck": filecheck.main.main,
        "weft": weft.tools.weft_cli.main,
        "weft-opt": weft.tools.weft_opt.main,
        "xdsl-opt": xdsl.tools.xdsl_opt.main,
    }


class ForkedTest(ShTest):
    """`ShTest` without a new interpreter for each command."""

    def execute(self, test: lit.Test.Test, litConfig: Any) -> lit.Test.Result:
        if test.config.unsupported:
            return lit.Test.Result(lit.Test.UNSUPPORTED, "Test is unsupported")
        lines = parseIntegratedTestScript(test)
        if isinstance(lines, lit.Test.Result):
            return lines
        _tools()  # before the first fork
        folder, base = getTempPaths(test)
        Path(base).parent.mkdir(parents=True, exist_ok=True)
        substitutions = getDefaultSubstitutions(test, folder, base)
        conditions = dict.fromkeys(test.config.available_features, True)
        with tempfile.TemporaryFile("w+") as log:
            for line in applySubstitutions(lines, substitutions, conditions):
                line = re.sub(kPdbgRegex, r"\2", line)
                print("$", line, file=log, flush=True)
                status = _run(ShParser(line, pipefail=True).parse(), test.config.environment, log)
                if status != 0:
                    log.seek(0)
                    report = log.read()[-_MESSAGES:]
                    return lit.Test.Result(lit.Test.FAIL, f"{report}\nexit status {status}")
        return lit.Test.Result(lit.Test.PASS)


def _run(part: Seq | Pipeline, environment: dict[str, str], log: IO[str]) -> int:
    """Run a parsed line; its exit status, that of the last command that fails."""
    if isinstance(part, Seq):
        status = _run(part.lhs, environment, log)
        if part.op == ";" or (part.op == "&&") == (status == 0):
            status = _run(part.rhs, environment, log)
        return status
    processes: list[tuple[int, bool]] = []
    source = os.open(os.devnull, os.O_RDONLY)
    for command in part.commands:
        read, write = (-1, log.fileno()) if command is part.commands[-1] else os.pipe()
        arguments = [str(word) for word in command.args]
        fails = arguments[0] == "not"
        sys.stdout.flush(), sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            _become(arguments[fails:], command, [source, write, log.fileno()], environment)
        processes.append((pid, fails))
        os.close(source)
        if read >= 0:
            os.close(write)
        source = read
    failed = 0
    for pid, fails in processes:
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if fails:
            status = 0 if status > 0 else 1  # ended by a signal is no failure that a test may ask for
        failed = status or failed
    return failed


def _become(arguments: list[str], command: Command, streams: list[int], environment: dict[str, str]) -> None:
    """In a fork: run a command with its streams, and end."""
    status = 1
    try:
        for operator, target in command.redirects:
            number = operator[1] if len(operator) > 1 else 0 if operator[0] == "<" else 1
            if operator[0] == ">&":
                streams[number] = streams[int(target)]
            else:
                flags = os.O_RDONLY if operator[0] == "<" else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
                streams[number] = os.open(target, flags, 0o666)
        copies = [os.dup(stream) for stream in streams]
        for number, copy in enumerate(copies):
            os.dup2(copy, number)
        os.environ.clear()
        os.environ.update(environment)
        tool = _tools().get(arguments[0])
        if tool is None:
            os.execvpe(shutil.which(arguments[0], path=environment["PATH"]) or arguments[0], arguments, environment)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, m, closefd=False) for n, m in ((0, "r"), (1, "w"), (2, "w")))
        sys.argv = arguments
        status = tool() or 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except Exception:  # noqa: BLE001 - whatever a tool raises ends its process
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush(), sys.stderr.flush()
        os._exit(status)
