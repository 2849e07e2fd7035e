"""Matrix products on tensor cores: ops on tiles, and ops of a warp's threads.

A fragment is a tile of a matrix in the registers of the 32 threads of a warp. At tir level `low.tile_*` run once on
tiles in memory, each a pointer to the first element and a row stride; a fragment is a box of a buffer in a scope such
as `wmma.matrix_a`.

```mlir
%s = low.access_ptr %S[%i, %k] sizes [16, 16] read : memref<64x32xf16, "shared">
%s_rows = low.stride %S {dimension = 0} : memref<64x32xf16, "shared">
%f = low.access_ptr %F[%i, %k] sizes [16, 16] write : memref<64x32xf16, "wmma.matrix_a">
%f_rows = low.stride %F {dimension = 0} : memref<64x32xf16, "wmma.matrix_a">
low.tile_load <wmma, a, row, [16, 16, 16], f16> %s, %s_rows to %f, %f_rows
```

In kernels (`tir-lower-tiles`) all threads of the warp execute the op, with pointers to their registers (a "local"
buffer of `FragmentAttr.elements_per_thread` elements).

```mlir
low.wmma_load <wmma, a, row, [16, 16, 16], f16> %s, %c40 to %fa
low.wmma_mma %fa by %fb onto %fc {a = #low.fragment<...>, b = #low.fragment<...>}
low.wmma_store <wmma, c, row, [16, 16, 16], f32> %fc to %d, %n
low.ldmatrix %row to %fa {count = 4 : i64, transposed = false, element = f16}
low.mma_sync %fa by %fb onto %fc {element = f16}
```
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import auto
from typing import Final, TypeAlias

from xdsl.dialects.builtin import (
    I64,
    BFloat16Type,
    BoolAttr,
    DenseArrayBase,
    Float16Type,
    Float32Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    StringAttr,
    f32,
    i64,
)
from xdsl.dialects.ptr import PtrType
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    param_def,
    prop_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from weft.dialects.effects import PointerEffects, Synchronizes
from weft.dialects.low_access import box_at, buffer_type_at
from weft.dialects.low_kernel import SHARED, InKernel

WARP: Final = 32
"""Threads of a fragment."""


class Family(StrEnum):
    WMMA = auto()
    """`wmma.*`: the layout depends on the architecture."""
    MMA = auto()
    """`mma.sync` and `ldmatrix`: the layout is in the PTX ISA."""


class FragmentRole(StrEnum):
    """A matrix of D = A * B + C."""

    A = auto()
    """m rows, k columns."""
    B = auto()
    """k rows, n columns."""
    C = auto()
    """m rows, n columns: the accumulator."""


class Order(StrEnum):
    ROW = auto()
    """Rows of the tile are rows of the matrix."""
    COL = auto()
    """Rows of the tile are columns of the matrix."""


_SCOPES: Final = {
    f"{family}.{name}": (family, role)
    for family in Family
    for role, name in ((FragmentRole.A, "matrix_a"), (FragmentRole.B, "matrix_b"), (FragmentRole.C, "accumulator"))
}
SHAPES: Final = {Family.WMMA: ((16, 16, 16), (32, 8, 16), (8, 32, 16)), Family.MMA: ((16, 8, 16), (16, 16, 16))}
"""Family -> m, n, k. The last shape is two instructions m16n8k16, for 8 of its 16 columns each."""


def is_fragment_scope(space: Attribute) -> bool:
    return isinstance(space, StringAttr) and space.data in _SCOPES


@irdl_attr_definition
class FragmentAttr(ParametrizedAttribute):
    """A tile of a matrix in the registers of a warp: family of instructions, matrix, order, shape and element type.

    ```mlir
    #low.fragment<wmma, a, row, [16, 16, 16], f16>
    #low.fragment<mma, b, col, [16, 8, 16], bf16>
    ```
    The shape is m, n, k of the product. A and B hold `f16` or `bf16`, C holds `f32`.
    """

    name = "low.fragment"

    family_name: StringAttr = param_def()
    role_name: StringAttr = param_def()
    order_name: StringAttr = param_def()
    sizes: DenseArrayBase[I64] = param_def()
    element: Attribute = param_def()

    @staticmethod
    def of(family: Family, role: FragmentRole, order: Order, shape: Sequence[int], element: Attribute) -> FragmentAttr:
        names = StringAttr(str(family)), StringAttr(str(role)), StringAttr(str(order))
        return FragmentAttr(*names, DenseArrayBase.from_list(i64, list(shape)), element)

    @property
    def family(self) -> Family:
        return Family(self.family_name.data)

    @property
    def role(self) -> FragmentRole:
        return FragmentRole(self.role_name.data)

    @property
    def order(self) -> Order:
        return Order(self.order_name.data)

    @property
    def shape(self) -> tuple[int, int, int]:
        m, n, k = self.sizes.get_values()
        return m, n, k

    @property
    def matrix(self) -> tuple[int, int]:
        m, n, k = self.shape
        return {FragmentRole.A: (m, k), FragmentRole.B: (k, n), FragmentRole.C: (m, n)}[self.role]

    @property
    def tile(self) -> tuple[int, int]:
        rows, columns = self.matrix
        return (rows, columns) if self.order is Order.ROW else (columns, rows)

    @property
    def scope(self) -> str:
        return next(scope for scope, known in _SCOPES.items() if known == (self.family, self.role))

    @property
    def elements_per_thread(self) -> int:
        """`wmma` stores `f16` elements of A and B twice."""
        rows, columns = self.matrix
        if self.family is Family.WMMA and self.role is not FragmentRole.C:
            # PTX ISA, "Matrix Fragments for WMMA".
            return 16 if isinstance(self.element, Float16Type) else rows * columns // WARP
        return rows * columns // WARP

    @property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """First row and column of each 8 x 8 part of a `mma` fragment; a thread has two neighbours of each."""
        return tuple((8 * (part % 2), 8 * (part // 2)) for part in range(self.elements_per_thread // 2))

    def place(self, lane: int, number: int) -> tuple[int, int]:
        """Row and column of a thread's element `number` in a `mma` fragment (PTX ISA, "Matrix Fragments for
        mma.m16n8k16").
        """
        row, column = self.parts[number // 2]
        across, along = lane // 4, 2 * (lane % 4) + number % 2
        return (row + along, column + across) if self.role is FragmentRole.B else (row + across, column + along)

    def with_role(self, role: FragmentRole, order: Order, element: Attribute) -> FragmentAttr:
        return FragmentAttr.of(self.family, role, order, self.shape, element)

    def verify(self) -> None:
        for word, words in ((self.family_name, Family), (self.role_name, FragmentRole), (self.order_name, Order)):
            if word.data not in tuple(words):
                raise VerifyException(f"{self.name}: '{word.data}' is none of {', '.join(words)}")
        if self.sizes.get_values() not in SHAPES[self.family]:
            known = ", ".join(str(list(shape)) for shape in SHAPES[self.family])
            raise VerifyException(
                f"{self.name}: {self.family} has the shapes {known}, got {list(self.sizes.get_values())}"
            )
        wanted = (Float32Type,) if self.role is FragmentRole.C else (Float16Type, BFloat16Type)
        if not isinstance(self.element, wanted):
            raise VerifyException(f"{self.name}: {self.role} of {self.family} does not hold {self.element}")
        if self.order is Order.COL and self.role is FragmentRole.C:
            raise VerifyException(f"{self.name}: the accumulator must have order row")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            words: list[StringAttr] = []
            for kind in (Family, FragmentRole, Order):
                words.append(StringAttr(str(parser.parse_str_enum(kind))))
                parser.parse_punctuation(",")
            sizes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
            parser.parse_punctuation(",")
            return [*words, DenseArrayBase.from_list(i64, sizes), parser.parse_type()]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.family}, {self.role}, {self.order}, {list(self.shape)}, ")
            printer.print_attribute(self.element)


_LOCAL = StringAttr("local")


class TileOp(IRDLOperation):
    traits = traits_def(PointerEffects())

    def fragments(self) -> tuple[tuple[FragmentAttr, SSAValue], ...]:
        raise NotImplementedError

    def memory(self) -> SSAValue | None:
        return None

    def verify_(self) -> None:
        for fragment, pointer in self.fragments():
            space = _verify_box(self, pointer, fragment)
            if space is not None and space not in (StringAttr(fragment.scope), _LOCAL):
                raise VerifyException(f'{self.name}: {fragment} must be in scope "{fragment.scope}", got {space}')
        other = self.memory()
        if other is not None:
            space = _verify_box(self, other, self.fragments()[0][0])
            if space is not None and (is_fragment_scope(space) or space == _LOCAL):
                raise VerifyException(f"{self.name} copies to or from memory that threads share, got {space}")


def _verify_box(op: Operation, pointer: SSAValue, fragment: FragmentAttr) -> Attribute | None:
    """Returns the pointer's memory space."""
    type_ = buffer_type_at(op, pointer)
    if type_.element_type != fragment.element:
        raise VerifyException(f"{op.name}: {fragment} is loaded from and stored to elements of its type, got {type_}")
    sizes = box_at(op, pointer)
    if sizes is not None and (sizes[-2:] != fragment.tile or any(size != 1 for size in sizes[:-2])):
        raise VerifyException(f"{op.name}: {fragment} is a tile of {list(fragment.tile)}, got {list(sizes)}")
    return type_.memory_space


