"""Rules that move transposes and reshapes after their users, where they cancel or fold into a product, and that drop
casts which an operator makes implicitly. All are exact, except for the order of sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, cast

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import OpTrait

from weft.analysis.graph_patterns import arguments_of, array_of_constant, number_of
from weft.dialects.element_types import bytes_of
from weft.dialects.graph import ConstantOp
from weft.dialects.graph_shapes import DimsAttr
from weft.dialects.graph_traits import Elementwise, ViewLike
from weft.passes.graph.operator_properties import pattern_of
from weft.passes.graph.operators import (
    axes_of,
    dtype_of,
    extents_of,
    made,
    made_constant,
    name_of,
    properties_of,
    reshaped,
    source_of,
    type_of,
    windows_of,
    with_trait,
)
from weft.passes.graph.rewriting import Replacement, Rule
from weft.texpr.graph_operators import Operator
from weft.texpr.ops.convolution import LETTERS

_Moved: TypeAlias = "Callable[[SSAValue], SSAValue | None]"
"""Returns an operand in its form before the move, or None if there is none."""


def _moved(op: Operation, view_kind: str | type[OpTrait], operand: Callable[[Operator], _Moved]) -> Operator | None:
    """Returns `op` on the sources of unshared views of a kind. `operand`, given the first view, converts others."""
    result = op.results[0]
    if not isinstance(op, Operator) or (name_of(op) == "cast" and _widens(op)):
        return None
    if None in extents_of(result):  # because two unknown extents may differ
        return None
    views = [view for value in op.operands if (view := source_of(value, view_kind)) is not None]
    views = [view for view in views if all(use.operation is op for use in view.results[0].uses)]
    views = [view for view in views if extents_of(view.results[0]) == extents_of(result)]
    if not views:
        return None
    other, values = operand(views[0]), list[SSAValue]()
    for value in op.operands:
        view = next((view for view in views if view.results[0] is value), None)
        source = other(value) if view is None else _source_like(view, views[0])
        if source is None:
            return None
        values.append(source)
    groups = op.grouped(values, op.properties)
    return made(name_of(op), groups, **properties_of(op))


def _source_like(view: Operator, first: Operator) -> SSAValue | None:
    source, other = view.operands[0], first.operands[0]
    if extents_of(source) != extents_of(other):
        return None
    is_same = name_of(first) != "transpose" or axes_of(view) == axes_of(first)
    return source if is_same else None


def _widens(op: Operator) -> bool:
    return bytes_of(type_of(op.results[0]).element_type) > bytes_of(type_of(op.operands[0]).element_type)


def _number(value: SSAValue) -> SSAValue | None:
    number = number_of(value)
    if number is None or not type_of(value).get_shape():
        return None if number is None else value
    array = array_of_constant(cast("ConstantOp", value.owner))
    return made_constant(array.reshape(-1)[0], type_of(value).element_type).result


# Transposes


def _elementwise_of_transpose(op: Operation) -> Replacement:
    """f(transpose(x), transpose(y), constant) is transpose(f(x, y, constant)), with the constant permuted back."""

    def operand(view: Operator) -> _Moved:
        axes = axes_of(view)

        def moved(value: SSAValue) -> SSAValue | None:
            if (number := _number(value)) is not None or not isinstance(value.owner, ConstantOp):
                return number
            array = array_of_constant(value.owner)
            array = array.reshape((1,) * (len(axes) - array.ndim) + array.shape)
            inverse = [axes.index(axis) for axis in range(len(axes))]
            return made_constant(array.transpose(inverse), type_of(value).element_type).result

        return moved

    found = _moved(op, "transpose", operand)
    if found is None:
        return None
    views = [view for value in op.operands if (view := source_of(value, "transpose")) is not None]
    return made("transpose", [found.results[0]], axes=axes_of(views[0]))


def _product_of_transpose(op: Operation) -> Replacement:
    product = cast("Operator", op)
    operands, arguments = list(op.operands), arguments_of(op)
    flags = {key: bool(arguments.get(key, key == "transpose_b")) for key in ("transpose_a", "transpose_b")}
    before = dict(flags)
    for position, flag in enumerate(flags):
        transpose = source_of(operands[position], "transpose")
        if transpose is None or (name_of(product) == "dense" and position == 0):
            continue
        axes = axes_of(transpose)
        rank = len(axes)
        if rank >= 2 and axes == [*range(rank - 2), rank - 1, rank - 2]:
            operands[position] = transpose.operands[0]
            flags[flag] = not flags[flag]
    if flags == before:
        return None
    if name_of(product) != "dense":
        kept = {key: a for key, a in product.properties.items() if key not in flags}
        return made(name_of(product), operands, **kept, **flags)
    options = {key: a for key, a in product.properties.items() if key == "out_dtype"}
    matmul = made("matmul", operands[:2], **options)
    return matmul if len(operands) == 2 else made("add", [matmul.results[0], operands[2]])


def _pointwise_convolution(op: Operation) -> Replacement:
    """`conv2d(transpose(x), w)` with a window of one element is `transpose(x @ w^T)`, if the smaller of data and result
    has the channels last."""
    convolution = cast("Operator", op)
    data, weight, result = *op.operands, op.results[0]
    arguments, shape = arguments_of(op), extents_of(weight)
    rank = len(extents_of(data))
    letters = LETTERS.get(rank - 2)
    filters, channels, *window = shape
    if letters is None or arguments["groups"] != 1 or not isinstance(filters, int) or not isinstance(channels, int):
        return None
    if arguments["data_layout"] != "NC" + letters or arguments["kernel_layout"] not in ("", "OI" + letters):
        return None
    if window != [1] * (rank - 2) or not isinstance(type_of(data).element_type, AnyFloat):
        return None
    if any((kernel.stride, kernel.before, kernel.after) != (1, 0, 0) for kernel in windows_of(convolution)):
        return None
    to_last, to_first = [0, *range(2, rank), 1], [0, rank - 1, *range(1, rank - 1)]
    source = source_of(data, "transpose")
    if source is None or axes_of(source) != to_first:
        source = None
    is_before = source is not None and filters <= channels
    is_after = channels <= filters and _is_transposed_later(result, to_last)
    if not is_before and not is_after:
        return None
    pixels = made("transpose", [data], axes=to_last).results[0] if source is None else source.operands[0]
    matrix = reshaped(weight, (filters, channels))
    options = {key: a for key, a in op.properties.items() if key == "out_dtype"}
    product = made("matmul", [pixels, matrix], transpose_b=True, **options)
    return made("transpose", product.results, axes=to_first)


def _is_transposed_later(value: SSAValue, axes: list[int]) -> bool:
    while value.has_one_use():
        reader = next(iter(value.uses)).operation
        if not isinstance(reader, Operator):
            return False
        if name_of(reader) == "transpose":
            return axes_of(reader) == axes
        if not reader.has_trait(Elementwise) or None in extents_of(reader.results[0]):
            return False
        value = reader.results[0]
    return False


def _transpose_of_units(op: Operation) -> Replacement:
    shape = extents_of(op.results[0])
    axes = axes_of(cast("Operator", op))
    long = [axis for axis, extent in zip(axes, shape, strict=True) if extent != 1]
    if None in shape or long != sorted(long):
        return None
    return made("reshape", [op.operands[0]], newshape=DimsAttr(shape))


# Reshapes


def _elementwise_of_view(op: Operation) -> Replacement:
    """f(reshape(x), reshape(y), z) is reshape(f(x, y, z)) if z lacks the reshaped axes."""
    shape = extents_of(op.results[0])
    if None in shape:
        return None

    def operand(view: Operator) -> _Moved:
        source = extents_of(view.operands[0])

        def moved(value: SSAValue) -> SSAValue | None:
            if (number := _number(value)) is not None:
                return number
            own = extents_of(value)
            while isinstance(value.owner, ConstantOp) and own[:1] == (1,):
                own = own[1:]
            if (
                len(own) > len(source)
                or own != shape[len(shape) - len(own) :]
                or own != source[len(source) - len(own) :]
            ):
                return None
            if len(own) == len(extents_of(value)):
                return value
            array = array_of_constant(cast("ConstantOp", value.owner))
            return made_constant(
                array.reshape(array.shape[array.ndim - len(own) :]), type_of(value).element_type
            ).result

        return moved

    found = _moved(op, ViewLike, operand)
    return None if found is None else made("reshape", [found.results[0]], newshape=DimsAttr(shape))


# Casts


def _narrow(op: Operation) -> Replacement:
    inner = op.operands[0].owner
    narrow: Attribute = type_of(op.results[0]).element_type
    if not isinstance(inner, Operator) or not op.operands[0].has_one_use() or not inner.operands:
        return None
    if dtype_of(op.results[0]) not in ("float16", "bfloat16"):
        return None
    if any(arguments_of(inner).get(key) is not None for key in ("dtype", "out_dtype")):
        return None
    sources: list[SSAValue] = []
    for value in inner.operands:
        cast_ = source_of(value, "cast")
        if dtype_of(value) != "float32" or cast_ is None:
            return None
        if type_of(cast_.operands[0]).element_type != narrow:
            return None
        sources.append(cast_.operands[0])
    groups = inner.grouped(sources, inner.properties)
    found = made(name_of(inner), groups, **properties_of(inner))
    pattern = pattern_of(found)
    if pattern is not None and pattern.rounds_once:
        return found
    found.drop_all_references()
    return None


TRANSPOSES: Final = (
    Rule(with_trait(Elementwise), _elementwise_of_transpose),
    Rule(frozenset(("matmul", "batch_matmul", "dense")), _product_of_transpose),
    Rule(frozenset(("conv1d", "conv2d", "conv3d")), _pointwise_convolution),
    Rule(frozenset(("transpose",)), _transpose_of_units),
)
RESHAPES: Final = (Rule(with_trait(Elementwise), _elementwise_of_view),)
CASTS: Final = (Rule(frozenset(("cast",)), _narrow),)
