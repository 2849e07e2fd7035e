"""CUDA C++ of the example programs, run on the CPU: threads are fibers that take turns in several orders, shared memory
starts as NaN, and each barrier that is taken away shows."""

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from block_refusals import DIAGONALS
from cuda_on_cpu import ORDERS, cuda_on_cpu, errors, needs_compiler
from tiers import first_tier

import weft
from weft import te
from weft.te import ops

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "gpu"
sys.path.insert(0, str(EXAMPLES))
CASES: dict[str, Any] = {case.name: case for case in importlib.import_module("gpu_programs").CASES}
LADDER = importlib.import_module("ladder")
sys.path.remove(str(EXAMPLES))

ODD = (70, 33, 9, 17)
BARRIER = "__syncthreads();"


@needs_compiler
@pytest.mark.parametrize(
    "name", first_tier(LADDER.names("CUDA on a CPU", "odd"), "vector_add", "softmax", "matmul_stages", "dot")
)
def test_program(name: str) -> None:
    for error in errors(CASES[name], CASES[name].fitting(*ODD)):
        assert error <= CASES[name].tolerance  # NaN is no less


# Sizes for which every barrier of the text is reached, by threads that have something to lose.
PLANTED = {
    "window_sum": (600,),
    "transpose": (64, 64),
    "row_sum": (3, 700),
    "softmax": (3, 700),
    "matmul_shared": (128, 128, 128),
    "matmul_stages": (128, 128, 128),
}


@needs_compiler
@pytest.mark.parametrize("name", first_tier(LADDER.names("CUDA on a CPU", "barriers"), "transpose", "row_sum"))
def test_each_missing_barrier_is_found(name: str) -> None:
    case = CASES[name]
    sizes = case.fitting(*PLANTED[name])
    texts: list[str] = []
    assert max(errors(case, sizes, change=lambda text: texts.append(text) or text)) <= case.tolerance
    count = texts[0].count(BARRIER)
    assert count > 0
    for number in range(count):

        def without(text: str, number: int = number) -> str:
            parts = text.split(BARRIER)
            return BARRIER.join([*parts[:number], parts[number] + parts[number + 1], *parts[number + 2 :]])

        assert without(texts[0]).count(BARRIER) == count - 1
        worst = np.max(errors(case, sizes, change=without))
        assert not worst <= case.tolerance, f"{name} without barrier {number} of {count} is right in all orders"


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("name", LADDER.names("CUDA on a CPU", "waits"))
def test_a_missing_wait_is_found(name: str) -> None:
    """Asynchronous copies arrive late: nothing is there without waiting for them."""
    case = CASES[name]
    sizes = case.fitting(128, 128, 64)
    texts: list[str] = []
    assert max(errors(case, sizes, change=lambda text: texts.append(text) or text)) <= case.tolerance
    waits = set(re.findall(r"weft_async_wait<\d+>\(\);", texts[0]))
    assert waits
    for wait in waits:
        assert not np.max(errors(case, sizes, change=lambda text, wait=wait: text.replace(wait, ""))) <= case.tolerance


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_threads_combine_small_numbers(dtype: str) -> None:
    x = te.placeholder((5, 320), dtype, name="X")
    library = weft.build(te.create_func([x, ops.max(x, axis=1)], name="row_max"), target="cuda")
    assert "__shfl_down_sync" in library.get_source("cuda")
    values = (np.random.default_rng(1).standard_normal((5, 320)) * 20).astype(dtype)
    with cuda_on_cpu(7):
        np.testing.assert_array_equal(library["row_max"](values), values.max(axis=1))


@pytest.mark.slow
@needs_compiler
def test_threads_fill_different_parts_of_shared_memory() -> None:
    """What a thread fills depends on it through an iterator of the block around."""
    sch = weft.Schedule(weft.parse(DIAGONALS))
    sch.bind(sch.get_loops("O")[0], "threadIdx.x")
    sch.cache_read("C", 0, "shared")
    a, i = np.arange(12, dtype=np.float32), np.zeros(4, np.int32)
    for order in ORDERS:
        with cuda_on_cpu(order):
            out = np.empty((4, 8), np.float32)
            weft.build(sch.mod, target="cuda")["f"](a, out, i)
            np.testing.assert_array_equal(out, a[np.add.outer(np.arange(4), np.arange(8))])
