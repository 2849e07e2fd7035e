"""ONNX files: models, and the elements of their tensors, also in other files of the folder."""

from __future__ import annotations

import dataclasses
import mmap
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from onnx import ModelProto, SparseTensorProto, TensorProto, defs, numpy_helper

from weft.dialects.constant_data import LARGE_BYTES
from weft.dialects.element_types import STORED, TYPES
from weft.frontends.onnx.known_tensors import KnownTensor
from weft.frontends.onnx.node import MOST_ELEMENTS, Refusal, dtype_of
from weft.frontends.onnx.registry import domain_name
from weft.frontends.onnx.wire_format import without_elements
from weft.support.argument_types import checked_argument
from weft.support.errors import CompileError
from weft.support.names import printable
from weft.support.safetensors import ELEMENTS, StoredTensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

NEWEST: Final[Mapping[str, int]] = {"": 28, "ai.onnx.ml": 5}
"""The newest opsets that the converters support."""


@dataclass(frozen=True)
class ModelFile:
    model: ModelProto
    name: str
    path: Path | None = None
    """The path of its file; other files of its folder may contain weights."""
    others: set[str] = dataclasses.field(default_factory=set[str])
    """The external files that were read, as paths relative to the folder."""

    @staticmethod
    def read(source: str | os.PathLike[str] | bytes | ModelProto) -> ModelFile:
        """Read a model from a file or bytes. Raises `CompileError`, `OSError`, and `TypeError` for other types."""
        checked_argument("from_onnx", "model", str | os.PathLike | bytes | ModelProto, source)
        if isinstance(source, ModelProto):
            file = ModelFile(source, "the model")
        elif isinstance(source, bytes):
            file = ModelFile(_parsed(source, "the model"), "the model")
        else:
            path = _file_of(Path(source))
            file = ModelFile(_read(path), f"'{path}'", path)
        file._check()
        file._check_memory()
        return file

    @property
    def opsets(self) -> dict[str, int]:
        """`com.microsoft`, which has one version, need not be imported."""
        imported = {domain_name(opset.domain): opset.version for opset in self.model.opset_import}
        return {"com.microsoft": 1, **imported}

    def _check(self) -> None:
        try:
            _check_texts(self.model)
        except (ValueError, RecursionError) as error:
            raise CompileError(f"{self.name} is no ONNX model: {error}") from None
        if not self.model.HasField("graph") or not self.model.opset_import:
            raise CompileError(f"{self.name} is no ONNX model: it has no graph or no opset")
        for domain, version in self.opsets.items():
            newest = min(NEWEST.get(domain, version), _newest_defined(domain, version))
            if not 1 <= version <= newest:
                what = f"opset {version} of domain '{domain or 'ai.onnx'}'"
                raise CompileError(f"{self.name} uses {what}: supported are versions 1 to {newest}")

    def _check_memory(self) -> None:
        """Raises `CompileError` for a model whose weights exceed the memory of the machine."""
        tensors = self.model.graph.initializer
        needed = sum(_bytes(tensor.data_type, tensor.dims) for tensor in tensors)
        available = memory_bytes()
        if needed > available:
            sizes = f"{needed / 2**30:.1f} GiB, but this machine has {available / 2**30:.1f} GiB of memory"
            raise CompileError(f"{self.name}: the weights take {sizes}")

    def tensor(self, proto: TensorProto) -> KnownTensor:
        """Raises `Refusal` for missing or too few elements, and types that weft lacks."""
        dtype = dtype_of(proto.data_type)
        shape = tuple(proto.dims)
        if any(extent < 0 for extent in shape):
            raise Refusal(f"a tensor has the negative shape {shape}")
        try:
            if proto.data_location == TensorProto.EXTERNAL:
                mapped = self._external(proto, dtype, shape)
                return (
                    KnownTensor.copy_of(mapped, dtype) if mapped.nbytes >= LARGE_BYTES else KnownTensor(mapped, dtype)
                )
            return KnownTensor(numpy_helper.to_array(proto), dtype)
        except (ValueError, TypeError, LookupError, ArithmeticError, MemoryError) as error:
            raise Refusal(f"tensor '{proto.name}' of shape {shape} and type {dtype}: {error}") from None

    def stored(self, tensor: StoredTensor, name: str, proto: TensorProto | None = None) -> KnownTensor:
        """A tensor of a file of weights. Raises `Refusal` for another type or shape than the model's."""
        element = np.dtype(ELEMENTS[tensor.dtype][0])
        if proto is not None:
            dtype, shape = dtype_of(proto.data_type), tuple(proto.dims)
            if (element.name, tensor.shape) != (dtype, shape):
                given = f"{element.name} of shape {tensor.shape}"
                raise Refusal(f"weights: tensor '{name}' is {given}, but the model has {dtype} of shape {shape}")
        array = np.frombuffer(tensor.data, element).reshape(tensor.shape)
        return (
            KnownTensor.copy_of(array, element.name)
            if array.nbytes >= LARGE_BYTES
            else KnownTensor(array, element.name)
        )

    def sparse(self, proto: SparseTensorProto) -> KnownTensor:
        """Raises `Refusal` as `tensor` does, and if the dense tensor is far larger than its elements."""
        values, indices = self.tensor(proto.values), self.tensor(proto.indices).array
        shape, label = tuple(proto.dims), f"sparse tensor '{proto.values.name}'"
        most = MOST_ELEMENTS + 64 * values.array.size
        if any(extent < 0 for extent in shape) or prod(shape) > most:
            raise Refusal(f"{label} of shape {shape} is not made dense: it must have 0 to {most} elements")
        if indices.ndim == 2 and indices.shape[1] == len(shape):
            rows = [indices[:, axis] for axis in range(len(shape))]
            is_inside = all(np.all((row >= 0) & (row < extent)) for row, extent in zip(rows, shape, strict=True))
            places = np.ravel_multi_index(rows, shape) if is_inside and rows else None
        else:
            places = indices if indices.ndim == 1 and np.all((indices >= 0) & (indices < prod(shape))) else None
        if places is None or values.ndim != 1 or len(places) != values.array.size or indices.dtype != np.int64:
            raise Refusal(f"{label} of shape {shape}: indices {indices.shape} do not fit {values.shape} values")
        found = np.zeros(prod(shape), values.array.dtype)
        found[places] = values.array
        return KnownTensor(found.reshape(shape), values.dtype)

    def _external(self, proto: TensorProto, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
        """The elements in the model's file, or another of its folder, memory-mapped."""
        entries = {entry.key: entry.value for entry in proto.external_data}
        location = entries.get("location", "")
        label = f"tensor '{proto.name}': external data"
        if self.path is None:
            raise Refusal(f"{label} '{location}' need the model as a file, which says where their folder is")
        if location == self.path.name:
            path, label = self.path, f"tensor '{proto.name}': its elements in"
        else:
            path = self._beside(self.path.parent.resolve(), location, label)
        numbers = {key: entries.get(key, default) for key, default in (("offset", "0"), ("length", ""))}
        if not all(text.isdecimal() or text == "" for text in numbers.values()):
            raise Refusal(f"{label} '{location}': offset and length are numbers, got {numbers}")
        element = onnx.helper.tensor_dtype_to_np_dtype(proto.data_type)
        bits = min(TYPES[dtype].bitwidth, 8) if dtype in STORED else element.itemsize * 8
        needed = -(-prod(shape) * bits // 8)
        offset = int(numbers["offset"] or 0)
        length = int(numbers["length"] or needed)
        if length != needed:
            raise Refusal(f"{label} '{location}' have {length} bytes, but {shape} of {dtype} takes {needed}")
        size = path.stat().st_size
        if offset + length > size:
            raise Refusal(f"{label}: '{location}' has {size} bytes, but is read up to {offset + length}")
        if length == 0:
            return np.zeros(shape, element)
        before = offset % mmap.ALLOCATIONGRANULARITY
        with path.open("rb") as file:
            pages = mmap.mmap(file.fileno(), before + length, access=mmap.ACCESS_READ, offset=offset - before)
        data = memoryview(pages)[before:]
        if bits < 8:
            packed = TensorProto(data_type=proto.data_type, dims=shape, raw_data=bytes(data))
            return numpy_helper.to_array(packed)
        return np.frombuffer(data, element).reshape(shape)

    def _beside(self, folder: Path, location: str, label: str) -> Path:
        """A file of the folder that the model names, links resolved. Raises `Refusal` for other paths."""
        try:
            path = (folder / location).resolve()
            is_file = path.is_file()
        except (OSError, RuntimeError, ValueError) as error:  # the name is too long or has a NUL, or links form a cycle
            raise Refusal(f"{label}: '{printable(location[:80])}' names no file: {error}"[:300]) from None
        if not location or not path.is_relative_to(folder) or Path(location).is_absolute():
            raise Refusal(f"{label} '{location}' are outside of the model's folder")
        if not is_file:
            raise Refusal(f"{label}: there is no file '{location}' in the folder of the model")
        self.others.add(path.relative_to(folder).as_posix())
        return path


def _file_of(path: Path) -> Path:
    """A folder must contain one model, in it or in its subfolder `onnx`, as on model hubs. Raises `CompileError` for
    none or several."""
    if not path.is_dir():
        return path
    found = sorted(path.glob("*.onnx")) or sorted(path.glob("onnx/*.onnx"))
    if len(found) != 1:
        names = ", ".join(f"'{file.relative_to(path)}'" for file in found) or "none"
        raise CompileError(f"'{path}' is a folder, which must hold one .onnx file: found {names}")
    return found[0]


def _read(path: Path) -> ModelProto:
    """Read a model without the elements of large tensors. Raises `CompileError` and `OSError`."""
    with path.open("rb") as file:
        try:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages, memoryview(pages) as data:
                content = without_elements(data, path.name)
        except ValueError:  # not a message, or an empty file: the parser reports it
            content = file.read()
    return _parsed(content, f"'{path}'")


def _parsed(data: bytes, name: str) -> ModelProto:
    try:
        return ModelProto.FromString(data)
    except DecodeError as error:
        raise CompileError(f"{name} is no ONNX model: {error}") from None


def memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 1 << 62


def _bytes(data_type: int, dims: Sequence[int]) -> int:
    try:
        return prod(dims) * onnx.helper.tensor_dtype_to_np_dtype(data_type).itemsize
    except KeyError:  # reported when the tensor is read
        return 0


def _check_texts(message: Message) -> None:
    """Raises `ValueError` for text that is not UTF-8, for which protobuf returns bytes."""
    # Bytes of tensors are no texts, and reading them would copy.
    fields = [(f, getattr(message, f.name)) for f in message.DESCRIPTOR.fields if f.name in ("name", "external_data")]
    for field, value in fields if isinstance(message, TensorProto) else message.ListFields():
        values: Iterable[Any] = value if _is_repeated(value) else (value,)
        if field.type == FieldDescriptor.TYPE_STRING:
            wrong = [text for text in values if not isinstance(text, str)]
            if wrong:
                raise ValueError(f"a text in '{field.full_name}' is not UTF-8: {wrong[0][:40]!r}")
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in values:
                _check_texts(inner)


def _is_repeated(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _newest_defined(domain: str, version: int) -> int:
    return defs.onnx_opset_version() if domain == "" else version
