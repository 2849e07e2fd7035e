"""Concatenations under their default schedules: a loop for each array, without conditions."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import te
from weft.autoschedule.concatenation import concatenation
from weft.autoschedule.default_schedule import apply_default_schedule, default_schedule
from weft.dialects.tir import ForOp
from weft.support.target import Target

TARGETS = [Target.parse("llvm -num-threads=1"), Target.parse("llvm -num-threads=3")]
CASES = {
    "rows": (0, [(40, 64), (3, 64)]),
    "columns": (1, [(9, 48), (9, 17), (9, 100)]),
    "channels": (1, [(2, 10, 7, 9), (2, 5, 7, 9)]),
    "rows for threads": (0, [(700, 512), (900, 512)]),
    "channels for threads": (1, [(8, 96, 30, 30), (8, 32, 30, 30)]),
}


def program(axis: int, shapes: list[tuple[int, ...]], relu: bool = False) -> weft.ModuleOp:
    arrays = [te.placeholder(shape, "float32", name=f"X{at}") for at, shape in enumerate(shapes)]
    result = te.ops.concatenate(arrays, axis)
    return te.create_func([*arrays, te.ops.relu(result) if relu else result])


@pytest.mark.parametrize("target", TARGETS, ids=["1 thread", "3 threads"])
@pytest.mark.parametrize("name", CASES)
def test_each_array_is_copied_by_a_loop_of_its_own(name: str, target: Target) -> None:
    axis, shapes = CASES[name]
    module = program(axis, shapes)
    traces = default_schedule(module, target, [concatenation])
    assert len(traces) == 1 and str(traces[0]).count("sched.vectorize") == len(shapes)
    apply_default_schedule(module, target, [concatenation])
    data = [np.random.default_rng(at).random(shape, "float32") for at, shape in enumerate(shapes)]
    result = np.empty(np.concatenate(data, axis).shape, "float32")
    weft.build(module, target, default_schedule=False)["main"](*data, result)
    np.testing.assert_array_equal(result, np.concatenate(data, axis))


def test_what_follows_is_computed_in_each_loop() -> None:
    module = program(1, [(9, 48), (9, 17)], relu=True)
    apply_default_schedule(module, TARGETS[0])
    assert sum(isinstance(op, ForOp) and op.kind.data.name == "VECTORIZED" for op in module.walk()) == 2


@pytest.mark.parametrize(
    "shapes", [[(9, 2), (9, 62)], [(9, 1)] * 20], ids=["an array that fills no vector", "many arrays"]
)
def test_other_concatenations_are_left_to_single_nests(shapes: list[tuple[int, ...]]) -> None:
    assert default_schedule(program(1, shapes), TARGETS[0], [concatenation]) == []


def test_padding_is_no_concatenation() -> None:
    array = te.placeholder((9, 60), "float32", name="X")
    module = te.create_func([array, te.ops.pad(array, [(0, 0), (2, 3)])])
    assert default_schedule(module, TARGETS[0], [concatenation]) == []
