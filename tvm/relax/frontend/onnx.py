"""`relax.frontend.onnx`, by `weft.from_onnx`."""

from collections.abc import Mapping, Sequence
from typing import Any

from weft.onnx import from_onnx as _from_onnx
from weft.tvm.ir.module import IRModule


def from_onnx(
    model: Any,
    shape_dict: Mapping[str, Sequence[Any]] | None = None,
    dtype_dict: Mapping[str, str] | str = "float32",
) -> IRModule:
    """Weights are constants."""
    shapes = None if shape_dict is None else {name: tuple(shape) for name, shape in shape_dict.items()}
    return IRModule.of(_from_onnx(model, shapes))
