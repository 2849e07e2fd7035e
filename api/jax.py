"""Functions of JAX: `weft.from_jax`, and `weft.jax_jit`, which compiles them.

module = weft.from_jax(model, params, x)
fast = weft.jax_jit(model)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import graph
from weft.driver.jax_models import import_exported
from weft.frontends.jax_export import exported

__all__ = ["from_jax"]


def from_jax(
    function: Any,
    *examples: Any,
    shapes: Any = None,
    constraints: Sequence[str] = (),
    name: str = "main",
    **keywords: Any,
) -> graph.Module:
    """Import a function of JAX on example arguments, or a `jax.export.Exported`, as a module with graph function
    `name`.

        weft.from_jax(f, params, x)
        weft.from_jax(f, params, x, shapes=(None, "batch, ..."), constraints=["batch >= 2"])
        weft.from_jax(f, params, jax.ShapeDtypeStruct((8, 4), "float32"))

    Parameters are the leaves of arguments that it uses, results those of the return value. `shapes` and `constraints`
    are those of `jax.export.symbolic_args_specs`. Raises `CompileError` for unsupported ops, and the errors of
    `jax.export`.
    """
    program = exported(function, examples, keywords, shapes, constraints)
    builder = graph.BlockBuilder()
    import_exported(program, function, builder, name)
    return builder.get()
