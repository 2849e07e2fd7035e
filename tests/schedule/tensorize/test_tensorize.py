"""Each requirement of tensorize, broken; and what intrinsics must be."""

# ruff: noqa: E501 (lines of tables: what is changed, and the message)
from __future__ import annotations

import pytest
from schedule_checks import refused

import weft

COPY = """
func.func @copy(%A: memref<8xf32>, %C: memref<8xf32>) {
  tir.for %i in 8 {
    tir.block "" iters(%v: spatial<8>) = [%i] {
      %a = memref.load %A[%v] : memref<8xf32>
      %b = arith.addf %a, %a : f32
      memref.store %b, %C[%v] : memref<8xf32>
    } }
  func.return
}"""
BY_POINTER = """
func.func private @kernel(!ptr_xdsl.ptr, !ptr_xdsl.ptr)
func.func @impl(%A: memref<8xf32>, %C: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %p = low.access_ptr %A[%c0] sizes [8] read : memref<8xf32>
  %q = low.access_ptr %C[%c0] sizes [8] write : memref<8xf32>
  func.call @kernel(%p, %q) : (!ptr_xdsl.ptr, !ptr_xdsl.ptr) -> ()
  func.return
}"""
TILES = """
func.func @f(%A: memref<64xf32>, %C: memref<64xf32>) {
  tir.for %i in 8 {
    tir.block "T" iters(%t: spatial<8>) = [%i] {
      tir.for %j in 8 {
        tir.block "C" iters(%v: spatial<8>) = [%j] {
          %x = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)>(%t, %v)
          %a = memref.load %A[%x] : memref<64xf32>
          %b = arith.addf %a, %a : f32
          memref.store %b, %C[%x] : memref<64xf32>
        } } } }
  func.return
}"""


@pytest.fixture(autouse=True)
def intrinsics() -> None:
    weft.register_tensor_intrinsic("copy8", weft.parse(COPY), weft.parse(COPY), override=True)
    weft.register_tensor_intrinsic("pointer8", weft.parse(COPY), weft.parse(BY_POINTER), override=True)


def schedule(old: str = "", new: str = "", text: str = TILES) -> weft.Schedule:
    assert old in text
    return weft.Schedule(weft.parse(text.replace(old, new), "f.mlir"))


def test_it_matches() -> None:
    for name in ("copy8", "pointer8"):
        schedule().tensorize("T", name)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("%j in 8 {", "%j in 8 { tir.for %q in 1 {", 'loop %q is where the description has block ""'),
        ("arith.addf %a, %a", "arith.mulf %a, %a", "arith.mulf : f32 is where the description has arith.addf : f32"),
        ("(d0 * 8 + d1)", "(d0 * 8 - d1 + 7)", "index 0 of C is"),
        ("%C[%x] : memref<64xf32>\n", "%C[%x] : memref<64xf32>\nmemref.store %a, %C[%x] : memref<64xf32>\n", "memref.store is not in the description"),
        ("%v: spatial<8>) = [%j] {", "%v: spatial<8>) = [%j] where [%j] < [8] {", 'the guards of block "C" differ'),
        ("%b = arith.addf %a, %a : f32", "%b = arith.addf %a, %a fastmath<fast> : f32", "arith.addf has other properties"),
        ("%b = arith.addf %a, %a : f32\n", "%d = arith.addf %a, %a : f32\n%w = memref.load %A[%v] : memref<64xf32>\n%b = arith.addf %a, %w : f32\n", "A is accessed in another place than the description says"),
        ("          memref.store %b, %C[%x] : memref<64xf32>\n", "", "the description continues with memref.store"),
    ],
)  # fmt: skip
def test_1_the_description(old: str, new: str, message: str) -> None:
    text = TILES.replace(old, new)
    if "%q" in new:
        text = text.replace("} } } }\n", "} } } } }\n")
    sch = weft.Schedule(weft.parse(text, "f.mlir"))
    error = refused(lambda: sch.tensorize("T", "copy8"), 1, message)
    assert error.operation is not None


