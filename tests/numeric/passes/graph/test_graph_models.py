"""Whole models: by the interpreter and compiled, they give what NumPy gives."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from graph_models import MODELS, NARROW
from tiers import second_tier

import weft
from weft.interp.interpreter import Interpreter
from weft.tools.weft_opt import WeftOptMain

LARGE = "convolution net"


@pytest.mark.parametrize("name", MODELS)
def test_interpreted(name: str) -> None:
    model = MODELS[name]
    for sizes in model.sizes[: 1 if name == LARGE else 3]:
        x = model.array(sizes)
        found = Interpreter(model.module()).call("main", x)
        np.testing.assert_allclose(found, model.expected(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        *((name, "llvm") for name in MODELS if name != LARGE),
        ("perceptron", "c"),
        *map(lambda pair: second_tier(*pair), [(LARGE, "llvm"), (LARGE, "c")]),
        *(second_tier(name, "c") for name in MODELS if name not in (LARGE, "perceptron")),
    ],
)
def test_compiled(name: str, target: str) -> None:
    model = MODELS[name]
    native = weft.build(model.module(), target)["main"]
    for sizes in model.sizes:
        x = model.array(sizes)
        np.testing.assert_allclose(native(x), model.expected(x), rtol=1e-4, atol=1e-4)


PIPELINE = "lower-graph{{target={0}}},default-schedule{{target={0}}},lower-tir-to-low{{target={0}}}"


@pytest.mark.parametrize("target", ["llvm", "opencl", "cuda"])
@pytest.mark.parametrize("name", [second_tier(name) for name in MODELS])
def test_validated(name: str, target: str, tmp_path: Path) -> None:
    """Each pass leaves a model that the interpreter computes as before."""
    path = tmp_path / "model.mlir"
    path.write_text(str((MODELS if target == "llvm" else NARROW)[name].module()))
    assert WeftOptMain(args=[str(path), "-p", PIPELINE.format(target), "--validate", "-o", os.devnull]).execute() == 0
