"""Tiles of which the first or last hold less, or nothing: their loop is cut there, and results are the same."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

import weft
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.dialects.traversal import operations_in
from weft.interp.interpreter import Interpreter
from weft.passes.tir.tir_partition_loops import PartitionLoopsPass


def tiles(count: int, width: int, condition: str, bound: int, kind: str = "") -> ModuleOp:
    """Elements of tiles are counted twice where a condition holds; `%x` runs over all tiles."""
    nest = f"""
        tir.for %j in {width} {{
          %x = affine.apply affine_map<(d0, d1) -> (d0 * {width} + d1)> (%t, %j)
          %p = arith.cmpi {condition}, %x, %bound : index
          scf.if %p {{
            %old = memref.load %C[%x] : memref<{count * width}xi64>
            %new = arith.addi %old, %one : i64
            memref.store %new, %C[%x] : memref<{count * width}xi64>
          }}
        }}"""
    return weft.parse(f"""
    func.func @f(%C: memref<{count * width}xi64>) {{
      %bound = arith.constant {bound} : index
      %one = arith.constant 1 : i64
      tir.for %t in {count} {kind} {{ {nest} {nest} }}
      func.return
    }}""")


@pytest.mark.parametrize(("count", "width"), [(5, 48), (4, 3), (2, 7), (1, 5)])
@pytest.mark.parametrize("condition", ["slt", "sle", "sge", "sgt"])
def test_tiles_that_hold_nothing(count: int, width: int, condition: str) -> None:
    for bound in range(-1, count * width + 2, 1 if width < 9 else 13):
        module = tiles(count, width, condition, bound)
        cut = module.clone()
        PartitionLoopsPass().apply(Context(), cut)
        before, after = np.zeros((2, count * width), np.int64)
        Interpreter(module).call("f", before)
        Interpreter(cut).call("f", after)
        np.testing.assert_array_equal(after, before)
        # No element outside is visited, and no condition is left to say so.
        assert not any(isinstance(op, scf.IfOp) for op in operations_in(cut)), cut


@pytest.mark.parametrize(("count", "width"), [(5, 4), (4, 3), (2, 7), (1, 5)])
@pytest.mark.parametrize("condition", ["slt", "sge"])
def test_threads_share_the_last_tile(count: int, width: int, condition: str) -> None:
    for short in range(1, width):
        bound = count * width - short if condition == "slt" else short
        module = tiles(count, width, condition, bound, "parallel")
        cut = module.clone()
        PartitionLoopsPass().apply(Context(), cut)
        before, after = np.zeros((2, count * width), np.int64)
        Interpreter(module).call("f", before)
        Interpreter(cut, order="shuffled").call("f", after)
        np.testing.assert_array_equal(after, before)
        shared = [op.extent for op in operations_in(cut) if isinstance(op, ForOp) and op.kind.data is LoopKind.PARALLEL]
        assert shared == [count], cut
