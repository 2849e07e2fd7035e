"""Modules of `helpers` are imported by their bare names in the tests."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from weft.support.errors import CompileError

sys.path.insert(0, str(Path(__file__).parent / "helpers"))


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
