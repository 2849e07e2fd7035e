"""Each op of stablehlo and chlo, over the element types that it takes.

The interpreter, the conversion to tensor expressions, compiled code and XLA give the same."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from stablehlo_examples import EXAMPLES, Example
from tiers import first_tier

import weft
from weft.driver.stablehlo_loops import import_stablehlo_loops
from weft.interp.interpreter import Interpreter
from weft.passes.convert.convert_stablehlo_to_te import convert_stablehlo
from weft.support.errors import CompileError

CASES = {f"{name} {element}": (name, element) for name, one in EXAMPLES.items() for element in one.elements}
FIRST = [f"{name} {one.elements[-1] if 'f32' not in one.elements else 'f32'}" for name, one in EXAMPLES.items()]
TOLERANCES = {"f16": 4e-3, "bf16": 3e-2, "f64": 1e-9, "complex<f64>": 1e-9}


def _numbers(array: Any) -> np.ndarray[Any, Any]:
    """An array for comparisons: complex numbers as their parts, narrow floats as wide ones."""
    found = np.asarray(array)
    if found.dtype.kind == "c":
        found = np.stack([found.real, found.imag], -1)
    return found.astype(np.float64)


def check(found: Any, expected: Any, element: str) -> None:
    results = found if isinstance(found, tuple | list) else (found,)
    wanted = expected if isinstance(expected, tuple | list) else (expected,)
    tolerance = TOLERANCES.get(element, 2e-5)
    for position, (array, other) in enumerate(zip(results, wanted, strict=True)):
        one, two = _numbers(array), _numbers(other)
        assert one.shape == two.shape, f"result {position}"
        label = f"result {position}"
        np.testing.assert_allclose(one, two, rtol=tolerance, atol=tolerance, equal_nan=True, err_msg=label)


def lowered(example: Example, element: str) -> Any:
    """The module as tensor expressions, loops as graph functions."""
    module = weft.parse(example.module(element))
    import_stablehlo_loops(module)
    if any(op.name.startswith(("stablehlo.", "chlo.")) for op in module.walk()):
        convert_stablehlo(module, strict=True)
    module.verify()
    return module


@pytest.mark.parametrize("case", first_tier(CASES, *FIRST))
def test_op(case: str) -> None:
    """The interpreter and the conversion agree."""
    name, element = CASES[case]
    example = EXAMPLES[name]
    module = weft.parse(example.module(element))
    arguments = example.arguments(element)
    expected = Interpreter(module).call("main", *arguments)
    check(Interpreter(lowered(example, element)).call("main", *arguments), expected, element)


@pytest.mark.slow
@pytest.mark.parametrize("case", FIRST)
def test_compiled_op(case: str) -> None:
    name, element = CASES[case]
    example = EXAMPLES[name]
    module, arguments = weft.parse(example.module(element)), example.arguments(element)
    check(weft.build(module)["main"](*arguments), Interpreter(module).call("main", *arguments), element)


UNKNOWN_TO_XLA = (
    *("stablehlo.uniform_quantize", "stablehlo.unary_einsum", "stablehlo.composite", "stablehlo.dynamic_conv"),
)
"""Ops without a lowering in XLA, in JAX's version of the dialect, or of types that JAX does not have."""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed")
@pytest.mark.parametrize("case", [case for case in FIRST if not case.startswith(UNKNOWN_TO_XLA)])
def test_xla(case: str) -> None:
    """The interpreter and XLA's CPU backend agree."""
    from stablehlo_reference import xla_results  # an optional package

    name, element = CASES[case]
    example = EXAMPLES[name]
    arguments = example.arguments(element)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = xla_results(example.module(element), arguments)
    check(Interpreter(weft.parse(example.module(element))).call("main", *arguments), expected, element)


ERRORS = {
    "%r0 = stablehlo.rng %b, %b, %s, distribution = UNIFORM "
    ": (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<3xf32>": (
        "stablehlo.rng: random numbers without a state are not reproducible"
    ),
    "%r0 = stablehlo.set_dimension_size %a, %n, dim = 0 : (tensor<3xf32>, tensor<i32>) -> tensor<3xf32>": (
        "stablehlo.set_dimension_size: the size is computed from data, not from extents"
    ),
    """%r0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>}>
      : (tensor<3xf32>) -> tensor<3xf32>""": "stablehlo.all_gather: ops of several devices and of hosts",
    """%i = stablehlo.replica_id : tensor<ui32>
    %r0 = stablehlo.add %a, %a : tensor<3xf32>""": "stablehlo.replica_id: ops of several devices and of hosts",
    """%z = stablehlo.complex %a, %a : tensor<3xcomplex<f32>>
    %p = stablehlo.compare LT, %z, %z : (tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>) -> tensor<3xi1>
    %r0 = stablehlo.select %p, %a, %a : tensor<3xi1>, tensor<3xf32>""": (
        "stablehlo.compare: complex numbers have no order, got LT"
    ),
    """%r0 = stablehlo.custom_call @nobody(%a) : (tensor<3xf32>) -> tensor<3xf32>""": "@nobody is not known",
}


