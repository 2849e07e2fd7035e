"""quant: the element types of quantised tensors, as MLIR's dialect `quant` and StableHLO print them.

```mlir
tensor<4x!quant.uniform<i8:f32, 0.1:-3>>                             // number = (integer + 3) * 0.1
tensor<4x2x!quant.uniform<i8<-127:127>:f32:1, {0.1, 0.2:5}>>         // a scale and a zero point for each column
```

Source: MLIR's documentation of the dialect, and the StableHLO specification, "Quantized types".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Data, Dialect, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from weft.dialects.printing import float_text

_EXPRESSED: Final = (BFloat16Type, Float16Type, Float32Type, Float64Type)


@dataclass(frozen=True)
class Quantization:
    """The integers of a quantised type, and the numbers that they stand for: (integer - zero point) * scale."""

    storage: IntegerType
    least: int
    greatest: int
    expressed: Attribute
    axis: int | None
    """The dimension with a scale and a zero point for each index; None if there is one of each."""
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]


@irdl_attr_definition
class UniformQuantizedType(Data[Quantization], TypeAttribute):
    """`!quant.uniform<storage<min:max>:expressed:axis, {scale:zero point, ...}>`; limits and zero points of 0 are
    optional, and there is no axis if there is one scale."""

    name = "quant.uniform"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Quantization:
        parser.parse_punctuation("<")
        at = parser.pos
        found = re.fullmatch(r"([iu])(\d+)", parser.parse_identifier("a storage type"))
        if found is None:
            parser.raise_error("the storage of a quantised type is i or u and a number of bits", at, parser.pos)
        is_signed, width = found[1] == "i", int(found[2])
        storage = IntegerType(width, Signedness.SIGNLESS if is_signed else Signedness.UNSIGNED)
        least, greatest = _limits(storage)
        if parser.parse_optional_punctuation("<") is not None:
            least = parser.parse_integer()
            parser.parse_punctuation(":")
            greatest = parser.parse_integer()
            parser.parse_punctuation(">")
        parser.parse_punctuation(":")
        at = parser.pos
        expressed = parser.parse_type()
        axis = None
        if parser.parse_optional_punctuation(":") is not None:
            at = parser.pos
            axis = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
            if axis is None:
                parser.raise_error("scales of blocks of several dimensions are not supported", at, parser.pos)
        parser.parse_punctuation(",")
        pairs = (
            [_parse_scale(parser)]
            if axis is None
            else parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: _parse_scale(parser))
        )
        parser.parse_punctuation(">")
        scales, zero_points = tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
        return Quantization(storage, least, greatest, expressed, axis, scales, zero_points)

    def print_parameter(self, printer: Printer) -> None:
        data = self.data
        is_unsigned = data.storage.signedness.data is Signedness.UNSIGNED
        text = f"{'u' if is_unsigned else 'i'}{data.storage.width.data}"
        if (data.least, data.greatest) != _limits(data.storage):
            text += f"<{data.least}:{data.greatest}>"
        pairs = [f"{float_text(s)}{f':{z}' if z else ''}" for s, z in zip(data.scales, data.zero_points, strict=True)]
        with printer.in_angle_brackets():
            printer.print_string(f"{text}:")
            printer.print_attribute(data.expressed)
            printer.print_string(
                f", {pairs[0]}" if data.axis is None else f":{data.axis}, {{{', '.join(pairs)}}}",
            )

    def verify(self) -> None:
        data = self.data
        lowest, highest = _limits(data.storage)
        if not 1 <= data.storage.width.data <= 32 or not lowest <= data.least < data.greatest <= highest:
            raise VerifyException(
                f"{self.name}: a storage type has 1 to 32 bits, and limits in its range, got "
                f"{data.storage}<{data.least}:{data.greatest}>"
            )
        if not isinstance(data.expressed, _EXPRESSED):
            raise VerifyException(f"{self.name}: the expressed type is f16, bf16, f32 or f64, got {data.expressed}")
        if not all(0 < scale < float("inf") for scale in data.scales):
            raise VerifyException(f"{self.name}: scales are finite and positive, got {[*data.scales]}")
        if not all(data.least <= zero <= data.greatest for zero in data.zero_points):
            raise VerifyException(
                f"{self.name}: zero points lie in {data.least} to {data.greatest}, got {[*data.zero_points]}"
            )


def _limits(storage: IntegerType) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    width = storage.width.data
    if storage.signedness.data is Signedness.UNSIGNED:
        return 0, (1 << width) - 1
    return -(1 << (width - 1)), (1 << (width - 1)) - 1


def _parse_scale(parser: AttrParser) -> tuple[float, int]:
    scale = float(parser.parse_number())
    return scale, 0 if parser.parse_optional_punctuation(":") is None else parser.parse_integer()


def quantization(type_: Attribute) -> Quantization | None:
    """The quantisation of the elements of a tensor; None for other types."""
    element = type_.element_type if isinstance(type_, TensorType) else None
    return element.data if isinstance(element, UniformQuantizedType) else None


def has_quantized(function: FuncOp) -> bool:
    """Whether a function has quantised tensors."""
    types = (type_ for op in function.body.walk() for type_ in op.result_types)
    return any(quantization(type_) is not None for type_ in (*function.function_type.inputs, *types))


QUANT = Dialect("quant", [], [UniformQuantizedType])
