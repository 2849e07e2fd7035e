"""Transformation of the iterators of blocks by index maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import affine
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import range_of
from weft.analysis.block_scopes import ancestors, bindings_of, guards_of, parts_of
from weft.analysis.index import Index, exprs_of
from weft.analysis.layout_maps import LayoutMap, substituted
from weft.dialects.tir import AccessRegionOp, BlockOp, ForOp, InitOp
from weft.dialects.tir_kinds import SPATIAL, IterKind, IterKindAttr, LoopKind
from weft.passes.index_builders import detached_ops, erase_if_unused, index_before
from weft.passes.schedule.checks import place_text, why_not_any_order
from weft.passes.schedule.index_maps import missed_place, points_of_iterators, required_layout
from weft.passes.schedule.nest_builders import (
    extent_before,
    loop_of_its_own,
    named_values,
    nest,
    new_block,
    new_loop,
    replace_contents,
    set_corner,
)
from weft.passes.schedule.primitive import Plan, Primitive, operation_text
from weft.support.errors import InternalError, Violation


@dataclass(frozen=True)
class OwnNest:
    """Loops that contain only this block, one per iterator, and run its domain once."""

    block: BlockOp
    loops: tuple[ForOp, ...]
    """Outermost first."""

    def block_over(
        self, layout: LayoutMap, kinds: Sequence[IterKindAttr], hints: Sequence[str | None]
    ) -> tuple[BlockOp, list[ForOp]]:
        """Block and loops are detached. `hints` name the old indices."""
        outer = self._outermost
        if layout.new_extents is None:
            raise InternalError("a nest to replace has no new extents")
        extents = [extent_before(extent, outer) for extent in layout.new_extents]
        loops = [new_loop(extent, f"ax{at}", outer) for at, extent in enumerate(extents)]
        bindings, names = [Index.of(loop.induction_variable) for loop in loops], layout.names(hints)
        block = self.block
        return new_block(block.label, kinds, extents, bindings, names, block, block.attributes), loops

    def replace_nest(self, new: BlockOp, loops: Sequence[ForOp]) -> None:
        """The block becomes `new`, in `loops`."""
        block, point = self.block, InsertPoint.after(self._outermost)
        block.detach()
        replace_contents(block, new)
        Rewriter.insert_op(nest(loops, [block]), point)
        if self.loops:
            Rewriter.erase_op(self.loops[0])

    @property
    def _outermost(self) -> Operation:
        return self.loops[0] if self.loops else self.block


def own_nest(block: BlockOp) -> OwnNest | str:
    """The reason if there is none."""
    name = f'block "{block.label}"'
    if len(parts_of(block)) > 1:
        return f"loop_partition made {name} one of several parts of a block"
    if block.guard is not None:
        return f"{name} has a guard"
    bound: list[ForOp] = []
    for position, (index, extent) in enumerate(zip(bindings_of(block), block.extents, strict=True)):
        if extent == 1 and index == Index({}):
            continue
        loop = loop_of_its_own(block, position)
        if isinstance(loop, str):
            return loop
        bound.append(loop)
    chain: list[ForOp] = []
    inner: Operation = block
    for parent in ancestors(block):
        if len(chain) == len(bound) or not isinstance(parent, ForOp):
            break
        loop_name = operation_text(parent)
        if parent.body.block.first_op is not inner or parent.body.block.last_op is not inner:
            return f"loop {loop_name} holds more than {name}"
        if parent not in bound:
            return f"no iterator of {name} is bound to loop {loop_name}"
        if parent.kind.data is not LoopKind.SERIAL:
            return f"loop {loop_name} is {parent.kind.data.value}"
        chain.append(parent)
        inner = parent
    return OwnNest(block, tuple(reversed(chain)))


def replace_iterators(body: Block, mapping: Mapping[SSAValue, Index], known: Mapping[Index, SSAValue]) -> None:
    """Affine expressions, bindings and annotations are replaced whole, so that they stay simple; other uses by `known`
    values."""
    for op in [op for op in body.walk() if any(operand in mapping for operand in op.operands)]:
        if isinstance(op, affine.ApplyOp):
            index = Index.of(op.result).substitute(mapping, range_of).simplified(range_of)
            value = known.get(index) or index_before(index, op, op.result.name_hint)
            op.result.replace_all_uses_with(value)
            Rewriter.erase_op(op)
            continue
        if isinstance(op, AccessRegionOp):
            corner = Index.of_map(op.corner.data, list(op.corner_operands))
            set_corner(op, [index.substitute(mapping, range_of).simplified(range_of) for index in corner])
        elif isinstance(op, BlockOp):
            _rebind(op, mapping)
        for at, operand in enumerate(op.operands):
            if operand in mapping:
                op.operands[at] = known[mapping[operand]]


def _rebind(block: BlockOp, mapping: Mapping[SSAValue, Index]) -> None:
    """Iterators of extent 1 stay: a guard on one of an enclosing block defines the excluded instances; a constant guard
    would always exclude some."""
    block.set_bindings(*exprs_of([index.substitute(mapping, range_of) for index in bindings_of(block)]))
    sides = [side.substitute(mapping, range_of) for guard in guards_of(block) for side in guard]
    exprs, operands = exprs_of(sides)
    block.set_guards(list(zip(exprs[::2], exprs[1::2], strict=True)), operands)


@dataclass(frozen=True)
class TransformBlockLayoutPlan(Plan):
    nest: OwnNest
    layout: LayoutMap
    inverse: tuple[Index, ...]
    kinds: tuple[IterKindAttr, ...]
    whole: tuple[tuple[SSAValue, int], ...]
    """Iterators of extent 1 that are kept, because guards inside may use them, and their new positions."""

    def rewrite(self) -> tuple[Operation, ...]:
        block = self.nest.block
        new, loops = self.nest.block_over(self.layout, self.kinds, [v.name_hint for v in block.iter_vars])
        body = new.body.block
        mapping = {old: Index.of(value) for old, value in zip(self.layout.outputs, body.args, strict=True)}
        back: dict[SSAValue, Index] = dict(zip(block.iter_vars, substituted(self.inverse, mapping), strict=True))
        for variable, place in self.whole:
            back[variable] = Index.of(body.args[place])
        operations = detached_ops(block.body.block)
        first = [op for op in operations if isinstance(op, AccessRegionOp | InitOp)]
        body.add_ops(first)
        for op in first:
            if isinstance(op, InitOp):
                _compute_with(op.body.block, detached_ops(op.body.block), back)
        _compute_with(body, [op for op in operations if op not in first], back)
        self.nest.replace_nest(new, loops)
        return tuple(loops)


def _compute_with(body: Block, operations: list[Operation], back: Mapping[SSAValue, Index]) -> None:
    known = named_values(body, back)
    body.add_ops(operations)
    replace_iterators(body, back, known)
    erase_if_unused(known.values())


@dataclass(frozen=True)
class TransformBlockLayout(Primitive):
    """Map the iterators of a block to another domain, and replace the loops around it by loops over that domain.

    Requirements:
    1. instances may run in any order: the block is complete, or a reduction with a known combiner
    2. the block has a separate nest: each iterator is bound to a dedicated serial loop, in a chain that contains only
       the block; there is no guard
    3. the index map takes the iterators to a box: the box starts at 0, and all iterators are mapped; new ones are
       computed from spatial ones or from reduce ones only; iterators of extent 1 that a guard inside uses are kept
    4. no two instances become one
    5. every instance of the new domain is one of the old: the inverse is a single expression
    6. the init does not use reduce iterators

    Returns the new loops, outermost first. The old ones are erased.

    ```mlir
    tir.for %i in 8 { tir.for %j in 32 {
      tir.block "C" iters(%vi: spatial<8>, %vj: spatial<32>) = [%i, %j] { C[%vi, %vj] = A[%vi, %vj] } } }
    // transform_block_layout "C" {index_map = (i, j) -> (j floordiv 4, i * 4 + j mod 4)}
    tir.for %ax0 in 8 { tir.for %ax1 in 32 {
      tir.block "C" iters(%vj: spatial<8>, %vi_vj_fused: spatial<32>) = [%ax0, %ax1] {
        C[%vi_vj_fused floordiv 4, %vj * 4 + %vi_vj_fused mod 4] = ... } } }
    ```
    """

    block: BlockOp
    index_map: AffineMapAttr

    def plan(self) -> TransformBlockLayoutPlan:
        block = self.block
        own = own_nest(block)
        if isinstance(own, str):
            self.refuse(2, own)
        self.require(1, why_not_any_order(block))
        layout = self._layout()
        kinds = tuple(self._kind(at) for at in range(len(layout.outputs)))
        self._require_onto(layout)
        init = block.init
        for variable, kind in zip(block.iter_vars, block.kinds, strict=True):
            if init is not None and kind is IterKind.REDUCE:
                for op in init.walk():
                    if any(operand is variable for operand in op.operands):
                        self.refuse(6, f"{op.name} uses %{variable.name_hint or variable.index}", op)
        with self.deciding(5):
            inverse = layout.inverse()
        if inverse is None:
            self.refuse(5, Violation("the way back is no single expression", "not proved"))
        return TransformBlockLayoutPlan(own, layout, inverse, kinds, self._units())

    def _units(self) -> tuple[tuple[SSAValue, int], ...]:
        """Iterators of extent 1 that remain. Requirement 3: no guard inside uses another one."""
        block = self.block
        places = {
            expr.position: at for at, expr in enumerate(self.index_map.data.results) if isinstance(expr, AffineDimExpr)
        }
        units = [variable for variable, extent in zip(block.iter_vars, block.extents, strict=True) if extent == 1]
        for variable in units:
            for op in block.body.block.walk() if variable.index not in places else ():
                if isinstance(op, BlockOp) and any(Index.of(v).depends_on([variable]) for v in op.guard_operands):
                    detail = f"a guard inside is on %{variable.name_hint or variable.index}, which goes away"
                    self.refuse(3, Violation(detail, legal="keep it as an iterator"), op)
        return tuple((variable, places[variable.index]) for variable in units if variable.index in places)

    def _layout(self) -> LayoutMap:
        extents = [Index.of(extent) for extent in self.block.extents]
        points = points_of_iterators(self.block, "", "would both run as")
        return required_layout(self, (3, 4), self.index_map.data, extents, points)

    def _kind(self, at: int) -> IterKindAttr:
        """Iterators of extent 1 count only if there are no others."""
        block = self.block
        used = sorted(self.index_map.data.results[at].used_dims())
        moving = [dim for dim in used if block.extents[dim] != 1]
        kinds = {block.iter_kinds.data[dim] for dim in moving or used}
        if len(kinds) > 1 and moving:
            detail = f"new iterator {at} would be made of spatial and reduce iterators"
            self.refuse(3, detail)
        return kinds.pop() if len(kinds) == 1 else SPATIAL

    def _require_onto(self, layout: LayoutMap) -> None:
        with self.deciding(5):
            missed = layout.missed_index()
        if missed is not None:
            detail = f"new instance {place_text(missed)} would be none of the old"
            legal = "a bijection; split loops first, which guards what is too much"
            self.refuse(5, missed_place(layout, missed, detail, legal))
