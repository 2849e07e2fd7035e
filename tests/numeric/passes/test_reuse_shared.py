"""Buffers of a kernel that lie in one place, one after the other: results stay, and less memory is needed."""

from __future__ import annotations

import importlib
import sys
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te
from weft.dialects.element_types import bytes_of
from weft.dialects.low_kernel import SHARED, BarrierOp
from weft.interp.errors import InterpreterError
from weft.interp.interpreter import Interpreter
from weft.passes.gpu_pipeline import kernels_to_low
from weft.passes.lower_tir_to_low import lower_tir_to_low
from weft.passes.lower_to_tir import lower_to_tir
from weft.passes.tir import tir_reuse_shared
from weft.support.errors import ScheduleError

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "gpu"
sys.path.insert(0, str(EXAMPLES))
CASES: dict[str, Any] = {case.name: case for case in importlib.import_module("gpu_programs").CASES}
sys.path.remove(str(EXAMPLES))
THREADS = 32


def stages(columns: int) -> weft.Schedule:
    """E = exp(A), its sum M, quotients D by it, which are then reversed: E is done with before D is there."""
    A = te.placeholder((2, columns), name="A")
    k = te.reduce_axis((0, columns), name="k")
    E = te.compute((2, columns), lambda i, j: te.exp(A[i, j]), name="E")
    M = te.compute((2,), lambda i: te.sum(E[i, k], axis=k), name="M")
    D = te.compute((2, columns), lambda i, j: A[i, j] / M[i], name="D")
    C = te.compute((2, columns), lambda i, j: D[i, columns - 1 - j], name="C")
    sch = weft.Schedule(te.create_func([A, C], name="main"))
    i, j = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    sch.bind(sch.split(j, factors=[None, THREADS])[1], "threadIdx.x")
    for block in ("D", "M", "E"):
        sch.compute_at(block, i)
        sch.set_scope(block, 0, "shared")
        sch.bind(sch.split(sch.get_loops(block)[-1], factors=[None, THREADS])[1], "threadIdx.x")
    return sch


def lowered(sch: weft.Schedule, target: str, *, reuse: bool = True) -> ModuleOp:
    module = sch.mod.clone()
    lower_to_tir(module)
    for step in kernels_to_low(target):
        if reuse or step.name != "tir-reuse-shared":
            step.apply(Context(), module)
    module.verify()
    return module


def shared_bytes(module: ModuleOp) -> int:
    found = [op.memref.type for op in module.walk() if isinstance(op, memref.AllocaOp)]
    return sum(prod(t.get_shape()) * bytes_of(t.element_type) for t in found if t.memory_space == SHARED)


def expected(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return (a / np.exp(a).sum(axis=1, keepdims=True))[:, ::-1]


@pytest.mark.parametrize("target", ["cuda", "opencl"])
def test_results_stay_in_every_order(target: str) -> None:
    sch = stages(70)
    separate, together = lowered(sch, target, reuse=False), lowered(sch, target)
    assert shared_bytes(together) <= shared_bytes(separate) - 70 * 4
    a = np.random.default_rng(0).random((2, 70), dtype=np.float32)
    for module in (separate, together):
        for order in ("forward", "reversed", "shuffled", "interleaved"):
            c = np.full((2, 70), np.nan, np.float32)
            Interpreter(module, order=order).call("main", a, c)
            np.testing.assert_allclose(c, expected(a), rtol=1e-5)


def is_noticed(module: ModuleOp) -> bool:
    """Whether some order of the threads of `stages` shows that something is wrong."""
    a = np.random.default_rng(0).random((2, 70), dtype=np.float32)
    for order in ("forward", "reversed", "interleaved"):
        c = np.full((2, 70), np.nan, np.float32)
        try:
            Interpreter(module, order=order).call("main", a, c)
        except InterpreterError:
            return True
        if not np.allclose(c, expected(a), rtol=1e-5):
            return True
    return False


def test_every_barrier_is_needed() -> None:
    count = sum(isinstance(op, BarrierOp) for op in lowered(stages(70), "opencl").walk())
    assert count >= 3 and not is_noticed(lowered(stages(70), "opencl"))
    for number in range(count):
        module = lowered(stages(70), "opencl")
        barrier = [op for op in module.walk() if isinstance(op, BarrierOp)][number]
        barrier.detach()
        barrier.erase()
        assert is_noticed(module), f"barrier {number} of {count} is not needed"


def test_memory_that_is_still_in_use_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every buffer is taken to be done with, M lies over what it is the sum of."""
    monkeypatch.setattr(tir_reuse_shared, "_have_disjoint_live_ranges", lambda *_: True)
    assert is_noticed(lowered(stages(70), "opencl"))


@pytest.mark.parametrize(("name", "sizes"), [("attention", (2, 9, 5)), ("softmax", (3, 70)), ("layernorm", (3, 70))])
def test_examples_need_less(name: str, sizes: tuple[int, ...]) -> None:
    case, sizes_of = CASES[name], CASES[name].fitting(*sizes)
    separate, together = (lowered(case.schedule(**sizes_of), "opencl", reuse=reuse) for reuse in (False, True))
    assert shared_bytes(together) < shared_bytes(separate)
    for order in ("forward", "reversed"):
        arguments, right = case.arguments(sizes_of)
        Interpreter(together, order=order).call("main", *arguments)
        assert case.error(arguments[-1], right) <= case.tolerance


def test_the_limit_is_asked_of_what_is_needed_at_once() -> None:
    """Each of two buffers takes more than half of what a thread block has."""
    module = lowered(stages(6000), "opencl")
    assert 6000 * 4 <= shared_bytes(module) <= 32768
    with pytest.raises(
        ScheduleError, match=r"needs 32\d\d\d bytes \(.*%arena: 32800.*\), target opencl has at most 32768"
    ):
        lower_tir_to_low(Context(), stages(8200).mod.clone(), "opencl")


@pytest.mark.slow
def test_on_a_device() -> None:
    pytest.importorskip("pyopencl", reason="OpenCL is not installed: pip install 'weft[opencl]'")
    a = np.random.default_rng(0).random((2, 6000), dtype=np.float32)
    c = np.full((2, 6000), np.nan, np.float32)
    weft.build(stages(6000).mod, target="opencl -opt-level=0")["main"](a, c)
    np.testing.assert_allclose(c, expected(a), rtol=1e-5)
