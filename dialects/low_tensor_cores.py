"""What the 32 threads of a warp do together on tensor cores: they load fragments into registers, and multiply them.

All threads of the warp come to the op, each with a pointer to registers of its own (a buffer in space "local", as many
elements as `FragmentAttr.elements_per_thread`). `tir-lower-tiles` makes these ops of those in `low_tiles.py`.

```mlir
low.wmma_load <wmma, a, row, [16, 16, 16], f16> %s, %c40 to %fa
low.wmma_mma %fa by %fb onto %fc {a = #low.fragment<...>, b = #low.fragment<...>}
low.wmma_store <wmma, c, row, [16, 16, 16], f32> %fc to %d, %n
low.ldmatrix %row to %fa {count = 4 : i64, transposed = false, element = f16}
low.mma_sync %fa by %fb onto %fc {element = f16}
```
"""

from __future__ import annotations

from typing import Final, cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    BoolAttr,
    Float16Type,
    Float32Type,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    i64,
)
from xdsl.dialects.ptr import PtrType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, ParsePropInAttrDict, irdl_op_definition, operand_def, prop_def, traits_def
from xdsl.utils.exceptions import VerifyException

from weft.dialects.effects import PointerEffects, Synchronizes
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.low_fragments import Family, FragmentAttr
from weft.dialects.low_kernel import SHARED, verify_in_kernel
from weft.dialects.low_tiles import verify_factors

WMMA_ALIGNMENT: Final = 32
"""Bytes that rows of tiles of `wmma` start at multiples of (PTX ISA, "Matrix Storage"; 16 for some of `bf16`)."""
_LOCAL = StringAttr("local")


def _points_to(op: Operation, pointer: SSAValue) -> MemRefType[Attribute]:
    """The type of the buffer that a pointer points into."""
    if not isinstance(pointer.owner, AccessPtrOp):
        raise VerifyException(f"{op.name} takes pointers of low.access_ptr")
    return cast("MemRefType[Attribute]", pointer.owner.buffer.type)


def _verify_registers(op: Operation, pointer: SSAValue, element: Attribute) -> None:
    type_ = _points_to(op, pointer)
    if type_.memory_space != _LOCAL or type_.element_type != element:
        raise VerifyException(f'{op.name} keeps {element} in registers (space "local"), got {type_}')


def _verify_memory(op: Operation, pointer: SSAValue, element: Attribute) -> None:
    type_ = _points_to(op, pointer)
    if type_.memory_space == _LOCAL or type_.element_type != element:
        raise VerifyException(f"{op.name} copies {element} to or from memory that threads share, got {type_}")


class WarpOp(IRDLOperation):
    """An op that all threads of a warp come to, or none."""

    traits = traits_def(PointerEffects(), Synchronizes())

    def verify_(self) -> None:
        verify_in_kernel(self)


@irdl_op_definition
class WmmaLoadOp(WarpOp):
    """A tile, whose rows are so many elements apart, becomes a fragment; all threads name the same tile.

    Which thread holds which element is not specified. Rows start at multiples of 32 bytes (PTX ISA, "Matrix Storage").
    """

    name = "low.wmma_load"

    source = operand_def(PtrType())
    rows = operand_def(IndexType())
    target = operand_def(PtrType())
    fragment = prop_def(FragmentAttr)

    assembly_format = "$fragment $source `,` $rows `to` $target attr-dict"

    def __init__(self, fragment: FragmentAttr, source: SSAValue, rows: SSAValue, target: SSAValue) -> None:
        super().__init__(operands=[source, rows, target], properties={"fragment": fragment})

    def verify_(self) -> None:
        super().verify_()
        _verify_wmma(self, self.fragment)
        _verify_memory(self, self.source, self.fragment.element)
        _verify_registers(self, self.target, self.fragment.element)


@irdl_op_definition
class WmmaStoreOp(WarpOp):
    """A fragment becomes a tile, whose rows are so many elements apart; all threads name the same tile."""

    name = "low.wmma_store"

    source = operand_def(PtrType())
    target = operand_def(PtrType())
    rows = operand_def(IndexType())
    fragment = prop_def(FragmentAttr)

    assembly_format = "$fragment $source `to` $target `,` $rows attr-dict"

    def __init__(self, fragment: FragmentAttr, source: SSAValue, target: SSAValue, rows: SSAValue) -> None:
        super().__init__(operands=[source, target, rows], properties={"fragment": fragment})

    def verify_(self) -> None:
        super().verify_()
        _verify_wmma(self, self.fragment)
        _verify_registers(self, self.source, self.fragment.element)
        _verify_memory(self, self.target, self.fragment.element)


