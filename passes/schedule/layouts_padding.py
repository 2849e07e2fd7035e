"""Elements that a new layout adds to a buffer: who gives them their value.

A producer that fills a buffer element by element fills the padding too. Otherwise blocks of their own do, before the
buffer is used first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from weft.analysis.index import Index, exprs_of
from weft.analysis.layout_maps import LayoutMap, Piece, substituted
from weft.analysis.structure import (
    ancestors,
    buffers_written,
    child_blocks,
    child_towards,
    function_of,
    is_inside,
    stored_buffer,
    why_not_complete,
)
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import SPATIAL, LoopKind
from weft.dialects.tir_regions import AccessRegionOp
from weft.passes.index_ops import materialize
from weft.passes.schedule.caching import free_label
from weft.passes.schedule.layouts_nests import OwnNest, named_values, own_nest, replace_iterators
from weft.passes.schedule.rewriting import nest, new_loop, take_operations
from weft.passes.tir.nest import erase_if_unused, if_around

PadValue = IntegerAttr | FloatAttr
"""A constant of the element type."""


def pad_constant(value: Attribute, element: Attribute) -> PadValue | None:
    """A number as a constant of an element type; None when the type has no such number."""
    if not isinstance(value, IntegerAttr | FloatAttr):
        return None
    number: int | float = value.value.data
    if isinstance(element, AnyFloat):
        return FloatAttr(float(number), element)
    if isinstance(element, IntegerType) and isinstance(number, int):
        bits = element.width.data
        low, high = (0, 1) if bits == 1 else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return IntegerAttr(number, element) if low <= number <= high else None
    return None


@dataclass(frozen=True)
class Padding:
    """What the elements that no old one is taken to hold."""

    value: PadValue | Index
    """A constant, or an index over the outputs of the layout."""
    element: Attribute

    def operations(self, layout: LayoutMap, indices: Sequence[SSAValue]) -> tuple[SSAValue, list[Operation]]:
        """The value at the new `indices`, and the ops that compute it."""
        if not isinstance(self.value, Index):
            constant = arith.ConstantOp(self.value)
            return constant.result, [constant]
        mapping = {old: Index.of(new) for old, new in zip(layout.outputs, indices, strict=True)}
        index, operations = materialize(self.value.substitute(mapping))
        element = self.element
        if isinstance(element, IndexType):
            return index, operations
        cast = arith.IndexCastOp(index, i64 if isinstance(element, AnyFloat) else element)
        if not isinstance(element, AnyFloat):
            return cast.result, [*operations, cast]
        number = arith.SIToFPOp(cast.result, element)
        return number.result, [*operations, cast, number]


@dataclass(frozen=True)
class Filling:
    """A producer that writes the padding too: its nest and store, and the way back from new to old indices."""

    nest: OwnNest
    store: memref.StoreOp
    inverse: tuple[Index, ...]
    inside: Piece

    def rewrite(self, layout: LayoutMap, padding: Padding) -> None:
        """Run the producer over the new box: the old body where there is an old element, the padding elsewhere."""
        block, store = self.nest.block, self.store
        stored = [Index.of(index).single_value for index in store.indices]
        new, loops = self.nest.block_over(layout, [SPATIAL] * len(layout.outputs), [v and v.name_hint for v in stored])
        body = new.body.block
        mapping = {old: Index.of(value) for old, value in zip(layout.outputs, body.args, strict=True)}
        old: dict[SSAValue, Index] = {variable: Index({}) for variable in block.iter_vars}
        for variable, index in zip(stored, substituted(self.inverse, mapping), strict=True):
            if variable is not None:
                old[variable] = index
        known = named_values(body, old)
        condition, operations = condition_of_piece(self.inside, mapping, known)
        kept = [op for op in take_operations(block.body.block) if op is not store]
        for op in [op for op in kept if isinstance(op, AccessRegionOp)]:
            kept.remove(op)
            op.erase()
        inside = Block(kept)
        inside.add_op(scf.YieldOp(store.value))
        pad, pad_operations = padding.operations(layout, list(body.args))
        outside = Block(pad_operations)
        outside.add_op(scf.YieldOp(pad))
        choice = scf.IfOp(condition, [padding.element], Region(inside), Region(outside))
        write = memref.StoreOp.create(
            operands=[choice.results[0], store.memref, *body.args], properties=dict(store.properties)
        )
        body.add_ops([*operations, choice, write])
        store.erase()
        for op in body.ops:
            op.location = block.location
        write.location = store.location
        replace_iterators(body, old, known)
        erase_if_unused([value.owner for value in known.values() if isinstance(value.owner, Operation)])
        self.nest.give_way(new, loops)


def condition_of_piece(
    piece: Piece, mapping: Mapping[SSAValue, Index], known: Mapping[Index, SSAValue]
) -> tuple[SSAValue, list[Operation]]:
    """Whether new indices are in a piece, which has conditions; and the ops that compute it where not `known`."""
    operations: list[Operation] = []
    conditions: list[SSAValue] = []
    for indices, is_zero in ((piece.positives, False), (piece.zeros, True)):
        for index in substituted(indices, mapping):
            positive = Index({atom: f for atom, f in index.terms.items() if f > 0})
            negative = positive - index + index.constant
            left, right, turned = positive, negative - index.constant, False
            if not positive.terms:  # 20 - v >= 0 reads better as v <= 20
                left, right, turned = negative, Index({}, index.constant), True
            sides: list[SSAValue] = []
            for side in (left, right):
                value, computing = (known[side], []) if side in known else materialize(side)
                operations.extend(computing)
                sides.append(value)
            predicate = "eq" if is_zero else "sle" if turned else "sge"
            compare = arith.CmpiOp(sides[0], sides[1], predicate)
            operations.append(compare)
            conditions.append(compare.result)
    result = conditions[0]
    for condition in conditions[1:]:
        both = arith.AndIOp(result, condition)
        operations.append(both)
        result = both.result
    return result, operations


def filling_of(buffer: SSAValue, layout: LayoutMap) -> Filling | None:
    """The producer of all of a buffer that can write the padding too, element by element, if there is one."""
    stores = [use.operation for use in buffer.uses if stored_buffer(use.operation) is buffer]
    if len(stores) != 1:
        return None
    (store,) = stores
    block = store.parent_op()
    if not isinstance(store, memref.StoreOp) or not isinstance(block, BlockOp) or why_not_complete(block) is not None:
        return None
    own = own_nest(block)
    if isinstance(own, str) or len(buffers_written(block)) != 1:
        return None
    if sum(stored_buffer(op) is not None for op in block.walk()) != 1:
        return None
    extents: dict[SSAValue, int | SSAValue] = dict(zip(block.iter_vars, block.extents, strict=True))
    used: set[SSAValue] = set()
    for operand, extent in zip(store.indices, layout.old_extents, strict=True):
        index = Index.of(operand)
        value = index.single_value
        if index == Index({}) and extent == Index({}, 1):
            continue
        if value is None or value in used or value not in extents or Index.of(extents[value]) != extent:
            return None
        used.add(value)
    if any(variable not in used and extent != 1 for variable, extent in extents.items()):
        return None
    inverse, inside = layout.inverse(), layout.image()
    if inverse is None or inside is None or not (inside.positives or inside.zeros):
        return None
    return Filling(own, store, inverse, inside)


@dataclass(frozen=True)
class PadBlocks:
    """Nests that write the padding, a block for each part of it, before `place`."""

    pieces: tuple[Piece, ...]
    place: Operation

    def rewrite(self, rewriter: PatternRewriter, buffer: SSAValue, layout: LayoutMap, padding: Padding) -> None:
        """Insert the nests; the buffer has its new layout already."""
        for piece in self.pieces:
            operations = self._nest(piece, buffer, layout, padding)
            rewriter.insert(operations, InsertPoint.before(self.place))

    def _nest(self, piece: Piece, buffer: SSAValue, layout: LayoutMap, padding: Padding) -> list[Operation]:
        outside: list[Operation] = []
        extents: list[int | SSAValue] = []
        for span, extent in zip(piece.spans, layout.new_extents or (), strict=True):
            value, operations = (None, []) if span is not None else materialize(extent)
            outside.extend(operations)
            extents.append(span[1] - span[0] + 1 if span is not None else value or 0)
        loops = [new_loop(extent, f"ax{at}", self.place) for at, extent in enumerate(extents)]
        body = Block(arg_types=[IndexType()] * len(extents))
        for at, variable in enumerate(body.args):
            variable.name_hint = f"v{at}"
        exprs, operands = exprs_of([Index.of(loop.induction_variable) for loop in loops])
        name = free_label(function_of(self.place), f"{buffer.name_hint or 'buffer'}_pad")
        block = BlockOp(name, [SPATIAL] * len(extents), extents, exprs, operands, Region(body))
        indices = [
            Index.of(v) + (0 if span is None else span[0]) for v, span in zip(body.args, piece.spans, strict=True)
        ]
        places: list[SSAValue] = []
        for index in indices:
            value, operations = materialize(index)
            body.add_ops(operations)
            places.append(value)
        value, operations = padding.operations(layout, places)
        writing: list[Operation] = [*operations, memref.StoreOp.get(value, buffer, places)]
        if piece.positives or piece.zeros:
            mapping = dict(zip(layout.outputs, indices, strict=True))
            condition, operations = condition_of_piece(piece, mapping, {})
            body.add_ops(operations)
            writing = [if_around(condition, writing)]
        body.add_ops(writing)
        outermost = nest(loops, [block]) or block
        for op in (*outside, *outermost.walk()):
            op.location = self.place.location
        return [*outside, outermost]


def place_before(buffer: SSAValue) -> Operation:
    """Where the padding of a buffer is written: before its first use, outside of the serial loops around all uses."""
    users = [use.operation for use in buffer.uses if isinstance(use.operation, memref.LoadOp | memref.StoreOp)]
    around: Operation = function_of(users[0])
    for parent in reversed([op for op in ancestors(users[0]) if is_inside(op, around)]):
        if not all(is_inside(user, parent) for user in users):
            break
        if isinstance(parent, ForOp):
            keeps = parent.kind.data is not LoopKind.SERIAL
        else:
            keeps = isinstance(parent, BlockOp) and bool(child_blocks(parent)) and not _in_init(parent, users)
        around = parent if keeps else around
    children = {child_towards(around, user) for user in users}
    first = child_towards(around, users[0])
    earlier: Operation | None = first.prev_op
    while earlier is not None:
        first = earlier if earlier in children else first
        earlier = earlier.prev_op
    return first


def _in_init(block: BlockOp, users: Sequence[Operation]) -> bool:
    init = block.init
    return init is not None and any(is_inside(user, init) for user in users)
