"""`graph-widen-floats`: compute operators on 16-bit floats in float32."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final

from xdsl.context import Context
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
    bf16,
    f16,
    f32,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.graph_patterns import array_of_constant
from weft.analysis.operator_patterns import OperatorKind
from weft.dialects.element_types import bytes_of, element_name
from weft.dialects.graph import ConstantOp
from weft.dialects.graph_shapes import ShapeError, tensor_type
from weft.dialects.graph_traits import Dequantizing, Discontinuous, Product
from weft.passes.graph.functions import graph_functions
from weft.passes.graph.graph_fold_constants import SMALL_BYTES
from weft.passes.graph.operator_properties import pattern_of
from weft.passes.graph.operators import dtype_of, extents_of, made, made_constant, name_of, properties_of, type_of
from weft.passes.index_builders import erase_dead
from weft.support.errors import InternalError
from weft.texpr.graph_operators import Operator

_NARROW_NAMES: Final = tuple(element_name(type_) for type_ in (f16, bf16))
_KEPT: Final = ("cached_attention",)
"""Operators that return operands among their results, and compute in float32."""
OF_FLOAT32: Final = "of_float32"
"""Attribute of float32 products in a function with 16-bit floats: they keep their precision."""


def is_narrow(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and isinstance(value.type.element_type, Float16Type | BFloat16Type)


def widen_floats(function: FuncOp) -> int:
    """Returns the number of operators computed in float32."""
    _mark_products_of_float32(function)
    widening = _Widening()
    count = sum(widening.apply(op) for op in list(function.walk()) if isinstance(op, Operator))
    if count:
        erase_dead_operators(function)
    return count


def _mark_products_of_float32(function: FuncOp) -> None:
    operators = [op for op in function.walk() if isinstance(op, Operator)]
    if any(is_narrow(value) for op in operators for value in (*op.operands, *op.results)):
        for op in operators:
            if op.has_trait(Product) and not any(map(is_narrow, op.operands)):
                op.attributes[OF_FLOAT32] = UnitAttr()


def erase_dead_operators(function: FuncOp) -> None:
    for block in {op.parent_block() for op in function.walk() if isinstance(op, Operator | ConstantOp)}:
        if block is not None:
            erase_dead(block)


class _Widening:
    def __init__(self) -> None:
        self._wide: dict[SSAValue, SSAValue] = {}
        """Maps a 16-bit value computed in float32 to the value before rounding."""
        self._casts: dict[SSAValue, SSAValue] = {}
        """Maps another 16-bit value to the same value in float32."""

    def apply(self, op: Operator) -> bool:
        if name_of(op) == "cast":
            return self._cast(op)
        narrow = [operand for operand in op.operands if is_narrow(operand)]
        if not narrow or name_of(op) in _KEPT:
            return False
        if not any(map(is_narrow, [*op.operands[: _data(op)], *op.results])):
            return False
        if not all(operand in self._wide for operand in narrow):
            pattern = pattern_of(op)
            if pattern is not None and pattern.kind is OperatorKind.INJECTIVE:
                return False  # moving 16-bit elements takes half the memory
        new = self._computed(op)
        if new is None:
            return False
        for old, result in zip(op.results, new.results, strict=True):
            self._replace(op, old, result)
        Rewriter.erase_op(op)
        return True

    def _computed(self, op: Operator) -> Operator | None:
        """Returns None if results would have unexpected types."""
        given: dict[str, Attribute] = {}
        for key, value in properties_of(op).items():
            is_narrow_dtype = isinstance(value, StringAttr) and value.data in _NARROW_NAMES
            given[key] = StringAttr("float32") if key.endswith("dtype") and is_narrow_dtype else value
        operands, jumps = list(op.operands), op.has_trait(Discontinuous)
        product = op.get_trait(Product)
        stays = product is not None and product.of_matrices and is_narrow(operands[1])
        stays = stays and operands[1] not in self._wide
        if stays:
            given["out_dtype"] = StringAttr("float32")
        for at, operand in enumerate(operands[: _data(op)]):
            if is_narrow(operand) and not (stays and at == 1):
                operands[at] = self._as_wide(operand, _is_convolution(op), rounded=jumps)
        try:
            new = made(name_of(op), op.grouped(operands, op.properties), **given)
        except ShapeError:
            return None
        if [_wide_type(result) for result in op.results] != [result.type for result in new.results]:
            new.drop_all_references()
            return None
        _insert_before(new, op)
        return new

    def _cast(self, op: Operator) -> bool:
        source, result = op.operands[0], op.results[0]
        if source not in self._wide or is_narrow(result) or not isinstance(type_of(result).element_type, AnyFloat):
            return False
        wide = self._wide[source]
        if result.type != wide.type:
            wide = _insert_before(made("cast", [wide], dtype=dtype_of(result)), op)
        result.replace_all_uses_with(wide)
        Rewriter.erase_op(op)
        return True

    def _replace(self, op: Operator, old: OpResult, new: SSAValue) -> None:
        new.name_hint = old.name_hint
        if old.type == new.type:
            old.replace_all_uses_with(new)
            return
        rounded = _insert_before(made("cast", [new], dtype=dtype_of(old)), op)
        rounded.name_hint = old.name_hint
        old.replace_all_uses_with(rounded)
        self._wide[rounded] = new

    def _as_wide(self, value: SSAValue, is_folded: bool, *, rounded: bool) -> SSAValue:
        """Returns the value before rounding unless `rounded`. A constant that is small or `is_folded` becomes a
        constant."""
        if value in self._wide and not rounded:
            return self._wide[value]
        if value not in self._casts:
            owner = value.owner
            if isinstance(owner, ConstantOp) and (is_folded or 2 * _bytes(value) <= SMALL_BYTES):
                found: Operation = made_constant(array_of_constant(owner), f32)
            else:
                found = made("cast", [value], dtype="float32")
            self._casts[value] = insert_after(found, value)
        return self._casts[value]


def insert_after(new: Operation, value: SSAValue) -> SSAValue:
    """Insert an op after the definition of `value`, with its name hint."""
    owner = value.owner
    if isinstance(owner, Operation):
        new.location = owner.location
        Rewriter.insert_op(new, InsertPoint.after(owner))
    else:
        Rewriter.insert_op(new, InsertPoint.at_start(owner))
    new.results[0].name_hint = value.name_hint
    return new.results[0]


def _data(op: Operator) -> int:
    trait = op.get_trait(Dequantizing)
    return len(op.operands) if trait is None else trait.data


def _is_convolution(op: Operator) -> bool:
    return "data_layout" in op.SIGNATURE.parameters


def _bytes(value: SSAValue) -> int:
    type_ = type_of(value)
    return prod(type_.get_shape()) * bytes_of(type_.element_type)


def _wide_type(value: SSAValue) -> Attribute:
    return tensor_type(extents_of(value), f32) if is_narrow(value) else value.type


def _insert_before(new: Operator, op: Operation) -> SSAValue:
    new.location = op.location
    _block_of(op).insert_op_before(new, op)
    return new.results[0]


def _block_of(op: Operation) -> Block:
    block = op.parent_block()
    if block is None:
        raise InternalError("an operator of a function is in a block")
    return block


@dataclass(frozen=True)
class GraphWidenFloatsPass(ModulePass):
    """Compute on tensors of float16 and bfloat16 in float32, and round the results of the function.

    Results of operators are casts of float32 results, whose consumers read the value before rounding; explicit casts
    to 16 bits still round. Values that no operator computes keep their type in memory: the second operand of a
    matrix product is read in 16 bits, and operators that only move such elements (`take`, `concatenate`) are
    unchanged. Results are closer to the real numbers than with rounding after each operator.

    Requires: graph functions whose types are known (`graph-infer-types`).
    Leaves: graph functions with the same parameters and results.
    ```mlir
    func.func @f(%x: tensor<8x4xf16>, %w: tensor<4x2xf16>) -> tensor<8x2xf16> {
      %h = graph.matmul %x, %w : tensor<8x4xf16>, tensor<4x2xf16> -> tensor<8x2xf16>
      %y = graph.relu %h : tensor<8x2xf16> -> tensor<8x2xf16>
      func.return %y : tensor<8x2xf16>
    }
    // becomes
    func.func @f(%x: tensor<8x4xf16>, %w: tensor<4x2xf16>) -> tensor<8x2xf16> {
      %x.1 = graph.cast %x {dtype = "float32"} : tensor<8x4xf16> -> tensor<8x4xf32>
      %h = graph.matmul %x.1, %w {out_dtype = "float32"} : tensor<8x4xf32>, tensor<4x2xf16> -> tensor<8x2xf32>
      %y.1 = graph.relu %h : tensor<8x2xf32> -> tensor<8x2xf32>
      %y = graph.cast %y.1 {dtype = "float16"} : tensor<8x2xf32> -> tensor<8x2xf16>
      func.return %y : tensor<8x2xf16>
    }
    ```
    """

    name = "graph-widen-floats"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in list(graph_functions(op)):
            widen_floats(function)
