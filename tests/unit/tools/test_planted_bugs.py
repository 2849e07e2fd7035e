"""The bugs that the second tier plants have their places in the sources."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[3]


def planted_bugs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("planted_bugs", ROOT / "tests" / "planted_bugs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


def test_each_bug_has_one_place() -> None:
    bugs = planted_bugs().BUGS
    assert [bug.name for bug in bugs if (ROOT / bug.file).read_text().count(bug.old) != 1] == []
    assert [file for bug in bugs for file in bug.tests if not (ROOT / file).exists()] == []
