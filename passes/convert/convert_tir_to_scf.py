"""convert-tir-to-scf: block loops in `scf`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.passes import ModulePass

from weft.dialects.tir import ForOp
from weft.dialects.traversal import operations_in
from weft.passes.convert.tir_nests import convert_functions
from weft.passes.tir.tir_lower_loops import IndexEmitter, lower_loop

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.func import FuncOp


@dataclass(frozen=True)
class ConvertTirToScfPass(ModulePass):
    """Convert functions of block loops to `scf.for`, `scf.parallel`, `scf.if`, `memref.load` and `memref.store`.

    ```mlir
    func.func @f(%A: memref<32x16xf32>, %B: memref<32x16xf32>) {
      tir.for %i in 8 parallel {
        tir.for %r in 4 {
          tir.for %j in 16 vectorized {
            tir.block "B" iters(%vi: spatial<32>, %vj: spatial<16>) = [%i * 4 + %r, %j] {
              %a = memref.load %A[%vi, %vj] : memref<32x16xf32>
              %e = math.exp %a : f32
              memref.store %e, %B[%vi, %vj] : memref<32x16xf32>
            }
          }
        }
      }
      func.return
    }
    // becomes
    func.func @f(%A: memref<32x16xf32>, %B: memref<32x16xf32>) {
      %c4 = arith.constant 4 : index
      %c16 = arith.constant 16 : index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %0 = arith.constant 0 : index
      %1 = arith.constant 1 : index
      scf.parallel (%i) = (%0) to (%c8) step (%1) {
        %2 = arith.muli %i, %c4 : index
        scf.for %r = %c0 to %c4 step %c1 {
          %vi = arith.addi %2, %r : index
          scf.for %j = %c0 to %c16 step %c1 {
            %a = memref.load %A[%vi, %j] : memref<32x16xf32>
            %e = math.exp %a : f32
            memref.store %e, %B[%vi, %j] : memref<32x16xf32>
          }
        }
        scf.reduce
      }
      func.return
    }
    ```
    Buffers keep all their dimensions; `lower-tir-to-low` and `convert-low-to-upstream` give flat, vectorized code.
    Parallel loops become `scf.parallel`; vectorized, unrolled and bound loops run in order. Temporaries are allocated
    in the loops that they are private to, and deallocated at their end. Memory spaces, hints, `tir.assume` and promises
    are dropped: the caller checks the sizes. Divisions by zero are still defined. Operations of other dialects stay.

    Raises `CompileError`, with the module as it was, for operations of weft other than loops and blocks: pointers
    (`low.access_ptr`), tiles of tensor cores, calls of registered functions, `tir.intrinsic`.

    Requires: functions of block loops (tir).

    Leaves: functions of `scf`, `memref`, `arith` and `math`.
    """

    name = "convert-tir-to-scf"

    strict: bool = False
    """Whether it is an error, not a remark, that the pass finds nothing."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        convert_functions(op, self.name, _convert, strict=self.strict)


def _convert(function: FuncOp) -> None:
    emitter = IndexEmitter(function)
    emitter.run()
    for loop in operations_in(function, inner_first=True):
        if isinstance(loop, ForOp):
            lower_loop(loop, emitter)
