"""tir-hoist-prefetches: hoist prefetches out of unrolled loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from xdsl.dialects.func import FuncOp
from xdsl.rewriter import Rewriter

from weft.analysis.index import Index, RangeOf
from weft.dialects.low_access import PrefetchOp
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.dialects.traversal import operations_of
from weft.passes.index_builders import erase_if_unused, index_before, insert_before
from weft.passes.tir.tir_pass import FunctionPass, remembered_ranges
from weft.support.statistics import Statistic

_HOISTED: Final = Statistic("tir-hoist-prefetches", "prefetches-hoisted", "prefetches that left unrolled loops")


@dataclass(frozen=True)
class HoistPrefetchesPass(FunctionPass):
    """Move each `low.prefetch` out of the unrolled loops around it whose iterations all prefetch the same elements.

    ```mlir
    tir.for %i in 6 unrolled { tir.for %j in 4 unrolled {
      %p = affine.apply affine_map<(d0, d1) -> (d0 * 64 + d1 * 16 + 256)> (%k, %j)
      low.prefetch %B[%p] {lanes = 16} ... } }
    // becomes
    %p = affine.apply affine_map<(d0) -> (d0 * 64 + 256)> (%k)
    low.prefetch %B[%p] {lanes = 64}
    tir.for %i in 6 unrolled { tir.for %j in 4 unrolled { ... } }
    ```
    Loops in between must prefetch consecutive elements, like `%j` here. Prefetches under conditions stay.

    Requires: flat buffers (`tir-flatten`), and vectors in place of vectorized loops (`tir-lower-vectorized`).

    Leaves: the same, with fewer prefetches.
    """

    name = "tir-hoist-prefetches"

    def rewrite(self, function: FuncOp) -> None:
        ranges = remembered_ranges()
        for prefetch in operations_of(function, PrefetchOp):
            hoist(prefetch, ranges)


def hoist(prefetch: PrefetchOp, ranges: RangeOf) -> None:
    place, lanes = Index.of(prefetch.index).simplified(ranges), prefetch.lanes.value.data
    goal: tuple[ForOp, Index, int] | None = None
    loop = prefetch.parent_op()
    while isinstance(loop, ForOp) and loop.kind.data is LoopKind.UNROLLED and isinstance(loop.extent, int):
        step = place.coefficient(loop.induction_variable)
        place -= Index({loop.induction_variable: step})
        if step not in (0, lanes) or any(loop.is_ancestor(v.owner) for v in (prefetch.buffer, *place.values())):
            break
        if step == 0:
            goal = loop, place, lanes
        else:
            lanes *= loop.extent
        loop = loop.parent_op()
    if goal is None:
        return
    _HOISTED.add()
    loop, place, lanes = goal
    new = PrefetchOp(prefetch.buffer, [index_before(place, loop)], lanes, for_write=prefetch.for_write is not None)
    insert_before(loop, [new])
    index = prefetch.index
    Rewriter.erase_op(prefetch)
    erase_if_unused([index])
