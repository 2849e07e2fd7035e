"""Runs the scripts of `examples/` in this process, which has imported weft already."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def printed_by(script: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """What a script prints, which ends without an error."""
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setattr("sys.argv", [script])
    try:
        runpy.run_path(str(EXAMPLES / script), run_name="__main__")
    except SystemExit as end:
        assert not end.code, script
    return capsys.readouterr().out
