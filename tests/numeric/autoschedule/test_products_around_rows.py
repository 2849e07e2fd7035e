"""The rule for two products with nests over the rows between them: attention computes what the plain loops do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from schedule_checks import check_schedule
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te
from weft.autoschedule.products_around_rows import products_around_rows
from weft.support.target import Target

SMALL_L2 = "llvm -mcpu=haswell -num-threads=1 -l2-bytes=8192"


def attention(*batch: int, rows: Any, keys: Any, width: int, values: int, dtype: str = "float32") -> ModuleOp:
    """softmax(q k^T) v, with a mask that has a row for each row of q."""
    shapes = ((*batch, rows, width), (*batch, keys, width), (*batch, keys, values), (rows, keys))
    Q, K, V, M = (te.placeholder(shape, dtype, name=name) for shape, name in zip(shapes, "QKVM", strict=True))
    return te.create_func([Q, K, V, M, te.ops.attention(Q, K, V, M, name="attention")], name="attention")


def scheduled(module: ModuleOp, target: str = SMALL_L2) -> weft.Schedule | None:
    sch = weft.Schedule(module)
    return sch if products_around_rows(sch, sch.get_block("attention_product"), Target.parse(target)) else None


@pytest.mark.parametrize(
    "module",
    [
        pytest.param(attention(2, rows=13, keys=40, width=3, values=8), id="rows that end in a smaller tile"),
        pytest.param(attention(2, rows=12, keys=37, width=3, values=16), id="keys that are padded"),
        pytest.param(attention(1, 2, rows=18, keys=40, width=5, values=8), id="two batch axes"),
        pytest.param(attention(rows=30, keys=40, width=3, values=8), id="no batch"),
        pytest.param(attention(1, rows=12, keys=32, width=3, values=8, dtype="float64"), id="float64"),
    ],
)
def test_small(module: ModuleOp) -> None:
    sch = scheduled(module)
    assert sch is not None
    check_schedule(module, sch)


@pytest.mark.parametrize(
    "module",
    [
        pytest.param(attention(1, rows=4, keys=8, width=3, values=8), id="temporaries that fit"),
        pytest.param(attention(2, rows=13, keys=40, width=3, values=9), id="values that leave lanes idle"),
    ],
)
def test_not_applicable(module: ModuleOp) -> None:
    assert scheduled(module) is None


@pytest.mark.parametrize("threads", [1, 2])
def test_default_schedule(threads: int) -> None:
    """Every call of a default schedule has one parallel loop, and the right factor is packed once per batch."""
    sizes = {"rows": 203, "keys": 301, "width": 7, "values": 16}
    library = weft.build(attention(3, **sizes), target=f"llvm -mcpu=haswell -l2-bytes=262144 -num-threads={threads}")
    assert str(library.trace).count('"parallel"') <= threads
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((3, n, w), dtype=np.float32) for n, w in ((203, 7), (301, 7), (301, 16)))
    mask = rng.standard_normal((203, 301), dtype=np.float32)
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) / np.sqrt(7) + mask
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    expected = weights / weights.sum(axis=-1, keepdims=True) @ v
    out = np.empty(expected.shape, np.float32)
    library["attention"](q, k, v, mask, out)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


def test_symbolic_rows_and_keys() -> None:
    library = weft.build(attention(2, rows=te.var("m"), keys=te.var("n"), width=4, values=8), target=SMALL_L2)
    rng = np.random.default_rng(0)
    for rows, keys in ((1, 1), (5, 17), (24, 40)):
        q, k, v = (rng.standard_normal((2, n, w), dtype=np.float32) for n, w in ((rows, 4), (keys, 4), (keys, 8)))
        mask = rng.standard_normal((rows, keys), dtype=np.float32)
        scores = q @ k.swapaxes(-1, -2) / 2 + mask
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        out = np.empty((2, rows, 8), np.float32)
        library["attention"](q, k, v, mask, out)
        np.testing.assert_allclose(out, weights / weights.sum(axis=-1, keepdims=True) @ v, rtol=1e-4, atol=1e-5)
