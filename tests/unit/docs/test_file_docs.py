"""The page of files is what their docstrings say."""

from __future__ import annotations

from pathlib import Path

from file_docs import files_markdown

PAGE = Path(__file__).parents[3] / "docs" / "files.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == files_markdown(), "run: python docs/generators/file_docs.py > docs/files.md"


def test_every_file_has_a_docstring() -> None:
    assert "|  |" not in files_markdown()
