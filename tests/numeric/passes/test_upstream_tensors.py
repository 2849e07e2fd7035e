"""Functions over tensors of upstream dialects: padding, sizes that calls give, narrow elements through views, copies.

Expected values are written down or NumPy's; `fuzz/shaped_programs.py` makes random ones.
"""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.context import Context

import weft
from weft.interp.interpreter import Interpreter
from weft.passes.convert.convert_linalg_to_tir import ConvertLinalgToTirPass
from weft.support.errors import CompileError

INT4 = np.array([-8, -1, 1, 7], np.float32).astype(ml_dtypes.int4)
X = np.arange(5, dtype=np.float32)


def built(text: str, *arguments: Any, target: str = "llvm") -> Any:
    """What the function computes; its results are the interpreter's, too."""
    module = weft.parse(text)
    found = weft.build(module.clone(), target)["f"](*arguments)
    wanted = Interpreter(module).call("f", *arguments)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))
    return found


def of_f32(operand: str, shape: str, element: str, conversion: str) -> str:
    """The end of a function that converts `%v`."""
    dims = ", ".join(f"d{at}" for at in range(shape.count("x") + 1))
    kinds = ", ".join(['"parallel"'] * (shape.count("x") + 1))
    map_ = f"affine_map<({dims}) -> ({dims})>"
    return f"""
  %e = tensor.empty() : tensor<{shape}xf32>
  %r = linalg.generic {{indexing_maps = [{map_}, {map_}], iterator_types = [{kinds}]}}
      ins({operand} : tensor<{shape}x{element}>) outs(%e : tensor<{shape}xf32>) {{
  ^bb0(%a: {element}, %b: f32):
    {conversion}
    linalg.yield %c : f32
  }} -> tensor<{shape}xf32>
  return %r : tensor<{shape}xf32>
}}"""


UNSIGNED = "%w = arith.extui %a : i4 to i32\n    %c = arith.uitofp %w : i32 to f32"
SIGNED = "%c = arith.sitofp %a : i4 to f32"


def test_constants_of_four_bits_through_a_view() -> None:
    head = """func.func @f() -> tensor<2x2xf32> {
  %x = arith.constant dense<[-8, -1, 1, 7]> : tensor<4xi4>
  %v = tensor.expand_shape %x [[0, 1]] output_shape [2, 2] : tensor<4xi4> into tensor<2x2xi4>"""
    assert built(head + of_f32("%v", "2x2", "i4", UNSIGNED)).tolist() == [[8, 15], [1, 7]]


VIEWS = {
    "expand_shape": ("2x2", "tensor.expand_shape %x [[0, 1]] output_shape [2, 2] : tensor<4xi4> into tensor<2x2xi4>"),
    "extract_slice": ("2", "tensor.extract_slice %x[1] [2] [2] : tensor<4xi4> to tensor<2xi4>"),
    "concat": ("8", "tensor.concat dim(0) %x, %x : (tensor<4xi4>, tensor<4xi4>) -> tensor<8xi4>"),
    "cast": ("4", "tensor.cast %x : tensor<4xi4> to tensor<4xi4>"),
}
RESULTS = {
    "expand_shape": [[8, 15], [1, 7]],
    "extract_slice": [15, 7],
    "concat": [8, 15, 1, 7] * 2,
    "cast": [8, 15, 1, 7],
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n == "extract_slice" else pytest.mark.slow) for n in VIEWS]
)
@pytest.mark.parametrize("target", ["llvm", pytest.param("c", marks=pytest.mark.slow)])
def test_arguments_of_four_bits_through_views(name: str, target: str) -> None:
    shape, view = VIEWS[name]
    text = (
        f"func.func @f(%x: tensor<4xi4>) -> tensor<{shape}xf32> {{\n  %v = {view}{of_f32('%v', shape, 'i4', UNSIGNED)}"
    )
    assert built(text, INT4, target=target).tolist() == RESULTS[name]
    with_sign = built(text.replace(UNSIGNED, SIGNED), INT4, target=target)
    assert with_sign.ravel().tolist() == [n - 16 if n > 7 else n for n in np.ravel(RESULTS[name]).tolist()]


