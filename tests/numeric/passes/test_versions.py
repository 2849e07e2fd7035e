"""Versions of functions for sizes: chosen by the call, in libraries, exports and on first use."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import weft
from weft import graph as G
from weft import te
from weft.driver.versions_on_use import FunctionOfVersions
from weft.support.sizes import parse_sizes, versions_of

WEIGHTS = np.random.default_rng(3).standard_normal(8192).astype(np.float32)


def model() -> G.Module:
    """`relu(x + weights)` of `x[b, s, 8192]`."""
    bb = G.BlockBuilder()
    x = G.var("x", ("b", "s", 8192))
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(G.relu(G.add(x, G.const(WEIGHTS))))
        bb.emit_func_output(out)
    return bb.get()


def expected(x: NDArray[Any]) -> NDArray[Any]:
    return np.maximum(x + WEIGHTS, 0)


def rows(b: int, s: int) -> NDArray[Any]:
    return np.random.default_rng(b * 100 + s).standard_normal((b, s, 8192)).astype(np.float32)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_calls_choose_the_version_for_their_sizes(target: str) -> None:
    program = weft.specialize(model(), {"x": "b:1..4 x s:1..64 x 8192"})
    library = weft.build(program, target=target, specialize=[{"s": [1, 16]}, {"b": 2, "s": 3}])
    text = library.get_source("ll" if target == "llvm" else "c")
    for name in ("main_b2_s3", "main_s1", "main_s16", "main_any"):
        assert name in text
    for b, s in ((1, 1), (4, 16), (2, 3), (2, 5), (3, 64)):
        x = rows(b, s)
        np.testing.assert_array_equal(library["main"](x), expected(x))
    with pytest.raises(ValueError, match=r"main: b must be at most 4, got 5 \(axis 0 of 'x'\): its stated range is 1"):
        library["main"](rows(5, 1))
    with pytest.raises(ValueError, match=r"main: s must be at least 1, got 0 \(axis 1 of 'x'\)"):
        library["main"](rows(1, 0))


def test_exported_versions_share_constants(tmp_path: Path) -> None:
    general = weft.build(model()).export(tmp_path / "libgeneral.so")
    library = weft.build(model(), specialize="s=1,16")
    file = library.export(tmp_path / "libversions.so")
    assert "int64_t b, int64_t s)" in library.export(tmp_path / "versions.h").read_text()
    loaded = weft.load(file)["main"]
    for b, s in ((1, 1), (3, 16), (2, 3)):
        x = rows(b, s)
        np.testing.assert_array_equal(loaded(x), expected(x))
    assert file.stat().st_size < general.stat().st_size + WEIGHTS.nbytes


def test_functions_over_buffers() -> None:
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), "float32", name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] * 2.0, name="B")
    function = weft.build(te.create_func([A, B], name="twice"), specialize={"m": [4, 8]})["twice"]
    for shape in ((3, 4), (1, 8), (2, 5), (0, 4)):
        a = np.ones(shape, np.float32)
        np.testing.assert_array_equal(function(a), a * 2)


def test_sizes_of_a_version_leave_one_alternative_of_a_precondition() -> None:
    n, b, m = te.var("n"), te.var("b"), te.var("m")
    A = te.placeholder((n,), "float32", name="A")
    B = te.placeholder((b, m), "float32", name="B")
    C = te.compute((b, m), lambda i, j: A[0] * B[i, j], name="C")
    main = te.create_func([A, B, C], name="scaled")
    for sizes in ({"b": [1], "m": [1]}, {"m": [3]}):
        function = weft.build(main, specialize=sizes)["scaled"]
        for shape in ((1, 1), (1, 3), (2, 3), (2, 2)):
            given = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
            np.testing.assert_array_equal(function(np.full(4, 3.0, np.float32), given), given * 3)
            with pytest.raises(ValueError, match=r"n must be at least 1 unless m or b is 0, got 0"):
                function(np.zeros(0, np.float32), given)
        empty = np.zeros((2, 0), np.float32)
        assert function(np.zeros(0, np.float32), empty).shape == empty.shape


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"t": [1]}, "specialize: no function has a symbol 't'"),
        ({"s": [1, -2]}, "specialize: a size of 's' is an integer of at least 0, got -2"),
        ({"s": []}, "specialize: each symbol has sizes"),
        ({"s": range(65)}, "specialize: at most 64 versions, got 65"),
        ("s", "specialize takes SYMBOL=SIZE,SIZE, got 's'"),
        ("s=1 s=2", "specialize gives 's' twice"),
        ("s=1:0.5", "specialize: 's' takes a size of at least 0, got '1:0.5'"),
        ({"s": [100]}, "s must be at most 64, got 100: its stated range is 1..64"),
        ("auto fast", "specialize: 'auto' takes 'background' and 'versions=N', got 'fast'"),
    ],
)
def test_sizes_that_get_no_version(sizes: str | Mapping[str, Sequence[int]], message: str) -> None:
    program = weft.specialize(model(), {"x": "b x s:1..64 x 8192"})
    with pytest.raises(weft.CompileError) as error:
        weft.build(program, specialize=sizes)
    assert message in error.value.message


def test_text_of_sizes() -> None:
    assert versions_of("b=1 s = 1, 128") == ({"b": 1, "s": 1}, {"b": 1, "s": 128})
    assert versions_of([{"s": 1}, {"b": 2, "s": 1}, {"s": [1, 3]}]) == ({"b": 2, "s": 1}, {"s": 1}, {"s": 3})
    weighted = parse_sizes("b=1,2 s=1:0.5,128:.25", "--sizes", is_weighted=True)
    assert [(dict(entry.sizes), entry.weight) for entry in weighted] == [
        ({"b": 1, "s": 1}, 0.5),
        ({"b": 1, "s": 128}, 0.25),
        ({"b": 2, "s": 1}, 0.5),
        ({"b": 2, "s": 128}, 0.25),
    ]


def test_versions_on_first_use_write_donated_arrays() -> None:
    text = """func.func @main(%cache: tensor<?x4xf32, #graph.dims<n>>, %x: tensor<4xf32>)
        -> tensor<?x4xf32, #graph.dims<n>> {
      %y = graph.add %cache, %x : tensor<?x4xf32, #graph.dims<n>>, tensor<4xf32> -> tensor<?x4xf32, #graph.dims<n>>
      func.return %y : tensor<?x4xf32, #graph.dims<n>>
    }"""
    function = weft.build(text, donate=["cache"], specialize="auto versions=1")["main"]
    for n in (3, 3, 5):
        cache, x = np.ones((n, 4), np.float32), np.arange(4, dtype=np.float32)
        assert function(cache, x) is cache
        np.testing.assert_array_equal(cache, np.ones((n, 1)) + x)


def test_versions_on_first_use() -> None:
    function = weft.build(model(), specialize="auto versions=2")["main"]
    assert isinstance(function, FunctionOfVersions)
    for b, s in ((1, 1), (2, 3), (2, 3), (3, 5)):
        x = rows(b, s)
        np.testing.assert_array_equal(function(x=x), expected(x))
    assert function.versions == [{"b": 1, "s": 1}, {"b": 2, "s": 3}]
    with pytest.raises(TypeError, match="expected elements of type float32"):
        function(rows(4, 4).astype(np.float64))
    with pytest.raises(ValueError, match="dimension 2 is 31"):
        function(np.zeros((4, 4, 31), np.float32))
    assert len(function.versions) == 2
    assert function(rows(2, 0)).shape == (2, 0, 8192)
