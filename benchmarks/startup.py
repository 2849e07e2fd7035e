"""Run time of `weft-opt` on a small file, compared with `xdsl-opt`: whole processes, start to end.

    python benchmarks/startup.py [rounds]

Rounds are interleaved and the minimum of each is reported, so that other load affects both alike. The file is valid for
both; a second pair has a tir block, which weft-opt also checks by integer sets.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

SMALL = """
func.func @f(%a: i32, %b: i32) -> i32 {
  %x = arith.addi %a, %b : i32
  func.return %x : i32
}
"""
BLOCK = """
func.func @f(%A: memref<64xf32>, %B: memref<64xf32>) {
  tir.for %i in 64 {
    tir.block "B" iters(%v: spatial<64>) = [%i] {
      %a = memref.load %A[%v] : memref<64xf32>
      %b = arith.addf %a, %a : f32
      memref.store %b, %B[%v] : memref<64xf32>
    }
  }
  func.return
}
"""
TOOLS = Path(sys.executable).parent


def seconds(tool: str, file: Path) -> float:
    """Wall time of one process."""
    start = perf_counter()
    subprocess.run([TOOLS / tool, file], check=True, stdout=subprocess.DEVNULL)
    return perf_counter() - start


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for title, program in (("a function of scalars", SMALL), ("a tir block", BLOCK)):
            file = Path(folder) / "small.mlir"
            file.write_text(program)
            best = {"xdsl-opt": float("inf"), "weft-opt": float("inf")}
            for _ in range(rounds + 1):  # the first one fills the caches
                for tool in best:
                    best[tool] = min(best[tool], seconds(tool, file))
            ours, theirs = best["weft-opt"], best["xdsl-opt"]
            print(
                f"{title}: xdsl-opt {theirs * 1e3:.0f} ms, weft-opt {ours * 1e3:.0f} ms, ratio {ours / theirs:.2f} "
                f"(minimum of {rounds})"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