class _TileCopyOp(TileOp):
    source = operand_def(PtrType())
    source_rows = operand_def(IndexType())
    target = operand_def(PtrType())
    target_rows = operand_def(IndexType())
    fragment = prop_def(FragmentAttr)

    assembly_format = "$fragment $source `,` $source_rows `to` $target `,` $target_rows attr-dict"


@irdl_op_definition
class TileLoadOp(_TileCopyOp):
    """Copy a tile of shared or global memory into a fragment.

    ```mlir
    %s = low.access_ptr %A[%i, %j] sizes [16, 16] read : memref<64x64xf16>
    %t = low.access_ptr %F[%c0, %c0] sizes [16, 16] write : memref<16x16xf16, "wmma.matrix_a">
    %s_rows = low.stride %A {dimension = 0} : memref<64x64xf16>
    %t_rows = low.stride %F {dimension = 0} : memref<16x16xf16, "wmma.matrix_a">
    low.tile_load <wmma, a, row, [16, 16, 16], f16> %s, %s_rows to %t, %t_rows
    ```
    """

    name = "low.tile_load"

    def fragments(self) -> tuple[tuple[FragmentAttr, SSAValue], ...]:
        return ((self.fragment, self.target),)

    def memory(self) -> SSAValue:
        return self.source

    def verify_(self) -> None:
        super().verify_()
        space = buffer_type_at(self, self.source).memory_space
        if self.fragment.family is Family.MMA and space != SHARED:
            raise VerifyException(f"{self.name}: fragments of mma are loaded from shared memory, got {space}")


