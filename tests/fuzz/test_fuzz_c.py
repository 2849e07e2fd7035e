"""Random programs with random schedules as C: warnings are errors, and results are those of the program."""

from __future__ import annotations

import shutil

import checking
import pytest
from cases import REDUCTIONS, case_of
from tiers import first_tier
from xdsl.context import Context

import weft
from weft.passes.lower_tir_to_low import LowerTirToLowPass
from weft.runtime import c_library
from weft.runtime.low_module import load_low_module

CASES = 24
FLAGS = ("-std=c99", "-O1", "-fPIC", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off")
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


@pytest.mark.skipif(COMPILER is None, reason="no C compiler (cc, gcc, clang) is on the PATH")
@pytest.mark.parametrize("seed", first_tier(range(1000, 1000 + CASES), 1000, 1001, 1002, 1003))
def test_random_program_in_c(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_library, "FLAGS", FLAGS)
    program, fuzzer = case_of(seed, REDUCTIONS if seed % 4 == 3 else None)
    module = fuzzer.sch.mod.clone()
    LowerTirToLowPass("c").apply(Context(), module)
    library = load_low_module(module, weft.Target("c", num_threads=1))
    problem = checking._run(program, library)
    assert problem is None, f"{problem}\n{library.get_source('c')}"
