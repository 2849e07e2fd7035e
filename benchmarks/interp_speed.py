"""Speed of the reference interpreter: seconds, and nanoseconds per block instance.

    python benchmarks/interp_speed.py

Each program is compiled once, then called; the time is the least of three calls, arrays to arrays. Compilation is the
first use of a function: walking its ops, generating Python source and compiling that.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from xdsl.context import Context
from xdsl.universe import Universe

from weft.driver.parsing import parse_text
from weft.interp.arguments import random_arguments
from weft.interp.interpreter import Interpreter

CALLS = 3

MATMUL = """
func.func @matmul(%A: memref<NxNxTYPE>, %B: memref<NxNxTYPE>, %C: memref<NxNxTYPE>) {
  %zero = arith.constant ZERO : TYPE
  tir.for %i in N KIND { tir.for %j in N { tir.for %k in N {
    tir.block "C" iters(%vi: spatial<N>, %vj: spatial<N>, %vk: reduce<N>) = [%i, %j, %k] {
      tir.init { memref.store %zero, %C[%vi, %vj] : memref<NxNxTYPE> }
      %a = memref.load %A[%vi, %vk] : memref<NxNxTYPE>
      %b = memref.load %B[%vk, %vj] : memref<NxNxTYPE>
      %c = memref.load %C[%vi, %vj] : memref<NxNxTYPE>
      %p = arith.mulSUFFIX %a, %b : TYPE
      %s = arith.addSUFFIX %c, %p : TYPE
      memref.store %s, %C[%vi, %vj] : memref<NxNxTYPE>
    }
  } } }
  func.return
}
"""

VECTORS = """
func.func @vectors(%A: memref<SIZExf32>, %B: memref<SIZExf32>, %C: memref<SIZExf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %n = arith.constant N : index
  scf.for %i = %c0 to %n step %c1 { scf.for %k = %c0 to %n step %c1 {
    %row = arith.muli %i, %n : index
    %at = arith.addi %row, %k : index
    %a = memref.load %A[%at] : memref<SIZExf32>
    %splat = vector.broadcast %a : f32 to vector<16xf32>
    scf.for %j = %c0 to %n step %c16 {
      %brow = arith.muli %k, %n : index
      %bat = arith.addi %brow, %j : index
      %cat = arith.addi %row, %j : index
      %b = vector.load %B[%bat] : memref<SIZExf32>, vector<16xf32>
      %c = vector.load %C[%cat] : memref<SIZExf32>, vector<16xf32>
      %p = arith.mulf %splat, %b : vector<16xf32>
      %s = arith.addf %c, %p : vector<16xf32>
      vector.store %s, %C[%cat] : memref<SIZExf32>, vector<16xf32>
    }
  } }
  func.return
}
"""


def measure(title: str, text: str, instances: int, orders: Sequence[str] = ("forward",)) -> None:
    context = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, factory)
    module = parse_text(context, text, "benchmark")
    for order in orders:
        interpreter = Interpreter(module, order=order)
        (function,) = (op.sym_name.data for op in module.body.block.ops)  # pyright: ignore[reportAttributeAccessIssue]
        start = time.perf_counter()
        interpreter.compiled(function)
        compiled = time.perf_counter() - start
        times: list[float] = []
        for _ in range(CALLS):
            arguments = random_arguments(interpreter.find(function))
            start = time.perf_counter()
            interpreter.call(function, *arguments)
            times.append(time.perf_counter() - start)
        best = min(times)
        how = title if order == "forward" else f"{title}, {order}"
        each = best / instances * 1e9
        print(f"{how:42} {best:7.3f} s {each:6.0f} ns an instance, compiled in {compiled * 1e3:.1f} ms")


def main() -> None:
    n = 128
    for type_, kind in (("f32", ""), ("f64", ""), ("i64", ""), ("i32", "")):
        text = MATMUL.replace("TYPE", type_).replace("SUFFIX", type_[0]).replace("KIND", kind)
        text = text.replace("ZERO", "0.0" if type_[0] == "f" else "0")
        measure(f"matmul {n}, {type_}", sized(text, n), n**3)
    for type_ in ("f16", "bf16"):
        text = MATMUL.replace("TYPE", type_).replace("SUFFIX", "f").replace("KIND", "").replace("ZERO", "0.0")
        measure(f"matmul 64, {type_}", sized(text, 64), 64**3)
    text = MATMUL.replace("TYPE", "f32").replace("SUFFIX", "f").replace("KIND", "parallel").replace("ZERO", "0.0")
    measure(f"matmul {n}, f32, parallel rows", sized(text, n), n**3, ("forward", "reversed", "interleaved"))
    measure(f"matmul {n}, f32, low, vectors of 16", sized(VECTORS, n), n**3)


def sized(text: str, n: int) -> str:
    """Fill in the extents."""
    for old, new in (("SIZE", n * n), ("<NxN", f"<{n}x{n}"), ("<N>", f"<{n}>"), (" N ", f" {n} ")):
        text = text.replace(old, str(new))
    return text


if __name__ == "__main__":
    main()
