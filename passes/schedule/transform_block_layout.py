"""transform_block_layout: map the iterators of a block, and its loops, to another domain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.pattern_rewriter import PatternRewriter

from weft.analysis.combiners import combines_freely
from weft.analysis.dependence import undecided
from weft.analysis.index import Index
from weft.analysis.layout_maps import LayoutMap, substituted
from weft.analysis.motion import shared_element
from weft.analysis.sets import NotProved
from weft.analysis.structure import why_not_complete, why_not_reduction
from weft.dialects.tir import BlockOp, InitOp
from weft.dialects.tir_kinds import SPATIAL, IterKind, IterKindAttr
from weft.dialects.tir_regions import AccessRegionOp
from weft.passes.schedule.layouts_checks import Points, layout_of, meeting_points, named_places, shown
from weft.passes.schedule.layouts_nests import OwnNest, named_values, own_nest, replace_iterators
from weft.passes.schedule.primitive import Plan, Primitive, block_text
from weft.passes.schedule.rewriting import take_operations
from weft.passes.tir.nest import erase_if_unused
from weft.support.errors import Violation


@dataclass(frozen=True)
class TransformBlockLayoutPlan(Plan):
    """A nest, the layout of its iterators, the way back, and the kinds of the new iterators."""

    nest: OwnNest
    layout: LayoutMap
    inverse: tuple[Index, ...]
    kinds: tuple[IterKindAttr, ...]
    whole: tuple[tuple[SSAValue, int], ...]
    """Old iterators of extent 1 that stay, and their new places: as good as 0, but guards inside may be on them."""

    def rewrite(self, rewriter: PatternRewriter) -> tuple[Operation, ...]:
        block = self.nest.block
        new, loops = self.nest.block_over(self.layout, self.kinds, [v.name_hint for v in block.iter_vars])
        body = new.body.block
        mapping = {old: Index.of(value) for old, value in zip(self.layout.outputs, body.args, strict=True)}
        back: dict[SSAValue, Index] = dict(zip(block.iter_vars, substituted(self.inverse, mapping), strict=True))
        for variable, place in self.whole:
            back[variable] = Index.of(body.args[place])
        operations = take_operations(block.body.block)
        first = [op for op in operations if isinstance(op, AccessRegionOp | InitOp)]
        body.add_ops(first)
        for op in first:
            if isinstance(op, InitOp):
                _compute_with(op.body.block, take_operations(op.body.block), back)
        _compute_with(body, [op for op in operations if op not in first], back)
        self.nest.give_way(new, loops)
        rewriter.has_done_action = True
        return tuple(loops)


def _compute_with(body: Block, operations: list[Operation], back: Mapping[SSAValue, Index]) -> None:
    """Add operations, that know iterators by the way back to them."""
    known = named_values(body, back)
    body.add_ops(operations)
    replace_iterators(body, back, known)
    erase_if_unused([value.owner for value in known.values() if isinstance(value.owner, Operation)])


@dataclass(frozen=True)
class TransformBlockLayout(Primitive):
    """The iterators of a block become those of another domain, and the loops around it loops over that domain.

    Requirements:
    1. instances may run in any order: the block is complete, or a reduction with a known combiner, and its instances
       store to different elements
    2. the block has a nest of its own: each iterator is bound to a serial loop of its own, in a chain of loops that
       hold nothing else; there is no guard
    3. the index map takes the iterators to a box: it takes as many indices as the block has iterators, to a box that
       starts at 0; each new iterator is made of spatial ones or of reduce ones only; one of extent 1 that a guard
       inside is on stays
    4. no two instances become one
    5. every instance of the new domain is one of the old: it is told by one expression
    6. the init does not use reduce iterators

    Gives back the new loops, outermost first. The old ones are gone.

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
        block, subject = self.block, block_text(self.block)
        own = own_nest(block)
        if isinstance(own, str):
            self.refuse(2, own, block, subject)
        self._require_free_order()
        layout = self._layout()
        kinds = tuple(self._kind(at) for at in range(len(layout.outputs)))
        self._require_onto(layout)
        init = block.init
        for variable, kind in zip(block.iter_vars, block.kinds, strict=True):
            if init is not None and kind is IterKind.REDUCE:
                for op in init.walk():
                    if any(operand is variable for operand in op.operands):
                        self.refuse(6, f"{op.name} uses %{variable.name_hint or variable.index}", op, subject)
        try:
            inverse = layout.inverse()
        except NotProved as error:
            self.refuse(5, undecided(error), block, subject)
        if inverse is None:
            self.refuse(5, Violation("the way back is no single expression", "not proved"), block, subject)
        return TransformBlockLayoutPlan(block, own, layout, inverse, kinds, self._units())

    def _units(self) -> tuple[tuple[SSAValue, int], ...]:
        """The iterators of extent 1 that stay iterators; guards inside are on no others of them."""
        block = self.block
        places = {
            expr.position: at for at, expr in enumerate(self.index_map.data.results) if isinstance(expr, AffineDimExpr)
        }
        units = [variable for variable, extent in zip(block.iter_vars, block.extents, strict=True) if extent == 1]
        for variable in units:
            for op in block.body.block.walk() if variable.index not in places else ():
                if isinstance(op, BlockOp) and any(Index.of(v).depends_on([variable]) for v in op.guard_operands):
                    detail = f"a guard inside is on %{variable.name_hint or variable.index}, which goes away"
                    self.refuse(3, Violation(detail, legal="keep it as an iterator"), op, block_text(block))
        return tuple((variable, places[variable.index]) for variable in units if variable.index in places)

    def _require_free_order(self) -> None:
        block, subject = self.block, block_text(self.block)
        complete, reduction = why_not_complete(block), why_not_reduction(block)
        if complete is not None and reduction is not None:
            self.refuse(1, reduction if block.init is not None else complete, block, subject)
        self.require(1, shared_element(block), block, subject)
        if complete is not None and not combines_freely(block):
            reason = "its combiner is not known to be commutative"
            self.refuse(1, Violation(reason, "not proved"), block, subject)

    def _layout(self) -> LayoutMap:
        """The layout, which keeps instances apart."""
        block, subject = self.block, block_text(self.block)
        names = tuple(v.name_hint or f"v{v.index}" for v in block.iter_vars)
        points = Points(
            names,
            lambda point: f"({', '.join(f'{n}={v}' for n, v in zip(names, point, strict=True))})",
            "would both run as",
            "instance",
            f"the iterators are {', '.join(names) or 'none'}",
        )
        layout = layout_of(self.index_map.data, [Index.of(extent) for extent in block.extents], points)
        if isinstance(layout, Violation):
            self.refuse(3, layout, block, subject)
        self.require(4, meeting_points(layout, points), block, subject)
        return layout

    def _kind(self, at: int) -> IterKindAttr:
        """The kind of a new iterator: that of all that it is made of, where those of extent 1 do not count besides
        others."""
        block = self.block
        used = sorted(self.index_map.data.results[at].used_dims())
        moving = [dim for dim in used if block.extents[dim] != 1]
        kinds = {block.iter_kinds.data[dim] for dim in moving or used}
        if len(kinds) > 1 and moving:
            detail = f"new iterator {at} would be made of spatial and reduce iterators"
            self.refuse(3, detail, block, block_text(block))
        return kinds.pop() if len(kinds) == 1 else SPATIAL

    def _require_onto(self, layout: LayoutMap) -> None:
        block, subject = self.block, block_text(self.block)
        try:
            missed = layout.missed_index()
        except NotProved as error:
            self.refuse(5, undecided(error), block, subject)
        if missed is not None:
            violation = Violation(
                f"new instance {shown(missed)} would be none of the old",
                counterexample=named_places(missed),
                legal="a bijection; split loops first, which guards what is too much",
                replay=lambda: layout.really_missed(missed),
            )
            self.refuse(5, violation, block, subject)
