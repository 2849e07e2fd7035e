"""compute_at of producers that store at a constant index: dimensions of extent 1."""

from __future__ import annotations

import pytest
from schedule_checks import check_schedule

import weft
from weft import te


def columns(batch: int) -> weft.Schedule:
    """Sums over windows, whose terms `reindex` copies: the batch of 1 leaves a dimension with the index 0."""
    X = te.placeholder((batch, 9), "float32", name="X")
    k = te.reduce_axis((0, 3), name="k")
    Y = te.compute((batch, 7), lambda n, x: te.sum(X[n, x + k], axis=k), name="Y")
    return weft.Schedule(te.create_func([X, Y], name="windows"))


@pytest.mark.parametrize("batch", [1, 2])
def test_a_copy_with_a_dimension_of_extent_1(batch: int) -> None:
    sch = columns(batch)
    before = sch.mod.clone()
    copy = sch.reindex("Y", ("read", 0))
    sch.transform_block_layout(copy, lambda n, x, k: (n, k, x))
    _, x, _ = sch.get_loops("Y")
    sch.compute_at(copy, x)
    check_schedule(before, sch)


def test_an_index_of_two_iterators() -> None:
    sch = columns(2)
    before = sch.mod.clone()
    copy = sch.reindex("Y", ("read", 0))
    sch.transform_layout("Y", ("read", 0), lambda n, x, k: (n * 7 + x, k))
    sch.compute_at(copy, sch.get_loops("Y")[1])
    check_schedule(before, sch)
