"""Decomposition of padded copies into border and interior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import affine, arith, memref, scf
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import condition_of, is_fixed, least_value, range_of
from weft.analysis.block_scopes import bindings_of, function_of, guards_of, loops_around, why_not_complete
from weft.analysis.code_motion import shared_element
from weft.analysis.index import Index
from weft.dialects.effects import only_computes, op_name
from weft.dialects.tir import AccessRegionOp, BlockOp, ForOp
from weft.passes.index_builders import detached_ops, erase_if_unused, index_before
from weft.passes.schedule.caching import free_label, why_not_around
from weft.passes.schedule.checks import require_unseen, single_store
from weft.passes.schedule.dominance import hoist, values_outside, why_not_dominating
from weft.passes.schedule.nest_builders import (
    empty_copy,
    extent_value,
    if_all_hold,
    insert_in_copies,
    loop_of,
    loop_of_its_own,
    new_block,
    set_extents,
    set_guards,
    set_loop_extent,
    values_in,
)
from weft.passes.schedule.primitive import Plan, Primitive
from weft.support.errors import InternalError, Violation


class IteratorRanges:
    """Ranges of iterators that have a dedicated loop, from conditions."""

    def __init__(self, block: BlockOp, loop: ForOp) -> None:
        self.block = block
        self.ranges: dict[int, tuple[Index, Index]] = {}
        """Position of an iterator -> first value, and end."""
        self._loops = loops_around(block)[loops_around(block).index(loop) :]

    def add(self, index: Index, *, is_zero: bool) -> bool:
        """Add `index >= 0`, or `index == 0`. False unless it bounds one such iterator, comparably."""
        for position, variable in enumerate(self.block.iter_vars):
            sign = index.coefficient(variable)
            rest = index - Index.of(variable) * sign
            if sign in (1, -1) and all(is_fixed(value) for value in rest.values()):
                value = rest * -sign
                first = value if is_zero or sign > 0 else None
                end = value + 1 if is_zero or sign < 0 else None
                return loop_of_its_own(self.block, position) in self._loops and self._narrow(position, first, end)
        return False

    def _narrow(self, position: int, first: Index | None, end: Index | None) -> bool:
        lower, upper = self.ranges.get(position, (Index({}), Index.of(self.block.extents[position])))
        later = lower if first is None else _larger(first, lower)
        negated = -upper if end is None else _larger(-end, -upper)
        if later is None or negated is None:
            return False
        if not (later + negated).is_constant and not _at_least(-negated, later):
            return False
        self.ranges[position] = later, -negated
        return True


def _larger(one: Index, other: Index) -> Index | None:
    return one if _at_least(one, other) else other if _at_least(other, one) else None


def _at_least(left: Index, right: Index) -> bool:
    low = least_value(left - right)
    return low is not None and low >= 0


@dataclass(frozen=True)
class Padding:
    """A block stores `inside` if the condition holds (or fails), else a constant."""

    store: memref.StoreOp
    choice: scf.IfOp | arith.SelectOp
    holds: bool
    constant: SSAValue


@dataclass(frozen=True)
class Inside:
    ranges: Mapping[int, tuple[Index, Index]]
    """Position of an iterator -> first value, and number of values."""
    inequalities: tuple[Index, ...]
    equalities: tuple[Index, ...]


@dataclass(frozen=True)
class DecomposePaddingPlan(Plan):
    block: BlockOp
    loop: ForOp
    padding: Padding
    inside: Inside

    def rewrite(self) -> tuple[Operation, ...]:
        hoist(_values_of_fill(self.block, self.loop, self.padding), InsertPoint.before(self.loop))
        loops = loops_around(self.block)
        repeated = loops[loops.index(self.loop) :]
        copies = [empty_copy(loop, loop.extent, f"{loop.induction_variable.name_hint or 'i'}_pad") for loop in repeated]
        fill = self._fill()
        insert_in_copies(fill, dict(zip(repeated, copies, strict=True)), self.loop)
        self._keep_inside()
        self._shrink()
        return (fill,)

    def _fill(self) -> BlockOp:
        block, store = self.block, self.padding.store
        label = free_label(function_of(block), f"{block.label}_pad_const")
        hints = [variable.name_hint for variable in block.iter_vars]
        fill = new_block(label, block.iter_kinds.data, block.extents, bindings_of(block), hints, block)
        body = fill.body.block
        renamed: dict[SSAValue, Index] = {
            old: Index.of(new) for new, old in zip(body.args, block.iter_vars, strict=True)
        }
        value = self.padding.constant
        if block.is_ancestor(value.owner) and isinstance(value.owner, Operation):
            constant = value.owner.clone()
            body.add_op(constant)
            value = constant.results[0]
        places = values_in(body, [Index.of(operand).substitute(renamed) for operand in store.indices])
        body.add_op(memref.StoreOp.get(value, store.memref, places))
        for op in body.ops:
            op.location = store.location
        set_guards(fill, guards_of(block))
        return fill

    def _keep_inside(self) -> None:
        padding = self.padding
        choice, store = padding.choice, padding.store
        for op in [op for op in self.block.body.block.ops if isinstance(op, AccessRegionOp)]:
            Rewriter.erase_op(op)
        condition = choice.cond
        if isinstance(choice, scf.IfOp):
            region = choice.true_region if padding.holds else choice.false_region
            *inner, last = detached_ops(region.block)
            value = last.operands[0]
            last.erase()
        else:
            inner, value = [], choice.lhs if padding.holds else choice.rhs
        body = list(self.block.body.block.ops)
        following = body[body.index(choice) + 1 : body.index(store) + 1] if isinstance(choice, scf.IfOp) else [store]
        store.operands[0] = value
        inequalities, equalities = self.inside.inequalities, self.inside.equalities
        if not (inequalities or equalities):
            self.block.body.block.insert_ops_before(inner, choice)
        else:
            kept = if_all_hold(inequalities, equalities, [*inner, *following], choice)
            kept.location = store.location
            self.block.body.block.add_op(kept)
        Rewriter.erase_op(choice)
        erase_if_unused([condition])

    def _shrink(self) -> None:
        block = self.block
        body = block.body.block
        extents = list(block.extents)
        for position, (lower, count) in self.inside.ranges.items():
            loop, variable = loop_of(block, position), block.iter_vars[position]
            extents[position] = extent_value(count, self.loop)
            if loop is not None:
                set_loop_extent(loop, extents[position])
            if lower == Index({}) or body.first_op is None:
                continue
            shifted = index_before(Index.of(variable) + lower, body.first_op, variable.name_hint)
            variable.replace_uses_with_if(shifted, lambda use, new=shifted: use.operation not in (new.owner, block))
        set_extents(block, extents)
        simplify_indices(block)


def simplify_indices(block: BlockOp) -> None:
    for op in list(block.walk()):
        if isinstance(op, memref.LoadOp | memref.StoreOp):
            first = len(op.operands) - len(op.indices)
            for at, operand in enumerate(op.indices):
                index = Index.of(operand).simplified(range_of)
                if index.single_value is operand or not isinstance(operand.owner, affine.ApplyOp):
                    continue
                op.operands[first + at] = index_before(index, op)
                erase_if_unused([operand.owner])


def _values_of_fill(block: BlockOp, loop: ForOp, padding: Padding) -> tuple[SSAValue, ...]:
    store, loops = padding.store, loops_around(block)
    indices = [*bindings_of(block), *(side for guard in guards_of(block) for side in guard)]
    indices += [Index.of(operand) for operand in store.indices]
    constant = () if block.is_ancestor(padding.constant.owner) else (padding.constant,)
    return values_outside(block, loops[loops.index(loop) :], indices, [*block.extent_operands, store.memref, *constant])


@dataclass(frozen=True)
class DecomposePadding(Primitive):
    """Split a block that copies with padding into one that fills the buffer with the padding constant, right before
    `loop`, and one that copies the interior.

    Requirements:
    1. the block is complete, and its instances store to different elements
    2. the loop is around the block
    3. the block stores one value where a condition holds and a constant where it does not: it stores once and has no
       other effect
    4. the condition says which indices are inside: it is a conjunction of comparisons of indices
    5. no other op inside the loop writes the buffer, or reads an element before the block writes it
    6. the inside is not empty
    7. what the fill uses is known before the loop

    If the interior is a range of an iterator that has a dedicated loop in `loop`, that loop runs over the interior
    only, without a branch. Conditions on other loops (outside of `loop`, or split or fused before) remain in the copy.
    The new block is `<block>_pad_const`.

    ```mlir
    tir.for %i in 12 { tir.block "P" ... = [%i] { P[%vi] = 2 <= %vi and %vi < 10 ? X[%vi - 2] : 0 } }
    // decompose_padding "P", %i
    tir.for %i_pad in 12 { tir.block "P_pad_const" ... = [%i_pad] { P[%vi] = 0 } }
    tir.for %i in 8 { tir.block "P" iters(%vi: spatial<8>) = [%i] { P[%vi + 2] = X[%vi] } }
    ```
    """

    block: BlockOp
    loop: ForOp

    def plan(self) -> DecomposePaddingPlan:
        block = self.block
        self.require(1, why_not_complete(block))
        self.require(1, shared_element(block))
        self.require(2, why_not_around(self.loop, block), self.loop)
        padding = self._padding()
        inequalities, equalities = self._conditions(padding)
        require_unseen(self, 5, block, self.loop, (padding.store.memref,))
        inside = self._inside(inequalities, equalities)
        used = _values_of_fill(block, self.loop, padding)
        self.require(7, why_not_dominating(used, InsertPoint.before(self.loop)))
        return DecomposePaddingPlan(block, self.loop, padding, inside)

    def _padding(self) -> Padding:
        block = self.block
        store = single_store(self, 3, block)
        for op in block.body.block.ops:
            if op is not store and not isinstance(op, scf.IfOp | AccessRegionOp) and not only_computes(op):
                self.refuse(3, f"it contains {op_name(op)}", op)
        choice = store.value.owner
        if not isinstance(choice, scf.IfOp | arith.SelectOp) or choice.parent is not block.body.block:
            self.refuse(3, "what it stores is not a choice between two values", store)
        if len(choice.results) != 1 or not store.value.has_one_use():
            self.refuse(3, "the choice has uses other than the store", choice)
        for operand in store.indices:
            for value in Index.of(operand).values():
                if value not in block.iter_vars and block.is_ancestor(value.owner):
                    self.refuse(3, f"the index %{value.name_hint or '?'} of its store is computed in it", store)
        for holds in (True, False):
            value = _branch(choice, not holds)
            if isinstance(value.owner, arith.ConstantOp) or not block.is_ancestor(value.owner):
                return Padding(store, choice, holds, value)
        self.refuse(3, "neither of the two values is a constant", choice)

    def _conditions(self, padding: Padding) -> tuple[tuple[Index, ...], tuple[Index, ...]]:
        found = condition_of(padding.choice.cond, padding.holds, {})
        if not found.exact:
            detail = "the condition is not a conjunction of comparisons of indices"
            self.refuse(4, Violation(detail, "not proved"), padding.choice)
        return found.inequalities, found.equalities

    def _inside(self, inequalities: Sequence[Index], equalities: Sequence[Index]) -> Inside:
        block = self.block
        limits = IteratorRanges(block, self.loop)
        left = [index for index in inequalities if not limits.add(index, is_zero=False)]
        equal = [index for index in equalities if not limits.add(index, is_zero=True)]
        ranges = {at: (first, end - first) for at, (first, end) in limits.ranges.items()}
        for position, (_, count) in ranges.items():
            if count.is_constant and count.constant < 1:
                name = block.iter_vars[position].name_hint or f"v{position}"
                self.refuse(6, f"no value of iterator %{name} lies inside")
        return Inside(ranges, tuple(left), tuple(equal))


def _branch(choice: scf.IfOp | arith.SelectOp, holds: bool) -> SSAValue:
    if isinstance(choice, arith.SelectOp):
        return choice.lhs if holds else choice.rhs
    last = (choice.true_region if holds else choice.false_region).block.last_op
    if last is None:
        raise InternalError("an scf.if with a result has a branch that yields nothing")
    return last.operands[0]
