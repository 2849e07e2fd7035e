"""xDSL's parser, corrected for floats as bits in dense constants, and for non-ASCII text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import AnyFloat, ComplexType, Float80Type, Float128Type, FloatAttr, IntegerAttr
from xdsl.parser import Parser
from xdsl.utils.mlir_lexer import MLIRTokenKind, StringLiteral


class BitsParser(Parser):
    """Parses `dense<0xff800000> : vector<8xf32>` as minus infinity, as xDSL prints it, and UTF-8 bytes as text, as MLIR
    does.

    xDSL 0.74 reads such bits as an integer, 4.29e+09, also in complex numbers. It prints non-ASCII text as escaped
    bytes, "\\C3\\A9", and parses these as bytes, which are not valid as names and keys.
    """

    def parse_optional_str_literal(self) -> str | None:
        token = self._current_token
        if token.kind is MLIRTokenKind.BYTES_LIT and isinstance(token.span, StringLiteral):
            try:
                text = token.span.bytes_contents.decode()
            except UnicodeDecodeError:
                return None
            self._consume_token(MLIRTokenKind.BYTES_LIT)
            return text
        return super().parse_optional_str_literal()

    def parse_optional_builtin_int_or_float_attr(self) -> FloatAttr[AnyFloat] | IntegerAttr[Any] | None:
        place = self._current_token.span
        found = super().parse_optional_builtin_int_or_float_attr()
        if isinstance(found, FloatAttr) and isinstance(found.type, Float80Type | Float128Type):
            self.raise_error(f"a number of type {found.type}: it has no bits here, and could not be printed", place)
        return found

    def _parse_tensor_literal_element(self) -> Parser._TensorLiteralElement:
        if self._current_token.kind is MLIRTokenKind.L_PAREN:
            place = self._consume_token(MLIRTokenKind.L_PAREN).span
            parts = [self._parse_tensor_literal_element()]
            self.parse_punctuation(",")
            parts.append(self._parse_tensor_literal_element())
            self.parse_punctuation(")")
            return _Complex(False, (0, 0), place, parts)
        element = super()._parse_tensor_literal_element()
        if isinstance(element.value, int) and element.span.text[:2] in ("0x", "0X"):
            return _Bits(element.is_negative, element.value, element.span)
        return element


@dataclass
class _Complex(Parser._TensorLiteralElement):  # pyright: ignore[reportPrivateUsage]
    """Either part may be bits."""

    parts: list[Parser._TensorLiteralElement]  # pyright: ignore[reportPrivateUsage]

    def to_type(self, parser: Any, type: Any) -> Any:
        if not isinstance(type, ComplexType):
            parser.raise_error(f"a complex number for an element of type {type}", at_position=self.span)
        return tuple(part.to_type(parser, cast("ComplexType[Any]", type).element_type) for part in self.parts)


class _Bits(Parser._TensorLiteralElement):  # pyright: ignore[reportPrivateUsage]
    def to_type(self, parser: Any, type: Any) -> Any:
        if not isinstance(type, AnyFloat) or not isinstance(self.value, int):
            return super().to_type(parser, type)
        size = type.compile_time_size
        if self.value >= 1 << 8 * size:
            parser.raise_error(f"{self.span.text} has more than the {8 * size} bits of {type}", at_position=self.span)
        return next(type.iter_unpack(self.value.to_bytes(size, "little")))
