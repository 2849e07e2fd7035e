"""`affine`: `affine.max`, and custom syntax for ops that xDSL parses in the generic form only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import affine
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AffineSetAttr,
    ArrayAttr,
    DenseIntElementsAttr,
    IndexType,
    IntegerAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser.affine_parser import AffineParser
from xdsl.parser.core import UnresolvedOperand
from xdsl.traits import Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from weft.dialects.printing import write
from weft.dialects.upstream.custom_syntax import parse_optional_results, parse_variables, terminated, with_parser
from weft.dialects.upstream.memref import ATOMIC_KINDS
from weft.support.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.parser import Parser
    from xdsl.printer import Printer


@irdl_op_definition
class MaxOp(IRDLOperation):
    """The maximum of a map's results: `affine.max affine_map<(d0) -> (d0, 8)> (%i)`."""

    name = "affine.max"

    arguments = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    result = result_def(IndexType)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        if len(self.arguments) != self.map.data.num_dims + self.map.data.num_symbols:
            raise VerifyException(f"{self.name} has {len(self.arguments)} operands for {self.map.data}")

    @classmethod
    def parse(cls, parser: Parser) -> MaxOp:
        read = affine.MinOp.parse(parser)
        return cls.create(operands=read.operands, result_types=[IndexType()], properties=read.properties)

    def print(self, printer: Printer) -> None:
        dims = self.map.data.num_dims
        symbols = [*self.arguments[dims:]]
        write(printer, " ", self.map, "(", [*self.arguments[:dims]], ")", ("[", symbols, "]") if symbols else ())


@irdl_op_definition
class ParallelOp(IRDLOperation):
    """Independent loops, and reductions; xDSL's class does not parse MLIR's op.

    ```mlir
    %s = affine.parallel (%i, %j) = (0, 0) to (8, min(%n, 16)) step (1, 2) reduce ("addf") -> (f32) { ... }
    ```
    """

    name = "affine.parallel"

    map_operands = var_operand_def(IndexType)
    reductions = prop_def(ArrayAttr[IntegerAttr])
    lower_map = prop_def(AffineMapAttr, prop_name="lowerBoundsMap")
    lower_groups = prop_def(DenseIntElementsAttr, prop_name="lowerBoundsGroups")
    upper_map = prop_def(AffineMapAttr, prop_name="upperBoundsMap")
    upper_groups = prop_def(DenseIntElementsAttr, prop_name="upperBoundsGroups")
    steps = prop_def(ArrayAttr[IntegerAttr])
    res = var_result_def()
    body = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        rank = len(self.body.block.args)
        maps = (self.lower_map.data, self.upper_map.data)
        if len(self.map_operands) != sum(map_.num_dims + map_.num_symbols for map_ in maps):
            raise VerifyException(f"{self.name} has {len(self.map_operands)} operands, its maps take others")
        for map_, groups in zip(maps, (self.lower_groups, self.upper_groups), strict=True):
            if len(groups) != rank or sum(groups.get_values()) != len(map_.results):
                raise VerifyException(f"{self.name} has {rank} loops: groups of bounds and their maps differ")
        if len(self.steps) != rank:
            raise VerifyException(f"{self.name} has {rank} loops and {len(self.steps)} steps")
        if len(self.reductions) != len(self.res) or not all(
            0 <= kind.value.data < len(ATOMIC_KINDS) for kind in self.reductions
        ):
            raise VerifyException(f"{self.name} has {len(self.res)} results and reductions {self.reductions}")

    @property
    def kinds(self) -> list[str]:
        return [ATOMIC_KINDS[kind.value.data] for kind in self.reductions]


def _operands(parser: Parser) -> list[SSAValue]:
    """`(%i, %j)[%n]`"""
    found: list[SSAValue] = []
    for delimiter in (parser.Delimiter.PAREN, parser.Delimiter.SQUARE):
        found += parser.parse_optional_comma_separated_list(delimiter, lambda: parser.parse_operand(IndexType())) or []
    return found


