"""Iterations of parallel loops in other orders: programs that are wrong in parallel show it."""

from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.universe import Universe

from weft.driver.parsing import parse_text
from weft.interp.interpreter import Interpreter

ORDERS = ("forward", "reversed", "shuffled", "interleaved")


def run(body: str, order: str, n: int = 9, seed: int = 0) -> Any:
    """The array %A of n elements 1, 2, ... after the body."""
    text = f"func.func @f(%A: memref<{n}xi64>) {{\n%c0 = arith.constant 0 : index\n{body}\nfunc.return\n}}"
    ctx = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        ctx.register_dialect(name, factory)
    a = np.arange(1, n + 1)
    Interpreter(parse_text(ctx, text, "test.mlir"), order=order, seed=seed).call("f", a)
    return a


SQUARES = """tir.for %i in 9 KIND {
  %a = memref.load %A[%i] : memref<9xi64>
  %b = arith.muli %a, %a : i64
  memref.store %b, %A[%i] : memref<9xi64>
}"""
SHIFT = """tir.for %i in 8 KIND {
  %j = affine.apply affine_map<(d0) -> (d0 + FROM)> (%i)
  %k = affine.apply affine_map<(d0) -> (d0 + TO)> (%i)
  %a = memref.load %A[%j] : memref<9xi64>
  memref.store %a, %A[%k] : memref<9xi64>
}"""
SUM = """tir.for %i in 8 KIND {
  %j = affine.apply affine_map<(d0) -> (d0 + 1)> (%i)
  %a = memref.load %A[%j] : memref<9xi64>
  %s = memref.load %A[%c0] : memref<9xi64>
  %t = arith.addi %s, %a : i64
  memref.store %t, %A[%c0] : memref<9xi64>
}"""
TEMPORARY = """%T = memref.alloc() : memref<1xi64>
tir.for %i in 9 KIND {
  %a = memref.load %A[%i] : memref<9xi64>
  memref.store %a, %T[%c0] : memref<1xi64>
  %t = memref.load %T[%c0] : memref<1xi64>
  %b = arith.addi %t, %t : i64
  memref.store %b, %A[%i] : memref<9xi64>
}"""


@pytest.mark.parametrize("kind", ["parallel", "vectorized", 'thread_binding<"threadIdx.x">'])
@pytest.mark.parametrize("order", ORDERS)
def test_independent_iterations_give_the_same_in_each_order(order: str, kind: str) -> None:
    np.testing.assert_array_equal(run(SQUARES.replace("KIND", kind), order), np.arange(1, 10) ** 2)


@pytest.mark.parametrize("order", ORDERS[1:])
def test_serial_loops_keep_their_order(order: str) -> None:
    forward = SHIFT.replace("FROM", "0").replace("TO", "1")
    for kind in ("", "unrolled"):
        np.testing.assert_array_equal(run(forward.replace("KIND", kind), order), [1] * 9)


def test_a_value_passed_on_shows() -> None:
    text = SHIFT.replace("FROM", "0").replace("TO", "1").replace("KIND", "parallel")
    np.testing.assert_array_equal(run(text, "forward"), [1] * 9)
    np.testing.assert_array_equal(run(text, "reversed"), [1, *range(1, 9)])
    np.testing.assert_array_equal(run(text, "interleaved"), [1, *range(1, 9)])


def test_a_value_overwritten_shows_in_reverse() -> None:
    text = SHIFT.replace("FROM", "1").replace("TO", "0").replace("KIND", "parallel")
    np.testing.assert_array_equal(run(text, "forward"), [*range(2, 10), 9])
    np.testing.assert_array_equal(run(text, "reversed"), [9] * 9)


def test_lost_updates_show_when_iterations_interleave() -> None:
    text = SUM.replace("KIND", "parallel")
    for order in ("forward", "reversed", "shuffled"):
        assert run(text, order)[0] == sum(range(1, 10))
    assert run(text, "interleaved")[0] == 1 + 9


@pytest.mark.parametrize("order", ORDERS)
def test_temporaries_of_one_iteration_are_its_own(order: str) -> None:
    np.testing.assert_array_equal(run(TEMPORARY.replace("KIND", "parallel"), order), 2 * np.arange(1, 10))


def test_temporaries_that_live_on_are_shared() -> None:
    text = (
        TEMPORARY.replace("KIND", "parallel")
        + """
      %last = memref.load %T[%c0] : memref<1xi64>
      memref.store %last, %A[%c0] : memref<9xi64>"""
    )
    assert run(text, "forward")[0] == 9
    assert run(text, "interleaved")[1] == 18


