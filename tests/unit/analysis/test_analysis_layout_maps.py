"""Index maps against enumeration: where they go, what meets, what they miss, and the way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pytest
from xdsl.dialects.builtin import IndexType
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap

from weft.analysis.index import Index
from weft.analysis.layout_maps import LayoutMap, Piece, are_determined, inverse_by_digits
from weft.dialects.intervals import Interval
from weft.passes.schedule.index_maps import function_text, index_map_of, parse_function


def random_map(seed: int) -> tuple[AffineMap, list[int]]:
    """A map of one to three small indices: digits mostly, and anything."""
    random = np.random.default_rng(seed)
    extents = [int(extent) for extent in random.integers(1, 7, int(random.integers(1, 4)))]
    parts: list[AffineExpr] = [AffineDimExpr(at) for at in range(len(extents))]
    for _ in range(int(random.integers(0, 5))):
        at = int(random.integers(0, len(parts)))
        by = int(random.integers(2, 5))
        match int(random.integers(0, 5)):
            case 0 | 1:
                parts[at : at + 1] = [parts[at] // by, parts[at] % by]
            case 2 if len(parts) > 1:
                part = parts.pop(at)
                parts[0] = parts[0] * int(random.integers(1, 8)) + part
            case 3:
                parts[at] = parts[at] * -1 + int(random.integers(0, 9))
            case _:
                parts[at] = (parts[at] + int(random.integers(0, 3))) % int(random.integers(2, 7))
    return AffineMap(len(extents), 0, tuple(parts)), extents


def holds(piece: Piece, layout: LayoutMap, point: Sequence[int], symbols: Mapping[SSAValue, int] | None = None) -> bool:
    values = {**(symbols or {}), **dict(zip(layout.outputs, point, strict=True))}
    inside = all(span is None or span[0] <= v <= span[1] for v, span in zip(point, piece.spans, strict=True))
    return (
        inside
        and all(index.evaluate(values.__getitem__) >= 0 for index in piece.inequalities)
        and all(index.evaluate(values.__getitem__) == 0 for index in piece.equalities)
    )


@pytest.mark.parametrize("seed", range(150))
def test_of_random_maps(seed: int) -> None:
    map_, extents = random_map(seed)
    layout = LayoutMap(map_, [Index({}, extent) for extent in extents])
    taken = {index: tuple(map_.eval(index, ())) for index in product(*map(range, extents))}
    negative = layout.negative()
    assert (negative is None) == all(min(place) >= 0 for place in taken.values())
    if negative is not None:
        assert taken[tuple(negative[0])][negative[1]] < 0
        return
    highest = [max(place[d] for place in taken.values()) for d in range(len(map_.results))]
    assert layout.new_extents == tuple(Index({}, high + 1) for high in highest)
    both = layout.collision()
    assert (both is None) == (len(set(taken.values())) == len(taken))
    if both is not None:
        assert taken[tuple(both[0])] == taken[tuple(both[1])]
        assert both[0] != both[1]
        return
    image = set(taken.values())
    box = set(product(*(range(high + 1) for high in highest)))
    assert {p for p in box if any(holds(piece, layout, p) for piece in layout.missed())} == box - image
    missed = layout.missed_index()
    assert (missed is None) == (box == image)
    assert missed is None or layout.really_missed(missed)
    told = layout.image()
    assert told is None or {p for p in box if holds(told, layout, p)} == image
    inverse = layout.inverse()
    for index, place in taken.items() if inverse is not None else ():
        values = dict(zip(layout.outputs, place, strict=True))
        assert tuple(expression.evaluate(values.__getitem__) for expression in inverse or ()) == index


def symbolic(map_: AffineMap, extents: Sequence[int]) -> tuple[LayoutMap, SSAValue]:
    """The layout with the first extent a parameter of a function."""
    function = FuncOp("f", ((IndexType(),), ()))
    n = function.body.block.args[0]
    KEPT.append(function)
    return LayoutMap(map_, [Index.of(n), *(Index({}, extent) for extent in extents[1:])]), n


KEPT: list[FuncOp] = []
"""Functions whose parameters are symbols."""


@pytest.mark.parametrize("seed", range(120))
def test_of_random_maps_over_symbols(seed: int) -> None:
    """What is said for all n holds for each n."""
    map_, extents = random_map(seed)
    layout, n = symbolic(map_, extents)
    negative = layout.negative()
    if negative is not None:
        assert map_.eval(negative[0], ())[negative[1]] < 0
        return
    both = layout.collision()
    if both is not None:
        assert map_.eval(both[0], ()) == map_.eval(both[1], ())
        assert both[0] != both[1]
        return
    if layout.new_extents is None:
        return
    missed, told, inverse = layout.missed(), layout.image(), layout.inverse()
    for size in range(1, 9):
        at: dict[SSAValue, int] = {n: size}
        taken = {index: tuple(map_.eval(index, ())) for index in product(range(size), *map(range, extents[1:]))}
        image = set(taken.values())
        assert len(image) == len(taken)
        new = [extent.evaluate(at.__getitem__) for extent in layout.new_extents]
        box = set(product(*map(range, new)))
        assert image <= box
        assert {p for p in box if any(holds(piece, layout, p, at) for piece in missed)} == box - image
        assert told is None or {p for p in box if holds(told, layout, p, at)} == image
        for index, place in taken.items() if inverse is not None else ():
            values = at | dict(zip(layout.outputs, place, strict=True))
            assert tuple(expression.evaluate(values.__getitem__) for expression in inverse or ()) == index


@pytest.mark.parametrize("seed", range(60))
def test_indices_that_digits_show_to_be_determined(seed: int):
    map_, extents = random_map(seed)
    layout = LayoutMap(map_, [Index({}, extent) for extent in extents])
    ranges = dict(zip(layout.inputs, [(0, extent - 1) for extent in extents], strict=True))
    for at, value in enumerate(layout.inputs):
        if are_determined([value], layout.results, ranges.__getitem__):
            found: dict[tuple[int, ...], set[int]] = {}
            for index in product(*map(range, extents)):
                found.setdefault(tuple(map_.eval(index, ())), set()).add(index[at])
            assert all(len(values) == 1 for values in found.values())


def way_back(text: str, extents: Sequence[int]) -> list[str] | None:
    layout = LayoutMap(parse_function(text), [Index({}, extent) for extent in extents])

    def below(sizes: Sequence[Index], values: Sequence[object]) -> dict[object, Interval]:
        return {value: (0, size.constant - 1) for value, size in zip(values, sizes, strict=True)}

    ranges = below(layout.old_extents, layout.inputs) | below(layout.new_extents or (), layout.outputs)
    for at, output in enumerate(layout.outputs):
        output.name_hint = f"y{chr(ord('a') + at)}"
    found = inverse_by_digits(layout.results, layout.outputs, layout.inputs, ranges.__getitem__, ranges.__getitem__)
    return None if found is None else [repr(index) for index in found]


@pytest.mark.parametrize(
    ("text", "extents", "expected"),
    [
        ("lambda i, j: (j // 4, i, j % 4)", (3, 8), ["%yb", "4*%ya + %yc"]),
        ("lambda n, h, w: n * 16 + h * 4 + w", (2, 4, 4), ["(%ya // 16)", "((%ya // 4) % 4)", "(%ya % 4)"]),
        ("lambda i, j: ((i * 16 + j) // 32, (i * 16 + j) % 32)", (8, 16), ["2*%ya + (%yb // 16)", "(%yb % 16)"]),
        ("lambda i: 7 - i", (8,), ["-1*%ya + 7"]),
        ("lambda i, j: (i + j, j)", (3, 3), None),
    ],
)
def test_the_way_back_reads_well(text: str, extents: tuple[int, ...], expected: list[str] | None) -> None:
    assert way_back(text, extents) == expected


@pytest.mark.parametrize("seed", range(40))
def test_functions_as_text(seed: int) -> None:
    map_, extents = random_map(seed)
    again = parse_function(function_text(map_))
    for index in product(*map(range, extents)):
        assert again.eval(index, ()) == map_.eval(index, ())


def test_functions_of_any_number_of_indices() -> None:
    assert index_map_of(lambda *i: (i[-1], *i[:-1]), 3) == parse_function("lambda a, b, c: (c, a, b)")
