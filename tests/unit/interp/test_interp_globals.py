"""Module constants and casts of buffers in the interpreter, and which parameters a call writes."""

from collections.abc import Collection

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, MemRefType, ModuleOp, f32
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.dialects.memref import StoreOp
from xdsl.ir import Operation

from weft.dialects.effects import Effects, effects_of
from weft.driver.parsing import parse_text
from weft.driver.programs import context
from weft.interp.errors import InterpreterError
from weft.interp.interpreter import Interpreter
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
    assert [p.writes for p in interpreter.signature("main").arrays] == [False, True]


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


def written(module: ModuleOp) -> dict[str, list[bool]]:
    """Of each parameter of each function, whether calls write it."""
    interpreter = Interpreter(module)
    names = [op.sym_name.data for op in module.ops if isinstance(op, FuncOp)]
    return {name: [p.writes for p in interpreter.signature(name).arrays] for name in names}


def links(count: int, writers: Collection[int], *, cycle: bool) -> ModuleOp:
    """Functions @f0, @f1, ... each of which hands its two parameters, swapped, to the one that follows; the writers
    store to the first."""
    buffer = MemRefType(f32, [])
    functions: list[FuncOp] = []
    for n in range(count):
        function = FuncOp(f"f{n}", ((buffer, buffer), ()))
        first, second = function.args
        if n in writers:
            function.body.block.add_ops([one := arith.ConstantOp(FloatAttr(1.0, f32)), StoreOp.get(one, first, [])])
        if cycle or n < count - 1:
            function.body.block.add_op(CallOp(f"f{(n + 1) % count}", [second, first], []))
        function.body.block.add_op(ReturnOp())
        functions.append(function)
    return ModuleOp(functions)


def test_which_parameters_functions_that_call_each_other_write():
    found = written(links(400, [7], cycle=True))
    assert all(found[f"f{n}"] == [n % 2 == 1, n % 2 == 0] for n in range(400))


def test_which_parameters_a_long_chain_of_calls_writes():
    found = written(links(2000, [1500], cycle=False))
    assert all(found[f"f{n}"] == [n % 2 == 0 and n <= 1500, n % 2 == 1 and n <= 1500] for n in range(2000))


def test_each_use_of_a_parameter_is_looked_at_once(monkeypatch: pytest.MonkeyPatch):
    seen: list[Operation] = []

    def counted(op: Operation) -> Effects:
        seen.append(op)
        return effects_of(op)

    monkeypatch.setattr("weft.interp.signature.effects_of", counted)
    found = written(links(50, range(50), cycle=True))
    assert all(flags == [True, True] for flags in found.values())
    assert len(seen) == 50


def test_what_is_handed_to_functions_without_a_body_and_through_long_chains_of_views_is_written():
    casts = '%v0 = "memref.cast"(%A) : (memref<2xf32>) -> memref<?xf32>\n' + "".join(
        f'%v{n} = "memref.cast"(%v{n - 1}) : (memref<?xf32>) -> memref<?xf32>\n' for n in range(1, 1050)
    )
    text = (
        "func.func private @extern(memref<?xf32>)\n"
        f"func.func @f(%A: memref<2xf32>, %B: memref<2xf32>) {{ {casts}\n"
        "func.call @extern(%v1049) : (memref<?xf32>) -> () func.return }\n"
        "func.func @g(%B: memref<2xf32>, %A: memref<2xf32>) {"
        "func.call @f(%A, %B) : (memref<2xf32>, memref<2xf32>) -> () func.return }"
    )
    found = written(parse_text(context(), text, "test.mlir"))
    assert found == {"extern": [False], "f": [True, False], "g": [False, True]}


def test_the_effects_of_a_call_follow_each_function_once():
    """Functions that call the next one twice make 2^60 paths."""
    call = "func.call @f{n}(%A) : (memref<2xf32>) -> ()"
    chain = "".join(
        f"func.func @f{n}(%A: memref<2xf32>) {{ {call.format(n=n + 1) * (n < 60) * 2} func.return }}\n"
        for n in range(61)
    )
    module = parse_text(context(), chain, "test.mlir")
    first = next(op for op in module.walk() if isinstance(op, CallOp))
    assert not effects_of(first).is_opaque
    last = [op for op in module.ops if isinstance(op, FuncOp)][-1].body.block
    last.insert_op_before(CallOp("f30", [last.args[0]], []), last.ops.first)
    assert effects_of(first).is_opaque
