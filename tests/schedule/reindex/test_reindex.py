"""reindex: its requirements, what refutes them, and what it does to programs."""

from __future__ import annotations

import re

import pytest
from refusal import SHIFTED, TEMPORARY, TURNED, block, copy, function
from schedule_checks import check_schedule, refused
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te


def conv(relu: bool = False) -> ModuleOp:
    """A strided convolution without padding."""
    X, W = te.placeholder((2, 3, 9, 9), name="X"), te.placeholder((4, 3, 3, 3), name="W")
    rc, ry, rx = (te.reduce_axis((0, 3), name=name) for name in ("rc", "ry", "rx"))
    Y = te.compute(
        (2, 4, 4, 4),
        lambda n, f, h, w: te.sum(X[n, rc, h * 2 + ry, w * 2 + rx] * W[f, rc, ry, rx], axis=[rc, ry, rx]),
        name="Y",
    )
    if relu:
        return te.create_func([X, W, te.compute((2, 4, 4, 4), lambda *i: te.max(Y[i], 0.0), name="Z")])
    return te.create_func([X, W, Y])


def schedule(text: str) -> weft.Schedule:
    return weft.Schedule(weft.parse(text, "f.mlir"))


def test_windows_become_a_matrix() -> None:
    """Image, filter and result of a convolution, then one layout for all: a matrix product."""
    module = conv()
    sch = weft.Schedule(module)
    image, filters, out = sch.reindex("Y", ("read", 0)), sch.reindex("Y", "W"), sch.reindex("Y", ("write", 0))
    text = str(sch.mod)
    assert "%X_reindex = memref.alloc() : memref<2x4x4x3x3x3xf32>" in text
    assert re.search(r"memref.load %X_reindex\[%vn\w*, %vh\w*, %vw\w*, %vrc\w*, %vry\w*, %vrx\w*\]", text)
    check_schedule(module, sch)
    sch.transform_layout("Y", ("read", 0), lambda n, h, w, c, y, x: (n * 16 + h * 4 + w, c * 9 + y * 3 + x))
    sch.transform_layout("Y", ("read", 1), lambda f, c, y, x: (f, c * 9 + y * 3 + x))
    sch.transform_layout("Y", ("write", 0), lambda n, f, h, w: (n * 16 + h * 4 + w, f))
    sch.transform_block_layout("Y", lambda n, f, h, w, c, y, x: (n * 16 + h * 4 + w, f, c * 9 + y * 3 + x))
    assert str(sch.mod).count("memref<32x27xf32>") == 3
    i, j, k = sch.get_loops("Y")
    sch.reorder(i, k, j)
    sch.vectorize(j)
    for copy_block in (image, filters, out):
        sch.parallel(sch.get_loops(copy_block)[0])
    check_schedule(module, sch)


@pytest.mark.parametrize("buffer", ["A", "C"])
def test_of_turned_and_shifted_places(buffer: str) -> None:
    text = function(
        block("C", SHIFTED.replace("%x", "%y") + TURNED + copy("A", "C", at="%y", to="%x")),
        parameters="%A: memref<13xf32>, %C: memref<12xf32>",
    ).replace("%A[%y] : memref<12xf32>", "%A[%y] : memref<13xf32>")
    sch = schedule(text)
    sch.reindex("C", buffer)
    assert f"%{buffer}_reindex[%v] : memref<12xf32>" in str(sch.mod)
    check_schedule(weft.parse(text), sch)


def test_over_dynamic_extents() -> None:
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    T = te.compute((n, m), lambda i, j: A[i, j] + 1, name="T")
    module = te.create_func([A, te.compute((m, n), lambda i, j: T[j, i] * 2, name="C")])
    sch = weft.Schedule(module)
    sch.reindex("C", "T")
    sch.reindex("C", ("write", 0))
    sch.reindex("T", ("read", 0))
    check_schedule(module, sch)


