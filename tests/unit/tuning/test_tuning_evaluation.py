"""Evaluation of candidates: what is recorded, built, measured twice or not at all; builders and runners that fail."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import weft
from weft.driver.candidates import build_here
from weft.interp.arguments import argument_recipe
from weft.support.call_signature import Signature
from weft.support.errors import CompileError
from weft.support.limited_calls import Failure, Limits
from weft.tuning import executors, measuring, runner
from weft.tuning.database import Database
from weft.tuning.evaluation import DEFAULT, Trial, TrialEvaluator, WrongResultError, cancel, next_done
from weft.tuning.executors import WorkerFacts
from weft.tuning.measuring import ArgumentSpec, Built, Measured, Repeats, measure_here
from weft.tuning.records import Record, Workload, machine_kind, versions
from weft.tuning.runner import WorkerLimits
from weft.tuning.space import Candidate

WORKLOAD = Workload("5f", "f", "func.func @f() { return }", 100)
DEFAULTS = Candidate("default", (), b"")
FOREVER = float("inf")


class Inline(Executor):
    """Runs what is submitted at once."""

    def submit(self, fn, /, *args, **kwargs):
        future: Future[object] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class Workers:
    """A builder and a runner without processes: what a candidate does is said by its decision."""

    def __init__(self) -> None:
        self.built: list[int | None] = []
        self.measured: list[int | None] = []
        self.speed = 1.0

    def build(self, ir: str, trace: str, decisions: tuple[int, ...], target: str, limits: Limits) -> Built | Failure:
        seconds = decisions[0] if decisions else None
        self.built.append(seconds)
        if seconds == -1:
            return Failure("crash", "its process was ended by SIGSEGV: LLVM ERROR")
        return Built(Signature("f", ()), str(100 if seconds is None else seconds).encode(), target, "")

    def measure(
        self, built: Built, reference: Built, spec: ArgumentSpec, repeats: Repeats, limits: Limits
    ) -> Measured | Failure:
        seconds = int(built.code)
        self.measured.append(None if seconds == 100 else seconds)
        if seconds == -2:
            return Failure("time", "it takes longer than 10 s")
        if seconds == -3:
            return Measured((), "B[3] is 7.0, with the default schedule it is 8.0")
        return Measured((seconds / self.speed,) * 3)


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Workers:
    monkeypatch.setattr(runner, "_drifts", {})
    return Workers()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "tune.db") as found:
        yield found


class Later(Executor):
    """Runs what is submitted when it is told to, the last first."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], Callable[[], object]]] = []

    def submit(self, fn, /, *args, **kwargs):
        future: Future[Any] = Future()
        self.waiting.append((future, partial(fn, *args, **kwargs)))
        return future

    def run(self) -> None:
        while self.waiting:
            future, call = self.waiting.pop()
            if future.set_running_or_notify_cancel():
                future.set_result(call())


def evaluator(database: Database, workers: Workers, **options: Any) -> TrialEvaluator:
    return TrialEvaluator(
        WORKLOAD,
        "llvm",
        ArgumentSpec(argument_recipe(_function()), 0, 1),
        DEFAULTS,
        "space",
        database=database,
        executor=Inline(),
        build=workers.build,  # pyright: ignore[reportArgumentType]
        measure=workers.measure,
        limits=WorkerLimits(),
        **options,
    )


def _function() -> weft.FuncOp:
    return next(iter(weft.parse("func.func @f(%A: memref<4xf32>) { func.return }").ops))


def candidates(*seconds: int) -> list[Candidate]:
    return [Candidate("trace", (s,), str(s).encode()) for s in seconds]


def evaluate(found: TrialEvaluator, *seconds: int) -> list[Record]:
    return [_record(trial) for trial in found.finish(found.begin(candidates(*seconds)), FOREVER)]


def _record(trial: Trial | None) -> Record:
    assert trial is not None and trial.record is not None
    return trial.record


def have_measured(found: TrialEvaluator, *seconds: int) -> list[Record]:
    """By runners, in the order in which they are done."""
    trials, records = found.begin(candidates(*seconds)), list[Record]()
    while trials:
        done = next_done(trials, found._events, FOREVER)
        records.append(_record(done))
        trials = [trial for trial in trials if trial is not done]
    return records


