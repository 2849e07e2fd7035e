"""Programs that TVM printed after lowering: buffers as flat memory with symbolic strides. They read, run and print."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.script import parse, script

HEAD = """# from tvm.script import ir as I
# from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.handle, B: T.handle, C: T.handle):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        m, n = T.int32(), T.int32()
        A_1 = T.match_buffer(A, (m, n), strides=("stride", "stride"), buffer_type="auto")
        B_1 = T.match_buffer(B, (m, n), strides=("stride", "stride"), buffer_type="auto")
        C_1 = T.match_buffer(C, (m, n), strides=("stride", "stride"), buffer_type="auto")
"""
VIEWS = """C_2 = T.Buffer((C_1.strides[0] * m,), data=C_1.data, buffer_type="auto")
A_2 = T.Buffer((A_1.strides[0] * m,), data=A_1.data, buffer_type="auto")
B_2 = T.Buffer((B_1.strides[0] * m,), data=B_1.data, buffer_type="auto")
"""


def product(row: str, column: str) -> str:
    """The statement on flat memory."""
    place = "X_2[{row} * X_1.strides[0] + {column} * X_1.strides[1]]".replace("{row}", row).replace("{column}", column)
    c, a, b = (place.replace("X", name) for name in "CAB")
    return VIEWS + f"{c} = {a} * {b}\n"


PRODUCTS = {
    "plain": ["for i, j in T.grid(m, n):", product("i", "j")],
    "split": [
        "for i_outer, i_inner in T.grid((m + 31) // 32, 32):",
        "if T.likely(i_outer * 32 + i_inner < m):",
        "for j in range(n):",
        "cse_var_1: T.int32 = i_outer * 32 + i_inner\n" + product("cse_var_1", "j"),
    ],
    "tile": [
        "for i_outer, j_outer, i_inner in T.grid((m + 15) // 16, (n + 7) // 8, 16):",
        "if T.likely(i_outer * 16 + i_inner < m):",
        "for j_inner in range(8):",
        "if T.likely(j_outer * 8 + j_inner < n):",
        "cse_var_2: T.int32 = j_outer * 8 + j_inner\n"
        "cse_var_1: T.int32 = i_outer * 16 + i_inner\n" + product("cse_var_1", "cse_var_2"),
    ],
    "fuse": ["for i_j_fused in range(m * n):", product("i_j_fused // n", "i_j_fused % n")],
    "bind": [
        'blockIdx_x = T.launch_thread("blockIdx.x", (m + 63) // 64)\n'
        'threadIdx_x = T.launch_thread("threadIdx.x", 64)\n'
        "for j in range(n):",
        "if T.likely(blockIdx_x * 64 + threadIdx_x < m):",
        product("(blockIdx_x * 64 + threadIdx_x)", "j"),
    ],
}

CHAIN = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.handle, B: T.handle, C: T.handle):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        m = T.int32()
        A_1 = T.match_buffer(A, (m,), strides=("stride",), buffer_type="auto")
        B_1 = T.match_buffer(B, (m,), strides=("stride",), buffer_type="auto")
        C_1 = T.match_buffer(C, (m,), strides=("stride",), buffer_type="auto")
        B_2 = T.Buffer((B_1.strides[0] * m,), data=B_1.data, buffer_type="auto")
        for i in range(m):
            A_2 = T.Buffer((A_1.strides[0] * m,), data=A_1.data, buffer_type="auto")
            B_2[i * B_1.strides[0]] = A_2[i * A_1.strides[0]] + T.float32(1)
        for i in range(m):
            C_2 = T.Buffer((C_1.strides[0] * m,), data=C_1.data, buffer_type="auto")
            C_2[i * C_1.strides[0]] = B_2[i * B_1.strides[0]] * T.float32(2)
"""
ROW_SUMS = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.handle, B: T.handle):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        n, m = T.int32(), T.int32()
        A_1 = T.match_buffer(A, (n, m), strides=("stride", "stride"), buffer_type="auto")
        B_1 = T.match_buffer(B, (n,), strides=("stride",), buffer_type="auto")
        for i in range(n):
            B_2 = T.Buffer((B_1.strides[0] * n,), data=B_1.data, buffer_type="auto")
            B_2[i * B_1.strides[0]] = T.float32(0)
            for k in range(m):
                A_2 = T.Buffer((A_1.strides[0] * n,), data=A_1.data, buffer_type="auto")
                B_2[i * B_1.strides[0]] = B_2[i * B_1.strides[0]] + A_2[i * A_1.strides[0] + k * A_1.strides[1]]
