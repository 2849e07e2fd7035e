"""Arrays that agree up to rounding, and how a difference reads."""

import numpy as np
import pytest

from weft.tools.arrays import compare


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_rounding_agrees_and_a_missing_term_does_not(dtype: str) -> None:
    exact = np.linspace(-4, 4, 101).reshape(1, 101)
    expected = exact.astype(dtype)
    rounded = (expected * (1 + np.finfo(dtype).eps)).astype(dtype)
    assert compare(rounded, expected, dtype).agrees
    wrong = expected.copy()
    wrong[0, 7] += 0.5
    difference = compare(wrong, expected, dtype)
    assert not difference.agrees
    assert difference.where == (0, 7)
    assert "max abs error 0.5," in str(difference)
    assert "; at [0, 7] got -2.9" in str(difference)


def test_nan_and_infinity_stand_at_the_same_places() -> None:
    expected = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    assert compare(expected.copy(), expected, "float32").agrees
    for position, value in ((0, 1.0), (1, 3e38), (2, np.inf), (3, np.nan)):
        wrong = expected.copy()
        wrong[position] = value
        difference = compare(wrong, expected, "float32")
        assert not difference.agrees
        assert difference.where == (position,)
        assert difference.max_absolute == np.inf


def test_integers_are_exact_also_beyond_float64() -> None:
    expected = np.array([2**62, -5, 0])
    assert compare(expected.copy(), expected, "int64").agrees
    wrong = expected + np.array([1, 0, 0])
    difference = compare(wrong, expected, "int64")
    assert not difference.agrees
    assert difference.where == (0,)
    assert compare(np.array([True]), np.array([True]), "bool").agrees
    assert not compare(np.array([True]), np.array([False]), "bool").agrees


def test_bfloat16_bits() -> None:
    ones = np.full(4, 0x3F80, np.uint16)
    assert compare(ones, ones, "bfloat16").max_absolute == 0
    difference = compare(np.full(4, 0x4000, np.uint16), ones, "bfloat16")
    assert not difference.agrees
    assert (difference.max_absolute, difference.max_relative) == (1.0, 1.0)


def test_zeros_and_empty() -> None:
    zeros = np.zeros(3, np.float32)
    assert compare(zeros, -zeros, "float32").agrees
    assert not compare(zeros + np.float32(1e-4), zeros, "float32").agrees
    assert compare(zeros[:0], zeros[:0], "float32").agrees
