"""Operators as linalg again: they mean the same, and MLIR reads them."""

from __future__ import annotations

import warnings
from io import StringIO
from typing import Any

import numpy as np
import pytest
from operator_cases import Case
from scheduled_operators import CASES
from upstream_tools import accepted, needs_mlir
from xdsl.context import Context

from weft import te
from weft.backends.upstream import UpstreamTarget
from weft.interp.interpreter import Interpreter
from weft.passes.convert.convert_linalg_to_tir import ConvertLinalgToTirPass
from weft.passes.convert.convert_tir_to_linalg import ConvertTirToLinalgPass
from weft.support.errors import CompileError, Remark

STATIC = [case for case in CASES if not case.sizes]
PARTIAL = {
    *("conv2d", "depthwise", "max pool", "concatenate", "cumsum", "argmax", "take", "resize", "group norm"),
    *("convolution of lines", "transposed convolution", "mean pool with a border", "mirrored border"),
}
"""Operators with a stage that has no form in linalg: borders, data-dependent indices, windows of constant extent."""


def function_of(case: Case) -> tuple[Any, list[Any], Any]:
    """A module, its arguments, and an array for the result."""
    inputs = [te.placeholder(i.shape, name=f"x{n}", dtype=i.dtype) for n, i in enumerate(case.inputs)]
    out = case.build(*inputs)
    arrays = [i.array({}, n) for n, i in enumerate(case.inputs)]
    return te.create_func([*inputs, out], name="main"), arrays, np.zeros([int(e) for e in out.shape], out.dtype)


@pytest.mark.parametrize("case", STATIC, ids=lambda case: case.label)
def test_operators_mean_the_same(case: Case) -> None:
    module, arrays, expected = function_of(case)
    converted, found, back = module.clone(), expected.copy(), expected.copy()
    with warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("always", Remark)
        ConvertTirToLinalgPass().apply(Context(), converted)
    converted.verify()
    if not remarks:
        assert case.label not in PARTIAL and "tir." not in str(converted)
    else:
        assert case.label in PARTIAL
    Interpreter(module).call("main", *arrays, expected)
    Interpreter(converted).call("main", *arrays, found)
    np.testing.assert_array_equal(found, expected)
    if not remarks:
        ConvertLinalgToTirPass(("noalias",), strict=True).apply(Context(), converted)
        Interpreter(converted).call("main", *arrays, back)
        np.testing.assert_array_equal(back, expected)


@needs_mlir
@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in STATIC if case.label not in PARTIAL], ids=lambda case: case.label)
def test_mlir_reads_them(case: Case) -> None:
    module = function_of(case)[0]
    ConvertTirToLinalgPass(strict=True).apply(Context(), module)
    text = StringIO()
    UpstreamTarget().emit(Context(), module, text)
    assert "linalg.generic" in accepted(text.getvalue())


def test_strict_refuses_what_stays() -> None:
    module = function_of(next(case for case in STATIC if case.label == "take"))[0]
    with pytest.raises(CompileError, match=r'convert-tir-to-linalg: block "take" is indexed by other values'):
        ConvertTirToLinalgPass(strict=True).apply(Context(), module)
