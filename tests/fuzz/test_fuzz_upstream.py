"""Random programs with random schedules in upstream's dialects: MLIR's passes and LLVM give what the programs give, and
so does weft when they come back."""

from __future__ import annotations

from io import StringIO

import checking
import pytest
from cases import case_of
from programs import Program
from tiers import first_tier
from upstream_tools import MLIR_OPT, UpstreamLibrary, cleaned, needs_mlir
from xdsl.context import Context

import weft
from weft.backends.upstream import UpstreamTarget
from weft.driver.verify import verify_module
from weft.passes.convert.convert_low_to_upstream import ConvertLowToUpstreamPass
from weft.passes.convert.convert_upstream_to_low import ConvertUpstreamToLowPass
from weft.passes.lower_tir_to_low import LowerTirToLowPass

CASES = 40


@pytest.mark.parametrize("seed", first_tier(range(3000, 3000 + CASES), 3000, 3001))
@needs_mlir
def test_random_program_in_upstream(seed: int) -> None:
    program, text = upstream_case(seed)
    problem = checking._run(program, UpstreamLibrary(text))
    assert problem is None, f"{problem}\n{text}"


@pytest.mark.parametrize("seed", first_tier(range(3000, 3000 + CASES), 3000, 3001, 3002))
def test_random_program_comes_back(seed: int) -> None:
    program, text = upstream_case(seed)
    for written in (text, *(() if MLIR_OPT is None else (cleaned(MLIR_OPT, text),))):
        module = weft.parse(written)
        ConvertUpstreamToLowPass(strict=True).apply(Context(), module)
        verify_module(module)
        problem = checking._run(program, weft.build(module))
        assert problem is None, f"{problem}\n{written}"


def upstream_case(seed: int) -> tuple[Program, str]:
    """A random program, and what its scheduled form is in upstream's dialects."""
    program, fuzzer = case_of(seed)
    module = fuzzer.sch.mod.clone()
    LowerTirToLowPass("llvm").apply(Context(), module)
    ConvertLowToUpstreamPass().apply(Context(), module)
    text = StringIO()
    UpstreamTarget().emit(Context(), module, text)
    return program, text.getvalue()
