"""What the lowering refuses, and the checks at its ends."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.universe import Universe
from xdsl.utils.exceptions import VerifyException

import weft
from weft.dialects.tir import ForOp
from weft.driver.parsing import parse_text
from weft.passes.index_builders import index_constant
from weft.passes.lower_tir_to_low import LowerTirToLowPass
from weft.passes.tir.tir_pass import range_of
from weft.passes.verify_level import verify_level
from weft.support.errors import CompileError


def context() -> Context:
    ctx = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        ctx.register_dialect(name, factory)
    return ctx


def parse(text: str) -> ModuleOp:
    return parse_text(context(), text, "checks.mlir")


def lanes(text: str) -> str:
    return (
        "func.func @f(%a: vector<8xf32>, %i: vector<8xi32>, %s: vector<4xi32>, %m: vector<8xi1>) {\n"
        f"  {text}\n  func.return\n}}"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%r = low.cmpi below, %i, %i : vector<8xi32>", "unknown predicate 'below' of low.cmpi"),
        (
            '%r = "low.cmpi"(%i, %s) <{predicate = 0 : i64}> : (vector<8xi32>, vector<4xi32>) -> vector<8xi1>',
            "low.cmpi compares equal types to a mask, got vector<8xi32>, vector<4xi32> -> vector<8xi1>",
        ),
        (
            '%r = "low.cmpi"(%i, %i) <{predicate = 11 : i64}> : (vector<8xi32>, vector<8xi32>) -> vector<8xi1>',
            "low.cmpi has no predicate 11",
        ),
        (
            '%r = "low.select"(%m, %i, %s) : (vector<8xi1>, vector<8xi32>, vector<4xi32>) -> vector<8xi32>',
            "low.select chooses between equal types by a mask, got vector<8xi1>, vector<8xi32>, vector<4xi32>",
        ),
        (
            "%r = low.sitofp %a : vector<8xf32> to vector<8xf32>",
            "low.sitofp does not convert vector<8xf32> to vector<8xf32>",
        ),
        (
            "%r = low.extsi %i : vector<8xi32> to vector<8xi16>",
            "low.extsi does not convert vector<8xi32> to vector<8xi16>",
        ),
        (
            "%r = low.trunci %i : vector<8xi32> to vector<4xi16>",
            "low.trunci does not convert vector<8xi32> to vector<4xi16>",
        ),
        (
            "%r = low.index_cast %i : vector<8xi32> to vector<8xi64>",
            "low.index_cast does not convert vector<8xi32> to vector<8xi64>",
        ),
    ],
)
def test_lane_ops_say_what_is_wrong(text: str, message: str):
    with pytest.raises((CompileError, VerifyException)) as error:
        parse(lanes(text)).verify()
    assert message in str(error.value)


def test_level_check_finds_values_used_outside_of_their_loop():
    module = parse("func.func @f(%A: memref<4xf32>) {\n  func.return\n}")
    body = module.body.block.first_op.regions[0].block
    loop = ForOp.empty(4, "i")
    leak = arith.AddiOp(loop.induction_variable, loop.induction_variable, IndexType())
    last = body.last_op
    assert last is not None
    body.insert_ops_before([loop, leak], last)
    module.verify()
    with pytest.raises(CompileError, match=r"arith.addi uses %i where it is not defined"):
        verify_level(module, "tir")


def test_level_check_finds_uses_before_definitions():
    module = parse("func.func @f(%n: index) {\n  %a = arith.addi %n, %n : index\n  func.return\n}")
    body = module.body.block.first_op.regions[0].block
    late = index_constant(1)
    body.first_op.operands[1] = late.result
    body.insert_op_before(late, body.last_op)
    with pytest.raises(CompileError, match=r"arith.addi uses %c1 where it is not defined"):
        verify_level(module, "low")


def test_dynamic_dimension_of_memref_dim_is_refused():
    module = parse("""
func.func @f(%A: memref<?xf32>, %d: index) {
  %n = memref.dim %A, %d : memref<?xf32>
  tir.for %i in %n {
    %zero = arith.constant 0.0 : f32
    memref.store %zero, %A[%i] : memref<?xf32>
  }
  func.return
}
""")
    with pytest.raises(CompileError, match=r"memref.dim needs a constant dimension in 0 .. 0"):
        LowerTirToLowPass().apply(context(), module)


def test_functions_over_tensors_stay():
    module = parse("""
func.func @t(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
func.func @f(%A: memref<4xf32>) {
  func.return
}
""")
    LowerTirToLowPass(func=("f",)).apply(context(), module)
    text = str(module)
    assert "func.func @t(%x: tensor<4xf32>) -> tensor<4xf32>" in text
    assert 'low.params = [#low.param<"A", memref<4xf32>, read, []>]' in text


def test_lowering_twice_changes_nothing():
    text = """
func.func @f(%A: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 8 vectorized {
    memref.store %zero, %A[%i] : memref<8xf32>
  }
  func.return
}
"""
    module = parse(text)
    LowerTirToLowPass().apply(context(), module)
    once = str(module)
    LowerTirToLowPass().apply(context(), module)
    assert str(module) == once


def test_ranges_of_values():
    module = parse("""
func.func @f(%A: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  %least = arith.minsi %n, %c7 : index
  %most = arith.maxsi %n, %c7 : index
  %product = arith.muli %least, %least : index
  tir.for %i in %least {
    %zero = arith.constant 0.0 : f32
    memref.store %zero, %A[%i] : memref<?xf32>
  }
  func.return
}
""")
    values = {op.results[0].name_hint: op.results[0] for op in module.walk() if op.results}
    assert range_of(values["n"]) == (0, None)
    assert range_of(values["least"]) == (0, 7)
    assert range_of(values["most"]) == (7, None)
    assert range_of(values["product"]) == (0, 49)
    loop = next(op for op in module.walk() if isinstance(op, ForOp))
    assert range_of(loop.induction_variable) == (0, 6)


STRAIGHT = """
func.func @f(%A: memref<4xf32>) {
  %z = arith.constant 1.0 : f32
  %c9 = arith.constant 9 : index
  memref.store %z, %A[%c9] : memref<4xf32>
  func.return
}"""


def test_accesses_of_functions_without_loops_are_checked_when_they_are_lowered() -> None:
    with pytest.raises(CompileError, match=r"writes A out of bounds: index 0 is 9, the buffer is memref<4xf32>"):
        weft.build(weft.parse(STRAIGHT))
    with pytest.raises(CompileError, match=r"writes A out of bounds: index 0 is 9, the buffer is memref<4xf32>"):
        LowerTirToLowPass("llvm", func=("f",)).apply(context(), parse(STRAIGHT))
    LowerTirToLowPass("llvm").apply(context(), parse(STRAIGHT))  # somebody else's
