"""Exported objects for AArch64 and RISC-V, called from C under qemu-user, against NumPy.

`make test-all` runs these. They need Debian's qemu-user, gcc-aarch64-linux-gnu and gcc-riscv64-linux-gnu, or what other
systems call them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft import te
from weft.te import ops

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdsl.dialects.builtin import ModuleOp

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Machine:
    """A machine to emulate. `vectors`: how its assembly names vectors; `dot`: its dot product of bytes."""

    name: str
    target: str
    emulator: str
    compiler: str
    vectors: str = ""
    dot: str = ""

    def __str__(self) -> str:
        return self.name

    @property
    def cpu(self) -> str:
        """What the emulator calls it: a CPU with everything."""
        return "max" if self.emulator == "qemu-aarch64" else "rv64,v=true"


def aarch64(cpu: str, dot: str = "") -> Machine:
    target = f"llvm -mtriple=aarch64-unknown-linux-gnu -mcpu={cpu} -num-threads=4"
    return Machine(cpu, target, "qemu-aarch64", "aarch64-linux-gnu-gcc", r"\bv\d+\.(4s|4h)\b", dot)


def riscv64(name: str, options: str, vectors: str = "") -> Machine:
    target = f"llvm -mtriple=riscv64-unknown-linux-gnu {options} -num-threads=4"
    return Machine(name, target, "qemu-riscv64", "riscv64-linux-gnu-gcc", vectors)


MACHINES = (
    aarch64("cortex-a72"),
    aarch64("neoverse-n1", "sdot"),
    aarch64("neoverse-v1", "sdot"),
    riscv64("rv64gc", "-mcpu=sifive-u74"),
    riscv64("rv64gcv", "-mcpu=sifive-u74 -mattr=+v", r"\bvseti?vli\b"),
)

MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "program.h"

static void *load(const char *path, size_t bytes) {{
  void *data = aligned_alloc(64, bytes / 64 * 64 + 64);
  FILE *file = fopen(path, "rb");
  if (!data || !file || fread(data, 1, bytes, file) != bytes) exit(2);
  fclose(file);
  return data;
}}

static void save(const char *path, const void *data, size_t bytes) {{
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file)) exit(3);
}}

int main(void) {{
{body}
  return 0;
}}
"""


def run(machine: Machine, module: ModuleOp, arrays: Sequence[Any], folder: Path, shared: bool = False) -> weft.Library:
    """Build `module` for a machine, and call its only function there from C; all arrays are written back."""
    for tool in (machine.emulator, machine.compiler):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not on the PATH")
    library = weft.build(module, target=machine.target)
    library.export(folder / "program.h")
    file = library.export(folder / ("libprogram.so" if shared else "program.o"), compiler=machine.compiler)
    (name,) = library
    pointers = ", ".join(f"p{at}" for at in range(len(arrays)))
    lines = [f'  void *p{at} = load("{folder}/{at}.bin", {array.nbytes});' for at, array in enumerate(arrays)]
    lines += [f"  for (int repeat = 0; repeat < 3; repeat++) {name}({pointers});"]
    lines += [f'  save("{folder}/{at}.bin", p{at}, {array.nbytes});' for at, array in enumerate(arrays)]
    (folder / "main.c").write_text(MAIN.format(body="\n".join(lines)))
    for at, array in enumerate(arrays):
        array.tofile(folder / f"{at}.bin")
    linking = [f"-Wl,-rpath,{folder}"] if shared else ["-static"]
    command = [machine.compiler, "-O1", *linking, str(folder / "main.c"), str(file), "-lm", "-lpthread"]
    _checked([*command, "-o", str(folder / "program")])
    root = f"/usr/{machine.compiler.removesuffix('-gcc')}"
    _checked(
        [
            machine.emulator,
            "-cpu",
            "max" if "aarch64" in machine.emulator else "rv64,v=true",
            "-L",
            root,
            str(folder / "program"),
        ]
    )
    for at, array in enumerate(arrays):
        array[...] = np.fromfile(folder / f"{at}.bin", array.dtype).reshape(array.shape)
    return library


def _checked(command: Sequence[str]) -> None:
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert ran.returncode == 0, f"{command[0]}: status {ran.returncode}\n{ran.stdout[-2000:]}\n{ran.stderr[-6000:]}"


def random(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


Program = tuple["ModuleOp", "list[Any]", "Callable[..., Any]"]


def matmul() -> Program:
    a, b = te.placeholder((61, 67), name="A"), te.placeholder((67, 131), name="B")
    module = te.create_func([a, b, ops.relu(ops.matmul(a, b))], name="f")
    return module, [random(61, 67), random(67, 131)], lambda x, y: np.maximum(x @ y, 0)


def convolution() -> Program:
    x, w = te.placeholder((1, 16, 15, 17), name="X"), te.placeholder((32, 16, 3, 3), name="W")
    module = te.create_func([x, w, ops.conv2d(x, w, padding=1)], name="f")

    def meaning(image: Any, weights: Any) -> Any:
        padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1))).astype(np.float64)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
        return np.einsum("nchwrs,fcrs->nfhw", windows, weights)

    return module, [random(1, 16, 15, 17), random(32, 16, 3, 3)], meaning