@irdl_op_definition
class TileStoreOp(_TileCopyOp):
    """Copy a fragment to a tile of shared or global memory.

    ```mlir
    %s = low.access_ptr %F[%c0, %c0] sizes [16, 16] read : memref<16x16xf32, "wmma.accumulator">
    %t = low.access_ptr %C[%i, %j] sizes [16, 16] write : memref<64x64xf32>
    %s_rows = low.stride %F {dimension = 0} : memref<16x16xf32, "wmma.accumulator">
    %t_rows = low.stride %C {dimension = 0} : memref<64x64xf32>
    low.tile_store <wmma, c, row, [16, 16, 16], f32> %s, %s_rows to %t, %t_rows
    ```
    """

    name = "low.tile_store"

    def fragments(self) -> tuple[tuple[FragmentAttr, SSAValue], ...]:
        return ((self.fragment, self.source),)

    def memory(self) -> SSAValue:
        return self.target

    def verify_(self) -> None:
        super().verify_()
        if self.fragment.role is not FragmentRole.C:
            raise VerifyException(f"{self.name} stores accumulators, got {self.fragment}")


@irdl_op_definition
class TileFillOp(TileOp):
    """Fill a fragment with a number.

    ```mlir
    %c = low.access_ptr %F[%c0, %c0] sizes [16, 16] write : memref<16x16xf32, "wmma.accumulator">
    %c_rows = low.stride %F {dimension = 0} : memref<16x16xf32, "wmma.accumulator">
    low.tile_fill <wmma, c, row, [16, 16, 16], f32> %c, %c_rows with 0.0 : f32
    ```
    """

    name = "low.tile_fill"

    value = prop_def(FloatAttr)
    target = operand_def(PtrType())
    target_rows = operand_def(IndexType())
    fragment = prop_def(FragmentAttr)

    assembly_format = "$fragment $target `,` $target_rows `with` $value attr-dict"

    def fragments(self) -> tuple[tuple[FragmentAttr, SSAValue], ...]:
        return ((self.fragment, self.target),)

    def verify_(self) -> None:
        super().verify_()
        if self.fragment.role is not FragmentRole.C or not isinstance(self.value.type, Float32Type):
            raise VerifyException(f"{self.name} fills f32 accumulators, got {self.fragment}")


