"""Each requirement of blockize, broken."""

from __future__ import annotations

from block_refusals import BEHIND
from schedule_checks import check_schedule, refused

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
    refused(lambda: sch.blockize(inner), 3, "iterator %vi is bound to", "are not separate terms")
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
    refused(
        lambda: sch.blockize(sch.get_loops("C")[0]),
        5,
        'instance (vi=0, vk=0) of block "C" reads C[7], which its init does not store to',
    )


def test_6_known_outside() -> None:
    text = ROWS.replace("tir.for %k in 12 {", "%w = memref.load %D[%i] : memref<8xf32>\ntir.for %k in 12 {")
    text = text.replace("memref.store %zero, %C[%vi]", "memref.store %w, %C[%vi]")
    sch = weft.Schedule(weft.parse(text, "f.mlir"))
    refused(lambda: sch.blockize(sch.get_loops("C")[0]), 6, "it uses %w, which is not known there")


SUM_AFTER_COPY = ROWS.replace(
    "  tir.for %i in 8 { tir.for",
    """
  tir.for %i in 8 { tir.block "T" iters(%vi: spatial<8>) = [%i] {
    %d = memref.load %D[%vi] : memref<8xf32>
    memref.store %d, %T[%vi] : memref<8xf32>
  } }
  tir.for %i in 8 { tir.for""",
)


def test_several_blocks_follow_each_other() -> None:
    sch = weft.Schedule(weft.parse(BEHIND, "f.mlir"))
    refused(lambda: sch.blockize(["B", "D"]), 1, "%i is between them")
    refused(lambda: sch.blockize(["B", "B"]), 1, '"B" is not another block of the scope', "legal: one loop, or")
    loop = sch.get_loops("X")[0]
    sch.compute_at("B", loop)
    sch.reverse_compute_at("D", loop)
    refused(lambda: sch.blockize(["X", "D"]), 1, '"B" is between them')
    outer = sch.blockize(["B", "X"])
    refused(lambda: sch.blockize(["X", "D"]), 1, '"D" is not another block of the scope of "X"')
    assert sch.get(outer).label == "X_B_o"
    check_schedule(weft.parse(BEHIND), sch)
    sch.blockize([outer, sch.get_block("C"), sch.get_block("D")])
    check_schedule(weft.parse(BEHIND), sch)


def test_a_reduction_that_ends_inside_starts_there() -> None:
    sch = weft.Schedule(weft.parse(SUM_AFTER_COPY, "f.mlir"))
    sch.merge(sch.get_loops("T")[0], sch.get_loops("C")[0])
    outer = sch.blockize(["T", "C"])
    assert [sch.get(child).label for child in sch.get_child_blocks(outer)] == ["T", "C_init", "C"]
    check_schedule(weft.parse(SUM_AFTER_COPY), sch)


def test_8_several_blocks_have_the_same_outer_iterators() -> None:
    sch = weft.Schedule(weft.parse(SUM_AFTER_COPY, "f.mlir"))
    sch.compute_at(sch.cache_read("C", "A", "local"), sch.get_loops("C")[1])
    refused(lambda: sch.blockize(["A_local", "C"]), 8, "%k below 12 is reduce; those", "%k below 12 is spatial")


def test_8_several_blocks_have_no_init_over_outer_loops() -> None:
    text = ROWS.replace(
        "      memref.store %s, %C[%vi] : memref<8xf32>\n    }",
        """
      memref.store %s, %C[%vi] : memref<8xf32>
    }
    tir.block "D" iters(%vi: spatial<8>, %vk: reduce<12>) = [%i, %k] {
      %c = memref.load %D[%vi] : memref<8xf32>
      %s = arith.addf %c, %c : f32
      memref.store %s, %D[%vi] : memref<8xf32>
    }""",
    )
    sch = weft.Schedule(weft.parse(text, "f.mlir"))
    refused(
        lambda: sch.blockize(["C", "D"]), 8, "its reduction continues over the loops outside", "decompose_reduction"
    )
    sch.decompose_reduction("C", sch.get_loops("D")[0])
    sch.blockize(["C_update", "D"])
    check_schedule(weft.parse(text), sch)


def test_8_several_blocks_have_the_same_guards() -> None:
    text = BEHIND.replace("tir.for %i in 12 {\n", "tir.for %i in 12 { tir.for %j in 2 {\n").replace(
        '"X" iters(%v: spatial<12>) = [%i] {', '"X" iters(%v: spatial<12>) = [%i] where [%j] < [1] {'
    )
    sch = weft.Schedule(weft.parse(text.replace("%C[%v] : memref<12xf32> }", "%C[%v] : memref<12xf32> }}"), "f.mlir"))
    refused(lambda: sch.blockize(["X", "C"]), 8, 'its guards on loops outside are not those of block "X"')