def test_the_default_is_measured_first_and_kept_when_nothing_is_faster(database: Database, workers: Workers) -> None:
    found = evaluator(database, workers)
    assert (found.default.seconds, found.default.origin, workers.measured) == (100, DEFAULT, [None, None])
    records = evaluate(found, 300, 200)
    assert [record.seconds for record in records] == [300, 200] and found.best is found.default
    assert database.workloads() == [WORKLOAD]


def test_failures_are_recorded_with_their_reason(database: Database, workers: Workers) -> None:
    found = evaluator(database, workers)
    reasons = [record.failure for record in evaluate(found, -1, -2, 50)]
    assert reasons == ["its process was ended by SIGSEGV: LLVM ERROR", "it takes longer than 10 s", ""]
    assert found.best.seconds == 50
    assert [record.failure for record in database.records()] == ["", *reasons]


def test_what_is_known_is_neither_built_nor_measured(database: Database, workers: Workers) -> None:
    evaluate(evaluator(database, workers), 50, -1, 200)
    again = Workers()
    found = evaluator(database, again)
    known = [trial.was_known for trial in found.finish(found.begin(candidates(50, -1, 200)), FOREVER)]
    assert known == [True] * 3 and found.best.seconds == 50
    assert again.built == again.measured == []
    # The reference and the incumbent are built when something new is measured.
    evaluate(found, 70)
    assert again.built == [70, 50, None] and again.measured == [50, 70]


def test_a_new_incumbent_is_measured_again_beside_the_old_one(database: Database, workers: Workers) -> None:
    found = evaluator(database, workers)
    workers.measured.clear()
    evaluate(found, 150, 50, 60, 40)
    default = None
    assert workers.measured == [default, 150, 50, default, 50, 60, 40, 50, 40]


def test_a_candidate_that_is_hardly_faster_is_measured_in_turn_with_the_incumbent(
    database: Database, workers: Workers
) -> None:
    found = evaluator(database, workers)
    workers.measured.clear()
    evaluate(found, 98)
    assert workers.measured == [None, 98, *(None, 98) * 3] and found.best.seconds == 98
    # The machine has become faster by less than the noise: the candidate has not.
    workers.speed = 1.02
    workers.measured.clear()
    (record,) = evaluate(found, 99)
    assert workers.measured == [98, 99, 98, 99] and record.seconds == pytest.approx(99) and found.best.seconds == 98


def test_a_machine_that_becomes_slower_is_allowed_for(database: Database, workers: Workers) -> None:
    found = evaluator(database, workers)
    workers.speed = 0.5
    (record,) = evaluate(found, 90)
    assert record.times == (180.0,) * 3 and record.drift == 2.0 and record.seconds == 90
    assert found.best == record
    workers.speed = 0.51  # 2 %: noise
    (record,) = evaluate(found, 95)
    assert record.drift == pytest.approx(1 / 0.51)


def test_a_disturbed_incumbent_makes_no_winner(database: Database, workers: Workers) -> None:
    found = evaluator(database, workers)
    calls = 0

    def disturbed(*arguments: object) -> Measured | Failure:
        nonlocal calls
        calls += 1
        workers.speed = 0.25 if calls == 1 else 1.0  # something else runs while the incumbent is measured
        return measure(*arguments)  # pyright: ignore[reportArgumentType]

    measure = workers.measure
    found._measure = disturbed
    (record,) = evaluate(found, 120)
    assert record.seconds == 120 and found.best is found.default


def test_a_wrong_result_ends_the_search(database: Database, workers: Workers) -> None:
    found = evaluator(database, workers)
    with pytest.raises(WrongResultError, match=r"B\[3\] is 7") as caught:
        evaluate(found, 50, -3, 60)
    assert caught.value.candidate.decisions == (-3,)
    # What was measured before is kept.
    assert [record.seconds for record in database.records()] == [100, 50]


def test_an_interrupt_loses_the_batch_under_way_only(database: Database, workers: Workers) -> None:
    found = evaluator(database, workers)
    batch = found.finish(found.begin(candidates(50, 60, 70)), FOREVER)
    assert isinstance(batch, Generator)
    next(batch)
    next(batch)
    batch.close()
    assert [record.seconds for record in database.records()] == [100, 50, 60]


