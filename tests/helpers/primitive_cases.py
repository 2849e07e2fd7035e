"""A step of each primitive on a small program, with places in it where an op may stand that does anything.

A place is a line `@@<place> <result> <operand>`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import weft
from weft import Schedule

CHAIN = """
func.func @f(%A: memref<8x6xf32>, %D: memref<8x6xf32>, %E: memref<8x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %T = memref.alloc() : memref<8x6xf32>
  tir.for %i in 8 { tir.for %j in 6 {
    tir.block "T" iters(%vi: spatial<8>, %vj: spatial<6>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : memref<8x6xf32>
      @@producer %t %a
      memref.store %t, %T[%vi, %vj] : memref<8x6xf32>
    } } }
  tir.for %i in 8 {
    @@loop %x %zero
    tir.for %j in 6 {
    tir.block "E" iters(%vi: spatial<8>, %vj: spatial<6>) = [%i, %j] {
      @@between %e %zero
      memref.store %e, %E[%vi, %vj] : memref<8x6xf32>
    } } }
  tir.for %i in 8 { tir.for %j in 6 {
    tir.block "C" iters(%vi: spatial<8>, %vj: spatial<6>) = [%i, %j] {
      %t = memref.load %T[%vi, %vj] : memref<8x6xf32>
      @@consumer %d %t
      memref.store %d, %D[%vi, %vj] : memref<8x6xf32>
    } } }
  func.return
}"""
UPDATE = CHAIN.replace('"C"', '"U"').replace(
    "%T[%vi, %vj] : memref<8x6xf32>\n      @@consumer", "%D[%vi, %vj] : memref<8x6xf32>\n      @@consumer"
)
SUM = """
func.func @f(%A: memref<8x6xf32>, %R: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 8 { tir.for %k in 6 {
    tir.block "R" iters(%vi: spatial<8>, %vk: reduce<6>) = [%i, %k] {
      tir.init {
        @@init %n %zero
        memref.store %n, %R[%vi] : memref<8xf32>
      }
      %a = memref.load %A[%vi, %vk] : memref<8x6xf32>
      @@update %t %a
      %r = memref.load %R[%vi] : memref<8xf32>
      %s = arith.addf %r, %t : f32
      memref.store %s, %R[%vi] : memref<8xf32>
    } } }
  func.return
}"""
BIASED = (
    SUM.replace(", %R: memref<8xf32>)", ", %D: memref<8xf32>)")
    .replace(
        "  tir.for %i",
        """
  %R = memref.alloc() : memref<8xf32>
  tir.for %i""",
    )
    .replace(
        "  func.return",
        """
  @@between %x %zero
  tir.for %i in 8 { tir.block "D" iters(%v: spatial<8>) = [%i] {
    @@value %b %zero
    %r = memref.load %R[%v] : memref<8xf32>
    %d = arith.addf %r, %b : f32
    memref.store %d, %D[%v] : memref<8xf32>
  } }
  func.return""",
    )
)
PADDING = """
func.func @f(%X: memref<8xf32>, %P: memref<12xf32>) {
  %zero = arith.constant 0.0 : f32
  %c2 = arith.constant 2 : index
  %c10 = arith.constant 10 : index
  tir.for %i in 12 {
    tir.block "P" iters(%v: spatial<12>) = [%i] {
      %above = arith.cmpi sge, %v, %c2 : index
      %below = arith.cmpi slt, %v, %c10 : index
      %inside = arith.andi %above, %below : i1
      %p = scf.if %inside -> (f32) {
        %at = affine.apply affine_map<(d0) -> (d0 - 2)>(%v)
        %x = memref.load %X[%at] : memref<8xf32>
        @@inside %y %x
        scf.yield %y : f32
      } else {
        scf.yield %zero : f32
      }
      memref.store %p, %P[%v] : memref<12xf32>
    } }
  func.return
}"""
WINDOW = """
func.func @f(%A: memref<12xf32>, %C: memref<10xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %T = memref.alloc() : memref<12xf32>
  tir.for %i in 12 {
    tir.block "T" iters(%v: spatial<12>) = [%i] {
      %a = memref.load %A[%v] : memref<12xf32>
      @@producer %t %a
      memref.store %t, %T[%v] : memref<12xf32>
    } }
  tir.for %i in 10 {
    tir.block "C" iters(%v: spatial<10>) = [%i] {
      %w = affine.apply affine_map<(d0) -> (d0 + 1)>(%v)
      %x = memref.load %T[%v] : memref<12xf32>
      %y = memref.load %T[%w] : memref<12xf32>
      %s = arith.addf %x, %y : f32
      @@consumer %d %s
      memref.store %d, %C[%v] : memref<10xf32>
    } }
  func.return
}"""
PRODUCT = """
func.func @f(%A: memref<4x8xi8>, %B: memref<8x16xi8>, %N: memref<4xf32>, %C: memref<4x16xi32>) {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : i32
  tir.for %i in 4 { tir.for %j in 16 { tir.for %k in 8 {
    tir.block "C" iters(%vi: spatial<4>, %vj: spatial<16>, %vk: reduce<8>) = [%i, %j, %k] {
      tir.init { memref.store %none, %C[%vi, %vj] : memref<4x16xi32> }
      %n = memref.load %N[%vi] : memref<4xf32>
      @@factor %m %n
      %o = arith.fptosi %m : f32 to i8
      %x = memref.load %A[%vi, %vk] : memref<4x8xi8>
      %a = arith.addi %x, %o : i8
      %b = memref.load %B[%vk, %vj] : memref<8x16xi8>
      %aa = arith.extsi %a : i8 to i32
      %bb = arith.extsi %b : i8 to i32
      %p = arith.muli %aa, %bb : i32
      %c = memref.load %C[%vi, %vj] : memref<4x16xi32>
      %s = arith.addi %c, %p : i32
      memref.store %s, %C[%vi, %vj] : memref<4x16xi32>
    } } } }
  func.return
}"""
DESCRIPTION = """
func.func private @seen(f32) -> f32 attributes {low.pure}
func.func @d(%A: memref<6xf32>, %T: memref<6xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %j in 6 {
    tir.block "T" iters(%vj: spatial<6>) = [%j] {
      %a = memref.load %A[%vj] : memref<6xf32>
      %t = func.call @seen(%a) : (f32) -> f32
      memref.store %t, %T[%vj] : memref<6xf32>
    } }
  func.return
}"""

Steps = Callable[[Schedule], object]


@dataclass(frozen=True)
class Case:
    """A step on a program, and the places at which an opaque op must make it illegal, and at which it is not."""

    program: str
    step: Steps
    refused: tuple[str, ...] = ()
    legal: tuple[str, ...] = ()
    prepare: Steps = lambda sch: None


def loop(sch: Schedule, block: str, at: int = 0) -> object:
    return sch.get_loops(block)[at]


def tensorize(sch: Schedule) -> None:
    weft.register_tensor_intrinsic("rows of 6", weft.parse(DESCRIPTION), weft.parse(DESCRIPTION), override=True)
    sch.tensorize(loop(sch, "T", 1), "rows of 6")


CASES = {
    "split": Case(CHAIN, lambda s: s.split(loop(s, "E"), [3, 3]), ("loop",), ("producer", "between", "consumer")),
    "fuse": Case(CHAIN, lambda s: s.fuse(*s.get_loops("T")), (), ("producer", "between", "loop", "consumer")),
    "tile": Case(CHAIN, lambda s: s.tile(*s.get_loops("T"), factors=[4, 3]), ("producer",), ("between", "consumer")),
    "reorder": Case(CHAIN, lambda s: s.reorder(*s.get_loops("T")[::-1]), ("producer",), ("between", "consumer")),
    "parallel": Case(CHAIN, lambda s: s.parallel(loop(s, "E")), ("between", "loop"), ("producer", "consumer")),
    "vectorize": Case(CHAIN, lambda s: s.vectorize(loop(s, "E", 1)), ("between",), ("producer", "loop", "consumer")),
    "unroll": Case(CHAIN, lambda s: s.unroll(loop(s, "E")), (), ("producer", "between", "loop", "consumer")),
    "bind": Case(CHAIN, lambda s: s.bind(loop(s, "E"), "blockIdx.x"), ("between", "loop"), ("producer", "consumer")),
    "merge": Case(
        CHAIN, lambda s: s.merge(loop(s, "T"), loop(s, "E"), loop(s, "C")), ("producer", "between", "loop", "consumer")
    ),
    "loop_partition": Case(
        CHAIN, lambda s: s.loop_partition(loop(s, "E"), [2, 0]), (), ("producer", "between", "loop", "consumer")
    ),
    "add_unit_loop": Case(CHAIN, lambda s: s.add_unit_loop("E"), (), ("producer", "between", "loop", "consumer")),
    "reorder_block_iter_var": Case(
        CHAIN, lambda s: s.reorder_block_iter_var("T", [1, 0]), (), ("producer", "between", "loop", "consumer")
    ),
    "annotate": Case(CHAIN, lambda s: s.annotate("T", "note", 1), (), ("producer", "between", "consumer")),
    "unannotate": Case(
        CHAIN, lambda s: s.unannotate("T", "note"), (), ("producer", "between"), lambda s: s.annotate("T", "note", 1)
    ),
    "compute_at": Case(CHAIN, lambda s: s.compute_at("T", loop(s, "C")), ("producer", "consumer", "between", "loop")),
    "reverse_compute_at": Case(
        CHAIN, lambda s: s.reverse_compute_at("C", loop(s, "T")), ("producer", "between", "loop", "consumer")
    ),
    "compute_inline": Case(CHAIN, lambda s: s.compute_inline("T"), ("producer", "between", "loop", "consumer")),
    "reverse_compute_inline": Case(
        CHAIN, lambda s: s.reverse_compute_inline("C"), ("producer", "between", "loop", "consumer")
    ),
    "cache_read": Case(CHAIN, lambda s: s.cache_read("T", 0, "local"), ("producer",), ("between", "loop", "consumer")),
    "cache_write": Case(CHAIN, lambda s: s.cache_write("C", 0, "local"), ("consumer",), ("producer", "between")),
    "cache_inplace": Case(
        UPDATE, lambda s: s.cache_inplace("U", 0, "local"), ("consumer",), ("producer", "between", "loop")
    ),
    "cache_index": Case(
        CHAIN.replace(
            "%t = memref.load %T[%vi, %vj]",
            "%x = affine.apply affine_map<(d0) -> (7 - d0)>(%vi)\n%t = memref.load %T[%x, %vj]",
        ),
        lambda s: s.cache_index("C", "global"),
        (),
        ("producer", "between", "loop", "consumer"),
    ),
    "annotate_buffer_access": Case(
        CHAIN,
        lambda s: s.annotate_buffer_access("C", 0, "write", lambda i, j: (i, j)),
        ("consumer",),
        ("producer", "between", "loop"),
    ),
    "read_at": Case(
        CHAIN, lambda s: s.read_at(loop(s, "C"), "C", 0, "local"), (), ("producer", "between", "loop", "consumer")
    ),
    "write_at": Case(
        CHAIN, lambda s: s.write_at(loop(s, "C"), "C", 0, "local"), ("consumer",), ("producer", "between", "loop")
    ),
    "set_scope": Case(CHAIN, lambda s: s.set_scope("T", 0, "local"), (), ("producer", "between", "loop", "consumer")),
    "storage_align": Case(CHAIN, lambda s: s.storage_align("T", 0, 0, 4, 1), (), ("producer", "between", "consumer")),
    "decompose_reduction": Case(SUM, lambda s: s.decompose_reduction("R", loop(s, "R", 1)), ("init", "update")),
    "rfactor": Case(SUM, lambda s: s.rfactor(loop(s, "R", 1), 0), ("init", "update")),
    "fuse_reduction_epilogue": Case(
        BIASED, lambda s: s.fuse_reduction_epilogue("R", "D"), ("init", "update", "value", "between")
    ),
    "pad_einsum": Case(SUM, lambda s: s.pad_einsum("R", [3, 1]), ("init", "update")),
    "blockize": Case(SUM, lambda s: s.blockize(loop(s, "R", 1)), ("init", "update")),
    "tensorize": Case(CHAIN, tensorize, ("producer",)),
    "reindex": Case(CHAIN, lambda s: s.reindex("C", ("write", 0)), ("consumer",), ("producer", "between", "loop")),
    "reindex_cache_read": Case(
        CHAIN,
        lambda s: s.reindex_cache_read("C", 0, "local", lambda i, j: (j, i)),
        (),
        ("producer", "between", "consumer"),
    ),
    "reindex_cache_write": Case(
        CHAIN,
        lambda s: s.reindex_cache_write("C", 0, "local", lambda i, j: (j, i)),
        ("consumer",),
        ("producer", "between", "loop"),
    ),
    "transform_layout": Case(
        CHAIN,
        lambda s: s.transform_layout("T", ("write", 0), lambda i, j: (j, i)),
        (),
        ("producer", "between", "loop", "consumer"),
    ),
    "transform_block_layout": Case(
        CHAIN, lambda s: s.transform_block_layout("T", lambda i, j: (j, i)), ("producer",), ("between", "consumer")
    ),
    "recode": Case(PRODUCT, lambda s: s.recode("C", 2, "unsigned"), ("factor",)),
    "decompose_padding": Case(PADDING, lambda s: s.decompose_padding("P", loop(s, "P")), ("inside",)),
    "rolling_buffer": Case(
        WINDOW,
        lambda s: s.rolling_buffer("T", 0),
        ("producer", "consumer"),
        (),
        lambda s: s.compute_at("T", loop(s, "C")),
    ),
}
