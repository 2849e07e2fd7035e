"""`weft-reduce`: make a program smaller while it still shows a fault.

`docs/weft-reduce.md` documents the flags.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from weft.driver.parsing import Resources, decode_text, parse_text
from weft.driver.programs import context
from weft.driver.universe import REPLACED_PASSES, load
from weft.driver.verify import verify_module
from weft.passes.pipeline_text import parse_passes
from weft.support.errors import CompileError
from weft.support.files import check_output, write_output
from weft.support.locations import remember_text
from weft.support.packages import installed_universe
from weft.tools.failures import ArgumentParser, run_tool
from weft.tools.reduce.questions import InterestingnessTest, Kind, Run
from weft.tools.reduce.reduction import Candidate, Journal, Reduction
from weft.tools.reproducer import pipeline_of, reproducer_text

_KINDS: Final[tuple[Kind, ...]] = ("test", "crash", "message", "validate", "differs")


def make_parser() -> ArgumentParser:
    parser = ArgumentParser(prog="weft-reduce", description="Make a program smaller while it still shows a fault.")
    add = parser.add_argument
    add("file", help="the program, an .mlir file; the passes of a reproducer of weft-opt are used")
    add("-o", "--output", metavar="FILE", help="the smallest program so far (default: FILE.reduced.mlir)")
    add("-p", "--passes", "--pass-pipeline", metavar="PASSES", action="append", default=[],
        help="passes to run on the program, as for weft-opt; they are reduced too")  # fmt: skip
    add("-t", "--target", default="mlir", metavar="TARGET", help="the target of weft-opt to emit the result for")
    kinds = parser.add_argument_group("the condition of an interesting program, one of").add_mutually_exclusive_group()
    add = kinds.add_argument
    add("--test", metavar="COMMAND", help="COMMAND, run on the file of the program (in place of {}, or as last "
        "argument), exits with a status other than 0, or with that of --status")  # fmt: skip
    add("--crash", action="store_true", help="weft-opt crashes: the same exception in the same function")
    add("--message", metavar="REGEX", help="weft-opt fails with a message that REGEX matches")
    add("--validate", action="store_true", help="a pass changes a result in the interpreter")
    add("--differs", metavar="A,B", help="A and B compute different results: targets, or 'interpreter'")
    add = parser.add_argument
    add("--status", type=int, metavar="N", help="the exit status of --test for an interesting program")
    add(
        "-j",
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="the number of processes (default: all cores)",
    )
    add("--timeout", type=float, default=30.0, metavar="SECONDS", help="the time limit of one test (default 30)")
    add("--resume", action="store_true", help="continue an interrupted reduction with the same options")
    add("--allow-unregistered-dialect", action="store_true", help="accept operations of unknown dialects")
    add("-q", "--quiet", action="store_true", help="show no progress")
    add("--debug", action="store_true", help="show the traceback of an internal error")
    return parser


def execute(words: Sequence[str]) -> int:
    """Raises `CompileError` for a program that does not verify or is not interesting."""
    arguments = make_parser().parse_args(words)
    source = Path(arguments.file)
    output = Path(arguments.output or source.with_suffix(".reduced.mlir"))
    check_output(output, source)
    journal = Journal(output.with_name(f"{output.name}.journal"))
    if arguments.jobs < 1:
        raise CompileError(f"--jobs must be at least 1, got {arguments.jobs}")
    if not arguments.timeout > 0:
        raise CompileError(f"--timeout must be positive, got {arguments.timeout:g}")
    question = _question(arguments)
    begun_from = output if arguments.resume and output.exists() else source
    ctx = context()
    ctx.allow_unregistered = arguments.allow_unregistered_dialect
    progress = _Progress(quiet=arguments.quiet)

    def found(candidate: Candidate) -> None:
        write_output(output, _file_text(candidate))
        progress.show(candidate, reduction.asked)

    reduction = Reduction(ctx, question, journal, found, arguments.jobs, progress.tell)
    text = decode_text(begun_from.read_bytes(), str(begun_from))
    remember_text(str(begun_from), text)
    resources: Resources = {}
    module = parse_text(ctx, text, str(begun_from), resources=resources)
    verify_module(module)
    available = {
        **installed_universe().all_passes,
        **{name: lambda place=place: load(place) for name, place in REPLACED_PASSES.items()},
    }
    given = [] if begun_from is output else list(arguments.passes)
    if not given and "mlir_reproducer" in resources:
        given = [pipeline_of(resources, str(begun_from))[0]]
    passes = tuple(p for text in given for p in parse_passes(text, available))
    start = reduction.candidate(module, passes)
    settings = repr([replace(question, seconds=0), str(source), source.stat().st_size])
    # Children import their modules with their first program.
    patient = replace(question, seconds=10 * question.seconds)
    first = replace(patient, run=replace(question.run, passes=start.pipeline)).ask(start.text)
    if not first.verifies or not first.interesting:
        raise CompileError(f"'{begun_from}' is not interesting by {_flag(question)}: {first.seen}")
    if question.kind == "crash":
        reduction.question = replace(question, crash=first.seen)
    journal.begin(settings, resume=arguments.resume)
    progress.begin(start)
    found(start)
    best = reduction.run(start)
    progress.end()
    journal.path.unlink(missing_ok=True)
    print(f"{output}: {best.size_in_words}, from {start.size_in_words}; {reduction.asked} programs tried")
    return 0


def _question(arguments: argparse.Namespace) -> InterestingnessTest:
    given: list[Kind] = [kind for kind in _KINDS if getattr(arguments, kind)]
    if not given:
        flags = ", ".join(f"--{kind}" for kind in _KINDS)
        raise CompileError(f"weft-reduce needs to know which programs are interesting: one of {flags}")
    if arguments.status is not None and given != ["test"]:
        raise CompileError("--status is of --test COMMAND")
    if given == ["test"] and (arguments.passes or arguments.target != "mlir"):
        raise CompileError("--test COMMAND runs the passes itself: leave -p and -t out")
    backends = tuple((arguments.differs or "").split(",")) if given == ["differs"] else ()
    two = "--differs takes two back ends, such as llvm,c or interpreter,llvm"
    if backends and (len(backends) < 2 or "" in backends or set(backends) == {"interpreter"}):
        raise CompileError(f"{two}; got '{arguments.differs}'")
    if given == ["message"]:
        try:
            re.compile(arguments.message)
        except re.error as error:
            raise CompileError(f"--message: '{arguments.message}' is not a regular expression: {error}") from None
    run = Run("", arguments.target, arguments.allow_unregistered_dialect, arguments.validate)
    text = arguments.test or arguments.message or ""
    return InterestingnessTest(given[0], run, text, arguments.status, "", backends, arguments.timeout)


def _flag(question: InterestingnessTest) -> str:
    return f"--{question.kind}" + (f" '{question.text}'" if question.text else "")


def _file_text(candidate: Candidate) -> str:
    """Returns a reproducer for `weft-opt --run-reproducer` if there are passes."""
    if not candidate.passes:
        return candidate.text
    return reproducer_text(candidate.text.rstrip("\n"), candidate.pipeline, verify_each=True)


class _Progress:
    """One line on a terminal, otherwise a line for each smaller program."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._is_terminal = sys.stderr.isatty()
        self._begun = time.monotonic()
        self._line, self._what, self._written = "", "", 0.0

    def begin(self, start: Candidate) -> None:
        self._start = start

    def tell(self, what: str) -> None:
        """`what` is empty if a candidate was not interesting."""
        self._what = what or self._what
        if self._is_terminal and not self._quiet and time.monotonic() - self._written > 0.1:
            self._written = time.monotonic()
            print(f"\r\033[K{self._line}; trying without {self._what}", end="", file=sys.stderr, flush=True)

    def show(self, candidate: Candidate, asked: int) -> None:
        seconds = time.monotonic() - self._begun
        self._line = f"{candidate.size_in_words}, {len(candidate.text)} characters; {asked} tried in {seconds:.0f} s"
        if self._is_terminal:
            self.tell("")
        elif not self._quiet:
            print(f"weft-reduce: {self._line}", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._is_terminal and not self._quiet:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def main() -> None:
    words = sys.argv[1:]
    sys.exit(run_tool(lambda: execute(words), debug="--debug" in words))


if __name__ == "__main__":
    main()
