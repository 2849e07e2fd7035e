"""Programs of symbolic extents at small and odd sizes: versions of kernels for few rows, short remainders, temporaries
on the stack, and threads that are chosen at the call."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tiers import first_tier

import weft
from weft import graph as G

SIZES = (0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 127)


def _softmax(x: Any) -> Any:
    shifted = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    return shifted / shifted.sum(-1, keepdims=True)


def _attention(q: Any, k: Any, v: Any) -> Any:
    return _softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])) @ v


@dataclass(frozen=True)
class Case:
    """Symbols, the shapes of the inputs by them, the graph, and its meaning by NumPy."""

    symbols: tuple[str, ...]
    shapes: Callable[..., Sequence[tuple[Any, ...]]]
    compute: Callable[..., Any]
    expected: Callable[..., Any]

    def module(self) -> Any:
        builder = G.BlockBuilder()
        inputs = [G.var(f"x{at}", shape) for at, shape in enumerate(self.shapes(*self.symbols))]
        with builder.function("main", inputs):
            with builder.dataflow():
                result = self.compute(*inputs)
                output = builder.emit_output(result[0] if isinstance(result, tuple) else result)
            builder.emit_func_output(output)
        return builder.get()

    def arrays(self, sizes: Sequence[int]) -> list[Any]:
        random = np.random.default_rng(sum(sizes))
        return [random.uniform(-1, 1, shape).astype("float32") for shape in self.shapes(*sizes)]

    def points(self) -> Iterable[tuple[int, ...]]:
        """All sizes of one symbol with some of the others."""
        some = (1, 5, 33)
        for at in range(len(self.symbols)):
            yield from itertools.product(*(SIZES if at == place else some for place in range(len(self.symbols))))


CASES = {
    "linear": Case(
        ("m",),
        lambda m: [(m, 40), (40, 128), (128,)],
        lambda x, w, b: G.relu(G.add(G.matmul(x, w), b)),
        lambda x, w, b: np.maximum(x @ w + b, 0),
    ),
    "matmul": Case(("m", "k", "n"), lambda m, k, n: [(m, k), (k, n)], lambda a, b: G.matmul(a, b), lambda a, b: a @ b),
    "matmul_transposed": Case(
        ("m", "n"),
        lambda m, n: [(m, 20), (n, 20)],
        lambda a, b: G.matmul(a, b, transpose_b=True),
        lambda a, b: a @ b.T,
    ),
    "batched": Case(
        ("b", "m", "n"),
        lambda b, m, n: [(b, m, 12), (b, 12, n)],
        lambda a, b: G.relu(G.matmul(a, b)),
        lambda a, b: np.maximum(a @ b, 0),
    ),
    "attention": Case(("b", "s"), lambda b, s: [(b, 2, s, 16)] * 3, G.attention, _attention),
    "cached_attention": Case(
        ("p", "s"),
        lambda p, s: [(1, 2, s, 16)] * 3 + [(1, 2, p, 16)] * 2,
        G.cached_attention,
        lambda q, k, v, old_k, old_v: _attention(q, np.concatenate([old_k, k], 2), np.concatenate([old_v, v], 2)),
    ),
    "softmax": Case(("m", "n"), lambda m, n: [(3, m, n)], G.softmax, _softmax),
    "concatenation": Case(
        ("m", "n"),
        lambda m, n: [(3, m, 16), (3, n, 16)],
        lambda x, y: G.tanh(G.concatenate([x, y], axis=1)),
        lambda x, y: np.tanh(np.concatenate([x, y], 1)),
    ),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", first_tier(CASES, "linear", "softmax", "concatenation"))
def test_against_numpy(name: str, threads: int) -> None:
    case = CASES[name]
    function = weft.build(case.module(), f"llvm -num-threads={threads}")["main"]
    for sizes in case.points():
        arrays = case.arrays(sizes)
        expected = case.expected(*arrays)
        computed = function(*arrays)
        assert computed.shape == expected.shape
        np.testing.assert_allclose(computed, expected, rtol=1e-4, atol=1e-5, err_msg=f"{name} at {sizes}")


@pytest.mark.parametrize("name", first_tier(CASES, "linear"))
@pytest.mark.parametrize("target", first_tier(["llvm", "c"], "llvm"))
def test_against_the_interpreter(name: str, target: str) -> None:
    case = CASES[name]
    module = case.module()
    function = weft.build(module, target)["main"]
    for size in (0, 1, 2, 7, 17):
        arrays = case.arrays([size] * len(case.symbols))
        interpreted = weft.Interpreter(module).call("main", *arrays)
        np.testing.assert_allclose(function(*arrays), interpreted, rtol=1e-4, atol=1e-5)


def test_version_for_few_rows() -> None:
    """A call compares the extent once; products of constant weights, which are packed before, have no version."""
    case = CASES["linear"]
    library = weft.build(case.module())
    assert [trace.sym_name.data for trace in library.traces] == [
        "default_fused_matmul_add_relu",
        "default_fused_matmul_add_relu_few",
    ]
    assert re.search(r"icmp sle i64 %\w+, 11", library.get_source("ll"))
    builder, x = G.BlockBuilder(), G.var("x", ("m", 40))
    with builder.function("main", [x]):
        builder.emit_func_output(G.matmul(x, G.const(np.ones((40, 128), "float32"))))
    assert len(weft.build(builder.get()).traces) == 1


def test_stated_ranges_decide_without_a_version() -> None:
    case = CASES["linear"]
    for stated in ("m:1..8", "m:16..64"):
        library = weft.build(weft.specialize(case.module(), {"x0": (stated, 40)}))
        assert not re.search(r"icmp sle i64 %\w+, 11", library.get_source("ll").partition("ret void")[0])
        arrays = case.arrays([int(stated.partition("..")[2])])
        np.testing.assert_allclose(library["main"](*arrays), case.expected(*arrays), rtol=1e-4, atol=1e-5)


def test_scheduled_kernels_have_no_version() -> None:
    library = weft.build(CASES["linear"].module(), default_schedule=False)
    assert not library.traces
    assert not re.search(r"icmp sle i64 %\w+, 11", library.get_source("ll"))


def test_version_for_short_rows() -> None:
    """Of short rows, a nest computes four before the next nest does; of long ones one, which L1 holds."""
    case = CASES["softmax"]
    library = weft.build(case.module(), "llvm -num-threads=1")
    long, short = library.traces
    assert short.sym_name.data == f"{long.sym_name.data}_few"
    at_a_time = re.compile(r"sched\.split %\w+ \{factors = \[0, 4\]\}")
    assert at_a_time.search(str(short))
    assert not at_a_time.search(str(long))
    (most,) = map(int, set(re.findall(r"icmp sle i64 %\w+, (\d+)", library.get_source("ll").partition("ret void")[0])))
    for sizes in itertools.product((1, 4, 9), (most - 1, most, most + 1)):
        arrays = case.arrays(sizes)
        np.testing.assert_allclose(library["main"](*arrays), case.expected(*arrays), rtol=1e-4, atol=1e-6)


def test_rows_of_several_extents_have_no_version() -> None:
    """The lengths of rows are two symbols, of which no single bound decides."""
    builder, x = G.BlockBuilder(), G.var("x", ("m", "n", "k"))
    with builder.function("main", [x]):
        builder.emit_func_output(G.softmax(x, axis=1))
    traces = weft.build(builder.get(), "llvm -num-threads=1").traces
    assert [trace.sym_name.data for trace in traces] == ["default_softmax"]
