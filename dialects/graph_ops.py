"""The base of the operators of the graph dialect.

An operator is a class with tensor operands and `infer`: from operand types and properties to result types. The
constructor, the parser (`-> types` may be left out), the verifier and the pass `graph-infer-types` share it.
`weft.texpr.graph_operators` declares the operators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self, TypeAlias, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from weft.dialects.graph_shapes import ShapeError, refines, shape_of

Tensor: TypeAlias = TensorType[Attribute]
Properties: TypeAlias = Mapping[str, Attribute]


class GraphOp(IRDLOperation):
    """An operator on tensors: no effects, and result types that follow from its operands and properties.

    Text: `%y = graph.name %a, %b {property = ...} : T, U -> V`; results are inferred where `-> V` is left out.
    """

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
        """`infer`, after the checks that are the same for each op: how many operands, ranked tensors."""
        expected = len(cls.get_irdl_definition().operands)
        if len(types) != expected:
            raise ShapeError(f"{cls.name} takes {expected} operands, got {len(types)}")
        for position, type_ in enumerate(types):
            if not isinstance(type_, TensorType):
                raise ShapeError(f"{cls.name}: operand {position} must be a ranked tensor, got {type_}")
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
