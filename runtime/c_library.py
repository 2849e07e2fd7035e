"""Programs in C, compiled by the system's C compiler."""

from __future__ import annotations

import ctypes
import tempfile
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from weft.backends.c.language import C
from weft.runtime.c_compiler import NATIVE, address_of, compile_source, compiler_for, finished, is_cxx, load_shared
from weft.runtime.call import Caller
from weft.runtime.library import Function, Library
from weft.runtime.registered_functions import connect
from weft.support.call_signature import ScalarSpec
from weft.support.errors import CompileError
from weft.support.files import write_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from weft.support.call_arguments import Array
    from weft.support.call_signature import Signature
    from weft.support.stopwatch import Stopwatch
    from weft.support.target import Target

FLAGS: Final = ("-std=c99", *NATIVE)
"""To compile the text for this machine; `-fopenmp` is added if supported."""
SOURCE_KINDS: Final = ("c", "h")


class CLibrary(Library):
    """The C compiler runs when a function is first requested.

    Parallel loops use OpenMP and its environment variables, unless the target has one thread (`c -num-threads=1`); with
    `OMP_WAIT_POLICY=passive` waiting threads yield the processor. `symbols` maps functions to names in the text, which
    reads `constants` under external symbols; `imports` are further C sources. Raises `CompileError` on the first call
    if there is no compiler, or if it rejects the text.
    """

    def __init__(
        self,
        sources: Mapping[str, str | Callable[[], str]],
        signatures: Iterable[Signature],
        target: Target,
        symbols: Mapping[str, str],
        imports: Sequence[str] = (),
        constants: Mapping[str, Array] = MappingProxyType({}),
        text: str = "",
    ) -> None:
        self._keep(target, signatures, sources)
        self._symbols = dict(symbols)
        self._imports = tuple(imports)
        self._text = text
        self.constants = MappingProxyType(dict(constants))

    @cached_property
    def _code(self) -> ctypes.CDLL:
        parallel = self.target.num_threads > 1
        if not self.constants:
            return _compiled(self.get_source("c"), self._imports, parallel)
        return _compile(self._text, self._imports, parallel, self.constants)

    def _function(self, name: str) -> Function:
        signature = self._signatures[name]
        if name not in self._functions:
            for argument in signature.args:
                if isinstance(argument, ScalarSpec) and argument.dtype in ("float16", "bfloat16"):
                    raise CompileError(
                        f"'{name}' takes the {argument.dtype} number '{argument.name}' as its bits: it can be called "
                        "from C only; pass float32"
                    )
            address = address_of(self._code, self._symbols[name])
            if address is None:
                raise CompileError(f"the compiled C has no function '{self._symbols[name]}'")
            caller = Caller(signature, address, self._code, calls_registered=connect(self._code))
            self._functions[name] = Function.make(caller)
        return self._functions[name]

    def export(
        self,
        path: str | Path,
        kind: str | None = None,
        *,
        compiler: str = "",
        weights: str | Path | None = None,
        stopwatch: Stopwatch | None = None,
    ) -> Path:
        """Write the program (`.c`) or its header (`.h`). Raises `CompileError` for another kind, for weights, and if
        the folder does not exist."""
        path = Path(path)
        if weights is not None:
            raise CompileError(
                f"'{path}': a program in C has its constants in it; build for llvm to leave them to weights"
            )
        kind = kind or path.suffix.removeprefix(".")
        if kind not in SOURCE_KINDS:
            raise CompileError(
                f"'{path}': a program in C is exported as {' or '.join(SOURCE_KINDS)}, got '{kind}'; build for llvm to "
                "export machine code"
            )
        write_output(path, self.get_source(kind))
        return path


@cache
def _compiled(text: str, imports: tuple[str, ...], parallel: bool) -> ctypes.CDLL:
    return _compile(text, imports, parallel, {})


def _compile(text: str, imports: tuple[str, ...], parallel: bool, constants: Mapping[str, Array]) -> ctypes.CDLL:
    compiler = compiler_for(purpose="the program is C, which is compiled where it runs")
    openmp = _openmp(compiler) if parallel else ()
    with tempfile.TemporaryDirectory(prefix="weft-") as place:
        folder = Path(place)
        # In clang the option `fast` overrides pragmas.
        rounding = ("-ffp-contract=off",) if C.no_contraction in text else ()
        objects = [compile_source(text, folder, "program", (*FLAGS, *rounding, *openmp), compiler)]
        if constants:
            objects.append(compile_source(_data_text(constants, folder), folder, "constants", (), compiler))
        objects += [
            compile_source(source, folder, f"import{number}", NATIVE, compiler) for number, source in enumerate(imports)
        ]
        linker = compiler_for(is_cxx=True) if any(map(is_cxx, imports)) else compiler
        return load_shared(linker, [*objects, *openmp, "-lm"], folder)


def _data_text(constants: Mapping[str, Array], folder: Path) -> str:
    parts = ['__asm__(".section .rodata\\n"']
    for name, array in constants.items():
        path = folder / f"{name}.bin"
        array.tofile(path)
        parts.append(f'  ".balign 64\\n.globl {name}\\n.hidden {name}\\n{name}: .incbin \\"{path}\\"\\n"')
    return "\n".join((*parts, '  ".text\\n");\n'))


@cache
def _openmp(compiler: str) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        path = Path(folder, "probe.c")
        path.write_text("#include <omp.h>\nint probe(void) { return omp_get_max_threads(); }\n", encoding="utf-8")
        command = [compiler, "-fopenmp", "-shared", "-fPIC", str(path), "-o", str(Path(folder, "probe.so"))]
        status, _ = finished(command, f"{compiler} cannot be asked for OpenMP")
    return () if status else ("-fopenmp",)
