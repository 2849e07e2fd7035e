"""quant: element types of quantised tensors, as MLIR's `quant` and StableHLO print them.

```mlir
tensor<4x!quant.uniform<i8:f32, 0.1:-3>>                             // number = (integer + 3) * 0.1
tensor<4x2x!quant.uniform<i8<-127:127>:f32:1, {0.1, 0.2:5}>>         // a scale and a zero point for each column
tensor<4x2x!quant.uniform<i8:f32:{0:2}, {{0.1}, {0.2:5}}>>           // for each block of two rows
```

Source: MLIR's documentation of the dialect, and the StableHLO specification, "Quantized types".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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
    """Integers of a quantised type; their numbers are (integer - zero point) * scale."""

    storage: IntegerType
    least: int
    greatest: int
    expressed: Attribute
    axis: int | None
    """The dimension with a scale and a zero point for each index; None if there is one of each."""
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    blocks: tuple[tuple[int, int], ...] = ()
    """Dimensions that are divided into blocks, and the extents of these."""
    shape: tuple[int, ...] = ()
    """The number of blocks in each dimension of the tensor; empty if there are none."""


@irdl_attr_definition
class UniformQuantizedType(Data[Quantization], TypeAttribute):
    """`!quant.uniform<storage<min:max>:expressed:axis, {scale:zero point, ...}>`. Limits and zero points of 0 are
    optional; one scale has no axis. Blocks have `{dimension:extent, ...}` in its place, and scales nested accordingly.
    """

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
        axis, blocks, shape = None, (), ()
        if parser.parse_optional_punctuation(":") is not None:
            axis = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
            if axis is None:
                pairs = parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: _parse_block(parser))
                blocks = tuple(pairs)
        parser.parse_punctuation(",")
        if blocks:
            pairs, shape = _parse_nested(parser)
        elif axis is None:
            pairs = [_parse_scale(parser)]
        else:
            pairs = parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: _parse_scale(parser))
        parser.parse_punctuation(">")
        scales, zero_points = tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
        return Quantization(storage, least, greatest, expressed, axis, scales, zero_points, blocks, shape)

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
            if data.blocks:
                blocks = ", ".join(f"{dim}:{extent}" for dim, extent in data.blocks)
                printer.print_string(f":{{{blocks}}}, {_nested(pairs, data.shape)}")
            elif data.axis is None:
                printer.print_string(f", {pairs[0]}")
            else:
                printer.print_string(f":{data.axis}, {{{', '.join(pairs)}}}")

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
        dims = [dim for dim, _ in data.blocks]
        if len(set(dims)) != len(dims) or any(not dim < len(data.shape) or extent < 1 for dim, extent in data.blocks):
            raise VerifyException(
                f"{self.name}: blocks have positive extents in different dimensions of {len(data.shape)}, got "
                f"{[*data.blocks]}"
            )
        if any(count != 1 for dim, count in enumerate(data.shape) if dim not in dims):
            raise VerifyException(f"{self.name}: dimensions that are not divided have one block, got {[*data.shape]}")
        if not all(data.least <= zero <= data.greatest for zero in data.zero_points):
            raise VerifyException(
                f"{self.name}: zero points lie in {data.least} to {data.greatest}, got {[*data.zero_points]}"
            )


def _limits(storage: IntegerType) -> tuple[int, int]:
    width = storage.width.data
    if storage.signedness.data is Signedness.UNSIGNED:
        return 0, (1 << width) - 1
    return -(1 << (width - 1)), (1 << (width - 1)) - 1


def _parse_scale(parser: AttrParser) -> tuple[float, int]:
    scale = float(parser.parse_number())
    return scale, 0 if parser.parse_optional_punctuation(":") is None else parser.parse_integer()


def _parse_block(parser: AttrParser) -> tuple[int, int]:
    dim = parser.parse_integer(allow_boolean=False, allow_negative=False)
    parser.parse_punctuation(":")
    return dim, parser.parse_integer(allow_boolean=False, allow_negative=False)


def _parse_nested(parser: AttrParser) -> tuple[list[tuple[float, int]], tuple[int, ...]]:
    """Parse scales and zero points in nested braces, whose extents are returned, too."""
    if parser.parse_optional_punctuation("{") is None:
        return [_parse_scale(parser)], ()
    at = parser.pos
    parts = [_parse_nested(parser)]
    while parser.parse_optional_punctuation(",") is not None:
        parts.append(_parse_nested(parser))
    parser.parse_punctuation("}")
    if len({shape for _, shape in parts}) > 1:
        parser.raise_error("scales of blocks are nested to one depth, with equal numbers", at, parser.pos)
    return [pair for pairs, _ in parts for pair in pairs], (len(parts), *parts[0][1])


def _nested(texts: Sequence[str], shape: Sequence[int]) -> str:
    if not shape:
        return texts[0]
    count = len(texts) // shape[0]
    parts = [_nested(texts[at : at + count], shape[1:]) for at in range(0, len(texts), count)]
    return f"{{{', '.join(parts)}}}"


def quantization(type_: Attribute) -> Quantization | None:
    element = type_.element_type if isinstance(type_, TensorType) else None
    return element.data if isinstance(element, UniformQuantizedType) else None


def has_quantized(function: FuncOp) -> bool:
    types = (type_ for op in function.body.walk() for type_ in op.result_types)
    return any(quantization(type_) is not None for type_ in (*function.function_type.inputs, *types))


QUANT = Dialect("quant", [], [UniformQuantizedType])
