"""Results of tuning, against default schedules, TVM and a hand-written space: tables of docs/tuning.md.

    python benchmarks/tuning_results.py ops FOLDER [--trials 64] [--seconds 60] [--only WORD]
    python benchmarks/tuning_results.py model FOLDER MODEL.onnx [--trials 512] [--seconds 60]
    python benchmarks/tuning_results.py book FOLDER [--trials 64] [--seconds 60]
    python benchmarks/tuning_results.py against FOLDER TVM.json [--only WORD]
    python benchmarks/tuning_results.py time FOLDER
    python benchmarks/tuning_results.py table FOLDER

All on one thread. FOLDER contains the database and a line of JSON per completed row; searches resume, so that long ones
can run in slices while the machine is quiet. Final times are those of the default and the best schedule in turn
(`weft_bench.rounds`), in a separate process, after comparing results. `against` searches as long as TVM did
(`benchmarks/tuning_tvm.py`, in a separate environment, writes TVM.json); `time` measures its results again.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tuning_scale import TARGET, matmul

import weft
from weft import te
from weft.runtime.aligned_arrays import aligned
from weft.support.target import Target
from weft.texpr.ops import conv2d
from weft.tools.arrays import Request, make_arguments
from weft_bench.arrays import random
from weft_bench.contender import Array, check
from weft_bench.model import compared
from weft_bench.model_contenders import TORCH, WEFT
from weft_bench.ops import weft_contender
from weft_bench.problem import ROW, Problem, of_tensors
from weft_bench.problems import problems
from weft_bench.rounds import take_turns

SLOWEST = (
    *("tanh 1048576", "row sum 4096x4096", "conv2d 64->64 56x56 3x3", "conv 512->2048 7x7 1x1, packed"),
    *("attention 12x384x64", "softmax 12x384x384", "conv 2048->512 7x7 1x1, packed"),
    *("conv 1152->192 7x7 1x1, packed", "conv 1024->2048 14x14 1x1/2, packed", "softmax 1024x1024"),
    *("product 128x768x768, packed", "matmul 1024 int8 -> int32"),
)
"""The slowest rows of `weft bench ops` relative to the fastest peer, on a Zen 4, 2026-11-27 (evening)."""
ROUNDS = 30
BUDGET = 6.0
TOLERANCE = 1e-4
"""The tolerance between results of two schedules of a model, relative to the largest element."""
DEFAULT, TUNED = "default", "tuned"


class Rows:
    """Result lines in a folder, by kind and name."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "rows.jsonl"
        lines = self._file.read_text().splitlines() if self._file.is_file() else []
        self.found: dict[tuple[str, str], dict[str, Any]] = {}
        for row in map(json.loads, lines):
            self.found[row["kind"], row["name"]] = row

    def add(self, kind: str, name: str, **values: object) -> None:
        """Write a line, and print it."""
        row = {"kind": kind, "name": name, **values}
        self.found[kind, name] = row
        with self._file.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)


def tuned_until(end: float, trials: int, **given: Any) -> weft.Tuned | None:
    """A completed search; None if the time ran out."""
    tuned = weft.tune(**given, target=TARGET, trials=trials, timeout=max(end - time.monotonic(), 0.1))
    is_over = tuned.num_trials >= trials or all(task.is_exhausted for task in tuned.tasks)
    return tuned if is_over else None


def ratio_of(problem: Problem, database: Path) -> dict[str, float]:
    """The least seconds of a row, built with and without a database, after checking its results."""
    generator = np.random.default_rng(0)
    inputs = [random(generator, *spec) for spec in problem.inputs]
    target = Target.parse(TARGET)
    built = {
        DEFAULT: weft.build(problem.program(inputs), target)[ROW],
        TUNED: weft.build(problem.program(inputs), target, database=database)[ROW],
    }
    contenders = {name: weft_contender(function, problem.given(inputs), problem) for name, function in built.items()}
    check(problem.name, contenders, problem.expected(*inputs))
    return least({name: contender.call for name, contender in contenders.items()})


