"""Block loops as loops of affine and of scf: they mean the same, MLIR compiles them, and they are raised again."""

from __future__ import annotations

import sys
import warnings
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from operator_cases import Case
from random_tir import RandomProgram
from scheduled_operators import CASES
from tiers import first_tier
from upstream_tools import UpstreamLibrary, needs_mlir
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import weft
from weft import te
from weft.autoschedule.default_schedule import DefaultSchedulePass
from weft.backends.upstream import UpstreamTarget
from weft.dialects.traversal import operations_in
from weft.interp.compare import Mismatch, Reference
from weft.interp.interpreter import Interpreter
from weft.passes.convert.convert_tir_to_affine import ConvertTirToAffinePass
from weft.passes.convert.convert_tir_to_scf import ConvertTirToScfPass
from weft.passes.convert.raise_affine_to_tir import RaiseAffineToTirPass
from weft.support.errors import CompileError, Remark

sys.path.append(str(Path(__file__).parents[2] / "fuzz"))

from cases import Fuzzer, family_of, make_program

BY_LABEL = {case.label: case for case in CASES}
NOT_AFFINE = {"take", "mirrored border", "resize"}
"""Operators with an index that is data, an absolute value or a clamped number."""
PASSES = [ConvertTirToAffinePass(), ConvertTirToScfPass()]
FEW = ("linear", "conv2d", "softmax", "take", "symbolic")


def function_of(case: Case, scheduled: bool) -> tuple[ModuleOp, list[Any], Any]:
    """A module, its arguments, and an array for the result."""
    symbols = {name: te.size_var(name) for name in case.sizes}
    inputs = [
        te.placeholder([symbols.get(str(e), e) for e in i.shape], name=f"x{n}", dtype=i.dtype)
        for n, i in enumerate(case.inputs)
    ]
    out = case.build(*inputs)
    arrays = [np.asarray(i.array(case.sizes, n)) for n, i in enumerate(case.inputs)]
    module = te.create_func([*inputs, out], name="main")
    if scheduled:
        DefaultSchedulePass().apply(Context(), module)
    expected = case.reference(*(a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays))
    return module, arrays, np.zeros(np.shape(expected), out.dtype)


def converted(module: ModuleOp, step: ModulePass) -> tuple[ModuleOp, list[str]]:
    """The module after a pass, and the remarks of that."""
    result = module.clone()
    with warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("always", Remark)
        step.apply(Context(), result)
    result.verify()
    return result, [str(one.message) for one in remarks]


@pytest.mark.parametrize("step", PASSES, ids=lambda step: step.name)
@pytest.mark.parametrize("scheduled", [False, True])
@pytest.mark.parametrize("label", first_tier(BY_LABEL, *FEW))
def test_operators_mean_the_same(label: str, scheduled: bool, step: ModulePass) -> None:
    module, arrays, expected = function_of(BY_LABEL[label], scheduled)
    got, back = expected.copy(), expected.copy()
    loops, remarks = converted(module, step)
    assert not any(op.name.startswith(("tir.", "low.")) for op in operations_in(loops))
    if step.name == "convert-tir-to-affine":
        assert bool(remarks) == (label in NOT_AFFINE), remarks
    Interpreter(module).call("main", *arrays, expected)
    Interpreter(loops).call("main", *arrays, got)
    np.testing.assert_array_equal(got, expected)
    RaiseAffineToTirPass(("noalias",), strict=True).apply(Context(), loops)
    loops.verify()
    Interpreter(loops).call("main", *arrays, back)
    np.testing.assert_array_equal(back, expected)


@needs_mlir
@pytest.mark.parametrize("step", PASSES, ids=lambda step: step.name)
@pytest.mark.parametrize("scheduled", first_tier([False, True], True))
@pytest.mark.parametrize("label", first_tier(BY_LABEL, "conv2d", "softmax", "take"))
def test_mlir_compiles_them(label: str, scheduled: bool, step: ModulePass) -> None:
    module, arrays, expected = function_of(BY_LABEL[label], scheduled)
    got = expected.copy()
    Interpreter(module).call("main", *arrays, expected)
    text = StringIO()
    UpstreamTarget().emit(Context(), converted(module, step)[0], text)
    UpstreamLibrary(text.getvalue(), ["--lower-affine"])["main"](*arrays, got)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("step", PASSES, ids=lambda step: step.name)
@pytest.mark.parametrize("kind", ["plain", "symbolic", "triangular"])
def test_random_programs(kind: str, step: ModulePass) -> None:
    compared = 0
    for seed in range(40):
        program = RandomProgram(seed, symbolic=kind == "symbolic", triangular=kind == "triangular")
        try:
            module = weft.parse(program.text)
        except CompileError:  # random programs need not be legal
            continue
        reference = Reference(module)
        loops, _ = converted(module, step)
        found = reference.compare(loops)
        assert not isinstance(found, Mismatch), f"{seed}: {found}\n{module}\n{loops}"
        RaiseAffineToTirPass(("noalias",)).apply(Context(), loops)
        loops.verify()
        found = reference.compare(loops)
        assert not isinstance(found, Mismatch), f"{seed}, raised: {found}\n{module}\n{loops}"
        compared += found is None
    assert compared > (1 if kind == "symbolic" else 5)  # few of symbolic extents are legal


@pytest.mark.parametrize("step", PASSES, ids=lambda step: step.name)
@pytest.mark.parametrize("seed", first_tier(range(30), *range(6)))
def test_random_schedules(seed: int, step: ModulePass) -> None:
    program = make_program(family_of(seed), seed)
    reference = Reference(program.module)
    fuzzer = Fuzzer(program, seed)
    fuzzer.run(12)
    found = reference.compare(converted(fuzzer.sch.mod, step)[0])
    assert not isinstance(found, Mismatch), f"{found}\n{fuzzer.sch.mod}"


REFUSED = """
func.func @first(%A: memref<8xf32>) {
  tir.for %i in 8 {
    tir.block "A" iters(%vi: spatial<8>) = [%i] {
      %a = memref.load %A[%vi] : memref<8xf32>
      memref.store %a, %A[%vi] : memref<8xf32>
    }
  }
  func.return
}
func.func @second(%A: memref<8xi1>) {
  tir.for %i in 8 {
    tir.block "A" iters(%vi: spatial<8>) = [%i] {
      %a = memref.load %A[%vi] : memref<8xi1>
      %p = math.ipowi %a, %a : i1
      memref.store %p, %A[%vi] : memref<8xi1>
    }
  }
  func.return
}
"""


@pytest.mark.parametrize("step", PASSES, ids=lambda step: step.name)
def test_refused_modules_stay(step: ModulePass) -> None:
    module = weft.parse(REFUSED)
    before = str(module)
    with pytest.raises(CompileError, match=r"math\.ipowi of i1 has no form"):
        step.apply(Context(), module)
    assert str(module) == before
