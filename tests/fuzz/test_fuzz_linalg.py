"""Random programs of linalg.generic with random schedules give what NumPy and MLIR's own lowering give."""

from __future__ import annotations

import subprocess
from io import StringIO

import checking
import pytest
from generic_programs import GenericProgram, generic_program
from schedules import MAX_STEPS, Fuzzer
from tiers import first_tier
from upstream_tools import MLIR_OPT, UpstreamLibrary, needs_mlir
from xdsl.context import Context

from weft.backends.upstream import UpstreamTarget
from weft.passes.convert.convert_low_to_upstream import ConvertLowToUpstreamPass
from weft.passes.lower_tir_to_low import LowerTirToLowPass

CASES = 40


def scheduled(seed: int) -> tuple[GenericProgram, Fuzzer]:
    made = generic_program(seed)
    fuzzer = Fuzzer(made.program, seed)
    fuzzer.run(fuzzer.number(1, MAX_STEPS))
    return made, fuzzer


@pytest.mark.parametrize("seed", first_tier(range(CASES), 0, 1, 2))
def test_random_program(seed: int) -> None:
    made, fuzzer = scheduled(seed)
    failure = checking.check(made.program, fuzzer.sch.mod, fuzzer.sch.trace, seed)
    assert failure is None, f"{failure}\n{made.text}\n{fuzzer.sch.trace}"


@needs_mlir
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(CASES))
def test_random_program_in_mlir(seed: int) -> None:
    """The program itself, lowered by MLIR, and the scheduled one in upstream's dialects."""
    made, fuzzer = scheduled(seed)
    text = made.text
    loops = subprocess.run([str(MLIR_OPT), "--convert-linalg-to-loops"], input=text, capture_output=True, text=True)
    assert loops.returncode == 0, f"{loops.stderr[:3000]}\n{text}"
    problem = checking._run(made.as_written, UpstreamLibrary(loops.stdout))
    assert problem is None, f"MLIR: {problem}\n{text}"
    module = fuzzer.sch.mod.clone()
    LowerTirToLowPass("llvm").apply(Context(), module)
    ConvertLowToUpstreamPass().apply(Context(), module)
    out = StringIO()
    UpstreamTarget().emit(Context(), module, out)
    problem = checking._run(made.program, UpstreamLibrary(out.getvalue()))
    assert problem is None, f"{problem}\n{text}\n{fuzzer.sch.trace}"
