"""`vector`: operations that xDSL lacks."""

from __future__ import annotations

from math import prod
from typing import ClassVar

from xdsl.dialects.builtin import (
    I64,
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    VectorType,
    i1,
)
from xdsl.dialects.vector import CombiningKindAttr, CombiningKindFlag
from xdsl.ir import Attribute, Operation
from xdsl.ir.affine import AffineDimExpr
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from weft.dialects.low_lanes import vector_type
from weft.dialects.printing import write


@irdl_op_definition
class GatherOp(IRDLOperation):
    """Lane l is the element at offset `index_vec[l]` from `base[indices]` in the last dimension, or lane l of
    `pass_thru` if its mask is false.

    ```mlir
    %v = vector.gather %A[%i, %j] [%at], %mask, %other
        : memref<4x32xf32>, vector<8xindex>, vector<8xi1>, vector<8xf32> into vector<8xf32>
    ```
    """

    name = "vector.gather"

    base = operand_def(MemRefType)
    indices = var_operand_def(IndexType())
    index_vec = operand_def(VectorType)
    mask = operand_def(VectorType)
    pass_thru = operand_def(VectorType)
    alignment = opt_prop_def(IntegerAttr[I64])
    result = result_def(VectorType)

    traits = traits_def(MemoryReadEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$base `[` $indices `]` `[` $index_vec `]` `,` $mask `,` $pass_thru attr-dict `:` type($base) `,` "
        "type($index_vec) `,` type($mask) `,` type($pass_thru) `into` type($result)"
    )

    def verify_(self) -> None:
        _verify_indexed(self, self.index_vec.type, self.mask.type, self.result.type)
        if self.pass_thru.type != self.result.type:
            raise VerifyException(f"{self.name} gives {self.result.type}, and {self.pass_thru.type} where masked")


@irdl_op_definition
class ScatterOp(IRDLOperation):
    """Store lanes whose mask is true where `vector.gather` reads; for equal indices, the last.

    ```mlir
    vector.scatter %A[%i, %j] [%at], %mask, %v : memref<4x32xf32>, vector<8xindex>, vector<8xi1>, vector<8xf32>
    ```
    """

    name = "vector.scatter"

    base = operand_def(MemRefType)
    indices = var_operand_def(IndexType())
    index_vec = operand_def(VectorType)
    mask = operand_def(VectorType)
    value = operand_def(VectorType)
    alignment = opt_prop_def(IntegerAttr[I64])

    traits = traits_def(MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$base `[` $indices `]` `[` $index_vec `]` `,` $mask `,` $value attr-dict `:` type($base) `,` "
        "type($index_vec) `,` type($mask) `,` type($value)"
    )

    def verify_(self) -> None:
        _verify_indexed(self, self.index_vec.type, self.mask.type, self.value.type)


def _verify_indexed(op: GatherOp | ScatterOp, places: Attribute, mask: Attribute, lanes: Attribute) -> None:
    shapes = [type_.get_shape() for type_ in (places, mask, lanes) if isinstance(type_, VectorType)]
    if len(set(shapes)) != 1 or not isinstance(op.base.type, MemRefType):
        raise VerifyException(f"{op.name} needs an index and a mask a lane, got {places} and {mask} for {lanes}")
    if len(op.indices) != op.base.type.get_num_dims():
        raise VerifyException(f"{op.name} has {len(op.indices)} indices into {op.base.type}")


