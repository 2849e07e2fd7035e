"""Module constants and casts of buffers in the interpreter, and which parameters a call writes."""

import numpy as np
import pytest

from weft.driver.parsing import parse_text
from weft.driver.programs import context
from weft.interp.errors import InterpreterError
from weft.interp.interpreter import Interpreter
from weft.interp.signature import Signature
from weft.support.errors import CompileError

PROGRAM = """
"memref.global"() <{sym_name = "k", type = memref<2xf32>, initial_value = dense<[3.0, 4.0]> : tensor<2xf32>,
  sym_visibility = "private", constant}> : () -> ()
"memref.global"() <{sym_name = "v", type = memref<2xf32>, initial_value, sym_visibility = "private"}> : () -> ()
func.func @add(%A: memref<?xf32>, %B: memref<2xf32>, %C: memref<2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %i = %c0 to %c2 step %c1 {
    %a = memref.load %A[%i] : memref<?xf32>
    %b = memref.load %B[%i] : memref<2xf32>
    %c = arith.addf %a, %b : f32
    memref.store %c, %C[%i] : memref<2xf32>
  }
  func.return
}
func.func @main(%X: memref<2xf32>, %Y: memref<2xf32>) {
  %k = memref.get_global @k : memref<2xf32>
  %x = "memref.cast"(%X) : (memref<2xf32>) -> memref<?xf32>
  func.call @add(%x, %k, %Y) : (memref<?xf32>, memref<2xf32>, memref<2xf32>) -> ()
  func.return
}
func.func @narrow(%X: memref<?xf32>) {
  %x = "memref.cast"(%X) : (memref<?xf32>) -> memref<2xf32>
  func.return
}
func.func @missing() { %k = memref.get_global @nobody : memref<2xf32> func.return }
func.func @wrong() { %k = memref.get_global @k : memref<3xf32> func.return }
func.func @variable() { %k = memref.get_global @v : memref<2xf32> func.return }
"""


@pytest.fixture
def interpreter() -> Interpreter:
    return Interpreter(parse_text(context(), PROGRAM, "test.mlir"))


def test_constants_reach_callees_and_inputs_are_not_written(interpreter: Interpreter):
    x, y = np.array([1, 2], np.float32), np.zeros(2, np.float32)
    x.flags.writeable = False
    interpreter.call("main", x, y)
    np.testing.assert_array_equal(y, [4, 6])
    assert [p.written for p in Signature.of(interpreter.find("main")).parameters] == [False, True]


def test_a_cast_checks_the_extent_that_it_states(interpreter: Interpreter):
    interpreter.call("narrow", np.zeros(2, np.float32))
    with pytest.raises(InterpreterError, match=r"'memref.cast': dimension 0 is stated to be 2, but is 3"):
        interpreter.call("narrow", np.zeros(3, np.float32))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", r"the module has no memref.global @nobody"),
        ("wrong", r"memref.global @k is memref<2xf32>, not memref<3xf32>"),
        ("variable", r"the interpreter reads constant globals only, and @v is none"),
    ],
)
def test_globals_that_cannot_be_read(interpreter: Interpreter, name: str, message: str):
    with pytest.raises(CompileError, match=message):
        interpreter.call(name)
