"""Which task of a program the next batch goes to: the one whose batch is expected to shorten the program most.

The rate of a task is the gradient of Ansor (Zheng et al., OSDI 2020, section 6.2) for the objective "seconds of the
program", the sum of weight w times seconds g over its tasks. After t batches it is

    w * (a * (g(t - d) - g(t)) / d + (1 - a) * g(t) / t)    a = 0.2, d = min(3, t)

seconds a batch: what the last d batches gained, and an optimistic guess, by which a task that takes no time after t
more batches would be tuned. Ansor bounds the guess by the speed of similar tasks; which tasks are similar is not known
here, and the bound is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_OBSERVED: Final = 0.2
"""The part of a rate that was observed (alpha of the paper)."""
_BACK: Final = 3
"""Batches over which a gain is observed."""


def expected_gain(weight: int, best: Sequence[float], begun: float) -> tuple[float, float]:
    """The seconds that another batch of a task is expected to save, then its weighted seconds. These order tasks that
    had no batch: each has one before any has two.

    `best` is the best time before the first batch and after each that ended; `begun` counts those under way too.
    """
    now = best[-1]
    if not begun:
        return float("inf"), weight * now
    back = min(_BACK, len(best) - 1)
    observed = (best[-1 - back] - now) / back if back else 0.0
    return weight * (_OBSERVED * observed + (1.0 - _OBSERVED) * now / begun), weight * now