@irdl_op_definition
class TileMmaOp(TileOp):
    """C += A * B; exact products are summed in `f32` in any order.

    ```mlir
    %a = low.access_ptr %FA[%c0, %c0] sizes [16, 16] read : memref<16x16xf16, "wmma.matrix_a">
    %b = low.access_ptr %FB[%c0, %c0] sizes [16, 16] read : memref<16x16xf16, "wmma.matrix_b">
    %c = low.access_ptr %FC[%c0, %c0] sizes [16, 16] readwrite : memref<16x16xf32, "wmma.accumulator">
    low.tile_mma %a, %c16 by %b, %c16 onto %c, %c16 {a = #low.fragment<wmma, a, row, [16, 16, 16], f16>,
      b = #low.fragment<wmma, b, row, [16, 16, 16], f16>}
    ```
    """

    name = "low.tile_mma"

    a = operand_def(PtrType())
    a_rows = operand_def(IndexType())
    b = operand_def(PtrType())
    b_rows = operand_def(IndexType())
    c = operand_def(PtrType())
    c_rows = operand_def(IndexType())
    a_fragment = prop_def(FragmentAttr, prop_name="a")
    b_fragment = prop_def(FragmentAttr, prop_name="b")

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$a `,` $a_rows `by` $b `,` $b_rows `onto` $c `,` $c_rows attr-dict"

    @property
    def c_fragment(self) -> FragmentAttr:
        return self.a_fragment.with_role(FragmentRole.C, Order.ROW, f32)

    def fragments(self) -> tuple[tuple[FragmentAttr, SSAValue], ...]:
        return ((self.c_fragment, self.c), (self.a_fragment, self.a), (self.b_fragment, self.b))

    def verify_(self) -> None:
        verify_factors(self, self.a_fragment, self.b_fragment)
        super().verify_()


def verify_factors(op: Operation, a: FragmentAttr, b: FragmentAttr) -> None:
    if (a.role, b.role) != (FragmentRole.A, FragmentRole.B):
        raise VerifyException(f"{op.name} multiplies a fragment of a and one of b, got {a} and {b}")
    if a != b.with_role(FragmentRole.A, a.order, b.element):
        raise VerifyException(f"{op.name} multiplies fragments of one family, shape and type, got {a} and {b}")


