"""The programs of `examples/` in upstream's dialects: at each call MLIR's passes, IREE's (also of the text of stock
`xdsl-opt`), and weft, to which they come back, compute what weft computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from example_scripts import printed_by
from upstream_examples import FILES, SCRIPTS, judged, run_file
from upstream_tools import UpstreamLibrary, accepted, by_iree, needs_iree, needs_mlir
from xdsl.context import Context

import weft
from weft.passes.convert.convert_upstream_to_low import ConvertUpstreamToLowPass


def by_weft(text: str) -> Any:
    module = weft.parse(text)
    ConvertUpstreamToLowPass(strict=True).apply(Context(), module)
    return weft.build(module)


def by_both(text: str) -> UpstreamLibrary:
    """By IREE's passes a module that MLIR 22 reads too."""
    assert accepted(text)
    return by_iree(text)


JUDGES = [
    pytest.param(UpstreamLibrary, id="mlir", marks=needs_mlir),
    pytest.param(by_iree, id="iree", marks=[needs_mlir, needs_iree]),
    pytest.param(by_both, id="printed by xdsl-opt", marks=[needs_mlir, needs_iree]),
    pytest.param(by_weft, id="weft"),
]
LEFT_OUT = {"onnx_digits.py", "tensorize_tmm16.py", "train_mlp.py"}
"""One example needs scikit-learn, one calls a function from outside by pointers, which has no form upstream, and one
builds nothing."""


@pytest.mark.slow
@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("name", [*FILES, *(script for script in SCRIPTS if script not in LEFT_OUT)])
def test_examples(
    name: str, judge: Callable[[str], Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "mlp.mlir" and judge is by_weft:
        pytest.skip("its temporaries are views of an arena, and memref.view does not come back")
    with judged(judge, monkeypatch, by_xdsl=judge is by_both) as texts:
        if name in FILES:
            run_file(name)
        else:
            printed_by(name, capsys, monkeypatch)
    assert texts
