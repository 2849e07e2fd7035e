"""Outputs of the driver: `-t cuda` prints the CUDA C++ of a low module's kernels, `-t ptx` what NVRTC makes of it.

weft-opt low.mlir -t 'cuda{arch=sm_90}'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, ClassVar

from xdsl.utils.target import Target

from weft.backends.c_family.checks import check_level, text_of_kernels

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp


@dataclass(frozen=True)
class _CudaOutput(Target):
    arch: str | None = None

    def source(self, module: ModuleOp) -> tuple[str, str]:
        """The CUDA C++ and the architecture. Raises `CompileError`."""
        from weft.backends.cuda.emit import emit_module
        from weft.support.target import Target as Machine

        check_level(module, "cuda")
        machine = Machine("cuda", arch=self.arch or "")
        return text_of_kernels(emit_module(module, machine), module, "cuda"), machine.arch


@dataclass(frozen=True)
class CudaTarget(_CudaOutput):
    """CUDA C++."""

    name: ClassVar[str] = "cuda"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        output.write(self.source(module)[0])


@dataclass(frozen=True)
class PtxTarget(_CudaOutput):
    """PTX; raises `CompileError` when NVRTC is not installed."""

    name: ClassVar[str] = "ptx"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from weft.backends.cuda.nvrtc import compile_ptx

        output.write(compile_ptx(*self.source(module)))
