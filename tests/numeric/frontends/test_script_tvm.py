"""Programs as TVM 0.27 prints them: regions with names, data in regions and conditions, axes and loops from elsewhere,
lets, sizes as text. Each is printed and read again, verified, interpreted and compiled, and gives what NumPy gives."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from script_roundtrip import check_roundtrip

import weft
from weft.script import parse

Array = np.ndarray[Any, Any]

REGIONS = """
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
    T.func_attr({"tirx.noalias": True})
    # with T.sblock("root"):
    for i, j in T.grid(4, 4):
        with T.sblock("o"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi * 16:vi * 16 + 16, vj * 16:vj * 16 + 16])
            T.writes(B[vi * 16:vi * 16 + 16, vj * 16:vj * 16 + 16])
            As = T.match_buffer(A[vi * 16:vi * 16 + 16, vj * 16:vj * 16 + 16], (16, 16), strides=("s0", "s1"))
            Bs = T.match_buffer(B[vi * 16:vi * 16 + 16, vj * 16:vj * 16 + 16], (16, 16), strides=("t0", "t1"))
            for a, b in T.grid(16, 16):
                with T.sblock("i"):
                    va, vb = T.axis.remap("SS", [a, b])
                    T.reads(As[va, vb])
                    T.writes(Bs[va, vb])
                    Bs[va, vb] = As[va, vb] * T.float32(2.0) + T.Cast("float32", As.strides[0])
"""

INITS = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((32, 48), "float32"), C: T.Buffer((32,), "float32")):
    for i, k in T.grid(4, 6):
        with T.sblock("o"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi * 8:vi * 8 + 8, vk * 8:vk * 8 + 8])
            T.writes(C[vi * 8:vi * 8 + 8])
            Cs = T.match_buffer(C[vi * 8:vi * 8 + 8], (8,), offset_factor=1)
            with T.init():
                for a in range(8):
                    with T.sblock("init"):
                        va = T.axis.spatial(8, a)
                        T.reads()
                        T.writes(Cs[va])
                        Cs[va] = T.float32(0.0)
            for a in range(8):
                with T.sblock("row"):
                    va = T.axis.spatial(8, a)
                    T.reads(Cs[va], A[vi * 8 + va, vk * 8:vk * 8 + 8])
                    T.writes(Cs[va])
                    row = T.match_buffer(A[vi * 8 + va, vk * 8:vk * 8 + 8], (8,), offset_factor=1)
                    for b in range(8):
                        with T.sblock("sum"):
                            vb = T.axis.reduce(8, b)
                            T.reads(Cs[va], row[vb])
                            T.writes(Cs[va])
                            Cs[va] = Cs[va] + row[vb]
"""

SEGMENTS = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((64,), "float32"), P: T.Buffer((17,), "int32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
        with T.sblock("segment"):
            vi = T.axis.spatial(16, i)
            T.reads(P[vi:vi + 2], A[P[vi]:P[vi] + (P[vi + 1] - P[vi])])
            T.writes(B[T.min(vi, 15)])
            B[vi] = T.float32(0.0)
            for k in range(P[vi + 1] - P[vi]):
                B[vi] = B[vi] + A[P[vi] + k]
"""

WHERE = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "float32"), P: T.Buffer((16,), "int32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.sblock("zero"):
            vi = T.axis.spatial(16, i)
            B[vi] = T.float32(7.0)
    for i, k in T.grid(16, 4):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where(P[i] < 5 and i != 3)
            T.reads(A[vi])
            T.writes(B[vi])
            with T.init():
                B[vi] = T.float32(0.0)
            B[vi] = B[vi] + A[vi] * T.Cast("float32", vk)
"""

STARTS = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((12,), "float32"), B: T.Buffer((12,), "float32")):
    # with T.sblock("root"):
    for i in range(2, 10):
        with T.sblock("domain"):
            vi = T.axis.spatial((2, 10), i)
            T.reads(A[vi])
            T.writes(B[vi])
            B[vi] = A[vi]
    for i in range(2, 10):
        with T.sblock("loop"):
            vi = T.axis.remap("S", [i])
            B[vi] = B[vi] + A[vi - 2]
    for i in range(0, 12, 5):
        B[i] = A[i]
    for i in T.serial(1, 12, step=4):
        B[i] = A[i] + A[i - 1]
    for i in range(4):
        with T.sblock("opaque"):
            vi = T.axis.opaque(4, i)
            T.reads(A[vi], B[vi])
            T.writes(B[vi + 1])
            B[vi + 1] = B[vi] + A[vi]
    for i in range(3):
        with T.sblock("scan"):
            vi = T.axis.scan(3, i)
            B[vi] = B[vi] * T.float32(2.0)
"""

LETS = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16, 16), "int32")):
    x: T.let[T.int32] = 3
    for i in range(16):
        y: T.let[T.float32] = A[i]
        z: T.let[T.float32] = A[i] + y
        with T.sblock("r"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(B[vi])
            w: T.let[T.int32] = vi * 2
            B[vi] = A[vi] + y * z + T.Cast("float32", w + x)
    for i, j in T.grid(16, 16):
        with T.sblock("C"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            T.reads()
            T.writes(C[v_i, v_j])
            x_1 = T.int32()
            C[v_i, v_j] = T.Let((v_j + 1) * x_1, where={x_1: v_i * 2})
"""

