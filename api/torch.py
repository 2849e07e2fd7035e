"""Models of PyTorch: `weft.from_torch`, and converters of operators.

module = weft.from_torch(torch.export.export(model, (x,)))
fast = weft.compile(model, (x,))

@weft.torch.register("mylib.scale.default")
def scale(cx, x, factor):
    return G.multiply(x, factor)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft import graph
from weft.driver.torch_backend import weft_backend as backend
from weft.frontends.torch.converters import Conversion, register

__all__ = ["Conversion", "backend", "from_torch", "operators", "register"]


def from_torch(
    program: Any,
    example_inputs: Sequence[Any] | None = None,
    example_keywords: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    params: str = "constants",
    fallback: bool = False,
    name: str = "main",
) -> graph.Module:
    """Import a model of PyTorch as a module with graph function `name`.

        weft.from_torch(torch.export.export(model, (x,)))
        weft.from_torch(model, (x,), dynamic_shapes={"x": {0: torch.export.Dim("n")}})  # also a torch.fx.GraphModule

    Parameters are the tensors that the model takes, flattened, then buffers that it writes; others follow with
    `params="arguments"`, and are constants otherwise. Results are the outputs, flattened, then new values of written
    buffers and inputs.

    With `fallback`, operators without a converter run in PyTorch. Raises a `CompileError` that lists all unsupported
    operators with their places, or names a module in training mode whose results depend on it (`model.eval()`);
    `TypeError` if `program` is not a model.
    """
    from weft.frontends.torch.exporting import exported  # needs torch
    from weft.frontends.torch.importing import import_model  # needs torch

    found = exported(program, example_inputs, example_keywords, dynamic_shapes)
    return graph.Module.of(import_model(found, name=name, params=params, fallback=fallback)[0].get())


def operators() -> list[str]:
    """The names of the operators with a converter."""
    from weft.frontends.torch.importing import converted_operators  # needs torch

    return converted_operators()
