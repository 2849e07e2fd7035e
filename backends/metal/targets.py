"""Output of the driver: `-t metal` prints the kernels of a low module in the Metal Shading Language."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, ClassVar

from xdsl.utils.target import Target

from weft.backends.c_family.checks import check_level, text_of_kernels

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp


@dataclass(frozen=True)
class MetalTarget(Target):
    """Metal Shading Language."""

    name: ClassVar[str] = "metal"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from weft.backends.metal.emit import emit_module
        from weft.support.target import Target as Machine

        check_level(module, "metal")
        output.write(text_of_kernels(emit_module(module, Machine("metal")), module, self.name))
