"""The kernel of a product of bytes in assembly for several CPUs: their instructions for dot products, all sums in
registers, nothing on the stack."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import pytest
from assembly import innermost_loops

import weft
from weft import te
from weft.te import ops


@dataclass(frozen=True)
class Cpu:
    """A CPU, the instruction that multiplies, how many of them an iteration has, and others at most."""

    name: str
    instruction: str
    dots: int
    others: int


CPUS = (
    Cpu("cascadelake", r"\bvpdpbusd\s.*%zmm", 6 * 4, 14),
    Cpu("alderlake", r"\bvpdpbusd\s.*%ymm", 6 * 2, 13),
    Cpu("sierraforest", r"\bvpdpbssd\s.*%ymm", 6 * 2, 14),
    # Two instructions each, and factors of 16 bits.
    Cpu("skylake-avx512", r"\bvpmaddwd\s.*%zmm", 5 * 4, 20 + 15),
    Cpu("haswell", r"\bvpmaddwd\s.*%ymm", 4 * 2, 8 + 12),
    Cpu("x86-64", r"\bpmaddwd\s.*%xmm", 4 * 2, 8 + 19),
    Cpu("neoverse-v1", r"\bsdot\b", 6 * 4, 32),
    Cpu("apple-m1", r"\bsdot\b", 6 * 4, 32),
)


@cache
def library(cpu: str, m: int, n: int, k: int) -> weft.Library:
    a, b = te.placeholder((m, k), "int8", name="A"), te.placeholder((k, n), "int8", name="B")
    product = te.create_func([a, b, ops.matmul(a, b, out_dtype="int32")], name="product")
    return weft.build(product, target=f"llvm -mcpu={cpu} -num-threads=1")


@pytest.mark.parametrize("size", [(240, 320, 192), (241, 319, 191)], ids=["even", "odd"])
@pytest.mark.parametrize("cpu", CPUS, ids=lambda cpu: cpu.name)
def test_the_tile_stays_in_registers(cpu: Cpu, size: tuple[int, int, int]) -> None:
    text = library(cpu.name, *size).get_source("asm")
    counted = [(sum(bool(re.search(cpu.instruction, line)) for line in loop), loop) for loop in innermost_loops(text)]
    count, loop = max(counted, key=lambda pair: pair[0])
    shown = "\n".join(loop)
    assert count == cpu.dots, shown
    assert len(loop) <= cpu.dots + cpu.others, shown
    assert not re.search(r"\(%rsp|\[sp\b", shown), shown


def test_without_the_feature() -> None:
    """It is asked of the target, not of the name of the CPU."""
    a, b = te.placeholder((64, 64), "int8", name="A"), te.placeholder((64, 64), "int8", name="B")
    product = te.create_func([a, b, ops.matmul(a, b, out_dtype="int32")], name="product")
    text = weft.build(product, target="llvm -mcpu=cascadelake -mattr=-avx512vnni").get_source("asm")
    assert "vpdpbusd" not in text
    assert re.search(r"\bvpmaddwd\s.*%zmm", text)
