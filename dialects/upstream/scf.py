"""`scf`: custom syntax that xDSL reads differently; `scf.forall`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, i1
from xdsl.dialects.utils import parse_assignment
from xdsl.ir import Region

from weft.dialects.upstream.custom_syntax import (
    parse_indices,
    parse_optional_results,
    parse_typed_names,
    parse_variables,
    terminated,
    with_parser,
)
from weft.dialects.upstream.scf_forall import ForallOp, InParallelOp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Attribute, Operation, SSAValue
    from xdsl.parser import Parser, UnresolvedOperand


def _parse_parallel(parser: Parser) -> Operation:
    """`scf.parallel (%i) = (%lower) to (%upper) step (%step) init (%x) -> f32 { ... scf.reduce(%y : f32) { ... } }`."""
    variables = parse_variables(parser)
    parser.parse_punctuation("=")
    bounds = [parse_indices(parser)]
    for keyword in ("to", "step"):
        parser.parse_characters(keyword)
        bounds.append(parse_indices(parser))
    starts: list[UnresolvedOperand] = []
    if parser.parse_optional_keyword("init") is not None:
        starts = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
    types = parse_optional_results(parser)
    at = parser.pos
    body = terminated(parser.parse_region(variables), scf.ReduceOp)
    attributes = parser.parse_optional_attr_dict()
    values = parser.resolve_operands(starts, types, at)
    return scf.ParallelOp.build(operands=[*bounds, values], result_types=[types], attributes=attributes, regions=[body])


def _parse_reduce(parser: Parser) -> Operation:
    """`scf.reduce(%x, %y : f32, f32) { ^bb0(...): ... }, { ... }`: MLIR separates regions by commas."""
    values: list[SSAValue] = []
    if parser.parse_optional_punctuation("(") is not None:
        names = parse_typed_names(parser)
        parser.parse_punctuation(")")
        values = list(parser.resolve_operands(*names))
    regions: list[Region] = []
    for number in range(len(values)):
        if number:
            parser.parse_optional_punctuation(",")
        regions.append(parser.parse_region())
    op = scf.ReduceOp(values, regions)
    op.attributes.update(parser.parse_optional_attr_dict())
    return op


def _parse_if(parser: Parser) -> Operation:
    """`scf.if %c -> index { ... } else { ... }`: MLIR prints one result without parentheses."""
    condition = parser.parse_operand(i1)
    types = parse_optional_results(parser)
    regions = [scf.IfOp.parse_region_with_yield(parser), Region()]
    if parser.parse_optional_keyword("else") is not None:
        regions[1] = scf.IfOp.parse_region_with_yield(parser)
    attributes = parser.parse_optional_attr_dict()
    return scf.IfOp.create(operands=[condition], result_types=types, regions=regions, attributes=attributes)


def _parse_for(parser: Parser) -> Operation:
    """`scf.for %i = %a to %b step %c iter_args(%x = %y) -> f32 : i32 { ... }`: MLIR accepts one type without
    parentheses."""
    index = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    bounds = [parser.parse_unresolved_operand()]
    for keyword in ("to", "step"):
        parser.parse_keyword(keyword)
        bounds.append(parser.parse_unresolved_operand())
    carried: list[tuple[Parser.UnresolvedArgument, UnresolvedOperand]] = []
    types: Sequence[Attribute] = ()
    at = parser.pos
    if parser.parse_optional_keyword("iter_args") is not None:
        carried = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_assignment(parser))
        types = parse_optional_results(parser)
    starts = parser.resolve_operands([start for _, start in carried], types, at)
    arguments = [argument.resolve(type_) for (argument, _), type_ in zip(carried, types, strict=True)]
    type_ = IndexType() if parser.parse_optional_punctuation(":") is None else parser.parse_type()
    lower, upper, step = (parser.resolve_operand(bound, type_) for bound in bounds)
    body = parser.parse_region((index.resolve(type_), *arguments))
    if not carried:
        body = terminated(body, scf.YieldOp)
    op = scf.ForOp(lower, upper, step, starts, body)
    op.attributes.update(parser.parse_optional_attr_dict())
    return op


OPERATIONS: tuple[type[Operation], ...] = (
    with_parser(scf.ForOp, _parse_for),
    with_parser(scf.IfOp, _parse_if),
    with_parser(scf.ParallelOp, _parse_parallel),
    with_parser(scf.ReduceOp, _parse_reduce),
    ForallOp,
    InParallelOp,
)
