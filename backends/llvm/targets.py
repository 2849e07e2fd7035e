"""Outputs of the driver: `-t llvm-ir` and `-t asm` print what a low module becomes.

weft-opt low.mlir -t llvm-ir                      the LLVM IR that is compiled
weft-opt low.mlir -t 'llvm-ir{optimized=true}'    after LLVM's optimiser
weft-opt low.mlir -t 'asm{cpu=haswell}'           assembly for a given CPU
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, ClassVar

from xdsl.utils.target import Target

from weft.dialects.levels import allowed_at
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp

    import weft.support.target


@dataclass(frozen=True)
class _MachineTarget(Target):
    """What code is for. Left out, `triple`, `cpu` and `attr` (features such as `"+avx2,-fma"`) are the host's."""

    triple: str | None = None
    cpu: str | None = None
    attr: str | None = None
    opt_level: int = 2
    reassociate: bool = False

    def machine(self) -> weft.support.target.Target:
        """The target of the options. Raises `CompileError` on an unknown triple, CPU or feature."""
        from weft.support.target import Target as Machine

        return Machine(
            triple=self.triple or "",
            cpu=self.cpu or "",
            features=self.attr or "",
            opt_level=self.opt_level,
            reassociate=self.reassociate,
        )


@dataclass(frozen=True)
class LLVMIRTarget(_MachineTarget):
    """LLVM IR, as emitted or (`optimized`) as LLVM's optimiser leaves it."""

    name: ClassVar[str] = "llvm-ir"

    optimized: bool = False

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from weft.backends.llvm.compile import optimize_ir
        from weft.backends.llvm.emit import emit_module

        _check_level(module)
        machine = self.machine()
        text = emit_module(module, machine)
        output.write(optimize_ir(text, machine) if self.optimized else text)


@dataclass(frozen=True)
class AsmTarget(_MachineTarget):
    """Assembly."""

    name: ClassVar[str] = "asm"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from weft.backends.llvm.compile import assembly
        from weft.backends.llvm.emit import emit_module

        _check_level(module)
        machine = self.machine()
        output.write(assembly(emit_module(module, machine), machine))


def _check_level(module: ModuleOp) -> None:
    """Raises `CompileError` at the first op that may not stand at low level."""
    for op in module.walk():
        if not allowed_at("low", op.name):
            raise CompileError.at(
                op, f"{op.name} may not stand at level low: lower the module first, with -p lower-tir-to-low"
            )
