"""The operators of the graph dialect: what each takes, and the shape and element type of what it gives.

An operator is a class with typed operands, `ELEMENTS` (the kinds of element it takes) and one rule, `infer`: from
operand types and properties to result types. The rule serves the constructor, the parser (`-> types` may be left out),
the verifier and the pass `graph-infer-types`. What an operator computes stands in two tables with a line each:
`weft.interp.graph` in NumPy, `weft.passes.graph.legalize_rules` as a tensor expression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import ClassVar, Self, TypeAlias, cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseArrayBase,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from weft.dialects.graph_shapes import (
    Shape,
    ShapeError,
    broadcast,
    refines,
    same_name_hint,
    shape_of,
    show_extent,
    show_shape,
    tensor_type,
)

Tensor: TypeAlias = TensorType[Attribute]
Properties: TypeAlias = Mapping[str, Attribute]


class ElementKind(Enum):
    """What sort of numbers an element type holds."""

    FLOAT = auto()
    INTEGER = auto()
    BOOLEAN = auto()


FLOATS = frozenset({ElementKind.FLOAT})
NUMBERS = frozenset({ElementKind.FLOAT, ElementKind.INTEGER})
ANY_ELEMENT = frozenset(ElementKind)


def element_kind(element_type: Attribute) -> ElementKind | None:
    """The kind of an element type; None for a type that tensors of weft do not hold."""
    match element_type:
        case IntegerType() if element_type.width.data == 1:
            return ElementKind.BOOLEAN
        case IntegerType() if element_type.width.data in (8, 16, 32, 64):
            return ElementKind.INTEGER
        case Float16Type() | BFloat16Type() | Float32Type() | Float64Type():
            return ElementKind.FLOAT
        case _:
            return None


class GraphOp(IRDLOperation):
    """An operator on tensors: no effects, and result types that follow from its operands and properties.

    Text: `%y = graph.name %a, %b {property = ...} : T, U -> V`; results are inferred where `-> V` is left out.
    """

    ELEMENTS: ClassVar[frozenset[ElementKind]] = ANY_ELEMENT

    traits = traits_def(Pure())

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> tuple[Tensor, ...]:
        """The result types. Raises `ShapeError` when the op does not take these operands."""
        raise NotImplementedError(f"{cls.__name__}.infer")

    @classmethod
    def of(
        cls,
        operands: Sequence[SSAValue],
        properties: Properties | None = None,
        result_types: Sequence[Attribute] | None = None,
    ) -> Self:
        """The op on `operands`, with inferred result types unless they are given.

        Raises `ShapeError` when the op does not take them.
        """
        given = dict(properties or {})
        if result_types is None:
            result_types = cls.infer_checked([operand.type for operand in operands], given)
        return cls.create(operands=operands, result_types=result_types, properties=given)

    @classmethod
    def infer_checked(cls, types: Sequence[Attribute], properties: Properties) -> tuple[Tensor, ...]:
        """`infer`, after the checks that are the same for each op: how many operands, ranked tensors, element kinds."""
        expected = len(cls.get_irdl_definition().operands)
        if len(types) != expected:
            raise ShapeError(f"{cls.name} takes {expected} operands, got {len(types)}")
        for position, type_ in enumerate(types):
            if not isinstance(type_, TensorType):
                raise ShapeError(f"{cls.name}: operand {position} must be a ranked tensor, got {type_}")
            kind = element_kind(type_.element_type)
            if kind is None or kind not in cls.ELEMENTS:
                kinds = ", ".join(sorted(k.name.lower() for k in cls.ELEMENTS))
                raise ShapeError(f"{cls.name}: operand {position} is {type_}, but elements must be of kind {kinds}")
        return cls.infer(cast("Sequence[Tensor]", types), properties)

    def verify_(self) -> None:
        inferred = self.infer_checked(self.operand_types, self.properties)
        for position, (declared, found) in enumerate(zip(self.result_types, inferred, strict=True)):
            if not isinstance(declared, TensorType):
                raise VerifyException(f"{self.name}: result {position} is a tensor, not {declared}")
            if declared.element_type != found.element_type or not refines(shape_of(found), shape_of(declared)):
                raise VerifyException(
                    f"{self.name}: result {position} is declared {declared}, but the operands give {found}"
                )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        at = parser.pos
        operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        given = parser.parse_optional_attr_dict()
        names = cls.get_irdl_definition().properties.keys()
        properties = {name: attribute for name, attribute in given.items() if name in names}
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        end = parser.pos
        results: Sequence[Attribute] | None = None
        if parser.parse_optional_punctuation("->") is not None:
            results = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        resolved = parser.resolve_operands(operands, types, at)
        try:
            op = cls.of(resolved, properties, results)
        except VerifyException as error:
            parser.raise_error(str(error), at, end)
        op.attributes.update({name: a for name, a in given.items() if name not in names})
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes({**self.properties, **self.attributes})
        printer.print_string(" : ")
        printer.print_list(self.operand_types, printer.print_attribute)
        printer.print_string(" -> ")
        printer.print_list(self.result_types, printer.print_attribute)


def _same_element_type(name: str, operands: Sequence[Tensor]) -> Attribute:
    first = operands[0].element_type
    for operand in operands[1:]:
        if operand.element_type != first:
            raise ShapeError(f"{name}: operands have different element types, {operands[0]} and {operand}")
    return first


class BinaryOp(GraphOp):
    """Element by element on two tensors of one element type, broadcast by NumPy's rule."""

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> tuple[Tensor, ...]:
        lhs, rhs = operands
        element_type = _same_element_type(cls.name, operands)
        try:
            shape = broadcast(shape_of(lhs), shape_of(rhs))
        except ShapeError as error:
            raise ShapeError(f"{cls.name}: {error}") from None
        return (tensor_type(shape, element_type),)


