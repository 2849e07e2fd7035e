"""Rank correlations of cost models: records schedules of several programs, then predicts those of each from the others.

    python benchmarks/cost_models.py record FILE.db --seconds 600 --schedules 48 python benchmarks/cost_models.py
    compare FILE.db

`record` builds and measures schedules of the default spaces of the rows of `weft bench ops`, as `weft.tune` does: the
default first, then its neighbours and random ones in turn. It resumes an interrupted run, and requires an otherwise
idle machine. `compare` computes the features from the recorded schedules, so that different features are compared on
the same records. It trains on all programs but one, and on these plus half of the schedules of that one, and prints the
mean of Spearman's rank correlations within the programs.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from weft.driver.candidates import build_candidate
from weft.driver.programs import parse
from weft.driver.search_spaces import default_program, workload_of
from weft.driver.traces import trace_with_decisions
from weft.driver.workloads import Task, tasks_of
from weft.passes.lower_to_tir import lower_to_tir
from weft.passes.tir.flat_signature import state_parameter_accesses
from weft.schedule.schedule import Schedule
from weft.support.target import Target
from weft.tuning.cost_model import AnalyticalModel, BoostedTrees, CostModel, Sample, rank_correlation
from weft.tuning.database import Database
from weft.tuning.evaluation import TrialEvaluator
from weft.tuning.features import features_of
from weft.tuning.measuring import measure
from weft.tuning.records import Record
from weft.tuning.runner import WorkerLimits
from weft.tuning.space import Candidate, Space
from weft_bench.problems import problems

BATCH = 8
FEWEST = 8
"""The minimum number of schedules for a meaningful rank correlation."""


def tasks(target: str, largest: int) -> Iterator[Task]:
    """The tunable functions of the rows of `weft bench ops`, without repetitions."""
    seen: set[str] = set()
    for problem in problems((), largest):
        module = problem.program([np.ones(shape, dtype) for shape, dtype in problem.inputs])
        lower_to_tir(module, target)
        for task in tasks_of(module):
            if not task.obstacle("llvm") and task.key not in seen:
                seen.add(task.key)
                yield task


def record(path: Path, seconds: float, schedules: int, target: str, largest: int) -> None:
    """Record programs without records until the time is over."""
    end = time.monotonic() + seconds
    machine = Target.parse(target)
    with Database(path) as database, ThreadPoolExecutor(2) as executor:
        done = {workload for workload, _, _, count, _ in database.places() if count > 1}
        for task in tasks(target, largest):
            if task.key in done:
                continue
            workload, unit, arguments = workload_of(task)
            candidates = drawn(Space(unit, default_program(machine), "drawn"), schedules)
            if time.monotonic() > end or len(candidates) < FEWEST:
                continue
            tools = partial(
                TrialEvaluator, database=database, executor=executor, build=build_candidate, measure=measure
            )
            evaluator = tools(workload, target, arguments, candidates[0], "drawn", limits=WorkerLimits())
            for at in range(1, len(candidates), BATCH):
                for _ in evaluator.finish(evaluator.begin(candidates[at : at + BATCH]), math.inf):
                    pass
            gain = (evaluator.default.seconds or 0.0) / (evaluator.best.seconds or 1.0)
            print(f"{workload.name} {workload.key[:8]}: {len(candidates)} schedules, best {gain:.2f}", flush=True)


def drawn(space: Space, count: int) -> list[Candidate]:
    """The default, its neighbours and random schedules in turn, without repetitions."""
    random = Random(0)
    default = space.run(random, takes_defaults=True)
    if not isinstance(default, Candidate):
        raise SystemExit(f"the default schedule is refused: {default}")
    found = {default.digest: default}
    for at in range(4 * count):
        if len(found) >= count or space.is_exhausted or not default.choices:
            break
        near = default.choices, random.randrange(len(default.choices))
        outcome = space.run(random) if at % 2 else space.run(random, *near)
        if isinstance(outcome, Candidate):
            found.setdefault(outcome.digest, outcome)
    return list(found.values())


def programs(path: Path) -> dict[str, list[Sample]]:
    """The samples of each program; the first is the default."""
    found: dict[str, list[Sample]] = {}
    with Database(path, must_exist=True) as database:
        for workload in database.workloads():
            name = f"{workload.name} {workload.key[:8]}"
            default: tuple[tuple[float, ...], float] | None = None
            for entry in database.records(workload.key):
                if entry.seconds is None:
                    continue
                features = features_of(scheduled_module(workload.ir, entry), Target.parse(entry.target))
                default = default or (features, entry.seconds)
                found.setdefault(name, []).append(Sample(features, default[0], entry.seconds / default[1]))
    return found


def scheduled_module(ir: str, entry: Record) -> ModuleOp:
    """The program with a record's schedule applied."""
    unit = parse(ir)
    state_parameter_accesses(unit)
    schedule = Schedule(unit)
    schedule.replay(trace_with_decisions(entry.trace, entry.decisions))
    return schedule.mod


def compare(path: Path) -> None:
    """Print the rank correlation within each program, and the means."""
    known = {name: samples for name, samples in programs(path).items() if len(samples) >= FEWEST}
    rows: list[tuple[float, ...]] = []
    print(f"{sum(map(len, known.values()))} schedules of {len(known)} programs")
    for name, samples in known.items():
        others = [sample for other, found in known.items() if other != name for sample in found]
        half = len(samples) // 2
        row = (
            correlation(AnalyticalModel(), [], samples),
            correlation(BoostedTrees(), others, samples),
            correlation(BoostedTrees(), [*others, *samples[:half]], samples[half:]),
        )
        rows.append(row)
        print(f"{name:40}" + "".join(f"{value:8.2f}" for value in row), flush=True)
    means = (math.fsum(column) / len(rows) for column in zip(*rows, strict=True))
    print(f"{'mean: analytical, unseen, half seen':40}" + "".join(f"{value:8.2f}" for value in means))


def correlation(model: CostModel, seen: Sequence[Sample], asked: Sequence[Sample]) -> float:
    """The rank correlation of predictions and measurements."""
    model.learn(seen)
    predicted = model.predict([sample.features for sample in asked], asked[0].default)
    return rank_correlation(predicted, [sample.ratio for sample in asked])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--schedules", type=int, default=48, help="of each program")
    parser.add_argument("--largest", type=int, default=512, help="no extent is larger")
    parser.add_argument("--target", default="llvm -num-threads=1")
    given = parser.parse_args()
    if given.action == "record":
        record(given.file, given.seconds, given.schedules, given.target, given.largest)
    else:
        compare(given.file)


if __name__ == "__main__":
    main()
