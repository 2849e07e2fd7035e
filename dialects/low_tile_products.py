"""Products of small matrices in memory for tile registers (AMX; docs/decisions/0118-tile-registers.md).

They are the building block of batch-reduce matrix products (Georganas et al., "High-Performance Deep Learning via a
Single Building Block", IPDPS 2020): sums stay in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerAttr, UnitAttr, i64
from xdsl.dialects.ptr import PtrType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from weft.dialects.effects import PointerEffects
from weft.dialects.element_types import bytes_of
from weft.dialects.low_access import buffer_type_at
from weft.dialects.low_dots import Reading, sum_of_reading, verify_pair, verify_reading, verify_whole

TILE_ROWS: Final = 16
"""Rows of a tile register."""
TILE_BYTES: Final = 64
"""Bytes of a row of a tile register."""
TILE_REGISTERS: Final = 8
SUM_BYTES: Final = 4

Part: TypeAlias = tuple[int, int]
"""First index and extent of the rows, or columns, of one tile."""

Signs: TypeAlias = tuple[bool | None, bool | None]
"""Whether the elements of A and of B are signed bytes; None for bf16."""


def elements_of(signs: Signs) -> str:
    """Elements in names of intrinsics: `bf16`, `u8s8`."""
    return "bf16" if None in signs else "".join("s8" if signed else "u8" for signed in signs)


def parts_of(extent: int) -> tuple[Part, ...]:
    """Tiles over `extent` rows or columns; the last may be smaller."""
    return tuple((first, min(TILE_ROWS, extent - first)) for first in range(0, extent, TILE_ROWS))


def fits_registers(rows: int, columns: int) -> bool:
    """Whether registers hold the sums, a tile of each part of A and one of each width of B."""
    down, across = len(parts_of(rows)), parts_of(columns)
    return down * len(across) + down + len({width for _, width in across}) <= TILE_REGISTERS


@dataclass(frozen=True)
class TileRegisters:
    """Sums, parts of A, then parts of B, which share the rest in turn; a smaller last part of B has the last
    register."""

    rows: tuple[Part, ...]
    columns: tuple[Part, ...]
    depth: int
    """Bytes of a row of A that are multiplied at once."""

    def of_sums(self, row: int, column: int) -> int:
        return row * len(self.columns) + column

    def of_a(self, row: int) -> int:
        return len(self.rows) * len(self.columns) + row

    def of_b(self, column: int) -> int:
        last, first = TILE_REGISTERS - 1, self.of_a(len(self.rows))
        if self.columns[column][1] != self.columns[0][1]:
            return last
        return first + column % (last + (self.columns[-1][1] == self.columns[0][1]) - first)

    def configuration(self) -> bytes:
        """The LDTILECFG operand (Intel SDM): palette 1, bytes of a row and rows per tile."""
        shapes = [(0, 0)] * TILE_REGISTERS
        for row, (_, height) in enumerate(self.rows):
            shapes[self.of_a(row)] = (height, self.depth)
            for column, (_, width) in enumerate(self.columns):
                shapes[self.of_sums(row, column)] = (height, width * SUM_BYTES)
        for column, (_, width) in enumerate(self.columns):
            shapes[self.of_b(column)] = (self.depth // SUM_BYTES, width * SUM_BYTES)
        widths = b"".join(width.to_bytes(2, "little") for _, width in shapes)
        heights = bytes(height for height, _ in shapes)
        return b"\1" + bytes(15) + widths + bytes(16) + heights + bytes(8)


@irdl_op_definition
class TileProductOp(IRDLOperation):
    """Add to a small matrix C the product of A and B, whose reduction has several levels.

    ```mlir
    %a = low.access_ptr %A[%i, %c0] sizes [32, 1024] read : memref<64x1024xbf16>
    %b = low.access_ptr %B[%j, %c0, %c0, %c0] sizes [1, 512, 32, 2] read : memref<8x512x32x2xbf16>
    %c = low.access_ptr %C[%c0, %c0] sizes [32, 32] write : memref<32x32xf32>
    low.tile_product %a[%a_rows, %c32] as bf16, %b[%b_rows, %b_steps] as bf16 onto %c[%c_rows]
        {rows = 32, columns = 32, depth = 32, extents = array<i64: 32>, from_zero}
    // C[m][n] = sum over s < 32, d < 32 of A[m * a_rows + s * 32 + d] * B[d / 2 * b_rows + s * b_steps + n * 2 + d % 2]
    ```
    Distances are in elements: of A between rows, of B between rows of groups, then of each between iterations of each
    level. A row of A has `depth` consecutive elements per iteration; a row of B a group of 32 bits per column.
    `extents` are the iterations of the levels, outermost first. With `from_zero`, C is overwritten.

    `b_ahead` hints that elements of B at this distance will be read soon.

    Products and sums are those of `low.dot`: sums of integers wrap, those of bf16 are in f32 in any order.
    """

    name = "low.tile_product"

    a = operand_def(PtrType())
    a_distances = var_operand_def(IndexType())
    b = operand_def(PtrType())
    b_distances = var_operand_def(IndexType())
    c = operand_def(PtrType())
    c_distance = operand_def(IndexType())
    a_as = prop_def(Attribute)
    b_as = prop_def(Attribute)
    rows = prop_def(IntegerAttr)
    columns = prop_def(IntegerAttr)
    depth = prop_def(IntegerAttr)
    extents = prop_def(DenseArrayBase.constr(i64))
    from_zero = opt_prop_def(UnitAttr)
    b_ahead = opt_prop_def(IntegerAttr)

    traits = traits_def(PointerEffects())
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    assembly_format = (
        "$a `[` $a_distances `]` `as` $a_as `,` $b `[` $b_distances `]` `as` $b_as `onto` $c `[` $c_distance `]` "
        "attr-dict"
    )

    def __init__(
        self,
        operands: tuple[SSAValue, Sequence[SSAValue], SSAValue, Sequence[SSAValue], SSAValue, SSAValue],
        readings: tuple[Reading, Reading],
        shape: tuple[int, int, int],
        extents: Sequence[int],
        *,
        from_zero: bool,
        b_ahead: int = 0,
    ) -> None:
        numbers = zip(("rows", "columns", "depth"), shape, strict=True)
        super().__init__(
            operands=list(operands),
            properties={
                "a_as": readings[0],
                "b_as": readings[1],
                **{name: IntegerAttr(number, i64) for name, number in numbers},
                "extents": DenseArrayBase.from_list(i64, list(extents)),
                "from_zero": UnitAttr() if from_zero else None,
                "b_ahead": IntegerAttr(b_ahead, i64) if b_ahead else None,
            },
        )

    @property
    def readings(self) -> tuple[Reading, Reading]:
        return cast("Reading", self.a_as), cast("Reading", self.b_as)

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.rows.value.data, self.columns.value.data, self.depth.value.data

    @property
    def levels(self) -> tuple[int, ...]:
        return self.extents.get_values()

    @property
    def bytes_ahead(self) -> int:
        """Returns 0 without prefetches."""
        return 0 if self.b_ahead is None else self.b_ahead.value.data * self.element_bytes

    @property
    def element_bytes(self) -> int:
        return bytes_of(buffer_type_at(self, self.a).element_type)

    @property
    def group(self) -> int:
        return SUM_BYTES // self.element_bytes

    @property
    def registers(self) -> TileRegisters:
        rows, columns, depth = self.shape
        return TileRegisters(parts_of(rows), parts_of(columns), depth * self.element_bytes)

    def verify_(self) -> None:
        pointers = (self.a, self.b, self.c)
        of_a, of_b, of_c = (buffer_type_at(self, pointer).element_type for pointer in pointers)
        verify_reading(self, self.a_as, of_a)
        verify_reading(self, self.b_as, of_b)
        verify_pair(self, *self.readings)
        verify_whole(self, *self.readings)
        if of_c != (wanted := sum_of_reading(self.readings[0])):
            raise VerifyException(f"{self.name} adds to {wanted}, got {of_c}")
        rows, columns, depth = self.shape
        if min(rows, columns, depth, *self.levels) < 1:
            numbers = [rows, columns, depth, *self.levels]
            raise VerifyException(f"{self.name} has positive rows, columns, depth and extents, got {numbers}")
        if not fits_registers(rows, columns):
            raise VerifyException(
                f"{self.name} holds all sums in {TILE_REGISTERS} tiles of {TILE_ROWS} x {TILE_ROWS} with its factors, "
                f"got {rows} rows and {columns} columns"
            )
        if depth % self.group or depth * self.element_bytes > TILE_BYTES:
            raise VerifyException(
                f"{self.name} multiplies whole groups of {self.group} elements and at most {TILE_BYTES} bytes at once, "
                f"got depth {depth} of {of_a}"
            )
        counts = (len(self.a_distances), len(self.b_distances))
        if counts != (1 + len(self.levels),) * 2:
            raise VerifyException(
                f"{self.name} has a distance of rows and one for each of {len(self.levels)} levels, got {counts[0]} of "
                f"A and {counts[1]} of B"
            )
