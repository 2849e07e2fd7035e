"""Compile CUDA C++ by NVRTC of the extra `weft[cuda]`; neither driver nor toolkit is needed."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any, Final

from weft.support.errors import CompileError

_INSTALL = "pip install 'weft[cuda]' brings it"
_OPTIONS: Final = ("--std=c++17",)


class MissingCompilerError(CompileError):
    """NVRTC is not installed."""


@cache
def _nvrtc() -> Any:
    try:
        nvrtc = importlib.import_module("cuda.bindings.nvrtc")
        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:  # no package, or its library is missing
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
    """Raises `MissingCompilerError`."""
    nvrtc = _nvrtc()
    _, count = nvrtc.nvrtcGetNumSupportedArchs()
    _, numbers = nvrtc.nvrtcGetSupportedArchs()
    return tuple(f"sm_{number}" for number in list(numbers)[:count])


def compile_cubin(text: str, architecture: str) -> bytes:
    """Machine code for an architecture such as `sm_90`. Raises `MissingCompilerError`, and `CompileError` with NVRTC's
    log."""
    return compile_program(text, architecture, "CUBIN")[0]


def compile_ptx(text: str, architecture: str) -> str:
    """Raises as `compile_cubin` does."""
    return compile_program(text, architecture, "PTX")[0].rstrip(b"\0").decode()


def compile_program(text: str, architecture: str, form: str, options: tuple[str, ...] = ()) -> tuple[bytes, str]:
    """Returns the "CUBIN" or "PTX", and the log. Raises as `compile_cubin` does."""
    nvrtc = _nvrtc()
    if architecture.rstrip("af") not in supported_architectures():
        known = ", ".join(supported_architectures())
        raise CompileError(f"the installed NVRTC does not compile for {architecture} (it does for {known})")
    virtual = architecture.replace("sm_", "compute_") if form == "PTX" else architecture
    options = (f"--gpu-architecture={virtual}", *_OPTIONS, *options)
    program = _check(nvrtc.nvrtcCreateProgram(text.encode(), b"weft.cu", 0, [], []), "NVRTC cannot create the program")
    try:
        answer = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        _check(answer, f"NVRTC refuses the program for {architecture}", _log(program))
        size = _check(getattr(nvrtc, f"nvrtcGet{form}Size")(program), "NVRTC has no code of the program")
        code = b" " * size
        _check(getattr(nvrtc, f"nvrtcGet{form}")(program, code), "NVRTC has no code of the program")
        return code, _log(program)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _log(program: Any) -> str:
    nvrtc = _nvrtc()
    size = _check(nvrtc.nvrtcGetProgramLogSize(program), "NVRTC has no log")
    # NVRTC writes into this object, so it must be private: Python shares bytes of length 0 and 1, and an empty log has
    # 1.
    log = bytes(max(size, 2))
    _check(nvrtc.nvrtcGetProgramLog(program, log), "NVRTC has no log")
    return log[:size].rstrip(b"\0 \n").decode(errors="replace")
