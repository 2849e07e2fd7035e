"""Dimensions that become one: the same results, also of random graphs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from tiers import first_tier
from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp

import weft
from weft import graph as G
from weft.interp.interpreter import Interpreter
from weft.passes.graph_pipeline import graph_to_tir
from weft.passes.lower_to_tir import lower_to_tir
from weft.passes.tir.tir_collapse_dimensions import CollapseDimensionsPass

TEXT = Path(__file__).resolve().parents[2] / "filecheck" / "tir" / "collapse-dimensions.mlir"
SYMBOLS = "b", "s", "t"


@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 3, 5), (3, 1, 4), (0, 2, 2)])
def test_programs_of_the_filecheck_test(part: int, sizes: tuple[int, int, int]) -> None:
    module = weft.parse(TEXT.read_text().split("// -----")[part])
    changed = module.clone()
    CollapseDimensionsPass().apply(Context(), changed)
    assert str(changed) != str(module)
    n, h, w = sizes
    x = np.random.default_rng(0).standard_normal((n, 8, h, w)).astype(np.float32)
    results = [np.zeros((n, 8) if part else x.shape, np.float32) for _ in range(2)]
    for program, result in zip((module, changed), results, strict=True):
        Interpreter(program).call("main", x, result)
    np.testing.assert_array_equal(results[0], results[1])


def module_of(compute: Callable[..., Any], *shapes: tuple[int | str, ...]) -> weft.ModuleOp:
    builder = G.BlockBuilder()
    values = [G.var(f"x{at}", shape, "float32") for at, shape in enumerate(shapes)]
    with builder.function("main", values):
        with builder.dataflow():
            result = builder.emit_output(compute(*values))
        builder.emit_func_output(result)
    return builder.get()


def test_pixels_of_a_convolution_by_1_x_1_are_one_dimension() -> None:
    """Of the buffers of rank 4 only the weights remain; strides need rows and columns."""
    for name, buffers in (("convolution by 1 x 1", 1), ("strided convolution by 1 x 1", 3)):
        module = module_of(*OPERATORS[name][:1], *OPERATORS[name][1])
        lower_to_tir(module)
        (kernel,) = (op for op in module.ops if isinstance(op, FuncOp) and op.sym_visibility is not None)
        types = [type_ for type_ in kernel.function_type.inputs if isinstance(type_, MemRefType)]
        assert sum(len(type_.get_shape()) == 4 for type_ in types) == buffers


def ranks_of_kernels(module: weft.ModuleOp) -> list[int]:
    """The largest rank of a buffer of each kernel, after dimensions were joined."""
    lower_to_tir(module)
    kernels = [op for op in module.ops if isinstance(op, FuncOp) and op.sym_visibility is not None]
    return [max(len(t.get_shape()) for t in k.function_type.inputs if isinstance(t, MemRefType)) for k in kernels]


OPERATORS: dict[str, tuple[Callable[..., Any], tuple[tuple[int | str, ...], ...], int]] = {
    "elementwise": (lambda x, y: G.tanh(G.add(x, y)), (("b", 4, "s", "t"),) * 2, 1),
    "channels": (lambda x, y: G.add(x, y), (("b", 4, "s", "t"), (4, 1, 1)), 3),
    "transposition": (lambda x: G.transpose(x, (0, 2, 3, 1)), (("b", 4, "s", "t"),), 3),
    "means": (lambda x: G.mean(x, (2, 3)), (("b", 4, "s", "t"),), 3),
    "softmax of rows": (lambda x: G.softmax(x, -1), (("b", 4, "s", "t"),), 2),
    "rows of a product": (lambda x, y: G.matmul(x, y), (("b", "s", 8), (8, 5)), 2),
    "batches of products": (lambda x, y: G.matmul(x, y), (("b", "s", 8), ("b", 8, 5)), 3),
    "convolution by 1 x 1": (lambda x, y: G.conv2d(x, y), (("b", 4, "s", "t"), (6, 4, 1, 1)), 4),
    "strided convolution by 1 x 1": (lambda x, y: G.conv2d(x, y, strides=2), (("b", 4, "s", "t"), (6, 4, 1, 1)), 4),
    "known transposition": (lambda x: G.transpose(x, (0, 2, 3, 1)), ((2, 4, 3, 5),), 3),
    "known transposition and sum": (lambda x, y: G.add(G.transpose(x, (0, 2, 3, 1)), y), ((2, 4, 3, 5), (4,)), 3),
    "known elements": (lambda x, y: G.add(x, y), ((2, 4, 3, 5),) * 2, 4),
    "known rows of a product": (lambda x, y: G.matmul(x, y), ((2, 3, 8), (8, 5)), 3),
    "columns": (lambda x, y: G.add(x, y), (("b", "s"), ("s",)), 2),
    "two pairs of a buffer": (
        lambda x, y: G.add(G.add(G.transpose(x, (2, 3, 0, 1)), x), y),
        (("s", "t", "s", "t"), ("s", "t")),
        2,
    ),
    "an extent that another dimension has": (
        lambda x, y: G.take(x, G.cast(y, "int64"), axis=0),
        (("s", "t", "s"), ("b",)),
        2,
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_dimensions_of_operators(name: str) -> None:
    compute, shapes, rank = OPERATORS[name]
    assert ranks_of_kernels(module_of(compute, *shapes)) == [rank]


@pytest.mark.parametrize("target", ["llvm", "c", "opencl"])
@pytest.mark.parametrize("name", first_tier(OPERATORS, "channels", "means", "an extent that another dimension has"))
def test_operators_compute_the_same(name: str, target: str) -> None:
    compute, shapes, _ = OPERATORS[name]
    module = module_of(compute, *shapes)
    if target == "opencl":
        lower_to_tir(lowered := module.clone(), target)
        run: Callable[..., Any] = lambda *arrays: Interpreter(lowered).call("main", *arrays)  # noqa: E731
    else:
        run = weft.build(module, target=target)["main"]
    for sizes in ((1, 1, 1), (2, 3, 5), (1, 7, 33)):
        numbers = dict(zip(SYMBOLS, sizes, strict=True))
        arrays = [random_array(tuple(numbers.get(str(e), e) for e in shape), at) for at, shape in enumerate(shapes)]
        expected = Interpreter(module).call("main", *arrays)
        if target == "opencl":
            result = np.zeros_like(expected)
            run(*arrays, result)
        else:
            result = run(*arrays)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def random_array(shape: tuple[Any, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def random_graph(random: Random) -> tuple[Callable[..., Any], list[tuple[int | str, ...]]]:
    """Operators after each other on values of one or two shapes, whose extents recur."""
    rank = random.randint(2, 4)
    shape = tuple(random.choice((*SYMBOLS, 3, 4) if random.random() < 0.7 else (2, 3)) for _ in range(rank))
    shapes: list[tuple[int | str, ...]] = [shape, shape, shape[random.randrange(rank) :]]
    order = random.sample(range(rank), rank)
    steps = [random.choice(("add", "row", "exp", "sum", "softmax", "turn")) for _ in range(3)]

    def compute(x: Any, y: Any, row: Any) -> Any:
        value, is_moved = x, False
        for step in steps:
            if step == "add" and not is_moved:
                value = G.add(value, y)
            elif step == "row" and not is_moved:
                value = G.multiply(value, row)
            elif step == "exp":
                value = G.exp(G.negative(G.abs(value)))
            elif step == "sum":
                value = G.subtract(value, G.mean(value, (len(shape) - 1,), keepdims=True))
            elif step == "softmax":
                value = G.softmax(value, random_axis)
            elif step == "turn" and not is_moved:
                value, is_moved = G.transpose(value, order), True
        return value

    random_axis = random.randrange(rank)
    return compute, shapes


@pytest.mark.parametrize("seed", first_tier(range(60), *range(8)))
def test_random_graphs_compute_the_same(seed: int) -> None:
    random = Random(seed)
    compute, shapes = random_graph(random)
    module = module_of(compute, *shapes)
    lowered, apart = module.clone(), module.clone()
    lower_to_tir(lowered)
    for step in graph_to_tir():
        if not isinstance(step, CollapseDimensionsPass):
            step.apply(Context(), apart)
    for _ in range(3):
        numbers = {symbol: random.choice((1, 2, 3, 5)) for symbol in SYMBOLS}
        arrays = [random_array(tuple(numbers.get(str(e), e) for e in shape), at) for at, shape in enumerate(shapes)]
        expected = Interpreter(module).call("main", *arrays)
        results = [np.zeros_like(expected) for _ in range(2)]
        for program, result in zip((lowered, apart), results, strict=True):
            Interpreter(program).call("main", *arrays, result)
        np.testing.assert_array_equal(results[0], results[1])
        np.testing.assert_allclose(results[0], expected, rtol=1e-4, atol=1e-5)
