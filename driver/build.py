"""From a module at any level to functions that run here."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from weft.dialects.traversal import copy_of
from weft.driver.cached_models import CachedModel
from weft.runtime.compile_cache import CompileCache, is_switched_off
from weft.support.argument_types import checked, checked_argument, shown
from weft.support.build_options import BuildOptions
from weft.support.errors import CompileError, did_you_mean
from weft.support.precision import check_precision, parse_precision
from weft.support.sizes import OnUse, versions_of
from weft.support.stopwatch import Stopwatch
from weft.support.target import Target

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.func import FuncOp

    from weft.driver.pipeline import ModelKernel, Pipeline
    from weft.frontends.script.schedule import Schedule
    from weft.frontends.stage_schedule import StageSchedule
    from weft.runtime.library import Library
    from weft.support.build_options import Insertions
    from weft.texpr.buffers import Binds
    from weft.texpr.expr import Var
    from weft.texpr.tensor import Tensor


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
    precision: str = "",
    donate: Sequence[str] = (),
    specialize: str | Mapping[str, int | Sequence[int]] | Sequence[Mapping[str, int | Sequence[int]]] = (),
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

    `precision` is that of the factors of products, convolutions and attention of graphs: `"bf16"` rounds them to bf16
    and adds in float32, `"f16"` stores weights as f16, `"f32"` leaves them. Without it models of bf16 multiply bf16 if
    the CPU has instructions for that, and others compute in float32 (`docs/precision.md`).

    `specialize` gives functions versions for sizes of their symbols, in which these are numbers: `{"s": [1, 128]}`, or
    as text `"b=1 s=1,128"`, all combinations; several of these. A call compares its sizes and runs the version for
    them, or the function for all sizes. `"auto"` builds a version when its sizes are first used, of at most 8 sizes;
    `"auto versions=4 background"` of at most 4, while the function for all sizes serves the calls. Constants are shared
    (`docs/dynamic-shapes.md`).

    `database` is a file that `weft.tune` wrote: the fastest schedules in it, for this target and kind of machine, take
    the place of default ones (`docs/tuning.md`). With `require_tuned` functions without one are an error, but those
    that cannot be tuned.

    `donate` names parameters of graph functions whose arrays the caller gives up, as `donate_argnames` of `jax.jit`: a
    result of the same type may be computed in place, without a copy, and is then returned as that array. Such caches of
    keys and values stay where they are from one step of decoding to the next:

        step = weft.build(module, donate=["keys", "values"])["main"]
        logits, keys, values = step(token, place, keys, values)

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
    policy = OnUse.parse(specialize) if isinstance(specialize, str) else None
    if require_tuned and database is None:
        raise CompileError("build: require_tuned is about the schedules of a database: give database, too")
    machine = target if isinstance(target, Target) else Target.parse(target)
    check_precision(parse_precision(precision, "build: precision"), machine)
    options = BuildOptions(
        scheduled=scheduled,
        default_schedule=default_schedule,
        passes=passes or {},
        checked=checked,
        verify=verify,
        database=database,
        require_tuned=require_tuned,
        layouts=layouts,
        winograd=winograd,
        precision=precision,
        donate=(donate,) if isinstance(donate, str) else tuple(donate),
        specialize=() if policy is not None or not specialize else versions_of(specialize),
    )
    store = CompileCache.of_user() if cache and not is_switched_off() else None
    if isinstance(program, os.PathLike):
        library, path = _built_file(Path(program), machine, options, stopwatch, store), Path(program)
        return _with_versions(library, lambda: _read_file(path)[0], machine, options, store, policy)
    from weft.frontends.stage_schedule import StageSchedule  # start-up: 948 ms

    if isinstance(program, StageSchedule):
        options = replace(options, default_schedule=False)
    module = _module_of(program, args, name, binds, stopwatch)
    source = module if policy is None else copy_of(module)
    library = _compiled(module, machine, options, stopwatch, store)[0]
    return _with_versions(library, lambda: source, machine, options, store, policy)


def build_module(module: ModuleOp, target: Target, options: BuildOptions) -> Library:
    """`build` with its options as a record, on a copy of the module."""
    store = None if is_switched_off() else CompileCache.of_user()
    return _compiled(copy_of(module), target, options, Stopwatch(), store)[0]


def _built_file(
    path: Path, target: Target, options: BuildOptions, stopwatch: Stopwatch, store: CompileCache | None
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
    path: Path, target: Target, options: BuildOptions, stopwatch: Stopwatch, store: CompileCache | None
) -> tuple[Library, Sequence[ModelKernel], frozenset[str]]:
    """The library of a program in a file, its kernels, and the files that a model of ONNX refers to."""
    with stopwatch.measure("read"):
        module, files = _read_file(path)
    library, done = _compiled(module, target, options, stopwatch, store)
    return library, done.kernels, files


def _read_file(path: Path) -> tuple[ModuleOp, frozenset[str]]:
    """The program in a file, and the files that a model of ONNX refers to."""
    from weft.driver.programs import onnx_module, parse_file  # start-up: 231 ms

    return onnx_module(path) if path.suffix == ".onnx" else (parse_file(path), frozenset[str]())


def _with_versions(
    library: Library,
    program: Callable[[], ModuleOp],
    target: Target,
    options: BuildOptions,
    store: CompileCache | None,
    policy: OnUse | None,
) -> Library:
    """A library whose functions get versions when sizes are first used, if there is a policy."""
    if policy is not None:
        from weft.driver.compilation import lowered  # start-up: 1290 ms
        from weft.driver.pipeline import Pipeline  # start-up: 394 ms
        from weft.driver.versions_on_use import add_versions_on_use  # start-up: 8 ms

        read = functools.cache(program)

        def stage(module: ModuleOp) -> Pipeline:
            return lowered(Pipeline(module, target, options, Stopwatch(), store))

        add_versions_on_use(library, read, stage, policy)
    return library


def _compiled(
    module: ModuleOp, target: Target, options: BuildOptions, stopwatch: Stopwatch, store: CompileCache | None
) -> tuple[Library, Pipeline]:
    """Compile a module, which is lowered in place."""
    from weft.driver.compilation import compile_module  # start-up: 1290 ms
    from weft.driver.pipeline import Pipeline  # start-up: 394 ms

    if options.donate:
        _donate(module, options, target)
    return compile_module(Pipeline(module, target, options, stopwatch, store))


def _donate(module: ModuleOp, options: BuildOptions, target: Target) -> None:
    """Mark parameters of the public functions of a module as donated. Raises `CompileError` for an unknown name."""
    from xdsl.dialects.func import FuncOp  # start-up: 200 ms

    from weft.dialects.argument_attributes import set_argument_attribute  # start-up: 200 ms
    from weft.dialects.tir_kinds import DONATED  # start-up: 200 ms

    names = options.donate
    functions = [op for op in module.ops if isinstance(op, FuncOp) and op.sym_visibility is None and op.body.blocks]
    known = {argument.name_hint for function in functions for argument in function.args if argument.name_hint}
    for name in names:
        if name not in known:
            raise CompileError(f"build: donate: there is no parameter '{name}'{did_you_mean(name, known)}")
    # Functions for GPUs work on copies of arguments. In checked functions a refused access does not write its result.
    for function in functions if target.kind in ("llvm", "c") and not options.checked else ():
        positions = [argument.index for argument in function.args if argument.name_hint in names]
        if positions:
            set_argument_attribute(function, positions, DONATED)


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

    from weft.driver.programs import parse  # start-up: 231 ms
    from weft.frontends.stage_schedule import StageSchedule, lower  # start-up: 948 ms

    if isinstance(program, str):
        if "\n" not in program and program.endswith((".mlir", ".onnx")):
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

    from weft.frontends.script.schedule import Schedule  # start-up: 314 ms
    from weft.passes.convert.convert_from_upstream import convert_from_upstream  # start-up: 246 ms
    from weft.passes.lower_to_tir import lower_to_tir  # start-up: 960 ms

    checked_argument("schedule_of", "function", FuncOp, function)
    module = function.parent_op()
    if not isinstance(module, ModuleOp):
        raise CompileError.at(function, f"schedule_of: function @{function.sym_name.data} stands in no module")
    copy = copy_of(module)
    convert_from_upstream(Context(), copy, tuple(promises), strict=True)
    lower_to_tir(copy)
    schedule = Schedule(copy, seed)
    schedule.source, schedule.promises = module, tuple(promises)
    return schedule
