"""Access to graph operators for rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import OpTrait

from weft.analysis.graph_patterns import arguments_of, array_of_constant
from weft.dialects.attribute_values import attribute_of
from weft.dialects.constant_data import dense_attribute
from weft.dialects.element_types import element_name
from weft.dialects.graph import ConstantOp, Tensor
from weft.dialects.graph_shapes import DimsAttr, Shape, shape_of
from weft.dialects.traversal import post_order
from weft.interp.values import narrow, round_array
from weft.support.errors import CompileError
from weft.texpr.graph_operators import OPERATORS, SEGMENTS, Operator
from weft.texpr.ops.arguments import integers
from weft.texpr.ops.convolution import KernelWindow, windows

if TYPE_CHECKING:
    from numpy.typing import NDArray

OPERATOR_OF: Final = {operator.name.removeprefix("graph."): operator for operator in OPERATORS}
"""Maps the name of an operator in `te.ops` to its class."""


def made(name: str, operands: Sequence[SSAValue | Sequence[SSAValue] | None], **properties: Any) -> Operator:
    """Returns the operator, not inserted yet, with attributes or Python values as properties. Raises `ShapeError`
    for operands that do not fit."""
    given = {key: value if isinstance(value, Attribute) else attribute_of(value) for key, value in properties.items()}
    return OPERATOR_OF[name].of(operands, given)


def made_constant(array: NDArray[Any], element_type: Attribute) -> ConstantOp:
    """Returns a constant rounded to `element_type`, not inserted yet."""
    return ConstantOp(dense_attribute(narrow(round_array(array, element_type), element_type), element_type))


def reshaped(value: SSAValue, shape: Shape) -> SSAValue:
    """Returns `value` in another shape, not inserted yet; a constant stays one."""
    if isinstance(value.owner, ConstantOp):
        array = array_of_constant(value.owner).reshape(cast("tuple[int, ...]", shape))
        return made_constant(array, type_of(value).element_type).result
    return made("reshape", [value], newshape=DimsAttr(shape)).results[0]


def name_of(op: Operation) -> str:
    return op.name.partition(".")[2]


def source_of(value: SSAValue, *kinds: str | type[OpTrait]) -> Operator | None:
    """Returns the operator of `value`, if it has one of these names or traits."""
    owner = value.owner
    if not isinstance(owner, Operator):
        return None
    is_one = any(name_of(owner) == kind if isinstance(kind, str) else owner.has_trait(kind) for kind in kinds)
    return owner if is_one else None


def with_trait(trait: type[OpTrait]) -> frozenset[str]:
    return frozenset(name for name, operator in OPERATOR_OF.items() if operator.has_trait(trait))


def type_of(value: SSAValue) -> Tensor:
    return cast("Tensor", value.type)


def dtype_of(value: SSAValue) -> str:
    return str(element_name(type_of(value).element_type))


def operands_of(op: Operator) -> dict[str, SSAValue | None]:
    """Returns the operands by name, None for absent ones; none may be variadic."""
    operands = cast("list[SSAValue | None]", op.grouped(op.operands, op.properties))
    return dict(zip((role.name for role in op.ROLES), operands, strict=True))


def properties_of(op: Operator, *without: str) -> dict[str, Attribute]:
    return {name: attribute for name, attribute in op.properties.items() if name not in (SEGMENTS, *without)}


def extents_of(value: SSAValue) -> Shape:
    return shape_of(type_of(value))


def axes_of(op: Operator) -> list[int]:
    rank = len(type_of(op.operands[0]).get_shape())
    given = cast("Sequence[int] | None", op.arguments(lambda shape: shape).get("axes"))
    return list(reversed(range(rank))) if given is None else [axis % rank for axis in given]


def counted_axes(op: Operator) -> list[int]:
    """Returns the axes of attribute `axis`, sorted; all by default."""
    rank = type_of(op.operands[0]).get_num_dims()
    axis = cast("int | Sequence[int] | None", arguments_of(op)["axis"])
    return sorted(one % rank for one in (range(rank) if axis is None else [axis] if isinstance(axis, int) else axis))


def windows_of(op: Operator) -> tuple[KernelWindow, ...]:
    """Returns the windows of a convolution or pool; spatial axes follow the channels."""
    arguments, extents = arguments_of(op), type_of(op.operands[0]).get_shape()[2:]
    kernel = arguments["kernel"] if "kernel" in arguments else type_of(op.operands[1]).get_shape()[2:]
    sizes = integers(kernel, f"{op.name}: kernel", len(extents))
    strides = sizes if arguments["strides"] is None else arguments["strides"]
    return windows(op.name, sizes, strides, arguments["padding"], arguments.get("dilation", 1), extents)


def detached_ops(value: SSAValue) -> list[Operation]:
    """Returns the ops of `value` that are not inserted yet, in topological order. Raises `CompileError` for a variable
    of no function."""

    def detached(values: Iterable[SSAValue]) -> Iterator[Operation]:
        for used in values:
            op = used.owner
            if isinstance(op, Operation):
                yield from [op] if op.parent is None else ()
            elif op.parent_op() is None:
                what = f"variable '{used.name_hint}'"
                raise CompileError(f"{what} is no parameter or value of the function: pass it to the function")

    return post_order(detached([value]), lambda op: detached(op.operands))


def inserted(value: SSAValue, before: Operation, like: Operation | None = None) -> SSAValue:
    """Insert the detached ops of a value, with the location of `like` or `before`."""
    for new in detached_ops(value):
        new.location = (like or before).location
        Rewriter.insert_op(new, InsertPoint.before(before))
    return value
