"""CUDA C to machine code, through NVRTC: no driver and no toolkit is needed, the extra `weft[cuda]` is enough."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from weft.support.errors import CompileError, InternalError

_INSTALL = "pip install 'weft[cuda]' brings it"
_OPTIONS: Final = ("--std=c++17",)


class MissingCompilerError(CompileError):
    """NVRTC is not installed."""


@cache
def _nvrtc() -> Any:
    try:
        nvrtc = importlib.import_module("cuda.bindings.nvrtc")
        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:  # no package, or no library behind it
        raise MissingCompilerError(f"CUDA C is compiled by NVRTC, which is not installed: {_INSTALL}") from error
    return nvrtc


def _check(answer: tuple[Any, ...], what: str, log: str = "") -> Any:
    nvrtc, status = _nvrtc(), answer[0]
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        _, name = nvrtc.nvrtcGetErrorString(status)
        raise CompileError(f"{what}: {name.decode()}" + (f"\n{log}" if log else ""))
    return answer[1] if len(answer) == 2 else None


@cache
def supported_architectures() -> tuple[str, ...]:
    """What this NVRTC compiles for. Raises `MissingCompilerError`."""
    nvrtc = _nvrtc()
    _, count = nvrtc.nvrtcGetNumSupportedArchs()
    _, numbers = nvrtc.nvrtcGetSupportedArchs()
    return tuple(f"sm_{number}" for number in list(numbers)[:count])


def compile_cubin(text: str, architecture: str, name: str = "weft.cu") -> bytes:
    """Machine code for `sm_90` and the like. Raises `MissingCompilerError`, and `CompileError` with NVRTC's words."""
    return _compiled(text, architecture, name, "CUBIN")[0]


def compile_ptx(text: str, architecture: str, name: str = "weft.cu") -> str:
    """The text of a program in PTX, for an architecture. Raises as `compile_cubin` does."""
    return _compiled(text, architecture, name, "PTX")[0].rstrip(b"\0").decode()


@dataclass(frozen=True)
class KernelResources:
    """What a kernel takes on an architecture, as the assembler tells. `stack_bytes` and `spill_bytes` are memory that
    stands in for registers."""

    registers: int
    stack_bytes: int
    spill_bytes: int
    shared_bytes: int
    """Shared memory that the kernel declares."""


def resource_usage(text: str, architecture: str) -> dict[str, KernelResources]:
    """The resources of each kernel of a text. Raises as `compile_cubin` does."""
    log = _compiled(text, architecture, "weft.cu", "CUBIN", ("--ptxas-options=-v",))[1]
    found: dict[str, KernelResources] = {}
    for part in re.split(r"Compiling entry function ", log)[1:]:
        name = re.match(r"'([^']+)'", part)
        memory = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores", part)
        registers = re.search(r"Used (\d+) registers", part)
        if name is None or memory is None or registers is None:
            raise InternalError(f"the report of NVRTC's assembler is not understood:\n{part}")
        shared = re.search(r"(\d+) bytes smem", part)
        found[name[1]] = KernelResources(
            int(registers[1]), int(memory[1]), int(memory[2]), int(shared[1]) if shared is not None else 0
        )
    return found


def _compiled(text: str, architecture: str, name: str, form: str, options: tuple[str, ...] = ()) -> tuple[bytes, str]:
    """The code, and what the compiler says about it."""
    nvrtc = _nvrtc()
    if architecture.rstrip("af") not in supported_architectures():
        known = ", ".join(supported_architectures())
        raise CompileError(f"the installed NVRTC does not compile for {architecture} (it does for {known})")
    virtual = architecture.replace("sm_", "compute_") if form == "PTX" else architecture
    options = (f"--gpu-architecture={virtual}", *_OPTIONS, *options)
    program = _check(nvrtc.nvrtcCreateProgram(text.encode(), name.encode(), 0, [], []), "NVRTC takes no program")
    try:
        answer = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        _check(answer, f"NVRTC refuses the program for {architecture}", _log(program))
        size = _check(getattr(nvrtc, f"nvrtcGet{form}Size")(program), "NVRTC gives no code")
        code = b" " * size
        _check(getattr(nvrtc, f"nvrtcGet{form}")(program, code), "NVRTC gives no code")
        return code, _log(program)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _log(program: Any) -> str:
    nvrtc = _nvrtc()
    size = _check(nvrtc.nvrtcGetProgramLogSize(program), "NVRTC gives no log")
    log = _room(size)
    _check(nvrtc.nvrtcGetProgramLog(program, log), "NVRTC gives no log")
    return log[:size].rstrip(b"\0 \n").decode(errors="replace")


def _room(size: int) -> bytes:
    """Memory that NVRTC writes to: bytes of our own. Python shares those of length 0 and 1 among all of a program, and
    the log of a program without remarks has length 1."""
    return bytes(max(size, 2))
