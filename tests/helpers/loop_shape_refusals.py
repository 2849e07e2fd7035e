"""Refusals of bind, merge, loop_partition, reorder_block_iter_var, annotate and unannotate."""

from __future__ import annotations

from loop_refusals import FILLED_TOGETHER, PLAIN
from refusal import PRODUCER_CONSUMER, SHIFTED, TEMPORARY, TURNED, Refusal, block, copy, function, loop
from schedule_programs import PROGRAMS

from weft import Schedule

REVERSED = function(block("B", copy("A", "B")), block("C", TURNED + copy("B", "C", at="%x")), temporaries=TEMPORARY)
"""The second loop reads what the first writes, in reverse order."""
OVERWRITES = function(
    block("B", copy("A", "C"), "%i in 11"),
    block("W", SHIFTED + copy("C", "A", to="%x"), "%j in 11", at="%j"),
).replace("spatial<12>", "spatial<11>")
BETWEEN = function(
    block("B", copy("A", "B")),
    "%s = memref.load %A[%c0] : memref<12xf32>\nmemref.store %s, %D[%c0] : memref<12xf32>",
    block("C", copy("B", "C"), over="%j in 12", at="%j"),
    temporaries=TEMPORARY + "\n  %D = memref.alloc() : memref<12xf32>",
)
GATHER = function(
    block("B", copy("A", "B")),
    block(
        "C",
        "%f = memref.load %A[%v] : memref<12xf32>\n%g = arith.fptosi %f : f32 to i64\n"
        "%h = arith.index_cast %g : i64 to index\n%e = arith.remui %h, %c8 : index\n" + copy("B", "C", at="%e"),
        over="%j in 12",
        at="%j",
    ),
    temporaries=TEMPORARY,
)


def merge(s: Schedule) -> None:
    s.merge(loop(s, "B"), loop(s, "C"))


def own_sums(s: Schedule) -> None:
    """Each iteration of a parallel loop computes the sum that it reads, in a buffer of its own."""
    j = loop(s, "C", 1)
    s.compute_at("S", j)
    s.parallel(j)


