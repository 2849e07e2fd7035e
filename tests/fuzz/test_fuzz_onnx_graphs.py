"""Random ONNX graphs with symbolic axes give what `onnx.reference` gives. `run_onnx_graphs.py` runs many."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'weft[onnx]'")

from onnx_graphs import OnnxProgram, check

CASES = 12


@pytest.mark.parametrize("seed", range(CASES))
def test_random_onnx_graph(seed: int) -> None:
    check(OnnxProgram(seed), "llvm -num-threads=1 -opt-level=0")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(CASES, CASES + 60))
def test_another_random_onnx_graph(seed: int) -> None:
    check(OnnxProgram(seed))


def test_programs_repeat() -> None:
    assert str(OnnxProgram(5)) == str(OnnxProgram(5))
