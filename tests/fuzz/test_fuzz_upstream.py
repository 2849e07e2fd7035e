"""Random programs with random schedules in upstream's dialects: MLIR's passes and LLVM give what the programs give."""

from __future__ import annotations

from io import StringIO

import checking
import pytest
from cases import case_of
from tiers import first_tier
from upstream_tools import UpstreamLibrary, needs_mlir
from xdsl.context import Context

from weft.backends.upstream import UpstreamTarget
from weft.passes.convert.convert_low_to_upstream import ConvertLowToUpstreamPass
from weft.passes.lower_tir_to_low import LowerTirToLowPass

CASES = 40


@needs_mlir
@pytest.mark.parametrize("seed", first_tier(range(3000, 3000 + CASES), 3000, 3001, 3002))
def test_random_program_in_upstream(seed: int) -> None:
    program, fuzzer = case_of(seed)
    module = fuzzer.sch.mod.clone()
    LowerTirToLowPass("llvm").apply(Context(), module)
    ConvertLowToUpstreamPass().apply(Context(), module)
    text = StringIO()
    UpstreamTarget().emit(Context(), module, text)
    problem = checking._run(program, UpstreamLibrary(text.getvalue()))
    assert problem is None, f"{problem}\n{text.getvalue()}"
