"""Chains of windows whose producers roll under a tile of the last stage, then anything else happens to them."""

from __future__ import annotations

import numpy as np
import pytest
from checking import check
from programs import Array, Draw, Program
from schedules import Fuzzer
from tiers import first_tier

from weft import ScheduleError, te

SEEDS = range(10)


def stencils(draw: Draw) -> Program:
    """Two or three stages of window sums with strides and dilation over an image; the last one may be halved."""
    dtype = draw.choose(("float32", "float64", "int32", "int8"))
    stages = draw.choose((2, 2, 3))
    shapes: list[tuple[int, int]] = [(draw.extent(9), draw.extent(9))]
    kinds: list[tuple[int, int, int]] = []
    for _ in range(stages):
        size, stride, dilation = draw.choose((2, 3, 3)), draw.choose((1, 1, 2)), draw.choose((1, 1, 2))
        kinds.append((size, stride, dilation))
        rows, columns = shapes[-1]
        reach = dilation * (size - 1) + 1
        shapes.append(((rows - 1) * stride + reach, (columns - 1) * stride + reach))
    value: Array = draw.array(shapes[-1], dtype)
    inputs = (value,)
    tensor = source = te.placeholder(shapes[-1], dtype, name="A")
    names = "BCD"[3 - stages :] if stages == 3 else "BC"
    for name, kind, shape in zip(names, reversed(kinds), reversed(shapes[:-1]), strict=True):
        tensor = _stage(tensor, name, kind, shape)
        value = _window_sum(value, kind, shape)
    return Program("stencils", te.create_func([source, tensor]), inputs, (value,))


def _stage(source: te.Tensor, name: str, kind: tuple[int, int, int], shape: tuple[int, int]) -> te.Tensor:
    size, stride, dilation = kind
    y, x = te.reduce_axis((0, size), name="y"), te.reduce_axis((0, size), name="x")

    def element(i: te.Expr, j: te.Expr) -> te.Expr:
        return te.sum(source[i * stride + y * dilation, j * stride + x * dilation], axis=[y, x])

    return te.compute(shape, element, name=name)


def _window_sum(value: Array, kind: tuple[int, int, int], shape: tuple[int, int]) -> Array:
    size, stride, dilation = kind
    total: Array = np.zeros(shape, value.dtype)
    for y in range(size):
        for x in range(size):
            top, left = y * dilation, x * dilation
            rows, columns = ((extent - 1) * stride + 1 for extent in shape)
            total += value[top : top + rows : stride, left : left + columns : stride]
    return total


def roll(fuzzer: Fuzzer) -> int:
    """Producers under a loop of a tiled last stage, each of them rolling where it may; how many do."""
    sch = fuzzer.sch
    labels = [sch.get(block).label for block in fuzzer.blocks]  # type: ignore[union-attr]
    loops = sch.get_loops(labels[-1])[:2]
    if fuzzer.chance(0.6):
        loops = sch.tile(*loops, factors=[fuzzer.number(1, 5), fuzzer.number(1, 5)])[:2]
        if fuzzer.chance(0.3):
            sch.reorder(loops[1], loops[0])
            loops = loops[::-1]
    at = fuzzer.choose(loops)
    rolled = 0
    for producer in reversed(labels[:-1]):
        sch.compute_at(producer, at)
    order = list(labels[:-1])
    for producer in order if fuzzer.chance(0.5) else order[::-1]:
        before = str(sch.mod)
        try:
            sch.rolling_buffer(producer, 0)
        except ScheduleError as error:
            assert error.requirement in (4, 5, 6), str(error)
            assert str(sch.mod) == before
        else:
            rolled += 1
    return rolled


@pytest.mark.parametrize("seed", first_tier(SEEDS, 0, 1, 2, 3))
def test_rolling_stencils(seed: int) -> None:
    program = stencils(Draw(seed))
    fuzzer = Fuzzer(program, seed)
    roll(fuzzer)
    failure = check(program, fuzzer.sch.mod, fuzzer.sch.trace, seed)
    assert failure is None, f"{failure}\n{fuzzer.sch.trace}"
    fuzzer.run(fuzzer.number(1, 5))
    failure = check(program, fuzzer.sch.mod, fuzzer.sch.trace, seed)
    assert failure is None, f"{failure}\n{fuzzer.sch.trace}"


def test_most_of_them_roll() -> None:
    rolled = [roll(Fuzzer(stencils(Draw(seed)), seed)) for seed in SEEDS]
    assert sum(count > 0 for count in rolled) > len(rolled) // 2
