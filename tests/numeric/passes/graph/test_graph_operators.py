"""Every operator of the graph dialect: its text, and its reference against its tensor expressions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from operator_forms import BY_NAME, FORMS, Form, arrays_of, module_of
from tiers import first_tier
from xdsl.context import Context

import weft
from weft.interp.interpreter import Interpreter
from weft.passes.graph.legalize_graph_to_te import LegalizeGraphToTePass
from weft.texpr.ops import __all__ as names


def test_every_operator_has_a_form():
    formed = {given.operator for given in FORMS}
    assert sorted(names) == sorted(BY_NAME)
    lacking = sorted(set(names) - formed)
    assert not lacking, f"add a form of each to FORMS in tests/helpers/operator_forms.py: {', '.join(lacking)}"
    unknown = sorted(formed - set(names))
    assert not unknown, f"forms of what is no operator, not in __all__ of its texpr/ops module: {', '.join(unknown)}"


def results(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]


def assert_close(given: Form, found: Any, expected: Any) -> None:
    for one, other in zip(results(found), results(expected), strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        if other.dtype.kind == "f":
            np.testing.assert_allclose(one, other, rtol=given.tolerance, atol=given.tolerance)
        else:
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("given", first_tier(FORMS, *FORMS[::3]), ids=str)
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
    assert " = te." in str(module)
    assert_close(given, Interpreter(module).call("main", *arrays), expected)


@pytest.mark.slow
@pytest.mark.parametrize("given", FORMS, ids=str)
def test_compiled_functions_equal_references(given: Form):
    module = module_of(given)
    arrays = arrays_of(module, given)
    expected = results(Interpreter(module).call("main", *arrays))
    found = [np.zeros_like(array) for array in expected]
    weft.build(module, target="llvm")["main"](*arrays, *found)
    assert_close(given, found, expected)


@pytest.mark.slow
@pytest.mark.parametrize("given", FORMS, ids=str)
def test_kernels_equal_references(given: Form):
    pytest.importorskip("pyopencl", reason="OpenCL is not installed: pip install 'weft[opencl]'")
    module = module_of(given)
    arrays = arrays_of(module, given)
    expected = results(Interpreter(module).call("main", *arrays))
    found = [np.zeros_like(array) for array in expected]
    weft.build(module, target="opencl -opt-level=0")["main"](*arrays, *found)
    assert_close(given, found, expected)
