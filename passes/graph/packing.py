"""Packed tensors of graphs: the layout that `graph.pack` gives and `graph.unpack` takes."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import SSAValue

from weft.analysis.graph_patterns import arguments_of
from weft.dialects.graph_shapes import DimsAttr, Extent, Shape, floordiv, modulo
from weft.passes.graph.operators import extents_of, made, name_of, source_of
from weft.texpr.graph_operators import Operator
from weft.texpr.ops.packing import Packing


def packing_of(op: Operator) -> Packing:
    """The layout of the packed tensor of a `graph.pack` or `graph.unpack`."""
    given = arguments_of(op)
    keys = ("inner_dims_pos", "inner_tiles", "outer_dims_perm")
    return Packing.of(op.name, len(_unpacked_shape(op)), *(given[key] for key in keys))


def has_full_tiles(op: Operator) -> bool:
    """Whether the tiles of a `graph.pack` or `graph.unpack` are known to divide the extents of the unpacked tensor."""
    shape, packing = _unpacked_shape(op), packing_of(op)
    return all(modulo(shape[d], packing.tile(d)) == 0 for d in packing.positions)


def packed(value: SSAValue, tiles: Mapping[int, int]) -> SSAValue:
    """A tensor with some dimensions in tiles: what a `graph.unpack` unpacks, or the result of a `graph.pack` that has
    no place yet. Raises `ShapeError` for tiles that are not known to divide the extents."""
    source = source_of(value, "unpack")
    packing = Packing((*tiles,), (*tiles.values(),), tuple(range(len(extents_of(value)))))
    if source is not None and packing_of(source) == packing and has_full_tiles(source):
        return source.operands[0]
    return made("pack", [value], inner_dims_pos=[*tiles], inner_tiles=[*tiles.values()]).results[0]


def as_views(op: Operator) -> SSAValue | None:
    """The result of a `graph.pack` or `graph.unpack` by reshapes and a transpose, which have no place yet; None for
    partial tiles and unknown extents."""
    shape, packing = _unpacked_shape(op), packing_of(op)
    if None in shape or not has_full_tiles(op):
        return None
    split: list[Extent] = []
    outer, inner = dict[int, int](), dict[int, int]()
    for d, extent in enumerate(shape):
        outer[d] = len(split)
        split.append(floordiv(extent, packing.tile(d)))
        if d in packing.positions:
            inner[d] = len(split)
            split.append(packing.tile(d))
    axes = [*(outer[d] for d in packing.order), *(inner[d] for d in packing.positions)]
    long = [axis for axis in axes if split[axis] != 1]
    if long == sorted(long):
        return _reshaped(op.operands[0], extents_of(op.results[0]))
    if name_of(op) == "pack":
        return made("transpose", [_reshaped(op.operands[0], tuple(split))], axes=axes).results[0]
    back = [axes.index(at) for at in range(len(axes))]
    return _reshaped(made("transpose", [op.operands[0]], axes=back).results[0], shape)


def _unpacked_shape(op: Operator) -> Shape:
    return extents_of(op.operands[0] if name_of(op) == "pack" else op.results[0])


def _reshaped(value: SSAValue, shape: Shape) -> SSAValue:
    return made("reshape", [value], newshape=DimsAttr(shape)).results[0]
