"""Shared parts of hand-written schedules: vectorisation and register tiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir.affine import AffineExpr

from weft.schedule.schedule import BlockHandle, LoopHandle, Schedule
from weft.support.target import Target


def lanes_of(target: Target, dtype: str = "float32") -> int:
    """Elements per vector register."""
    return target.vector_bytes // np.dtype(dtype).itemsize


def in_lanes(sch: Schedule, loop: LoopHandle, width: int) -> LoopHandle:
    """Vectorise a loop, `width` iterations at a time. Returns the loop over vectors."""
    vectors, lanes = sch.split(loop, factors=[None, width])
    sch.vectorize(lanes)
    return vectors


def in_registers(sch: Schedule, block: BlockHandle, loops: int, lanes: int) -> None:
    """Keep the results of a block's innermost `loops` in registers: vectors along the last, the others unrolled."""
    *rows, columns = sch.get_loops(block)[-loops:]
    for loop in (*rows, in_lanes(sch, columns, lanes)):
        sch.unroll(loop)


def reduce_in_lanes(sch: Schedule, block: str, width: int) -> None:
    """Reduce the innermost loop of a block in `width` lanes, which are combined at the end."""
    outer, lanes = sch.split(sch.get_loops(block)[-1], factors=[None, width])
    sch.annotate(lanes, "reassociate", True)
    sch.decompose_reduction(block, outer)
    sch.vectorize(lanes)


def lie_in_panels(sch: Schedule, copy: BlockHandle, dimension: int, width: int) -> None:
    """Store a copy in panels of `width` elements of a dimension; the last one is padded with zeros."""

    def panels(*indices: AffineExpr) -> Sequence[object]:
        others = [index for at, index in enumerate(indices) if at != dimension]
        return indices[dimension] // width, *others, indices[dimension] % width

    sch.transform_layout(copy, ("write", 0), panels, pad_value=0)