def test_the_deadline_ends_a_batch(database: Database, workers: Workers) -> None:
    found = evaluator(database, workers)
    assert list(found.finish(found.begin(candidates(50, 60)), 0.0)) == []


def test_a_default_that_cannot_be_built_or_run(database: Database, workers: Workers) -> None:
    for failing in ("build", "measure"):
        broken = Workers()
        setattr(broken, failing, lambda *_: Failure("memory", "it needs more than 8 GiB"))
        verb = {"build": "built", "measure": "run"}[failing]
        with pytest.raises(CompileError, match=f"@f cannot be {verb} with its default schedule: it needs more than 8"):
            evaluator(database, broken)


# Runners


def test_runners_measure_beside_the_incumbent(database: Database, workers: Workers) -> None:
    found = evaluator(database, workers, runner=Inline(), machine=machine_kind())
    workers.measured.clear()
    records = have_measured(found, 150, -1, 50, 60, -2)
    # What cannot be built is done first.
    assert [record.seconds for record in records] == [None, 150, 50, 60, None] and found.best.seconds == 50
    # The drift is measured once for each incumbent, and what is faster is confirmed: both, for both were under way.
    default = None
    assert workers.measured == [default, 150, 50, default, 50, 60, default, 60, -2]
    assert [record for record in database.records() if record.origin != DEFAULT] == records
    again = Workers()
    resumed = evaluator(database, again, runner=Inline())
    assert have_measured(resumed, -2, 60, 50, 150, -1) == records and not again.built


def test_whoever_is_first_is_told_first(database: Database, workers: Workers) -> None:
    later, events = Later(), SimpleQueue[Callable[[], None]]()
    found = evaluator(database, workers, runner=Inline(), events=events)
    found._runner = later
    batches = [found.begin(candidates(50, 60)), found.begin(candidates(70, 80))]
    for _ in range(4):
        events.get_nowait()()
    later.run()
    trials, told = [*batches[0], *batches[1]], list[float | None]()
    while trials:
        done = next_done(trials, events, FOREVER)
        told.append(_record(done).seconds)
        trials = [trial for trial in trials if trial is not done]
    assert told == [80, 70, 60, 50]
    assert [record.seconds for record in database.records() if record.origin != DEFAULT] == told


def test_a_deadline_gives_up_what_is_under_way(database: Database, workers: Workers) -> None:
    found = evaluator(database, workers, runner=Inline())
    found._executor = later = Later()
    trials = found.begin(candidates(50, 60))
    assert next_done(trials, found._events, 0.0) is None
    cancel(trials)
    assert all(future.cancelled() for future, _ in later.waiting) and len(list(database.records())) == 1


