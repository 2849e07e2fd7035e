"""Forms that MLIR's tools print: raw dimension numbers, trailing commas, constants of arith, one result without
parentheses."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.interp.interpreter import Interpreter
from weft.support.errors import CompileError

CONVOLUTION = """
func.func @f(%a: tensor<1x8x8x3xf32>, %k: tensor<3x3x3x4xf32>) -> tensor<1x6x6x4xf32> {
  %r = "stablehlo.convolution"(%a, %k) {
    batch_group_count = 1 : i64,
    dimension_numbers = #stablehlo.conv<raw
      input_batch_dimension = 0,
      input_feature_dimension = 3,
      input_spatial_dimensions = [1, 2],
      kernel_input_feature_dimension = 2,
      kernel_output_feature_dimension = 3,
      kernel_spatial_dimensions = [0, 1],
      output_batch_dimension = 0,
      output_feature_dimension = 3,
      output_spatial_dimensions = [1, 2],
    >,
    feature_group_count = 1 : i64,
    padding = dense<0> : tensor<2x2xi64>,
    rhs_dilation = array<i64: 1, 1>,
    window_strides = array<i64: 1, 1>
  } : (tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<1x6x6x4xf32>
  return %r : tensor<1x6x6x4xf32>
}
"""
CONSTANTS = """
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %unused = arith.constant 1 : index
  %c = arith.constant dense<2.0> : tensor<4xf32>
  %d = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %t = arith.constant dense<[true, false, true, true]> : tensor<4xi1>
  %r = stablehlo.multiply %a, %c : tensor<4xf32>
  %s = stablehlo.add %r, %d : tensor<4xf32>
  %u = stablehlo.select %t, %s, %a : tensor<4xi1>, tensor<4xf32>
  return %u : tensor<4xf32>
}
"""
LOOP = """
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant dense<0> : tensor<i32>
  %n = arith.constant dense<5> : tensor<i32>
  %r:2 = stablehlo.while(%i = %c0, %t = %a) : tensor<i32>, tensor<4xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = arith.constant dense<1> : tensor<i32>
    %half = arith.constant dense<0.5> : tensor<4xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %u = stablehlo.multiply %t, %half : tensor<4xf32>
    stablehlo.return %j, %u : tensor<i32>, tensor<4xf32>
  }
  return %r#1 : tensor<4xf32>
}
"""
CHOICE = """
func.func @f(%a: memref<4xf32>, %c: i1, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = scf.if %c -> index {
    scf.yield %c0 : index
  } else {
    scf.yield %c1 : index
  }
  memref.store %x, %a[%i] : memref<4xf32>
  return
}
"""


def test_raw_dimension_numbers_with_trailing_comma() -> None:
    module = weft.parse(CONVOLUTION)
    raw = str(module)
    assert str(weft.parse(raw)) == raw
    spelled = weft.parse(
        CONVOLUTION[: CONVOLUTION.index("#stablehlo.conv<raw")]
        + "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>"
        + CONVOLUTION[CONVOLUTION.index(",\n    feature_group_count") :]
    )
    assert str(spelled) == raw


def test_constants_of_arith() -> None:
    a = np.arange(4, dtype=np.float32)
    got = np.zeros(4, np.float32)
    weft.build(weft.parse(CONSTANTS))["f"](a, got)
    np.testing.assert_array_equal(got, np.where([True, False, True, True], 2 * a + [1, 2, 3, 4], a))
    np.testing.assert_array_equal(Interpreter(weft.parse(CONSTANTS)).call("f", a), got)


def test_constants_of_arith_in_loops() -> None:
    a = np.arange(4, dtype=np.float32)
    got = np.zeros(4, np.float32)
    weft.build(weft.parse(LOOP))["f"](a, got)
    np.testing.assert_array_equal(got, a / 32)


def test_other_operations_of_arith_are_refused() -> None:
    text = CONSTANTS.replace("stablehlo.multiply %a, %c", "arith.mulf %a, %c")
    with pytest.raises(CompileError, match=r"arith\.mulf"):
        weft.build(weft.parse(text))


@pytest.mark.parametrize("form", ["index", "(index)"])
def test_one_result_of_a_condition(form: str) -> None:
    module = weft.parse(CHOICE.replace("-> index", f"-> {form}"))
    for condition, place in ((True, 0), (False, 1)):
        array = np.zeros(4, np.float32)
        weft.build(module.clone())["f"](array, condition, 3.0)
        assert array[place] == 3
        assert np.count_nonzero(array) == 1


SPELLINGS = (
    "stablehlo.exponential %x {result_accuracy = #stablehlo.result_accuracy<mode = "
    "#stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<4xf32>",
    '"stablehlo.tanh"(%x) <{result_accuracy = #stablehlo.result_accuracy<atol = 1.0e-05, rtol = 0.0, ulps = 1, mode = '
    "#stablehlo.result_accuracy_mode<TOLERANCE>>}> : (tensor<4xf32>) -> tensor<4xf32>",
    '"stablehlo.composite"(%x) <{decomposition = @other, name = "a.b", version = 1 : i32}> : (tensor<4xf32>) -> '
    "tensor<4xf32>",
    "chlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>",
    '"stablehlo.dynamic_broadcast_in_dim"(%x, %n) <{broadcast_dimensions = array<i64: 0>, known_expanding_dimensions = '
    "array<i64>, known_nonexpanding_dimensions = array<i64: 0>}> : (tensor<4xf32>, tensor<1xi32>) -> tensor<4xf32>",
    "stablehlo.constant() <{value = dense<1.0> : tensor<4xf32>}> : () -> tensor<4xf32>",
)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spelling(spelling: str) -> None:
    text = f"""
    func.func private @other(%x: tensor<4xf32>) -> tensor<4xf32> {{
      return %x : tensor<4xf32>
    }}
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %n = stablehlo.constant dense<4> : tensor<1xi32>
      %r = {spelling}
      return %r : tensor<4xf32>
    }}"""
    module = weft.parse(text)
    assert str(weft.parse(str(module))) == str(module)
    x = np.array([0.5, -1.0, 2.0, 0.0], np.float32)
    expected = np.asarray(Interpreter(module).call("f", x))
    np.testing.assert_allclose(weft.build(module)["f"](x), expected, rtol=2e-7)


PARSED = (
    "%r = stablehlo.tuple %x, %n : tuple<tensor<4xf32>, tensor<i32>>\n"
    "%s = stablehlo.get_tuple_element %r[1] : (tuple<tensor<4xf32>, tensor<i32>>) -> tensor<i32>",
    '%r = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = '
    "1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<8xf32>",
    '%r = "stablehlo.custom_call"(%x) <{call_target_name = "foo", operand_layouts = [dense<0> : tensor<1xindex>], '
    "result_layouts = [dense<0> : tensor<1xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<"
    "output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]}> : (tensor<4xf32>) -> tensor<4xf32>",
)


@pytest.mark.parametrize("lines", PARSED)
def test_refused_by_name(lines: str) -> None:
    """Ops that weft does not compile are read, printed, and named by the error."""
    module = weft.parse(
        f"func.func @f(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {{\n{lines}\nreturn %x : tensor<4xf32>\n}}"
    )
    assert str(weft.parse(str(module))) == str(module)
    with pytest.raises(
        CompileError, match=r"stablehlo\.(tuple: tuples|all_gather: ops of|custom_call: no function .*'foo')"
    ):
        weft.build(module)


BOUNDED = """
func.func @f(%x: tensor<?x3xf32, #stablehlo.bounds<5, ?>>, %y: tensor<4xf32>)
    -> (tensor<?x3xf32, #stablehlo.bounds<5, ?>>, tensor<?xf32, #stablehlo.bounds<4>>) {
  %c = stablehlo.constant dense<3> : tensor<i32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32, #stablehlo.bounds<5, ?>>) -> tensor<i32>
  %r = stablehlo.add %x, %x : tensor<?x3xf32, #stablehlo.bounds<5, ?>>
  %s = stablehlo.set_dimension_size %y, %SIZE, dim = 0
    : (tensor<4xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<4>>
  return %r, %s : tensor<?x3xf32, #stablehlo.bounds<5, ?>>, tensor<?xf32, #stablehlo.bounds<4>>
}
"""


@pytest.mark.parametrize(("size", "count"), [("c", 3), ("n", 2)])
def test_dimension_sizes(size: str, count: int) -> None:
    module = weft.parse(BOUNDED.replace("%SIZE", f"%{size}"))
    assert str(weft.parse(str(module))) == str(module)
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(4, dtype=np.float32)
    for found in (Interpreter(module).call("f", x, y), weft.build(module)["f"](x, y)):
        np.testing.assert_array_equal(found[0], x + x)
        np.testing.assert_array_equal(found[1], y[:count])


def test_sizes_beyond_bounds() -> None:
    y = np.arange(4, dtype=np.float32)
    built = weft.build(BOUNDED.replace("%SIZE", "%n"))["f"]
    with pytest.raises(ValueError, match="at most 4, got 5"):
        built(np.zeros((5, 3), np.float32), y)
    with pytest.raises(ValueError, match="at most 5, got 6"):
        weft.build(BOUNDED.replace("%SIZE", "%c"))["f"](np.zeros((6, 3), np.float32), y)
    with pytest.raises(CompileError, match="the size of dimension 0 is 0 to 4, got 7"):
        weft.build(BOUNDED.replace("%SIZE", "%c").replace("dense<3>", "dense<7>"))


@pytest.mark.parametrize("start", ["%zero", "%i"])
@pytest.mark.parametrize("shape", ["3x?", "?x?"])
def test_slices_of_a_result(shape: str, start: str) -> None:
    """A result of dynamic extents that another one reads at clamped indices is written before: calls allocate it. The
    slice needs an element."""
    text = f"""
    func.func @f(%x: tensor<{shape}xf32>, %i: tensor<i32>) -> (tensor<{shape}xf32>, tensor<1x1xf32>) {{
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %y = stablehlo.multiply %x, %x : tensor<{shape}xf32>
      %z = stablehlo.dynamic_slice %y, %zero, {start}, sizes = [1, 1]
        : (tensor<{shape}xf32>, tensor<i32>, tensor<i32>) -> tensor<1x1xf32>
      return %y, %z : tensor<{shape}xf32>, tensor<1x1xf32>
    }}"""
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    built = weft.build(text)["f"]
    y, z = built(x, np.int32(1))
    np.testing.assert_array_equal(y, x * x)
    np.testing.assert_array_equal(z, (x * x)[:1, :1] if start == "%zero" else (x * x)[:1, 1:])
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        built(x[:, :0], np.int32(0))
