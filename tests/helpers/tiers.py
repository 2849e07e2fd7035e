"""The two tiers of tests: `make test` leaves out what is marked `slow`, `make test-all` runs everything."""

from collections.abc import Iterable
from typing import Any

import pytest


def second_tier(*values: Any) -> Any:
    """A case of a parametrized test, one value for each argument, that runs in the second tier only."""
    return pytest.param(*values, marks=pytest.mark.slow)


def first_tier(values: Iterable[Any], *first: Any) -> list[Any]:
    """The values of one argument: those in `first` run in the first tier too."""
    values = list(values)
    unknown = [value for value in first if value not in values]
    if unknown or not first:
        raise ValueError(f"the first tier needs some of {values}, got {list(first)}")
    return [value if value in first else second_tier(value) for value in values]
