"""C sources that come with a program: compiled with the C compiler of the system, where there is one."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from weft.support.errors import CompileError

_C_COMPILERS = ("cc", "gcc", "clang")
_CXX_COMPILERS = ("c++", "g++", "clang++")
_FLAGS = ("-O3", "-march=native", "-ffp-contract=fast", "-fPIC", "-shared")


def compiled_symbols(source: str) -> dict[str, int]:
    """Addresses of the functions that a C source defines, in this process; a source with `extern "C"` is C++.

    Compiled once a process. Raises `CompileError` when there is no compiler, or when it refuses the source.
    """
    return dict(_symbols(source))


@cache
def _symbols(source: str) -> tuple[tuple[str, int], ...]:
    from weft.backends.llvm.object_file import object_symbols

    is_cxx = 'extern "C"' in source
    compiler = compiler_for(is_cxx)
    name = hashlib.sha256(source.encode()).hexdigest()[:12]
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        path = Path(folder, f"{name}{'.cc' if is_cxx else '.c'}")
        path.write_text(source, encoding="utf-8")
        code = Path(folder, f"{name}.o")
        library = Path(folder, f"{name}.so")
        run_compiler([compiler, *_FLAGS[:-1], "-c", str(path), "-o", str(code)], path.name)
        run_compiler([compiler, *_FLAGS, str(code), "-o", str(library)], path.name)
        loaded = ctypes.CDLL(str(library))  # stays loaded until the process ends
        table = object_symbols(code.read_bytes())
    if table is None:
        raise CompileError("C sources are supported on systems with ELF objects only; import LLVM IR instead")
    found: list[tuple[str, int]] = []
    for symbol in table.defined:
        address = ctypes.cast(getattr(loaded, symbol), ctypes.c_void_p).value
        if address is not None:
            found.append((symbol, address))
    return tuple(found)


def compiler_for(is_cxx: bool = False, purpose: str = "") -> str:
    """The path of a C or C++ compiler. Raises `CompileError`, which says what it is for, when there is none."""
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


def run_compiler(command: list[str], name: str) -> None:
    """Run a compiler on the source `name`. Raises `CompileError` with the head of what it says when it refuses."""
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if result.returncode:
        lines = [line for line in result.stderr.splitlines() if line.strip()]
        shown = "\n  ".join(line.replace(str(Path(command[-1]).parent) + "/", "") for line in lines[:8])
        raise CompileError(f"the C compiler refuses an imported source ({name}):\n  {shown}")
