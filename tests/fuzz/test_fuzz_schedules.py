"""Random schedules keep the meaning of programs: 25 cases in the first tier of tests, 300 in the second, more with
`run_fuzz.py`. And the fuzzer can fail."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import checking
import pytest
from campaign import ELSEWHERE, Campaign, Totals
from cases import Outcome, case_of, family_of, make_program, replay_kept, run_case
from memory_programs import MemoryGenerator
from program_text import Binary, Constant, Gathered, ProgramText, Stage
from programs import FAMILIES, Draw
from random_programs import TYPES, Generator, program_of
from reduction_programs import ReductionGenerator
from schedules import GENERIC, PRIMITIVES, Fuzzer, RecordingSchedule, Statistics
from shrinking import crashes, report, rerun, shrunk, smaller_programs
from tiers import first_tier

import weft
from weft.dialects import sched
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.passes.schedule import compute_at, parallel
from weft.passes.schedule import primitive as definitions
from weft.passes.schedule.decompose_reduction import DecomposeReduction
from weft.passes.schedule.split import Split, SplitPlan
from weft.passes.tir import tir_lower_reductions
from weft.passes.tir.tir_lower_reductions import LowerReductionsPass

CASES = 300
FIRST_CASES = 25
LEAST_SHARE = 0.03
LEAST_ACCEPTED = 3


@cache
def campaign(cases: int) -> Totals:
    """The cases of the test run, on two processes."""
    return Campaign(range(cases), jobs=2, tell=lambda _: None).run()


@pytest.mark.parametrize("cases", first_tier([FIRST_CASES, CASES], FIRST_CASES))
def test_random_schedules_keep_the_meaning(cases: int) -> None:
    totals = campaign(cases)
    if totals.findings:
        pytest.fail(totals.findings[0][2])
    assert totals.cases == cases
    assert totals.statistics.accepted.total() > 5 * cases
    assert set(totals.families) == {"random", "memory", "reductions", *FAMILIES}


@pytest.mark.slow
def test_every_primitive_is_drawn_and_accepted() -> None:
    """In the cases of the test run or, where programs that it fits are rare, in some more schedules."""
    wanted = [primitive for primitive in PRIMITIVES if primitive not in (*ELSEWHERE, *GENERIC)]
    total = Statistics()
    total.add(campaign(CASES).statistics)
    for primitive in GENERIC:
        assert total.refused[primitive] + total.accepted[primitive] > 0, primitive
    for seed in range(CASES, 3 * CASES):
        if all(total.accepted[primitive] >= LEAST_ACCEPTED for primitive in wanted):
            break
        total.add(case_of(seed)[1].statistics)
    for primitive in wanted:
        assert total.accepted[primitive] >= LEAST_ACCEPTED, f"{primitive}\n{total}"
        assert total.share(primitive) >= LEAST_SHARE, f"{primitive}\n{total}"
    for primitive, file in ELSEWHERE.items():
        assert total.refused[primitive] + total.accepted[primitive] > 0, primitive
        assert (Path(__file__).parent / file).exists()


def test_the_fuzzer_knows_every_primitive() -> None:
    """Those without a way of drawing their own are drawn by the kinds of their parameters."""
    assert set(PRIMITIVES) == set(definitions.PRIMITIVES)
    fuzzer = Fuzzer(make_program("matmul_relu", 1), 1)
    for primitive in GENERIC:
        for _ in range(20):
            fuzzer.step(primitive)
        assert fuzzer.statistics.refused[primitive] + fuzzer.statistics.accepted[primitive] > 0, primitive


@pytest.mark.parametrize("family", ["random", "memory", "reductions", *FAMILIES])
def test_cases_are_reproducible(family: str) -> None:
    def text(seed: int) -> str:
        fuzzer = Fuzzer(make_program(family, seed), seed)
        fuzzer.run(6)
        return f"{fuzzer.sch.mod}{fuzzer.sch.trace}"

    assert text(3) == text(3)
    assert text(3) != text(4)


def test_random_programs_have_every_feature() -> None:
    """What the generator is for does occur, and in no rare corner."""
    texts = [Generator(Draw(seed), TYPES[0]).program() for seed in range(300)]
    printed = [text.mlir() for text in texts]
    features = {
        "one block": [len(text.stages()) == 1 for text in texts],
        "four blocks": [len(text.stages()) >= 4 for text in texts],
        "dynamic": [bool(text.symbols) for text in texts],
        "two symbols": [len(text.symbols) == 2 for text in texts],
        "gather": [bool(text.below) for text in texts],
        "facts": [bool(text.facts) for text in texts],
        "computed extents of parameters": [
            any(e.symbol and e.offset for b in (*text.inputs, *text.outputs) for e in b.shape) for text in texts
        ],
        "reduction": ["tir.init" in text for text in printed],
        "guarded read": ["scf.if" in text for text in printed],
        "predicate": [" where [" in text for text in printed],
        "partial predicate": [any(stage.guards for stage in text.stages()) for text in texts],
        "shared loop": [any(len(group.stages) > 1 for group in text.groups) for text in texts],
        "temporary": [bool(text.temporaries) for text in texts],
        "halo": ["(d0 * 1 + 1)" in text or "(d0 * 1 + 2)" in text for text in printed],
        "digits": [" floordiv " in text or " mod " in text for text in printed],
    }
    for feature, found in features.items():
        assert sum(found) >= 10, f"{feature}: {sum(found)} of {len(found)}"


def test_programs_whose_order_matters_have_every_feature() -> None:
    texts = [MemoryGenerator(Draw(seed), "int32", effects=seed % 2 == 1).program() for seed in range(200)]

    def touches(text: ProgramText, *, before: bool) -> bool:
        """Whether a stage reads what another one writes afterwards."""
        stages = text.stages()
        return any(
            load.buffer.memory == later.target.memory
            for at, stage in enumerate(stages)
            for load in stage.loads()
            for later in (stages[at + 1 :] if before else [stage])
        )

    features = {
        "several writers": [len({s.target.memory for s in t.stages()}) < len(t.stages()) for t in texts],
        "write after read": [touches(text, before=True) for text in texts],
        "in place": [touches(text, before=False) for text in texts],
        "scatter": [any(isinstance(i, Gathered) for s in t.stages() for i in s.indices) for t in texts],
        "gather": [bool(text.below) for text in texts],
        "condition": [any(stage.conditions for stage in text.stages()) for text in texts],
        "predicate": [" where [" in text.mlir() for text in texts],
        "reduction into what is there": [
            any(s.start is not None and s.target.name in t.updated for s in t.stages()) for t in texts
        ],
        "shared loop": [any(len(group.stages) > 1 for group in text.groups) for text in texts],
        "call": ["func.call" in text.mlir() for text in texts],
        "second name": ["memref.cast" in text.mlir() for text in texts],
    }
    for feature, found in features.items():
        assert sum(found) >= 10, f"{feature}: {sum(found)} of {len(found)}"


def test_reductions_have_every_feature() -> None:
    texts = [ReductionGenerator(Draw(seed), "int32").program() for seed in range(200)]
    stages = [[stage for stage in text.stages() if stage.inits] for text in texts]

    def elsewhere(stage: Stage) -> bool:
        started = {(init.target, init.indices) for init in stage.inits}
        return any((store.target, store.indices) not in started for store in stage.stores())

    features: dict[str, Callable[[Stage], bool]] = {
        "started elsewhere": elsewhere,
        "started where it is updated": lambda stage: not elsewhere(stage),
        "two accumulators": lambda stage: len(stage.targets()) > 1,
        "several stores": lambda stage: len(stage.more) > 0,
        "one of two started": lambda stage: len({i.target for i in stage.inits}) < len(stage.targets()),
        "started under a condition": lambda stage: any(init.conditions for init in stage.inits),
        "updated under a condition": lambda stage: any(store.conditions for store in stage.stores()),
        "started from data": lambda stage: any(not isinstance(init.value, Constant) for init in stage.inits),
        "a reduction outside": lambda stage: stage.iters[0].reduce,
        "fused": lambda stage: stage.fused,
        "an iterator that the accumulator has not": lambda stage: any(it.name == "w" for it in stage.iters),
    }
    for feature, holds in features.items():
        assert sum(any(map(holds, found)) for found in stages) >= 5, feature


def test_inits_that_move_past_other_updates_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault of a lowering that compares the buffers of init and updates, but not their elements."""
    monkeypatch.setattr(tir_lower_reductions, "why_not_started_before", lambda *_: None)
    found = set[str]()
    for seed in range(60):
        program = make_program("reductions", seed)
        sch = weft.Schedule(program.module)
        failure = checking.check(program, sch.mod, sch.trace, seed)
        if failure is not None:
            found.add(failure.stage)
            break
    assert found == {"low"}


