"""Fused graphs compute what the graphs did: by the interpreter, on llvm and in C, at several sizes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

import weft
from weft import graph as G
from weft.dialects.graph import CallTirOp
from weft.dialects.traversal import copy_of
from weft.interp.interpreter import Interpreter
from weft.passes.graph.graph_fuse import GraphFusePass
from weft.passes.graph.graph_infer_types import GraphInferTypesPass
from weft.passes.graph.graph_simplify import GraphSimplifyPass
from weft.passes.lower_graph import LowerGraphPass
from weft.support.errors import CompileError
from weft.texpr.graph_operators import Operator

Array = NDArray[Any]
Shapes = Mapping[str, tuple[int | str, ...]]


def _erf(x: Array) -> Array:
    from math import erf

    return np.vectorize(erf, otypes=["float32"])(x)


def _gelu(x: Array) -> Array:
    return x * 0.5 * (1 + _erf(x / np.sqrt(np.float32(2))))


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _layer_norm(x: Array, gamma: Array, beta: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(1e-5)) * gamma + beta


def _conv(x: Array, w: Array) -> Array:
    """A convolution of 3 x 3, padded by 1."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    h, v = x.shape[2:]
    windows = np.stack([padded[:, :, i : i + h, j : j + v] for i in range(3) for j in range(3)], axis=-1)
    return np.einsum("nchwk,fck->nfhw", windows, w.reshape(*w.shape[:2], 9), dtype="float32")


@dataclass(frozen=True)
class Program:
    """A graph over parameters, what NumPy computes of them, and how many calls and operators fusion leaves."""

    shapes: Shapes
    graph: Callable[..., Any]
    numpy: Callable[..., Any]
    left: int

    def module(self) -> ModuleOp:
        builder = G.BlockBuilder()
        parameters = [G.var(name, shape, "float32") for name, shape in self.shapes.items()]
        with builder.function("main", parameters):
            result = self.graph(*parameters)
            builder.emit_func_output(result)
        return builder.get()

    def arrays(self, n: int) -> list[Array]:
        random = np.random.default_rng(n)
        shapes = [tuple(n if extent == "n" else int(extent) for extent in shape) for shape in self.shapes.values()]
        return [random.standard_normal(shape).astype("float32") for shape in shapes]


def _perceptron(x: Any, w: Any, b: Any, v: Any, c: Any) -> Any:
    return G.softmax(G.relu(x @ w + b) @ v + c)


def _residual(x: Any, w: Any, v: Any, scale: Any, shift: Any) -> Any:
    h = G.relu(G.conv2d(x, w, padding=1) * scale + shift)
    return G.relu(G.conv2d(h, v, padding=1) * scale + shift + x)


def _transformer(x: Any, g: Any, b: Any, q: Any, o: Any, up: Any, down: Any) -> Any:
    h = G.layer_norm(x, g, b)
    query, key, value = (G.transpose((part @ q).reshape("n", 2, 8), [1, 0, 2]) for part in (h, h * 0.5, h + 1.0))
    mixed = G.softmax(G.matmul(query, key, transpose_b=True) * 0.25) @ value
    x = x + G.transpose(mixed, [1, 0, 2]).reshape("n", 16) @ o
    return x + G.gelu(G.layer_norm(x, g, b) @ up) @ down


def _numpy_transformer(x: Array, g: Array, b: Array, q: Array, o: Array, up: Array, down: Array) -> Array:
    h = _layer_norm(x, g, b)
    query, key, value = ((part @ q).reshape(-1, 2, 8).transpose(1, 0, 2) for part in (h, h * 0.5, h + 1))
    mixed = _softmax(query @ key.transpose(0, 2, 1) * np.float32(0.25)) @ value
    x = x + mixed.transpose(1, 0, 2).reshape(-1, 16) @ o
    return x + _gelu(_layer_norm(x, g, b) @ up) @ down


def _chain(x: Any) -> Any:
    for step in range(30):
        x = G.tanh(x) if step % 3 == 0 else x * 0.75 if step % 3 == 1 else x + 0.125
    return x


def _numpy_chain(x: Array) -> Array:
    for step in range(30):
        x = np.tanh(x) if step % 3 == 0 else x * np.float32(0.75) if step % 3 == 1 else x + np.float32(0.125)
    return x


def _diamonds(x: Any, w: Any) -> Any:
    h = x @ w
    silu = h * G.sigmoid(h)
    shared = G.exp(silu * 0.125)
    return silu, G.sum(shared, axis=1), shared @ w


def _numpy_diamonds(x: Array, w: Array) -> tuple[Array, ...]:
    h = x @ w
    silu = h / (1 + np.exp(-h))
    shared = np.exp(silu * np.float32(0.125))
    return silu, shared.sum(1), shared @ w


def _gated(x: Any, w: Any) -> Any:
    left, right = G.split(x @ w, 2, axis=1)
    top, bottom = G.split(G.tanh(left) * G.sigmoid(right), 2, axis=1)
    return top, G.concatenate([bottom, top], axis=1) + 1.0


