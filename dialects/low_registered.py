"""Calls of functions registered at run time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    IndexType,
    MemRefType,
    NoneAttr,
    StringAttr,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import EffectInstance, MemoryEffect
from xdsl.utils.exceptions import VerifyException

from weft.dialects.effects import READ, WRITE
from weft.dialects.element_types import array_name, bytes_of
from weft.dialects.strides import dynamic_extents
from weft.support.dlpack_types import DLPACK_TYPES
from weft.support.errors import CompileError


class _RegisteredEffects(MemoryEffect):
    @classmethod
    def get_effects(cls, op: Operation) -> frozenset[EffectInstance]:
        if not isinstance(op, CallRegisteredOp):
            return frozenset()
        read = (EffectInstance(READ, buffer) for buffer in op.inputs)
        return frozenset((*read, *(EffectInstance(WRITE, buffer) for buffer in op.outputs)))


@irdl_op_definition
class CallRegisteredOp(IRDLOperation):
    """Call the function registered at run time as `callee`, with arrays.

    ```mlir
    low.call_registered "env.linear"(%x, %w) outs(%y) extents(%n, %n)
      [memref<?x784xf32>, memref<784x8xf32>, memref<?x8xf32>]
      : (memref<?x784xf32>, memref<784x8xf32>) -> (memref<?x8xf32>)
    ```
    It reads the inputs, writes all elements of the outputs, and keeps no pointer. Buffers are dense. It sees the
    bracketed types, which buffers have until `tir-flatten`; `extents` are their dynamic extents.
    """

    name = "low.call_registered"

    callee = prop_def(StringAttr)
    inputs = var_operand_def(MemRefType)
    outputs = var_operand_def(MemRefType)
    extents = var_operand_def(IndexType())
    shapes = prop_def(ArrayAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(_RegisteredEffects())
    assembly_format = (
        "$callee `(` $inputs `)` `outs` `(` $outputs `)` `extents` `(` $extents `)` $shapes attr-dict "
        "`:` `(` type($inputs) `)` `->` `(` type($outputs) `)`"
    )

    def __init__(
        self,
        callee: str,
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
        extents: Sequence[SSAValue],
        shapes: Sequence[MemRefType[Attribute]],
    ) -> None:
        super().__init__(
            operands=[inputs, outputs, extents],
            properties={"callee": StringAttr(callee), "shapes": ArrayAttr(shapes)},
        )

    @property
    def array_types(self) -> tuple[MemRefType[Attribute], ...]:
        return cast("tuple[MemRefType[Attribute], ...]", self.shapes.data)

    def arrays(self) -> Iterator[tuple[SSAValue, Attribute, tuple[int | SSAValue, ...]]]:
        given = iter(self.extents)
        for buffer, type_ in zip((*self.inputs, *self.outputs), self.array_types, strict=True):
            yield buffer, type_.element_type, tuple(next(given) if e < 0 else e for e in type_.get_shape())

    def verify_(self) -> None:
        buffers = (*self.inputs, *self.outputs)
        if len(buffers) != len(self.shapes.data):
            raise VerifyException(f"{self.name} takes {len(buffers)} buffers, but has {len(self.shapes.data)} shapes")
        wanted = 0
        for buffer, shape in zip(buffers, self.shapes.data, strict=True):
            if not isinstance(shape, MemRefType) or not isinstance(shape.layout, NoneAttr):
                raise VerifyException(f"{self.name}: the type of an array is a dense memref, got {shape}")
            type_ = cast("MemRefType[Attribute]", buffer.type)
            # Unsigned integers are stored in buffers of signless ones.
            is_stored = bytes_of(type_.element_type) == bytes_of(shape.element_type)
            if not is_stored or type_.get_num_dims() not in (1, shape.get_num_dims()):
                raise VerifyException(f"{self.name}: {type_} cannot be passed as {shape}")
            wanted += len(dynamic_extents(shape))
        if wanted != len(self.extents):
            raise VerifyException(f"{self.name}: the shapes have {wanted} dynamic extents, got {len(self.extents)}")


def dlpack_type(op: CallRegisteredOp, element: Attribute) -> tuple[int, int]:
    """Type code and bits. Raises `CompileError` for types without a DLPack equivalent."""
    found = DLPACK_TYPES.get("int64" if isinstance(element, IndexType) else array_name(element) or "")
    if found is None:
        raise CompileError.at(op, f'the function registered as "{op.callee.data}" cannot take arrays of {element}')
    return found
