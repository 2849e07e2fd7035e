"""Junk in public calls is refused by an error that was written for it, and changes nothing; `run_api.py` makes more."""

from __future__ import annotations

import pytest
from api_calls import Caller


def test_junk_calls(capsys: pytest.CaptureFixture[str]) -> None:
    caller = Caller(2026)
    caller.run(400)
    capsys.readouterr()
    assert not caller.findings, "\n".join(f"{f.call}: {f.what}\n{f.trace}" for f in caller.findings.values())
    assert caller.accepted > 20
