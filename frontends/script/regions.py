"""Parts of buffers: `A[vi, 0:4]` as a corner and the sizes of a box."""

from __future__ import annotations

import ast
from typing import cast

from weft.frontends.script.evaluate import Evaluator
from weft.frontends.script.values import Buffer, same_index
from weft.frontends.te.expr import Binary, Const, Expr, as_expr
from weft.frontends.te.operators import BinaryKind


def box_of(evaluator: Evaluator, node: ast.expr, buffer: Buffer) -> tuple[list[Expr], list[int]]:
    """The corner and the sizes of a part of `buffer`: an element, slices, or all of it. Raises CompileError."""
    if not isinstance(node, ast.Subscript):
        if not all(isinstance(extent, int) for extent in buffer.extents):
            raise evaluator.source.error(node, f"the extents of {buffer.name} are not numbers: give a region")
        return [as_expr(0)] * buffer.rank, [cast("int", extent) for extent in buffer.extents]
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if len(items) != buffer.rank:
        raise evaluator.source.error(
            node, f"{buffer.name} has {buffer.rank} dimensions, and {len(items)} ranges are given"
        )
    corner: list[Expr] = []
    sizes: list[int] = []
    for dimension, item in enumerate(items):
        what = f"the region of {buffer.name} in dimension {dimension}"
        if not isinstance(item, ast.Slice):
            corner.append(evaluator.index(item, what))
            sizes.append(1)
            continue
        if item.step is not None:
            raise evaluator.source.error(node, f"{what} has a step: regions are boxes")
        low = as_expr(0) if item.lower is None else evaluator.index(item.lower, what)
        high = buffer.extents[dimension] if item.upper is None else evaluator.index(item.upper, what)
        size = None if high is None else _difference(as_expr(high), low)
        if size is None or size < 1:
            raise evaluator.source.error(node, f"{what}: its size is a positive number, {ast.unparse(item)} has {size}")
        corner.append(low)
        sizes.append(size)
    return corner, sizes


def _difference(left: Expr, right: Expr) -> int | None:
    """left - right, where it is the same number for all values of variables."""
    terms: list[tuple[Expr, int]] = []
    constant = _collect(left, 1, terms) + _collect(right, -1, terms)
    return constant if all(factor == 0 for _, factor in terms) else None


def _collect(expr: Expr, factor: int, terms: list[tuple[Expr, int]]) -> int:
    """Add `expr * factor` to `terms`; its constant part is the result."""
    match expr:
        case Const():
            return int(expr.value) * factor
        case Binary(kind=BinaryKind.ADD):
            return _collect(expr.left, factor, terms) + _collect(expr.right, factor, terms)
        case Binary(kind=BinaryKind.SUB):
            return _collect(expr.left, factor, terms) + _collect(expr.right, -factor, terms)
        case Binary(kind=BinaryKind.MUL, right=Const() as number):
            return _collect(expr.left, factor * int(number.value), terms)
        case Binary(kind=BinaryKind.MUL, left=Const() as number):
            return _collect(expr.right, factor * int(number.value), terms)
        case _:
            for position, (known, old) in enumerate(terms):
                if same_index(known, expr):
                    terms[position] = known, old + factor
                    return 0
            terms.append((expr, factor))
            return 0
