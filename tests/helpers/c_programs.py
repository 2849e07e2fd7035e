"""Runs low modules as C: printed, compiled with sanitizers by the system's compiler, called in another process.

A run that reads or writes out of bounds, or does what C leaves undefined, ends with the report of a sanitizer.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from weft.backends.c.emit import emit_module
from weft.backends.c_family.emitter import KernelSource
from weft.passes.low.low_legalize import LowLegalizePass
from weft.support.target import Target

FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-g", "-fPIC", "-shared")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler (cc, gcc, clang) is on the PATH")


@dataclass
class Call:
    """A call of a function: arrays are passed by their address and may be written, numbers by value."""

    function: str
    arguments: list[Any]


def merged(modules: Sequence[ModuleOp]) -> ModuleOp:
    """One module of the functions named "f" of several: `f0`, `f1`, ..."""
    ops = []
    for number, module in enumerate(modules):
        for op in module.clone().body.block.ops:
            if isinstance(op, FuncOp) and op.sym_name.data == "f":
                op.properties["sym_name"] = StringAttr(f"f{number}")
                op.detach()
                ops.append(op)
    return ModuleOp(ops)


def c_source(module: ModuleOp) -> KernelSource:
    """The C of a copy of a module at low level."""
    copy = module.clone()
    LowLegalizePass("c").apply(Context(), copy)
    copy.verify()
    return emit_module(copy, Target("c"))


def run_calls(source: KernelSource, calls: Sequence[Call], folder: Path, flags: Sequence[str] = ()) -> None:
    """Call the functions of a C text in order; arrays among the arguments are updated.

    Raises `AssertionError` with the report of the compiler or the sanitizers.
    """
    assert COMPILER is not None
    (folder / "program.c").write_text(source.text)
    library = folder / "program.so"
    command = [COMPILER, *FLAGS, *SANITIZERS, *flags, str(folder / "program.c"), "-o", str(library), "-lm"]
    compiled = subprocess.run(command, capture_output=True, text=True, check=False)
    assert compiled.returncode == 0, f"{compiled.stderr}\n{source.text}"
    values = {}
    kinds = []
    for number, call in enumerate(calls):
        for position, argument in enumerate(call.arguments):
            values[f"{number}_{position}"] = np.asarray(argument)
        kinds.append(f"{source.symbols[call.function]}:{len(call.arguments)}")
    np.savez(folder / "in.npz", calls=np.array(kinds), **values)
    runtime = subprocess.run([COMPILER, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    environment = {
        **os.environ,
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0",
        "LD_PRELOAD": runtime.stdout.strip(),
    }
    runner = Path(__file__).with_name("run_c_calls.py")
    ran = subprocess.run(
        [sys.executable, str(runner), str(library), str(folder)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert ran.returncode == 0, f"{ran.stderr[-6000:]}\n{ran.stdout[-2000:]}"
    results = np.load(folder / "out.npz")
    for number, call in enumerate(calls):
        for position, argument in enumerate(call.arguments):
            if isinstance(argument, np.ndarray):
                result: NDArray[Any] = results[f"{number}_{position}"]
                argument[...] = result.view(argument.dtype).reshape(argument.shape)


def run_module(module: ModuleOp, calls: Sequence[Call], flags: Sequence[str] = ()) -> KernelSource:
    """Call functions of a module at low level as C; returns the text."""
    source = c_source(module)
    with tempfile.TemporaryDirectory(prefix="weft-c-") as folder:
        run_calls(source, calls, Path(folder), flags)
    return source
