"""Distribution of loops over several nests."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import Access, accesses
from weft.analysis.dependence import conflict_between
from weft.analysis.sets import NotProved
from weft.dialects.aliasing import may_overlap
from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.nest_builders import empty_copy


def distribute_loops(function: FuncOp) -> None:
    """Give each block of a function a separate nest, if that preserves the order of dependent instances.

    ```mlir
    tir.for %i in 8 { tir.block "A" ...  tir.block "B" ... }
    // becomes
    tir.for %i in 8 { tir.block "A" ... }  tir.for %i in 8 { tir.block "B" ... }
    ```
    A loop is split unless an access after the split, in one iteration, and one before it, in a later iteration, may
    touch the same element. Nests keep their order.
    """
    _distribute(function.body.block)


def _distribute(block: Block) -> None:
    for loop in [op for op in block.ops if isinstance(op, ForOp)]:
        _distribute(loop.body.block)
        parts = [op for op in loop.body.block.ops if isinstance(op, ForOp | BlockOp)]
        if len(parts) > 1 and len(parts) == len(list(loop.body.block.ops)):
            _cut(loop, parts)


def _cut(loop: ForOp, parts: Sequence[Operation]) -> None:
    found = [accesses(part) for part in parts]
    joined = [False] * len(parts)
    for first in range(len(parts)):
        for second in range(first + 1, len(parts)):
            if not all(joined[first + 1 : second + 1]) and _runs_back(loop, found[second], found[first]):
                joined[first + 1 : second + 1] = [True] * (second - first)
    starts = [at for at in range(1, len(parts)) if not joined[at]]
    for start in reversed(starts):
        behind = parts[start : next((s for s in starts if s > start), len(parts))]
        copy = empty_copy(loop, loop.extent, loop.induction_variable.name_hint)
        Rewriter.insert_op(copy, InsertPoint.after(loop))
        for op in behind:
            op.detach()
            copy.body.block.add_op(op)
        loop.induction_variable.replace_uses_with_if(
            copy.induction_variable, lambda use, copy=copy: copy.is_ancestor(use.operation)
        )


def _runs_back(loop: ForOp, later: Sequence[Access], earlier: Sequence[Access]) -> bool:
    for first in later:
        for second in earlier:
            if not (first.is_write or second.is_write):
                continue
            if first.buffer is not second.buffer:
                if may_overlap(first.buffer, second.buffer):
                    return True
                continue
            shared = first.loops[: first.loops.index(loop)]
            try:
                if conflict_between(first, second, shared, earlier=[loop]) is not None:
                    return True
            except NotProved:
                return True
    return False
