"""Whether two arrays agree, and by how much they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.interp.compare import tolerance

_EPSILON: Mapping[str, float] = {
    **{dtype: float(np.finfo(dtype).eps) for dtype in ("float16", "float32", "float64")},
    "bfloat16": 2.0**-7,
}
"""Float types, with the distance from 1 to the next number."""


@dataclass(frozen=True)
class Difference:
    """How `got` differs from what was expected. `where` is the worst element."""

    agrees: bool
    allowed: float
    """The absolute error that is taken for rounding: fused multiply-add, and sums in another order. Integers and
    booleans must be equal."""
    max_absolute: float
    max_relative: float
    """Of the elements that are not 0."""
    where: tuple[int, ...]
    got: object
    expected: object

    def __str__(self) -> str:
        errors = f"max abs error {self.max_absolute:.3g}, max rel error {self.max_relative:.3g}"
        if self.agrees:
            return errors
        index = ", ".join(map(str, self.where))
        return f"{errors}; at [{index}] got {self.got}, expected {self.expected}"


def compare(got: NDArray[Any], expected: NDArray[Any], dtype: str) -> Difference:
    """Compare arrays of one shape and element type `dtype` ("bfloat16" comes as its bits in uint16)."""
    if got.size == 0:
        return Difference(True, 0.0, 0.0, 0.0, (), None, None)
    a, b = _as_float64(got, dtype), _as_float64(expected, dtype)
    with np.errstate(all="ignore"):
        is_float = dtype in _EPSILON
        same = got == expected if not is_float else (a == b) | (np.isnan(a) & np.isnan(b))
        absolute = np.where(same, 0.0, np.abs(a - b))
        # A number against NaN or infinity has no distance: it is infinitely wrong.
        absolute = np.where(np.isnan(absolute), np.inf, absolute)
        absolute = np.where(~same & (absolute == 0.0), 1.0, absolute)  # integers beyond 2**53
        magnitude = np.abs(b)
        relative = np.where(same, 0.0, absolute / magnitude)
        relative = np.where(magnitude == 0.0, 0.0, relative)
    finite = magnitude[np.isfinite(magnitude)]
    scale = float(finite.max()) if finite.size else 0.0
    allowed = tolerance(_EPSILON[dtype], _TERMS, scale) if is_float else 0.0
    worst = int(np.argmax(absolute))
    where = tuple(int(i) for i in np.unravel_index(worst, a.shape))
    largest = float(absolute.flat[worst])
    return Difference(
        largest <= allowed, allowed, largest, float(relative.max()), where, a[where].item(), b[where].item()
    )


_TERMS = 256
"""How many terms the longest sum may have; rounding grows as the square root, so a few thousand still pass."""


def _as_float64(array: NDArray[Any], dtype: str) -> NDArray[np.float64]:
    """Widened, so that distances do not round."""
    if dtype == "bfloat16":
        return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return array.astype(np.float64)
