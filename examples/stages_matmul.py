"""A lesson on tensor expressions: declare a computation once, then try schedules on it.

python examples/stages_matmul.py [SIZE]

A matmul with a plain schedule and an optimised one, a padded convolution, every stage transform, and three exercises.
Results are compared with NumPy; times are of this machine.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import weft
from weft import te

TARGET = "llvm"
"""This machine, written `llvm -mcpu=native` elsewhere."""


def matmul(M: int, K: int, N: int) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    A = te.placeholder((M, K), name="A", dtype="float32")
    B = te.placeholder((K, N), name="B", dtype="float32")
    k = te.reduce_axis((0, K), name="k")
    C = te.compute((M, N), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, C


def measure(func: weft.Library, name: str, size: int) -> float:
    """GFLOP/s of a matmul of this size, after comparing its result with NumPy."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size), dtype=np.float32) for _ in range(2))
    c = np.zeros((size, size), dtype="float32")
    func[name](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-3, atol=1e-3)
    result = func.time_evaluator(name, number=3, repeat=2)(a, b, c)
    return 2.0 * size**3 / 1e9 / result.mean


def naive(size: int) -> float:
    """The loops as declared."""
    A, B, C = matmul(size, size, size)
    s = te.create_schedule(C.op)
    print(weft.lower(s, [A, B, C], simple_mode=True))
    func = weft.build(s, [A, B, C], target=TARGET, name="matmul_naive")
    return measure(func, "matmul_naive", size)


def optimised(size: int) -> float:
    """Tiles, a split reduction, vectors, threads, an unrolled inner loop."""
    A, B, C = matmul(size, size, size)
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    (k,) = C.op.reduce_axis
    io, ii = s[C].split(i, factor=32)
    jo, ji = s[C].split(j, factor=32)
    ko, ki = s[C].split(k, factor=4)
    s[C].reorder(io, jo, ko, ii, ji, ki)
    _, jiv = s[C].split(ji, factor=8)
    s[C].vectorize(jiv)
    s[C].parallel(io)
    s[C].unroll(ki)
    print(weft.lower(s, [A, B, C], simple_mode=True))
    func = weft.build(s, [A, B, C], target=TARGET, name="matmul_optimized")
    assembly = func.get_source("asm")
    print(f"assembly: {len(assembly.splitlines())} lines, with vectors of eight: {'ymm' in assembly}")
    return measure(func, "matmul_optimized", size)


def requests() -> dict[str, str]:
    """Each stage transform alone: name -> the loops."""
    found: dict[str, str] = {}
    for name in ("split", "reorder", "tile", "vectorize", "parallel", "unroll", "fuse"):
        A, B, C = matmul(1024, 1024, 1024)
        s = te.create_schedule(C.op)
        i, j = C.op.axis
        (k,) = C.op.reduce_axis
        if name == "split":
            s[C].split(i, factor=32)
        elif name == "tile":
            s[C].tile(i, j, x_factor=32, y_factor=32)
        elif name == "fuse":
            s[C].fuse(i, j)
        else:
            io, ii = s[C].split(i, factor=32)
            jo, ji = s[C].split(j, factor=8 if name == "vectorize" else 32)
            ko, ki = s[C].split(k, factor=4)
            s[C].reorder(io, jo, ko, ii, ji, ki)
            if name == "vectorize":
                s[C].vectorize(ji)
            elif name == "parallel":
                s[C].parallel(io)
            elif name == "unroll":
                s[C].unroll(ki)
        found[name] = str(weft.lower(s, [A, B, C], simple_mode=True))
    return found


def fully_connected(M: int = 24, N: int = 40) -> None:
    """relu(W @ x + b): three stages, the middle ones computed at their uses."""
    W, X, b = (te.placeholder(shape, name=name) for shape, name in (((M, N), "W"), ((N,), "X"), ((M,), "b")))
    j = te.reduce_axis((0, N), name="j")
    linear = te.compute((M,), lambda i: te.sum(W[i, j] * X[j], axis=j) + b[i])
    Y = te.compute((M,), lambda i: te.max(linear[i], 0.0))
    s = te.create_schedule(Y.op)
    func = weft.build(s, [W, X, b, Y], target=TARGET, name="layer")
    rng = np.random.default_rng(0)
    w, x, bias = (rng.standard_normal(shape, dtype=np.float32) for shape in ((M, N), (N,), (M,)))
    y = np.empty(M, np.float32)
    func["layer"](w, x, bias, y)
    np.testing.assert_allclose(y, np.maximum(w @ x + bias, 0), rtol=1e-4, atol=1e-5)


