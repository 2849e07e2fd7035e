"""The kernel of a matrix product in assembly for several CPUs: vectors, all sums in registers, nothing on the stack."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import pytest
from assembly import innermost_loops

import weft
from weft import te
from weft.backends.llvm.compile import optimize_ir


@dataclass(frozen=True)
class Cpu:
    """A CPU, its instruction that multiplies vectors of floats, and the register tile it should get: rows, vectors."""

    name: str
    multiply: str
    rows: int
    vectors: int
    steps: int = 2
    """Steps of the reduction in an iteration of the innermost loop."""


CPUS = (
    Cpu("x86-64", r"\bmulps\s.*%xmm", 4, 2, 1),
    Cpu("haswell", r"\bvfmadd\w+ps\s.*%ymm", 6, 2),
    Cpu("skylake-avx512", r"\bvfmadd\w+ps\s.*%zmm", 6, 4),
    Cpu("znver4", r"\bvfmadd\w+ps\s.*%zmm", 6, 4),
    Cpu("apple-m1", r"\bfmla(\.4s\s|\s.*\.4s)", 6, 4),
    Cpu("neoverse-v1", r"\bfmla(\.4s\s|\s.*\.4s)", 6, 4),
)


@cache
def library(cpu: str, m: int, n: int) -> weft.Library:
    a, b = te.placeholder((m, 192), name="A"), te.placeholder((192, n), name="B")
    k = te.reduce_axis((0, 192), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return weft.build(te.create_func([a, b, c], name="matmul"), target=f"llvm -mcpu={cpu} -num-threads=1")


def hot_loop(cpu: Cpu, m: int, n: int) -> tuple[list[str], int]:
    """The innermost loop with the most multiplications of vectors, and their number."""
    text = library(cpu.name, m, n).get_source("asm")
    counted = [(sum(bool(re.search(cpu.multiply, line)) for line in loop), loop) for loop in innermost_loops(text)]
    count, loop = max(counted, key=lambda pair: pair[0])
    return loop, count


@pytest.mark.parametrize("size", [(240, 320), (241, 319)], ids=["even", "odd"])
@pytest.mark.parametrize("cpu", CPUS, ids=lambda cpu: cpu.name)
def test_the_tile_stays_in_registers(cpu: Cpu, size: tuple[int, int]) -> None:
    loop, count = hot_loop(cpu, *size)
    text = "\n".join(loop)
    assert count == cpu.steps * cpu.rows * cpu.vectors, text
    assert not re.search(r"\(%rsp|\[sp\b", text), text
    # Besides the products: a load for each row and each vector of the right factor, where one instruction multiplies
    # and adds, and a few for the loop.
    if cpu.name != "x86-64":
        assert len(loop) <= count + cpu.steps * (cpu.rows + cpu.vectors) + 6, text


@pytest.mark.parametrize("cpu", CPUS, ids=lambda cpu: cpu.name)
def test_no_temporary_is_left_on_the_stack(cpu: Cpu) -> None:
    built = library(cpu.name, 240, 320)
    assert " alloca " not in optimize_ir(built.get_source("ll"), built.target)


def test_loops_are_found() -> None:
    text = ".LBB0_1:\n\tvfmadd231ps %zmm0, %zmm1, %zmm2\n\tjne\t.LBB0_1\n.LBB0_2:\n\tjne\t.LBB0_1\n\tretq\n"
    assert innermost_loops(text) == [[".LBB0_1:", "\tvfmadd231ps %zmm0, %zmm1, %zmm2", "\tjne\t.LBB0_1"]]
