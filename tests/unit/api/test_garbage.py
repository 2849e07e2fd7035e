"""Cyclic garbage is collected less often while IR is built, and as the user set it afterwards."""

import gc
from collections.abc import Generator

import pytest

from weft.support.garbage import fewer_collections


@pytest.fixture(autouse=True)
def _thresholds() -> Generator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(("allocations", "inside"), [(700, 100_000), (1_000_000, 1_000_000), (0, 0)])
def test_threshold_of_the_first_generation(allocations: int, inside: int) -> None:
    gc.set_threshold(allocations, 11, 12)
    with fewer_collections():
        assert gc.get_threshold() == (inside, 11, 12)
    assert gc.get_threshold() == (allocations, 11, 12)


def test_thresholds_return_after_an_error() -> None:
    gc.set_threshold(700, 11, 12)
    with pytest.raises(ZeroDivisionError), fewer_collections():
        raise ZeroDivisionError
    assert gc.get_threshold() == (700, 11, 12)


def test_nested() -> None:
    gc.set_threshold(700, 11, 12)
    with fewer_collections():
        with fewer_collections():
            pass
        assert gc.get_threshold()[0] == 100_000
    assert gc.get_threshold()[0] == 700
