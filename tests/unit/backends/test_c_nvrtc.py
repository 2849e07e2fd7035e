"""CUDA C++ without NVRTC: a clear error that says what to install."""

import importlib
from typing import Any

import pytest

from weft.backends.cuda import nvrtc
from weft.support.errors import CompileError


def test_missing_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    nvrtc._nvrtc.cache_clear()
    monkeypatch.setattr(importlib, "import_module", missing)
    try:
        with pytest.raises(CompileError, match=r"NVRTC, which is not installed: pip install 'weft\[cuda\]'"):
            nvrtc.compile_ptx("", "sm_80")
    finally:
        monkeypatch.undo()
        nvrtc._nvrtc.cache_clear()
