"""Checks of known scales and zero points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def parameter_error(numbers: ArrayLike, what: str, *, is_divisor: bool = False) -> str | None:
    """Describe the first number that is infinite or NaN, or not positive for a divisor.

    Scales that only multiply may be 0 or negative: weight formats have groups of zeros, and groups whose largest weight
    is negative.
    """
    import numpy as np

    array: Any = np.asarray(numbers)
    wrong: Any = ~np.isfinite(array)
    if is_divisor:
        wrong |= ~(array > 0)
    if not wrong.any():
        return None
    at = tuple(int(index) for index in np.argwhere(wrong)[0])
    found = array[at]
    place = "".join(f"[{index}]" for index in at)
    return f"{what}{place} must be finite{' and above 0' if is_divisor else ''}, is {found}"
