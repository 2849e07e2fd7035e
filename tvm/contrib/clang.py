"""`tvm.contrib.clang`: LLVM IR of C sources."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from weft.runtime.c_compiler import llvm_of_source


class CSource(str):
    """C or C++, used without clang."""

    __slots__ = ()


def create_llvm(
    inputs: str | Sequence[str], output: str | None = None, options: Sequence[str] = (), cc: str = "clang"
) -> str:
    """Compile C or C++ to LLVM IR, also in the file `output`.

    Without clang, returns the source, which `pragma_import_llvm` compiles by the C compiler.
    """
    source = inputs if isinstance(inputs, str) else "\n".join(inputs)
    compiler = shutil.which(cc)
    if compiler is None:
        return CSource(source)
    text = llvm_of_source(source, options, compiler)
    if output is not None:
        Path(output).write_text(text)
    return text
