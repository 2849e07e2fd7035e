"""Each requirement of blockize, broken."""

from __future__ import annotations

from schedule_checks import refused

import weft

ROWS = """
func.func @f(%A: memref<8x12xf32>, %C: memref<8xf32>, %D: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %T = memref.alloc() : memref<8xf32>
  tir.for %i in 8 { tir.for %k in 12 {
    tir.block "C" iters(%vi: spatial<8>, %vk: reduce<12>) = [%i, %k] {
      tir.init { memref.store %zero, %C[%vi] : memref<8xf32> }
      %a = memref.load %A[%vi, %vk] : memref<8x12xf32>
      %c = memref.load %C[%vi] : memref<8xf32>
      %s = arith.addf %c, %a : f32
      memref.store %s, %C[%vi] : memref<8xf32>
    } } }
  func.return
}"""


def schedule(old: str = "", new: str = "") -> weft.Schedule:
    assert old in ROWS
    return weft.Schedule(weft.parse(ROWS.replace(old, new), "f.mlir"))


def test_1_one_whole_block() -> None:
    sch = schedule()
    i, k = sch.get_loops("C")
    sch.decompose_reduction("C", k)
    refused(lambda: sch.blockize(i), 1, 'the body of loop %i holds block "C_init", tir.for')
    sch = weft.Schedule(
        weft.parse(
            """
            func.func @f(%A: memref<8xf32>) {
              %zero = arith.constant 0.0 : f32
              tir.for %i in 8 { memref.store %zero, %A[%i] : memref<8xf32> }
              tir.for %i in 8 { tir.block "B" iters(%v: spatial<8>) = [%i] {
                memref.store %zero, %A[%v] : memref<8xf32>
              } }
              func.return
            }"""
        )
    )
    (i,) = sch.get_loops("B")
    first = sch.get(i).prev_op
    sch._replay.handles[i.value] = first  # the loop has no block to be found by
    refused(lambda: sch.blockize(i), 1, "it holds memref.store, not a block")


def test_2_extents() -> None:
    sch = weft.Schedule(
        weft.parse(
            """
            func.func @f() {
              %zero = arith.constant 0.0 : f32
              %A = memref.alloc() : memref<8x8xf32>
              tir.for %i in 8 { tir.for %j in %i {
                tir.block "B" iters(%vi: spatial<8>, %vj: spatial<8>) = [%i, %j] {
                  memref.store %zero, %A[%vi, %vj] : memref<8x8xf32>
                } } }
              func.return
            }""",
            "f.mlir",
        )
    )
    refused(lambda: sch.blockize(sch.get_loops("B")[1]), 2, "the extent of %j does")


def test_3_iterators_fall_apart() -> None:
    sch = schedule()
    fused = sch.fuse(*sch.get_loops("C"))
    _, inner = sch.split(fused, [None, 5])
    refused(lambda: sch.blockize(inner), 3, "iterator %vi is bound to", "are not terms of their own")
    text = ROWS.replace("%i in 8 {", "%p in 4 { tir.for %q in 2 {").replace("= [%i, %k]", "= [%p + %q * 4, %k]")
    sch = weft.Schedule(weft.parse(text.replace("} } }\n  func", "} } } }\n  func"), "f.mlir"))
    refused(lambda: sch.blockize(sch.get_loops("C")[1]), 3, "has holes", kind="not proved")
    text = ROWS.replace("%i in 8 {", "%p in 4 { tir.for %q in 5 {").replace("= [%i, %k]", "= [%p * 2 + %q, %k]")
    text = text.replace("} } }\n  func", "} } } }\n  func").replace(
        "[%p * 2 + %q, %k] {", "[%p * 2 + %q, %k] where [%q] < [2] {"
    )
    sch = weft.Schedule(weft.parse(text, "f.mlir"))
    refused(lambda: sch.blockize(sch.get_loops("C")[1]), 3, "2*%p is not a multiple of 5")


def test_4_guards() -> None:
    text = ROWS.replace("= [%i, %k] {", "= [%i, %k] where [%i + %k] < [19] {")
    sch = weft.Schedule(weft.parse(text, "f.mlir"))
    refused(lambda: sch.blockize(sch.get_loops("C")[0]), 4, "is on loops of the reduction and others")
    text = ROWS.replace("%i in 8 {", "%p in 2 { tir.for %q in 4 {").replace("reduce<12>", "spatial<12>")
    text = text.replace("= [%i, %k] {", "= [%p * 4 + %q, %k] where [%q + %k] < [14] {")
    text = text.replace("} } }\n  func", "} } } }\n  func").replace(
        "tir.init { memref.store %zero, %C[%vi] : memref<8xf32> }", ""
    )
    sch = weft.Schedule(weft.parse(text.replace("%C[%vi]", "%T[%vi]"), "f.mlir"))
    refused(lambda: sch.blockize(sch.get_loops("C")[2]), 4, "is on loops outside and inside")


def test_5_own_element() -> None:
    text = ROWS.replace(
        "%c = memref.load %C[%vi]", "%w = affine.apply affine_map<(d0) -> (7 - d0)>(%vi)\n%c = memref.load %C[%w]"
    )
    sch = weft.Schedule(weft.parse(text, "f.mlir"))
    refused(lambda: sch.blockize(sch.get_loops("C")[0]), 5, "it loads another element of C")


def test_6_known_outside() -> None:
    text = ROWS.replace("tir.for %k in 12 {", "%w = memref.load %D[%i] : memref<8xf32>\ntir.for %k in 12 {")
    text = text.replace("memref.store %zero, %C[%vi]", "memref.store %w, %C[%vi]")
    sch = weft.Schedule(weft.parse(text, "f.mlir"))
    refused(lambda: sch.blockize(sch.get_loops("C")[0]), 6, "it uses %w, which is not known there")
