"""Constants of a module in a separate file.

    builtin.module attributes {graph.weights = "model.safetensors"} {
      func.func @main(...) {
        %w = graph.constant dense_resource<fc1_weight> : tensor<784x128xf32>

The file is in the folder of the text, or below it. Its tensors are memory-mapped, so unread pages are not loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from xdsl.dialects.builtin import (
    BytesAttr,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    ModuleOp,
    StringAttr,
    TensorType,
)

from weft.dialects.constant_data import elements_of
from weft.dialects.element_types import element_name
from weft.dialects.graph import WEIGHT, ConstantOp
from weft.support.constant_file import WEIGHTS
from weft.support.errors import CompileError, did_you_mean
from weft.support.names import free_name
from weft.support.safetensors import ELEMENTS, TYPE_OF, StoredTensor, read_safetensors, write_safetensors


def load_weights(module: ModuleOp, text: Path, keys: Mapping[str, str]) -> None:
    """Set the elements of the constants of a module parsed from `text`; `keys` maps keys of resources in the process to
    those in the text. Raises `CompileError` for elements missing from the file, and for a file outside of the
    folder."""
    name = module.attributes.get(WEIGHTS)
    if not isinstance(name, StringAttr):
        return
    folder = text.parent.resolve()
    path = (folder / name.data).resolve()
    if not path.is_relative_to(folder):
        raise CompileError.at(module, f"the weights '{name.data}' are outside of the folder of '{text}'")
    try:
        tensors = read_safetensors(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CompileError.at(module, f"the weights '{name.data}' cannot be read: {reason}") from None
    for op in module.walk():
        if isinstance(op, ConstantOp) and isinstance(op.value, DenseResourceAttr):
            handle = op.value.resource_handle.data
            key = keys.get(handle, handle)
            if key not in tensors:
                raise CompileError.at(op, f"'{path}' has no tensor '{key}'{did_you_mean(key, tensors)}")
            op.value = _value(op, key, tensors[key])
            op.attributes[WEIGHT] = StringAttr(key)


def _value(op: ConstantOp, key: str, stored: StoredTensor) -> DenseIntOrFPElementsAttr:
    type_ = cast("TensorType[Any]", op.result.type)
    wanted = _type_of(type_)
    if stored.dtype != wanted or stored.shape != tuple(type_.get_shape()):
        shape = "x".join(map(str, stored.shape))
        raise CompileError.at(
            op, f"tensor '{key}' of the weights is {shape} of {stored.dtype}, but {type_} is declared"
        )
    return DenseIntOrFPElementsAttr(type_, BytesAttr(cast("bytes", stored.data)))


def _type_of(type_: TensorType[Any]) -> str:
    """The type in the file; elements of unsupported types are stored as bytes."""
    return TYPE_OF.get(element_name(type_.element_type) or "", "U8")


def save_weights(module: ModuleOp, file: Path, least: int) -> None:
    """Move constants of at least `least` bytes to a file. Raises `CompileError` if the system refuses."""
    tensors: dict[str, StoredTensor] = {}
    for op in module.walk():
        if not isinstance(op, ConstantOp) or not isinstance(op.value, DenseIntOrFPElementsAttr):
            continue
        array = elements_of(op.value)
        if array.nbytes < least or op.value.is_splat():
            continue
        key = free_name(op.result.name_hint or "constant", tensors)
        type_ = _type_of(cast("TensorType[Any]", op.result.type))
        shape = tuple(op.result.type.get_shape())
        data = memoryview(array.tobytes()) if array.dtype == bool else memoryview(op.value.data.data)
        if len(data) != array.size * ELEMENTS[type_][1]:
            continue
        tensors[key] = StoredTensor(type_, shape, data)
        op.attributes[WEIGHT] = StringAttr(key)
    write_safetensors(file, tensors)
    module.attributes[WEIGHTS] = StringAttr(file.name)
