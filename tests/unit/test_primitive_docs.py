"""The page of schedule primitives is what the definitions say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from weft.dialects import sched
from weft.passes.schedule.registry import PRIMITIVES, primitive_class
from weft.support.errors import CompileError
from weft.tools.primitive_docs import END, START, primitives_markdown, primitives_table, with_table

ROOT = Path(__file__).parents[2]
COMMAND = "run: python -m weft.tools.primitive_docs --write"


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "primitives.md").read_text() == primitives_markdown(), COMMAND


def test_the_table_of_the_readme_is_up_to_date() -> None:
    text = (ROOT / "README.md").read_text()
    assert text == with_table(text, "README.md"), COMMAND


def test_every_step_is_in_the_table() -> None:
    table = primitives_table()
    for step in sched.STEPS:
        assert f"`sch.{step.name.removeprefix('sched.')}(" in table


def test_text_without_marks_is_refused() -> None:
    assert with_table(f"a\n{START}\nold\n{END}\nb", "X") == f"a\n{START}\n{primitives_table()}{END}\nb"
    with pytest.raises(CompileError, match="X has no lines"):
        with_table(f"a\n{END}\n", "X")


def test_docstrings_number_every_requirement() -> None:
    for name in PRIMITIVES:
        cls = primitive_class(name)
        numbers = [int(n) for n in re.findall(r"^    (\d+)\. ", cls.__doc__ or "", flags=re.MULTILINE)]
        assert numbers == list(range(1, len(cls.REQUIREMENTS) + 1)), name
