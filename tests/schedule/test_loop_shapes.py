"""bind, merge, loop_partition, add_unit_loop, reorder_block_iter_var, annotate: the same meaning, everywhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from schedule_checks import check_schedule
from schedule_programs import PROGRAMS

import weft
from weft import Schedule, te
from weft.dialects.tir import BlockOp, ForOp

Steps = Callable[[Schedule], object]
CASES: list[tuple[str, str, Steps]] = []


def case(*names: str) -> Callable[[Steps], Steps]:
    """Registers steps for the named programs."""

    def register(steps: Steps) -> Steps:
        CASES.extend((name, steps.__name__.strip("_"), steps) for name in names)
        return steps

    return register


def blocks(s: Schedule) -> list[str]:
    return [op.label for op in s.mod.walk() if isinstance(op, BlockOp)]


@case("chain", "matmul_relu", "conv", "row_sum", "transpose", "window", "bmm", "gather", "two_consumers")
def _partition_each_outermost_loop(s: Schedule) -> None:
    for block in blocks(s):
        s.loop_partition(s.get_loops(block)[0], [2, None])


@case("chain", "matmul_relu", "conv", "row_sum", "transpose", "window", "bmm")
def _partition_each_innermost_loop(s: Schedule) -> None:
    """Reductions among them: the init stays in the first part."""
    for block in blocks(s):
        s.loop_partition(s.get_loops(block)[-1], [1, None])


@case("matmul_relu", "chain", "conv")
def _partition_a_guarded_loop(s: Schedule) -> None:
    for block in blocks(s):
        outer, _ = s.split(s.get_loops(block)[0], [None, 5])
        s.loop_partition(outer, [1, None])


@case("matmul_relu", "bmm", "conv", "row_sum")
def _partition_fused_with_the_reduction(s: Schedule) -> None:
    """A part begins in the middle of a sum, and has inits of the sums after."""
    block = next(b for b in ("Y", "S", "C") if b in blocks(s))
    s.loop_partition(s.fuse(*s.get_loops(block)), [7, None, 2])


@case("matmul_relu", "chain", "conv")
def _partition_twice_and_use_the_parts(s: Schedule) -> None:
    block = "Y" if "Y" in blocks(s) else "C"
    loops = s.get_loops(block)
    a, b = s.loop_partition(loops[0], [5, None])
    s.loop_partition(s.get_loops(f"{block}_i1")[1], [3, None])
    s.parallel(a)
    s.parallel(b)


@case("matmul_relu", "chain")
def _partition_an_inner_tile_loop(s: Schedule) -> None:
    """No part runs a box of the domain; together they do."""
    _, j, *_ = s.get_loops("C")
    _, j1 = s.split(j, [None, 4])
    left, right = s.loop_partition(j1, [3, 1])
    s.vectorize(left)
    s.unroll(right)


@case("dynamic")
def _partition_below_a_symbolic_loop(s: Schedule) -> None:
    outer, inner = s.split(s.get_loops("C")[0], [None, 4])
    s.loop_partition(inner, [1, None])
    s.parallel(outer)


@case("chain")
def _merge_all(s: Schedule) -> None:
    merged = s.merge(*(s.get_loops(block)[0] for block in "BCD"))
    s.parallel(merged)


@case("chain")
def _merge_whole_nests(s: Schedule) -> None:
    merged = s.merge(*(s.get_loops(block)[1] for block in "BCD"))
    outer, _ = s.split(merged, [None, 5])
    s.reorder(outer, s.get_loops("B")[0])


@case("matmul_relu", "dynamic")
def _merge_a_reduction_with_its_reader(s: Schedule) -> None:
    s.merge(*(s.get_loops(block)[0] for block in ("Y", "C") if block in blocks(s)))


@case("matmul_relu")
def _merge_parts_again(s: Schedule) -> None:
    i, _ = s.get_loops("C")
    s.loop_partition(i, [6, None])
    s.merge(*(s.get_loops(block)[0] for block in ("C_i0", "C_i1")))


@case("matmul_relu", "chain", "conv", "transpose", "dynamic")
def _bind_blocks_and_threads(s: Schedule) -> None:
    for block in blocks(s):
        i, j, *_ = s.get_loops(block)
        i0, i1 = s.split(i, [None, 4])
        s.bind(i0, "blockIdx.x")
        s.bind(i1, "vthread")
        s.bind(j, "threadIdx.x")


@case("chain", "matmul_relu", "bmm")
def _unit_loops(s: Schedule) -> None:
    block = blocks(s)[-1]
    outer = s.add_unit_loop(s.get_loops(block)[0])
    inner = s.add_unit_loop(block)
    s.reorder(inner, s.get_loops(block)[1])
    s.fuse(*s.get_loops(block)[1:3])
    s.bind(outer, "blockIdx.x")


@case("matmul_relu", "bmm", "transpose", "dynamic", "conv")
def _iterators_the_other_way_round(s: Schedule) -> None:
    for block in blocks(s):
        op = s.get(s.get_block(block))
        assert isinstance(op, BlockOp)
        s.reorder_block_iter_var(block, list(reversed(range(len(op.iter_vars)))))
    if len(blocks(s)) > 1:
        s.compute_at(blocks(s)[0], s.get_loops(blocks(s)[-1])[0])


@case("matmul_relu")
def _notes(s: Schedule) -> None:
    i, j, _ = s.get_loops("Y")
    s.annotate(i, "outer", [1, "x", True, 0.1, [-2]])
    s.annotate(j, "outer", 3)
    s.annotate("Y", "note", False)
    s.annotate("Y", "note", 1e-30)
    _, i1 = s.split(i, [None, 4])
    s.reorder(j, i1)
    s.unannotate(j, "outer")
    s.annotate(i1, "mine", "text")


@pytest.mark.parametrize(("name", "label", "steps"), CASES, ids=[f"{label}-{name}" for name, label, _ in CASES])
def test_loop_shapes(name: str, label: str, steps: Steps):
    module = weft.parse(PROGRAMS[name].text)
    sch = Schedule(module)
    steps(sch)
    assert not weft.structural_equal(sch.mod, module)
    check_schedule(module, sch)


def notes(s: Schedule, block: str) -> list[dict[str, str]]:
    return [{key: str(value) for key, value in s.get(loop).attributes.items()} for loop in s.get_loops(block)]


def test_where_notes_stay():
    s = Schedule(weft.parse(PROGRAMS["matmul_relu"].text))
    i, j, _ = s.get_loops("Y")
    s.annotate(i, "a", 1)
    s.annotate(j, "a", 2)
    s.annotate(j, "b", "x")
    s.split(i, [None, 2])
    assert notes(s, "Y") == [{"a": "1 : i64"}, {}, {"a": "2 : i64", "b": '"x"'}, {}]
    i0, i1, j, _ = s.get_loops("Y")
    fused = s.fuse(i1, j)
    assert notes(s, "Y") == [{"a": "1 : i64"}, {"a": "2 : i64", "b": '"x"'}, {}]
    s.fuse(i0, fused)
    assert notes(s, "Y") == [{"a": "1 : i64", "b": '"x"'}, {}]
    s.loop_partition(s.get_loops("Y")[0], [50, None])
    assert (
        notes(s, "Y_i0_i1_j_fused_fused0") == notes(s, "Y_i0_i1_j_fused_fused1") == [{"a": "1 : i64", "b": '"x"'}, {}]
    )
    s.annotate("C", "note", True)
    c = s.get_loops("C")[0]
    s.tile(c, factors=[4])
    assert str(s.get(s.get_block("C")).attributes["note"]) == "true"


def test_merged_loops_keep_the_notes_of_all():
    s = Schedule(weft.parse(PROGRAMS["chain"].text))
    loops = [s.get_loops(block)[0] for block in "BCD"]
    for at, loop in enumerate(loops):
        s.annotate(loop, "who", at)
        s.annotate(loop, f"loop{at}", at)
    s.merge(*loops)
    assert notes(s, "B")[0] == {"who": "0 : i64", "loop0": "0 : i64", "loop1": "1 : i64", "loop2": "2 : i64"}


@pytest.mark.parametrize("primitive", ["merge", "loop_partition"])
def test_handles_of_loops_that_are_gone(primitive: str):
    s = Schedule(weft.parse(PROGRAMS["chain"].text))
    (i, inner), other = s.get_loops("B"), s.get_loops("C")[0]
    block = s.get_block("B")
    if primitive == "merge":
        s.merge(i, other)
        gone = [i, other]
        s.get(block)
        s.get(inner)
    else:
        s.loop_partition(i, [4, None])
        gone = [i, inner]
        with pytest.raises(weft.CompileError, match=r"expired handle %b: the block .* get it again with get_block"):
            s.get_loops(block)
        with pytest.raises(weft.CompileError, match=r"unknown block 'B' \(known: 'B_i0', 'B_i1', "):
            s.get_block("B")
    for handle in gone:
        with pytest.raises(weft.CompileError, match=r"expired handle %\w+: the loop .* get it again with get_loops"):
            s.parallel(handle)


def test_names_of_parts_are_unique():
    text = PROGRAMS["chain"].text.replace('block "D"', 'block "B_i0"')
    s = Schedule(weft.parse(text))
    s.loop_partition(s.get_loops("B")[0], [4, None])
    assert blocks(s) == ["B_i0_1", "B_i1", "C", "B_i0"]
    check_schedule(weft.parse(text), s)


def test_threads_in_text_read_back():
    s = Schedule(weft.parse(PROGRAMS["chain"].text))
    s.bind(s.get_loops("B")[0], "threadIdx.z")
    s.bind(s.get_loops("B")[0], "threadIdx.z")
    loop = s.get(s.get_loops("B")[0])
    assert isinstance(loop, ForOp) and loop.thread_axis is not None and loop.thread_axis.data == "threadIdx.z"


@pytest.mark.parametrize("shape", [(4, 0), (0, 4), (0, 0)], ids=str)
def test_loops_of_no_iterations_fuse(shape: tuple[int, int]) -> None:
    A = te.placeholder(shape, "float32", name="A")
    module = te.create_func([A, te.compute(shape, lambda i, j: A[i, j] + 1, name="B")])
    sch = Schedule(module)
    sch.fuse(*sch.get_loops("B"))
    check_schedule(module, sch)
