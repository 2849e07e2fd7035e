"""te.ops: tensors in other orders and shapes, put together, cut apart, chosen from, against NumPy."""

from typing import Any

import numpy as np
import pytest
from operator_cases import DTYPES, FLOATS, NUMBERS, Case, Input, check

import weft
from weft import te
from weft.te import ops

X = (3, 4, 5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype: str) -> None:
    x, few = Input(X, dtype), Input((3, 2, 5), dtype)
    places = Input((2, 2), "int32", 0, 3)
    cases = [
        Case("transpose", ops.transpose, [x], np.transpose),
        Case("reshape", lambda a: ops.reshape(a, (6, -1)), [x], lambda a: a.reshape(6, -1)),
        Case("concatenate", lambda a, b: ops.concatenate([a, b], 1), [x, few], lambda a, b: np.concatenate([a, b], 1)),
        Case("pad", lambda a: ops.pad(a, 1, constant_values=1), [x], lambda a: np.pad(a, 1, constant_values=1)),
        Case("reflect", lambda a: ops.pad(a, 2, "reflect"), [x], lambda a: np.pad(a, 2, "reflect")),
        Case("slice", lambda a: ops.strided_slice(a, (2, -1), (None, 0), (-1, -2)), [x], lambda a: a[2::-1, -1:0:-2]),
        Case("take", lambda a, i: ops.take(a, i, 1), [x, places], lambda a, i: np.take(a, i, 1)),
        Case("tril", ops.tril, [x], np.tril),
        Case(
            "broadcast",
            lambda a: ops.broadcast_to(a, (2, 3, 4)),
            [Input((3, 1), dtype)],
            lambda a: np.broadcast_to(a, (2, 3, 4)),
        ),
        Case("full", lambda a: ops.full((2, 3), 1, a.dtype), [x], lambda a: np.full((2, 3), 1)),
    ]
    check(cases)


def test_axes() -> None:
    x = [Input(X)]
    cases = [
        Case("transpose", lambda a: ops.transpose(a, (1, -1, 0)), x, lambda a: a.transpose(1, 2, 0)),
        Case("transpose of one", ops.transpose, [Input((4,))], np.transpose),
        Case("transpose of none", ops.transpose, [Input(())], np.transpose),
        Case("flip", ops.flip, x, np.flip),
        Case("flip one", lambda a: ops.flip(a, -2), x, lambda a: np.flip(a, -2)),
        Case("flip two", lambda a: ops.flip(a, (0, 2)), x, lambda a: np.flip(a, (0, 2))),
        Case("expand", lambda a: ops.expand_dims(a, -1), x, lambda a: np.expand_dims(a, -1)),
        Case("expand two", lambda a: ops.expand_dims(a, (0, 2)), x, lambda a: np.expand_dims(a, (0, 2))),
        Case("squeeze", ops.squeeze, [Input((1, 3, 1, 2))], np.squeeze),
        Case("squeeze one", lambda a: ops.squeeze(a, -2), [Input((1, 3, 1, 2))], lambda a: np.squeeze(a, -2)),
        Case("squeeze all", ops.squeeze, [Input((1, 1))], np.squeeze),
        Case("broadcast one", lambda a: ops.broadcast_to(a, (2,)), [Input(())], lambda a: np.broadcast_to(a, (2,))),
        Case("flatten", ops.flatten, x, np.ravel),
        Case("flatten two", lambda a: ops.flatten(a, 1), x, lambda a: a.reshape(3, 20)),
        Case("flatten of none", ops.flatten, [Input(())], np.ravel),
    ]
    check(cases)


RESHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((6, 4), (4, 6)),
    ((6, 4), (2, 3, 2, 2)),
    ((2, 3, 4), (24,)),
    ((24,), (2, 3, 4)),
    ((2, 6, 5), (2, 2, 3, 5)),
    ((1, 6, 1), (3, 1, 2)),
    ((4, 9), (6, 6)),
    ((1,), ()),
    ((), (1, 1)),
    ((1, 1), (1,)),
    ((0, 3), (3, 0, 2)),
    ((5, 1, 1), (1, 5)),
]


