"""Functions, blocks and parameters of any name run on every target; paths and options that name nothing are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_programs import needs_compiler
from xdsl.dialects.builtin import StringAttr

import weft
from weft.dialects.tir import BlockOp

PROGRAM = """
func.func @f(%A: memref<16xf32>, %B: memref<16xf32>) {
  tir.for %i in 16 {
    tir.block "B" iters(%v: spatial<16>) = [%i] {
      %a = memref.load %A[%v] : memref<16xf32>
      memref.store %a, %B[%v] : memref<16xf32>
    }
  }
  func.return
}"""
NAMES = ["a\0b", "a\nb\x01", "a\ud800", "é", "", 'a"b\\', "*/ #", "x" * 5000]


def named(name: str) -> Any:
    module = weft.parse(PROGRAM)
    function = next(iter(module.body.block.ops))
    function.properties["sym_name"] = StringAttr(name)
    for op in module.walk():
        if isinstance(op, BlockOp):
            op.properties["label"] = StringAttr(name)
        for value in op.results:
            value.name_hint = None
    for argument, hint in zip(function.regions[0].block.args, ("x" * 5000 + "1", "x" * 5000 + "2"), strict=True):
        argument.name_hint = hint
    return module


@pytest.mark.parametrize("target", ["llvm", pytest.param("c", marks=needs_compiler), "opencl"])
@pytest.mark.parametrize("name", NAMES, ids=[f"{ascii(name)[:9]}" for name in NAMES])
def test_names(name: str, target: str) -> None:
    if target == "opencl":
        pytest.importorskip("pyopencl")
    library = weft.build(named(name), target=f"{target} -num-threads=1" if target != "opencl" else target)
    a, b = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    library[name](a, b)
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("text", ["a\0b", "a\ud800", "a\n", "x" * 5000], ids=["nul", "half", "line", "long"])
def test_text_that_names_nothing(text: str, tmp_path: Path) -> None:
    library = weft.build(PROGRAM)
    library.export(tmp_path / "f.so")
    for refused in (
        lambda: weft.build(PROGRAM, target=f"llvm -mtriple={text}"),
        lambda: weft.build(PROGRAM, target=f"llvm -mcpu={text}"),
        lambda: weft.build(PROGRAM, target=f"cuda -arch={text}"),
        lambda: weft.build(PROGRAM, database=tmp_path / text),
        lambda: library.export(tmp_path / text / "f.o"),
        lambda: library.export(tmp_path / "g.so", compiler=text),
        lambda: weft.load(tmp_path / text),
    ):
        with pytest.raises((weft.CompileError, OSError)):
            refused()
