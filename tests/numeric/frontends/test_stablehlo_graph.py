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
