"""Tests import modules of `helpers` and `docs/generators`, and the package `weft_bench`, by their bare names."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from weft.support.errors import CompileError

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("tests/helpers", "docs/generators", "benchmarks")]


@contextmanager
def _skipped_where_code_cannot_run() -> Generator[None]:
    """With `WEFT_HOST_CPU` weft compiles for another CPU: calls need one that has what that CPU has."""
    try:
        yield
    except CompileError as error:
        if os.environ.get("WEFT_HOST_CPU") and "cannot run in this process" in str(error):
            pytest.skip(str(error))
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None]:
    with _skipped_where_code_cannot_run():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    with _skipped_where_code_cannot_run():
        return (yield)
