"""Primitives on blocks whose indices are other affine maps than an iterator a dimension: reshapes, reversals."""

from __future__ import annotations

import pytest
from index_map_programs import Shape, chain, stage
from schedule_checks import check_schedule

import weft
from weft import te

Buffer = tuple[str, Shape]
A, C = "A", "C"


def two(shape_a: Shape, extents: Shape, read: list[str], b: Shape, written: list[str],
        extents_c: Shape, read_b: list[str], c: Shape, written_c: list[str], guard: str = "") -> str:  # fmt: skip
    """B[written] = A[read]; C[written_c] = B[read_b]."""
    return chain(
        [
            stage("B", extents, ("A", shape_a), read, ("B", b), written, guard=guard),
            stage("C", extents_c, ("B", b), read_b, ("C", c), written_c),
        ],
        [("A", shape_a), ("C", c)],
        [("B", b)],
    )


ROWS = ["d0", "d1"]
MAPS = {
    "flatten": two([6, 8], [6, 8], ROWS, [48], ["d0 * 8 + d1"], [48], ["d0"], [48], ["d0"]),
    "unflatten": two([48], [48], ["d0"], [6, 8], ["d0 floordiv 8", "d0 mod 8"], [6, 8], ROWS, [6, 8], ROWS),
    "reshape": two([6, 8], [6, 8], ROWS, [6, 8], ROWS, [48], ["d0 floordiv 8", "d0 mod 8"], [48], ["d0"]),
    "join": two([48], [48], ["d0"], [48], ["d0"], [4, 12], ["d0 * 12 + d1"], [4, 12], ROWS),
    "reversed": two([12], [12], ["d0"], [12], ["11 - d0"], [12], ["11 - d0"], [12], ["d0"]),
    "blocked": two([7, 12], [7, 12], ROWS, [7, 3, 4], ["d0", "d1 floordiv 4", "d1 mod 4"],
                   [3, 7, 4], ["d1", "d0", "d2"], [3, 7, 4], ["d0", "d1", "d2"]),
    "unit": two([12], [12, 1], ["d0 + d1"], [1, 12], ["d1", "d0"], [1, 12, 1], ["d0", "d1"], [12], ["d1"]),
    "every second": two([12], [12], ["d0"], [24], ["d0 * 2 + 1"], [12], ["d0 * 2 + 1"], [12], ["d0"]),
    "pairs swapped": two([12], [12], ["d0"], [12], ["d0 floordiv 2 * 2 + 1 - d0 mod 2"], [12], ["d0"], [12], ["d0"]),
    "a part": two([12, 12], [12, 12], ROWS, [12, 12], ROWS, [5, 7], ["d0 + 3", "10 - d1"], [5, 7], ROWS),
    "every third": two([12], [12], ["d0"], [12], ["d0"], [4], ["d0 * 3 + 1"], [4], ["d0"]),
    "a row": two([4, 12], [4, 12], ROWS, [4, 12], ROWS, [12], ["2", "d0"], [12], ["d0"]),
    "padded layout": two([10], [12], ["d0 mod 10"], [3, 4], ["d0 floordiv 4", "d0 mod 4"],
                         [10], ["d0 floordiv 4", "d0 mod 4"], [10], ["d0"]),
    "dynamic": two(["n"], ["n"], ["d0"], ["n"], ["d0"], ["n"], ["d0"], ["n"], ["d0"]),
    "dynamic blocked": two([4, "n"], ["n", 4], ["d1", "d0"], ["n", 4], ["d0", "d1"], [4, "n"], ["d1", "3 - d0"],
                           [4, "n"], ROWS),
    "guarded": two([12], [12], ["d0"], [12], ["d0"], [9], ["d0"], [9], ["d0"], guard="where [%i0] < [10]"),
}  # fmt: skip


@pytest.mark.parametrize("name", MAPS)
def test_inline_producer(name: str) -> None:
    module = weft.parse(MAPS[name])
    sch = weft.Schedule(module)
    sch.compute_inline("B")
    check_schedule(module, sch, run=name in ("reshape", "dynamic blocked"))


@pytest.mark.parametrize("name", [name for name in MAPS if name != "guarded"])
def test_inline_consumer(name: str) -> None:
    module = weft.parse(MAPS[name])
    sch = weft.Schedule(module)
    sch.reverse_compute_inline("C")
    check_schedule(module, sch, run=name in ("a part", "padded layout"))
    needs_condition = name in ("a part", "every third", "a row", "padded layout")
    assert ("scf.if" in str(sch.mod)) == needs_condition, sch.mod


