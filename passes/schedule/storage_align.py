"""Padding of the row strides of temporaries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Operation

from weft.analysis.dependence import buffer_name
from weft.dialects.attribute_values import attribute_of, value_of
from weft.dialects.effects import op_name
from weft.dialects.low_access import AccessPtrOp, StrideOp
from weft.dialects.tir import AccessRegionOp, BlockOp
from weft.dialects.tir_kinds import STORAGE_ALIGN
from weft.passes.schedule.caching import buffer_at, memref_type
from weft.passes.schedule.primitive import Plan, Primitive
from weft.support.errors import Violation


@dataclass(frozen=True)
class StorageAlignPlan(Plan):
    alloc: memref.AllocOp
    axis: int
    factor: int
    offset: int

    def rewrite(self) -> tuple[Operation, ...]:
        noted = value_of(self.alloc.attributes.get(STORAGE_ALIGN, ArrayAttr([])))
        kept = [entry for entry in cast("list[list[int]]", noted) if entry[0] != self.axis]
        self.alloc.attributes[STORAGE_ALIGN] = attribute_of([*kept, [self.axis, self.factor, self.offset]])
        return ()


@dataclass(frozen=True)
class StorageAlign(Primitive):
    """Pad the stride of an axis of a temporary that the block writes to a multiple of `factor` plus `offset`.

    Requirements:
    1. the block writes a buffer at this index
    2. the buffer is a temporary: the caller determines the layout of parameters
    3. the axis is one of the buffer's, but not the last: a negative axis counts from the end; the stride of the last is
       1
    4. the factor is positive, the offset less than it: the offset is at least 0
    5. no access assumes that the buffer has no gaps: only loads, stores, and pointers with strides use it

    The stride, in elements, is the least that fits when the buffer is flattened; it may then depend on dynamic extents.
    Rows at a stride that is not a power of two do not map to the same memory banks or cache sets.

    ```mlir
    %Y = memref.alloc() : memref<128x128xf32>
    // storage_align "Y" {index = 0, axis = 0, factor = 32, offset = 8}
    %Y = memref.alloc() {tir.storage_align = [[0, 32, 8]]} : memref<128x128xf32>     // rows 136 elements apart
    ```
    """

    block: BlockOp
    index: int
    axis: int
    factor: int
    offset: int

    def plan(self) -> StorageAlignPlan:
        block = self.block
        buffer = buffer_at(self, block, "write", self.index)
        owner, shape = buffer.owner, memref_type(buffer).get_shape()
        if not isinstance(owner, memref.AllocOp):
            self.refuse(2, f"{buffer_name(buffer)} is a parameter")
        rank = len(shape)
        axis = self.axis + rank if self.axis < 0 else self.axis
        if not 0 <= axis < rank - 1:
            legal = f"0..{rank - 2}" if rank > 1 else "none: a buffer of rank 1 has no rows"
            self.refuse(3, Violation(f"axis {self.axis} of {buffer_name(buffer)} of rank {rank}", legal=legal), owner)
        if self.factor < 1 or not 0 <= self.offset < self.factor:
            self.refuse(4, f"factor {self.factor}, offset {self.offset}", owner)
        has_strides = any(isinstance(use.operation, StrideOp) for use in buffer.uses)
        for use in buffer.uses:
            user = use.operation
            if isinstance(user, memref.LoadOp | memref.StoreOp | memref.DimOp | StrideOp | AccessRegionOp):
                continue
            if not (isinstance(user, AccessPtrOp) and has_strides):
                self.refuse(5, f"{op_name(user)} may", user)
        return StorageAlignPlan(owner, axis, self.factor, self.offset)