SYMBOLS = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer(("n", "m"), "float32"), B: T.Buffer(("(n + 3) // 4 * 4", m), "float32"), p: T.int32):
    n, m = T.int32(), T.int32()
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(n, m):
        with T.sblock("B"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            T.reads(A[v_i, v_j])
            T.writes(B[v_i, v_j])
            B[v_i, v_j] = A[v_i, v_j] + T.Cast("float32", p * n)
"""

LARGEST = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8, 32), "float32"), B: T.Buffer((8,), "int32")):
    # with T.sblock("root"):
    at = T.sblock_alloc_buffer((8,), "int32")
    most = T.sblock_alloc_buffer((8,))
    for i, k in T.grid(8, 32):
        with T.sblock("most"):
            v_i, v_k = T.axis.remap("SR", [i, k])
            T.reads(A[v_i, v_k])
            T.writes(at[v_i], most[v_i])
            with T.init():
                at[v_i] = -1
                most[v_i] = T.float32(-340282346638528859811704183484516925440.0)
            v_at: T.let[T.int32] = T.Select(most[v_i] >= A[v_i, v_k], at[v_i], v_k)
            v_most: T.let[T.float32] = T.Select(most[v_i] >= A[v_i, v_k], most[v_i], A[v_i, v_k])
            at[v_i] = v_at
            most[v_i] = v_most
    for i in range(8):
        with T.sblock("B"):
            v_i = T.axis.spatial(8, i)
            T.reads(at[T.max(T.min(T.Div(v_i, 1), 7), 0)])
            T.writes(B[v_i])
            T.attr({"pragma_scope": "seq"})
            B[v_i] = at[T.max(T.min(T.Div(v_i, 1), 7), 0)]
"""

SLICE = """
# from typing import TypeVar
# from tvm.script import tirx as T

n = TypeVar("n")
@T.prim_func(s_tir=True)
def main(A: T.Buffer((n,), "float32"), B: T.Buffer((n - 1,), "float32")):
    T.func_attr({"tirx.noalias": True})
    # with T.sblock("root"):
    for i in range(n - 1):
        with T.sblock("slice"):
            v_i = T.axis.spatial(n - 1, i)
            T.reads(A[T.min(1, n - 1) + v_i])
            T.writes(B[v_i])
            B[v_i] = A[T.min(1, n - 1) + v_i]
"""


def regions(a: Array, b: Array) -> None:
    b[:] = a * 2 + 64


def inits(a: Array, c: Array) -> None:
    c[:] = a.sum(1)


def segments(a: Array, p: Array, b: Array) -> None:
    b[:] = [a[low:high].sum() for low, high in pairwise(p)]


def where(a: Array, p: Array, b: Array) -> None:
    b[:] = np.where((p < 5) & (np.arange(16) != 3), a * 6, 7)


def starts(a: Array, b: Array) -> None:
    b[2:10] = a[2:10] + a[:8]
    b[::5] = a[::5]
    b[1::4] = a[1::4] + a[:-1:4]
    for i in range(4):
        b[i + 1] = b[i] + a[i]
    b[:3] *= 2


def lets(a: Array, b: Array, c: Array) -> None:
    b[:] = a + a * (a + a) + np.arange(16) * 2 + 3
    c[:] = (np.arange(16) + 1) * np.arange(16)[:, None] * 2


def symbols(a: Array, b: Array, p: int) -> None:
    b[: len(a)] = a + p * len(a)


def largest(a: Array, b: Array) -> None:
    b[:] = a.argmax(1)


def slice_(a: Array, b: Array) -> None:
    b[:] = a[1:]


def quarters(*shape: int) -> Array:
    """Sums of their products are exact in any order."""
    return (np.random.default_rng(len(shape)).integers(-8, 9, shape) / 4).astype(np.float32)


POINTERS = np.array([0, 3, 3, 9, 10, 20, 21, 22, 30, 40, 41, 42, 50, 55, 60, 60, 64], np.int32)
CASES: dict[str, tuple[str, Callable[..., None], tuple[Array | int, ...]]] = {
    "regions": (REGIONS, regions, (quarters(64, 64), quarters(64, 64))),
    "inits": (INITS, inits, (quarters(32, 48), quarters(32))),
    "segments": (SEGMENTS, segments, (quarters(64), POINTERS, quarters(16))),
    "where": (WHERE, where, (quarters(16), np.arange(16, dtype=np.int32)[::-1].copy() % 9, quarters(16))),
    "starts": (STARTS, starts, (quarters(12), quarters(12))),
    "lets": (LETS, lets, (quarters(16), quarters(16), np.zeros((16, 16), np.int32))),
    "largest": (LARGEST, largest, (quarters(8, 32), np.zeros(8, np.int32))),
    "slice": (SLICE, slice_, (quarters(9), quarters(8))),
    "symbols": (SYMBOLS, symbols, (quarters(7, 5), quarters(8, 5), 3)),
}


@pytest.mark.parametrize("name", CASES)
def test_programs_as_tvm_prints_them(name: str) -> None:
    text, meaning, arguments = CASES[name]
    module = parse(text)
    again = parse(check_roundtrip(module))
    weft.assert_structural_equal(weft.parse(str(module)), module)
    wanted = [np.copy(value) if isinstance(value, np.ndarray) else value for value in arguments]
    meaning(*wanted)
    for call in (
        lambda *args: weft.Interpreter(module).call("main", *args),
        weft.build(module)["main"],
        weft.build(again)["main"],
    ):
        found = [np.copy(value) if isinstance(value, np.ndarray) else value for value in arguments]
        call(*found)
        for value, want in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(value, want)
