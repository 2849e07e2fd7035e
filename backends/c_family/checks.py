"""What the driver checks before it prints a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.func import FuncOp

from weft.dialects.levels import allowed_at
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from weft.backends.c_family.source import KernelSource


def text_of_kernels(source: KernelSource, module: ModuleOp, kind: str) -> str:
    """The text of a program of kernels. Raises `CompileError` when the module has none: there is nothing to print."""
    if source.kernels:
        return source.text
    functions = [op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration]
    names = [f"@{op.sym_name.data}" for op in functions[:5]] + ["..."] * (len(functions) > 5)
    listed = f" (functions: {', '.join(names)})" if names else ""
    message = (
        f"-t {kind} prints kernels, and the module has none{listed}: loops that "
        "are bound to blockIdx and threadIdx become kernels. Bind them before lower-tir-to-low, by tir-bind or "
        f"sch.bind, or let default-schedule{{target={kind}}} do it"
    )
    raise CompileError.at(functions[0] if functions else module, message)


def check_level(module: ModuleOp, kind: str) -> None:
    """Raises `CompileError` at the first op that may not stand at low level."""
    for op in module.walk():
        if not allowed_at("low", op.name):
            raise CompileError.at(
                op,
                f"{op.name} may not stand at level low: lower the module first, with "
                f"-p lower-tir-to-low{{target={kind}}}",
            )