def _verify_wmma(op: Operation, fragment: FragmentAttr) -> None:
    if fragment.family is not Family.WMMA:
        raise VerifyException(f"{op.name} works on fragments of wmma, got {fragment}")


@irdl_op_definition
class WmmaMmaOp(WarpOp):
    """C += A * B, the products exact and summed in `f32`, in an order that is not specified."""

    name = "low.wmma_mma"

    a = operand_def(PtrType())
    b = operand_def(PtrType())
    c = operand_def(PtrType())
    a_fragment = prop_def(FragmentAttr, prop_name="a")
    b_fragment = prop_def(FragmentAttr, prop_name="b")

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$a `by` $b `onto` $c attr-dict"

    def __init__(
        self, a_fragment: FragmentAttr, b_fragment: FragmentAttr, a: SSAValue, b: SSAValue, c: SSAValue
    ) -> None:
        super().__init__(operands=[a, b, c], properties={"a": a_fragment, "b": b_fragment})

    def verify_(self) -> None:
        super().verify_()
        _verify_wmma(self, self.a_fragment)
        verify_factors(self, self.a_fragment, self.b_fragment)
        for pointer in (self.a, self.b):
            _verify_registers(self, pointer, self.a_fragment.element)
        _verify_registers(self, self.c, Float32Type())


@irdl_op_definition
class LdmatrixOp(WarpOp):
    """1, 2 or 4 matrices of 8 x 8 elements of 16 bits, from shared memory into registers.

    Thread l names row l mod 8 of matrix l floordiv 8, at a multiple of 16 bytes; the pointers of other threads do not
    matter. It gets, of each matrix, elements 2 * (l mod 4) and the next one of row l floordiv 4; transposed, of that
    column. (PTX ISA, "ldmatrix")
    """

    name = "low.ldmatrix"

    source = operand_def(PtrType())
    target = operand_def(PtrType())
    count = prop_def(IntegerAttr)
    transposed = prop_def(BoolAttr)
    element = prop_def()

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$source `to` $target attr-dict"

    def __init__(
        self, source: SSAValue, target: SSAValue, count: int, element: Attribute, *, transposed: bool = False
    ) -> None:
        super().__init__(
            operands=[source, target],
            properties={
                "count": IntegerAttr(count, i64),
                "transposed": BoolAttr.from_bool(transposed),
                "element": element,
            },
        )

    @property
    def matrices(self) -> int:
        return self.count.value.data

    @property
    def is_transposed(self) -> bool:
        return bool(self.transposed.value.data)

    def verify_(self) -> None:
        super().verify_()
        if self.matrices not in (1, 2, 4):
            raise VerifyException(f"{self.name} loads 1, 2 or 4 matrices, got {self.matrices}")
        _verify_factor_type(self, self.element)
        _verify_memory(self, self.source, self.element)
        if _points_to(self, self.source).memory_space != SHARED:
            raise VerifyException(f"{self.name} loads from shared memory, got {_points_to(self, self.source)}")
        _verify_registers(self, self.target, self.element)


@irdl_op_definition
class MmaSyncOp(WarpOp):
    """C += A * B of m16n8k16, the products exact and summed in `f32`, in an order that is not specified.

    A thread holds 8 elements of A, 4 of B and 4 of C: those of `FragmentAttr.place`.
    """

    name = "low.mma_sync"

    a = operand_def(PtrType())
    b = operand_def(PtrType())
    c = operand_def(PtrType())
    element = prop_def()

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$a `by` $b `onto` $c attr-dict"

    def __init__(self, element: Attribute, a: SSAValue, b: SSAValue, c: SSAValue) -> None:
        super().__init__(operands=[a, b, c], properties={"element": element})

    def verify_(self) -> None:
        super().verify_()
        _verify_factor_type(self, self.element)
        for pointer in (self.a, self.b):
            _verify_registers(self, pointer, self.element)
        _verify_registers(self, self.c, Float32Type())


def _verify_factor_type(op: Operation, element: Attribute) -> None:
    if not isinstance(element, Float16Type | BFloat16Type):
        raise VerifyException(f"{op.name} works on f16 and bf16, got {element}")


TENSOR_CORE_OPS: Final[tuple[type[WarpOp], ...]] = (WmmaLoadOp, WmmaStoreOp, WmmaMmaOp, LdmatrixOp, MmaSyncOp)
