"""Removal of the elements of large tensors from the bytes of a model. Parsing a ModelProto copies it, so that a model
would be in memory twice; in the result, large tensors refer to the file as external data.

Source: Protocol Buffers, Encoding (protobuf.dev/programming-guides/encoding).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from onnx import StringStringEntryProto, TensorProto

from weft.dialects.constant_data import LARGE_BYTES

_GRAPH: Final = 7
"""Field of ModelProto."""
_INITIALIZER: Final = 5
"""Field of GraphProto."""
_RAW_DATA: Final = TensorProto.RAW_DATA_FIELD_NUMBER
_PLACES: Final = {TensorProto.EXTERNAL_DATA_FIELD_NUMBER, TensorProto.DATA_LOCATION_FIELD_NUMBER}
_VARINT, _BYTES = 0, 2
_FIXED: Final = {1: 8, 5: 4}
"""Bytes of fields of fixed size, by wire type."""
_MOST_VARINT_BYTES: Final = 10


class _Field(NamedTuple):
    """Offsets at which a field begins, at which its value begins, and at which both end."""

    number: int
    wire_type: int
    start: int
    value: int
    end: int


def without_elements(data: memoryview, location: str) -> bytes:
    """The model in `data`, the content of the file `location`, without the elements of large tensors. Raises
    `ValueError` for bytes that are not a message."""
    model = list(_fields(data, 0, len(data)))
    graphs = [field for field in model if field.number == _GRAPH]
    if len(graphs) != 1 or graphs[0].wire_type != _BYTES:
        return bytes(data)
    parts: list[bytes | memoryview] = []
    for field in model:
        if field.number != _GRAPH:
            parts.append(data[field.start : field.end])
            continue
        inner = [_initializer(data, f, location) for f in _fields(data, field.value, field.end)]
        parts.extend((_length_prefix(_GRAPH, sum(map(len, inner))), *inner))
    return b"".join(parts)


def _initializer(data: memoryview, field: _Field, location: str) -> bytes | memoryview:
    whole = data[field.start : field.end]
    if field.number != _INITIALIZER or field.wire_type != _BYTES or len(whole) < LARGE_BYTES:
        return whole
    fields = list(_fields(data, field.value, field.end))
    raw = [f for f in fields if f.number == _RAW_DATA]
    if len(raw) != 1 or raw[0].wire_type != _BYTES or any(f.number in _PLACES for f in fields):
        return whole
    elements = {"location": location, "offset": str(raw[0].value), "length": str(raw[0].end - raw[0].value)}
    place = TensorProto(
        external_data=[StringStringEntryProto(key=key, value=value) for key, value in elements.items()],
        data_location=TensorProto.EXTERNAL,
    )
    tensor = b"".join(data[f.start : f.end] for f in fields if f is not raw[0]) + place.SerializeToString()
    return _length_prefix(_INITIALIZER, len(tensor)) + tensor


def _fields(data: memoryview, at: int, end: int) -> Iterator[_Field]:
    """The fields of the message in a range of `data`. Raises `ValueError`."""
    while at < end:
        start = at
        tag, at = _varint(data, at, end)
        number, wire_type = tag >> 3, tag & 7
        value = at
        if wire_type == _VARINT:
            _, at = _varint(data, at, end)
        elif wire_type == _BYTES:
            length, value = _varint(data, at, end)
            at = value + length
        elif wire_type in _FIXED:
            at += _FIXED[wire_type]
        else:
            raise ValueError(f"a field of wire type {wire_type}")
        if at > end:
            raise ValueError("a field that ends after its message")
        yield _Field(number, wire_type, start, value, at)


def _varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """A variable-length integer, and the offset after it. Raises `ValueError`."""
    number = 0
    for place, byte in enumerate(data[at : min(end, at + _MOST_VARINT_BYTES)]):
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return number, at + place + 1
    raise ValueError("a number that does not end")


def _length_prefix(number: int, length: int) -> bytes:
    return _as_varint(number << 3 | _BYTES) + _as_varint(length)


def _as_varint(number: int) -> bytes:
    digits = bytearray()
    while number >= 0x80:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)
