"""Rank correlations of cost models: records schedules of some programs, then predicts those of each from the others.

    python benchmarks/cost_models.py record FILE.jsonl --seconds 600 --schedules 60
    python benchmarks/cost_models.py compare FILE.jsonl

`record` builds and measures schedules of the default spaces, the default first, and adds a line for each; it goes on
where it ended. `compare` trains on all programs but one, and on these with half of the schedules of that one. Nothing
else should run on the machine while it records.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

from xdsl.dialects.func import FuncOp

from weft.driver.candidates import build_here
from weft.driver.tune import default_program
from weft.interp.arguments import argument_recipe
from weft.interp.compare import reduction_length_of
from weft.support.target import Target
from weft.tuning.cost_model import AnalyticalModel, BoostedTrees, CostModel, Sample, rank_correlation
from weft.tuning.features import features_of
from weft.tuning.measuring import ArgumentSpec, Repeats, measure_here
from weft.tuning.records import time_that_counts
from weft.tuning.space import Candidate, Space
from weft_bench.problems import problems

LARGEST = 256
REPEATS = Repeats(most=20, seconds=0.05)


def record(path: Path, seconds: float, schedules: int, target: str) -> None:
    """Adds lines of program, features and seconds until the time is over."""
    end = time.monotonic() + seconds
    done = set(programs(path)) if path.is_file() else set[str]()
    with path.open("a") as file:
        for problem in problems((), LARGEST):
            if problem.name not in done and not problem.folds_constants and time.monotonic() < end:
                module = problem.program(())
                ir, function = str(module), next(op for op in module.ops if isinstance(op, FuncOp))
                machine = Target.parse(target)
                space = Space(module, default_program(machine), "default", partial(features_of, target=machine))
                candidates = drawn(space, schedules)
                spec = ArgumentSpec(argument_recipe(function), 0, reduction_length_of(function))
                reference = build_here(ir, candidates[0].trace, candidates[0].decisions, target)
                for candidate in candidates:
                    built = build_here(ir, candidate.trace, candidate.decisions, target)
                    found = measure_here(built, reference, spec, REPEATS)
                    if found.difference:
                        raise SystemExit(f"{problem.name}: {found.difference}\n{candidate.trace}")
                    line = problem.name, candidate.features, time_that_counts(found.times)
                    file.write(json.dumps(line) + "\n")
                    file.flush()
                print(f"{problem.name}: {len(candidates)} schedules", flush=True)


def drawn(space: Space, count: int) -> list[Candidate]:
    """The default, its neighbours and random schedules in turn, each once."""
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
    lines: dict[str, list[tuple[tuple[float, ...], float]]] = {}
    for name, features, seconds in map(json.loads, path.read_text().splitlines()):
        lines.setdefault(name, []).append((tuple(features), seconds))
    return {
        name: [Sample(features, found[0][0], seconds / found[0][1]) for features, seconds in found]
        for name, found in lines.items()
    }


def compare(path: Path) -> None:
    """Prints the rank correlation within each program, and the means."""
    known = {name: samples for name, samples in programs(path).items() if len(samples) >= 8}
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
    """Of what a model predicts and what was measured."""
    model.learn(seen)
    predicted = model.predict([sample.features for sample in asked], asked[0].default)
    return rank_correlation(predicted, [sample.ratio for sample in asked])


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--schedules", type=int, default=60, help="of each program")
    parser.add_argument("--target", default="llvm -num-threads=1")
    given = parser.parse_args()
    if given.action == "record":
        record(given.file, given.seconds, given.schedules, given.target)
    else:
        compare(given.file)


if __name__ == "__main__":
    main()
