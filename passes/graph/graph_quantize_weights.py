"""`graph-quantize-weights`: round constant weights of products to integers of 4 or 8 bits, in groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.analysis.graph_patterns import array_of_constant
from weft.dialects.constant_data import dense_attribute
from weft.dialects.element_types import TYPES, bytes_of, element_name
from weft.dialects.graph import ConstantOp
from weft.passes.graph.dequantized_products import FLOATS, float_column_axis
from weft.passes.graph.functions import graph_functions
from weft.passes.graph.operators import dtype_of, inserted, made, made_constant, type_of
from weft.support.errors import CompileError, did_you_mean
from weft.texpr.graph_operators import Operator

Array: TypeAlias = NDArray[Any]

BITS: Final = {"int4": 4, "int8": 8}
"""Maps the type that weights are rounded to to its bits."""


@dataclass(frozen=True)
class Rounding:
    """Raises `CompileError` for invalid values."""

    weights: str = "int4"
    group: int = 32
    """Consecutive weights of a column that share a scale; 0 for whole columns."""
    symmetric: bool = True
    """Whether the integer range is symmetric; otherwise each group has a zero point."""
    scales: str = "float32"
    skip: tuple[str, ...] = ()
    """The names of weights that stay floats."""

    def __post_init__(self) -> None:
        if self.weights not in BITS:
            raise CompileError(f"weights are int4 or int8, got '{self.weights}'{did_you_mean(self.weights, BITS)}")
        if self.scales not in FLOATS:
            raise CompileError(
                f"scales are float32, float16 or bfloat16, got '{self.scales}'{did_you_mean(self.scales, FLOATS)}"
            )
        if self.group and (not 16 <= self.group <= 256 or self.group % 8):
            raise CompileError(
                f"groups have 16 to 256 weights, a multiple of 8, or are whole columns (0): got {self.group}"
            )

    @property
    def bits(self) -> int:
        return BITS[self.weights]


@dataclass(frozen=True)
class QuantizedLayer:
    """Weights of a product before and after rounding."""

    name: str
    depth: int
    """The number of products per sum."""
    columns: int
    """The number of output channels."""
    error: float
    """The norm of the rounding errors, relative to that of the weights."""
    largest: float
    """The largest rounding error."""
    bytes_before: int
    bytes_after: int
    output_error: float | None = None
    """Norm of the errors of the results on calibration data, relative to that of the results, if only this layer's
    data, weights and bias are rounded. None if not measured."""
    kept_float: str = ""
    """The reason if the layer stays in floats."""


@dataclass(frozen=True)
class Rounded:
    """Weights (groups, size, n) as `(integers - zero_point) * scale`, the latter two (groups, 1, n)."""

    integers: Array
    scale: Array
    zero_point: Array

    @property
    def dequantized(self) -> Array:
        return (self.integers - self.zero_point) * self.scale


def rounded(weights: Array, rounding: Rounding) -> Rounded:
    """Round weights (groups, size, n) in float64.

    Symmetric: the least scale for which -2**(bits - 1) to 2**(bits - 1) - 1 cover the group; zero points are 0.
    Otherwise 0 to 2**bits - 1 cover the group and 0, and 0 is exact. A group of zeros has scale 1. Raises
    `CompileError` for scales that their type cannot represent.
    """
    import numpy as np

    least, greatest = weights.min(axis=1, keepdims=True), weights.max(axis=1, keepdims=True)
    half = 1 << (rounding.bits - 1)
    low, high = (-half, half - 1) if rounding.symmetric else (0, 2 * half - 1)
    if rounding.symmetric:
        exact = np.maximum(greatest / high, least / low)
    else:
        least, greatest = np.minimum(least, 0.0), np.maximum(greatest, 0.0)
        exact = (greatest - least) / high
    exact = np.where(exact == 0.0, 1.0, exact)
    with np.errstate(over="ignore"):
        scale = _in_type(exact, rounding.scales)
    if not np.isfinite(scale).all() or not (scale > 0.0).all():
        worst = exact.max() if not np.isfinite(scale).all() else exact.min()
        raise CompileError(f"a scale of {worst:g} is not a {rounding.scales} number: give scales of float32")
    zero = np.zeros_like(scale) if rounding.symmetric else np.clip(np.rint(-least / scale), low, high)
    integers = np.clip(np.rint(weights / scale) + zero, low, high)
    return Rounded(integers, scale, zero)


def _in_type(numbers: Array, dtype: str) -> Array:
    constant = made_constant(numbers, cast("Attribute", TYPES[dtype]))
    import numpy as np

    return array_of_constant(constant).astype(np.float64)


def quantize_weights(function: FuncOp, rounding: Rounding) -> list[QuantizedLayer]:
    """Round constant weights of products. Raises `CompileError` with their name for groups that do not divide rows,
    non-finite weights, and unknown names to skip."""
    found: dict[ConstantOp, list[tuple[Operator, int]]] = {}
    for op in function.walk():
        constant, column = _constant_weights(op)
        if constant is not None:
            found.setdefault(constant, []).append((cast("Operator", op), column))
    names = {constant: constant.result.name_hint or f"weights {at}" for at, constant in enumerate(found)}
    for name in rounding.skip:
        if name not in names.values():
            raise CompileError(f"there are no weights '{name}'{did_you_mean(name, tuple(names.values()))}")
    layers: list[QuantizedLayer] = []
    for constant, users in found.items():
        if names[constant] in rounding.skip:
            continue
        by_column: dict[int, SSAValue] = {}
        for op, column in users:
            if column not in by_column:
                by_column[column], layer = _quantized(constant, names[constant], column, rounding)
                layers.append(layer)
            op.operands[1] = by_column[column]
        if constant.result.first_use is None:
            Rewriter.erase_op(constant)
    return layers


def _constant_weights(op: Operation) -> tuple[ConstantOp | None, int]:
    column = float_column_axis(op)
    weight = None if column is None else op.operands[1]
    if column is None or weight is None or not isinstance(weight.owner, ConstantOp):
        return None, 0
    is_quantized = dtype_of(weight) == dtype_of(op.results[0]) and 0 not in type_of(weight).get_shape()
    return (weight.owner, column) if is_quantized else (None, 0)


def _quantized(constant: ConstantOp, name: str, column: int, rounding: Rounding) -> tuple[SSAValue, QuantizedLayer]:
    import numpy as np

    stored = array_of_constant(constant)
    matrix = (stored if column == 1 else stored.T).astype(np.float64)
    depth, columns = matrix.shape
    group = rounding.group or depth
    if depth % group:
        raise CompileError.at(
            constant, f"weights '{name}': groups of {group} do not divide {depth} rows of {depth} x {columns} weights"
        )
    if not np.isfinite(matrix).all():
        count = int((~np.isfinite(matrix)).sum())
        raise CompileError.at(constant, f"weights '{name}': {count} of {depth} x {columns} weights are not finite")
    try:
        found = rounded(matrix.reshape(-1, group, columns), rounding)
    except CompileError as error:
        raise CompileError.at(constant, f"weights '{name}': {error.message}") from None
    difference = matrix - found.dequantized.reshape(depth, columns)
    norm = float(np.linalg.norm(matrix))

    def placed(array: Array) -> Array:
        whole = array.reshape(-1, columns)
        return np.ascontiguousarray(whole if column == 1 else whole.T)

    sign = "" if rounding.symmetric else "u"
    integer = cast("Attribute", TYPES[f"{sign}{rounding.weights}"])
    integers, scale, zero = (placed(a) for a in (found.integers, found.scale, found.zero_point))
    if not rounding.group:
        scale, zero = scale.reshape(-1), zero.reshape(-1)
    numbers = ConstantOp(dense_attribute(integers.astype(np.int8 if rounding.symmetric else np.uint8), integer))
    numbers.result.name_hint = _named(name, "")
    factors = made_constant(scale, cast("Attribute", TYPES[rounding.scales]))
    factors.result.name_hint = _named(name, "_scale")
    operands: list[SSAValue | None] = [numbers.result, factors.result, None]
    if not rounding.symmetric:
        shift = made_constant(zero, cast("Attribute", TYPES["uint8"]))
        shift.result.name_hint = _named(name, "_zero_point")
        operands[2] = shift.result
    options: dict[str, Any] = {"axis": 1 - column, "group_size": group} if rounding.group else {"axis": column}
    dtype = element_name(type_of(constant.result).element_type)
    if dtype != "float32":
        options["dtype"] = dtype
    value = made("dequantize", operands, **options).results[0]
    inserted(value, constant)
    before = matrix.size * bytes_of(type_of(constant.result).element_type)
    parameters = scale.size * bytes_of(factors.result.type.element_type) + zero.size * (not rounding.symmetric)
    after = matrix.size * rounding.bits // 8 + parameters
    error = float(np.linalg.norm(difference)) / norm if norm else 0.0
    largest = float(np.abs(difference).max())
    return value, QuantizedLayer(name, depth, columns, error, largest, before, after)


def _named(name: str, part: str) -> str | None:
    return f"{name}{part}" if SSAValue.is_valid_name(f"{name}{part}") else None


@dataclass(frozen=True)
class GraphQuantizeWeightsPass(ModulePass):
    """Round constant weights of `graph.matmul` and `graph.dense` to integers of 4 or 8 bits, in groups of rows.

    Each group of a column has a scale, and a zero point unless `symmetric`. Products still compute with dequantized
    floats: `graph-rewrite{rules=dequantized}` converts them to products that read the integers.

    Requires: graph functions whose types are known (`graph-infer-types`), constants folded (`graph-fold-constants`).
    Leaves: graph functions; products of computed operands are unchanged.

    ```mlir
    func.func @f(%x: tensor<1x16xf32>) -> tensor<1x1xf32> {
      %w = graph.constant dense<0.5> : tensor<16x1xf32>
      %y = graph.matmul %x, %w : tensor<1x16xf32>, tensor<16x1xf32>
      func.return %y : tensor<1x1xf32>
    }
    // becomes, with group=16
    func.func @f(%x: tensor<1x16xf32>) -> tensor<1x1xf32> {
      %w = graph.constant dense<7> : tensor<16x1xi4>
      %scale = graph.constant dense<0.0714285746> : tensor<1x1xf32>
      %d = graph.dequantize %w, %scale {axis = 0, group_size = 16} : tensor<16x1xi4>, tensor<1x1xf32>
      %y = graph.matmul %x, %d : tensor<1x16xf32>, tensor<16x1xf32>
      func.return %y : tensor<1x1xf32>
    }
    ```
    """

    name = "graph-quantize-weights"

    weights: str = "int4"
    """The type of the integers: int4 or int8."""
    group: int = 32
    """Rows that share a scale: 16 to 256, or 0 for whole columns."""
    symmetric: bool = True
    """Whether the integer range is symmetric; otherwise each group has a zero point."""
    scales: str = "float32"
    """The type of the scales: float32, float16 or bfloat16."""
    skip: tuple[str, ...] = ()
    """The names of weights that stay floats."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        quantize_module(op, Rounding(self.weights, self.group, self.symmetric, self.scales, self.skip))


def quantize_module(module: ModuleOp, rounding: Rounding) -> Sequence[QuantizedLayer]:
    return [layer for function in list(graph_functions(module)) for layer in quantize_weights(function, rounding)]
