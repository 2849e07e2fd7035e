"""Requirements on the index maps of layouts: well-formed and injective on the buffer or domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir.affine import AffineMap

from weft.analysis.dependence import undecided
from weft.analysis.index import Index
from weft.analysis.layout_maps import LayoutMap
from weft.analysis.sets import NotProved
from weft.passes.schedule.layouts_functions import why_not_function
from weft.support.errors import Violation


@dataclass(frozen=True)
class Points:
    """How messages speak of what a layout moves."""

    names: tuple[str, ...]
    """Of the old indices."""
    text: Callable[[Sequence[int]], str]
    """`B[0, 1]`, or `instance (i=0, j=1)`."""
    meet: str
    """`would both lie at`, or `would both run as`."""
    what: str
    """`element` or `instance`."""
    whole: str
    """What the indices are of, for the user to look up: `B is memref<6x10xf32>`."""

    def named(self, point: Sequence[int]) -> dict[str, int]:
        return dict(zip(self.names, point, strict=True))


def shown(point: Sequence[int]) -> str:
    """`[0, 3]`."""
    return f"[{', '.join(map(str, point))}]"


def named_places(point: Sequence[int]) -> dict[str, dict[str, int]]:
    """A new index as a counterexample."""
    return {"index": {f"d{at}": value for at, value in enumerate(point)}}


def layout_of(map_: AffineMap, extents: Sequence[Index], points: Points) -> LayoutMap | Violation:
    """The layout that an index map is on a box, or why it is none."""
    why = why_not_function(map_, len(extents))
    if why is not None:
        return Violation(why, legal=points.whole)
    layout = LayoutMap(map_, extents)
    try:
        negative = layout.negative()
        known = layout.new_extents
    except NotProved as error:
        return undecided(error)
    if negative is not None:
        index, dimension = negative
        return Violation(
            f"it takes {points.text(index)} below 0, in dimension {dimension}",
            counterexample={points.what: points.named(index)},
            replay=lambda: layout.at(index)[dimension] < 0,
        )
    if known is None or any(extent.is_constant and extent.constant < 1 for extent in known):
        return Violation("an extent is no expression in the old ones", "not proved")
    return layout


def meeting_points(layout: LayoutMap, points: Points) -> Violation | None:
    """Two points that the layout makes one, or None when it keeps all apart."""
    try:
        both = layout.collision()
    except NotProved as error:
        return undecided(error)
    if both is None:
        return None
    first, second = both
    return Violation(
        f"{points.text(first)} and {points.text(second)} {points.meet} {shown(layout.at(first))}",
        counterexample={f"first {points.what}": points.named(first), f"second {points.what}": points.named(second)},
        replay=lambda: first != second and layout.at(first) == layout.at(second),
    )
