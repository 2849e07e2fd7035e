"""Programs of StableHLO with loops and branches as graphs compute what the interpreter of StableHLO does."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.frontends.graph_builder import BlockBuilder, var
from weft.frontends.stablehlo_graph import import_stablehlo
from weft.interp.interpreter import Interpreter
from weft.support.errors import CompileError

FOLDER = Path(__file__).parent / "stablehlo"
R = np.random.RandomState(1)

SCAN = (FOLDER / "rows.mlir").read_text()

DATA = (FOLDER / "choices.mlir").read_text()

SIZES = (FOLDER / "sizes.mlir").read_text()

WINDOWS = (FOLDER / "windows.mlir").read_text()


def graph_of(text: str, *parameters: Any) -> Any:
    builder = BlockBuilder()
    import_stablehlo(builder, weft.parse(text), [var(*parameter) for parameter in parameters])
    return builder.get()


def check(text: str, module: Any, *inputs: np.ndarray) -> None:
    expected = Interpreter(weft.parse(text)).call("main", *inputs)
    for found in (Interpreter(module).call("main", *inputs), weft.build(module)["main"](*inputs)):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_rows() -> None:
    module = graph_of(SCAN, ("h", (4,)), ("xs", (5, 4)), ("w", (4,)))
    assert re.search(r"graph.loop @step for 5 carried\(%\w+, %\w+\) scanned\(%xs, %flip\) captured\(%w\)", str(module))
    check(SCAN, module, *(R.randn(*shape).astype(np.float32) for shape in ((4,), (5, 4), (4,))))


def test_loops_and_branches_of_data() -> None:
    module = graph_of(DATA, ("x", (3,)), ("w", (3, 3)), ("which", (), "int32"))
    assert "graph.while" in str(module) and "graph.if" in str(module)
    x, w = R.randn(3).astype(np.float32) + 1, R.randn(3, 3).astype(np.float32)
    for which in (0, 1, 2, -1):
        check(DATA, module, x * (2 + which), w, np.array(which, np.int32))


def test_sizes_are_integer_arguments() -> None:
    parameters = ("x", ("m", 3)), ("n", (), "int64"), ("s", (2,), "int32"), ("y", (1, 2, 5, 4)), ("w", (3, 2, 3, 3))
    module = graph_of(SIZES, *parameters)
    function, expected = weft.build(module)["main"], Interpreter(weft.parse(SIZES))
    x, y, w = (R.randn(*shape).astype(np.float32) for shape in ((5, 3), (1, 2, 5, 4), (3, 2, 3, 3)))
    for n, s in ((2, (3, 4)), (0, (1, 0)), (5, (2, 2))):
        sizes = np.array(s, np.int32)
        wanted = expected.call("main", x, np.array(n), sizes, y, w)
        for one, other in zip(function(x, n, sizes, y, w), wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    for n, s, message in (
        (-1, (3, 4), r"argument 2 \('n'\): expected an extent of at least 0 \(axis 0 of 'real_dynamic_slice'.*got -1"),
        (2, (-3, 4), r"argument 3 \('s'\): expected an extent of at least 0 \(axis 0 of 'out'\) as element 0, got -3"),
        (
            6,
            (3, 4),
            r"m must be at least n\.0, got n\.0 = 6 \('n'\), m = 5 \(axis 0 of 'x'\): block \"real_dynamic_slice\"",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            function(x, n, np.array(s, np.int32), y, w)


def test_sizes_that_depend_on_data_are_refused() -> None:
    text = SIZES.replace(
        "%v = stablehlo.reshape %n", "%k = stablehlo.clamp %n, %n, %n : tensor<i64>\n%v = stablehlo.reshape %k"
    )
    with pytest.raises(CompileError, match="the shape is computed from data, not from extents"):
        graph_of(
            text, ("x", ("m", 3)), ("n", (), "int64"), ("s", (2,), "int32"), ("y", (1, 2, 5, 4)), ("w", (3, 2, 3, 3))
        )


def test_windows_of_all_elements_before_are_scans() -> None:
    module = graph_of(WINDOWS, ("x", (6, 5)))
    assert str(module).count("te.extern") == 1  # the region of several ops; the others are operators
    assert str(module).count("te.reduce") == 1
    check(WINDOWS, module, R.randn(6, 5).astype(np.float32))


def test_refusals() -> None:
    with pytest.raises(CompileError, match=r"a program of StableHLO has a function @main"):
        graph_of("func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> { return %x : tensor<3xf32> }", ("x", (3,)))
    calls = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {{
      %0 = call @{0}(%x) : (tensor<3xf32>) -> tensor<3xf32>
      return %0 : tensor<3xf32>
    }}"""
    with pytest.raises(CompileError, match=r"func.call: @main calls itself"):
        graph_of(calls.format("main"), ("x", (3,)))
    with pytest.raises(CompileError, match=r"there is no function @mian with a body, did you mean '?main"):
        graph_of(calls.format("mian") + "\nfunc.func private @mian(tensor<3xf32>) -> tensor<3xf32>", ("x", (3,)))
