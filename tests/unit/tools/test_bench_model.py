"""`weft bench model.onnx`: who takes part, what is compared, and what is refused. Nothing here asserts a time."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weft.support.errors import CompileError
from weft.tools.weft_cli import execute
from weft_bench import model, model_command, model_contenders
from weft_bench.contender import WrongResult
from weft_bench.model import compared
from weft_bench.model_contenders import Loaded, missing_peers

pytestmark = pytest.mark.usefixtures("gradients")

SOURCE = """
func.func @main(%x: tensor<?x8xf32, #graph.dims<n>>) -> tensor<?x8xf32, #graph.dims<n>> {
  %y = graph.dataflow -> tensor<?x8xf32, #graph.dims<n>> {
    %a = graph.exp %x : tensor<?x8xf32, #graph.dims<n>>
    graph.output %a : tensor<?x8xf32, #graph.dims<n>>
  }
  func.return %y : tensor<?x8xf32, #graph.dims<n>>
}
"""
QUICK = ["--rounds", "1", "--shape", "x=3x8"]


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "model.mlir"
    path.write_text(SOURCE)
    return str(path)


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure here, as if no peer were installed."""
    monkeypatch.setattr(model_command, "events", model.measure)
    monkeypatch.setattr(model_contenders, "find_spec", lambda name: None)


def peer(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    """An onnxruntime that computes `factor` times what weft does, and an OpenVINO that does not read the model."""
    real = model.load

    def load(name: str, *args: Any, **keywords: Any) -> Loaded:
        if name == "openvino":
            raise RuntimeError("no such operator\nand more")
        loaded = real("weft", *args, **keywords)
        if name == "weft":
            return loaded
        return dataclasses.replace(loaded, results=lambda: [array * factor for array in loaded.results()])

    monkeypatch.setattr(model, "load", load)
    monkeypatch.setattr(model, "missing_peers", lambda file, against: {})


def test_without_peers_weft_alone_is_timed(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "bench.md"
    assert execute(["bench", file, "--threads", "1,2", *QUICK, "--save", str(saved)]) == 0
    out = capsys.readouterr().out
    assert [line.split()[:2] for line in out.splitlines() if line.startswith("weft ")][:2] == [
        ["weft", "1"],
        ["weft", "2"],
    ]
    assert "weft, from its cache" in out and "MiB" in out
    assert "results were not compared: there is no peer" in out
    for name in ("onnxruntime", "openvino", "torch"):
        assert f"left out: {name}, the package {name} is not installed" in out
    assert "| contender | threads | time | spread | ratio |" in saved.read_text()


def test_peers_are_compared_and_named_when_they_fail(
    file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    peer(monkeypatch, 1.0001)
    words = ["bench", file, "--threads", "1", *QUICK, "--against", "onnxruntime,openvino", "--json", "--times-only"]
    assert execute(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["seconds"]["1"]) == ["weft", "onnxruntime"]
    assert found["differences"] == {"weft": pytest.approx(1e-4, rel=0.01)}
    assert found["left out"] == {"openvino": "RuntimeError: no such operator"}
    assert found["prepared"] == {}


def test_a_wrong_result_is_not_timed(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    peer(monkeypatch, 1.01)
    monkeypatch.setattr(model, "take_turns", None)
    with pytest.raises(WrongResult, match=r"weft and onnxruntime differ by 0\.0099 of the largest element"):
        execute(["bench", file, "--threads", "1", *QUICK, "--against", "onnxruntime"])


def test_differences() -> None:
    a = np.array([1.0, -4.0, np.inf], np.float32)
    assert compared({"weft": [a], "openvino": [a + np.float32(0.5)]}, 1.0) == {"weft": pytest.approx(0.5 / 3.5)}
    assert compared({"weft": [a + 1], "onnxruntime": [a], "torch": [a]}, 1.0) == {"weft": 0.25, "onnxruntime": 0.0}
    assert compared({"weft": [a[:0]], "torch": [a[:0]]}, 0.0) == {"weft": 0.0}
    with pytest.raises(WrongResult, match="weft and torch differ by inf"):
        compared({"weft": [a * np.nan], "torch": [a]}, 1.0)
    with pytest.raises(WrongResult, match=r"weft computed outputs of shapes \[\(3,\)\], torch \[\(1, 3\)\]"):
        compared({"weft": [a], "torch": [a[None]]}, 1.0)


def test_who_takes_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_contenders, "find_spec", lambda name: None if name == "onnxscript" else name)
    peers = ["onnxruntime", "torch.compile"]
    assert missing_peers("m.onnx", peers) == {"torch.compile": "PyTorch reads models in Python only (FILE.py:FUNCTION)"}
    assert missing_peers("m.mlir", peers[:1]) == {"onnxruntime": "it reads no MLIR"}
    assert missing_peers("m.py:f", peers) == {
        "onnxruntime": "the package onnxscript, with which PyTorch exports to ONNX, is not installed"
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.onnx"], "there is no file 'none.onnx'"),
        (["model", "FILE", "--against", "onxruntime"], "there is no peer 'onxruntime', did you mean 'onnxruntime'"),
        (["model", "PYTHON"], "a model in Python is given as FILE.py:FUNCTION"),
        (["PYTHON:absent", "--threads", "1"], "has no function 'absent'"),
        (["PYTHON:number", "--threads", "1"], "returns int, expected a torch.nn.Module and a tuple of inputs"),
        (["model", "TEXT"], "is no model: expected a file .onnx or .mlir, or FILE.py:FUNCTION"),
        (["FILE", "--plot", "x.png"], "--plot needs matplotlib"),
    ],
)
def test_bad_arguments(
    words: list[str], message: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft_bench.ladder_report.find_spec", lambda name: None)
    python, text = tmp_path / "nets.py", tmp_path / "notes.txt"
    python.write_text("def number():\n    return 3\n")
    text.write_text("")
    places = {"FILE": file, "PYTHON": str(python), "TEXT": str(text)}
    parts = [word.partition(":") for word in words]
    given = [places.get(head, head) + colon + tail for head, colon, tail in parts]
    with pytest.raises(CompileError) as caught:
        execute(["bench", *given])
    assert message in str(caught.value)


@pytest.mark.slow
def test_a_model_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(model_contenders, "find_spec", lambda name: name if name == "torch" else None)
    file = tmp_path / "nets.py"
    file.write_text("import torch\n\n\ndef layer():\n    return torch.nn.Linear(8, 4), (torch.ones(2, 8),)\n")
    words = ["bench", f"{file}:layer", "--threads", "1", "--rounds", "1", "--against", "torch,onnxruntime", "--json"]
    assert execute(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["seconds"]["1"]) == ["weft", "torch"]
    assert found["differences"]["weft"] < 1e-6
    assert found["left out"] == {"onnxruntime": "the package onnxruntime is not installed"}
    assert list(found["prepared"]) == ["weft", "weft, from its cache", "torch"]
