"""Packed layouts, by padding, reshaping and transposing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.texpr.references.arguments import Array, Ints, listed


def pack(
    source: Array,
    inner_dims_pos: Ints,
    inner_tiles: Ints,
    outer_dims_perm: Sequence[int] | None = None,
    padding_value: float | None = None,
) -> Array:
    tiles = _tiles(source.ndim, inner_dims_pos, inner_tiles)
    widths = [(0, -extent % tiles.get(d, 1)) for d, extent in enumerate(source.shape)]
    whole = source  # np.pad copies, even without padding
    if any(after for _, after in widths):
        whole = np.pad(source, widths, constant_values=0 if padding_value is None else padding_value)
    pairs = [part for d, extent in enumerate(whole.shape) for part in (extent // tiles.get(d, 1), tiles.get(d, 1))]
    packed = whole.reshape(pairs).transpose(_axes(source.ndim, tiles, outer_dims_perm))
    return packed.reshape(packed.shape[: source.ndim + len(tiles)])


def unpack(
    source: Array,
    inner_dims_pos: Ints,
    inner_tiles: Ints,
    outer_dims_perm: Sequence[int] | None = None,
    shape: Sequence[int] | None = None,
) -> Array:
    rank = source.ndim - len(listed(inner_dims_pos))
    tiles = _tiles(rank, inner_dims_pos, inner_tiles)
    axes = _axes(rank, tiles, outer_dims_perm)
    pairs = source.reshape([*source.shape, *[1] * (rank - len(tiles))]).transpose(np.argsort(axes))
    extents = [outer * inner for outer, inner in zip(pairs.shape[::2], pairs.shape[1::2], strict=True)]
    return pairs.reshape(extents)[tuple(map(slice, extents if shape is None else shape))]


def _tiles(rank: int, inner_dims_pos: Ints, inner_tiles: Ints) -> dict[int, int]:
    return dict(zip((d % rank for d in listed(inner_dims_pos)), listed(inner_tiles), strict=True))


def _axes(rank: int, tiles: dict[int, int], outer_dims_perm: Sequence[int] | None) -> list[int]:
    order = [d % rank for d in outer_dims_perm or range(rank)]
    inner = [*tiles, *(d for d in range(rank) if d not in tiles)]
    return [*(2 * d for d in order), *(2 * d + 1 for d in inner)]
