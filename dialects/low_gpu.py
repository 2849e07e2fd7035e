"""What the threads of a kernel (`low_kernel.py`) do together: barriers, shuffles, atomics, asynchronous copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    I64,
    AnyFloat,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    i64,
)
from xdsl.dialects.utils.enum_attribute import EnumAttribute
from xdsl.ir import Attribute, Operation, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import EffectInstance, MemoryEffect, MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from weft.dialects.effects import READ, WRITE, Synchronizes
from weft.dialects.low_kernel import SHARED, LaunchOp, ThreadIdOp, verify_in_kernel


class ShuffleMode(StrEnum):
    """Which lane of its group of `width` lanes a thread reads from."""

    DOWN = "down"
    """Its own lane plus the offset; its own value where that is outside of the group."""
    UP = "up"
    """Its own lane less the offset; its own value where that is outside of the group."""
    XOR = "xor"
    """Its own lane xor the offset."""
    IDX = "idx"
    """The lane that the offset names, modulo the width."""


class AtomicKind(StrEnum):
    """How an atomic operation combines what memory holds with its value."""

    ADD = "add"
    MIN = "min"
    """The lesser one; of signed integers, or of floats as `arith.minimumf`."""
    MAX = "max"
    """The greater one; of signed integers, or of floats as `arith.maximumf`."""
    AND = "and"
    """The bits that both integers have."""
    OR = "or"
    """The bits that one of the integers has."""


@irdl_attr_definition
class ShuffleModeAttr(EnumAttribute[ShuffleMode], SpacedOpaqueSyntaxAttribute):
    """The mode of a shuffle."""

    name = "low.shuffle_mode"


@irdl_attr_definition
class AtomicKindAttr(EnumAttribute[AtomicKind], SpacedOpaqueSyntaxAttribute):
    """The kind of an atomic operation."""

    name = "low.atomic_kind"


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """All threads of the block arrive before one goes on; what they wrote before is seen by all after.

    It stands where either all threads of the block come by, or none. `low.barrier`
    """

    name = "low.barrier"

    traits = traits_def(Synchronizes())

    assembly_format = "attr-dict"

    def verify_(self) -> None:
        verify_in_kernel(self)


@irdl_op_definition
class ShuffleOp(IRDLOperation):
    """The value of another lane of the warp; every lane of the warp takes part.

    `%r = low.shuffle down %x, %offset width 32 : f32`: lanes form groups of `width` (a power of two up to 32), and
    `ShuffleMode` tells which lane of the group is read. Threads are counted with x running fastest.
    """

    name = "low.shuffle"

    T: ClassVar = VarConstraint("T", AnyAttr())

    value = operand_def(T)
    offset = operand_def(IndexType())
    mode = prop_def(ShuffleModeAttr)
    width = prop_def(IntegerAttr[I64])
    result = result_def(T)

    traits = traits_def(Synchronizes())
    assembly_format = "$mode $value `,` $offset `width` $width attr-dict `:` type($value)"

    def __init__(self, mode: ShuffleMode, value: SSAValue, offset: SSAValue, width: int = 32) -> None:
        super().__init__(
            operands=[value, offset],
            properties={"mode": ShuffleModeAttr(mode), "width": IntegerAttr(width, i64)},
            result_types=[value.type],
        )

    @property
    def lanes(self) -> int:
        return self.width.value.data

    def verify_(self) -> None:
        if self.lanes not in (1, 2, 4, 8, 16, 32):
            raise VerifyException(f"{self.name} width is a power of two up to 32, got {self.lanes}")
        if not isinstance(self.value.type, AnyFloat | IntegerType | IndexType):
            raise VerifyException(f"{self.name} moves scalars, got {self.value.type}")
        verify_in_kernel(self)


@irdl_op_definition
class AtomicOp(IRDLOperation):
    """Combine a value into memory at once, whatever other threads do; gives what was there before.

    `%old = low.atomic add %v, %B[%i] : f32, memref<?xf32>`. No order among threads is implied. Buffers have one index a
    dimension until `tir-flatten`.
    """

    name = "low.atomic"

    T: ClassVar = VarConstraint("T", AnyAttr())

    value = operand_def(T)
    buffer = operand_def(MemRefType)
    indices = var_operand_def(IndexType())
    kind = prop_def(AtomicKindAttr)
    old = result_def(T)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$kind $value `,` $buffer `[` $indices `]` attr-dict `:` type($value) `,` type($buffer)"

    def __init__(self, kind: AtomicKind, value: SSAValue, buffer: SSAValue, indices: Sequence[SSAValue]) -> None:
        super().__init__(
            operands=[value, buffer, indices],
            properties={"kind": AtomicKindAttr(kind)},
            result_types=[value.type],
        )

    def verify_(self) -> None:
        type_ = cast("MemRefType[Attribute]", self.buffer.type)
        if type_.get_num_dims() != len(self.indices):
            raise VerifyException(f"{self.name} has {len(self.indices)} indices into {type_}")
        if self.value.type != type_.element_type:
            raise VerifyException(f"{self.name} combines {self.value.type} into elements of {type_}")
        if self.kind.data in (AtomicKind.AND, AtomicKind.OR) and not isinstance(self.value.type, IntegerType):
            raise VerifyException(f"{self.name} {self.kind.data} combines integers, got {self.value.type}")


class _CopyEffects(MemoryEffect):
    """Reads the source, writes the target."""

    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance]:
        if not isinstance(op, AsyncCopyOp):
            return frozenset()
        return frozenset((EffectInstance(READ, op.source), EffectInstance(WRITE, op.target)))


@irdl_op_definition
class AsyncCopyOp(IRDLOperation):
    """Start to copy 4, 8 or 16 bytes from device memory to shared memory; both places are aligned to as many bytes.

    `low.async_copy %A[%i] to %S[%j] bytes 16 : memref<?xf32>, memref<1024xf32, "shared">`. The copy has arrived for
    this thread after the `low.async_wait` of its group, and for the others after a barrier behind that. A target
    without asynchronous copies copies at once.
    """

    name = "low.async_copy"

    source = operand_def(MemRefType)
    source_index = operand_def(IndexType())
    target = operand_def(MemRefType)
    target_index = operand_def(IndexType())
    size = prop_def(IntegerAttr[I64])

    traits = traits_def(_CopyEffects(), Synchronizes())
    assembly_format = (
        "$source `[` $source_index `]` `to` $target `[` $target_index `]` `bytes` $size attr-dict "
        "`:` type($source) `,` type($target)"
    )

    def __init__(
        self, source: SSAValue, source_index: SSAValue, target: SSAValue, target_index: SSAValue, size: int
    ) -> None:
        super().__init__(
            operands=[source, source_index, target, target_index], properties={"size": IntegerAttr(size, i64)}
        )

    @property
    def bytes(self) -> int:
        return self.size.value.data

    def verify_(self) -> None:
        source, target = (
            cast("MemRefType[Attribute]", self.source.type),
            cast("MemRefType[Attribute]", self.target.type),
        )
        if source.get_num_dims() != 1 or target.get_num_dims() != 1:
            raise VerifyException(f"{self.name} works on flat buffers, got {source} and {target}")
        if source.element_type != target.element_type:
            raise VerifyException(f"{self.name} copies elements as they are, got {source} and {target}")
        if target.memory_space != SHARED:
            raise VerifyException(f"{self.name} copies to shared memory, got {target}")
        if self.bytes not in (4, 8, 16):
            raise VerifyException(f"{self.name} copies 4, 8 or 16 bytes, got {self.bytes}")
        verify_in_kernel(self)


@irdl_op_definition
class AsyncCommitOp(IRDLOperation):
    """The copies that this thread started since the last one form a group. `low.async_commit`"""

    name = "low.async_commit"

    traits = traits_def(Synchronizes())

    assembly_format = "attr-dict"

    def verify_(self) -> None:
        verify_in_kernel(self)


@irdl_op_definition
class AsyncWaitOp(IRDLOperation):
    """Wait until at most so many of the latest groups of this thread are still on their way. `low.async_wait 1`"""

    name = "low.async_wait"

    pending = prop_def(IntegerAttr[I64])

    traits = traits_def(Synchronizes())
    assembly_format = "$pending attr-dict"

    def __init__(self, pending: int) -> None:
        super().__init__(properties={"pending": IntegerAttr(pending, i64)})

    @property
    def groups(self) -> int:
        return self.pending.value.data

    def verify_(self) -> None:
        if self.groups < 0:
            raise VerifyException(f"{self.name} leaves a number of groups, got {self.groups}")
        verify_in_kernel(self)


GPU_OPS: tuple[type[Operation], ...] = (
    LaunchOp,
    ThreadIdOp,
    BarrierOp,
    ShuffleOp,
    AtomicOp,
    AsyncCopyOp,
    AsyncCommitOp,
    AsyncWaitOp,
)
