"""Functions of block loops in the spellings of TVM 0.27 and before: read, run, and compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import weft.tvm as tvm
from weft.support.errors import CompileError

HEAD = "from tvm.script import tirx as T\n@T.prim_func(s_tir=True)\n"
SIGNATURE = 'def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):\n'
A = (np.arange(16, dtype="float32") - 5.5) / 4
POSITIONS = np.arange(16)


def read(body: str, signature: str = SIGNATURE) -> object:
    return tvm.script.from_source(HEAD + signature + "".join(f"    {line}\n" for line in body.strip().splitlines()))


def run(body: str) -> np.ndarray:
    result = np.zeros(16, "float32")
    tvm.build(read(body))(A, result)
    return result


def block(value: str) -> str:
    return f'for i in range(16):\n    with T.sblock("B"):\n        vi = T.axis.spatial(16, i)\n        B[vi] = {value}'


def _fixed(x, y, q, s):
    return ((x << max(s, 0)) * y + (1 << (q - min(s, 0) - 1))) >> (q - min(s, 0))


VALUES = {
    "T.Add(T.Mul(A[vi], T.float32(2)), T.Sub(A[vi], T.float32(1)))": A * 2 + (A - 1),
    "T.Select(T.LT(A[vi], T.float32(0)), A[vi], T.float32(0))": np.minimum(A, 0),
    "T.Select(T.NE(vi, 2), T.Select(T.GE(vi, 9), A[vi], T.float32(1)), T.float32(3))": np.where(
        POSITIONS != 2, np.where(POSITIONS >= 9, A, 1), 3
    ),
    "T.Select(T.LE(vi, 2), T.Select(T.GT(vi, 0), A[vi], T.float32(1)), T.float32(3))": np.where(
        POSITIONS <= 2, np.where(POSITIONS > 0, A, 1), 3
    ),
    "T.Cast('float32', T.shift_right(T.Cast('int32', vi), 1, dtype='int32'))": POSITIONS >> 1,
    "T.Cast('float32', T.bitwise_not(T.shift_left(T.Cast('int32', vi), 2)))": ~(POSITIONS << 2),
    "T.Cast('float32', T.q_multiply_shift(T.Cast('int32', vi) * 1000, T.int32(1395864320), 31, 1))": [
        _fixed(int(i) * 1000, 1395864320, 31, 1) for i in POSITIONS
    ],
    "T.Cast('float32', T.q_multiply_shift(T.Cast('int32', vi) * 1000, T.int32(1395864320), 31, -2))": [
        _fixed(int(i) * 1000, 1395864320, 31, -2) for i in POSITIONS
    ],
    "T.Cast('float32', T.q_multiply_shift_per_axis(T.Cast('int32', vi) * 1000, T.int32(1395864320), T.int32(1), "
    "T.int32(2), 31, True, True))": [((int(i) * 1000 << 1) * 1395864320 + (1 << 32)) >> 33 for i in POSITIONS],
    "T.call_intrin('float32', 'tirx.exp', A[vi])": np.exp(A),
    "T.call_pure_extern('float32', 'sinf', A[vi])": np.sin(A),
    "T.Cast('float32', T.indexdiv(vi, 3) + T.indexmod(vi, 3) * 10)": POSITIONS // 3 + POSITIONS % 3 * 10,
    "(T.nextafter(A[vi], T.float32(9)) - A[vi]) * 1048576.0": (np.nextafter(A, np.float32(9)) - A) * 2**20,
    "T.hypot(A[vi], T.float32(2))": np.hypot(A, 2),
    "T.ldexp(A[vi], T.int32(3))": np.ldexp(A, 3),
    "T.exp10(A[vi])": 10**A,
    "T.reinterpret('float32', T.reinterpret('int32', A[vi]))": A,
    "A[vi] + T.bind(A[0])": A + A[0],
    "A[vi] * T.float32(T.meta_var(3))": A * 3,
}


@pytest.mark.parametrize("value", VALUES)
def test_values(value: str):
    np.testing.assert_allclose(run(block(value)), np.asarray(VALUES[value], "float32"), rtol=2e-6)


PROGRAMS = {
    "while": (
        'i = T.alloc_buffer((1,), "int32", scope="local")\ni[0] = 0\nwhile i[0] < 16:\n'
        "    B[i[0]] = A[i[0]]\n    i[0] = i[0] + 1",
        A,
    ),
    "while with break": (
        'i = T.alloc_buffer((1,), "int32")\ni[0] = 0\nwhile True:\n    if i[0] >= 10:\n        break\n'
        "    B[i[0]] = A[i[0]]\n    i[0] = i[0] + 1",
        np.where(POSITIONS < 10, A, 0),
    ),
    "for with break": ("for i in range(16):\n    if A[i] > 1.0:\n        break\n    B[i] = A[i]",
                       np.where(A <= 1, A, 0)),
    "for with continue": (
        "for i in range(16):\n    if A[i] < 0.0:\n        continue\n    B[i] = A[i]",
        np.where(A >= 0, A, 0),
    ),
    "break of the inner loop": (
        "for i, in T.grid(4, dtype='int64'):\n    for j in range(4):\n        if j > i:\n            break\n"
        "        B[i * 4 + j] = A[i * 4 + j]",
        np.tril(A.reshape(4, 4)).reshape(16),
    ),
    "while in a block": (
        'i = T.sblock_alloc_buffer((1,), "int32")\nwith T.sblock("w"):\n    T.reads(A[0:16])\n    T.writes(B[0:16])\n'
        "    i[0] = 0\n    while i[0] < 16:\n        B[i[0]] = A[i[0]]\n        i[0] = i[0] + 1",
        A,
    ),
    "target of a function": ("T.func_attr({'target': T.target({'kind': 'llvm'}, host='llvm')})\n" + block("A[vi]"), A),
    "attribute": ("with T.attr(T.target('llvm'), 'target', 0):\n    for i in range(16):\n        B[i] = A[i]", A),
    "pointer": ("T.tvm_access_ptr(T.type_annotation('float32'), B.data, 0, 16, 2)\n" + block("A[vi]"), A),
    "assume of elements": ("for i in range(16):\n    T.evaluate(T.assume(A[i] > 0.0))\n    B[i] = A[i]", A),
    "assert": ("n = 16\nassert n == 16, 'n'\n" + block("A[vi]"), A),
    "let": ("with T.LetStmt(A[0]) as x:\n    for i in range(16):\n        B[i] = A[i] + x", A + A[0]),
    "store": ("for i in range(16):\n    T.buffer_store(B, A[i], [i])\nT.ret(T.int32(0))", A),
    "reshaped": ("C = T.decl_buffer((4, 4), 'float32', data=A.data)\nfor i, j in T.grid(4, 4):\n"
                 "    B[i * 4 + j] = C[j, i]",
                 A.reshape(4, 4).T.reshape(16)),
    "declared": ("C = T.decl_buffer((16,), 'float32')\nfor i in range(16):\n    C[i] = A[i]\n" + block("C[vi]"), A),
    "allocated": (
        "with T.allocate([16], 'float32', 'global') as C_data:\n    C = T.Buffer((16,), 'float32', data=C_data)\n"
        "    for i in range(16):\n        C[i] = A[i]\n    for i in range(16):\n        B[i] = C[i]",
        A,
    ),
    "local": ("C = T.alloc_local((16,), 'float32')\nfor i in range(16):\n    C[i] = A[i]\n" + block("C[vi]"), A),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_statements(name: str):
    body, expected = PROGRAMS[name]
    np.testing.assert_allclose(run(body), expected)


@pytest.mark.parametrize(
    "body",
    [
        "bx = T.env_thread('blockIdx.x')\ntx = T.env_thread('threadIdx.x')\nT.launch_thread(bx, 4)\n"
        "T.launch_thread(tx, 4)\nB[bx * 4 + tx] = A[bx * 4 + tx]",
        "bx = T.env_thread('blockIdx.x')\nwith T.launch_thread(bx, 16):\n    B[bx] = A[bx]",
        "bx = T.env_thread('blockIdx.x')\nwith T.attr(bx, 'thread_extent', 16):\n    B[bx] = A[bx]",
        "C = T.alloc_shared((16,), 'float32')\nB[0] = A[0]",
    ],
)
def test_threads(body: str):
    text = str(read(body))
    assert "launch_thread" in text or "thread_binding" in text or 'scope="shared"' in text


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("T.device_entry()\nB[0] = A[0]", "T.device_entry opens a tile program of TIRx"),
        ("assert A[0] > 0.0, 'positive'\nB[0] = A[0]", "a script asserts comparisons of extents"),
        ("for i in range(16):\n    T.ret(T.int32(0))\nB[0] = A[0]", "T.ret ends a function"),
        ("B[0] = T.Cast('float32', T.shift_left(1, 2, dtype='int8'))", "a shift of int.* is int"),
        ("with T.attr(A, 'buffer_bind_scope', 0):\n    B[0] = A[0]", "weft does not know the attribute"),
        ("C = T.decl_buffer((4, 5), 'float32', data=A.data)\nB[0] = C[0, 0]", "C is the memory of A"),
        ("while A[0]:\n    B[0] = A[0]", "a condition compares elements"),
        ("T.launch_thread('threadIdx.x', 4)\nB[0] = A[0]", "threads are declared"),
    ],
)
def test_what_is_refused(body: str, message: str):
    with pytest.raises(CompileError, match=message):
        read(body)
