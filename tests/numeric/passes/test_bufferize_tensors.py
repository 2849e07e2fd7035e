"""Functions over buffers compute what those over tensors did, that is, what NumPy and MLIR's own lowering compute."""

from io import StringIO
from typing import Any

import numpy as np
import pytest
from tensor_cases import CASES, TensorCase
from upstream_tools import UpstreamLibrary, needs_mlir
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import weft
from weft.backends.upstream import UpstreamTarget
from weft.interp.interpreter import Interpreter
from weft.passes.convert.bufferize_tensors import BufferizeTensorsPass

OF_LINALG = ("--convert-linalg-to-loops", "--scf-forall-to-for")


def bufferized(text: str) -> ModuleOp:
    module = weft.parse(text)
    BufferizeTensorsPass().apply(Context(), module)
    module.verify()
    return module


def upstream_text(module: ModuleOp) -> str:
    output = StringIO()
    UpstreamTarget().emit(Context(), module, output)
    return output.getvalue()


def results_of(case: TensorCase) -> list[Any]:
    """The arrays and numbers that the function returns."""
    found = case.expected(*case.arguments())
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label.replace(" ", "-"))
def test_interpreted(case: TensorCase) -> None:
    expected = results_of(case)
    before = Interpreter(weft.parse(case.text)).call("main", *case.arguments())
    for got, wanted in zip(before if isinstance(before, tuple) else [before], expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    arguments = case.arguments()
    outputs = [np.full_like(array, 99) for array in expected if isinstance(array, np.ndarray)]
    Interpreter(bufferized(case.text)).call("main", *arguments, *outputs)
    wanted = [array for array in expected if isinstance(array, np.ndarray)]
    for got, array in zip((*arguments, *outputs), (*case.arguments(), *wanted), strict=True):
        np.testing.assert_array_equal(got, array)


BORDERS = """
func.func @main(%m: memref<4x4xf32>, %out: memref<4xf32>) -> tensor<4xf32> {
  %c = memref.subview %m[1, 0] [1, 4] [1, 1] : memref<4x4xf32> to memref<4xf32, strided<[1], offset: 4>>
  %t = bufferization.to_tensor %c restrict : memref<4xf32, strided<[1], offset: 4>> to tensor<4xf32>
  %d = memref.subview %m[0, 2] [4, 1] [1, 1] : memref<4x4xf32> to memref<4xf32, strided<[4], offset: 2>>
  %u = bufferization.to_tensor %d : memref<4xf32, strided<[4], offset: 2>> to tensor<4xf32>
  %s = arith.addf %t, %u : tensor<4xf32>
  bufferization.materialize_in_destination %s in restrict writable %out : (tensor<4xf32>, memref<4xf32>) -> ()
  %b = bufferization.to_buffer %s : tensor<4xf32> to memref<4xf32>
  %k = bufferization.clone %b : memref<4xf32> to memref<4xf32>
  %v = bufferization.to_tensor %k restrict writable : memref<4xf32> to tensor<4xf32>
  %w = arith.mulf %v, %s : tensor<4xf32>
  return %w : tensor<4xf32>
}"""


def test_borders() -> None:
    matrix = np.arange(16, dtype=np.float32).reshape(4, 4)
    expected = matrix[1] + matrix[:, 2]
    out, last = np.zeros((2, 4), np.float32)
    product = Interpreter(weft.parse(BORDERS)).call("main", matrix, out)
    np.testing.assert_array_equal([out, product], [expected, expected**2])
    out = np.zeros(4, np.float32)
    Interpreter(bufferized(BORDERS)).call("main", matrix, out, last)
    np.testing.assert_array_equal([out, last], [expected, expected**2])


@needs_mlir
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label.replace(" ", "-"))
def test_compiled_by_upstream(case: TensorCase) -> None:
    wanted = [array for array in results_of(case) if isinstance(array, np.ndarray)]
    outputs = [np.full_like(array, 99) for array in wanted]
    UpstreamLibrary(upstream_text(bufferized(case.text)), OF_LINALG)["main"](*case.arguments(), *outputs)
    for got, array in zip(outputs, wanted, strict=True):
        np.testing.assert_array_equal(got, array)
