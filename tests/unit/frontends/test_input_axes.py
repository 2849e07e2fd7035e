"""Axes of inputs as text, and their unification with the shapes of a program."""

from collections.abc import Sequence

import numpy as np
import pytest

import weft
from weft import te
from weft.dialects.graph_shapes import KnownExtent, parse_extent
from weft.dialects.input_shapes import unify
from weft.driver.verify import verify_module
from weft.interp.interpreter import Interpreter
from weft.support.errors import CompileError
from weft.support.input_axes import Axis, axes_of, parse_axes, show_axes

MODEL = {"ids": ("batch", "seq"), "mask": ("batch", "seq"), "past": ("batch", "past", "seq + past"), "w": ("k", 4)}


def unified(**stated: str | Sequence[int | str]) -> tuple[dict[str, str], dict[str, tuple[int, int]]]:
    shapes: dict[str, list[KnownExtent]] = {}
    for name, shape in MODEL.items():
        extents = [parse_extent(str(extent)) for extent in shape]
        shapes[name] = [extent for extent in extents if extent is not None]
    found = unify(shapes, {name: axes_of(axes, name) for name, axes in stated.items()})
    return {name: str(e) for name, e in found.values.items()}, {str(e): range_ for e, range_ in found.bounds.items()}


@pytest.mark.parametrize(
    ("text", "axes"),
    [
        ("1x128", (Axis(1), Axis(128))),
        ("bxs", (Axis("b"), Axis("s"))),
        ("b:1..8 x s:1..512", (Axis("b", (1, 8)), Axis("s", (1, 512)))),
        ("b:1..8xs : 1 .. 512", (Axis("b", (1, 8)), Axis("s", (1, 512)))),
        ("1..8 x 3..3", (Axis(None, (1, 8)), Axis(3))),
        ("max_len x 2 * n", (Axis("max_len"), Axis("2 * n"))),
        ("7", (Axis(7),)),
    ],
)
def test_axes(text: str, axes: tuple[Axis, ...]) -> None:
    assert parse_axes(text, "x") == axes
    assert parse_axes(show_axes(axes), "x") == axes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "an axis is empty"),
        ("1xx2", "an axis is empty"),
        (":1..2", "an axis is empty"),
        ("b:x s", "'' is no range"),
        ("b:5", "'5' is no range"),
        ("1x-3", "an extent is not negative, got -3"),
        ("b:-1..3", "an extent is not negative, got the range -1..3"),
        ("8..1", "the range 8..1 has no number"),
        ("2:3..4", "states a range of a number"),
    ],
)
def test_text_that_spells_no_axes(text: str, message: str) -> None:
    with pytest.raises(CompileError) as error:
        parse_axes(text, "shape of 'ids'")
    assert error.value.message.startswith("shape of 'ids': ")
    assert message in error.value.message


def test_symbols_get_values_names_and_ranges() -> None:
    assert unified(ids="1x128") == ({"batch": "1", "seq": "128"}, {})
    assert unified(ids="b:1..8 x s:1..512") == ({"batch": "b", "seq": "s"}, {"b": (1, 8), "s": (1, 512)})
    assert unified(ids="1..8 x 1..512", mask="2..9 x 1..512") == ({}, {"batch": (2, 8), "seq": (1, 512)})
    assert unified(ids="seq x batch") == ({"batch": "seq", "seq": "batch"}, {})
    assert unified(ids="nxn") == ({"batch": "n", "seq": "n"}, {})
    assert unified(ids="1x128", past="1xpx131")[0] == {"batch": "1", "seq": "128", "past": "3"}
    assert unified(w="cxc") == ({"k": "4"}, {})


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"id": "1x2"}, "there is no input 'id', did you mean 'ids'?"),
        ({"ids": "1"}, r"'ids' has 2 axes, \(batch, seq\), got 1: 1"),
        ({"w": "bx5"}, "axis 1 of 'w' is 4 in the program, got 5"),
        ({"ids": "1x128", "mask": "1x64"}, "'seq' is 128 by axis 1 of 'ids', but 64 by axis 1 of 'mask'"),
        ({"ids": "b x s:1..4", "mask": "b x s:5..6"}, "'s' is 1..4 by axis 1 of 'ids', but 5..6 by axis 1 of 'mask'"),
        ({"ids": "1 x s:1..100", "mask": "1x200"}, "axis 1 of 'ids' is 200, not in its range 1..100"),
        ({"ids": "1x128", "past": "1x3x130"}, "axis 2 of 'past' is 131 in the program, got 130"),
        ({"ids": ("n", "n *")}, "axis 1 of 'ids': 'n \\*' is no extent"),
    ],
)
def test_contradictions(stated: dict[str, str], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        unified(**stated)


def test_functions_over_buffers() -> None:
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), "float32", name="A")
    k = te.reduce_axis((0, m), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    module = te.create_func([A, B], name="f")
    a = np.arange(24, dtype=np.float32).reshape(3, 8)
    for shape in ("3x8", "r:1..4 x 8", "n x c:8..16"):
        special = weft.specialize(module, {"A": shape})
        verify_module(special)
        b = np.zeros(3, np.float32)
        Interpreter(special).call("f", a, b)
        np.testing.assert_array_equal(b, a.sum(1))
        np.testing.assert_array_equal(weft.build(special)["f"](a), b)
    assert "memref<3x8xf32>" in str(weft.specialize(module, {"A": "3x8"}))
    limited = weft.build(weft.specialize(module, {"A": "r:1..4 x 8"}))["f"]
    with pytest.raises(ValueError, match=r"r must be at most 4, got 5 \(axis 0 of 'A'\): its stated range is 1..4"):
        limited(np.zeros((5, 8), np.float32))
    square = weft.build(weft.specialize(module, {"A": "qxq"}))["f"]
    with pytest.raises(ValueError, match=r"expected shape \(q, q\) with q = 3"):
        square(a)
