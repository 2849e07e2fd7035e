"""Views as arguments: buffers with strides take slices, transposes and reversed arrays where they lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.driver.programs import context
from weft.interp.compare import compare_modules
from weft.passes.lower_tir_to_low import LowerTirToLowPass
from weft.support.call_arguments import bind_arguments

ADD = """
func.func @add(%A: TA, %B: TB, %C: TC) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %A, %c0 : TA
  %n = memref.dim %A, %c1 : TA
  tir.assume_shape %B[%m, %n] : TB
  tir.assume_shape %C[%m, %n] : TC
  TIES
  tir.for %i in %m { tir.for %j in %n {
    tir.block "C" iters(%vi: spatial<%m>, %vj: spatial<%n>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : TA
      %b = memref.load %B[%vi, %vj] : TB
      %c = arith.addf %a, %b : f32
      memref.store %c, %C[%vi, %vj] : TC
    } } }
  func.return
}
"""
ANY = "memref<?x?xf32, strided<[?, ?], offset: ?>>"
ROWS = "memref<?x?xf32, strided<[?, 1], offset: ?>>"
DENSE = "memref<?x?xf32>"


def program(a: str = ANY, b: str = ANY, c: str = ANY, ties: str = "") -> Any:
    return weft.parse(ADD.replace("TIES", ties).replace("TA", a).replace("TB", b).replace("TC", c))


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-50, 50, shape).astype(np.float32)


VIEWS: dict[str, Callable[[Any], Any]] = {
    "all": lambda x: x,
    "columns": lambda x: x[:, 2:7],
    "every second": lambda x: x[::2, 1::3],
    "reversed": lambda x: x[::-1, ::-1],
    "transposed": lambda x: x.T,
    "transposed slice": lambda x: x.T[3:, ::2],
    "one row": lambda x: x[4:5, :],
    "one column": lambda x: x[:, 5:6],
    "empty": lambda x: x[:0, ::2],
}


@pytest.mark.parametrize("scheduled", [False, True])
def test_views_of_all_kinds(scheduled: bool) -> None:
    sch = weft.Schedule(program())
    if scheduled:
        i, j = sch.get_loops("C")
        (_, ii), (_, ji) = sch.split(i, [None, 4]), sch.split(j, [None, 8])
        sch.unroll(ii)
        sch.vectorize(ji)
        assert compare_modules(program(), sch.mod) is None
    add = weft.build(sch.mod)["add"]
    for name, view in VIEWS.items():
        x, y, out = numbers(12, 13), numbers(12, 13, seed=1), np.full((12, 13), 7, np.float32)
        expected = out.copy()
        view(expected)[...] = view(x) + view(y)
        add(view(x), view(y), view(out))
        np.testing.assert_array_equal(out, expected, err_msg=name)


def test_mixed_layouts_need_no_copies() -> None:
    x, y, out = numbers(9, 14), numbers(11, 9, seed=1), np.zeros((9, 11), np.float32)
    add = weft.build(program(ROWS, ANY, DENSE))["add"]
    add(x[:, 1:12], y.T, out)
    np.testing.assert_array_equal(out, x[:, 1:12] + y.T)
    add(x[:, 1:12], np.broadcast_to(np.float32(3), (9, 11)), out)
    np.testing.assert_array_equal(out, x[:, 1:12] + 3)


def test_lowering_keeps_the_meaning() -> None:
    ties = f"%s = low.stride %A {{dimension = 0}} : {ROWS}\n tir.assume_strides %C[%s] : {ROWS}"
    for module in (program(), program(ROWS, DENSE, ROWS), program(ROWS, DENSE, ROWS, ties)):
        low = module.clone()
        LowerTirToLowPass().apply(context(), low)
        assert compare_modules(module, low) is None


def test_strides_that_parameters_share() -> None:
    ties = f"%s = low.stride %A {{dimension = 0}} : {ROWS}\n tir.assume_strides %C[%s] : {ROWS}"
    add = weft.build(program(ROWS, DENSE, ROWS, ties))["add"]
    x, y, out = numbers(6, 10), numbers(6, 4, seed=1), np.zeros((6, 10), np.float32)
    add(x[:, :4], y, out[:, 3:7])
    np.testing.assert_array_equal(out[:, 3:7], x[:, :4] + y)
    with pytest.raises(
        ValueError, match=r"expected strides \(s, 1\) \(in elements\) with s = 10 \(from 'A'\), got strides \(4, 1\)"
    ):
        add(x[:, :4], y, np.zeros((6, 4), np.float32))


def test_a_stride_may_be_an_extent_or_a_parameter() -> None:
    text = """
    func.func @trace(%A: memref<?x?xf32, strided<[?, 1]>>, %s: index, %C: memref<?xf32>) {
      %c0 = arith.constant 0 : index
      %m = memref.dim %A, %c0 : memref<?x?xf32, strided<[?, 1]>>
      tir.assume_shape %C[%m] : memref<?xf32>
      tir.assume_strides %A[%s] : memref<?x?xf32, strided<[?, 1]>>
      tir.for %i in %m { tir.block "C" iters(%v: spatial<%m>) = [%i] {
        %a = memref.load %A[%v, %c0] : memref<?x?xf32, strided<[?, 1]>>
        memref.store %a, %C[%v] : memref<?xf32>
      } }
      func.return
    }"""
    x, out = numbers(5, 8), np.zeros(5, np.float32)
    function = weft.build(weft.parse(text))["trace"]
    function(x[:, 3:], 8, out)
    np.testing.assert_array_equal(out, x[:, 3])
    with pytest.raises(ValueError, match=r"s_2 = 8 \(from 'A'\), got 9"):
        function(x[:, 3:], 9, out)


def test_calls_between_functions_hand_strides_on() -> None:
    text = """
    func.func @fill(%X: memref<4x8xf32, strided<[?, 1]>>) {
      %one = arith.constant 1.0 : f32
      tir.for %i in 4 { tir.for %j in 8 vectorized {
        tir.block "X" iters(%vi: spatial<4>, %vj: spatial<8>) = [%i, %j] {
          memref.store %one, %X[%vi, %vj] : memref<4x8xf32, strided<[?, 1]>>
        } } }
      func.return
    }
    func.func @outer(%A: memref<4x8xf32, strided<[24, 1]>>) attributes {tir.function} {
      %X = "memref.cast"(%A) : (memref<4x8xf32, strided<[24, 1]>>) -> memref<4x8xf32, strided<[?, 1]>>
      func.call @fill(%X) : (memref<4x8xf32, strided<[?, 1]>>) -> ()
      func.return
    }"""
    module = weft.parse(text)
    low = module.clone()
    LowerTirToLowPass().apply(context(), low)
    assert compare_modules(module, low) is None
    room = np.zeros((5, 24), np.float32)
    weft.build(module)["outer"](room[1:, 5:13])
    assert room[1:, 5:13].all() and room.sum() == 32
    with pytest.raises(ValueError, match=r"expected strides \(24, 1\) \(in elements\), got strides \(8, 1\)"):
        weft.build(module)["outer"](np.zeros((4, 8), np.float32))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            lambda x: (x.T, x.T, np.empty_like(x)),
            r"'A'\): expected strides \(A_s0, 1\) \(in elements\), got strides \(1, 6\)",
        ),
        (lambda x: (x, x.T, np.empty_like(x)), r"'B'\): expected a C-contiguous array"),
        (lambda x: (x, x, np.broadcast_to(x[0], (6, 6))), "expected a writable array"),
        (
            lambda x: (x, x, np.lib.stride_tricks.as_strided(x.copy(), (6, 6), (4, 4))),
            r"'C'\): expected an output whose elements are at different places, got strides \(4, 4\)",
        ),
        (lambda x: (x, x.copy(), x[::-1]), r"overlaps argument 1 \('A'\)"),
        (
            lambda x: (
                np.zeros(200, np.int8)[:144].view(np.float32).reshape(6, 6),
                x,
                np.ndarray((6, 6), np.float32, bytearray(999), strides=(26, 4)),
            ),
            r"expected strides that are multiples of 4 bytes, got dimension 0 has 26 bytes",
        ),
    ],
)
def test_misuse(arguments: Callable[[Any], Any], message: str) -> None:
    add = weft.build(program(ROWS, DENSE, ANY))["add"]
    with pytest.raises(ValueError, match=message):
        add(*arguments(numbers(6, 6)))


def test_interleaved_outputs_do_not_overlap() -> None:
    add = weft.build(program())["add"]
    room, x = np.zeros((6, 8), np.float32), numbers(6, 4)
    room[:, 1::2] = x
    add(room[:, 1::2], x, room[:, ::2])
    np.testing.assert_array_equal(room[:, ::2], 2 * x)


def random_view(rng: np.random.Generator, room: Any, shape: tuple[int, int]) -> Any:
    """A view of `room` of this shape: sliced with steps of either sign, maybe transposed."""
    transposed = bool(rng.integers(2))
    wanted = shape[::-1] if transposed else shape
    slices: list[slice] = []
    for extent, size in zip(wanted, room.shape, strict=True):
        step = int(rng.integers(1, max(2, (size - 1) // max(extent - 1, 1) + 1)))
        first = int(rng.integers(0, size - step * (extent - 1)))
        indices = [first + step * at for at in range(extent)]
        if rng.integers(2):
            slices.append(slice(first, indices[-1] + 1, step))
        else:
            last = first - 1 if first else None
            slices.append(slice(indices[-1], last, -step))
    view = room[tuple(slices)]
    return view.T if transposed else view


@pytest.mark.parametrize("seed", range(4))
def test_both_ways_of_checking_a_call_agree(seed: int) -> None:
    """Random views through the native checks: they compute what NumPy does, or are refused as Python refuses them."""
    rng = np.random.default_rng(seed)
    tie = f"%s = low.stride %A {{dimension = 0}} : {ANY}\n%t = low.stride %A {{dimension = 1}} : {ANY}\n"
    programs = [
        program(),
        program(ROWS, ANY, ANY),
        program(ANY, ANY, ANY, tie + f"tir.assume_strides %B[%s, %t] : {ANY}"),
    ]
    functions = [weft.build(module)["add"] for module in programs]
    ran = 0
    for _ in range(150):
        shape = (int(rng.integers(1, 5)), int(rng.integers(1, 5)))
        rooms = [numbers(11, 11, seed=int(n)) for n in rng.integers(0, 99, 3)]
        if not rng.integers(4):
            rooms[2] = rooms[0]
        x, y, out = (random_view(rng, room, shape) for room in rooms)
        for function in functions:
            try:
                bind_arguments(function.signature, (x, y, out), {})
            except ValueError:
                with pytest.raises(ValueError, match="expected"):
                    function(x, y, out)
                continue
            rest, expected = rooms[2].copy(), x + y
            function(x, y, out)
            np.testing.assert_array_equal(out, expected)
            out[...] = 0
            changed = rooms[2] != rest
            assert changed.sum() <= out.size
            ran += 1
    assert ran > 100