def test_reshape() -> None:
    cases = [
        Case(f"{old} {new}", lambda a, n=new: ops.reshape(a, n), [Input(old)], lambda a, n=new: a.reshape(n))
        for old, new in RESHAPES
    ]
    cases += [
        Case("unknown", lambda a: ops.reshape(a, (-1, 3)), [Input(("n", 4, 3))], lambda a: a.reshape(-1, 3), {"n": 5}),
        Case(
            "heads",
            lambda a: ops.reshape(a, (*a.shape[:1], 2, -1)),
            [Input(("n", 6))],
            lambda a: a.reshape(-1, 2, 3),
            {"n": 5},
        ),
        Case("flat", ops.flatten, [Input(("n", "m"))], np.ravel, {"n": 3, "m": 4}),
        Case(
            "swapped",
            lambda a: ops.reshape(a, (a.shape[1], a.shape[0])),
            [Input(("n", "m"))],
            lambda a: a.reshape(4, 3),
            {"n": 3, "m": 4},
        ),
    ]
    check(cases)


def test_joining() -> None:
    a, b, c = Input((2, 3)), Input((4, 3)), Input((0, 3))
    cases = [
        Case("concatenate", lambda *t: ops.concatenate(t), [a, b, c, a], lambda *t: np.concatenate(t)),
        Case("one", lambda t: ops.concatenate([t], -1), [a], lambda t: t),
        Case("stack", lambda *t: ops.stack(t), [a, a, a], lambda *t: np.stack(t)),
        Case("stack last", lambda *t: ops.stack(t, -1), [a, a], lambda *t: np.stack(t, -1)),
        Case(
            "symbolic",
            lambda *t: ops.concatenate(t),
            [Input(("n", 2)), Input(("m", 2)), Input((3, 2))],
            lambda *t: np.concatenate(t),
            {"n": 2, "m": 4},
        ),
        Case("split", lambda t: ops.split(t, 3, 1), [Input((2, 6))], lambda t: np.split(t, 3, 1)),
        Case("split at", lambda t: ops.split(t, [1, 1, 4], -1), [Input((2, 6))], lambda t: np.split(t, [1, 1, 4], 1)),
        Case("split symbolic", lambda t: ops.split(t, [2]), [Input(("n", 2))], lambda t: np.split(t, [2]), {"n": 5}),
        Case("tile", lambda t: ops.tile(t, (2, 1, 3)), [a], lambda t: np.tile(t, (2, 1, 3))),
        Case("tile last", lambda t: ops.tile(t, 2), [a], lambda t: np.tile(t, 2)),
        Case("tile to nothing", lambda t: ops.tile(t, (0, 2)), [a], lambda t: np.tile(t, (0, 2))),
        Case("tile nothing", lambda t: ops.tile(t, (2, 2)), [c], lambda t: np.tile(t, (2, 2))),
        Case("repeat", lambda t: ops.repeat(t, 3, -1), [a], lambda t: np.repeat(t, 3, -1)),
        Case("repeat 0", lambda t: ops.repeat(t, 0), [a], lambda t: np.repeat(t, 0, 0)),
        Case("repeat symbolic", lambda t: ops.repeat(t, 2), [Input(("n",))], lambda t: np.repeat(t, 2), {"n": 4}),
    ]
    check(cases)