def test_after_tiles() -> None:
    """Guards that keep iterators in their domain leave nothing out."""
    module = conv(relu=True)
    sch = weft.Schedule(module)
    _, f, h, w = sch.get_loops("Z")
    f0, _ = sch.split(f, [None, 3])
    sch.reorder(h, w, f0)
    sch.parallel(h)
    sch.reindex("Z", ("read", 0))
    sch.reindex("Z", ("write", 0))
    check_schedule(module, sch)


def test_in_a_block() -> None:
    """A copy in each instance of the block around."""
    A = te.placeholder((8, 12), name="A")
    module = te.create_func([A, te.compute((12, 8), lambda i, j: A[j, 11 - i] * 2, name="C")])
    sch = weft.Schedule(module)
    _, j = sch.get_loops("C")
    sch.blockize(j)
    sch.reindex("C", "A")
    check_schedule(module, sch)


def test_stated_regions() -> None:
    text = function(block("C", "tir.reads %A[11 - %v] : memref<12xf32>\n" + TURNED + copy("A", "C", at="%x")))
    text = text.replace("[11 - %v]", "[%v * -1 + 11]")
    sch = schedule(text)
    sch.reindex("C", "A")
    assert "tir.reads %A_reindex[%v_1] : memref<12xf32>" in str(sch.mod)
    check_schedule(weft.parse(text), sch)


def test_1_that_many_buffers() -> None:
    refused(lambda: weft.Schedule(conv()).reindex("Y", ("read", 2)), 1, "there is no buffer 2", "0: X, 1: W")


def test_2_one_way_to_index() -> None:
    A = te.placeholder((14,), name="A")
    sch = weft.Schedule(te.create_func([A, te.compute((12,), lambda i: A[i] + A[i + 2], name="C")]))
    refused(lambda: sch.reindex("C", "A"), 2, "it accesses A[%vi + 2] and A[%vi]")


def test_2_pointers() -> None:
    text = function(block("C", "%p = low.access_ptr %A[%v] sizes [1] read : memref<12xf32>\n" + copy("A", "C")))
    refused(lambda: schedule(text).reindex("C", "A"), 2, "low.access_ptr works on A in its present layout")


def test_2_gathered_places() -> None:
    text = function(
        block("C", "%l = memref.load %L[%v] : memref<12xindex>\n" + copy("A", "C", at="%l")),
        parameters="%A: memref<12xf32>, %C: memref<12xf32>, %L: memref<12xindex>",
    )
    refused(lambda: schedule(text).reindex("C", "A"), 2, "it uses %l, which is not known there")


def test_2_constant_places() -> None:
    text = function(block("C", copy("A", "C", at="%c8")))
    refused(lambda: schedule(text).reindex("C", "A"), 2, "no iterator is in the indices of A")


STARTED_FROM_D = """
func.func @f(%A: memref<8x4xf32>, %D: memref<8x4xf32>, %C: memref<8xf32>) {
  %two = arith.constant 2 : index
  tir.for %i in 8 { tir.for %k in 4 {
    tir.block "C" iters(%vi: spatial<8>, %vk: reduce<4>) = [%i, %k] {
      tir.init {
        INIT
      }
      %a = memref.load %A[%vi, %vk] : memref<8x4xf32>
      %c = memref.load %C[%vi] : memref<8xf32>
      %s = arith.addf %c, %a : f32
      memref.store %s, %C[%vi] : memref<8xf32>
    } } }
  func.return
}"""


def test_3_what_only_the_init_reads() -> None:
    """It reads in the first step of the reduction, perhaps under a condition."""
    read = "%d = memref.load %D[%vi, AT] : memref<8x4xf32>\nmemref.store %d, %C[%vi] : memref<8xf32>"
    refused(
        lambda: schedule(STARTED_FROM_D.replace("INIT", read.replace("AT", "%vk"))).reindex("C", "D"),
        3,
        "only the init accesses D, in the first step of the reduction",
    )
    guarded = f"%g = arith.cmpi slt, %vi, %two : index\nscf.if %g {{ {read} }}"
    refused(
        lambda: schedule(STARTED_FROM_D.replace("INIT", guarded.replace("AT", "%two"))).reindex("C", "D"),
        3,
        "a condition decides whether D is accessed",
    )
    sch = schedule(STARTED_FROM_D.replace("INIT", read.replace("AT", "%two")))
    before = sch.mod.clone()
    sch.reindex("C", "D")
    check_schedule(before, sch)