@pytest.mark.parametrize("order", [*ORDERS, "privatised"])
def test_temporaries_carry_values_between_runs_of_a_loop(order: str) -> None:
    """Sums in a temporary of each parallel iteration, over an outer serial loop."""
    text = """%T = memref.alloc() : memref<3xi64>
    %c2 = arith.constant 2 : index
    %zero = arith.constant 0 : i64
    tir.for %k in 3 { tir.for %i in 3 parallel {
      tir.block "T" iters(%vi: spatial<3>, %vk: reduce<3>) = [%i, %k] {
        tir.init { memref.store %zero, %T[%vi] : memref<3xi64> }
        %at = affine.apply affine_map<(d0, d1) -> (d0 * 3 + d1)> (%vi, %vk)
        %a = memref.load %A[%at] : memref<9xi64>
        %t = memref.load %T[%vi] : memref<3xi64>
        %u = arith.addi %t, %a : i64
        memref.store %u, %T[%vi] : memref<3xi64>
        %last = arith.cmpi eq, %vk, %c2 : index
        scf.if %last {
          %first = affine.apply affine_map<(d0) -> (d0 * 3)> (%vi)
          memref.store %u, %A[%first] : memref<9xi64>
        }
      }
    } }"""
    np.testing.assert_array_equal(run(text, order)[::3], [1 + 2 + 3, 4 + 5 + 6, 7 + 8 + 9])


def test_copies_of_temporaries_are_kept_when_the_loop_runs_again() -> None:
    """One temporary for all iterations: right only when each has its own."""
    text = """%T = memref.alloc() : memref<1xi64>
    tir.for %k in 2 { tir.for %i in 9 parallel {
      %a = memref.load %A[%i] : memref<9xi64>
      memref.store %a, %T[%c0] : memref<1xi64>
      %t = memref.load %T[%c0] : memref<1xi64>
      %b = arith.addi %t, %t : i64
      memref.store %b, %A[%i] : memref<9xi64>
    } }"""
    for order in ("forward", "reversed", "privatised"):
        np.testing.assert_array_equal(run(text, order), 4 * np.arange(1, 10))
    assert run(text, "interleaved")[0] != 4


def test_nested_parallel_loops_interleave() -> None:
    text = """tir.for %i in 3 parallel { tir.for %j in 3 vectorized {
      %k = affine.apply affine_map<(d0, d1) -> (d0 * 3 + d1)> (%i, %j)
      %a = memref.load %A[%k] : memref<9xi64>
      %b = arith.muli %a, %a : i64
      memref.store %b, %A[%k] : memref<9xi64>
    } }"""
    for order in (*ORDERS, "privatised"):
        np.testing.assert_array_equal(run(text, order), np.arange(1, 10) ** 2)


def test_deep_nests_interleave() -> None:
    loops = " ".join(f"tir.for %l{d} in 1 {{" for d in range(20))
    text = f"""tir.for %i in 8 parallel {{ {loops}
      %s = memref.load %A[%c0] : memref<9xi64>
      %t = arith.addi %s, %s : i64
      memref.store %t, %A[%c0] : memref<9xi64>
    {"}" * 20} }}"""
    assert run(text, "forward")[0] == 256
    assert run(text, "interleaved")[0] == 2


def test_shuffles_repeat_with_their_seed() -> None:
    text = SHIFT.replace("FROM", "0").replace("TO", "1").replace("KIND", "parallel")
    first, second, other = (tuple(run(text, "shuffled", seed=seed)) for seed in (1, 1, 2))
    assert first == second != other


def test_low_parallel_loops() -> None:
    text = """%c8 = arith.constant 8 : index
    %c1 = arith.constant 1 : index
    low.parallel_for %i in %c8 {
      %j = arith.addi %i, %c1 : index
      %a = memref.load %A[%i] : memref<9xi64>
      memref.store %a, %A[%j] : memref<9xi64>
    }"""
    np.testing.assert_array_equal(run(text, "forward"), [1] * 9)
    np.testing.assert_array_equal(run(text, "reversed"), [1, *range(1, 9)])


@pytest.mark.parametrize("order", ["reversed", "shuffled", "interleaved", "privatised"])
def test_threads_that_reduce_together_combine_in_every_order(order: str) -> None:
    text = """tir.for %i in 3 { tir.for %k in 4 thread_binding<"threadIdx.x"> {
      tir.block "S" iters(%vi: spatial<3>, %vk: reduce<4>) = [%i, %k] {
        tir.init { memref.store %c5, %A[%vi] : memref<9xi64> }
        %s = memref.load %A[%vi] : memref<9xi64>
        %t = arith.addi %s, %c5 : i64
        memref.store %t, %A[%vi] : memref<9xi64>
      }
    } }"""
    text = "%c5 = arith.constant 5 : i64\n" + text
    np.testing.assert_array_equal(run(text, order)[:3], [25] * 3)
