"""The offsets, sizes and strides of operations on slices of tensors, and the dimensions that slices keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IntegerType
from xdsl.ir import Operation, SSAValue


def mixed_lists(op: Operation) -> list[list[int | SSAValue]]:
    """The offsets, sizes and strides of an operation on a slice."""
    lists: list[list[int | SSAValue]] = []
    for name in ("offsets", "sizes", "strides"):
        dynamic = iter(cast("Sequence[SSAValue]", getattr(op, name)))
        static = static_numbers(op, f"static_{name}")
        lists.append([next(dynamic) if number == DYNAMIC_INDEX else number for number in static])
    return lists


def static_numbers(op: Operation, name: str) -> Sequence[int]:
    """The numbers of a property of an operation."""
    return cast("DenseArrayBase[IntegerType]", op.properties[name]).get_values()


def kept_dimensions(sizes: Sequence[int | SSAValue], shape: Sequence[int]) -> list[int]:
    """The dimensions of a slice of these sizes that its type, of `shape`, keeps: matched from the left as MLIR does.
    The others are 1."""
    kept: list[int] = []
    for dimension, size in enumerate(sizes):
        left, wanted = len(sizes) - dimension, len(shape) - len(kept)
        if wanted and (size != 1 or left == wanted or shape[len(kept)] == 1):
            kept.append(dimension)
    return kept