ARITHMETIC = {
    "addi": lambda x, y: x + y,
    "muli": lambda x, y: x * y,
    "divui": lambda x, y: (x & 15) // (y & 15),
    "maxui": lambda x, y: np.where((x & 15) > (y & 15), x, y),
    "shrui": lambda x, y: (x & 15) >> 1,
}


@pytest.mark.parametrize("op", [pytest.param(op, marks=[] if op == "divui" else pytest.mark.slow) for op in ARITHMETIC])
def test_arithmetic_of_four_bits(op: str) -> None:
    """All pairs, as results of four bits: low bits in memory, other bits zero."""
    x, y = (a.ravel() for a in np.meshgrid(np.arange(-8, 8), np.arange(1, 8) if op == "divui" else np.arange(-8, 8)))
    y = np.ones_like(y) if op == "shrui" else y
    text = f"""func.func @f(%x: tensor<{x.size}xi4>, %y: tensor<{x.size}xi4>) -> tensor<{x.size}xi4> {{
  %z = arith.{op} %x, %y : tensor<{x.size}xi4>
  return %z : tensor<{x.size}xi4>
}}"""
    arguments = [a.astype(np.float32).astype(ml_dtypes.int4) for a in (x, y)]
    found = built(text, *arguments)
    assert found.view(np.uint8).tolist() == (ARITHMETIC[op](x, y) & 15).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("element", ["f8E4M3FN", "f8E5M2", "f4E2M1FN"])
@pytest.mark.parametrize("wide", ["f16", "f32", "f64"])
def test_small_floats(element: str, wide: str) -> None:
    """Through a wider type and back: every code but NaNs stays, sums are rounded once."""
    dtype = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2, "f4E2M1FN": ml_dtypes.float4_e2m1fn}
    codes = np.arange(16 if element == "f4E2M1FN" else 256, dtype=np.uint8).view(dtype[element])
    codes = codes[~np.isnan(codes.astype(np.float32))]
    tensor = f"tensor<{codes.size}x{element}>"
    text = f"""func.func @f(%x: {tensor}) -> {tensor} {{
  %w = arith.extf %x : {tensor} to tensor<{codes.size}x{wide}>
  %y = arith.truncf %w : tensor<{codes.size}x{wide}> to {tensor}
  return %y : {tensor}
}}"""
    np.testing.assert_array_equal(built(text, codes).view(np.uint8), codes.view(np.uint8))


# Operations that are the only one of a function


def test_arith_alone() -> None:
    text = """func.func @f(%x: tensor<5xf32>) -> tensor<5xf32> {
  %y = arith.addf %x, %x : tensor<5xf32>
  return %y : tensor<5xf32>
}"""
    assert built(text, X).tolist() == [0, 2, 4, 6, 8]


ALONE = {
    "math": ("tensor<5xf32>", "math.absf %x : tensor<5xf32>", [0, 1, 2, 3, 4]),
    "cast": ("tensor<5xi8>", "arith.fptosi %x : tensor<5xf32> to tensor<5xi8>", [0, 1, 2, 3, 4]),
    "pad": (
        "tensor<8xf32>",
        """tensor.pad %x low[2] high[1] {
  ^bb0(%i: index):
    %k = arith.index_cast %i : index to i32
    %s = arith.sitofp %k : i32 to f32
    tensor.yield %s : f32
  } : tensor<5xf32> to tensor<8xf32>""",
        [0, 1, 0, 1, 2, 3, 4, 7],
    ),
    "insert": ("tensor<5xf32>", "tensor.insert %nine into %x[%two] : tensor<5xf32>", [0, 1, 9, 3, 4]),
    "gather": (
        "tensor<2x1xf32>",
        "tensor.gather %x[%places] gather_dims([0]) : (tensor<5xf32>, tensor<2x1xindex>) -> tensor<2x1xf32>",
        [[3], [1]],
    ),
    "slice": ("tensor<2xf32>", "tensor.extract_slice %x[1] [2] [2] : tensor<5xf32> to tensor<2xf32>", [1, 3]),
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in ("pad", "insert") else pytest.mark.slow) for n in ALONE]
)
def test_alone(name: str) -> None:
    type_, op, wanted = ALONE[name]
    text = f"""func.func @f(%x: tensor<5xf32>) -> {type_} {{
  %nine = arith.constant 9.0 : f32
  %two = arith.constant 2 : index
  %places = arith.constant dense<[[3], [1]]> : tensor<2x1xindex>
  %unused = arith.constant dense<0.0> : tensor<4x4xf32>
  %y = {op}
  return %y : {type_}
}}"""
    assert built(text, X).tolist() == wanted


