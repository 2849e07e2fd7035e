"""Affine index expressions over SSA values: text form `[%i, %j0 * 4 + %j1]`, canonical form and ranges.

Ops store an `AffineMap` of dimensions, and their values as operands. In canonical form these are distinct, used, and in
the order of first use, so that equal text means equal attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IndexType, IntegerType, i64
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

Extent: TypeAlias = "int | SSAValue"
"""Static or an index value."""
_SUM, _PRODUCT, _PRIMARY = 0, 1, 2


def canonical_map(exprs: Sequence[AffineExpr], operands: Sequence[SSAValue]) -> tuple[AffineMap, tuple[SSAValue, ...]]:
    """Dimension d is `operands[d]`."""
    order: list[SSAValue] = []
    position: dict[SSAValue, int] = {}
    renamed: dict[int, AffineExpr] = {}
    for expr in exprs:
        for node in expr.dfs():
            if isinstance(node, AffineDimExpr) and node.position not in renamed:
                value = operands[node.position]
                if value not in position:
                    position[value] = len(order)
                    order.append(value)
                renamed[node.position] = AffineDimExpr(position[value])
    if all(isinstance(new, AffineDimExpr) and new.position == old for old, new in renamed.items()):
        return AffineMap(len(order), 0, tuple(exprs)), tuple(order)
    dims = [renamed.get(d, AffineDimExpr(d)) for d in range(len(operands))]
    results = tuple(expr.replace_dims_and_symbols(dims, ()) for expr in exprs)
    return AffineMap(len(order), 0, results), tuple(order)


def over_dims(map_: AffineMap) -> tuple[AffineExpr, ...]:
    """Symbols become further dimensions."""
    if not map_.num_symbols:
        return map_.results
    dims: list[AffineExpr] = [AffineDimExpr(d) for d in range(map_.num_dims)]
    symbols: list[AffineExpr] = [AffineDimExpr(map_.num_dims + s) for s in range(map_.num_symbols)]
    return tuple(expr.replace_dims_and_symbols(dims, symbols) for expr in map_.results)


def parse_index_map(parser: Parser) -> tuple[AffineMap, tuple[SSAValue, ...]]:
    """Parse `[%i * 4 + %j, %k floordiv 2]`, canonical."""
    parsed, operands = parser.parse_affine_map_of_ssa_ids()
    dims = [AffineDimExpr(d) for d in range(parsed.num_symbols)]
    exprs = [expr.replace_dims_and_symbols((), dims) for expr in parsed.results]
    return canonical_map(exprs, operands)


def parse_second_map(
    parser: Parser, first: AffineMap, values: Sequence[SSAValue]
) -> tuple[tuple[AffineExpr, ...], tuple[SSAValue, ...]]:
    """Parse another map; returns expressions over the values of both."""
    second, more = parse_index_map(parser)
    behind = [AffineDimExpr(d + first.num_dims) for d in range(second.num_dims)]
    return tuple(expr.replace_dims_and_symbols(behind, ()) for expr in second.results), (*values, *more)


def print_index_map(printer: Printer, exprs: Sequence[AffineExpr], operands: Sequence[SSAValue]) -> None:
    """The inverse of `parse_index_map`."""
    printer.print_string("[")
    printer.print_list(exprs, lambda expr: _print_expr(printer, expr, operands, _SUM))
    printer.print_string("]")


def parse_extent(parser: Parser) -> int | SSAValue:
    extent = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    return parser.parse_operand(IndexType()) if extent is None else extent


def parse_domain(parser: Parser) -> tuple[list[Parser.Argument], list[int | SSAValue]]:
    """Parse `(%i in 4, %j in %n)`: variables and extents."""
    variables: list[Parser.Argument] = []
    extents: list[int | SSAValue] = []

    def parse_variable() -> None:
        variables.append(parser.parse_argument(expect_type=False).resolve(IndexType()))
        parser.parse_keyword("in")
        extents.append(parse_extent(parser))

    parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_variable)
    return variables, extents


def parse_annotations_and_body(
    parser: Parser, arguments: Sequence[Parser.Argument] | None = None
) -> tuple[Mapping[str, Attribute], Region]:
    """Parse optional `attributes {...}` and a region."""
    annotations = parser.parse_optional_attr_dict_with_keyword()
    return {} if annotations is None else annotations.data, parser.parse_region(arguments)


def print_annotations_and_body(printer: Printer, annotations: Mapping[str, Attribute], body: Region) -> None:
    printer.print_op_attributes(annotations, print_keyword=True)
    printer.print_string(" ")
    printer.print_region(body, print_entry_block_args=False, print_empty_block=False)


def static_extents(extents: Sequence[int | SSAValue]) -> DenseArrayBase[IntegerType]:
    """Extents, DYNAMIC_INDEX for values."""
    return DenseArrayBase.from_list(i64, [extent if isinstance(extent, int) else DYNAMIC_INDEX for extent in extents])


def mixed_extents(static: Sequence[int], dynamic: Iterable[SSAValue]) -> tuple[int | SSAValue, ...]:
    """Replace DYNAMIC_INDEX by the values of `dynamic`."""
    values = iter(dynamic)
    return tuple(next(values) if extent == DYNAMIC_INDEX else extent for extent in static)


def negated(expr: AffineExpr) -> AffineExpr | None:
    """The expression to subtract instead, if that reads better."""
    if isinstance(expr, AffineConstantExpr) and expr.value < 0:
        return AffineConstantExpr(-expr.value)
    if (
        isinstance(expr, AffineBinaryOpExpr)
        and expr.kind is AffineBinaryOpKind.Mul
        and isinstance(expr.rhs, AffineConstantExpr)
        and expr.rhs.value < 0
    ):
        return expr.lhs if expr.rhs.value == -1 else expr.lhs * -expr.rhs.value
    return None


def _print_expr(printer: Printer, expr: AffineExpr, operands: Sequence[SSAValue], context: int) -> None:
    if isinstance(expr, AffineConstantExpr):
        printer.print_string(str(expr.value))
        return
    if isinstance(expr, AffineDimExpr):
        printer.print_ssa_value(operands[expr.position])
        return
    if isinstance(expr, AffineSymExpr) or not isinstance(expr, AffineBinaryOpExpr):
        raise ValueError(f"index maps have dimensions only, got {expr}")
    is_sum = expr.kind is AffineBinaryOpKind.Add
    precedence = _SUM if is_sum else _PRODUCT
    parenthesised = precedence < context
    if parenthesised:
        printer.print_string("(")
    _print_expr(printer, expr.lhs, operands, precedence)
    subtracted = negated(expr.rhs) if is_sum else None
    if subtracted is not None:
        printer.print_string(" - ")
        _print_expr(printer, subtracted, operands, _PRODUCT)
    else:
        printer.print_string(f" {expr.kind.get_token()} ")
        _print_expr(printer, expr.rhs, operands, _PRODUCT if is_sum else _PRIMARY)
    if parenthesised:
        printer.print_string(")")
