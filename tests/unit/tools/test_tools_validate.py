"""`weft-opt --validate` names the first pass that changes what a program computes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.arith import AddfOp, SubfOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

import weft
from weft.support.errors import CompileError
from weft.tools.weft_opt import WeftOptMain

PROGRAM = """
func.func @add(%A: memref<?xf32>, %B: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.assume_shape %B[%n] : memref<?xf32>
  tir.for %i in %n {
    tir.block "B" iters(%v: spatial<%n>) = [%i] {
      %a = memref.load %A[%v] : memref<?xf32>
      %b = arith.addf %a, %a : f32
      memref.store %b, %B[%v] : memref<?xf32>
    }
  }
  func.return
}
"""


@dataclass(frozen=True)
class KeepPass(ModulePass):
    name: ClassVar[str] = "keep"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pass


@dataclass(frozen=True)
class BreakPass(ModulePass):
    name: ClassVar[str] = "break"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for add in [o for o in op.walk() if isinstance(o, AddfOp)]:
            Rewriter.replace_op(add, SubfOp(add.lhs, add.rhs))


@dataclass(frozen=True)
class InvalidPass(ModulePass):
    name: ClassVar[str] = "invalid"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        add = next(o for o in op.walk() if isinstance(o, AddfOp))
        user = next(iter(add.result.uses)).operation
        user.detach()
        block = add.parent
        assert block is not None
        block.insert_op_before(user, add)


@dataclass(frozen=True)
class CrashPass(ModulePass):
    name: ClassVar[str] = "crash"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise LookupError("nothing there")


class Driver(WeftOptMain):
    def register_all_passes(self) -> None:
        super().register_all_passes()
        for kind in (KeepPass, BreakPass, InvalidPass, CrashPass):
            self.register_pass(kind.name, lambda kind=kind: kind)


@pytest.fixture
def drive(tmp_path: Path) -> Callable[..., int]:
    (tmp_path / "add.mlir").write_text(PROGRAM)
    return lambda *words: Driver(args=[str(tmp_path / "add.mlir"), *words]).execute()


def test_the_first_pass_that_changes_the_meaning_is_named(
    drive: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert drive("-p", "keep,break,keep", "--validate") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "error: pass 'break' changed the meaning of the program: @add (A: " in err
    assert drive("-p", "keep,keep", "--validate") == 0
    assert drive("-p", "keep,break") == 0  # nobody asked


def test_a_pass_that_leaves_invalid_ir_is_named(drive: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert drive("-p", "keep,invalid") == 1
    err = capsys.readouterr().err
    assert "add.mlir:10:7: error: pass 'invalid' left IR that does not verify: 'memref.store' uses %b before" in err


def test_a_pass_that_crashes_is_named(drive: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert drive("-p", "keep,crash") == 1
    assert capsys.readouterr().err.startswith(f"error: pass 'crash' of {__name__} failed: LookupError: ")
    assert drive("-p", "keep,crash", "--debug") == 1
    assert "in apply" in capsys.readouterr().err
    with pytest.raises(CompileError, match=r"pass 'crash' of .*test_tools_validate failed: LookupError"):
        weft.build(weft.parse(PROGRAM), passes={"before:vectorize": CrashPass()})


def test_options_reach_a_pass_and_wrong_ones_are_errors(drive: Callable[..., int]) -> None:
    with pytest.raises(CompileError, match="pass 'keep' has no option 'x': it has no options"):
        drive("-p", "keep{x=1}")
    with pytest.raises(CompileError, match="-t takes one target, got 2: 'mlir,mlir'"):
        drive("-t", "mlir,mlir")


@pytest.mark.parametrize(
    "body",
    [
        'tir.for %i in 32 thread_binding<"threadIdx.x"> {}',
        '%t = low.thread_id "threadIdx.x" extent 32 : index',
    ],
)
def test_kernels_that_are_being_lowered_are_not_interpreted(body: str) -> None:
    module = weft.parse(
        f"func.func @exchange(%H: memref<32xf16>) attributes {{tir.threads_in_step}} {{\n{body}\nfunc.return\n}}"
    )
    with pytest.raises(CompileError, match="kernels are interpreted when they are functions"):
        weft.Interpreter(module).call("exchange", np.zeros(32, np.float16))
