"""Kernels at low level, their launches, and the places of threads in them.

A kernel is a `func.func` with the attribute `low.kernel`; it returns nothing, and the host starts it with `low.launch`.
In a kernel memory of space "shared" belongs to a block of threads and memory of space "local" to one thread; both are
`memref.alloca` at the top of the kernel. Buffers without a space (or of space "global") are device memory.

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

from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    DenseArrayBase,
    FlatSymbolRefAttrConstr,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    SymbolRefAttr,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    opt_prop_def,
    param_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure, SymbolTable, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException

from weft.dialects.low_access import Access, AccessAttr
from weft.dialects.tir_kinds import IN_STEP

KERNEL = "low.kernel"
"""Function attribute of a kernel: a `KernelAttr`."""
ARG_ACCESS = "low.arg_access"
"""Function attribute of a kernel: an array with an `AccessAttr` for each argument (scalars are `read`)."""
SHARED = StringAttr("shared")
"""Memory space of buffers that the threads of a block share."""
THREAD_AXES = tuple(f"threadIdx.{dimension}" for dimension in "xyz")
BLOCK_AXES = tuple(f"blockIdx.{dimension}" for dimension in "xyz")


def space_of(type_: Attribute) -> str:
    """The memory of a buffer type, `global`, `shared` or `local` on GPUs: a tag behind a dot tells nothing of it."""
    space = type_.memory_space if isinstance(type_, MemRefType) else None
    return space.data.partition(".")[0] if isinstance(space, StringAttr) else "global"


@irdl_attr_definition
class KernelAttr(ParametrizedAttribute):
    """Marks a kernel: threads in a block for the x, y and z axis, and the blocks of the program that it comes from.

    `#low.kernel<[256, 1, 1], source = "C">`
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
    """What marks `function` as a kernel, None for a host function."""
    attribute = function.attributes.get(KERNEL)
    return attribute if isinstance(attribute, KernelAttr) else None


def argument_accesses(function: FuncOp) -> tuple[Access, ...]:
    """How a kernel accesses each of its arguments; `readwrite` where nothing is said."""
    noted = function.attributes.get(ARG_ACCESS)
    if not isinstance(noted, ArrayAttr):
        return (Access.READWRITE,) * len(function.function_type.inputs)
    return tuple(a.data for a in noted if isinstance(a, AccessAttr))


def verify_in_kernel(op: Operation) -> None:
    """Thread ids, barriers and shuffles have a meaning in kernels only."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, FuncOp):
        parent = parent.parent_op()
    if isinstance(parent, FuncOp) and kernel_of(parent) is None and IN_STEP not in parent.attributes:
        raise VerifyException(f"{op.name} stands in a kernel, and @{parent.sym_name.data} has no {KERNEL}")


class _LaunchSymbol(SymbolUserOpInterface):
    """What a launch names is a kernel of the module that takes such arguments."""

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


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Start a kernel on a grid of blocks of threads; launches of a function run one after the other.

    ```mlir
    low.launch @k blocks(%gx, %gy, %gz) threads(%tx, %ty, %tz) (%A, %n) : memref<?xf32>, index
    ```
    An empty grid (an extent of zero) starts nothing.
    """

    name = "low.launch"

    grid = var_operand_def(IndexType())
    block = var_operand_def(IndexType())
    arguments = var_operand_def()
    kernel = prop_def(FlatSymbolRefAttrConstr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(_LaunchSymbol(), MemoryReadEffect(), MemoryWriteEffect())
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
    """The place of this thread on an axis: `blockIdx.x|y|z` or `threadIdx.x|y|z`.

    `%t = low.thread_id "threadIdx.x" extent 256 : index`; `extent` is stated where it is static, the value is less.
    """

    name = "low.thread_id"

    axis = prop_def(StringAttr)
    extent = opt_prop_def(IntegerAttr[IndexType])
    result = result_def(IndexType())

    traits = traits_def(Pure())
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
        verify_in_kernel(self)
