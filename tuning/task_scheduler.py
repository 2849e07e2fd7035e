"""The choice of the task that gets the next batch: the one whose batch is expected to save most time of the program.

The rate is the gradient of Ansor (Zheng et al., OSDI 2020, section 6.2) without its term of similar tasks
(`docs/tuning.md`). After t batches of a task of weight w that takes g seconds it is, in seconds per batch,

    w * (a * (g(t - d) - g(t)) / d + (1 - a) * g(t) / t)    a = 0.2, d = min(3, t)

The first term is the gain of the last d batches, the second optimistic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_OBSERVED: Final = 0.2
"""Weight of the observed gain (alpha of the paper)."""
_BACK: Final = 3
"""Batches over which a gain is observed."""


def expected_gain(weight: int, best: Sequence[float], begun: float) -> tuple[float, float]:
    """Seconds that another batch of a task is expected to save, then its weighted seconds, which order tasks without a
    batch: each gets one before any gets two.

    `best` is the best time before the first batch and after each finished one; `begun` also counts batches in progress.
    """
    now = best[-1]
    if not begun:
        return float("inf"), weight * now
    back = min(_BACK, len(best) - 1)
    observed = (best[-1 - back] - now) / back if back else 0.0
    return weight * (_OBSERVED * observed + (1.0 - _OBSERVED) * now / begun), weight * now
