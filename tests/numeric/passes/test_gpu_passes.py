"""Each pass on the way to kernels, alone: on text, left out, and on the programs of its FileCheck test."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from xdsl.context import Context

import weft
from weft import te
from weft.interp.interpreter import Interpreter
from weft.passes.gpu_pipeline import kernels_to_low
from weft.passes.lower_to_tir import lower_to_tir

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

ROOT = Path(__file__).resolve().parents[3]
TEXTS = ROOT / "tests" / "filecheck" / "gpu"
ORDERS = ("forward", "reversed", "interleaved")

sys.path.insert(0, str(ROOT / "examples" / "gpu"))
try:
    MATMUL = importlib.import_module("matmul")
    CASES = {case.name: case for case in importlib.import_module("gpu_programs").CASES}
finally:
    sys.path.pop(0)


def run_passes(module: ModuleOp, passes: Sequence[ModulePass]) -> ModuleOp:
    for step in passes:
        step.apply(Context(), module)
    module.verify()
    return module


@pytest.mark.parametrize("name", ["row_sum", "matmul_shared"])
def test_every_pass_runs_on_text(name: str) -> None:
    """What passes need to know is in the text: a program that is printed and read again between them stays the same."""
    module = CASES[name].schedule(**CASES[name].sizes).mod.clone()
    lower_to_tir(module)
    read = module.clone()
    for step in kernels_to_low("cuda -arch=sm_80"):
        step.apply(Context(), module)
        read = weft.parse(str(read))
        step.apply(Context(), read)
        assert str(read) == str(module), f"after {step.name}"


def staged_matmul() -> weft.Schedule:
    sch = MATMUL.matmul_shared(te.var("m"), te.var("n"), te.var("k"), threads=(4, 4), tile=(2, 2), step=4)
    sch.annotate(sch.get_loops("C_update")[-4], "pipeline_stages", 2)
    return sch


def virtual_matmul() -> weft.Schedule:
    sch = MATMUL.product(te.var("m"), te.var("n"), te.var("k"))
    write = sch.cache_write("C", 0, "local")
    i, j, r = sch.get_loops("C")
    (i0, iv, i1), (j0, j1, j2) = sch.split(i, factors=[None, 2, 4]), sch.split(j, factors=[None, 8, 2])
    r0, r1 = sch.split(r, factors=[None, 4])
    sch.reorder(i0, j0, iv, i1, j1, r0, r1, j2)
    sch.reverse_compute_at(write, j1)
    axes = ("blockIdx.y", "blockIdx.x", "vthread", "threadIdx.y", "threadIdx.x")
    for loop, axis in zip((i0, j0, iv, i1, j1), axes, strict=True):
        sch.bind(loop, axis)
    fetch = sch.cache_read("C", 1, "shared")
    sch.compute_at(fetch, r0)
    *_, rows, columns = sch.get_loops(fetch)
    sch.bind(rows, "threadIdx.y")
    sch.bind(sch.split(columns, factors=[None, 8])[1], "threadIdx.x")
    sch.decompose_reduction("C", r0)
    return sch


@pytest.mark.parametrize(
    ("left_out", "schedule"),
    [
        ("tir-async-copies", staged_matmul),
        ("tir-distribute-virtual-threads", virtual_matmul),
        ("tir-partition-blocks", virtual_matmul),
        ("tir-partition-loops", staged_matmul),
        ("tir-pipeline-loops", staged_matmul),
        ("tir-unroll-registers", virtual_matmul),
    ],
)
def test_passes_that_only_make_kernels_faster_change_no_result(
    left_out: str, schedule: Callable[[], weft.Schedule]
) -> None:
    module = schedule().mod.clone()
    lower_to_tir(module)
    passes = kernels_to_low("cuda -arch=sm_80")
    without = run_passes(module.clone(), [step for step in passes if step.name != left_out])
    full = run_passes(module, passes)
    assert str(full) != str(without), f"{left_out} has nothing to do"
    rng = np.random.default_rng(0)
    a, b = rng.random((9, 11), dtype=np.float32), rng.random((11, 10), dtype=np.float32)
    for lowered in (full, without):
        for order in ORDERS:
            c = np.full((9, 10), np.nan, np.float32)
            Interpreter(lowered, order=order).call("main", a, b, c)
            np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def array(*shape: int) -> NDArray[Any]:
    return np.random.default_rng(len(shape)).random(shape).astype(np.float32)


def empty(*shape: int) -> NDArray[Any]:
    return np.full(shape, np.nan, np.float32)


def filled(shape: tuple[int, ...], value: float = 1.0) -> NDArray[Any]:
    return np.full(shape, value, np.float32)


A32, A64, ROWS, TAIL = array(32), array(64), array(8, 64), array(21)
PARTS, GUARDED, STEPS, PAIRS, FOUR = array(8, 8), array(6, 4), array(4, 8), array(2, 8), array(4)
OUTSIDE = np.concatenate([np.tile(FOUR, (2, 1)), filled((2, 4), -1.0)])
PROGRAMS: dict[str, list[tuple[str, list[Any], list[tuple[int, NDArray[Any]]]]]] = {
    "bind-threads": [
        ("two_nests", [A32, empty(4, 6)], [(1, A32.reshape(4, 8)[:, ::-1][:, :6])]),
        ("axes", [empty(96)], [(0, filled((96,)))]),
        ("first_thread", [empty(3), empty(3, 4)], [(0, filled((3,))), (1, filled((3, 4)))]),
        ("one_iteration", [filled((1, 1), -1.0)], [(0, filled((1, 1), 0.0))]),
    ],
    "assign-spaces": [("spaces", [A32, empty(32)], [(1, A32[::-1])])],
    "lower-thread-reductions": [
        ("warp", [PARTS, empty(8)], [(1, PARTS.sum(axis=1))]),
        ("guarded", [GUARDED, empty(6)], [(1, GUARDED.sum(axis=1))]),
        ("for_all", [PARTS, empty(8, 8)], [(1, np.tile(PARTS.sum(axis=1)[:, None], (1, 8)))]),
    ],
    "distribute-virtual-threads": [
        ("shares", [STEPS, empty(2, 8)], [(1, np.tile(STEPS.sum(axis=0), (2, 1)))]),
        ("differs", [PAIRS, empty(2, 8)], [(1, PAIRS)]),
    ],
    "partition-blocks": [
        ("tail", [TAIL, empty(21)], [(1, TAIL)]),
        ("threads_only", [filled((3, 8), -1.0)], [(0, np.where(np.arange(8) < 5, 1.0, -1.0) * filled((3, 8)))]),
    ],
    "insert-barriers": [
        ("rotate", [ROWS, empty(8, 64)], [(1, np.roll(ROWS, -1, axis=1))]),
        ("own", [A64, empty(64)], [(1, A64)]),
        ("outside", [FOUR, empty(4), filled((4, 4), -1.0)], [(1, FOUR), (2, OUTSIDE)]),
        ("uniform", [A32[:16], empty(16)], [(1, np.concatenate([A32[:8][::-1], filled((8,), 0.0)]))]),
    ],
    "pipeline-loops-alone": [
        ("f", [array(8, 32), empty(8, 32)], [(1, array(8, 32)[:, ::-1])]),
        ("again", [array(9, 32), empty(9, 32)], [(1, array(9, 32)[:, ::-1])]),
    ],
}
"""FileCheck test -> for each function in it the arguments, and what is in which of them afterwards."""


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("target", ["cuda", "opencl"])
def test_programs_of_filecheck_tests(name: str, target: str) -> None:
    """The text that a pass is tested on, lowered from there on, computes what it says, in every order of threads."""
    passes = kernels_to_low(target)
    first = next(at for at, step in enumerate(passes) if step.name == f"tir-{name.removesuffix('-alone')}")
    for chunk, (function, arguments, expected) in zip(
        (TEXTS / f"{name}.mlir").read_text().split("// -----"), PROGRAMS[name], strict=True
    ):
        module = run_passes(weft.parse(chunk), passes[first:])
        for order in ORDERS:
            copies = [argument.copy() for argument in arguments]
            Interpreter(module, order=order).call(function, *copies)
            for position, result in expected:
                np.testing.assert_allclose(copies[position], result, rtol=1e-6, err_msg=f"@{function}, {order}")
