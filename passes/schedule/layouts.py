"""transform_layout: the layout of a buffer, given by an index map; all accesses are rewritten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from xdsl.dialects import affine, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    DenseArrayBase,
    FloatAttr,
    IndexType,
    MemRefType,
    ModuleOp,
    NoneAttr,
    SymbolRefAttr,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import Rewriter

from weft.analysis.accesses import range_of
from weft.analysis.dependence import buffer_name, is_temporary, undecided
from weft.analysis.index import Index
from weft.analysis.layout_maps import LayoutMap
from weft.analysis.sets import NotProved
from weft.analysis.structure import ancestors, buffers_read, buffers_written, function_of, stored_buffer
from weft.dialects.effects import op_name
from weft.dialects.tir import BlockOp
from weft.dialects.tir_kinds import STORAGE_ALIGN
from weft.dialects.tir_regions import AccessRegionOp, AssumeShapeOp
from weft.dialects.traversal import operations_in
from weft.passes.index_ops import materialize
from weft.passes.schedule.caching import pick
from weft.passes.schedule.copying import memref_type
from weft.passes.schedule.layouts_checks import Points, layout_of, meeting_points, named_places, shown
from weft.passes.schedule.layouts_functions import why_not_function
from weft.passes.schedule.layouts_nests import set_corner
from weft.passes.schedule.layouts_padding import Filling, PadBlocks, Padding, filling_of, pad_constant, place_before
from weft.passes.schedule.primitive import BufferPlace, Plan, Primitive, block_text
from weft.passes.schedule.trial_application import MovingPrimitive
from weft.passes.tir.nest import erase_if_unused, index_before, index_constant
from weft.support.errors import CompileError, InternalError, Violation


def buffer_at(primitive: Primitive, block: BlockOp, place: BufferPlace) -> SSAValue:
    """The buffer at a place such as `("write", 0)`; refuses requirement 1 where there is none."""
    verb, index = place
    if verb not in ("read", "write"):
        raise CompileError(f"a buffer of a block is given as ('read', 0) or ('write', 0), got '{verb}'")
    buffers = buffers_read(block) if verb == "read" else buffers_written(block)
    return pick(primitive, block, buffers, index, f"{verb}s")


@dataclass(frozen=True)
class TransformLayoutPlan(Plan):
    """A buffer, its layout, and who writes the padding."""

    buffer: SSAValue
    layout: LayoutMap
    padding: Padding | None
    filling: Filling | None
    pads: PadBlocks | None

    def rewrite(self, rewriter: PatternRewriter) -> tuple[Operation, ...]:
        if self.padding is not None and self.filling is not None:
            self.filling.rewrite(self.layout, self.padding)
        written = None if self.filling is None else self.filling.nest.block
        follow(self.buffer, self.layout, written)
        new = self._retyped()
        if self.padding is not None and self.pads is not None:
            self.pads.rewrite(rewriter, new, self.layout, self.padding)
        rewriter.has_done_action = True
        return ()

    def _retyped(self) -> SSAValue:
        """The buffer with its new type: an allocation of new extents, or a parameter."""
        old, buffer = memref_type(self.buffer), self.buffer
        extents = self.layout.new_extents or ()
        shape = [extent.constant if extent.is_constant else DYNAMIC_INDEX for extent in extents]
        type_ = MemRefType(old.element_type, shape, memory_space=old.memory_space)
        owner = buffer.owner
        if isinstance(owner, memref.AllocOp):
            sizes: list[SSAValue] = []
            for extent in (extent for extent in extents if not extent.is_constant):
                value, operations = materialize(extent)
                if owner.parent is not None:
                    owner.parent.insert_ops_before(operations, owner)
                sizes.append(value)
            owner.operands = sizes
            owner.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, [len(sizes), 0])
        function = function_of(next(iter(buffer.uses)).operation)
        new = Rewriter.replace_value_with_new_type(buffer, type_)
        function.update_function_type()
        return new


def follow(buffer: SSAValue, layout: LayoutMap, written: BlockOp | None) -> None:
    """Let everything that uses a buffer do so by new indices. The store of the block `written` does already."""
    users = dict.fromkeys(use.operation for use in buffer.uses)
    function = function_of(next(iter(users)))
    known: dict[tuple[Block, Index], SSAValue] = {}
    for op in [op for op in operations_in(function) if op in users or isinstance(op, affine.ApplyOp)]:
        if isinstance(op, affine.ApplyOp):
            if op.parent is not None:
                known.setdefault((op.parent, Index.of(op.result)), op.result)
        elif isinstance(op, memref.LoadOp | memref.StoreOp):
            if isinstance(op, memref.LoadOp) or op.parent_op() is not written:
                _follow_access(op, layout, known)
        elif isinstance(op, AccessRegionOp):
            _follow_region(op, layout)
        elif isinstance(op, memref.DimOp):
            _follow_dimension(op, layout)
        elif isinstance(op, AssumeShapeOp):
            order = [_bare(layout, at) for at, extent in enumerate(layout.old_extents) if not extent.is_constant]
            op.operands = [op.buffer, *(value for _, value in sorted(zip(order, op.extents, strict=True), key=_place))]
        else:
            raise InternalError(f"{op.name} cannot follow a layout")


def _place(pair: tuple[int, SSAValue]) -> int:
    return pair[0]


def _follow_access(
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
    op.operands = [*op.operands[: len(op.operands) - len(old)], *values]
    erase_if_unused([operand.op for operand in old if isinstance(operand, OpResult)])


def _visible(op: Operation, index: Index, known: dict[tuple[Block, Index], SSAValue]) -> SSAValue | None:
    """The value of an index that was computed before in a block around `op`, and still is."""
    block = op.parent
    while block is not None:
        value = known.get((block, index))
        if value is not None and isinstance(value.owner, Operation) and value.owner.parent is not None:
            return value
        parent = block.parent_op()
        block = None if parent is None else parent.parent
    return None


def _follow_region(op: AccessRegionOp, layout: LayoutMap) -> None:
    """The box around the new places of a box; nothing is stated where its corner is no expression."""
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
            op.detach()
            op.erase()
            return
        corners.append(index - moving + low)
        extents.append(high - low + 1)
    set_corner(op, corners, extents)


def _follow_dimension(op: memref.DimOp, layout: LayoutMap) -> None:
    at = Index.of(op.index).constant
    extent = layout.old_extents[at]
    if not is_temporary(op.source) and not extent.is_constant:
        constant = index_constant(_bare(layout, at))
        if op.parent is not None:
            op.parent.insert_ops_before([constant], op)
        op.operands[1] = constant.result
        return
    op.result.replace_all_uses_with(index_before(extent, op, op.result.name_hint))
    op.detach()
    op.erase()


def _bare(layout: LayoutMap, at: int) -> int:
    """The new dimension that an old one becomes whole; -1 when there is none."""
    wanted = layout.inputs[at]
    holders = [place for place, index in enumerate(layout.results) if index.depends_on([wanted])]
    return holders[0] if len(holders) == 1 and layout.results[holders[0]].single_value is wanted else -1


@dataclass(frozen=True)
class TransformLayout(MovingPrimitive):
    """A buffer in another layout: its element at `indices` comes to lie at `index_map(indices)`, and all that accesses
    the buffer follows.

    Requirements:
    1. the block reads or writes that many buffers
    2. the index map takes the indices of the buffer to a box: it takes as many indices as the buffer has, to indices
       that are not negative, in a box whose extents follow from those of the buffer
    3. no two elements come to lie in one place
    4. every place holds an element, or padding: unless there is a value for the padding
    5. the padding can be written: the value is one of the element type, and the function writes the buffer (the padding
       of a buffer that it only reads is the caller's: `cache_read` it first)
    6. all that uses the buffer can follow: loads, stores, stated regions and extents
    7. loops that run in parallel stay independent: parallel and vectorized ones

    The new buffer is as large as the index map reaches. The padding is written by the block that fills the buffer, when
    that runs element by element over loops of its own (they become loops over the new buffer), else by blocks of its
    own, called `<buffer>_pad`, before the first use. Parameters may be transformed: callers then pass buffers of the
    new shape, and get the padding written. Indices are simplified by the ranges of loops and iterators.

    ```mlir
    %T = memref.alloc() : memref<64x30xf32>
    memref.store %x, %T[%vi, %vj]                                     // memref.load %T[%vi, %vo * 4 + %vc]
    // transform_layout "T" {buffer = ["write", 0], index_map = (i, j) -> (j floordiv 4, i, j mod 4), pad_value = 0}
    %T = memref.alloc() : memref<8x64x4xf32>
    memref.store %x, %T[%vj floordiv 4, %vi, %vj mod 4]               // memref.load %T[%vo, %vi, %vc]
    ```
    """

    block: BlockOp
    buffer: BufferPlace
    index_map: AffineMapAttr
    pad_value: Attribute | None = None

    def plan(self) -> Plan:
        plan = self.draft()
        # Without padding to write, the same iterations touch one element as before: no two elements meet.
        return plan if plan.padding is None else self.checked_on_copy(plan)

    def draft(self) -> TransformLayoutPlan:
        block, subject = self.block, block_text(self.block)
        buffer = buffer_at(self, block, self.buffer)
        try:
            layout = self._layout(buffer)
            self._require_followers(buffer, layout)
            missed = layout.missed_index()
        except NotProved as error:
            self.refuse(2, undecided(error), block, subject)
        if missed is None:
            return TransformLayoutPlan(block, buffer, layout, None, None, None)
        return self._padded(buffer, layout, missed)

    def _layout(self, buffer: SSAValue) -> LayoutMap:
        """The layout, which keeps elements apart."""
        block, subject = self.block, block_text(self.block)
        name = buffer_name(buffer)
        extents = extents_for(buffer)
        points = Points(
            tuple(f"d{at}" for at in range(len(extents))),
            lambda point: f"{name}{shown(point)}",
            "would both lie at",
            "element",
            f"{name} is {buffer.type}",
        )
        layout = layout_of(self.index_map.data, extents, points)
        if isinstance(layout, Violation):
            self.refuse(2, layout, block, subject)
        self.require(3, meeting_points(layout, points), block, subject)
        return layout

    def _padded(self, buffer: SSAValue, layout: LayoutMap, missed: Sequence[int]) -> TransformLayoutPlan:
        block, subject = self.block, block_text(self.block)
        if self.pad_value is None:
            detail = f"no element comes to lie at {shown(missed)}"
            shape = "x".join(map(repr, layout.new_extents or ()))
            legal = f"pad_value=..., which the rest of the new buffer, {shape}, is filled with"
            places, replay = named_places(missed), lambda: layout.really_missed(missed)
            self.refuse(4, Violation(detail, counterexample=places, legal=legal, replay=replay), block, subject)
        element = memref_type(buffer).element_type
        padding = self._padding(layout, element)
        writers = [use.operation for use in buffer.uses if stored_buffer(use.operation) is buffer]
        if not writers:
            legal = "cache_read the buffer, and transform the copy"
            detail = f"the function only reads {buffer_name(buffer)}: its padding would be the caller's"
            self.refuse(5, Violation(detail, legal=legal), block, subject)
        filling = filling_of(buffer, layout)
        if filling is not None:
            return TransformLayoutPlan(block, buffer, layout, padding, filling, None)
        try:
            pads = PadBlocks(layout.missed(), place_before(buffer))
        except NotProved as error:
            self.refuse(5, undecided(error), block, subject)
        return TransformLayoutPlan(block, buffer, layout, padding, None, pads)

    def _padding(self, layout: LayoutMap, element: Attribute) -> Padding:
        block, subject = self.block, block_text(self.block)
        value = self.pad_value
        if isinstance(value, AffineMapAttr):
            why = why_not_function(value.data, len(layout.outputs))
            if why is None and len(value.data.results) != 1:
                why = f"it gives {len(value.data.results)} values"
            self.require(5, None if why is None else f"the padding: {why}", block, subject)
            dims = [Index.of(output) for output in layout.outputs]
            return Padding(Index.of_expr(value.data.results[0], dims), element)
        constant = None if value is None else pad_constant(value, element)
        if constant is None:
            self.refuse(5, f"{value} is no {element}", block, subject)
        if isinstance(constant, FloatAttr) and isinstance(value, FloatAttr) and isfinite(value.value.data):
            self.require(5, None if isfinite(constant.value.data) else f"{value} is no {element}", block, subject)
        return Padding(constant, element)

    def _require_followers(self, buffer: SSAValue, layout: LayoutMap) -> None:
        subject = block_text(self.block)
        name = buffer_name(buffer)
        if not isinstance(memref_type(buffer).layout, NoneAttr):
            self.refuse(6, f"{name} is {buffer.type}: its strides are the caller's", self.block, subject)
        owner = buffer.owner
        if isinstance(owner, Operation) and STORAGE_ALIGN in owner.attributes:
            self.refuse(6, f"storage_align speaks of the axes of {name}", owner, subject)
        for use in buffer.uses:
            user = use.operation
            if isinstance(user, memref.DimOp) and not Index.of(user.index).is_constant:
                self.refuse(6, f"{op_name(user)} asks for an extent that is known at run time", user, subject)
            if not isinstance(user, memref.LoadOp | memref.StoreOp | AccessRegionOp | memref.DimOp | AssumeShapeOp) or (
                isinstance(user, memref.StoreOp) and use.index == 0
            ):
                self.refuse(6, f"{op_name(user)} works on {name} as it lies", user, subject)
        if is_temporary(buffer):
            return
        for at, extent in enumerate(layout.old_extents):
            if not extent.is_constant and _bare(layout, at) < 0:
                detail = f"dimension {at} of parameter {name} has an extent that callers give, but does not stay whole"
                self.refuse(6, detail, self.block, subject)
        caller = self._caller(buffer)
        if caller is not None:
            self.refuse(6, f"{caller.name} passes {name} as it lies", caller, subject)

    def _caller(self, buffer: SSAValue) -> Operation | None:
        """Something in the module that refers to the function whose parameter the buffer is."""
        function = function_of(self.block)
        module = next((op for op in ancestors(function) if isinstance(op, ModuleOp)), None)
        name = function.sym_name.data
        for op in () if module is None else operations_in(module):
            for value in (*op.properties.values(), *op.attributes.values()):
                if isinstance(value, SymbolRefAttr) and value.root_reference.data == name:
                    return op
        return None


def extents_for(buffer: SSAValue) -> list[Index]:
    """The extents of a buffer: constants, the sizes of an allocation, and stand-ins for what callers decide."""
    shape = memref_type(buffer).get_shape()
    owner = buffer.owner
    sizes = iter(owner.dynamic_sizes if isinstance(owner, memref.AllocOp) else ())
    free = Block()
    result: list[Index] = []
    for extent in shape:
        if extent != DYNAMIC_INDEX:
            result.append(Index({}, extent))
        elif isinstance(owner, memref.AllocOp):
            result.append(Index.of(next(sizes)))
        else:
            result.append(Index.of(free.insert_arg(IndexType(), len(free.args))))
    return result