def test_programs_with_effects_mean_what_their_loops_say() -> None:
    for seed in range(12):
        program = make_program("effects", seed)
        sch = weft.Schedule(program.module)
        assert checking.check(program, sch.mod, sch.trace, seed) is None


@pytest.mark.slow
def test_moves_that_ignore_what_they_pass_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute_at, "passing_conflict", lambda *_, **__: None)
    found: list[str] = []
    for seed in range(20):
        program = make_program("memory", seed)
        fuzzer = Fuzzer(program, seed)
        for primitive in ("reverse_compute_at", "compute_at") * 3:
            fuzzer.step(primitive)
        failure = checking.check(program, fuzzer.sch.mod, fuzzer.sch.trace, seed)
        if failure is not None:
            found.append(failure.stage)
            break
    assert found
    assert found[0].startswith("interpreter") or found[0].startswith("after interpreter")


def test_the_plain_loops_are_a_second_opinion(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program whose text says something else than its loops is found before any schedule."""
    from program_text import TirPrinter

    def swapped(self: TirPrinter, op: str) -> str:
        return {"add": "subf", "sub": "addf", "mul": "mulf", "max": "minimumf", "min": "maximumf"}[op]

    monkeypatch.setattr(TirPrinter, "_operation", swapped)
    stages: list[str] = []
    for seed in range(10):
        program = program_of(Generator(Draw(seed), "float32").program(), Draw(1))
        sch = weft.Schedule(program.module)
        failure = checking.check(program, sch.mod, sch.trace, 0)
        stages.append("" if failure is None else failure.stage)
    assert stages.count("interpreter before") >= 5, stages  # the others add nothing, or the same in any order
    assert set(stages) <= {"", "interpreter before"}


# Planted bugs: each must be found, at the stage where it shows.


def first_failure(family: str, count: int = 40) -> tuple[int, Outcome]:
    """The first of the seeds of a family that fails."""
    seeds = [seed for seed in range(12 * count) if family_of(seed) == family][:count]
    for seed in seeds:
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
        return SplitPlan(plan.loop, plan.extents, guarded=False)

    monkeypatch.setattr(Split, "plan", unguarded)
    _, outcome = first_failure("elementwise")
    assert stage_of(outcome).startswith(("after interpreter before, CompileError in", "interpreter"))


@pytest.mark.slow
def test_parallel_reductions_are_found_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        return None

    monkeypatch.setattr(parallel, "dependent_iterations", never)
    seed, outcome = first_failure("matmul_relu")
    assert stage_of(outcome).startswith(("interpreter", "after interpreter"))
    case = shrunk(outcome, seed)
    left = replay_kept(case.outcome.program, case.outcome.steps, case.kept)
    steps = [step.name for step in left.trace.body.block.ops if step.name not in ("sched.get_block", "sched.get_loops")]
    assert len(steps) <= 3
    assert {"sched.parallel", "sched.vectorize"} & set(steps)
    text = report(case, seed)
    module = weft.parse(text)
    assert [op for op in module.ops if isinstance(op, sched.FuncOp)]
    again = rerun(text)
    assert again is not None
    assert again.stage == stage_of(outcome)
    monkeypatch.undo()
    with pytest.raises(weft.ScheduleError, match="requirement"):
        rerun(text)


@pytest.mark.slow
def test_random_programs_shrink_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug of one primitive leaves one block with one operation at most."""

    def never(*_: object, **__: object) -> None:
        return None

    monkeypatch.setattr(parallel, "dependent_iterations", never)
    seed, outcome = first_failure("random", 60)
    case = shrunk(outcome, seed)
    before, after = outcome.program.text, case.outcome.program.text
    assert before is not None
    assert after is not None
    assert len(after.stages()) <= 2
    assert sum(isinstance(stage.value, Binary) for stage in after.stages()) <= 1
    assert rerun(report(case, seed)) is not None


@pytest.mark.parametrize("most", first_tier([5, 1000], 5))
def test_smaller_programs_are_programs(most: int) -> None:
    """Each that can be run at all (half of a buffer may be missing now) means what its plain loops say."""
    text = next(t for seed in range(40) if len((t := Generator(Draw(seed), "int32").program()).stages()) == 4)
    run = 0
    for attempt in smaller_programs(text):
        try:
            program = program_of(attempt, Draw(0))
        except (LookupError, weft.CompileError):
            continue
        sch = weft.Schedule(program.module)
        assert checking.check(program, sch.mod, sch.trace, 0) is None
        run += 1
        if run == most:
            break
    assert run > 4


@pytest.mark.slow
def test_a_campaign_goes_on_where_it_was(tmp_path: Path) -> None:
    first = Campaign(range(2), jobs=1, folder=tmp_path).run()
    lines = (tmp_path / "progress.jsonl").read_text().splitlines()
    assert len(lines) == 2
    again = Campaign(range(3), jobs=1, folder=tmp_path).run()
    assert again.cases == 3
    assert (tmp_path / "progress.jsonl").read_text().splitlines()[:2] == lines
    assert again.statistics.accepted.total() >= first.statistics.accepted.total()


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
    # "build" runs default schedules, which decompose reductions too.
    assert any(stage in stage_of(outcome) for stage in ("interpreter", "verify tir", "build"))


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


@pytest.mark.slow
def test_a_refusal_that_changes_the_module_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(self: parallel.Parallel) -> Any:
        self.loop.induction_variable.name_hint = "renamed"
        self.refuse(1, "the loop is odd", self.loop)

    monkeypatch.setattr(parallel.Parallel, "plan", careless)
    seed, outcome = first_failure("elementwise")
    assert stage_of(outcome) == "step refused"
    assert "sched.parallel" in report(shrunk(outcome, seed), seed)


@pytest.mark.slow
def test_tracebacks_of_primitives_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: parallel.Unroll) -> Any:
        raise IndexError("tuple index out of range")

    monkeypatch.setattr(parallel.Unroll, "plan", broken)
    seed, outcome = first_failure("conv2d")
    assert stage_of(outcome) == "step IndexError in broken"
    assert "IndexError: tuple index out of range" in report(shrunk(outcome, seed), seed)


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


def test_steps_left_out_leave_later_ones_their_loops() -> None:
    """Without the fusion, the loop that was found after it is not the second of its nest, but the third."""
    program = make_program("matmul_relu", 1)
    sch = RecordingSchedule(program.module)
    sch.fuse(*sch.get_loops("Y")[:2])
    _, k = sch.get_loops("Y")
    sch.unroll(k)
    steps = [op for op in sch.trace.body.block.ops if isinstance(op, sched.StepOp)]
    left = replay_kept(program, steps, [step.name != "sched.fuse" for step in steps])
    loops = [left.get(loop) for loop in left.get_loops("Y")]
    kinds = [loop.kind.data for loop in loops if isinstance(loop, ForOp)]
    assert kinds == [LoopKind.SERIAL, LoopKind.SERIAL, LoopKind.UNROLLED]