@irdl_op_definition
class ConstantMaskOp(IRDLOperation):
    """A mask whose first lanes are true: `vector.constant_mask [3] : vector<8xi1>`."""

    name = "vector.constant_mask"

    mask_dim_sizes = prop_def(DenseArrayBase[I64])
    result = result_def(VectorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$mask_dim_sizes attr-dict `:` type($result)"

    def verify_(self) -> None:
        type_, sizes = vector_type(self.result.type), self.mask_dim_sizes.get_values()
        if type_.element_type != i1 or len(type_.get_shape()) != len(sizes):
            raise VerifyException(f"{self.name} of {list(sizes)} cannot be {type_}")


@irdl_op_definition
class StepOp(IRDLOperation):
    """Lane l is l: `vector.step : vector<8xindex>`."""

    name = "vector.step"

    result = result_def(VectorType)

    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"

    def verify_(self) -> None:
        type_ = vector_type(self.result.type)
        if not isinstance(type_.element_type, IndexType | IntegerType):
            raise VerifyException(f"{self.name} gives indices, got {type_}")


@irdl_op_definition
class FromElementsOp(IRDLOperation):
    """Lane 0 first: `vector.from_elements %a, %b : vector<2xf32>`."""

    name = "vector.from_elements"

    T: ClassVar = VarConstraint("T", AnyAttr())

    elements = var_operand_def()
    result = result_def(VectorType)

    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> FromElementsOp:
        elements = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        element = type_.element_type if isinstance(type_, VectorType) else type_
        operands = parser.resolve_operands(elements, [element] * len(elements), parser.pos)
        return cls.create(operands=operands, result_types=[type_], attributes=attributes)

    def print(self, printer: Printer) -> None:
        write(printer, " ", [*self.elements])
        printer.print_op_attributes(self.attributes)
        write(printer, " : ", self.result.type)

    def verify_(self) -> None:
        type_ = vector_type(self.result.type)
        if prod(type_.get_shape()) != len(self.elements):
            raise VerifyException(f"{self.name} makes {type_} of {len(self.elements)} elements")


@irdl_op_definition
class ToElementsOp(IRDLOperation):
    """`%a:2 = vector.to_elements %v : vector<2xf32>`."""

    name = "vector.to_elements"

    source = operand_def(VectorType)
    elements = var_result_def()

    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> ToElementsOp:
        source = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        if not isinstance(type_, VectorType):
            parser.raise_error(f"{cls.name} takes a vector, got {type_}")
        results = [type_.element_type] * prod(type_.get_shape())
        return cls.create(operands=[parser.resolve_operand(source, type_)], result_types=results, attributes=attributes)

    def print(self, printer: Printer) -> None:
        write(printer, " ", self.source)
        printer.print_op_attributes(self.attributes)
        write(printer, " : ", self.source.type)


@irdl_op_definition
class ExtractStridedSliceOp(IRDLOperation):
    """A slice of a vector's lanes.

    ```mlir
    %s = vector.extract_strided_slice %v {offsets = [2], sizes = [4], strides = [1]} : vector<8xf32> to vector<4xf32>
    ```
    """

    name = "vector.extract_strided_slice"

    source = operand_def(VectorType)
    offsets = prop_def(ArrayAttr[IntegerAttr])
    sizes = prop_def(ArrayAttr[IntegerAttr])
    strides = prop_def(ArrayAttr[IntegerAttr])
    result = result_def(VectorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"


@irdl_op_definition
class InsertStridedSliceOp(IRDLOperation):
    """A vector with a slice replaced.

    ```mlir
    %r = vector.insert_strided_slice %s, %v {offsets = [2], strides = [1]} : vector<4xf32> into vector<8xf32>
    ```
    """

    name = "vector.insert_strided_slice"

    T: ClassVar = VarConstraint("T", AnyAttr())

    source = operand_def(VectorType)
    dest = operand_def(T)
    offsets = prop_def(ArrayAttr[IntegerAttr])
    strides = prop_def(ArrayAttr[IntegerAttr])
    result = result_def(T)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$source `,` $dest attr-dict `:` type($source) `into` type($dest)"


@irdl_op_definition
class InterleaveOp(IRDLOperation):
    """Alternating lanes: `vector.interleave %a, %b : vector<4xf32> -> vector<8xf32>`."""

    name = "vector.interleave"

    T: ClassVar = VarConstraint("T", AnyAttr())

    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(VectorType)

    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)"


@irdl_op_definition
class DeinterleaveOp(IRDLOperation):
    """Even and odd lanes: `%e, %o = vector.deinterleave %v : vector<8xf32> -> vector<4xf32>`."""

    name = "vector.deinterleave"

    T: ClassVar = VarConstraint("T", AnyAttr())

    source = operand_def(VectorType)
    even = result_def(T)
    odd = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `->` type($even)"


@irdl_op_definition
class ShapeCastOp(IRDLOperation):
    """`vector.shape_cast %v : vector<8xf32> to vector<2x4xf32>`."""

    name = "vector.shape_cast"

    source = operand_def(VectorType)
    result = result_def(VectorType)

    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"


@irdl_op_definition
class TransposeOp(IRDLOperation):
    """Permuted dimensions: `vector.transpose %v, [1, 0] : vector<2x4xf32> to vector<4x2xf32>`."""

    name = "vector.transpose"

    source = operand_def(VectorType)
    permutation = prop_def(DenseArrayBase[I64])
    result = result_def(VectorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$source `,` $permutation attr-dict `:` type($source) `to` type($result)"

    def verify_(self) -> None:
        source, result = vector_type(self.source.type), vector_type(self.result.type)
        order = self.permutation.get_values()
        if sorted(order) != list(range(len(source.get_shape()))):
            raise VerifyException(f"{self.name}: {list(order)} is no permutation of the dimensions of {source}")
        if tuple(source.get_shape()[at] for at in order) != result.get_shape():
            raise VerifyException(f"{self.name} by {list(order)} of {source} cannot be {result}")


@irdl_op_definition
class OuterProductOp(IRDLOperation):
    """Products of two vectors' elements, combined with an accumulator; the second may be a number.

    ```mlir
    %r = vector.outerproduct %a, %b, %acc {kind = #vector.kind<add>} : vector<4xf32>, vector<8xf32>
    ```
    """

    name = "vector.outerproduct"

    lhs = operand_def(VectorType)
    rhs = operand_def()
    acc = opt_operand_def(VectorType)
    kind = prop_def(CombiningKindAttr, default_value=CombiningKindAttr(CombiningKindFlag.ADD))
    result = result_def(VectorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)

    @classmethod
    def parse(cls, parser: Parser) -> OuterProductOp:
        at = parser.pos
        names = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        properties = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        left = parser.parse_type()
        parser.parse_punctuation(",")
        right = parser.parse_type()
        if not isinstance(left, VectorType):
            parser.raise_error(f"{cls.name} takes a vector, got {left}", at, parser.pos)
        result = VectorType(left.element_type, [*left.get_shape(), *_shape_of(right)])
        operands = parser.resolve_operands(names, [left, right, result][: len(names)], at)
        return cls.create(operands=operands, result_types=[result], properties=properties)

    def print(self, printer: Printer) -> None:
        write(printer, " ", [*self.operands])
        printer.print_op_attributes({**self.properties, **self.attributes})
        write(printer, " : ", self.lhs.type, ", ", self.rhs.type)

    def verify_(self) -> None:
        left, result = vector_type(self.lhs.type), vector_type(self.result.type)
        if (*left.get_shape(), *_shape_of(self.rhs.type)) != result.get_shape():
            raise VerifyException(f"{self.name} of {left} and {self.rhs.type} cannot be {result}")
        if self.acc is not None and self.acc.type != result:
            raise VerifyException(f"{self.name} gives {result}, and accumulates {self.acc.type}")


def _shape_of(type_: Attribute) -> tuple[int, ...]:
    return type_.get_shape() if isinstance(type_, VectorType) else ()


@irdl_op_definition
class MultiReductionOp(IRDLOperation):
    """Combine elements along dimensions.

    ```mlir
    %r = vector.multi_reduction <add>, %v, %acc [1] : vector<4x8xf32> to vector<4xf32>
    ```
    """

    name = "vector.multi_reduction"

    T: ClassVar = VarConstraint("T", AnyAttr())

    source = operand_def(VectorType)
    acc = operand_def(T)
    kind = prop_def(CombiningKindAttr)
    reduction_dims = prop_def(DenseArrayBase[I64])
    dest = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$kind `,` $source `,` $acc $reduction_dims attr-dict `:` type($source) `to` type($dest)"

    def verify_(self) -> None:
        source, dims = vector_type(self.source.type), self.reduction_dims.get_values()
        shape = source.get_shape()
        if any(not 0 <= dim < len(shape) for dim in dims) or len(set(dims)) != len(dims):
            raise VerifyException(f"{self.name}: {list(dims)} are no dimensions of {source}")
        kept = tuple(extent for at, extent in enumerate(shape) if at not in dims)
        if _shape_of(self.dest.type) != kept or self.acc.type != self.dest.type:
            raise VerifyException(
                f"{self.name} along {list(dims)} of {source} gives {list(kept)}, not {self.dest.type}"
            )


@irdl_op_definition
class ContractOp(IRDLOperation):
    """Products of elements, combined along dimensions that the result lacks.

    ```mlir
    %r = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
      affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %a, %b, %c : vector<4x3xf32>, vector<3x8xf32> into vector<4x8xf32>
    ```
    """

    name = "vector.contract"

    lhs = operand_def(VectorType)
    rhs = operand_def(VectorType)
    acc = operand_def()
    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])
    iterator_types = prop_def(ArrayAttr)
    kind = prop_def(CombiningKindAttr, default_value=CombiningKindAttr(CombiningKindFlag.ADD))
    result = result_def()

    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> ContractOp:
        properties = dict(parser.parse_optional_attr_dict())
        known = {
            name: properties.pop(name) for name in tuple(properties) if name in cls.get_irdl_definition().properties
        }
        at = parser.pos
        names = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        later = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        left = parser.parse_type()
        parser.parse_punctuation(",")
        right = parser.parse_type()
        parser.parse_keyword("into")
        result = parser.parse_type()
        operands = parser.resolve_operands(names, [left, right, result], at)
        return cls.create(
            operands=operands, result_types=[result], properties=known, attributes={**properties, **later}
        )

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes({**self.properties, **self.attributes})
        write(printer, " ", [*self.operands], " : ", self.lhs.type, ", ", self.rhs.type, " into ", self.result.type)

    def verify_(self) -> None:
        maps = [map_.data for map_ in self.indexing_maps]
        types = (self.lhs.type, self.rhs.type, self.result.type)
        if len(maps) != len(types) or self.acc.type != self.result.type:
            raise VerifyException(f"{self.name} has {len(maps)} maps and accumulates {self.acc.type}")
        extents: dict[int, int] = {}
        for map_, type_ in zip(maps, types, strict=True):
            shape = _shape_of(type_)
            dims = [expr.position for expr in map_.results if isinstance(expr, AffineDimExpr)]
            if len(dims) != len(map_.results) or len(dims) != len(shape) or map_.num_dims != len(self.iterator_types):
                raise VerifyException(f"{self.name}: {map_} is no map of the dimensions of {type_}")
            for dim, extent in zip(dims, shape, strict=True):
                if extents.setdefault(dim, extent) != extent:
                    raise VerifyException(f"{self.name}: dimension {dim} has {extents[dim]} and {extent} elements")


OPERATIONS: tuple[type[Operation], ...] = (
    *(GatherOp, ScatterOp, ConstantMaskOp, StepOp, FromElementsOp, ToElementsOp),
    *(ExtractStridedSliceOp, InsertStridedSliceOp, InterleaveOp, DeinterleaveOp, ShapeCastOp),
    *(TransposeOp, OuterProductOp, MultiReductionOp, ContractOp),
)