TWO_LENGTHS = """
func.func @f(%A: memref<4x?xf32>, %E: memref<4x3xf32>, %F: memref<4x5xf32>) {
  %one = arith.constant 1 : index
  %x = arith.constant 1.0 : f32
  %n = memref.dim %A, %one : memref<4x?xf32>
  tir.for %i in 4 {
    tir.for %j in 3 {
      tir.block "X" iters(%v: spatial<4>, %w: spatial<3>) = [%i, %j] {
        memref.store %x, %E[%v, %w] : memref<4x3xf32>
      }
      memref.store %x, %E[%i, %j] : memref<4x3xf32>
    }
    tir.for %k in %n {
      tir.block "Y" iters(%v: spatial<4>, %w: spatial<%n>) = [%i, %k] {
        memref.store %x, %A[%v, %w] : memref<4x?xf32>
      } }
    tir.for %l in 5 {
      tir.block "Z" iters(%v: spatial<4>, %w: spatial<5>) = [%i, %l] {
        memref.store %x, %F[%v, %w] : memref<4x5xf32>
      } }
  }
  func.return
}"""
PASSED_ON = """
func.func @f(%A: memref<2x4xf32>, %C: memref<2x4xf32>) {
  %T = memref.alloc() : memref<2x4xf32>
  %last = arith.constant 3 : index
  tir.for %z in 2 {
    tir.for %j in 4 {
      tir.block "T" iters(%v: spatial<2>, %w: spatial<4>) = [%z, %j] {
        %a = memref.load %A[%v, %w] : memref<2x4xf32>
        memref.store %a, %T[%v, %w] : memref<2x4xf32>
      } }
    tir.for %p in 4 {
      tir.block "C" iters(%v: spatial<2>, %w: spatial<4>) = [%z, %p] {
        %x = arith.subi %last, %w : index
        %a = memref.load %T[%v, %x] : memref<2x4xf32>
        memref.store %a, %C[%v, %w] : memref<2x4xf32>
      } }
  }
  func.return
}"""
"""The second loop reads what other iterations of the first write."""
LOOP_SHAPES = [
    Refusal(
        "bind", 1, PLAIN, lambda s: s.bind(loop(s, "X"), "threadIdx.w"), r"'threadIdx.w' is not one\n(.*\n)+.*vthread"
    ),
    Refusal(
        "bind",
        2,
        FILLED_TOGETHER,
        lambda s: s.bind(loop(s, "C"), "threadIdx.y"),
        r"loop %tx inside is bound to threadIdx.x too(.|\n)*legal: change loop %tx first",
    ),
    Refusal(
        "bind",
        3,
        PROGRAMS["matmul_relu"].text,
        lambda s: s.bind(loop(s, "Y", 2), "vthread.x"),
        r"\(i=0, j=0, k=0\) of block \"Y\" writes Y\[0, 0\]; .* at the same time",
        ...,
    ),
    Refusal(
        "bind",
        4,
        PLAIN,
        lambda s: s.bind(loop(s, "X", 1), "threadIdx.x"),
        "loop %i around it is bound to threadIdx.x: only the iterations in which both",
        prepare=lambda s: s.bind(loop(s, "X"), "threadIdx.x"),
    ),
    Refusal(
        "bind",
        4,
        PLAIN,
        lambda s: s.bind(loop(s, "X"), "threadIdx.x"),
        "loop %j inside is bound to threadIdx.x",
        prepare=lambda s: s.bind(loop(s, "X", 1), "threadIdx.x"),
    ),
    Refusal(
        "bind",
        5,
        TWO_LENGTHS,
        lambda s: s.bind(loop(s, "Y", 1), "threadIdx.x"),
        "loop %j runs 3 times, this one %n times",
        prepare=lambda s: s.bind(loop(s, "X", 1), "threadIdx.x"),
    ),
    Refusal(
        "bind",
        5,
        TWO_LENGTHS,
        lambda s: s.bind(loop(s, "Z", 1), "threadIdx.x"),
        "loop %j runs 3 times, others 5 times, and memref.store is in no block inside it",
        prepare=lambda s: s.bind(loop(s, "X", 1), "threadIdx.x"),
    ),
    Refusal(
        "bind",
        6,
        PLAIN,
        lambda s: s.bind(loop(s, "X", 1), "threadIdx.x"),
        "loop %i around it is vectorized",
        prepare=lambda s: s.vectorize(loop(s, "X")),
    ),
    Refusal(
        "bind",
        10,
        PASSED_ON,
        lambda s: s.bind(loop(s, "C", 1), "blockIdx.y"),
        r"\(z=0, j=0\) of block \"T\" writes T\[0, 0\]; iteration \(z=0, p=3\) of block \"C\" reads T\[0, 0\] "
        "in another thread block: these do not wait for each other",
        ...,
        prepare=lambda s: (s.bind(loop(s, "T"), "blockIdx.x"), s.bind(loop(s, "T", 1), "blockIdx.y")),
    ),
    Refusal(
        "bind",
        10,
        PASSED_ON,
        lambda s: s.bind(loop(s, "T"), "blockIdx.x"),
        r"block \"C\" reads T\[0, 0\] in another thread block",
        ...,
        prepare=lambda s: [s.bind(loop(s, name, 1), "blockIdx.y") for name in ("T", "C")],
    ),
    Refusal("merge", 1, PRODUCER_CONSUMER, lambda s: s.merge(loop(s, "C"), loop(s, "B")), "does not follow loop"),
    Refusal("merge", 1, PRODUCER_CONSUMER, lambda s: s.merge(loop(s, "C"), loop(s, "C")), "a loop is named twice"),
    Refusal("merge", 1, BETWEEN, merge, "memref.load is between loops %i and %j"),
    Refusal(
        "merge",
        1,
        PROGRAMS["chain"].text,
        lambda s: s.merge(loop(s, "B", 0), loop(s, "C", 1)),
        "loops %i and %j are not at one depth of nests that follow each other",
    ),
    Refusal(
        "merge",
        1,
        PROGRAMS["chain"].text,
        lambda s: s.merge(s.get_loops("B_j1")[1], loop(s, "C", 1)),
        "the body of loop %i holds more than loop %j1",
        prepare=lambda s: s.loop_partition(loop(s, "B", 1), [5, None]),
    ),
    Refusal("merge", 2, PRODUCER_CONSUMER, merge, "loop %i is parallel", prepare=lambda s: s.parallel(loop(s, "B"))),
    Refusal(
        "merge",
        3,
        PROGRAMS["two_consumers"].text,
        lambda s: s.merge(loop(s, "C"), loop(s, "D")),
        "loop %i runs 20 times and loop %i runs 18 times",
    ),
    Refusal(
        "merge",
        4,
        REVERSED,
        merge,
        r'of block "B" writes B\[(\d+)\]; iteration \(i=\d+\) of block "C" reads B\[\1\] and would now run first',
        ...,
    ),
    Refusal(
        "merge",
        4,
        OVERWRITES,
        lambda s: s.merge(loop(s, "B"), loop(s, "W")),
        r'of block "B" reads A\[(\d+)\]; iteration \(j=\d+\) of block "W" writes A\[\1\] and would now run first',
        ...,
    ),
    Refusal("merge", 4, GATHER, merge, "may touch the same element", proved=False),
    Refusal(
        "loop_partition",
        1,
        PLAIN,
        lambda s: s.loop_partition(loop(s, "X"), [3, None]),
        "loop %i is unrolled",
        prepare=lambda s: s.unroll(loop(s, "X")),
    ),
    Refusal("loop_partition", 2, PLAIN, lambda s: s.loop_partition(loop(s, "X"), [None, None]), "2 are inferred"),
    Refusal("loop_partition", 2, PLAIN, lambda s: s.loop_partition(loop(s, "X"), [-1, 9]), r"factors \[-1, 9\]"),
    Refusal("loop_partition", 2, PLAIN, lambda s: s.loop_partition(loop(s, "X"), []), r"factors \[\]"),
    Refusal(
        "loop_partition",
        3,
        PLAIN,
        lambda s: s.loop_partition(loop(s, "X"), [5, 4]),
        r"factors \[5, 4\] add up to 9, the loop runs 8 times(.|\n)*no more than 8",
    ),
    Refusal(
        "loop_partition", 3, PLAIN, lambda s: s.loop_partition(loop(s, "X"), [8, None]), "add up to 8, the loop runs 8"
    ),
    Refusal(
        "loop_partition",
        3,
        PROGRAMS["dynamic"].text,
        lambda s: s.loop_partition(loop(s, "C"), [3, None]),
        "the extent is only known at run time",
    ),
    Refusal(
        "loop_partition",
        4,
        PROGRAMS["row_sum"].text,
        lambda s: s.loop_partition(loop(s, "C"), [2, None]),
        r"and %j is parallel",
        ...,
        prepare=own_sums,
    ),
    Refusal(
        "reorder_block_iter_var",
        1,
        PLAIN,
        lambda s: s.reorder_block_iter_var("X", [0, 0]),
        r"\[0, 0\] for 2 iterators(.*\n)+.*legal: each of 0, 1 once",
    ),
    Refusal("annotate", 1, PLAIN, lambda s: s.annotate("X", "", 1), "the key is empty"),
    Refusal(
        "annotate",
        1,
        PLAIN,
        lambda s: s.annotate("X", "tir.commutative", True),
        "'tir.commutative' has a prefix that is reserved",
    ),
    Refusal(
        "unannotate",
        1,
        PLAIN,
        lambda s: s.unannotate("X", "tir.part_of"),
        "'tir.part_of' has a prefix that is reserved",
    ),
    Refusal("unannotate", 2, PLAIN, lambda s: s.unannotate("X", "note"), "there is no 'note': it has no annotations"),
    Refusal(
        "unannotate",
        2,
        PLAIN,
        lambda s: s.unannotate(loop(s, "X"), "nope"),
        "there is no 'nope', did you mean 'note'",
        prepare=lambda s: s.annotate(loop(s, "X"), "note", 1),
    ),
]
