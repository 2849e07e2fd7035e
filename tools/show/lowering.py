"""The lowering of a program, recorded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from io import StringIO
from time import perf_counter
from typing import TYPE_CHECKING, Final

from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr, ModuleOp, StringAttr
from xdsl.utils.exceptions import DiagnosticException, VerifyException

from weft.analysis.loop_tree import loop_tree, loop_trees
from weft.backends.llvm.compile import assembly
from weft.backends.llvm.emit import emit_module
from weft.backends.picture.graph_model import NodeKind, graph_models
from weft.backends.picture.svg import svg_text
from weft.dialects.graph import CallTirOp
from weft.dialects.traversal import copy_of, operations_in
from weft.driver.pipeline import Pipeline
from weft.driver.progress import Progress
from weft.driver.stablehlo_loops import import_stablehlo_loops
from weft.driver.stages import schedule, to_low, to_tir
from weft.passes.convert.convert_from_upstream import convert_from_upstream
from weft.passes.graph.functions import holds_graph_ops
from weft.passes.module_edits import functions_of, schedules_of
from weft.passes.pass_descriptions import describe_pass
from weft.passes.pass_sequence import PipelineStep, run_step
from weft.runtime.constants import take_constants
from weft.support.errors import CompileError, WeftError
from weft.support.locations import location_parts
from weft.support.packages import installed_universe
from weft.tools.failures import message_of, versions
from weft.tools.printing import ScopedMLIRTarget
from weft.tools.show.buffers import memory_rows
from weft.tools.show.report import GraphPicture, LoweringStage, MemoryRow, ProgramReport, Roofline, ScheduleSteps
from weft.tools.show.roofline import NO_KERNELS, roofline_of
from weft.tools.show.schedules import schedule_steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.dialects import sched
    from weft.support.build_options import BuildOptions
    from weft.support.target import Target
    from weft.support.trees import Tree

MOST_NODES: Final = 600
"""Maximum number of operators of a graph picture; larger graphs are shown as trees."""
_SHOWN_ELEMENTS: Final = 16
"""Maximum number of elements of a constant in texts; larger ones are elided."""
_LABEL: Final = re.compile(r'^"?([\w.$]+)"?:')
_END: Final = re.compile(r"^\s*\.size\s|^# -- End function|^\s*\.section\s")
_LANGUAGES: Final = {"c": "c", "cuda": "cuda", "opencl": "opencl", "metal": "metal"}
"""Maps a kind of target to the name of the printer of its code."""


def program_report(
    program: ModuleOp,
    name: str,
    target: Target,
    options: BuildOptions,
    *,
    extent: int | None = None,
    with_peaks: bool = False,
) -> ProgramReport:
    """Record each stage of the lowering of a copy. An error of the program ends it and is the `failure` of the report.
    With `with_peaks`, the limits of this machine are measured, in about a second. `extent` is that of dynamic
    dimensions of arguments, for the arithmetic and bytes of kernels."""
    collector = _Collector(copy_of(program), target, options, extent, with_peaks)
    try:
        collector.run()
    except (WeftError, DiagnosticException, VerifyException) as error:
        collector.failure = str(error) if isinstance(error, WeftError) else message_of(error)
    return collector.report(name)


@dataclass
class _Collector:
    """Runs the stages of `weft.build` on `module`, in place."""

    module: ModuleOp
    target: Target
    options: BuildOptions
    extent: int | None
    with_peaks: bool
    stages: list[LoweringStage] = field(default_factory=list[LoweringStage])
    trees: tuple[Tree, ...] = ()
    schedules: list[ScheduleSteps] = field(default_factory=list[ScheduleSteps])
    before_fusion: tuple[GraphPicture, ...] = ()
    after_fusion: tuple[GraphPicture, ...] = ()
    memory: tuple[MemoryRow, ...] = ()
    roofline: Roofline = NO_KERNELS
    failure: str = ""
    _kernels: dict[int, str] = field(default_factory=dict[int, str])
    """Maps the identity of the location of an operator to the function that holds it, or to the description of its
    replacement."""

    def run(self) -> None:
        self.record("input", "The program as it was given", 0.0)
        self.trees = tuple(loop_trees(self.module))
        _separate_locations(self.module)
        drawn = list(_pictures(self.module))
        self.before_fusion = tuple(picture for picture, _ in drawn)
        self._lower_to_tir()
        self._note_holders()
        self.before_fusion = tuple(
            replace(picture, kernels=tuple(self._kernels.get(id(place), "") for place in places))
            for picture, places in drawn
        )
        copy = copy_of(self.module)
        self.roofline = roofline_of(copy, self.target, self.options, self.extent, with_peaks=self.with_peaks)
        self._schedule()
        self._lower_to_code()

    def record(self, name: str, summary: str, seconds: float) -> None:
        printer = ScopedMLIRTarget(elide_above=_SHOWN_ELEMENTS)
        parts = tuple((_symbol(op), printer.text(op)) for op in self.module.ops)
        self.stages.append(LoweringStage(name, summary, seconds * 1e3, parts))

    def _lower_to_tir(self) -> None:
        start, before = perf_counter(), self.stages[-1].parts
        import_stablehlo_loops(self.module)
        convert_from_upstream(Context(), self.module, strict=not self.options.passes)
        self.record(
            "convert-from-upstream", "Functions of upstream dialects become block loops", perf_counter() - start
        )
        if self.stages[-1].parts == before:
            self.stages.pop()

        def run(step: PipelineStep, ctx: Context, module: ModuleOp) -> None:
            start = perf_counter()
            run_step(step, ctx, module)
            self.record(step.run.name, _summary(step), perf_counter() - start)
            if step.point == "fuse":
                self.after_fusion = tuple(picture for picture, _ in _pictures(module))
                self._note_holders()

        to_tir(self._pipeline(), run)

    def _note_holders(self) -> None:
        for name, function in functions_of(self.module).items():
            if function.sym_visibility is not None and function.sym_visibility.data == "private":
                for op in operations_in(function):
                    self._kernels.setdefault(id(op.location), name)
        for call in operations_in(self.module):
            if isinstance(call, CallTirOp):
                for part in location_parts(call.location):
                    self._kernels.setdefault(id(part), call.callee.string_value())

    def _pipeline(self) -> Pipeline:
        return Pipeline(self.module, self.target, self.options)

    def _schedule(self) -> None:
        """Apply the schedules of the program, then default ones; also step by step on a copy."""
        in_steps = copy_of(self.module)
        given = [(trace, "in the file") for trace in schedules_of(in_steps) if self.options.scheduled]
        for trace, _ in given:
            trace.detach()
        self._step_through(in_steps, given)
        start = perf_counter()
        traces = schedule(self._pipeline()).traces
        seconds = perf_counter() - start
        self._step_through(in_steps, [(trace, trace.sym_name.data.partition("_")[0]) for trace in traces])
        self.record("schedule", "Schedules are applied; constant expressions are folded", seconds)
        self.trees = tuple(loop_trees(self.module))

    def _step_through(self, module: ModuleOp, traces: Sequence[tuple[sched.FuncOp, str]]) -> None:
        progress = Progress("replaying schedules", len(traces))
        with progress:
            for trace, origin in traces:
                steps = schedule_steps(module, trace, origin, self.target)
                self.schedules.append(steps)
                if steps.failure:
                    raise CompileError(steps.failure)
                progress.advance()

    def _lower_to_code(self) -> None:
        last = perf_counter()

        def after(step: PipelineStep) -> None:
            nonlocal last
            self.record(step.run.name, _summary(step), perf_counter() - last)
            last = perf_counter()

        to_low(self._pipeline(), after)
        self.memory = memory_rows(self.module)
        self._emit()

    def _emit(self) -> None:
        start = perf_counter()
        if self.target.kind == "llvm":
            take_constants(self.module)
            language, text = "LLVM IR", emit_module(self.module, self.target)
        elif self.target.kind in _LANGUAGES:
            language, output = self.target.kind, StringIO()
            make = installed_universe().all_targets[_LANGUAGES[self.target.kind]]
            make()().emit(Context(), self.module, output)
            text = output.getvalue()
        else:
            return
        seconds = perf_counter() - start
        self.stages.append(LoweringStage(language, "The code of the target", seconds * 1e3, (("code", text),)))
        if self.target.kind == "llvm" and self.with_peaks:
            start = perf_counter()
            parts = assembly_parts(assembly(text, self.target))
            seconds = perf_counter() - start
            self.stages.append(LoweringStage("assembly", "Machine code of each function", seconds * 1e3, parts))

    def report(self, name: str) -> ProgramReport:
        return ProgramReport(
            name,
            str(self.target),
            versions().replace("\n", ", "),
            tuple(self.stages),
            self.trees,
            tuple(self.schedules),
            self.before_fusion,
            self.after_fusion,
            self.memory,
            self.roofline,
            self.failure,
        )


def assembly_parts(text: str) -> tuple[tuple[str, str], ...]:
    """Omits directives for debuggers and unwinding, and lines outside of functions."""
    parts: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        label = _LABEL.match(line)
        if label is not None and not label[1].startswith(".L"):
            name = f"@{label[1]}"
            parts[name] = []
        if name and not line.lstrip().startswith((".cfi_", ".p2align", ".type", ".globl", ".size", "# -- ")):
            parts[name].append(line)
        if _END.match(line):
            name = ""
    return tuple((symbol, "\n".join(lines)) for symbol, lines in parts.items() if len(lines) > 1)


def _pictures(module: ModuleOp) -> Iterator[tuple[GraphPicture, list[LocationAttr | None]]]:
    """Yields pictures of graph functions, and the locations of their operators: None for other boxes and constants."""
    for name, function in functions_of(module).items():
        if holds_graph_ops(function):
            (model,) = graph_models(module, name)
            svg = svg_text([model]) if len(model.nodes) <= MOST_NODES else ""
            operations = [node.operation if node.kind is not NodeKind.CONSTANT else None for node in model.nodes]
            places = [None if op is None else op.location for op in operations]
            yield GraphPicture(name, svg, loop_tree(function)), places


def _separate_locations(module: ModuleOp) -> None:
    """Give each operation an equal location object, whose identity distinguishes operators of one line: passes copy the
    reference to replacements."""
    for op in operations_in(module):
        op.location = type(op.location).new(op.location.parameters)


def _summary(step: PipelineStep) -> str:
    return describe_pass(type(step.run)).summary


def _symbol(op: object) -> str:
    name = getattr(op, "sym_name", None)
    kind: str = getattr(op, "name", "")
    return f"@{name.data}" if isinstance(name, StringAttr) else kind
