"""Structural hashes: what tells functions apart, and what does not."""

import numpy as np
import pytest
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from weft.analysis.structural_equality import structural_equal
from weft.analysis.structural_hash import structural_digest
from weft.dialects.traversal import copy_of, operations_in
from weft.driver.programs import parse
from weft.passes.module_edits import functions_of

TEXT = """
func.func @f(%x: memref<8xf32>, %y: memref<8xf32>) attributes {note = "a"} {
  %c = arith.constant 1.000000e-01 : f32
  tir.for %i in 8 {
    tir.block "Y" iters(%v: spatial<8>) = [%i] {
      %a = memref.load %x[%v] : memref<8xf32>
      %b = arith.subf %a, %c : f32
      memref.store %b, %y[%v] : memref<8xf32>
    }
  }
  func.return
}
"""


def digest(text: str) -> bytes:
    return structural_digest(functions_of(parse(text))["f"])


def test_names_and_places_of_values_do_not_matter() -> None:
    renamed = TEXT.replace("%a", "%other").replace("%x", "%input").replace("%i", "%loop").replace("%c", "%d")
    assert digest(renamed.replace("\n", "\n\n ")) == digest(TEXT)
    function = functions_of(parse(TEXT))["f"]
    assert structural_digest(copy_of(function)) == structural_digest(function)


def test_programs_that_are_structurally_equal_have_one_digest() -> None:
    constant = "  %c = arith.constant 1.000000e-01 : f32\n"
    moved = TEXT.replace(constant, "").replace("      %b", f"{constant}      %b")
    assert structural_equal(parse(moved), parse(TEXT))
    assert digest(moved) == digest(TEXT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("8xf32", "9xf32"),
        ("8xf32", "8xf64"),
        ("subf %a, %c", "subf %c, %a"),
        ("subf %a, %c", "addf %a, %c"),
        ("subf %a, %c :", "subf %a, %c fastmath<contract> :"),
        ("%x[%v]", "%y[%v]"),
        ('"Y"', '"Z"'),
        ('note = "a"', 'note = "b"'),
        ('note = "a"', 'other = "a"'),
        ("1.000000e-01 : f32", "1.000001e-01 : f32"),
        ("@f", "@f"),
        ("in 8 {", "in 8 parallel {"),
        ("  func.return", "  %n = memref.alloc() : memref<1xf32>\n  func.return"),
    ],
)
def test_all_else_does(old: str, new: str) -> None:
    changed = TEXT.replace(old, new)
    if "f64" in new:
        changed = changed.replace(": f32", ": f64")
    if "9xf32" in new:
        changed = changed.replace("in 8", "in 9").replace("spatial<8>", "spatial<9>")
    assert (digest(changed) == digest(TEXT)) == (old == new)


def test_the_digest_is_the_same_in_every_process() -> None:
    assert structural_digest(parse("func.func @f() { func.return }")).hex() == "1f921ac4525720c9e0273e6ec504b94d"


def test_doubles_that_differ_in_the_last_bit() -> None:
    def of(value: float) -> bytes:
        return digest(
            f"func.func @f() {{ %c = arith.constant {value!r} : f64\n %d = arith.negf %c : f64\n func.return }}"
        )

    assert of(0.1) != of(np.nextafter(0.1, 1.0).item())


def test_constants_are_told_apart_by_their_bytes() -> None:
    def of(values: list[float], shape: list[int]) -> bytes:
        function = FuncOp("f", ((), ()))
        type_ = TensorType(f32, shape)
        function.attributes["data"] = DenseIntOrFPElementsAttr.from_list(type_, values)
        return structural_digest(function)

    assert of([1, 2, 3, 4], [4]) == of([1, 2, 3, 4], [4])
    assert len({of([1, 2, 3, 4], [4]), of([1, 2, 3, 4], [2, 2]), of([1, 2, 3, 5], [4]), of([1, 1, 1, 1], [4])}) == 4


def test_an_operation_may_stand_elsewhere() -> None:
    load = next(op for op in operations_in(parse(TEXT)) if op.name == "memref.load")
    other: Operation = copy_of(load)
    assert structural_digest(load) == structural_digest(other)
