"""Temporaries that share an arena: the same results at every level and on every CPU target."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.memref import AllocOp

import weft
from weft import graph as G
from weft.dialects.arena import planned_bytes
from weft.dialects.element_types import bytes_of
from weft.dialects.graph_shapes import ShapeError
from weft.dialects.traversal import copy_of
from weft.interp.errors import InterpreterError
from weft.interp.interpreter import Interpreter
from weft.passes.graph import arena_layout, plan_memory
from weft.passes.graph.plan_memory import PlanMemoryPass
from weft.passes.graph_pipeline import graph_to_tir
from weft.passes.lower_to_tir import lower_to_tir

Array = NDArray[Any]


def main_of(module: ModuleOp) -> FuncOp:
    return next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == "main")


def allocated(module: ModuleOp) -> list[Any]:
    return [op.memref for op in main_of(module).body.block.ops if isinstance(op, AllocOp)]


def diamonds(n: int | str) -> ModuleOp:
    """Values that are used later, of two element types and several sizes."""
    bb = G.BlockBuilder()
    x, w = G.var("x", (n, 12), "float32"), G.var("w", (12, 20), "float32")
    with bb.function("main", [x, w]):
        with bb.dataflow():
            a = bb.emit(G.matmul(x, w))
            b = bb.emit(G.transpose(a))
            c = bb.emit(G.cast(b, "float64"))
            d = bb.emit(G.sum(c, 0, keepdims=True))
            e = bb.emit(G.cast(G.transpose(G.subtract(c, d)), "float32"))
            f = bb.emit(G.add(G.flip(e, 1), a))
            outputs = [bb.emit_output(G.matmul(f, G.transpose(w))), bb.emit_output(G.sum(e, 0))]
        bb.emit_func_output(outputs)
    return bb.get()


def arguments(n: int) -> list[Array]:
    rng = np.random.default_rng(n)
    return [rng.standard_normal(shape).astype(np.float32) for shape in ((n, 12), (12, 20))]


def run(call: Any, arrays: Sequence[Array], results: Sequence[Array]) -> list[Array]:
    given = [np.full_like(result, np.nan) for result in results]
    call(*arrays, *given)
    return given


@pytest.mark.parametrize(("n", "target"), [("n", "llvm"), (5, "c")])
def test_results_stay_the_same(n: int | str, target: str) -> None:
    module = diamonds(n)
    lowered = copy_of(module)
    lower_to_tir(lowered)
    lowered.verify()
    native = weft.build(lowered, target=target, default_schedule=False)["main"]
    for extent in (5,) if n == 5 else (5, 1, 2):
        arrays = arguments(extent)
        expected = Interpreter(module).call("main", *arrays)
        for call in (lambda *a: Interpreter(lowered).call("main", *a), native):
            for one, other in zip(run(call, arrays, expected), expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_no_temporary_has_memory_of_its_own() -> None:
    module = diamonds(100)
    apart = copy_of(module)
    lower_to_tir(module)
    for step in graph_to_tir():
        if not isinstance(step, PlanMemoryPass):
            step.apply(Context(), apart)
    (arena,) = allocated(module)
    assert arena.name_hint == "arena"
    bytes_ = planned_bytes(main_of(module), {})
    assert bytes_ is not None
    assert 0 < bytes_ < sum(prod(b.type.get_shape()) * bytes_of(b.type.element_type) for b in allocated(apart))


def test_sums_with_too_many_factors_are_those_of_several_arenas(monkeypatch: pytest.MonkeyPatch) -> None:
    module = diamonds("n")
    before = copy_of(module)
    plan = arena_layout.arena_layout

    def limited(lifetimes: Sequence[Any], not_negative: Any) -> Any:
        if len(lifetimes) > 2:
            raise ShapeError("an extent has more than 512 factors")
        return plan(lifetimes, not_negative)

    monkeypatch.setattr(plan_memory, "arena_layout", limited)
    lower_to_tir(module)
    module.verify()
    assert [buffer.name_hint for buffer in allocated(module)] == ["arena"] * 3
    arrays = arguments(5)
    expected = Interpreter(before).call("main", *arrays)
    found = run(lambda *a: Interpreter(module).call("main", *a), arrays, expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", ["n", 100])
def test_slots_mean_the_same_and_are_no_larger_than_what_they_replace(n: int | str) -> None:
    module = diamonds(n)
    lowered, in_arena = copy_of(module), copy_of(module)
    lower_to_tir(lowered, "opencl")
    lower_to_tir(in_arena)
    slots = allocated(lowered)
    assert [slot.name_hint for slot in slots] == ["slot"] * len(slots) and len(slots) > 1
    bytes_ = planned_bytes(main_of(lowered), {"n": 100})
    least = planned_bytes(main_of(in_arena), {"n": 100})
    assert bytes_ is not None and least is not None and least <= bytes_ <= 1.25 * least
    for extent in (100,) if n == 100 else (5, 1):
        arrays = arguments(extent)
        expected = Interpreter(module).call("main", *arrays)
        found = run(lambda *a: Interpreter(lowered).call("main", *a), arrays, expected)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_a_plan_is_not_planned_again() -> None:
    module = diamonds("n")
    lower_to_tir(module)
    text = str(module)
    PlanMemoryPass().apply(Context(), module)
    assert str(module) == text


def test_threads_have_arenas_of_their_own() -> None:
    module = diamonds("n")
    main = weft.build(module, target="llvm", default_schedule=False)["main"]
    expected = {n: Interpreter(module).call("main", *arguments(n)) for n in (3, 40)}
    wrong: list[int] = []

    def work(n: int) -> None:
        arrays = arguments(n)
        for _ in range(100):
            found = run(main, arrays, expected[n])
            if not all(np.allclose(a, b, 1e-4, 1e-4) for a, b in zip(found, expected[n], strict=True)):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in (3, 40, 3, 40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_interpreter_refuses_views_that_leave_their_memory() -> None:
    module = weft.parse("""
        func.func @main(%A: memref<4xf32>) {
          %arena = memref.alloc() : memref<12xi8>
          %c0 = arith.constant 0 : index
          %v = memref.view %arena[%c0][] : memref<12xi8> to memref<4xf32>
          func.call @copy(%A, %v) : (memref<4xf32>, memref<4xf32>) -> ()
          func.return
        }
        func.func @copy(%A: memref<4xf32>, %B: memref<4xf32>) {
          tir.for %i in 4 { tir.block "B" iters(%v: spatial<4>) = [%i] {
            %a = memref.load %A[%v] : memref<4xf32>
            memref.store %a, %B[%v] : memref<4xf32>
          } }
          func.return
        }""")
    with pytest.raises(InterpreterError, match=r"'memref\.view' views bytes 0 to 16 of a buffer of 12 bytes"):
        Interpreter(module).call("main", np.zeros(4, np.float32))
