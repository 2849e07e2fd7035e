"""What weft writes in upstream's dialects, lowered and compiled by MLIR's own passes, is what weft compiles itself."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from operator_cases import check
from scheduled_operators import CASES
from tiers import first_tier
from upstream_tools import UpstreamLibrary, by_iree, needs_iree, needs_mlir, upstream_text
from xdsl.dialects.builtin import ModuleOp

import weft

EXAMPLES = Path(__file__).parents[2] / "examples"


def by_upstream(module: ModuleOp, default_schedule: bool) -> Callable[..., Any]:
    """Its function `main`, compiled by MLIR."""
    return UpstreamLibrary(upstream_text(module, default_schedule))["main"]


BY_LABEL = {case.label: case for case in CASES}


@needs_mlir
@pytest.mark.parametrize("default_schedule", first_tier([True, False], True))
@pytest.mark.parametrize("label", first_tier(BY_LABEL, "conv2d", "softmax", "take"))
def test_operators(label: str, default_schedule: bool) -> None:
    check([BY_LABEL[label]], default_schedule=default_schedule, compiled=by_upstream)


@needs_mlir
@pytest.mark.parametrize("name", ["mm_relu.mlir"])
def test_examples(name: str) -> None:
    module = weft.parse_file(EXAMPLES / name)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((128, 128), np.float32) for _ in range(2))
    got, expected = np.zeros((2, 128, 128), np.float32)
    UpstreamLibrary(upstream_text(module))["mm_relu"](a, b, got)
    weft.build(module)["mm_relu"](a, b, expected)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-4)


@needs_mlir
@needs_iree
@pytest.mark.parametrize("label", first_tier(BY_LABEL, "softmax"))
def test_operators_by_iree(label: str) -> None:
    def compiled(module: ModuleOp, default_schedule: bool) -> Callable[..., Any]:
        return by_iree(upstream_text(module, default_schedule))["main"]

    check([BY_LABEL[label]], default_schedule=True, compiled=compiled)
