"""Random schedules keep the meaning of programs: 200 cases here, more with `run_fuzz.py`. And the fuzzer can fail."""

from __future__ import annotations

import os
import signal
from functools import cache
from typing import Any

import checking
import pytest
from cases import Outcome, crashes, replay_kept, report, run_case, shrink
from programs import FAMILIES, make_program
from schedules import PRIMITIVES, Fuzzer, RecordingSchedule, Statistics

import weft
from weft.dialects import sched
from weft.dialects.tir_kinds import LoopKind
from weft.passes.schedule import loop_kinds, registry
from weft.passes.schedule.loop_structure import Split, SplitPlan
from weft.passes.schedule.reduction import DecomposeReduction
from weft.passes.tir.tir_lower_reductions import LowerReductionsPass

CASES = 40
"""Of each program."""
LEAST_SHARE = 0.15


def seeds_of(family: str, count: int = CASES) -> range:
    at = list(FAMILIES).index(family)
    return range(at, at + count * len(FAMILIES), len(FAMILIES))


@cache
def statistics_of(family: str) -> Statistics:
    """Run the cases of a family; the first failure is shrunk and told."""
    total = Statistics()
    for seed in seeds_of(family):
        outcome = run_case(seed)
        if outcome.failure is not None:
            pytest.fail(report(outcome, seed, shrink(outcome, seed)))
        total.add(outcome.statistics)
    return total


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_random_schedules_keep_the_meaning(family: str) -> None:
    assert statistics_of(family).accepted.total() > 2 * CASES


@pytest.mark.slow
def test_every_primitive_is_drawn_and_accepted() -> None:
    assert set(PRIMITIVES) <= set(registry.PRIMITIVES)
    total = Statistics()
    for family in FAMILIES:
        total.add(statistics_of(family))
    for primitive in PRIMITIVES:
        assert total.accepted[primitive] >= 10, total
        assert total.share(primitive) >= LEAST_SHARE, total


@pytest.mark.parametrize("family", FAMILIES)
def test_cases_are_reproducible(family: str) -> None:
    def text(seed: int) -> str:
        fuzzer = Fuzzer(make_program(family, seed), seed)
        fuzzer.run(6)
        return f"{fuzzer.sch.mod}{fuzzer.sch.trace}"

    assert text(3) == text(3)
    assert text(3) != text(4)


# Planted bugs: each must be found, at the stage where it shows.


def first_failure(family: str, count: int = CASES) -> tuple[int, Outcome]:
    for seed in seeds_of(family, count):
        outcome = run_case(seed)
        if outcome.failure is not None:
            return seed, outcome
    pytest.fail("nothing was found")


def stage_of(outcome: Outcome) -> str:
    assert outcome.failure is not None
    return outcome.failure.stage


def test_split_without_guards_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = Split.plan

    def unguarded(self: Split) -> SplitPlan:
        plan = planned(self)
        return SplitPlan(plan.anchor, plan.extents, guarded=False)

    monkeypatch.setattr(Split, "plan", unguarded)
    _, outcome = first_failure("elementwise")
    assert stage_of(outcome) == "after interpreter before, CompileError in _report_outside"


def test_parallel_reductions_are_found_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        return None

    monkeypatch.setattr(loop_kinds, "dependent_iterations", never)
    seed, outcome = first_failure("matmul_relu")
    assert stage_of(outcome).startswith(("interpreter", "after interpreter"))
    kept = shrink(outcome, seed)
    left = replay_kept(outcome.program, outcome.steps, kept)
    steps = [step.name for step in left.trace.body.block.ops if step.name not in ("sched.get_block", "sched.get_loops")]
    assert len(steps) <= 3
    assert {"sched.parallel", "sched.vectorize"} & set(steps)
    text = report(outcome, seed, kept)
    module = weft.parse(text)
    assert [op for op in module.ops if isinstance(op, sched.FuncOp)]


def test_updates_before_the_init_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    rewritten = DecomposeReduction.apply

    def late(self: DecomposeReduction) -> Any:
        (init,) = rewritten(self)
        top = init
        while top.parent is not self.loop.parent:
            top = top.parent_op()
        top.detach()
        self.loop.parent.insert_op_after(top, self.loop)
        return (init,)

    monkeypatch.setattr(DecomposeReduction, "apply", late)
    _, outcome = first_failure("bmm")
    assert "interpreter" in stage_of(outcome) or "verify tir" in stage_of(outcome)


def test_wrong_lowering_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reductions whose init is lost: temporaries and outputs start with what memory held."""
    lower = LowerReductionsPass.apply

    def without_init(self: LowerReductionsPass, ctx: Any, op: Any) -> None:
        for inner in list(op.walk()):
            if inner.name == "tir.init":
                inner.detach()
                inner.erase()
        lower(self, ctx, op)

    monkeypatch.setattr(LowerReductionsPass, "apply", without_init)
    _, outcome = first_failure("row_reduction")
    assert stage_of(outcome) in ("llvm", "low") or stage_of(outcome).startswith("after ")


def test_a_refusal_that_changes_the_module_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(self: loop_kinds.Parallel) -> Any:
        self.loop.induction_variable.name_hint = "renamed"
        self.refuse(1, "the loop is odd", self.loop)

    monkeypatch.setattr(loop_kinds.Parallel, "plan", careless)
    seed, outcome = first_failure("elementwise")
    assert stage_of(outcome) == "step refused"
    assert "sched.parallel" in report(outcome, seed, shrink(outcome, seed))


def test_tracebacks_of_primitives_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: loop_kinds.Unroll) -> Any:
        raise IndexError("tuple index out of range")

    monkeypatch.setattr(loop_kinds.Unroll, "plan", broken)
    seed, outcome = first_failure("conv2d")
    assert stage_of(outcome) == "step IndexError in broken"
    assert "IndexError: tuple index out of range" in report(outcome, seed, shrink(outcome, seed))


def test_writes_outside_of_arrays_are_found() -> None:
    guarded = checking.Guarded((3, 5), "float32", None)
    assert guarded.intact()
    guarded.memory[checking.MARGIN + 15] = 1.0
    assert not guarded.intact()


def test_crashes_are_noticed() -> None:
    assert crashes(lambda: os.kill(os.getpid(), signal.SIGKILL))
    assert not crashes(lambda: None)


def test_steps_left_out_give_their_loops_to_later_ones() -> None:
    program = make_program("matmul_relu", 1)
    sch = RecordingSchedule(program.module)
    (loop, *_) = sch.get_loops("C")
    outer, _ = sch.split(loop, [None, 4])
    sch.parallel(outer)
    steps = [op for op in sch.trace.body.block.ops if isinstance(op, sched.StepOp)]
    kept = [step.name != "sched.split" for step in steps]
    left = replay_kept(program, steps, kept)
    assert "sched.split" not in str(left.trace)
    assert LoopKind.PARALLEL.value in str(left.mod)
