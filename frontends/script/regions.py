"""Parts of buffers: `A[vi, 0:4]` as a corner and the sizes of a box."""

from __future__ import annotations

import ast
from typing import cast

from weft.frontends.script.evaluate import Evaluator
from weft.frontends.script.values import Buffer, Leaf, Stride, Symbol, same_index
from weft.frontends.te.expr import Binary, Const, Expr, as_expr
from weft.frontends.te.operators import BinaryKind


def box_of(
    evaluator: Evaluator, node: ast.expr, buffer: Buffer, *, as_declared: bool = False, widen: bool = False
) -> tuple[list[Expr], list[int]]:
    """The corner and the sizes of a part of `buffer`: an element, slices, or all of it. Raises CompileError.

    They are those in the buffer that stores its elements, but with `as_declared`. With `widen` a dimension whose range
    depends on data, or whose size does, is taken whole.
    """
    corner, sizes = _declared_box(evaluator, node, buffer, widen)
    if as_declared:
        return corner, sizes
    return list(evaluator.stored_indices(node, buffer, corner)), list(buffer.box(sizes))


def _declared_box(evaluator: Evaluator, node: ast.expr, buffer: Buffer, widen: bool) -> tuple[list[Expr], list[int]]:
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
        extent = buffer.extents[dimension]
        size: int | None = 1
        if not isinstance(item, ast.Slice):
            low = evaluator.index(item, what)
        elif item.step is not None:
            raise evaluator.source.error(node, f"{what} has a step: regions are boxes")
        else:
            low = as_expr(0) if item.lower is None else evaluator.index(item.lower, what)
            high = extent if item.upper is None else evaluator.index(item.upper, what)
            size = None if high is None else _difference(as_expr(high), low)
        if widen and isinstance(extent, int) and extent and (size is None or not _is_plain(low)):
            low, size = as_expr(0), extent
        if size is None or size < 1:
            raise evaluator.source.error(node, f"{what}: its size is a positive number, {ast.unparse(item)} has {size}")
        corner.append(low)
        sizes.append(size)
    return corner, sizes


def _is_plain(expr: Expr) -> bool:
    """Whether an index is made of variables by + - * // and %."""
    pending = [expr]
    while pending:
        top = pending.pop()
        if not isinstance(top, Leaf | Symbol | Stride | Const) and not (
            isinstance(top, Binary) and top.kind not in (BinaryKind.MIN, BinaryKind.MAX)
        ):
            return False
        pending += top.parts
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
