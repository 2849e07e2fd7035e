"""tir-place-buffers: move temporaries into loops."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from xdsl.dialects import memref
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from weft.analysis.accesses import Access, accesses
from weft.analysis.independence import is_private
from weft.dialects.tir import ForOp
from weft.dialects.traversal import operations_of
from weft.passes.index_builders import insert_at_start
from weft.passes.tir.tir_pass import TirPass


@dataclass(frozen=True)
class PlaceBuffersPass(TirPass):
    """Move each `memref.alloc` into the innermost loop around all its uses to which it is private.

    ```mlir
    %t = memref.alloc() : memref<8x64xf32>
    tir.for %i in 8 { tir.for %j in 64 { WRITE %t[%i, %j] }  tir.for %j in 64 { READ %t[%i, %j] } }
    // becomes
    tir.for %i in 8 { %t = memref.alloc() : memref<8x64xf32>  ... }
    ```
    A buffer is private if integer sets prove that every element that an iteration reads was written earlier in it. Then
    iterations may run at once, and `tir-compact-buffers` shrinks the buffer to one iteration. `parallel` and
    `vectorize` require the same, so their loops get private copies here.

    Requires: block loops.

    Leaves: block loops, with temporaries inside of the loops to which they are private.
    """

    name = "tir-place-buffers"

    def rewrite(self, function: FuncOp) -> None:
        allocations = operations_of(function, memref.AllocOp)
        candidates = [alloc for alloc in allocations if _common_loops(alloc)]
        found = accesses(function) if candidates else []
        for alloc in candidates:
            loop = private_loop(alloc, found)
            if loop is not None:
                insert_at_start(loop.body.block, alloc)


def private_loop(alloc: memref.AllocOp, found: list[Access]) -> ForOp | None:
    """The innermost loop below `alloc` to which its buffer is private."""
    for loop in reversed(_common_loops(alloc)):
        if is_private(alloc.memref, loop, found):
            return loop
    return None


def _common_loops(alloc: memref.AllocOp) -> list[ForOp]:
    chains = [_loops_between(alloc.parent, use.operation) for use in alloc.memref.uses]
    shared = takewhile(lambda loops: all(loop is loops[0] for loop in loops), zip(*chains, strict=False))
    return [loops[0] for loops in shared]


def _loops_between(outer: Block | None, op: Operation) -> list[ForOp]:
    loops: list[ForOp] = []
    inner: Operation | None = op
    while inner is not None and inner.parent is not outer:
        inner = inner.parent_op()
        if type(inner) is ForOp:
            loops.append(inner)
    return loops[::-1]
