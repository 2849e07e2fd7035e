"""Kernels that come out of lowering compute what NumPy says, in every order of their threads."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiers import first_tier, second_tier
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import weft
from weft import te
from weft.dialects.low_kernel import AsyncCopyOp, BarrierOp, kernel_of
from weft.interp.errors import InterpreterError
from weft.interp.interpreter import Interpreter
from weft.passes.lower_tir_to_low import lower_tir_to_low
from weft.passes.lower_to_tir import lower_to_tir

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "gpu"


@contextmanager
def _on_path(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


with _on_path(EXAMPLES):
    MATMUL = importlib.import_module("matmul")
    CASES = {case.name: case for case in importlib.import_module("gpu_programs").CASES}
    LADDER = importlib.import_module("ladder")
SIZES: tuple[int, ...] = LADDER.INTERPRETED_SIZES


def lowered(case: Any, sizes: dict[str, int], *, dynamic: bool = False, target: str = "cuda") -> ModuleOp:
    extents = {n: te.var(n) if dynamic and n not in case.static else v for n, v in {**case.sizes, **sizes}.items()}
    module = case.schedule(**extents).mod.clone()
    lower_to_tir(module)
    lower_tir_to_low(Context(), module, target)
    return module


def check(case: Any, module: ModuleOp, sizes: dict[str, int], order: str) -> None:
    arguments, expected = case.arguments(sizes)
    Interpreter(module, order=order, seed=1).call("main", *arguments)
    error = case.error(arguments[-1], expected)
    assert error <= case.tolerance, f"{case.name}, {order}: {error}"


@pytest.mark.parametrize(
    "name",
    first_tier(
        LADDER.names("interpreter", "odd"), "vector_add", "window_sum", "transpose", "softmax", "matmul_split_k"
    ),
)
def test_odd_sizes_in_every_order_of_threads(name: str) -> None:
    case, sizes = CASES[name], CASES[name].fitting(*SIZES)
    module = lowered(case, sizes)
    for order in ("reversed", "shuffled"):  # forward is that of the compiled programs, which have tests of their own
        check(case, module, sizes, order)


@pytest.mark.parametrize("name", first_tier(LADDER.names("interpreter", "any"), "row_sum", "matmul_shared", "dot"))
def test_one_kernel_for_all_sizes(name: str) -> None:
    case = CASES[name]
    module = lowered(case, case.fitting(*SIZES), dynamic=True)
    for numbers in (SIZES, case.ones, (33, 2, 5, 16)):
        sizes = {**case.fitting(*numbers), **{n: v for n, v in case.fitting(*SIZES).items() if n in case.static}}
        check(case, module, sizes, "reversed")


@pytest.mark.parametrize("name", first_tier(LADDER.names("interpreter", "steps"), "row_sum", "transpose", "dot"))
@pytest.mark.parametrize("target", ["cuda", "opencl"])
def test_threads_that_advance_store_by_store(name: str, target: str) -> None:
    case = CASES[name]
    module = lowered(case, case.fitting(*SIZES), dynamic=True, target=target)
    check(case, module, case.fitting(3, 5, 4, 2), "interleaved")


@pytest.mark.parametrize("name", first_tier(LADDER.names("interpreter", "barriers"), "transpose"))
def test_every_barrier_is_needed(name: str) -> None:
    """Without one of them, some order of the threads gives another result, or reads what was never written."""
    case = CASES[name]
    sizes = case.fitting(*((21, 70, 9, 2) if name == "row_sum" else (37, 35, 19, 2)))
    count = sum(isinstance(op, BarrierOp) for op in lowered(case, sizes, dynamic=True).walk())
    assert count > 0
    unnoticed = 0
    for number in range(count):
        module = lowered(case, sizes, dynamic=True)
        barrier = [op for op in module.walk() if isinstance(op, BarrierOp)][number]
        barrier.detach()
        barrier.erase()
        noticed = False
        for order in ("forward", "reversed"):
            arguments, expected = case.arguments(sizes)
            try:
                Interpreter(module, order=order).call("main", *arguments)
            except InterpreterError:
                noticed = True
                break
            noticed = noticed or not case.error(arguments[-1], expected) <= case.tolerance
        unnoticed += not noticed
    # Two versions of a kernel (for full blocks and for those at an edge): sizes that no block of one kind has run in.
    assert unnoticed <= count // 2


def test_kernels_are_functions_that_are_only_launched() -> None:
    module = lowered(CASES["vector_add"], {"n": 19} if "n" in CASES["vector_add"].sizes else {})
    kernels = [op for op in module.ops if isinstance(op, FuncOp) and kernel_of(op) is not None]
    assert [kernel.sym_name.data for kernel in kernels] == ["main_kernel"]
    kernel = kernel_of(kernels[0])
    assert kernel is not None and kernel.threads_per_block > 1


@pytest.mark.parametrize("stages", first_tier([2, 3, 4], 3))
@pytest.mark.parametrize("dynamic", [False, True])
def test_pipelined_loops(stages: int, dynamic: bool) -> None:
    """Fewer iterations than stages, more, and a last one that is not full; copies arrive when they are waited for."""
    sizes = [te.var("m"), te.var("n"), te.var("k")] if dynamic else [9, 10, 15]
    sch = MATMUL.matmul_shared(*sizes, threads=(4, 4), tile=(2, 2), step=4)
    sch.annotate(sch.get_loops("C_update")[-4], "pipeline_stages", stages)
    module = sch.mod.clone()
    lower_to_tir(module)
    lower_tir_to_low(Context(), module, "cuda")
    assert any(isinstance(op, AsyncCopyOp) for op in module.walk())
    rng = np.random.default_rng(0)
    for m, n, k in ((9, 10, 15), (8, 8, 16), (3, 4, 1)) if dynamic else ((9, 10, 15),):
        a, b = rng.random((m, k), dtype=np.float32), rng.random((k, n), dtype=np.float32)
        for order in ("forward", "reversed", "interleaved"):
            c = np.full((m, n), np.nan, np.float32)
            Interpreter(module, order=order).call("main", a, b, c)
            np.testing.assert_allclose(c, a @ b, rtol=1e-5)


@pytest.mark.parametrize("stages", first_tier([0, 2], 2))
@pytest.mark.parametrize("dynamic", [False, True])
def test_virtual_threads_share_what_is_fetched(stages: int, dynamic: bool) -> None:
    sch = MATMUL.product(*([te.var("m"), te.var("n"), te.var("k")] if dynamic else [21, 19, 13]))
    write = sch.cache_write("C", 0, "local")
    i, j, r = sch.get_loops("C")
    rows, columns = sch.split(i, factors=[None, 2, 4, 2]), sch.split(j, factors=[None, 2, 4, 2])
    r0, r1 = sch.split(r, factors=[None, 4])
    sch.reorder(*(loop for pair in zip(rows[:3], columns[:3], strict=True) for loop in pair), r0, r1)
    sch.reverse_compute_at(write, columns[2])
    for level, axis in enumerate(("blockIdx", "vthread", "threadIdx")):
        sch.bind(rows[level], f"{axis}.y")
        sch.bind(columns[level], f"{axis}.x")
    for index in range(2):
        fetch = sch.cache_read("C", index, "shared")
        sch.compute_at(fetch, r0)
        _, y, x = sch.split(sch.fuse(*sch.get_loops(fetch)[-2:]), factors=[None, 4, 4])
        sch.bind(y, "threadIdx.y")
        sch.bind(x, "threadIdx.x")
    sch.decompose_reduction("C", r0)
    if stages:
        sch.annotate(r0, "pipeline_stages", stages)
    module = sch.mod.clone()
    lower_to_tir(module)
    lower_tir_to_low(Context(), module, "cuda")
    rng = np.random.default_rng(0)
    for m, n, k in ((21, 19, 13), (16, 32, 8), (1, 1, 1)) if dynamic else ((21, 19, 13),):
        a, b = rng.random((m, k), dtype=np.float32), rng.random((k, n), dtype=np.float32)
        for order in ("forward", "interleaved"):
            c = np.full((m, n), np.nan, np.float32)
            Interpreter(module, order=order).call("main", a, b, c)
            np.testing.assert_allclose(c, a @ b, rtol=1e-5)


@pytest.mark.parametrize("threads", first_tier([8, 12, 64], 12, 64))
@pytest.mark.parametrize("target", ["cuda", "opencl"])
def test_a_reduction_over_threads_into_memory_of_each_thread(threads: int, target: str) -> None:
    """All threads of the block get the sum: within a warp, from warp to warp, and through shared memory."""
    rows, columns = te.var("rows"), te.var("columns")
    A = te.placeholder((rows, columns), name="A")
    k = te.reduce_axis((0, columns), name="k")
    S = te.compute((rows,), lambda i: te.sum(A[i, k], axis=k), name="S")
    C = te.compute((rows, columns), lambda i, j: A[i, j] / S[i], name="C")
    sch = weft.Schedule(te.create_func([A, C], name="main"))
    i, j = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    sch.bind(sch.split(j, factors=[None, threads])[1], "threadIdx.x")
    sch.compute_at("S", i)
    sch.bind(sch.split(sch.get_loops("S")[-1], factors=[None, threads])[1], "threadIdx.x")
    sch.set_scope("S", 0, "local")
    module = sch.mod.clone()
    lower_tir_to_low(Context(), module, target)
    for shape in ((3, 64), (2, 50), (1, 1)):
        a = np.random.default_rng(0).random(shape, dtype=np.float32)
        for order in ("forward", "reversed", "interleaved"):
            c = np.full(shape, np.nan, np.float32)
            Interpreter(module, order=order).call("main", a, c)
            np.testing.assert_allclose(c, a / a.sum(axis=1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize(("x", "y"), [second_tier(8, 4), (32, 2), (6, 3)])
@pytest.mark.parametrize("target", ["cuda", "opencl"])
def test_a_reduction_over_threads_of_two_axes(x: int, y: int, target: str) -> None:
    columns = 7 * x * y
    A = te.placeholder((3, columns), name="A")
    k = te.reduce_axis((0, columns), name="k")
    sch = weft.Schedule(te.create_func([A, te.compute((3,), lambda i: te.sum(A[i, k], axis=k), name="S")], name="main"))
    i, k = sch.get_loops("S")
    sch.bind(i, "blockIdx.x")
    for loop, axis in zip(sch.split(k, factors=[None, y, x])[1:], ("threadIdx.y", "threadIdx.x"), strict=True):
        sch.bind(loop, axis)
    module = sch.mod.clone()
    lower_tir_to_low(Context(), module, target)
    a = np.random.default_rng(0).random((3, columns), dtype=np.float32)
    for order in ("forward", "reversed", "interleaved"):
        s = np.full(3, np.nan, np.float32)
        Interpreter(module, order=order).call("main", a, s)
        np.testing.assert_allclose(s, a.sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize("target", ["cuda", "opencl"])
def test_a_reduction_over_threads_with_one_result_for_all_of_them(target: str) -> None:
    """The place of the greatest element is a result of the program, what it is all threads read."""
    A = te.placeholder((3, 64), name="A")
    k = te.reduce_axis((0, 64), name="k")

    def combine(one: Any, other: Any) -> Any:
        first = te.any(one[1] > other[1], te.all(one[1] == other[1], one[0] < other[0]))
        return te.select(first, one[0], other[0]), te.select(first, one[1], other[1])

    argmax = te.comm_reducer(combine, lambda t0, t1: (te.max_value(t0), te.min_value(t1)), name="argmax")
    place, value = te.compute((3,), lambda i: argmax((k, A[i, k]), axis=k), name="M")
    C = te.compute((3, 64), lambda i, j: A[i, j] - value[i], name="C")
    sch = weft.Schedule(te.create_func([A, place, C], name="main"))
    i, j = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    sch.bind(sch.split(j, factors=[None, 32])[1], "threadIdx.x")
    sch.compute_at("M", i)
    sch.bind(sch.split(sch.get_loops("M")[-1], factors=[None, 32])[1], "threadIdx.x")
    module = sch.mod.clone()
    lower_tir_to_low(Context(), module, target)
    a = np.random.default_rng(0).random((3, 64), dtype=np.float32)
    for order in ("forward", "reversed", "interleaved"):
        found, c = np.full(3, -1, np.int64), np.full((3, 64), np.nan, np.float32)
        Interpreter(module, order=order).call("main", a, found, c)
        np.testing.assert_array_equal(found, a.argmax(axis=1))
        np.testing.assert_allclose(c, a - a.max(axis=1, keepdims=True), rtol=1e-6)
