"""Ops of other dialects at levels of weft: where they may stand, what they compute, and who lowers them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, FloatAttr, ModuleOp, f32
from xdsl.ir import Dialect, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import IRDLOperation, irdl_attr_definition, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import Pure

import weft
from weft.dialects.element_types import unregister_element_type
from weft.dialects.levels import unregister_operation
from weft.driver.parsing import parse_text
from weft.driver.programs import context
from weft.driver.verify import verify_module

TEXT = """
func.func @f(%A: memref<8xf32>, %B: memref<8xf32>) {
  tir.for %i in 8 {
    tir.block "B" iters(%v: spatial<8>) = [%i] {
      %a = memref.load %A[%v] : memref<8xf32>
      %b = "mine.half"(%a) : (f32) -> f32
      memref.store %b, %B[%v] : memref<8xf32>
    }
  }
  func.return
}"""


@irdl_op_definition
class HalfOp(IRDLOperation):
    """Half of a number."""

    name = "mine.half"

    operand = operand_def(f32)
    result = result_def(f32)
    traits = traits_def(Pure())

    def __init__(self, operand: SSAValue) -> None:
        super().__init__(operands=[operand], result_types=[f32])


@dataclass(frozen=True)
class LowerHalfPass(ModulePass):
    """Half of a number is a product."""

    name = "lower-half"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for half in [inner for inner in op.walk() if isinstance(inner, HalfOp)]:
            constant = arith.ConstantOp(FloatAttr(0.5, f32))
            Rewriter.replace_op(half, [constant, arith.MulfOp(half.operand, constant.result)])


def program() -> ModuleOp:
    ctx = context()
    ctx.load_dialect(Dialect("mine", [HalfOp]))
    module = parse_text(ctx, TEXT, "half.mlir")
    verify_module(module)
    return module


@pytest.fixture
def registered() -> Iterator[None]:
    weft.register_operation(HalfOp, levels=("tir",), meaning=lambda op, x: x / 2)
    yield
    unregister_operation(HalfOp)


def compiled(point: str) -> np.ndarray:
    a, b = np.arange(8, dtype=np.float32), np.empty(8, np.float32)
    weft.build(program(), passes={point: LowerHalfPass()})["f"](a, b)
    return b


def test_a_pass_at_the_first_point_lowers_ops_that_no_level_has() -> None:
    np.testing.assert_array_equal(compiled("before:place-buffers"), np.arange(8) / 2)


def test_elsewhere_they_are_refused() -> None:
    with pytest.raises(weft.CompileError, match=r"half\.mlir:6:12: error: mine\.half is not allowed at level 'tir'"):
        compiled("before:vectorize")


@pytest.mark.usefixtures("registered")
def test_registered_ops_stand_at_their_levels() -> None:
    np.testing.assert_array_equal(compiled("before:vectorize"), np.arange(8) / 2)
    with pytest.raises(
        weft.CompileError, match=r"half\.mlir:6:12: error: mine\.half is not allowed at level 'low': a pass"
    ):
        weft.build(program(), passes={"before:vectorize": "cse"})


@pytest.mark.usefixtures("registered")
def test_the_interpreter_runs_what_is_registered() -> None:
    a, b = np.arange(8, dtype=np.float32), np.empty(8, np.float32)
    weft.Interpreter(program()).call("f", a, b)
    np.testing.assert_array_equal(b, np.arange(8) / 2)


def test_a_meaning_that_fails_is_told_at_the_op() -> None:
    def meaning(op: Operation, x: float) -> float:
        raise RuntimeError("no halves today")

    weft.register_operation(HalfOp, levels=("tir",), meaning=meaning)
    try:
        with pytest.raises(weft.CompileError, match=r"half\.mlir:6:12: .*'mine\.half' fails on \(.*no halves today"):
            weft.Interpreter(program()).call("f", np.ones(8, np.float32), np.empty(8, np.float32))
    finally:
        unregister_operation("mine.half")


@pytest.mark.usefixtures("registered")
def test_misuse() -> None:
    with pytest.raises(TypeError, match="argument 'op' must be a subclass of Operation or str, got b'x' of type bytes"):
        weft.register_operation(b"x", levels=("low",))  # type: ignore[arg-type]
    with pytest.raises(weft.CompileError, match=r"operation 'mine\.half' is registered already"):
        weft.register_operation(HalfOp, levels=("low",))
    with pytest.raises(weft.CompileError, match=r"operation 'mine\.twice': unknown level 'tire', did you mean 'tir'"):
        weft.register_operation("mine.twice", levels=("tire",))
    with pytest.raises(weft.CompileError, match=r"operation 'mine\.twice': unknown effect 'reed', did you mean 'read'"):
        weft.register_operation("mine.twice", levels=("tir",), effects=("reed",))
    with pytest.raises(weft.CompileError, match=r"operation 'mine\.half' has a trait that states its effects"):
        weft.register_operation(HalfOp, levels=("tir",), effects=("read",), override=True)
    with pytest.raises(weft.CompileError, match=r"operation 'arith\.addf' is one that weft knows"):
        weft.register_operation("arith.addf", levels=("tir",))
    with pytest.raises(weft.CompileError, match=r"no operation 'mine\.twice' is registered"):
        unregister_operation("mine.twice")


@irdl_attr_definition
class ScaledType(ParametrizedAttribute, TypeAttribute):
    """A number that an int16 stands for."""

    name = "mine.scaled"


def test_misuse_of_element_types() -> None:
    with pytest.raises(weft.CompileError, match=r"mine\.scaled has elements of an unknown type 'int17', did you mean"):
        weft.register_element_type(ScaledType, "int17")
    with pytest.raises(weft.CompileError, match=r"mine\.scaled has elements of uint8, which no values are"):
        weft.register_element_type(ScaledType, "uint8")
    with pytest.raises(weft.CompileError, match="f32 is a type that weft knows"):
        weft.register_element_type(Float32Type, "float32")
    with pytest.raises(weft.CompileError, match=r"mine\.scaled is not registered"):
        unregister_element_type(ScaledType)
    weft.register_element_type(ScaledType, "int16")
    try:
        with pytest.raises(weft.CompileError, match=r"mine\.scaled is registered already; override=True replaces it"):
            weft.register_element_type(ScaledType, "int8")
        weft.register_element_type(ScaledType, "int8", override=True)
    finally:
        unregister_element_type(ScaledType)
