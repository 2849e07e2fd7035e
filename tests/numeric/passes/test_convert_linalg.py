"""Ops of linalg as blocks: they compute what the interpreter, NumPy, and MLIR's own lowering of them compute."""

import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from linalg_programs import BEFORE_22, arguments_of, named_ops, program
from tiers import first_tier
from upstream_tools import MLIR_OPT, UpstreamLibrary, needs_mlir
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import weft
from weft.interp.interpreter import Interpreter
from weft.passes.convert.convert_linalg_to_tir import ConvertLinalgToTirPass

SOME = ("matmul", "batch_reduce_matmul", "dot", "mmt4d", "quantized_matmul", "conv_2d", "conv_2d_nhwc_fhwc_q")
OTHERS = ("depthwise_conv_1d_ncw_cw", "pooling_nhwc_max_unsigned", "pooling_ncw_sum", "fill", "select", "reciprocal")


def converted(text: str, *promises: str) -> ModuleOp:
    module = weft.parse(text)
    ConvertLinalgToTirPass(promises).apply(Context(), module)
    module.verify()
    return module


def interpreted(module: ModuleOp, arguments: list[Any]) -> list[Any]:
    """The arguments after a call."""
    arguments = [argument.copy() if isinstance(argument, np.ndarray) else argument for argument in arguments]
    Interpreter(module).call("main", *arguments)
    return arguments


def check_same(text: str, arguments: list[Any], *promises: str) -> None:
    before = interpreted(weft.parse(text), arguments)
    after = interpreted(converted(text, *promises), arguments)
    for left, right in zip(before, after, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("name", first_tier(named_ops(), *SOME, *OTHERS))
def test_named_op(name: str) -> None:
    check_same(program(name), arguments_of(name))


def _windows(image: Any, kernel: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...]) -> Any:
    """The windows over the dimensions behind the first: one more dimension for each of the kernel's, at the end."""
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    axes = tuple(range(1, 1 + len(kernel)))
    windows = np.lib.stride_tricks.sliding_window_view(image, reach, axes)
    steps = [slice(None), *(slice(None, None, s) for s in strides)]
    rest = windows.ndim - len(kernel) - len(steps)
    return windows[tuple([*steps, *[slice(None)] * rest, *(slice(None, None, d) for d in dilations)])]


def test_overlapping_arguments() -> None:
    """Without `noalias` the fill is seen by the product, as upstream has it."""
    text = """
func.func @main(%A: memref<2x2xf32>, %C: memref<2x2xf32>) {
  %one = arith.constant 1.0 : f32
  linalg.fill ins(%one : f32) outs(%C : memref<2x2xf32>)
  linalg.matmul ins(%A, %A : memref<2x2xf32>, memref<2x2xf32>) outs(%C : memref<2x2xf32>)
  return
}"""
    matrix, expected = np.full((2, 2), 7, np.float32), np.full((2, 2), 1, np.float32)
    for row, column, k in np.ndindex(2, 2, 2):
        expected[row, column] += expected[row, k] * expected[k, column]
    weft.build(converted(text))["main"](matrix, matrix)
    np.testing.assert_array_equal(matrix, expected)


def test_extents_that_do_not_agree() -> None:
    text = """
func.func @main(%A: memref<?x4xf32>, %B: memref<?x4xf32>) {
  linalg.exp ins(%A : memref<?x4xf32>) outs(%B : memref<?x4xf32>)
  return
}"""
    library = weft.build(converted(text, "noalias"))
    ones, found = np.ones((3, 4), np.float32), np.zeros((3, 4), np.float32)
    library["main"](ones, found)
    np.testing.assert_allclose(found, np.exp(ones), rtol=1e-6)
    with pytest.raises(ValueError, match=r"'B'.*expected shape"):
        library["main"](ones, np.zeros((2, 4), np.float32))
    with pytest.raises(weft.CompileError, match="the extent of loop d0 is 3 by one operand and 2 by another"):
        Interpreter(weft.parse(text)).call("main", ones, np.zeros((2, 4), np.float32))


def check_reference(name: str, compute: Callable[..., Any]) -> None:
    """`compute` gives the output from all operands."""
    arguments = arguments_of(name)
    found = interpreted(converted(program(name)), arguments)
    np.testing.assert_array_equal(found[-1], compute(*arguments))


def test_numpy_agrees() -> None:
    check_reference("matmul", lambda a, b, c: c + a @ b)
    check_reference("batch_reduce_matmul", lambda a, b, c: c + np.einsum("bmk,bkn->mn", a, b))
    check_reference("mmt4d", lambda a, b, c: c + np.einsum("mkab,nkcb->mnac", a, b))
    check_reference("quantized_matmul", lambda a, b, za, zb, c: c + (a.astype("i4") - za) @ (b.astype("i4") - zb))

    def convolution(image: Any, kernel: Any, out: Any) -> Any:
        windows = _windows(image.astype(np.float32), kernel.shape[:2], (2, 1), (1, 2))
        return out + np.einsum("nhwcij,ijcf->nhwf", windows, kernel.astype(np.float32))

    check_reference("conv_2d_nhwc_hwcf", convolution)

    def pooling(image: Any, window: Any, out: Any) -> Any:
        return np.minimum(out, _windows(image, window.shape, (2, 1), (1, 2)).min((-1, -2)))

    check_reference("pooling_nhwc_min", pooling)


@needs_mlir
@pytest.mark.slow
def test_named_ops_in_mlir() -> None:
    # `rsqrt` becomes a call of rsqrtf, which libm lacks.
    names = [name for name in named_ops() if name not in (*BEFORE_22, "rsqrt")]
    text = "".join(program(name, function=f"op_{name}") for name in names)
    loops = subprocess.run([str(MLIR_OPT), "--convert-linalg-to-loops"], input=text, capture_output=True, text=True)
    assert loops.returncode == 0, loops.stderr[:3000]
    theirs = UpstreamLibrary(loops.stdout)
    ours = weft.build(converted(text, "noalias", "contract", "reassoc"))
    for name in names:
        arguments, given = arguments_of(name, 1), arguments_of(name, 1)
        if all(isinstance(argument, np.ndarray) for argument in arguments) or name == "fill":
            theirs[f"op_{name}"](*[np.float32(a) if isinstance(a, float) else a for a in arguments])
            ours[f"op_{name}"](*given)
            np.testing.assert_allclose(given[-1], arguments[-1], rtol=1e-5, atol=1e-6, err_msg=name)