def test_padding() -> None:
    x = [Input((4, 5))]
    cases = [
        Case(
            f"{mode} {width}",
            lambda a, w=width, m=mode: ops.pad(a, w, m),
            x,
            lambda a, w=width, m=mode: np.pad(a, w, m),
        )
        for mode in ("constant", "edge", "reflect")
        for width in (1, (2, 1), ((0, 3), (2, 0)), 0)
    ]
    cases += [
        Case("value", lambda a: ops.pad(a, 1, constant_values=-2.5), x, lambda a: np.pad(a, 1, constant_values=-2.5)),
        Case("nothing", lambda a: ops.pad(a, ((1, 0), (0, 0))), [Input((0, 2))], lambda a: np.pad(a, ((1, 0), (0, 0)))),
        Case("symbolic", lambda a: ops.pad(a, 2), [Input(("n",))], lambda a: np.pad(a, 2), {"n": 3}),
        Case(
            "symbolic edge", lambda a: ops.pad(a, 2, "edge"), [Input(("n",))], lambda a: np.pad(a, 2, "edge"), {"n": 3}
        ),
        Case(
            "symbolic reflect",
            lambda a: ops.pad(a, 2, "reflect"),
            [Input(("n",))],
            lambda a: np.pad(a, 2, "reflect"),
            {"n": 3},
        ),
    ]
    check(cases)


SLICES: list[tuple[slice, ...]] = [
    (slice(1, 3), slice(None, None, 2)),
    (slice(None, None, -1), slice(10, None, -3)),
    (slice(-2, None),),
    (slice(3, 1), slice(0, 100)),
    (slice(None), slice(4, None, -1), slice(1, 4, 2)),
]


def test_strided_slice() -> None:
    cases = [
        Case(
            str(chosen),
            lambda a, c=chosen: ops.strided_slice(
                a, [s.start for s in c], [s.stop for s in c], [s.step or 1 for s in c]
            ),
            [Input((4, 5, 6))],
            lambda a, c=chosen: a[c],
        )
        for chosen in SLICES
    ]
    cases += [
        Case("axes", lambda a: ops.strided_slice(a, [1], [3], axes=[-1]), [Input((2, 5))], lambda a: a[:, 1:3]),
        Case(
            "symbolic",
            lambda a: ops.strided_slice(a, (1, 1), (None, -1)),
            [Input(("n", "m"))],
            lambda a: a[1:, 1:-1],
            {"n": 4, "m": 5},
        ),
    ]
    check(cases)


def test_indices() -> None:
    x, outside = Input((4, 5), "int32"), Input((3, 2), "int64", -9, 9)

    def wrapped(a: Any, i: Any) -> Any:
        return np.take(a, i, 0, mode="wrap")

    small = Input((2, 3), "int8", 0, 3)
    cases = [
        Case("take", lambda a, i: ops.take(a, i, -1), [x, small], lambda a, i: np.take(a, i, -1)),
        Case("flat", ops.take, [x, Input((7,), "int16", 0, 19)], np.take),
        Case("clip", lambda a, i: ops.take(a, i, 0), [x, outside], lambda a, i: np.take(a, i, 0, mode="clip")),
        Case("wrap", lambda a, i: ops.take(a, i, 0, "wrap"), [x, outside], wrapped),
        Case("one", lambda a, i: ops.take(a, i, 0), [x, Input((), "int32", values=2)], lambda a, i: a[i]),
        Case(
            "none", lambda a, i: ops.take(a, i, 0), [Input((0, 3)), Input((0,), "int32")], lambda a, i: np.take(a, i, 0)
        ),
        Case(
            "symbolic",
            lambda a, i: ops.take(a, i, 0),
            [Input(("n", 3)), Input(("m",), "int32", 0, 3)],
            lambda a, i: a[i],
            {"n": 4, "m": 6},
        ),
        Case(
            "of nothing",
            lambda a, i: ops.take(a, i, 0),
            [Input(("n", 3)), Input((2,), "int32")],
            lambda a, i: np.zeros((2, 3)),
            {"n": 0},
        ),
        Case(
            "gather",
            lambda a, i: ops.gather(a, 0, i),
            [x, Input((2, 5), "int32", 0, 3)],
            lambda a, i: np.take_along_axis(a, i, 0),
        ),
        Case(
            "gather last",
            lambda a, i: ops.gather(a, -1, i, "wrap"),
            [x, Input((4, 3), "int32", -5, 4)],
            lambda a, i: np.take_along_axis(a, i, 1),
        ),
        Case("nd", ops.gather_nd, [Input((4, 5, 2)), Input((2, 3, 2), "int32", 0, 3)], lambda a, i: a[tuple(i)]),
        Case(
            "nd, one coordinate", ops.gather_nd, [Input((4, 5)), Input((1, 3), "int32", 0, 3)], lambda a, i: a[tuple(i)]
        ),
        Case(
            "one hot",
            lambda i: ops.one_hot(i, 4),
            [Input((2, 3), "int8", -1, 5)],
            lambda i: (i[..., None] == np.arange(4)) * 1.0,
        ),
        Case(
            "one hot first",
            lambda i: ops.one_hot(i, 4, 5, -1, 0, "int32"),
            [Input((3,), "int64", 0, 3)],
            lambda i: np.where(np.arange(4)[:, None] == i, 5, -1),
        ),
    ]
    check(cases)


