"""ONNX models as graphs: `weft.from_onnx(...)`, and `from weft import onnx` for converters of users.

@weft.onnx.register("com.acme", "Scale", since=2)
def scale(node):
    return G.multiply(node.value(0), node.number("factor"))
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from weft.driver.programs import onnx_module
from weft.frontends.onnx.registry import register, unregister
from weft.graph import BlockBuilder, Module

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from onnx import ModelProto

    from weft.frontends.onnx.importer import InputShape

__all__ = ["from_onnx", "register", "unregister"]


def from_onnx(
    model: str | os.PathLike[str] | bytes | ModelProto,
    shapes: Mapping[str, InputShape] | None = None,
    *,
    constants: Mapping[str, ArrayLike] | None = None,
    weights: str | os.PathLike[str] | None = None,
    fallback: bool = False,
) -> Module:
    """Import an ONNX model (a file, its folder, its bytes, or a `ModelProto`) as graph function @main.

        mod = weft.from_onnx("model.onnx", shapes={"input": ("n", 3, 224, 224)})
        lib = weft.build(mod)

    `shapes` override input shapes; extents are numbers, names and expressions. A list is the shape of a sequence, one
    parameter per item; None omits an optional input. `constants` are values of inputs that are no parameters then, such
    as shapes and axes. `weights`, a safetensors file, replaces initializers and inputs of the same names.

    Raises `CompileError` if `model` is not a model, and a single one for all unsupported nodes; `OSError` for
    unreadable files.
    """
    return cast(
        "Module", onnx_module(model, shapes, constants, fallback=fallback, weights=weights, into=BlockBuilder)[0]
    )
