"""Ops of `tensor` that xDSL lacks, or parses for fewer types."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IndexType, TensorType, UnitAttr, i64
from xdsl.dialects.tensor import YieldOp
from xdsl.dialects.utils import DynamicIndexList
from xdsl.ir import Attribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import NoMemoryEffect, Pure, RecursiveMemoryEffect, SingleBlockImplicitTerminator
from xdsl.utils.exceptions import VerifyException


@irdl_op_definition
class RankOp(IRDLOperation):
    """`%r = tensor.rank %t : tensor<?x8xf32>`, the number of dimensions."""

    name = "tensor.rank"

    tensor = operand_def(TensorType)
    result = result_def(IndexType)

    traits = traits_def(Pure())
    assembly_format = "$tensor attr-dict `:` type($tensor)"


@irdl_op_definition
class ReshapeOp(IRDLOperation):
    """The elements in order, in a shape given by a tensor of extents.

    `%r = tensor.reshape %t(%shape) : (tensor<4x8xf32>, tensor<2xindex>) -> tensor<?x?xf32>`
    """

    name = "tensor.reshape"

    source = operand_def(TensorType)
    shape = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "attr-dict $source `(` $shape `)` `:` `(` type($source) `,` type($shape) `)` `->` type($result)"


@irdl_op_definition
class GenerateOp(IRDLOperation):
    """Elements computed from their indices by a region.

    ```mlir
    %t = tensor.generate %n { ^bb0(%i: index, %j: index): ... tensor.yield %x : f32 } : tensor<?x8xf32>
    ```
    """

    name = "tensor.generate"

    dynamic_extents = var_operand_def(IndexType)
    body = region_def("single_block")
    result = result_def(TensorType[Attribute])

    traits = traits_def(RecursiveMemoryEffect(), SingleBlockImplicitTerminator(YieldOp))
    assembly_format = "$dynamic_extents $body attr-dict `:` type($result)"

    def verify_(self) -> None:
        shape = self.result.type.get_shape()
        if len(self.dynamic_extents) != list(shape).count(DYNAMIC_INDEX):
            raise VerifyException(f"{self.name} needs the dynamic extents of {self.result.type}")
        if self.body.block.arg_types != (IndexType(),) * len(shape):
            raise VerifyException(f"{self.name} body takes {len(shape)} indices")


@irdl_op_definition
class GatherOp(IRDLOperation):
    """Slices at indices given by another tensor, in dimensions `gather_dims`.

    `%r = tensor.gather %t[%i] gather_dims([0]) : (tensor<4x8xf32>, tensor<3x1xindex>) -> tensor<3x1x8xf32>`
    """

    name = "tensor.gather"

    source = operand_def(TensorType)
    indices = operand_def(TensorType)
    gather_dims = prop_def(DenseArrayBase.constr(i64))
    unique = opt_prop_def(UnitAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = (
        "$source `[` $indices `]` `gather_dims` `(` $gather_dims `)` (`unique` $unique^)? attr-dict `:` "
        "functional-type(operands, results)"
    )


@irdl_op_definition
class ScatterOp(IRDLOperation):
    """A tensor with slices replaced at indices in dimensions `scatter_dims`. `unique` promises that no slices overlap.

    `%r = tensor.scatter %s into %t[%i] scatter_dims([0]) unique : (tensor<3x1x8xf32>, tensor<4x8xf32>,
    tensor<3x1xindex>) -> tensor<4x8xf32>`
    """

    name = "tensor.scatter"

    source = operand_def(TensorType)
    dest = operand_def(TensorType)
    indices = operand_def(TensorType)
    scatter_dims = prop_def(DenseArrayBase.constr(i64))
    unique = opt_prop_def(UnitAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = (
        "$source `into` $dest `[` $indices `]` `scatter_dims` `(` $scatter_dims `)` (`unique` $unique^)? attr-dict `:` "
        "functional-type(operands, results)"
    )

    def verify_(self) -> None:
        types = [cast("TensorType[Attribute]", value.type) for value in (self.dest, self.indices, self.source)]
        shape, indices, source = (type_.get_shape() for type_ in types)
        dims: list[int] = [int(d) for d in self.scatter_dims.get_values()]
        if self.unique is None:
            raise VerifyException(f"{self.name} needs `unique`: parts at one place have no order")
        if dims != sorted(set(dims)) or not all(0 <= d < len(shape) for d in dims):
            raise VerifyException(f"{self.name} along dimensions {dims} of {self.dest.type}")
        if not indices or indices[-1] != len(dims):
            raise VerifyException(f"{self.name}: the last dimension of {self.indices.type} is {len(dims)} numbers")
        full = [1 if d in dims else extent for d, extent in enumerate(shape)]
        reduced = [extent for d, extent in enumerate(shape) if d not in dims]
        if list(source) not in ([*indices[:-1], *full], [*indices[:-1], *reduced]):
            raise VerifyException(
                f"{self.name} of {self.source.type}: parts of {self.dest.type} at {self.indices.type} have the shape "
                f"{[*indices[:-1], *full]} or {[*indices[:-1], *reduced]}"
            )
        if self.result.type != self.dest.type:
            raise VerifyException(f"{self.name} gives {self.dest.type}, got {self.result.type}")


@irdl_op_definition
class ParallelInsertSliceOp(IRDLOperation):
    """An `scf.forall` iteration's contribution to a result's slice.

    `tensor.parallel_insert_slice %s into %o[%i, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<4x8xf32>`
    """

    name = "tensor.parallel_insert_slice"

    source = operand_def(TensorType)
    dest = operand_def(TensorType)
    offsets = var_operand_def(IndexType)
    sizes = var_operand_def(IndexType)
    strides = var_operand_def(IndexType)
    static_offsets = prop_def(DenseArrayBase.constr(i64))
    static_sizes = prop_def(DenseArrayBase.constr(i64))
    static_strides = prop_def(DenseArrayBase.constr(i64))

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(NoMemoryEffect())
    assembly_format = (
        "$source `into` $dest ``"
        "custom<DynamicIndexList>($offsets, $static_offsets)"
        "custom<DynamicIndexList>($sizes, $static_sizes)"
        "custom<DynamicIndexList>($strides, $static_strides)"
        "attr-dict `:` type($source) `into` type($dest)"
    )
    custom_directives = (DynamicIndexList,)


OPERATIONS = (RankOp, ReshapeOp, GenerateOp, GatherOp, ScatterOp, ParallelInsertSliceOp)
