"""Memory-mapped tensor files in the GGUF format, and their quantised blocks as integers.

https://github.com/ggml-org/ggml/blob/master/docs/gguf.md: the magic `GGUF`, a version, the numbers of tensors and of
metadata, the metadata as keys, types and values, for each tensor its name, extents (the contiguous axis first), type
and offset, then the bytes of the tensors. Numbers are little-endian.

The blocks are those of `ggml-quants.h`. Files are untrusted: each length, extent and offset is checked first.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from weft.support.errors import CompileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"

MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_SCALARS: Final[Mapping[int, int]] = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of the metadata types that are numbers."""
_UINT32, _STRING, _ARRAY = 4, 8, 9
_ALIGNMENT: Final = 32
_MOST_AXES: Final = 4
_DEEPEST: Final = 4
"""The maximum nesting of arrays in metadata."""
_NAMES: Final[Mapping[int, str]] = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K",
    12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S",
    20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64",
    29: "IQ1_M", 30: "BF16", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
}  # fmt: skip
PLAIN: Final[Mapping[str, str]] = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
"""Maps a type whose elements are not in blocks to the element type."""
_PLAIN_BYTES: Final = {"F32": 4, "F16": 2, "BF16": 2}


@dataclass(frozen=True)
class Blocks:
    """Weights `(integers - zero_point) * scale` in groups along rows."""

    integers: Array
    """The integers (n, k): int8, or uint8 of `bits` bits."""
    scale: Array
    """The scales (n, k / group)."""
    zero_point: Array | None
    """The zero points (n, k / group) of float32, or None if they are 0."""
    bits: int
    group: int


@dataclass(frozen=True)
class _Format:
    """A block type."""

    weights: int
    """Weights per block."""
    size: int
    """Bytes per block."""
    read: Callable[[Array], Blocks]
    """Decodes a matrix of blocks (n, k / weights, bytes)."""


@dataclass(frozen=True)
class GgufTensor:
    """`data` is None for an unsupported type."""

    name: str
    type: str
    shape: tuple[int, ...]
    data: memoryview | None


