"""The ONNX importer against the node tests of the package onnx: a sample first, all of them in the second tier."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'weft[onnx]'")

import onnx_cases

SAMPLE = {
    "add": ("test_add_uint8",),
    "conv": ("test_basic_conv_with_padding", "test_conv_with_autopad_same"),
    "gather": ("test_gather_2d_indices",),
    "layernormalization": ("test_layer_normalization_2d_axis0", "test_layer_normalization_2d_axis0_expanded"),
    "lstm": ("test_lstm_with_peepholes",),
    "maxpool": ("test_maxpool_2d_ceil",),
    "reshape": ("test_reshape_negative_dim",),
    "rotaryembedding": ("test_rotary_embedding_no_position_ids_rotary_dim",),
    "sequenceinsert": ("test_sequence_insert_at_back",),
    "slice": ("test_slice_neg_steps",),
    "softmax": ("test_softmax_axis_1",),
}
"""Modules of `onnx.backend.test.case.node`, and cases of them."""


SYMBOLIC = (
    *("test_add_uint8", "test_basic_conv_with_padding", "test_conv_with_autopad_same", "test_gather_2d_indices"),
    *("test_layer_normalization_2d_axis0_expanded", "test_maxpool_2d_ceil", "test_slice_neg_steps"),
    "test_rotary_embedding_no_position_ids_rotary_dim",
)
"""Cases of the sample that are also run with a symbol for each axis of each input."""


@pytest.fixture(scope="module")
def sample() -> dict[str, Any]:
    from onnx.backend.test.case import node

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in SAMPLE:
            importlib.import_module(f"onnx.backend.test.case.node.{module}")
    return {case.name: case for case in node._NodeTestCases}


@pytest.mark.parametrize("name", [name for names in SAMPLE.values() for name in names])
def test_sample(sample: dict[str, Any], name: str) -> None:
    verdict = onnx_cases.judge(sample[name])
    assert verdict.kind in ("passed", "bound"), verdict.message


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_sample(sample: dict[str, Any], name: str) -> None:
    verdict = onnx_cases.judge(onnx_cases.with_symbols(sample[name]))
    assert verdict.kind in ("passed", "bound"), verdict.message


PARTS = 8
"""Parts of all cases, which several processes run."""


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_symbolic(part: int) -> None:
    """With a symbol for each axis of each input, 97 of 100 cases pass that do with numbers, and a few less of a part.
    Others are refused by the import or by the call: an extent of 1 is repeated only if the model states it, for
    example."""
    cases = onnx_cases.node_cases()[part::PARTS]
    with_numbers = [case for case in cases if onnx_cases.judge(case, "interpreter").kind in ("passed", "bound")]
    verdicts = [onnx_cases.judge(onnx_cases.with_symbols(case)) for case in with_numbers]
    wrong = [f"{v.case}: {v.message}" for v in verdicts if v.kind == "wrong" and "ValueError: main: " not in v.message]
    assert not wrong, "\n".join(wrong)
    passed = sum(verdict.kind in ("passed", "bound") for verdict in verdicts)
    assert passed / len(verdicts) > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_all(part: int) -> None:
    verdicts = [onnx_cases.judge(case) for case in onnx_cases.node_cases()[part::PARTS]]
    wrong = [f"{verdict.case}: {verdict.message}" for verdict in verdicts if verdict.kind == "wrong"]
    assert not wrong, "\n".join(wrong)
    passed = sum(verdict.kind in ("passed", "bound") for verdict in verdicts)
    assert passed / len(verdicts) > 0.93


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in onnx_cases.KINDS if kind != "node"])
def test_models(kind: str) -> None:
    """Only what `simple` has of strings, of gradients and of a sequence without a length is refused."""
    verdicts = [onnx_cases.judge(case) for case in onnx_cases.model_cases(kind)]
    wrong = [f"{verdict.case}: {verdict.message}" for verdict in verdicts if verdict.kind == "wrong"]
    assert not wrong, "\n".join(wrong)
    refused = [verdict.case for verdict in verdicts if verdict.kind == "refused"]
    assert all("strnorm" in name or "gradient" in name or name == "test_sequence_model8" for name in refused)
