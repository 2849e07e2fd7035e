"""Constants of one value are found by their bytes."""

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, i1, i8

from weft.dialects.constant_data import dense_attribute, is_repeated


@pytest.mark.parametrize("count", [1, 3, 100_000])
def test_is_repeated(count: int) -> None:
    assert is_repeated(dense_attribute(np.full((count, 2), 0.5, np.float32), f32))
    ramp = np.zeros((count, 2), np.float32)
    ramp[-1, -1] = 1
    assert not is_repeated(dense_attribute(ramp, f32))
    assert is_repeated(dense_attribute(np.full((count, 2), 7, np.int8), i8))
    assert is_repeated(dense_attribute(np.zeros((count, 2), np.bool_), i1))


def test_no_elements_and_zeros_of_both_signs() -> None:
    assert is_repeated(dense_attribute(np.zeros((0, 2), np.float32), f32))
    assert not is_repeated(dense_attribute(np.array([0.0, -0.0], np.float32), f32))
