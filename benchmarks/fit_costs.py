"""Fits the constants of cost estimates to measurements: `plans/fitted.py`, and a row of `support/processors.py`.

    python benchmarks/fit_costs.py FILE.db [NAME ...] [--seconds 600] [--recorded]

A constant is fitted by its effect on schedules. For each value of a grid around the current one, the rules schedule the
rows of `weft bench ops`. Programs whose default schedule changes are looked up among the records of FILE.db
(`benchmarks/cost_models.py record`), or, without `--recorded`, measured and recorded on an otherwise idle machine. The
score of a value is the geometric mean of the times of all default schedules. Constants that change no default schedule
belong to the tuner's analytical model: their score is the mean rank correlation of the model's predictions with the
records. Constants of graph layouts are not fitted, because no row has a graph.

The line of a constant has its current value, the best one, and for each value of the grid the times relative to the
current ones, or the rank correlation. NAME is a constant (`LOOP_ENTRY`), a field of one (`WINDOWS.vector`) or a
property of the processor (`processor.memory_streams`); by default all are fitted, each with the others unchanged. For a
new processor: fit, then add a row with the properties that differ.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from cost_models import FEWEST, correlation, scheduled_module, tasks
from xdsl.dialects.builtin import ModuleOp

from weft.driver.candidates import build_candidate
from weft.driver.search_spaces import default_program, workload_of
from weft.plans import fitted
from weft.support.processors import PROCESSORS, processor
from weft.support.target import Target
from weft.tuning.cost_model import AnalyticalModel, Sample
from weft.tuning.database import Database
from weft.tuning.evaluation import TrialEvaluator
from weft.tuning.features import features_of
from weft.tuning.measuring import measure
from weft.tuning.runner import WorkerLimits
from weft.tuning.space import Candidate, Space

GRID = (0.5, 0.75, 1.0, 4 / 3, 2.0)


def constants(cpu: str) -> dict[str, float]:
    """The current values, by name."""
    owners = {name: value for name, value in vars(fitted).items() if name.isupper()}
    found: dict[str, Any] = {}
    for name, value in {**owners, "processor": processor(cpu)}.items():
        if is_dataclass(value):
            found |= {f"{name}.{field.name}": getattr(value, field.name) for field in fields(value)}
        else:
            found[name] = value
    return {name: value for name, value in found.items() if isinstance(value, int | float)}


@contextmanager
def changed(name: str, value: float, cpu: str) -> Iterator[None]:
    """Set a constant temporarily."""
    owner, _, field = name.partition(".")
    table, key = (PROCESSORS, cpu) if owner == "processor" else (vars(fitted), owner)
    before: Any = processor(cpu) if owner == "processor" else table[key]
    table[key] = replace(before, **{field: value}) if field else value
    try:
        yield
    finally:
        table[key] = before


def values_around(value: float) -> list[float]:
    """The values to try."""
    if isinstance(value, bool):
        return [False, True]
    if isinstance(value, int):
        return sorted({max(round(value * factor), 1) for factor in GRID})
    return [value * factor for factor in GRID] if value else [0.0, 0.25, 0.5, 1.0]


def default_schedule(unit: ModuleOp, target: Target) -> Candidate:
    """The default schedule for the current values of the constants."""
    found = Space(unit, default_program(target), "fitted").run(Random(0), takes_defaults=True)
    if not isinstance(found, Candidate):
        raise SystemExit(f"the default schedule is refused: {found}")
    return found


def programs(
    database: Database, executor: ThreadPoolExecutor, target: Target, largest: int, end: float
) -> Iterator[tuple[ModuleOp, TrialEvaluator]]:
    """The rows of `weft bench ops` that have records, or whose default schedules can be measured before `end`."""
    tools = partial(TrialEvaluator, database=database, executor=executor, build=build_candidate, measure=measure)
    for task in tasks(str(target), largest):
        workload, unit, arguments = workload_of(task)
        if time.monotonic() > end and next(database.records(workload.key), None) is None:
            continue
        default = default_schedule(unit, target)
        yield unit, tools(workload, str(target), arguments, default, "fitted", limits=WorkerLimits())


def mean_time(found: Sequence[tuple[ModuleOp, TrialEvaluator]], target: Target, end: float) -> tuple[float, int]:
    """The geometric mean of the times of the default schedules relative to those with the current constants, and the
    number of those that differ. Schedules that are neither recorded, nor measured before `end`, count as equal.
    """
    logarithms: list[float] = []
    for unit, evaluator in found:
        (trial,) = evaluator.begin([default_schedule(unit, target)])
        if trial.was_known or time.monotonic() < end:
            list(evaluator.finish([trial], math.inf))
        if trial.record is not None and trial.record.uid != evaluator.default.uid:
            before, after = evaluator.default.seconds, trial.record.seconds
            logarithms.append(math.log(after / before) if before and after else 0.0)
    return math.exp(math.fsum(logarithms) / max(len(found), 1)), len(logarithms)


Recorded: TypeAlias = list[list[tuple[ModuleOp, Target, float]]]


def recorded(database: Database) -> Recorded:
    """The scheduled programs of each workload, and their seconds; the default schedule first."""
    found: Recorded = []
    for workload in database.workloads():
        entries = [(entry, entry.seconds) for entry in database.records(workload.key)]
        if len(entries) >= FEWEST:
            found.append([(scheduled_module(workload.ir, e), Target.parse(e.target), s) for e, s in entries if s])
    return found


def mean_correlation(found: Recorded) -> float:
    """The mean rank correlation of the analytical model within the recorded programs."""
    correlations: list[float] = []
    for schedules in found:
        features = [features_of(module, target) for module, target, _ in schedules]
        times = [seconds / schedules[0][2] for *_, seconds in schedules]
        samples = [Sample(f, features[0], ratio) for f, ratio in zip(features, times, strict=True)]
        correlations.append(correlation(AnalyticalModel(), [], samples))
    return math.fsum(correlations) / max(len(correlations), 1)


def fit(path: Path, names: list[str], seconds: float, target: Target, largest: int) -> None:
    """Print a line for each constant."""
    end = time.monotonic() + seconds
    present = constants(target.cpu)
    if unknown := [name for name in names if name not in present]:
        raise SystemExit(f"no constant {unknown[0]}; there are {', '.join(present)}")
    with Database(path) as database, ThreadPoolExecutor(2) as executor:
        found, schedules = list(programs(database, executor, target, largest, end)), recorded(database)
        for name in names or present:
            scores: dict[float, float] = {}
            others = 0
            for value in values_around(present[name]):
                with changed(name, value, target.cpu):
                    scores[value], count = mean_time(found, target, end)
                others += count
            for value in scores if not others else ():
                with changed(name, value, target.cpu):
                    scores[value] = -mean_correlation(schedules)
            best = min(scores, key=lambda value: (scores[value], value != present[name]))
            grid = ", ".join(f"{value:.4g}: {abs(score):.3f}" for value, score in scores.items())
            print(f"{name:32}{present[name]:<10.4g}{best:<10.4g}{others:3} schedules  {grid}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seconds", type=float, default=600.0, help="of measuring")
    parser.add_argument("--recorded", action="store_true", help="measure nothing")
    parser.add_argument("--largest", type=int, default=512, help="no extent is larger")
    parser.add_argument("--target", default="llvm -num-threads=1")
    given = parser.parse_args()
    fit(given.file, given.names, 0.0 if given.recorded else given.seconds, Target.parse(given.target), given.largest)


if __name__ == "__main__":
    main()
