"""Outputs of the driver in languages of the C family.

weft-opt low.mlir -t c                        C99; `-t 'c{header=true}'` the header that declares it
weft-opt low.mlir -t 'cuda{arch=sm_90}'       CUDA C++ of the kernels; `-t ptx` compiles it by NVRTC
weft-opt low.mlir -t opencl                   OpenCL C of the kernels
weft-opt low.mlir -t metal                    the kernels in the Metal Shading Language
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, ClassVar

from xdsl.dialects.func import FuncOp
from xdsl.utils.target import Target

from weft.backends.cuda.nvrtc import compile_ptx
from weft.backends.low_modules import check_has_functions, check_low_level
from weft.support.errors import CompileError
from weft.support.target import Target as Machine

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp


@dataclass(frozen=True)
class CTarget(Target):
    """C99, or its header."""

    name: ClassVar[str] = "c"

    header: bool = False
    """Print the header that declares the functions."""

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from weft.backends.c.emit import emit_module  # start-up: 113 ms

        check_low_level(module, "c")
        check_has_functions(module, "c")
        source = emit_module(module, Machine("c"))
        output.write(source.header if self.header else source.text)


@dataclass(frozen=True)
class _KernelTarget(Target):
    """Raises `CompileError` if the module has no kernels."""

    def machine(self) -> Machine:
        """Raises `CompileError` for an unknown architecture."""
        return Machine(self.name)

    def text(self, module: ModuleOp) -> str:
        from weft.backends.c_family.kernels import emit_kernels  # start-up: 117 ms

        machine = self.machine()
        kind = machine.kind
        check_low_level(module, kind)
        source = emit_kernels(module, machine)
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

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        output.write(self.text(module))


@dataclass(frozen=True)
class CudaTarget(_KernelTarget):
    """The kernels in CUDA C++."""

    name: ClassVar[str] = "cuda"

    arch: str | None = None
    """The architecture: `sm_90`."""

    def machine(self) -> Machine:
        return Machine("cuda", arch=self.arch or "")


@dataclass(frozen=True)
class PtxTarget(CudaTarget):
    """The kernels as PTX. Raises `CompileError` if NVRTC is not installed."""

    name: ClassVar[str] = "ptx"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        output.write(compile_ptx(self.text(module), self.machine().arch))


@dataclass(frozen=True)
class OpenCLTarget(_KernelTarget):
    """The kernels in OpenCL C."""

    name: ClassVar[str] = "opencl"


@dataclass(frozen=True)
class MetalTarget(_KernelTarget):
    """The kernels in the Metal Shading Language."""

    name: ClassVar[str] = "metal"
