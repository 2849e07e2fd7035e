"""LLVM IR text: what is refused, what callers see of a function, and how things are named."""

from functools import cache

import pytest
from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Region

from weft.backends.llvm.emit import emit_module
from weft.backends.llvm.emitter import ValueNames
from weft.backends.llvm.types import float_text, value_type
from weft.backends.names import quoted, symbol_name
from weft.dialects.low import LOW
from weft.dialects.low_signature import signature_of
from weft.dialects.tir import ForOp
from weft.driver.parsing import parse_text
from weft.runtime.low_module import load_low_module
from weft.support.call_signature import ArraySpec, ScalarSpec
from weft.support.errors import CompileError, InternalError
from weft.support.target import Target

HOST = Target("llvm")


@cache
def context() -> Context:
    ctx = Context()
    dialects = get_all_dialects()
    for name in ("arith", "builtin", "func", "memref", "scf"):
        ctx.load_dialect(dialects[name]())
    ctx.load_dialect(LOW)
    return ctx


def parse(text: str) -> ModuleOp:
    return parse_text(context(), text, "test.mlir")


def function(text: str) -> FuncOp:
    op = next(iter(parse(text).ops))
    assert isinstance(op, FuncOp)
    return op


def test_an_op_of_another_level_is_our_bug() -> None:
    module = parse("func.func @f() { func.return }")
    block = next(iter(module.ops)).regions[0].block
    assert block.ops.first is not None
    block.insert_ops_before([ForOp(4, Region(Block(arg_types=[IndexType()])))], block.ops.first)
    with pytest.raises(
        InternalError, match=r"tir\.for is not an op of low: the check of the level should have caught it"
    ):
        emit_module(module, HOST)


def test_emission_leaves_the_module_alone_and_repeats_itself() -> None:
    module = parse("""
    func.func @f(%A: memref<?xf32>, %n: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      low.parallel_for %i in %n {
        %T = memref.alloca() : memref<4xf32, "local">
        scf.for %j = %c0 to %c1 step %c1 {
          %a = memref.load %A[%i] : memref<?xf32>
          memref.store %a, %T[%j] : memref<4xf32, "local">
        } {low.unroll}
      }
      func.return
    }""")
    before = str(module)
    text = emit_module(module, HOST)
    assert str(module) == before
    assert emit_module(module, HOST) == text


def test_what_callers_pass() -> None:
    op = function("""
    func.func @f(%A: memref<?xf32>, %k: i64, %flag: i1, %B: memref<?xbf16>, %m: index, %n: index) attributes {
      low.params = [
        #low.param<"A", memref<?x4x?xf32>, read, ["m", "n"]>, #low.param<"k", index, read, []>,
        #low.param<"flag", i1, read, []>, #low.param<"B", memref<?xbf16>, write, ["n"]>
      ],
      low.symbols = ["m", "n"]
    } { func.return }""")
    signature = signature_of(op)
    assert signature.args == (
        ArraySpec("A", "float32", ("m", 4, "n"), "read"),
        ScalarSpec("k", "int64"),
        ScalarSpec("flag", "bool"),
        ArraySpec("B", "bfloat16", ("n",), "write"),
    )
    assert signature.symbols == ("m", "n")
    assert signature.result_specs == (ArraySpec("B", "bfloat16", ("n",), "write"),)


@pytest.mark.parametrize(
    "params, symbols, results",
    [
        ('#low.param<"A", memref<4xf32>, write, []>, #low.param<"B", memref<4xf32>, write, []>', "", 2),
        ('#low.param<"A", memref<4xf32>, write, []>, #low.param<"k", index, read, []>', "", 0),
        ('#low.param<"A", memref<4xf32>, read, []>, #low.param<"B", memref<4xf32>, readwrite, []>', "", 0),
        ('#low.param<"A", memref<4xf32>, read, []>, #low.param<"B", memref<?xf32>, write, ["n"]>', '"n"', 0),
    ],
    ids=["no inputs", "a number comes last", "it is read too", "nothing tells its extent"],
)
def test_what_calls_may_leave_out(params: str, symbols: str, results: int) -> None:
    op = function(f"""
    func.func @f(%A: memref<4xf32>, %B: memref<4xf32>, %n: index) attributes {{
      low.params = [{params}], low.symbols = [{symbols}]
    }} {{ func.return }}""")
    assert signature_of(op).results == results


@pytest.mark.parametrize(
    "param, message",
    [
        ('#low.param<"A", memref<4xf128>, read, []>', "parameter 'A' of @f: no array has elements of f128"),
        ('#low.param<"A", memref<?xf32>, read, []>', r"parameter 'A' is memref<\?xf32>, but has 0 symbols"),
    ],
)
def test_parameters_without_a_signature(param: str, message: str) -> None:
    op = function(f"func.func @f(%A: memref<4xf32>) attributes {{low.params = [{param}]}} {{ func.return }}")
    with pytest.raises(CompileError, match=message):
        signature_of(op)


def test_an_error_shows_its_place() -> None:
    text = 'func.func @f() {\n  %A = memref.alloca() : memref<2x2xf32, "local">\n  func.return\n}'
    with pytest.raises(CompileError) as caught:
        emit_module(parse(text), HOST)
    assert str(caught.value).startswith("test.mlir:2:8: error: low works on flat buffers without a layout")


def test_a_library_of_several_functions() -> None:
    library = load_low_module(
        parse("""
        func.func @one() attributes {low.params = []} { func.return }
        func.func @two() attributes {low.params = []} { func.return }"""),
        HOST,
    )
    assert list(library) == ["one", "two"]
    library["two"]()


def test_names() -> None:
    names = ValueNames(["entry"])
    wanted = ["a", "a", "a.1", "a", "entry", "a.1"]
    assert [names.fresh(hint) for hint in wanted] == ["a", "a.1", "a.1.1", "a.2", "entry.1", "a.1.2"]


def test_symbols() -> None:
    names = ("matmul", "expf", "weft_free", "llvm.exp", "expfx", "int", "write", "a_b.c", "2d", "_x")
    assert [symbol_name(name) for name in names] == [
        "matmul",
        "weft_function_expf",
        "weft_function_weft_free",
        "weft_escaped_llvm_2Eexp",
        "expfx",
        "weft_function_int",
        "weft_function_write",
        "weft_escaped_a__b_2Ec",
        "weft_escaped_2d",
        "weft_function__x",
    ]
    assert [quoted(name) for name in ("a.b$1", "a-b", "1a", 'a "b"', "é")] == [
        "a.b$1",
        '"a-b"',
        '"1a"',
        '"a \\22b\\22"',
        '"\\C3\\A9"',
    ]


def test_a_type_is_one_object() -> None:
    assert value_type("float", 0) is value_type("i1", 0).of("float")
    assert value_type("i1", 8).of("float").of("i1") is value_type("i1", 8)


def test_float_literals() -> None:
    assert float_text(1.0, "float") == "1.0"
    assert float_text(-0.0, "float") == "0x8000000000000000"
    assert float_text(1 / 16, "half") == "0.0625"
    assert float_text(1e10, "double") == "0x4202A05F20000000"
    assert float_text(float("inf"), "half") == "0xH7C00"
    assert float_text(float("-inf"), "bfloat") == "65408"
