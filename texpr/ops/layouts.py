"""Tensors whose axes have letters: N for the batch, C for channels, D, H and W in space, O and I in kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.support.argument_types import shown
from weft.texpr.expr import Expr, Number
from weft.texpr.ops.padding import constant_border
from weft.texpr.ops.windows import Window
from weft.texpr.places import error
from weft.texpr.shapes import Extent
from weft.texpr.tensor import Tensor


def checked_layout(what: str, layout: object, letters: str) -> str:
    """A layout, which must be an order of `letters`. Raises CompileError for others."""
    if not isinstance(layout, str) or sorted(layout) != sorted(letters):
        raise error(f"{what} must be an order of the letters {letters}, got {shown(layout)}")
    return layout


@dataclass(frozen=True)
class Laid:
    """A tensor whose axes have letters."""

    tensor: Tensor
    layout: str

    def extent(self, letter: str) -> Extent:
        """The extent of an axis."""
        return self.tensor.shape[self.layout.index(letter)]

    def at(self, indices: Mapping[str, Expr | int]) -> Expr:
        """The element at an index for each letter."""
        return self.tensor(*(indices[letter] for letter in self.layout))

    def padded(self, windows: Mapping[str, Window], value: Number, name: str) -> Laid:
        """The tensor with the borders of windows along some of its axes, of `value`: a stage, where there is one."""
        borders = [(windows[c].before, windows[c].after) if c in windows else (0, 0) for c in self.layout]
        if not any(any(border) for border in borders):
            return self
        return Laid(constant_border(self.tensor, borders, value, name), self.layout)
