"""Fusion of nested loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import domain_of
from weft.analysis.coverage import repeated_instance
from weft.analysis.dependence import or_undecided
from weft.analysis.index import Index
from weft.analysis.integer_ranges import is_not_negative
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import IterKind, LoopKind
from weft.passes.index_builders import detached_ops, index_op, materialize
from weft.passes.schedule.checks import two_iterations
from weft.passes.schedule.dominance import outermost_place
from weft.passes.schedule.nest_builders import new_loop, replace_loop_value
from weft.passes.schedule.primitive import Plan, Primitive, operation_text
from weft.passes.schedule.reorder import require_chain, sink_indices
from weft.support.errors import Violation


@dataclass(frozen=True)
class Fuse(Primitive, Plan):
    """Fuse nested loops into one whose extent is the product of theirs; a single loop becomes a loop of its extent.

    Requirements:
    1. the loops form a perfect nest in the given order
    2. the loops are serial: a single loop, which becomes serial, is not bound to threads
    3. the extent of an inner loop does not depend on an outer one
    4. no loop that runs a reduction again is fused with a loop of it: from the init

    Old loop values become quotients and remainders of the new one, also by run-time extents; such an extent of an inner
    loop is clamped at 0 if it may be negative. Annotations are joined; the outer loop decides for a common key.

    ```mlir
    tir.for %i in 4 { tir.for %j in 8 { tir.block "C" iters(...) = [%i, %j] {...} } }
    // fuse %i, %j
    tir.for %i_j_fused in 32 { tir.block "C" iters(...) = [%i_j_fused floordiv 8, %i_j_fused mod 8] {...} }
    ```
    """

    loops: tuple[ForOp, ...]

    def plan(self) -> Fuse:
        if len(self.loops) != 1 or self.loops[0].kind.data is LoopKind.THREAD_BINDING:
            require_chain(self, self.loops, 1)
        outer_values = [loop.induction_variable for loop in self.loops]
        for loop in self.loops[1:]:
            if not isinstance(loop.extent, int) and Index.of(loop.extent).depends_on(outer_values):
                self.refuse(3, f"the extent of {operation_text(loop)} depends on an outer loop", loop)
        self.require(4, repeated_reduction(self.loops), self.loops[0])
        return self

    def rewrite(self) -> tuple[Operation, ...]:
        outermost = self.loops[0]
        factors = [outermost.extent, *(self._not_negative(loop.extent) for loop in self.loops[1:])]
        extent = factors[0]
        for factor in factors[1:]:
            extent = self._product(extent, factor)
        hint = "_".join(loop.induction_variable.name_hint or "i" for loop in self.loops) + "_fused"
        fused = new_loop(extent, hint, outermost)
        for loop in reversed(self.loops):
            fused.attributes.update(loop.attributes)
        sink_indices(self.loops)
        fused.body.block.add_ops(detached_ops(self.loops[-1].body.block))
        Rewriter.insert_op(fused, InsertPoint.before(outermost))
        self._delinearize(fused, factors)
        Rewriter.erase_op(outermost)
        return (fused,)

    def _not_negative(self, extent: int | SSAValue) -> int | SSAValue:
        """Clamped at 0, because two negative extents have a positive product."""
        if isinstance(extent, int) or is_not_negative(Index.of(extent)):
            return extent
        place = outermost_place(self.loops[0], Index.of(extent))
        zero = index_op(Index({}))
        clamped = arith.MaxSIOp(extent, zero.results[0])
        Rewriter.insert_op([zero, clamped], place)
        return clamped.result

    def _product(self, a: int | SSAValue, b: int | SSAValue) -> int | SSAValue:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        # The extents must be known there, not only the values that they are computed from.
        place = outermost_place(self.loops[0], Index({side: 1 for side in (a, b) if isinstance(side, SSAValue)}))
        values: list[SSAValue] = []
        for side in (a, b):
            value, operations = materialize(Index.of(side)) if isinstance(side, int) else (side, [])
            Rewriter.insert_op(operations, place)
            values.append(value)
        product = arith.MuliOp(values[0], values[1])
        Rewriter.insert_op(product, place)
        return product.result

    def _delinearize(self, fused: ForOp, factors: Sequence[int | SSAValue]) -> None:
        """Replace loop values by remainders, innermost first; the quotient is passed outward."""
        body = fused.body.block
        first = body.first_op
        rest: Index = Index.of(fused.induction_variable)
        for loop, factor in zip(reversed(self.loops[1:]), reversed(factors[1:]), strict=True):
            if isinstance(factor, int):
                # Without iterations any value is correct.
                replace_loop_value(loop.induction_variable, rest if 0 in factors else rest % factor, body, first)
                rest = rest if 0 in factors else rest // factor
                continue
            value, operations = materialize(rest)
            remainder = arith.RemSIOp(value, factor)
            quotient = arith.DivSIOp(value, factor)
            Rewriter.insert_op([*operations, remainder, quotient], InsertPoint(body, first))
            replace_loop_value(loop.induction_variable, Index.of(remainder.result), body, first)
            rest = Index.of(quotient.result)
        replace_loop_value(self.loops[0].induction_variable, rest, body, first)


@or_undecided
def repeated_reduction(loops: Sequence[ForOp]) -> Violation | None:
    """A loop of a reduction that loops outside of it run again from the init."""
    for block in loops[-1].walk():
        if not isinstance(block, BlockOp) or block.init is None:
            continue
        domain = domain_of(block)
        steps = zip(domain.bindings, block.kinds, strict=True)
        reduced = {value for index, kind in steps if kind is IterKind.REDUCE for value in index.sources()}
        first = next((at for at, loop in enumerate(loops) if loop.induction_variable in reduced), 0)
        if first == 0 or loops[0] not in domain.loops:
            continue
        outside = list(domain.loops[: domain.loops.index(loops[0])])
        if any(loop.induction_variable in reduced for loop in outside):
            continue  # the same reduction
        repeated = repeated_instance(domain, outside)
        if repeated is not None:
            same, name = f'run the same instance of the reduction "{block.label}"', operation_text(loops[first])
            return two_iterations(
                repeated,
                domain.loops,
                lambda one, other, same=same: f"iterations {one} and {other} {same}, the second time from its start",
                legal=f"loops outside of {name} fused among themselves",
            )
    return None
