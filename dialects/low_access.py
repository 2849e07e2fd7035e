"""Accesses of buffers, and pointers for code outside of the module."""

from __future__ import annotations

from collections.abc import Sequence
from enum import auto
from typing import Final, cast

from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerAttr, MemRefType, UnitAttr, i64
from xdsl.dialects.ptr import PtrType
from xdsl.dialects.utils.enum_attribute import EnumAttribute
from xdsl.ir import Attribute, Operation, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import EffectInstance, MemoryEffect, NoMemoryEffect
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from weft.dialects.effects import READ, WRITE, StatesFact, effects_of


class AccessMode(StrEnum):
    READ = auto()
    WRITE = auto()
    """Written first: the initial contents are irrelevant."""
    READWRITE = auto()


@irdl_attr_definition
class AccessAttr(EnumAttribute[AccessMode], SpacedOpaqueSyntaxAttribute):
    """The access of a parameter.

    ```mlir
    #low<access readwrite>
    ```
    """

    name = "low.access"


class _AccessEffects(MemoryEffect):
    """Effects of the called function."""

    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance]:
        if not isinstance(op, AccessPtrOp):
            return frozenset()
        kinds = (*(READ,) * op.reads, *(WRITE,) * op.writes)
        return frozenset(EffectInstance(kind, op.buffer) for kind in kinds)


@irdl_op_definition
class AccessPtrOp(IRDLOperation):
    """A pointer to an element of a buffer, for a function outside of the module.

    ```mlir
    %c = low.access_ptr %C[%i, %j] sizes [16, 16] readwrite : memref<128x128xf32>
    ```
    The function may access the box of these sizes that starts at the element, or by default the whole buffer. It is
    called in the op's block, and keeps no pointer. `write` writes the whole box.
    """

    name = "low.access_ptr"

    buffer = operand_def(MemRefType)
    indices = var_operand_def(IndexType())
    sizes = opt_prop_def(DenseArrayBase.constr(i64))
    access = prop_def(AccessAttr)
    pointer = result_def(PtrType())

    traits = traits_def(_AccessEffects())
    assembly_format = "$buffer `[` $indices `]` (`sizes` $sizes^)? $access attr-dict `:` type($buffer)"

    def __init__(
        self, buffer: SSAValue, indices: Sequence[SSAValue], access: AccessMode, sizes: Sequence[int] | None = None
    ) -> None:
        super().__init__(
            operands=[buffer, list(indices)],
            properties={
                "sizes": None if sizes is None else DenseArrayBase.from_list(i64, list(sizes)),
                "access": AccessAttr(access),
            },
            result_types=[PtrType()],
        )

    @property
    def box_sizes(self) -> tuple[int, ...] | None:
        return None if self.sizes is None else self.sizes.get_values()

    @property
    def reads(self) -> bool:
        return self.access.data is not AccessMode.WRITE

    @property
    def writes(self) -> bool:
        return self.access.data is not AccessMode.READ

    def verify_(self) -> None:
        rank = cast("MemRefType[Attribute]", self.buffer.type).get_num_dims()
        sizes = self.box_sizes
        if len(self.indices) != rank or (sizes is not None and len(sizes) != rank):
            raise VerifyException(f"{self.name} takes an index and a size a dimension, the buffer has rank {rank}")
        if sizes is not None and any(size < 1 for size in sizes):
            raise VerifyException(f"{self.name} sizes must be positive, got {list(sizes)}")


def _pointer_op(op: Operation, pointer: SSAValue) -> AccessPtrOp:
    if not isinstance(pointer.owner, AccessPtrOp):
        raise VerifyException(f"{op.name} takes pointers of low.access_ptr")
    return pointer.owner


def buffer_type_at(op: Operation, pointer: SSAValue) -> MemRefType[Attribute]:
    """Raises `VerifyException` for other values."""
    return cast("MemRefType[Attribute]", _pointer_op(op, pointer).buffer.type)


def box_at(op: Operation, pointer: SSAValue) -> tuple[int, ...] | None:
    """Raises `VerifyException` for other values."""
    return _pointer_op(op, pointer).box_sizes


@irdl_op_definition
class StrideOp(IRDLOperation):
    """A buffer's stride in a dimension, in elements of the layout that lowering chooses.

    ```mlir
    %s = low.stride %C {dimension = 0} : memref<128x128xf32>
    ```
    It is for functions that take pointers into the buffer (`low.access_ptr`).
    """

    name = "low.stride"

    buffer = operand_def(MemRefType)
    dimension = prop_def(IntegerAttr)
    stride = result_def(IndexType())

    traits = traits_def(NoMemoryEffect())

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$buffer attr-dict `:` type($buffer)"

    def __init__(self, buffer: SSAValue, dimension: int) -> None:
        super().__init__(
            operands=[buffer], properties={"dimension": IntegerAttr(dimension, i64)}, result_types=[IndexType()]
        )

    def verify_(self) -> None:
        rank = cast("MemRefType[Attribute]", self.buffer.type).get_num_dims()
        if not 0 <= self.dimension.value.data < rank:
            raise VerifyException(f"{self.name} has dimension {self.dimension.value.data} for a buffer of rank {rank}")


MOST_PREFETCHED: Final = 1 << 16
"""The maximum number of elements of one prefetch: each cache line takes an instruction."""


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """Hint that elements of a buffer will be accessed soon.

    ```mlir
    low.prefetch %A[%at] {lanes = 16 : i64} : memref<?xf32>
    low.prefetch %A[%at] {lanes = 4 : i64, for_write} : memref<?xf32>
    ```
    It names `lanes` elements from the index on, possibly beyond the buffer's end. With `for_write`, they will be stored
    to. `tir-flatten` reduces the indices to one.
    """

    name = "low.prefetch"

    buffer = operand_def(MemRefType)
    indices = var_operand_def(IndexType())
    lanes = prop_def(IntegerAttr)
    for_write = opt_prop_def(UnitAttr)

    traits = traits_def(StatesFact())

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$buffer `[` $indices `]` attr-dict `:` type($buffer)"

    def __init__(
        self, buffer: SSAValue, indices: Sequence[SSAValue], lanes: int = 1, *, for_write: bool = False
    ) -> None:
        super().__init__(
            operands=[buffer, list(indices)],
            properties={"lanes": IntegerAttr(lanes, i64), "for_write": UnitAttr() if for_write else None},
        )

    @property
    def index(self) -> SSAValue:
        return self.indices[0]

    def verify_(self) -> None:
        rank = cast("MemRefType[Attribute]", self.buffer.type).get_num_dims()
        if len(self.indices) != rank:
            raise VerifyException(f"{self.name} takes an index a dimension, got {len(self.indices)} for rank {rank}")
        if not 1 <= self.lanes.value.data <= MOST_PREFETCHED:
            raise VerifyException(f"{self.name} names 1 to {MOST_PREFETCHED} elements, got {self.lanes.value.data}")


def access_by(op: Operation, buffer: SSAValue) -> AccessMode | None:
    """How `op` itself accesses a buffer operand; None if it accesses no elements."""
    effects = effects_of(op)
    reads, writes = buffer in effects.reads, buffer in effects.writes
    if reads and writes:
        return AccessMode.READWRITE
    return AccessMode.READ if reads else AccessMode.WRITE if writes else None
