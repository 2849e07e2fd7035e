"""Layouts of buffers: index maps, and the rewrite of all accesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Final

from xdsl.dialects import affine, arith, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StringAttr,
    SymbolRefAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import range_of
from weft.analysis.block_scopes import (
    ancestors,
    buffers_written,
    child_blocks,
    child_towards,
    function_of,
    stored_buffer,
    why_not_complete,
)
from weft.analysis.dependence import buffer_name, is_temporary
from weft.analysis.index import Index
from weft.analysis.layout_maps import LayoutMap, Piece, substituted
from weft.dialects.aliasing import overlapping
from weft.dialects.effects import op_name
from weft.dialects.tir import AccessRegionOp, AssumeShapeOp, BlockOp, ForOp
from weft.dialects.tir_kinds import SPATIAL, STORAGE_ALIGN, LoopKind
from weft.dialects.traversal import operations_in
from weft.passes.index_builders import (
    branch_before,
    conjunction_before,
    constant_before,
    detached_ops,
    end_of,
    erase_if_unused,
    index_before,
    insert_before,
    result_before,
    set_access,
)
from weft.passes.schedule.caching import buffer_at, buffer_extents, free_label, memref_type, replace_alloc
from weft.passes.schedule.checks import element_text, found_overlapping, place_text
from weft.passes.schedule.dominance import why_not_dominating
from weft.passes.schedule.index_maps import Points, missed_place, required_layout, why_not_function
from weft.passes.schedule.nest_builders import block_in_loops, extent_before, named_values, set_corner
from weft.passes.schedule.primitive import BufferPosition, Plan
from weft.passes.schedule.transform_block_layout import OwnNest, own_nest, replace_iterators
from weft.passes.schedule.trial_application import RecheckedPrimitive
from weft.support.errors import InternalError, Violation

UNDEFINED: Final = "undefined"
"""The `pad_value` of padding that is neither written nor read."""
PadValue = IntegerAttr | FloatAttr


def pad_constant(value: Attribute, element: Attribute) -> PadValue | None:
    """None if the type cannot represent the number."""
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
class LayoutPadding:
    """The value of new elements to which no old one is mapped."""

    value: PadValue | Index
    """A constant, or an index over the outputs of the layout."""
    element: Attribute

    def value_before(self, layout: LayoutMap, indices: Sequence[SSAValue], anchor: Operation) -> SSAValue:
        if not isinstance(self.value, Index):
            return result_before(arith.ConstantOp(self.value), anchor)
        mapping = {old: Index.of(new) for old, new in zip(layout.outputs, indices, strict=True)}
        index, element = index_before(self.value.substitute(mapping), anchor), self.element
        if isinstance(element, IndexType):
            return index
        if not isinstance(element, AnyFloat):
            return result_before(arith.IndexCastOp(index, element), anchor)
        return result_before(arith.SIToFPOp(result_before(arith.IndexCastOp(index, i64), anchor), element), anchor)


@dataclass(frozen=True)
class Filling:
    """The nest and store of a producer, and the map from new to old indices."""

    nest: OwnNest
    store: memref.StoreOp
    inverse: tuple[Index, ...]
    inside: Piece

    def rewrite(self, layout: LayoutMap, padding: LayoutPadding) -> None:
        """The producer runs the old body for old elements of the new box, and stores the padding in others."""
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
        kept = [op for op in detached_ops(block.body.block) if op is not store]
        for op in [op for op in kept if isinstance(op, AccessRegionOp)]:
            kept.remove(op)
            op.erase()
        inside, outside = Block([*kept, scf.YieldOp(store.value)]), Block()
        with end_of(outside) as anchor:
            pad = padding.value_before(layout, list(body.args), anchor)
        outside.add_op(scf.YieldOp(pad))
        with end_of(body) as anchor:
            condition = condition_of_piece(self.inside, mapping, known, anchor)
        choice = scf.IfOp(condition, [padding.element], Region(inside), Region(outside))
        write = memref.StoreOp.create(
            operands=[choice.results[0], store.memref, *body.args], properties=dict(store.properties)
        )
        body.add_ops([choice, write])
        store.erase()
        for op in body.ops:
            op.location = block.location
        write.location = store.location
        replace_iterators(body, old, known)
        erase_if_unused(known.values())
        self.nest.replace_nest(new, loops)


def condition_of_piece(
    piece: Piece, mapping: Mapping[SSAValue, Index], known: Mapping[Index, SSAValue], anchor: Operation
) -> SSAValue:
    """Values that are not `known` are computed just before `anchor`."""
    conditions: list[SSAValue] = []
    for indices, is_zero in ((piece.inequalities, False), (piece.equalities, True)):
        for index in substituted(indices, mapping):
            left, predicate = Index({atom: f for atom, f in index.terms.items() if f > 0}), "sge"
            right = left - index
            if not left.terms:  # more readable than 20 - v >= 0
                left, right, predicate = right + index.constant, Index({}, index.constant), "sle"
            sides = [known.get(side) or index_before(side, anchor) for side in (left, right)]
            compare = arith.CmpiOp(sides[0], sides[1], "eq" if is_zero else predicate)
            conditions.append(result_before(compare, anchor))
    return conjunction_before(conditions, anchor)


def filling_of(buffer: SSAValue, layout: LayoutMap) -> Filling | None:
    """The producer of the whole buffer, element by element, if it can also write the padding."""
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
    if inverse is None or inside is None or not (inside.inequalities or inside.equalities):
        return None
    return Filling(own, store, inverse, inside)


def place_before(buffer: SSAValue) -> Operation:
    """The first use, outside of the serial loops around all uses."""
    users = [use.operation for use in buffer.uses if isinstance(use.operation, memref.LoadOp | memref.StoreOp)]
    around: Operation = function_of(users[0])
    for parent in reversed([op for op in ancestors(users[0]) if around.is_ancestor(op)]):
        if not all(parent.is_ancestor(user) for user in users):
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
    return init is not None and any(init.is_ancestor(user) for user in users)


@dataclass(frozen=True)
class TransformLayoutPlan(Plan):
    """The padding is written by the producer, or before `place` by one block for each of the `pieces`."""

    buffer: SSAValue
    layout: LayoutMap
    padding: LayoutPadding | None = None
    filling: Filling | None = None
    pieces: tuple[Piece, ...] = ()
    place: Operation | None = None

    def rewrite(self) -> tuple[Operation, ...]:
        if self.padding is not None and self.filling is not None:
            self.filling.rewrite(self.layout, self.padding)
        written = None if self.filling is None else self.filling.nest.block
        rewrite_uses(self.buffer, self.layout, written)
        new = self._retyped()
        if self.padding is not None and self.place is not None:
            for piece in self.pieces:
                nest_op = self._padding_nest(piece, new, self.padding, self.place)
                Rewriter.insert_op(nest_op, InsertPoint.before(self.place))
        return ()

    def _retyped(self) -> SSAValue:
        old, buffer = memref_type(self.buffer), self.buffer
        extents, owner = self.layout.new_extents or (), buffer.owner
        if isinstance(owner, memref.AllocOp):
            return replace_alloc(owner, [extent_before(extent, owner) for extent in extents], old.memory_space)
        shape = [extent.constant if extent.is_constant else DYNAMIC_INDEX for extent in extents]
        function = function_of(next(iter(buffer.uses)).operation)
        type_ = MemRefType(old.element_type, shape, memory_space=old.memory_space)
        new = Rewriter.replace_value_with_new_type(buffer, type_)
        function.update_function_type()
        return new

    def _padding_nest(self, piece: Piece, buffer: SSAValue, padding: LayoutPadding, place: Operation) -> Operation:
        """The buffer already has its new layout."""
        extents = [
            extent_before(extent, place) if span is None else span[1] - span[0] + 1
            for span, extent in zip(piece.spans, self.layout.new_extents or (), strict=True)
        ]
        name = free_label(function_of(place), f"{buffer.name_hint or 'buffer'}_pad")
        hints = [f"v{at}" for at in range(len(extents))]
        block, outermost = block_in_loops(name, [SPATIAL] * len(extents), extents, hints, place)
        lower = [0 if span is None else span[0] for span in piece.spans]
        indices = [Index.of(variable) + low for variable, low in zip(block.iter_vars, lower, strict=True)]
        mapping = dict(zip(self.layout.outputs, indices, strict=True))
        with end_of(block.body.block) as end:
            end.location = place.location
            places = [index_before(index, end) for index in indices]
            partial = piece.inequalities or piece.equalities
            condition = condition_of_piece(piece, mapping, {}, end) if partial else None
            with branch_before(condition, end) as anchor:
                value = padding.value_before(self.layout, places, anchor)
                insert_before(anchor, [memref.StoreOp.get(value, buffer, places)])
        return outermost


def rewrite_uses(buffer: SSAValue, layout: LayoutMap, written: BlockOp | None) -> None:
    """Except the store of the block `written`, which has the new indices."""
    users = dict.fromkeys(use.operation for use in buffer.uses)
    function = function_of(next(iter(users)))
    known: dict[tuple[Block, Index], SSAValue] = {}
    for op in [op for op in operations_in(function) if op in users or isinstance(op, affine.ApplyOp)]:
        if isinstance(op, affine.ApplyOp):
            if op.parent is not None:
                known.setdefault((op.parent, Index.of(op.result)), op.result)
        elif isinstance(op, memref.LoadOp | memref.StoreOp):
            if isinstance(op, memref.LoadOp) or op.parent_op() is not written:
                _rewrite_access(op, layout, known)
        elif isinstance(op, AccessRegionOp):
            _rewrite_region(op, layout)
        elif isinstance(op, memref.DimOp):
            _rewrite_dim(op, layout)
        elif isinstance(op, AssumeShapeOp):
            order = [
                _unchanged_dimension(layout, at)
                for at, extent in enumerate(layout.old_extents)
                if not extent.is_constant
            ]
            moved = dict(zip(order, op.values, strict=True))
            op.operands = [op.buffer, *(moved[at] for at in sorted(moved))]
        else:
            raise InternalError(f"{op.name} cannot follow a layout")


def _rewrite_access(
    op: memref.LoadOp | memref.StoreOp, layout: LayoutMap, known: dict[tuple[Block, Index], SSAValue]
) -> None:
    old = list(op.indices)
    computed = {Index.of(operand): operand for operand in old}
    values: list[SSAValue] = []
    for index in layout.applied(list(map(Index.of, old))):
        value = computed.get(index) or _visible(op, index, known)
        if value is None:
            value = index_before(index, op)
            if op.parent is not None and isinstance(value.owner, Operation):
                known[(op.parent, index)] = value
        values.append(value)
    set_access(op, op.memref, values)


def _visible(op: Operation, index: Index, known: dict[tuple[Block, Index], SSAValue]) -> SSAValue | None:
    block = op.parent
    while block is not None:
        value = known.get((block, index))
        if value is not None and isinstance(value.owner, Operation) and value.owner.parent is not None:
            return value
        parent = block.parent_op()
        block = None if parent is None else parent.parent
    return None


def _rewrite_region(op: AccessRegionOp, layout: LayoutMap) -> None:
    """The region becomes the box around its new elements, or is dropped if the corner has no expression."""
    steps = Block(arg_types=[index.type for index in layout.inputs]).args
    sizes: dict[SSAValue, int] = dict(zip(steps, op.box_sizes, strict=True))

    def ranges(value: SSAValue) -> tuple[int | None, int | None]:
        return (0, sizes[value] - 1) if value in sizes else range_of(value)

    corner = Index.of_map(op.corner.data, list(op.corner_operands))
    inside = [index + Index.of(step) for index, step in zip(corner, steps, strict=True)]
    corners: list[Index] = []
    extents: list[int] = []
    for index in layout.applied(inside, ranges):
        moving = Index({atom: f for atom, f in index.terms.items() if Index({atom: 1}).depends_on(steps)})
        low, high = moving.range(ranges)
        if low is None or high is None:
            Rewriter.erase_op(op)
            return
        corners.append(index - moving + low)
        extents.append(high - low + 1)
    set_corner(op, corners, extents)


def _rewrite_dim(op: memref.DimOp, layout: LayoutMap) -> None:
    at = Index.of(op.index).constant
    extent = layout.old_extents[at]
    if not is_temporary(op.source) and not extent.is_constant:
        op.operands[1] = constant_before(_unchanged_dimension(layout, at), op)
        return
    op.result.replace_all_uses_with(index_before(extent, op, op.result.name_hint))
    Rewriter.erase_op(op)


def _unchanged_dimension(layout: LayoutMap, at: int) -> int:
    wanted = layout.inputs[at]
    holders = [place for place, index in enumerate(layout.results) if index.depends_on([wanted])]
    return holders[0] if len(holders) == 1 and layout.results[holders[0]].single_value is wanted else -1


@dataclass(frozen=True)
class TransformLayout(RecheckedPrimitive):
    """Change the layout of a buffer: move its element at `indices` to `index_map(indices)`, and rewrite all accesses.

    Requirements:
    1. the block reads or writes a buffer at this index
    2. the index map takes the indices of the buffer to a box: all of them, to non-negative ones, in a box whose extents
       follow from those of the buffer
    3. no two elements are mapped to one place
    4. every position of the new layout is an element, or padding: padding requires `pad_value`
    5. the padding can be written: by a value of the element type, in a function that writes the buffer (else it is the
       caller's: `cache_read` first); "undefined" requires a temporary whose padding no access reads
    6. all that uses the buffer can follow: loads, stores, annotated regions and extents
    7. loops that run in parallel stay independent

    The new box is the least that contains all indices. A block that fills the buffer element by element over dedicated
    loops also writes the padding (its loops become loops over the new buffer); otherwise separate blocks `<buffer>_pad`
    do, before the first use. Callers pass transformed parameters in the new shape, and their padding is written.
    Indices are simplified by ranges of loops and iterators.

    ```mlir
    %T = memref.alloc() : memref<64x30xf32>
    memref.store %x, %T[%vi, %vj]                                     // memref.load %T[%vi, %vo * 4 + %vc]
    // transform_layout "T" {buffer = ["write", 0], index_map = (i, j) -> (j floordiv 4, i, j mod 4), pad_value = 0}
    %T = memref.alloc() : memref<8x64x4xf32>
    memref.store %x, %T[%vj floordiv 4, %vi, %vj mod 4]               // memref.load %T[%vo, %vi, %vc]
    ```
    """

    block: BlockOp
    buffer: BufferPosition
    index_map: AffineMapAttr
    pad_value: Attribute | None = None

    def plan(self) -> Plan:
        plan = self.draft()
        # Without padding, the same iterations touch the same elements, since the map is injective.
        return plan if plan.padding is None else self.checked_on_copy(plan)

    def draft(self) -> TransformLayoutPlan:
        block = self.block
        buffer = buffer_at(self, block, *self.buffer)
        with self.deciding(2):
            layout = self._layout(buffer)
            self._require_rewritable_uses(buffer, layout)
            missed = layout.missed_index()
        if missed is None:
            return TransformLayoutPlan(buffer, layout)
        return self._padded(buffer, layout, missed)

    def _layout(self, buffer: SSAValue) -> LayoutMap:
        name = buffer_name(buffer)
        extents = buffer_extents(buffer)
        points = Points(
            tuple(f"d{at}" for at in range(len(extents))),
            partial(element_text, buffer),
            "would both be stored at",
            "element",
            f"{name} is {buffer.type}",
        )
        return required_layout(self, (2, 3), self.index_map.data, extents, points)

    def _padded(self, buffer: SSAValue, layout: LayoutMap, missed: Sequence[int]) -> TransformLayoutPlan:
        if self.pad_value is None:
            detail = f"no element is mapped to {place_text(missed)}"
            shape = "x".join(map(repr, layout.new_extents or ()))
            legal = f"pad_value=..., which the rest of the new buffer, {shape}, is filled with"
            self.refuse(4, missed_place(layout, missed, detail, legal))
        element = memref_type(buffer).element_type
        if isinstance(self.pad_value, StringAttr) and self.pad_value.data == UNDEFINED:
            detail = f"{buffer_name(buffer)} is a parameter, whose padding others may read"
            self.require(5, None if is_temporary(buffer) else Violation(detail, legal="a value of the padding"))
            return TransformLayoutPlan(buffer, layout)
        padding = self._padding(layout, element)
        writers = [use.operation for use in buffer.uses if stored_buffer(use.operation) is buffer]
        if not writers:
            legal = "cache_read the buffer, and transform the copy"
            detail = f"the function only reads {buffer_name(buffer)}: its padding would be the caller's"
            self.refuse(5, Violation(detail, legal=legal))
        filling = filling_of(buffer, layout)
        if filling is not None:
            return TransformLayoutPlan(buffer, layout, padding, filling)
        place = place_before(buffer)
        for at, extent in enumerate(layout.old_extents):
            if extent.single_value is buffer:
                detail = f"the function does not know extent {at} of {buffer_name(buffer)}"
                self.refuse(5, Violation(detail, legal="state it with tir.assume_shape"))
        used = [value for extent in layout.new_extents or () for value in extent.values()]
        self.require(5, why_not_dominating(used, InsertPoint.before(place)), place)
        with self.deciding(5):
            pieces = layout.missed()
        return TransformLayoutPlan(buffer, layout, padding, None, pieces, place)

    def _padding(self, layout: LayoutMap, element: Attribute) -> LayoutPadding:
        value = self.pad_value
        if isinstance(value, AffineMapAttr):
            why = why_not_function(value.data, len(layout.outputs))
            if why is None and len(value.data.results) != 1:
                why = f"it gives {len(value.data.results)} values"
            self.require(5, None if why is None else f"the padding: {why}")
            dims = [Index.of(output) for output in layout.outputs]
            return LayoutPadding(Index.of_expr(value.data.results[0], dims), element)
        constant = None if value is None else pad_constant(value, element)
        if constant is None:
            self.refuse(5, f"{value} is not a value of type {element}")
        if isinstance(constant, FloatAttr) and isinstance(value, FloatAttr) and isfinite(value.value.data):
            self.require(5, None if isfinite(constant.value.data) else f"{value} is not a value of type {element}")
        return LayoutPadding(constant, element)

    def _require_rewritable_uses(self, buffer: SSAValue, layout: LayoutMap) -> None:
        name = buffer_name(buffer)
        if not isinstance(memref_type(buffer).layout, NoneAttr):
            self.refuse(6, f"{name} is {buffer.type}: its strides are the caller's")
        owner = buffer.owner
        if isinstance(owner, Operation) and STORAGE_ALIGN in owner.attributes:
            self.refuse(6, f"storage_align speaks of the axes of {name}", owner)
        for use in buffer.uses:
            user = use.operation
            if isinstance(user, memref.DimOp) and not Index.of(user.index).is_constant:
                self.refuse(6, f"{op_name(user)} queries an extent that is known at run time", user)
            if not isinstance(user, memref.LoadOp | memref.StoreOp | AccessRegionOp | memref.DimOp | AssumeShapeOp) or (
                isinstance(user, memref.StoreOp) and use.index == 0
            ):
                self.refuse(6, f"{op_name(user)} works on {name} in its present layout", user)
        if is_temporary(buffer):
            return
        for other in overlapping(buffer):
            detail = f"{name} is a parameter whose memory others access in its present layout"
            self.require(6, found_overlapping(detail, buffer, other))
        for at, extent in enumerate(layout.old_extents):
            if not extent.is_constant and _unchanged_dimension(layout, at) < 0:
                detail = f"dimension {at} of parameter {name} has an extent that callers give, but does not stay whole"
                self.refuse(6, detail)
        caller = self._caller()
        if caller is not None:
            self.refuse(6, f"{caller.name} passes {name} in its present layout", caller)

    def _caller(self) -> Operation | None:
        function = function_of(self.block)
        module = next((op for op in ancestors(function) if isinstance(op, ModuleOp)), None)
        name = function.sym_name.data
        for op in () if module is None else operations_in(module):
            for value in (*op.properties.values(), *op.attributes.values()):
                if isinstance(value, SymbolRefAttr) and value.root_reference.data == name:
                    return op
        return None
