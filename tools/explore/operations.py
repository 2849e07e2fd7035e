"""The operations of a session, for the REPL, the terminal view and the MCP server."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, get_type_hints

from weft.support.errors import CompileError, did_you_mean
from weft.tools.explore.completion import completions
from weft.tools.explore.session import FORMATS, Session, tables_text, text_pattern
from weft.tools.ir_dumps import difference


@dataclass(frozen=True)
class Reply:
    text: str
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass
class Workbench:
    target: str = "llvm"
    passes: str | None = None
    shapes: Mapping[str, str] = field(default_factory=dict[str, str])
    opened: Session | None = None
    coloured: bool = False
    """Whether differences are coloured, for terminals."""

    @property
    def session(self) -> Session:
        if self.opened is None:
            raise CompileError("no program is loaded: load FILE")
        return self.opened


@dataclass(frozen=True)
class Operation:
    """Parameters are those of `run` after the workbench: strings, integers and flags."""

    name: str
    run: Callable[..., Reply]
    rest: bool = False
    """Whether the rest of a command line is one argument."""

    @property
    def summary(self) -> str:
        return " ".join((inspect.getdoc(self.run) or "").split())

    @property
    def parameters(self) -> dict[str, tuple[type, bool]]:
        """Maps a name to the type, and whether the parameter is required."""
        hints = get_type_hints(self.run)
        found = list(inspect.signature(self.run).parameters.values())[1:]
        return {p.name: (_plain_type(hints[p.name]), p.default is inspect.Parameter.empty) for p in found}

    @property
    def usage(self) -> str:
        words = [name.upper() if required else f"[{name.upper()}]" for name, (_, required) in self.parameters.items()]
        return " ".join([self.name, *words])

    def call(self, workbench: Workbench, arguments: Mapping[str, object]) -> Reply:
        """Raises `CompileError` for wrong arguments."""
        parameters = self.parameters
        for name, value in arguments.items():
            if name not in parameters:
                raise CompileError(f"{self.name}: unknown argument '{name}'{did_you_mean(name, parameters)}")
            wanted = parameters[name][0]
            if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
                raise CompileError(f"{self.name}: '{name}' must be {_WORDS[wanted]}, got {value!r}")
        for name, (_, required) in parameters.items():
            if required and name not in arguments:
                raise CompileError(f"{self.name}: '{name}' is missing: {self.usage}")
        return self.run(workbench, **arguments)


_WORDS: Final[Mapping[type, str]] = {str: "a string", int: "an integer", bool: "true or false"}


def _plain_type(hint: Any) -> type:
    return next(kind for kind in (bool, int, str) if hint is kind or kind in getattr(hint, "__args__", ()))


def status_data(session: Session) -> dict[str, Any]:
    states = [
        {"position": at, "title": state.title, "kind": state.kind, "ms": round(state.seconds * 1e3, 3)}
        for at, state in enumerate(session.states)
    ]
    return {"file": session.file, "target": str(session.target), "at": session.at, "states": states,
            "upcoming": session.upcoming()}  # fmt: skip


def position_line(session: Session) -> str:
    state = session.state
    note = "" if session.at == 0 or state.text != session.previous.text else "  (no change)"
    return f"[{session.at}] {state.title}  {state.seconds * 1e3:.1f} ms{note}"


def _moved(session: Session) -> Reply:
    return Reply(position_line(session), status_data(session))


def load(workbench: Workbench, file: str, target: str | None = None, passes: str | None = None) -> Reply:
    """Load a program: an .mlir, .onnx or Python file (FILE.py:NAME). The pipeline is that of weft.build for the target,
    or the passes, as weft-opt -p takes them."""
    session = Session(file, target or workbench.target, passes or workbench.passes, workbench.shapes)
    workbench.opened = session
    return Reply(f"{file} for {session.target}: next {', '.join(session.upcoming()[:4])}", status_data(session))


def status(workbench: Workbench) -> Reply:
    """Show the states, the position among them, and the rest of the pipeline."""
    session = workbench.session
    lines: list[str] = []
    for at, state in enumerate(session.states):
        time = session.times.get(state)
        mark = ">" if at == session.at else " "
        lines.append(f"{mark} [{at}] {state.title}" + ("" if time is None else f"  runs in {time.median * 1e3:.4g} ms"))
    lines += [f"      {title}" for title in session.upcoming()[:_SHOWN]]
    more = len(session.upcoming()) - _SHOWN
    return Reply("\n".join([*lines, *([f"      and {more} more"] if more > 0 else [])]), status_data(session))


_SHOWN: Final = 12


def step(workbench: Workbench, count: int = 1) -> Reply:
    """Move forward; at the last state, run the next passes or schedule steps of the pipeline."""
    workbench.session.step(count)
    return _moved(workbench.session)


def change(workbench: Workbench) -> Reply:
    """Step until the program changes."""
    workbench.session.step_to_change()
    return _moved(workbench.session)


def end(workbench: Workbench) -> Reply:
    """Step to the end of the pipeline."""
    workbench.session.step_to_end()
    return _moved(workbench.session)


def back(workbench: Workbench, count: int = 1) -> Reply:
    """Move back."""
    workbench.session.back(count)
    return _moved(workbench.session)


def goto(workbench: Workbench, position: int) -> Reply:
    """Move to the state of a number, as status shows it."""
    workbench.session.goto(position)
    return _moved(workbench.session)


def apply(workbench: Workbench, call: str) -> Reply:
    """Apply a schedule primitive, such as split(i, [None, 4]), vectorize(Y.j), compute_at(Y, C.i), or passes as
    weft-opt -p takes them. Loops are named by their variable (i, %i), or with a block inside (Y.i, Y[0]); blocks by
    their name. A refused primitive changes nothing, and the reply has the two iterations in conflict."""
    workbench.session.apply(call)
    return _moved(workbench.session)


def undo(workbench: Workbench) -> Reply:
    """Undo the last applied primitive."""
    workbench.session.undo()
    return _moved(workbench.session)


def redo(workbench: Workbench) -> Reply:
    """Apply again what was undone."""
    workbench.session.redo()
    return _moved(workbench.session)


def ir(workbench: Workbench, func: str | None = None) -> Reply:
    """Show the IR of the current state, or of one function."""
    parts = workbench.session.state.parts
    if func is not None and func not in parts:
        raise CompileError(f"unknown function '{func}'{did_you_mean(func, parts)}")
    return Reply(workbench.session.state.text if func is None else parts[func])


def diff(workbench: Workbench, first: int | None = None, second: int | None = None) -> Reply:
    """Show what the last step changed, or the difference between two states."""
    session = workbench.session
    before = session.previous if first is None else session.state_at(first)
    after = session.state if second is None else session.state_at(second)
    text = difference(before.text, after.text, coloured=workbench.coloured)
    return Reply(text or "no difference")


def loops(workbench: Workbench, func: str | None = None) -> Reply:
    """Show the loop tree of all functions, or of one."""
    return Reply("\n\n".join(map(str, workbench.session.loops(func))) or "no functions")


def buffers(workbench: Workbench, func: str | None = None) -> Reply:
    """Show the buffers of all functions, or of one, with the bytes that loops move."""
    return Reply(tables_text(workbench.session.buffers(func)) or "no buffers at this level")


def find(workbench: Workbench, text: str) -> Reply:
    """Find a text in the current state: lines of the program, with numbers, and lines of loop trees. Upper and lower
    case are the same unless the text has upper case."""
    session, wanted = workbench.session, text_pattern(text)
    lines = [f"{number:>5}  {line.strip()}" for number, line in session.found_lines(wanted)]
    trees = [f"@{name}  {line.strip()}" for name, line in session.found_loops(wanted)]
    return Reply("\n".join([*lines, *trees]) or f"'{text}' is not in this state")


def run(workbench: Workbench, func: str | None = None) -> Reply:
    """Compile the program as it is, run it on random arrays, and compare its outputs with the input program."""
    result = workbench.session.run(func)
    return Reply("\n".join([result.signature, *result.lines]), {"agrees": result.agrees})


def time(workbench: Workbench, func: str | None = None) -> Reply:
    """Compile the program as it is, and measure calls on random arrays."""
    result = workbench.session.time(func)
    data = {"function": result.function, "median_s": result.median, "min_s": result.fastest, "gflops": result.gflops}
    return Reply(result.line, data)


def save(workbench: Workbench, format: str, file: str, overwrite: bool = False) -> Reply:
    workbench.session.save(format, os.path.expanduser(file), overwrite=overwrite)
    return Reply(f"saved {file}")


save.__doc__ = (
    "Write the current state to a file, in a format: "
    + "; ".join(f"{name}, {what}" for name, what in FORMATS.items())
    + ". An existing file is replaced only with overwrite."
)


def complete(workbench: Workbench, line: str) -> Reply:
    """List the completions of a line for apply."""
    found = completions(line, workbench.session.state)
    text = "\n".join(f"{one.text}  {one.detail}".rstrip() for one in found)
    return Reply(
        text or "no completions", {"start": found[0].start if found else len(line), "texts": [o.text for o in found]}
    )


OPERATIONS: Final[Mapping[str, Operation]] = {
    operation.name: operation
    for operation in (
        Operation("load", load),
        Operation("status", status),
        Operation("step", step),
        Operation("change", change),
        Operation("end", end),
        Operation("back", back),
        Operation("goto", goto),
        Operation("apply", apply, rest=True),
        Operation("undo", undo),
        Operation("redo", redo),
        Operation("ir", ir),
        Operation("diff", diff),
        Operation("loops", loops),
        Operation("buffers", buffers),
        Operation("find", find, rest=True),
        Operation("run", run),
        Operation("time", time),
        Operation("save", save),
        Operation("complete", complete, rest=True),
    )
}
