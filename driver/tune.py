"""`weft.tune`: the search for schedules of a program."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Final

from xdsl.dialects.builtin import ModuleOp

from weft.dialects import sched
from weft.dialects.traversal import copy_of
from weft.driver.programs import parse, parse_file, refuse_file_name
from weft.driver.stablehlo_loops import import_stablehlo_loops
from weft.driver.transform_scripts import take_script
from weft.driver.tuned import Tuned
from weft.driver.tuning_loop import Searches, opened_workers
from weft.passes.lower_to_tir import lower_to_tir
from weft.runtime import gpu_library
from weft.schedule.schedule import Schedule
from weft.support.argument_types import checked
from weft.support.build_options import BuildOptions
from weft.support.errors import CompileError, InternalError
from weft.support.limited_calls import end_idle_children
from weft.support.precision import check_precision, parse_precision
from weft.support.sizes import parse_sizes
from weft.support.target import Target
from weft.tuning.database import Database
from weft.tuning.evaluation import WrongResultError
from weft.tuning.runner import WorkerLimits

_MEASURED: Final = ("llvm", "opencl", "cuda")
"""Kinds of targets whose programs can be measured."""


@checked
def tune(
    program: ModuleOp | str | os.PathLike[str],
    *,
    space: Callable[[Schedule], object] | sched.FuncOp | str | None = None,
    trials: int = 64,
    database: str | os.PathLike[str] | None = None,
    seed: int = 0,
    target: Target | str = "llvm",
    func: str | None = None,
    timeout: float | None = None,
    executor: Executor | str | None = None,
    runner: Executor | str | None = None,
    window: int | None = None,
    limits: WorkerLimits | None = None,
    progress: Callable[[Tuned], object] | None = None,
    sizes: str | None = None,
    precision: str = "",
) -> Tuned:
    """Search for fast schedules of a program by measuring them, on this machine or others.

        def space(sch):
            i, j, k = sch.get_loops("C")
            j0, j1 = sch.split(j, sch.sample_perfect_tile(j, n=2))
            sch.reorder(i, j0, k, j1)

        tuned = weft.tune(module, space=space, trials=64, database="tune.db")
        lib = weft.build(module, database="tune.db")

    `program` is a module at any level, its text, or a file; `func` names the function to tune if there are several.
    `space` is a function that schedules and samples (`sch.sample_perfect_tile`, `sample_categorical`,
    `sample_compute_location`), or sched IR with sampling steps; by default, the knobs and alternatives of the program's
    transform script, or else the sampling steps of the default schedule. The default schedule is measured first, so the
    result is never slower.

    `sizes` are representative sizes of the program's symbols with weights, `"b=1 s=1:0.5,128:0.5"`, in all
    combinations. For a function with symbols, the weighted sum of its times at the shapes of its calls is minimised;
    without `sizes` it is skipped.

    Each record is written to `database` at once. A search with the same database and seed reuses its trials, which
    count in `trials`, and continues after them. `timeout`, in seconds, ends the search after the current trial.

    `precision` is that of `weft.build`; records apply to programs built with the same precision.

    `executor` runs the builders: an executor of `concurrent.futures`, or a name: `"4"` (processes), `"dask:ADDRESS"`,
    `"ray"` or `"ray:ADDRESS"`; by default one process per core. `runner`, another or the same, measures one candidate
    at a time on each machine; by default candidates are measured here, while no builder runs. `window` is the number of
    concurrent trials, by default two per worker, and at least a batch of 8.

    Raises `CompileError` for a program that cannot be tuned, and if workers do not answer, have another version or are
    of several kinds of machines; the errors of `space`; and `InternalError` if a schedule's result differs from the
    default's, with the name of a file that reproduces it.
    """
    module = copy_of(_parsed(program))
    machine = Target.parse(target) if isinstance(target, str) else target
    _check(machine, trials)
    if window is not None and window < 1:
        raise CompileError(f"tune: window must be at least 1, got {window}")
    check_precision(parse_precision(precision, "tune: precision"), machine)
    import_stablehlo_loops(module)
    script = take_script(module, scheduled=False)
    space = script if space is None else space
    lower_to_tir(module, str(machine), BuildOptions(precision=precision))
    path = None if database is None else Path(database)
    end = float("inf") if timeout is None else monotonic() + timeout
    with ExitStack() as stack:
        stack.callback(end_idle_children)
        opened = stack.enter_context(Database(":memory:" if path is None else path))
        workers = opened_workers(stack, executor, runner, window, machine)
        made = Searches(opened, workers, str(machine), seed, limits or default_limits(machine))
        representative = [] if sizes is None else parse_sizes(sizes, "sizes", is_weighted=True)
        tuned = made.begin(module, func, space, machine, representative)
        try:
            made.run(trials, end, tuned, progress)
        except WrongResultError as error:
            raise InternalError(made.reproducer(error, Path() if path is None else path.parent)) from error
        finally:
            made.save_model()
    return tuned


def _parsed(program: ModuleOp | str | os.PathLike[str]) -> ModuleOp:
    if isinstance(program, str):
        refuse_file_name("tune", program)
        return parse(program)
    return parse_file(Path(program)) if isinstance(program, os.PathLike) else program


def _check(target: Target, trials: int) -> None:
    """Raises `CompileError` if programs for a target cannot be measured here."""
    if target.kind not in _MEASURED:
        raise CompileError(f"tune: programs for target kind {', '.join(_MEASURED)} are measured, got '{target.kind}'")
    if target.has_kernels:
        gpu_library.device_for(target).check_target(target)
    elif target.obstacle:
        raise CompileError(f"tune: {target.obstacle}")
    if trials < 1:
        raise CompileError(f"tune: trials must be at least 1, got {trials}")


def default_limits(target: Target) -> WorkerLimits:
    """Default limits of building and measuring a candidate. OpenCL kernels are built where they run."""
    limits = WorkerLimits()
    if target.kind != "opencl":
        return limits
    return replace(limits, run=replace(limits.run, seconds=limits.build.seconds + limits.run.seconds))
