"""The runner over all numbers notices what is wrong, and measures as the tests on samples do."""

import numpy as np
import pytest
from run_ulp import CHUNK, Findings, Subject, are_as_at_the_ends, count_differences, examine, subjects
from ulps import EXACT, errors

import weft
from weft import te

TARGET = "llvm -num-threads=1"


@pytest.mark.parametrize(
    ("result", "exact", "kind"),
    [
        (np.nan, 1.0, "wrong_nans"),
        (1.0, np.nan, "wrong_nans"),
        (0.0, -0.0, "wrong_signs"),
        (0.0, -1e-60, "wrong_signs"),
        (3e38, np.inf, "wrong_infinities"),
        (np.inf, -np.inf, "wrong_infinities"),
    ],
)
def test_plainly_wrong_results(result: float, exact: float, kind: str) -> None:
    numbers = np.arange(4, dtype=np.float32)
    results = np.array([0.0, 1.0, result, 3.0], np.float32)
    findings = Findings()
    with np.errstate(all="ignore"):
        findings.add(numbers, results, np.array([0.0, 1.0, exact, 3.0]))
    assert getattr(findings, kind) == 1 and findings.place == 2.0 and findings.largest > 1e9


def test_errors_are_those_of_the_tests_on_samples() -> None:
    rng = np.random.default_rng(0)
    findings, largest = Findings(), 0.5
    for scale in (1e-44, 1.0, 1e38, 1e40):
        exact = rng.uniform(-scale, scale, 1000)
        with np.errstate(all="ignore"):
            result = (exact * rng.uniform(1 - 1e-6, 1 + 1e-6, 1000)).astype(np.float32)
            findings.add(exact.astype(np.float32), result, exact)
        largest = max(largest, errors(result, exact).max())
    assert findings.largest == largest > 5 and findings.wrong == 0 and findings.seen == 4000


def test_runs_with_one_result() -> None:
    large = np.linspace(30, 90, 64, dtype=np.float32)
    ones = np.ones_like(large)
    assert are_as_at_the_ends(np.tanh, large, ones)
    assert not are_as_at_the_ends(np.tanh, large, -ones)
    ones[7] = np.nan
    assert not are_as_at_the_ends(np.tanh, large, ones)
    assert not are_as_at_the_ends(np.tanh, large - 30, np.ones_like(large))
    with np.errstate(all="ignore"):
        assert are_as_at_the_ends(np.log, -large, np.full_like(large, np.nan))
        assert not are_as_at_the_ends(np.log, -large, np.full_like(large, -np.inf))


def test_a_wrong_function_is_found() -> None:
    """From 1 on, tanh is off by some units; encodings of 0.5 to 2."""
    encodings = range(0x3F000000, 0x40000000, 63)
    right = subjects()["tanh"]
    off = Subject(lambda x: te.tanh(x) * te.select(x > 1.0, 1.000001, 1.0), np.tanh, None, right.precise, True)
    found = examine(right, TARGET, encodings)
    assert 0.5 < found.largest <= (right.bound or 0.0) and found.wrong == 0 and found.seen % CHUNK == 0
    found = examine(off, TARGET, encodings)
    assert found.largest > 8 and found.place > 1.0


def test_results_that_differ_are_counted() -> None:
    exp, encodings = subjects()["exp"], range(0x3F000000, 0x40000000, 63)
    assert count_differences(exp, TARGET, TARGET, encodings) == (0, 0.0)
    if weft.Target(cpu="x86-64").architecture == weft.Target().architecture:
        # Without fused multiply-adds.
        count, place = count_differences(exp, TARGET, f"{TARGET} -mcpu=x86-64", encodings)
        assert count > 0 and 0.5 <= place < 2.0


def test_every_function_has_a_subject() -> None:
    known = subjects()
    assert {name for name in EXACT if hasattr(te, name)} <= set(known) and "pow(x, 0.3)" in known