Copy: TypeAlias = "TileLoadOp | TileStoreOp"
TILE_OPS: Final[tuple[type[TileOp], ...]] = (TileLoadOp, TileStoreOp, TileFillOp, TileMmaOp)


WMMA_ALIGNMENT: Final = 32
"""Alignment in bytes, of rows of `wmma` tiles (PTX ISA, "Matrix Storage"; 16 for some of `bf16`)."""


def _verify_registers(op: Operation, pointer: SSAValue, element: Attribute) -> None:
    type_ = buffer_type_at(op, pointer)
    if type_.memory_space != _LOCAL or type_.element_type != element:
        raise VerifyException(f'{op.name} keeps {element} in registers (space "local"), got {type_}')


def _verify_memory(op: Operation, pointer: SSAValue, element: Attribute) -> None:
    type_ = buffer_type_at(op, pointer)
    if type_.memory_space == _LOCAL or type_.element_type != element:
        raise VerifyException(f"{op.name} copies {element} to or from memory that threads share, got {type_}")


class WarpOp(IRDLOperation):
    """An op that all threads of a warp execute, or none."""

    traits = traits_def(PointerEffects(), Synchronizes(), InKernel())

    def __init__(self, *operands: SSAValue, **properties: Attribute) -> None:
        super().__init__(operands=operands, properties=properties)


@irdl_op_definition
class WmmaLoadOp(WarpOp):
    """Load a tile with the given row stride into a fragment; all threads name the same tile.

    ```mlir
    %s = low.access_ptr %S[%i] sizes [512] read : memref<4096xf16, "shared">
    %a = low.access_ptr %A[%c0] sizes [16] write : memref<16xf16, "local">
    low.wmma_load <wmma, a, row, [16, 16, 16], f16> %s, %c32 to %a
    ```
    The thread of an element is unspecified. Rows are aligned to 32 bytes (PTX ISA, "Matrix Storage").
    """

    name = "low.wmma_load"

    source = operand_def(PtrType())
    rows = operand_def(IndexType())
    target = operand_def(PtrType())
    fragment = prop_def(FragmentAttr)

    assembly_format = "$fragment $source `,` $rows `to` $target attr-dict"

    def verify_(self) -> None:
        _verify_wmma(self, self.fragment)
        _verify_memory(self, self.source, self.fragment.element)
        _verify_registers(self, self.target, self.fragment.element)


@irdl_op_definition
class WmmaStoreOp(WarpOp):
    """Store a fragment to a tile with the given row stride; all threads name the same tile.

    ```mlir
    %c = low.access_ptr %C[%c0] sizes [8] read : memref<8xf32, "local">
    %s = low.access_ptr %S[%i] sizes [512] write : memref<4096xf32, "shared">
    low.wmma_store <wmma, c, row, [16, 16, 16], f32> %c to %s, %c32
    ```
    """

    name = "low.wmma_store"

    source = operand_def(PtrType())
    target = operand_def(PtrType())
    rows = operand_def(IndexType())
    fragment = prop_def(FragmentAttr)

    assembly_format = "$fragment $source `to` $target `,` $rows attr-dict"

    def verify_(self) -> None:
        _verify_wmma(self, self.fragment)
        _verify_registers(self, self.source, self.fragment.element)
        _verify_memory(self, self.target, self.fragment.element)


def _verify_wmma(op: Operation, fragment: FragmentAttr) -> None:
    if fragment.family is not Family.WMMA:
        raise VerifyException(f"{op.name} works on fragments of wmma, got {fragment}")


class _WarpMmaOp(WarpOp):
    """Exact products, summed in `f32` in any order."""

    a = operand_def(PtrType())
    b = operand_def(PtrType())
    c = operand_def(PtrType())

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$a `by` $b `onto` $c attr-dict"

    def verify_matrices(self, element: Attribute) -> None:
        for pointer in (self.a, self.b):
            _verify_registers(self, pointer, element)
        _verify_registers(self, self.c, Float32Type())