def test_inline_consumer_after_tiling() -> None:
    """The condition is on the loops as they are."""
    module = weft.parse(MAPS["a part"])
    sch = weft.Schedule(module)
    sch.tile(*sch.get_loops("B"), factors=[5, 4])
    sch.reverse_compute_inline("C")
    check_schedule(module, sch)


def test_inline_block_that_nothing_reads() -> None:
    stages = [
        stage("B", [12], ("A", [12]), ["d0"], ("B", [12]), ["d0"]),
        stage("C", [12], ("A", [12]), ["d0"], ("C", [12]), ["d0"]),
    ]
    module = weft.parse(chain(stages, [("A", [12]), ("C", [12])], [("B", [12])]))
    sch = weft.Schedule(module)
    sch.compute_inline("B")
    assert "%B" not in str(sch.mod) and '"B"' not in str(sch.mod)
    check_schedule(module, sch)


def loops(sch: weft.Schedule, block: str, depth: int) -> weft.LoopHandle:
    """The loop around a block at a depth, each split in two by a factor that need not divide."""
    parts = [part for loop in sch.get_loops(block) for part in sch.split(loop, [None, 5])]
    return parts[depth % len(parts)]


@pytest.mark.parametrize("depth", [0, -2, -1])
@pytest.mark.parametrize("name", [name for name in MAPS if name != "padded layout"])
def test_move_producer(name: str, depth: int) -> None:
    module = weft.parse(MAPS[name])
    sch = weft.Schedule(module)
    sch.compute_at("B", loops(sch, "C", depth))
    check_schedule(module, sch, run=name in ("reshape", "dynamic blocked") and depth == -1)


@pytest.mark.parametrize("name", [name for name in MAPS if name not in ("guarded", "a part", "every third", "a row")])
def test_move_consumer(name: str) -> None:
    module = weft.parse(MAPS[name])
    sch = weft.Schedule(module)
    sch.reverse_compute_at("C", sch.get_loops("B")[0])
    check_schedule(module, sch, run=name in ("unflatten", "padded layout"))


def test_move_producer_of_a_strided_window() -> None:
    """Of 2 * i for 6 values of i, every second row is needed; of a window of 3 there, all rows are."""
    for read, rows in ((["d0 * 2", "d1"], 6), (["d0 * 2 + 1", "d1 * 3"], 6), (["d0 * 2 + d1 mod 3", "d1"], 13)):
        text = two([25, 12], [25, 12], ROWS, [25, 12], ROWS, [12, 4], read, [12, 4], ROWS)
        module = weft.parse(text)
        sch = weft.Schedule(module)
        outer, _ = sch.split(sch.get_loops("C")[0], [None, 6])
        sch.compute_at("B", outer)
        assert sch.get(sch.get_loops("B")[1]).extent == rows
        check_schedule(module, sch, run=rows == 6)


COARSE = {
    # name: extent of B, domain of C, what C reads
    "repeated": ([12], [24, 3], ["d0 floordiv 2"]),
    "in turns": ([12], [40], ["d0 mod 12"]),
    "repeated in turns": ([12], [48], ["d0 floordiv 2 mod 12"]),
    "turns of repetitions": ([12], [100], ["d0 mod 24 floordiv 2"]),
    "between two": ([13], [24], ["(d0 + 1) floordiv 2"]),
    "turned": ([12], [31], ["11 - (d0 + 5) mod 12"]),
    "of two iterators": ([4, 3], [8, 9], ["d0 floordiv 2", "d1 mod 3"]),
}


@pytest.mark.parametrize("factor", [1, 3, 5])
@pytest.mark.parametrize("name", COARSE)
def test_move_consumer_that_reads_several_times(name: str, factor: int) -> None:
    """A consumer that tells only a quotient or a remainder of an iterator takes all values with that part."""
    shape, domain, read = COARSE[name]
    dims = [f"d{at}" for at in range(max(len(shape), len(domain)))]
    rows, result = dims[: len(shape)], dims[: len(domain)]
    module = weft.parse(two(shape, shape, rows, shape, rows, domain, read, domain, result))
    sch = weft.Schedule(module)
    outer, _ = sch.split(sch.get_loops("B")[0], [None, factor])
    sch.reverse_compute_at("C", outer)
    check_schedule(module, sch, run=factor == 5 and name in ("in turns", "between two"))


