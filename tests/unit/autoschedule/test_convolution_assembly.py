"""The kernels of convolutions and of a softmax in assembly for several CPUs: vectors, all sums in registers."""

from __future__ import annotations

import re

import pytest
from assembly import innermost_loops

import weft
from weft import te
from weft.te import ops

VECTORS = {
    "haswell": r"\bvfmadd\w+ps\s.*%ymm",
    "znver3": r"\bvfmadd\w+ps\s.*%ymm",
    "skylake-avx512": r"\bvfmadd\w+ps\s.*%zmm",
}
# Channels, rows, filters, extent of the window, groups; vectors that are multiplied in an iteration, at least.
CONVOLUTIONS = {
    "packed": ((64, 14, 64, 3, 1), 9),
    "filters in lanes": ((64, 56, 64, 3, 1), 9),
    "windows of one element": ((64, 28, 128, 1, 1), 9),
    "depthwise": ((32, 56, 32, 3, 32), 36),
}


def hot_loop(library: weft.Library, multiply: str) -> tuple[list[str], int]:
    """The innermost loop with the most multiplications of vectors, and their number."""
    loops = innermost_loops(library.get_source("asm"))
    counted = [(sum(bool(re.search(multiply, line)) for line in loop), loop) for loop in loops]
    count, loop = max(counted, key=lambda pair: pair[0])
    return loop, count


def target(cpu: str) -> str:
    caches = "-l1-bytes=32768 -l2-bytes=524288 -l3-bytes=16777216"
    return f"llvm -mtriple=x86_64-unknown-linux-gnu -mcpu={cpu} -num-threads=1 {caches}"


@pytest.mark.parametrize("cpu", VECTORS)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_sums_of_a_convolution_stay_in_registers(name: str, cpu: str) -> None:
    (channels, rows, filters, window, groups), least = CONVOLUTIONS[name]
    x = te.placeholder((1, channels, rows, rows), name="X")
    w = te.placeholder((filters, channels // groups, window, window), name="W")
    y = ops.conv2d(x, w, padding=window // 2, groups=groups)
    loop, count = hot_loop(weft.build(te.create_func([x, w, y], name="f"), target=target(cpu)), VECTORS[cpu])
    text = "\n".join(loop)
    assert count >= least, text
    assert "(%rsp" not in text, text


def test_convolutions_of_bytes_are_dot_products() -> None:
    """In blocks of channels, of which four lie side by side in the kernels."""
    x = te.placeholder((1, 4, 14, 14, 16), "uint8", name="X")
    w = te.placeholder((4, 4, 3, 3, 4, 16, 4), "int8", name="W")
    y = ops.conv2d(x, w, data_layout="NCHWc", kernel_layout="OIHWioi", out_dtype="int32")
    library = weft.build(te.create_func([x, w, y], name="f"), target=target("znver4"))
    loop, count = hot_loop(library, r"\bvpdpbusd\b.*%zmm")
    text = "\n".join(loop)
    assert count >= 9, text
    assert "(%rsp" not in text, text


@pytest.mark.parametrize("cpu", ["haswell", "znver3"])
def test_constants_of_a_softmax_stay_in_registers(cpu: str) -> None:
    """All but the maximum of the row, perhaps: with the constants of the exponential there are more values than 16
    registers. The temporary row is on the stack."""
    x = te.placeholder((256, 1024), name="X")
    loop, count = hot_loop(weft.build(te.create_func([x, ops.softmax(x)], name="f"), target=target(cpu)), VECTORS[cpu])
    text = "\n".join(loop)
    assert count >= 16, text
    assert len(re.findall(r"(?m)\b-?\d*\(%rsp\), %ymm", text)) <= 1, text
    assert not re.search(r"%ymm\d+, -?\d*\(%rsp\)", text), text
