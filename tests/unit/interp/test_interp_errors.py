"""What the interpreter refuses, and what it says."""

import re
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.universe import Universe

from weft.driver.parsing import parse_text
from weft.interp.errors import InterpreterError
from weft.interp.interpreter import Interpreter
from weft.support.errors import CompileError


def interpreter(text: str, **options: Any) -> Interpreter:
    ctx = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        ctx.register_dialect(name, factory)
    return Interpreter(parse_text(ctx, text, "test.mlir"), **options)


def floats(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def function(body: str, parameters: str = "%A: memref<4x6xf32>, %B: memref<4x6xf32>") -> str:
    return f"func.func @f({parameters}) {{\n{body}\nfunc.return\n}}"


COPY = function("""tir.for %i in 4 {
  tir.for %j in 6 {
    %j1 = affine.apply affine_map<(d0) -> (d0 + OFFSET)> (%j)
    %a = memref.load %A[%i, %j1] : memref<4x6xf32>
    memref.store %a, %B[%i, %j] : memref<4x6xf32>
  }
}""")


@pytest.mark.parametrize(("offset", "index"), [(1, (0, 6)), (-1, (0, -1)), (-7, (0, -7))])
def test_load_out_of_bounds(offset: int, index: tuple[int, int]) -> None:
    """A negative index must not wrap around as Python's do, nor one of a row reach into the next row."""
    with pytest.raises(InterpreterError) as caught:
        interpreter(COPY.replace("OFFSET", str(offset))).call("f", floats(4, 6), floats(4, 6))
    error = caught.value
    assert str(error).startswith(
        f"test.mlir:5:10: error: access out of bounds: A[0, {index[1]}], the shape of A is 4x6"
    )
    assert (error.buffer, error.index, error.shape) == ("A", index, (4, 6))


def test_store_out_of_bounds_leaves_the_arrays_alone() -> None:
    text = function(
        """%c9 = arith.constant 9 : index
        %one = arith.constant 1.0 : f32
        memref.store %one, %A[%n] : memref<8xf32>
        memref.store %one, %A[%c9] : memref<8xf32>""",
        "%A: memref<8xf32>, %n: index",
    )
    a = floats(8)
    with pytest.raises(InterpreterError, match=r"access out of bounds: A\[9\], the shape of A is 8"):
        interpreter(text).call("f", a, 3)
    assert not a.any()
    with pytest.raises(InterpreterError, match=r"access out of bounds: A\[8\]"):
        interpreter(text).call("f", a, 8)


def test_vector_access_out_of_bounds() -> None:
    text = function(
        """%v = vector.load %A[%n] : memref<8xf32>, vector<4xf32>
        vector.store %v, %A[%n] : memref<8xf32>, vector<4xf32>""",
        "%A: memref<8xf32>, %n: index",
    )
    interpreter(text).call("f", floats(8), 4)
    with pytest.raises(InterpreterError, match=r"access out of bounds: A\[8\], the shape of A is 8"):
        interpreter(text).call("f", floats(8), 5)
    with pytest.raises(InterpreterError, match=r"access out of bounds: A\[-1\]"):
        interpreter(text).call("f", floats(8), -1)


def test_masked_lanes_out_of_bounds() -> None:
    text = function(
        """%m = vector.create_mask %count : vector<4xi1>
        %z = arith.constant dense<0.0> : vector<4xf32>
        %v = vector.maskedload %A[%n], %m, %z : memref<8xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
        vector.maskedstore %A[%n], %m, %v : memref<8xf32>, vector<4xi1>, vector<4xf32>""",
        "%A: memref<8xf32>, %n: index, %count: index",
    )
    interpreter(text).call("f", floats(8), 6, 2)
    with pytest.raises(InterpreterError, match=r"access out of bounds: A\[8\]"):
        interpreter(text).call("f", floats(8), 6, 3)


def test_gather_out_of_bounds_and_scatter_to_one_place() -> None:
    text = function(
        """%i = arith.constant dense<[0, 9]> : vector<2xindex>
        %v = low.gather %A[%i] : memref<8xf32>, vector<2xindex> -> vector<2xf32>
        low.scatter %v, %A[%i] : vector<2xf32>, memref<8xf32>, vector<2xindex>""",
        "%A: memref<8xf32>",
    )
    with pytest.raises(InterpreterError, match=r"access out of bounds: A\[9\], the shape of A is 8"):
        interpreter(text).call("f", floats(8))
    with pytest.raises(InterpreterError, match=r"'low.scatter' writes A\[5\] from several lanes"):
        interpreter(text.replace("[0, 9]", "[5, 5]")).call("f", floats(8))


UNWRITTEN = function(
    """%T = memref.alloc() : memref<8xf32>
    %zero = arith.constant 0.0 : f32
    tir.for %i in 7 { memref.store %zero, %T[%i] : memref<8xf32> }
    tir.for %i in 8 {
      %t = memref.load %T[%i] : memref<8xf32>
      USE
      memref.store %u, %A[%i] : memref<8xf32>
    }""",
    "%A: memref<8xf32>",
)
USES = {
    "addf": "%u = arith.addf %zero, %t : f32",
    "compare": "%c = arith.cmpf oeq, %t, %zero : f32 %u = arith.select %c, %zero, %zero : f32",
    "exp": "%u = math.exp %t : f32",
    "maxnumf": "%u = arith.maxnumf %t, %zero : f32",
    "convert": "%w = arith.extf %t : f32 to f64 %u = arith.truncf %w : f64 to f32",
    "negate": "%u = arith.negf %t : f32",
    "maximumf": "%u = arith.maximumf %zero, %t : f32",
}


@pytest.mark.parametrize("use", USES)
def test_use_of_unwritten_memory(use: str) -> None:
    text = UNWRITTEN.replace("USE", USES[use])
    with pytest.raises(InterpreterError, match=r"test.mlir:6:12: error: reads T\[7\], which was never written"):
        interpreter(text).call("f", floats(8))
    interpreter(text, check_uninitialised=False).call("f", floats(8))


def test_copies_of_unwritten_memory_fail_where_they_leave() -> None:
    """Copying more than is needed is legal; handing it to the caller is not."""
    use = """%yes = arith.constant true
      %v = arith.select %yes, %t, %zero : f32
      %u = scf.if %yes -> (f32) { scf.yield %v : f32 } else { scf.yield %zero : f32 }"""
    text = UNWRITTEN.replace("USE", use)
    with pytest.raises(InterpreterError, match=r"A\[7\] was given a value read from memory that was never written"):
        interpreter(text).call("f", floats(8))


def test_unwritten_truth_values_decide_nothing() -> None:
    text = function(
        """%T = memref.alloc() : memref<1xi1>
        %c0 = arith.constant 0 : index
        %t = memref.load %T[%c0] : memref<1xi1>
        scf.if %t { }""",
        "",
    )
    with pytest.raises(InterpreterError, match=r"reads T\[0\], which was never written"):
        interpreter(text).call("f")


def test_unwritten_lanes() -> None:
    text = function(
        """%T = memref.alloc() : memref<8xf32>
        %c0 = arith.constant 0 : index
        %v = vector.load %T[%c0] : memref<8xf32>, vector<8xf32>
        %w = arith.addf %v, %v : vector<8xf32>""",
        "",
    )
    with pytest.raises(InterpreterError, match=r"reads T\[0\], which was never written"):
        interpreter(text).call("f")


def test_parameters_declared_write_only_are_not_read() -> None:
    text = """func.func @f(%Y: memref<4xf32>) attributes {
        low.params = [#low.param<"Y", memref<2x2xf32>, write, []>], low.symbols = []} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %y = memref.load %Y[%c0] : memref<4xf32>
      %z = arith.negf %y : f32
      memref.store %z, %Y[%c1] : memref<4xf32>
      func.return
    }"""
    with pytest.raises(InterpreterError, match=r"reads Y\[0\], which was never written"):
        interpreter(text).call("f", floats(2, 2))
    y = floats(2, 2) + 3
    interpreter(text.replace(", write,", ", readwrite,")).call("f", y)
    np.testing.assert_array_equal(y, [[3, -3], [3, 3]])
    with pytest.raises(CompileError, match="parameter Y of @f is declared read, but written"):
        interpreter(text.replace(", write,", ", read,")).call("f", floats(2, 2))


def test_use_after_dealloc() -> None:
    text = function(
        """%T = memref.alloc() : memref<8xf32>
        %c0 = arith.constant 0 : index
        %zero = arith.constant 0.0 : f32
        memref.store %zero, %T[%c0] : memref<8xf32>
        memref.dealloc %T : memref<8xf32>
        ACCESS""",
        "",
    )
    for access in (
        "%t = memref.load %T[%c0] : memref<8xf32>",
        "memref.store %zero, %T[%c0] : memref<8xf32>",
        "%v = vector.load %T[%c0] : memref<8xf32>, vector<4xf32>",
    ):
        with pytest.raises(InterpreterError, match=re.escape("accesses a buffer after its memref.dealloc")):
            interpreter(text.replace("ACCESS", access)).call("f")


@pytest.mark.parametrize("second", [4, 2], ids=["apart", "overlapping"])
def test_dealloc_of_an_argument(second: int) -> None:
    text = """func.func @f(%A: memref<4xf32>, %B: memref<4xf32>) attributes {tir.promises = []} {
      %c0 = arith.constant 0 : index
      %a = memref.load %A[%c0] : memref<4xf32>
      memref.store %a, %B[%c0] : memref<4xf32>
      memref.dealloc %B : memref<4xf32>
      func.return
    }"""
    memory = floats(8)
    with pytest.raises(InterpreterError, match="the function deallocates its argument B"):
        interpreter(text).call("f", memory[:4], memory[second : second + 4])


def test_iterators_stay_in_their_domain() -> None:
    text = function(
        """tir.for %i in 4 {
          tir.for %j in 2 {
            tir.block "B" iters(%v: spatial<6>) = [%i * 2 + %j] {
              %a = memref.load %A[%v] : memref<8xf32>
            }
          }
        }""",
        "%A: memref<8xf32>",
    )
    message = r'test.mlir:4:13: error: block "B" runs with iterator %v = 6, but its domain is 0..5'
    with pytest.raises(InterpreterError, match=message):
        interpreter(text).call("f", floats(8))


def test_assumed_shapes_are_checked() -> None:
    text = function(
        """%c0 = arith.constant 0 : index
        %n = memref.dim %A, %c0 : memref<?xf32>
        tir.assume_shape %B[%n] : memref<?x2xf32>""",
        "%A: memref<?xf32>, %B: memref<?x2xf32>",
    )
    interpreter(text).call("f", floats(3), floats(3, 2))
    with pytest.raises(InterpreterError, match="the shape of B is 4x2, but the program assumes 3x2"):
        interpreter(text).call("f", floats(3), floats(4, 2))


def test_steps_are_positive() -> None:
    text = function("scf.for %i = %n to %m step %n { }", "%n: index, %m: index")
    with pytest.raises(InterpreterError, match=r"'scf.for' needs a positive step, got 0"):
        interpreter(text).call("f", 0, 5)


def test_extents_of_allocations_are_not_negative() -> None:
    text = function("%T = memref.alloc(%n) : memref<?xf32>", "%n: index")
    interpreter(text).call("f", 0)
    with pytest.raises(InterpreterError, match=r"'memref.alloc' needs extents of at least 0, got -1"):
        interpreter(text).call("f", -1)


def test_ops_without_a_meaning() -> None:
    text = function('"scf.while"(%c) ({}, {}) : (i1) -> ()', "%c: i1")
    with pytest.raises(CompileError, match=r"test.mlir:2:1: error: 'scf.while' has regions of one block each"):
        interpreter(text).call("f", True)
    text = function('%r = "memref.rank"(%A) : (memref<4xf32>) -> index', "%A: memref<4xf32>")
    with pytest.raises(CompileError, match=r"test.mlir:2:6: error: the interpreter has no meaning for 'memref.rank'"):
        interpreter(text).call("f", floats(4))


def test_indices_that_do_not_fit_the_buffer() -> None:
    text = function('%a = "memref.load"(%A, %i) : (memref<4x6xf32>, index) -> f32', "%A: memref<4x6xf32>, %i: index")
    with pytest.raises(CompileError, match=r"'memref.load' gives 1 indices for 2 dimensions of A"):
        interpreter(text).compiled("f")


def test_layouts_and_types_without_a_meaning() -> None:
    text = function("", "%A: memref<*xf32>")
    with pytest.raises(CompileError, match=r"no array has elements of memref<\*xf32>"):
        interpreter(text).call("f", floats(2, 2))
    text = function("%s = arith.addf %a, %a : f128", "%a: f128")
    with pytest.raises(CompileError, match=r"cannot compute 'arith.addf' on f128"):
        interpreter(text).compiled("f")
    with pytest.raises(CompileError, match=r"vectors of one dimension only, 'vector.broadcast' has vector<2x2xf32>"):
        interpreter(function("%s = vector.broadcast %a : f32 to vector<2x2xf32>", "%a: f32")).compiled("f")


def test_functions_that_cannot_run() -> None:
    run = interpreter("func.func private @g(f32) -> f32 func.func @main() { func.return }")
    with pytest.raises(CompileError, match=r"the module has no function @mian, did you mean 'main'?"):
        run.call("mian")
    with pytest.raises(CompileError, match="function @g has no body to interpret"):
        run.call("g", 1.0)


ADD = function(
    """tir.for %i in 4 { tir.for %j in 6 {
      %a = memref.load %A[%i, %j] : memref<4x6xf32>
      %b = arith.mulf %a, %s : f32
      memref.store %b, %B[%i, %j] : memref<4x6xf32>
    } }""",
    "%A: memref<4x6xf32>, %B: memref<4x6xf32>, %s: f32",
)


def test_wrong_arguments() -> None:
    run = interpreter(ADD)
    good, scalar = floats(4, 6), 1.0
    cases: list[tuple[type[Exception], str, tuple[Any, ...], dict[str, Any]]] = [
        (TypeError, r"f: expected 3 arguments, got 2, without 's'", (good, good), {}),
        (TypeError, r"f: expected 3 arguments, got 4", (good, good, scalar, 1), {}),
        (TypeError, r"f: unknown argument 'x'", (good, good), {"x": 1}),
        (TypeError, r"f: argument 'B' is given twice", (good, good), {"B": good, "s": 1.0}),
        (TypeError, r"f: argument 1 \('A'\): expected an array A: float32\[4, 6\], got list", ([1], good, scalar), {}),
        (TypeError, r"\('A'\): expected elements of type float32, got float64", (np.zeros((4, 6)), good, scalar), {}),
        (ValueError, r"\('B'\): expected rank 2 \(shape \(4, 6\)\), got shape \(4,\)", (good, floats(4), scalar), {}),
        (ValueError, r"\('B'\): expected shape \(4, 6\), got shape \(6, 4\)", (good, floats(6, 4), scalar), {}),
        (TypeError, r"argument 3 \('s'\): expected a number \(float32\), got str 'x'", (good, floats(4, 6), "x"), {}),
        (
            ValueError,
            r"\('B'\): expected an output .*, got one that overlaps argument 1 \('A'\)",
            (good, good, 1.0),
            {},
        ),
    ]
    for error, message, positional, named in cases:
        with pytest.raises(error, match=message):
            run.call("f", *positional, **named)
    constant = floats(4, 6)
    constant.flags.writeable = False
    run.call("f", constant, good, scalar)
    with pytest.raises(ValueError, match=r"argument 2 \('B'\): expected a writable array"):
        run.call("f", good, constant, scalar)


def test_wrong_scalars() -> None:
    run = interpreter(function("", "%n: i8, %i: index, %t: i1"))
    run.call("f", -128, 5, True)
    with pytest.raises(ValueError, match=r"argument 1 \('n'\): expected an integer from -128 to 127 \(int8\), got 128"):
        run.call("f", 128, 5, True)
    with pytest.raises(TypeError, match=r"argument 2 \('i'\): expected an integer \(int64\), got float 1.5"):
        run.call("f", 1, 1.5, True)


def test_unknown_order() -> None:
    with pytest.raises(ValueError, match=r"unknown order 'revers' of parallel iterations, did you mean 'reversed'?"):
        interpreter(ADD, order="revers")
    with pytest.raises(TypeError, match=r"order is one of forward, .*, got \['a'\]"):
        interpreter(ADD, order=["a"])  # type: ignore[arg-type]


def test_vectors_that_do_not_fit_into_memory() -> None:
    text = function("%v = vector.broadcast %a : f32 to vector<100000000000000000000xf32>", "%a: f32")
    with pytest.raises(InterpreterError, match=r"error: 'vector\.broadcast' needs more memory than there is"):
        interpreter(text).call("f", 1.0)


def test_conversion_to_an_integer_of_odd_width() -> None:
    text = """func.func @f(%x: tensor<4xi32>) -> tensor<4xi17> {
      %y = stablehlo.convert %x : (tensor<4xi32>) -> tensor<4xi17>
      func.return %y : tensor<4xi17>
    }"""
    with pytest.raises(InterpreterError, match="the interpreter does not convert to i17"):
        interpreter(text).call("f", np.zeros(4, np.int32))
