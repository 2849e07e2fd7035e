"""Tests import modules of `helpers` and `docs/generators`, and the package `weft_bench`, by their bare names."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from weft.runtime.compile_cache import CompileCache
from weft.support import user_functions
from weft.support.errors import CompileError

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("tests/helpers", "docs/generators", "benchmarks")]


os.environ["WEFT_CACHE"] = "0"  # no test sees what was compiled before, but those of the cache itself


# No test depends on how fast the machine is.
settings.register_profile("weft", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("weft")

WHOLE_RUN, MANY, SHARE = 2000, 8, 8
"""In a run of this many tests, a test of more than `MANY` cases runs every `SHARE`th of them in the first tier, at
least `MANY`; refusals run all, each is the only one of its message."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if len(items) < WHOLE_RUN:
        return
    families: dict[str, list[pytest.Item]] = {}
    for item in items:
        if not any(item.iter_markers("slow")) and "refus" not in item.name:
            families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in families.values():
        step = min(SHARE, len(cases) / MANY)
        kept = {round(number * step) for number in range(len(cases))}
        for position, case in enumerate(cases):
            if position not in kept:
                case.add_marker(pytest.mark.slow)


@contextmanager
def _skipped_where_code_cannot_run() -> Generator[None]:
    """With `WEFT_HOST_CPU` weft compiles for another CPU: calls need one that has what that CPU has. PoCL compiles
    nothing for CPUs that are newer than its LLVM."""
    try:
        yield
    except CompileError as error:
        if os.environ.get("WEFT_HOST_CPU") and "cannot run in this process" in str(error):
            pytest.skip(str(error))
        if "compiles no program for this processor" in str(error):
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


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CompileCache:
    """An empty compile cache, switched on; programs that depend on what tests have registered are not kept."""
    monkeypatch.setattr(user_functions, "_intrinsics", {})
    monkeypatch.setattr(user_functions, "_rules", {})
    monkeypatch.delenv("WEFT_CACHE", raising=False)
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    return CompileCache.of_user()


@pytest.fixture
def gradients() -> Generator[None]:
    """Benchmarks turn the gradients of PyTorch off, for their whole process."""
    yield
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_grad_enabled(True)
