"""Moves under parallel loops are tried on a copy: the plan is translated to it, and only what changed is looked at."""

from __future__ import annotations

import pytest
from schedule_checks import check_schedule

import weft
from weft import te
from weft.analysis.block_scopes import find_block, function_of, functions
from weft.analysis.sets import System
from weft.dialects.tir import ForOp
from weft.passes.schedule import trial_application
from weft.passes.schedule.compute_at import ComputeAt
from weft.passes.schedule.trial_application import changed_buffers, copy_of_nests, users_of_buffers
from weft.support.errors import ScheduleError


def stages() -> weft.Schedule:
    """C = B + D of B = A + 1 and D = A * 2, under a parallel loop of C."""
    A = te.placeholder((16, 16), name="A")
    B = te.compute((16, 16), lambda i, j: A[i, j] + 1.0, name="B")
    D = te.compute((16, 16), lambda i, j: A[i, j] * 2.0, name="D")
    C = te.compute((16, 16), lambda i, j: B[i, j] + D[i, j], name="C")
    sch = weft.Schedule(te.create_func([A, C]))
    sch.parallel(sch.get_loops("C")[0])
    return sch


def test_a_plan_does_on_a_copy_what_it_does_to_the_function() -> None:
    sch = stages()
    block, loop = find_block(sch.mod, "B"), sch.get(sch.get_loops("C")[0])
    assert isinstance(loop, ForOp)
    function = function_of(block)
    before = str(function)
    copy = copy_of_nests(function, list(function.body.block.ops))
    copy.apply(ComputeAt(block, loop).draft())
    assert str(function) == before
    sch.compute_at("B", sch.get_loops("C")[0])
    assert str(copy.function) == str(functions(sch.mod)[0])


def test_buffers_whose_accesses_stay_are_not_asked_about() -> None:
    sch = stages()
    block, loop = find_block(sch.mod, "B"), sch.get(sch.get_loops("C")[0])
    assert isinstance(loop, ForOp)
    copy = copy_of_nests(function_of(block), list(function_of(block).body.block.ops))
    before = users_of_buffers(copy.function)
    assert changed_buffers(before, copy) == set()
    copy.apply(ComputeAt(block, loop).draft())
    changed = changed_buffers(before, copy)
    assert changed is not None
    assert {buffer.name_hint for buffer in changed} == {"A", "B"}


def test_plans_that_name_other_nests_leave_the_function_alone() -> None:
    """The copy of X goes before a nest that has nothing to do with it, and is not in the copy of the function."""
    A, X = te.placeholder((16,), name="A"), te.placeholder((16,), name="X")
    first = te.compute((16,), lambda i: A[i] * 2.0, name="first")
    second = te.compute((16,), lambda i: X[i] + 1.0, name="second")
    third = te.compute((16,), lambda i: X[i] + second[i], name="third")
    sch = weft.Schedule(te.create_func([A, X, first, third]))
    sch.parallel(sch.get_loops("second")[0])
    before = sch.mod.clone()
    sch.cache_read("third", 0, "local", consumer_blocks=["third"])
    check_schedule(before, sch)


def test_layouts_over_symbols_are_tried_on_a_copy() -> None:
    n = te.var("n")
    A = te.placeholder((n, 16), name="A")
    B = te.compute((n, 16), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((n, 16), lambda i, j: B[i, j] * 2.0, name="C")
    sch = weft.Schedule(te.create_func([A, C]))
    sch.parallel(sch.get_loops("C")[0])
    sch.transform_layout("B", ("write", 0), lambda i, j: (i, j // 6, j % 6), pad_value=0.0)
    assert "memref<?x3x6xf32>" in str(sch.mod)


def test_moves_inside_an_outer_block_pass_only_what_stands_in_it() -> None:
    A = te.placeholder((4, 8), name="A")
    B = te.compute((4, 8), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((4, 8), lambda i, j: B[i, j] * 2.0, name="C")
    module = te.create_func([A, C])
    sch = weft.Schedule(module)
    i, _ = sch.get_loops("C")
    sch.compute_at("B", i)
    sch.blockize([sch.get_block("B"), sch.get_block("C")])
    sch.compute_at("B", sch.get_loops("C")[0])
    check_schedule(module, sch)


def test_steps_that_keep_dependences_ask_no_sets_about_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layouts and orders that keep elements and iterations apart are not tried on a copy; an init of fused loops is
    moved without a set, as their digits show that each element starts once."""
    A, B = te.placeholder((16, 32), name="A"), te.placeholder((32, 32), name="B")
    k = te.reduce_axis((0, 32), name="k")
    C = te.compute((16, 32), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    module = te.create_func([A, B, C])
    sch = weft.Schedule(module)
    (i0, i1), (j0, j1), (k0, k1) = (sch.split(loop, factors=[None, 4]) for loop in sch.get_loops("C"))
    sch.reorder(i0, j0, i1, j1, k0, k1)
    sch.bind(sch.fuse(i0, j0), "blockIdx.x")
    sch.bind(sch.fuse(i1, j1), "threadIdx.x")
    monkeypatch.setattr(trial_application, "copy_of_nests", None)
    monkeypatch.setattr(System, "find_candidate", None)
    sch.reorder(k1, k0)
    sch.transform_layout("C", ("write", 0), lambda i, j: (i // 16, j // 16, j % 16 // 4, i % 16, j % 4))
    sch.decompose_reduction("C", sch.get_loops("C")[2])
    monkeypatch.undo()
    sch.transform_layout("C_update", ("write", 0), lambda a, b, c, d, e: (a * 16 + d, b * 16 + c * 4 + e))
    check_schedule(module, sch)


def test_orders_that_change_what_is_around_a_parallel_loop_are_tried() -> None:
    """Iterations of i do not meet in one iteration of k, but do in different ones, the earlier with the lower k."""
    text = """
    func.func @f(%X: memref<16xi64>) {
      tir.for %k in 8 { tir.for %i in 8 parallel {
        tir.block "B" iters(%vk: spatial<8>, %vi: spatial<8>) = [%k, %i] {
          %at = affine.apply affine_map<(k, i) -> (k - i + 8)>(%vk, %vi)
          %x = memref.load %X[%at] : memref<16xi64>
          %y = arith.addi %x, %x : i64
          memref.store %y, %X[%at] : memref<16xi64>
        }
      } }
      func.return
    }"""
    sch = weft.Schedule(weft.parse(text))
    k, i = sch.get_loops("B")
    with pytest.raises(ScheduleError, match="requirement 4, loops that run in parallel stay independent"):
        sch.reorder(i, k)
