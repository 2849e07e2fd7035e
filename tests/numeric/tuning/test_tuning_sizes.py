"""Tuning of functions with symbols at representative sizes."""

from pathlib import Path

import numpy as np
import pytest

import weft
from weft import graph as G
from weft.driver.representative_sizes import shapes_of_calls
from weft.passes.lower_to_tir import lower_to_tir
from weft.support.sizes import parse_sizes


def model() -> G.Module:
    """Two equal layers, and the softmax of the rows of `x[b, s, 8]`."""
    bb = G.BlockBuilder()
    x = G.var("x", ("b", "s", 8))
    weights = G.const(np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32))
    with bb.function("main", [x]):
        with bb.dataflow():
            h = bb.emit(G.relu(G.matmul(x, weights)))
            h = bb.emit(G.relu(G.matmul(h, weights)))
            out = bb.emit_output(G.softmax(h, axis=2))
        bb.emit_func_output(out)
    return bb.get()


def test_shapes_of_calls() -> None:
    module = model()
    lower_to_tir(module)
    found = shapes_of_calls(module, parse_sizes("b=2 s=1:0.75,16:0.25", "sizes", is_weighted=True))
    layer = next(found[name] for name in found if name.startswith("fused_matmul"))
    assert [(each.shapes, each.calls) for each in layer] == [
        (((2, 8), (8, 8), (2, 8)), 1.5),
        (((32, 8), (8, 8), (32, 8)), 0.5),
    ]
    for text, message in (
        ("t=1", "no function has a symbol 't'"),
        ("s=1", "'b' of @main has no size: s=1"),
    ):
        with pytest.raises(weft.CompileError, match=message):
            shapes_of_calls(module, parse_sizes(text, "sizes"))
    bounded = weft.specialize(model(), {"x": "b x s:2..8 x 8"})
    lower_to_tir(bounded)
    with pytest.raises(weft.CompileError, match="b=1 s=9 violate a precondition of @main: s must be at most 8, got 9"):
        shapes_of_calls(bounded, parse_sizes("b=1 s=9", "sizes"))


@pytest.mark.slow
def test_records_are_of_one_set_of_sizes(tmp_path: Path) -> None:
    database = tmp_path / "tune.db"
    tuned = weft.tune(model(), sizes="b=1 s=1:0.5,16:0.5", trials=2, database=database)
    assert not tuned.skipped
    library = weft.build(model(), database=database, require_tuned=True)
    x = np.random.default_rng(1).standard_normal((3, 5, 8)).astype(np.float32)
    np.testing.assert_allclose(library["main"](x), weft.build(model())["main"](x), rtol=1e-5)
    with pytest.raises(weft.CompileError, match="the database has times of @fused_matmul_relu at other sizes"):
        weft.tune(model(), sizes="b=1 s=2", trials=1, database=database)


@pytest.mark.slow
def test_extents_that_are_expressions(tmp_path: Path) -> None:
    """A candidate is called with random constants. The extents of other arguments follow from each other."""
    bb = G.BlockBuilder()
    x = G.var("x", ("b", 4, "t"))
    weights = [G.const(np.random.default_rng(n).standard_normal((4, 4, 3)).astype(np.float32)) for n in range(2)]
    with bb.function("main", [x]):
        h = bb.emit(G.relu(G.conv1d(x, weights[0], strides=2, padding=1)))
        bb.emit_func_output(G.conv1d(h, weights[1], strides=2, padding=1))
    tuned = weft.tune(bb.get(), sizes="b=1 t=8:0.5,13:0.5", trials=1, database=tmp_path / "tune.db")
    assert not tuned.skipped
    assert len(tuned.tasks) == 2
