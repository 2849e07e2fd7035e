"""Kinds of target that installed packages register are known to every tool, once somebody names them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import weft
from weft.support.target import target_kinds, unregister_target_kind
from weft.tools.weft_cli import execute
from weft.tools.weft_opt import WeftOptMain

PACKAGE = '''
"""A processor that runs programs as the CPU does."""
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.universe import Universe

import weft
from weft.runtime.low_module import load_low_module


@dataclass(frozen=True)
class LowerRelu6Pass(ModulePass):
    """Forget the upper bound."""

    name = "acmesim-lower-relu6"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, arith.MinimumfOp):
                inner.result.replace_all_uses_with(inner.lhs)
                Rewriter.erase_op(inner)


def load(module, target):
    return load_low_module(module, weft.Target("llvm"))


weft.register_target_kind(weft.TargetKind("acmesim", load))
UNIVERSE = Universe(all_passes={"acmesim-lower-relu6": lambda: LowerRelu6Pass})
'''
PROGRAM = """
func.func @relu6(%A: memref<64xf32>, %B: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %six = arith.constant 6.0 : f32
  tir.for %i in 64 {
    tir.block "B" iters(%vi: spatial<64>) = [%i] {
      %a = memref.load %A[%vi] : memref<64xf32>
      %r = arith.maximumf %a, %zero : f32
      %y = arith.minimumf %r, %six : f32
      memref.store %y, %B[%vi] : memref<64xf32>
    }
  }
  func.return
}
"""


@pytest.fixture(name="site")
def _site(tmp_path: Path) -> Iterator[Path]:
    """A folder with the package as pip installs it, on the path, and a program."""
    about = tmp_path / "acmesim-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acmesim\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text("[xdsl.universe]\nacmesim = acmesim:UNIVERSE\n")
    (tmp_path / "acmesim.py").write_text(PACKAGE)
    (tmp_path / "relu6.mlir").write_text(PROGRAM)
    sys.path.insert(0, str(tmp_path))
    try:
        yield tmp_path
    finally:
        sys.path.remove(str(tmp_path))
        if sys.modules.pop("acmesim", None) is not None and "acmesim" in target_kinds():
            unregister_target_kind("acmesim")


@pytest.mark.parametrize(
    "words",
    [
        ["run", "relu6.mlir", "--target", "acmesim", "--check"],
        ["show", "relu6.mlir", "--target", "acmesim"],
        ["tune", "relu6.mlir", "--target", "acmesim -opt-level=7", "--trials", "2"],
        ["build", "relu6.mlir", "--target", "acmesim", "-o", "relu6.o"],
    ],
    ids=lambda words: words[0],
)
def test_commands_know_the_kind(
    words: list[str], site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(site)
    assert "acmesim" not in target_kinds()
    try:
        assert execute(words) == 0
    except weft.CompileError as error:
        assert "unknown target kind" not in str(error)
        assert words[0] in ("build", "tune")
        wanted = "opt-level must be 0, 1, 2 or 3, got 7" if words[0] == "tune" else "acmesim"
        assert wanted in str(error)
    assert "acmesim" in target_kinds()
    if words[0] == "run":
        assert "target    acmesim" in capsys.readouterr().out


def test_build_knows_the_kind(site: Path) -> None:
    a, b = np.linspace(-9, 9, 64, dtype=np.float32), np.empty(64, np.float32)
    weft.build(weft.parse(PROGRAM), target="acmesim")["relu6"](a, b)
    np.testing.assert_array_equal(b, a.clip(0, 6))


def test_targets_and_rules_know_the_kind(site: Path) -> None:
    assert weft.Target("acmesim -opt-level=1").kind == "acmesim"
    with pytest.raises(weft.CompileError, match=r"unknown target kind 'acmesimm', did you mean 'acmesim'"):
        weft.Target("acmesimm")


def test_passes_know_the_kind(site: Path) -> None:
    words = ["-p", "lower-tir-to-low{target=acmesim}", "--validate"]
    assert WeftOptMain(args=[str(site / "relu6.mlir"), *words]).execute() == 0


def test_wrong_passes_of_the_package_are_noticed(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(site / "relu6.mlir")
    assert WeftOptMain(args=[file, "-p", "acmesim-lower-relu6", "--validate"]).execute() == 1
    assert "pass 'acmesim-lower-relu6' changed the meaning of the program: @relu6" in capsys.readouterr().err
    inserted = ["--insert", "before:vectorize=acmesim-lower-relu6"]
    assert execute(["run", file, "--target", "acmesim", *inserted, "--check"]) == 1
    assert "error: output 'B' differs from the interpreter on saturating values" in capsys.readouterr().err


def test_programs_of_the_kind_are_not_exported(site: Path, tmp_path: Path) -> None:
    """The package generates their code: `weft build` writes code for CPUs."""
    with pytest.raises(weft.CompileError, match="by llvm and c; 'acmesim' loads its own"):
        execute(["build", str(site / "relu6.mlir"), "--target", "acmesim", "-o", str(tmp_path / "f.o")])


def test_a_package_that_cannot_be_loaded_is_named(site: Path) -> None:
    (site / "acmesim.py").write_text("import no_such_module\n")
    message = (
        "package 'acmesim' with an entry point of 'xdsl.universe' cannot be loaded: ModuleNotFoundError: No module"
    )
    with pytest.raises(weft.CompileError, match=message):
        weft.Target("acmesim")
    with pytest.raises(weft.CompileError, match=message):
        weft.parse(PROGRAM)
    assert weft.Target("llvm").kind == "llvm"


def test_weft_alone_imports_no_package(site: Path) -> None:
    check = "import sys, weft; weft.Target('llvm'); sys.exit('acmesim' in sys.modules)"
    subprocess.run([sys.executable, "-c", check], env={"PYTHONPATH": str(site)}, check=True)