def _parse_if(parser: Parser) -> Operation:
    """`affine.if #set(%i)[%n] -> (f32) { ... } else { ... }`"""
    at = parser.pos
    condition = parser.parse_attribute()
    if not isinstance(condition, AffineSetAttr):
        parser.raise_error("affine.if takes an affine_set", at, parser.pos)
    operands = _operands(parser)
    types = parse_optional_results(parser)
    then = terminated(parser.parse_region(), affine.YieldOp)
    has_else = parser.parse_optional_keyword("else") is not None
    other = terminated(parser.parse_region(), affine.YieldOp) if has_else else Region()
    return affine.IfOp.create(
        operands=operands,
        result_types=types,
        properties={"condition": condition},
        attributes=parser.parse_optional_attr_dict(),
        regions=[then, other],
    )


def _bounds(parser: Parser, word: str) -> tuple[list[AffineExpr], list[SSAValue], list[int]]:
    """`(0, max(%i, %n * 2))`: expressions, operands, and expressions per bound."""
    exprs: list[AffineExpr] = []
    values: list[SSAValue] = []
    groups: list[int] = []

    def add(read: tuple[AffineMap, Sequence[SSAValue]]) -> None:
        map_, operands = read
        dims: list[AffineExpr] = [AffineDimExpr(len(values) + at) for at in range(map_.num_symbols)]
        exprs.extend(expr.replace_dims_and_symbols((), dims) for expr in map_.results)
        values.extend(operands)

    def bound() -> None:
        before = len(exprs)
        if parser.parse_optional_keyword(word) is not None:
            with parser.in_parens():
                parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: add(_expression(parser)))
        else:
            add(_expression(parser))
        groups.append(len(exprs) - before)

    parser.parse_comma_separated_list(parser.Delimiter.PAREN, bound)
    return exprs, values, groups


def _expression(parser: Parser) -> tuple[AffineMap, Sequence[SSAValue]]:
    inner = AffineParser(parser._parser_state)  # pyright: ignore[reportPrivateUsage]
    read_id, names, spans = inner._get_parse_optional_ssa_value()  # pyright: ignore[reportPrivateUsage]
    expr = inner._parse_affine_expr(read_id)  # pyright: ignore[reportPrivateUsage]
    operands = [parser.resolve_operand(UnresolvedOperand(span, 0), IndexType()) for span in spans]
    return AffineMap(0, len(names), (expr,)), operands


def _parse_parallel(parser: Parser) -> Operation:
    """`affine.parallel (%i, %j) = (0, %l) to (min(%n, 8), 10) step (2, 1) reduce ("addf") -> (f32) { ... }`"""
    variables = parse_variables(parser)
    parser.parse_punctuation("=")
    lower, lower_values, lower_groups = _bounds(parser, "max")
    parser.parse_keyword("to")
    upper, upper_values, upper_groups = _bounds(parser, "min")
    steps = [1] * len(variables)
    if parser.parse_optional_keyword("step") is not None:
        steps = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_integer)
    kinds: list[str] = []
    if parser.parse_optional_keyword("reduce") is not None:
        kinds = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_str_literal)
    for kind in kinds:
        if kind not in ATOMIC_KINDS:
            parser.raise_error(f"affine.parallel knows no reduction '{kind}'{did_you_mean(kind, ATOMIC_KINDS)}")
    types = parse_optional_results(parser)
    body = terminated(parser.parse_region(variables), affine.YieldOp)

    def groups(sizes: list[int]) -> DenseIntElementsAttr:
        return DenseIntElementsAttr.from_list(TensorType(i32, [len(sizes)]), sizes)

    return ParallelOp.create(
        operands=[*lower_values, *upper_values],
        result_types=types,
        properties={
            "reductions": ArrayAttr([IntegerAttr(ATOMIC_KINDS.index(kind), i64) for kind in kinds]),
            "lowerBoundsMap": AffineMapAttr(AffineMap(len(lower_values), 0, tuple(lower))),
            "lowerBoundsGroups": groups(lower_groups),
            "upperBoundsMap": AffineMapAttr(AffineMap(len(upper_values), 0, tuple(upper))),
            "upperBoundsGroups": groups(upper_groups),
            "steps": ArrayAttr([IntegerAttr(step, i64) for step in steps]),
        },
        attributes=parser.parse_optional_attr_dict(),
        regions=[body],
    )


OPERATIONS: tuple[type[Operation], ...] = (
    MaxOp,
    with_parser(affine.IfOp, _parse_if),
    with_parser(ParallelOp, _parse_parallel),
)
