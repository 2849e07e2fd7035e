"""Features of kernels: launches, threads, memories of a device, and what a warp accesses at a time."""

from __future__ import annotations

import pytest

import weft
from weft import te
from weft.support.errors import ScheduleError
from weft.support.target import Target
from weft.tuning.features import Assessment, Counts, counts_of

TARGET = Target.parse("cuda -arch=sm_80")
ROWS, COLUMNS = 64, 128


def copy(transposed: bool = False) -> weft.Schedule:
    a = te.placeholder((COLUMNS, ROWS) if transposed else (ROWS, COLUMNS), "float32", name="A")
    b = te.compute((ROWS, COLUMNS), lambda i, j: a[j, i] if transposed else a[i, j], name="B")
    return weft.Schedule(te.create_func([a, b]))


def bound(sch: weft.Schedule, threads: int = COLUMNS) -> Counts:
    i, j = sch.get_loops("B")[:2]
    outer, inner = sch.split(j, [None, threads])
    sch.bind(i, "blockIdx.y")
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    return counts_of(sch.mod, TARGET)


def test_threads_and_sectors() -> None:
    found = bound(copy())
    assert (found.launches, found.block_threads, found.device_threads) == (1, COLUMNS, ROWS * COLUMNS)
    # 32 neighbours access 128 bytes: four sectors to load, four to store.
    assert found.sectors == 2 * ROWS * COLUMNS * 4 / 32 and found.scalar_loads == ROWS * COLUMNS
    assert bound(copy(transposed=True)).sectors == ROWS * COLUMNS * (4 + 32) / 32
    # Half a warp loads as much with half of the threads.
    assert bound(copy(), 16).sectors == found.sectors and bound(copy(), 16).block_threads == 16
    assert found.distinct_bytes == 2 * 4 * ROWS * COLUMNS and not found.shared_bytes and not found.cycles


def test_vectors() -> None:
    sch = copy()
    i, j = sch.get_loops("B")
    outer, lanes = sch.split(j, [None, 4])
    sch.vectorize(lanes)
    sch.bind(i, "blockIdx.x")
    sch.bind(outer, "threadIdx.x")
    found = counts_of(sch.mod, TARGET)
    assert (found.vector_loads, found.vector_stores) == (ROWS * COLUMNS / 4,) * 2 and not found.scalar_loads
    assert found.sectors == 2 * ROWS * COLUMNS * 4 / 32


@pytest.mark.parametrize(("width", "ways"), [(32, 32), (33, 1)])
def test_banks_of_shared_memory(width: int, ways: int) -> None:
    """Each thread has a row: those of 32 words begin in one bank, a word more spreads them."""
    a = te.placeholder((32, width), "float32", name="A")
    b = te.compute((width, 32), lambda i, j: a[j, i], name="B")
    sch = weft.Schedule(te.create_func([a, b]))
    i, j = sch.get_loops("B")
    block = sch.add_unit_loop(i)
    sch.bind(block, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    fetch = sch.cache_read("B", 0, "shared")
    sch.compute_at(fetch, block)
    sch.bind(sch.get_loops(fetch)[1], "threadIdx.x")
    found = counts_of(sch.mod, TARGET)
    assert found.shared_bytes == 4 * 32 * width and not found.barriers
    assert found.shared_waves == 2 * width * ways


def test_registers() -> None:
    a, k = te.placeholder((ROWS, COLUMNS), "float64", name="A"), te.reduce_axis((0, COLUMNS), name="k")
    program = te.create_func([a, te.compute((ROWS,), lambda i: te.sum(a[i, k], axis=k), name="S")])

    def kept(rows: int) -> weft.Schedule:
        sch = weft.Schedule(program)
        i, k = sch.get_loops("S")
        write = sch.cache_write("S", 0, "local")
        outer, inner = sch.split(i, [None, rows])
        sch.reorder(outer, k, inner)
        sch.bind(outer, "threadIdx.x")
        sch.reverse_compute_at(write, outer)
        sch.decompose_reduction("S", k)
        return sch

    assert [counts_of(kept(rows).mod, TARGET).registers for rows in (1, 8)] == [2, 16]
    few = Target.parse("cuda -arch=sm_80 -registers-per-thread=4")
    assess = Assessment(few)
    assess(kept(4).mod)  # the default schedule may keep 8 words
    assess(kept(4).mod)
    with pytest.raises(ScheduleError, match=r"(?s)fits its registers.*keeps 16 words, target cuda has room for 8"):
        assess(kept(8).mod)
    with pytest.raises(ScheduleError, match="has room for 4"):
        assess = Assessment(few)
        assess(kept(1).mod), assess(kept(8).mod)


def test_what_cannot_be_lowered_has_no_features() -> None:
    assert counts_of(copy().mod, TARGET) == Counts()
    with pytest.raises(ScheduleError, match="128 threads in a block, target cuda allows 64"):
        sch = copy()
        sch.bind(sch.get_loops("B")[1], "threadIdx.x")
        counts_of(sch.mod, Target.parse("cuda -arch=sm_80 -max-threads-per-block=64"))
