"""`tir.assume`: what it removes from programs, and that calls check it, interpreted and compiled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from schedule_checks import check_schedule
from xdsl.context import Context

import weft
from weft.interp.arguments import EXTENTS, ConcreteShapes
from weft.passes.lower_tir_to_low import LowerTirToLowPass
from weft.support.call_arguments import bind_arguments
from weft.support.call_preconditions import CallPrecondition, near_numbers
from weft.support.call_signature import ArraySpec, Signature
from weft.support.errors import CompileError

COPY = """
func.func @f(%A: memref<?x?xf32>, %D: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %A, %c0 : memref<?x?xf32>
  %n = memref.dim %A, %c1 : memref<?x?xf32>
  tir.assume_shape %D[%m, %n] : memref<?x?xf32>
  tir.assume [%n mod 32] == [0]
  tir.assume [%m] <= [8]
  tir.for %i in %m {
    tir.for %j in %n {
      tir.block "B" iters(%vi: spatial<%m>, %vj: spatial<%n>) = [%i, %j] {
        %a = memref.load %A[%vi, %vj] : memref<?x?xf32>
        memref.store %a, %D[%vi, %vj] : memref<?x?xf32>
      }
    }
  }
  func.return
}
"""

COMPUTED = """
func.func @f(%A: memref<?xf32>, %B: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  %m = affine.apply affine_map<(d0) -> (d0 * 2 + 1)> (%n)
  tir.assume_shape %B[%m] : memref<?xf32>
  %one = arith.constant 1.0 : f32
  tir.for %i in %m {
    tir.block "B" iters(%v: spatial<%m>) = [%i] {
      memref.store %one, %B[%v] : memref<?xf32>
    }
  }
  func.return
}
"""


def test_multiples_need_no_guard():
    before = weft.parse(COPY, "copy.mlir")
    sch = weft.Schedule(before)
    _, columns = sch.get_loops(sch.get_block("B"))
    outer, inner = sch.split(columns, [None, 32])
    sch.vectorize(inner)
    sch.parallel(outer)
    assert "where" not in str(sch.mod)
    check_schedule(before, sch)


def test_other_factors_keep_their_guard():
    before = weft.parse(COPY, "copy.mlir")
    sch = weft.Schedule(before)
    rows, columns = sch.get_loops(sch.get_block("B"))
    sch.split(columns, [None, 48])
    sch.split(rows, [None, 8])
    assert "* 48 + %" in str(sch.mod).split(" where ")[1] and "* 8 + %" in str(sch.mod).split(" where ")[1]
    check_schedule(before, sch)


def calls(text: str) -> list[Callable[..., object]]:
    """Ways to call @f: interpreted at tir and at low level, compiled by position and by name."""
    module = weft.parse(text, "called.mlir")
    low = weft.parse(text, "called.mlir")
    LowerTirToLowPass().apply(Context(), low)
    function = weft.build(module)["f"]
    return [
        lambda *arrays: weft.Interpreter(module).call("f", *arrays),
        lambda *arrays: weft.Interpreter(low).call("f", *arrays),
        function,
        lambda first, second: function(**dict(zip("AB" if "%B" in text else "AD", (first, second), strict=True))),
    ]


@pytest.mark.parametrize("way", range(4))
def test_calls_check_facts(way: int):
    call = calls(COPY)[way]
    for shape, text in (((3, 33), r"expected n % 32 == 0, got n = 33"), ((9, 32), r"m must be at most 8, got 9")):
        array = np.ones(shape, np.float32)
        result = np.zeros_like(array)
        with pytest.raises(ValueError, match=text):
            call(array, result)
        assert not result.any()
    array = np.ones((8, 64), np.float32)
    result = np.zeros_like(array)
    call(array, result)
    assert result.all()


@pytest.mark.parametrize("way", range(4))
def test_calls_check_computed_extents(way: int):
    call = calls(COMPUTED)[way]
    array, result = np.ones(3, np.float32), np.zeros(7, np.float32)
    call(array, result)
    assert result.all()
    message = r"B_d0 == 2 \* n \+ 1, got B_d0 = 8 .axis 0 of 'B'., n = 3 |assumes 7"
    with pytest.raises((ValueError, CompileError), match=message):
        call(array, np.zeros(8, np.float32))


def test_results_of_computed_extents_are_allocated():
    args = (ArraySpec("A", "float32", ("n",)), ArraySpec("B", "float32", ("k",), "write"))
    signature = Signature("f", args, ("n", "k"), 1, (CallPrecondition("k == 2 * n + 1"),))
    (result,) = bind_arguments(signature, [np.ones(5, np.float32)], {}).results
    assert result.shape == (11,)


def test_calls_inside_of_a_module():
    caller = """
    func.func @main(%A: memref<2x{n}xf32>, %D: memref<2x{n}xf32>) {{
      %a = "memref.cast"(%A) : (memref<2x{n}xf32>) -> memref<?x?xf32>
      %d = "memref.cast"(%D) : (memref<2x{n}xf32>) -> memref<?x?xf32>
      func.call @f(%a, %d) : (memref<?x?xf32>, memref<?x?xf32>) -> ()
      func.return
    }}
    """
    library = weft.build(weft.parse(COPY + caller.format(n=64), "main.mlir"))
    array = np.ones((2, 64), np.float32)
    result = np.zeros_like(array)
    library["main"](array, result)
    assert result.all()
    with pytest.raises(CompileError, match="assumes n % 32 == 0: expected n % 32 == 0, got n = 33"):
        weft.build(weft.parse(COPY + caller.format(n=33), "main.mlir"))


@pytest.mark.parametrize("attempt", range(3))
def test_random_shapes_meet_the_facts(attempt: int):
    function = next(op for op in weft.parse(COPY, "copy.mlir").ops if op.name == "func.func")
    rows, columns = ConcreteShapes(function, EXTENTS[attempt]).shapes[0] or (0, 0)  # pyright: ignore[reportArgumentType]
    assert 0 < rows <= 8 and columns % 32 == 0 and columns > 0


@pytest.mark.parametrize(
    ("text", "values", "holds"),
    [
        ("n % 32 == 0", {"n": 64}, True),
        ("n % 32 == 0", {"n": 65}, False),
        ("2 * (n + 1) <= m // 2", {"n": 1, "m": 8}, True),
        ("2 * (n + 1) <= m // 2", {"n": 1, "m": 7}, False),
        ("n - 3 * m < -1", {"n": 1, "m": 1}, True),
        ("n - 3 * m < -2", {"n": 1, "m": 1}, False),
        ("n % m == 0", {"n": 1, "m": 0}, False),
        ("m == -n + 3", {"n": 5, "m": -2}, True),
        ("m == -(n // 2) - 1", {"n": 5, "m": -3}, True),
        ("x.1 == y$2", {"x.1": 3, "y$2": 3}, True),
    ],
)
def test_fact_text(text: str, values: dict[str, int], holds: bool):
    fact = CallPrecondition(text)
    assert fact.holds(values) == holds
    assert set(fact.names) == set(values)
    assert (fact.problem(values) is None) == holds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n", "it compares by ==, <= or <"),
        ("n == ", "expected a name or a number, got ''"),
        ("(n == 1", "a parenthesis is not closed"),
        ("n == 1 2", "'2' is left over"),
        ("n == __import__('os')", "expected a name or a number|left over"),
    ],
)
def test_what_is_no_fact(text: str, message: str):
    with pytest.raises(ValueError, match=message):
        CallPrecondition(text)


def test_numbers_near_to_a_start():
    assert near_numbers({"n": 5, "m": 7}, ["n"], lambda v: v["n"] % 32 == 0) == {"n": 32, "m": 7}
    assert near_numbers({"n": 5, "m": 7}, ["n", "m"], lambda v: v["n"] == v["m"])["n"] in (5, 6, 7)
    assert near_numbers({"n": 5}, ["n"], lambda v: False) == {"n": 5}


REMAINDER = """
func.func @f(%x: tensor<?x?xf32, #graph.dims<n, m>>) -> tensor<?x?xf32, #graph.dims<n, m>>
    attributes {graph.preconditions = ["(n - 3) % (m - 1) <= 1 # stated"]} {
  %y = graph.relu %x : tensor<?x?xf32, #graph.dims<n, m>> -> tensor<?x?xf32, #graph.dims<n, m>>
  func.return %y : tensor<?x?xf32, #graph.dims<n, m>>
}
"""


@pytest.mark.parametrize("rows,columns", [(1, 3), (1, 4), (2, 5), (3, 1), (3, 7), (5, 3), (6, 5), (6, 0)])
def test_remainders_of_differences_round_down(rows: int, columns: int):
    function = weft.build(REMAINDER, target="llvm")["f"]
    x = np.ones((rows, columns), "float32")
    if columns != 1 and (rows - 3) % (columns - 1) <= 1:
        np.testing.assert_array_equal(function(x), x)
    else:
        with pytest.raises(ValueError, match="stated"):
            function(x)


def test_remainders_by_differences_round_down():
    text = REMAINDER.replace("(n - 3) % (m - 1) <= 1", "m % (n * m - m) <= 1")
    function = weft.build(text, target="llvm")["f"]
    for rows, columns in ((0, 3), (2, 3), (3, 1), (1, 3), (3, 5)):
        x = np.ones((rows, columns), "float32")
        if rows != 1 and columns % (rows * columns - columns) <= 1:
            np.testing.assert_array_equal(function(x), x)
        else:
            with pytest.raises(ValueError, match="stated"):
                function(x)
