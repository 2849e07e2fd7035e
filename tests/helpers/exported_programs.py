"""Programs in C that call what weft exports: compiled and run, under valgrind or a sanitizer where there is one."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
VALGRIND = shutil.which("valgrind")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler (cc, gcc, clang) is on the PATH")
needs_valgrind = pytest.mark.skipif(VALGRIND is None, reason="valgrind is not on the PATH")
WARNINGS = ("-std=gnu99", "-Wall", "-Wextra", "-Werror")


def compile_c(main: str, linked: Sequence[Path], folder: Path, *flags: str) -> Path:
    """A program of the text `main` and exported files; headers are found in `folder`."""
    assert COMPILER is not None
    source, program = folder / "main.c", folder / "program"
    source.write_text(main)
    search = [f"-L{folder}", f"-Wl,-rpath,{folder}"]
    files = [str(path) for path in linked]
    command = [COMPILER, *WARNINGS, "-g", *flags, f"-I{folder}", str(source), *files, *search, "-lm", "-lpthread"]
    compiled = subprocess.run([*command, "-o", str(program)], capture_output=True, text=True, check=False)
    assert compiled.returncode == 0, compiled.stderr
    return program


def run_program(program: Path, *arguments: str, prefix: Sequence[str] = (), **environment: str) -> str:
    """What the program prints; it must end well. `prefix`: a command to run it under."""
    ran = subprocess.run(
        [*prefix, str(program), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
        timeout=100,
    )
    assert ran.returncode == 0, f"exit status {ran.returncode}\n{ran.stdout[-2000:]}\n{ran.stderr[-6000:]}"
    return ran.stdout