def test_3_padding_is_not_read() -> None:
    A = te.placeholder((12,), name="A")
    C = te.compute((14,), lambda i: te.if_then_else(te.all(i >= 1, i < 13), A[i - 1], te.const(0.0)), name="C")
    sch = weft.Schedule(te.create_func([A, C]))
    refused(lambda: sch.reindex("C", "A"), 3, "a condition decides whether A is accessed")


def test_3_predicates_leave_elements_out() -> None:
    text = function(
        block("B", copy("A", "B")),
        block("C", copy("A", "B")).replace("= [%i] {", "= [%i] where [%i] < [9] {"),
        block("D", copy("B", "C")),
        temporaries=TEMPORARY,
    )
    error = refused(lambda: schedule(text).reindex("C", "A"), 3, "its guards leave out instance (v=")
    assert 9 <= error.violation.counterexample["instance"]["v"] < 12


def test_3_parts_of_a_block() -> None:
    sch = schedule(function(block("C", copy("A", "C"))))
    sch.loop_partition(sch.get_loops("C")[0], [3, None])
    refused(lambda: sch.reindex("C_i0", "A"), 3, "one of several parts of a block")


def beside_its_producer() -> tuple[ModuleOp, weft.Schedule]:
    module = weft.parse(function(block("B", copy("A", "B")), block("C", copy("B", "C")), temporaries=TEMPORARY))
    sch = weft.Schedule(module)
    (i,) = sch.get_loops("C")
    outer, _ = sch.split(i, [None, 4])
    sch.compute_at("B", outer)
    return module, sch


