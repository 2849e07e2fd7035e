"""`weft-opt --bisect` names the pass, the step in it and the rewrite that change a result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from installed_passes import installed_passes
from xdsl.dialects.arith import AddfOp, SubfOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from weft.passes.schedule.primitive import Primitive, primitive_class
from weft.support.rewrites import counted_rewrites, may_rewrite
from weft.tools.weft_opt import WeftOptMain

PROGRAM = """
func.func @sums(%A: memref<8xf32>, %B: memref<8xf32>, %C: memref<8xf32>) {
  tir.for %i in 8 {
    tir.block "B" iters(%v: spatial<8>) = [%i] {
      %a = memref.load %A[%v] : memref<8xf32>
      %b = memref.load %B[%v] : memref<8xf32>
      %two = arith.constant 2.0 : f32
      %c = arith.addf %two, %two : f32
      %d = arith.addf %a, %b : f32
      %e = arith.addf %d, %c : f32
      memref.store %e, %C[%v] : memref<8xf32>
    }
  }
  func.return
}
"""


@pytest.fixture(name="site")
def _site(tmp_path: Path) -> Iterator[Path]:
    with installed_passes(tmp_path):
        (tmp_path / "sums.mlir").write_text(PROGRAM)
        yield tmp_path


def bisected(site: Path, passes: str, capsys: pytest.CaptureFixture[str], status: int = 1) -> str:
    assert WeftOptMain(args=[str(site / "sums.mlir"), "-p", passes, "--bisect"]).execute() == status
    return capsys.readouterr().err


def test_first_rewrite_of_a_pattern(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first of three is right, since 2 + 2 = 2 * 2."""
    text = bisected(site, "cse,acme-subtract,canonicalize", capsys)
    assert "sums.mlir:9:12: error: pass 'acme-subtract' changes the result of @sums" in text
    assert "its rewrite 2 of 3 is the first that does: SubtractPattern on 'arith.addf' at " in text
    assert "-        %d = arith.addf %a, %b : f32\n+        %d = arith.subf %a, %b : f32" in text
    assert "+        %e = arith.subf" not in text


def test_pass_without_patterns(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = bisected(site, "acme-silent", capsys)
    assert "pass 'acme-silent' changes the result of @sums" in text
    assert "rewrite" not in text
    assert "+        %e = arith.subf" in text


def test_step_of_a_nested_pipeline(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = bisected(site, "func.func(cse,acme-subtract)", capsys)
    assert "pass 'acme-subtract' in 'func.func' changes the result of @sums" in text
    assert "its rewrite 2 of 3" in text


SCHEDULED = (
    PROGRAM
    + """
sched.func @schedule {
  %b = sched.get_block "B" in @sums : block
  %i = sched.get_loops %b : loop
  %i0, %i1 = sched.split %i {factors = [0, 4]} : loop, loop
  sched.unroll %i1
}
"""
)


def test_step_of_a_schedule(site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A primitive that breaks a program is named as the step that applies it."""
    (site / "sums.mlir").write_text(SCHEDULED)
    split = primitive_class("split")
    plain = split.apply

    def wrong(self: Primitive) -> tuple[Operation, ...]:
        made = plain(self)
        for add in [op for op in made[0].walk() if isinstance(op, AddfOp)]:
            Rewriter.replace_op(add, SubfOp(add.lhs, add.rhs))
        return made

    monkeypatch.setattr(split, "apply", wrong)
    text = bisected(site, "apply-schedule", capsys)
    assert "sums.mlir:20:14: error: pass 'apply-schedule' changes the result of @sums" in text
    assert "its rewrite 3 of 4 is the first that does: sched.split at " in text


def test_right_passes(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bisected(site, "canonicalize,cse", capsys, 0) == ""


def test_limits_hold() -> None:
    with counted_rewrites(1) as rewrites:
        assert may_rewrite("one", ModuleOp([]))
        assert not may_rewrite("two", ModuleOp([]))
    assert [made.rule for made in rewrites.made] == ["one"]
    assert may_rewrite("three", ModuleOp([]))
