"""Thread blocks that combine into one element: right in every order, and wrong as soon as an update is no atom."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_on_cpu import ORDERS as FIBER_ORDERS
from cuda_on_cpu import cuda_on_cpu, needs_compiler
from numpy.typing import NDArray
from plain_stores import with_plain_stores
from tiers import first_tier
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te
from weft.dialects.low_kernel import AtomicOp
from weft.interp.compare import compare_modules
from weft.interp.interpreter import Interpreter
from weft.passes.lower_tir_to_low import lower_tir_to_low
from weft.passes.lower_to_tir import lower_to_tir
from weft.support.errors import CompileError

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "gpu"
sys.path.insert(0, str(EXAMPLES))
CASES: dict[str, Any] = {case.name: case for case in importlib.import_module("split_k").CASES}
LADDER = importlib.import_module("ladder")
sys.path.remove(str(EXAMPLES))
ORDERS = ("forward", "reversed", "shuffled", "interleaved")
SIZES = {"matmul_split_k": (9, 11, 70), "dot": (1100,)}
NUMPY = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def columns(dtype: str, reduction: str, axis: str = "blockIdx.z") -> weft.Schedule:
    """S[i] combines A[i, k] over k, in three parts on an axis."""
    A = te.placeholder((6, te.var("n")), dtype, name="A")
    k = te.reduce_axis((0, A.shape[1]), name="k")
    S = te.compute((6,), lambda i: getattr(te, reduction)(A[i, k], axis=k), name="S")
    sch = weft.Schedule(te.create_func([A, S], name="main"))
    i, k = sch.get_loops("S")
    _, part, _ = sch.split(k, factors=[None, 3, 2])
    start = sch.decompose_reduction("S", i)
    sch.bind(sch.get_loops(start)[0], "threadIdx.x")
    sch.bind(part, axis)
    sch.bind(i, "threadIdx.x" if axis.startswith("block") else "blockIdx.x")
    return sch


def lowered(sch: weft.Schedule, target: str = "cuda") -> ModuleOp:
    module = sch.mod.clone()
    lower_to_tir(module)
    lower_tir_to_low(Context(), module, target)
    return module


def numbers(dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    return np.random.default_rng(0).uniform(-99, 99, shape).astype(dtype)


def run(module: ModuleOp, order: str, a: NDArray[Any]) -> NDArray[Any]:
    s = np.full(6, 77, a.dtype)
    Interpreter(module, order=order, seed=3).call("main", a, s)
    return s


@pytest.mark.parametrize("axis", ["blockIdx.z", "threadIdx.y"])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("reduction", NUMPY)
def test_every_order_combines_all(dtype: str, reduction: str, axis: str) -> None:
    module = lowered(columns(dtype, reduction, axis))
    assert any(isinstance(op, AtomicOp) for op in module.walk())
    for count in (1, 13, 24):
        a = numbers(dtype, (6, count))
        for order in ORDERS:
            np.testing.assert_allclose(run(module, order, a), NUMPY[reduction].reduce(a, axis=1), rtol=1e-5, atol=1e-3)


def test_the_scheduled_program_means_the_same() -> None:
    plain = te.placeholder((6, te.var("n")), "int32", name="A")
    k = te.reduce_axis((0, plain.shape[1]), name="k")
    before = te.create_func([plain, te.compute((6,), lambda i: te.sum(plain[i, k], axis=k), name="S")], name="main")
    assert compare_modules(before, columns("int32", "sum").mod) is None


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_on_a_cpu_parts_run_one_after_the_other(target: str) -> None:
    if target == "c" and shutil.which("cc") is None:
        pytest.skip("no C compiler (cc) is on the PATH")
    a, s = numbers("int32", (6, 13)), np.zeros(6, "int32")
    library = weft.build(columns("int32", "sum").mod, target=target)
    library["main"](a, s)
    np.testing.assert_array_equal(s, a.sum(axis=1))


@pytest.mark.parametrize("name", LADDER.names("interpreter", "atomics"))
def test_a_plain_store_in_the_place_of_an_atomic_operation_is_noticed(name: str) -> None:
    case = CASES[name]
    sizes = case.fitting(*SIZES[name])
    results: list[float] = []
    for change in (lambda module: module, with_plain_stores):
        arguments, expected = case.arguments(sizes)
        module = change(lowered(case.schedule(**sizes)))
        Interpreter(module, order="interleaved").call("main", *arguments)
        results.append(case.error(arguments[-1], expected))
    assert results[0] <= case.tolerance < results[1]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("length", [0, 1, 32, 33])
def test_parts_that_have_nothing_to_do(name: str, length: int) -> None:
    """Of a length that the call tells, which gives few parts work, or none."""
    case = CASES[name]
    module = lowered(case.schedule(**{size: te.var(size) for size in case.sizes}))
    sizes = {"n": length} if name == "dot" else {"m": 5, "n": 3, "k": length}
    arguments, expected = case.arguments(sizes)
    Interpreter(module, order="reversed").call("main", *arguments)
    assert case.error(arguments[-1], expected) <= case.tolerance


SPECIAL = np.array(
    [[np.nan, 1, 2], [-0.0, 0.0, -0.0], [-np.inf, 3, np.inf], [5, -7, np.nan], [0.0, -0.0, 0.0], [1, 2, 4]]
)


def check_special(result: NDArray[Any], reduction: str, dtype: str) -> None:
    """NaN wherever there is one, and +0 above -0."""
    expected = NUMPY[reduction].reduce(SPECIAL.astype(dtype), axis=1)
    np.testing.assert_array_equal(result, expected)
    assert list(np.signbit(result[[1, 4]])) == [reduction == "min"] * 2


@pytest.mark.parametrize("reduction", ["min", "max"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_numbers(dtype: str, reduction: str) -> None:
    module = lowered(columns(dtype, reduction))
    for order in ORDERS:
        check_special(run(module, order, SPECIAL.astype(dtype)), reduction, dtype)


@needs_compiler
@pytest.mark.parametrize("reduction", first_tier(NUMPY, "max"))
@pytest.mark.parametrize("dtype", first_tier(["int64", "float32", "float64"], "float32"))
def test_cuda_on_the_cpu(dtype: str, reduction: str) -> None:
    for order in FIBER_ORDERS:
        with cuda_on_cpu(order):
            function = weft.build(columns(dtype, reduction).mod, target="cuda")["main"]
            a, s = numbers(dtype, (6, 13)), np.zeros(6, dtype)
            function(a, s)
            np.testing.assert_allclose(s, NUMPY[reduction].reduce(a, axis=1), rtol=1e-5, atol=1e-3)
            if dtype != "int64" and reduction != "sum":
                function(SPECIAL.astype(dtype), s)
                check_special(s, reduction, dtype)


@pytest.mark.parametrize("reduction", first_tier(NUMPY, "sum"))
@pytest.mark.parametrize("dtype", first_tier(["int32", "float32"], "float32"))
def test_opencl(dtype: str, reduction: str) -> None:
    pytest.importorskip("pyopencl", reason="OpenCL is not installed: pip install 'weft[opencl]'")
    function = weft.build(columns(dtype, reduction).mod, target="opencl -opt-level=0")["main"]
    a, s = numbers(dtype, (6, 25)), np.zeros(6, dtype)
    function(a, s)
    np.testing.assert_allclose(s, NUMPY[reduction].reduce(a, axis=1), rtol=1e-5, atol=1e-3)
    if dtype != "int32" and reduction != "sum":
        function(SPECIAL.astype(dtype), s)
        check_special(s, reduction, dtype)


@pytest.mark.parametrize(("target", "name"), [("opencl", "OpenCL C"), ("metal", "Metal")])
def test_a_type_that_a_language_has_no_atomic_operation_for(target: str, name: str) -> None:
    with pytest.raises(CompileError, match=re.escape(f"low.atomic add of i64 has no form in {name}")):
        weft.build(columns("int64", "sum").mod, target=target).get_source()
