"""Modules that `weft-opt` imports: start-up time is mostly imports, and a count is not disturbed by other processes."""

import subprocess
import sys
from pathlib import Path

import pytest

UPSTREAM = """
func.func @f(%a: i32, %b: i32) -> i32 {
  %x = arith.addi %a, %b : i32
  func.return %x : i32
}
"""
LOOPS = """
func.func @f(%A: memref<8xf32>) {
  tir.for %i in 8 {
    tir.block "B" iters(%v: spatial<8>) = [%i] {
      %a = memref.load %A[%v] : memref<8xf32>
      %b = arith.addf %a, %a : f32
      memref.store %b, %A[%v] : memref<8xf32>
    }
  }
  func.return
}
"""
SCRIPT = """
import sys
from weft.tools.weft_opt import main
try:
    main()
finally:
    print(*sorted(sys.modules), sep="\\n", file=sys.stderr)
"""


def imported(tmp_path: Path, text: str, *flags: str) -> set[str]:
    file = tmp_path / "input.mlir"
    file.write_text(text)
    command = [sys.executable, "-c", SCRIPT, str(file), *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def below(modules: set[str], package: str) -> set[str]:
    return {module for module in modules if module == package or module.startswith(f"{package}.")}


def test_upstream_files_need_no_dialect_of_weft(tmp_path: Path) -> None:
    modules = imported(tmp_path, UPSTREAM)
    for package in ("numpy", "islpy", "llvmlite", "weft.analysis", "weft.texpr", "weft.interp", "weft.dialects.low"):
        assert not below(modules, package), package
    assert len(below(modules, "weft")) <= 40


@pytest.mark.parametrize("flags", [(), ("-p", "tir-lower-blocks")], ids=["verify", "one-pass"])
def test_loops_need_no_graphs_and_no_emitter(tmp_path: Path, flags: tuple[str, ...]) -> None:
    modules = imported(tmp_path, LOOPS, *flags)
    for package in ("llvmlite", "weft.texpr", "weft.passes.graph", "weft.backends", "weft.frontends"):
        assert not below(modules, package), package


def test_references_compute_nothing_when_they_are_imported() -> None:
    """Nodes of quadrature are eigenvalues of a large matrix: seconds on a busy machine."""
    script = """
import numpy as np
for name in np.linalg.__all__:
    setattr(np.linalg, name, None)
import weft.texpr.references
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
