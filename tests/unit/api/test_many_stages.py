"""The work of a build grows with the number of stages, not with its square: graphs have thousands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from weft import te
from weft.autoschedule import inlining
from weft.driver.pipeline import Pipeline
from weft.driver.stages import lower
from weft.support.build_options import BuildOptions
from weft.support.target import Target

SHAPE = (16, 8)
TARGET = Target("llvm", cpu="haswell", triple="x86_64-unknown-linux-gnu")


def elementwise(x: te.Tensor, stage: int) -> te.Tensor:
    return te.compute(SHAPE, lambda i, j: x[i, j] + float(stage + 1), name=f"T{stage}")


def normalized(x: te.Tensor, stage: int) -> te.Tensor:
    k = te.reduce_axis((0, SHAPE[1]), name="k")
    total = te.compute(SHAPE[:1], lambda i: te.sum(x[i, k], axis=k), name=f"S{stage}")
    return te.compute(SHAPE, lambda i, j: x[i, j] - total[i], name=f"T{stage}")


def product(x: te.Tensor, stage: int) -> te.Tensor:
    k = te.reduce_axis((0, SHAPE[1]), name="k")
    return te.compute(SHAPE, lambda i, j: te.sum(x[i, k] * x[k, j], axis=k), name=f"T{stage}")


def calls_of(stage: Callable[[te.Tensor, int], te.Tensor], stages: int, default_schedule: bool) -> int:
    """Python calls from the tensor program down to low."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    x = a = te.placeholder(SHAPE, name="A")
    sys.setprofile(count)
    try:
        for at in range(stages):
            x = stage(x, at)
        module = te.create_func([a, x], name="f")
        lower(Pipeline(module, TARGET, BuildOptions(default_schedule=default_schedule)))
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    ("stage", "fewest", "default_schedule"),
    [(elementwise, 10, True), (elementwise, 10, False), (normalized, 5, True), (product, 2, True)],
)
def test_work_is_linear_in_the_stages(
    stage: Callable[[te.Tensor, int], te.Tensor], fewest: int, default_schedule: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inlining, "_LARGEST", 4)
    calls_of(stage, 2, default_schedule)  # imports and caches
    few, more, most = (calls_of(stage, fewest * times, default_schedule) for times in (1, 2, 4))
    # 2 where the work is linear, 4 where it is quadratic.
    assert (most - more) / (more - few) < 2.5, (few, more, most)
