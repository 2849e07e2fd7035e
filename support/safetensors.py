"""Tensor files in the safetensors format: a JSON index, then the bytes, which are memory-mapped.

https://huggingface.co/docs/safetensors: eight bytes with the length of the index (little-endian), the index `{"name":
{"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {...}}`, the bytes of all tensors without
gaps.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Final, cast

from weft.support.errors import CompileError
from weft.support.files import write_output

ELEMENTS: Final[Mapping[str, tuple[str, int]]] = {
    **{"BOOL": ("bool", 1), "F8_E4M3": ("float8_e4m3fn", 1), "F8_E5M2": ("float8_e5m2", 1), "BF16": ("bfloat16", 2)},
    **{f"F{8 * size}": (f"float{8 * size}", size) for size in (2, 4, 8)},
    **{f"I{8 * size}": (f"int{8 * size}", size) for size in (1, 2, 4, 8)},
    **{f"U{8 * size}": (f"uint{8 * size}", size) for size in (1, 2, 4, 8)},
}
"""Maps a type of the format to the element type, and to the bytes of an element."""
TYPE_OF: Final[Mapping[str, str]] = {element: type_ for type_, (element, _) in ELEMENTS.items()}
_LARGEST_INDEX: Final = 100_000_000
_ALIGNMENT: Final = 64


@dataclass(frozen=True)
class StoredTensor:
    """`dtype` has the format's spelling."""

    dtype: str
    shape: tuple[int, ...]
    data: memoryview


def read_safetensors(path: Path) -> dict[str, StoredTensor]:
    """Raises `CompileError` for a file of another format or a truncated one, and `OSError`."""
    with path.open("rb") as file:
        size = path.stat().st_size
        content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) if size else memoryview(b"")
    length = int.from_bytes(content[:8], "little")
    if size < 8 or length > min(size - 8, _LARGEST_INDEX):
        raise CompileError(f"'{path}' is no safetensors file, or is cut off: it has {size} bytes")
    try:
        index: object = json.loads(bytes(content[8 : 8 + length]))
    except (ValueError, RecursionError):
        raise CompileError(f"'{path}' is no safetensors file: its index is no JSON") from None
    if not isinstance(index, dict):
        raise CompileError(f"'{path}' is no safetensors file: its index is no object")
    data = content[8 + length :]
    entries = cast("dict[str, object]", index)
    return {name: _tensor(path, name, entry, data) for name, entry in entries.items() if name != "__metadata__"}


def _tensor(path: Path, name: str, entry: object, data: memoryview) -> StoredTensor:
    fields = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
    dtype, shape, offsets = fields.get("dtype"), _numbers(fields.get("shape")), _numbers(fields.get("data_offsets"))
    if not isinstance(dtype, str) or dtype not in ELEMENTS or shape is None or offsets is None or len(offsets) != 2:
        raise CompileError(f"'{path}': tensor '{name}' has no known type, shape and place: {str(fields)[:80]}")
    begin, end = offsets
    if not begin <= end <= len(data) or end - begin != prod(shape) * ELEMENTS[dtype][1]:
        raise CompileError(
            f"'{path}': tensor '{name}' of shape {shape} and type {dtype} lies at {begin} to {end} of {len(data)} bytes"
        )
    return StoredTensor(dtype, shape, data[begin:end])


def _numbers(value: object) -> tuple[int, ...] | None:
    items = cast("list[object]", value) if isinstance(value, list) else [None]
    numbers = [item for item in items if isinstance(item, int) and not isinstance(item, bool) and item >= 0]
    return tuple(numbers) if len(numbers) == len(items) else None


def write_safetensors(path: Path, tensors: Mapping[str, StoredTensor]) -> None:
    """Raises `CompileError` if the system refuses."""
    index: dict[str, object] = {}
    end = 0
    for name, tensor in tensors.items():
        begin, end = end, end + tensor.data.nbytes
        index[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(index).encode()
    text += b" " * (-(len(text) + 8) % _ALIGNMENT)
    write_output(path, [len(text).to_bytes(8, "little"), text, *(tensor.data for tensor in tensors.values())])
