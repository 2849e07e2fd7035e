"""Lanes that vectorised loops read at constant distances, shuffled out of vectors, are those that each lane names."""

from itertools import pairwise

import numpy as np
import pytest
from xdsl.context import Context

from weft.driver.programs import parse
from weft.interp.interpreter import Interpreter
from weft.passes.lower_tir_to_low import LowerTirToLowPass
from weft.runtime.low_module import load_low_module
from weft.support.target import Target

SIZE = 97
PROGRAM = """
func.func @f(%A: memref<{size}x{element}>, %B: memref<4x{lanes}x{element}>) {{
  tir.for %o in 4 {{
    tir.for %i in {lanes} vectorized {{
      {condition} {{
        %x = affine.apply affine_map<(d0, d1) -> ({place})> (%o, %i)
        %a = memref.load %A[%x] : memref<{size}x{element}>
        memref.store %a, %B[%o, %i] : memref<4x{lanes}x{element}>
      }}
    }}
  }}
  func.return
}}
"""
PLACES = ["d1 * 2", "d0 + d1 * 2 + 1", "d1 * 3", "d0 * 5 + d1 * 4", "40 - d1", "60 - d1 * 3 + d0"]
PLACES += ["d1 floordiv 2 + d0", "d1 floordiv 3 * 2 + 7", "d1 mod 3", "(d1 mod 4) * 4 + d1 floordiv 4", "d1 * 5"]
CONDITIONS = {
    "all lanes": ("scf.if %true", "  %true = arith.constant true\n", lambda o, i: True),
    "some lanes": (
        "%some = affine.apply affine_map<(d0) -> (d0 - 2)> (%i)\n      %c = arith.cmpi sge, %some, %zero : index\n"
        "      scf.if %c",
        "  %zero = arith.constant 0 : index\n",
        lambda o, i: i >= 2,
    ),
    "lanes of the call": (
        "%some = affine.apply affine_map<(d0, d1) -> (d0 - d1)> (%i, %o)\n"
        "      %c = arith.cmpi sge, %some, %zero : index\n      scf.if %c",
        "  %zero = arith.constant 0 : index\n",
        lambda o, i: i >= o,
    ),
}


def program(place: str, lanes: int, element: str, condition: str) -> str:
    text, constant, _ = CONDITIONS[condition]
    given = PROGRAM.format(size=SIZE, place=place, lanes=lanes, element=element, condition=text)
    head, _, rest = given.partition("{\n")
    return f"{head}{{\n{constant}{rest}"


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("lanes", "element", "condition"),
    [
        *((8, "f32", condition) for condition in CONDITIONS),
        *((lanes, element, "all lanes") for lanes, element in ((3, "f64"), (5, "f32"), (16, "i8"), (32, "f16"))),
    ],
)
def test_lanes_read_what_they_name(place: str, lanes: int, element: str, condition: str, target: str) -> None:
    dtype = {"f16": "float16", "f32": "float32", "f64": "float64", "i8": "int8"}[element]
    where = eval(f"lambda d0, d1: {place.replace('floordiv', '//').replace('mod', '%')}")
    outside = any(not 0 <= where(o, i) < SIZE for o in range(4) for i in range(lanes))
    if outside:
        pytest.skip("more lanes than elements")
    module = parse(program(place, lanes, element, condition))
    a = np.arange(SIZE).astype(dtype)
    expected = np.full((4, lanes), -1, dtype)
    for o in range(4):
        for i in range(lanes):
            if CONDITIONS[condition][2](o, i):
                expected[o, i] = a[where(o, i)]
    results = [np.full((4, lanes), -1, dtype) for _ in range(3)]
    Interpreter(module.clone()).call("f", a, results[0])
    LowerTirToLowPass(target).apply(Context(), module)
    Interpreter(module).call("f", a, results[1])
    load_low_module(module, Target(target))["f"](a, results[2])
    for result in results:
        np.testing.assert_array_equal(result, expected)


def test_loads_stay_between_the_first_and_the_last_lane() -> None:
    """An array that ends with the last element that is read, and begins with the first."""
    text = program("d1 * 2 + d0 * 2", 8, "f32", "all lanes").replace(f"memref<{SIZE}xf32>", "memref<21xf32>")
    module = parse(text)
    LowerTirToLowPass("llvm").apply(Context(), module)
    lowered = str(module)
    assert "vector.shuffle" in lowered and "low.gather" not in lowered
    a, b = np.arange(21, dtype=np.float32), np.empty((4, 8), np.float32)
    Interpreter(module).call("f", a, b)  # it refuses accesses outside of arrays
    assert all((later - row == 2).all() for row, later in pairwise(b))


def test_far_lanes_are_gathered() -> None:
    module = parse(program("d1 * 5", 8, "f32", "all lanes"))
    LowerTirToLowPass("llvm").apply(Context(), module)
    assert "low.gather" in str(module) and "vector.shuffle" not in str(module)
