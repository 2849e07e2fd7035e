"""`weft.build`: compilation of a module at any level for this process."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from weft.dialects.traversal import copy_of
from weft.driver.cached_models import CachedModel
from weft.driver.unified_models import UNIFIED, unmodified
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
    from weft.driver.unified_models import UnifiedModel
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

    Functions of upstream dialects (linalg, tensor, affine, scf, memref, stablehlo) make only the promises in
    `tir.promises` (`docs/embedding.md`).

    `passes` are inserted into the lowering at named points (`docs/inserting-passes.md`): a pass, passes as text, or a
    list of either.

        weft.build(module, passes={"before:vectorize": MyPass(), "after:canonicalize": "cse"})

    `binds` are the memory layouts of the arrays of a stage schedule (`te.create_func`).

    Data-dependent indices must be in bounds. With `checked=True`, for targets `llvm` and `c`, accesses out of bounds
    are skipped instead of undefined, and the call raises `IndexError` with block, index and extent when the function
    returns; accesses proved to be in bounds cost nothing (`docs/bounds.md`).

    `verify=False` skips the check of blocks, for tuners that compile thousands of programs built by te and
    `weft.Schedule`; invalid programs have undefined behaviour.

    Kernels of models are compiled separately, in several processes when profitable, and kept in a cache on disk, as are
    whole ONNX models; `cache=False` neither reads nor writes it. `layouts=False` disables blocked layouts of images in
    convolution nets, which change the order of sums, and `winograd=False` Winograd's minimal filtering of their 3 x 3
    convolutions, whose rounding error is several times as large (`docs/graphs.md`).

    `precision` is that of the factors of products, convolutions and attention of graphs: `"bf16"` rounds them to bf16
    and accumulates in float32, `"f16"` stores weights as f16, `"f32"` keeps them. By default bf16 models multiply in
    bf16 if the CPU has instructions for it, and others compute in float32 (`docs/precision.md`).

    `specialize` adds versions of functions for constant sizes of their symbols: `{"s": [1, 128]}`, or as text `"b=1
    s=1,128"`, in all combinations; or several of these. Other sizes use the general function. `"auto"` builds versions
    for up to 8 sizes on first use; `"auto versions=4 background"` for up to 4, while calls use the general function.
    Constants are shared (`docs/dynamic-shapes.md`).

    `database` is a file written by `weft.tune`, whose fastest schedules for this target and kind of machine replace
    default ones (`docs/tuning.md`). With `require_tuned`, a tunable function without a record is an error.

    `donate` names parameters of graph functions whose arrays the caller gives up, like `donate_argnames` of `jax.jit`:
    a result of the same type may be computed in place and is then returned as that array, such as key and value caches
    in decoding:

        step = weft.build(module, donate=["keys", "values"])["main"]
        logits, keys, values = step(token, place, keys, values)

    The module is not modified. Its schedules (`sched.func`) run first, unless `scheduled` is False. Functions without
    one get a default schedule for the target (`docs/default-schedules.md`), which may reorder sums of floats, unless
    `default_schedule=False` or the program is a stage schedule. `lib.trace` shows the schedules used, `lib.timing` the
    time of each stage.

    Raises `CompileError` for programs that cannot be compiled, and `ScheduleError` if a step of a schedule is rejected.
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
        found = _with_versions(library, lambda: _read_file(path)[0], machine, options, store, policy)
        if path.suffix != ".onnx":
            return found
        model = functools.partial(_unified_file, path, _state_of(path))
        return _with_repeated_axes(found, model, machine, options, store)
    from weft.frontends.stage_schedule import StageSchedule  # start-up: 948 ms

    if isinstance(program, StageSchedule):
        options = replace(options, default_schedule=False)
    module = _module_of(program, args, name, binds, stopwatch)
    source = module if policy is None else copy_of(module)
    library = _compiled(module, machine, options, stopwatch, store)[0]
    found = _with_versions(library, lambda: source, machine, options, store, policy)
    if isinstance(program, StageSchedule | str) or program not in UNIFIED:
        return found
    return _with_repeated_axes(found, functools.partial(unmodified, program), machine, options, store)


def build_module(module: ModuleOp, target: Target, options: BuildOptions) -> Library:
    """Build a copy of a module, with the options of `build` as a record."""
    store = None if is_switched_off() else CompileCache.of_user()
    return _compiled(copy_of(module), target, options, Stopwatch(), store)[0]


def _built_file(
    path: Path, target: Target, options: BuildOptions, stopwatch: Stopwatch, store: CompileCache | None
) -> Library:
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
    with stopwatch.measure("read"):
        module, files = _read_file(path)
    library, done = _compiled(module, target, options, stopwatch, store)
    return library, done.kernels, files


def _read_file(path: Path) -> tuple[ModuleOp, frozenset[str]]:
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
    if policy is not None:
        from weft.driver.versions_on_use import add_versions_on_use  # start-up: 8 ms

        add_versions_on_use(library, functools.cache(program), _stage(target, options, store), policy)
    return library


def _stage(target: Target, options: BuildOptions, store: CompileCache | None) -> Callable[[ModuleOp], Pipeline]:
    def stage(module: ModuleOp) -> Pipeline:
        from weft.driver.compilation import lowered  # start-up: 1290 ms
        from weft.driver.pipeline import Pipeline  # start-up: 394 ms

        if options.donate:
            _donate(module, options, target)
        return lowered(Pipeline(module, target, options, Stopwatch(), store))

    return stage


def _with_repeated_axes(
    library: Library,
    model: Callable[[], UnifiedModel | None],
    target: Target,
    options: BuildOptions,
    store: CompileCache | None,
) -> Library:
    from weft.driver.repeated_axes import add_repeating_versions  # start-up: 8 ms

    add_repeating_versions(library, model, _stage(target, replace(options, specialize=()), store))
    return library


def _unified_file(path: Path, state: tuple[int, int]) -> UnifiedModel | None:
    """None if the import unified no symbols or the file has changed."""
    module = _read_file(path)[0]
    return UNIFIED.get(module) if _state_of(path) == state else None


def _state_of(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def _compiled(
    module: ModuleOp, target: Target, options: BuildOptions, stopwatch: Stopwatch, store: CompileCache | None
) -> tuple[Library, Pipeline]:
    from weft.driver.compilation import compile_module  # start-up: 1290 ms
    from weft.driver.pipeline import Pipeline  # start-up: 394 ms

    if options.donate:
        _donate(module, options, target)
    return compile_module(Pipeline(module, target, options, stopwatch, store))


def _donate(module: ModuleOp, options: BuildOptions, target: Target) -> None:
    """Mark parameters of public functions as donated. Raises `CompileError` for an unknown name."""
    from xdsl.dialects.func import FuncOp  # start-up: 200 ms

    from weft.dialects.argument_attributes import set_argument_attribute  # start-up: 200 ms
    from weft.dialects.tir_kinds import DONATED  # start-up: 200 ms

    names = options.donate
    functions = [op for op in module.ops if isinstance(op, FuncOp) and op.sym_visibility is None and op.body.blocks]
    known = {argument.name_hint for function in functions for argument in function.args if argument.name_hint}
    for name in names:
        if name not in known:
            raise CompileError(f"build: donate: there is no parameter '{name}'{did_you_mean(name, known)}")
    # GPU functions copy arguments; a checked function does not write the result of a skipped access.
    for function in functions if target.kind in ("llvm", "c") and not options.checked else ():
        positions = [argument.index for argument in function.args if argument.name_hint in names]
        if positions:
            set_argument_attribute(function, positions, DONATED)


def _check_kind(argument: str, value: object, kinds: type | tuple[type, ...], wanted: str) -> None:
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
    """The module may be modified. A stage schedule gets no default schedule."""
    from xdsl.dialects.builtin import ModuleOp

    from weft.driver.programs import parse, refuse_file_name  # start-up: 231 ms
    from weft.frontends.stage_schedule import StageSchedule, lower  # start-up: 948 ms

    if isinstance(program, str):
        refuse_file_name("build", program)
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
    """Returns a schedule of `function`, which may be of upstream dialects (linalg, affine, scf), on a copy of its
    module.

        sch = weft.schedule_of(module.body.block.first_op, promises=["noalias", "contract", "reassoc"])
        sch.parallel(sch.get_loops(sch.get_block("matmul"))[0])

    `promises` are guarantees of callers and permissions for the compiler, added to `tir.promises` of the function.
    Other functions are converted too. Raises `CompileError` for a function outside a module, or that cannot be
    converted.
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
        raise CompileError.at(function, f"schedule_of: function @{function.sym_name.data} is not in a module")
    copy = copy_of(module)
    convert_from_upstream(Context(), copy, tuple(promises), strict=True)
    lower_to_tir(copy)
    schedule = Schedule(copy, seed)
    schedule.source, schedule.promises = module, tuple(promises)
    return schedule
