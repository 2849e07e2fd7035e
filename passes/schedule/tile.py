"""Tiling of perfect nests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from weft.analysis.accesses import accesses
from weft.analysis.dependence import conflict_between, conflicting_pairs, is_accumulation, or_undecided
from weft.analysis.index import Index
from weft.dialects.tir import ForOp
from weft.passes.schedule.primitive import Plan, Primitive, operation_text
from weft.passes.schedule.reorder import permute_chain, require_chain
from weft.passes.schedule.split import Split, always_divides, unguarded_access
from weft.support.errors import Violation


@dataclass(frozen=True)
class Tile(Primitive, Plan):
    """Split each loop of a perfect nest by its factor, and move the inner loops inside all outer ones.

    Requirements:
    1. the loops form a perfect nest in the given order
    2. the loops are serial
    3. one positive factor a loop
    4. dependences stay forward: inside a tile
    5. all accesses inside the loops can be guarded: if a factor does not divide its extent, they are in blocks

    ```mlir
    tir.for %i in 128 { tir.for %j in 128 { ... } }
    // tile %i, %j {factors = [32, 8]}
    tir.for %i0 in 4 { tir.for %j0 in 16 { tir.for %i1 in 32 { tir.for %j1 in 8 { ... } } } }
    ```
    """

    loops: tuple[ForOp, ...]
    factors: tuple[int, ...]

    def plan(self) -> Tile:
        require_chain(self, self.loops, 1)
        if len(self.factors) != len(self.loops) or any(factor < 1 for factor in self.factors):
            self.refuse(3, f"factors {list(self.factors)} for {len(self.loops)} loops", self.loops[0])
        self.require(4, why_not_tileable(self.loops), self.loops[0])
        for loop, factor in zip(self.loops, self.factors, strict=True):
            divides = always_divides(factor, Index.of(loop.extent))
            access = None if divides else unguarded_access(loop)
            if access is not None:
                self.refuse(5, f"{access.name} is in no block inside {operation_text(loop)}", access)
        return self

    def rewrite(self) -> tuple[Operation, ...]:
        pairs = [Split(loop, (0, factor)).apply() for loop, factor in zip(self.loops, self.factors, strict=True)]
        chain = [loop for pair in pairs for loop in pair if isinstance(loop, ForOp)]
        permute_chain(chain, [*chain[0::2], *chain[1::2]])
        return (*chain[0::2], *chain[1::2])


@or_undecided
def why_not_tileable(loops: Sequence[ForOp]) -> Violation | None:
    """A dependence is carried forward by one loop and backward by another."""
    found = accesses(loops[0])
    for first, second in conflicting_pairs(found):
        if is_accumulation(first, second):
            continue
        outer = first.loops[: first.loops.index(loops[0])]
        for at, p in enumerate(loops):
            for q in loops[at + 1 :]:
                for earlier, later in ((first, second), (second, first)):
                    conflict = conflict_between(earlier, later, [*outer, *loops[:at]], earlier=[p], later=[q])
                    if conflict is not None:
                        return conflict.violation("and could now run first")
    return None
