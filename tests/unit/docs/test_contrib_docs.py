"""The page of operators of onnxruntime is what their definitions say."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'weft[onnx]'")

from contrib_docs import contrib_markdown

PAGE = Path(__file__).parents[3] / "docs" / "onnx-contrib.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == contrib_markdown(), "run: python docs/generators/contrib_docs.py > docs/onnx-contrib.md"