@irdl_op_definition
class WmmaMmaOp(_WarpMmaOp):
    """C += A * B of fragments of wmma.

    ```mlir
    %a = low.access_ptr %A[%c0] sizes [16] read : memref<16xf16, "local">
    %b = low.access_ptr %B[%c0] sizes [16] read : memref<16xf16, "local">
    %c = low.access_ptr %C[%c0] sizes [8] readwrite : memref<8xf32, "local">
    low.wmma_mma %a by %b onto %c {a = #low.fragment<wmma, a, row, [16, 16, 16], f16>,
      b = #low.fragment<wmma, b, row, [16, 16, 16], f16>}
    ```
    """

    name = "low.wmma_mma"

    a_fragment = prop_def(FragmentAttr, prop_name="a")
    b_fragment = prop_def(FragmentAttr, prop_name="b")

    def verify_(self) -> None:
        _verify_wmma(self, self.a_fragment)
        verify_factors(self, self.a_fragment, self.b_fragment)
        self.verify_matrices(self.a_fragment.element)


@irdl_op_definition
class LdmatrixOp(WarpOp):
    """Load 1, 2 or 4 matrices of 8 x 8 elements of 16 bits from shared memory into registers.

    ```mlir
    %s = low.access_ptr %S[%i] read : memref<4096xf16, "shared">
    %a = low.access_ptr %A[%c0] sizes [8] write : memref<8xf16, "local">
    low.ldmatrix %s to %a {count = 4, transposed = false, element = f16}
    ```
    Thread l names row l mod 8 of matrix l floordiv 8, aligned to 16 bytes; other threads' pointers are ignored. Of each
    matrix it receives elements 2 * (l mod 4) and the next of row l floordiv 4, or of that column if transposed (PTX
    ISA, "ldmatrix").
    """

    name = "low.ldmatrix"

    source = operand_def(PtrType())
    target = operand_def(PtrType())
    count = prop_def(IntegerAttr)
    transposed = prop_def(BoolAttr)
    element = prop_def()

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$source `to` $target attr-dict"

    @property
    def matrices(self) -> int:
        return self.count.value.data

    @property
    def is_transposed(self) -> bool:
        return bool(self.transposed.value.data)

    def verify_(self) -> None:
        if self.matrices not in (1, 2, 4):
            raise VerifyException(f"{self.name} loads 1, 2 or 4 matrices, got {self.matrices}")
        _verify_factor_type(self, self.element)
        _verify_memory(self, self.source, self.element)
        if buffer_type_at(self, self.source).memory_space != SHARED:
            raise VerifyException(f"{self.name} loads from shared memory, got {buffer_type_at(self, self.source)}")
        _verify_registers(self, self.target, self.element)


@irdl_op_definition
class MmaSyncOp(_WarpMmaOp):
    """C += A * B of m16n8k16. A thread holds 8 elements of A, 4 of B and 4 of C (`FragmentAttr.place`).

    ```mlir
    %a = low.access_ptr %A[%c0] sizes [8] read : memref<8xf16, "local">
    %b = low.access_ptr %B[%c0] sizes [4] read : memref<4xf16, "local">
    %c = low.access_ptr %C[%c0] sizes [4] readwrite : memref<4xf32, "local">
    low.mma_sync %a by %b onto %c {element = f16}
    ```
    """

    name = "low.mma_sync"

    element = prop_def()

    def verify_(self) -> None:
        _verify_factor_type(self, self.element)
        self.verify_matrices(self.element)


def _verify_factor_type(op: Operation, element: Attribute) -> None:
    if not isinstance(element, Float16Type | BFloat16Type):
        raise VerifyException(f"{op.name} works on f16 and bf16, got {element}")


TENSOR_CORE_OPS: Final[tuple[type[WarpOp], ...]] = (WmmaLoadOp, WmmaStoreOp, WmmaMmaOp, LdmatrixOp, MmaSyncOp)
