"""From text to modules, and from a module at any level to functions that run here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType

from weft.support.errors import CompileError
from weft.tools.programs import context, functions_of, read_program, schedules_of

if TYPE_CHECKING:
    from weft.frontends.te.buffers import Binds
    from weft.frontends.te.expr import Var
    from weft.frontends.te.stage import StageSchedule
    from weft.frontends.te.tensor import Tensor
    from weft.passes.insertion import Insertions, Step
    from weft.runtime.library import Library
    from weft.support.target import Target


def parse(text: str, name: str = "<string>") -> ModuleOp:
    """The verified module that `text` spells; errors point into it under `name`. Raises `CompileError`."""
    from weft.support.locations import remember_text
    from weft.tools.parsing import parse_text
    from weft.tools.verify import verify_module

    remember_text(name, text)
    module = parse_text(context(), text, name)
    verify_module(module)
    return module


def parse_file(file: str | Path) -> ModuleOp:
    """The verified module in an `.mlir` file. Raises `CompileError` and `OSError`."""
    return read_program(str(file))


def lower_to_tir(module: ModuleOp) -> None:
    """Give every function of tensors its form over buffers, in place. Raises `CompileError`."""
    types = (t for f in functions_of(module).values() for t in (*f.function_type.inputs, *f.function_type.outputs))
    if any(isinstance(t, TensorType) for t in types):
        from weft.passes.graph.lower_graph import LowerGraphPass

        LowerGraphPass().apply(Context(), module)


def build(
    program: ModuleOp | StageSchedule,
    args: Sequence[Tensor | Var] | Target | str = (),
    target: Target | str = "llvm",
    *,
    name: str = "main",
    scheduled: bool = True,
    passes: Insertions | None = None,
    binds: Binds | None = None,
) -> Library:
    """Compile a module of graph, te or tir functions for a target: `"llvm -mcpu=znver4"`, `"cuda"`, `Target(...)`.

        weft.build(module, target="llvm")
        weft.build(te.create_schedule(C.op), [A, B, C], target="llvm", name="matmul")

    `passes` are inserted into the lowering at named points (`docs/inserting-passes.md`): a pass, passes as text, or
    a list of either.

        weft.build(module, passes={"before:vectorize": MyPass(), "after:canonicalize": "cse"})

    `binds` says how the arrays of a stage schedule lie in memory (`te.create_func`).

    Works on a copy. Schedules (`sched.func`) that stand in the module run first, unless `scheduled` is False.
    Raises `CompileError` for what cannot be compiled, and `ScheduleError` when a step of a schedule is refused.
    """
    from weft.frontends.te.stage import StageSchedule, lower
    from weft.passes.lower_tir_to_low import lower_tir_to_low
    from weft.passes.schedule.replay import apply_schedule
    from weft.runtime.build import load_low_module
    from weft.support.target import Target

    if isinstance(args, Target | str):
        args, target = (), args
    if isinstance(program, StageSchedule):
        if not args:
            raise CompileError("a stage schedule is built with its arguments: weft.build(s, [A, B, C])")
        module = lower(program, args, name, binds=binds)
    else:
        module = program.clone()
    machine = Target.parse(target) if isinstance(target, str) else target
    lower_to_tir(module)
    for schedule in schedules_of(module):
        if scheduled:
            apply_schedule(module, schedule)
        schedule.detach()
        schedule.erase()
    ctx = context() if passes else Context()
    lower_tir_to_low(ctx, module, str(machine), passes or {}, lambda step: _check_inserted(step, module))
    return load_low_module(module, machine)


def _check_inserted(step: Step, module: ModuleOp) -> None:
    """A pass of the user leaves IR that verifies."""
    if step.point is not None:
        return
    from weft.tools.verify import verify_module

    try:
        verify_module(module)
    except CompileError as error:
        raise CompileError(
            f"pass '{step.run.name}' left IR that does not verify: {error.message}", location=error.location
        ) from error
