"""Kernels at low level, launches, thread ids, and cooperation of threads.

`low.launch` starts a kernel, a `func.func` with `low.kernel`. Memory space "shared" belongs to a thread block, "local"
to a thread (both `memref.alloca` at the top of the kernel), others to the device.

```mlir
func.func @scale(%A: memref<?xf32>, %n: index) attributes {low.params = [...], low.symbols = ["n"]} {
  %g = arith.ceildivui %n, %c256 : index
  low.launch @scale_kernel blocks(%g, %c1, %c1) threads(%c256, %c1, %c1) (%A, %n) : memref<?xf32>, index
  func.return
}
func.func @scale_kernel(%A: memref<?xf32>, %n: index)
    attributes {low.kernel = #low.kernel<[256, 1, 1], source = "B">, low.arg_access = [...]} {
  %b = low.thread_id "blockIdx.x" : index
  %t = low.thread_id "threadIdx.x" extent 256 : index
  ...
}
```
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, cast

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import (
    I64,
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    FlatSymbolRefAttrConstr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    SymbolRefAttr,
    i1,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.dialects.utils.enum_attribute import EnumAttribute
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    param_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import (
    EffectInstance,
    MemoryEffect,
    MemoryReadEffect,
    MemoryWriteEffect,
    OpTrait,
    Pure,
    SymbolTable,
    SymbolUserOpInterface,
)
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from weft.dialects.combiners import OPS_BY_NAME
from weft.dialects.effects import READ, WRITE, Synchronizes
from weft.dialects.functions import function_around
from weft.dialects.integer_arith import constant_integer
from weft.dialects.low_access import AccessAttr, AccessMode
from weft.dialects.tir_kinds import IN_STEP
from weft.dialects.traversal import ancestors

KERNEL = "low.kernel"
"""Function attribute of a kernel: a `KernelAttr`."""
ARG_ACCESS = "low.arg_access"
"""Function attribute of a kernel: an `AccessAttr` for each argument (scalars are `read`)."""
SHARED = StringAttr("shared")
"""Memory space of buffers that the threads of a block share."""
THREAD_AXES = tuple(f"threadIdx.{dimension}" for dimension in "xyz")
BLOCK_AXES = tuple(f"blockIdx.{dimension}" for dimension in "xyz")


def space_of(type_: Attribute) -> str:
    """On GPUs `global`, `shared` or `local`, without a tag after a dot."""
    space = type_.memory_space if isinstance(type_, MemRefType) else None
    return space.data.partition(".")[0] if isinstance(space, StringAttr) else "global"


@irdl_attr_definition
class KernelAttr(ParametrizedAttribute):
    """Marks a kernel: threads of a block along x, y and z, and names of its source `tir.block`s.

    ```mlir
    #low.kernel<[256, 1, 1], source = "C">
    ```
    """

    name = "low.kernel"

    threads: DenseArrayBase[I64] = param_def()
    source: StringAttr = param_def()

    @staticmethod
    def of(threads: Sequence[int], source: str) -> KernelAttr:
        return KernelAttr(DenseArrayBase.from_list(i64, list(threads)), StringAttr(source))

    @property
    def threads_per_axis(self) -> tuple[int, int, int]:
        x, y, z = self.threads.get_values()
        return x, y, z

    @property
    def threads_per_block(self) -> int:
        x, y, z = self.threads_per_axis
        return x * y * z

    def verify(self) -> None:
        threads = self.threads.get_values()
        if len(threads) != 3 or any(count < 1 for count in threads):
            raise VerifyException(f"{self.name} has threads for three axes, at least one each, got {list(threads)}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            threads = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
            parser.parse_punctuation(",")
            parser.parse_keyword("source")
            parser.parse_punctuation("=")
            source = parser.parse_str_literal()
        return [DenseArrayBase.from_list(i64, threads), StringAttr(source)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{list(self.threads.get_values())}, source = ")
            printer.print_string_literal(self.source.data)


def kernel_of(function: FuncOp) -> KernelAttr | None:
    """Returns None for a host function."""
    attribute = function.attributes.get(KERNEL)
    return attribute if isinstance(attribute, KernelAttr) else None


def argument_accesses(function: FuncOp) -> tuple[AccessMode, ...]:
    """Returns `readwrite` by default."""
    noted = function.attributes.get(ARG_ACCESS)
    if not isinstance(noted, ArrayAttr):
        return (AccessMode.READWRITE,) * len(function.function_type.inputs)
    return tuple(a.data for a in noted if isinstance(a, AccessAttr))


class InKernel(OpTrait):
    def verify(self, op: Operation) -> None:
        function = next((parent for parent in ancestors(op) if isinstance(parent, FuncOp)), None)
        if function is not None and kernel_of(function) is None and IN_STEP not in function.attributes:
            raise VerifyException(f"{op.name} must be in a kernel, but @{function.sym_name.data} has no {KERNEL}")


class _LaunchSymbol(SymbolUserOpInterface):
    def verify(self, op: Operation) -> None:
        if not isinstance(op, LaunchOp):
            return
        name = op.kernel.string_value()
        kernel = SymbolTable.lookup_symbol(op, op.kernel)
        if not isinstance(kernel, FuncOp):
            raise VerifyException(f"{op.name} starts @{name}, which is no function of the module")
        if kernel_of(kernel) is None:
            raise VerifyException(f"{op.name} starts @{name}, which has no {KERNEL}")
        given = [argument.type for argument in op.arguments]
        wanted = list(kernel.function_type.inputs)
        if given != wanted:
            shown, needed = ", ".join(map(str, given)), ", ".join(map(str, wanted))
            raise VerifyException(f"{op.name} passes ({shown}) to @{name}, which takes ({needed})")


class _LaunchEffects(MemoryEffect):
    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance]:
        if not isinstance(op, LaunchOp):
            return frozenset()
        kernel = function_around(op, op.kernel.string_value())
        accesses = () if kernel is None else argument_accesses(kernel)
        buffers = [at for at, value in enumerate(op.arguments) if isinstance(value.type, MemRefType)]
        if not buffers or len(accesses) != len(op.arguments):
            return frozenset((EffectInstance(READ), EffectInstance(WRITE)))
        return frozenset(
            EffectInstance(kind, op.arguments[at])
            for at in buffers
            for kind, without in ((READ, AccessMode.WRITE), (WRITE, AccessMode.READ))
            if accesses[at] is not without
        )


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Start a kernel on a grid of thread blocks; the launches of a function run in order.

    ```mlir
    func.func @f(%A: memref<?xf32>, %n: index) {
      %c1 = arith.constant 1 : index
      %c256 = arith.constant 256 : index
      %blocks = arith.ceildivui %n, %c256 : index
      low.launch @k blocks(%blocks, %c1, %c1) threads(%c256, %c1, %c1) (%A, %n) : memref<?xf32>, index
      func.return
    }
    func.func @k(%A: memref<?xf32>, %n: index) attributes {low.kernel = #low.kernel<[256, 1, 1], source = "C">} {
      func.return
    }
    ```
    A grid with an extent of 0 starts no threads.
    """

    name = "low.launch"

    grid = var_operand_def(IndexType())
    block = var_operand_def(IndexType())
    arguments = var_operand_def()
    kernel = prop_def(FlatSymbolRefAttrConstr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(_LaunchSymbol(), _LaunchEffects())
    assembly_format = (
        "$kernel `blocks` `(` $grid `)` `threads` `(` $block `)` ` ` `(` $arguments `)` (`:` type($arguments)^)? "
        "attr-dict"
    )

    def __init__(
        self, kernel: str, grid: Sequence[SSAValue], block: Sequence[SSAValue], arguments: Sequence[SSAValue]
    ) -> None:
        super().__init__(
            operands=[list(grid), list(block), list(arguments)], properties={"kernel": SymbolRefAttr(kernel)}
        )

    def verify_(self) -> None:
        if len(self.grid) != 3 or len(self.block) != 3:
            raise VerifyException(f"{self.name} takes three extents of blocks and three of threads")


@irdl_op_definition
class ThreadIdOp(IRDLOperation):
    """The index of this thread on an axis: `blockIdx.x|y|z` or `threadIdx.x|y|z`.

    ```mlir
    %b = low.thread_id "blockIdx.x" : index
    %t = low.thread_id "threadIdx.x" extent 256 : index
    ```
    The index is less than `extent`, if that is static.
    """

    name = "low.thread_id"

    axis = prop_def(StringAttr)
    extent = opt_prop_def(IntegerAttr[IndexType])
    result = result_def(IndexType())

    traits = traits_def(Pure(), InKernel())
    assembly_format = "$axis (`extent` $extent^)? attr-dict `:` type($result)"

    def __init__(self, axis: str, extent: int | None = None) -> None:
        super().__init__(
            properties={
                "axis": StringAttr(axis),
                "extent": None if extent is None else IntegerAttr(extent, IndexType()),
            },
            result_types=[IndexType()],
        )

    @property
    def static_extent(self) -> int | None:
        return None if self.extent is None else self.extent.value.data

    def verify_(self) -> None:
        axes = (*BLOCK_AXES, *THREAD_AXES)
        if self.axis.data not in axes:
            raise VerifyException(f"{self.name}: '{self.axis.data}' is none of {', '.join(axes)}")
        if self.static_extent is not None and self.static_extent < 1:
            raise VerifyException(f"{self.name}: an axis has at least one thread, got extent {self.static_extent}")


class ShuffleMode(StrEnum):
    DOWN = "down"
    """Own lane plus the offset; its own value outside of the group."""
    UP = "up"
    """Own lane minus the offset; its own value outside of the group."""
    XOR = "xor"
    """Own lane xor the offset."""
    IDX = "idx"
    """The offset, modulo the width."""


class AtomicKind(StrEnum):
    ADD = "add"
    MIN = "min"
    """The minimum; of signed integers, or of floats as `arith.minimumf`."""
    MAX = "max"
    """The maximum; of signed integers, or of floats as `arith.maximumf`."""
    AND = "and"
    OR = "or"


ATOMIC_KINDS: Final = {op_class: kind for kind in AtomicKind for op_class in OPS_BY_NAME[kind.value]}
"""Op that combines two values -> the kind of the atomic operation that combines with it."""


@irdl_attr_definition
class ShuffleModeAttr(EnumAttribute[ShuffleMode], SpacedOpaqueSyntaxAttribute):
    """The lane that a thread reads, in its group of `width` lanes.

    ```mlir
    #low<shuffle_mode down>
    ```
    - `down`: its own plus the offset, itself if that is outside of the group
    - `up`: its own minus the offset, itself if that is outside of the group
    - `xor`: its own xor the offset
    - `idx`: the offset modulo the width
    """

    name = "low.shuffle_mode"


@irdl_attr_definition
class AtomicKindAttr(EnumAttribute[AtomicKind], SpacedOpaqueSyntaxAttribute):
    """The kind of an atomic operation. `min` and `max` compare signed integers, or floats as `arith.minimumf` and
    `arith.maximumf`.

    ```mlir
    #low<atomic_kind add>
    ```
    """

    name = "low.atomic_kind"


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """Wait for all threads of the block, and see their preceding writes.

    ```mlir
    low.barrier
    ```
    All threads of the block execute it, or none.
    """

    name = "low.barrier"

    traits = traits_def(Synchronizes(), InKernel())

    assembly_format = "attr-dict"


@irdl_op_definition
class ShuffleOp(IRDLOperation):
    """The value of another lane of the warp; all lanes of the warp execute it.

    ```mlir
    %r = low.shuffle down %x, %offset width 32 : f32
    ```
    The mode (`#low<shuffle_mode ...>`) selects a lane in each group of `width` lanes (a power of two up to 32). Lanes
    are numbered with x varying fastest.
    """

    name = "low.shuffle"

    T: ClassVar = VarConstraint("T", AnyAttr())

    value = operand_def(T)
    offset = operand_def(IndexType())
    mode = prop_def(ShuffleModeAttr)
    width = prop_def(IntegerAttr[I64])
    result = result_def(T)

    traits = traits_def(Synchronizes(), InKernel())
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


@irdl_op_definition
class AtomicOp(IRDLOperation):
    """Combine a value into memory atomically; returns the previous value.

    ```mlir
    %old = low.atomic add %v, %B[%i] : f32, memref<?xf32>
    ```
    Threads are not ordered. Buffers have one index per dimension until `tir-flatten`.
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
    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance]:
        if not isinstance(op, AsyncCopyOp):
            return frozenset()
        return frozenset((EffectInstance(READ, op.source), EffectInstance(WRITE, op.target)))


@irdl_op_definition
class AsyncCopyOp(IRDLOperation):
    """Start to copy 4, 8 or 16 bytes from device to shared memory; both addresses are multiples of that size.

    ```mlir
    low.async_copy %A[%i] to %S[%j] bytes 16 : memref<?xf32>, memref<1024xf32, "shared">
    low.async_commit
    low.async_wait 0
    low.barrier
    ```
    This thread sees the copy after `low.async_wait` for its group, others after a following barrier. Targets without
    asynchronous copies copy immediately.
    """

    name = "low.async_copy"

    source = operand_def(MemRefType)
    source_index = operand_def(IndexType())
    target = operand_def(MemRefType)
    target_index = operand_def(IndexType())
    size = prop_def(IntegerAttr[I64])

    traits = traits_def(_CopyEffects(), Synchronizes(), InKernel())
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


@irdl_op_definition
class AsyncCommitOp(IRDLOperation):
    """Group the copies that this thread started since the last commit.

    ```mlir
    low.async_commit
    ```
    """

    name = "low.async_commit"

    traits = traits_def(Synchronizes(), InKernel())

    assembly_format = "attr-dict"


@irdl_op_definition
class AsyncWaitOp(IRDLOperation):
    """Wait until at most the given number of the thread's latest groups are incomplete.

    ```mlir
    low.async_wait 1
    ```
    """

    name = "low.async_wait"

    pending = prop_def(IntegerAttr[I64])

    traits = traits_def(Synchronizes(), InKernel())
    assembly_format = "$pending attr-dict"

    def __init__(self, pending: int) -> None:
        super().__init__(properties={"pending": IntegerAttr(pending, i64)})

    @property
    def groups(self) -> int:
        return self.pending.value.data

    def verify_(self) -> None:
        if self.groups < 0:
            raise VerifyException(f"{self.name} leaves a number of groups, got {self.groups}")


def is_host_condition(op: Operation) -> bool:
    """The first truth value of a buffer, loaded to choose which code runs: host code copies that byte from
    the device."""
    return (
        isinstance(op, memref.LoadOp)
        and op.res.type == i1
        and all(constant_integer(index) == 0 for index in op.indices)
        and all(isinstance(use.operation, scf.IfOp) for use in op.res.uses)
    )


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
