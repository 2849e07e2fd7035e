"""The page of passes is what the definitions say, and what the passes make of the examples."""

from __future__ import annotations

from pathlib import Path

from pass_docs import EXAMPLES, passes_markdown

from weft.driver.universe import PASSES

PAGE = Path(__file__).parents[2] / "docs" / "passes.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == passes_markdown(), "run: python docs/generators/pass_docs.py > docs/passes.md"


def test_examples_are_of_passes() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.mlir")} <= set(PASSES)
