"""Refusals of the primitives on loops: split, fuse, tile, reorder, parallel, vectorize, unroll."""

from __future__ import annotations

from refusal import PRODUCER_CONSUMER, SHIFTED, Refusal, block, copy, function, loop
from schedule_programs import PROGRAMS

SCAN = """
func.func @f(%X: memref<8x9xf32>) {
  tir.for %i in 8 { tir.for %j in 8 {
    tir.block "X" iters(%vi: spatial<8>, %vj: spatial<8>) = [%i, %j] {
      %x = memref.load %X[%vi, %vj] : memref<8x9xf32>
      %n = affine.apply affine_map<(d0) -> (d0 + 1)>(%vj)
      memref.store %x, %X[%vi, %n] : memref<8x9xf32>
    } } }
  func.return
}"""
# X[i, j] = X[i - 1, j + 1] (wavefront) or X[i - 1, j - 1] (diagonal), for i and j from 0 to 7.
WAVEFRONT = """
func.func @f(%X: memref<9x9xf32>) {
  tir.for %i in 8 { tir.for %j in 8 {
    tir.block "X" iters(%vi: spatial<8>, %vj: spatial<8>) = [%i, %j] {
      %m = affine.apply affine_map<(d0) -> (d0 + 1)>(%vi)
      %n = affine.apply affine_map<(d0) -> (d0 + 1)>(%vj)
      %x = memref.load %X[%vi, %n] : memref<9x9xf32>
      memref.store %x, %X[%m, %vj] : memref<9x9xf32>
    } } }
  func.return
}"""
DIAGONAL = WAVEFRONT.replace("%X[%vi, %n]", "%X[%vi, %vj]").replace("%X[%m, %vj]", "%X[%m, %n]")
TRIANGLE = """
func.func @f(%X: memref<8x8xf32>, %Y: memref<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 8 {
    tir.for %j in 8 {
      tir.block "X" iters(%vi: spatial<8>, %vj: spatial<8>) = [%i, %j] {
        memref.store %zero, %X[%vi, %vj] : memref<8x8xf32>
      } }
    tir.for %k in 8 {
      tir.block "Y" iters(%vi: spatial<8>, %vj: spatial<8>) = [%i, %k] {
        memref.store %zero, %Y[%vi, %vj] : memref<8x8xf32>
      } } }
  func.return
}"""
PLAIN = """
func.func @f(%X: memref<8x8xf32>, %n: index) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 8 { tir.for %j in 8 {
    tir.block "X" iters(%vi: spatial<8>, %vj: spatial<8>) = [%i, %j] {
      memref.store %zero, %X[%vi, %vj] : memref<8x8xf32>
    } } }
  func.return
}"""
# The extent of %j depends on %i: only a temporary may be written in part.
DEPENDENT = """
func.func @f(%Z: memref<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %X = memref.alloc() : memref<8x8xf32>
  tir.for %i in 8 {
    tir.for %j in %i {
      tir.block "X" iters(%vi: spatial<8>, %vj: spatial<8>) = [%i, %j] {
        memref.store %zero, %X[%vi, %vj] : memref<8x8xf32>
      } } }
  func.return
}"""
BARE = """
func.func @f(%A: memref<10xf32>, %B: memref<10xf32>, %C: memref<10x10xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 10 {
    tir.block "B" iters(%v: spatial<10>) = [%i] {
      memref.store %zero, %B[%v] : memref<10xf32>
    }
    memref.store %zero, %A[%i] : memref<10xf32>
  }
  tir.for %i in 10 { tir.for %j in 10 {
    tir.block "C" iters(%v: spatial<10>, %w: spatial<10>) = [%i, %j] {
      memref.store %zero, %C[%v, %w] : memref<10x10xf32>
    }
    memref.store %zero, %A[%i] : memref<10xf32>
  } }
  func.return
}"""
DYNAMIC_LOOP = """
func.func @f(%A: memref<?xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.for %i in %n {
    tir.block "A" iters(%v: spatial<%n>) = [%i] {
      memref.store %zero, %A[%v] : memref<?xf32>
    } }
  func.return
}"""
BOUNDED_LOOP = DYNAMIC_LOOP.replace("  tir.for", "  tir.assume [%n] <= [9]\n  tir.for", 1)
# LEGALITY: sibling blocks below one loop.
SIBLINGS = {
    "RAW": function(
        f"""tir.for %i in 11 {{
  tir.block "B" iters(%v: spatial<11>) = [%i] {{ {copy("A", "B")} }}
  tir.block "C" iters(%v: spatial<11>) = [%i] {{
    %c10 = arith.constant 10 : index
    %x = affine.apply affine_map<(d0) -> (d0 + 1)>(%v)
    %y = arith.minsi %x, %c10 : index
    {copy("B", "C", at="%y")}
  }} }}""",
        parameters="%A: memref<12xf32>, %B: memref<12xf32>, %C: memref<12xf32>",
    ),
    "WAR": function(
        f"""tir.for %i in 11 {{
  tir.block "C" iters(%v: spatial<11>) = [%i] {{ {SHIFTED}{copy("B", "C", at="%x")} }}
  tir.block "B" iters(%v: spatial<11>) = [%i] {{ {copy("A", "B")} }} }}""",
        parameters="%A: memref<12xf32>, %B: memref<12xf32>, %C: memref<12xf32>",
    ),
    "WAW": function(
        f"""tir.for %i in 11 {{
  tir.block "B" iters(%v: spatial<11>) = [%i] {{ {copy("A", "B")} }}
  tir.block "C" iters(%v: spatial<11>) = [%i] {{ {SHIFTED}{copy("A", "B", to="%x")} }} }}""",
        parameters="%A: memref<12xf32>, %B: memref<12xf32>",
    ),
}
MANY_TO_ONE = function(
    block("C", copy("A", "C"), "%i in 24", "%v: spatial<12>", "%i floordiv 2"),
)
RUNNING_SUM = """
func.func @f(%A: memref<8xf32>, %C: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %S = memref.alloc() : memref<1xf32>
  tir.for %k in 8 {
    tir.block "S" iters(%vk: reduce<8>) = [%k] {
      tir.init { memref.store %zero, %S[%c0] : memref<1xf32> }
      %a = memref.load %A[%vk] : memref<8xf32>
      %s = memref.load %S[%c0] : memref<1xf32>
      %t = arith.addf %s, %a : f32
      memref.store %t, %S[%c0] : memref<1xf32>
    }
    tir.block "C" iters(%v: spatial<8>) = [%k] {
      %s = memref.load %S[%c0] : memref<1xf32>
      memref.store %s, %C[%v] : memref<8xf32>
    } }
  func.return
}"""

