"""Programs written as scripts compute what NumPy computes, interpreted and compiled."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from example_scripts import printed_by
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te
from weft.script import ir as I
from weft.script import ir_module, parse, print_script
from weft.script import tir as T

Array = np.ndarray[Any, Any]


def run(module: ModuleOp, name: str, *arrays: Array) -> None:
    """Run a function compiled; outputs are written in place."""
    weft.build(module)[name](*arrays)


def agree(module: ModuleOp, name: str, inputs: tuple[Array, ...], expected: tuple[Array, ...]) -> None:
    """The function gives `expected` from `inputs`: interpreted, compiled, and compiled after printing and reading."""
    for call in (
        lambda arrays: weft.Interpreter(module).call(name, *arrays),
        lambda arrays: run(module, name, *arrays),
        lambda arrays: run(parse(print_script(module)), name, *arrays),
    ):
        outputs = tuple(np.full_like(array, 77) for array in expected)
        call((*(array.copy() for array in inputs), *outputs))
        for got, want in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5)


def random(*shape: int) -> Array:
    """Quarters of small whole numbers: sums of their products are exact in any order."""
    return (np.random.default_rng(len(shape)).integers(-8, 9, shape) / 4).astype(np.float32)


@ir_module
class MmRelu:
    @T.prim_func
    def mm_relu(
        A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")
    ):
        T.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})
        Y = T.alloc_buffer((128, 128), dtype="float32")
        for i, j, k in T.grid(128, 128, 128):
            with T.block("Y"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j)
                vk = T.axis.reduce(128, k)
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j)
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))


@I.ir_module
class MmReluWithRemap:
    @T.prim_func
    def mm_relu(
        A: T.Buffer[(128, 128), "float32"],  # noqa: F821
        B: T.Buffer[(128, 128), "float32"],  # noqa: F821
        C: T.Buffer[(128, 128), "float32"],  # noqa: F821
    ):
        T.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})
        Y = T.alloc_buffer((128, 128), dtype="float32")
        for i, j, k in T.grid(128, 128, 128):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] += A[vi, vk] * B[vk, vj]
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = max(Y[vi, vj], 0)


@ir_module
class MmReluOfLoops:
    @T.prim_func
    def mm_relu(
        A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")
    ):
        T.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})
        Y = T.alloc_buffer((128, 128), dtype="float32")
        for i in range(128):
            for j in range(128):
                for k in range(128):
                    if k == 0:
                        Y[i, j] = 0
                    Y[i, j] = Y[i, j] + A[i, k] * B[k, j]
        for i in range(128):
            for j in range(128):
                C[i, j] = max(Y[i, j], 0)


@pytest.mark.parametrize("module", [MmRelu, MmReluWithRemap, MmReluOfLoops], ids=["axes", "remap", "loops"])
def test_mm_relu(module: ModuleOp) -> None:
    a, b = random(128, 128), random(128, 128).T.copy()
    agree(module, "mm_relu", (a, b), (np.maximum(a @ b, 0),))


def test_variants_are_one_program() -> None:
    weft.assert_structural_equal(MmRelu, MmReluWithRemap)


@ir_module
class TwoFunctions:
    @T.prim_func
    def mm(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"), Y: T.Buffer((8, 8), "float32")):
        T.func_attr({"global_symbol": "mm", "tir.noalias": True})
        for i, j, k in T.grid(8, 8, 8):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]

    @T.prim_func
    def relu(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
        T.func_attr({"global_symbol": "relu", "tir.noalias": True})
        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.max(A[vi, vj], T.float32(0))

    @T.prim_func
    def mm_relu(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
        Y = T.alloc_buffer((8, 8))
        TwoFunctions.mm(A, B, Y)
        T.evaluate(relu(Y, C))  # noqa: F821


def test_functions_of_a_module_call_each_other() -> None:
    a, b = random(8, 8), random(8, 8).T.copy()
    agree(TwoFunctions, "mm_relu", (a, b), (np.maximum(a @ b, 0),))


@ir_module
class BmmRelu:
    @T.prim_func
    def bmm_relu(
        A: T.Buffer((16, 128, 128), "float32"),
        B: T.Buffer((16, 128, 128), "float32"),
        C: T.Buffer((16, 128, 128), "float32"),
    ):
        T.func_attr({"global_symbol": "bmm_relu", "tir.noalias": True})
        Y = T.alloc_buffer((16, 128, 128), "float32")
        for n, i, j, k in T.grid(16, 128, 128, 128):
            with T.block("Y"):
                vn, vi, vj, vk = T.axis.remap("SSSR", [n, i, j, k])
                with T.init():
                    Y[vn, vi, vj] = T.float32(0)
                Y[vn, vi, vj] = Y[vn, vi, vj] + A[vn, vi, vk] * B[vn, vk, vj]
        for n, i, j in T.grid(16, 128, 128):
            with T.block("C"):
                vn, vi, vj = T.axis.remap("SSS", [n, i, j])
                C[vn, vi, vj] = T.max(Y[vn, vi, vj], T.float32(0))


@ir_module
class TargetModule:
    @T.prim_func
    def bmm_relu(
        A: T.Buffer((16, 128, 128), "float32"),
        B: T.Buffer((16, 128, 128), "float32"),
        C: T.Buffer((16, 128, 128), "float32"),
    ) -> None:
        T.func_attr({"global_symbol": "bmm_relu", "tir.noalias": True})
        Y = T.alloc_buffer([16, 128, 128], dtype="float32")
        for i0 in T.parallel(16):
            for i1, i2_0 in T.grid(128, 16):
                for ax0_init in T.vectorized(8):
                    with T.block("Y_init"):
                        n, i = T.axis.remap("SS", [i0, i1])
                        j = T.axis.spatial(128, i2_0 * 8 + ax0_init)
                        Y[n, i, j] = T.float32(0)
                for ax1_0 in T.serial(32):
                    for ax1_1 in T.unroll(4):
                        for ax0 in T.serial(8):
                            with T.block("Y_update"):
                                n, i = T.axis.remap("SS", [i0, i1])
                                j = T.axis.spatial(128, i2_0 * 8 + ax0)
                                k = T.axis.reduce(128, ax1_0 * 4 + ax1_1)
                                Y[n, i, j] = Y[n, i, j] + A[n, i, k] * B[n, k, j]
                for i2_1 in T.vectorized(8):
                    with T.block("C"):
                        n, i = T.axis.remap("SS", [i0, i1])
                        j = T.axis.spatial(128, i2_0 * 8 + i2_1)
                        C[n, i, j] = T.max(Y[n, i, j], T.float32(0))


def test_bmm_relu_is_scheduled_into_its_target() -> None:
    sch = weft.Schedule(BmmRelu)
    y, c = sch.get_block("Y", func_name="bmm_relu"), sch.get_block("C", func_name="bmm_relu")
    n, _, j = sch.get_loops(c)
    j0, j1 = sch.split(j, factors=[None, 8])
    sch.compute_at(y, j0)
    ax0, ax1 = sch.get_loops(y)[-2:]
    ax1_0, ax1_1 = sch.split(ax1, factors=[None, 4])
    sch.reorder(ax1_0, ax1_1, ax0)
    y_init = sch.decompose_reduction(y, ax1_0)
    sch.vectorize(sch.get_loops(y_init)[-1])
    sch.vectorize(j1)
    sch.parallel(n)
    sch.unroll(ax1_1)
    weft.assert_structural_equal(sch.mod, TargetModule)
    weft.assert_structural_equal(parse(print_script(sch.mod)), TargetModule)


def test_bmm_relu_target_runs() -> None:
    a, b = random(16, 128, 128), random(16, 128, 128) + np.float32(0.25)
    c = np.zeros_like(a)
    run(TargetModule, "bmm_relu", a, b, c)
    np.testing.assert_array_equal(c, np.maximum(a @ b, 0))


def test_the_definition_is_that_of_tensor_expressions() -> None:
    shape = (16, 128, 128)
    a, b = te.placeholder(shape, "float32", name="A"), te.placeholder(shape, "float32", name="B")
    k = te.reduce_axis((0, 128), name="k")
    y = te.compute(shape, lambda n, i, j: te.sum(a[n, i, k] * b[n, k, j], axis=k), name="Y")
    c = te.compute(shape, lambda n, i, j: te.max(y[n, i, j], 0.0), name="C")
    weft.assert_structural_equal(te.create_func([a, b, c], name="bmm_relu"), BmmRelu)


@ir_module
class BroadcastAdd:
    @T.prim_func
    def add(A: T.Buffer((4, 4), "int64"), B: T.Buffer((4,), "int64"), C: T.Buffer((4, 4), "int64")):
        T.func_attr({"global_symbol": "add", "tir.noalias": True})
        for i, j in T.grid(4, 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + B[vj]


def test_broadcast_add() -> None:
    a, b = np.arange(16).reshape(4, 4), np.arange(4, 0, -1).reshape(4)
    agree(BroadcastAdd, "add", (a, b), (a + b,))


N, CI, H, W, CO, K = 1, 1, 8, 8, 2, 3
OUT_H, OUT_W = H - K + 1, W - K + 1


@ir_module
class Conv:
    @T.prim_func
    def conv(
        A: T.Buffer((N, CI, H, W), "int64"),
        F: T.Buffer((CO, CI, K, K), "int64"),
        C: T.Buffer((N, CO, OUT_H, OUT_W), "int64"),
    ):
        T.func_attr({"global_symbol": "conv", "tir.noalias": True})
        for b, k, i, j, di, dj, q in T.grid(N, CO, OUT_H, OUT_W, K, K, CI):
            with T.block("C"):
                vb, vk, vi, vj, vdi, vdj, vq = T.axis.remap("SSSSRRR", [b, k, i, j, di, dj, q])
                with T.init():
                    C[vb, vk, vi, vj] = T.int64(0)
                C[vb, vk, vi, vj] += A[vb, vq, vi + vdi, vj + vdj] * F[vk, vq, vdi, vdj]


def test_conv2d() -> None:
    data = np.arange(N * CI * H * W).reshape(N, CI, H, W)
    weight = np.arange(CO * CI * K * K).reshape(CO, CI, K, K)
    windows = np.lib.stride_tricks.sliding_window_view(data, (K, K), axis=(2, 3))
    expected = np.einsum("bqijde,kqde->bkij", windows, weight)
    assert expected[0, 0, 0, 0] == 474
    assert expected[0, 1, 5, 5] == 6468
    agree(Conv, "conv", (data, weight), (expected,))


@ir_module
class Mlp:
    @T.prim_func
    def relu0(x: T.handle, y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (1, n), "float32")
        Y = T.match_buffer(y, (1, n), "float32")
        for i, j in T.grid(1, n):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.max(X[vi, vj], T.float32(0))

    @T.prim_func
    def linear0(x: T.handle, w: T.handle, b: T.handle, z: T.handle):
        m, n, k = T.int64(), T.int64(), T.int64()
        X = T.match_buffer(x, (1, m), "float32")
        W = T.match_buffer(w, (n, m), "float32")
        B = T.match_buffer(b, (n,), "float32")
        Z = T.match_buffer(z, (1, n), "float32")
        Y = T.alloc_buffer((1, n), "float32")
        for i, j, k in T.grid(1, n, m):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]
        for i, j in T.grid(1, n):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = Y[vi, vj] + B[vj]


@pytest.mark.parametrize(("m", "n"), [(784, 128), (5, 3), (1, 1)])
def test_symbolic_extents(m: int, n: int) -> None:
    x, w, b = random(1, m), random(n, m), random(n)
    agree(Mlp, "linear0", (x, w, b), (x @ w.T + b,))
    agree(Mlp, "relu0", (x,), (np.maximum(x, 0),))


def test_extents_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="B"):
        run(Mlp, "linear0", random(1, 5), random(3, 5), random(4), random(1, 3))


@ir_module
class Blocked:
    """Tiles as blocks of blocks, as accelerators have them."""

    @T.prim_func
    def main(
        A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")
    ) -> None:
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i0, j0, k0 in T.grid(4, 4, 4):
            with T.block("tmm-16x16"):
                vi0, vj0, vk0 = T.axis.remap("SSR", [i0, j0, k0])
                T.reads(
                    A[vi0 * 16 : vi0 * 16 + 16, vk0 * 16 : vk0 * 16 + 16],
                    B[vj0 * 16 : vj0 * 16 + 16, vk0 * 16 : vk0 * 16 + 16],
                )
                T.writes(C[vi0 * 16 : vi0 * 16 + 16, vj0 * 16 : vj0 * 16 + 16])
                with T.init():
                    for i1, j1 in T.grid(16, 16):
                        with T.block("tmm_init"):
                            vi1, vj1 = T.axis.remap("SS", [i1, j1])
                            C[vi0 * 16 + vi1, vj0 * 16 + vj1] = T.float32(0)
                for i1, j1, k1 in T.grid(16, 16, 16):
                    with T.block("tmm"):
                        vi1, vj1, vk1 = T.axis.remap("SSR", [i1, j1, k1])
                        C[vi0 * 16 + vi1, vj0 * 16 + vj1] += (
                            A[vi0 * 16 + vi1, vk0 * 16 + vk1] * B[vj0 * 16 + vj1, vk0 * 16 + vk1]
                        )


def test_nested_blocks() -> None:
    a, b = random(64, 64), random(64, 64).T.copy()
    c = np.zeros_like(a)
    run(Blocked, "main", a, b, c)
    np.testing.assert_array_equal(c, a @ b.T)


@T.prim_func
def padded(A: T.Buffer((10,), "float32"), C: T.Buffer((12,), "float32")):
    for i in range(12):
        with T.block("C"):
            vi = T.axis.spatial(12, i)
            C[vi] = T.if_then_else(vi >= 1 and vi < 11, A[vi - 1], T.float32(0))


@T.prim_func
def guarded(A: T.Buffer((10,), "float32"), C: T.Buffer((10,), "float32")):
    for i, j in T.grid(3, 4):
        with T.block("C"):
            vi = T.axis.spatial(10, i * 4 + j)
            T.where(i * 4 + j < 10)
            C[vi] = -A[vi] if A[vi] < 0 else T.sqrt(A[vi])


@T.prim_func
def rotated(A: T.Buffer((10,), "int32"), C: T.Buffer((10,), "int32"), D: T.Buffer((10,), "float64")):
    for i in range(2, 12):
        with T.block("C"):
            vi = T.axis.spatial(10, i - 2)
            C[vi] = A[(vi + 7) % 10] // 3 - A[vi] % -4
            if A[vi] > 3 or vi == 0:  # noqa: SIM108
                x = T.Cast("float64", A[vi])
            else:
                x = T.float64(vi) / 2
            D[vi] = x + T.Select(not (A[vi] == 2 and vi < 10), T.float64(1), 0.5)


@T.prim_func
def gathered(P: T.Buffer((6,), "int32"), A: T.Buffer((9,), "float32"), C: T.Buffer((6,), "float32")):
    for i in T.vectorized(6):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            position = P[vi]
            C[vi] = A[position] if position >= 0 and A[position] > 0 else T.float32("-inf")


def test_conditions() -> None:
    a = random(10) * np.float32(8)
    agree(padded, "padded", (a,), (np.pad(a, 1),))
    with np.errstate(invalid="ignore"):
        agree(guarded, "guarded", (a,), (np.where(a < 0, -a, np.sqrt(a)),))


def test_integers_and_choices() -> None:
    a = np.array([5, -7, 2, 0, 9, -1, 4, 2, -10, 3], np.int32)
    i = np.arange(10)
    chosen = np.where((a > 3) | (i == 0), a.astype(np.float64), i / 2)
    agree(rotated, "rotated", (a,), (a[(i + 7) % 10] // 3 - a % -4, chosen + np.where(a != 2, 1.0, 0.5)))


def test_gather_reads_only_where_it_may() -> None:
    a = random(9)
    p = np.array([0, -1, 8, 3, -100000000, 5], np.int32)
    expected = np.where((p >= 0) & (a[np.clip(p, 0, 8)] > 0), a[np.clip(p, 0, 8)], -np.inf).astype(np.float32)
    agree(gathered, "gathered", (p, a), (expected,))


UNARY: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sin": np.sin,
    "cos": np.cos,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.round,
    "abs": np.abs,
    "fabs": np.abs,
    "exp2": np.exp2,
    "log2": np.log2,
}


@pytest.mark.parametrize("name", UNARY)
def test_functions(name: str) -> None:
    module = parse(f"""
