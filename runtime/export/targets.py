"""Outputs of the driver: `-t object` and `-t header`.

weft-opt low.mlir -t object -o f.o                            machine code, with the runtime that it needs
weft-opt low.mlir -t 'object{cpu=haswell}' -o f.o             for a given CPU; `triple` and `attr` as for `-t asm`
weft-opt low.mlir -t 'header{file="f.h"}'                     the C header that declares its functions
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from weft.backends.llvm.targets import MachineTarget, check_low_level

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from weft.runtime.export.program import Program
    from weft.support.stopwatch import Stopwatch


@dataclass(frozen=True)
class _ProgramTarget(MachineTarget):
    threads: int = 0
    """Threads of parallel loops; as many as there are cores here unless given."""

    def program(self, module: ModuleOp, stopwatch: Stopwatch) -> Program:
        """The program of a module. Raises `CompileError` when it is not at low level."""
        from weft.runtime.build import program_of

        check_low_level(module)
        machine = self.machine()
        return program_of(module, replace(machine, num_threads=self.threads or machine.num_threads), stopwatch)


@dataclass(frozen=True)
class ObjectTarget(_ProgramTarget):
    """A relocatable object, as bytes: `weft-opt` writes them to the file of `-o`."""

    name: ClassVar[str] = "object"

    def produce(self, module: ModuleOp, stopwatch: Stopwatch) -> bytes:
        return self.program(module, stopwatch).object_code(stopwatch=stopwatch)


@dataclass(frozen=True)
class HeaderTarget(_ProgramTarget):
    """The C header of the functions of a low module; `file` is its name."""

    name: ClassVar[str] = "header"

    file: str = "program.h"

    def produce(self, module: ModuleOp, stopwatch: Stopwatch) -> str:
        return self.program(module, stopwatch).header(self.file)
