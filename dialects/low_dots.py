"""Dot products of neighbours: four bytes, two 16-bit integers or two bf16, as in processors' instructions.

`low.dot` works on values. Until `low-lower-dots`, `low.tile_dot` and `low.tile_interleave` work on vectors in memory,
so that `tensorize` can use them.

Types after `as` state how lanes are read: `si8` from -128 to 127, `ui8` from 0 to 255, `ui4` as a byte's low four bits.
More processors have dot products of `ui1` to `ui7`. Integers are added to i32, where sums wrap, and bf16 to f32.
"""

from __future__ import annotations

from math import prod
from typing import ClassVar, Final, TypeAlias, cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float32Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    Signedness,
    VectorType,
    f32,
    i32,
    i64,
)
from xdsl.dialects.ptr import PtrType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from weft.dialects.effects import PointerEffects
from weft.dialects.low_access import AccessPtrOp, box_at, buffer_type_at
from weft.support.cpu_instructions import BF16, Factor

_WIDTHS: Final = (8, 16)

Reading: TypeAlias = IntegerType | BFloat16Type
"""The type that lanes are read as."""


def is_signed(type_: Reading) -> bool:
    return isinstance(type_, BFloat16Type) or type_.signedness.data is Signedness.SIGNED


def is_narrow(type_: Reading) -> bool:
    return isinstance(type_, IntegerType) and type_.width.data < _WIDTHS[0]


def factor_of(type_: Reading) -> Factor:
    if isinstance(type_, BFloat16Type):
        return BF16
    width = type_.width.data
    return Factor(max(width, _WIDTHS[0]), is_signed(type_), width=width if is_narrow(type_) else None)


def sign_of(type_: Reading) -> bool | None:
    """Returns None for bf16."""
    return None if isinstance(type_, BFloat16Type) else is_signed(type_)


def element_of_reading(type_: Reading) -> IntegerType | BFloat16Type:
    return type_ if isinstance(type_, BFloat16Type) else IntegerType(factor_of(type_).bits)


def sum_of_reading(type_: Reading) -> IntegerType | Float32Type:
    return f32 if isinstance(type_, BFloat16Type) else i32


_MOST_ELEMENTS = 1 << 16
"""The elements become vectors, and the time and memory of code generators grow with each element."""


def verify_reading(op: Operation, reading: Attribute, element: Attribute) -> None:
    """Accepts integers of 8 or 16 bits with either sign, narrower unsigned bytes, and bf16."""
    if isinstance(reading, IntegerType):
        sign, width = reading.signedness.data, reading.width.data
        fits = sign is not Signedness.SIGNLESS and width in _WIDTHS
        fits |= sign is Signedness.UNSIGNED and 0 < width < _WIDTHS[0]
    else:
        fits = isinstance(reading, BFloat16Type)
    if not fits or not isinstance(reading, IntegerType | BFloat16Type):
        raise VerifyException(f"{op.name} reads si8, ui1 to ui8, si16, ui16 or bf16, got {reading}")
    if element != element_of_reading(cast("Reading", reading)):
        raise VerifyException(f"{op.name} reads {element} as {reading}")


def verify_whole(op: Operation, *readings: Reading) -> None:
    """Requires factors with all bits of their elements."""
    for reading in filter(is_narrow, readings):
        raise VerifyException(f"{op.name} reads all bits of its factors, got {reading}")


def verify_pair(op: Operation, left: Reading, right: Reading) -> None:
    """Requires factors of one width and kind."""
    if element_of_reading(left) != element_of_reading(right):
        raise VerifyException(f"{op.name} multiplies numbers of one width and kind, got {left} and {right}")