def test_indices_are_copied() -> None:
    text = "func.func @f(%x: tensor<3xindex>) -> tensor<3xindex> {\n  return %x : tensor<3xindex>\n}"
    module = weft.parse(text.replace("return", "%z = arith.addi %x, %x : tensor<3xindex>\n  return"))
    assert weft.build(module)["f"](np.array([3, 1, 2])).tolist() == [3, 1, 2]


# Sizes that calls give

PAD = """func.func @f(%x: tensor<5xf32>, %p: index) -> tensor<?xf32> {
  %c = arith.constant 3.0 : f32
  %y = tensor.pad %x low[%p] high[1] {
  ^bb0(%i: index):
    tensor.yield %c : f32
  } : tensor<5xf32> to tensor<?xf32>
  return %y : tensor<?xf32>
}"""


def test_padding_by_a_parameter() -> None:
    library = weft.build(PAD)
    assert library["f"](X, 2).tolist() == [3, 3, 0, 1, 2, 3, 4, 3]
    assert library["f"](X, 0).tolist() == [0, 1, 2, 3, 4, 3]
    with pytest.raises(ValueError, match="p must be at least 0, got -1"):
        library["f"](X, -1)
    with pytest.raises(ValueError, match=r"expected y_d0 == p \+ 6, got y_d0 = 7 \(axis 0 of .y.\), p = 2"):
        library["f"](X, 2, np.zeros(7, np.float32))


def test_cast_of_a_constant() -> None:
    text = """func.func @f() -> tensor<?xf32> {
  %c = arith.constant dense<[1.0, -2.0, 3.0]> : tensor<3xf32>
  %d = tensor.cast %c : tensor<3xf32> to tensor<?xf32>
  %c0 = arith.constant 0 : index
  %n = tensor.dim %d, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.abs ins(%d : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}"""
    assert built(text).tolist() == [1, 2, 3]


REFUSED_CALLS = {
    "cast": (
        "(%x: tensor<?xf32>) -> tensor<3xf32>",
        "tensor.cast %x : tensor<?xf32> to tensor<3xf32>",
        (X,),
        "expected x_d0 == 3",
    ),
    "insert": (
        "(%x: tensor<5xf32>, %p: index) -> tensor<5xf32>",
        "tensor.insert %c into %x[%p] : tensor<5xf32>",
        (X, 5),
        "p must be less than 5, got 5",
    ),
    "slice": (
        "(%x: tensor<?xf32>, %p: index) -> tensor<2xf32>",
        "tensor.extract_slice %x[%p] [2] [1] : tensor<?xf32> to tensor<2xf32>",
        (X, 4),
        r"x_d0 must be greater than p \+ 1, got p = 4",
    ),
    "splat": (
        "(%p: index) -> tensor<?xf32>",
        "tensor.splat %c[%p] : tensor<?xf32>",
        (-1,),
        "expected an extent of at least 0, got y_d0 = p = -1",
    ),
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n == "slice" else pytest.mark.slow) for n in REFUSED_CALLS]
)
def test_calls_are_checked(name: str) -> None:
    signature, op, arguments, fact = REFUSED_CALLS[name]
    result = signature.rpartition(" -> ")[2]
    library = weft.build(
        f"func.func @f{signature} {{\n  %c = arith.constant 1.0 : f32\n  %y = {op}\n  return %y : {result}\n}}"
    )
    with pytest.raises(ValueError, match=fact):
        library["f"](*arguments)


def test_results_without_elements() -> None:
    text = """func.func @f(%x: tensor<0x3xf32>, %y: tensor<2xf32>) -> (tensor<0x3xf32>, tensor<2xf32>) {
  %a = arith.addf %x, %x : tensor<0x3xf32>
  %b = arith.addf %y, %y : tensor<2xf32>
  return %a, %b : tensor<0x3xf32>, tensor<2xf32>
}"""
    empty, twice = weft.build(text)["f"](np.zeros((0, 3), np.float32), np.ones(2, np.float32))
    assert (empty.shape, twice.tolist()) == ((0, 3), [2, 2])


