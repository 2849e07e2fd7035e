"""The pages of the dialects are what the definitions say, and their examples verify."""

from __future__ import annotations

import pytest
from dialect_docs import FENCE, LEVELS, dialect, documentation, pages, syntax
from ir_examples import example_attributes, example_module
from xdsl.ir import Attribute, Operation

OPERATIONS = [op for name in LEVELS for op in dialect(name).operations]
ATTRIBUTES = [attribute for name in LEVELS for attribute in dialect(name).attributes]


def test_the_pages_are_up_to_date() -> None:
    for path, text in pages().items():
        assert path.read_text() == text, "run: python docs/generators/dialect_docs.py"


@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: op.name)
def test_operations_have_a_syntax_and_examples_that_verify(op: type[Operation]) -> None:
    assert syntax(op), f"{op.name} states no `Syntax:`"
    examples = [example_module(text) for text in FENCE.findall(documentation(op))]
    assert any(type(found) is op for module in examples for found in module.walk()), f"{op.name} has no example"


@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=lambda attribute: attribute.name)
def test_attributes_have_examples_that_parse(attribute: type[Attribute]) -> None:
    examples = [found for text in FENCE.findall(documentation(attribute)) for found in example_attributes(text)]
    assert any(type(found) is attribute for found in examples)
