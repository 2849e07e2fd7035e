"""Splitting of a loop into nested loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import accesses, range_of
from weft.analysis.block_scopes import child_blocks, guards_of, why_opaque
from weft.analysis.index import Index
from weft.analysis.integer_ranges import assumptions_about
from weft.analysis.questions import Question
from weft.analysis.sets import NotProved
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.passes.index_builders import detached_ops, materialize
from weft.passes.schedule.dominance import outermost_place
from weft.passes.schedule.nest_builders import nest, new_loop, replace_loop_value, set_guards
from weft.passes.schedule.primitive import Plan, Primitive, operation_text
from weft.support.errors import Violation


def why_not_serial(loop: ForOp) -> Violation | None:
    """Only serial loops are restructured."""
    kind = loop.kind.data
    if kind is LoopKind.SERIAL:
        return None
    name = operation_text(loop)
    bound = f"bound to {loop.thread_axis.data}" if loop.thread_axis else kind.value
    return Violation(f"loop {name} is {kind.value}", legal=f"this step first, then loops of its result {bound}")


def always_divides(factor: int, extent: Index) -> bool:
    rest = extent % factor
    if rest.is_constant:
        return rest.constant == 0
    if not any(assumptions_about(value) for value in rest.values()):
        return False
    question = Question(rest.values())
    question.not_negative((rest - 1, "extent"))
    try:
        return question.is_empty()
    except NotProved:
        return False


def inferred_factor(primitive: Primitive, loop: ForOp, factors: Sequence[int]) -> int | None:
    """Requirements: 1, the loop is serial; 2, at most one factor is inferred (0) and none is negative."""
    primitive.require(1, why_not_serial(loop), loop)
    inferred = [at for at, factor in enumerate(factors) if factor == 0]
    if len(inferred) > 1 or any(factor < 0 for factor in factors) or not factors:
        detail = f"factors {list(factors)}: {len(inferred)} are inferred (None; 0 in IR)"
        primitive.refuse(
            2, Violation(detail, legal="at most one factor is inferred, every other factor at least 1"), loop
        )
    return inferred[0] if inferred else None


def unguarded_access(loop: ForOp) -> Operation | None:
    """Accesses outside of blocks cannot be guarded."""
    for access in accesses(loop):
        if not any(loop.is_ancestor(block) for block in access.blocks):
            return access.op
    return None


@dataclass(frozen=True)
class SplitPlan(Plan):
    """Extents are outermost first; one may be computed."""

    loop: ForOp
    extents: tuple[int | Index, ...]
    guarded: bool

    def rewrite(self) -> tuple[Operation, ...]:
        loop = self.loop
        hint = loop.induction_variable.name_hint or "i"
        extents: list[int | SSAValue] = []
        for extent in self.extents:
            if isinstance(extent, int):
                extents.append(extent)
            else:
                value, operations = materialize(extent)
                place = outermost_place(loop, extent)
                Rewriter.insert_op(operations, place)
                extents.append(value)
        loops = [new_loop(extent, f"{hint}{at}", loop) for at, extent in enumerate(extents)]
        loops[0].attributes.update(loop.attributes)
        operations = detached_ops(loop.body.block)
        outermost = nest(loops, operations)
        body = loops[-1].body.block
        first = body.first_op
        index = Index.of(loops[0].induction_variable)
        for new, extent in zip(loops[1:], extents[1:], strict=True):
            index = self._scaled(index, extent, body, first) + Index.of(new.induction_variable)
        bound = Index.of(loop.extent)
        Rewriter.insert_op(outermost, InsertPoint.before(loop))
        replace_loop_value(loop.induction_variable, index, body, first)
        if self.guarded:
            for block in child_blocks(loops[0]):
                set_guards(block, [*guards_of(block), (index.simplified(range_of), bound)])
        Rewriter.erase_op(loop)
        return tuple(loops)

    def _scaled(self, index: Index, extent: int | SSAValue, body: Block, before: Operation | None) -> Index:
        if isinstance(extent, int):
            return index * extent
        value, operations = materialize(index)
        product = arith.MuliOp(value, extent)
        Rewriter.insert_op([*operations, product], InsertPoint(body, before))
        return Index.of(product.result)


@dataclass(frozen=True)
class Split(Primitive):
    """Split a loop into nested loops whose extents are the factors; at most one factor (0) is inferred.

    Requirements:
    1. the loop is serial: not parallel, vectorized, unrolled or bound to threads
    2. at most one factor is inferred and the others are positive
    3. the factors cover the extent: their product is at least the extent
    4. all accesses inside the loop can be guarded: if the product may exceed the extent, they are in blocks, which get
       a guard, and `disable_predication` is not given

    The value of the loop becomes `(i0 * f1 + i1) * f2 + ...`. An extent that is known only at run time needs no guard
    if `tir.assume` states that it is a multiple. Annotations stay on the outermost new loop.

    ```mlir
    tir.for %j in 127 { tir.block "C" iters(%v: spatial<127>) = [%j] {...} }
    // split %j {factors = [0, 4]}
    tir.for %j0 in 32 { tir.for %j1 in 4 {
      tir.block "C" iters(%v: spatial<127>) = [%j0 * 4 + %j1] where [%j0 * 4 + %j1] < [127] {...} } }
    ```
    """

    loop: ForOp
    factors: tuple[int, ...]
    disable_predication: Attribute | None = None

    def plan(self) -> SplitPlan:
        inferred = inferred_factor(self, self.loop, self.factors)
        known = prod(factor for factor in self.factors if factor)
        extent = self.loop.extent
        if isinstance(extent, int):
            return self._static_plan(extent, known, inferred)
        if inferred is None:
            detail = f"factors {list(self.factors)} have product {known}, but the extent is only known at run time"
            self.refuse(3, Violation(detail, "not proved", legal="infer one factor: 0"), self.loop)
        divides = always_divides(known, Index.of(extent))
        if not divides:
            self._require_guardable()
        rest = (Index.of(extent) + (0 if divides else known - 1)) // known
        extents = tuple(rest if factor == 0 else factor for factor in self.factors)
        return SplitPlan(self.loop, extents, guarded=not divides)

    def _static_plan(self, extent: int, known: int, inferred: int | None) -> SplitPlan:
        factors = list(self.factors)
        if inferred is not None:
            factors[inferred] = -(-extent // known)
        total = prod(factors)
        if total < extent:
            detail = f"factors {factors} have product {total}, but the loop runs {extent} times: "
            lost = {"lost iteration": {self.loop.induction_variable.name_hint or "i": total}}
            legal = f"factors whose product is at least {extent}, or one of them inferred (None; 0 in IR)"
            violation = Violation(f"{detail}iteration {total} would be lost", counterexample=lost, legal=legal)
            self.refuse(3, violation, self.loop)
        if total > extent:
            self._require_guardable()
        return SplitPlan(self.loop, tuple(factors), guarded=total > extent)

    def _require_guardable(self) -> None:
        if isinstance(given := self.disable_predication, IntegerAttr) and given.value.data:
            detail = f"factors {list(self.factors)} may not divide the extent, and a guard is ruled out"
            self.refuse(
                4,
                Violation(detail, "not proved", legal="state with tir.assume that the product divides the extent"),
                self.loop,
            )
        access = unguarded_access(self.loop)
        if access is not None:
            detail = f"{access.name} is in no block inside the loop"
            self.require(4, why_opaque(access, f"{detail}, and"), access)
            self.refuse(4, detail, access)
