"""Views of buffers: places, extents and strides over numbers of any kind."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import weft
from weft.dialects.graph_shapes import EXTENTS, parse_extent, symbol
from weft.dialects.strides import INTEGERS
from weft.dialects.upstream.views import VIEWS, StridedView, extent_of, kept_dimensions

VIEWS_OF_8_BY_6 = {
    "memref.subview %A[1, 2] [3, 2] [2, 1] : memref<8x6xf32> to memref<3x2xf32, strided<[12, 1], offset: 8>>": (
        lambda a: a[1:7:2, 2:4]
    ),
    "memref.subview %A[3, 1] [1, 4] [1, 1] : memref<8x6xf32> to memref<4xf32, strided<[1], offset: 19>>": (
        lambda a: a[3, 1:5]
    ),
    "memref.transpose %A (i, j) -> (j, i) : memref<8x6xf32> to memref<6x8xf32, strided<[1, 6]>>": lambda a: a.T,
    "memref.collapse_shape %A [[0, 1]] : memref<8x6xf32> into memref<48xf32>": lambda a: a.reshape(48),
    "memref.expand_shape %A [[0, 1], [2]] output_shape [2, 4, 6] : memref<8x6xf32> into memref<2x4x6xf32>": (
        lambda a: a.reshape(2, 4, 6)
    ),
    "memref.reinterpret_cast %A to offset: [5], sizes: [2, 3], strides: [10, 3] : memref<8x6xf32> to "
    "memref<2x3xf32, strided<[10, 3], offset: 5>>": lambda a: np.lib.stride_tricks.as_strided(
        a.ravel()[5:], (2, 3), (10 * a.itemsize, 3 * a.itemsize)
    ),
    "memref.cast %A : memref<8x6xf32> to memref<?x6xf32>": lambda a: a,
}


def _view(text: str) -> StridedView[str, int]:
    module = weft.parse(f"func.func @f(%A: memref<8x6xf32>) {{ %v = {text} func.return }}")
    (op,) = [op for op in module.walk() if isinstance(op, VIEWS)]
    whole = StridedView("A", 0, (8, 6), INTEGERS.row_major((8, 6)))
    return whole.part(op, INTEGERS)


@pytest.mark.parametrize("text", VIEWS_OF_8_BY_6)
def test_elements_of_views_are_those_that_numpy_has(text: str) -> None:
    array = np.arange(48).reshape(8, 6)
    expected, view = VIEWS_OF_8_BY_6[text](array), _view(text)
    assert view.buffer == "A" and view.shape == expected.shape
    for index in product(*map(range, view.shape)):
        assert INTEGERS.place(index, view.strides, view.offset) == expected[index]


def test_strides_of_symbolic_shapes() -> None:
    n = symbol("n")
    assert EXTENTS.row_major((n, n + 1, 4)) == (parse_extent("4 * n + 4"), 4, 1)
    assert EXTENTS.row_major(()) == ()
    assert EXTENTS.product((n, 4, n)) == parse_extent("4 * n * n")


@pytest.mark.parametrize(
    ("sizes", "shape", "kept"),
    [((1, 4, 1), (4,), [1]), ((1, 1, 4), (1, 4), [0, 2]), ((1, 4, 1), (4, 1), [1, 2]), ((2, 3), (2, 3), [0, 1])],
)
def test_dimensions_that_a_part_keeps(sizes: tuple[int, ...], shape: tuple[int, ...], kept: list[int]) -> None:
    assert kept_dimensions(sizes, shape) == kept


def test_extents_of_views_are_the_values_that_made_them() -> None:
    module = weft.parse(
        """func.func @f(%n: index, %m: index, %B: memref<?x?xf32>) {
          %A = memref.alloc(%n, %m) : memref<?x?xf32>
          %c = memref.collapse_shape %A [[0, 1]] : memref<?x?xf32> into memref<?xf32>
          %t = memref.transpose %A (i, j) -> (j, i) : memref<?x?xf32> to memref<?x?xf32, strided<[1, ?]>>
          %s = memref.subview %B[0, 0] [1, %n] [1, 1] : memref<?x?xf32> to memref<?xf32, strided<[1]>>
          %k = memref.cast %B : memref<?x?xf32> to memref<?x4xf32>
          func.return
        }"""
    )
    values = {v.name_hint: v for op in module.walk() for b in op.regions for a in b.blocks for v in a.args}
    values |= {op.results[0].name_hint: op.results[0] for op in module.walk() if op.results}

    def extents(name: str) -> list[object]:
        rank = len(values[name].type.get_shape())
        found = [
            extent_of(values[name], at, lambda factors: tuple(factors), lambda buffer, at: (buffer.name_hint, at))
            for at in range(rank)
        ]
        return [getattr(extent, "name_hint", extent) for extent in found]

    assert extents("A") == ["n", "m"] and extents("t") == ["m", "n"]
    assert extents("c") == [(values["n"], values["m"])]
    assert extents("s") == ["n"]
    assert extents("k") == [("B", 0), 4]
