"""Output of the driver: `-t opencl` prints the OpenCL C of a low module's kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, ClassVar

from xdsl.utils.target import Target

from weft.backends.c_family.checks import check_level, text_of_kernels

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp


@dataclass(frozen=True)
class OpenCLTarget(Target):
    """OpenCL C."""

    name: ClassVar[str] = "opencl"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from weft.backends.opencl.emit import emit_module
        from weft.support.target import Target as Machine

        check_level(module, "opencl")
        output.write(text_of_kernels(emit_module(module, Machine("opencl")), module, self.name))
