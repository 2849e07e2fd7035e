"""stablehlo: ops on whole tensors, random numbers, complex numbers, and ops of several devices.

```mlir
%0 = stablehlo.fft %x, type = RFFT, length = [8] : (tensor<2x8xf32>) -> tensor<2x5xcomplex<f32>>
%1 = stablehlo.cholesky %a, lower = true : tensor<3x3xf32>
%2 = stablehlo.reduce_precision %x, format = e5m2 : tensor<8xf32>
%s, %3 = stablehlo.rng_bit_generator %k, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
```
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    ComplexType,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
    i32,
)
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from weft.dialects.printing import write
from weft.dialects.stablehlo import (
    NUMBERS,
    CombiningOp,
    ElementwiseOp,
    FftTypeAttr,
    Properties,
    RngAlgorithmAttr,
    RngDistributionAttr,
    TensorOp,
    TensorsOp,
    TransposeAttr,
    parse_end,
    print_end,
)

# Elements


@irdl_op_definition
class ComplexOp(ElementwiseOp):
    """`stablehlo.complex %r, %i : tensor<4xcomplex<f32>>`: real and imaginary parts."""

    name = "stablehlo.complex"
    ARITY: ClassVar[int | None] = 2

    @classmethod
    def parse_types(cls, parser: Parser, count: int) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
        operands, results = super().parse_types(parser, count)
        part = _real_part(results[0])
        return ([part, part], results) if operands[0] == results[0] and part is not None else (operands, results)

    def _print_types(self, printer: Printer) -> None:
        if all(type_ == _real_part(self.result_types[0]) for type_ in self.operand_types):
            write(printer, " : ", self.result_types[0])
        else:
            super()._print_types(printer)


def _real_part(type_: Attribute) -> Attribute | None:
    """The type of the real parts of a complex tensor, else None."""
    if not isinstance(type_, TensorType):
        return None
    if not isinstance(type_.element_type, ComplexType):
        return None
    element = cast("Attribute", type_.element_type.element_type)
    return TensorType(element, type_.get_shape(), type_.encoding)


@irdl_op_definition
class ReducePrecisionOp(ElementwiseOp):
    """Round to fewer exponent and mantissa bits: `stablehlo.reduce_precision %x, format = e5m2 : tensor<8xf32>`."""

    name = "stablehlo.reduce_precision"
    ARITY: ClassVar[int | None] = 1
    exponent_bits = prop_def(IntegerAttr)
    mantissa_bits = prop_def(IntegerAttr)

    def verify_(self) -> None:
        super().verify_()
        exponent, mantissa = self.bits
        if exponent < 1 or mantissa < 0:
            raise VerifyException(f"{self.name}: a format has 1 bit of exponent or more, got e{exponent}m{mantissa}")

    @property
    def bits(self) -> tuple[int, int]:
        return self.exponent_bits.value.data, self.mantissa_bits.value.data

    @classmethod
    def parse(cls, parser: Parser) -> ReducePrecisionOp:
        at = parser.pos
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        parser.parse_keyword("format")
        parser.parse_punctuation("=")
        start = parser.pos
        found = re.fullmatch(r"e(\d+)m(\d+)", parser.parse_identifier())
        if found is None:
            parser.raise_error("a format is written as e5m2, bits of the exponent and the mantissa", start, parser.pos)
        names = ("exponent_bits", "mantissa_bits")
        properties: Properties = {n: IntegerAttr(int(d), i32) for n, d in zip(names, found.groups(), strict=True)}
        return parse_end(cls, parser, [operand], properties, at, lambda _: cls.parse_types(parser, 1))

    def print(self, printer: Printer) -> None:
        exponent, mantissa = self.bits
        write(printer, " ", self.inputs[0], f", format = e{exponent}m{mantissa}")
        print_end(printer, self, "exponent_bits", "mantissa_bits", types=False)
        self._print_types(printer)


# Products and linear algebra


@irdl_op_definition
class DotOp(TensorOp):
    """`stablehlo.dot %a, %b, precision = [DEFAULT, DEFAULT] : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32>`."""

    name = "stablehlo.dot"
    ARITY: ClassVar[int | None] = 2
    KEYWORDS: ClassVar[Mapping[str, str]] = {"precision": "precision_config"}
    precision_config = opt_prop_def(ArrayAttr)


@irdl_op_definition
class EinsumOp(TensorOp):
    """`stablehlo.einsum %a, %b, config = "ij,jk->ik" : (T, U) -> R`."""

    name = "stablehlo.einsum"
    ARITY: ClassVar[int | None] = 2
    KEYWORDS: ClassVar[Mapping[str, str]] = {"config": "einsum_config"}
    einsum_config = prop_def(StringAttr)


@irdl_op_definition
class UnaryEinsumOp(TensorOp):
    """`stablehlo.unary_einsum %a, config = "ij->i" : (T) -> R`."""

    name = "stablehlo.unary_einsum"
    ARITY: ClassVar[int | None] = 1
    KEYWORDS: ClassVar[Mapping[str, str]] = {"config": "einsum_config"}
    einsum_config = prop_def(StringAttr)


@irdl_op_definition
class CholeskyOp(TensorOp):
    """The Cholesky factor of positive definite matrices: `stablehlo.cholesky %a, lower = true : tensor<3x3xf32>`."""

    name = "stablehlo.cholesky"
    ARITY: ClassVar[int | None] = 1
    IS_SHORT: ClassVar[bool] = True
    KEYWORDS: ClassVar[Mapping[str, str]] = {"lower": "lower"}
    lower = opt_prop_def(BoolAttr)


@irdl_op_definition
class TriangularSolveOp(TensorsOp):
    """Solutions X of op(A) X = B or X op(A) = B for triangular A, in the generic form."""

    name = "stablehlo.triangular_solve"
    ARITY: ClassVar[int | None] = 2
    left_side = prop_def(BoolAttr)
    lower = prop_def(BoolAttr)
    unit_diagonal = prop_def(BoolAttr)
    transpose_a = prop_def(TransposeAttr)
    traits = traits_def(Pure())


@irdl_op_definition
class FftOp(TensorOp):
    """Fourier transforms of the last dimensions: `stablehlo.fft %x, type = RFFT, length = [4, 8] : (T) -> R`."""

    name = "stablehlo.fft"
    ARITY: ClassVar[int | None] = 1
    KEYWORDS: ClassVar[Mapping[str, str]] = {"type": "fft_type", "length": "fft_length"}
    fft_type = prop_def(FftTypeAttr)
    fft_length = prop_def(NUMBERS)


# Normalization, selection


class BatchNormOp(TensorsOp):
    """An op with statistics per index of a dimension, in the generic form."""

    epsilon = prop_def(FloatAttr)
    feature_index = prop_def(IntegerAttr)
    traits = traits_def(Pure())

    @property
    def axis(self) -> int:
        return self.feature_index.value.data


@irdl_op_definition
class BatchNormInferenceOp(BatchNormOp):
    """(operand - mean) / sqrt(variance + epsilon) * scale + offset. Operands: operand, scale, offset, mean,
    variance."""

    name = "stablehlo.batch_norm_inference"
    ARITY: ClassVar[int | None] = 5


@irdl_op_definition
class BatchNormTrainingOp(BatchNormOp):
    """The operand normalized with its mean and variance, which are also results. Operands: operand, scale, offset."""

    name = "stablehlo.batch_norm_training"
    ARITY: ClassVar[int | None] = 3


@irdl_op_definition
class BatchNormGradOp(BatchNormOp):
    """Gradients of operand, scale and offset. Operands: operand, scale, mean, variance, gradient of the output."""

    name = "stablehlo.batch_norm_grad"
    ARITY: ClassVar[int | None] = 5


@irdl_op_definition
class TorchIndexSelectOp(TensorsOp):
    """Slices along a dimension at indices, in the generic form."""

    name = "stablehlo.torch_index_select"
    ARITY: ClassVar[int | None] = 2
    dim = prop_def(IntegerAttr)
    batch_dims = prop_def(IntegerAttr)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        super().verify_()
        axis, batch = self.dim.value.data, self.batch_dims.value.data
        rank = cast("TensorType[Attribute]", self.inputs[0].type).get_num_dims()
        if not 0 <= batch <= axis < rank:
            raise VerifyException(f"{self.name}: 0 <= batch_dims <= dim < {rank}, got {batch} and {axis}")


@irdl_op_definition
class MapOp(CombiningOp):
    """A region applied elementwise to tensors of one shape."""

    name = "stablehlo.map"
    dimensions = prop_def(NUMBERS)

    def verify_(self) -> None:
        if len(self.body.block.args) != len(self.inputs) or not self.inputs:
            raise VerifyException(
                f"{self.name}: the region takes an element of each of {len(self.inputs)} operands, got "
                f"{len(self.body.block.args)} arguments"
            )


# Random numbers


@irdl_op_definition
class RngBitGeneratorOp(TensorOp):
    """Next state and random integers, from a state of unsigned 64-bit integers."""

    name = "stablehlo.rng_bit_generator"
    ARITY: ClassVar[int | None] = 1
    KEYWORDS: ClassVar[Mapping[str, str]] = {"algorithm": "rng_algorithm"}
    rng_algorithm = prop_def(RngAlgorithmAttr)

    def verify_(self) -> None:
        super().verify_()
        if len(self.outputs) != 2:
            raise VerifyException(f"{self.name} has 2 results, a state and bits, got {len(self.outputs)}")


@irdl_op_definition
class RngOp(TensorOp):
    """Random numbers between bounds, or with a mean and a deviation. Only parsed, because they have no state and are
    not reproducible."""

    name = "stablehlo.rng"
    ARITY: ClassVar[int | None] = 3
    KEYWORDS: ClassVar[Mapping[str, str]] = {"distribution": "rng_distribution"}
    rng_distribution = prop_def(RngDistributionAttr)
    traits = traits_def()


@irdl_op_definition
class SetDimensionSizeOp(TensorOp):
    """The first elements along a dimension; the result's type may have a bound: `stablehlo.set_dimension_size %x, %n,
    dim = 0 : (T, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<8>>`."""

    name = "stablehlo.set_dimension_size"
    ARITY: ClassVar[int | None] = 2
    KEYWORDS: ClassVar[Mapping[str, str]] = {"dim": "dimension"}
    dimension = prop_def(IntegerAttr)


# Several devices


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """`!stablehlo.token`: orders ops that communicate."""

    name = "stablehlo.token"


class CommunicationOp(IRDLOperation):
    """An op of several devices or a host, in the generic form. weft compiles for one device and rejects it."""

    inputs = var_operand_def(Attribute)
    outputs = var_result_def(Attribute)
    bodies = var_region_def()


_COMMUNICATION: Final[Mapping[str, str]] = {
    "after_all": "",
    "all_gather": "all_gather_dim channel_handle replica_groups use_global_device_ids",
    "all_reduce": "channel_handle replica_groups use_global_device_ids",
    "all_to_all": "channel_handle concat_dimension replica_groups split_count split_dimension",
    "async_done": "",
    "async_start": "called_computation execution_thread",
    "collective_broadcast": "channel_handle replica_groups",
    "collective_permute": "channel_handle source_target_pairs",
    "create_token": "",
    "cross-replica-sum": "replica_groups",
    "infeed": "infeed_config layout",
    "outfeed": "outfeed_config",
    "partition_id": "",
    "recv": "channel_handle is_host_transfer source_target_pairs",
    "reduce_scatter": "channel_handle replica_groups scatter_dimension use_global_device_ids",
    "replica_id": "",
    "send": "channel_handle is_host_transfer source_target_pairs",
}
"""Maps the name of an op of several devices or of a host to its properties."""


_SHORT: Final = ("after_all", "create_token", "partition_id", "replica_id")
"""The ops of `_COMMUNICATION` that are printed as operands and result type."""


class ShortCommunicationOp(CommunicationOp):
    """`stablehlo.after_all %a, %b : !stablehlo.token`."""

    @classmethod
    def parse(cls, parser: Parser) -> ShortCommunicationOp:
        at = parser.pos
        operands = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        count = len(operands or ())

        def types(parser: Parser) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
            parser.parse_punctuation(":")
            type_ = parser.parse_type()
            return [type_] * count, [type_]

        return parse_end(cls, parser, operands or [], {}, at, types)

    def print(self, printer: Printer) -> None:
        if self.inputs:
            write(printer, " ", [*self.inputs])
        print_end(printer, self, types=False)
        write(printer, " : ", self.result_types[0])


def _communication(name: str, properties: str) -> type[CommunicationOp]:
    label = "".join(word.capitalize() for word in re.split("[_-]", name)) + "Op"
    members: dict[str, object] = {member: opt_prop_def(Attribute) for member in properties.split()}
    doc = f"`stablehlo.{name}` of the StableHLO specification."
    base = ShortCommunicationOp if name in _SHORT else CommunicationOp
    made = cast("type[CommunicationOp]", type(label, (base,), {"name": f"stablehlo.{name}", "__doc__": doc, **members}))
    return irdl_op_definition(made)


COMMUNICATION: Final = tuple(_communication(name, properties) for name, properties in _COMMUNICATION.items())

LIBRARY: Final[tuple[type[IRDLOperation], ...]] = (
    BatchNormGradOp,
    BatchNormInferenceOp,
    BatchNormTrainingOp,
    CholeskyOp,
    ComplexOp,
    DotOp,
    EinsumOp,
    FftOp,
    MapOp,
    ReducePrecisionOp,
    RngBitGeneratorOp,
    RngOp,
    SetDimensionSizeOp,
    TorchIndexSelectOp,
    TriangularSolveOp,
    UnaryEinsumOp,
    *COMMUNICATION,
)
