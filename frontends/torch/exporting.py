"""Models as programs of `torch.export`, decomposed into operators with converters."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from weft.frontends.torch import converters
from weft.frontends.torch.decompositions import RULES
from weft.frontends.torch.library import torch
from weft.frontends.torch.training_mode import check_evaluation_mode
from weft.support.argument_types import shown


def exported(
    model: Any,
    example_inputs: Sequence[Any] | None,
    example_keywords: Mapping[str, Any] | None,
    dynamic_shapes: Any,
    subject: str = "from_torch",
) -> Any:
    """Returns the `torch.export.ExportedProgram` of a model: an exported program itself; a module (also a
    `torch.fx.GraphModule`) exported on example inputs.

    Raises `TypeError` for other values, and for missing or superfluous example inputs; `CompileError` for modules in
    training mode; and the errors of `torch.export.export`. `subject` is the function that messages name.
    """
    if isinstance(model, torch.export.ExportedProgram):
        if example_inputs is not None or dynamic_shapes is not None or example_keywords:
            raise TypeError(f"{subject}: an exported program has its example inputs and dynamic shapes already")
        return model
    if not isinstance(model, torch.nn.Module):
        raise TypeError(
            f"{subject}: expected a torch.export.ExportedProgram, a torch.fx.GraphModule or a torch.nn.Module, got "
            f"{shown(model)} of type {type(model).__name__}"
        )
    if example_inputs is None:
        raise TypeError(f"{subject}: a {type(model).__name__} is exported on example inputs: {subject}(model, (x,))")
    given = (example_inputs,) if isinstance(example_inputs, torch.Tensor) else tuple(example_inputs)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # about nn.LSTM's flat weights, and about PyTorch's internals
        program = torch.export.export(model, given, dict(example_keywords or {}), dynamic_shapes=dynamic_shapes)
    check_evaluation_mode(program, model, subject)
    return program


def decomposed(program: Any) -> Any:
    """The functionalized program, with operators without a converter decomposed as far as PyTorch can."""
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        return program.run_decompositions(decompositions())


def decompositions() -> dict[Any, Any]:
    """Decompositions of operators without a converter to core ATen, and of other operators to ATen. Those of
    `torch._refs` apply only to core operators, because they end in operators of `prims`."""
    more: dict[Any, Any] = import_module("torch._decomp").decomposition_table
    rules = {
        op: rule
        for op, rule in more.items()
        if torch.Tag.core in getattr(op, "tags", ()) or rule.__module__ == "torch._decomp.decompositions"
    }
    return _of_others({**rules, **dict(torch.export.default_decompositions().items())})


def core_decompositions() -> dict[Any, Any]:
    """Decompositions to core ATen, for graphs without composite operators, whose rules write into tensors."""
    return _of_others(import_module("torch._decomp").core_aten_decompositions())


def _of_others(rules: Mapping[Any, Any]) -> dict[Any, Any]:
    return {op: rule for op, rule in {**rules, **RULES}.items() if str(op) not in converters.CONVERTERS}
