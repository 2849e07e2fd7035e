"""Mutated ONNX models: no crash, no hang, no internal error. `run_onnx_mutations.py` runs many."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'weft[onnx]'")

from onnx_models import model, node
from onnx_mutations import contrib_sources, mutated, sources
from run_onnx_mutations import problems

MODELS = (
    model([node("Conv", "x w b", "y", strides=[1, 1])], {"x": ["n", 3, 8, 8], "w": [4, 3, 3, 3], "b": [4]}),
    model([node("Reshape", "x s", "a"), node("Softmax", "a", "y", axis=1)], {"x": ["n", 6]}, weights={"s": [0, 3, 2]}),
    model(
        [node("Slice", "x i j", "a"), node("Concat", "a x", "y", axis=0)], {"x": [4, 2]}, weights={"i": [1], "j": [3]}
    ),
)


@pytest.mark.parametrize("seed", range(60))
def test_mutated_models_are_imported_or_refused(seed: int) -> None:
    assert not list(problems(mutated(seed, MODELS), compiles=False))


@pytest.mark.parametrize("seed", range(100))
def test_mutated_contrib_nodes_are_imported_or_refused(seed: int) -> None:
    assert not list(problems(mutated(seed, contrib_sources()), compiles=False))


@pytest.mark.slow
def test_mutated_node_tests_are_compiled_or_refused() -> None:
    found = [(seed, report) for seed in range(200) for report in problems(mutated(seed, sources()), compiles=True)]
    assert not found