def test_1_extents_and_inits() -> None:
    sch = schedule(
        "%j in 8 {",
        "%j in 4 {",
        TILES.replace("%v: spatial<8>) = [%j]", "%v: spatial<4>) = [%j]")
        .replace("d0 * 8", "d0 * 4")
        .replace("memref<64xf32>", "memref<32xf32>"),
    )
    refused(lambda: sch.tensorize("T", "copy8"), 1, "loop %j has extent 4, in the description 8")
    rows = """
    func.func @f(%A: memref<8x8xf32>, %C: memref<8xf32>) {
      %zero = arith.constant 0.0 : f32
      tir.for %i in 8 { tir.for %k in 8 {
        tir.block "C" iters(%vi: spatial<8>, %vk: reduce<8>) = [%i, %k] {
          tir.init { memref.store %zero, %C[%vi] : memref<8xf32> }
          %a = memref.load %A[%vi, %vk] : memref<8x8xf32>
          %c = memref.load %C[%vi] : memref<8xf32>
          %s = arith.addf %c, %a : f32
          memref.store %s, %C[%vi] : memref<8xf32>
        } } }
      func.return
    }"""
    sch = weft.Schedule(weft.parse(rows))
    refused(
        lambda: sch.tensorize(sch.get_loops("C")[0], "copy8"), 1, "the block has an init", "legal: decompose_reduction"
    )


def test_2_buffers_fit() -> None:
    other = COPY.replace("%A: memref<8xf32>", '%A: memref<8xf32, "local">').replace(
        "%A[%v] : memref<8xf32>", '%A[%v] : memref<8xf32, "local">'
    )
    weft.register_tensor_intrinsic("local8", weft.parse(other), weft.parse(other), override=True)
    sch = schedule()
    refused(lambda: sch.tensorize("T", "local8"), 2, 'A is in memory scope "global", A of the description in "local"')
    sch = schedule(text=TILES.replace("f32", "f64"))
    refused(lambda: sch.tensorize("T", "copy8"), 2, "C holds f64, C of the description f32")
    rows = COPY.replace("memref<8xf32>", "memref<2x4xf32>").replace("%i in 8 {", "%i in 2 { tir.for %j in 4 {")
    rows = (
        rows.replace("(%v: spatial<8>) = [%i]", "(%v: spatial<2>, %w: spatial<4>) = [%i, %j]")
        .replace("[%v]", "[%v, %w]")
        .replace("} }\n", "} } }\n")
    )
    pointer = BY_POINTER.replace("memref<8xf32>", "memref<2x4xf32>").replace(
        "[%c0] sizes [8]", "[%c0, %c0] sizes [2, 4]"
    )
    weft.register_tensor_intrinsic("rows", weft.parse(rows), weft.parse(pointer), override=True)
    strided = pointer.replace("memref<2x4xf32>", "memref<2x4xf32, strided<[?, 1], offset: ?>>")
    weft.register_tensor_intrinsic("strided", weft.parse(rows), weft.parse(strided), override=True)
    sixteen = pointer.replace("memref<2x4xf32>", "memref<2x4xf32, strided<[16, 1], offset: ?>>")
    weft.register_tensor_intrinsic("sixteen", weft.parse(rows), weft.parse(sixteen), override=True)
    tiles = """
    func.func @f(%A: memref<8x8xf32>, %C: memref<8x8xf32>) {
      tir.for %i in 8 { tir.for %j in 8 {
        tir.block "C" iters(%vi: spatial<8>, %vj: spatial<8>) = [%i, %j] {
          %a = memref.load %A[%vi, %vj] : memref<8x8xf32>
          %b = arith.addf %a, %a : f32
          memref.store %b, %C[%vi, %vj] : memref<8x8xf32>
        } } }
      func.return
    }"""
    for name, message in (
        ("rows", "rows of A are not next to each other"),
        ("sixteen", "stride 0 of A is 8, A has 16"),
        ("strided", ""),
    ):
        sch = weft.Schedule(weft.parse(tiles))
        *_, i1, _ = sch.tile(*sch.get_loops("C"), factors=[2, 4])
        if message:
            refused(lambda s=sch, n=name, i=i1: s.tensorize(i, n), 2, message)
        else:
            sch.tensorize(i1, name)