def least(calls: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """The least seconds of calls that take turns."""
    *_, times = take_turns(calls, ROUNDS, 1, BUDGET)
    return {name: each.min for name, each in times.items()}


def rows_named(names: tuple[str, ...], only: str) -> list[Problem]:
    every = {problem.name: problem for problem in problems(())}
    return [every[name] for name in names if only in name]


def ops(rows: Rows, folder: Path, trials: int, end: float, only: str) -> None:
    """Tune the slowest rows, each until its trials are done."""
    database = folder / "tune.db"
    for problem in rows_named(SLOWEST, only):
        if ("ops", problem.name) in rows.found or time.monotonic() > end:
            continue
        inputs = [random(np.random.default_rng(0), *spec) for spec in problem.inputs]
        tuned = tuned_until(end, trials, program=problem.program(inputs), database=database)
        if tuned is not None:
            rows.add("ops", problem.name, trials=tuned.num_trials, **ratio_of(problem, database))


def model(rows: Rows, folder: Path, path: Path, trials: int, end: float) -> None:
    """Tune a model until its trials are done, and time it."""
    database = folder / f"{path.stem}.db"
    tuned = tuned_until(end, trials, program=path, database=database)
    if tuned is None or ("model", path.stem) in rows.found:
        return
    print(tuned.table(), flush=True)
    rows.add("model", path.stem, trials=tuned.num_trials, **ratio_of_model(path, database))


def ratio_of_model(path: Path, database: Path) -> dict[str, float]:
    """The least seconds of a model, built with and without a database, after comparing both results."""
    built = {DEFAULT: weft.build(path, TARGET)["main"], TUNED: weft.build(path, TARGET, database=database)["main"]}
    signature = built[DEFAULT].signature
    values = make_arguments(signature, Request({}, 0))
    given = [aligned(np.asarray(values[spec.name])) for spec in signature.arrays if spec.access != "write"]
    calls: dict[str, Callable[[], object]] = {}
    results: dict[str, list[Array]] = {}
    for name, function in built.items():
        found = function(*given)
        results[name] = [aligned(each) for each in (found if isinstance(found, tuple) else (found,))]
        calls[name] = partial(function, *given, *results[name])
    compared({WEFT: results[TUNED], TORCH: results[DEFAULT]}, TOLERANCE)
    return least(calls)


def hand_space(sch: weft.Schedule) -> None:
    """The space of the course text: columns tiled and reordered, the reduction decomposed."""
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    j0, j1 = sch.split(j, sch.sample_perfect_tile(j, n=2))
    sch.reorder(i, j0, k, j1)
    sch.decompose_reduction(block, k)


def book(rows: Rows, folder: Path, trials: int, end: float) -> None:
    """The product of 128 x 128 matrices, with the space of the course text and that of the default schedule."""
    found: dict[str, float] = {}
    for name, space in (("hand", hand_space), ("default", None)):
        database = folder / f"book-{name}.db"
        tuned = tuned_until(end, trials, program=matmul(128), space=space, database=database)
        if tuned is None:
            return
        found[f"{name}_trials"] = tuned.num_trials
        fastest = [record.seconds for record in tuned.tasks[0].trials if record.seconds]
        found[name] = min(fastest, default=math.inf) if space else tuned.tasks[0].seconds
    rows.add("book", "128^3", **found)


def pointwise(channels: int, filters: int, size: int) -> Problem:
    """A 1 x 1 convolution with weights as an argument, as in TVM."""
    image, weight = (1, channels, size, size), (filters, channels, 1, 1)

    def program() -> list[te.Tensor]:
        x, w = te.placeholder(image, "float32", name="X"), te.placeholder(weight, "float32", name="W")
        return [x, w, conv2d(x, w, name="C")]

    def expected(x: Array, w: Array) -> Array:
        return np.einsum("ncij,fc->nfij", x, w[:, :, 0, 0]).astype(np.float32)

    inputs = (image, "float32"), (weight, "float32")
    name, flops = f"conv2d {channels}->{filters} {size}x{size} 1x1", 2 * channels * filters * size**2
    return Problem(name, of_tensors(program), inputs, ((1, filters, size, size), "float32"), expected, flops)


def against_database(folder: Path, problem: Problem) -> Path:
    return folder / f"against-{re.sub(r'[^0-9a-z]+', '-', problem.name)}.db"


def time_again(rows: Rows, folder: Path, only: str) -> None:
    """Measure earlier results again, for example while the machine is quiet."""
    for problem in [*problems(()), pointwise(256, 64, 56)]:
        for kind, database in (("ops", folder / "tune.db"), ("against", against_database(folder, problem))):
            row = rows.found.get((kind, problem.name))
            if row is not None and only in problem.name:
                rows.add(**{**row, **ratio_of(problem, database)})


def against(rows: Rows, folder: Path, other: Path, only: str) -> None:
    """Search the programs that TVM searched, for the same time, starting from an empty database."""
    theirs = json.loads(other.read_text())
    for problem in [*problems(()), pointwise(256, 64, 56)]:
        if problem.name not in theirs or ("against", problem.name) in rows.found or only not in problem.name:
            continue
        wall = theirs[problem.name]["wall"]
        database = against_database(folder, problem)
        inputs = [random(np.random.default_rng(0), *spec) for spec in problem.inputs]
        begin = time.monotonic()
        tuned = weft.tune(problem.program(inputs), target=TARGET, trials=100_000, database=database, timeout=wall)
        spent = time.monotonic() - begin
        found = ratio_of(problem, database)
        rows.add("against", problem.name, trials=tuned.num_trials, wall=spent, tvm=theirs[problem.name], **found)


def table(rows: Rows) -> None:
    """Print the rows as Markdown."""
    ratios: list[float] = []
    print("| row | trials | default, us | tuned, us | default / tuned |\n|---|---|---|---|---|")
    for (kind, name), row in rows.found.items():
        if kind in ("ops", "model") and DEFAULT in row:
            ratios.append(row[DEFAULT] / row[TUNED])
            micro = (f"{row[key] * 1e6:,.1f}" for key in (DEFAULT, TUNED))
            print(f"| {name} | {row['trials']} | {' | '.join(micro)} | {ratios[-1]:.2f} |")
    if ratios:
        mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
        print(f"geometric mean {mean:.3f}, least {min(ratios):.3f}")
    for (kind, name), row in rows.found.items():
        if kind in ("against", "book"):
            print(name, json.dumps(row))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("ops", "model", "book", "against", "time", "table"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", default="", help="rows whose names hold a word")
    given = parser.parse_args()
    rows, end = Rows(given.folder), time.monotonic() + given.seconds
    if given.what == "ops":
        ops(rows, given.folder, given.trials, end, given.only)
    elif given.what == "model":
        model(rows, given.folder, given.file, given.trials, end)
    elif given.what == "book":
        book(rows, given.folder, given.trials, end)
    elif given.what == "against":
        against(rows, given.folder, given.file, given.only)
    elif given.what == "time":
        time_again(rows, given.folder, given.only)
    else:
        table(rows)


if __name__ == "__main__":
    main()
