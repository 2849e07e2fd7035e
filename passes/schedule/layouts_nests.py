"""Loop nests over the image of an index map, and the substitution of iterators by indices over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import affine
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, Region, SSAValue

from weft.analysis.accesses import range_of
from weft.analysis.index import Index, exprs_of
from weft.analysis.layout_maps import LayoutMap
from weft.analysis.structure import ancestors, loops_around, parts_of
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import IterKindAttr, LoopKind
from weft.dialects.tir_regions import AccessRegionOp
from weft.passes.index_ops import materialize
from weft.passes.schedule.rewriting import become, guards_of, insert_in, nest, new_loop
from weft.passes.tir.nest import index_before
from weft.support.errors import InternalError


@dataclass(frozen=True)
class OwnNest:
    """A block, and loops that hold nothing else, one for each of its iterators: together they run its domain once."""

    block: BlockOp
    loops: tuple[ForOp, ...]
    """Outermost first."""

    def block_over(
        self, layout: LayoutMap, kinds: Sequence[IterKindAttr], hints: Sequence[str | None]
    ) -> tuple[BlockOp, list[ForOp]]:
        """An empty block over the new box, bound to new loops; they stand nowhere yet. `hints` name the old indices."""
        block, outer = self.block, self._outermost
        if layout.new_extents is None:
            raise InternalError("a nest to replace has no new extents")
        extents: list[int | SSAValue] = []
        for extent in layout.new_extents:
            value, operations = materialize(extent) if not extent.is_constant else (None, [])
            if operations:
                self._parent.insert_ops_before(operations, outer)
            extents.append(extent.constant if value is None else value)
        loops = [new_loop(extent, f"ax{at}", outer) for at, extent in enumerate(extents)]
        body = Block(arg_types=[IndexType()] * len(extents))
        for argument, name in zip(body.args, layout.names(hints), strict=True):
            argument.name_hint = name
        exprs, operands = exprs_of([Index.of(loop.induction_variable) for loop in loops])
        new = BlockOp(block.label, kinds, extents, exprs, operands, Region(body), annotations=block.attributes)
        new.location = block.location
        return new, loops

    def give_way(self, new: BlockOp, loops: Sequence[ForOp]) -> None:
        """The block becomes `new`, in `loops`, at the place of the nest."""
        outer, parent, block = self._outermost, self._parent, self.block
        following = outer.next_op
        outer.detach()
        if outer is not block:
            block.detach()
        become(block, new)
        outermost = nest(loops, [block]) or block
        insert_in(parent, [outermost], following)
        if outer is not block:
            outer.erase()

    @property
    def _outermost(self) -> Operation:
        return self.loops[0] if self.loops else self.block

    @property
    def _parent(self) -> Block:
        parent = self._outermost.parent
        if parent is None:
            raise InternalError("a nest to replace is in no function")
        return parent


def own_nest(block: BlockOp) -> OwnNest | str:
    """The nest that is the block's own, or why there is none."""
    name = f'block "{block.label}"'
    if len(parts_of(block)) > 1:
        return f"loop_partition made {name} one of several parts of a block"
    if block.guard is not None:
        return f"{name} has a guard"
    bindings = Index.of_map(block.bindings.data, block.binding_operands)
    around: dict[SSAValue, ForOp] = {loop.induction_variable: loop for loop in loops_around(block)}
    bound: list[ForOp] = []
    for variable, index, extent in zip(block.iter_vars, bindings, block.extents, strict=True):
        if extent == 1 and index == Index({}):
            continue
        value = index.single_value
        loop = None if value is None else around.get(value)
        shown = f"%{variable.name_hint or variable.index}"
        if loop is None or loop in bound:
            return f"iterator {shown} is bound to {index!r}, not to a loop of its own"
        if loop.extent != extent:
            return f"iterator {shown} and its loop have different extents"
        bound.append(loop)
    chain: list[ForOp] = []
    inner: Operation = block
    for parent in ancestors(block):
        if len(chain) == len(bound) or not isinstance(parent, ForOp):
            break
        loop_name = f"%{parent.induction_variable.name_hint or '?'}"
        if parent.body.block.first_op is not inner or parent.body.block.last_op is not inner:
            return f"loop {loop_name} holds more than {name}"
        if parent not in bound:
            return f"no iterator of {name} is bound to loop {loop_name}"
        if parent.kind.data is not LoopKind.SERIAL:
            return f"loop {loop_name} is {parent.kind.data.value}"
        chain.append(parent)
        inner = parent
    return OwnNest(block, tuple(reversed(chain)))


def named_values(body: Block, indices: Mapping[SSAValue, Index]) -> dict[Index, SSAValue]:
    """Compute what iterators were at the end of `body`, called as they were."""
    known: dict[Index, SSAValue] = {}
    for variable, index in indices.items():
        if index not in known:
            value, operations = materialize(index)
            body.add_ops(operations)
            if operations:
                value.name_hint = variable.name_hint
            known[index] = value
    return known


def replace_iterators(body: Block, mapping: Mapping[SSAValue, Index], known: Mapping[Index, SSAValue]) -> None:
    """Let what is in `body` compute with indices over other values instead of iterators: affine expressions, bindings
    and stated regions whole, so that they stay simple, and the rest with values that are `known`."""
    for op in [op for op in body.walk() if any(operand in mapping for operand in op.operands)]:
        if isinstance(op, affine.ApplyOp):
            index = Index.of(op.result).substitute(mapping, range_of).simplified(range_of)
            value = known.get(index) or index_before(index, op, op.result.name_hint)
            op.result.replace_all_uses_with(value)
            op.detach()
            op.erase()
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
    """Replace iterators around a block in its bindings and guards. An iterator of extent 1 stays in them: a guard on
    what is around says what a block leaves out, a constant one would leave out part of its domain always."""
    bindings = Index.of_map(block.bindings.data, block.binding_operands)
    block.set_bindings(*exprs_of([index.substitute(mapping, range_of) for index in bindings]))
    sides = [side.substitute(mapping, range_of) for guard in guards_of(block) for side in guard]
    exprs, operands = exprs_of(sides)
    block.set_guards(list(zip(exprs[::2], exprs[1::2], strict=True)), operands)


def set_corner(op: AccessRegionOp, corner: Sequence[Index], sizes: Sequence[int] | None = None) -> None:
    """State the region from another corner."""
    exprs, operands = exprs_of(corner)
    new = type(op)(op.buffer, exprs, operands, op.box_sizes if sizes is None else sizes)
    op.operands = list(new.operands)
    op.properties = dict(new.properties)
    new.drop_all_references()
