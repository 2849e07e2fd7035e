"""`raise-affine-to-tir` on programs as users of MLIR write them (`upstream_loops/`): raised, scheduled and compiled,
they compute what the interpreter computes of the program as it was, and what MLIR's lowering of it does."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from upstream_tools import UpstreamLibrary, needs_mlir
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

import weft
from weft.autoschedule.default_schedule import DefaultSchedulePass
from weft.driver.programs import parse
from weft.interp.compare import outputs_equal
from weft.interp.interpreter import Interpreter
from weft.passes.convert.raise_affine_to_tir import RaiseAffineToTirPass
from weft.passes.verify_level import verify_level

PROGRAMS = {path.stem: path.read_text() for path in sorted((Path(__file__).parent / "upstream_loops").glob("*.mlir"))}
SHAPES = {
    "affine_if": ((7, 16),),
    "matmul_accumulate": ((9, 12), (12, 10), (9, 10)),
    "matmul_iter_args": ((9, 12), (12, 10), (9, 10)),
    "scf_parallel": ((7, 11), (7, 11)),
    "stencil_symbols": ((13,), (13,)),
    "strided_parameters": ((6, 9), (6, 9)),
}
"""The shapes of arguments of programs over buffers of dynamic extents."""
ALL = ("noalias", "contract", "reassoc")


def arguments_of(module: ModuleOp, name: str) -> list[Any]:
    generator = np.random.default_rng(3)
    signature = Interpreter(module).signature(name)
    found: list[Any] = []
    for at, spec in enumerate(signature.args):
        shape = SHAPES[name][at] if name in SHAPES else spec.shape
        dtype = np.dtype(spec.dtype)
        if dtype.kind == "f":
            found.append(generator.standard_normal(shape).astype(dtype))
        else:
            found.append(generator.integers(0, 50, shape).astype(dtype))
    return found


def run_passes(module: ModuleOp, *passes: ModulePass) -> ModuleOp:
    for one in passes:
        one.apply(Context(), module)
        module.verify()
    for function in module.ops:
        if isinstance(function, FuncOp) and function.body.blocks:
            verify_level(function, "tir")
    return module


def assert_equal(expected: list[Any], found: list[Any], what: str) -> None:
    for at, (one, other) in enumerate(zip(expected, found, strict=True)):
        assert outputs_equal(one, other), f"{what}: argument {at} differs:\n{one}\n{other}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_raised_and_scheduled_programs_compute_the_same(name: str) -> None:
    module = parse(PROGRAMS[name], name)
    given = arguments_of(module, name)
    expected = [argument.copy() for argument in given]
    Interpreter(module).call(name, *expected)
    for promises in ((), ALL):
        raised = run_passes(module.clone(), RaiseAffineToTirPass(promises=promises, strict=True))
        found = [argument.copy() for argument in given]
        Interpreter(raised).call(name, *found)
        assert_equal(expected, found, f"raised with {promises}")
    found = [argument.copy() for argument in given]
    scheduled = run_passes(raised, DefaultSchedulePass())
    weft.build(scheduled)[name](*found)
    assert_equal(expected, found, "compiled")


@needs_mlir
@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_mlir_lowers_programs_to_the_same(name: str) -> None:
    module = parse(PROGRAMS[name], name)
    given = arguments_of(module, name)
    expected = [argument.copy() for argument in given]
    UpstreamLibrary(PROGRAMS[name], ("--scf-forall-to-for", "--lower-affine"))[name](*expected)
    found = [argument.copy() for argument in given]
    raised = run_passes(module, RaiseAffineToTirPass(promises=ALL), DefaultSchedulePass())
    weft.build(raised)[name](*found)
    assert_equal(expected, found, "compiled")
