"""One small function for each op of stablehlo and chlo and form of it, over an element type that is to be chosen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

INTEGERS = ("i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64")
FLOATS = ("f16", "bf16", "f32", "f64")
COMPLEX = ("complex<f32>", "complex<f64>")
NARROW_INTEGERS = ("i2", "i4", "ui2", "ui4")
NARROW_FLOATS = (
    *("f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E3M4", "f8E4M3", "f8E4M3FN", "f8E4M3FNUZ", "f8E4M3B11FNUZ"),
    *("f8E5M2", "f8E5M2FNUZ", "f8E8M0FNU"),
)
NUMBERS = (*INTEGERS, *FLOATS)
ALL = (*("i1",), *INTEGERS, *FLOATS, *COMPLEX, *NARROW_INTEGERS, *NARROW_FLOATS)
DTYPES: dict[str, Any] = {
    "i1": np.bool_,
    **{f"i{n}": np.dtype(f"int{n}") for n in (8, 16, 32, 64)},
    **{f"ui{n}": np.dtype(f"uint{n}") for n in (8, 16, 32, 64)},
    **{"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64},
    **{"complex<f32>": np.complex64, "complex<f64>": np.complex128},
    **{f"{kind}{n}": getattr(ml_dtypes, f"{'u' * (kind == 'ui')}int{n}") for kind in ("i", "ui") for n in (2, 4)},
    **{
        name: getattr(ml_dtypes, f"float{re.sub(r'^f', '', name).lower()}".replace("e", "_e", 1))
        for name in NARROW_FLOATS
    },
}
"""Element types in the text -> the types of arrays."""


@dataclass(frozen=True)
class Example:
    """A function `@main` of the ops in `text`, whose results are `%r0`, `%r1` and so on."""

    parameters: Sequence[str]
    """The types of `%a`, `%b`, ... as shapes and elements, `T` for the chosen one: "2x3xT"."""
    results: Sequence[str]
    text: str
    elements: Sequence[str] = FLOATS
    positive: Sequence[str] = field(default=())
    """Parameters whose elements are more than 0."""
    private: str = ""
    """Functions that the ops call."""

    def module(self, element: str) -> str:
        """The text of the module over one element type."""

        def typed(shape: str) -> str:
            return f"tensor<{shape}>".replace("T", element)

        names = [f"%{chr(ord('a') + at)}" for at in range(len(self.parameters))]
        parameters = ", ".join(f"{n}: {typed(t)}" for n, t in zip(names, self.parameters, strict=True))
        types = ", ".join(map(typed, self.results))
        values = ", ".join(f"%r{at}" for at in range(len(self.results)))
        text = re.sub(r"\bT\b|(?<=x)T\b", element, self.text)
        private = re.sub(r"\bT\b|(?<=x)T\b", element, self.private)
        body = "\n".join(f"  {line}" for line in text.strip().splitlines())
        return f"func.func @main({parameters}) -> ({types}) {{\n{body}\n  return {values} : {types}\n}}\n{private}"

    def arguments(self, element: str, seed: int = 0) -> list[np.ndarray]:
        """Random arrays for the parameters."""
        random = np.random.RandomState(seed)
        found: list[np.ndarray] = []
        for at, parameter in enumerate(self.parameters):
            extents, name = re.findall(r"\d+(?=x)", parameter), re.sub(r"^(\d+x)*", "", parameter)
            name = name.replace("T", element)
            dtype = DTYPES[name]
            shape = tuple(map(int, extents))
            numbers = random.randn(*shape) * 2
            if np.issubdtype(dtype, np.complexfloating):
                numbers = numbers + 1j * random.randn(*shape)
            elif dtype is np.bool_:
                numbers = numbers > 0
            elif name.startswith("ui"):
                numbers = np.abs(np.round(numbers))
            elif name.startswith("i"):
                numbers = np.round(numbers)
            if chr(ord("a") + at) in self.positive:
                most = 1 if name == "i2" else 3 if name == "ui2" else 7
                whole = name.startswith(("i", "ui"))
                numbers = np.clip(np.abs(numbers), 1, most) if whole else np.abs(numbers) + 0.5
            found.append(np.asarray(numbers).astype(dtype))
        return found


def _unary(name: str, elements: Sequence[str] = FLOATS, result: str = "3xT", **rest: Any) -> Example:
    types = "tensor<3xT> -> tensor<3xT>" if name.startswith("chlo.") else "tensor<3xT>"
    if result != "3xT":
        types = f"(tensor<3xT>) -> tensor<{result}>"
    return Example(["3xT"], [result], f"%r0 = {name} %a : {types}", elements, **rest)


def _binary(name: str, elements: Sequence[str] = NUMBERS, **rest: Any) -> Example:
    types = "tensor<3xT>, tensor<3xT> -> tensor<3xT>" if name.startswith("chlo.") else "tensor<3xT>"
    return Example(["3xT", "3xT"], ["3xT"], f"%r0 = {name} %a, %b : {types}", elements, **rest)


_LOGIC = ("i1", *INTEGERS, *NARROW_INTEGERS)
_SUMMABLE = ("i1", *NUMBERS, *COMPLEX, *NARROW_INTEGERS)
_REGION = """({{
^bb0(%x: tensor<T>, %y: tensor<T>):
  %z = stablehlo.{op} %x, %y : tensor<T>
  stablehlo.return %z : tensor<T>
}})"""

_OF_COMPLEX = ("asin", "acos", "atan", "asinh", "atanh", "sinh", "cosh", "tan")
_QUANTISED = "!quant.uniform<i8:T, 0.25:3>"

EXAMPLES: dict[str, Example] = {
    "stablehlo.abs": _unary("stablehlo.abs", ("i8", "i16", "i32", "i64", *FLOATS)),
    **{f"stablehlo.{name}": _binary(f"stablehlo.{name}", _SUMMABLE) for name in ("add", "multiply")},
    "stablehlo.subtract": _binary("stablehlo.subtract", (*NUMBERS, *COMPLEX, *NARROW_INTEGERS)),
    "stablehlo.divide": _binary("stablehlo.divide", (*NUMBERS, *COMPLEX, *NARROW_INTEGERS), positive=("b",)),
    "stablehlo.remainder": _binary("stablehlo.remainder", (*NUMBERS, *NARROW_INTEGERS), positive=("b",)),
    "stablehlo.power": _binary("stablehlo.power", (*NUMBERS, *COMPLEX), positive=("a",)),
    "stablehlo.atan2": _binary("stablehlo.atan2", (*FLOATS, *COMPLEX)),
    **{
        f"stablehlo.{name}": _binary(f"stablehlo.{name}", ("i1", *NUMBERS, *NARROW_INTEGERS))
        for name in ("maximum", "minimum")
    },
    **{f"stablehlo.{name}": _binary(f"stablehlo.{name}", _LOGIC) for name in ("and", "or", "xor")},
    **{
        f"stablehlo.{name}": _binary(f"stablehlo.{name}", (*INTEGERS, *NARROW_INTEGERS))
        for name in ("shift_left", "shift_right_arithmetic", "shift_right_logical")
    },
    "stablehlo.not": _unary("stablehlo.not", _LOGIC),
    "stablehlo.negate": _unary("stablehlo.negate", (*NUMBERS, *COMPLEX, *NARROW_INTEGERS)),
    "stablehlo.sign": _unary("stablehlo.sign", ("i8", "i16", "i32", "i64", *FLOATS, *COMPLEX)),
    **{
        f"stablehlo.{name}": _unary(f"stablehlo.{name}", (*INTEGERS, *NARROW_INTEGERS))
        for name in ("count_leading_zeros", "popcnt")
    },
    **{
        f"stablehlo.{name}": _unary(f"stablehlo.{name}", FLOATS)
        for name in ("ceil", "floor", "round_nearest_afz", "round_nearest_even")
    },
    **{
        f"stablehlo.{name}": _unary(f"stablehlo.{name}", (*FLOATS, *COMPLEX))
        for name in ("cosine", "exponential", "exponential_minus_one", "logistic", "sine", "tan", "tanh")
    },
    **{
        f"stablehlo.{name}": _unary(f"stablehlo.{name}", (*FLOATS, *COMPLEX), positive=("a",))
        for name in ("log", "log_plus_one", "rsqrt", "sqrt")
    },
    "stablehlo.cbrt": _unary("stablehlo.cbrt", (*FLOATS, *COMPLEX)),
    "stablehlo.is_finite": _unary("stablehlo.is_finite", FLOATS, "3xi1"),
    "stablehlo.reduce_precision": Example(
        ["8xT"], ["8xT"], "%r0 = stablehlo.reduce_precision %a, format = e5m2 : tensor<8xT>"
    ),
    "stablehlo.clamp": Example(
        ["T", "3xT", "3xT"],
        ["3xT"],
        "%r0 = stablehlo.clamp %a, %b, %c : (tensor<T>, tensor<3xT>, tensor<3xT>) -> tensor<3xT>",
        (*NUMBERS, *NARROW_INTEGERS),
    ),
    "stablehlo.select": Example(
        ["3xi1", "3xT", "3xT"], ["3xT"], "%r0 = stablehlo.select %a, %b, %c : tensor<3xi1>, tensor<3xT>", ALL
    ),
    "stablehlo.compare": Example(
        ["3xT", "3xT"],
        ["3xi1"],
        "%r0 = stablehlo.compare LT, %a, %b : (tensor<3xT>, tensor<3xT>) -> tensor<3xi1>",
        ("i1", *NUMBERS, *NARROW_INTEGERS),
    ),
    "stablehlo.compare EQ": Example(
        ["3xT", "3xT"],
        ["3xi1"],
        "%r0 = stablehlo.compare EQ, %a, %b : (tensor<3xT>, tensor<3xT>) -> tensor<3xi1>",
        _SUMMABLE,
    ),
    "stablehlo.compare TOTALORDER": Example(
        ["3xT", "3xT"],
        ["3xi1"],
        "%r0 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<3xT>, tensor<3xT>) -> tensor<3xi1>",
    ),
    "stablehlo.convert, to f32": Example(
        ["3xT"], ["3xf32"], "%r0 = stablehlo.convert %a : (tensor<3xT>) -> tensor<3xf32>", ALL
    ),
    "stablehlo.convert, from f32": Example(
        ["3xf32"], ["3xT"], "%r0 = stablehlo.convert %a : (tensor<3xf32>) -> tensor<3xT>", ALL
    ),
    "stablehlo.bitcast_convert": Example(
        ["3xT"], ["3xT"], "%r0 = stablehlo.bitcast_convert %a : (tensor<3xT>) -> tensor<3xT>", (*NUMBERS, *COMPLEX)
    ),
    "stablehlo.bitcast_convert, to bytes": Example(
        ["3xf32"], ["3x4xi8"], "%r0 = stablehlo.bitcast_convert %a : (tensor<3xf32>) -> tensor<3x4xi8>", ("f32",)
    ),
    "stablehlo.bitcast_convert, from halves": Example(
        ["3x2xi16"], ["3xi32"], "%r0 = stablehlo.bitcast_convert %a : (tensor<3x2xi16>) -> tensor<3xi32>", ("i32",)
    ),
    "stablehlo.real": Example(
        ["3xcomplex<T>"], ["3xT"], "%r0 = stablehlo.real %a : (tensor<3xcomplex<T>>) -> tensor<3xT>", ("f32", "f64")
    ),
    "stablehlo.imag": Example(
        ["3xcomplex<T>"], ["3xT"], "%r0 = stablehlo.imag %a : (tensor<3xcomplex<T>>) -> tensor<3xT>", ("f32", "f64")
    ),
    "stablehlo.complex": Example(
        ["3xT", "3xT"], ["3xcomplex<T>"], "%r0 = stablehlo.complex %a, %b : tensor<3xcomplex<T>>", ("f32", "f64")
    ),
    "stablehlo.abs, of complex": Example(
        ["3xcomplex<T>"], ["3xT"], "%r0 = stablehlo.abs %a : (tensor<3xcomplex<T>>) -> tensor<3xT>", ("f32", "f64")
    ),
    # Shapes and moves
    "stablehlo.constant": Example([], ["2xT"], "%r0 = stablehlo.constant dense<1> : tensor<2xT>", INTEGERS),
    "stablehlo.iota": Example(
        [], ["2x3xT"], "%r0 = stablehlo.iota dim = 1 : tensor<2x3xT>", (*NUMBERS, *COMPLEX, *NARROW_INTEGERS)
    ),
    "stablehlo.broadcast": Example(
        ["3xT"], ["2x3xT"], "%r0 = stablehlo.broadcast %a, sizes = [2] : (tensor<3xT>) -> tensor<2x3xT>", ALL
    ),
    "stablehlo.broadcast_in_dim": Example(
        ["3xT"], ["2x3xT"], "%r0 = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<3xT>) -> tensor<2x3xT>", ALL
    ),
    "stablehlo.reshape": Example(
        ["2x3xT"], ["6xT"], "%r0 = stablehlo.reshape %a : (tensor<2x3xT>) -> tensor<6xT>", ALL
    ),
    "stablehlo.transpose": Example(
        ["2x3xT"], ["3x2xT"], "%r0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xT>) -> tensor<3x2xT>", ALL
    ),
    "stablehlo.reverse": Example(["2x3xT"], ["2x3xT"], "%r0 = stablehlo.reverse %a, dims = [1] : tensor<2x3xT>", ALL),
    "stablehlo.concatenate": Example(
        ["2x3xT", "1x3xT"],
        ["3x3xT"],
        "%r0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<2x3xT>, tensor<1x3xT>) -> tensor<3x3xT>",
        ALL,
    ),
    "stablehlo.slice": Example(
        ["5xT"], ["2xT"], "%r0 = stablehlo.slice %a [1:4:2] : (tensor<5xT>) -> tensor<2xT>", ALL
    ),
    "stablehlo.pad": Example(
        ["3xT", "T"],
        ["7xT"],
        "%r0 = stablehlo.pad %a, %b, low = [1], high = [1], interior = [1] : (tensor<3xT>, tensor<T>) -> tensor<7xT>",
        ALL,
    ),
    "stablehlo.dynamic_slice": Example(
        ["5xT", "i32"],
        ["2xT"],
        "%r0 = stablehlo.dynamic_slice %a, %b, sizes = [2] : (tensor<5xT>, tensor<i32>) -> tensor<2xT>",
        ALL,
    ),
    "stablehlo.dynamic_update_slice": Example(
        ["5xT", "2xT", "i32"],
        ["5xT"],
        "%r0 = stablehlo.dynamic_update_slice %a, %b, %c : (tensor<5xT>, tensor<2xT>, tensor<i32>) -> tensor<5xT>",
        ALL,
    ),
    "stablehlo.gather": Example(
        ["5x3xT", "4x1xi32"],
        ["4x3xT"],
        """%r0 = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
          collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false,
          slice_sizes = array<i64: 1, 3>}> : (tensor<5x3xT>, tensor<4x1xi32>) -> tensor<4x3xT>""",
        ALL,
    ),
    "stablehlo.gather, batched": Example(
        ["2x5xT", "2x4x1xi32"],
        ["2x4xT"],
        """%r0 = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1],
          operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1],
          index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}>
          : (tensor<2x5xT>, tensor<2x4x1xi32>) -> tensor<2x4xT>""",
        ALL,
    ),
    "stablehlo.torch_index_select": Example(
        ["2x5xT", "2x4xi32"],
        ["2x4xT"],
        """%r0 = "stablehlo.torch_index_select"(%a, %b) <{batch_dims = 1 : i64, dim = 1 : i64}>
          : (tensor<2x5xT>, tensor<2x4xi32>) -> tensor<2x4xT>""",
        ALL,
        ("b",),
    ),
    "stablehlo.scatter": Example(
        ["5xT", "4x1xi32", "4xT"],
        ["5xT"],
        """%r0 = "stablehlo.scatter"(%a, %b, %c) <{scatter_dimension_numbers = #stablehlo.scatter<
          inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>,
          indices_are_sorted = false, unique_indices = false}>"""
        + _REGION.format(op="add")
        + " : (tensor<5xT>, tensor<4x1xi32>, tensor<4xT>) -> tensor<5xT>",
        _SUMMABLE,
    ),
    "stablehlo.scatter, region of several ops": Example(
        ["5xT", "4x1xi32", "4xT"],
        ["5xT"],
        """%r0 = "stablehlo.scatter"(%a, %b, %c) <{scatter_dimension_numbers = #stablehlo.scatter<
          inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>,
          indices_are_sorted = false, unique_indices = false}>({
        ^bb0(%x: tensor<T>, %y: tensor<T>):
          %z = stablehlo.multiply %x, %x : tensor<T>
          %w = stablehlo.add %z, %y : tensor<T>
          stablehlo.return %w : tensor<T>
        }) : (tensor<5xT>, tensor<4x1xi32>, tensor<4xT>) -> tensor<5xT>""",
        (*NUMBERS, *COMPLEX),
    ),
    "stablehlo.scatter, two operands": Example(
        ["5xT", "5xi32", "4x1xi32", "4xT", "4xi32"],
        ["5xT", "5xi32"],
        """%r0, %r1 = "stablehlo.scatter"(%a, %b, %c, %d, %e) <{scatter_dimension_numbers = #stablehlo.scatter<
          inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>,
          indices_are_sorted = false, unique_indices = false}>({
        ^bb0(%x: tensor<T>, %i: tensor<i32>, %y: tensor<T>, %j: tensor<i32>):
          %p = stablehlo.compare LT, %x, %y : (tensor<T>, tensor<T>) -> tensor<i1>
          %z = stablehlo.select %p, %y, %x : tensor<i1>, tensor<T>
          %k = stablehlo.select %p, %j, %i : tensor<i1>, tensor<i32>
          stablehlo.return %z, %k : tensor<T>, tensor<i32>
        }) : (tensor<5xT>, tensor<5xi32>, tensor<4x1xi32>, tensor<4xT>, tensor<4xi32>)
          -> (tensor<5xT>, tensor<5xi32>)""",
        NUMBERS,
    ),
    # Sizes as tensors
    "stablehlo.dynamic_broadcast_in_dim": Example(
        ["3xT"],
        ["2x3xT"],
        """%s = stablehlo.constant dense<[2, 3]> : tensor<2xi32>
        %r0 = stablehlo.dynamic_broadcast_in_dim %a, %s, dims = [1] : (tensor<3xT>, tensor<2xi32>) -> tensor<2x3xT>""",
        ALL,
    ),
    "stablehlo.dynamic_reshape": Example(
        ["2x3xT"],
        ["6xT"],
        """%s = stablehlo.constant dense<[6]> : tensor<1xi32>
        %r0 = stablehlo.dynamic_reshape %a, %s : (tensor<2x3xT>, tensor<1xi32>) -> tensor<6xT>""",
        ALL,
    ),
    "stablehlo.dynamic_iota": Example(
        [],
        ["2x3xT"],
        """%s = stablehlo.constant dense<[2, 3]> : tensor<2xi32>
        %r0 = stablehlo.dynamic_iota %s, dim = 1 : (tensor<2xi32>) -> tensor<2x3xT>""",
        NUMBERS,
    ),
    "stablehlo.dynamic_pad": Example(
        ["3xT", "T"],
        ["5xT"],
        """%l = stablehlo.constant dense<[1]> : tensor<1xi32>
        %i = stablehlo.constant dense<[0]> : tensor<1xi32>
        %r0 = stablehlo.dynamic_pad %a, %b, %l, %l, %i
          : (tensor<3xT>, tensor<T>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<5xT>""",
        ALL,
    ),
    "stablehlo.real_dynamic_slice": Example(
        ["5xT"],
        ["3xT"],
        """%s = stablehlo.constant dense<[1]> : tensor<1xi32>
        %l = stablehlo.constant dense<[4]> : tensor<1xi32>
        %r0 = stablehlo.real_dynamic_slice %a, %s, %l, %s
          : (tensor<5xT>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xT>""",
        ALL,
    ),
    "stablehlo.dynamic_gather": Example(
        ["5x3xT", "4x1xi32"],
        ["4x3xT"],
        """%s = stablehlo.constant dense<[1, 3]> : tensor<2xi32>
        %r0 = "stablehlo.dynamic_gather"(%a, %b, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
          collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false}>
          : (tensor<5x3xT>, tensor<4x1xi32>, tensor<2xi32>) -> tensor<4x3xT>""",
        ALL,
    ),
    "stablehlo.dynamic_conv": Example(
        ["1x4x4x1xT", "2x2x1x1xT"],
        ["1x5x5x1xT"],
        """%p = stablehlo.constant dense<1> : tensor<2x2xi64>
        %r0 = "stablehlo.dynamic_conv"(%a, %b, %p) <{batch_group_count = 1 : i64,
          dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64}>
          : (tensor<1x4x4x1xT>, tensor<2x2x1x1xT>, tensor<2x2xi64>) -> tensor<1x5x5x1xT>""",
        NUMBERS,
    ),
    "stablehlo.get_dimension_size": Example(
        ["3xT"],
        ["3xi32"],
        """%s = stablehlo.get_dimension_size %a, dim = 0 : (tensor<3xT>) -> tensor<i32>
        %r0 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<i32>) -> tensor<3xi32>""",
        ALL,
    ),
    # Products
    "stablehlo.dot": Example(
        ["2x3xT", "3x4xT"],
        ["2x4xT"],
        "%r0 = stablehlo.dot %a, %b : (tensor<2x3xT>, tensor<3x4xT>) -> tensor<2x4xT>",
        (*NUMBERS, *COMPLEX),
    ),
    "stablehlo.dot, of vectors": Example(
        ["3xT", "3xT"], ["T"], "%r0 = stablehlo.dot %a, %b : (tensor<3xT>, tensor<3xT>) -> tensor<T>", NUMBERS
    ),
    "stablehlo.dot_general": Example(
        ["5x2x3xT", "5x3x4xT"],
        ["5x2x4xT"],
        """%r0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1],
          precision = [DEFAULT, DEFAULT] : (tensor<5x2x3xT>, tensor<5x3x4xT>) -> tensor<5x2x4xT>""",
        (*NUMBERS, *COMPLEX, *NARROW_INTEGERS),
    ),
    "stablehlo.dot_general, algorithm": Example(
        ["2x3xT", "3x4xT"],
        ["2x4xT"],
        """%r0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT],
          algorithm = <lhs_precision_type = f32, rhs_precision_type = f32, accumulation_type = f32,
          lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1,
          allow_imprecise_accumulation = false> : (tensor<2x3xT>, tensor<3x4xT>) -> tensor<2x4xT>""",
        ("f32",),
    ),
    "stablehlo.convolution": Example(
        ["1x4x4x2xT", "2x2x2x3xT"],
        ["1x2x2x3xT"],
        """%r0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
          window = {stride = [2, 2], pad = [[0, 0], [0, 0]]}
          {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
          : (tensor<1x4x4x2xT>, tensor<2x2x2x3xT>) -> tensor<1x2x2x3xT>""",
        (*NUMBERS, *COMPLEX),
    ),
    "stablehlo.convolution, batch groups": Example(
        ["2x4x4x2xT", "2x2x2x4xT"],
        ["1x3x3x4xT"],
        """%r0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
          window = {stride = [1, 1], pad = [[0, 0], [0, 0]]}
          {batch_group_count = 2 : i64, feature_group_count = 1 : i64}
          : (tensor<2x4x4x2xT>, tensor<2x2x2x4xT>) -> tensor<1x3x3x4xT>""",
        NUMBERS,
    ),
    "stablehlo.einsum": Example(
        ["2x3xT", "3x4xT"],
        ["2x4xT"],
        """%r0 = "stablehlo.einsum"(%a, %b) <{einsum_config = "ij,jk->ik"}>
          : (tensor<2x3xT>, tensor<3x4xT>) -> tensor<2x4xT>""",
        NUMBERS,
    ),
    "stablehlo.unary_einsum": Example(
        ["2x3xT"],
        ["2xT"],
        """%r0 = "stablehlo.unary_einsum"(%a) <{einsum_config = "ij->i"}> : (tensor<2x3xT>) -> tensor<2xT>""",
        NUMBERS,
    ),
    "stablehlo.cholesky": Example(
        ["3x3xT"],
        ["3x3xT"],
        """%m = stablehlo.dot_general %a, %a, contracting_dims = [1] x [1]
          : (tensor<3x3xT>, tensor<3x3xT>) -> tensor<3x3xT>
        %f = stablehlo.cholesky %m, lower = true : tensor<3x3xT>
        %i = stablehlo.iota dim = 0 : tensor<3x3xi32>
        %j = stablehlo.iota dim = 1 : tensor<3x3xi32>
        %p = stablehlo.compare GE, %i, %j : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi1>
        %z = stablehlo.subtract %a, %a : tensor<3x3xT>
        %r0 = stablehlo.select %p, %f, %z : tensor<3x3xi1>, tensor<3x3xT>""",
        ("f32", "f64"),
    ),
    "stablehlo.cholesky, upper factor of Hermitian matrices": Example(
        ["2x3x3xT"],
        ["2x3x3xT"],
        """%c = chlo.conj %a : tensor<2x3x3xT> -> tensor<2x3x3xT>
        %m = stablehlo.dot_general %a, %c, batching_dims = [0] x [0], contracting_dims = [2] x [2]
          : (tensor<2x3x3xT>, tensor<2x3x3xT>) -> tensor<2x3x3xT>
        %f = stablehlo.cholesky %m : tensor<2x3x3xT>
        %i = stablehlo.iota dim = 1 : tensor<2x3x3xi32>
        %j = stablehlo.iota dim = 2 : tensor<2x3x3xi32>
        %p = stablehlo.compare LE, %i, %j : (tensor<2x3x3xi32>, tensor<2x3x3xi32>) -> tensor<2x3x3xi1>
        %z = stablehlo.subtract %a, %a : tensor<2x3x3xT>
        %r0 = stablehlo.select %p, %f, %z : tensor<2x3x3xi1>, tensor<2x3x3xT>""",
        COMPLEX,
    ),
    "stablehlo.triangular_solve": Example(
        ["3x3xT", "3x2xT"],
        ["3x2xT"],
        """%r0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true,
          transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = true}>
          : (tensor<3x3xT>, tensor<3x2xT>) -> tensor<3x2xT>""",
        ("f32", "f64", *COMPLEX),
    ),
    "stablehlo.triangular_solve, transposed on the right": Example(
        ["3x3xT", "2x3xT"],
        ["2x3xT"],
        """%r0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = false, lower = false,
          transpose_a = #stablehlo<transpose TRANSPOSE>, unit_diagonal = false}>
          : (tensor<3x3xT>, tensor<2x3xT>) -> tensor<2x3xT>""",
        ("f32", "f64", *COMPLEX),
        ("a",),
    ),
    "stablehlo.triangular_solve, adjoint": Example(
        ["2x3x3xT", "2x3x2xT"],
        ["2x3x2xT"],
        """%r0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true,
          transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = false}>
          : (tensor<2x3x3xT>, tensor<2x3x2xT>) -> tensor<2x3x2xT>""",
        ("f32", "f64", *COMPLEX),
        ("a",),
    ),
    "stablehlo.fft": Example(
        ["2x4xcomplex<T>"],
        ["2x4xcomplex<T>"],
        "%r0 = stablehlo.fft %a, type = FFT, length = [4] : (tensor<2x4xcomplex<T>>) -> tensor<2x4xcomplex<T>>",
        ("f32", "f64"),
    ),
    "stablehlo.fft, RFFT": Example(
        ["2x5xT"],
        ["2x3xcomplex<T>"],
        "%r0 = stablehlo.fft %a, type = RFFT, length = [5] : (tensor<2x5xT>) -> tensor<2x3xcomplex<T>>",
        ("f32", "f64"),
    ),
    "stablehlo.fft, IRFFT of two dimensions": Example(
        ["3x3xcomplex<T>"],
        ["3x4xT"],
        "%r0 = stablehlo.fft %a, type = IRFFT, length = [3, 4] : (tensor<3x3xcomplex<T>>) -> tensor<3x4xT>",
        ("f32", "f64"),
    ),
    # Normalisation
    "stablehlo.batch_norm_inference": Example(
        ["4x3xT", "3xT", "3xT", "3xT", "3xT"],
        ["4x3xT"],
        """%r0 = "stablehlo.batch_norm_inference"(%a, %b, %c, %d, %e) <{epsilon = 0.001 : f32, feature_index = 1 : i64}>
          : (tensor<4x3xT>, tensor<3xT>, tensor<3xT>, tensor<3xT>, tensor<3xT>) -> tensor<4x3xT>""",
        FLOATS,
        ("e",),
    ),
    "stablehlo.batch_norm_training": Example(
        ["4x3xT", "3xT", "3xT"],
        ["4x3xT", "3xT", "3xT"],
        """%r0, %r1, %r2 = "stablehlo.batch_norm_training"(%a, %b, %c) <{epsilon = 0.001 : f32,
          feature_index = 1 : i64}>
          : (tensor<4x3xT>, tensor<3xT>, tensor<3xT>) -> (tensor<4x3xT>, tensor<3xT>, tensor<3xT>)""",
    ),
    "stablehlo.batch_norm_grad": Example(
        ["4x3xT", "3xT", "3xT", "3xT", "4x3xT"],
        ["4x3xT", "3xT", "3xT"],
        """%r0, %r1, %r2 = "stablehlo.batch_norm_grad"(%a, %b, %c, %d, %e) <{epsilon = 0.001 : f32,
          feature_index = 1 : i64}> : (tensor<4x3xT>, tensor<3xT>, tensor<3xT>, tensor<3xT>, tensor<4x3xT>)
          -> (tensor<4x3xT>, tensor<3xT>, tensor<3xT>)""",
        FLOATS,
        ("d",),
    ),
    # Regions
    "stablehlo.map": Example(
        ["3xT", "3xT"],
        ["3xT"],
        """%r0 = "stablehlo.map"(%a, %b) <{dimensions = array<i64: 0>}>"""
        + _REGION.format(op="multiply")
        + " : (tensor<3xT>, tensor<3xT>) -> tensor<3xT>",
        _SUMMABLE,
    ),
    "stablehlo.reduce": Example(
        ["2x3xT", "T"],
        ["2xT"],
        """%r0 = stablehlo.reduce(%a init: %b) applies stablehlo.add across dimensions = [1]
          : (tensor<2x3xT>, tensor<T>) -> tensor<2xT>""",
        _SUMMABLE,
    ),
    "stablehlo.reduce, products": Example(
        ["2x3xT", "T"],
        ["2xT"],
        """%r0 = stablehlo.reduce(%a init: %b) applies stablehlo.multiply across dimensions = [1]
          : (tensor<2x3xT>, tensor<T>) -> tensor<2xT>""",
        (*NUMBERS, *COMPLEX),
    ),
    "stablehlo.reduce_window": Example(
        ["6xT", "T"],
        ["2xT"],
        """%r0 = "stablehlo.reduce_window"(%a, %b) <{window_dimensions = array<i64: 3>,
          window_strides = array<i64: 3>}>"""
        + _REGION.format(op="maximum")
        + " : (tensor<6xT>, tensor<T>) -> tensor<2xT>",
        NUMBERS,
    ),
    "stablehlo.reduce_window, products": Example(
        ["6xT", "T"],
        ["2xT"],
        """%r0 = "stablehlo.reduce_window"(%a, %b) <{window_dimensions = array<i64: 3>,
          window_strides = array<i64: 3>}>"""
        + _REGION.format(op="multiply")
        + " : (tensor<6xT>, tensor<T>) -> tensor<2xT>",
        (*NUMBERS, *COMPLEX),
    ),
    "stablehlo.reduce_window, sums of a dilated operand": Example(
        ["2x6xT", "T"],
        ["2x4xT"],
        """%r0 = "stablehlo.reduce_window"(%a, %b) <{base_dilations = array<i64: 1, 2>,
          window_dimensions = array<i64: 1, 3>, window_dilations = array<i64: 1, 2>,
          window_strides = array<i64: 1, 2>}>"""
        + _REGION.format(op="add")
        + " : (tensor<2x6xT>, tensor<T>) -> tensor<2x4xT>",
        _SUMMABLE,
    ),
    "stablehlo.select_and_scatter, by real parts": Example(
        ["4x5xcomplex<T>", "2x2xcomplex<T>", "complex<T>"],
        ["4x5xcomplex<T>"],
        """%r0 = "stablehlo.select_and_scatter"(%a, %b, %c) <{padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>,
          window_dimensions = array<i64: 3, 2>, window_strides = array<i64: 1, 5>}>({
        ^bb0(%x: tensor<complex<T>>, %y: tensor<complex<T>>):
          %p = stablehlo.real %x : (tensor<complex<T>>) -> tensor<T>
          %q = stablehlo.real %y : (tensor<complex<T>>) -> tensor<T>
          %z = stablehlo.compare GE, %p, %q : (tensor<T>, tensor<T>) -> tensor<i1>
          stablehlo.return %z : tensor<i1>
        }, {
        ^bb0(%x: tensor<complex<T>>, %y: tensor<complex<T>>):
          %z = stablehlo.multiply %x, %y : tensor<complex<T>>
          stablehlo.return %z : tensor<complex<T>>
        }) : (tensor<4x5xcomplex<T>>, tensor<2x2xcomplex<T>>, tensor<complex<T>>) -> tensor<4x5xcomplex<T>>""",
        ("f32", "f64"),
    ),
    "stablehlo.select_and_scatter": Example(
        ["4x5xT", "2x2xT", "T"],
        ["4x5xT"],
        """%r0 = "stablehlo.select_and_scatter"(%a, %b, %c) <{padding = dense<0> : tensor<2x2xi64>,
          window_dimensions = array<i64: 3, 1>, window_strides = array<i64: 1, 4>}>({
        ^bb0(%x: tensor<T>, %y: tensor<T>):
          %z = stablehlo.compare GE, %x, %y : (tensor<T>, tensor<T>) -> tensor<i1>
          stablehlo.return %z : tensor<i1>
        }, {
        ^bb0(%x: tensor<T>, %y: tensor<T>):
          %z = stablehlo.add %x, %y : tensor<T>
          stablehlo.return %z : tensor<T>
        }) : (tensor<4x5xT>, tensor<2x2xT>, tensor<T>) -> tensor<4x5xT>""",
        NUMBERS,
    ),
    "stablehlo.select_and_scatter, other regions": Example(
        ["5xT", "3xT", "T"],
        ["5xT"],
        """%r0 = "stablehlo.select_and_scatter"(%a, %b, %c) <{padding = dense<0> : tensor<1x2xi64>,
          window_dimensions = array<i64: 3>, window_strides = array<i64: 1>}>({
        ^bb0(%x: tensor<T>, %y: tensor<T>):
          %u = stablehlo.multiply %x, %x : tensor<T>
          %v = stablehlo.multiply %y, %y : tensor<T>
          %z = stablehlo.compare LT, %u, %v : (tensor<T>, tensor<T>) -> tensor<i1>
          stablehlo.return %z : tensor<i1>
        }, {
        ^bb0(%x: tensor<T>, %y: tensor<T>):
          %u = stablehlo.subtract %x, %y : tensor<T>
          %z = stablehlo.multiply %u, %y : tensor<T>
          stablehlo.return %z : tensor<T>
        }) : (tensor<5xT>, tensor<3xT>, tensor<T>) -> tensor<5xT>""",
        NUMBERS,
    ),
    "stablehlo.sort": Example(
        ["2x5xT", "2x5xi32"],
        ["2x5xT", "2x5xi32"],
        """%r0, %r1 = "stablehlo.sort"(%a, %b) <{dimension = 1 : i64, is_stable = true}>({
        ^bb0(%x: tensor<T>, %y: tensor<T>, %i: tensor<i32>, %j: tensor<i32>):
          %z = stablehlo.compare LT, %x, %y : (tensor<T>, tensor<T>) -> tensor<i1>
          stablehlo.return %z : tensor<i1>
        }) : (tensor<2x5xT>, tensor<2x5xi32>) -> (tensor<2x5xT>, tensor<2x5xi32>)""",
        NUMBERS,
    ),
    "stablehlo.sort, by real parts": Example(
        ["2x5xi32", "2x5xT"],
        ["2x5xi32", "2x5xT"],
        """%r0, %r1 = "stablehlo.sort"(%a, %b) <{dimension = 1 : i64, is_stable = true}>({
        ^bb0(%i: tensor<i32>, %j: tensor<i32>, %x: tensor<T>, %y: tensor<T>):
          %u = stablehlo.multiply %x, %x : tensor<T>
          %p = stablehlo.convert %u : (tensor<T>) -> tensor<f32>
          %v = stablehlo.multiply %y, %y : tensor<T>
          %q = stablehlo.convert %v : (tensor<T>) -> tensor<f32>
          %z = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %z : tensor<i1>
        }) : (tensor<2x5xi32>, tensor<2x5xT>) -> (tensor<2x5xi32>, tensor<2x5xT>)""",
        COMPLEX,
    ),
    "stablehlo.case": Example(
        ["3xT", "i32"],
        ["3xT"],
        """%r0 = "stablehlo.case"(%b) ({
          %x = stablehlo.add %a, %a : tensor<3xT>
          stablehlo.return %x : tensor<3xT>
        }, {
          %x = stablehlo.multiply %a, %a : tensor<3xT>
          stablehlo.return %x : tensor<3xT>
        }) : (tensor<i32>) -> tensor<3xT>""",
        _SUMMABLE,
    ),
    "stablehlo.if": Example(
        ["3xT", "i1"],
        ["3xT"],
        """%r0 = "stablehlo.if"(%b) ({
          %x = stablehlo.add %a, %a : tensor<3xT>
          stablehlo.return %x : tensor<3xT>
        }, {
          stablehlo.return %a : tensor<3xT>
        }) : (tensor<i1>) -> tensor<3xT>""",
        _SUMMABLE,
    ),
    "stablehlo.while": Example(
        ["3xT", "i32"],
        ["3xT"],
        """%n = stablehlo.constant dense<4> : tensor<i32>
        %o = stablehlo.constant dense<1> : tensor<i32>
        %i, %r0 = stablehlo.while(%j = %b, %x = %a) : tensor<i32>, tensor<3xT>
        cond {
          %p = stablehlo.compare LT, %j, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1>
        } do {
          %k = stablehlo.add %j, %o : tensor<i32>
          %y = stablehlo.add %x, %a : tensor<3xT>
          stablehlo.return %k, %y : tensor<i32>, tensor<3xT>
        }""",
        _SUMMABLE,
    ),
    "stablehlo.uniform_quantize, uniform_dequantize": Example(
        ["3xT"],
        ["3xT"],
        f"""%q = stablehlo.uniform_quantize %a : (tensor<3xT>) -> tensor<3x{_QUANTISED}>
        %p = stablehlo.multiply %q, %q : tensor<3x{_QUANTISED}>
        %r0 = stablehlo.uniform_dequantize %p : (tensor<3x{_QUANTISED}>) -> tensor<3xT>""",
    ),
    "stablehlo.optimization_barrier": Example(
        ["3xT"], ["3xT"], "%r0 = stablehlo.optimization_barrier %a : tensor<3xT>", ALL
    ),
    "stablehlo.composite": Example(
        ["3xT"],
        ["3xT"],
        """%r0 = stablehlo.composite "my.op" %a {decomposition = @double} : (tensor<3xT>) -> tensor<3xT>""",
        _SUMMABLE,
        private="""func.func private @double(%a: tensor<3xT>) -> tensor<3xT> {
  %0 = stablehlo.add %a, %a : tensor<3xT>
  return %0 : tensor<3xT>
}
""",
    ),
    # Random numbers
    "stablehlo.rng_bit_generator, THREE_FRY": Example(
        ["2xui64"],
        ["2xui64", "5xT"],
        """%r0, %r1 = stablehlo.rng_bit_generator %a, algorithm = THREE_FRY
          : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xT>)""",
        INTEGERS,
    ),
    "stablehlo.rng_bit_generator, PHILOX": Example(
        ["3xui64"],
        ["3xui64", "5xT"],
        """%r0, %r1 = stablehlo.rng_bit_generator %a, algorithm = PHILOX
          : (tensor<3xui64>) -> (tensor<3xui64>, tensor<5xT>)""",
        INTEGERS,
    ),
    # chlo
    **{
        f"chlo.{name}": _unary(f"chlo.{name}", (*FLOATS, *COMPLEX) if name in _OF_COMPLEX else FLOATS)
        for name in (
            *("asin", "acos", "atan", "asinh", "atanh", "sinh", "cosh", "tan", "erf", "erfc", "erf_inv", "lgamma"),
            *("digamma", "bessel_i1e"),
        )
    },
    "chlo.acosh": _unary("chlo.acosh", (*FLOATS, *COMPLEX), positive=("a",)),
    "chlo.square": _unary("chlo.square", (*NUMBERS, *COMPLEX)),
    "chlo.conj": _unary("chlo.conj", COMPLEX),
    **{
        f"chlo.{name}": Example(["3xT"], ["3xi1"], f"%r0 = chlo.{name} %a : tensor<3xT> -> tensor<3xi1>")
        for name in ("is_inf", "is_neg_inf", "is_pos_inf")
    },
    "chlo.next_after": _binary("chlo.next_after", FLOATS),
    "chlo.mulhi": _binary("chlo.mulhi", INTEGERS),
    "chlo.polygamma": _binary("chlo.polygamma", ("f32", "f64"), positive=("a", "b")),
    "chlo.zeta": _binary("chlo.zeta", ("f32", "f64"), positive=("a", "b")),
    "chlo.top_k": Example(
        ["2x5xT"],
        ["2x3xT", "2x3xi32"],
        "%r0, %r1 = chlo.top_k(%a, k = 3) : tensor<2x5xT> -> (tensor<2x3xT>, tensor<2x3xi32>)",
        NUMBERS,
    ),
    "chlo.constant_like": Example(
        ["3xT"], ["3xT"], """%r0 = "chlo.constant_like"(%a) <{value = 2.0 : T}> : (tensor<3xT>) -> tensor<3xT>"""
    ),
    "chlo.broadcast_add": Example(
        ["2x3xT", "3xT"],
        ["2x3xT"],
        "%r0 = chlo.broadcast_add %a, %b : (tensor<2x3xT>, tensor<3xT>) -> tensor<2x3xT>",
        _SUMMABLE,
    ),
    "chlo.broadcast_compare": Example(
        ["2x3xT", "3xT"],
        ["2x3xi1"],
        """%r0 = chlo.broadcast_compare %a, %b {comparison_direction = #chlo<comparison_direction LT>}
          : (tensor<2x3xT>, tensor<3xT>) -> tensor<2x3xi1>""",
        NUMBERS,
    ),
    "chlo.broadcast_select": Example(
        ["3xi1", "2x3xT", "T"],
        ["2x3xT"],
        "%r0 = chlo.broadcast_select %a, %b, %c : (tensor<3xi1>, tensor<2x3xT>, tensor<T>) -> tensor<2x3xT>",
        NUMBERS,
    ),
}
"""Op, with its form -> a function of it."""
