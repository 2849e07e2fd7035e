"""`relax.frontend.torch`: models of PyTorch, by `weft.from_torch`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from weft.support.errors import CompileError
from weft.torch import from_torch
from weft.tvm.ir.module import IRModule


def from_fx(
    model: Any,
    input_info: Sequence[tuple[Sequence[int], str]],
    *,
    keep_params_as_input: bool = False,
    unwrap_unit_return_tuple: bool = False,
    no_bind_return_tuple: bool = False,
) -> IRModule:
    """The graph of a `torch.fx.GraphModule` on inputs of the given shapes and dtypes. A single result is no tuple.

    Raises `CompileError` to bind no tuple of results.
    """
    if no_bind_return_tuple:
        raise CompileError("from_fx: weft has no no_bind_return_tuple: results are values")
    del unwrap_unit_return_tuple
    torch = import_module("torch")
    inputs = tuple(torch.zeros(tuple(shape), dtype=getattr(torch, dtype)) for shape, dtype in input_info)
    params = "arguments" if keep_params_as_input else "constants"
    return IRModule.of(from_torch(model, inputs, params=params))


def from_exported_program(exported_program: Any, *, keep_params_as_input: bool = False) -> IRModule:
    """The graph of what `torch.export.export` gave."""
    return IRModule.of(from_torch(exported_program, params="arguments" if keep_params_as_input else "constants"))
