"""Ops of stablehlo on quantised tensors as ops on their integers.

Ops that compute convert operands to numbers and quantise results; moves and ops with regions apply to the integers.

```mlir
%2 = stablehlo.multiply %0, %1 : tensor<4x!quant.uniform<i8:f32, 0.5:3>>
// becomes, for %0 and %1 of type tensor<4xi8>
%3 = chlo.broadcast_subtract (convert %0 to i32), 3;  %4 = chlo.broadcast_multiply (convert %3 to f32), 0.5  // %5 of %1
%6 = stablehlo.multiply %4, %5
%7 = chlo.broadcast_divide %6, 0.5;  %8 = chlo.broadcast_add %7, 3.0;  %9 = clamp %8 to [-128, 127]
%2 = stablehlo.convert (stablehlo.round_nearest_even %9) : (tensor<4xf32>) -> tensor<4xi8>
```

Source: the StableHLO specification, `dequantize`, `quantize` and `dequantize_op_quantize`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FunctionType, TensorType, i32
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from weft.dialects.quant import Quantization, has_quantized, quantization
from weft.dialects.stablehlo import ConstantOp, DenseConstantOp, int_array
from weft.dialects.stablehlo_dialects import CHLO_DIALECT, STABLEHLO
from weft.support.errors import CompileError

_MOVES: Final = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("bitcast_convert", "broadcast", "broadcast_in_dim", "concatenate", "dynamic_broadcast_in_dim"),
        *("dynamic_gather", "dynamic_pad", "dynamic_reshape", "dynamic_slice", "dynamic_update_slice", "gather"),
        *("get_dimension_size", "optimization_barrier", "pad", "real_dynamic_slice", "reshape", "return", "reverse"),
        *("select", "slice", "torch_index_select", "transpose", "composite", "custom_call"),
    )
)
"""Ops on the integers, like all with regions and calls."""


def on_integers(functions: Mapping[str, FuncOp]) -> Mapping[str, FuncOp]:
    """Functions on integers, outside the module, for those on quantised tensors. Raises `CompileError` for moves
    between different quantised types.
    """
    return {name: expanded(function) if has_quantized(function) else function for name, function in functions.items()}


def expanded(function: FuncOp) -> FuncOp:
    copy = function.clone()
    for old, new in zip(function.walk(), copy.walk(), strict=True):
        new.location = old.location
        for value, other in zip(old.results, new.results, strict=True):
            other.name_hint = value.name_hint
    for old, new in zip(function.args, copy.args, strict=True):
        new.name_hint, new.location = old.name_hint, old.location
    expansion = _Expansion()
    expansion.block(copy.body.block)
    returned = copy.get_return_op()
    results = [_stored(type_) for type_ in copy.function_type.outputs]
    if returned is not None:
        results = [value.type for value in returned.operands]
    copy.function_type = FunctionType.from_lists([argument.type for argument in copy.args], results)
    return copy


def _stored(type_: Attribute) -> Attribute:
    kind = quantization(type_)
    return type_ if kind is None else _of_elements(type_, kind.storage)


def _of_elements(type_: Attribute, element: Attribute) -> TensorType[Any]:
    tensor = cast("TensorType[Any]", type_)
    return TensorType(cast("Any", element), tensor.get_shape(), tensor.encoding)


@cache
def _ops() -> Mapping[str, type[Operation]]:
    return {op.name: op for dialect in (STABLEHLO, CHLO_DIALECT) for op in dialect.operations}


@dataclass
class _Expansion:
    types: dict[SSAValue, Attribute] = field(default_factory=dict[SSAValue, Attribute])
    """Integers -> their former quantised type."""

    def block(self, block: Block) -> None:
        for argument in list(block.args):
            self._store(argument)
        for op in list(block.ops):
            self._op(op)

    def _store(self, value: SSAValue) -> None:
        type_ = value.type
        if quantization(type_) is not None:
            hint = value.name_hint
            integers = Rewriter.replace_value_with_new_type(value, _stored(type_))
            integers.name_hint = hint
            self.types[integers] = type_

    def _op(self, op: Operation) -> None:
        is_moved: bool = op.name in _MOVES or bool(op.regions) or isinstance(op, CallOp | DenseConstantOp | ReturnOp)
        kinds = [self.types.get(operand) for operand in op.operands]
        results = [type_ if quantization(type_) is not None else None for type_ in op.result_types]
        for type_ in (*kinds, *results):
            _check_blocks(op, type_, is_moved=is_moved)
        if not is_moved and any(type_ is not None for type_ in (*kinds, *results)):
            self._compute(op)
            return
        if op.name in _MOVES and not isinstance(op, ReturnOp):
            _check_equal(op, [type_ for type_ in (*kinds, *results) if type_ is not None])
        for result in list(op.results):
            self._store(result)
        for region in op.regions:
            for block in region.blocks:
                self.block(block)

    def _compute(self, op: Operation) -> None:
        block = cast("Block", op.parent)
        writer = _Writer(block, op)
        operands = [
            operand if (type_ := self.types.get(operand)) is None else writer.numbers(operand, type_)
            for operand in op.operands
        ]
        kinds = [quantization(type_) for type_ in op.result_types]
        if op.name in ("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize"):
            found: Sequence[SSAValue] = operands
        else:
            types = [
                type_ if kind is None else _of_elements(type_, kind.expressed)
                for type_, kind in zip(op.result_types, kinds, strict=True)
            ]
            new = type(op).create(
                operands=operands, result_types=types, properties=op.properties, attributes=op.attributes
            )
            found = writer.add(new).results
        for result, value, kind in zip(op.results, found, kinds, strict=True):
            made = value if kind is None else writer.integers(value, result.type)
            if made.name_hint is None:
                made.name_hint = result.name_hint
            if kind is not None:
                self.types[made] = result.type
            result.replace_all_uses_with(made)
        Rewriter.erase_op(op)


def _check_equal(op: Operation, types: Sequence[Attribute]) -> None:
    kinds = [cast("Quantization", quantization(type_)) for type_ in types]
    same = {(kind.storage, kind.least, kind.greatest, kind.expressed, kind.scales, kind.zero_points) for kind in kinds}
    if len(same) > 1:
        elements = [str(cast("TensorType[Attribute]", type_).element_type) for type_ in types]
        other = next(element for element in elements if element != elements[0])
        raise CompileError.at(op, f"{op.name}: it moves elements, whose types are {elements[0]} and {other}")


_WHOLE: Final = (
    *("func.call", "func.return", "stablehlo.constant", "stablehlo.if", "stablehlo.case", "stablehlo.while"),
    *("stablehlo.return", "stablehlo.optimization_barrier", "stablehlo.composite"),
)
"""Ops that keep the places of elements, among those that apply to the integers."""


def _check_blocks(op: Operation, type_: Attribute | None, *, is_moved: bool) -> None:
    """Blocks divide the tensor, and an op on its integers keeps their places."""
    kind = None if type_ is None else quantization(type_)
    if type_ is None or kind is None or not kind.blocks:
        return
    extents, sizes = cast("TensorType[Any]", type_).get_shape(), dict(kind.blocks)
    wanted = [count * sizes.get(dim, extents[dim]) for dim, count in enumerate(kind.shape) if dim < len(extents)]
    if wanted != list(extents) or -1 in extents or len(kind.shape) != len(extents):
        raise CompileError.at(op, f"{op.name}: {[*kind.shape]} blocks do not divide a tensor of extents {[*extents]}")
    if is_moved and op.name not in _WHOLE:
        raise CompileError.at(op, f"{op.name}: it moves elements between blocks with different scales, of {type_}")


@dataclass
class _Writer:
    block: Block
    before: Operation

    def add(self, op: Operation) -> Operation:
        op.location = self.before.location
        self.block.insert_op_before(op, self.before)
        return op

    def _make(self, name: str, type_: Attribute, *operands: SSAValue, **properties: Attribute) -> SSAValue:
        op = _ops()[name].create(operands=operands, result_types=[type_], properties=properties)
        return self.add(op).results[0]

    def _cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        type_ = _of_elements(value.type, element)
        return value if value.type == type_ else self._make("stablehlo.convert", type_, value)

    def _each(self, name: str, value: SSAValue, numbers: Sequence[float], element: Any, kind: Quantization) -> SSAValue:
        """An elementwise op with numbers of a quantised type: one, one per index of an axis, or one per block."""
        if not kind.blocks:
            return self._with(name, value, numbers, element, kind.axis)
        elements = DenseIntOrFPElementsAttr.from_list(TensorType(element, kind.shape), numbers)
        each = self.add(ConstantOp.create(properties={"value": elements}, result_types=[elements.type])).results[0]
        extents = cast("TensorType[Any]", value.type).get_shape()
        pairs = [side for count, extent in zip(kind.shape, extents, strict=True) for side in (count, extent // count)]
        dims = int_array(range(0, len(pairs), 2))
        spread = self._make("stablehlo.broadcast_in_dim", TensorType(element, pairs), each, broadcast_dimensions=dims)
        whole = self._make("stablehlo.reshape", TensorType(element, extents), spread)
        return self._make(f"stablehlo.{name}", value.type, value, whole)

    def _with(
        self, name: str, value: SSAValue, numbers: Sequence[float], element: Attribute, axis: int | None
    ) -> SSAValue:
        shape = [] if axis is None else [len(numbers)]
        elements = DenseIntOrFPElementsAttr.from_list(TensorType(cast("Any", element), shape), numbers)
        other = self.add(ConstantOp.create(properties={"value": elements}, result_types=[elements.type])).results[0]
        if not cast("TensorType[Attribute]", value.type).get_num_dims():
            return self._make(f"stablehlo.{name}", value.type, value, other)
        dims = int_array([] if axis is None else [axis])
        return self._make(f"chlo.broadcast_{name}", value.type, value, other, broadcast_dimensions=dims)

    def numbers(self, value: SSAValue, type_: Attribute) -> SSAValue:
        kind = cast("Quantization", quantization(type_))
        whole = self._cast(value, i32)
        if any(kind.zero_points):
            whole = self._each("subtract", whole, kind.zero_points, i32, kind)
        return self._each("multiply", self._cast(whole, kind.expressed), kind.scales, kind.expressed, kind)

    def integers(self, value: SSAValue, type_: Attribute) -> SSAValue:
        kind = cast("Quantization", quantization(type_))
        value = self._each("divide", value, kind.scales, kind.expressed, kind)
        if any(kind.zero_points):
            value = self._each("add", value, kind.zero_points, kind.expressed, kind)
        value = self._with("maximum", value, [kind.least], kind.expressed, None)
        value = self._with("minimum", value, [kind.greatest], kind.expressed, None)
        return self._cast(self._make("stablehlo.round_nearest_even", value.type, value), kind.storage)