@irdl_op_definition
class DotOp(IRDLOperation):
    """Add to each lane the dot product of its group of lanes; sums of integers wrap.

    ```mlir
    %r = low.dot %c, %a as si8, %b as ui8 : vector<16xi32>, vector<4xi8>, vector<64xi8>
    // r[l] = c[l] + a[0] * b[4 * l] + a[1] * b[4 * l + 1] + a[2] * b[4 * l + 2] + a[3] * b[4 * l + 3]
    %s = low.dot %d, %x as bf16, %y as bf16 : vector<16xf32>, vector<2xbf16>, vector<32xbf16>
    ```
    Products of bf16 are exact in f32. A group is added in any order and rounded any number of times; processors may
    flush subnormals to zero.

    A group has the lanes of `rhs` divided by those of the accumulator. `lhs` has the lanes of `rhs`, or a single group,
    which multiplies every group of `rhs`.
    """

    name = "low.dot"

    T: ClassVar = VarConstraint("T", AnyAttr())

    acc = operand_def(T)
    lhs = operand_def(VectorType)
    rhs = operand_def(VectorType)
    lhs_as = prop_def(Attribute)
    rhs_as = prop_def(Attribute)
    result = result_def(T)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$acc `,` $lhs `as` $lhs_as `,` $rhs `as` $rhs_as attr-dict `:` type($acc) `,` type($lhs) `,` type($rhs)"
    )

    def __init__(self, acc: SSAValue, lhs: SSAValue, lhs_as: Reading, rhs: SSAValue, rhs_as: Reading) -> None:
        super().__init__(
            operands=[acc, lhs, rhs], properties={"lhs_as": lhs_as, "rhs_as": rhs_as}, result_types=[acc.type]
        )

    @property
    def readings(self) -> tuple[Reading, Reading]:
        return cast("Reading", self.lhs_as), cast("Reading", self.rhs_as)

    @property
    def lanes(self) -> int:
        return _lanes(self.acc)

    @property
    def group(self) -> int:
        """Products per sum."""
        return _lanes(self.rhs) // self.lanes

    @property
    def is_one_group(self) -> bool:
        return _lanes(self.lhs) != _lanes(self.rhs)

    def verify_(self) -> None:
        values = (self.acc, self.lhs, self.rhs)
        elements = [
            v.type.element_type for v in values if isinstance(v.type, VectorType) and v.type.get_num_dims() == 1
        ]
        shown = ", ".join(str(value.type) for value in values)
        if len(elements) != 3:
            raise VerifyException(f"{self.name} works on vectors of one dimension, got {shown}")
        for reading, element in zip(self.readings, elements[1:], strict=True):
            verify_reading(self, reading, element)
        verify_pair(self, *self.readings)
        if elements[0] != (sums := sum_of_reading(self.readings[0])):
            raise VerifyException(f"{self.name} adds products of {elements[1]} to {sums}, got {shown}")
        acc, lhs, rhs = _lanes(self.acc), _lanes(self.lhs), _lanes(self.rhs)
        if rhs % acc or lhs not in (rhs, rhs // acc):
            raise VerifyException(
                f"{self.name} takes a group of lanes for each of {acc} sums, or one for all, got {lhs} and {rhs}"
            )


def _lanes(value: SSAValue) -> int:
    return prod(cast("VectorType[Attribute]", value.type).get_shape())


def _verify_box(op: Operation, pointer: SSAValue, count: int) -> Attribute:
    """Check a pointer; returns its element type."""
    sizes = box_at(op, pointer)
    if count > _MOST_ELEMENTS:
        raise VerifyException(f"{op.name} works on at most {_MOST_ELEMENTS:,} elements of a buffer, got {count:,}")
    if sizes is not None and prod(sizes) != count:
        raise VerifyException(f"{op.name} works on {count} elements, got a box of {list(sizes)}")
    return buffer_type_at(op, pointer).element_type


class _TileOp(IRDLOperation):
    lanes = prop_def(IntegerAttr)

    traits = traits_def(PointerEffects())
    irdl_options = (ParsePropInAttrDict(),)

    @property
    def lane_count(self) -> int:
        return self.lanes.value.data


@irdl_op_definition
class TileDotOp(_TileOp):
    """`low.dot` on contiguous memory: C[l] += sum over s of A[s] * B[l][s].

    ```mlir
    %a = low.access_ptr %A[%i] sizes [4] read : memref<?xi8>
    %b = low.access_ptr %B[%j] sizes [64] read : memref<?xi8>
    %c = low.access_ptr %C[%k] sizes [16] readwrite : memref<?xi32>
    low.tile_dot %a as si8, %b as ui8 onto %c {lanes = 16, steps = 4}
    ```
    The pointers name 4 elements of A, 16 x 4 of B and 16 of C.
    """

    name = "low.tile_dot"

    a = operand_def(PtrType())
    b = operand_def(PtrType())
    c = operand_def(PtrType())
    a_as = prop_def(Attribute)
    b_as = prop_def(Attribute)
    steps = prop_def(IntegerAttr)

    assembly_format = "$a `as` $a_as `,` $b `as` $b_as `onto` $c attr-dict"

    def __init__(
        self, a: SSAValue, a_as: Reading, b: SSAValue, b_as: Reading, c: SSAValue, lanes: int, steps: int
    ) -> None:
        numbers = {"lanes": IntegerAttr(lanes, i64), "steps": IntegerAttr(steps, i64)}
        super().__init__(operands=[a, b, c], properties={"a_as": a_as, "b_as": b_as, **numbers})

    @property
    def readings(self) -> tuple[Reading, Reading]:
        return cast("Reading", self.a_as), cast("Reading", self.b_as)

    @property
    def step_count(self) -> int:
        return self.steps.value.data

    def verify_(self) -> None:
        if self.lane_count < 1 or self.step_count < 1:
            raise VerifyException(f"{self.name} has at least one lane and step, got {self.lanes} and {self.steps}")
        verify_reading(self, self.a_as, _verify_box(self, self.a, self.step_count))
        verify_reading(self, self.b_as, _verify_box(self, self.b, self.lane_count * self.step_count))
        verify_pair(self, *self.readings)
        sums = _verify_box(self, self.c, self.lane_count)
        if sums != (wanted := sum_of_reading(self.readings[0])):
            raise VerifyException(f"{self.name} adds to {wanted}, got {sums}")


@irdl_op_definition
class TileInterleaveOp(_TileOp):
    """Interleave rows, so that columns become neighbours: Y[l][r] = X[r][l].

    ```mlir
    %x = low.access_ptr %X[%i, %j] sizes [4, 16] read : memref<64x64xi8>
    %y = low.access_ptr %Y[%k] sizes [64] write : memref<4096xi8>
    %x_rows = low.stride %X {dimension = 0} : memref<64x64xi8>
    low.tile_interleave %x, %x_rows to %y {lanes = 16, rows = 4}
    ```
    Consecutive rows of X are `%x_rows` elements apart; the elements of Y are contiguous.
    """

    name = "low.tile_interleave"

    source = operand_def(PtrType())
    distance = operand_def(IndexType())
    target = operand_def(PtrType())
    rows = prop_def(IntegerAttr)

    assembly_format = "$source `,` $distance `to` $target attr-dict"

    def __init__(self, source: SSAValue, distance: SSAValue, target: SSAValue, lanes: int, rows: int) -> None:
        numbers = {"lanes": IntegerAttr(lanes, i64), "rows": IntegerAttr(rows, i64)}
        super().__init__(operands=[source, distance, target], properties=numbers)

    @property
    def row_count(self) -> int:
        return self.rows.value.data

    def verify_(self) -> None:
        if self.lane_count < 1 or self.row_count < 1:
            raise VerifyException(f"{self.name} has at least one lane and row, got {self.lanes} and {self.rows}")
        count = self.lane_count * self.row_count
        source, target = _verify_box(self, self.source, count), _verify_box(self, self.target, count)
        if source != target:
            raise VerifyException(f"{self.name} moves {source} to {target}")
        buffers = {pointer.owner.buffer for pointer in self.operands if isinstance(pointer.owner, AccessPtrOp)}
        if len(buffers) == 1:
            raise VerifyException(f"{self.name} moves elements between two buffers, got one")


DOT_OPS: Final[tuple[type[IRDLOperation], ...]] = (DotOp, TileDotOp, TileInterleaveOp)
"""Dot products of neighbouring lanes, and the op that interleaves their operands."""
