"""pad: a border around a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, cast

from weft.support.argument_types import shown
from weft.texpr.expr import Expr, ExprLike, Number
from weft.texpr.math import if_then_else
from weft.texpr.ops.arguments import checked_tensor, compute, constant, integers
from weft.texpr.ops.extents import simplified
from weft.texpr.places import error
from weft.texpr.reductions import all as all_of
from weft.texpr.reductions import max as greater
from weft.texpr.reductions import min as less
from weft.texpr.shapes import Extent, items
from weft.texpr.tensor import Tensor

__all__ = ["pad"]

Border: TypeAlias = "tuple[int, int]"
"""How many elements come before an axis and after it."""


def pad(
    data: Tensor, pad_width: object, mode: str = "constant", constant_values: Number = 0, *, name: str = "pad"
) -> Tensor:
    """A tensor with a border: of a constant, of what lies opposite the edge (reflect), or of the edge (edge).

    `pad_width` is an integer, a pair (before, after) for all axes, or a pair for each axis. `reflect` needs borders
    shorter than the axis. Raises CompileError for negative widths.

    Dtypes: all.
    Equals: `np.pad(data, pad_width, mode, constant_values=...)`.
    """
    source = checked_tensor(data, "pad: data")
    borders = _widths(pad_width, source.ndim)
    match mode:
        case "constant":
            return constant_border(source, borders, constant_values, name)
        case "edge" | "reflect":
            return _copied_border(source, borders, mode, name)
        case _:
            raise error(f"pad: the mode is 'constant', 'edge' or 'reflect', got {shown(mode)}")


def _widths(pad_width: object, rank: int) -> list[Border]:
    given = items(pad_width)
    if given and all(isinstance(item, list | tuple) for item in given):
        if len(given) != rank:
            raise error(f"pad: pad_width has {len(given)} pairs, but the tensor has rank {rank}")
        pairs = [integers(item, "pad: pad_width", 2, least=0) for item in given]
    else:
        pairs = [integers(pad_width, "pad: pad_width", 2, least=0)] * rank
    return [cast("Border", pair) for pair in pairs]


def _padded_shape(source: Tensor, borders: Sequence[Border]) -> tuple[Extent, ...]:
    return tuple(simplified(extent + sum(border)) for extent, border in zip(source.shape, borders, strict=True))


def constant_border(source: Tensor, borders: Sequence[Border], value: Number, name: str) -> Tensor:
    """`source` with a border of `value`."""

    def element(*indices: Expr) -> ExprLike:
        inside: list[Expr] = []
        for index, extent, (before, after) in zip(indices, source.shape, borders, strict=True):
            if before:
                inside.append(index >= before)
            if after:
                inside.append(index < extent + before)
        places = [index - before if before else index for index, (before, _) in zip(indices, borders, strict=True)]
        value_inside = source(*places)
        return if_then_else(all_of(*inside), value_inside, constant(value, source.dtype)) if inside else value_inside

    return compute(_padded_shape(source, borders), element, name)


def _copied_border(source: Tensor, borders: Sequence[Border], mode: str, name: str) -> Tensor:
    for axis, (extent, border) in enumerate(zip(source.shape, borders, strict=True)):
        needed = 1 if mode == "edge" else max(border) + 1
        if any(border) and isinstance(extent, int) and extent < needed:
            raise error(f"pad: {mode} needs {needed} elements for a border of {border}, but axis {axis} has {extent}")

    def place(index: Expr, extent: Extent, border: Border) -> Expr:
        if not any(border):
            return index
        inside = index - border[0]
        last = extent - 1
        if mode == "edge":
            return less(greater(inside, 0), last)
        mirrored = greater(inside, 0 - inside)
        return less(mirrored, last * 2 - mirrored)

    def element(*indices: Expr) -> ExprLike:
        return source(*map(place, indices, source.shape, borders))

    return compute(_padded_shape(source, borders), element, name)