def read_gguf(path: Path) -> dict[str, GgufTensor]:
    """Raises `CompileError` for a file of another format, a truncated one, and tensors outside of the file, and
    `OSError`."""
    size = path.stat().st_size
    with path.open("rb") as file:
        content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) if size else memoryview(b"")
    reader = _FileReader(path, content)
    if bytes(reader.bytes(len(MAGIC), "the magic")) != MAGIC:
        raise CompileError(f"'{path}' is no GGUF file: it does not begin with {MAGIC.decode()}")
    version = reader.number("I", "the version")
    if version not in _VERSIONS:
        raise CompileError(f"'{path}' is GGUF of version {version}: weft reads versions 2 and 3, little-endian")
    count, fields = reader.number("Q", "the number of tensors"), reader.number("Q", "the number of metadata")
    alignment = _ALIGNMENT
    for _ in range(fields):
        key, kind = reader.text("a key"), reader.number("I", "a type")
        if key == "general.alignment":
            alignment = reader.number("I", f"'{key}'") if kind == _UINT32 else 0
            if alignment < 1 or alignment & (alignment - 1):
                raise CompileError(f"'{path}': general.alignment is no power of two")
        else:
            reader.skip_value(kind, f"'{key}'")
    entries = [reader.entry() for _ in range(count)]
    data = content[min(-(-reader.at // alignment) * alignment, size) :]
    tensors = {entry[0]: _tensor(path, alignment, data, *entry) for entry in entries}
    if len(tensors) < len(entries):
        names = [entry[0] for entry in entries]
        raise CompileError(f"'{path}': two tensors are called '{next(n for n in names if names.count(n) > 1)}'")
    return tensors


class _FileReader:
    def __init__(self, path: Path, content: memoryview) -> None:
        self.path = path
        self.content = content
        self.at = 0

    def bytes(self, count: int, what: str) -> memoryview:
        end = self.at + count
        if end > len(self.content):
            raise CompileError(
                f"'{self.path}' is cut off: {what} of {count} bytes begins at byte {self.at} of {len(self.content)}"
            )
        found, self.at = self.content[self.at : end], end
        return found

    def number(self, kind: str, what: str) -> int:
        return struct.unpack(f"<{kind}", self.bytes(struct.calcsize(f"<{kind}"), what))[0]

    def text(self, what: str) -> str:
        data = bytes(self.bytes(self.number("Q", f"the length of {what}"), what))
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise CompileError(f"'{self.path}': {what} at byte {self.at - len(data)} is no text in UTF-8") from None

    def skip_value(self, kind: int, what: str, depth: int = 0) -> None:
        if kind in _SCALARS:
            self.bytes(_SCALARS[kind], what)
        elif kind == _STRING:
            self.bytes(self.number("Q", f"the length of {what}"), what)
        elif kind == _ARRAY and depth < _DEEPEST:
            inner, count = self.number("I", what), self.number("Q", what)
            if inner in _SCALARS:
                self.bytes(count * _SCALARS[inner], what)
                return
            for _ in range(count):  # terminates: each element consumes bytes of the file
                self.skip_value(inner, what, depth + 1)
        else:
            raise CompileError(f"'{self.path}': {what} has the unknown type {kind}")

    def entry(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self.text("the name of a tensor")
        axes = self.number("I", f"the rank of '{name}'")
        if axes > _MOST_AXES:
            raise CompileError(f"'{self.path}': tensor '{name}' has {axes} axes, GGUF has up to {_MOST_AXES}")
        extents = [self.number("Q", f"an extent of '{name}'") for _ in range(axes)]
        return name, tuple(reversed(extents)), self.number("I", "a type"), self.number("Q", "a place")


def _tensor(
    path: Path, alignment: int, data: memoryview, name: str, shape: tuple[int, ...], kind: int, offset: int
) -> GgufTensor:
    type_ = _NAMES.get(kind, str(kind))
    if type_ not in PLAIN and type_ not in FORMATS:
        return GgufTensor(name, type_, shape, None)
    weights, size = (1, _PLAIN_BYTES[type_]) if type_ in PLAIN else (FORMATS[type_].weights, FORMATS[type_].size)
    what = f"'{path}': tensor '{name}' of shape {shape} and type {type_}"
    if weights > 1 and (not shape or shape[-1] % weights):
        raise CompileError(f"{what}: rows are no whole blocks of {weights} weights")
    length = prod(shape) // weights * size
    if offset % alignment or offset + length > len(data):
        raise CompileError(
            f"{what} takes {length} bytes from {offset} on, a multiple of {alignment}, of {len(data)} bytes of tensors"
        )
    return GgufTensor(name, type_, shape, data[offset : offset + length])


def blocks_of(tensor: GgufTensor) -> Blocks:
    """Rows are along the last axis.

    Raises `CompileError`, which names the tensor, the row and the group, for scales and offsets that are not finite,
    and for an unsupported type.
    """
    import numpy as np

    found = FORMATS.get(tensor.type)
    if found is None or tensor.data is None:
        known = ", ".join([*PLAIN, *FORMATS])
        raise CompileError(f"tensor '{tensor.name}' is of type {tensor.type}; weft reads {known}")
    rows = prod(tensor.shape[:-1])
    data = np.frombuffer(tensor.data, np.uint8).reshape(rows, tensor.shape[-1] // found.weights, found.size)
    with np.errstate(all="ignore"):
        blocks = found.read(data)
    for what, values in (("scale", blocks.scale), ("offset", blocks.zero_point)):
        wrong = None if values is None else np.argwhere(~np.isfinite(values))
        if values is not None and wrong is not None and len(wrong):
            row, group = map(int, wrong[0])
            raise CompileError(
                f"tensor '{tensor.name}' of type {tensor.type}: the {what} of row {row}, group {group} must be finite, "
                f"is {values[row, group]}"
            )
    return blocks


def _halves(data: Array, at: int) -> Array:
    return data[..., at : at + 2].copy().view("<f2")[..., 0].astype("float32")


def _low_then_high(data: Array) -> Array:
    import numpy as np

    return np.concatenate([data & 15, data >> 4], axis=-1)


def _in_rows(data: Array) -> Array:
    return data.reshape(len(data), -1)


def _q8_0(data: Array) -> Blocks:
    """Blocks of 32 weights: a float16 scale and 32 8-bit integers."""
    import numpy as np

    return Blocks(_in_rows(data[..., 2:].copy().view(np.int8)), _in_rows(data[..., :2].copy().view("<f2")), None, 8, 32)


def _q4_0(data: Array) -> Blocks:
    """Blocks of 32 weights: a float16 scale and 16 bytes. Byte i contains weight i in its low four bits, weight 16 + i
    in its high four, biased by 8."""
    import numpy as np

    integers = _in_rows(_low_then_high(data[..., 2:])).astype(np.int8) - np.int8(8)
    return Blocks(integers, _in_rows(data[..., :2].copy().view("<f2")), None, 4, 32)


def _q4_1(data: Array) -> Blocks:
    """Blocks of 32 weights: a float16 scale and offset, and 16 bytes as in Q4_0: `q * scale + offset`."""
    return _with_offset(
        _low_then_high(data[..., 4:])[..., None, :], _halves(data, 0)[..., None], _halves(data, 2)[..., None]
    )


def _q4_k(data: Array) -> Blocks:
    """Blocks of 256 weights in groups of 32: two float16 factors, 8 scales and 8 offsets of 6 bits in 12 bytes, 32
    bytes per pair of groups, with the first group in the low four bits."""
    import numpy as np

    bits = data[..., 4:16]
    low, middle, high = bits[..., :4], bits[..., 4:8], bits[..., 8:]
    scales = np.concatenate([low & 63, (high & 15) | (low >> 6 << 4)], axis=-1)
    offsets = np.concatenate([middle & 63, (high >> 4) | (middle >> 6 << 4)], axis=-1)
    quarters = data[..., 16:].reshape(*data.shape[:2], 4, 32)
    integers = np.stack([quarters & 15, quarters >> 4], axis=-2).reshape(*data.shape[:2], 8, 32)
    return _with_offset(integers, _halves(data, 0)[..., None] * scales, -(_halves(data, 2)[..., None] * offsets))


def _with_offset(integers: Array, scale: Array, offset: Array) -> Blocks:
    """Returns `q * scale + offset` (n, blocks, groups, 32) with zero points `-offset / scale`. A group of scale 0 is
    constant: integers 1 and the offset as scale."""
    import numpy as np

    flat = scale == 0
    zero = np.where(flat, 0.0, -offset / np.where(flat, 1.0, scale)).astype(np.float32)
    integers = np.where(flat[..., None], np.uint8(1), integers)
    return Blocks(_in_rows(integers), _in_rows(np.where(flat, offset, scale)), _in_rows(zero), 4, 32)


def _q6_k(data: Array) -> Blocks:
    """Blocks of 256 weights in groups of 16: 128 bytes with their low four bits, 64 with the high two, 16 int8 scales,
    a float16 factor. Weights are biased by 32."""
    import numpy as np

    shape = data.shape[:2]
    low = data[..., :128].reshape(*shape, 2, 2, 32)
    high = data[..., 128:192].reshape(*shape, 2, 1, 32)
    fours = np.concatenate([low & 15, low >> 4], axis=-2)
    twos = high >> np.array([0, 2, 4, 6], np.uint8).reshape(4, 1) & 3
    integers = (fours | twos << 4).astype(np.int8) - np.int8(32)
    scale = data[..., 192:208].copy().view(np.int8).astype(np.float32) * _halves(data, 208)[..., None]
    return Blocks(_in_rows(integers), _in_rows(scale), None, 8, 16)


FORMATS: Final[Mapping[str, _Format]] = {
    "Q8_0": _Format(32, 34, _q8_0),
    "Q4_0": _Format(32, 18, _q4_0),
    "Q4_1": _Format(32, 20, _q4_1),
    "Q4_K": _Format(256, 144, _q4_k),
    "Q6_K": _Format(256, 210, _q6_k),
}
"""The supported block types."""
