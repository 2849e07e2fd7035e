"""The choices of default schedules: the default comes first, and whatever a search decides computes the same."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from random import Random

import numpy as np
import pytest
from tiers import first_tier
from xdsl.dialects.func import FuncOp

import weft
from weft import te
from weft.autoschedule.default_schedule import default_schedule
from weft.dialects.tir import ForOp
from weft.dialects.traversal import operations_in
from weft.driver.candidates import build_here
from weft.driver.search_spaces import default_program
from weft.interp.arguments import argument_recipe
from weft.interp.compare import reduction_length_of
from weft.schedule.traces import simplify_trace
from weft.support.target import Target
from weft.tuning.measuring import ArgumentSpec, Repeats, measure_here
from weft.tuning.space import Candidate, Space

QUICK = Repeats(most=3, seconds=0.0, repeat_seconds=1e-6)


def product(m: int, n: int, k: int, dtype: str = "float32", transposed: bool = False) -> weft.ModuleOp:
    a = te.placeholder((k, m) if transposed else (m, k), dtype, name="A")
    b = te.placeholder((k, n), "int8" if dtype == "uint8" else dtype, name="B")
    r, sums = te.reduce_axis((0, k), name="k"), "int32" if dtype == "uint8" else dtype
    left = (lambda i: a[r, i]) if transposed else (lambda i: a[i, r])
    c = te.compute((m, n), lambda i, j: te.sum(left(i).astype(sums) * b[r, j].astype(sums), axis=r), name="C")
    return te.create_func([a, b, c])


def operator(function: Callable[..., te.Tensor], *shapes: tuple[int, ...]) -> weft.ModuleOp:
    inputs = [te.placeholder(shape, "float32", name=f"X{at}") for at, shape in enumerate(shapes)]
    return te.create_func([*inputs, function(*inputs)])


PROGRAMS: dict[str, Callable[[], weft.ModuleOp]] = {
    "product": lambda: product(24, 50, 160),
    "product, transposed": lambda: product(40, 64, 130, transposed=True),
    "product with a vector": lambda: product(1, 1024, 520),
    "product of bytes": lambda: product(16, 48, 64, "uint8"),
    "convolution": lambda: operator(partial(te.ops.conv2d, padding=1), (1, 16, 14, 14), (32, 16, 3, 3)),
    "minimal filtering": lambda: operator(
        partial(te.ops.conv2d_winograd, padding=1), (1, 2, 14, 14, 16), (2, 4, 4, 2, 16, 16)
    ),
    "first of a network": lambda: operator(partial(te.ops.conv2d, strides=2, padding=3), (1, 3, 33, 33), (16, 3, 7, 7)),
    "depthwise": lambda: operator(partial(te.ops.conv2d, padding=1, groups=6), (1, 6, 20, 33), (6, 1, 3, 3)),
    "groups": lambda: operator(partial(te.ops.conv2d, padding=1, groups=3), (1, 12, 11, 23), (24, 4, 3, 3)),
    "functions": lambda: operator(lambda x: te.compute((40, 100), lambda i, j: te.exp(x[i, j])), (40, 100)),
    "softmax": lambda: operator(te.ops.softmax, (40, 100)),
    "sums of rows": lambda: operator(lambda x: te.ops.sum(x, 1), (50, 300)),
    "sums of columns": lambda: operator(lambda x: te.ops.sum(x, 0), (130, 200)),
    "sums of parts": lambda: operator(lambda x: te.ops.sum(x, 1), (2, 100000)),
    "argmax": lambda: operator(lambda x: te.ops.argmax(x, 1), (9, 200)),
    "argmax of short rows": lambda: operator(lambda x: te.ops.argmax(x, 1), (2, 64)),
    "mean of windows": lambda: operator(lambda x: te.ops.avg_pool2d(x, 15), (1, 6, 15, 15)),
    "transposition": lambda: operator(lambda x: te.ops.transpose(x, (1, 0)), (40, 70)),
    "windows": lambda: operator(lambda x: te.ops.max_pool2d(x, 3, 2, 1), (1, 8, 20, 20)),
    "large stream": lambda: operator(lambda x: te.compute((700, 1024), lambda i, j: x[i, j] + 1.0), (700, 1024)),
}


def space_of(module: weft.ModuleOp, target: str) -> Space:
    return Space(module, default_program(Target.parse(target)), "default space")


def default_of(space: Space) -> Candidate:
    found = space.run(Random(0), takes_defaults=True)
    assert isinstance(found, Candidate)
    return found


def others(space: Space, default: Candidate, seed: int) -> Iterator[Candidate]:
    """Candidates that schedule otherwise, neighbours of the default and random ones in turn."""
    random, seen = Random(seed), {default.digest}
    for at in range(40):
        if space.is_exhausted:
            break
        change = random.randrange(len(default.choices))
        outcome = space.run(random) if at % 2 else space.run(random, default.choices, change)
        if isinstance(outcome, Candidate) and outcome.digest not in seen:
            seen.add(outcome.digest)
            yield outcome


CHEAP = ["functions", "softmax", "sums of rows", "sums of parts", "argmax", "windows"]
CPUS = [f"llvm -mcpu={cpu} -num-threads={threads}" for cpu in ("znver4", "haswell") for threads in (1, 4)]


@pytest.mark.parametrize("target", [*first_tier(CPUS, CPUS[3]), "opencl"])
@pytest.mark.parametrize("name", first_tier(PROGRAMS, *CHEAP))
def test_the_default_comes_first_and_is_one_of_many(name: str, target: str) -> None:
    module = PROGRAMS[name]()
    (plain,) = default_schedule(module, Target.parse(target))
    space = space_of(module, target)
    default = default_of(space)
    steered = weft.Schedule(module)
    weft.run_trace(steered, default.trace, default.decisions)
    assert str(simplify_trace(steered.trace)).partition("{")[2] == str(plain).partition("{")[2]
    assert default.choices and next(others(space, default, 0))


@pytest.mark.parametrize("threads", first_tier([1, 3], 3))
@pytest.mark.parametrize("seed", first_tier(range(4), 0))
@pytest.mark.parametrize("name", first_tier(PROGRAMS, *CHEAP))
def test_every_choice_computes_the_same(name: str, seed: int, threads: int) -> None:
    target, module = f"llvm -num-threads={threads}", PROGRAMS[name]()
    ir, function = str(module), next(iter(module.ops))
    assert isinstance(function, FuncOp)
    space = space_of(module, target)
    default = default_of(space)
    spec = ArgumentSpec(argument_recipe(function), seed, reduction_length_of(function))
    reference = build_here(ir, default.trace, default.decisions, target)
    for found in islice(others(space, default, seed), 12 if seed else 2):
        built = build_here(ir, found.trace, found.decisions, target)
        assert not measure_here(built, reference, spec, QUICK).difference, (found.trace, found.decisions)


@pytest.mark.parametrize("name", ["argmax of short rows", "mean of windows", "sums of parts", "sums of rows"])
def test_no_choice_ends_a_search(name: str) -> None:
    """Widths and parts beyond the extents are refused, or leave a loop of one iteration."""
    space = space_of(PROGRAMS[name](), "llvm -num-threads=2")
    assert len(list(islice(others(space, default_of(space), 7), 20))) > 4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["product", "softmax", "sums of rows", "functions", "windows", "convolution"])
def test_every_choice_of_kernels_computes_the_same(name: str) -> None:
    if importlib.util.find_spec("pyopencl") is None:
        pytest.skip("pyopencl is not installed")
    module = PROGRAMS[name]()
    function = next(iter(module.ops))
    assert isinstance(function, FuncOp)
    recipe, space = argument_recipe(function), space_of(module, "opencl")
    default = default_of(space)
    expected = recipe.draw(0)
    weft.build(module, "opencl")[function.sym_name.data](*expected)
    for found in islice(others(space, default, 1), 6):
        sch = weft.Schedule(module)
        weft.run_trace(sch, found.trace, found.decisions)
        values = recipe.draw(0)
        weft.build(sch.mod, "opencl", default_schedule=False)[function.sym_name.data](*values)
        np.testing.assert_allclose(values[-1], expected[-1], rtol=1e-5, atol=1e-5)


def test_kernels_stay_within_limits_of_their_device() -> None:
    target = "opencl -max-threads-per-block=128"
    for name in ("softmax", "sums of rows"):
        space = space_of(PROGRAMS[name](), target)
        default = default_of(space)
        for found in [default, *islice(others(space, default, 2), 3)]:
            sch = weft.Schedule(PROGRAMS[name]())
            weft.run_trace(sch, found.trace, found.decisions)
            axes = {
                op.thread_axis.data: op.extent
                for op in operations_in(sch.mod)
                if isinstance(op, ForOp) and op.thread_axis
            }
            assert axes["threadIdx.x"] in (32, 64, 128)
