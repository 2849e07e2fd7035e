"""Loops whose kind, number or extent changes: kinds that replace others, thread axes of several extents, parts."""

from __future__ import annotations

from itertools import permutations

import pytest
from index_map_programs import chain, stage
from loop_shape_refusals import PASSED_ON, TWO_LENGTHS
from schedule_checks import check_schedule, refused
from schedule_programs import PROGRAMS

import weft

KINDS = {
    "parallel": lambda s, loop: s.parallel(loop),
    "vectorize": lambda s, loop: s.vectorize(loop),
    "unroll": lambda s, loop: s.unroll(loop),
    "threads": lambda s, loop: s.bind(loop, "threadIdx.x"),
    "blocks": lambda s, loop: s.bind(loop, "blockIdx.y"),
}
COPY = chain(
    [stage("C", [6, 8], ("A", [6, 8]), ["d0", "d1"], ("C", [6, 8]), ["d0", "d1"])], [("A", [6, 8]), ("C", [6, 8])], []
)
DYNAMIC = chain([stage("C", ["n"], ("A", ["n"]), ["d0"], ("C", ["n"]), ["d0"])], [("A", ["n"]), ("C", ["n"])], [])


@pytest.mark.parametrize(("first", "second"), list(permutations(KINDS, 2)))
def test_a_kind_replaces_another(first: str, second: str) -> None:
    module = weft.parse(COPY)
    once, twice = weft.Schedule(module), weft.Schedule(module)
    KINDS[second](once, once.get_loops("C")[1])
    KINDS[first](twice, twice.get_loops("C")[1])
    KINDS[second](twice, twice.get_loops("C")[1])
    weft.assert_structural_equal(once.mod, twice.mod)
    check_schedule(module, twice, run=False)


@pytest.mark.parametrize("factors", [[4, None], [2, None, 3], [3, 4, None], [None, 5]])
def test_any_factor_of_a_dynamic_extent_is_inferred(factors: list[int | None]) -> None:
    module = weft.parse(DYNAMIC)
    sch = weft.Schedule(module)
    outer, *_ = sch.split(sch.get_loops("C")[0], factors)
    sch.parallel(outer)
    check_schedule(module, sch)


def test_inferred_inner_factor_of_an_extent_that_is_a_multiple() -> None:
    module = weft.parse(DYNAMIC.replace("  tir.for", "  tir.assume [%n mod 4] == [0]\n  tir.for", 1))
    sch = weft.Schedule(module)
    outer, _ = sch.split(sch.get_loops("C")[0], [4, None])
    sch.parallel(outer)
    assert "where" not in str(sch.mod)
    check_schedule(module, sch, run=False)


@pytest.mark.parametrize("factors", [[2], [1, 3], [6]])
def test_the_rest_is_a_part(factors: list[int]) -> None:
    module = weft.parse(COPY)
    sch = weft.Schedule(module)
    parts = sch.loop_partition(sch.get_loops("C")[0], factors)
    assert sum(sch.get(part).extent for part in parts) == 6
    check_schedule(module, sch, run=False)


@pytest.mark.parametrize("axis", ["threadIdx.x", "blockIdx.y"])
@pytest.mark.parametrize("order", ["short first", "long first"])
def test_loops_of_several_extents_on_one_axis(order: str, axis: str) -> None:
    """The shorter one runs as often as the longer one, under a guard."""
    module = weft.parse(TWO_LENGTHS.replace("      memref.store %x, %E[%i, %j] : memref<4x3xf32>\n", ""))
    sch = weft.Schedule(module)
    sch.bind(sch.get_loops("X")[0], "blockIdx.x")
    for block in ("X", "Z") if order == "short first" else ("Z", "X"):
        sch.bind(sch.get_loops(block)[1], axis)
    assert [sch.get(sch.get_loops(block)[1]).extent for block in ("X", "Z")] == [5, 5]
    assert "where [%j] < [3]" in str(sch.mod)
    check_schedule(module, sch)
    if axis == "threadIdx.x":  # "Y" is in no loop over blockIdx.y
        assert weft.build(sch.mod, target="opencl").get_source("opencl")


@pytest.mark.parametrize("axis", [0, -1])
def test_rfactor_of_a_loop_of_one_iteration(axis: int) -> None:
    module = weft.parse(PROGRAMS["matmul_relu"].text)
    sch = weft.Schedule(module)
    *_, k = sch.get_loops("Y")
    _, unit = sch.split(k, [None, 1])
    sch.rfactor(unit, axis)
    check_schedule(module, sch)


def test_the_reduction_of_an_outer_block_is_decomposed_there() -> None:
    """blockize leaves the init to the outer block: the inner one points there."""
    module = weft.parse(PROGRAMS["matmul_relu"].text)
    sch = weft.Schedule(module)
    (i0, i1), (j0, j1), (k0, k1) = (sch.split(loop, [None, 4]) for loop in sch.get_loops("Y"))
    sch.reorder(i0, j0, k0, i1, j1, k1)
    outer = sch.blockize(i1)
    legal = 'legal: decompose_reduction of block "Y_o" around it, which starts the accumulation'
    refused(lambda: sch.decompose_reduction("Y", sch.get_loops("Y")[2]), 1, 'block "Y" has no init', legal)
    sch.decompose_reduction(outer, k0)
    check_schedule(module, sch)


def test_blocks_of_threads_that_pass_nothing_on_share_an_axis() -> None:
    """Each reads what it wrote itself: the loops become one."""
    module = weft.parse(PASSED_ON.replace("%T[%v, %x]", "%T[%v, %w]"))
    sch = weft.Schedule(module)
    sch.bind(sch.get_loops("T")[0], "blockIdx.x")
    for block in ("T", "C"):
        sch.bind(sch.get_loops(block)[1], "blockIdx.y")
    check_schedule(module, sch)
    assert weft.build(sch.mod, target="opencl").get_source("opencl").count("__kernel") == 1
