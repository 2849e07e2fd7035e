"""Every operator of the graph dialect: its text, and its reference against its tensor expressions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from operator_forms import BY_NAME, FORMS, Form, arrays_of, module_of
from xdsl.context import Context

import weft
from weft.interp.interpreter import Interpreter
from weft.passes.graph.legalize_graph_to_te import LegalizeGraphToTePass
from weft.texpr.ops import __all__ as names


def test_every_operator_has_a_form():
    assert sorted({given.operator for given in FORMS}) == sorted(names) == sorted(BY_NAME)


def results(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]


def assert_close(given: Form, found: Any, expected: Any) -> None:
    for one, other in zip(results(found), results(expected), strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        if other.dtype.kind == "f":
            np.testing.assert_allclose(one, other, rtol=given.tolerance, atol=given.tolerance)
        else:
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("given", FORMS, ids=str)
def test_references_equal_tensor_expressions_and_text_keeps_the_op(given: Form):
    module = module_of(given)
    module.verify()
    text = str(module)
    assert str(weft.parse(text)) == text
    without_types = re.sub(r"( = graph\.[^\n]*) -> [^\n]*", r"\1", text)
    assert str(weft.parse(without_types)) == text
    arrays = arrays_of(module, given)
    expected = Interpreter(module).call("main", *arrays)
    LegalizeGraphToTePass().apply(Context(), module)
    assert "te.compute" in str(module)
    assert_close(given, Interpreter(module).call("main", *arrays), expected)
