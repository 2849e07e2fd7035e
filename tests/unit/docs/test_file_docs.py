"""The page of files is what their docstrings say."""

from __future__ import annotations

from pathlib import Path

from file_docs import files_markdown

PAGE = Path(__file__).parents[3] / "docs" / "files.md"


def test_the_page_is_up_to_date() -> None:
    found = files_markdown()
    assert PAGE.read_text() == found, "run: python docs/generators/file_docs.py > docs/files.md"
    assert "|  |" not in found, "a file has no docstring"