@T.prim_func
def main(A: T.Buffer((7,), "float32"), C: T.Buffer((7,), "float32")):
    for i in range(7):
        with T.block("C"):
            vi = T.axis.spatial(7, i)
            C[vi] = T.{name}(A[vi])
""")
    a = np.linspace(0.3, 3.4, 7, dtype=np.float32)
    agree(module, "main", (a,), (UNARY[name](a).astype(np.float32),))


@T.prim_func
def doubled(A: T.Buffer((8, 16), "float32"), C: T.Buffer((8, 16), "float32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi, 0:16])
            T.writes(C[vi, 0:16])
            T.evaluate(
                T.call_extern(
                    "double_row",
                    T.access_ptr(C[vi : vi + 1, 0:16], "write"),
                    T.access_ptr(A[vi : vi + 1, 0:16], "read"),
                    T.Cast("int32", A.strides[0]),
                    dtype="int32",
                )
            )


DOUBLE_ROW = """
define i32 @double_row(ptr %c, ptr %a, i32 %count) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr float, ptr %a, i32 %i
  %to = getelementptr float, ptr %c, i32 %i
  %x = load float, ptr %from
  %y = fadd float %x, %x
  store float %y, ptr %to
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %count
  br i1 %more, label %loop, label %exit
exit:
  ret i32 0
}
"""


def test_functions_outside_of_the_module() -> None:
    sch = weft.Schedule(doubled)
    sch.annotate(sch.get_loops("C")[0], "pragma_import_llvm", DOUBLE_ROW)
    a = random(8, 16)
    for module in (sch.mod, parse(print_script(sch.mod))):
        c = np.zeros_like(a)
        run(module, "doubled", a, c)
        np.testing.assert_array_equal(c, 2 * a)


@pytest.mark.parametrize(
    ("example", "printed"),
    [
        ("script_mm_relu.py", "vj = T.axis.spatial(128, j0 * 4 + ax0)"),
        ("script_bmm_relu.py", "the transformed program is the target"),
    ],
)
def test_example(
    example: str, printed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = printed_by(example, capsys, monkeypatch)
    assert printed in out
    assert out.count("agrees with NumPy") == 3
