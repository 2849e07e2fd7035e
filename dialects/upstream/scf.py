"""`scf`: the custom syntax of `scf.parallel` and `scf.reduce`, which xDSL reads otherwise; `scf.forall`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import scf
from xdsl.dialects.builtin import DenseArrayBase, IndexType, i32

from weft.dialects.upstream.custom_syntax import with_parser
from weft.dialects.upstream.scf_forall import ForallOp, InParallelOp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Attribute, Operation, Region, SSAValue
    from xdsl.parser import Parser, UnresolvedOperand


def _parse_parallel(parser: Parser) -> Operation:
    """`scf.parallel (%i) = (%lower) to (%upper) step (%step) init (%x) -> f32 { ... scf.reduce(%y : f32) { ... } }`."""
    variables = parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False).resolve(IndexType())
    )
    parser.parse_punctuation("=")
    bounds = [_indices(parser)]
    for keyword in ("to", "step"):
        parser.parse_characters(keyword)
        bounds.append(_indices(parser))
    starts: list[UnresolvedOperand] = []
    if parser.parse_optional_keyword("init") is not None:
        starts = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
    types = []
    if parser.parse_optional_punctuation("->") is not None:
        types = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        types = [parser.parse_type()] if types is None else types
    at = parser.pos
    body = parser.parse_region(variables)
    attributes = parser.parse_optional_attr_dict()
    values = parser.resolve_operands(starts, types, at)
    operands = [*bounds, values]
    if not body.block.ops or not isinstance(body.block.last_op, scf.ReduceOp):
        body.block.add_op(scf.ReduceOp())
    return scf.ParallelOp.create(
        operands=[value for part in operands for value in part],
        result_types=types,
        properties={"operandSegmentSizes": DenseArrayBase.from_list(i32, list(map(len, operands)))},
        attributes=attributes,
        regions=[body],
    )


def _indices(parser: Parser) -> list[SSAValue]:
    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parser.parse_operand(IndexType()))


def _parse_reduce(parser: Parser) -> Operation:
    """`scf.reduce(%x, %y : f32, f32) { ^bb0(...): ... }, { ... }`: MLIR separates the regions by commas."""
    values: Sequence[UnresolvedOperand] = ()
    types: Sequence[Attribute] = ()
    at = parser.pos
    if parser.parse_optional_punctuation("(") is not None:
        values = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        parser.parse_punctuation(")")
    regions: list[Region] = []
    for number in range(len(values)):
        if number:
            parser.parse_optional_punctuation(",")
        regions.append(parser.parse_region())
    op = scf.ReduceOp(parser.resolve_operands(values, types, at), regions)
    op.attributes.update(parser.parse_optional_attr_dict())
    return op


OPERATIONS: tuple[type[Operation], ...] = (
    with_parser(scf.ParallelOp, _parse_parallel),
    with_parser(scf.ReduceOp, _parse_reduce),
    ForallOp,
    InParallelOp,
)
