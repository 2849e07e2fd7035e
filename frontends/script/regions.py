"""Parts of buffers: `A[vi, 0:4]` as a corner and the sizes of a box."""

from __future__ import annotations

import ast
from typing import cast

from weft.frontends.script.evaluate import Evaluator
from weft.frontends.script.values import Buffer, Leaf, Symbol, same_index
from weft.texpr.expr import Binary, Const, Expr, as_expr
from weft.texpr.operators import BinaryKind


def box_of(evaluator: Evaluator, node: ast.expr, buffer: Buffer) -> tuple[list[Expr], list[int]]:
    """The corner and the sizes of a part of `buffer`: an element, slices, or all of it. Raises CompileError."""
    corner, sizes = _ranges(evaluator, node, buffer)
    for dimension, size in enumerate(sizes):
        if size is None:
            raise evaluator.source.error(
                node, f"the region of {buffer.name} in dimension {dimension}: its size is a positive number"
            )
    return corner, [cast("int", size) for size in sizes]


def stored_box(evaluator: Evaluator, node: ast.expr, buffer: Buffer) -> tuple[list[Expr], list[int]]:
    """`box_of`, in the buffer that stores the elements."""
    corner, sizes = box_of(evaluator, node, buffer)
    return list(evaluator.stored_indices(node, buffer, corner)), list(buffer.box(sizes))


def region_of(evaluator: Evaluator, node: ast.expr, buffer: Buffer) -> tuple[list[Expr], list[int]] | None:
    """A box of the buffer that stores the elements, around a part of `buffer`: what depends on data is taken whole.

    None where the extent of such a dimension is no number.
    """
    low, sizes = _ranges(evaluator, node, buffer)
    corner = list(evaluator.stored_indices(node, buffer, low))
    stored = list(buffer.box([size or 0 for size in sizes]))
    for dimension, extent in enumerate(buffer.stored.extents):
        if stored[dimension] < 1 or not _is_affine(corner[dimension]):
            if not isinstance(extent, int) or extent < 1:
                return None
            corner[dimension], stored[dimension] = as_expr(0), extent
    return corner, stored


def _ranges(evaluator: Evaluator, node: ast.expr, buffer: Buffer) -> tuple[list[Expr], list[int | None]]:
    """Where the ranges of a part of `buffer` start, and their sizes, None where they are no numbers."""
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
    sizes: list[int | None] = []
    for dimension, item in enumerate(items):
        what = f"the region of {buffer.name} in dimension {dimension}"
        size: int | None = 1
        if not isinstance(item, ast.Slice):
            low = evaluator.index(item, what)
        elif item.step is not None:
            raise evaluator.source.error(node, f"{what} has a step: regions are boxes")
        else:
            low = as_expr(0) if item.lower is None else evaluator.index(item.lower, what)
            high = buffer.extents[dimension] if item.upper is None else evaluator.index(item.upper, what)
            size = None if high is None else _difference(as_expr(high), low)
            if size is not None and size < 1:
                raise evaluator.source.error(
                    node, f"{what}: its size is a positive number, {ast.unparse(item)} has {size}"
                )
        corner.append(low)
        sizes.append(size)
    return corner, sizes


def _is_affine(expr: Expr) -> bool:
    """Whether an index is made of variables by + and -, and by * // and % with numbers."""
    pending = [expr]
    while pending:
        top = pending.pop()
        if isinstance(top, Binary):
            sides = [isinstance(side, Const) for side in (top.left, top.right)]
            is_quotient = top.kind in (BinaryKind.FLOORDIV, BinaryKind.FLOORMOD) and sides[1]
            if not (top.kind in (BinaryKind.ADD, BinaryKind.SUB) or is_quotient) and (
                top.kind is not BinaryKind.MUL or not any(sides)
            ):
                return False
            pending += top.parts
        elif not isinstance(top, Leaf | Symbol | Const) or not (top.is_index or isinstance(top, Const)):
            return False
    return True


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
