"""Rules that fold scales, biases and batch norms into the weights of products, and that merge constants and products.

They round differently: a weight is scaled in float64 and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from numpy.typing import NDArray
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from weft.analysis.graph_patterns import arguments_of, array_of_constant, number_of
from weft.dialects.graph import ConstantOp
from weft.passes.graph.operator_properties import channel_axes
from weft.passes.graph.operators import dtype_of, made, made_constant, name_of, properties_of, source_of, type_of
from weft.passes.graph.rewriting import Replacement, Rule
from weft.texpr.expr import is_float
from weft.texpr.graph_operators import Operator

Array: TypeAlias = NDArray[Any]


def _constant(value: SSAValue) -> ConstantOp | None:
    return value.owner if isinstance(value.owner, ConstantOp) else None


@dataclass(frozen=True)
class _Product:
    """A product with constant weights, separate per index of one result axis."""

    op: Operator
    weight: ConstantOp
    bias: ConstantOp | None
    result_axis: int
    weight_shape: tuple[int, ...]
    """The shape in which one number per index of `result_axis` broadcasts to the weights."""


def _product(value: SSAValue) -> _Product | None:
    """Returns the product, if neither it nor its weights have another user."""
    op = value.owner
    if not isinstance(op, Operator) or len(op.operands) < 2 or not value.has_one_use():
        return None
    weight, *bias = map(_constant, op.operands[1:])
    if weight is None or None in bias or not weight.result.has_one_use():
        return None
    is_float_product = dtype_of(value) == dtype_of(weight.result) and is_float(dtype_of(value))
    axes = channel_axes(op) if is_float_product else None
    if axes is None:
        return None
    shape = tuple(e if at in axes.weight else 1 for at, e in enumerate(weight.result.type.get_shape()))
    return _Product(op, weight, bias[0] if bias else None, axes.result, shape)


@dataclass(frozen=True)
class _Affine:
    """product * scale + shift: scale and shift are numbers, or one per output channel."""

    product: _Product
    scale: Array
    shift: Array
    steps: int
    """The number of operators that follow the product."""

    def then(self, scale: Array, shift: Array) -> _Affine:
        return _Affine(self.product, self.scale * scale, self.shift * scale + shift, self.steps + 1)


def _affine(op: Operation, steps: int) -> _Affine | None:
    import numpy as np

    for position in _DATA.get(name_of(op), ()):
        data = op.operands[position]
        if data.type != op.results[0].type:
            continue
        product = _product(data)
        if product is not None:
            bias = np.zeros(()) if product.bias is None else array_of_constant(product.bias).astype(np.float64)
            found = _Affine(product, np.ones(()), bias, 0)
        else:
            inner = source_of(data, "add", "subtract") if steps and data.has_one_use() else None
            found = None if inner is None else _affine(inner, steps - 1)
        channels = None if found is None else _step(op, position, found.product.result_axis)
        if found is not None and channels is not None:
            return found.then(*channels)
    return None


_DATA: Final = {"multiply": (0, 1), "add": (0, 1), "subtract": (0, 1), "divide": (0,), "batch_norm": (0,)}
"""Maps an operator to the operands that it may scale and shift."""


def _step(op: Operation, position: int, axis: int) -> tuple[Array, Array] | None:
    import numpy as np

    type_ = type_of(op.results[0])
    if isinstance(op, Operator) and name_of(op) == "batch_norm":
        return _norm_step(op) if _norm_axis(op) == axis else None
    other = _channels(op.operands[1 - position], axis, type_.get_num_dims())
    if other is None:
        return None
    one, zero = np.ones(()), np.zeros(())
    match name_of(op):
        case "multiply":
            return other, zero
        case "divide":
            with np.errstate(all="ignore"):
                return 1.0 / other, zero
        case "add":
            return one, other
        case _:
            return (one, -other) if position == 0 else (-one, other)


def _norm_axis(op: Operator) -> int:
    return cast("int", arguments_of(op)["axis"]) % type_of(op.results[0]).get_num_dims()


def _norm_step(op: Operator) -> tuple[Array, Array] | None:
    import numpy as np

    gamma, beta, mean, variance = (
        None if value is None else _channels(value, 0, 1) for value in op.grouped(op.operands, op.properties)[1:]
    )
    if mean is None or variance is None or len(op.operands) != 3 + (gamma is not None) + (beta is not None):
        return None
    with np.errstate(all="ignore"):
        scale = (1.0 if gamma is None else gamma) / np.sqrt(variance + cast("float", arguments_of(op)["epsilon"]))
        return scale, (0.0 if beta is None else beta) - mean * scale


def _unfolded_norm(op: Operation) -> Replacement:
    """A norm that no product takes is a product and a sum, in any layout."""
    import numpy as np

    step = _norm_step(op) if isinstance(op, Operator) and dtype_of(op.results[0]) == "float32" else None
    if not isinstance(op, Operator) or step is None or not all(np.isfinite(part).all() for part in step):
        return None
    type_, axis = type_of(op.results[0]), _norm_axis(op)
    shape = [-1] + [1] * (type_.get_num_dims() - axis - 1)
    scale, shift = (made_constant(part.reshape(shape), type_.element_type).result for part in step)
    return made("add", [made("multiply", [op.operands[0], scale]).results[0], shift])


def _channels(value: SSAValue, axis: int, rank: int) -> Array | None:
    """Returns a broadcast constant in float64, one number or one per index of `axis`."""
    import numpy as np

    constant = _constant(value)
    if constant is None:
        return None
    number = number_of(value)
    if number is not None:
        return np.asarray(number, np.float64)
    shape = constant.result.type.get_shape()
    at = axis - (rank - len(shape))
    if at < 0 or any(extent != 1 for position, extent in enumerate(shape) if position != at):
        return None
    return array_of_constant(constant).reshape(-1).astype(np.float64)


def _fold_affine(op: Operation) -> Replacement:
    import numpy as np

    found = _affine(op, 1)
    if found is None:
        return None
    product, scale, shift = found.product, found.scale, found.shift
    takes_bias = len(product.op.ROLES) > 2
    if found.steps == 1 and (scale == 1).all() and not takes_bias:
        return None  # because the op is a product and a term already
    result = type_of(product.op.results[0])
    weight, element = product.weight.result, result.element_type
    array = array_of_constant(product.weight)
    channels = [e for e in product.weight_shape if e != 1]
    factors = np.broadcast_to(scale, _total(channels)).reshape(product.weight_shape)
    scaled = np.empty_like(array)
    with np.errstate(all="ignore"):
        np.multiply(array, factors, out=scaled, casting="same_kind")
    if not np.isfinite(scaled).all() or not np.isfinite(shift).all():
        return None
    made_weight = weight if (scale == 1).all() else made_constant(scaled, element).result
    made_weight.name_hint = weight.name_hint
    term = np.broadcast_to(shift, _total(channels))
    if takes_bias:
        bias = made_constant(term, element).result
        return made(name_of(product.op), [product.op.operands[0], made_weight, bias], **properties_of(product.op))
    new = made(name_of(product.op), [product.op.operands[0], made_weight], **properties_of(product.op))
    new.results[0].name_hint = product.op.results[0].name_hint
    if not shift.any():
        return new
    shape = [1] * (len(result.get_shape()) - product.result_axis)
    shape[0] = -1
    return made("add", [new.results[0], made_constant(term.reshape(shape), element).result])


def _total(channels: Sequence[int]) -> int:
    total = 1
    for extent in channels:
        total *= extent
    return total


# Merging of constants


def _merge_constants(op: Operation) -> Replacement:
    """(x * a) * b is x * (a * b), (x + a) + b is x + (a + b), (x * a + b) * c is x * (a * c) + b * c."""
    import numpy as np

    data, outer = _data_and_constant(op)
    if data is None or outer is None or not data.has_one_use() or data.type != op.results[0].type:
        return None
    inner = source_of(data, "multiply", "add")
    if inner is None:
        return None
    source, constant = _data_and_constant(inner)
    if source is None or constant is None or source.type != data.type:
        return None
    element = type_of(data).element_type
    first, second = array_of_constant(constant), array_of_constant(outer)

    def combined(left: Array, right: Array, name: str) -> SSAValue | None:
        with np.errstate(all="ignore"):
            found = np.multiply(left, right) if name == "multiply" else np.add(left, right)
        is_small = found.size <= max(left.size, right.size)
        return made_constant(found, element).result if is_small and np.isfinite(found).all() else None

    if name_of(inner) == name_of(op):
        both = combined(first, second, name_of(op))
        return None if both is None else made(name_of(op), [source, both])
    if name_of(op) != "multiply" or not source.has_one_use() or (scaling := source_of(source, "multiply")) is None:
        return None
    start, scale = _data_and_constant(scaling)
    if start is None or scale is None or start.type != data.type:
        return None
    factor, term = combined(array_of_constant(scale), second, "multiply"), combined(first, second, "multiply")
    if factor is None or term is None:
        return None
    return made("add", [made("multiply", [start, factor]).results[0], term])


def _data_and_constant(op: Operation) -> tuple[SSAValue | None, ConstantOp | None]:
    left, right = op.operands
    if (constant := _constant(right)) is not None:
        return left, constant
    constant = _constant(left)
    return (None, None) if constant is None else (right, constant)


# Products of one operand


def merge_products(function: FuncOp) -> int:
    """Merge products of one operand with constant matrices into one, whose columns are split. Returns the number
    removed."""
    blocks = {op.parent_block(): None for op in function.walk() if isinstance(op, Operator)}
    return sum(_merge_in(block) for block in blocks if block is not None)


def _merge_in(block: Block) -> int:
    groups: dict[object, list[Operator]] = {}
    for op in block.ops:
        if isinstance(op, Operator) and len(op.operands) > 1:
            constants = [_constant(value) for value in op.operands[1:]]
            types = [type_of(value) for value in op.operands]
            if all(c is not None and c.result.has_one_use() for c in constants) and len(types[1].get_shape()) == 2:
                axis = _column_axis(op)
                if axis is not None:
                    key = (op.operands[0], op.name, len(types), frozenset(op.properties.items()), types[1].element_type)
                    groups.setdefault((*key, types[1].get_shape()[1 - axis]), []).append(op)
    merged = [group for group in groups.values() if len(group) > 1]
    for group in merged:
        _merge(group)
    return sum(len(group) - 1 for group in merged)


def _column_axis(op: Operator) -> int | None:
    axes = channel_axes(op)
    return axes.weight[0] if axes is not None and axes.result == type_of(op.results[0]).get_num_dims() - 1 else None


def _merge(group: Sequence[Operator]) -> None:
    import numpy as np

    first, axis = group[0], cast("int", _column_axis(group[0]))
    element = type_of(first.operands[1]).element_type
    joined: list[SSAValue] = []
    new: list[Operation] = []
    for position in range(1, len(first.operands)):
        parts = [array_of_constant(cast("ConstantOp", op.operands[position].owner)) for op in group]
        constant = made_constant(np.concatenate(parts, axis if position == 1 else 0), element)
        new.append(constant)
        joined.append(constant.result)
    product = made(name_of(first), [first.operands[0], *joined], **properties_of(first))
    widths = [type_of(op.operands[1]).get_shape()[axis] for op in group]
    ends = [sum(widths[: at + 1]) for at in range(len(widths) - 1)]
    parts = made("split", [product.results[0]], indices_or_sections=ends, axis=len(_shape(product)) - 1)
    block = cast("Block", first.parent_block())
    for op in (*new, product, parts):
        op.location = first.location
        block.insert_op_before(op, first)
    for op, part in zip(group, parts.results, strict=True):
        part.name_hint = op.results[0].name_hint
        constants = [value.owner for value in op.operands[1:]]
        Rewriter.replace_op(op, [], [part])
        for constant in constants:
            Rewriter.erase_op(cast("Operation", constant))


def _shape(op: Operator) -> Sequence[int]:
    return type_of(op.results[0]).get_shape()


FOLD_SCALES: Final = (Rule(frozenset(_DATA), _fold_affine), Rule(frozenset(("batch_norm",)), _unfolded_norm))
MERGE_CONSTANTS: Final = (Rule(frozenset(("multiply", "add")), _merge_constants),)
