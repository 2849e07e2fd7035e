"""What the C compiler of the system does for exports: it links objects to shared libraries and archives."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from weft.runtime.c_sources import compiler_for
from weft.support.errors import CompileError
from weft.support.machine import host_triple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.support.target import Target


def shared_library(
    objects: Sequence[bytes], sources: Sequence[str], path: Path, target: Target, compiler: str
) -> bytes:
    """Objects, and C sources that come with them, linked to the shared library that is to lie at `path`.

    The library is never unloaded, for its threads may sleep in it. On ELF systems it has no name of its own (soname):
    a program that is linked with a file finds that file, one that is linked with `-L`, `-l` finds its file name on the
    search path. Raises `CompileError` when there is no compiler, or when something that the code calls is nowhere.
    """
    driver = _compiler(target, compiler, f"'{path}' is linked by the system's C compiler")
    apple = "apple" in target.triple or "darwin" in target.triple
    named = ["-Xlinker", "-install_name", "-Xlinker", f"@rpath/{path.name}"] if apple else []
    strict = [] if apple else ["-Wl,-z,defs", "-Wl,-z,nodelete", "-Wl,-z,noexecstack"]
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        files = _files(objects, sources, Path(folder), target, driver)
        libraries = ["-lm"] if apple else ["-lm", "-lpthread"]
        # Tools get paths of ours alone: a name that a user chose may look like an option or a response file.
        linked = Path(folder, "linked.so")
        _run([driver, "-shared", "-o", str(linked), *files, *named, *strict, *libraries], f"'{path}'")
        return linked.read_bytes()


def join_objects(objects: Sequence[bytes], sources: Sequence[str], target: Target, compiler: str) -> bytes:
    """One object of an object and C sources. Raises `CompileError` when there is no compiler."""
    if len(objects) == 1 and not sources:
        return objects[0]
    driver = _compiler(target, compiler, "the program comes with a C source")
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        files = _files(objects, sources, Path(folder), target, driver)
        joined = Path(folder, "joined.o")
        _run([driver, "-r", "-nostdlib", "-o", str(joined), *files], joined.name)
        return joined.read_bytes()


def archive(object_code: bytes, path: Path) -> bytes:
    """The static library of one object that is to lie at `path`. Raises `CompileError` when the system has no `ar`."""
    tool = shutil.which("ar") or shutil.which("llvm-ar")
    if tool is None:
        raise CompileError(f"'{path}' is made by ar, which is not on the PATH: export an object (.o)")
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        member, made = Path(folder, "program.o"), Path(folder, "program.a")
        member.write_bytes(object_code)
        _run([tool, "rcs", str(made), str(member)], f"'{path}'")
        return made.read_bytes()


def _compiler(target: Target, given: str, purpose: str) -> str:
    if given:
        found = shutil.which(given)
        if found is None:
            raise CompileError(f"the compiler '{given}' is not on the PATH")
        return found
    if target.triple != host_triple():
        raise CompileError(
            f"{purpose}, which makes code for {host_triple()}, not for {target.triple}: name a cross compiler, or "
            "export an object (.o)"
        )
    return compiler_for(purpose=purpose)


def _files(objects: Sequence[bytes], sources: Sequence[str], folder: Path, target: Target, driver: str) -> list[str]:
    """Objects and compiled sources as files in `folder`."""
    files: list[str] = []
    for number, data in enumerate(objects):
        path = folder / f"code{number}.o"
        path.write_bytes(data)
        files.append(str(path))
    native = ["-march=native"] if target.is_process else []
    for number, source in enumerate(sources):
        is_cxx = 'extern "C"' in source
        path = folder / f"source{number}{'.cc' if is_cxx else '.c'}"
        path.write_text(source, encoding="utf-8")
        built = str(path.with_suffix(".o"))
        compiler = compiler_for(True) if is_cxx else driver
        _run([compiler, "-O3", *native, "-ffp-contract=fast", "-fPIC", "-c", str(path), "-o", built], path.name)
        files.append(built)
    return files


def _run(command: list[str], name: str) -> None:
    """Run a tool. Raises `CompileError` with the head of what it says when it fails."""
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if result.returncode:
        lines = [line for line in result.stderr.splitlines() if line.strip()]
        shown = "\n  ".join(lines[:8])
        raise CompileError(f"{Path(command[0]).name} cannot make {name}:\n  {shown}")
