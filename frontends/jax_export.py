"""Export of JAX functions to StableHLO: the text, and the names and shapes of parameters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from weft.dialects.element_types import element_name
from weft.frontends.graph_builder import Value, var
from weft.support.errors import CompileError


def jax_module(name: str = "jax") -> Any:
    """JAX or one of its modules. Raises `CompileError` if it is not installed."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in ("jax", "jaxlib"):
            raise
        raise CompileError("functions of JAX need the package jax: pip install 'weft[jax]'") from None


def readable_array(leaf: Any) -> Any:
    """Arrays of other packages become JAX's by DLPack; other values are unchanged."""
    if isinstance(leaf, np.ndarray | np.generic) or not hasattr(leaf, "__dlpack__"):
        return leaf
    if isinstance(leaf, jax_module().Array):
        return leaf
    return jax_module("jax.dlpack").from_dlpack(leaf)


def exported(
    function: Any, args: Sequence[Any], keywords: dict[str, Any], shapes: Any, constraints: Sequence[str]
) -> Any:
    """Exports a function on example arguments: arrays, or `jax.ShapeDtypeStruct`s.

    `shapes` states symbolic dimensions in the form of `jax.export.symbolic_args_specs`. An exported function takes no
    examples. Raises `TypeError` if `function` is not a function, and for examples that are not arrays.
    """
    jax, export = jax_module(), jax_module("jax.export")
    if isinstance(function, export.Exported):
        if args or keywords or shapes is not None:
            raise TypeError("from_jax: an exported function takes no examples and no shapes")
        return function
    if not callable(function):
        raise TypeError(f"from_jax: expected a function or a jax.export.Exported, got {type(function).__name__}")
    given: tuple[Any, dict[str, Any]] = jax.tree_util.tree_map(readable_array, (tuple(args), keywords))
    for path, leaf in jax.tree_util.tree_flatten_with_path(given)[0]:
        if not isinstance(leaf, bool | int | float | complex) and not (
            hasattr(leaf, "shape") and hasattr(leaf, "dtype")
        ):
            where = jax.tree_util.keystr(path[1:])
            raise TypeError(f"from_jax: expected an array as example {where}, got {type(leaf).__name__} {leaf!r:.60}")
    if shapes is not None:
        given = (export.symbolic_args_specs(given[0], shapes, constraints), keywords)
    # With this partitioner shardings are custom calls, which a single device ignores.
    partitioner = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", False)
    try:
        jitted = function if hasattr(function, "lower") else jax.jit(function)
        return export.export(jitted, platforms=("cpu",))(*given[0], **given[1])
    finally:
        jax.config.update("jax_use_shardy_partitioner", partitioner)


def parameter_names(program: Any, function: Any) -> list[str]:
    """The parameter of the function, and the path of each leaf in it."""
    tree = jax_module("jax.tree_util")
    args, keywords = tree.tree_unflatten(program.in_tree, list(range(program.in_tree.num_leaves)))
    names = [f"arg{at}" for at in range(len(args))]
    with suppress(TypeError, ValueError):  # functions without a signature
        parameters = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_POSITIONAL]
        names[: len(parameters)] = [p.name for p in parameters][: len(names)]
    paths = [
        (name, leaf) for name, arg in zip(names, args, strict=True) for leaf, _ in tree.tree_flatten_with_path(arg)[0]
    ]
    paths += [(name, leaf) for name in sorted(keywords) for leaf, _ in tree.tree_flatten_with_path(keywords[name])[0]]
    found: list[str] = []
    for name, path in paths:
        word = re.sub(r"\W+", "_", name + tree.keystr(path), flags=re.ASCII).strip("_")
        # Names of values must not end in an underscore and a number.
        word = re.sub(r"_(\d+)(?=_|$)", r"\1", word) or "arg"
        base, count = word, 0
        while word in found:
            count += 1
            word = f"{base}_{'x' * count}"
        found.append(word)
    return found


def parameters(program: Any, module: ModuleOp, names: Sequence[str]) -> list[Value]:
    """Parameters of @main, a subset of the leaves. Symbolic dimensions keep their names."""
    main = next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == "main")
    found: list[Value] = []
    for leaf, argument in zip(program.module_kept_var_idx, main.args, strict=True):
        type_ = cast("TensorType[Attribute]", argument.type)
        dtype = element_name(type_.element_type)
        if dtype is None:
            raise CompileError(
                f"from_jax: '{names[leaf]}' has elements of {type_.element_type}, which weft does not have"
            )
        dims = [*program.in_avals[leaf].shape, *([None] * type_.get_num_dims())]
        shape = [
            str(dim) if size == DYNAMIC_INDEX else size for size, dim in zip(type_.get_shape(), dims, strict=False)
        ]
        found.append(var(names[cast("int", leaf)], shape, dtype))
    return found