def softmax() -> Program:
    x = te.placeholder((37, 129), name="X")

    def meaning(a: Any) -> Any:
        e = np.exp(a.astype(np.float64) - a.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    return te.create_func([x, ops.softmax(x)], name="f"), [random(37, 129)], meaning


def functions() -> Program:
    """Elementary functions of vectors."""
    x = te.placeholder((1003,), name="X")
    y = te.compute((1003,), lambda i: te.exp(te.tanh(x[i])) + te.log(te.abs(x[i]) + 0.5) * te.erf(x[i]), name="Y")
    z = te.compute((1003,), lambda i: te.power(te.abs(x[i]), 1.5) + te.max(y[i], -x[i]), name="Z")

    def meaning(a: Any) -> Any:
        from math import erf

        a = a.astype(np.float64)
        first = np.exp(np.tanh(a)) + np.log(np.abs(a) + 0.5) * np.array([erf(v) for v in a])
        return np.abs(a) ** 1.5 + np.maximum(first, -a)

    return te.create_func([x, z], name="f"), [3 * random(1003)], meaning


def halves() -> Program:
    """Conversions of 16-bit floats, by instructions or by functions of the object."""
    x = te.placeholder((515,), "float16", name="X")
    y = te.compute((515,), lambda i: x[i] * x[i] + x[i], name="Y")
    a = random(515).astype(np.float16)
    return te.create_func([x, y], name="f"), [a], lambda v: (v * v + v).astype(np.float32)


def reductions() -> Program:
    """Integers, a maximum with NaN and its place."""
    x = te.placeholder((40, 333), name="X")
    a = random(40, 333)
    a[3, 5] = np.nan
    k = te.reduce_axis((0, 333), name="k")
    most = te.compute((40,), lambda i: te.max(x[i, k], axis=k), name="M")
    return te.create_func([x, most], name="f"), [a], lambda v: v.max(1)


PROGRAMS = {make.__name__: make for make in (matmul, convolution, softmax, functions, halves, reductions)}


@cache
def reference(name: str) -> tuple[list[Any], Any]:
    _, inputs, meaning = PROGRAMS[name]()
    return inputs, meaning(*inputs)


@pytest.mark.parametrize("machine", MACHINES, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(machine: Machine, name: str, tmp_path: Path) -> None:
    inputs, expected = reference(name)
    out = np.full(expected.shape, np.nan, np.float16 if name == "halves" else np.float32)
    library = run(machine, PROGRAMS[name]()[0], [*(a.copy() for a in inputs), out], tmp_path)
    assert re.search(machine.vectors, library.get_source("asm"))
    tolerance = 2e-3 if name == "halves" else 2e-5
    np.testing.assert_allclose(out.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("machine", MACHINES, ids=str)
@pytest.mark.parametrize("types", ["int8 int8", "int16 int16"])
def test_dot_products(machine: Machine, types: str, tmp_path: Path) -> None:
    left, right = types.split()
    a, b = te.placeholder((35, 70), left, name="A"), te.placeholder((70, 47), right, name="B")
    module = te.create_func([a, b, ops.matmul(a, b, out_dtype="int32")], name="f")
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-128, 128, shape).astype(t) for shape, t in (((35, 70), left), ((70, 47), right)))
    out = np.zeros((35, 47), np.int32)
    library = run(machine, module, [x, y, out], tmp_path)
    np.testing.assert_array_equal(out, x.astype(np.int32) @ y.astype(np.int32))
    if machine.dot and left == "int8":
        assert machine.dot in library.get_source("asm")


def rows_in_parallel() -> ModuleOp:
    """Two nests with a temporary between them."""
    x = te.placeholder((53, 70), name="X")
    doubled = te.compute((53, 70), lambda i, j: x[i, j] * 2.0, name="doubled")
    y = te.compute((53, 70), lambda i, j: doubled[52 - i, j] + 1.0, name="Y")
    sch = weft.Schedule(te.create_func([x, y], name="f"))
    for block in ("doubled", "Y"):
        i, j = sch.get_loops(block)
        sch.parallel(i)
        sch.vectorize(j)
    return sch.mod


@pytest.mark.parametrize("shared", [False, True], ids=["object", "shared library"])
@pytest.mark.parametrize("machine", MACHINES[1:4:2], ids=str)
def test_threads(machine: Machine, shared: bool, tmp_path: Path) -> None:
    x, out = random(53, 70), np.full((53, 70), np.nan, np.float32)
    library = run(machine, rows_in_parallel(), [x, out], tmp_path, shared)
    assert "@weft_parallel_for" in library.get_source("ll")
    np.testing.assert_array_equal(out, 2 * x[::-1] + 1)
