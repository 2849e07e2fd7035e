"""The page of passes is what the definitions say, and what the passes make of the examples."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from pass_docs import EXAMPLES, example, passes_markdown
from xdsl.utils.exceptions import DiagnosticException

from weft.dialects.sched import PRIMITIVE_STEPS
from weft.dialects.traversal import copy_of
from weft.driver.parsing import parse_text
from weft.driver.programs import context
from weft.driver.universe import PASSES, load

PAGE = Path(__file__).parents[3] / "docs" / "passes.md"
NEEDED = {"func": "main", "level": "low", "params": "none.npz", "shapes": "x=4", "target": "llvm"}
"""An option that must be given -> what this test gives."""


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == passes_markdown(), "run: python docs/generators/pass_docs.py > docs/passes.md"


def test_examples_are_of_passes() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.mlir")} <= set(PASSES)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::weft.support.errors.Remark")
def test_every_pass_takes_or_refuses_the_examples_of_all() -> None:
    """What a pass raises is xDSL's kind of error, whatever the level of the module."""
    modules = [parse_text(context(), example(path)[1], path.name) for path in sorted(EXAMPLES.glob("*.mlir"))]
    for name in PASSES.keys() - {step.pass_name for step in PRIMITIVE_STEPS.values()}:
        kind = load(PASSES[name])
        options = {f.name: NEEDED[f.name] for f in dataclasses.fields(kind) if f.default is dataclasses.MISSING}
        for module in modules:
            copy = copy_of(module)
            try:
                kind(**options).apply(context(), copy)
            except DiagnosticException as error:
                assert str(error)
