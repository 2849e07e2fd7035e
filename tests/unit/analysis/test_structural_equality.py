"""Structural equality: names and places of constants do not matter, everything else does."""

import pytest

import weft

PROGRAM = """
func.func @f(%A: memref<8xf32>) {{
  {top}
  tir.for %i in 8 {{
    {inside}
    %x = memref.load %A[%i] : memref<8xf32>
    %y = arith.addf %x, %{operand} : f32
    memref.store %y, %A[%i] : memref<8xf32>
  }}
  func.return
}}
"""


def program(top: str = "", inside: str = "", operand: str = "c") -> str:
    return PROGRAM.format(top=top, inside=inside, operand=operand)


AT_TOP = program(top="%c = arith.constant 0.0 : f32")


@pytest.mark.parametrize(
    "other",
    [
        program(inside="%c = arith.constant 0.0 : f32"),
        program(top="%other = arith.constant 0.0 : f32", operand="other"),
        program(
            top="%u = arith.constant 1 : i32", inside="%c = arith.constant 0.0 : f32\n%v = arith.constant 3.0 : f32"
        ),
    ],
)
def test_places_of_constants_do_not_matter(other: str) -> None:
    weft.assert_structural_equal(weft.parse(AT_TOP), weft.parse(other))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (program(top="%c = arith.constant 1.0 : f32"), "operand 1 is 0.000000e+00 : f32 against 1.000000e+00 : f32"),
        (program(top="%c = arith.constant -0.0 : f32"), "operand 1 is 0.000000e+00 : f32 against -0.000000e+00 : f32"),
        (program(operand="x"), "operand 1 is 0.000000e+00 : f32 against %x"),
        (program(top="%c = arith.constant 0.0 : f32", inside="%d = arith.addf %c, %c : f32"), "arith.addf"),
        (AT_TOP.replace("addf", "mulf"), "arith.addf against arith.mulf"),
        (AT_TOP.replace("in 8", "in 7"), "property 'static_extent' is 8 : i64 against 7 : i64"),
    ],
)
def test_what_differs(other: str, message: str) -> None:
    left, right = weft.parse(AT_TOP), weft.parse(other)
    assert not weft.structural_equal(left, right)
    with pytest.raises(AssertionError, match="the programs differ") as caught:
        weft.assert_structural_equal(left, right)
    assert message in str(caught.value)


def test_nan_is_one_constant() -> None:
    nan = program(top="%c = arith.constant 0x7FC00000 : f32")
    weft.assert_structural_equal(weft.parse(nan), weft.parse(nan))
    assert not weft.structural_equal(weft.parse(nan), weft.parse(AT_TOP))
