"""Replacement of block bodies by tensor intrinsics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from xdsl.dialects import memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType, NoneAttr, StridedLayoutAttr, UnitAttr, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import SymbolTable

from weft.analysis.block_patterns import combines_freely, why_in_order
from weft.analysis.block_scopes import buffers_written, child_towards, function_of, why_named_twice, why_opaque
from weft.analysis.dependence import buffer_name, is_temporary
from weft.analysis.index import Index
from weft.analysis.matching import Box, NoMatch, match_body
from weft.dialects.aliasing import may_overlap
from weft.dialects.low_access import AccessPtrOp, StrideOp
from weft.dialects.tir import AccessRegionOp, BlockOp, ForOp, InitOp
from weft.dialects.tir_kinds import COMMUTATIVE, STORAGE_ALIGN, IterKind
from weft.dialects.traversal import operations_of
from weft.passes.index_builders import insert_at_start, materialize
from weft.passes.schedule.blockize import Blockize
from weft.passes.schedule.caching import memref_type
from weft.passes.schedule.checks import found_overlapping
from weft.passes.schedule.intrinsics import TensorIntrinsic, content_of, find_intrinsic, points_into
from weft.passes.schedule.primitive import Plan, block_text, operation_text
from weft.passes.schedule.trial_application import RecheckedPrimitive, copy_of_nests
from weft.support.errors import InternalError, Violation


@dataclass(frozen=True)
class TensorizePlan(Plan):
    """`boxes` maps each parameter of the implementation to its box."""

    block: BlockOp
    intrinsic: TensorIntrinsic
    boxes: Mapping[SSAValue, Box]

    def rewrite(self) -> tuple[Operation, ...]:
        block = self.block
        if IterKind.REDUCE in block.kinds and combines_freely(block):
            block.attributes[COMMUTATIVE] = UnitAttr()  # not visible in the implementation
        self._declare_outside()
        body = block.body.block
        for op in reversed(list(body.ops)):
            Rewriter.erase_op(op)
        implementation = self.intrinsic.implementation
        content = content_of(implementation)
        entry = implementation.body.block
        mapping: dict[SSAValue, SSAValue] = {p: box.buffer for p, box in self.boxes.items()}
        sources = [op for op in entry.ops if content is not entry and op is not content.parent_op()]
        sources = [op for op in (*sources, *content.ops) if not isinstance(op, ReturnOp | AccessRegionOp)]
        copies = [op.clone(mapping) for op in sources]
        body.add_ops(copies)
        for source, copy in zip(sources, copies, strict=True):
            for old, new in list(zip(source.walk(), copy.walk(), strict=True)):
                new.location = block.location
                self._move_access(old, new)
        self._hoist_temporaries(body)
        return (block,)

    def _move_access(self, old: Operation, new: Operation) -> None:
        if not isinstance(old, memref.LoadOp | memref.StoreOp | AccessPtrOp | StrideOp | AccessRegionOp):
            return
        parameter = old.memref if isinstance(old, memref.LoadOp | memref.StoreOp) else old.buffer
        box = self.boxes.get(parameter)
        if box is None or new.parent is None:
            return
        if isinstance(new, AccessRegionOp):
            Rewriter.erase_op(new)  # annotates the parameter; accesses of the block are inferred
            return
        first = len(box.corner) - memref_type(parameter).get_num_dims()
        if isinstance(new, StrideOp):
            new.dimension = IntegerAttr(first + new.dimension.value.data, i64)
            return
        if not isinstance(new, memref.LoadOp | memref.StoreOp | AccessPtrOp):
            return
        indices = list(new.indices)
        count = len(new.operands) - len(indices)
        values: list[SSAValue] = []
        for at, corner in enumerate(box.corner):
            index = corner if at < first else corner + Index.of(indices[at - first])
            value, operations = materialize(index)
            new.parent.insert_ops_before(operations, new)
            for op in operations:
                op.location = new.location
            values.append(value)
        new.operands = [*list(new.operands)[:count], *values]
        if isinstance(new, AccessPtrOp) and isinstance(old, AccessPtrOp):
            sizes = old.box_sizes or _remaining(old)
            new.sizes = AccessPtrOp(old.buffer, list(old.indices), old.access.data, [1] * first + list(sizes)).sizes

    def _declare_outside(self) -> None:
        caller = function_of(self.block)
        missing = [f for f in self.intrinsic.outside if SymbolTable.lookup_symbol(caller, f.sym_name) is None]
        if caller.parent is not None:
            Rewriter.insert_op([function.clone() for function in missing], InsertPoint.at_start(caller.parent))

    def _hoist_temporaries(self, body: Block) -> None:
        entry = function_of(self.block).body.block
        for alloc in operations_of(body, memref.AllocOp):
            alloc.detach()
            insert_at_start(entry, alloc)


def _attributes(buffer: SSAValue) -> Mapping[str, Attribute]:
    return buffer.owner.attributes if isinstance(buffer.owner, Operation) else {}


def _remaining(op: AccessPtrOp) -> list[int]:
    if any(Index.of(index) != Index({}) for index in op.indices):
        return [1] * len(op.indices)
    return list(memref_type(op.buffer).get_shape())


@dataclass(frozen=True)
class TensorizeLoopPlan(Plan):
    """The loop is blockized first."""

    blockize: Plan
    intrinsic: str

    def rewrite(self) -> tuple[Operation, ...]:
        (block,) = self.blockize.rewrite()
        if not isinstance(block, BlockOp):
            raise InternalError("blockize gives a block")
        return Tensorize(block, self.intrinsic).draft().rewrite()


@dataclass(frozen=True)
class Tensorize(RecheckedPrimitive):
    """Replace the body of a block by the implementation of a tensor intrinsic whose description it matches.

    Requirements:
    1. the body of the block is the description: the same loops, blocks, iterators and ops (operands of commutative ops
       in any order), with a box of a buffer of the program for each buffer of the description
    2. the buffers fit: element type, memory scope, at least the rank; strides as the implementation requires them
    3. no buffer stands for two parameters of which one is written
    4. outside functions have one type: those that the implementation calls and the module already declares
    5. loops that run in parallel stay independent

    A loop is made a block first (`blockize`). `weft.register_tensor_intrinsic` registers intrinsics, and checks that
    the implementation computes its description, if it calls no outside functions; those of tensor cores are built in
    (docs/gpu.md). For pointers, a parameter of a plain type is contiguous memory; `strided<[?, 1]>` takes the row
    stride (`low.stride`).

    ```mlir
    tir.block "C_o" iters(%vi: spatial<8>) = [%i] {
      tir.for %ii in 16 { tir.block "C" iters(%v: spatial<16>) = [%ii] { C[%vi * 16 + %v] = A[%vi * 16 + %v] } } }
    // tensorize "C_o" {intrinsic = "copy16"}
    tir.block "C_o" iters(%vi: spatial<8>) = [%i] {
      %a = low.access_ptr %A[%vi * 16] sizes [16] read
      %c = low.access_ptr %C[%vi * 16] sizes [16] write
      func.call @copy16(%a, %c) }
    ```
    """

    target: BlockOp | ForOp
    intrinsic: str

    def draft(self) -> Plan:
        intrinsic = find_intrinsic(self.intrinsic)
        if isinstance(self.target, ForOp):
            return self._draft_of_loop(self.target, intrinsic)
        block = self.target
        self.require(1, why_opaque(block, block_text(block)) or why_named_twice(block), block)
        for inner in operations_of(block, BlockOp):
            if IterKind.REDUCE in inner.kinds:
                self.require(1, why_in_order(inner), inner)
        boxes = self._boxes(block, intrinsic)
        self._require_distinct(block, boxes)
        self._require_one_type(block, intrinsic)
        parameters = zip(intrinsic.description.args, intrinsic.implementation.args, strict=True)
        placed: dict[SSAValue, Box] = {theirs: boxes[ours] for ours, theirs in parameters}
        for parameter, box in placed.items():
            self._require_layout(block, parameter, box)
        return TensorizePlan(block, intrinsic, placed)

    def _draft_of_loop(self, loop: ForOp, intrinsic: TensorIntrinsic) -> TensorizeLoopPlan:
        function = function_of(loop)
        self.require(1, why_opaque(loop, f"loop {operation_text(loop)}"), loop)
        self._require_one_type(loop, intrinsic)
        blockize = Blockize((loop,)).draft()
        (block,) = copy_of_nests(function, [child_towards(function, loop)]).apply(blockize)
        if isinstance(block, BlockOp):
            replace(self, target=block).draft()
        return TensorizeLoopPlan(blockize, self.intrinsic)

    def _boxes(self, block: BlockOp, intrinsic: TensorIntrinsic) -> dict[SSAValue, Box]:
        subject = block_text(block)
        content = content_of(intrinsic.description)
        if block.init is not None and not any(isinstance(op, InitOp) for op in content.ops):
            detail = "the block has an init, the description has none"
            self.refuse(1, Violation(detail, legal="decompose_reduction first"), block)
        try:
            boxes = match_body(content, block.body.block)
        except NoMatch as mismatch:
            self.refuse(2 if mismatch.about_buffers else 1, mismatch.message, mismatch.found, subject)
        for box in boxes.values():
            for value in (value for index in box.corner for value in index.values()):
                if isinstance(value.owner, Operation) and block.is_ancestor(value.owner):
                    detail = f"where the box of {buffer_name(box.buffer)} begins is computed in the block"
                    self.refuse(2, Violation(detail, "not proved"), value.owner, subject)
        return boxes

    def _require_distinct(self, block: BlockOp, boxes: Mapping[SSAValue, Box]) -> None:
        written = set(buffers_written(block))
        for (parameter, box), (other, theirs) in combinations(boxes.items(), 2):
            if may_overlap(box.buffer, theirs.buffer) and not written.isdisjoint((box.buffer, theirs.buffer)):
                detail = f"{buffer_name(box.buffer)} is both {buffer_name(parameter)} and {buffer_name(other)}"
                if box.buffer is not theirs.buffer:
                    detail = f"{buffer_name(box.buffer)} is {buffer_name(parameter)}, {buffer_name(theirs.buffer)} is "
                    detail += buffer_name(other)
                self.refuse(3, found_overlapping(detail, box.buffer, theirs.buffer), block)

    def _require_one_type(self, target: BlockOp | ForOp, intrinsic: TensorIntrinsic) -> None:
        for function in intrinsic.outside:
            other = SymbolTable.lookup_symbol(function_of(target), function.sym_name)
            if not isinstance(other, FuncOp):
                continue
            if other.function_type != function.function_type or not other.is_declaration:
                detail = f"@{function.sym_name.data} is {other.function_type} in the module"
                self.refuse(4, detail, target)

    def _require_layout(self, block: BlockOp, parameter: SSAValue, box: Box) -> None:
        """Requirement 2: the strides that an implementation with pointers assumes."""
        type_, found = parameter.type, box.buffer.type
        if not isinstance(parameter, BlockArgument) or not points_into(parameter):
            return
        if not isinstance(type_, MemRefType) or not isinstance(found, MemRefType):
            return
        name = buffer_name(box.buffer)
        first = found.get_num_dims() - type_.get_num_dims()
        shape, outer = type_.get_shape(), found.get_shape()[first:]
        strides = tuple(found.get_strides() or ())[first:]
        if isinstance(type_.layout, NoneAttr):
            if (
                shape[1:] != outer[1:]
                or strides != tuple(type_.get_strides() or ())
                or STORAGE_ALIGN in _attributes(box.buffer)
            ):
                legal = f"an implementation that takes {buffer_name(parameter)} as strided<[?, 1]> and queries strides"
                detail = f"rows of {name} are not next to each other: it is {found}"
                self.refuse(2, Violation(detail, legal=legal), block)
        elif isinstance(type_.layout, StridedLayoutAttr):
            self._require_strides(block, type_.layout, strides, box.buffer, parameter, (shape, outer))

    def _require_strides(
        self,
        block: BlockOp,
        layout: StridedLayoutAttr,
        found: Sequence[int | None],
        buffer: SSAValue,
        parameter: SSAValue,
        shapes: tuple[Sequence[int], Sequence[int]],
    ) -> None:
        for dimension in reversed(range(len(found))):
            wanted, stride = layout.get_strides()[dimension], found[dimension]
            inner = slice(dimension + 1, None)
            # Temporaries are compacted and aligned, so that only the distances of whole inner dimensions are kept.
            whole = dimension == len(found) - 1 or STORAGE_ALIGN not in _attributes(buffer)
            fixed = (whole and shapes[0][inner] == shapes[1][inner]) or not is_temporary(buffer)
            if wanted is not None and (not fixed or wanted != stride):
                known = "is decided when it is placed" if not fixed else "is decided by callers"
                what = f"is {stride}" if fixed and stride is not None else known
                detail = f"stride {dimension} of {buffer_name(buffer)} {what}, {buffer_name(parameter)} has {wanted}"
                self.refuse(2, detail, block)
