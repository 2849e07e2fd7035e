"""Random functions over tensors: in buffers, by the interpreter and by MLIR's lowering, they compute what they did."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import StringIO
from typing import Any

import numpy as np
import pytest
from tensor_programs import TensorProgram
from tiers import first_tier
from upstream_tools import MLIR_OPT, UpstreamLibrary, _run, needs_mlir
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import weft
from weft.backends.upstream import UpstreamTarget
from weft.interp.interpreter import Interpreter
from weft.passes.convert.bufferize_tensors import BufferizeTensorsPass
from weft.support.errors import CompileError

CASES = range(5000, 5040)
OF_LINALG = ("--convert-linalg-to-loops", "--scf-forall-to-for")
ONE_SHOT = (
    "--convert-elementwise-to-linalg",
    "--one-shot-bufferize=bufferize-function-boundaries=1 function-boundary-type-conversion=identity-layout-map",
)


def _bufferized(program: TensorProgram) -> ModuleOp:
    module = weft.parse(program.text())
    try:
        BufferizeTensorsPass().apply(Context(), module)
    except CompileError as error:
        # Shapes of which nothing says that they agree.
        assert program.is_dynamic and "shape" in error.message, error
        pytest.skip(error.message)
    module.verify()
    return module


def _arguments(program: TensorProgram) -> list[Any]:
    rng = np.random.default_rng(program.seed)
    shapes = [(4, 4)] * program.matrices + [(4,)]
    return [rng.integers(-5, 6, shape).astype(np.int32) for shape in shapes]


def _outputs(call: Callable[..., Any], program: TensorProgram, *numbers: Any) -> list[Any]:
    """What a function over buffers writes; it leaves its arguments as they are."""
    arguments, outputs = _arguments(program), [np.full((4,) * rank, 99, np.int32) for rank in program.result_ranks]
    call(*arguments, *numbers, *outputs)
    for argument, before in zip(arguments, _arguments(program), strict=True):
        np.testing.assert_array_equal(argument, before)
    return outputs


def _expected(program: TensorProgram, *numbers: Any) -> list[Any]:
    found = Interpreter(weft.parse(program.text())).call("main", *_arguments(program), *numbers)
    return list(found) if isinstance(found, tuple) else [found]


def _check(program: TensorProgram, compute: Callable[..., Any]) -> None:
    for numbers in ((3, 1, 3), (0, 3, 3)):
        got, wanted = _outputs(compute, program, *numbers), _expected(program, *numbers)
        for left, right in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(left, right, err_msg=program.text())


@pytest.mark.parametrize("seed", first_tier(CASES, 5001, 5002))
def test_interpreted(seed: int) -> None:
    program = TensorProgram(seed)
    interpreter = Interpreter(_bufferized(program))
    _check(program, lambda *arguments: interpreter.call("main", *arguments))


@needs_mlir
@pytest.mark.slow
@pytest.mark.parametrize("seed", CASES)
def test_compiled_by_upstream(seed: int) -> None:
    program = TensorProgram(seed)
    text = StringIO()
    UpstreamTarget().emit(Context(), _bufferized(program), text)
    _check(program, UpstreamLibrary(text.getvalue(), OF_LINALG)["main"])


@needs_mlir
@pytest.mark.slow
@pytest.mark.parametrize("seed", [seed for seed in CASES if not TensorProgram(seed).is_dynamic])
def test_bufferized_by_upstream(seed: int) -> None:
    """One-Shot Bufferize is of the same opinion. Copies of strided buffers would call its runtime library."""
    program = TensorProgram(seed)
    try:
        text = _run([MLIR_OPT, *ONE_SHOT], program.text(returns=False))
    except AssertionError as error:
        assert "not equivalent to the corresponding iter bbArg" in str(error)
        pytest.skip("One-Shot Bufferize copies nothing that a loop yields")
    copy = r"linalg.copy ins(\1 : \3) outs(\2 : \4)"
    text = re.sub(r"memref\.copy (%[\w#]+), (%[\w#]+) : (.*) to (memref.*)", copy, text)
    _check(program, UpstreamLibrary(text, OF_LINALG)["main"])
