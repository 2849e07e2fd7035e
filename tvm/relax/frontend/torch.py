"""`relax.frontend.torch`, by `weft.from_torch`."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from weft.torch import from_torch
from weft.tvm.absent import refuses
from weft.tvm.ir.module import IRModule


def from_fx(
    model: Any,
    input_info: Sequence[tuple[Sequence[int], str]],
    *,
    keep_params_as_input: bool = False,
    unwrap_unit_return_tuple: bool = False,
) -> IRModule:
    """Import for inputs of these shapes and dtypes. Single results are no tuples."""
    torch = import_module("torch")
    inputs = tuple(torch.zeros(tuple(shape), dtype=getattr(torch, dtype)) for shape, dtype in input_info)
    return IRModule.of(from_torch(model, inputs, params="arguments" if keep_params_as_input else "constants"))


def from_exported_program(
    exported_program: Any,
    *,
    keep_params_as_input: bool = False,
    unwrap_unit_return_tuple: bool = False,
    no_bind_return_tuple: bool = False,
    run_ep_decomposition: bool = True,
) -> IRModule:
    """Import a program of `torch.export.export`, without decomposing operators. Single results are no tuples."""
    return IRModule.of(from_torch(exported_program, params="arguments" if keep_params_as_input else "constants"))


__getattr__ = refuses(__name__)
