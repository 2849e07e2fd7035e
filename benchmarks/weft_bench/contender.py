"""A contender: a call whose result is compared with an independent one before it is timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.support.errors import CompileError
from weft.tools.arrays import compare

Array = NDArray[Any]


class WrongResult(CompileError):
    """A contender's result is wrong, so its time is meaningless."""


@dataclass(frozen=True)
class Contender:
    """`call` computes and is timed, `result` also computes and returns the array."""

    call: Callable[[], object]
    result: Callable[[], Array]


def check(work: str, contenders: Mapping[str, Contender], expected: Array) -> None:
    """Compare the result of each contender. Raises `WrongResult`."""
    for name, contender in contenders.items():
        got = np.asarray(contender.result())
        if got.shape != expected.shape or got.dtype != expected.dtype:
            raise WrongResult(
                f"{work}: {name} computed {got.dtype}{list(got.shape)}, expected {expected.dtype}{list(expected.shape)}"
            )
        difference = compare(got, expected, expected.dtype.name)
        if not difference.agrees:
            raise WrongResult(f"{work}: {name} computed a wrong result: {difference}")
