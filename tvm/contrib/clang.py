"""`tvm.contrib.clang`: LLVM IR of C sources."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from weft.runtime.c_compiler import is_cxx, run_tool


class CSource(str):
    """A source in C or C++, which programs import as such where there is no clang."""

    __slots__ = ()


def create_llvm(
    inputs: str | Sequence[str], output: str | None = None, options: Sequence[str] = (), cc: str = ""
) -> str:
    """The LLVM IR of a C or C++ source, which clang makes; it is also written to the file `output`.

    Where there is no clang, the source itself: as `pragma_import_llvm`, the C compiler of the system compiles it.
    """
    source = inputs if isinstance(inputs, str) else "\n".join(inputs)
    compiler = shutil.which(cc or "clang")
    if compiler is None:
        return CSource(source)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given, made = folder / ("input.cc" if is_cxx(source) else "input.c"), folder / "output.ll"
        given.write_text(source)
        command = [compiler, "-O3", "-S", "-emit-llvm", *options, "-o", str(made), str(given)]
        run_tool(command, folder, "clang refused the source")
        text = made.read_text()
    if output is not None:
        Path(output).write_text(text)
    return text
