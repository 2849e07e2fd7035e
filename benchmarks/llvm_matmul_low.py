"""A hand-written matrix multiplication at low level against NumPy, to assess the LLVM backend.

C = A @ B in f32 with B packed as [n/64][n][64], in blocks of 4 x 64 results kept in 16 vector registers, on one thread.
The contenders take turns in one process; the times are the least of 20 rounds, the ratio is NumPy's over weft's.
Packing B is not timed. Also prints the times of emission and compilation.

    python benchmarks/llvm_matmul_low.py [n]
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

# Read once by NumPy's BLAS when it is loaded.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402
from xdsl.context import Context  # noqa: E402
from xdsl.dialects import get_all_dialects  # noqa: E402

from weft.backends.llvm.compile import assembly, target_machine  # noqa: E402
from weft.backends.llvm.emit import emit_module  # noqa: E402
from weft.dialects.low import LOW  # noqa: E402
from weft.driver.parsing import parse_text  # noqa: E402
from weft.runtime.low_module import load_low_module  # noqa: E402
from weft.support.target import Target  # noqa: E402

ROUNDS = 20

MATMUL = """
func.func @matmul(%A: memref<SIZExf32>, %B: memref<SIZExf32>, %C: memref<SIZExf32>) attributes {
  low.params = [#low.param<"A", memref<NxNxf32>, read, []>, #low.param<"B", memref<PANELSxNx64xf32>, read, []>,
                #low.param<"C", memref<NxNxf32>, write, []>],
  low.symbols = []
} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %n = arith.constant N : index
  %zeros = arith.constant dense<0.0> : vector<16xf32>
  scf.for %jo = %c0 to %n step %c64 {
    %panel = arith.muli %jo, %n : index
    scf.for %io = %c0 to %n step %c4 {
      %acc = memref.alloca() : memref<256xf32, "local">
      scf.for %i = %c0 to %c4 step %c1 {
        %r = arith.muli %i, %c64 : index
        scf.for %j = %c0 to %c64 step %c16 {
          %at = arith.addi %r, %j : index
          vector.store %zeros, %acc[%at] : memref<256xf32, "local">, vector<16xf32>
        } {low.unroll}
      } {low.unroll}
      scf.for %k = %c0 to %n step %c1 {
        %krow = arith.muli %k, %c64 : index
        %brow = arith.addi %panel, %krow : index
        scf.for %i = %c0 to %c4 step %c1 {
          %ii = arith.addi %io, %i : index
          %arow = arith.muli %ii, %n : index
          %aat = arith.addi %arow, %k : index
          %a = memref.load %A[%aat] : memref<SIZExf32>
          %va = vector.broadcast %a : f32 to vector<16xf32>
          %r = arith.muli %i, %c64 : index
          scf.for %j = %c0 to %c64 step %c16 {
            %bat = arith.addi %brow, %j : index
            %b = vector.load %B[%bat] : memref<SIZExf32>, vector<16xf32>
            %at = arith.addi %r, %j : index
            %c = vector.load %acc[%at] : memref<256xf32, "local">, vector<16xf32>
            %p = arith.mulf %va, %b : vector<16xf32>
            %s = arith.addf %c, %p : vector<16xf32>
            vector.store %s, %acc[%at] : memref<256xf32, "local">, vector<16xf32>
          } {low.unroll}
        } {low.unroll}
      }
      scf.for %i = %c0 to %c4 step %c1 {
        %ii = arith.addi %io, %i : index
        %crow = arith.muli %ii, %n : index
        %cj = arith.addi %crow, %jo : index
        %r = arith.muli %i, %c64 : index
        scf.for %j = %c0 to %c64 step %c16 {
          %at = arith.addi %r, %j : index
          %c = vector.load %acc[%at] : memref<256xf32, "local">, vector<16xf32>
          %cat = arith.addi %cj, %j : index
          vector.store %c, %C[%cat] : memref<SIZExf32>, vector<16xf32>
        } {low.unroll}
      } {low.unroll}
    }
  }
  func.return
}
"""


def main(n: int) -> None:
    if n % 64:
        sys.exit(f"n must be a multiple of 64, got {n}")
    ctx = Context()
    dialects = get_all_dialects()
    for name in ("arith", "builtin", "func", "memref", "scf", "vector"):
        ctx.load_dialect(dialects[name]())
    ctx.load_dialect(LOW)
    text = MATMUL.replace("SIZE", str(n * n)).replace("PANELS", str(n // 64)).replace("N", str(n))
    module = parse_text(ctx, text, "matmul.mlir")
    target = Target("llvm")
    target_machine(target)

    emission = least(lambda: emit_module(module, target))
    compilation = least(lambda: assembly(emit_module(module, target), target), rounds=5)
    ops = sum(1 for _ in module.walk())
    print(f"{ops} ops: emission {emission * 1e3:.2f} ms, emission and LLVM {compilation * 1e3:.1f} ms")

    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((n, n)).astype(np.float32) for _ in range(2))
    packed = np.ascontiguousarray(b.reshape(n, n // 64, 64).transpose(1, 0, 2))
    ours, theirs = np.zeros((n, n), np.float32), np.zeros((n, n), np.float32)
    matmul = load_low_module(module, target)["matmul"]
    times: dict[str, list[float]] = {"weft": [], "numpy": []}
    for _ in range(ROUNDS):
        times["weft"].append(seconds(lambda: matmul(a, packed, ours)))
        times["numpy"].append(seconds(lambda: np.matmul(a, b, out=theirs)))
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)
    for name, measured in times.items():
        print(f"{name:6} {min(measured) * 1e6:9.1f} us  {2 * n**3 / min(measured) / 1e9:6.1f} GFLOP/s")
    print(f"ratio  {min(times['numpy']) / min(times['weft']):.3f}")


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def least(function: Callable[[], object], rounds: int = ROUNDS) -> float:
    return min(seconds(function) for _ in range(rounds))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1024)
