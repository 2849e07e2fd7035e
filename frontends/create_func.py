"""Functions of block loops (tir IR) from tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ModuleOp

from weft.passes.te.lower_te_to_tir import lower_te_function
from weft.texpr.buffers import Binds, set_strides
from weft.texpr.expr import Var
from weft.texpr.function import Assumptions, declare_intrinsics, te_function
from weft.texpr.shapes import items
from weft.texpr.tensor import Tensor


def create_func(
    args: Sequence[Tensor | Var], name: str = "main", *, binds: Binds | None = None, assume: Assumptions = ()
) -> ModuleOp:
    """Create a module with one function of block loops that computes the tensors in `args` from the placeholders in
    `args`.

    Parameters are `memref` buffers in this order, named like the tensors, and scalars for variables. Other tensors are
    temporaries. Extents that are variables are dynamic, and equal for the same variable. `binds` and the strides of
    placeholders lay out arrays that are not dense: `{C: te.decl_buffer((m, n), strides=(s, 1))}`. Schedules rely on the
    conditions in `assume`, which calls check: `[n % 32 == 0, m <= 1024]`.

    Raises CompileError for placeholders that are read and not listed, duplicate parameter names, variables that no
    listed extent or parameter determines, and reduce axes outside their reduction.
    """
    function = te_function(args, name, assume)
    module = ModuleOp([function])
    declare_intrinsics(module)
    lower_te_function(function)
    set_strides(function, cast("Sequence[Tensor | Var]", items(args)), binds)
    return module


create_prim_func = create_func
