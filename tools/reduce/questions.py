"""Tests whether a program is interesting, in child processes because it may crash or loop."""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from traceback import extract_tb
from typing import Final, Literal, TypeAlias

from weft.passes.pass_sequence import ForeignPassError
from weft.support.errors import CompileError
from weft.support.limited_calls import Failure, Limits, limited_call
from weft.tools.failures import is_user_error, message_of
from weft.tools.weft_opt import WeftOptMain

Kind: TypeAlias = Literal["test", "crash", "message", "validate", "differs"]
_CHANGED: Final = r"pass '[^']*' changed the meaning of the program"


@dataclass(frozen=True)
class Answer:
    verifies: bool
    interesting: bool
    seen: str
    """The outcome in words."""


@dataclass(frozen=True)
class Run:
    passes: str = ""
    target: str = "mlir"
    allow_unregistered: bool = False
    validate: bool = False

    def words(self) -> list[str]:
        words = [*(["-p", self.passes] if self.passes else []), "-t", self.target]
        words += ["--allow-unregistered-dialect"] if self.allow_unregistered else []
        return [*words, *(["--validate"] if self.validate else []), "-"]


@dataclass(frozen=True)
class InterestingnessTest:
    """A test of programs. `kind` is one of:

    - `test`: the command `text` on the file of the program exits with `status` (None: any status other than 0).
    - `crash`: `weft-opt` fails by a bug, the one that `crash` names unless it is empty.
    - `message`: it fails with a message that the regular expression `text` matches.
    - `validate`: a pass changes a result in the interpreter.
    - `differs`: two of `backends` compute different results after the passes.
    """

    kind: Kind
    run: Run = field(default_factory=Run)
    text: str = ""
    status: int | None = None
    crash: str = ""
    backends: tuple[str, ...] = ()
    seconds: float = 30.0

    def ask(self, program: str) -> Answer:
        """A program that exceeds the time limit is not interesting."""
        limits = Limits(self.seconds, 0)
        found = limited_call(limits, _answer, self, program)
        if isinstance(found, Failure):
            return self._after_failure(found, program)
        if found.verifies and self.kind == "test":
            return self._run_command(program)
        return found

    def _after_failure(self, failure: Failure, program: str) -> Answer:
        """The process ended: the program is interesting if it verifies."""
        seen = str(failure)
        verified = limited_call(Limits(self.seconds, 0), _answer, InterestingnessTest("test", self.run), program)
        if isinstance(verified, Failure) or not verified.verifies:
            return Answer(False, False, seen)
        if failure.kind != "crash":
            return Answer(True, False, seen)
        if self.kind == "crash":
            return Answer(True, self.crash in ("", _ending(seen)), _ending(seen))
        return Answer(True, self.kind == "message" and re.search(self.text, seen) is not None, seen)

    def _run_command(self, program: str) -> Answer:
        with tempfile.NamedTemporaryFile("w", suffix=".mlir", encoding="utf-8") as file:
            file.write(program)
            file.flush()
            words = shlex.split(self.text)
            has_place = any("{}" in word for word in words)
            words = [word.replace("{}", file.name) for word in words] + ([] if has_place else [file.name])
            try:
                done = subprocess.run(
                    words, stdin=subprocess.DEVNULL, capture_output=True, timeout=self.seconds, check=False
                )
            except subprocess.TimeoutExpired:
                return Answer(True, False, f"'{self.text}' takes longer than {self.seconds:g} s")
            except OSError as error:
                raise CompileError(f"--test: '{words[0]}' cannot be run: {error.strerror}") from None
        status = done.returncode
        interesting = status != 0 if self.status is None else status == self.status
        return Answer(True, interesting, f"'{self.text}' ended with status {status}")


def _ending(reason: str) -> str:
    """Remove details that vary between runs."""
    return reason.partition(":")[0]


# Functions that run in the child


def _answer(question: InterestingnessTest, program: str) -> Answer:
    try:
        tool = WeftOptMain(args=question.run.words())
        module = tool.parse_chunk(BytesIO(program.encode()), "mlir")
        tool.verify(module)
    except Exception as error:  # noqa: BLE001 - whatever a parser or verifier raises on this text
        return Answer(False, False, message_of(error))
    if question.kind == "test":
        return Answer(True, False, "")
    try:
        tool.apply_passes(module)
        if question.kind == "differs":
            from weft.tools.reduce.differences import difference_between  # start-up: 600 ms

            difference = difference_between(module, question.backends)
            return Answer(True, difference is not None, difference or "the results are the same")
        tool.result(module)
    except Exception as error:  # noqa: BLE001 - it may be the fault that is sought
        return _after(question, error)
    return Answer(True, False, "nothing failed")


def _after(question: InterestingnessTest, error: Exception) -> Answer:
    text = message_of(error)
    if question.kind == "message":
        return Answer(True, re.search(question.text, text) is not None, text)
    if question.kind == "validate":
        return Answer(True, re.search(_CHANGED, text) is not None, text)
    if question.kind == "crash" and (name := _crash_name(error)) is not None:
        return Answer(True, question.crash in ("", name), name)
    return Answer(True, False, text)


def _crash_name(error: Exception) -> str | None:
    """Returns the exception and the function that raised it, or None for an error about the program."""
    cause: BaseException | None = error.__cause__ if isinstance(error, ForeignPassError) else error
    if cause is None or (isinstance(cause, Exception) and is_user_error(cause)):
        return None
    frames = extract_tb(cause.__traceback__)
    if isinstance(cause, RecursionError) or not frames:  # the function that reaches the limit of recursion varies
        return type(cause).__name__
    return f"{type(cause).__name__} in {Path(frames[-1].filename).name}:{frames[-1].name}"
