"""A session: the states of a program along its pipeline, and operations on them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final

from weft.analysis.loop_tree import loop_tree
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.traversal import copy_of, operations_of
from weft.driver.build import build_module
from weft.driver.stablehlo_loops import import_stablehlo_loops
from weft.driver.universe import pass_factories
from weft.driver.verify import verify_module
from weft.frontends.script.printer import print_script
from weft.interp.arguments import needs_positive
from weft.interp.interpreter import Interpreter
from weft.passes.convert.returned_parameters import drop_returned_parameters
from weft.passes.lower_to_tir import lower_to_tir
from weft.passes.module_edits import entry_function, functions_of
from weft.passes.pipeline_text import parse_passes
from weft.schedule.traces import run_python, simplify_trace, trace_as_python
from weft.support.build_options import DEFAULT_OPTIONS, BuildOptions
from weft.support.errors import CompileError, did_you_mean
from weft.support.files import check_output, write_output
from weft.support.packages import installed_universe
from weft.support.target import Target
from weft.tools.arrays import Request, compare, make_arguments, sizes_note
from weft.tools.explore.pipeline import PassItem, State, advanced, after_pass, build_pipeline, pass_pipeline, pass_text
from weft.tools.explore.references import References
from weft.tools.printing import text_of
from weft.tools.run_command import (
    INTERPRETED_PER_SECOND,
    call,
    copied,
    interpreted,
    outputs_of,
    time_lines,
    timed,
    unscheduled_outputs,
    work_of,
)
from weft.tools.show.buffers import buffer_rows, memory_rows
from weft.tools.show.programs import read_program
from weft.tools.show.tables import Table, buffer_table, memory_table
from weft.tools.show.terminal import table_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xdsl.dialects.builtin import ModuleOp

    from weft.interp.arguments import OperationCounts
    from weft.runtime.library import Library
    from weft.support.trees import Tree
    from weft.tools.arrays import Value

FORMATS: Final[Mapping[str, str]] = {
    "program": "the IR, as an .mlir file",
    "trace": "the steps since the last pass, as a sched.func",
    "script": "the program as a Python file of weft.script",
    "python": "a Python program that schedules and builds the program",
}
"""The formats of `Session.save`."""
_CHECK_SECONDS: Final = 10.0
"""Maximum estimated time of an interpreter run of a check."""
_REPEAT: Final = 5


@dataclass(frozen=True)
class RunResult:
    signature: str
    agrees: bool
    lines: tuple[str, ...]


@dataclass(frozen=True)
class TimeResult:
    """Seconds of a call."""

    function: str
    median: float
    fastest: float
    gflops: float | None
    line: str


@dataclass(frozen=True)
class _History:
    states: tuple[State, ...]
    at: int


class Session:
    """At the last state, a step runs the next item of the pipeline; a primitive that is applied at an earlier one
    replaces the later ones. All methods raise `WeftError`, and then change nothing."""

    def __init__(
        self,
        file: str,
        target: str = "llvm",
        passes: str | None = None,
        shapes: Mapping[str, str] | None = None,
        options: BuildOptions = DEFAULT_OPTIONS,
    ) -> None:
        """Read a file, as `weft show` does. `passes` have the syntax of `weft-opt -p`; by default they are those of
        `weft.build`. Also raises `OSError`."""
        self.file = file
        self.target = Target.parse(target)
        self.options = options
        module = read_program(file, shapes)
        items = build_pipeline(self.target, options) if passes is None else pass_pipeline(passes)
        self._now = _History((State("input", "input", "The program as it was given", module, items),), 0)
        self._before: list[_History] = []
        self._undone: list[_History] = []
        self._libraries: dict[State, Library] = {}
        self.times: dict[State, TimeResult] = {}
        """The last measurements of states."""

    # States

    @property
    def states(self) -> Sequence[State]:
        return self._now.states

    @property
    def at(self) -> int:
        return self._now.at

    @property
    def state(self) -> State:
        return self._now.states[self._now.at]

    @property
    def previous(self) -> State:
        """The state before the current one, if there is one."""
        return self._now.states[max(self._now.at - 1, 0)]

    def upcoming(self) -> list[str]:
        """Returns the titles of the items to run. Stages are one entry until they begin."""
        return [item.title for item in self.states[-1].rest]

    def state_at(self, position: int) -> State:
        if not 0 <= position < len(self.states):
            raise CompileError(f"states are numbered 0 to {len(self.states) - 1}, got {position}")
        return self.states[position]

    # Moves

    def step(self, count: int = 1) -> State:
        """If a step fails, the steps before it remain."""
        if count < 1:
            raise CompileError(f"step takes a positive count, got {count}")
        for _ in range(count):
            self._forward()
        return self.state

    def step_to_change(self) -> State:
        before = self.state.text
        while self._forward().text == before and (self.state.rest or self.at + 1 < len(self.states)):
            pass
        return self.state

    def step_to_end(self) -> State:
        while self.at + 1 < len(self.states) or self.state.rest:
            self._forward()
        return self.state

    def _forward(self) -> State:
        states, at = self.states, self.at
        if at + 1 < len(states):
            self._now = _History(tuple(states), at + 1)
            return self.state
        after = advanced(self.state)
        # Only stages without effect were left.
        is_same = after.title == self.state.title and after.module is self.state.module
        self._now = _History((*states[:-1], after), at) if is_same else _History((*states, after), at + 1)
        return self.state

    def back(self, count: int = 1) -> State:
        if count < 1:
            raise CompileError(f"back takes a positive count, got {count}")
        if count > self.at:
            raise CompileError("this is the first state" if self.at == 0 else f"there are only {self.at} states before")
        return self.goto(self.at - count)

    def goto(self, position: int) -> State:
        self.state_at(position)
        self._now = _History(self._now.states, position)
        return self.state

    # Changes

    def apply(self, text: str) -> State:
        """Apply a primitive, as `a, b = split(Y.i, [None, 4])`, or passes as `weft-opt -p` takes them."""
        text = text.strip()
        if not text:
            raise CompileError("apply takes a primitive, as split(i, [None, 4]), or passes")
        return self._add(self._after_call(text) if _is_call(text) else self._after_passes(text))

    def _after_call(self, text: str) -> State:
        start = perf_counter()
        after = self.state.fork()
        schedule = after.schedule
        if schedule is None:
            raise CompileError("the state has no schedule")
        references = References(schedule, after.assigned)
        run_python(schedule, _with_owner(text), handles=references)
        return replace(
            after,
            title=re.sub(r"\bsch\.(?=\w+\()", "", text),
            kind="primitive",
            summary="Applied by you",
            seconds=perf_counter() - start,
            assigned=references.assigned,
        )

    def _after_passes(self, text: str) -> State:
        state = self.state
        for run in parse_passes(text, pass_factories(installed_universe())):
            state = replace(after_pass(state, PassItem(run), state.rest), kind="primitive", group=self.state.group)
            _verify(state.module, pass_text(run))
        return replace(state, title=text)

    def _add(self, state: State) -> State:
        self._before.append(self._now)
        self._undone.clear()
        self._now = _History((*self.states[: self.at + 1], state), self.at + 1)
        return state

    def undo(self) -> State:
        if not self._before:
            raise CompileError("there is nothing to undo")
        self._undone.append(self._now)
        self._now = self._before.pop()
        return self.state

    def redo(self) -> State:
        if not self._undone:
            raise CompileError("there is nothing to redo")
        self._before.append(self._now)
        self._now = self._undone.pop()
        return self.state

    # Views

    def changed_functions(self) -> list[str]:
        """Returns all functions for the first state."""
        before = self.previous.parts if self.at else {}
        return [name for name, text in self.state.parts.items() if before.get(name) != text]

    def _functions(self, func: str | None) -> list[str]:
        known = functions_of(self.state.module)
        if func is not None and func not in known:
            raise CompileError(f"unknown function '{func}'{did_you_mean(func, known)}")
        return list(known) if func is None else [func]

    def loops(self, func: str | None = None) -> list[Tree]:
        known = functions_of(self.state.module)
        return [loop_tree(known[name]) for name in self._functions(func) if known[name].body.blocks]

    def buffers(self, func: str | None = None) -> list[tuple[str, Table]]:
        """Returns titled tables: for block loops with the bytes that they move; for lowered functions followed by
        constants."""
        known = functions_of(self.state.module)
        memory = memory_rows(self.state.module)
        tables: list[tuple[str, Table]] = []
        for name in self._functions(func):
            function = known[name]
            if operations_of(function, ForOp, BlockOp):
                tables.append((f"@{name}", buffer_table(buffer_rows(function, self.target))))
            elif rows := [row for row in memory if row.function == name]:
                tables.append((f"@{name}", memory_table(rows)))
        constants = [row for row in memory if not row.function]
        return [*tables, *([("constants", memory_table(constants))] if constants else [])]

    def found_lines(self, wanted: re.Pattern[str]) -> list[tuple[int, str]]:
        """Numbers count from 1."""
        lines = enumerate(self.state.text.split("\n"), 1)
        return [(number, line) for number, line in lines if wanted.search(line)]

    def found_loops(self, wanted: re.Pattern[str]) -> list[tuple[str, str]]:
        trees = ((name, tree) for name in functions_of(self.state.module) for tree in self.loops(name))
        return [(name, line) for name, tree in trees for line in str(tree).split("\n") if wanted.search(line)]

    # Runs

    def run(self, func: str | None = None, seed: int = 0) -> RunResult:
        """Run the program on random arrays, and compare with the interpreter on the input, or if that would take long,
        with the compiled unscheduled input."""
        library, name, as_is = self._compiled(func)
        compiled = library[name]
        original = self.states[0].module
        if name not in functions_of(original):
            raise CompileError(f"a pass made @{name}: name a function of the input, to compare with")
        signature, chosen = compiled.signature, dict[str, int]()
        values = make_arguments(signature, Request({}, seed, needs_positive(original)), chosen)
        before = copied(values)
        call(compiled, values)
        work = self._work(name, before)
        if work is None or work.operations / INTERPRETED_PER_SECOND <= _CHECK_SECONDS:
            taken = copy_of(original)
            drop_returned_parameters(taken, functions_of(taken).values())
            reference = interpreted(Interpreter(taken), functions_of(taken)[name], signature, before)
        else:
            reference = unscheduled_outputs(original, name, signature, before, self.target)
        lines, agrees, outputs = [as_is], True, outputs_of(signature, values)
        if chosen:
            lines.append(sizes_note(chosen))
        for spec in signature.arrays:
            if spec.writes:
                found = compare(outputs[spec.name], reference.outputs[spec.name], spec.dtype)
                agrees = agrees and found.agrees
                verb = "agrees with" if found.agrees else "DIFFERS from"
                lines.append(f"{spec.name} {verb} {reference.name}: {found}")
        return RunResult(str(signature), agrees, tuple(lines))

    def time(self, func: str | None = None) -> TimeResult:
        """Measure calls of the current program on random arrays."""
        library, name, as_is = self._compiled(func)
        compiled = library[name]
        values = make_arguments(compiled.signature, Request({}, 0, needs_positive(self.states[0].module)))
        known = name in functions_of(self.states[0].module)
        result, gflops = timed(compiled, values, _REPEAT, self._work(name, values) if known else None)
        line = ", ".join(time_lines(result, gflops, _REPEAT))
        found = TimeResult(name, result.median, result.min, gflops, f"{line}; {as_is}")
        self.times[self.state] = found
        return found

    def _compiled(self, func: str | None) -> tuple[Library, str, str]:
        state = self.state
        has_loops = bool(operations_of(state.module, ForOp, BlockOp))
        by_default = not has_loops and not state.group
        name = entry_function(self.states[0].module if func is None else state.module, func).sym_name.data
        if state not in self._libraries:
            options = replace(self.options, scheduled=by_default, default_schedule=by_default)
            self._libraries[state] = build_module(_completed(state).module, self.target, options)
        how = (
            "compiled with its schedules and default ones"
            if by_default
            else "compiled as it is, without more schedules"
        )
        return self._libraries[state], name, how

    def _work(self, name: str, values: Mapping[str, Value]) -> OperationCounts | None:
        loops = copy_of(self.states[0].module)
        import_stablehlo_loops(loops)
        lower_to_tir(loops)
        return work_of(loops, name, values)

    # Files

    def saved_text(self, form: str) -> str:
        """`form` is one of `FORMATS`."""
        state = self.state
        if form == "program":
            return f"{text_of(state.module)}\n"
        if form == "script":
            return print_script(state.module)
        if form not in FORMATS:
            raise CompileError(f"unknown format '{form}'{did_you_mean(form, FORMATS)}: one of {', '.join(FORMATS)}")
        if state.schedule is None:
            raise CompileError("no step of a schedule was applied since the last pass")
        trace = simplify_trace(state.schedule.trace, keep_sampling=True)
        return f"{text_of(trace)}\n" if form == "trace" else self._python(state, trace_as_python(trace))

    def _python(self, state: State, calls: str) -> str:
        if state.schedule is None:
            raise CompileError("the state has no schedule")
        base = text_of(state.schedule.original).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
        return (
            f'"""A schedule of {Path(self.file).name}."""\n\nimport weft\n\nPROGRAM = """\n{base}\n"""\n\n'
            f'sch = weft.Schedule(weft.parse(PROGRAM))\n{calls}\nif __name__ == "__main__":\n'
            f"    print(sch.mod)\n    lib = weft.build(sch.mod, target={str(self.target)!r}, default_schedule=False)\n"
        )

    def save(self, form: str, path: str, *, overwrite: bool = False) -> Path:
        """`form` is one of `FORMATS`. An existing file is replaced only with `overwrite`."""
        file = Path(path)
        check_output(file)
        if file.exists() and not overwrite:
            raise FileExistsError(f"'{path}' exists")
        write_output(file, self.saved_text(form))
        return file


def _completed(state: State) -> State:
    group = state.group
    while group and state.rest and isinstance(state.rest[0], PassItem) and state.rest[0].group == group:
        state = advanced(state)
    return state


def _verify(module: ModuleOp, name: str) -> None:
    try:
        verify_module(module)
    except CompileError as error:
        raise CompileError(f"pass '{name}' left IR that does not verify: {error.message}") from error


def _is_call(text: str) -> bool:
    return re.match(r"(?:[\w\s,]+=(?!=)\s*)?(?:sch\s*\.\s*)?\w+\s*\(", text) is not None and not re.match(
        r"(?:builtin\.module|func\.func|any)\s*\(", text
    )


def _with_owner(text: str) -> str:
    """Make a call one of `sch`, with names as Python writes them: `i` for `%i`."""
    parts = text.split('"')
    parts[::2] = [re.sub(r"((?:^|[(,\[=])\s*)%(?=\w)", r"\1", part) for part in parts[::2]]
    text = '"'.join(parts)
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return text  # because the reader of calls reports it
    for statement in tree.body:
        value = statement.value if isinstance(statement, ast.Assign | ast.Expr) else None
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            value.func = ast.Attribute(ast.Name("sch"), value.func.id)
    return ast.unparse(tree)


def text_pattern(text: str) -> re.Pattern[str]:
    """Case is ignored unless the text has upper case."""
    return re.compile(re.escape(text), re.IGNORECASE if text == text.lower() else 0)


def tables_text(tables: Sequence[tuple[str, Table]]) -> str:
    return "\n\n".join(f"{title}\n{table_text(table)}" for title, table in tables)
