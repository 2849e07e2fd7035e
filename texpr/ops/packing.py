"""Packed layouts, whose last dimensions are tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.support.argument_types import shown
from weft.texpr import reductions as te
from weft.texpr.expr import Expr, ExprLike, Number, error
from weft.texpr.math import if_then_else
from weft.texpr.ops.arguments import checked_axes, checked_tensor, compute, constant, integers
from weft.texpr.shapes import Extent, UnknownExtent, agree, checked_shape, is_same, items, shape_text, simplified
from weft.texpr.tensor import Tensor

__all__ = ["pack", "unpack"]


@dataclass(frozen=True)
class Packing:
    positions: tuple[int, ...]
    """Packed dimensions, in the order of the inner ones."""
    tiles: tuple[int, ...]
    """Inner extents."""
    order: tuple[int, ...]
    """Dimensions in the order of the outer ones."""

    @staticmethod
    def of(what: str, rank: int, inner_dims_pos: object, inner_tiles: object, outer_dims_perm: object) -> Packing:
        positions = checked_axes(f"{what}: inner_dims_pos", items(inner_dims_pos), rank)
        tiles = integers(items(inner_tiles), f"{what}: inner_tiles", len(positions), least=1)
        order = checked_axes(f"{what}: outer_dims_perm", outer_dims_perm, rank)
        if len(order) != rank:
            raise error(f"{what}: outer_dims_perm {shown(outer_dims_perm)} is no order of {rank} dimensions")
        return Packing(positions, tiles, order)

    def tile(self, dimension: int) -> int:
        """The inner extent; 1 if not packed."""
        return self.tiles[self.positions.index(dimension)] if dimension in self.positions else 1

    def outer(self, shape: Sequence[Extent]) -> list[Extent]:
        counts = [simplified((extent + (self.tile(d) - 1)) // self.tile(d)) for d, extent in enumerate(shape)]
        return [counts[d] for d in self.order]


def pack(
    source: Tensor,
    inner_dims_pos: int | Sequence[int],
    inner_tiles: int | Sequence[int],
    outer_dims_perm: Sequence[int] | None = None,
    padding_value: Number | None = None,
    *,
    name: str = "pack",
) -> Tensor:
    """The tensor with some dimensions tiled: dimension `inner_dims_pos[k]` of extent n becomes ceil(n / t) tiles of t =
    `inner_tiles[k]` elements, inner dimension k of the result.

    Inner dimensions follow the outer ones, in the order of the source or `outer_dims_perm`. `padding_value` fills the
    last tile; without it the tile divides the extent, which calls check if symbolic. Images (N, C, H, W) in blocks of
    16 channels are `pack(x, 1, 16)`: (N, C / 16, H, W, 16); weights (K, N) in groups of 4 for dot products `pack(w, 0,
    4)`: (K / 4, N, 4).

    Dtypes: all.
    Equals: `linalg.pack` of MLIR.
    """
    tensor = checked_tensor(source, "pack: source")
    packing = Packing.of("pack", tensor.ndim, inner_dims_pos, inner_tiles, outer_dims_perm)
    shape = tensor.shape
    rests = {d: simplified(shape[d] % packing.tile(d)) for d in packing.positions}
    partial = [d for d, rest in rests.items() if not is_same(rest, 0)]
    for d in partial if padding_value is None else ():
        if not agree(rests[d], 0):
            raise error(
                f"pack: tiles of {packing.tile(d)} are not known to divide extent {shape[d]} of {tensor.name} of shape "
                f"{shape_text(shape)}: give a padding_value"
            )

    def element(*indices: Expr) -> ExprLike:
        inner = dict(zip(packing.positions, indices[tensor.ndim :], strict=True))
        place: list[Expr] = []
        for d in range(tensor.ndim):
            outer, tile = indices[packing.order.index(d)], packing.tile(d)
            place.append(outer if tile == 1 else outer * tile + inner[d])
        if padding_value is None or not partial:
            return tensor(*place)
        padding = constant(padding_value, tensor.dtype)
        return if_then_else(te.all(*(place[d] < shape[d] for d in partial)), tensor(*place), padding)

    return compute([*packing.outer(shape), *packing.tiles], element, name)


def unpack(
    source: Tensor,
    inner_dims_pos: int | Sequence[int],
    inner_tiles: int | Sequence[int],
    outer_dims_perm: Sequence[int] | None = None,
    shape: object = None,
    *,
    name: str = "unpack",
) -> Tensor:
    """The inverse of `pack` with the same arguments, in `shape`, by default outer extents times tiles.

    Dtypes: all.
    Equals: `linalg.unpack` of MLIR.
    """
    tensor = checked_tensor(source, "unpack: source")
    rank = tensor.ndim - len(items(inner_dims_pos))
    packing = Packing.of("unpack", rank, inner_dims_pos, inner_tiles, outer_dims_perm)
    what, inner = f"{tensor.name} of shape {shape_text(tensor.shape)}", tensor.shape[rank:]
    if not all(map(is_same, inner, packing.tiles)):
        raise error(f"unpack: {what} has tiles of {shape_text(inner)}, got inner_tiles {shape_text(packing.tiles)}")
    tiles = [packing.tile(d) for d in range(rank)]
    counts = [tensor.shape[packing.order.index(d)] for d in range(rank)]
    whole = [simplified(count * tile) for count, tile in zip(counts, tiles, strict=True)]
    result = whole if shape is None else checked_shape(shape, "unpack: the shape")
    if len(result) != rank or not all(
        isinstance(result[d], UnknownExtent) or agree(count, given)
        for d, count, given in zip(packing.order, packing.outer(result), tensor.shape, strict=False)
    ):
        raise error(f"unpack: {what} does not have the tiles of a tensor of shape {shape_text(result)}")

    def element(*indices: Expr) -> Expr:
        place = [index if tile == 1 else index // tile for index, tile in zip(indices, tiles, strict=True)]
        within = [0 if tiles[d] == 1 else indices[d] % tiles[d] for d in packing.positions]
        return tensor(*(place[d] for d in packing.order), *within)

    return compute(result, element, name)