@pytest.mark.parametrize("stride", ["2", "?"])
def test_2_pointers_take_elements_that_are_next_to_each_other(stride: str) -> None:
    view = f"memref<64xf32, strided<[{stride}]>>"
    text = TILES.replace("%A: memref<64xf32>", f"%A: {view}").replace("%A[%x] : memref<64xf32>", f"%A[%x] : {view}")
    refused(
        lambda: schedule(text=text).tensorize("T", "pointer8"), 2, f"rows of A are not next to each other: it is {view}"
    )
    schedule(text=text).tensorize("T", "copy8")
    dense = BY_POINTER.replace("memref<8xf32>", "memref<8xf32, strided<[1], offset: ?>>")
    weft.register_tensor_intrinsic("dense8", weft.parse(COPY), weft.parse(dense), override=True)
    message = "stride 0 of A is decided by callers, A has 1" if stride == "?" else "stride 0 of A is 2, A has 1"
    refused(lambda: schedule(text=text).tensorize("T", "dense8"), 2, message)
    schedule().tensorize("T", "dense8")


def test_3_different_buffers() -> None:
    sch = schedule("%A[%x]", "%C[%x]")
    refused(lambda: sch.tensorize("T", "copy8"), 3, "C is both C and A")


def test_4_outside_functions_have_one_type() -> None:
    sch = schedule(text="func.func private @kernel(f32)\n" + TILES)
    refused(lambda: sch.tensorize("T", "pointer8"), 4, "@kernel is (f32) -> () in the module")
    before, loop = str(sch.mod), sch.get_loops("C")[0]  # which would become a block first
    refused(lambda: sch.tensorize(loop, "pointer8"), 4, "@kernel is (f32) -> () in the module")
    assert str(sch.mod) == before


def test_5_independence() -> None:
    wide = BY_POINTER.replace("sizes [8] write", "write")
    weft.register_tensor_intrinsic("wide8", weft.parse(COPY), weft.parse(wide), override=True)
    sch = schedule()
    sch.parallel(sch.get_loops("T")[0])
    sch.tensorize("T", "wide8")  # without sizes, the parameter is what it accesses
    assert "low.access_ptr %C[%" in str(sch.mod) and "sizes [8] write" in str(sch.mod)
    # What the kernel finds in a temporary of its own, an iteration before may have left there.
    scratch = BY_POINTER.replace("  %c0 = arith", "  %T = memref.alloc() : memref<8xf32>\n  %c0 = arith")
    scratch = scratch.replace("%C[%c0] sizes [8] write", "%T[%c0] sizes [8] readwrite")
    weft.register_tensor_intrinsic("scratch8", weft.parse(COPY), weft.parse(scratch), override=True)
    schedule().tensorize("T", "scratch8")
    sch = schedule()
    sch.parallel(sch.get_loops("T")[0])
    refused(lambda: sch.tensorize("T", "scratch8"), 5, 'iteration (i=0, d0=0) of block "T"', "and %i is parallel")


def test_unknown_and_taken_names() -> None:
    with pytest.raises(weft.CompileError, match=r"unknown tensor intrinsic 'copy'.*'copy8'"):
        schedule().tensorize("T", "copy")
    with pytest.raises(weft.CompileError, match="'copy8' is registered already"):
        weft.register_tensor_intrinsic("copy8", weft.parse(COPY), weft.parse(COPY))


@pytest.mark.parametrize(
    ("description", "implementation", "message"),
    [
        (COPY, COPY.replace("arith.addf", "arith.mulf"), "does not compute what the description says: @intrinsic"),
        (COPY, BY_POINTER.replace("memref<8xf32>", "memref<8xf64>"), "parameter 0 is memref<8xf32> in the description and memref<8xf64>"),
        (COPY, COPY.replace(", %C: memref<8xf32>", "").replace("memref.store %b, %C", "memref.store %b, %A"), "has 2 parameters, the implementation 1"),
        (COPY.replace("memref<8xf32>", "memref<16xf32>"), COPY.replace("memref<8xf32>", "memref<16xf32>"), "does not touch all of A in dimension 0"),
        (BY_POINTER, COPY, "the description of a tensor intrinsic loads and stores, got low.access_ptr"),
        (COPY + COPY.replace("@copy", "@other"), COPY, "a module with one function, got 2"),
        (COPY, BY_POINTER.replace("(!ptr_xdsl.ptr, !ptr_xdsl.ptr)", "(memref<8xf32>, !ptr_xdsl.ptr)").replace("(%p, %q)", "(%A, %q)").replace("-> ()", "-> ()"), "func.call takes all of A"),
    ],
)  # fmt: skip
def test_what_an_intrinsic_must_be(description: str, implementation: str, message: str) -> None:
    with pytest.raises(weft.CompileError) as caught:
        weft.register_tensor_intrinsic("x", weft.parse(description), weft.parse(implementation), override=True)
    assert message in str(caught.value)
