"""Which dimensions views of buffers drop, join and split."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref


def dropped_dimensions(view: memref.SubviewOp) -> set[int]:
    """The dimensions of the source that a view of lower rank leaves out: as many of size 1 as it lacks. Which of them
    is all one, for the only index of each is 0."""
    sizes = view.static_sizes.get_values()
    shape = view.result.type.get_shape()
    missing, at = len(sizes) - len(shape), 0
    dropped: set[int] = set()
    for dimension, size in enumerate(sizes):
        kept_later = at < len(shape) and shape[at] == 1 and _fits(sizes[dimension + 1 :], shape[at + 1 :])
        if len(dropped) < missing and size == 1 and not kept_later:
            dropped.add(dimension)
        else:
            at += 1
    return dropped


def _fits(sizes: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether leaving out sizes of 1 can give a shape."""
    others = [size for size in sizes if size != 1]
    return [size for size in shape if size != 1] == others and len(shape) <= len(sizes)


def reassociation_groups(view: memref.CollapseShapeOp | memref.ExpandShapeOp) -> list[list[int]]:
    """The dimensions of the larger shape that each one of the smaller stands for."""
    return [[dimension.value.data for dimension in group] for group in view.reassociation]
