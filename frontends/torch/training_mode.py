"""Detection of models in training mode, whose operators drop elements or normalize by the statistics of a batch."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Mapping
from os.path import dirname
from typing import Any

from weft.frontends.torch.library import torch
from weft.frontends.torch.places import place_of
from weft.support.errors import CompileError

_FLAGS = ("train", "training", "use_input_stats")
"""The names of arguments that put an operator into training mode."""


def check_evaluation_mode(program: Any, model: Any, subject: str) -> None:
    """Raises `CompileError` if a module in training mode contributes operators that depend on it. Operators in training
    mode of a module in evaluation mode are the model's intention."""
    modules = dict(model.named_modules())
    found: dict[str, Any] = {}
    for node in _nodes(program.graph_module):
        owner = _owner(node)
        if getattr(modules.get(owner, model), "training", False) and is_in_training_mode(node):
            found.setdefault(owner, node)
    if found:
        owner, node = next(iter(found.items()))
        kind = type(modules.get(owner, model)).__name__
        module = f"module '{owner}', a {kind}," if owner else kind
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise CompileError(
            f"{subject}: the model is in training mode: {module} applies "
            f"{_described(node)}{more}; call model.eval() first. If the results of training are meant, "
            f"give an exported program: torch.export.export(model, inputs)"
        )


def warn_of_training_mode(graph_module: Any, subject: str) -> None:
    found = [node for node in _nodes(graph_module) if is_in_training_mode(node)]
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        warnings.warn(
            f"{subject}: a graph without gradients is in training mode: it applies {_described(found[0])}{more}; call "
            f"model.eval() first, unless the results of training are meant",
            stacklevel=2,
        )


def _described(node: Any) -> str:
    name = str(node.target) if hasattr(node.target, "_schema") else node.target.__name__
    place = place_of(node)
    return name if not place or place.startswith(dirname(torch.__file__)) else f"{name} ({place})"


def _nodes(graph_module: Any) -> Iterator[Any]:
    for module in graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield from module.graph.nodes


def _owner(node: Any) -> str:
    stack: Mapping[str, tuple[str, object]] = node.meta.get("nn_module_stack") or {}
    return [path for path, _ in stack.values()][-1] if stack else ""


def is_in_training_mode(node: Any) -> bool:
    """Whether results are those of training, and differ from those of evaluation."""
    given = _named_arguments(node)
    flags = [given[name] for name in _FLAGS if name in given]
    if flags and not any(flag is True for flag in flags):
        return False
    if "dropout_p" in given or "p" in given:
        return (bool(flags) or "dropout_p" in given) and bool(given.get("dropout_p", given.get("p")))
    if "dropout" in given:
        return bool(flags) and bool(given["dropout"]) and given.get("num_layers", 2) > 1
    if "running_mean" in given:
        return bool(flags) and given["running_mean"] is not None
    return bool(flags)


def _named_arguments(node: Any) -> Mapping[str, Any]:
    """Arguments by name, including defaults of schemas and Python functions; those given by name for functions without
    a signature."""
    if node.op != "call_function":
        return {}
    schema = getattr(node.target, "_schema", None)
    if schema is not None:
        defaults = {argument.name: argument.default_value for argument in schema.arguments}
        return {**defaults, **dict(zip(defaults, node.args, strict=False)), **node.kwargs}
    try:
        bound = inspect.signature(node.target).bind(*node.args, **node.kwargs)
    except (TypeError, ValueError):
        return dict(node.kwargs)
    bound.apply_defaults()
    return bound.arguments
