"""What the driver checks before it prints a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.dialects.levels import allowed_at
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def check_level(module: ModuleOp, kind: str) -> None:
    """Raises `CompileError` at the first op that may not stand at low level."""
    for op in module.walk():
        if not allowed_at("low", op.name):
            raise CompileError.at(
                op,
                f"{op.name} may not stand at level low: lower the module first, with "
                f"-p lower-tir-to-low{{target={kind}}}",
            )
