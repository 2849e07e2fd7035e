"""From a module at any level to functions that run here."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from weft.driver.cached_models import CachedModel
from weft.driver.lowering_options import LoweringOptions, can_compile_apart
from weft.runtime.compile_cache import CompileCache, is_switched_off
from weft.support.argument_types import checked, checked_argument, shown
from weft.support.errors import CompileError
from weft.support.stopwatch import Stopwatch
from weft.support.target import Target

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.func import FuncOp

    from weft.dialects import sched
    from weft.driver.kernels import Kernel
    from weft.frontends.script.schedule import Schedule
    from weft.frontends.stage_schedule import StageSchedule
    from weft.passes.insertion import Insertions
    from weft.passes.pass_sequence import PipelineStep, RunStep
    from weft.runtime.kernel_report import ReportSource
    from weft.runtime.library import Library
    from weft.texpr.buffers import Binds
    from weft.texpr.expr import Var
    from weft.texpr.tensor import Tensor
    from weft.tuning.records import Record


def lower_to_tir(
    module: ModuleOp, target: str = "llvm", options: LoweringOptions | None = None, run: RunStep | None = None
) -> None:
    """Give functions of upstream dialects and of tensors their form over buffers, in place. `run` runs each pass on
    graphs. Raises `CompileError`."""
    from xdsl.context import Context
    from xdsl.dialects.builtin import TensorType

    from weft.driver.programs import functions_of
    from weft.passes.convert.convert_from_upstream import convert_from_upstream
    from weft.passes.pass_sequence import run_step
    from weft.passes.tir.tir_state_preconditions import state_preconditions

    options = options or LoweringOptions()
    # Only inserted passes can lower a function that stays as it is: without them, the reason is the error.
    convert_from_upstream(Context(), module, strict=not options.passes)
    over_tensors = [
        name
        for name, function in functions_of(module).items()
        if any(isinstance(t, TensorType) for t in (*function.function_type.inputs, *function.function_type.outputs))
    ]
    if over_tensors:
        from weft.passes.graph.lower_graph import LowerGraphPass

        if options.checked:
            from weft.passes.graph.graph_check_indices import GraphCheckIndicesPass

            GraphCheckIndicesPass().apply(Context(), module)
        lower = LowerGraphPass(target, layouts=options.layouts, winograd=options.winograd, func=tuple(over_tensors))
        lower.run_steps(Context(), module, run or run_step)
        _check_lowered([function for name, function in functions_of(module).items() if name in over_tensors])
    state_preconditions(module)


def _check_lowered(functions: Sequence[FuncOp]) -> None:
    """Raises `CompileError` at what keeps a function over tensors from having a form over buffers."""
    from xdsl.dialects.builtin import TensorType

    from weft.passes.verify_level import verify_level

    for function in functions:
        if any(isinstance(t, TensorType) for t in (*function.function_type.inputs, *function.function_type.outputs)):
            verify_level(function, "te")
            raise CompileError.at(function, f"@{function.sym_name.data} has no form over buffers")


@checked
def build(
    program: ModuleOp | StageSchedule | str | os.PathLike[str],
    args: Sequence[Tensor | Var] | Target | str = (),
    target: Target | str = "llvm",
    *,
    name: str = "main",
    scheduled: bool = True,
    default_schedule: bool = True,
    passes: Insertions | None = None,
    binds: Binds | None = None,
    checked: bool = False,
    verify: bool = True,
    cache: bool = True,
    database: str | os.PathLike[str] | None = None,
    require_tuned: bool = False,
    layouts: bool = True,
    winograd: bool = True,
) -> Library:
    """Compile a module of functions of graph, te, tir or upstream for a target, `"llvm -mcpu=znver4"` or `"cuda"`.

        weft.build(module, target="llvm")
        weft.build(Path("model.mlir")), weft.build("func.func @f(...) { ... }")  # a file, or its text
        weft.build(te.create_schedule(C.op), [A, B, C], target="llvm", name="matmul")

    Functions of upstream dialects (linalg, tensor, affine, scf, memref, stablehlo) promise what they state in
    `tir.promises`, by themselves nothing (`docs/embedding.md`).

    `passes` are inserted into the lowering at named points (`docs/inserting-passes.md`): a pass, passes as text, or
    a list of either.

        weft.build(module, passes={"before:vectorize": MyPass(), "after:canonicalize": "cse"})

    `binds` says how the arrays of a stage schedule lie in memory (`te.create_func`).

    An index that data decide must lie in its array: by default nothing checks it, and one outside reads or writes
    other memory. With `checked=True` a call raises `IndexError` that names block, index and extent, once the function
    has run with such accesses left out; accesses that are proved to stay inside cost nothing (`docs/bounds.md`). For
    targets `llvm` and `c`.

    `verify=False` leaves out the check of blocks, for tuners that compile thousands of programs which only te and
    `weft.Schedule` have made. A wrong program may then do anything.

    Kernels of models are compiled apart, in several processes where that is faster, and kept in a cache on disk, with
    whole models of ONNX files (`docs/graphs.md`); `cache=False` neither reads nor writes it. Images of convolution nets
    are laid out in blocks of channels where that pays, which sums in another order; with `layouts=False` they stay as
    they are. Convolutions of 3 x 3 in blocks use Winograd's minimal filtering where that pays, whose results are some
    times as far from the real numbers (`docs/graphs.md`); with `winograd=False` none does.

    `database` is a file that `weft.tune` wrote: the fastest schedules in it, for this target and kind of machine, take
    the place of default ones (`docs/tuning.md`). With `require_tuned` functions without one are an error, but those
    that cannot be tuned.

    Works on a copy. Schedules (`sched.func`) that stand in the module run first, unless `scheduled` is False. Functions
    that no user scheduled get a default schedule for the target (`docs/default-schedules.md`), which may reorder sums
    of floats; with `default_schedule=False`, and for stage schedules, they run as they are written. `lib.trace` shows
    the schedules that were used, `lib.timing` how long each stage took.

    Raises `CompileError` for what cannot be compiled, and `ScheduleError` when a step of a schedule is refused.
    """
    stopwatch = Stopwatch()
    if isinstance(args, Target | str):
        args, target = (), args
    for argument, value, kinds, wanted in (
        ("args", args, Sequence, "the tensors and variables of a function"),
        ("target", target, (Target, str), "Target or str"),
    ):
        _check_kind(argument, value, kinds, wanted)
    if require_tuned and database is None:
        raise CompileError("build: require_tuned is about the schedules of a database: give database, too")
    machine = target if isinstance(target, Target) else Target.parse(target)
    options = LoweringOptions(
        scheduled, default_schedule, passes or {}, checked, verify, database, require_tuned, layouts, winograd
    )
    store = CompileCache.of_user() if cache and not is_switched_off() else None
    if isinstance(program, os.PathLike):
        return _built_file(Path(program), machine, options, stopwatch, store)
    from weft.frontends.stage_schedule import StageSchedule

    if isinstance(program, StageSchedule):
        options = replace(options, default_schedule=False)
    return _compiled(_module_of(program, args, name, binds, stopwatch), machine, options, stopwatch, store)[0]


def _built_file(
    path: Path, target: Target, options: LoweringOptions, stopwatch: Stopwatch, store: CompileCache | None
) -> Library:
    """The library of a program in a file; that of a model of ONNX comes from the cache, where it was built before."""
    known = CachedModel.of(path, target, options, store)
    library = None if known is None else known.load(stopwatch)
    if library is not None:

        @functools.cache
        def again() -> Library:
            found = CachedModel.of(path, target, options, store)
            if known is None or found is None or found.key != known.key:
                raise CompileError(f"'{path}' has changed since it was built: build it again to see how")
            return _compiled_file(path, target, options, Stopwatch(), store)[0]

        library.trace_source = lambda: again().trace_source()
        library.report_source = lambda: again().report_source()
        return library
    library, kernels, files = _compiled_file(path, target, options, stopwatch, store)
    if known is not None:
        with stopwatch.measure("compile cache"):
            known.keep(library, kernels, files)
    return library


def _compiled_file(
    path: Path, target: Target, options: LoweringOptions, stopwatch: Stopwatch, store: CompileCache | None
) -> tuple[Library, list[Kernel], frozenset[str]]:
    """The library of a program in a file, its kernels, and the files that a model of ONNX refers to."""
    from weft.driver.programs import onnx_module, parse_file

    with stopwatch.measure("read"):
        is_model = path.suffix == ".onnx"
        module, files = onnx_module(path) if is_model else (parse_file(path), frozenset[str]())
    return *_compiled(module, target, options, stopwatch, store), files


def _compiled(
    module: ModuleOp, target: Target, options: LoweringOptions, stopwatch: Stopwatch, store: CompileCache | None
) -> tuple[Library, list[Kernel]]:
    """Compile a module, which is lowered in place: its library, and the kernels that were compiled apart."""
    from weft.runtime.low_module import load_low_module

    kernels, source = _kernels_apart(module, target, options, stopwatch, store)
    traces = lower_to_low(module, target, options, stopwatch)
    compiled = [kernel.compiled for kernel in kernels if kernel.compiled is not None]
    library = load_low_module(module, target, stopwatch=stopwatch, kernels=compiled)
    library.trace_source = lambda: (*traces, *(trace for kernel in kernels for trace in kernel.traces()))
    library.report_source = lambda: source
    library.timing = stopwatch
    return library, kernels


def _kernels_apart(
    module: ModuleOp, target: Target, options: LoweringOptions, stopwatch: Stopwatch, store: CompileCache | None
) -> tuple[list[Kernel], ReportSource | None]:
    """Take the kernels of a model out of its module, compiled, and say what they do; none for other programs."""
    from weft.driver.kernels import compile_kernels
    from weft.driver.model_report import ModelReport, report_of

    if target.has_kernels:
        with stopwatch.measure("graph and te to tir"):
            lower_to_tir(module, str(target), options)
            return [], report_of(module, target, options)
    if not can_compile_apart(target, options):
        return [], None
    with stopwatch.measure("graph and te to tir"):
        lower_to_tir(module, str(target), options)
        source = ModelReport(module, target)
    kernels = compile_kernels(module, target, options, stopwatch, store)
    source.taken(kernels)
    return kernels, source if kernels else None


def _check_kind(argument: str, value: object, kinds: type | tuple[type, ...], wanted: str) -> None:
    """For annotations that name classes which are imported when they are needed."""
    if not isinstance(value, kinds):
        given = f"{shown(value)} of type {type(value).__name__}"
        raise TypeError(f"build: argument '{argument}' must be {wanted}, got {given}")


def _module_of(
    program: ModuleOp | StageSchedule | str,
    args: Sequence[Tensor | Var],
    name: str,
    binds: Binds | None,
    stopwatch: Stopwatch,
) -> ModuleOp:
    """The module that a program is, as one that may be changed; that of a stage schedule gets no default schedule."""
    from xdsl.dialects.builtin import ModuleOp

    from weft.dialects.traversal import copy_of
    from weft.driver.programs import parse
    from weft.frontends.stage_schedule import StageSchedule, lower

    if isinstance(program, str):
        if "\n" not in program and program.endswith(".mlir"):
            raise ValueError(f"build: argument 'program' is MLIR text; a file is given as pathlib.Path({program!r})")
        return parse(program)
    _check_kind("program", program, (ModuleOp, StageSchedule), "a module, a stage schedule, MLIR text or a path")
    if isinstance(program, StageSchedule):
        if not args:
            raise CompileError("a stage schedule is built with its arguments: weft.build(s, [A, B, C])")
        with stopwatch.measure("te"):
            return lower(program, args, name, binds=binds)
    with stopwatch.measure("copy"):
        return copy_of(program)


@checked
def schedule_of(function: FuncOp, *, promises: Sequence[str] = (), seed: int | None = None) -> Schedule:
    """A schedule of `function`, which may be of upstream dialects (linalg, affine, scf), on a copy of its module.

        sch = weft.schedule_of(module.body.block.first_op, promises=["noalias", "contract", "reassoc"])
        sch.parallel(sch.get_loops(sch.get_block("matmul"))[0])

    `promises` are what callers promise and compilers may do (`tir.promises`), besides what the function states. The
    other functions of the module come along, those of upstream dialects converted as well. Raises `CompileError` for a
    function that stands in no module, or cannot be converted.
    """
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.func import FuncOp

    from weft.dialects.traversal import copy_of
    from weft.frontends.script.schedule import Schedule
    from weft.passes.convert.convert_from_upstream import convert_from_upstream

    checked_argument("schedule_of", "function", FuncOp, function)
    module = function.parent_op()
    if not isinstance(module, ModuleOp):
        raise CompileError.at(function, f"schedule_of: function @{function.sym_name.data} stands in no module")
    copy = copy_of(module)
    convert_from_upstream(Context(), copy, tuple(promises), strict=True)
    lower_to_tir(copy)
    return Schedule(copy, seed)


def lower_to_low(
    module: ModuleOp, target: Target, options: LoweringOptions, stopwatch: Stopwatch
) -> list[sched.FuncOp]:
    """Take a module of graph, te or tir functions down to low, in place; returns the default schedules that were used.

    `stopwatch` records the time of each stage. Raises `CompileError` and `ScheduleError` as `build` does.
    """
    traces = lower_to_scheduled(module, target, options, stopwatch)
    lower_scheduled(module, target, options, stopwatch)
    return traces


def lower_to_scheduled(
    module: ModuleOp, target: Target, options: LoweringOptions, stopwatch: Stopwatch
) -> list[sched.FuncOp]:
    """Take a module of graph, te or tir functions to scheduled tir, as `lower_to_low` does first."""
    from weft.autoschedule.default_schedule import apply_default_schedule
    from weft.driver.constants import pack_constants
    from weft.driver.tuned_schedules import apply_tuned_schedules, tuned_records
    from weft.passes.tir.flat_signature import state_parameter_accesses
    from weft.passes.tir.nest import buffer_functions
    from weft.passes.verify_level import verify_level

    with stopwatch.measure("graph and te to tir"):
        lower_to_tir(module, str(target), options)
    tuned: dict[str, list[Record]] = {}
    if options.database is not None and options.default_schedule:
        with stopwatch.measure("database"):
            tuned = tuned_records(module, target, options.database, options.require_tuned)
    with stopwatch.measure("schedule"):
        state_parameter_accesses(module)
        by_users = _run_schedules(module, options.scheduled)
    if options.verify:
        # Before default schedules, each step of which proves that it keeps a right program right.
        with stopwatch.measure("check of tir"):
            for function in buffer_functions(module):
                # Inserted passes may lower ops that are no part of the level: which ops stand there is checked later.
                verify_level(function, None if options.passes else "tir")
    traces: list[sched.FuncOp] = []
    if options.default_schedule:
        with stopwatch.measure("schedule"):
            found = apply_tuned_schedules(module, {n: r for n, r in tuned.items() if n not in by_users}, target)
            traces = [*found.values(), *apply_default_schedule(module, target, skip=by_users.union(found))]
    if target.kind in ("llvm", "c"):
        with stopwatch.measure("constants"):
            pack_constants(module)
    return traces


def lower_scheduled(
    module: ModuleOp,
    target: Target,
    options: LoweringOptions,
    stopwatch: Stopwatch,
    after: Callable[[PipelineStep], None] | None = None,
) -> None:
    """Take a module of scheduled tir functions to low, in place: the second part of `lower_to_low`. `after` is called
    after each pass."""
    from xdsl.context import Context

    from weft.driver.programs import context
    from weft.passes.lower_tir_to_low import lower_tir_to_low
    from weft.passes.pass_sequence import run_pass
    from weft.passes.tir.nest import buffer_functions

    ctx = context() if options.passes else Context()
    lap = stopwatch.laps()

    def run(step: PipelineStep, ctx: Context, module: ModuleOp) -> None:
        run_pass(step.run, ctx, module)
        lap(step.run.name)
        _check_inserted(step, module)
        if after is not None:
            after(step)
            lap(None)

    # What weft's own passes make is checked by their tests and by weft-opt, here only what others had a hand in.
    has_others = bool(options.passes)
    lower_tir_to_low(
        ctx,
        module,
        str(target),
        options.passes,
        run,
        bounds=options.checked,
        named=[function.sym_name.data for function in buffer_functions(module)],  # a library has all functions
        check_program=has_others and options.verify,
        check_result=has_others,
    )


def _run_schedules(module: ModuleOp, scheduled: bool) -> set[str]:
    """Erase the schedules of a module, run first if `scheduled`; returns the functions that they worked on."""
    from weft.autoschedule.default_schedule import scheduled_by
    from weft.driver.programs import schedules_of
    from weft.passes.schedule.replay import apply_schedule

    by_users: set[str] = set()
    for schedule in schedules_of(module):
        if scheduled:
            by_users |= scheduled_by(schedule, module)
            apply_schedule(module, schedule)
        schedule.detach()
        schedule.erase()
    return by_users


def _check_inserted(step: PipelineStep, module: ModuleOp) -> None:
    """A pass of the user leaves IR that verifies."""
    if step.point is not None:
        return
    from weft.driver.verify import verify_module

    try:
        verify_module(module)
    except CompileError as error:
        message = f"pass '{step.run.name}' left IR that does not verify: {error.message}"
        raise CompileError(message, location=error.location, notes=error.notes) from error
