"""Outputs of the driver for CPUs: `-t llvm-ir` and `-t asm`.

weft-opt low.mlir -t llvm-ir                      the LLVM IR that is compiled
weft-opt low.mlir -t 'llvm-ir{optimized=true}'    after LLVM's optimiser
weft-opt low.mlir -t 'asm{cpu=haswell}'           assembly for a given CPU
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, BinaryIO, ClassVar, cast

from xdsl.utils.target import Target

from weft.backends.low_modules import check_has_functions, check_low_level
from weft.support.errors import CompileError
from weft.support.stopwatch import Stopwatch
from weft.support.target import Target as Machine

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp


@dataclass(frozen=True)
class MachineTarget(Target):
    """Options of the target machine, by default the host."""

    triple: str | None = None
    """The target triple: `"aarch64-linux-gnu"`."""
    cpu: str | None = None
    """The CPU, by LLVM's name."""
    attr: str | None = None
    """Features to add or remove: `"+avx2,-fma"`."""
    opt_level: int = 2
    """The level of LLVM's optimiser, 0 to 3."""
    reassociate: bool = False
    """Allow LLVM to reorder sums of floats."""

    def machine(self) -> Machine:
        """Raises `CompileError` for an unknown triple, CPU or feature."""
        return Machine(
            triple=self.triple or "",
            cpu=self.cpu or "",
            features=self.attr or "",
            opt_level=self.opt_level,
            reassociate=self.reassociate,
        )

    def produce(self, module: ModuleOp, stopwatch: Stopwatch) -> str | bytes:
        """Raises `CompileError`."""
        raise NotImplementedError

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        made = self.produce(module, Stopwatch())
        if isinstance(made, str):
            output.write(made)
            return
        buffer = cast("BinaryIO | None", getattr(output, "buffer", None))
        if buffer is None:
            raise CompileError(f"-t {self.name} makes machine code, which is no text: weft-opt -o FILE writes it")
        buffer.write(made)


@dataclass(frozen=True)
class LLVMIRTarget(MachineTarget):
    """LLVM IR, as emitted or, if `optimized`, after LLVM's optimiser."""

    name: ClassVar[str] = "llvm-ir"

    optimized: bool = False
    """Print the IR after LLVM's optimiser."""

    def produce(self, module: ModuleOp, stopwatch: Stopwatch) -> str:
        from weft.backends.llvm.compile import optimize_ir  # start-up: 53 ms

        machine = self.machine()
        text = emitted(module, machine, stopwatch, self.name)
        return optimize_ir(text, machine, stopwatch=stopwatch) if self.optimized else text


@dataclass(frozen=True)
class AsmTarget(MachineTarget):
    """Assembly."""

    name: ClassVar[str] = "asm"

    def produce(self, module: ModuleOp, stopwatch: Stopwatch) -> str:
        from weft.backends.llvm.compile import assembly  # start-up: 53 ms

        machine = self.machine()
        return assembly(emitted(module, machine, stopwatch, self.name), machine, stopwatch=stopwatch)


def emitted(module: ModuleOp, machine: Machine, stopwatch: Stopwatch, name: str) -> str:
    """Raises `CompileError` if the module is not at low level, or has no functions."""
    from weft.backends.llvm.compile import EMISSION  # start-up: 53 ms
    from weft.backends.llvm.emit import emit_module  # start-up: 107 ms

    check_low_level(module)
    check_has_functions(module, name)
    with stopwatch.measure(EMISSION):
        return emit_module(module, machine)