# The other block reads the sum before it starts again.
_AFTER = RUNNING_SUM[RUNNING_SUM.index('    tir.block "C"') : RUNNING_SUM.index("    } }")] + "    }\n"
SUM_READ_BEFORE = (
    RUNNING_SUM.replace(_AFTER[:-6], "")
    .replace("    }\n    } }", "    } }")
    .replace('    tir.block "S"', f'{_AFTER}    tir.block "S"')
)

# Three times a sum, each time from its start.
REPEATED = """
func.func @f(%A: memref<4x6xf32>, %S: memref<4xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 4 { tir.for %r in 3 { tir.for %k in 6 {
    tir.block "S" iters(%v: spatial<4>, %vk: reduce<6>) = [%i, %k] {
      tir.init { memref.store %zero, %S[%v] : memref<4xf32> }
      %a = memref.load %A[%v, %vk] : memref<4x6xf32>
      %s = memref.load %S[%v] : memref<4xf32>
      %t = arith.addf %s, %a : f32
      memref.store %t, %S[%v] : memref<4xf32>
    } } } }
  func.return
}"""
FILLED_TOGETHER = """
func.func @f(%A: memref<8xf32>, %C: memref<8x8xf32>) {
  %S = memref.alloc() : memref<8xf32, "shared">
  tir.for %i in 8 thread_binding<"threadIdx.x"> {
    tir.for %tx in 8 thread_binding<"threadIdx.x"> {
      tir.block "S" iters(%v: spatial<8>) = [%tx] {
        %a = memref.load %A[%v] : memref<8xf32>
        memref.store %a, %S[%v] : memref<8xf32, "shared">
      }
    }
    tir.for %j in 8 {
      tir.block "C" iters(%v: spatial<8>, %w: spatial<8>) = [%i, %j] {
        %s = memref.load %S[%w] : memref<8xf32, "shared">
        memref.store %s, %C[%v, %w] : memref<8x8xf32>
      }
    }
  }
  func.return
}"""
# fmt: off
LOOPS = [
    Refusal("split", 1, PLAIN, lambda s: s.split(loop(s, "X"), [None, 4]),
            r"loop %i is parallel(.|\n)*legal: this step first, then loops of its result parallel",
            prepare=lambda s: s.parallel(loop(s, "X"))),
    Refusal("split", 2, PLAIN, lambda s: s.split(loop(s, "X"), [None, None]),
            r"factors \[0, 0\]: 2 are inferred \(None; 0 in IR\)"),
    Refusal("split", 2, PLAIN, lambda s: s.split(loop(s, "X"), [None, -4]),
            r"legal: at most one factor is inferred, every"),
    Refusal("split", 2, PLAIN, lambda s: s.split(loop(s, "X"), []), r"factors \[\]"),
    Refusal("split", 3, PLAIN, lambda s: s.split(loop(s, "X"), [2, 3]),
            r"have product 6, but the loop runs 8 times: iteration 6 would be lost(.|\n)*legal: factors whose product "
            r"is at least 8", {"lost iteration": {"i": 6}}),
    Refusal("split", 3, DYNAMIC_LOOP, lambda s: s.split(loop(s, "A"), [8, 4]),
            r"not proved: factors .* have product 32, but the extent is only known at run time(.|\n)*infer one factor",
            proved=False),
    Refusal("split", 3, BOUNDED_LOOP, lambda s: s.split(loop(s, "A"), [2, 4]),
            r"not proved: factors .* have product 8, but the extent is known to be at most 9(.|\n)*infer one factor",
            proved=False),
    Refusal("split", 4, PLAIN, lambda s: s.split(loop(s, "X"), [None, 3], disable_predication=True),
            r"not proved: factors \[0, 3\] may not divide the extent, and a guard is ruled out", proved=False),
    Refusal("split", 4, BARE, lambda s: s.split(loop(s, "B"), [None, 4]),
            "memref.store is in no block inside the loop"),
    Refusal("fuse", 1, TRIANGLE, lambda s: s.fuse(*s.get_loops("X")), "the body of loop %i holds more than loop %j"),
    Refusal("fuse", 1, PLAIN, lambda s: s.fuse(*reversed(s.get_loops("X"))), "loop %i is not directly inside loop %j"),
    Refusal("fuse", 2, PLAIN, lambda s: s.fuse(*s.get_loops("X")), "loop %j is vectorized",
            prepare=lambda s: s.vectorize(loop(s, "X", 1))),
    Refusal("fuse", 3, DEPENDENT, lambda s: s.fuse(*s.get_loops("X")), "the extent of %j depends on an outer loop"),
    Refusal("fuse", 4, REPEATED, lambda s: s.fuse(*s.get_loops("S")[1:]),
            r'iterations \(i=0, r=0, k=0\) and \(i=0, r=1, k=0\) run the same instance of the reduction "S"',
            {"first iteration": {"i": 0, "r": 0, "k": 0}, "second iteration": {"i": 0, "r": 1, "k": 0}}),
    Refusal("tile", 1, TRIANGLE, lambda s: s.tile(*s.get_loops("X"), factors=[2, 2]), "holds more than loop %j"),
    Refusal("tile", 2, PLAIN, lambda s: s.tile(*s.get_loops("X"), factors=[2, 2]), "loop %i is unrolled",
            prepare=lambda s: s.unroll(loop(s, "X"))),
    Refusal("tile", 3, PLAIN, lambda s: s.tile(*s.get_loops("X"), factors=[2]), r"factors \[2\] for 2 loops"),
    Refusal("tile", 3, PLAIN, lambda s: s.tile(*s.get_loops("X"), factors=[2, 0]), r"factors \[2, 0\] for 2 loops"),
    Refusal("tile", 4, WAVEFRONT, lambda s: s.tile(*s.get_loops("X"), factors=[2, 2]),
            r"iteration \(i=0, j=1\) of block \"X\" writes X\[1, 1\]; iteration \(i=1, j=0\) of block \"X\" reads "
            r"X\[1, 1\] and could now run first",
            {"first iteration": {"i": 0, "j": 1}, "second iteration": {"i": 1, "j": 0}}),
    Refusal("tile", 5, BARE, lambda s: s.tile(*s.get_loops("C"), factors=[5, 3]), "is in no block inside %j"),
    Refusal("reorder", 1, PLAIN, lambda s: s.reorder(loop(s, "X"), loop(s, "X")), "a loop is named twice"),
    Refusal("reorder", 1, TRIANGLE, lambda s: s.reorder(*reversed(s.get_loops("X"))), "holds more than loop %j"),
    Refusal("reorder", 1, PRODUCER_CONSUMER, lambda s: s.reorder(loop(s, "B"), loop(s, "C")),
            "loop %i is not around loop %i in the same scope"),
    Refusal("reorder", 2, DEPENDENT, lambda s: s.reorder(*reversed(s.get_loops("X"))),
            "the extent of %j depends on a loop inside"),
    Refusal("reorder", 3, WAVEFRONT, lambda s: s.reorder(*reversed(s.get_loops("X"))),
            r"writes X\[1, 1\]; iteration \(i=1, j=0\) of block \"X\" reads X\[1, 1\] and would now run first",
            {"first iteration": {"i": 0, "j": 1}, "second iteration": {"i": 1, "j": 0}}),
    Refusal("reorder", 4, DIAGONAL, lambda s: s.reorder(*reversed(s.get_loops("X"))),
            r"iteration \(j=0, i=0\) of block \"X\" writes X\[1, 1\]; iteration \(j=1, i=1\) of block \"X\" reads",
            {"first iteration": {"i": 0, "j": 0}, "second iteration": {"i": 1, "j": 1}},
            prepare=lambda s: s.parallel(loop(s, "X", 1))),
    Refusal("parallel", 1, FILLED_TOGETHER, lambda s: s.parallel(loop(s, "C")),
            r"loop %tx inside is bound to threadIdx.x too(.|\n)*legal: change loop %tx first"),
    Refusal("parallel", 2, SCAN, lambda s: s.parallel(loop(s, "X", 1)),
            r"iteration \(i=0, j=0\) of block \"X\" writes X\[0, 1\]; iteration \(i=0, j=1\) of block \"X\" reads "
            r"X\[0, 1\] at the same time",
            {"first iteration": {"i": 0, "j": 0}, "second iteration": {"i": 0, "j": 1}}),
    Refusal("parallel", 2, SIBLINGS["RAW"], lambda s: s.parallel(loop(s, "C")), "may touch the same element",
            proved=False),
    Refusal("parallel", 2, SIBLINGS["WAR"], lambda s: s.parallel(loop(s, "C")),
            r'block "C" reads B\[1\]; iteration \(i=1\) of block "B" writes B\[1\] at the same time',
            {"first iteration": {"i": 0}, "second iteration": {"i": 1}}),
    Refusal("parallel", 2, SIBLINGS["WAW"], lambda s: s.parallel(loop(s, "C")),
            r'block "C" writes B\[1\]; iteration \(i=1\) of block "B" writes B\[1\] at the same time',
            {"first iteration": {"i": 0}, "second iteration": {"i": 1}}),
    Refusal("parallel", 2, MANY_TO_ONE, lambda s: s.parallel(loop(s, "C")),
            r"iteration \(i=0\) of block \"C\" writes C\[0\]; iteration \(i=1\) of block \"C\" writes C\[0\]",
            {"first iteration": {"i": 0}, "second iteration": {"i": 1}}),
    Refusal("parallel", 2, RUNNING_SUM, lambda s: s.parallel(loop(s, "C")),
            r"iteration \(k=0\) of block \"S\" writes S\[0\]; iteration \(k=1\)",
            {"first iteration": {"k": 0}, "second iteration": {"k": 1}}),
    Refusal("parallel", 2, PROGRAMS["matmul_relu"].text, lambda s: s.parallel(loop(s, "Y", 2)),
            "legal: only loops that no reduce iterator is bound to; the reduction itself stays serial",
            {"first iteration": {"i": 0, "j": 0, "k": 0}, "second iteration": {"i": 0, "j": 0, "k": 1}}),
    Refusal("parallel", 3, PLAIN, lambda s: s.parallel(loop(s, "X", 1)), "loop %i around it is vectorized",
            prepare=lambda s: s.vectorize(loop(s, "X"))),
    Refusal("vectorize", 1, FILLED_TOGETHER, lambda s: s.vectorize(loop(s, "C")),
            r"loop %tx inside is bound to threadIdx.x too(.|\n)*legal: change loop %tx first"),
    Refusal("vectorize", 2, SIBLINGS["WAR"], lambda s: s.vectorize(loop(s, "C")), "in the same vector operation",
            {"first iteration": {"i": 0}, "second iteration": {"i": 1}}),
    Refusal("vectorize", 2, SIBLINGS["WAW"], lambda s: s.vectorize(loop(s, "C")), "in the same vector operation",
            {"first iteration": {"i": 0}, "second iteration": {"i": 1}}),
    Refusal("vectorize", 2, SIBLINGS["RAW"], lambda s: s.vectorize(loop(s, "C")), "may touch the same element",
            proved=False),
    Refusal("vectorize", 3, DYNAMIC_LOOP, lambda s: s.vectorize(loop(s, "A")),
            "the extent is only known at run time: split the loop by a constant first"),
    Refusal("vectorize", 4, PLAIN, lambda s: s.vectorize(loop(s, "X")), "loop %j inside is parallel",
            prepare=lambda s: s.parallel(loop(s, "X", 1))),
    Refusal("unroll", 1, FILLED_TOGETHER, lambda s: s.unroll(loop(s, "C")),
            r"loop %tx inside is bound to threadIdx.x too(.|\n)*legal: change loop %tx first"),
    Refusal("unroll", 2, DYNAMIC_LOOP, lambda s: s.unroll(loop(s, "A")), "the extent is only known at run time"),
]
# fmt: on