def test_workers_of_other_kinds_or_versions_end_a_search(
    database: Database, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = evaluator(database, workers, runner=Inline())
    facts = WorkerFacts("h", "x86_64 cray1", versions())
    monkeypatch.setattr(executors, "worker_facts", lambda: facts)
    message = "runner 'h' is a machine of kind x86_64 cray1, the others are .*: times of several kinds cannot be"
    with pytest.raises(CompileError, match=message):
        have_measured(found, 50)
    monkeypatch.setattr(executors, "worker_facts", lambda: replace(facts, versions="weft 9.9"))
    with pytest.raises(CompileError, match=r"builder 'h' has weft 9\.9, here it is weft .*: install the same"):
        have_measured(found, 60)


# Building and measuring in this process

SUMS = """
func.func @sums(%A: memref<16x64xf32>, %W: memref<64xbf16>, %B: memref<16xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 16 { tir.for %k in 64 {
    tir.block "B" iters(%vi: spatial<16>, %vk: reduce<64>) = [%i, %k] {
      tir.init { memref.store %zero, %B[%vi] : memref<16xf32> }
      %sum = memref.load %B[%vi] : memref<16xf32>
      %a = memref.load %A[%vi, %vk] : memref<16x64xf32>
      %w = memref.load %W[%vk] : memref<64xbf16>
      %wide = arith.extf %w : bf16 to f32
      %product = arith.mulf %a, %wide : f32
      %new = arith.addf %sum, %product : f32
      memref.store %new, %B[%vi] : memref<16xf32>
    }
  } }
  func.return
}
"""
NOTHING = "sched.func @trace { }"
SPLIT = """sched.func @trace {
  %b = sched.get_block "B" : block
  %i, %k = sched.get_loops %b : loop, loop
  %t0, %t1 = sched.sample_perfect_tile %i {n = 2, max_innermost_factor = 16} : int, int
  %i0, %i1 = sched.split %i [%t0, %t1] : loop, loop
  sched.parallel %i0
}"""
SHORT = Repeats(most=4, seconds=0.0, repeat_seconds=1e-5)


def _spec(text: str) -> ArgumentSpec:
    return ArgumentSpec(argument_recipe(next(iter(weft.parse(text).ops))), 3, 256)


def test_candidates_are_built_and_measured() -> None:
    target = "llvm -num-threads=2"
    default, split = build_here(SUMS, NOTHING, (), target), build_here(SUMS, SPLIT, ((4, 4),), target)
    assert "weft_parallel_for" in split.declarations
    measured = measure_here(split, default, _spec(SUMS), SHORT)
    assert not measured.difference and 3 <= len(measured.times) <= 4 and all(0 < t < 1 for t in measured.times)
    assert len(measure_here(split, default, _spec(SUMS), replace(SHORT, hopeless_seconds=0.0)).times) == 3


def test_disturbed_repeats_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, times = iter([0, 0, 0, 1, 1, 1, 1, 2, 2, 2]), iter([1.0, 7.0, 1.01, 8.0, 1.0])
    monkeypatch.setattr(measuring, "_preemptions", lambda: next(counts))
    repeats = Repeats(repeat_seconds=0.5)
    # Two that count and two that do not in turn, then what the three need to agree.
    assert measuring._times(lambda number: next(times), repeats) == (1.0, 1.01, 1.0)


def test_a_long_call_is_enough_to_give_a_candidate_up(monkeypatch: pytest.MonkeyPatch) -> None:
    built = build_here(SUMS, NOTHING, (), "llvm -num-threads=1")
    hopeless = replace(SHORT, hopeless_seconds=0.0)
    assert len(measure_here(built, built, _spec(SUMS), hopeless).times) == 3
    monkeypatch.setattr(measuring, "_FILLS_CACHES", 0.0)
    monkeypatch.setattr(measuring, "_preemptions", lambda: 0)
    assert len(measure_here(built, built, _spec(SUMS), hopeless).times) == 1
    # One that was disturbed is not.
    counts = iter(range(100))
    monkeypatch.setattr(measuring, "_preemptions", lambda: next(counts))
    assert len(measure_here(built, built, _spec(SUMS), hopeless).times) == 3


def test_candidates_get_equal_arguments_in_the_same_memory() -> None:
    built, spec = build_here(SUMS, NOTHING, (), "llvm -num-threads=1"), _spec(SUMS)
    kept = measuring._kept(built, spec)
    first = kept.arguments()
    places = [array.ctypes.data for array in first]
    for array in first:
        array.fill(7)
    assert measuring._kept(built, spec) is kept
    again = kept.arguments()
    assert [array.ctypes.data for array in again] == places
    assert all((array == drawn).all() for array, drawn in zip(again, spec.recipe.draw(spec.seed), strict=True))
    assert measuring._kept(built, replace(spec, seed=4)) is not kept and measuring._kept(built, spec) is kept
    for seed in range(5, 5 + measuring._MOST_KEPT):  # as many are kept as there may be sizes
        measuring._kept(built, replace(spec, seed=seed))
    assert measuring._kept(built, spec) is not kept


def test_a_candidate_that_computes_something_else_is_found_out() -> None:
    other = SUMS.replace("%new = arith.addf %sum, %product", "%new = arith.subf %sum, %product")
    default, wrong = (build_here(text, NOTHING, (), "llvm") for text in (SUMS, other))
    measured = measure_here(wrong, default, _spec(SUMS), SHORT)
    assert (
        not measured.times
        and measured.difference.startswith("B[")
        and "with the default schedule" in (measured.difference)
    )


def test_refused_traces_are_errors_of_the_builder() -> None:
    with pytest.raises(weft.ScheduleError, match="multiplies to 15"):
        build_here(SUMS, SPLIT, ((3, 5),), "llvm")
    with pytest.raises(CompileError, match="2 decisions for 1 sampling steps"):
        build_here(SUMS, SPLIT, ((3, 5), 1), "llvm")


def test_large_constants_come_along() -> None:
    text = """
    builtin.module {
      func.func @add(%A: memref<256x256xf32>, %B: memref<256x256xf32>) {
        %W = memref.get_global @W : memref<256x256xf32>
        tir.for %i in 256 { tir.for %j in 256 {
          tir.block "B" iters(%vi: spatial<256>, %vj: spatial<256>) = [%i, %j] {
            %a = memref.load %A[%vi, %vj] : memref<256x256xf32>
            %w = memref.load %W[%vi, %vj] : memref<256x256xf32>
            %b = arith.addf %a, %w : f32
            memref.store %b, %B[%vi, %vj] : memref<256x256xf32>
          }
        } }
        func.return
      }
      "memref.global"() <{sym_name = "W", type = memref<256x256xf32>, initial_value = dense<1.5>
        : tensor<256x256xf32>, sym_visibility = "private", constant}> : () -> ()
    }"""
    built = build_here(text, NOTHING, (), "llvm")
    assert [array.nbytes for array in built.constants.values()] == [1 << 18]
    module = weft.parse(text)
    spec = ArgumentSpec(argument_recipe(next(op for op in module.ops if op.name == "func.func")), 0, 1)
    assert not measure_here(built, built, spec, SHORT).difference


PRODUCT = """
builtin.module {
  func.func @product(%A: memref<4x128xf32>, %W: memref<128x256xf32> {tir.constant}, %C: memref<4x256xf32>)
    attributes {tir.constants_from_memory} {
    %zero = arith.constant 0.0 : f32
    tir.for %i in 4 { tir.for %j in 256 { tir.for %k in 128 {
      tir.block "C" iters(%vi: spatial<4>, %vj: spatial<256>, %vk: reduce<128>) = [%i, %j, %k] {
        tir.init { memref.store %zero, %C[%vi, %vj] : memref<4x256xf32> }
        %a = memref.load %A[%vi, %vk] : memref<4x128xf32>
        %w = memref.load %W[%vk, %vj] : memref<128x256xf32>
        %p = arith.mulf %a, %w : f32
        %c = memref.load %C[%vi, %vj] : memref<4x256xf32>
        %s = arith.addf %c, %p : f32
        memref.store %s, %C[%vi, %vj] : memref<4x256xf32>
      }
    } } }
    func.return
  }
}"""
PACKED = """sched.func @trace {
  %b = sched.get_block "C" : block
  %w = sched.cache_read %b {index = 1, scope = "global"} : block
  sched.transform_layout %w {buffer = ["write", 0], index_map = affine_map<(d0, d1) -> (d1 floordiv 16, d0, d1 mod 16)>}
}"""


def test_constants_are_packed_when_a_candidate_is_built() -> None:
    """As in the model: calls neither allocate memory for them nor copy them."""
    default, packed = (build_here(PRODUCT, trace, (), "llvm -num-threads=1") for trace in (NOTHING, PACKED))
    assert not packed.declarations
    (constant,), (given,) = packed.constants.values(), default.constants.values()
    np.testing.assert_array_equal(
        constant.reshape(16, 128, 16), given.reshape(128, 16, 16).swapaxes(0, 1), err_msg="panels of 16 columns"
    )


def test_constants_come_from_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    evicted: list[list[int]] = []
    evict = measuring.evict

    def noting(arrays: Iterable[NDArray[Any]]) -> None:
        evict(arrays := [*arrays])
        evicted.append([array.nbytes for array in arrays])

    monkeypatch.setattr(measuring, "evict", noting)
    built = build_here(PRODUCT, NOTHING, (), "llvm -num-threads=1")
    function = next(iter(weft.parse(PRODUCT).ops))
    recipe = argument_recipe(function)
    spec = ArgumentSpec(replace(recipe, parameters=(recipe.parameters[0], recipe.parameters[2])), 0, 128)
    assert not measure_here(built, built, spec, SHORT).difference and not evicted
    measured = measure_here(built, built, replace(spec, constants_from_memory=True), SHORT)
    assert len(measured.times) >= 3 and not measured.difference
    assert len(evicted) >= 3 and all(sizes == [128 * 256 * 4] for sizes in evicted)
