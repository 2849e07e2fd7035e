"""The system's C and C++ compilers."""

from __future__ import annotations

import ctypes
import hashlib
import math
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weft.backends.llvm.object_file import object_symbols
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Iterable

_C_COMPILERS = ("cc", "gcc", "clang")
_CXX_COMPILERS = ("c++", "g++", "clang++")
FLAGS: Final = ("-O2", "-ftree-vectorize", "-ffp-contract=fast", "-fPIC")
"""-O3 of GCC takes longer without benefit, because weft has already unrolled and vectorised."""
NATIVE: Final = (*FLAGS, "-march=native")
"""For code that runs in this process."""
LEAST_SECONDS: Final = 60.0
MOST_SECONDS: Final = 900.0
BYTES_A_SECOND: Final = 4096
"""Bytes of input per second of time limit, see `finished`."""
_WAITING: Final = 8
"""Seconds per second of time limit after which a compiler is ended that waits, or that other processes slow down."""
_MOST_PRINTED: Final = 1 << 16
_HAS_GROUPS: Final = os.name == "posix"


def compiler_for(is_cxx: bool = False, purpose: str = "") -> str:
    """Raises `CompileError`, with the purpose, if there is no compiler."""
    names = _CXX_COMPILERS if is_cxx else _C_COMPILERS
    for name in names:
        path = shutil.which(name)
        if path is not None:
            return path
    missing = f"there is no compiler for it: none of {', '.join(names)} is on the PATH"
    if purpose:
        raise CompileError(f"{purpose}, and {missing}")
    raise CompileError(
        f"the program comes with a {'C++' if is_cxx else 'C'} source, and {missing}. Import LLVM IR instead "
        "(pragma_import_llvm)"
    )


def run_tool(command: list[str], folder: Path, failure: str) -> None:
    """Raises `CompileError` with `failure`, and the first printed lines, if a tool fails or exceeds the time limit."""
    status, printed = finished(command, failure)
    if status:
        lines = [line for line in printed.splitlines() if line.strip()]
        shown = "\n  ".join(line.replace(f"{folder}/", "") for line in lines[:8])
        raise CompileError(f"{failure}:\n  {shown}")


def finished(command: list[str], failure: str) -> tuple[int, str]:
    """Returns the exit status and the first 64 KiB of the standard error.

    The limit of processor time is one minute plus one second per 4 KiB of input files, at most 15 minutes; that of time
    is eight times as long. Then, or on an interrupt, the process group is killed, because the compiler proper is a
    child of `cc`. Raises `CompileError` with `failure` at a limit, and if the command cannot be started.
    """
    size = sum(os.path.getsize(word) for word in command[1:] if os.path.isfile(word))
    limit = min(LEAST_SECONDS + size / BYTES_A_SECOND, MOST_SECONDS)
    with tempfile.TemporaryFile() as printed:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=printed,
                process_group=0 if _HAS_GROUPS else None,  # in the session, and so the priority, of this process
            )
        except (OSError, ValueError) as error:
            raise CompileError(f"{failure}: '{command[0]}' cannot be started: {error}") from error
        try:
            status = _status(process, limit)
        finally:
            _end(process)
        if status is None:
            name = Path(command[0]).name
            text = f"{name} was ended after {limit:.0f} s, the limit for {size:,} bytes of input"
            raise CompileError(f"{failure}: {text}")
        printed.seek(0)
        return status, printed.read(_MOST_PRINTED).decode(errors="replace")


def _status(process: subprocess.Popen[bytes], limit: float) -> int | None:
    """Returns None if the group of a process uses `limit` seconds of processor time, or waits for too long."""
    started, left = time.monotonic(), limit
    while left > 0 and time.monotonic() - started < _WAITING * limit:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(max(left, limit / 60))
        left = limit - _processor_seconds(process.pid)
    return process.poll()  # it may have ended meanwhile


def _processor_seconds(group: int) -> float:
    """The processor time of a process group and of its ended children; infinite on systems without /proc."""
    if not Path("/proc/self/stat").exists():
        return math.inf
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if int(fields[2]) == group:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        if _HAS_GROUPS:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()


def is_cxx(source: str) -> bool:
    return 'extern "C"' in source


def compile_source(source: str, folder: Path, name: str, flags: Iterable[str], compiler: str = "") -> str:
    """Returns the path of the object. `compiler` is for C. Raises `CompileError` if there is no compiler, or if it
    rejects the source."""
    if not compiler or is_cxx(source):
        compiler = compiler_for(is_cxx(source))
    path = folder / f"{name}{'.cc' if is_cxx(source) else '.c'}"
    path.write_text(source, encoding="utf-8")
    made = str(path.with_suffix(".o"))
    refusal = f"the C compiler refuses the source {path.name}"
    run_tool([compiler, *flags, "-c", str(path), "-o", made], folder, refusal)
    return made


def llvm_of_source(source: str, flags: Iterable[str], clang: str) -> str:
    """`clang` is a path. Raises `CompileError` if it rejects the source."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given, made = folder / ("input.cc" if is_cxx(source) else "input.c"), folder / "output.ll"
        given.write_text(source, encoding="utf-8")
        command = [clang, "-O3", "-S", "-emit-llvm", *flags, "-o", str(made), str(given)]
        run_tool(command, folder, "clang refused the source")
        return made.read_text(encoding="utf-8")


@cache
def compiled_symbols(source: str) -> dict[str, int]:
    """Returns addresses, compiled once per process. Raises as `compile_source` does."""
    name = hashlib.sha256(source.encode()).hexdigest()[:12]
    with tempfile.TemporaryDirectory(prefix="weft-") as place:
        folder = Path(place)
        made = compile_source(source, folder, name, NATIVE)
        loaded = load_shared(compiler_for(is_cxx(source)), [made], folder)
        table = object_symbols(Path(made).read_bytes())
    if table is None:
        raise CompileError("C sources are supported on systems with ELF objects only; import LLVM IR instead")
    addresses = {name: address_of(loaded, name) for name in table.defined}
    return {name: address for name, address in addresses.items() if address is not None}


def address_of(code: ctypes.CDLL, symbol: str) -> int | None:
    try:
        return ctypes.cast(getattr(code, symbol), ctypes.c_void_p).value
    except AttributeError:
        return None


def load_shared(compiler: str, linked: list[str], folder: Path) -> ctypes.CDLL:
    library = folder / "program.so"
    run_tool([compiler, "-shared", *linked, "-o", str(library)], folder, f"{Path(compiler).name} cannot link a program")
    return ctypes.CDLL(str(library))
