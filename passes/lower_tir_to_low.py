"""lower-tir-to-low: lower scheduled tir to low, with checks before and after."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from weft.dialects.effects import op_name
from weft.dialects.levels import registered_elsewhere
from weft.dialects.low import PARAMS
from weft.dialects.low_kernel import KERNEL
from weft.dialects.sched import FuncOp as ScheduleOp
from weft.dialects.tir_kinds import TIR_FUNCTION
from weft.dialects.traversal import operations_in
from weft.passes.insertion import parse_insertions, with_insertions
from weft.passes.pass_sequence import PassSequence, PipelineStep, RunStep, run_step
from weft.passes.pipelines import tir_to_low
from weft.passes.tir.flat_signature import state_parameter_accesses
from weft.passes.tir.tir_outline_kernels import OutlineKernelsPass
from weft.passes.tir.tir_pass import buffer_functions, tir_functions
from weft.passes.tir.tir_state_preconditions import state_preconditions
from weft.passes.verify_level import verify_level
from weft.support.build_options import DEFAULT_OPTIONS, BuildOptions
from weft.support.errors import CompileError, InternalError, did_you_mean
from weft.support.target import Target, is_target_kind, target_kinds


@dataclass(frozen=True)
class LowerTirToLowPass(PassSequence):
    """Lower the tir functions of a module: `lower-tir-to-low{target=llvm}`, or `{target="cuda -arch=sm_90"}`.

    Lowers functions with an op of the tir level, and those in `func`; calls between them and others stay valid
    (`tir-flatten`). Runs `pipelines.tir_to_low`, with user passes at named points (`docs/inserting-passes.md`), as in
    `lower-tir-to-low{insert="before:vectorize=my-pass{x=1},other"}`. The program is checked at tir level after passes
    inserted at the first point. Schedules (`sched.func`) are dropped. `{bounds=true}` guards accesses that are not
    proved to stay in their buffers (`tir-check-bounds`). Raises CompileError if a function is not at tir level, or the
    target, a point or a named function is unknown.

    Requires: functions of block loops (tir).

    Leaves: low functions, as the target requires them.
    """

    name = "lower-tir-to-low"

    target: str = "llvm"
    """The target, as in `weft.build`."""
    bounds: bool = False
    """Whether to guard accesses that are not proved to stay in their buffers (`tir-check-bounds`)."""
    insert: tuple[str, ...] = ()
    """Passes between the steps, each `before:POINT=PASS` or `after:POINT=PASS`."""
    func: tuple[str, ...] = ()
    """Functions to lower even if they contain no op of the level."""

    def run_steps(self, ctx: Context, op: ModuleOp, run: RunStep) -> None:
        options = BuildOptions(passes=parse_insertions(self.insert), checked=self.bounds)
        lower_tir_to_low(ctx, op, self.target, options, run, named=self.func)


def lower_tir_to_low(
    ctx: Context,
    op: ModuleOp,
    target: str,
    options: BuildOptions = DEFAULT_OPTIONS,
    run: RunStep = run_step,
    *,
    named: Collection[str] = (),
    is_trusted: bool = False,
) -> None:
    """Lower tir functions and those in `named`; `run` runs each step.

    `options.checked` guards accesses that may leave their buffers (targets `llvm` and `c`). `is_trusted` programs, such
    as results of schedules, are not verified, nor the passes' results.
    """
    kind = target.split()[0] if target.split() else ""
    if not is_target_kind(kind):
        raise CompileError(f"lower-tir-to-low: unknown target '{target}'{did_you_mean(kind, target_kinds())}")
    if options.checked and kind not in ("llvm", "c"):
        raise CompileError(f"accesses are checked at run time on targets llvm and c, not on '{kind}'")
    steps = with_insertions(tir_to_low(target, options), options.passes)
    for schedule in [s for s in op.ops if isinstance(s, ScheduleOp)]:
        Rewriter.erase_op(schedule)
    _mark_named(op, named)
    lowered_before = {function for function in op.ops if _is_lowered(function)}
    owned: set[Operation] = set()
    first = next(at for at, step in enumerate(steps) if step.point is not None)
    for at, step in enumerate(steps):
        if at == first:
            owned = _begin(op, options.verify and not is_trusted, is_checked=options.checked)
        run(step, ctx, op)
    made = [
        function
        for function in op.ops
        if isinstance(function, FuncOp)
        and function not in lowered_before
        and (function in owned or _is_lowered(function))
    ]
    _refuse_foreign_ops(made)
    theirs = [step.run.name for step in steps if step.point is None]
    for function in () if is_trusted else made:
        _verify_result(function, theirs)


def outline_kernels(module: ModuleOp, target: Target) -> None:
    """Lower a scheduled, trusted module in place to kernels over flat buffers, and host functions that launch them.
    Raises the passes' errors, such as `ScheduleError` for kernels beyond the target's limits.
    """
    from weft.passes.gpu_pipeline import kernels_to_low  # start-up: 40 ms

    _begin(module, check_program=False)
    for step in kernels_to_low(str(target)):
        step.apply(Context(), module)
        if isinstance(step, OutlineKernelsPass):
            break


def lowering_steps(module: ModuleOp, target: str, options: BuildOptions = DEFAULT_OPTIONS) -> Sequence[PipelineStep]:
    """The steps that lower a trusted module, prepared here, as a library, which exports all functions."""
    for schedule in [s for s in module.ops if isinstance(s, ScheduleOp)]:
        Rewriter.erase_op(schedule)
    _mark_named(module, [function.sym_name.data for function in buffer_functions(module)])
    _begin(module, check_program=False, is_checked=options.checked)
    return with_insertions(tir_to_low(target, options), options.passes)


def _mark_named(module: ModuleOp, named: Collection[str]) -> None:
    known = {function.sym_name.data: function for function in buffer_functions(module)}
    for name in named:
        if name not in known:
            raise CompileError(f"lower-tir-to-low: no function @{name} over buffers{did_you_mean(name, known)}")
        known[name].attributes[TIR_FUNCTION] = UnitAttr()


def _begin(module: ModuleOp, check_program: bool, *, is_checked: bool = False) -> set[Operation]:
    """Check, mark and return the functions to lower, whose tir ops vanish during lowering."""
    owned: set[Operation] = set()
    if check_program:
        state_preconditions(module, is_checked=is_checked)
    for function in tir_functions(module):
        if check_program:
            verify_level(function, "tir")
        function.attributes[TIR_FUNCTION] = UnitAttr()
        owned.add(function)
    state_parameter_accesses(module)
    return owned


def _is_lowered(op: Operation) -> bool:
    return isinstance(op, FuncOp) and (PARAMS in op.attributes or KERNEL in op.attributes)


def _refuse_foreign_ops(functions: Iterable[FuncOp]) -> None:
    """Refuse registered ops that no user pass replaced."""
    foreign = registered_elsewhere("low")
    for function in functions if foreign else ():
        for op in operations_in(function):
            if op_name(op) in foreign:
                text = f"{op_name(op)} is not allowed at level 'low': a pass inserted into the lowering replaces it"
                raise CompileError.at(op, text)


def _verify_result(function: FuncOp, theirs: list[str]) -> None:
    """A failure is an internal error, unless user passes ran."""
    problem = None
    try:
        verify_level(function, "low")
        function.verify()
        if PARAMS not in function.attributes and KERNEL not in function.attributes:
            problem = f"{PARAMS} is missing"
    except (CompileError, VerifyException) as error:
        problem = str(error)
    if problem is None:
        return
    if theirs:
        inserted = ", ".join(f"'{name}'" for name in theirs)
        raise CompileError.at(
            function, f"lowering @{function.sym_name.data} with {inserted} inserted produced invalid low IR: {problem}"
        )
    raise InternalError(f"lowering @{function.sym_name.data} produced invalid low IR: {problem}")
