"""Strides in scripts: symbols, numbers and what is left to calls; printed and read back; run on views."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.script import parse, script

PROGRAM = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.handle, B: T.handle, C: T.handle):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        m, n = T.int32(), T.int32()
        sb = T.int32()
        A_1 = T.match_buffer(A, (m, n), strides=STRIDES, buffer_type="auto")
        B_1 = T.match_buffer(B, (m, n), strides=(sb, 1), offset_factor=1)
        C_1 = T.match_buffer(C, (m, n), strides=[sb, -1])
        for i, j in T.grid(m, n):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C_1[vi, vj] = A_1[vi, vj] * B_1[vi, vj]
"""


@pytest.mark.parametrize("strides", ['("stride", "stride")', "(None, None)", "(n, 1)", "(sb, 1)", "(24, 2)"])
def test_strides_are_read_and_printed(strides: str) -> None:
    module = parse(PROGRAM.replace("STRIDES", strides))
    weft.assert_structural_equal(parse(script(module)), module)


def test_views_are_passed_where_they_lie() -> None:
    main = weft.build(parse(PROGRAM.replace("STRIDES", '("stride", "stride")')))["main"]
    x, y, out = np.random.default_rng(0).random((3, 12, 12), dtype=np.float32)
    main(x.T[:5, :7], y[::2][:5, 3:10], out[1::2][:5, :7])
    np.testing.assert_array_equal(out[1::2][:5, :7], x.T[:5, :7] * y[::2][:5, 3:10])
    with pytest.raises(ValueError, match=r"with sb = 24 \(from 'B1'\), got strides \(12, 1\)"):
        main(x.T[:5, :7], y[::2][:5, 3:10], out[:5, :7])


def test_a_symbol_that_is_extent_and_stride() -> None:
    main = weft.build(parse(PROGRAM.replace("STRIDES", "(n, 1)")))["main"]
    x, y, out = np.random.default_rng(0).random((3, 6, 9), dtype=np.float32)
    main(x, y, out)
    np.testing.assert_array_equal(out, x * y)
    with pytest.raises(
        ValueError, match=r"'A1'\): expected strides \(n, 1\) \(in elements\) with n = 8 \(from axis 1 of 'A1'\)"
    ):
        main(x[:, 1:], y[:, 1:], out[:, 1:])


def test_strides_of_a_dense_buffer_are_none() -> None:
    text = """
@T.prim_func
def f(A: T.Buffer((4, 8), "float32", strides=(8, 1)), B: T.Buffer((4, 8), "float32", strides=(16, 1))):
    for i, j in T.grid(4, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
"""
    module = parse(text)
    assert "(%A: memref<4x8xf32>, %B: memref<4x8xf32, strided<[16, 1], offset: ?>>)" in str(module)
    printed = script(module)
    assert 'def f(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32", strides=(16, 1))):' in printed
    weft.assert_structural_equal(parse(printed), module)
