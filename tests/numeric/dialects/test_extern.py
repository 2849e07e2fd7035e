"""`te.extern`, and the sorts that are made of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft import te
from weft.interp.errors import InterpreterError
from weft.interp.interpreter import Interpreter
from weft.texpr.extern import Result, extern


def test_what_is_not_written_is_told() -> None:
    module = weft.parse("""
        func.func @main(%x: f32, %i: index) -> tensor<3xf32> {
          %R = te.extern "R" () into (%r : tensor<3xf32>) {
            memref.store %x, %r[%i] : memref<3xf32>
          }
          func.return %R : tensor<3xf32>
        }""")
    with pytest.raises(InterpreterError, match=r"te\.extern did not write all of R"):
        Interpreter(module).call("main", 1.0, 2)


def test_elements_of_another_dtype_are_refused() -> None:
    def write(code: Any, indices: Any, result: Any) -> None:
        result.store(te.const(1, "int8"), *indices)

    (made,) = extern((3,), [Result((3,), "float32", "R")], [], write, "R")
    with pytest.raises(weft.CompileError, match="R holds float32, got int8 `1`"):
        te.create_te_func([made])


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 2), (2, 64), (5, 257)])
def test_sorts_are_stable_and_nan_is_last(rows: int, columns: int) -> None:
    n, m = te.size_var("n"), te.size_var("m")
    data = te.placeholder((n, m), name="A")
    results = te.ops.argsort(data), te.ops.argsort(data, descending=True, name="down"), te.ops.sort(data, 0)
    sort = weft.build(te.create_func([data, *results]))["main"]
    given = np.random.default_rng(rows).integers(-4, 4, (rows, columns)).astype("float32")
    given[:, ::5] = np.nan
    up, down = np.zeros((2, rows, columns), "int64")
    by_rows = np.zeros_like(given)
    sort(given, up, down, by_rows)
    np.testing.assert_array_equal(up, np.argsort(given, -1, stable=True))
    np.testing.assert_array_equal(down, np.argsort(-np.nan_to_num(given, nan=9), -1, stable=True))
    np.testing.assert_array_equal(by_rows, np.sort(given, 0))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["c", "opencl"])
def test_other_targets(target: str) -> None:
    data, places = te.placeholder((6, 50), name="A"), te.placeholder((6, 50), "int64", name="I")
    results = te.ops.sort(data), te.ops.scatter_elements(data, places, data, 1, "add")
    run = weft.build(te.create_func([data, places, *results]), target=target)["main"]
    given = np.random.default_rng(1).integers(-9, 9, (6, 50)).astype("float32")
    at = np.random.default_rng(2).integers(0, 50, (6, 50))
    found = np.zeros((2, 6, 50), "float32")
    run(given, at, *found)
    np.testing.assert_array_equal(found[0], np.sort(given))
    expected = given.copy()
    np.add.at(expected, (np.arange(6)[:, None], at), given)
    np.testing.assert_array_equal(found[1], expected)
