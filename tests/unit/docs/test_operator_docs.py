"""The page of operators is what the definitions say, and every operator is public."""

from __future__ import annotations

from pathlib import Path

from operator_docs import families, operators_markdown

from weft.te import ops

PAGE = Path(__file__).parents[3] / "docs" / "operators.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == operators_markdown(), "run: python docs/generators/operator_docs.py > docs/operators.md"


def test_every_operator_is_public() -> None:
    assert sorted(name for names in families().values() for name in names) == sorted(ops.__all__)
