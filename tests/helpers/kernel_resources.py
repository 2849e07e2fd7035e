"""Resources of kernels on NVIDIA GPUs, from the report of NVRTC's assembler."""

import re
from dataclasses import dataclass

from weft.backends.cuda.nvrtc import compile_program


@dataclass(frozen=True)
class KernelResources:
    """The resources of a kernel; `stack_bytes` and `spill_bytes` are memory used for lack of registers."""

    registers: int
    stack_bytes: int
    spill_bytes: int
    shared_bytes: int
    """Shared memory that the kernel declares."""


def resource_usage(text: str, architecture: str) -> dict[str, KernelResources]:
    """The resources of each kernel of a text."""
    log = compile_program(text, architecture, "CUBIN", ("--ptxas-options=-v",))[1]
    found: dict[str, KernelResources] = {}
    for part in re.split(r"Compiling entry function ", log)[1:]:
        name = re.match(r"'([^']+)'", part)
        memory = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores", part)
        registers = re.search(r"Used (\d+) registers", part)
        assert name is not None and memory is not None and registers is not None, part
        shared = re.search(r"(\d+) bytes smem", part)
        found[name[1]] = KernelResources(
            int(registers[1]), int(memory[1]), int(memory[2]), int(shared[1]) if shared is not None else 0
        )
    return found