class UnaryOp(GraphOp):
    """Element by element on one tensor; the result has its type."""

    source = operand_def(TensorType)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> tuple[Tensor, ...]:
        return (operands[0],)


@irdl_op_definition
class AddOp(BinaryOp):
    """Sum; integers wrap."""

    name = "graph.add"
    ELEMENTS: ClassVar = NUMBERS


@irdl_op_definition
class SubtractOp(BinaryOp):
    """Difference; integers wrap."""

    name = "graph.subtract"
    ELEMENTS: ClassVar = NUMBERS


@irdl_op_definition
class MultiplyOp(BinaryOp):
    """Product; integers wrap."""

    name = "graph.multiply"
    ELEMENTS: ClassVar = NUMBERS


@irdl_op_definition
class DivideOp(BinaryOp):
    """Quotient of floats."""

    name = "graph.divide"
    ELEMENTS: ClassVar = FLOATS


@irdl_op_definition
class MaximumOp(BinaryOp):
    """The greater; NaN when either is NaN; `or` of booleans."""

    name = "graph.maximum"


@irdl_op_definition
class MinimumOp(BinaryOp):
    """The lesser; NaN when either is NaN; `and` of booleans."""

    name = "graph.minimum"


@irdl_op_definition
class ReluOp(UnaryOp):
    """`maximum(x, 0)`."""

    name = "graph.relu"
    ELEMENTS: ClassVar = NUMBERS


@irdl_op_definition
class MatmulOp(GraphOp):
    """Matrix product by NumPy's rule: the last two dimensions are matrices, the others broadcast.

    `(..., m, k) @ (..., k, n) -> (..., m, n)`; an operand of rank 1 is a row on the left and a column on the right, and
    its dimension leaves the result. f16 and bf16 accumulate in f32; integers wrap.
    """

    name = "graph.matmul"
    ELEMENTS: ClassVar = NUMBERS

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> tuple[Tensor, ...]:
        lhs, rhs = operands
        element_type = _same_element_type(cls.name, operands)
        return (tensor_type(matmul_shape(shape_of(lhs), shape_of(rhs)), element_type),)


def matmul_shape(lhs: Shape, rhs: Shape) -> Shape:
    """The shape of a matrix product. Raises `ShapeError` with both shapes and the extents that differ."""
    both = f"{MatmulOp.name}: shapes {show_shape(lhs)} and {show_shape(rhs)}"
    if not lhs or not rhs:
        raise ShapeError(f"{both}: operands need at least one dimension")
    left, right = lhs[-1], rhs[max(len(rhs) - 2, 0)]
    if left is not None and right is not None and left != right:
        raise ShapeError(
            f"{both} do not multiply: the last dimension on the left is {show_extent(left)}, "
            f"but the {'second last' if len(rhs) > 1 else 'only'} on the right is {show_extent(right)}"
            f"{same_name_hint(left, right)}"
        )
    try:
        batch = broadcast(lhs[:-2], rhs[:-2])
    except ShapeError as error:
        raise ShapeError(f"{both}: batch {error}") from None
    return (*batch, *lhs[-2:-1], *(rhs[-1:] if len(rhs) > 1 else ()))


@irdl_op_definition
class PermuteDimsOp(GraphOp):
    """Transposition: dimension d of the result is dimension `axes[d]` of the source; without `axes`, all reversed.

    ```mlir
    %t = graph.permute_dims %x {axes = array<i64: 0, 2, 1>} : tensor<2x3x4xf32> -> tensor<2x4x3xf32>
    ```
    An axis may be counted from the end (-1 is the last).
    """

    name = "graph.permute_dims"

    source = operand_def(TensorType)
    axes = opt_prop_def(DenseArrayBase.constr(i64))
    result = result_def(TensorType)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], properties: Properties) -> tuple[Tensor, ...]:
        shape = shape_of(operands[0])
        axes = permutation(len(shape), properties.get("axes"))
        return (tensor_type([shape[axis] for axis in axes], operands[0].element_type),)

    @property
    def permutation(self) -> tuple[int, ...]:
        """`axes`, all counted from the start."""
        return permutation(cast("Tensor", self.source.type).get_num_dims(), self.axes)


def permutation(rank: int, axes: Attribute | None) -> tuple[int, ...]:
    """The axes that a transposition of `rank` dimensions takes, counted from the start. Raises `ShapeError`."""
    if not isinstance(axes, DenseArrayBase):
        return tuple(reversed(range(rank)))
    given = cast("DenseArrayBase[IntegerType]", axes).get_values()
    counted = tuple(axis + rank if axis < 0 else axis for axis in given)
    if sorted(counted) != list(range(rank)):
        raise ShapeError(
            f"{PermuteDimsOp.name}: axes {list(given)} are not a permutation of the {rank} dimensions of the operand"
        )
    return counted


OPERATIONS: tuple[type[GraphOp], ...] = (
    AddOp,
    SubtractOp,
    MultiplyOp,
    DivideOp,
    MaximumOp,
    MinimumOp,
    ReluOp,
    MatmulOp,
    PermuteDimsOp,
)
