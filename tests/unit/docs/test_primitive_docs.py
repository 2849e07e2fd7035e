"""The page of schedule primitives is what the definitions say."""

from __future__ import annotations

import re
from pathlib import Path

from primitive_docs import primitives_markdown
from schedule_methods import schedule_source

from weft.dialects import sched
from weft.passes.schedule.primitive import PRIMITIVES, primitive_class

ROOT = Path(__file__).parents[3]
COMMAND = "run: python docs/generators/primitive_docs.py > docs/primitives.md"


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "primitives.md").read_text() == primitives_markdown(), COMMAND


def test_the_methods_are_up_to_date() -> None:
    text = (ROOT / "schedule" / "schedule.py").read_text()
    assert text == schedule_source(), "run: make generated"


def test_every_step_is_in_the_table() -> None:
    page = primitives_markdown()
    for name in sched.STEPS:
        assert f"| `sch.{name}(" in page


def test_docstrings_number_every_requirement() -> None:
    for name in PRIMITIVES:
        cls = primitive_class(name)
        numbers = [int(n) for n in re.findall(r"^    (\d+)\. ", cls.__doc__ or "", flags=re.MULTILINE)]
        assert numbers == list(range(1, len(cls.requirements()) + 1)), name
