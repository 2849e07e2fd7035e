"""Makes `backends/reserved_names.txt`: what headers and libraries declare, which no program may define.

python tests/helpers/reserved_names.py [CUDA_INCLUDE_FOLDER]

Asks the C compiler about the headers of C and POSIX, `nm` about libc and libm, and reads `opencl-c.h` (which
`pocl-binary-distribution` brings) and the headers of CUDA below the folders given, `/usr/local/cuda/include` unless
given. Names that the file lists already stay: other systems may have them.
"""

from __future__ import annotations

import ctypes.util
import platform
import re
import subprocess
import sys
import tempfile
import textwrap
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weft.backends.names import RESERVED_FILE, reserved
from weft.runtime.c_compiler import compiler_for

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEADERS: Final = """
    aio arpa/inet assert complex cpio ctype dirent dlfcn errno fcntl fenv float fmtmsg fnmatch ftw glob grp iconv
    inttypes iso646 langinfo libgen limits locale math monetary mqueue net/if netdb netinet/in netinet/tcp nl_types poll
    pthread pwd regex sched search semaphore setjmp signal spawn stdalign stdarg stdatomic stdbool stddef stdint stdio
    stdlib stdnoreturn string strings stropts sys/ipc sys/mman sys/msg sys/param sys/resource sys/select sys/sem sys/shm
    sys/socket sys/stat sys/statvfs sys/time sys/times sys/types sys/uio sys/un sys/utsname sys/wait syslog tar termios
    tgmath threads time uchar ucontext ulimit unistd utime utmpx wchar wctype wordexp
"""
_TEXT_HEADERS: Final = ("math", "stdbool", "stdint", "stdio", "stdlib", "string")
"""What programs in C include: their macros cannot be names of variables either."""
_CUDA: Final = Path("/usr/local/cuda/include")
_NAME: Final = re.compile(r"[A-Za-z]\w*|[a-z]+-[\d.]+")
_DEFINE: Final = re.compile(r"^#\s*define +([A-Za-z]\w*)(\(?)", re.MULTILINE)
_TYPEDEF: Final = re.compile(
    r"^typedef\b[^;{}]*?\b([A-Za-z]\w*)(?:\[[^]]*\])?(?:\s*__attribute__\s*\(.*\))?;", re.MULTILINE
)
_AUX: Final = re.compile(r"\*/ .*?([A-Za-z]\w*) \(")
_DECLARED: Final = re.compile(r"\b([A-Za-z]\w*)\s*\(")


def generated(folders: Sequence[Path] = (_CUDA,)) -> dict[str, frozenset[str]]:
    """The names that this machine knows, by the kinds of the file; a kind without a source here is missing.

    `sources` holds the versions that they come from.
    """
    found = {**_c_names(), **_opencl_names(), **_cuda_names(folders)}
    return {kind: frozenset(filter(_NAME.fullmatch, names)) for kind, names in found.items()}


def _c_names() -> dict[str, set[str]]:
    every = [name for name in _HEADERS.split() if _preprocessed([name], "-E") is not None]
    text = _preprocessed(every, "-E") or ""
    macros = _DEFINE.findall(_preprocessed(every, "-E", "-dM") or "")
    symbols = {name for name, call in macros if call or name != name.upper()} | set(_TYPEDEF.findall(text))
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        declarations = Path(folder, "declarations")
        _preprocessed(every, "-fsyntax-only", "-aux-info", str(declarations))
        symbols.update(_AUX.findall(declarations.read_text()))
    for library in ("c", "m"):
        symbols.update(_exported(library))
    used = _DEFINE.findall(_preprocessed(_TEXT_HEADERS, "-E", "-dM") or "")
    gcc = subprocess.run([compiler_for(), "-dumpversion"], capture_output=True, text=True, check=True).stdout.strip()
    return {
        "c sources": {f"gcc-{gcc}", "-".join(platform.libc_ver())},
        "c macros": {name for name, call in used if not call},
        "c symbols": symbols,
    }


def _preprocessed(headers: list[str] | tuple[str, ...], *flags: str) -> str | None:
    """What the C compiler says about headers; None when it lacks one."""
    text = "".join(f"#include <{name}.h>\n" for name in headers)
    command = [compiler_for(), "-std=gnu11", "-D_GNU_SOURCE", "-x", "c", *flags, "-"]
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return result.stdout if result.returncode == 0 else None


def _exported(library: str) -> set[str]:
    """The functions and variables of a shared library of the system."""
    file = ctypes.util.find_library(library) or ""
    path = next((folder / file for folder in _library_folders() if (folder / file).is_file()), None)
    if path is None:
        return set()
    lines = subprocess.run(["nm", "-D", "--defined-only", str(path)], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in lines.splitlines()}


def _library_folders() -> list[Path]:
    printed = subprocess.run([compiler_for(), "-print-search-dirs"], capture_output=True, text=True, check=True).stdout
    listed = next(line for line in printed.splitlines() if line.startswith("libraries: ="))
    return [Path(folder) for folder in listed.removeprefix("libraries: =").split(":")]


def _opencl_names() -> dict[str, set[str]]:
    spec = find_spec("pocl_binary_distribution")
    if spec is None or spec.origin is None:
        return {}
    files = sorted(Path(spec.origin).parent.rglob("opencl-c*.h"))
    text = "".join(_without_comments(file.read_text()) for file in files)
    macros = _DEFINE.findall(text)
    return {
        "opencl sources": {f"pocl-{version('pocl_binary_distribution')}"},
        "opencl macros": {name for name, call in macros if not call},
        "opencl symbols": {*_DECLARED.findall(text), *_TYPEDEF.findall(text), *(name for name, call in macros if call)},
    }


def _cuda_names(folders: Sequence[Path]) -> dict[str, set[str]]:
    runtime = next((folder for folder in folders if (folder / "cuda_runtime.h").is_file()), None)
    if runtime is None:
        return {}
    text = "".join(_without_comments(file.read_text(errors="replace")) for file in _cuda_files(runtime))
    functions = re.findall(r"(?:__device__|__\w+_DECL__)[^;{}()]*?\b([A-Za-z]\w*)\s*\(", text)
    structs = re.findall(r"\bstruct\s+(?:__device_builtin__\s+)?(?:__\w+\([^)]*\)\s*)?([A-Za-z]\w*)\s*\{", text)
    number = re.search(r"CUDART_VERSION +(\d+)", (runtime / "cuda_runtime_api.h").read_text())
    return {
        "cuda sources": {f"cuda-{number[1] if number else ''}"},
        "cuda symbols": {*functions, *structs, *_TYPEDEF.findall(text)},
    }


def _cuda_files(folder: Path) -> list[Path]:
    """The headers that every program in CUDA includes, as far as they declare what runs on devices."""
    names = ("device_functions", "device_double_functions", "math_functions", "sm_*_intrinsics", "sm_*_functions")
    return sorted(
        path
        for place in (folder, folder / "crt")
        for name in (*names, "vector_types", "vector_functions", "device_atomic_functions", "texture_*", "surface_*")
        for suffix in (".h", ".hpp")
        for path in place.glob(name + suffix)
    )


def _without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)


def main() -> None:
    folders = [Path(folder) for folder in sys.argv[1:]] or [_CUDA]
    parts: list[str] = []
    for kind, names in generated(folders).items():
        kept = frozenset[str]() if kind.endswith("sources") else reserved(kind)
        parts.append(f"[{kind}]\n{textwrap.fill(' '.join(sorted(names | kept)), 120, break_on_hyphens=False)}\n")
    RESERVED_FILE.write_text("".join(parts))


if __name__ == "__main__":
    main()
