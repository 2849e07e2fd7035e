"""Windows that slide along axes, and tensors whose axes have letters: for convolutions and pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from weft.support.argument_types import shown
from weft.texpr.expr import Expr, Number
from weft.texpr.ops.arguments import integers
from weft.texpr.ops.transforms import constant_border
from weft.texpr.places import error
from weft.texpr.shapes import Extent, items, simplified
from weft.texpr.tensor import Tensor

LETTERS = {1: "W", 2: "HW", 3: "DHW"}
"""What spatial axes are called, by their number."""


@dataclass(frozen=True)
class Window:
    """`size` elements, `dilation` apart, that move by `stride` along an axis with a border of `before` and `after`."""

    size: Extent
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def span(self) -> Extent:
        """From the first element to the last one, both counted."""
        return simplified((self.size - 1) * self.dilation + 1)

    def positions(self, extent: Extent, what: str) -> Extent:
        """How many windows lie within an axis of that extent and its border.

        Raises CompileError where not one does: `what` is the operator.
        """
        padded = simplified(extent + (self.before + self.after))
        if isinstance(padded, int) and isinstance(self.span, int) and padded < self.span:
            raise error(f"{what}: a window over {self.span} elements does not fit into {padded} (the border included)")
        return simplified((padded - self.span) // self.stride + 1)

    def index(self, position: Expr, offset: Expr) -> Expr:
        """Where an element of the window at `position` lies in the padded axis."""
        start = position * self.stride if self.stride != 1 else position
        return start + (offset * self.dilation if self.dilation != 1 else offset)


def windows(
    what: str,
    sizes: Sequence[Extent],
    strides: object,
    padding: object,
    dilation: object,
    extents: Sequence[Extent],
) -> tuple[Window, ...]:
    """A window for each of the axes of `extents`.

    Strides and dilation are an integer or one for each axis; `borders` says what padding is. Raises CompileError for
    other numbers of them, for strides and dilations below 1 and for empty windows.
    """
    rank = len(sizes)
    for size in sizes:
        if isinstance(size, int) and size < 1:
            raise error(f"{what}: windows have at least one element, got {tuple(sizes)!r}")
    steps = integers(strides, f"{what}: strides", rank, least=1)
    gaps = integers(dilation, f"{what}: dilation", rank, least=1)
    unpadded = [Window(size, step, gap, 0, 0) for size, step, gap in zip(sizes, steps, gaps, strict=True)]
    around = borders(what, padding, unpadded, extents)
    return tuple(
        Window(window.size, window.stride, window.dilation, before, after)
        for window, (before, after) in zip(unpadded, around, strict=True)
    )


def borders(
    what: str, padding: object, unpadded: Sequence[Window], extents: Sequence[Extent]
) -> tuple[tuple[int, int], ...]:
    """How much is added before and after each axis.

    `padding` is an integer for all, one for each axis, all before and then all after (top, left, bottom, right), a pair
    for each axis, "VALID" for nothing, or "SAME" for as many windows as strides go into the axis. Raises CompileError
    for others.
    """
    rank = len(unpadded)
    if isinstance(padding, str):
        if padding.upper() == "VALID":
            return ((0, 0),) * rank
        if padding.upper() == "SAME":
            return tuple(_same(what, window, extent) for window, extent in zip(unpadded, extents, strict=True))
        raise error(f"{what}: padding is 'SAME', 'VALID' or integers, got {shown(padding)}")
    given = items(padding)
    label = f"{what}: padding"
    if len(given) == rank and all(isinstance(item, list | tuple) for item in given):
        pairs = (integers(item, label, 2, least=0) for item in given)
        return tuple(cast("tuple[int, int]", pair) for pair in pairs)
    if len(given) == 2 * rank:
        numbers = integers(padding, label, 2 * rank, least=0)
        return tuple(zip(numbers[:rank], numbers[rank:], strict=True))
    return tuple((number, number) for number in integers(padding, label, rank, least=0))


def _same(what: str, window: Window, extent: Extent) -> tuple[int, int]:
    """As TensorFlow pads: the odd element comes after."""
    if not isinstance(window.span, int) or (window.stride != 1 and not isinstance(extent, int)):
        raise error(f"{what}: padding 'SAME' needs numbers for the window, and for the axis unless the stride is 1")
    if not isinstance(extent, int):
        total = window.span - 1
    else:
        count = -(-extent // window.stride)
        total = max((count - 1) * window.stride + window.span - extent, 0)
    return total // 2, total - total // 2


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
