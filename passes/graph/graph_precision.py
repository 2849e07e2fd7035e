"""`graph-precision`: matrix products and convolutions of 16-bit floats, with sums in float32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, ModuleOp, TensorType, bf16, f16
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.graph_patterns import arguments_of, array_of_constant
from weft.dialects.element_types import element_name
from weft.dialects.graph import ConstantOp
from weft.dialects.graph_shapes import ShapeError
from weft.dialects.graph_traits import Product, Recurrent, ViewLike
from weft.passes.graph.functions import graph_functions
from weft.passes.graph.graph_widen_floats import OF_FLOAT32, erase_dead_operators, insert_after
from weft.passes.graph.operators import (
    dtype_of,
    made,
    made_constant,
    name_of,
    operands_of,
    properties_of,
    source_of,
    type_of,
)
from weft.support.cpu_instructions import has_bf16_products
from weft.support.precision import Precision, check_precision, parse_precision
from weft.support.target import Target
from weft.texpr.graph_operators import Operator

_TYPES: Final = {Precision.BF16: bf16, Precision.F16: f16}
_EPSILON: Final = {Precision.F32: 0.0, Precision.BF16: 2.0**-7, Precision.F16: 2.0**-10}
_WIDE: Final = "float32"
_PAIR: Final = 2
"""The number of channels whose products an instruction adds to a sum."""


def set_precision(function: FuncOp, precision: Precision, target: Target, *, keeps_float32: bool = False) -> int:
    """Convert the factors of products. Returns their number. With `keeps_float32`, float32 products of the model
    (`graph-widen-floats`) are kept."""
    if precision is Precision.F32:
        return 0
    narrowing = _Narrowing(precision, target)
    operators = [op for op in function.walk() if isinstance(op, Operator)]
    count = sum(narrowing.apply(op) for op in operators if not (keeps_float32 and OF_FLOAT32 in op.attributes))
    narrowing.store_images()
    erase_dead_operators(function)
    return count


class _Narrowing:
    def __init__(self, precision: Precision, target: Target) -> None:
        self._type: AnyFloat = _TYPES[precision]
        self._dtype = str(element_name(self._type))
        self._rounds_data = precision is Precision.BF16
        self._multiplies = precision is Precision.BF16 and has_bf16_products(target)
        self._rounded: dict[SSAValue, SSAValue] = {}
        self._widened: dict[SSAValue, SSAValue] = {}
        self._padded: dict[SSAValue, SSAValue] = {}

    def apply(self, op: Operator) -> bool:
        if op.has_trait(Recurrent):
            return self._narrow_recurrence(op)
        product = op.get_trait(Product)
        if product is None or dtype_of(op.results[0]) != _WIDE or not self._is_faster(op, product):
            return False
        operands, count = list(op.operands), product.factors
        if any(dtype_of(operand) not in (_WIDE, "bfloat16", "float16") for operand in operands[:count]):
            return False
        factors = self._factors(operands[:count])
        if factors == operands[:count]:
            return False
        if product.of_images and type_of(factors[1]).get_shape()[1] % _PAIR:
            factors = [self._with_channel(factors[0], op), self._with_channel(factors[1], op)]
        groups = op.grouped([*factors, *operands[count:]], op.properties)
        given: dict[str, Any] = {**properties_of(op), "out_dtype": _WIDE}
        try:
            new = made(name_of(op), groups, **given)
        except ShapeError:
            return False
        new.location = op.location
        new.results[0].name_hint = op.results[0].name_hint
        Rewriter.replace_op(op, new)
        return True

    def _narrow_recurrence(self, op: Operator) -> bool:
        """Store constant weights of states in the precision. Those of bf16 make each step round the states."""
        given = operands_of(op)
        weights = given["recurrence"]
        if dtype_of(op.results[0]) != _WIDE or given["recurrence_scale"] is not None or weights is None:
            return False
        is_constant = isinstance(weights.owner, ConstantOp) and dtype_of(weights) == _WIDE
        if not is_constant or (self._rounds_data and not self._multiplies):
            return False
        op.operands[op.operands.index(weights)] = self._as_narrow(weights)
        return True

    def store_images(self) -> None:
        """Let all readers widen an image rounded for convolutions, so that memory contains no other."""
        images = [value for value, rounded in self._rounded.items() if _is_read_by_convolution(rounded)]
        for value in images:
            self._widen_readers(value)
            # The maximum of rounded numbers is the rounded maximum.
            pool = source_of(value, "max_pool2d")
            if pool is not None and all(use.operation is self._rounded[value].owner for use in value.uses):
                images.append(pool.operands[0])

    def _widen_readers(self, value: SSAValue) -> None:
        readers = [(use.operation, use.index) for use in value.uses]
        if not isinstance(value.owner, Operator) or not all(isinstance(op, Operator) for op, _ in readers):
            return
        rounded = self._as_narrow(value)
        for reader, at in readers:
            if reader is not rounded.owner:
                wide = made("cast", [rounded], dtype=_WIDE)
                wide.location = reader.location
                Rewriter.insert_op(wide, InsertPoint.before(reader))
                reader.operands[at] = wide.results[0]

    def _is_faster(self, op: Operator, product: Product) -> bool:
        """Matrix products read fewer bytes; others need instructions for pairs."""
        return product.of_matrices or (self._multiplies and (product.factors > 2 or _sums_pairs(op)))

    def _factors(self, factors: list[SSAValue]) -> list[SSAValue]:
        if not self._rounds_data:
            return [self._as_narrow(value) if isinstance(value.owner, ConstantOp) else value for value in factors]
        narrow = [self._as_narrow(value) for value in factors]
        # Without instructions for pairs, only the first factor is rounded: its rows would be widened repeatedly.
        return narrow if self._multiplies else [self._as_wide(narrow[0]), *narrow[1:]]

    def _as_narrow(self, value: SSAValue) -> SSAValue:
        """Views and transposes become those of the rounded value."""
        if type_of(value).element_type == self._type:
            return value
        if value in self._rounded:
            return self._rounded[value]
        view = source_of(value, ViewLike, "transpose")
        inner = source_of(value, "cast")
        if isinstance(value.owner, ConstantOp):
            found: Operation = made_constant(array_of_constant(value.owner), self._type)
        elif view is not None and len(view.operands) == 1:
            found = made(name_of(view), [self._as_narrow(view.operands[0])], **properties_of(view))
        elif inner is not None and type_of(inner.operands[0]).element_type == self._type:
            self._rounded[value] = inner.operands[0]
            return inner.operands[0]
        else:
            found = made("cast", [value], dtype=self._dtype)
        self._rounded[value] = insert_after(found, value)
        return self._rounded[value]

    def _with_channel(self, value: SSAValue, op: Operator) -> SSAValue:
        """Append a channel of zeros, so that their number is even."""
        import numpy as np

        if value not in self._padded:
            widths = [(0, 1 if axis == 1 else 0) for axis in range(type_of(value).get_num_dims())]
            if isinstance(value.owner, ConstantOp):
                found: Operation = made_constant(np.pad(array_of_constant(value.owner), widths), self._type)
                found.location = op.location
            else:
                found = made("pad", [value], pad_width=[list(width) for width in widths])
            self._padded[value] = insert_after(found, value)
        return self._padded[value]

    def _as_wide(self, value: SSAValue) -> SSAValue:
        if value not in self._widened:
            self._widened[value] = insert_after(made("cast", [value], dtype=_WIDE), value)
        return self._widened[value]


def _is_read_by_convolution(value: SSAValue) -> bool:
    products = [use.operation.get_trait(Product) for use in value.uses]
    return isinstance(value.owner, Operator) and any(product is not None and product.of_images for product in products)


def _sums_pairs(op: Operator) -> bool:
    """Returns whether a convolution of one group with constant kernels sums an even number of channels, possibly
    after appending one to several."""
    arguments, kernel = arguments_of(op), op.operands[1]
    is_plain = arguments["groups"] == 1 and arguments["data_layout"] == "NCHW"
    is_plain &= arguments.get("kernel_layout") in (None, "", "OIHW")
    if not is_plain or not isinstance(kernel.owner, ConstantOp):
        return False
    channels = type_of(kernel).get_shape()[1]
    return channels > 1


def is_bf16_model(function: FuncOp) -> bool:
    values = [*function.args, *(result for op in function.walk() for result in op.results)]
    return any(isinstance(value.type, TensorType) and value.type.element_type == bf16 for value in values)


@dataclass(frozen=True)
class GraphPrecisionPass(ModulePass):
    """Convert the factors of matrix products, convolutions and attention to fewer bits, and add in float32:
    `graph-precision{precision=bf16 target="llvm -mcpu=znver4"}`.

    | precision | factors |
    |---|---|
    | `bf16` | rounded to bf16, to nearest, ties to even; weights at compile time |
    | `f16` | constant factors of matrix products are stored as f16, and widened when loaded |
    | `f32` | unchanged |
    | none | `bf16` for functions with tensors of bf16 on CPUs with instructions for products of bf16, else unchanged |

    Without a precision, float32 products of a function with bf16 tensors are unchanged (`graph-widen-floats`). All
    other operators keep their types: sums, softmax and norms are in float32. Casts follow the producer of a value,
    before its views, and are thus fused into its kernel, which stores 16 bits. Other readers of an image that a
    convolution reads widen the rounded one. Convolutions and attention change if the CPU multiplies pairs of bf16;
    convolutions also require constant weights of one group and an even number of channels. So do constant weights of
    the states of recurrent networks, whose states are then rounded in each step; f16 stores them on every CPU. On
    other CPUs the first factor is rounded to bf16 and widened again, and the second is stored as bf16.

    Requires: graph functions whose types are known (`graph-infer-types`), constants folded (`graph-fold-constants`).
    Leaves: graph functions with the same parameters and results. Raises `CompileError` for a precision that the
    target does not support.

    ```mlir
    func.func @f(%x: tensor<8x4xf32>) -> tensor<8x2xf32> {
      %w = graph.constant dense<1.0> : tensor<4x2xf32>
      %y = graph.matmul %x, %w : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
      func.return %y : tensor<8x2xf32>
    }
    // becomes, with precision=bf16 target="llvm -mcpu=znver4"
    func.func @f(%x: tensor<8x4xf32>) -> tensor<8x2xf32> {
      %x.1 = graph.cast %x {dtype = "bfloat16"} : tensor<8x4xf32> -> tensor<8x4xbf16>
      %w = graph.constant dense<1.0> : tensor<4x2xbf16>
      %y = graph.matmul %x.1, %w {out_dtype = "float32"} : tensor<8x4xbf16>, tensor<4x2xbf16> -> tensor<8x2xf32>
      func.return %y : tensor<8x2xf32>
    }
    ```
    """

    name = "graph-precision"

    target: str = "llvm"
    """The target, as `weft.build` takes it."""
    precision: str = ""
    """The precision: `f32`, `bf16` or `f16`, or empty for that of the model."""

    @property
    def epsilon(self) -> float:
        """The distance from 1 to the next number of the format that factors are rounded to."""
        wanted = parse_precision(self.precision, "graph-precision")
        return 0.0 if wanted is None else _EPSILON[wanted]

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = Target.parse(self.target)
        wanted = parse_precision(self.precision, "graph-precision")
        check_precision(wanted, target)
        for function in list(graph_functions(op)):
            precision = wanted
            if precision is None and has_bf16_products(target) and is_bf16_model(function):
                precision = Precision.BF16
            if precision is not None:
                set_precision(function, precision, target, keeps_float32=wanted is None)