def _numpy_gated(x: Array, w: Array) -> tuple[Array, ...]:
    left, right = np.split(x @ w, 2, axis=1)
    top, bottom = np.split(np.tanh(left) / (1 + np.exp(-right)), 2, axis=1)
    return top, np.concatenate([bottom, top], axis=1) + 1


def _preactivated(x: Any, w: Any, v: Any, s: Any, b: Any) -> Any:
    h = G.conv2d(G.relu(x * s + b), w, padding=1)
    return G.relu(G.conv2d(G.tanh(h), v, padding=1) + x)


def _attention(q: Any, k: Any, new: Any, s: Any) -> Any:
    keys = G.concatenate([k, new * s], axis=1)
    return G.matmul(G.transpose(q, [1, 0, 2]), keys, transpose_b=True) * 0.5


PROGRAMS = {
    "perceptron": Program(
        {"x": ("n", 12), "w": (12, 20), "b": (20,), "v": (20, 6), "c": (6,)},
        _perceptron,
        lambda x, w, b, v, c: _softmax(np.maximum(x @ w + b, 0) @ v + c),
        3,
    ),
    "residual": Program(
        {"x": (2, 4, "n", 7), "w": (4, 4, 3, 3), "v": (4, 4, 3, 3), "scale": (4, 1, 1), "shift": (4, 1, 1)},
        _residual,
        lambda x, w, v, a, b: np.maximum(_conv(np.maximum(_conv(x, w) * a + b, 0), v) * a + b + x, 0),
        2,
    ),
    "transformer": Program(
        {"x": ("n", 16), "g": (16,), "b": (16,), "q": (16, 16), "o": (16, 16), "up": (16, 40), "down": (40, 16)},
        _transformer,
        _numpy_transformer,
        16,
    ),
    "chain": Program({"x": ("n", 9)}, _chain, _numpy_chain, 1),
    "diamonds": Program({"x": ("n", 8), "w": (8, 8)}, _diamonds, _numpy_diamonds, 4),
    "preactivated": Program(
        {"x": (1, 4, "n", 9), "w": (4, 4, 3, 3), "v": (4, 4, 3, 3), "s": (4, 1, 1), "b": (4, 1, 1)},
        _preactivated,
        lambda x, w, v, s, b: np.maximum(_conv(np.tanh(_conv(np.maximum(x * s + b, 0), w)), v) + x, 0),
        2,
    ),
    "attention": Program(
        {"q": ("n", 3, 8), "k": (3, 5, 8), "new": (3, "n", 8), "s": (8,)},
        _attention,
        lambda q, k, new, s: (
            q.transpose(1, 0, 2) @ np.concatenate([k, new * s], axis=1).transpose(0, 2, 1) * np.float32(0.5)
        ),
        1,
    ),
    "dequantized": Program(
        {"x": ("n", 24), "w": (24, 70), "s": (70,)},
        lambda x, w, s: G.relu(x @ ((w * 20.0).astype("int8").astype("float32") * s)),
        lambda x, w, s: np.maximum(x @ ((w * 20).astype("int8").astype("float32") * s), 0),
        1,
    ),
    "twice": Program({"x": ("n",)}, lambda x: (G.exp(x), G.exp(x)), lambda x: (np.exp(x), np.exp(x)), 2),
    "gated": Program({"x": ("n", 6), "w": (6, 8)}, _gated, _numpy_gated, 3),
}


def _fused(program: Program) -> ModuleOp:
    module = program.module()
    for step in (GraphInferTypesPass(), GraphFusePass()):
        step.apply(Context(), module)
        module.verify()
    return module


def _check(found: Any, expected: Any) -> None:
    results = found if isinstance(found, tuple) else (found,)
    wanted = expected if isinstance(expected, tuple) else (expected,)
    for one, other in zip(results, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", PROGRAMS)
def test_fused_graphs_are_interpreted_as_before(name: str):
    program = PROGRAMS[name]
    before, after = program.module(), _fused(program)
    main = next(op for op in after.ops if isinstance(op, FuncOp) and op.sym_name.data == "main")
    assert sum(isinstance(op, CallTirOp | Operator) for op in main.walk()) == program.left, str(main)
    for n in (1, 5):
        arrays = program.arrays(n)
        expected = Interpreter(copy_of(before)).call("main", *arrays)
        _check(expected, program.numpy(*arrays))
        _check(Interpreter(after).call("main", *arrays), expected)


FAST = [("residual", "llvm"), ("diamonds", "llvm"), ("dequantized", "llvm"), ("twice", "c")]


@pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param(name, target, marks=[] if (name, target) in FAST else pytest.mark.slow)
        for name in PROGRAMS
        for target in ("llvm", "c")
    ],
)
def test_fused_graphs_run(name: str, target: str):
    program = PROGRAMS[name]
    native = weft.build(program.module(), target=target)["main"]
    for n in (1, 3, 17):
        arrays = program.arrays(n)
        expected = program.numpy(*arrays)
        results = [np.full_like(array, np.nan) for array in (expected if isinstance(expected, tuple) else (expected,))]
        native(*arrays, *results)
        _check(tuple(results), expected)


