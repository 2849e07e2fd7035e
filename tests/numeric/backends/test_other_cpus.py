"""Programs compiled for CPUs of several kinds: the vectors are those of the CPU, and none is wider."""

import re
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te
from weft.te import ops

EXAMPLE = Path(__file__).parents[3] / "examples" / "mm_relu.mlir"
ELF_X86_64, ELF_AARCH64, MACH_O_ARM64 = 62, 183, 0x0100000C


@dataclass(frozen=True)
class Cpu:
    """What assembly for a CPU has, and what it must not have. `machine`: the number in the header of its objects."""

    name: str
    vectors: str
    wider: str
    fused: str
    machine: int


CPUS = (
    Cpu("x86-64", r"%xmm\d+", r"%[yz]mm\d+|\bvmov|%xmm(1[6-9]|2\d|3\d)", r"\bmulps\b", ELF_X86_64),
    Cpu("haswell", r"%ymm\d+", r"%zmm\d+|%[xy]mm(1[6-9]|2\d|3\d)", r"\bvfmadd\w+ps\b.*%ymm", ELF_X86_64),
    Cpu("skylake-avx512", r"%zmm\d+", r"%tmm\d+", r"\bvfmadd\w+ps\b.*%zmm", ELF_X86_64),
    Cpu("apple-m1", r"\bv\d+\.4s\b|\bq\d+\b", r"\bz\d+\.[bhsd]\b", r"\bfmla\b", MACH_O_ARM64),
    Cpu("neoverse-v1", r"\bv\d+\.4s\b|\bq\d+\b|\bz\d+\.s\b", r"\bz[at]\d", r"\bfmla\b", ELF_AARCH64),
)


def matmul() -> ModuleOp:
    a, b = te.placeholder((256, 192), name="A"), te.placeholder((192, 320), name="B")
    k = te.reduce_axis((0, 192), name="k")
    c = te.compute((256, 320), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_func([a, b, c], name="matmul")


def convolution() -> ModuleOp:
    x, w = te.placeholder((1, 16, 30, 30), name="X"), te.placeholder((32, 16, 3, 3), name="W")
    c, r, s = (te.reduce_axis((0, n), name=name) for n, name in ((16, "c"), (3, "r"), (3, "s")))
    y = te.compute(
        (1, 32, 28, 28),
        lambda n, f, i, j: te.sum(x[n, c, i + r, j + s] * w[f, c, r, s], axis=[c, r, s]),
        name="Y",
    )
    return te.create_func([x, w, y], name="convolution")


def softmax() -> ModuleOp:
    x = te.placeholder((64, 256), name="X")
    k, r = te.reduce_axis((0, 256), name="k"), te.reduce_axis((0, 256), name="r")
    most = te.compute((64,), lambda i: te.max(x[i, k], axis=k), name="most")
    e = te.compute((64, 256), lambda i, j: te.exp(x[i, j] - most[i]), name="E")
    total = te.compute((64,), lambda i: te.sum(e[i, r], axis=r), name="total")
    y = te.compute((64, 256), lambda i, j: e[i, j] / total[i], name="Y")
    return te.create_func([x, y], name="softmax")


def elementwise() -> ModuleOp:
    x, y = te.placeholder((1000,), name="X"), te.placeholder((1000,), name="Y")
    z = te.compute((1000,), lambda i: te.max(x[i] * y[i] + 1.0, 0.0), name="Z")
    return te.create_func([x, y, z], name="elementwise")


PROGRAMS = {make.__name__: make for make in (matmul, convolution, softmax, elementwise)}
"""Programs that are left to the default schedule."""


@cache
def compiled(program: str, cpu: str) -> weft.Library:
    module = weft.parse_file(EXAMPLE) if program == "mm_relu" else PROGRAMS[program]()
    return weft.build(module, target=f"llvm -mcpu={cpu} -num-threads=2")


@pytest.mark.parametrize("program", ["mm_relu", *PROGRAMS])
@pytest.mark.parametrize("cpu", CPUS, ids=lambda cpu: cpu.name)
def test_vectors_are_those_of_the_cpu(cpu: Cpu, program: str) -> None:
    library = compiled(program, cpu.name)
    if program in PROGRAMS and not library.trace:
        pytest.skip(f"no default schedule applies to {program}")
    text = library.get_source("asm")
    assert re.search(cpu.vectors, text), "no vectors"
    wider = re.search(cpu.wider, text)
    assert wider is None, f"what {cpu.name} lacks: {wider}"
    if program in ("mm_relu", "matmul"):
        assert re.search(cpu.fused, text), "no multiplications of vectors"


@pytest.mark.parametrize("cpu", CPUS, ids=lambda cpu: cpu.name)
def test_the_kernel_of_a_matmul_stays_in_registers(cpu: Cpu) -> None:
    """The loop that holds the most multiplications reads and writes nothing on the stack: no results are spilled."""
    text = compiled("matmul", cpu.name).get_source("asm")
    multiplies = r"\bvfmadd\w+ps\b|\bmulps\b|\bfmla\b"
    parts = re.split(r"\n(?=\.?LBB\w+:)", text)
    kernel = max(parts, key=lambda part: len(re.findall(multiplies, part)))
    assert len(re.findall(multiplies, kernel)) >= 8
    assert re.search(r"\(%r[sb]p\)|\[sp\b|\[x29\b", kernel) is None, kernel


@pytest.mark.parametrize("cpu", ["znver4", "sapphirerapids", "haswell"])
def test_moves_of_bfloat16(cpu: str) -> None:
    """LLVM 22 dies of shuffles of `bfloat` for a Zen 4, which it makes of loops over small arrays itself."""
    for shape in ((3, 4, 5), (2, 9, 7), (5, 3)):
        x = te.placeholder(shape, "bfloat16", name="x")
        module = te.create_func([x, ops.transpose(x)], name="f")
        library = weft.build(module, f"llvm -mtriple=x86_64-unknown-linux-gnu -mcpu={cpu}", default_schedule=False)
        assert "bfloat" not in library.get_source("ll-opt")
        assert re.search(r"\bret[lq]?\b", library.get_source("asm"))


@pytest.mark.parametrize("cpu", CPUS, ids=lambda cpu: cpu.name)
def test_objects_are_for_the_cpu(cpu: Cpu, tmp_path: Path) -> None:
    data = compiled("mm_relu", cpu.name).export(tmp_path / "f.o").read_bytes()
    if data[:4] == b"\x7fELF":
        (machine,) = struct.unpack_from("<H", data, 18)
    else:
        magic, machine = struct.unpack_from("<II", data)
        assert magic == 0xFEEDFACF
    assert machine == cpu.machine


@pytest.mark.parametrize("features", ["-avx2,-fma", "-fma"])
def test_features_that_are_off_are_not_used(features: str) -> None:
    target = f"llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell -mattr={features}"
    text = weft.build(weft.parse_file(EXAMPLE), target=target).get_source("asm")
    assert "vfmadd" not in text
    assert "%ymm" in text
