"""The stages of a build, in order: `to_tir`, `add_versions`, `schedule`, `to_low`, `load`. Each raises `CompileError`,
or `ScheduleError` if a step of a schedule is rejected."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from weft.autoschedule.default_schedule import apply_default_schedule, scheduled_by
from weft.autoschedule.kernel_versions import add_kernel_versions
from weft.dialects import sched
from weft.driver.constants import pack_constants
from weft.driver.pipeline import Pipeline
from weft.driver.programs import context
from weft.driver.stablehlo_loops import import_stablehlo_loops
from weft.driver.transform_scripts import OF_SCRIPT, take_script
from weft.driver.tuned_schedules import apply_tuned_schedules, tuned_records
from weft.driver.verify import verify_module
from weft.passes.lower_tir_to_low import lower_tir_to_low
from weft.passes.lower_to_tir import lower_to_tir
from weft.passes.module_edits import schedules_of
from weft.passes.pass_sequence import PipelineStep, RunStep, run_pass, run_step
from weft.passes.schedule.replay import apply_schedule
from weft.passes.tir.flat_signature import state_parameter_accesses
from weft.passes.tir.tir_pass import buffer_functions
from weft.passes.verify_level import verify_level
from weft.passes.versions import add_graph_versions, dispatch_versions, share_constants
from weft.runtime.low_module import load_low_module
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from weft.runtime.library import Library
    from weft.tuning.records import Record


def to_tir(pipeline: Pipeline, run: RunStep = run_step) -> Pipeline:
    """Lower graphs and tensor expressions to block loops; `run` runs each pass on graphs."""
    module, sizes, stopwatch = pipeline.module, pipeline.options.specialize, pipeline.stopwatch

    def run_timed(step: PipelineStep, ctx: Context, op: ModuleOp) -> None:
        with stopwatch.span(step.run.name):
            run(step, ctx, op)

    with stopwatch.measure("graph and te to tir"):
        import_stablehlo_loops(module)
        take_script(module)
        versions = add_graph_versions(module, sizes) if sizes else []
        lower_to_tir(module, str(pipeline.target), pipeline.options, run_timed)
        if sizes:
            dispatch_versions(module, sizes, versions)
    return pipeline


def add_versions(pipeline: Pipeline) -> dict[str, str]:
    """Add versions for few iterations of kernels that users neither scheduled nor tuned. Returns the kernel of each
    version, by name."""
    module, options = pipeline.module, pipeline.options
    if not options.default_schedule or pipeline.target.kind not in ("llvm", "c"):
        return {}

    def skipped() -> set[str]:
        found: set[str] = set()
        if options.database is not None:
            found |= tuned_records(module, pipeline.target, options.database, options.require_tuned).keys()
        for trace in schedules_of(module) if options.scheduled else ():
            found |= scheduled_by(trace, module)
        return found

    return add_kernel_versions(module, pipeline.target, skipped)


def schedule(pipeline: Pipeline) -> Pipeline:
    module, target, options, stopwatch = pipeline.module, pipeline.target, pipeline.options, pipeline.stopwatch
    tuned: dict[str, list[Record]] = {}
    if options.database is not None and options.default_schedule:
        with stopwatch.measure("database"):
            tuned = tuned_records(module, target, options.database, options.require_tuned)
    with stopwatch.measure("schedule"):
        state_parameter_accesses(module)
        by_users = _run_schedules(module, options.scheduled, tuned)
    if options.verify:
        # before default schedules, whose steps preserve validity
        with stopwatch.measure("check of tir"):
            for function in buffer_functions(module):
                # Inserted passes may lower ops of other levels, which are checked later.
                verify_level(function, None if options.passes else "tir")
    traces: list[sched.FuncOp] = []
    if options.default_schedule:
        with stopwatch.measure("schedule"):
            found = apply_tuned_schedules(module, {n: r for n, r in tuned.items() if n not in by_users}, target)
            traces = [*found.values(), *apply_default_schedule(module, target, skip=by_users.union(found))]
    if target.kind in ("llvm", "c"):
        with stopwatch.measure("constants"):
            pack_constants(module)
            if options.specialize:
                share_constants(module)
    return replace(pipeline, traces=traces)


def to_low(pipeline: Pipeline, after: Callable[[PipelineStep], None] | None = None) -> Pipeline:
    # Tests and weft-opt, not builds, verify the output of weft's own passes.
    has_others = bool(pipeline.options.passes)
    lap = pipeline.stopwatch.laps()

    def run(step: PipelineStep, ctx: Context, module: ModuleOp) -> None:
        run_pass(step.run, ctx, module)
        lap(step.run.name)
        _check_inserted(step, module)
        if after is not None:
            after(step)
            lap(None)

    lower_tir_to_low(
        context() if has_others else Context(),
        pipeline.module,
        str(pipeline.target),
        pipeline.options,
        run,
        named=[function.sym_name.data for function in buffer_functions(pipeline.module)],  # a library exports all
        is_trusted=not has_others,
    )
    return pipeline


def lower(pipeline: Pipeline) -> Pipeline:
    pipeline = to_tir(pipeline)
    add_versions(pipeline)
    return to_low(schedule(pipeline))


def load(pipeline: Pipeline) -> Library:
    compiled = [kernel.compiled for kernel in pipeline.kernels if kernel.compiled is not None]
    library = load_low_module(pipeline.module, pipeline.target, stopwatch=pipeline.stopwatch, kernels=compiled)
    traces, kernels, report = pipeline.traces, pipeline.kernels, pipeline.report
    library.trace_source = lambda: (*traces, *(trace for kernel in kernels for trace in kernel.traces()))
    library.report_source = lambda: report
    library.timing = pipeline.stopwatch
    return library


def _run_schedules(module: ModuleOp, scheduled: bool, tuned: Container[str]) -> set[str]:
    """Erase the schedules of a module, after running them if `scheduled`, except that of a script if its functions are
    `tuned`. Returns the functions transformed."""
    by_users: set[str] = set()
    for trace in schedules_of(module):
        names = scheduled_by(trace, module)
        if scheduled and not (OF_SCRIPT in trace.attributes and all(name in tuned for name in names)):
            by_users |= names
            apply_schedule(module, trace)
        trace.detach()
        trace.erase()
    return by_users


def _check_inserted(step: PipelineStep, module: ModuleOp) -> None:
    if step.point is not None:
        return
    try:
        verify_module(module)
    except CompileError as error:
        message = f"pass '{step.run.name}' left IR that does not verify: {error.message}"
        raise CompileError(message, location=error.location, notes=error.notes) from error
