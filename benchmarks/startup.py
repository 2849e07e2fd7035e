"""CPU time of `weft-opt` against `xdsl-opt` on small files, and on one of 9,000 operations: whole processes.

    python benchmarks/startup.py [rounds]

User and system time of each process, the minimum over interleaved rounds: other work on the machine disturbs it less
than wall time. `xdsl-opt` runs on the first and the third file, which both tools read. The last row schedules
`examples/mm_relu.mlir` and lowers it to LLVM IR.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

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
OPERATIONS = 9000
TOOLS = Path(sys.executable).parent
MM_RELU = Path(__file__).parents[1] / "examples" / "mm_relu.mlir"
LOWERING = ("-p", "apply-schedule,lower-tir-to-low{target=llvm}", "-t", "llvm-ir")


def chain(length: int) -> str:
    """A function of `length` floating-point operations, each on the result of the one before it."""
    names = ["arith.addf", "arith.mulf"]
    lines = [f"  %a{at + 1} = {names[at % 2]} %a{at}, %b : f32" for at in range(length)]
    return "\n".join(["func.func @f(%a0: f32, %b: f32) -> f32 {", *lines, f"  func.return %a{length} : f32", "}", ""])


def seconds(command: Sequence[str | Path]) -> float:
    """User and system time of one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = {"small": SMALL, "block": BLOCK, "chain": chain(OPERATIONS)}
        for name, text in files.items():
            (Path(folder) / f"{name}.mlir").write_text(text)
        small, block, large = (Path(folder) / f"{name}.mlir" for name in files)
        weft_opt, xdsl_opt = TOOLS / "weft-opt", TOOLS / "xdsl-opt"
        rows: list[tuple[str, list[Sequence[str | Path]]]] = [
            ("a function of scalars", [(xdsl_opt, small), (weft_opt, small)]),
            (f"a function of {OPERATIONS} operations", [(xdsl_opt, large), (weft_opt, large)]),
            ("a tir block", [(weft_opt, block)]),
            ("mm_relu, scheduled and lowered to LLVM IR", [(weft_opt, MM_RELU, *LOWERING)]),
        ]
        for title, commands in rows:
            best = [float("inf")] * len(commands)
            for _ in range(rounds + 1):  # the first one fills the caches
                for at, command in enumerate(commands):
                    best[at] = min(best[at], seconds(command))
            named = zip(commands, best, strict=True)
            texts = [f"{Path(command[0]).name} {time * 1e3:.0f} ms" for command, time in named]
            ratio = f", ratio {best[-1] / best[0]:.2f}" if len(best) > 1 else ""
            print(f"{title}: {', '.join(texts)}{ratio} (CPU, minimum of {rounds})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
