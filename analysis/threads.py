"""Which loops are bound to which thread axis?"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation

from weft.analysis.structure import ancestors
from weft.dialects.tir import ForOp

VIRTUAL = "vthread"
"""The axis that may be bound more than once: each such loop has virtual threads of its own."""


def loops_of_axis(root: Operation, axis: str) -> Iterator[ForOp]:
    """The loops that are, or lie in, `root` and are bound to `axis`."""
    for op in root.walk():
        if isinstance(op, ForOp) and op.thread_axis is not None and op.thread_axis.data == axis:
            yield op


def nested_binding(loop: ForOp, axis: str) -> ForOp | None:
    """Another loop, around or inside of `loop`, that is bound to `axis`.

    A thread has one index on an axis: of two nested loops over it, only the iterations in which both are equal run.
    """
    if axis == VIRTUAL:
        return None
    for parent in ancestors(loop):
        if isinstance(parent, ForOp) and parent.thread_axis is not None and parent.thread_axis.data == axis:
            return parent
    return next((other for other in loops_of_axis(loop, axis) if other is not loop), None)
