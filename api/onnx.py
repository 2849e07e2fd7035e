"""ONNX models as graphs. `weft.from_onnx(...)`; `from weft import onnx` for converters of users.

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
    """The graph of an ONNX model, as function @main: a file, a folder with one, its bytes, or the model as it is.

        mod = weft.from_onnx("model.onnx", shapes={"input": ("n", 3, 224, 224)})
        lib = weft.build(mod)

    `shapes` are those of inputs, in place of what the model states; extents are numbers, names and expressions. An
    input that is a sequence has a list of them, for as many parameters; None leaves out an optional one.
    `constants` are values of inputs, which are then no parameters: shapes, axes and the like must be known.
    `weights` is a file of the safetensors format: its tensors take the place of initializers and inputs of their names.

    Raises `CompileError` for what is no model, and one for all nodes that cannot be converted; `OSError`.
    """
    return cast(
        "Module", onnx_module(model, shapes, constants, fallback=fallback, weights=weights, into=BlockBuilder)[0]
    )