@pytest.mark.parametrize("text", ERRORS)
def test_refused(text: str) -> None:
    module = weft.parse(f"""func.func @main(%a: tensor<3xf32>, %b: tensor<f32>, %n: tensor<i32>) -> tensor<3xf32> {{
  %s = stablehlo.constant dense<3> : tensor<1xi64>
  {text}
  return %r0 : tensor<3xf32>
}}""")
    with pytest.raises(CompileError, match=ERRORS[text]):
        convert_stablehlo(module, strict=True)


MALFORMED = {
    "stablehlo.reduce_precision %a, format = m5 : tensor<3xf32>": "a format is written as e5m2",
    "stablehlo.reduce_precision %a, format = e0m2 : tensor<3xf32>": "a format has 1 bit of exponent or more, got e0m2",
    '"stablehlo.triangular_solve"(%a) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose '
    "NO_TRANSPOSE>, unit_diagonal = true}> : (tensor<3xf32>) -> tensor<3xf32>": "takes 2 operands, got 1",
    '"stablehlo.batch_norm_training"(%a) <{epsilon = 1.0 : f32, feature_index = 0 : i64}> : (tensor<3xf32>) -> '
    "tensor<3xf32>": "takes 3 operands, got 1",
    '"stablehlo.torch_index_select"(%a, %i) <{batch_dims = 1 : i64, dim = 0 : i64}> : (tensor<3xf32>, tensor<3xi32>) '
    "-> tensor<3xf32>": "0 <= batch_dims <= dim < 1, got 1 and 0",
    '"stablehlo.map"(%a) <{dimensions = array<i64: 0>}> ({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n'
    "stablehlo.return %x : tensor<f32>\n}) : (tensor<3xf32>) -> tensor<3xf32>": (
        "an element of each of 1 operands, got 2"
    ),
    "stablehlo.rng_bit_generator %k, algorithm = PHILOX : (tensor<2xui64>) -> tensor<3xf32>": "has 2 results",
    '"chlo.constant_like"(%a, %a) <{value = 1.0 : f32}> : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>': (
        "takes 1 operand, got 2"
    ),
    '"chlo.top_k"(%a) <{k = 1 : i64}> : (tensor<3xf32>) -> tensor<3xf32>': "has 1 operand and 2 results",
    '"chlo.ragged_dot"(%a, %a) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<>}> : (tensor<3xf32>, tensor<3xf32>) '
    "-> tensor<3xf32>": "takes 3 operands, got 2",
}


@pytest.mark.parametrize("text", MALFORMED)
def test_malformed(text: str) -> None:
    with pytest.raises(CompileError, match=MALFORMED[text]):
        weft.parse(f"""func.func @main(%a: tensor<3xf32>, %i: tensor<3xi32>, %k: tensor<2xui64>) -> tensor<3xf32> {{
  %r0 = {text}
  return %r0 : tensor<3xf32>
}}""")


SCAN = """func.func @main(%i: tensor<2x5xf32>, %z: tensor<{n}xf32>) -> (tensor<2x5xf32>, tensor<{n}xf32>) {{
  %0:2 = chlo.scan(%i) inits (%z) dimension={axis} attributes {{is_reverse = {reverse}}} {{
  ^bb0(%x: tensor<{n}xf32>, %c: tensor<{n}xf32>):
    %s = stablehlo.add %x, %c : tensor<{n}xf32>
    %y = stablehlo.multiply %s, %x : tensor<{n}xf32>
    stablehlo.return %y, %s : tensor<{n}xf32>, tensor<{n}xf32>
  }} : (tensor<2x5xf32>, tensor<{n}xf32>) -> (tensor<2x5xf32>, tensor<{n}xf32>)
  return %0#0, %0#1 : tensor<2x5xf32>, tensor<{n}xf32>
}}"""