def _emitted() -> ModuleOp:
    """Written expressions between operators: element by element, of two operands, and over rows."""
    builder = G.BlockBuilder()
    x, w = G.var("x", ("n", 9)), G.var("w", (9, 6))
    axis = weft.te.reduce_axis((0, 6), "k")
    with builder.function("main", [x, w]):
        hidden = builder.emit(G.relu(x @ w))
        twice = builder.emit_te(lambda a: weft.te.compute(a.shape, lambda i, j: a[i, j] * 2.0, name="twice"), hidden)
        scaled = builder.emit_te(
            lambda a, b: weft.te.compute(a.shape, lambda i, j: a[i, j] * b[i, 0], name="scaled"), twice, x
        )
        total = builder.emit_te(
            lambda a: weft.te.compute(a.shape[:1], lambda i: weft.te.sum(a[i, axis], axis=axis), name="total"),
            builder.emit(scaled + 1.0),
        )
        builder.emit_func_output(builder.emit(G.tanh(total * 0.125)))
    return builder.get()


@pytest.mark.slow
def test_written_expressions_join_groups():
    module = _emitted()
    fused = module.clone()
    GraphFusePass().apply(Context(), fused)
    names = [op.sym_name.data for op in fused.ops if isinstance(op, FuncOp)]
    assert names == ["te", "te_1", "te_2", "main", "fused_matmul_relu_te_te_1_add", "fused_te_2_multiply_tanh"]
    x, w = (np.random.default_rng(1).standard_normal(shape).astype("float32") for shape in ((4, 9), (9, 6)))
    expected = np.tanh((np.maximum(x @ w, 0) * 2 * x[:, :1] + 1).sum(1) / 8)
    for each in (module, fused):
        np.testing.assert_allclose(Interpreter(each.clone()).call("main", x, w), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(weft.build(module)["main"](x, w), expected, rtol=1e-4, atol=1e-5)


def test_extents_that_no_operand_shows():
    """A definition over `2 * n` and `3 * n` takes `n` besides its tensors."""
    builder, x = G.BlockBuilder(), G.var("x", ("n", "n"))
    with builder.function("main", [x]):
        long = builder.emit(G.concatenate([G.concatenate([x, x], axis=0)] * 3, axis=1))
        builder.emit_func_output(builder.emit(G.softmax(G.tanh(long)) + 1.0))
    native = weft.build(builder.get())["main"]
    for n in (1, 3):
        array = np.random.default_rng(n).standard_normal((n, n)).astype(np.float32)
        raised = np.exp(np.tanh(np.tile(array, (2, 3))))
        np.testing.assert_allclose(native(array), raised / raised.sum(1, keepdims=True) + 1, rtol=1e-5)


def test_functions_that_others_call_stay():
    module = _emitted()
    for op in module.ops:
        if isinstance(op, FuncOp) and op.sym_name.data == "te":
            op.sym_visibility = StringAttr("public")
    LowerGraphPass().apply(Context(), module)
    names = [op.sym_name.data for op in module.ops if isinstance(op, FuncOp)]
    assert names == ["te", "main", "fused_matmul_relu_te_te_1_add", "fused_te_2_multiply_tanh"]


def _long(blocks: int) -> ModuleOp:
    """Ten operators a block."""
    builder = G.BlockBuilder()
    x, w, b = G.var("x", ("n", 64)), G.var("w", (64, 64)), G.var("b", (64,))
    with builder.function("main", [x, w, b]):
        h = x
        for _ in range(blocks):
            y = G.layer_norm(G.gelu(h @ w + b) @ w + b + h, b, b)
            h = builder.emit(G.softmax(y * G.tanh(y)))
        builder.emit_func_output(h)
    return builder.get()


@pytest.mark.slow
def test_the_time_grows_linearly():
    times: list[float] = []
    for blocks in (100, 1000):
        module = _long(blocks)
        start = perf_counter()
        for step in (GraphInferTypesPass(), GraphSimplifyPass(), GraphFusePass()):
            step.apply(Context(), module)
        module.verify()
        times.append(perf_counter() - start)
    assert times[1] < 20 * times[0], times


def test_unknown_targets_are_refused():
    with pytest.raises(CompileError, match="graph-fuse: unknown target 'lvm -mcpu=znver4', did you mean 'llvm'"):
        GraphFusePass("lvm -mcpu=znver4").apply(Context(), _long(1))


def test_operands_of_kernels_for_gpus_are_limited():
    builder = G.BlockBuilder()
    parameters = [G.var(f"x{at}", (4,)) for at in range(40)]
    with builder.function("main", parameters):
        total = parameters[0]
        for value in parameters[1:]:
            total = builder.emit(total + value)
        builder.emit_func_output(total)
    for target, calls in (("llvm", 1), ("metal", 2)):
        module = builder.get().clone()
        GraphFusePass(target).apply(Context(), module)
        assert sum(isinstance(op, CallTirOp) for op in module.walk()) == calls