# Buffers and errors


def test_a_buffer_that_is_taken_and_returned() -> None:
    text = """func.func @f(%A: memref<4xf32>) -> memref<4xf32> {
  linalg.abs ins(%A : memref<4xf32>) outs(%A : memref<4xf32>)
  return %A : memref<4xf32>
}"""
    array = -np.ones(4, np.float32)
    weft.build(text)["f"](array)
    assert array.tolist() == [1, 1, 1, 1]


ERRORS = {
    "chlo.lgamma: elements of type int32 are not supported": """func.func @f(%x: tensor<4xi32>) -> tensor<4xi32> {
  %0 = stablehlo.abs %x : tensor<4xi32>
  %1 = chlo.lgamma %0 : tensor<4xi32> -> tensor<4xi32>
  return %1 : tensor<4xi32>
}""",
    "@f returns a buffer: results are in buffers that callers pass": """func.func @f() -> memref<4xf32> {
  %A = memref.alloc() : memref<4xf32>
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %x = arith.constant 1.0 : f32
  scf.for %i = %c0 to %c4 step %c4 {
    memref.store %x, %A[%i] : memref<4xf32>
  }
  return %A : memref<4xf32>
}""",
    "@f has 2 blocks: structured loops are raised, branches are not": """func.func @f(%A: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  cf.br ^bb1
^bb1:
  %x = memref.load %A[%c0] : memref<4xf32>
  memref.store %x, %A[%c0] : memref<4xf32>
  return
}""",
    "test.op is not allowed at level 'te'": """func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = "test.op"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}""",
    "'arith.addf' of tensors does not belong among tensor expressions": """
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = te.compute "a" (%i) : tensor<4xf32> {
    %e = tensor.extract %x[%i] : tensor<4xf32>
    te.yield %e : f32
  }
  %z = arith.addf %y, %x : tensor<4xf32>
  func.return %z : tensor<4xf32>
}""",
}


@pytest.mark.parametrize("message", ERRORS)
def test_the_cause_is_named(message: str) -> None:
    with pytest.raises(CompileError) as refused:
        weft.build(ERRORS[message])
    assert message in refused.value.message
    assert refused.value.location is not None


def test_linalg_of_another_level_stays() -> None:
    """Beside operations of weft's levels, tensors are none of the pass's."""
    module = weft.parse("""func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.relu %x : tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %z = linalg.exp ins(%y : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  func.return %z : tensor<4xf32>
}""")
    with pytest.raises(
        CompileError, match=r"linalg\.exp stays as it is: it is on tensors, in a function of another level"
    ):
        ConvertLinalgToTirPass(strict=True).apply(Context(), module)


@pytest.mark.parametrize("source", ["f16", "f32", "f64"])
@pytest.mark.parametrize("target", ["i2", "i3", "i4"])
def test_floats_to_integers_of_fewer_than_8_bits(source: str, target: str) -> None:
    """As the interpreter computes on the program itself: from 2^63 on all bits are set."""
    for op, extension in (("fptosi", "extsi"), ("fptoui", "extui")):
        text = f"""func.func @f(%A: memref<8x{source}>, %B: memref<8xi32>) {{
  affine.for %i = 0 to 8 {{
    %x = affine.load %A[%i] : memref<8x{source}>
    %y = arith.{op} %x : {source} to {target}
    %z = arith.{extension} %y : {target} to i32
    affine.store %z, %B[%i] : memref<8xi32>
  }}
  return
}}"""
        a = np.array(
            [np.inf, -np.inf, np.nan, 5.7, -3.2, 300.0, 3e4, 1e20], {"f16": "f2", "f32": "f4", "f64": "f8"}[source]
        )
        expected, result = np.zeros(8, np.int32), np.zeros(8, np.int32)
        weft.Interpreter(weft.parse(text)).call("f", a, expected)
        weft.build(text)["f"](a, result)
        np.testing.assert_array_equal(result, expected)
        assert result[0] == (-1 if op == "fptosi" else (1 << int(target[1:])) - 1)