@pytest.mark.parametrize(("axis", "reverse"), [(0, "true"), (1, "false")])
def test_scan(axis: int, reverse: str) -> None:
    """Sums of slices, and the products of slices with them."""
    count = (5, 2)[axis]
    module = weft.parse(SCAN.format(n=count, axis=axis, reverse=reverse))
    x, start = np.arange(10, dtype=np.float32).reshape(2, 5), np.ones(count, np.float32)
    ordered = np.flip(x, axis) if reverse == "true" else x
    sums = np.cumsum(ordered, axis) + np.expand_dims(start, axis)
    products = sums * ordered
    expected = (np.flip(products, axis) if reverse == "true" else products, np.take(sums, -1, axis))
    check(Interpreter(module).call("main", x, start), expected, "f32")
    check(weft.build(module)["main"](x, start), expected, "f32")


def test_registered_function() -> None:
    @weft.register_func("stablehlo_doubled", override=True)
    def doubled(x: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> None:  # pyright: ignore[reportUnusedFunction]
        out[...] = 2 * x

    module = weft.parse("""func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.add %a, %a : tensor<2x3xf32>
  %1 = stablehlo.custom_call @stablehlo_doubled(%0) {api_version = 2 : i32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}""")
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(Interpreter(module).call("main", x), 4 * x)
    np.testing.assert_array_equal(weft.build(module)["main"](x), 4 * x)


def test_unregistered_function() -> None:
    with pytest.raises(CompileError, match="no function is registered as 'nobody'"):
        weft.build("""func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.custom_call @nobody(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}""")


def test_random_bits() -> None:
    """The bits of XLA's CPU backend, for odd extents and states that overflow."""
    expected = {
        ("THREE_FRY", "5xui32"): [1798164156, 593823273, 2832737601, 1410502394, 2311328035],
        ("THREE_FRY", "2x3xui32"): [1798164156, 2832737601, 2311328035, 593823273, 1410502394, 3188788462],
        ("THREE_FRY", "2xui64"): [2550451538936843964, 6058061655992444225],
        ("PHILOX", "5xui32"): [1698443268, 930484462, 164784441, 2045596055, 1963713206],
        ("PHILOX", "2xui64"): [3996400335424598020, 8785768157216401721],
    }
    state = np.array([0x123456789ABCDEF0, 0xFEDCBA98FFFFFFFE], np.uint64)
    for (algorithm, type_), wanted in expected.items():
        module = weft.parse(f"""func.func @main(%k: tensor<2xui64>) -> tensor<{type_}> {{
  %s, %0 = stablehlo.rng_bit_generator %k, algorithm = {algorithm}
    : (tensor<2xui64>) -> (tensor<2xui64>, tensor<{type_}>)
  return %0 : tensor<{type_}>
}}""")
        assert np.asarray(Interpreter(module).call("main", state)).ravel().tolist() == wanted
        convert_stablehlo(module, strict=True)
        assert np.asarray(Interpreter(module).call("main", state)).ravel().tolist() == wanted


@pytest.mark.parametrize(("element", "first", "last"), [("i4", -8, 7), ("ui4", 0, 15), ("i2", -2, 1), ("ui2", 0, 3)])
def test_small_integers(element: str, first: int, last: int) -> None:
    """All pairs of integers of 2 and 4 bits."""
    values = np.arange(first, last + 1)
    x, y = (side.ravel() for side in np.meshgrid(values, values))
    size, width = len(x), int(element[-1])
    unsigned = x & ((1 << width) - 1)
    amount = y & ((1 << width) - 1)
    results: dict[str, Any] = {
        "add": x + y,
        "multiply": x * y,
        "shift_left": np.where(amount < width, unsigned << np.minimum(amount, 7), 0),
        "shift_right_logical": np.where(amount < width, unsigned >> np.minimum(amount, 7), 0),
        "count_leading_zeros": width - np.array([int(n).bit_length() for n in unsigned]),
        "popcnt": np.array([int(n).bit_count() for n in unsigned]),
    }
    dtype = EXAMPLES["stablehlo.add"].arguments(element)[0].dtype
    for name, wanted in results.items():
        operands = "%a" if name in ("count_leading_zeros", "popcnt") else "%a, %b"
        type_ = f"tensor<{size}x{element}>"
        module = weft.parse(f"""func.func @main(%a: {type_}, %b: {type_}) -> {type_} {{
  %0 = stablehlo.{name} {operands} : {type_}
  return %0 : {type_}
}}""")
        half = 0 if element.startswith("u") else 1 << (width - 1)
        expected = (np.asarray(wanted) + half) % (1 << width) - half
        convert_stablehlo(converted := module.clone(), strict=True)
        for one in (module, converted):
            found = Interpreter(one).call("main", x.astype(dtype), y.astype(dtype))
            np.testing.assert_array_equal(np.asarray(found).astype(np.int64), expected, err_msg=name)
