"""Packed tensors of graphs: the layouts of `graph.pack` and `graph.unpack`, and operators on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from xdsl.ir import Attribute, SSAValue

from weft.analysis.graph_patterns import arguments_of
from weft.analysis.structural_equality import structural_equal
from weft.dialects.attribute_values import attribute_of
from weft.dialects.graph import Tensor
from weft.dialects.graph_shapes import (
    Extent,
    Shape,
    ShapeError,
    extent_attribute,
    floordiv,
    modulo,
    shape_of,
    tensor_type,
)
from weft.dialects.graph_traits import Elementwise
from weft.passes.graph.operators import extents_of, made, name_of, properties_of, reshaped
from weft.passes.graph.packed_functions import index_units_by_zero, pack_axis, packed_axes
from weft.texpr.graph_operators import Operator
from weft.texpr.ops.convolution import LETTERS
from weft.texpr.ops.packing import Packing


def packing_of(op: Operator) -> Packing:
    given = arguments_of(op)
    keys = ("inner_dims_pos", "inner_tiles", "outer_dims_perm")
    return Packing.of(op.name, len(_unpacked_shape(op)), *(given[key] for key in keys))


def has_full_tiles(op: Operator) -> bool:
    """Returns whether tiles are known to divide the extents."""
    shape, packing = _unpacked_shape(op), packing_of(op)
    return all(modulo(shape[d], packing.tile(d)) == 0 for d in packing.positions)


def as_views(op: Operator) -> SSAValue | None:
    """Returns reshapes and a transpose, not inserted yet, or None for partial tiles and unknown extents."""
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
        return reshaped(op.operands[0], extents_of(op.results[0]))
    if name_of(op) == "pack":
        return made("transpose", [reshaped(op.operands[0], tuple(split))], axes=axes).results[0]
    back = [axes.index(at) for at in range(len(axes))]
    return reshaped(made("transpose", [op.operands[0]], axes=back).results[0], shape)


def _unpacked_shape(op: Operator) -> Shape:
    return extents_of(op.operands[0] if name_of(op) == "pack" else op.results[0])


# Operators on packed tensors


def pack(value: SSAValue, positions: Sequence[int], tiles: Sequence[int]) -> SSAValue:
    """Returns a `graph.pack`, not inserted yet. Raises `ShapeError` for tiles not known to divide the extents."""
    return made("pack", [value], inner_dims_pos=list(positions), inner_tiles=list(tiles)).results[0]


@dataclass(frozen=True)
class PackedOperator:
    axis: int
    """The packed axis of the result."""
    axes: tuple[int | None, ...]
    """The packed axis of each operand, or None if all tiles read the same elements."""

    def of(self, op: Operator, tile: int) -> Operator:
        values: list[SSAValue] = []
        for value, axis in zip(op.operands, self.axes, strict=True):
            if axis is not None:
                value = pack(value, [axis], [tile])
            elif op.has_trait(Elementwise) and (shape := extents_of(value)):
                value = reshaped(value, (*shape, 1))
            values.append(value)
        groups = op.grouped(values, op.properties)
        return made(name_of(op), groups, **dict(_packed_properties(op, self.axis, tile)))


def packed_operator(op: Operator, axis: int, tile: int) -> PackedOperator | None:
    """Returns `op` with an axis of its result in tiles, or None if whole tiles depend on other elements.

    Its expressions on operands packed as required (`packed_axes`), with adapted attributes, must equal its packed
    expressions (docs/decisions/0104-packed-layouts.md).
    """
    if not op.operands:
        return None
    types = cast("tuple[Tensor, ...]", op.operand_types)
    properties = _packed_properties(op, axis, tile)
    axes = _axes_in_tiles(type(op), types, frozenset(op.properties.items()), properties, axis, tile)
    return None if axes is None else PackedOperator(axis, axes)


@lru_cache(maxsize=1 << 14)
def _axes_in_tiles(
    operator: type[Operator],
    types: tuple[Tensor, ...],
    properties: frozenset[tuple[str, Attribute]],
    packed_properties: tuple[tuple[str, Attribute], ...],
    axis: int,
    tile: int,
) -> tuple[int | None, ...] | None:
    if any(None in shape_of(type_) for type_ in types):
        return None
    given = dict(properties)
    function = operator.on_placeholders(types, given).function("packed")
    axes = packed_axes(function, axis, tile)
    if axes is None or set(axes) <= {None}:
        return None
    if operator.has_trait(Elementwise):
        return axes  # an elementwise operator has the same formula in any rank
    try:
        kept = {key: value for key, value in given.items() if key not in dict(packed_properties)}
        packed_types = [_packed_type(*pair, tile) for pair in zip(types, axes, strict=True)]
        other = operator.on_placeholders(packed_types, {**kept, **dict(packed_properties)}).function("packed")
    except ShapeError:
        return None
    pack_axis(function, axis, tile)
    for one in (function, other):
        index_units_by_zero(one)
    return axes if structural_equal(function, other) else None


def _packed_type(type_: Tensor, axis: int | None, tile: int) -> Tensor:
    if axis is None:
        return type_
    shape = [*shape_of(type_), tile]
    shape[axis] = floordiv(shape[axis], tile)
    return tensor_type(shape, type_.element_type)


def _packed_properties(op: Operator, packed: int, tile: int) -> tuple[tuple[str, Attribute], ...]:
    """Returns properties for an axis tiled by the last dimension: axes count from the first, borders are in tiles,
    layouts name packed channels."""
    rank = len(extents_of(op.operands[0]))
    found = properties_of(op)
    for name, value in arguments_of(op).items():
        changed: object = value
        match name, value:
            case "axis", int():
                changed = value % rank
            case "axis", list() | tuple():
                changed = [axis % rank for axis in cast("Sequence[int]", value)]
            case (("layout" | "data_layout"), (str() | None)) if rank - 2 in LETTERS:
                changed = f"{value or 'NC' + LETTERS[rank - 2]}c"
            case "pad_width", list() if len(cast("Sequence[object]", value)) == rank > 2:
                pairs = cast("Sequence[Sequence[int]]", value)
                tiles = [[count // tile for count in pair] if d == packed else pair for d, pair in enumerate(pairs)]
                changed = [*tiles, [0, 0]]
            case _:
                continue
        if changed != value:
            found[name] = attribute_of(changed, extent_attribute)
    return tuple(found.items())
