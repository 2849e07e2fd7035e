"""Sizes that a call gives as numbers: elements of arrays of integers become extents."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'weft[onnx]'")

from onnx import helper, numpy_helper

import weft

NODES = (
    ("Reshape", ["x", "shape"], ["reshaped"]),
    ("Expand", ["e", "wide"], ["expanded"]),
    ("Range", ["zero", "count", "two"], ["range"]),
    ("Range", ["count", "zero", "minus"], ["back"]),
    ("TopK", ["t", "k"], ["values", "places"]),
    ("Tile", ["x", "reps"], ["tiled"]),
    ("Slice", ["x", "starts", "ends"], ["cut"]),
    ("Pad", ["x", "pads"], ["padded"]),
    ("Add", ["count", "two"], ["more"]),
    ("Unsqueeze", ["more", "axis"], ["size"]),
    ("ConstantOfShape", ["size"], ["zeros"]),
)
INPUTS: dict[str, tuple[int, list[Any]]] = {
    **{"x": (1, ["n", 4]), "e": (1, ["q", 1]), "t": (1, ["a", "b"])},
    **{"shape": (7, [3]), "wide": (7, [2]), "count": (7, []), "k": (7, [1]), "reps": (7, [2])},
    **{"starts": (7, [2]), "ends": (7, [2]), "pads": (7, [4])},
}
CONSTANTS = {"zero": 0, "two": 2, "minus": -1, "axis": [0]}
GIVEN: dict[str, Any] = {
    **{"shape": (2, 3, 4), "wide": (3, 5), "count": 7, "k": (3,), "reps": (2, 1)},
    **{"starts": (-3, 0), "ends": (100, -1), "pads": (1, 0, 0, 2)},
}


def model() -> Any:
    outputs = [name for _, _, names in NODES for name in names if name not in ("more", "size")]
    integers = ("range", "back", "places")
    graph = helper.make_graph(
        [helper.make_node(kind, inputs, names) for kind, inputs, names in NODES],
        "sizes",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in INPUTS.items()],
        [helper.make_tensor_value_info(name, 7 if name in integers else 1, None) for name in outputs],
        [numpy_helper.from_array(np.array(value, "int64"), name) for name, value in CONSTANTS.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def arguments(**changes: Any) -> dict[str, Any]:
    random = np.random.default_rng(0)
    shapes = {"x": (6, 4), "e": (3, 1), "t": (2, 9)}
    floats = {name: random.random(shape, dtype="float32") for name, shape in shapes.items()}
    numbers = {name: np.array(value, "int64") for name, value in {**GIVEN, **changes}.items()}
    return {name: {**floats, **numbers}[name] for name in INPUTS}


def expected(given: dict[str, Any]) -> list[Any]:
    x, t, k, count = given["x"], given["t"], given["k"].item(), given["count"].item()
    (row, column), (last_row, last_column) = given["starts"], given["ends"]
    pads = given["pads"].reshape(2, 2).T.tolist()
    return [
        x.reshape(given["shape"]),
        np.broadcast_to(given["e"], np.broadcast_shapes(given["e"].shape, tuple(given["wide"]))),
        np.arange(0, count, 2),
        np.arange(count, 0, -1),
        -np.sort(-t, 1)[:, :k],
        np.argsort(-t, 1, kind="stable")[:, :k],
        np.tile(x, given["reps"]),
        x[row:last_row, column:last_column],
        np.pad(x, pads),
        np.zeros(count + 2, "float32"),
    ]


FIT: tuple[dict[str, Any], ...] = (
    {},
    {"shape": (24, 1, 1), "wide": (3, 1), "count": 0, "k": (9,), "reps": (0, 3)},
    {"wide": (1, 5), "starts": (5, 3), "ends": (-100, 2), "pads": (0, 0, 0, 0), "count": -2, "k": (0,)},
)
MISFIT: tuple[tuple[dict[str, Any], str], ...] = (
    ({"shape": (2, 3, 5)}, r"expected 4 \* n == .*shape.2 = 5 \(element 2 of 'shape'\)"),
    ({"shape": (-2, -3, 4)}, r"shape.0 must be at least 1, got -2 \(element 0 of 'shape'\)"),
    ({"shape": (-1, 3, 4)}, r"shape.0 must be at least 1, got -1"),
    ({"shape": (24, -1, -1)}, r"shape.1 must be at least 1, got -1 .*: 0 and -1 in the shape .* known at import"),
    ({"shape": (24, 0, 1)}, r"shape.1 must be at least 1, got 0"),
    ({"wide": (4, 5)}, r"got q = 3 \(axis 0 of 'e'\), wide.0 = 4 \(element 0 of 'wide'\)"),
    ({"k": (10,)}, r"b must be at least k.0, got k.0 = 10 \(element 0 of 'k'\), b = 9"),
    ({"k": (-1,)}, r"argument 7 \('k'\): expected an extent of at least 0 .* as element 0, got -1"),
    ({"reps": (-1, 1)}, r"got tiled_d0 = n \* reps.0 = -6 .*, reps.0 = -1 \(element 0 of 'reps'\)"),
    ({"pads": (-9, 0, 0, 0)}, r"got padded_d0 = .*pads.0 = -9 \(element 0 of 'pads'\)"),
    ({"count": (1 << 63) - 1}, r"count.0 must be at most 46|count.0 <= 46|at least count.0"),
    ({"count": -(1 << 63)}, r"count.0 must be at least -46|count.0.* = -92"),
    ({"count": -3}, r"got zeros_d0 = count.0 \+ 2 = -1 for count.0 = -3"),
)


@pytest.fixture(scope="module")
def module() -> Any:
    return weft.from_onnx(model())


def check(call: Any) -> None:
    for changes in FIT:
        given = arguments(**changes)
        for found, wanted in zip(call(*given.values()), expected(given), strict=True):
            np.testing.assert_array_equal(found, wanted, str(changes))


@pytest.mark.slow
def test_values_are_extents(module: Any) -> None:
    f = weft.build(module, cache=False)["main"]
    check(f)
    for changes, message in MISFIT:
        with pytest.raises(ValueError, match=message):
            f(*arguments(**changes).values())
    given = arguments()
    results = [np.empty(wanted.shape, wanted.dtype) for wanted in expected(given)]
    f(*given.values(), *results)
    np.testing.assert_array_equal(results[0], expected(given)[0])
    results[1] = np.empty((3, 4), "float32")
    with pytest.raises(ValueError, match=r"expected 4 as element 1 \(wide.1 = 4, from axis 1 of 'expanded'\), got 5"):
        f(*given.values(), *results)


def test_interpreter(module: Any) -> None:
    check(lambda *given: weft.Interpreter(module).call("main", *given))


@pytest.mark.slow
def test_c(module: Any) -> None:
    check(weft.build(module, "c", cache=False)["main"])


@pytest.mark.slow
def test_exported_libraries(module: Any, tmp_path: Path) -> None:
    lib = weft.build(module, cache=False)
    lib.export_library(str(tmp_path / "libsizes.so"))
    check(weft.load(str(tmp_path / "libsizes.so"))["main"])


def test_bound_values_are_numbers(module: Any) -> None:
    names = ("shape", "wide", "count", "k", "reps", "starts", "ends", "pads")
    values = arguments()
    known = weft.from_onnx(model(), constants={name: values[name] for name in names})
    f = weft.build(known, cache=False)["main"]
    given = [value for name, value in values.items() if name not in names]
    for found, wanted in zip(f(*given), expected(values), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_borders_that_copy_elements_fit_the_axis() -> None:
    """Widths of a border that calls give may be negative, which cuts; what is left has enough elements to copy."""
    inputs = [helper.make_tensor_value_info("x", 1, ["n"]), helper.make_tensor_value_info("pads", 7, [2])]
    pad = helper.make_node("Pad", ["x", "pads"], ["y"], mode="reflect")
    graph = helper.make_graph([pad], "borders", inputs, [helper.make_tensor_value_info("y", 1, None)])
    call = weft.build(weft.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])))["main"]
    x = np.arange(4, dtype="float32")
    np.testing.assert_array_equal(call(x, np.array([3, 3])), np.pad(x, 3, "reflect"))
    np.testing.assert_array_equal(call(x, np.array([-2, 1])), np.pad(x[2:], (0, 1), "reflect"))
    for widths in ((-5, 0), (-3, -2), (-4, 4), (4, 0), (-1, 3)):
        with pytest.raises(ValueError, match=r"must be at least 0, got n = 4 .*(cuts at most|needs elements)"):
            call(x, np.array(widths))


FAR_BOUNDS = (0, 2, 7, -1, -5, 1 << 62, -(1 << 62), (1 << 63) - 1, 1 - (1 << 63), -(1 << 63))


def sliced(**constants: Any) -> Any:
    """Slices of the same bounds with several steps, the bounds given by calls or by `constants`."""
    steps = {"up": 1, "down": -2, "far": (1 << 63) - 1}
    numbers = {**steps, **constants}
    inputs = [("x", 1, "n"), *((name, 7, 1) for name in ("first", "last") if name not in constants)]
    graph = helper.make_graph(
        [helper.make_node("Slice", ["x", "first", "last", "axis", step], [f"to_{step}"]) for step in steps],
        "sliced",
        [helper.make_tensor_value_info(name, kind, [extent]) for name, kind, extent in inputs],
        [helper.make_tensor_value_info(f"to_{step}", 1, None) for step in steps],
        [numpy_helper.from_array(np.array([n], "int64"), name) for name, n in {**numbers, "axis": 0}.items()],
    )
    return weft.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]))


def check_slices(f: Any, extent: int, first: int, last: int, *bounds: Any) -> None:
    x = np.arange(extent, dtype="float32")
    for found, step in zip(f(x, *bounds), (1, -2, (1 << 63) - 1), strict=True):
        np.testing.assert_array_equal(found, x[first:last:step], f"{extent} [{first}:{last}:{step}]")


@pytest.mark.parametrize("target", ["llvm", pytest.param("c", marks=pytest.mark.slow)])
def test_bounds_of_slices_that_calls_give_are_clamped(target: str) -> None:
    f = weft.build(sliced(), target, cache=False)["main"]
    for extent, first, last in itertools.product((0, 1, 5), FAR_BOUNDS, FAR_BOUNDS):
        check_slices(f, extent, first, last, np.array([first]), np.array([last]))


@pytest.mark.parametrize(("first", "last"), [(7, -(1 << 63)), ((1 << 63) - 1, -(1 << 63)), (-(1 << 63), (1 << 63) - 1)])
def test_constant_bounds_of_slices_are_clamped(first: int, last: int) -> None:
    f = weft.build(sliced(first=first, last=last), cache=False)["main"]
    check_slices(f, 5, first, last)
