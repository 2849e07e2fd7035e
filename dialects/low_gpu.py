"""What the threads of a kernel (`low_kernel.py`) do together: barriers, shuffles, atomics, asynchronous copies."""

from __future__ import annotations

from collections.abc import Sequence
from enum import auto
from typing import cast

from xdsl.dialects.builtin import (
    AnyFloat,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import EffectInstance, MemoryEffect, MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from weft.dialects.effects import READ, WRITE, Synchronizes
from weft.dialects.low_kernel import SHARED, LaunchOp, ThreadIdOp, verify_in_kernel


class ShuffleMode(StrEnum):
    """Which lane of its group of `width` lanes a thread reads from."""

    DOWN = auto()
    """Its own lane plus the offset; its own value where that is outside of the group."""
    UP = auto()
    """Its own lane less the offset; its own value where that is outside of the group."""
    XOR = auto()
    """Its own lane xor the offset."""
    IDX = auto()
    """The lane that the offset names, modulo the width."""


class AtomicKind(StrEnum):
    """How an atomic operation combines what memory holds with its value."""

    ADD = auto()
    MIN = auto()
    """The lesser one; of signed integers, or of floats as `arith.minimumf`."""
    MAX = auto()
    """The greater one; of signed integers, or of floats as `arith.maximumf`."""
    AND = auto()
    """The bits that both integers have."""
    OR = auto()
    """The bits that one of the integers has."""


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

    value = operand_def()
    offset = operand_def(IndexType)
    mode = prop_def(StringAttr)
    width = prop_def(IntegerAttr)
    result = result_def()

    traits = traits_def(Synchronizes())

    def __init__(self, mode: ShuffleMode, value: SSAValue, offset: SSAValue, width: int = 32) -> None:
        super().__init__(
            operands=[value, offset],
            properties={"mode": StringAttr(str(mode)), "width": IntegerAttr(width, i64)},
            result_types=[value.type],
        )

    @property
    def shuffle_mode(self) -> ShuffleMode:
        return ShuffleMode(self.mode.data)

    @property
    def lanes(self) -> int:
        return self.width.value.data

    def verify_(self) -> None:
        if self.mode.data not in tuple(ShuffleMode):
            raise VerifyException(f"{self.name} has no mode '{self.mode.data}'")
        if self.lanes not in (1, 2, 4, 8, 16, 32):
            raise VerifyException(f"{self.name} width is a power of two up to 32, got {self.lanes}")
        if not isinstance(self.value.type, AnyFloat | IntegerType | IndexType) or self.value.type != self.result.type:
            raise VerifyException(f"{self.name} moves scalars, got {self.value.type} -> {self.result.type}")
        verify_in_kernel(self)

    @classmethod
    def parse(cls, parser: Parser) -> ShuffleOp:
        mode = parser.parse_str_enum(ShuffleMode)
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        offset = parser.parse_operand(IndexType())
        parser.parse_keyword("width")
        width = parser.parse_integer()
        parser.parse_punctuation(":")
        return cls(mode, parser.resolve_operand(value, parser.parse_type()), offset, width)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.mode.data} ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(f" width {self.lanes} : ")
        printer.print_attribute(self.value.type)


@irdl_op_definition
class AtomicOp(IRDLOperation):
    """Combine a value into memory at once, whatever other threads do; gives what was there before.

    `%old = low.atomic add %v, %B[%i] : f32, memref<?xf32>`. No order among threads is implied. Buffers have one index a
    dimension until `tir-flatten`.
    """

    name = "low.atomic"

    value = operand_def()
    buffer = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    kind = prop_def(StringAttr)
    old = result_def()

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, kind: AtomicKind, value: SSAValue, buffer: SSAValue, indices: Sequence[SSAValue]) -> None:
        super().__init__(
            operands=[value, buffer, indices],
            properties={"kind": StringAttr(str(kind))},
            result_types=[value.type],
        )

    @property
    def atomic_kind(self) -> AtomicKind:
        return AtomicKind(self.kind.data)

    def verify_(self) -> None:
        type_ = cast("MemRefType[Attribute]", self.buffer.type)
        if self.kind.data not in tuple(AtomicKind):
            raise VerifyException(f"{self.name} has no kind '{self.kind.data}'")
        if type_.get_num_dims() != len(self.indices):
            raise VerifyException(f"{self.name} has {len(self.indices)} indices into {type_}")
        if not self.value.type == type_.element_type == self.old.type:
            raise VerifyException(f"{self.name} combines {self.value.type} into elements of {type_}")
        if self.atomic_kind in (AtomicKind.AND, AtomicKind.OR) and not isinstance(self.value.type, IntegerType):
            raise VerifyException(f"{self.name} {self.kind.data} combines integers, got {self.value.type}")

    @classmethod
    def parse(cls, parser: Parser) -> AtomicOp:
        kind = parser.parse_str_enum(AtomicKind)
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        buffer = parser.parse_unresolved_operand()
        indices = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parser.parse_operand(IndexType()))
        parser.parse_punctuation(":")
        value_type = parser.parse_type()
        parser.parse_punctuation(",")
        return cls(
            kind,
            parser.resolve_operand(value, value_type),
            parser.resolve_operand(buffer, parser.parse_type()),
            indices,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind.data} ")
        printer.print_list([self.value, self.buffer], printer.print_ssa_value)
        printer.print_string("[")
        printer.print_list(self.indices, printer.print_ssa_value)
        printer.print_string("] : ")
        printer.print_list([self.value.type, self.buffer.type], printer.print_attribute)


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
    source_index = operand_def(IndexType)
    target = operand_def(MemRefType)
    target_index = operand_def(IndexType)
    size = prop_def(IntegerAttr)

    traits = traits_def(_CopyEffects(), Synchronizes())

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

    @classmethod
    def parse(cls, parser: Parser) -> AsyncCopyOp:
        source = parser.parse_unresolved_operand()
        with parser.in_square_brackets():
            source_index = parser.parse_operand(IndexType())
        parser.parse_keyword("to")
        target = parser.parse_unresolved_operand()
        with parser.in_square_brackets():
            target_index = parser.parse_operand(IndexType())
        parser.parse_keyword("bytes")
        size = parser.parse_integer()
        parser.parse_punctuation(":")
        source_value = parser.resolve_operand(source, parser.parse_type())
        parser.parse_punctuation(",")
        return cls(source_value, source_index, parser.resolve_operand(target, parser.parse_type()), target_index, size)

    def print(self, printer: Printer) -> None:
        def place(buffer: SSAValue, index: SSAValue) -> None:
            printer.print_ssa_value(buffer)
            printer.print_string("[")
            printer.print_ssa_value(index)
            printer.print_string("]")

        printer.print_string(" ")
        place(self.source, self.source_index)
        printer.print_string(" to ")
        place(self.target, self.target_index)
        printer.print_string(f" bytes {self.bytes} : ")
        printer.print_list([self.source.type, self.target.type], printer.print_attribute)


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

    pending = prop_def(IntegerAttr)

    traits = traits_def(Synchronizes())

    def __init__(self, pending: int) -> None:
        super().__init__(properties={"pending": IntegerAttr(pending, i64)})

    @property
    def groups(self) -> int:
        return self.pending.value.data

    def verify_(self) -> None:
        if self.groups < 0:
            raise VerifyException(f"{self.name} leaves a number of groups, got {self.groups}")
        verify_in_kernel(self)

    @classmethod
    def parse(cls, parser: Parser) -> AsyncWaitOp:
        return cls(parser.parse_integer())

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.groups}")


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