def test_consumer_of_several_rows_waits_for_the_last() -> None:
    """B[i // 2] and B[i // 2 + 1]: the second of them is not there yet when the first is."""
    stages = [
        stage("B", [14], ("A", [14]), ["d0"], ("B", [14]), ["d0"]),
        stage("C", [24, 2], ("B", [14]), ["d0 floordiv 2 + d1"], ("C", [24, 2]), ROWS),
    ]
    sch = weft.Schedule(weft.parse(chain(stages, [("A", [14]), ("C", [24, 2])], [("B", [14])])))
    with pytest.raises(weft.ScheduleError, match="requirement 4, the indices of its loads can be inverted"):
        sch.reverse_compute_at("C", sch.get_loops("B")[0])


GAPS = {
    # name: shape of B, domain of C, what C reads, rows that one of two outer iterations reads
    "window": ([36], [8, 2], ["d0 * 4 + d1"], 8),
    "steps of a window": ([70], [8, 3], ["d0 * 8 + d1 * 2"], 12),
    "reversed": ([36], [8, 2], ["35 - d0 * 4 - d1"], 8),
    "window in steps": ([90], [8, 2], ["d0 * 9 + d1 * 3"], 8),
    "most of a row": ([36], [8, 3], ["d0 * 4 + d1"], 12),
    "fewer in all": ([36], [8, 2], ["d0 * 3 + d1 * 2"], 12),
}


@pytest.mark.parametrize("name", GAPS)
@pytest.mark.parametrize("cached", [False, True])
def test_move_producer_of_windows_with_gaps(name: str, *, cached: bool) -> None:
    """Windows that are further apart than long: the rows between them are not computed, nor copied."""
    shape, domain, read, rows = GAPS[name]
    module = weft.parse(two(shape, shape, ["d0"], shape, ["d0"], domain, read, domain, ROWS))
    sch = weft.Schedule(module)
    outer, _ = sch.split(sch.get_loops("C")[0], [2, None])
    moved = sch.cache_read("C", 0, "global") if cached else sch.get_block("B")
    sch.compute_at(moved, outer)
    assert sch.get(sch.get_loops(moved)[1]).extent == rows
    check_schedule(module, sch, run=name == "window")


def test_windows_of_several_reads_have_gaps() -> None:
    """Two rows beside each other of every four, given by a read each; the border of the padding stays outside."""
    B = te.placeholder((40,), name="A")
    P = te.compute((40,), lambda i: B[i] * 2.0, name="P")

    def padded(i: te.Expr) -> te.Expr:
        return te.if_then_else(i >= 1, P[4 * i - 1], 0.0) + te.if_then_else(i < 10, P[4 * i], 1.0)

    module = te.create_func([B, te.compute((11,), padded, name="C")])
    sch = weft.Schedule(module)
    outer, _ = sch.split(sch.get_loops("C")[0], [None, 4])
    sch.compute_at("P", outer)
    assert sch.get(sch.get_loops("P")[1]).extent == 8
    check_schedule(module, sch)


def test_move_producer_that_is_read_coarser() -> None:
    """B[i floordiv 2] and its neighbour: the range starts at a quotient of the outer loop."""
    for factor, rows in ((8, 5), (4, 3), (3, 3)):
        stages = [
            stage("B", [14], ("A", [14]), ["d0"], ("B", [14]), ["d0"]),
            stage("C", [24, 2], ("B", [14]), ["d0 floordiv 2 + d1"], ("C", [24, 2]), ROWS),
        ]
        module = weft.parse(chain(stages, [("A", [14]), ("C", [24, 2])], [("B", [14])]))
        sch = weft.Schedule(module)
        outer, _ = sch.split(sch.get_loops("C")[0], [None, factor])
        sch.compute_at("B", outer)
        assert sch.get(sch.get_loops("B")[1]).extent == rows
        check_schedule(module, sch, run=False)


@pytest.mark.parametrize("factor", [4, 6, 5])
def test_move_blockized_producer(factor: int) -> None:
    module = weft.parse(MAPS["a part"])
    sch = weft.Schedule(module)
    rows, _ = sch.get_loops("B")
    _, inner = sch.split(rows, [None, 4])
    blockized = sch.blockize(inner)
    outer, _ = sch.split(sch.get_loops("C")[0], [None, factor])
    sch.compute_at(blockized, outer)
    check_schedule(module, sch, run=factor == 5)


def test_move_blockized_consumer() -> None:
    module = weft.parse(MAPS["reshape"])
    sch = weft.Schedule(module)
    _, inner = sch.split(sch.get_loops("C")[0], [None, 8])
    blockized = sch.blockize(inner)
    sch.reverse_compute_at(blockized, sch.get_loops("B")[0])
    check_schedule(module, sch)