@pytest.mark.parametrize("name", ["B", "C"])
def test_copies_in_a_shared_loop(name: str) -> None:
    """Each iteration of the loop that producer and consumer share copies what it reads or writes."""
    module, sch = beside_its_producer()
    made = sch.reindex(name, ("read", 0) if name == "C" else ("write", 0))
    assert [sch.get(loop).extent for loop in sch.get_loops(made)] == [3, 4]
    check_schedule(module, sch)
    module, sch = beside_its_producer()
    primitive = sch.reindex_cache_read if name == "C" else sch.reindex_cache_write
    primitive(name, 0, "local", lambda v: (v % 4, v // 4))
    check_schedule(module, sch)


def test_copies_in_a_block() -> None:
    A = te.placeholder((8, 12), name="A")
    module = te.create_func([A, te.compute((12, 8), lambda i, j: A[j, 11 - i] * 2, name="C")])
    for place in (("read", 0), ("write", 0)):
        sch = weft.Schedule(module)
        sch.blockize(sch.split(sch.get_loops("C")[0], [None, 4])[1])
        sch.reindex("C", place)
        check_schedule(module, sch)


def test_3_values_of_an_iteration_that_are_no_range() -> None:
    """Each iteration of the shared loop runs every third instance."""
    spread = """tir.for %i in 3 {
      tir.for %j in 4 { tir.block "B" iters(%v: spatial<12>) = [%j * 3 + %i] { COPY_A } }
      tir.for %j in 4 { tir.block "C" iters(%v: spatial<12>) = [%j * 3 + %i] { COPY_B } } }"""
    text = function(spread.replace("COPY_A", copy("A", "B")).replace("COPY_B", copy("B", "C")), temporaries=TEMPORARY)
    for name, place in (("C", ("read", 0)), ("B", ("write", 0))):
        told = "the values of iterator %v in an iteration of %i are not one range"
        refused(lambda name=name, place=place: schedule(text).reindex(name, place), 3, told, kind="not proved")


def test_3_instances_left_out_of_an_iteration() -> None:
    """The guard leaves out instances of the last iteration."""
    guarded = """tir.for %i in 4 {
      tir.for %j in 4 { tir.block "B" iters(%v: spatial<14>) = [%i * 4 + %j] where [%i * 4 + %j] < [14] { COPY_A } }
      tir.for %j in 4 { tir.block "C" iters(%v: spatial<14>) = [%i * 4 + %j] where [%i * 4 + %j] < [14] { COPY_B } }
    }"""
    bodies = (copy(*pair).replace("12", "14") for pair in (("A", "B"), ("B", "C")))
    text = function(
        guarded.replace("COPY_A", next(bodies)).replace("COPY_B", next(bodies)),
        parameters="%A: memref<14xf32>, %C: memref<14xf32>",
        temporaries=TEMPORARY.replace("12", "14"),
    )
    refused(lambda: schedule(text).reindex("C", ("read", 0)), 3, "it depends on what %i is", kind="not proved")


def under_a_condition() -> str:
    body = """tir.for %i in 12 {
      %from = arith.constant 0 : index
      %holds = arith.cmpi sge, %i, %from : index
      scf.if %holds {
        tir.block "B" iters(%v: spatial<12>) = [%i] { COPY_A }
        tir.block "C" iters(%v: spatial<12>) = [%i] { COPY_B }
      }
    }"""
    return function(body.replace("COPY_A", copy("A", "B")).replace("COPY_B", copy("B", "C")), temporaries=TEMPORARY)


def test_4_what_is_read_does_not_change_in_the_nest() -> None:
    refused(lambda: schedule(under_a_condition()).reindex("C", "B"), 4, "B is written elsewhere in scf.if around it")


def test_5_only_writer() -> None:
    text = function(block("B", copy("A", "C")), block("D", copy("A", "C")))
    refused(lambda: schedule(text).reindex("D", ("write", 0)), 5, 'block "B" writes C too')


def test_5_what_was_there_before() -> None:
    text = function(block("C", copy("C", "C")))
    refused(lambda: schedule(text).reindex("C", ("write", 0)), 5, "it reads C as it was before")


def test_5_readers_in_the_nest() -> None:
    told = "B is used elsewhere in scf.if around it"
    refused(lambda: schedule(under_a_condition()).reindex("B", ("write", 0)), 5, told)


def test_5_one_element_an_instance() -> None:
    half = "%x = affine.apply affine_map<(d0) -> (d0 floordiv 2)>(%v)\n"
    text = function(block("C", half + copy("A", "C", to="%x")))
    refused(lambda: schedule(text).reindex("C", ("write", 0)), 5, "(v=0) and (v=1) store")


def test_6_extents_at_the_top() -> None:
    text = function(
        """tir.for %i in 12 { %n = affine.apply affine_map<(d0) -> (d0 + 1)>(%i)
        tir.for %j in %n { tir.block "C" iters(%v: spatial<%n>) = [%j] {\n"""
        + copy("A", "C")
        + "\n} } }",
    )
    refused(lambda: schedule(text).reindex("C", "A"), 6, "the extent of %v is not")


def test_7_independence() -> None:
    """Each iteration of the parallel loop copies for itself, in the block there."""
    A = te.placeholder((8, 12), name="A")
    module = te.create_func([A, te.compute((12, 8), lambda i, j: A[j, 11 - i] * 2, name="C")])
    sch = weft.Schedule(module)
    i, j = sch.get_loops("C")
    sch.blockize(j)
    sch.parallel(i)
    sch.reindex("C", ("write", 0))
    check_schedule(module, sch)


def test_an_iterator_that_changes_no_index_has_no_dimension() -> None:
    """A[v floordiv 64, w mod 2] of v below 64 and w below 2."""
    text = function(
        """tir.for %i in 64 { tir.for %j in 2 {
      tir.block "C" iters(%v: spatial<64>, %w: spatial<2>) = [%i, %j] {
        %x = affine.apply affine_map<(d0) -> (d0 floordiv 64)>(%v)
        %y = affine.apply affine_map<(d0) -> (d0 mod 2)>(%w)
        %a = memref.load %A[%x, %y] : memref<1x2xf32>
        memref.store %a, %C[%v, %w] : memref<64x2xf32>
      } } }""",
        parameters="%A: memref<1x2xf32>, %C: memref<64x2xf32>",
    )
    sch = schedule(text)
    sch.reindex("C", ("read", 0))
    assert "%A_reindex = memref.alloc() : memref<2xf32>" in str(sch.mod)
    check_schedule(weft.parse(text), sch)


def test_caches_with_indices_of_their_own() -> None:
    """A convolution whose image, filter and result are tiles; iterators that no index has are left out."""
    module = conv(relu=True)
    sch = weft.Schedule(module)
    image = sch.reindex_cache_read(
        "Y", "X", "global.A", lambda n, f, h, w, c, y, x: (n * 16 + h * 4 + w, c * 9 + y * 3 + x)
    )
    sch.reindex_cache_read(
        "Y", "W", "local", lambda n, f, h, w, c, y, x: ((c * 9 + y * 3 + x) // 8, f, (c * 9 + y * 3 + x) % 8)
    )
    out = sch.reindex_cache_write("Y", 0, "local", lambda n, f, h, w, c, y, x: (n * 16 + h * 4 + w, f))
    assert 'memref<32x27xf32, "global.A">' in str(sch.mod) and 'memref<4x4x8xf32, "local">' in str(sch.mod)
    assert len(sch.get_loops(image)) == 6 and len(sch.get_loops(out)) == 4
    sch.parallel(sch.get_loops(image)[0])
    check_schedule(module, sch)


def test_caches_over_dynamic_extents() -> None:
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    module = te.create_func([A, te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="C")])
    sch = weft.Schedule(module)
    sch.reindex_cache_read("C", 0, "local", lambda i, k: (k, i))
    sch.reindex_cache_write("C", 0, "local", lambda i, k: (i,))
    check_schedule(module, sch)
    digits = lambda i, k: (i // 2, i % 2, k)  # noqa: E731
    refused(lambda: sch.reindex_cache_read("C", 0, "local", digits), 6, "an extent of the copy would be")


def test_requirements_of_the_caches() -> None:
    sch = weft.Schedule(conv())
    refused(lambda: sch.reindex_cache_read("Y", 4, "local", lambda *v: v), 1, "there is no buffer 4")
    A = te.placeholder((14,), name="A")
    twice = weft.Schedule(te.create_func([A, te.compute((12,), lambda i: A[i] + A[i + 2], name="C")]))
    refused(lambda: twice.reindex_cache_read("C", 0, "local", lambda i: (i,)), 2, "it accesses A[%vi + 2] and A[%vi]")
    C = te.compute((14,), lambda i: te.if_then_else(te.all(i >= 1, i < 13), A[i - 1], te.const(0.0)), name="C")
    padded = weft.Schedule(te.create_func([A, C]))
    refused(lambda: padded.reindex_cache_read("C", 0, "local", lambda i: (i,)), 3, "a condition decides whether A is")
    place = schedule(function(block("C", copy("A", "A", at="%v", to="%v")), parameters="%A: memref<12xf32>"))
    refused(lambda: place.reindex_cache_read("C", "A", "local", lambda i: (i,)), 4, "memref.store writes A there")
    refused(lambda: place.reindex_cache_write("C", "A", "local", lambda i: (i,)), 5, "it reads A as it was before")
    reduces = lambda n, f, h, w, c, y, x: (n, f, h, w, c)  # noqa: E731
    refused(lambda: sch.reindex_cache_write("Y", 0, "local", reduces), 5, "reduce iterator %vrc is in its indices")
    refused(lambda: sch.reindex_cache_read("Y", "X", "here", lambda *v: v), 8, "'here' is not a memory scope")
    dropped = lambda n, f, h, w, c, y, x: (n, h, w, c, y)  # noqa: E731
    refused(lambda: sch.reindex_cache_read("Y", "X", "local", dropped), 9, "would both use [0, 0, 0, 0, 0]")
    below = lambda n, f, h, w, c, y, x: (n, h - 1, w, c, y, x)  # noqa: E731
    refused(lambda: sch.reindex_cache_read("Y", "X", "local", below), 9, "below 0, in dimension 1")
