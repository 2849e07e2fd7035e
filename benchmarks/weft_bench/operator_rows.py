"""Rows: operators of image and language models. Weights are constants for weft and onnxruntime, so that both may pack
them ahead of time; for PyTorch they are arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from weft import Interpreter
from weft import graph as G
from weft_bench.arrays import tensor
from weft_bench.contender import Array
from weft_bench.problem import ALONE, ONNX, ROW, TORCH, Goal, Nodes, Problem
from weft_bench.product_rows import Limit

Compute = Callable[..., G.Value]
Call = Callable[..., Any]
SQRT2 = math.sqrt(2.0)


def rows(limit: Limit) -> list[Problem]:
    """Convolutions, products, attention, pools, data movement, elementwise functions, normalisations."""
    one = {1: 1.05, 2: 1.0}
    return [
        *(
            convolution(limit, *sizes, goal=one)
            for sizes in (
                (1, 256, 64, 56, 1, 1),
                (1, 512, 2048, 7, 1, 1),
                (1, 1024, 2048, 14, 1, 2),
                (1, 2048, 512, 7, 1, 1),
                (1, 1152, 192, 7, 1, 1),
                (1, 64, 64, 56, 3, 1),
                (4, 64, 64, 56, 3, 1),
                (1, 512, 512, 7, 3, 1),
                (1, 256, 256, 14, 3, 1),
                (1, 512, 512, 14, 3, 2),
                (1, 16, 64, 55, 3, 1),
            )
        ),
        depthwise(limit(96), limit(112), 3),
        depthwise(limit(144), limit(56), 5),
        *(
            product(limit(m), limit(k), limit(n), one)
            for m, k, n in ((32, 1024, 1024), (128, 768, 3072), (128, 768, 768), (128, 3072, 768))
        ),
        layer_with_gelu(limit(384), limit(768), limit(3072)),
        attention(limit(12), limit(384), limit(64)),
        max_pool(limit(64), limit(112)),
        transposed((limit(2048), limit(2048)), (1, 0), "transpose"),
        transposed((1, limit(64), limit(112), limit(112)), (0, 2, 3, 1), "NCHW -> NHWC"),
        *(elements(name, limit(1 << 20)) for name in ("tanh", "sigmoid", "sin", "cos")),
        softmax_of_scores(limit(12), limit(384)),
        running_sums(limit(1024)),
    ]


def module_of(
    compute: Compute, inputs: Sequence[Array], constants: frozenset[int], dtype: str | None = None
) -> ModuleOp:
    """A graph function of the inputs that are not constants; with `dtype` all have that element type."""
    arrays = [array if dtype is None else array.astype(dtype) for array in inputs]
    builder = G.BlockBuilder()
    values = [
        G.const(array) if at in constants else G.var(f"x{at}", array.shape, array.dtype.name)
        for at, array in enumerate(arrays)
    ]
    with builder.function(ROW, [value for at, value in enumerate(values) if at not in constants]):
        with builder.dataflow():
            result = builder.emit_output(compute(*values))
        builder.emit_func_output(result)
    return builder.get()


def row(
    name: str,
    shapes: Sequence[Sequence[int]],
    compute: Compute,
    flops: int,
    *,
    torch: Call,
    onnx: Nodes,
    goal: Goal,
    constants: Sequence[int] = (),
    bound: str = "arithmetic",
    alone: Problem | None = None,
) -> Problem:
    """Float32 work given by `compute` as graph operators. The expected result is the interpreter's in float64.
    `torch(torch, *inputs)` returns the call to time.
    """
    folded = frozenset(constants)
    specs = tuple((tuple(shape), "float32") for shape in shapes)

    @cache
    def result() -> tuple[int, ...]:
        (function,) = module_of(compute, [np.zeros(shape, np.float32) for shape, _ in specs], folded).ops
        return tuple(function.function_type.outputs.data[0].get_shape())  # pyright: ignore

    def expected(*inputs: Array) -> Array:
        given = [array.astype(np.float64) for at, array in enumerate(inputs) if at not in folded]
        found = Interpreter(module_of(compute, inputs, folded, "float64")).call(ROW, *given)
        return np.asarray(found).astype(np.float32)

    return Problem(
        name,
        lambda inputs: module_of(compute, inputs, folded),
        specs,
        (result(), "float32"),
        expected,
        flops,
        None,
        torch,
        onnx,
        constants=folded,
        folds_constants=True,
        goals=(goal,),
        bound=bound,
        alone=alone,
    )


def convolution(
    limit: Limit, batch: int, channels: int, filters: int, size: int, kernel: int, stride: int, goal: dict[int, float]
) -> Problem:
    """A convolution with SAME padding, apart from the stride."""
    channels, filters, size = limit(channels), limit(filters), limit(size)
    border, result = kernel // 2, (size - 1) // stride + 1
    several, strided = f" batch {batch}" if batch > 1 else "", f"/{stride}" if stride > 1 else ""
    pads, strides = [border] * 4, [stride] * 2
    return row(
        f"conv {channels}->{filters} {size}x{size} {kernel}x{kernel}{strided}{several}, packed",
        [(batch, channels, size, size), (filters, channels, kernel, kernel)],
        lambda x, w: G.conv2d(x, w, strides=stride, padding=border),
        2 * batch * channels * filters * result**2 * kernel**2,
        torch=lambda torch, x, w: lambda: torch.nn.functional.conv2d(x, w, None, stride, border),
        onnx=lambda helper: [helper.make_node("Conv", ["x0", "x1"], ["y"], pads=pads, strides=strides)],
        goal=Goal((TORCH, ONNX), goal),
        constants=[1],
    )


def depthwise(channels: int, size: int, kernel: int) -> Problem:
    """A depthwise convolution with stride 2."""
    border, result = kernel // 2, (size - 1) // 2 + 1
    options = {"pads": [border] * 4, "strides": [2, 2], "group": channels}
    return row(
        f"depthwise {channels} {size}x{size} {kernel}x{kernel}/2, packed",
        [(1, channels, size, size), (channels, 1, kernel, kernel)],
        lambda x, w: G.conv2d(x, w, strides=2, padding=border, groups=channels),
        2 * channels * result**2 * kernel**2,
        torch=lambda torch, x, w: lambda: torch.nn.functional.conv2d(x, w, None, 2, border, 1, channels),
        onnx=lambda helper: [helper.make_node("Conv", ["x0", "x1"], ["y"], **options)],
        goal=Goal((TORCH, ONNX), {1: 1.2, 2: 1.0}),
        constants=[1],
    )


def product(m: int, k: int, n: int, goal: dict[int, float]) -> Problem:
    """A matrix times constant weights."""

    def for_torch(torch: Any, x: Any, w: Any) -> Callable[[], Any]:
        c = tensor(torch, (m, n))
        return lambda: torch.mm(x, w, out=c)

    return row(
        f"product {m}x{k}x{n}, packed",
        [(m, k), (k, n)],
        G.matmul,
        2 * m * k * n,
        torch=for_torch,
        onnx=lambda helper: [helper.make_node("MatMul", ["x0", "x1"], ["y"])],
        goal=Goal((TORCH, ONNX), goal),
        constants=[1],
    )


def layer_with_gelu(m: int, k: int, n: int) -> Problem:
    """gelu(x @ w + b), and for comparison the product alone."""

    def for_onnx(helper: Any) -> list[Any]:
        numbers = {"root": SQRT2, "one": 1.0, "half": 0.5}
        constants = [helper.make_node("Constant", [], [name], value_float=value) for name, value in numbers.items()]
        steps = ("MatMul", "x0 x1", "p"), ("Add", "p x2", "h"), ("Div", "h root", "d"), ("Erf", "d", "e")
        steps += ("Add", "e one", "s"), ("Mul", "h s", "t"), ("Mul", "t half", "y")
        return constants + [helper.make_node(name, given.split(), [to]) for name, given, to in steps]

    return row(
        f"product {m}x{k}x{n} + bias + gelu, packed",
        [(m, k), (k, n), (n,)],
        lambda x, w, b: G.gelu(G.add(G.matmul(x, w), b)),
        2 * m * k * n,
        torch=lambda torch, x, w, b: lambda: torch.nn.functional.gelu(torch.addmm(b, x, w)),
        onnx=for_onnx,
        goal=Goal((ALONE,), {1: 0.97, 2: 0.97}),
        constants=[1, 2],
        alone=product(m, k, n, {}),
    )


def attention(heads: int, tokens: int, width: int) -> Problem:
    """softmax(q k^T / sqrt(width)) v for each head."""

    def for_onnx(helper: Any) -> list[Any]:
        return [
            helper.make_node("Constant", [], ["scale"], value_float=width**-0.5),
            helper.make_node("Transpose", ["x1"], ["k"], perm=[0, 1, 3, 2]),
            helper.make_node("MatMul", ["x0", "k"], ["scores"]),
            helper.make_node("Mul", ["scores", "scale"], ["scaled"]),
            helper.make_node("Softmax", ["scaled"], ["weights"], axis=-1),
            helper.make_node("MatMul", ["weights", "x2"], ["y"]),
        ]

    return row(
        f"attention {heads}x{tokens}x{width}",
        [(1, heads, tokens, width)] * 3,
        G.attention,
        4 * heads * tokens**2 * width,
        torch=lambda torch, q, k, v: lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v),
        onnx=for_onnx,
        goal=Goal((TORCH, ONNX), {1: 1.3}),
    )


def max_pool(channels: int, size: int) -> Problem:
    """A 3 x 3 max pool with stride 2."""
    options = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}
    return row(
        f"max pool {channels} {size}x{size} 3x3/2",
        [(1, channels, size, size)],
        lambda x: G.max_pool2d(x, 3, strides=2, padding=1),
        9 * channels * ((size - 1) // 2 + 1) ** 2,
        torch=lambda torch, x: lambda: torch.nn.functional.max_pool2d(x, 3, 2, 1),
        onnx=lambda helper: [helper.make_node("MaxPool", ["x0"], ["y"], **options)],
        goal=Goal((TORCH, ONNX), {1: 1.1}),
        bound="memory",
    )


def transposed(shape: tuple[int, ...], axes: tuple[int, ...], what: str) -> Problem:
    """A transposition."""

    def for_torch(torch: Any, x: Any) -> Callable[[], Any]:
        turned, c = x.permute(axes), tensor(torch, [shape[axis] for axis in axes])
        return lambda: c.copy_(turned)

    return row(
        f"{what} {'x'.join(map(str, shape))}",
        [shape],
        lambda x: G.transpose(x, axes),
        0,
        torch=for_torch,
        onnx=lambda helper: [helper.make_node("Transpose", ["x0"], ["y"], perm=list(axes))],
        goal=Goal((TORCH, ONNX), {1: 1.05}),
        bound="memory",
    )


def elements(name: str, n: int) -> Problem:
    """An elementwise function."""

    def for_torch(torch: Any, x: Any) -> Callable[[], Any]:
        function, c = getattr(torch, name), tensor(torch, (n,))
        return lambda: function(x, out=c)

    return row(
        f"{name} {n}",
        [(n,)],
        getattr(G, name),
        n,
        torch=for_torch,
        onnx=lambda helper: [helper.make_node(name.capitalize(), ["x0"], ["y"])],
        goal=Goal((TORCH, ONNX), {1: 1.05}),
        bound="memory",
    )


def softmax_of_scores(heads: int, tokens: int) -> Problem:
    """A softmax with the shape of attention scores."""

    def for_torch(torch: Any, x: Any) -> Callable[[], Any]:
        c = tensor(torch, (heads, tokens, tokens))
        return lambda: torch.softmax(x, -1, out=c)

    return row(
        f"softmax {heads}x{tokens}x{tokens}",
        [(heads, tokens, tokens)],
        lambda x: G.softmax(x, axis=-1),
        5 * heads * tokens**2,
        torch=for_torch,
        onnx=lambda helper: [helper.make_node("Softmax", ["x0"], ["y"], axis=-1)],
        goal=Goal((TORCH, ONNX), {1: 1.05}),
        bound="memory",
    )


def running_sums(n: int) -> Problem:
    """Cumulative sums of each row."""

    def for_torch(torch: Any, x: Any) -> Callable[[], Any]:
        c = tensor(torch, (n, n))
        return lambda: torch.cumsum(x, 1, out=c)

    return row(
        f"cumsum {n}x{n}",
        [(n, n)],
        lambda x: G.cumsum(x, axis=1),
        n * n,
        torch=for_torch,
        onnx=lambda helper: [
            helper.make_node("Constant", [], ["axis"], value_int=1),
            helper.make_node("CumSum", ["x0", "axis"], ["y"]),
        ],
        goal=Goal((TORCH, ONNX), {1: 1.1}),
        bound="memory",
    )
