"""Grouping of loops with their block, or of several blocks with their loops, into one block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import loop_with_variable
from weft.analysis.block_scopes import (
    ancestors,
    bindings_of,
    buffers_written,
    child_towards,
    function_of,
    guards_of,
    loops_around,
    parts_of,
    scope_of,
    takes_pointers,
    why_named_twice,
    why_opaque,
    why_overlapping,
)
from weft.analysis.code_motion import actions_in, why_not_started_before
from weft.analysis.dependence import buffer_name
from weft.analysis.footprint import span_of
from weft.analysis.index import Index
from weft.dialects.tir import AccessRegionOp, BlockOp, ForOp, InitOp
from weft.dialects.tir_kinds import IterKind, IterKindAttr
from weft.dialects.traversal import captured_values, sources_in
from weft.passes.index_builders import detached_ops, divided_up, erase_if_unused, materialize
from weft.passes.schedule.caching import free_label
from weft.passes.schedule.dominance import hoist, outermost_place, why_not_dominating
from weft.passes.schedule.nest_builders import (
    empty_copy,
    init_operations,
    nest,
    new_block,
    only_child_block,
    replace_contents,
    set_guards,
)
from weft.passes.schedule.primitive import Plan, block_text, operation_text, value_text
from weft.passes.schedule.trial_application import RecheckedPrimitive
from weft.support.errors import CompileError, Violation


@dataclass(frozen=True)
class IteratorSplit:
    """`outer * extent + inner`."""

    outer: Index | None
    """Over the loops outside; None if the iterator does not depend on these."""
    outer_extent: Index
    inner: Index | None
    extent: int | SSAValue
    """1 if there is no inner part."""

    def value(self, outer: SSAValue | None, inner: Index | None) -> Index:
        index = Index({})
        if outer is not None:
            index = Index.of(outer) * (self.extent if isinstance(self.extent, int) else 1)
        return index if inner is None else index + inner


@dataclass(frozen=True)
class InnerGuard:
    """`left < right` over loops and the old iterators."""

    left: Index
    right: Index
    on_reduction: bool
    """Such a guard does not apply to the init."""


@dataclass(frozen=True)
class BlockizePlan(Plan):
    block: BlockOp
    nest: ForOp | BlockOp
    divisions: tuple[IteratorSplit, ...]
    outer_guards: tuple[tuple[Index, Index], ...]
    inner_guards: tuple[InnerGuard, ...]
    used_by_init: tuple[SSAValue, ...]

    def rewrite(self) -> tuple[Operation, ...]:
        block, root = self.block, self.nest
        outer = self._outer_block()
        Rewriter.insert_op(outer, InsertPoint.before(root))
        set_guards(outer, self.guards_outside())
        hoist(self.used_by_init, InsertPoint.before(outer))
        parts = iter(outer.iter_vars)
        outer_values = [next(parts) if division.outer is not None else None for division in self.divisions]
        renamed = {
            loop_value: Index.of(value)
            for division, value in zip(self.divisions, outer_values, strict=True)
            if value is not None and (loop_value := division.outer.single_value if division.outer else None) is not None
        }
        init = block.init
        if init is not None:
            outer.body.block.add_op(self._init(init, outer_values, renamed))
        root.detach()
        outer.body.block.add_op(root)
        self._rewrite_inner(outer_values, renamed)
        return (outer,)

    def outer_iterators(self) -> dict[Index, set[tuple[Index, IterKind]]]:
        """Binding -> extents and kinds, of outer iterators with several values."""
        found: dict[Index, set[tuple[Index, IterKind]]] = {}
        for division, kind in zip(self.divisions, self.block.kinds, strict=True):
            if division.outer is not None and not division.outer.is_constant:
                found.setdefault(division.outer, set()).add((division.outer_extent, kind))
        return found

    def _outer_block(self) -> BlockOp:
        parts = {
            at: (self._value_of(division.outer_extent), division.outer)
            for at, division in enumerate(self.divisions)
            if division.outer is not None
        }
        return self._block_of(free_label(function_of(self.block), f"{self.block.label}_o"), "o", parts)

    def _block_of(self, label: str, suffix: str, parts: Mapping[int, tuple[int | SSAValue, Index]]) -> BlockOp:
        block = self.block
        names = {at: block.iter_vars[at].name_hint or "v" for at in parts}
        whole = {at for at in parts if self.divisions[at].outer is None or self.divisions[at].inner is None}
        return new_block(
            label,
            [block.iter_kinds.data[at] for at in parts],
            [extent for extent, _ in parts.values()],
            [index for _, index in parts.values()],
            [name if at in whole else f"{name}_{suffix}" for at, name in names.items()],
            block,
        )

    def _value_of(self, extent: Index) -> int | SSAValue:
        if extent.is_constant:
            return extent.constant
        value, operations = materialize(extent)
        place = outermost_place(self.nest, extent)
        Rewriter.insert_op(operations, place)
        return value

    def guards_outside(self) -> list[tuple[Index, Index]]:
        inside: list[tuple[Index, Index]] = []
        for division in self.divisions:
            if division.outer is None:
                continue
            inside.append((Index({}, -1), division.outer))
            if division.outer_extent.is_constant or division.inner is not None:
                inside.append((division.outer, division.outer_extent))
        return [*self.outer_guards, *inside]

    def _guards_over(
        self, guards: Sequence[InnerGuard], outer_values: Sequence[SSAValue | None], renamed: Mapping[SSAValue, Index]
    ) -> list[tuple[Index, Index]]:
        mapping = dict(renamed)
        for variable, division, outer in zip(self.block.iter_vars, self.divisions, outer_values, strict=True):
            inner = division.inner.substitute(renamed) if division.inner is not None else None
            mapping[variable] = division.value(outer, inner)
        return [(guard.left.substitute(mapping), guard.right.substitute(mapping)) for guard in guards]

    def _iterators(
        self, outer_values: Sequence[SSAValue | None], inner_values: Sequence[SSAValue | None], body: Block
    ) -> list[SSAValue]:
        result: list[SSAValue] = []
        for at, (division, outer, inner) in enumerate(zip(self.divisions, outer_values, inner_values, strict=True)):
            value, operations = materialize(division.value(outer, None if inner is None else Index.of(inner)))
            body.add_ops(operations)
            for op in operations:
                op.location = self.block.location
                value.name_hint = self.block.iter_vars[at].name_hint
            result.append(value)
        return result

    def _inner_block(
        self, label: str, wanted: Sequence[int], renamed: Mapping[SSAValue, Index]
    ) -> tuple[BlockOp, list[SSAValue | None]]:
        divisions = [(at, self.divisions[at]) for at in wanted]
        parts = {at: (d.extent, d.inner.substitute(renamed)) for at, d in divisions if d.inner is not None}
        inner = self._block_of(label, "i", parts)
        values: list[SSAValue | None] = [None] * len(self.divisions)
        for argument, at in zip(inner.iter_vars, parts, strict=True):
            values[at] = argument
        return inner, values

    def _init(self, init: InitOp, outer_values: Sequence[SSAValue | None], renamed: Mapping[SSAValue, Index]) -> InitOp:
        block = self.block
        spatial = [at for at, kind in enumerate(block.kinds) if kind is IterKind.SPATIAL]
        bound = {v for at in spatial for v in (self.divisions[at].inner or Index({})).values()}
        copies: dict[SSAValue, ForOp] = {}
        holder = Block()
        for loop in _inner_loops(self.nest, block):
            if loop.induction_variable in bound:
                extent = loop.extent
                if isinstance(extent, OpResult) and self.nest.is_ancestor(extent.op):
                    extent, operations = materialize(Index.of(extent))
                    holder.add_ops(operations)
                copies[loop.induction_variable] = empty_copy(loop, extent, f"{_hint(loop)}_init")
        moved = {old: Index.of(new.induction_variable) for old, new in copies.items()}
        label = free_label(function_of(block), f"{block.label}_init")
        init_block, inner_values = self._inner_block(label, spatial, moved)
        body = init_block.body.block
        values = self._iterators(outer_values, inner_values, body)
        body.add_ops(init_operations(block, dict(zip(block.iter_vars, values, strict=True))))
        erase_if_unused([op for op in body.ops if op.name in ("affine.apply", "arith.constant")])
        holder.add_op(nest(list(copies.values()), [init_block]))
        result = InitOp(Region(holder))
        result.location = init.location
        guards = [guard for guard in self.inner_guards if not guard.on_reduction]
        set_guards(init_block, self._guards_over(guards, outer_values, {**renamed, **moved}))
        return result

    def _rewrite_inner(self, outer_values: Sequence[SSAValue | None], renamed: Mapping[SSAValue, Index]) -> None:
        block = self.block
        inner, inner_values = self._inner_block(block.label, range(len(self.divisions)), {})
        body = inner.body.block
        values = self._iterators(outer_values, inner_values, body)
        for op in list(block.body.block.ops):
            if isinstance(op, InitOp | AccessRegionOp):
                Rewriter.erase_op(op)
        operations = detached_ops(block.body.block)
        for variable, value in zip(block.iter_vars, values, strict=True):
            variable.replace_all_uses_with(value)
        body.add_ops(operations)
        erase_if_unused([op for op in body.ops if op.name in ("affine.apply", "arith.constant")])
        inner.attributes.update(block.attributes)
        between = [op for loop in _inner_loops(self.nest, block) for op in loop.body.block.ops if op is not block]
        guards = self._guards_over(self.inner_guards, outer_values, renamed)
        replace_contents(block, inner)
        set_guards(block, guards)
        erase_if_unused([op for op in between if not isinstance(op, ForOp)])


@dataclass(frozen=True)
class JoinPlan(Plan):
    plans: tuple[BlockizePlan, ...]

    def rewrite(self) -> tuple[Operation, ...]:
        outers = [block for plan in self.plans for block in plan.rewrite() if isinstance(block, BlockOp)]
        iterators: dict[Index, tuple[IterKindAttr, int | SSAValue, str | None]] = {}
        for outer in outers:
            hints = [variable.name_hint for variable in outer.iter_vars]
            for index, part in zip(
                bindings_of(outer), zip(outer.iter_kinds, outer.extents, hints, strict=True), strict=True
            ):
                iterators.setdefault(index, part)
        label = free_label(function_of(outers[0]), "_".join([*(plan.block.label for plan in self.plans), "o"]))
        kinds, extents, hints = zip(*iterators.values(), strict=True) if iterators else ((), (), ())
        joined = new_block(label, kinds, extents, list(iterators), hints, outers[0])
        body, values = joined.body.block, dict(zip(iterators, joined.iter_vars, strict=True))
        guards = guards_of(outers[0])
        Rewriter.insert_op(joined, InsertPoint.after(outers[-1]))
        for outer in outers:
            for index, variable in zip(bindings_of(outer), outer.iter_vars, strict=True):
                variable.replace_all_uses_with(values[index])
            # An init that each instance runs before its loops becomes part of the body.
            init = outer.init
            body.add_ops(detached_ops(init.body.block) if init is not None else ())
            body.add_ops([op for op in detached_ops(outer.body.block) if op is not init])
            Rewriter.erase_op(outer)
        set_guards(joined, guards)
        return (joined,)


@dataclass(frozen=True)
class Blockize(RecheckedPrimitive):
    """Turn a loop with its whole body, or several blocks with their loops, into the body of one block over the loops
    outside.

    Requirements:
    1. the loop holds one whole block in a chain of loops; nests of several blocks follow each other: each loop contains
       only the next; several nests are in one body
    2. no extent inside depends on a loop outside
    3. each iterator splits into outer * extent + inner: if bound to loops on both sides: `outer` over loops outside,
       plus a term over loops inside that takes each value from 0 to `extent - 1`
    4. guards are on loops outside or on iterators: or can be expressed over the iterators; none mixes loops of the
       reduction with others
    5. init and updates access the same elements: if spatial iterators are bound to loops inside, each instance updates
       elements that its own init starts, and no other instance stores to these
    6. what the init uses is known outside of the loop
    7. loops that run in parallel stay independent
    8. several blocks have the same outer iterators and guards, and no init over these: no reduction with an init
       continues over the loops outside (`decompose_reduction` first)

    The outer block is `<block>_o` ("B_C_o" for "B" and "C"), with iterators `<iterator>_o`; the inner one keeps its
    name, with iterators `<iterator>_i`. The init moves to the outer block, in a nest around `<block>_init`.

    ```mlir
    tir.for %i0 in 8 { tir.for %k0 in 8 { tir.for %i1 in 16 { tir.for %k1 in 16 {
      tir.block "C" iters(%vi: spatial<128>, %vk: reduce<128>) = [%i0 * 16 + %i1, %k0 * 16 + %k1] {
        tir.init { C[%vi] = 0 }  C[%vi] += A[%vi, %vk] } } } } }
    // blockize %i1
    tir.for %i0 in 8 { tir.for %k0 in 8 {
      tir.block "C_o" iters(%vi_o: spatial<8>, %vk_o: reduce<8>) = [%i0, %k0] {
        tir.init { tir.for %i1_init in 16 {
          tir.block "C_init" iters(%vi_i: spatial<16>) = [%i1_init] { C[%vi_o * 16 + %vi_i] = 0 } } }
        tir.for %i1 in 16 { tir.for %k1 in 16 {
          tir.block "C" iters(%vi_i: spatial<16>, %vk_i: reduce<16>) = [%i1, %k1] {
            C[%vi_o * 16 + %vi_i] += A[%vi_o * 16 + %vi_i, %vk_o * 16 + %vk_i] } } } } } }
    ```
    """

    target: tuple[ForOp | BlockOp, ...]

    def draft(self) -> BlockizePlan | JoinPlan:
        first, *others = plans = tuple(self._plan_of(root) for root in self._nests())
        if not others:
            return first
        for plan in plans:
            self._require_joinable(plan, first)
        return JoinPlan(plans)

    def _nests(self) -> list[ForOp | BlockOp]:
        if not self.target:
            raise CompileError("blockize needs a loop or blocks, got none")
        first, *others = self.target
        if not others:
            return [first]
        scope, subject = scope_of(first), operation_text(first)
        for at, op in enumerate(self.target):
            if not isinstance(op, BlockOp) or op in self.target[:at] or scope_of(op) is not scope:
                detail = f"{operation_text(op)} is not another block of the scope of {subject}"
                self.refuse(1, Violation(detail, legal="one loop, or different blocks of a scope"), op, subject)
        common = next(op for op in ancestors(first) if all(op.is_ancestor(other) for other in others))
        chosen = [child_towards(common, op) for op in self.target]
        found: list[ForOp | BlockOp] = []
        for op in (op for region in common.regions for body in region.blocks for op in body.ops if actions_in(op)):
            if op in chosen and isinstance(op, ForOp | BlockOp):
                found.append(op)
            elif 0 < len(found) < len(chosen):
                self.refuse(1, f"{operation_text(op)} is between them", op, subject)
        if len(found) < len(chosen):
            self.refuse(1, "some of them are in one nest, or in no nest of loops", first, subject)
        return found

    def _require_joinable(self, plan: BlockizePlan, first: BlockizePlan) -> None:
        """Outer iterators of several values must be those of the first nest, and each instance must run its init."""
        block = plan.block
        own, wanted = plan.outer_iterators(), first.outer_iterators()
        if own != wanted or any(len(extents) > 1 for extents in own.values()):
            texts = [
                ", ".join(f"{i!r} below {e!r} is {k.value}" for i, found in part.items() for e, k in found) or "none"
                for part in (own, wanted)
            ]
            detail = f"of its outer iterators, {texts[0]}; those of {block_text(first.block)} are {texts[1]}"
            self.refuse(8, detail, block)
        if set(plan.guards_outside()) != set(first.guards_outside()):
            self.refuse(8, f"its guards on loops outside are not those of {block_text(first.block)}", block)
        steps = zip(plan.divisions, block.kinds, strict=True)
        if block.init is not None and any(d.outer for d, kind in steps if kind is IterKind.REDUCE):
            legal = "decompose_reduction first"
            self.refuse(8, Violation("its reduction continues over the loops outside", legal=legal), block)

    def _plan_of(self, root: ForOp | BlockOp) -> BlockizePlan:
        block = self._block(root)
        subject = block_text(block)
        outside: set[SSAValue] = {loop.induction_variable for loop in loops_around(root)}
        inside: set[SSAValue] = {loop.induction_variable for loop in _inner_loops(root, block)}
        for loop in _inner_loops(root, block):
            if not isinstance(loop.extent, int) and Index.of(loop.extent).depends_on(outside | inside):
                self.refuse(2, f"the extent of %{_hint(loop)} does", loop, subject)
        bindings = bindings_of(block)
        inside |= self._computed_inside(block, root, bindings, outside)
        divisions = tuple(self._divide(block, at, index, outside, inside) for at, index in enumerate(bindings))
        bound: dict[IterKind, set[SSAValue]] = {kind: set() for kind in IterKind}
        for index, kind in zip(bindings, block.kinds, strict=True):
            bound[kind].update(index.values())
        # A fused loop may be bound to both kinds: the init has it, and its guards.
        reduced = (bound[IterKind.REDUCE] | inside) - bound[IterKind.SPATIAL]
        outer_guards, inner_guards = self._guards(block, bindings, divisions, outside, inside, reduced)
        self._require_own_element(block, root)
        init = block.init
        used = () if init is None else tuple(v for v in captured_values(init) if v not in block.iter_vars)
        self.require(6, why_not_dominating(used, InsertPoint.before(root)), block)
        return BlockizePlan(block, root, divisions, outer_guards, inner_guards, used)

    def _computed_inside(
        self, block: BlockOp, root: Operation, bindings: Sequence[Index], outside: set[SSAValue]
    ) -> set[SSAValue]:
        """Values that are not index expressions, such as digits of a loop fused with a dynamic extent."""
        guards = (value for left, right in guards_of(block) for value in (*left.values(), *right.values()))
        extents = (Index.of(loop.extent) for loop in _inner_loops(root, block))
        values = {*(value for index in (*bindings, *extents) for value in index.values()), *guards}
        found: set[SSAValue] = {v for v in values if isinstance(v, OpResult) and root.is_ancestor(v.op)}
        for value in found:
            if block.init is not None:
                detail = f"the init would need {value_text(value)}, which is computed in the loop"
                self.refuse(3, Violation(detail, "not proved"), block)
            if not sources_in([value]).isdisjoint(outside):
                detail = f"{value_text(value)} is computed from loops outside and inside"
                self.refuse(3, Violation(detail, "not proved"), block)
        return found

    def _block(self, root: ForOp | BlockOp) -> BlockOp:
        inner = only_child_block(self, root)
        if len(parts_of(inner)) > 1:
            self.refuse(1, "loop_partition made it one of several parts of a block", inner)
        return inner

    def _divide(
        self, block: BlockOp, at: int, index: Index, outside: set[SSAValue], inside: set[SSAValue]
    ) -> IteratorSplit:
        name = f"%{block.iter_vars[at].name_hint or at}"
        outer = Index({atom: f for atom, f in index.terms.items() if not Index({atom: 1}).depends_on(inside)})
        inner = index - outer - index.constant
        outer = outer + index.constant
        if inner.is_constant:
            return IteratorSplit(outer, Index.of(block.extents[at]), None, 1)
        if inner.depends_on(outside):
            detail = f"iterator {name} is bound to {index!r}, where loops outside and inside are not separate terms"
            self.refuse(3, detail, block)
        if outer == Index({}):
            return IteratorSplit(None, Index({}, 1), inner, block.extents[at])
        extent = self._inner_extent(inner, inside)
        if extent is None:
            detail = f"iterator {name} is bound to {index!r}: the part over loops inside has holes, or starts below 0"
            self.refuse(3, Violation(detail, "not proved"), block)
        if not isinstance(extent, int) or outer.constant % extent or any(f % extent for f in outer.terms.values()):
            told = extent if isinstance(extent, int) else "an extent known at run time"
            detail = f"iterator {name} is bound to {index!r}: {outer!r} is not a multiple of {told}"
            self.refuse(3, detail, block)
        part = Index({atom: f // extent for atom, f in outer.terms.items()}, outer.constant // extent)
        whole = block.extents[at]
        if isinstance(whole, int) and whole <= extent:
            # One part; guards exclude the values beyond the domain.
            return IteratorSplit(part, Index({}, 1), inner, whole)
        loop = None if isinstance(whole, int) else loop_with_variable(part.single_value)
        parts = divided_up(Index.of(whole), extent) if loop is None else Index.of(loop.extent)
        return IteratorSplit(part, parts, inner, extent)

    def _inner_extent(self, inner: Index, inside: set[SSAValue]) -> int | SSAValue | None:
        loop = loop_with_variable(inner.single_value)
        if loop is not None and loop.induction_variable in inside:
            return loop.extent
        fixed = {v for v in inner.values() if v not in inside}
        span = span_of(inner, fixed)
        return span.extent if span is not None and span.tight and span.lower == Index({}) else None

    def _guards(
        self,
        block: BlockOp,
        bindings: Sequence[Index],
        divisions: Sequence[IteratorSplit],
        outside: set[SSAValue],
        inside: set[SSAValue],
        reduced: set[SSAValue],
    ) -> tuple[tuple[tuple[Index, Index], ...], tuple[InnerGuard, ...]]:
        outer: list[tuple[Index, Index]] = []
        inner: list[InnerGuard] = []
        told = {value for d in divisions if d.outer is not None and (value := d.outer.single_value) is not None}
        for left, right in guards_of(block):
            values = {*left.values(), *right.values()}
            if values.isdisjoint(inside):
                outer.append((left, right))
                continue
            on_reduction = not values.isdisjoint(reduced & inside)
            if on_reduction and block.init is not None and not values.isdisjoint((inside | outside) - reduced):
                self.refuse(4, f"the guard {left!r} < {right!r} is on loops of the reduction and others", block)
            guard = (
                (left, right) if values & outside <= told else _over_iterators(left, right, block, bindings, outside)
            )
            if guard is None:
                self.refuse(4, f"the guard {left!r} < {right!r} is on loops outside and inside", block)
            inner.append(InnerGuard(*guard, on_reduction))
        return tuple(outer), tuple(inner)

    def _require_own_element(self, block: BlockOp, root: Operation) -> None:
        """Updates may only read elements that their own instance starts, because the init of the whole tile runs
        first."""
        if block.init is None:
            return
        named = why_opaque(block, block_text(block)) or why_named_twice(block) or why_overlapping(block)
        self.require(5, named, block)
        if takes_pointers(block):
            self.refuse(5, Violation("it takes pointers", "not proved"), block)
        for op in block.init.walk():
            if isinstance(op, memref.LoadOp) and op.memref in buffers_written(block):
                self.refuse(5, f"its init reads {buffer_name(op.memref)}, which it writes", op, block_text(block))
        self.require(5, why_not_started_before(block, root), block)


def _hint(loop: ForOp) -> str:
    return loop.induction_variable.name_hint or "i"


def _inner_loops(root: Operation, block: BlockOp) -> list[ForOp]:
    return [loop for loop in loops_around(block) if root.is_ancestor(loop)]


def _over_iterators(
    left: Index, right: Index, block: BlockOp, bindings: Sequence[Index], outside: set[SSAValue]
) -> tuple[Index, Index] | None:
    for variable, index in zip(block.iter_vars, bindings, strict=True):
        for sign in (1, -1):
            rest = right - left + index * sign
            if not index.is_constant and not rest.depends_on(outside):
                return (Index.of(variable) * sign, rest)
    return None
