"""te.ops: convolutions and pools against NumPy, and against PyTorch where it is installed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from operator_cases import FLOATS, Case, Input, check
from operator_references import adapted, convolved, pooled
from tiers import first_tier

from weft.te import ops

OP: Any = ops


@dataclass(frozen=True)
class Convolution:
    """Shapes and options of a convolution, as its function takes them and spelled out."""

    data: tuple[int, ...]
    weight: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    strides: tuple[int, ...] = ()
    padding: tuple[tuple[int, int], ...] = ()
    dilation: tuple[int, ...] = ()
    groups: int = 1

    @property
    def rank(self) -> int:
        return len(self.data) - 2

    def spelled(self) -> tuple[Any, Any, Any, int]:
        rank = self.rank
        return self.strides or (1,) * rank, self.padding or ((0, 0),) * rank, self.dilation or (1,) * rank, self.groups

    def case(self, dtype: str) -> Case:
        name = f"conv{self.rank}d"
        return Case(
            f"{name} {self.data} {self.weight} {self.options}",
            lambda x, w: getattr(OP, name)(x, w, **self.options),
            [Input(self.data, dtype), Input(self.weight, dtype)],
            lambda x, w: convolved(x, w, *self.spelled()),
        )


CONVOLUTIONS = [
    Convolution((2, 3, 9), (4, 3, 3), {"padding": 1, "strides": 2}, (2,), ((1, 1),)),
    Convolution((1, 4, 8), (6, 2, 2), {"groups": 2, "padding": (2, 0), "dilation": 3}, (1,), ((2, 0),), (3,), 2),
    Convolution((2, 3, 5, 6), (4, 3, 3, 3), {"padding": 1}, (), ((1, 1), (1, 1))),
    Convolution((1, 2, 7, 5), (3, 2, 1, 1), {}),
    Convolution((1, 2, 7, 8), (2, 2, 3, 2), {"strides": (2, 3), "padding": (0, 2, 1, 1)}, (2, 3), ((0, 1), (2, 1))),
    Convolution(
        (1, 1, 6, 6), (1, 1, 2, 3), {"padding": ((1, 0), (0, 2)), "dilation": (3, 1)}, (), ((1, 0), (0, 2)), (3, 1)
    ),
    Convolution((1, 6, 4, 4), (6, 2, 3, 3), {"groups": 3, "padding": "same"}, (), ((1, 1), (1, 1)), (), 3),
    Convolution((1, 1, 6, 7), (1, 1, 3, 2), {"strides": 2, "padding": "SAME"}, (2, 2), ((0, 1), (0, 1))),
    Convolution((1, 4, 3, 3), (4, 1, 3, 3), {"groups": 4, "padding": "VALID"}, (), (), (), 4),
    Convolution((1, 1, 1, 1), (1, 1, 1, 1), {}),
    Convolution((0, 2, 4, 4), (3, 2, 3, 3), {"padding": 1}, (), ((1, 1), (1, 1))),
    Convolution(
        (1, 2, 4, 5, 3),
        (2, 2, 2, 3, 2),
        {"padding": (1, 0, 1), "strides": (2, 1, 1)},
        (2, 1, 1),
        ((1, 1), (0, 0), (1, 1)),
    ),
]


@pytest.mark.parametrize("dtype", first_tier(["int8", "int32", *FLOATS], "int8", "float32"))
def test_convolutions(dtype: str) -> None:
    chosen = CONVOLUTIONS if dtype == "float32" else CONVOLUTIONS[:5:2]
    check([one.case(dtype) for one in chosen])


def test_layouts_of_convolutions() -> None:
    same = ((1, 1), (1, 1))

    def last(x: Any, w: Any, order: str = "HWIO") -> Any:
        kernel = w.transpose([order.index(c) for c in "OIHW"])
        return convolved(x.transpose(0, 3, 1, 2), kernel, (1, 1), same, (1, 1)).transpose(0, 2, 3, 1)

    cases = [
        Case(
            "NHWC",
            lambda x, w: ops.conv2d(x, w, 1, 1, data_layout="NHWC"),
            [Input((1, 4, 5, 2)), Input((3, 3, 2, 4))],
            last,
        ),
        Case(
            "OHWI",
            lambda x, w: ops.conv2d(x, w, 1, 1, data_layout="NHWC", kernel_layout="OHWI"),
            [Input((1, 4, 5, 2)), Input((4, 3, 3, 2))],
            lambda x, w: last(x, w, "OHWI"),
        ),
        Case(
            "NWC",
            lambda x, w: ops.conv1d(x, w, data_layout="NWC"),
            [Input((2, 7, 3)), Input((2, 3, 4))],
            lambda x, w: convolved(x.transpose(0, 2, 1), w.transpose(2, 1, 0), (1,), ((0, 0),), (1,)).transpose(
                0, 2, 1
            ),
        ),
        Case(
            "NDHWC",
            lambda x, w: ops.conv3d(x, w, data_layout="NDHWC"),
            [Input((1, 3, 4, 3, 2)), Input((2, 2, 2, 2, 3))],
            lambda x, w: convolved(
                np.moveaxis(x, -1, 1), w.transpose(4, 3, 0, 1, 2), (1,) * 3, ((0, 0),) * 3, (1,) * 3
            ).transpose(0, 2, 3, 4, 1),
        ),
        Case(
            "sums in int32",
            lambda x, w: ops.conv2d(x, w, out_dtype="int32"),
            [Input((1, 8, 5, 5), "int8", -128, 127), Input((2, 8, 3, 3), "int8", -128, 127)],
            lambda x, w: convolved(x.astype("int32"), w.astype("int32"), (1, 1), ((0, 0),) * 2, (1, 1)),
        ),
        Case(
            "symbolic",
            lambda x, w: ops.add(ops.relu(ops.conv2d(x, w, 1, 1)), x),  # the shape is that of the data
            [Input(("n", 2, "h", "w")), Input((2, 2, 3, 3))],
            lambda x, w: np.maximum(convolved(x, w, (1, 1), same, (1, 1)), 0) + x,
            {"n": 2, "h": 5, "w": 4},
        ),
        Case(
            "symbolic, strides",
            lambda x, w: ops.conv2d(x, w, 2, 1),
            [Input((1, 2, "h", 9)), Input((3, 2, 3, 3))],
            lambda x, w: convolved(x, w, (2, 2), same, (1, 1)),
            {"h": 6},
        ),
    ]
    check(cases)


@pytest.mark.parametrize("dtype", first_tier(["int16", *FLOATS], "int16", "float32"))
def test_depthwise_convolutions(dtype: str) -> None:
    def deep(x: Any, w: Any, strides: Any, padding: Any, dilation: Any = (1, 1)) -> Any:
        return convolved(x, w.reshape(-1, 1, *w.shape[2:]), strides, padding, dilation, x.shape[1])

    one, two = ((1, 1), (1, 1)), ((2, 0), (1, 1))
    cases = [
        Case(
            "one",
            lambda x, w: ops.depthwise_conv2d(x, w, 1, 1),
            [Input((2, 3, 5, 4), dtype), Input((3, 1, 3, 3), dtype)],
            lambda x, w: deep(x, w, (1, 1), one),
        ),
        Case(
            "two",
            lambda x, w: ops.depthwise_conv2d(x, w, 2, ((2, 0), (1, 1)), (1, 2)),
            [Input((1, 3, 7, 7), dtype), Input((3, 2, 3, 3), dtype)],
            lambda x, w: deep(x, w, (2, 2), two, (1, 2)),
        ),
        Case(
            "NHWC",
            lambda x, w: ops.depthwise_conv2d(x, w, 1, 1, data_layout="NHWC"),
            [Input((1, 4, 5, 3), dtype), Input((3, 3, 3, 2), dtype)],
            lambda x, w: deep(x.transpose(0, 3, 1, 2), w.transpose(2, 3, 0, 1), (1, 1), one).transpose(0, 2, 3, 1),
        ),
    ]
    check(cases)


def transposed(x: Any, w: Any, stride: int, padding: tuple[int, int], more: int, gap: int, groups: int) -> Any:
    """What the gradient of a convolution adds where: each element, times the kernel, to its window."""
    n, _, height, width = x.shape
    _, outputs, down, right = w.shape
    full = [(e - 1) * stride + gap * (k - 1) + 1 + more for e, k in ((height, down), (width, right))]
    result = np.zeros((n, outputs * groups, *full))
    for g, (data, kernel) in enumerate(zip(np.split(x, groups, 1), np.split(w, groups, 0), strict=True)):
        for r in range(down):
            for s in range(right):
                rows = slice(r * gap, r * gap + (height - 1) * stride + 1, stride)
                columns = slice(s * gap, s * gap + (width - 1) * stride + 1, stride)
                part = result[:, g * outputs : (g + 1) * outputs, rows, columns]
                part += np.einsum("nchw,co->nohw", data, kernel[:, :, r, s])
    before, after = padding
    return result[:, :, before : full[0] - after, before : full[1] - after].astype(x.dtype)


TRANSPOSED: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, int, int, int, int]]] = [
    ((2, 3, 4, 5), (3, 2, 3, 3), (1, 0, 0, 1, 1)),
    ((1, 2, 4, 3), (2, 3, 3, 2), (2, 1, 1, 1, 1)),
    ((1, 4, 3, 3), (4, 2, 2, 2), (3, 1, 0, 2, 2)),
    ((1, 1, 3, 3), (1, 1, 1, 1), (2, 1, 0, 1, 1)),  # the border takes away more than the kernel adds
]


@pytest.mark.parametrize("dtype", ["int32", "bfloat16", "float32"])
def test_transposed_convolutions(dtype: str) -> None:
    cases = [
        Case(
            f"{data} {weight} {options}",
            lambda x, w, o=options: ops.conv2d_transpose(x, w, *o),
            [Input(data, dtype), Input(weight, dtype)],
            lambda x, w, o=options: transposed(x, w, o[0], (o[1], o[1]), *o[2:]),
        )
        for data, weight, options in (TRANSPOSED if dtype == "float32" else TRANSPOSED[1:3])
    ]
    last = Case(
        "NHWC",
        lambda x, w: ops.conv2d_transpose(x, w, 2, 1, data_layout="NHWC"),
        [Input((1, 3, 4, 2), dtype), Input((3, 3, 2, 5), dtype)],
        lambda x, w: transposed(x.transpose(0, 3, 1, 2), w.transpose(2, 3, 0, 1), 2, (1, 1), 0, 1, 1).transpose(
            0, 2, 3, 1
        ),
    )
    symbolic = Case(
        "symbolic",
        lambda x, w: ops.conv2d_transpose(x, w, 2, 1, 1),
        [Input(("n", 2, "h", 3), dtype), Input((2, 3, 3, 3), dtype)],
        lambda x, w: transposed(x, w, 2, (1, 1), 1, 1, 1),
        {"n": 2, "h": 4},
    )
    check([*cases, last, symbolic])


@dataclass(frozen=True)
class Pool:
    """Shape and options of a pool."""

    data: tuple[int, ...]
    kernel: Any
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    def case(self, kind: str, dtype: str) -> Case:
        name = f"{kind}_pool{len(self.data) - 2}d"
        options = {k: v for k, v in self.options.items() if kind == "avg" or k != "count_include_pad"}
        return Case(
            f"{name} {self}",
            lambda x: getattr(OP, name)(x, self.kernel, **options),
            [Input(self.data, dtype)],
            lambda x: pooled(x, kind, self.kernel, **options),
        )


POOLS = [
    Pool((2, 3, 9), 3),
    Pool((1, 2, 8), 3, {"strides": 2, "padding": 1, "count_include_pad": False}),
    Pool((1, 2, 6, 7), 2),
    Pool((1, 2, 6, 7), (3, 2), {"strides": (2, 1), "padding": 1}),
    Pool((1, 2, 6, 7), 3, {"strides": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False}),
    Pool((1, 1, 5, 6), 2, {"strides": 2, "ceil_mode": True}),
    Pool((1, 1, 4, 8), 3, {"strides": 3, "padding": 1, "ceil_mode": True}),
    Pool((1, 1, 7, 8), 2, {"strides": 1, "dilation": 3, "padding": ((1, 0), (0, 2)), "count_include_pad": False}),
    Pool((1, 1, 3, 3), 3, {"strides": 1, "padding": (1, 1), "count_include_pad": False}),
    Pool((0, 2, 4, 4), 2),
    Pool((1, 2, 4, 5, 3), 2, {"padding": 1, "count_include_pad": False}),
]


@pytest.mark.parametrize("dtype", first_tier(["int8", "int32", *FLOATS], "int8", "float32"))
def test_pools(dtype: str) -> None:
    kinds = ("max", "sum", "avg") if dtype in FLOATS else ("max", "sum")
    chosen = POOLS if dtype == "float32" else POOLS[1:5:3]
    check([pool.case(kind, dtype) for pool in chosen for kind in kinds])


def test_pools_of_other_layouts_and_symbols() -> None:
    def last(x: Any, *arguments: Any, **options: Any) -> Any:
        return pooled(x.transpose(0, 3, 1, 2), *arguments, **options).transpose(0, 2, 3, 1)

    cases = [
        Case("NHWC", lambda x: ops.max_pool2d(x, 2, layout="NHWC"), [Input((1, 6, 5, 3))], lambda x: last(x, "max", 2)),
        Case(
            "symbolic",
            lambda x: ops.max_pool2d(x, 3, 2, 1),
            [Input((1, "c", "h", "w"))],
            lambda x: pooled(x, "max", 3, 2, 1),
            {"c": 2, "h": 6, "w": 7},
        ),
        Case(
            "symbolic means",
            lambda x: ops.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
            [Input((1, 2, "h", 7))],
            lambda x: pooled(x, "avg", 3, 2, 1, count_include_pad=False),
            {"h": 6},
        ),
        Case(
            "NaN",
            lambda x: ops.max_pool1d(x, 2),
            [Input((1, 1, 4), values=[1, np.nan, 3, 4])],
            lambda x: np.array([[[np.nan, 4]]]),
        ),
    ]
    check(cases)


@pytest.mark.parametrize("dtype", ["int8", "int64", "bfloat16", "float32"])
def test_adaptive_pools(dtype: str) -> None:
    shapes: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((1, 2, 7), (3,)),
        ((2, 2, 6, 5), (3, 2)),
        ((1, 2, 3, 4), (5, 4)),
        ((1, 1, 4, 3, 5), (2, 2, 1)),
    ]
    kinds = ("max", "sum", "avg") if dtype in FLOATS else ("max", "sum")
    cases = [
        Case(
            f"{kind} {shape} {sizes}",
            lambda x, k=kind, s=sizes: ops.adaptive_pool(x, s, k),
            [Input(shape, dtype)],
            lambda x, k=kind, s=sizes: adapted(x, k, s),
        )
        for shape, sizes in (shapes if dtype == "float32" else shapes[1:2])
        for kind in kinds
    ]
    cases += [
        Case(
            f"global {kind}",
            lambda x, k=kind: ops.global_pool(x, k),
            [Input((2, 3, 4, 5), dtype)],
            lambda x, k=kind: adapted(x, k, (1, 1)),
        )
        for kind in kinds
    ]
    symbolic = Input((2, 3, "h", "w"), dtype)
    cases.append(
        Case(
            "symbolic",
            lambda x: ops.global_pool(x, "max"),
            [symbolic],
            lambda x: adapted(x, "max", (1, 1)),
            {"h": 3, "w": 4},
        )
    )
    check(cases)