@pytest.mark.parametrize("k", [-2, 0, 3])
def test_triangles(k: int) -> None:
    cases = [
        Case(name, lambda a, b=build: b(a, k), [Input((2, 4, 5))], lambda a, r=reference: r(a, k))
        for name, build, reference in (("tril", ops.tril, np.tril), ("triu", ops.triu, np.triu))
    ]
    check(cases)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_arange(dtype: str) -> None:
    bounds: list[tuple[Any, ...]] = [(5,), (2, 9), (9, 2, -2), (0, 10, 3), (3, 3), (4, 2)]
    if dtype in FLOATS:
        bounds += [(0.5, 3, 0.25)]
    outputs = [ops.arange(*given, dtype=dtype, name=f"y{'abcdefg'[n]}") for n, given in enumerate(bounds)]
    made = [np.zeros(tensor.shape, "uint16" if dtype == "bfloat16" else dtype) for tensor in outputs]
    weft.build(te.create_func(outputs), target="llvm", default_schedule=False)["main"](*made)
    for given, array in zip(bounds, made, strict=True):
        got = (array.astype("uint32") << 16).view("float32") if dtype == "bfloat16" else array
        np.testing.assert_array_equal(got, np.arange(*given))
    for bound in (float("inf"), float("nan")):
        with pytest.raises(weft.CompileError, match=f"arange takes finite numbers, got 0, {bound} and 1"):
            ops.arange(bound, dtype=dtype)


def test_images() -> None:
    """Resizing against its definition in floating point."""

    def source(mode: str, n: int, size: int) -> Any:
        i = np.arange(size)
        if mode == "align_corners":
            return i * (n - 1) / max(size - 1, 1)
        return (i + 0.5) * n / size - 0.5 if mode == "half_pixel" else i * n / size

    def between(x: Any, mode: str, size: tuple[int, int]) -> Any:
        for axis, n in zip((2, 3), size, strict=True):
            extent = x.shape[axis]
            place = np.clip(source(mode, extent, n), 0, extent - 1)
            low = np.minimum(np.floor(place).astype(int), extent - 1)
            high, part = np.minimum(low + 1, extent - 1), np.expand_dims(place - low, tuple(range(1, 4 - axis)))
            x = np.take(x, low, axis) * (1 - part) + np.take(x, high, axis) * part
        return x

    def nearest(x: Any, mode: str, size: tuple[int, int]) -> Any:
        for axis, n in zip((2, 3), size, strict=True):
            extent = x.shape[axis]
            place = source(mode, extent, n) + (0 if mode == "asymmetric" else 0.5)
            x = np.take(x, np.clip(np.floor(place + 1e-9).astype(int), 0, extent - 1), axis)
        return x

    cases: list[Case] = []
    for shape, size in (((1, 2, 4, 5), (8, 7)), ((2, 1, 7, 6), (3, 1)), ((1, 1, 1, 3), (4, 3))):
        for mode in ("half_pixel", "align_corners", "asymmetric"):
            for method, reference in (("linear", between), ("nearest", nearest)):
                cases.append(
                    Case(
                        f"{method} {mode} {shape} {size}",
                        lambda x, s=size, m=method, c=mode: ops.resize2d(
                            x, s, method=m, coordinate_transformation_mode=c
                        ),
                        [Input(shape)],
                        lambda x, s=size, m=mode, r=reference: r(x, m, s),
                    )
                )
    cases += [
        Case(
            "channels last",
            lambda x: ops.resize2d(x, 6, "NHWC"),
            [Input((1, 3, 4, 2))],
            lambda x: between(x.transpose(0, 3, 1, 2), "half_pixel", (6, 6)).transpose(0, 2, 3, 1),
        ),
        Case(
            "integers",
            lambda x: ops.resize2d(x, 6, method="nearest"),
            [Input((1, 1, 3, 4), "int8")],
            lambda x: nearest(x, "half_pixel", (6, 6)),
        ),
        Case(
            "symbolic",
            lambda x: ops.resize2d(x, 6),
            [Input((1, 1, "h", "w"))],
            lambda x: between(x, "half_pixel", (6, 6)),
            {"h": 3, "w": 8},
        ),
    ]
    check(cases)


