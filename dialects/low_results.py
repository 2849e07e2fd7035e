"""Results of data-dependent shape: calls allocate them, and return address and extents in a descriptor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, cast

from xdsl.dialects.builtin import IndexType, MemRefType, NoneAttr, TensorType, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue, TypeAttribute
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, traits_def, var_operand_def
from xdsl.traits import EffectInstance, MemoryEffect
from xdsl.utils.exceptions import VerifyException

from weft.dialects.argument_attributes import argument_attributes
from weft.dialects.effects import READ, WRITE
from weft.dialects.element_types import bytes_of
from weft.dialects.strides import dynamic_extents

RESULT: Final = "tir.result"
"""Attribute of a descriptor: the tensor type of the result."""


def descriptor_type(rank: int) -> MemRefType[Attribute]:
    """Address, then extents."""
    return MemRefType(i64, [1 + rank])


def allocated_results(function: FuncOp) -> dict[int, TensorType[Attribute]]:
    """Types of allocated results, by positions of descriptors."""
    entries = enumerate(argument_attributes(function) if function.arg_attrs is not None else [])
    return {at: cast("TensorType[Attribute]", e.data[RESULT]) for at, e in entries if RESULT in e.data}


class _ResultEffects(MemoryEffect):
    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance]:
        if not isinstance(op, ReturnResultOp):
            return frozenset()
        return frozenset((EffectInstance(READ, op.source), EffectInstance(WRITE, op.descriptor)))


@irdl_op_definition
class ReturnResultOp(IRDLOperation):
    """Copy a buffer into memory allocated for the caller, and fill in the result's descriptor.

    ```mlir
    low.return_result %buffer extents(%k) memref<?x2xf32> in %y : memref<?x2xf32>, memref<3xi64>
    ```
    The descriptor is the address, then the extents. Its previous address is 0, or that of an earlier result, to be
    reused (`realloc`). `extents` are the dynamic ones of `shape`, the type of the result, and of the buffer until
    `tir-flatten`.
    """

    name = "low.return_result"

    source = operand_def(MemRefType)
    descriptor = operand_def(MemRefType)
    extents = var_operand_def(IndexType())
    shape = prop_def(MemRefType)

    traits = traits_def(_ResultEffects())
    assembly_format = (
        "$source `extents` `(` $extents `)` $shape `in` $descriptor attr-dict `:` type($source) `,` type($descriptor)"
    )

    def __init__(
        self, source: SSAValue, descriptor: SSAValue, extents: Sequence[SSAValue], shape: MemRefType[Attribute]
    ) -> None:
        super().__init__(operands=[source, descriptor, extents], properties={"shape": cast("TypeAttribute", shape)})

    def sizes(self) -> Iterator[int | SSAValue]:
        given = iter(self.extents)
        for extent in self.shape.get_shape():
            yield next(given) if extent < 0 else extent

    def verify_(self) -> None:
        shape, source = self.shape, cast("MemRefType[Attribute]", self.source.type)
        if not isinstance(shape.layout, NoneAttr) or self.descriptor.type != descriptor_type(shape.get_num_dims()):
            raise VerifyException(f"{self.name}: the descriptor of {shape} is {descriptor_type(shape.get_num_dims())}")
        is_stored = bytes_of(source.element_type) == bytes_of(shape.element_type)
        if not is_stored or source.get_num_dims() not in (1, shape.get_num_dims()):
            raise VerifyException(f"{self.name}: {source} cannot be returned as {shape}")
        wanted = len(dynamic_extents(shape))
        if wanted != len(self.extents):
            raise VerifyException(f"{self.name}: {shape} has {wanted} dynamic extents, got {len(self.extents)}")