"""


def nested(parts: list[str]) -> str:
    """A program of the parts, each inside the one before."""
    lines: list[str] = []
    for depth, part in enumerate(parts):
        lines += ["    " * (2 + depth) + line for line in part.strip().split("\n")]
    return HEAD + "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    module = parse(nested(PRODUCTS[name]))
    weft.assert_structural_equal(parse(script(module)), module)
    main = weft.build(module)["main"]
    x, y, out = np.random.default_rng(0).random((3, 70, 80), dtype=np.float32)
    for view in (np.s_[:, :], np.s_[::2, 3:40], np.s_[5::-1, ::-3]):
        out[...] = 0
        main(x[view], y[view], out[view])
        np.testing.assert_array_equal(out[view], x[view] * y[view])
        assert np.count_nonzero(out) <= out[view].size


def test_a_chain_and_a_reduction() -> None:
    module = parse(CHAIN)
    weft.assert_structural_equal(parse(script(module)), module)
    x = np.arange(20, dtype=np.float32)
    b, c = np.zeros((2, 40), np.float32)
    weft.build(module)["main"](x[::-1], b[::2], c[1::2])
    np.testing.assert_array_equal(b[::2], x[::-1] + 1)
    np.testing.assert_array_equal(c[1::2], (x[::-1] + 1) * 2)
    module = parse(ROW_SUMS)
    matrix, sums = np.arange(42, dtype=np.float32).reshape(6, 7), np.zeros(7, np.float32)
    weft.build(module)["main"](matrix.T, sums)
    np.testing.assert_array_equal(sums, matrix.sum(axis=0))


def test_terms_without_a_stride_are_of_the_densest_dimension() -> None:
    text = """
@T.prim_func
def f(A: T.Buffer((8, 16), "float32"), C: T.Buffer((8, 16), "float32")):
    A_1 = T.decl_buffer((128,), data=A.data)
    C_1 = T.Buffer((128,), data=C.data)
    for i, j in T.grid(8, 14):
        C_1[i * 16 + j + 1] = A_1[j + 2 + i * 16 - 1]
        C_1[i * 16] += 1.0
"""
    expected = """
@T.prim_func
def f(A: T.Buffer((8, 16), "float32"), C: T.Buffer((8, 16), "float32")):
    for i, j in T.grid(8, 14):
        C[i, j + 1] = A[i, j + 2 - 1]
        C[i, 0] += 1.0
"""
    weft.assert_structural_equal(parse(text), parse(expected))


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "X = T.Buffer((m,), data=A_1.data)\nX[m] = 1.0",
            "the element of A_1 cannot be determined: `m` is not a sum",
        ),
        (
            "X = T.Buffer((n, m), data=A_1.data)",
            "X is the memory of A_1: it has one dimension, or numbers of elements of A_1 as its shape, got 2",
        ),
        ("X = T.Buffer((m,), data=3)", "a buffer that is declared here is another's memory"),
        ('X = T.Buffer((m,), "int8", data=A_1.data)', "X is int8, and the memory of A_1 is float32"),
        ("X = T.Buffer((m,), data=A_1.data)\nX[0, 0] = 1.0", "X has 1 dimensions, and 2 indices are given"),
    ],
)
def test_misuse(statement: str, message: str) -> None:
    with pytest.raises(weft.CompileError) as failure:
        parse(nested([statement]))
    assert message in str(failure.value)
