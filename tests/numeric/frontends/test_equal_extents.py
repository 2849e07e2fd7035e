"""Extents of different names that operators require to be equal: calls check it, and importers unify the names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import te
from weft.dialects.graph_shapes import parse_extent
from weft.frontends.equal_extents import unified
from weft.te import ops

N, M, K = te.var("n"), te.var("m"), te.var("k")


def ones(*shape: int) -> Any:
    return np.ones(shape, "float32")


def tensor(name: str, *shape: Any) -> Any:
    return te.placeholder(shape, name=name)


CASES: list[tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...], Callable[..., Any], str]] = [
    # operator, placeholders, shapes that fit, the reference, the error of arrays that do not
    (ops.add, ((N, 4), (M, 4)), ((3, 4), (3, 4)), np.add, r"expected n == m, got n = 2 .*, m = 3"),
    (ops.add, ((N, 4), (3, 4)), ((3, 4), (3, 4)), np.add, r"expected n == 3, got n = 2"),
    (ops.matmul, ((N, M), (K, 4)), ((2, 3), (3, 4)), np.matmul, r"expected m == k, got m = 4 .*, k = 3"),
    (
        lambda a, b: ops.concatenate([a, b], 1),
        ((N, 2), (M, 3)),
        ((2, 2), (2, 3)),
        lambda a, b: np.concatenate([a, b], 1),
        r"expected n == m, got n = 3 .*, m = 2",
    ),
    (
        lambda a, b: ops.add(ops.reshape(a, (-1, 4)), b),
        ((N, 6), (M, 4)),
        ((2, 6), (3, 4)),
        lambda a, b: a.reshape(-1, 4) + b,
        r"expected 2 \* \(n % 2\) == 0, got n = 1",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_calls_check_extents(case: Any) -> None:
    operator, shapes, fitting, reference, message = case
    tensors = [tensor(name, *shape) for name, shape in zip("AB", shapes, strict=True)]
    f = weft.build(te.create_func([*tensors, operator(*tensors)], name="f"), cache=False)["f"]
    arrays = [np.random.default_rng(0).random(shape, dtype="float32") for shape in fitting]
    np.testing.assert_allclose(f(*arrays), reference(*arrays), 1e-5)
    for other in (1, 2, 3, 5):
        wrong = [ones(*(other if isinstance(e, te.Var) else e for e in shapes[0])), arrays[1]]
        try:
            expected = f(*wrong)
        except ValueError as error:
            assert str(error).startswith("f: "), error
        else:
            np.testing.assert_allclose(expected, reference(*wrong), 1e-5)
    axis = next(at for at, e in enumerate(shapes[0]) if isinstance(e, te.Var))
    axis = 1 if operator is ops.matmul else axis
    shape = list(fitting[0])
    shape[axis] += 1 if fitting[0] == (2, 3) or fitting[0] == (2, 2) else -1
    with pytest.raises(ValueError, match=message):
        f(ones(*shape), arrays[1])


def test_names_are_unified() -> None:
    pairs = [("n", "m"), ("k", "2 * n"), ("m", "7"), ("a * b", "c * d"), ("a", "a + 1")]
    parsed = [(parse_extent(left), parse_extent(right)) for left, right in pairs]
    found = unified(parsed, {}, ["n", "m", "k", "a", "b", "c", "d"])
    assert {name: str(extent) for name, extent in found.items()} == {"m": "7", "n": "7", "k": "14"}
