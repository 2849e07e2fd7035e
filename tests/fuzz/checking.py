"""What must hold for a scheduled program: each stage of the way down gives what NumPy gives."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from programs import Array, Program, Run
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import weft
from weft.dialects import sched
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.passes.lower_tir_to_low import LowerTirToLowPass
from weft.passes.verify_level import verify_level
from weft.runtime.low_module import load_low_module
from weft.schedule.traces import run_python, simplify_trace, trace_as_python

ORDERS = ("forward", "reversed", "shuffled", "privatised")
"""How the iterations of parallel and vectorised loops are interpreted: one after the other in several orders, then all
at once, each with its own copy of the temporaries that the loop alone uses, as lowering gives it."""
MARGIN = 64
"""Elements before and after each array that must stay as they are."""


@dataclass(frozen=True)
class Failure:
    """The first stage that went wrong, and how."""

    stage: str
    detail: str

    def __str__(self) -> str:
        return f"{self.stage}: {self.detail}"


class Guarded:
    """An array in the middle of memory whose rest must not be written; NaN there shows what reads out of bounds."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, value: Array | None) -> None:
        garbage = np.nan if np.dtype(dtype).kind == "f" else 77
        size = int(np.prod(shape))
        self.memory = np.full(size + 2 * MARGIN, garbage, dtype)
        self.array = self.memory[MARGIN : MARGIN + size].reshape(shape)
        if value is not None:
            self.array[...] = value

    def intact(self) -> bool:
        """Whether the margins are as they were."""
        edges = np.concatenate([self.memory[:MARGIN], self.memory[-MARGIN:]])
        return bool(np.isnan(edges).all() if edges.dtype.kind == "f" else (edges == 77).all())


def check(program: Program, scheduled: ModuleOp, trace: sched.FuncOp, seed: int) -> Failure | None:
    """The first stage at which the scheduled module is not what it should be."""
    stage = "start"
    try:
        for stage, problem in _stages(program, scheduled, trace, seed):
            if problem is not None:
                return Failure(stage, problem)
    except Exception as error:  # noqa: BLE001 - whatever is raised is the finding
        place = traceback.extract_tb(error.__traceback__)[-1]
        return Failure(
            f"after {stage}, {type(error).__name__} in {place.name}", "".join(traceback.format_exception(error))
        )
    return None


def _stages(program: Program, scheduled: ModuleOp, trace: sched.FuncOp, seed: int) -> Iterator[tuple[str, str | None]]:
    """Each stage with what is wrong there."""
    extra = int(np.random.default_rng((seed, 2)).integers(8))
    """What only some of the cases are checked for."""
    yield "interpreter before", _interpret(program, program.module)
    verify_level(scheduled, "tir")
    yield "verify tir", None
    kinds = {op.kind.data for op in scheduled.walk() if isinstance(op, ForOp)}
    free = bool(kinds & {LoopKind.PARALLEL, LoopKind.VECTORIZED, LoopKind.THREAD_BINDING})
    for order in ORDERS if free else ORDERS[:1]:
        yield f"interpreter {order}", _interpret(program, scheduled, order, seed)
    if extra < 4:
        yield "round trip", _unequal(scheduled, weft.parse(str(scheduled), "scheduled.mlir"))
        yield from _replays(program, scheduled, trace)
    elif extra == 4:
        again = weft.Schedule(program.module)
        run_python(again, trace_as_python(simplify_trace(trace)))
        yield "trace as Python", _unequal(scheduled, again.mod)
    low = scheduled.clone()
    LowerTirToLowPass("llvm").apply(Context(), low)
    verify_level(low, "low")
    yield "lower", None
    yield "low", _interpret(program, low)
    times = 2 if LoopKind.PARALLEL in kinds else 1
    for level in (2, 0, *((3,) if extra == 5 else ())):
        yield f"llvm -opt-level={level}", _run(program, load_low_module(low, weft.Target(opt_level=level)), times)
    if extra == 6:
        before = str(scheduled)
        yield "build", _run(program, weft.build(scheduled), times)
        yield "module after build", None if str(scheduled) == before else "the given module was changed"


def _replays(program: Program, scheduled: ModuleOp, trace: sched.FuncOp) -> Iterator[tuple[str, str | None]]:
    """The trace, printed and read, gives the same module and the same trace."""
    replayed = weft.Schedule(program.module)
    parsed = weft.parse(str(trace), "trace.mlir")
    replayed.replay(next(op for op in parsed.ops if isinstance(op, sched.FuncOp)))
    yield "replay", _unequal(scheduled, replayed.mod)
    same = str(replayed.trace) == str(trace)
    yield "trace of the replay", None if same else f"another trace:\n{replayed.trace}"


def _interpret(program: Program, module: ModuleOp, order: str = "forward", seed: int = 0) -> str | None:
    interpreter = weft.Interpreter(module, order=order, seed=seed)
    for run in program.runs():
        inputs, outputs = _arguments(run)
        interpreter.call("main", *inputs, *outputs)
        problem = _difference(program, run, inputs, outputs)
        if problem is not None:
            return problem
    return None


def _run(program: Program, library: weft.Library, times: int = 1) -> str | None:
    for run in program.runs() * times:
        given = [Guarded(a.shape, a.dtype, a) for a in run.inputs]
        taken = [Guarded(a.shape, a.dtype, old) for a, old in zip(run.expected, run.before(), strict=True)]
        inputs, outputs = [g.array for g in given], [g.array for g in taken]
        library["main"](*inputs, *outputs)
        for number, guarded in enumerate((*given, *taken)):
            if not guarded.intact():
                return f"argument {number} was written outside its bounds"
        problem = _difference(program, run, inputs, outputs)
        if problem is not None:
            return problem
    return None


def _arguments(run: Run) -> tuple[list[Array], list[Array]]:
    outputs = [
        np.full(a.shape, np.nan if a.dtype.kind == "f" else 77).astype(a.dtype) if old is None else old.copy()
        for a, old in zip(run.expected, run.before(), strict=True)
    ]
    return [a.copy() for a in run.inputs], outputs


def _difference(program: Program, run: Run, inputs: list[Array], outputs: list[Array]) -> str | None:
    for number, (before, after) in enumerate(zip(run.inputs, inputs, strict=True)):
        if not np.array_equal(before, after):
            return f"input {number} was changed"
    if program.equal(run.expected, outputs):
        return None
    for number, (want, got) in enumerate(zip(run.expected, outputs, strict=True)):
        wrong = np.argwhere(~(want == got))
        if len(wrong):
            index = tuple(int(i) for i in wrong[0])
            return f"output {number}{list(index)} should be {want[index]}, is {got[index]} ({len(wrong)} differ)"
    return "outputs differ"


def _unequal(first: ModuleOp, second: ModuleOp) -> str | None:
    return None if weft.structural_equal(first, second) else f"not equal:\n{first}\n{second}"
