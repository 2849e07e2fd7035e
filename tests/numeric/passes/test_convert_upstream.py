"""What weft writes in upstream's dialects, lowered and compiled by MLIR's own passes, is what weft compiles itself."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from operator_cases import check
from scheduled_operators import CASES
from tiers import first_tier
from upstream_tools import UpstreamLibrary, accepted, by_iree, needs_iree, needs_mlir, upstream_text
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import weft
from weft.backends.upstream import UpstreamTarget

EXAMPLES = Path(__file__).parents[3] / "examples"


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


@needs_mlir
@needs_iree
@pytest.mark.parametrize("label", first_tier(BY_LABEL, "softmax"))
def test_operators_as_xdsl_prints_them(label: str) -> None:
    """What stock `xdsl-opt` prints is read by MLIR 22 and by newer MLIR, and means the same to both."""

    def compiled(module: ModuleOp, default_schedule: bool) -> Callable[..., Any]:
        text = upstream_text(module, default_schedule, by_xdsl=True)
        assert accepted(text)
        newer = by_iree(text)["main"]
        older = UpstreamLibrary(text)["main"]

        def both(*arguments: Any) -> None:
            copies = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
            newer(*arguments)
            older(*copies)
            for one, other in zip(arguments, copies, strict=True):
                np.testing.assert_array_equal(one, other)

        return both

    check([BY_LABEL[label]], default_schedule=True, compiled=compiled)


@needs_mlir
def test_kinds_of_reductions() -> None:
    """The generic form has the numbers of MLIR, where `assign` stands between `andi` and `maximumf`."""
    kinds = ("addf", "addi", "andi", "maximumf", "minimumf", "mulf", "muli", "ori")
    loops = (
        f"""  %r{kind} = affine.parallel (%i) = (0) to (4) reduce ("{kind}") -> {type_} {{
    affine.yield %{type_} : {type_}
  }}
"""
        for kind in kinds
        for type_ in ("f32" if kind.endswith("f") else "i32",)
    )
    text = f"func.func @f(%f32: f32, %i32: i32) {{\n{''.join(loops)}  return\n}}\n"
    output = StringIO()
    UpstreamTarget().emit(Context(), weft.parse(text), output)
    printed = accepted(output.getvalue())
    assert [kind for kind in kinds if f'reduce ("{kind}")' not in printed] == []