def test_quantization() -> None:
    def to_int8(x: Any, scale: Any, zero: Any) -> Any:
        return np.clip(np.rint(x / scale) + zero, -128, 127).astype("int8")

    x = Input((3, 4), "float32", -40, 40)
    scales, zeros = Input((4,), values=[0.25, 0.5, 1.0, 2.0]), Input((4,), "int32", values=[0, -3, 5, 100])
    cases = [
        Case("one scale", lambda a: ops.quantize(a, 0.25, 3), [x], lambda a: to_int8(a, 0.25, 3)),
        Case("each", lambda a, s, z: ops.quantize(a, s, z, axis=-1), [x, scales, zeros], to_int8),
        Case("int16", lambda a: ops.quantize(a, 0.5, dtype="int16"), [x], lambda a: np.rint(a / 0.5)),
        Case(
            "beyond",
            lambda a: ops.quantize(a, 1.0),
            [Input((3,), values=[1e9, -np.inf, 3.5])],
            lambda a: np.array([127, -128, 4]),
        ),
        Case("half", lambda a: ops.quantize(a, 0.5), [Input((5,), "float16")], lambda a: to_int8(a, 0.5, 0)),
        Case(
            "back",
            lambda a: ops.dequantize(a, 0.25, 3),
            [Input((7,), "int8", -128, 127)],
            lambda a: (a.astype(int) - 3) * 0.25,
        ),
        Case(
            "back each",
            lambda a, s, z: ops.dequantize(a, s, z, 1),
            [Input((3, 4), "int8", -128, 127), scales, zeros],
            lambda a, s, z: (a - z) * s,
        ),
        Case(
            "sums",
            lambda a: ops.dequantize(a, 0.5, dtype="float64"),
            [Input((7,), "int32", -(2**31), 2**31 - 1)],
            lambda a: a * 0.5,
        ),
    ]
    check(cases)


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_indices_are_wrapped_to_symbolic_extents(dtype: str, target: str) -> None:
    """Indices in range, negative ones, and those that need a division."""
    n = te.var("n")
    x, places = te.placeholder((3, n), "float32", name="X"), te.placeholder((3, 16), dtype, name="I")
    run = weft.build(te.create_func([x, places, ops.take_along_axis(x, places, 1, name="Y")]), target=target)["main"]
    limits = np.iinfo(dtype)
    for extent in (1, 2, 7, 100):
        some = [0, 1, -1, extent - 1, extent, extent + 1, -extent, -extent - 1, 1 - extent, 3 * extent, -5 * extent]
        indices = np.array([*some, limits.min, limits.max, limits.min + 1, 12345, -54321], dtype)
        data = np.arange(3 * extent, dtype=np.float32).reshape(3, extent)
        all_rows = np.stack([indices, indices[::-1], indices])
        expected = np.take_along_axis(data, np.mod(all_rows, np.array(extent, dtype)), 1)
        run(data, all_rows, found := np.zeros_like(expected))
        np.testing.assert_array_equal(found, expected)
