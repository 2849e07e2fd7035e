"""`examples/language_model`: the script in a small size."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
EXAMPLE = Path(__file__).parents[3] / "examples" / "language_model"


def arguments(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.setattr("sys.argv", ["language_model.py", *words.split()])
    monkeypatch.syspath_prepend(EXAMPLE)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_language_model(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Perplexities of rounded weights are near that of floats; both forms of caches write the same letters, or the
    script ends with an error."""
    arguments(monkeypatch, "--steps 60 --layers 1 --windows 8 --letters 12")
    runpy.run_path(str(EXAMPLE / "language_model.py"), run_name="__main__")
    printed = capsys.readouterr().out
    table: dict[str, float] = {}
    for line in printed.split("perplexity\n")[1].split("\n\n")[0].splitlines():
        table[line[:32].strip()] = float(line[32:])
    exact = table["float32"]
    assert 3.0 < exact < 40.0
    assert abs(table["bfloat16"] / exact - 1.0) < 0.01
    assert abs(table["int8, groups of 32"] / exact - 1.0) < 0.005
    assert abs(table["int4, groups of 32"] / exact - 1.0) < 0.05
    assert "letters per second" in printed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_results_are_those_of_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs for both forms of caches, a prompt and letters after it, against the module in PyTorch."""
    import torch

    import weft

    arguments(monkeypatch, "")
    script: Any = runpy.run_path(str(EXAMPLE / "language_model.py"))
    config = script["Config"](layers=2, width=32, heads=4, cached_heads=2, hidden=64)
    torch.manual_seed(0)
    decoder = script["Decoder"](config).eval()
    growing, in_place, caches = script["modules"](decoder)
    ids = torch.arange(9)[None] * 7 % 128
    empty = script["empty_caches"](config, 1, 0)
    with torch.no_grad():
        wanted = script["Growing"](decoder)(ids, empty, empty)[0][0].numpy()
    for session in (
        script["Growth"](config, weft.build(growing)["main"]),
        script["Capacity"](config, weft.build(in_place, donate=caches)["main"], 12),
    ):
        parts = ((0, 5), (5, 6), (6, 9))
        for first, last in parts:
            found = session.scores(ids[:, first:last].numpy())
            assert abs(found - wanted[last - 1]).max() < 1e-4