def conv2d(in_h: int = 224, in_w: int = 224, out_channel: int = 64) -> None:
    """A convolution with padding: the padded input is a separate stage with a conditional read."""
    batch, in_channel, kernel_h, kernel_w, pad_h, pad_w = 1, 3, 3, 3, 1, 1
    out_h = in_h - kernel_h + 2 * pad_h + 1
    out_w = in_w - kernel_w + 2 * pad_w + 1
    Data = te.placeholder((batch, in_channel, in_h, in_w), name="Data")
    Weight = te.placeholder((out_channel, in_channel, kernel_h, kernel_w), name="Weight")
    PaddedData = te.compute(
        (batch, in_channel, in_h + 2 * pad_h, in_w + 2 * pad_w),
        lambda n, c, h, w: te.if_then_else(
            te.all(h >= pad_h, h < in_h + pad_h, w >= pad_w, w < in_w + pad_w),
            Data[n, c, h - pad_h, w - pad_w],
            te.const(0.0, "float32"),
        ),
        name="PaddedData",
    )
    rc = te.reduce_axis((0, in_channel), name="rc")
    rh = te.reduce_axis((0, kernel_h), name="rh")
    rw = te.reduce_axis((0, kernel_w), name="rw")
    Conv = te.compute(
        (batch, out_channel, out_h, out_w),
        lambda n, co, h, w: te.sum(PaddedData[n, rc, h + rh, w + rw] * Weight[co, rc, rh, rw], axis=[rc, rh, rw]),
        name="Conv",
    )
    s = te.create_schedule(Conv.op)
    s[PaddedData].compute_inline()
    func = weft.build(s, [Data, Weight, Conv], target=TARGET, name="conv2d")
    rng = np.random.default_rng(0)
    data = rng.standard_normal((batch, in_channel, in_h, in_w), dtype=np.float32)
    weight = rng.standard_normal((out_channel, in_channel, kernel_h, kernel_w), dtype=np.float32)
    out = np.empty((batch, out_channel, out_h, out_w), np.float32)
    func["conv2d"](data, weight, out)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(data, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3))
    expected = np.einsum("nchwij,ocij->nohw", windows, weight)
    np.testing.assert_allclose(out, expected, rtol=1e-3, atol=1e-3)


def exercise_relu_of_sum(N: int = 1024 * 1024) -> None:
    """C = relu(A + B), vectorized and parallel."""
    A = te.placeholder((N,), name="A")
    B = te.placeholder((N,), name="B")
    C = te.compute((N,), lambda i: te.max(A[i] + B[i], te.const(0.0, "float32")), name="C")
    s = te.create_schedule(C.op)
    io, ii = s[C].split(C.op.axis[0], factor=8)
    s[C].vectorize(ii)
    s[C].parallel(io)
    func = weft.build(s, [A, B, C], target=TARGET)
    a, b = (np.random.default_rng(seed).standard_normal(N, dtype=np.float32) for seed in (0, 1))
    c = np.zeros(N, dtype="float32")
    func["main"](a, b, c)
    np.testing.assert_allclose(c, np.maximum(a + b, 0.0), rtol=1e-5)


def exercise_schedules(size: int = 512) -> dict[str, float]:
    """Schedules to compare; the last one requests an axis that tiling has split, which is rejected immediately."""

    def tiled_and_vectorized(s: te.StageSchedule, C: Any) -> None:
        s[C].tile(*C.op.axis, 32, 32)
        s[C].vectorize(s[C].op.axis[-1])  # won't work directly after tile

    configs = [
        ("Naive", lambda s, C: None),
        ("Tile 16", lambda s, C: s[C].tile(*C.op.axis, 16, 16)),
        ("Tile 32", lambda s, C: s[C].tile(*C.op.axis, 32, 32)),
        ("Tile 64", lambda s, C: s[C].tile(*C.op.axis, 64, 64)),
        ("Tile 32 + vec", tiled_and_vectorized),
    ]
    speeds: dict[str, float] = {}
    for name, apply_schedule in configs:
        A, B, C = matmul(size, size, size)
        s = te.create_schedule(C.op)
        try:
            apply_schedule(s, C)
        except weft.CompileError as error:
            print(f"  {name}: {error.message}")
        func = weft.build(s, [A, B, C], target=TARGET)
        speeds[name] = measure(func, "main", size)
    return speeds


def exercise_stages_of_lowering() -> list[str]:
    """An 8 x 8 matmul: plain, split, tiled."""
    A, B, C = matmul(8, 8, 8)
    s1 = te.create_schedule(C.op)
    s2 = te.create_schedule(C.op)
    s2[C].split(C.op.axis[0], factor=4)
    s3 = te.create_schedule(C.op)
    io, ii = s3[C].split(C.op.axis[0], factor=4)
    jo, ji = s3[C].split(C.op.axis[1], factor=4)
    s3[C].reorder(io, jo, ii, ji)
    return [weft.script.script(weft.lower(s, [A, B, C], simple_mode=True)) for s in (s1, s2, s3)]


def main() -> None:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    for name, speed in (("naive", naive(size)), ("optimised", optimised(size))):
        print(f"{name:10} {speed:6.1f} GFLOP/s")
    for name, loops in requests().items():
        print(f"=== {name}\n{loops}")
    fully_connected()
    conv2d()
    exercise_relu_of_sum()
    for name, speed in exercise_schedules(min(size, 256)).items():
        print(f"  {name:20s}: {speed:6.1f} GFLOP/s")
    for title, loops in zip(
        ("Naive", "After split(i, 4)", "After split + reorder"), exercise_stages_of_lowering(), strict=True
    ):
        print(f"=== {title} ===\n{loops}")


if __name__ == "__main__":
    main()
