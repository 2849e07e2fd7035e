"""ONNX models whose results have a size that depends on data, of symbolic input shapes, against `onnx.reference`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'weft[onnx]'")

from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx_models import BOOL, FLOAT, INT64, model, node

import weft
from weft.interp.interpreter import Interpreter
from weft.support.errors import CompileError

random = np.random.default_rng(5)


def check(proto: Any, *calls: dict[str, Any], **options: Any) -> None:
    """The model computes what the reference does, with the same shapes."""
    function, reference = weft.build(weft.from_onnx(proto), **options)["main"], ReferenceEvaluator(proto)
    for inputs in calls:
        found = function(*inputs.values())
        wanted = reference.run(None, inputs)
        for one, other in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
            assert one.shape == other.shape and one.dtype == other.dtype, (one, other)
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_post_processing_of_detections() -> None:
    """Boxes above a score, of each class, suppressed; then the boxes and the scores that are left."""
    nodes = [
        node("NonMaxSuppression", "boxes scores most iou least", "kept"),
        node("Gather", "kept two", "places", axis=1),
        node("Squeeze", "boxes zero", "flat"),
        node("Gather", "flat places", "found", axis=0),
        node("GatherND", "scores kept", "values"),
        node("Greater", "values half", "is_sure"),
        node("Compress", "found is_sure", "sure", axis=0),
        node("Shape", "kept", "shape"),
    ]
    weights = {"most": np.array([3]), "iou": np.array([0.4], np.float32), "least": np.array([0.1], np.float32)}
    weights |= {"two": np.array(2), "zero": np.array([0]), "half": np.array(0.6, np.float32)}
    shapes = {"boxes": [1, "n", 4], "scores": [1, 2, "n"]}
    proto = model(nodes, shapes, "kept found values sure shape", weights, types={"kept": INT64, "shape": INT64})

    def inputs(n: int, scale: float) -> dict[str, Any]:
        corners = random.random((1, n, 2), np.float32)
        boxes = np.concatenate([corners, corners + 0.1 + random.random((1, n, 2), np.float32) / 2], 2)
        return {"boxes": boxes, "scores": (random.random((1, 2, n), np.float32) * scale).astype(np.float32)}

    check(proto, inputs(40, 1.0), inputs(7, 1.0), inputs(7, 0.05), inputs(1, 1.0))


@pytest.mark.slow
def test_rows_of_data() -> None:
    """NonZero, Gather, MatMul; Compress of the flat data; Range to a computed limit; two more cuts after the first."""
    nodes = [
        node("Greater", "s zero", "mask"),
        node("NonZero", "mask", "at"),
        node("Squeeze", "at axis", "rows"),
        node("Gather", "x rows", "some", axis=0),
        node("MatMul", "some w", "y"),
        node("Compress", "s mask", "kept"),
        node("Cast", "mask", "ones", to=INT64),
        node("ReduceSum", "ones", "count", keepdims=0),
        node("Range", "start count step", "numbers"),
        node("Unique", "t", "values first inverse counts", sorted=0),
        node("Gather", "counts inverse", "own", axis=0),
    ]
    weights = {"zero": np.array(0, np.float32), "w": random.standard_normal((4, 3), np.float32), "axis": np.array([0])}
    weights |= {"start": np.array(3), "step": np.array(2)}
    shapes = {"x": ["n", 4], "s": ["n"], "t": ["m"]}
    types = dict.fromkeys(("t", "numbers", "values", "inverse", "own"), INT64)
    proto = model(nodes, shapes, "y kept numbers values inverse own", weights, types=types)

    def inputs(n: int, m: int, shift: float) -> dict[str, Any]:
        x, s = random.standard_normal((n, 4), np.float32), random.random(n, np.float32) + np.float32(shift)
        return {"x": x, "s": s, "t": random.integers(0, 4, m)}

    check(proto, inputs(30, 9, -0.5), inputs(5, 1, 1.0), inputs(5, 50, -2.0), inputs(1, 3, 1.0))


def test_steps_that_data_decide() -> None:
    """A loop as often as an input says."""
    body = helper.make_graph(
        [node("Identity", "more", "again"), node("Add", "sum x", "next")],
        "body",
        [
            helper.make_tensor_value_info("step", INT64, []),
            helper.make_tensor_value_info("more", BOOL, []),
            helper.make_tensor_value_info("sum", FLOAT, ["n"]),
        ],
        [helper.make_tensor_value_info("again", BOOL, []), helper.make_tensor_value_info("next", FLOAT, ["n"])],
    )
    nodes = [node("Loop", "steps on x", "y", body=body)]
    proto = model(nodes, {"x": ["n"], "steps": []}, "y", {"on": np.array(True)}, types={"steps": INT64})
    x = np.arange(3, dtype=np.float32)
    function = weft.build(weft.from_onnx(proto))["main"]
    for steps in (0, 1, 7):
        np.testing.assert_array_equal(function(x, np.array(steps)), x * (steps + 1))


def branch(output: str, *nodes: Any, kind: int = FLOAT) -> Any:
    return helper.make_graph(list(nodes), "branch", [], [helper.make_tensor_value_info(output, kind, None)])


def interpreted(proto: Any, *calls: dict[str, Any]) -> None:
    """The graph computes what the reference does."""
    module, reference = weft.from_onnx(proto), ReferenceEvaluator(proto)
    for inputs in calls:
        found = Interpreter(module).call("main", *inputs.values())
        results = found if isinstance(found, tuple | list) else (found,)
        for one, other in zip(results, reference.run(None, inputs), strict=True):
            assert one.shape == other.shape, (one, other)
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_branches_of_other_sizes() -> None:
    """Extents that are symbols, and that data decide in a branch."""
    some = branch("some", node("NonZero", "x", "some"), kind=INT64)
    none = branch("same", node("Identity", "none", "same"), kind=INT64)
    both = branch("both", node("Concat", "x z", "both", axis=0))
    one = branch("one", node("Relu", "z", "one"))
    nodes = [
        node("If", "flag", "places", then_branch=some, else_branch=none),
        node("If", "flag", "part", then_branch=both, else_branch=one),
        node("Neg", "part", "y"),
        node("Shape", "part", "shape"),
    ]
    types = {"flag": BOOL, "places": INT64, "shape": INT64}
    weights = {"none": np.zeros((1, 2), np.int64)}
    proto = model(nodes, {"flag": [], "x": ["n"], "z": ["m"]}, "places y shape", weights, types=types)
    assert "at_most <max(n, 2)>" in str(weft.from_onnx(proto))
    assert "at_most <m + n>" in str(weft.from_onnx(proto))
    z = np.array([-1, 2], np.float32)
    calls = [
        {"flag": np.array(flag), "x": np.array(x, np.float32), "z": z}
        for flag in (True, False)
        for x in ([0, 2, 0, 5], [0, 0, 0], [1])
    ]
    check(proto, *calls)


def test_branches_that_do_not_fit_are_refused() -> None:
    compress = branch("kept", node("Compress", "x mask", "kept", axis=0))
    types = {"flag": BOOL, "mask": BOOL}
    for other, message in (
        (
            node("ReduceSum", "x", "other", keepdims=0),
            r"emit_if: one function gives \(.*dims<u0>.*\), the other \(.*f32",
        ),
        (node("Cast", "x", "other", to=INT64), r"emit_if: one function gives \(.*xf32, .*\), the other \(.*xi64"),
    ):
        nodes = [node("If", "flag", "y", then_branch=compress, else_branch=branch("other", other))]
        with pytest.raises(CompileError, match=message):
            weft.from_onnx(model(nodes, {"flag": [], "x": ["n", 3], "mask": ["n"]}, types=types))
    body = helper.make_graph(
        [node("Identity", "more", "again"), node("Compress", "x mask", "next", axis=0)],
        "body",
        [
            helper.make_tensor_value_info("step", INT64, []),
            helper.make_tensor_value_info("more", BOOL, []),
            helper.make_tensor_value_info("last", FLOAT, ["n"]),
        ],
        [helper.make_tensor_value_info("again", BOOL, []), helper.make_tensor_value_info("next", FLOAT, None)],
    )
    nodes = [node("Loop", "steps on x", "y", body=body)]
    proto = model(
        nodes, {"x": ["n"], "steps": [], "mask": ["n"]}, "y", {"on": np.array(True)}, types=types | {"steps": INT64}
    )
    with pytest.raises(CompileError, match="loops give results of the same size for all data"):
        weft.from_onnx(proto)


@pytest.mark.slow
def test_fourier_transforms_of_symbolic_length() -> None:
    nodes = [
        node("Shape", "z", "length", start=0, end=1),
        node("Squeeze", "length", "k"),
        node("DFT", "x k axis", "y"),
        node("DFT", "x - axis", "part", onesided=1),
        node("STFT", "x step - k", "frames"),
        node("STFT", "x step", "whole"),
    ]
    weights = {"axis": np.array(1), "step": np.array(2)}
    proto = model(nodes, {"x": ["b", "n", 1], "z": ["k"]}, "y part frames whole", weights, opset=20)
    for n, k in ((8, 5), (7, 7)):
        x, z = random.standard_normal((2, n, 1), np.float32), np.zeros(k, np.float32)
        interpreted(proto, {"x": x, "z": z})
    # Longer than the axis, which is filled with zeros.
    proto = model(nodes[:3], {"x": ["b", "n", 1], "z": ["k"]}, "y", weights, opset=20)
    check(proto, *({"x": random.standard_normal((1, n, 1), np.float32), "z": np.zeros(6, np.float32)} for n in (4, 9)))


@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
def test_aligned_corners_of_symbolic_images(mode: str) -> None:
    options = {"mode": mode, "coordinate_transformation_mode": "align_corners"}
    shapes = {"x": [1, 2, "h", "w"]}
    proto = model(
        [node("Resize", "x - scales", "y", **options)], shapes, "y", {"scales": np.array([1, 1, 2, 3], np.float32)}
    )
    interpreted(proto, *({"x": random.standard_normal((1, 2, h, w), np.float32)} for h, w in ((3, 5), (1, 4))))
    proto = model(
        [node("Resize", "x - scales", "y", **options)], shapes, "y", {"scales": np.array([1, 1, 1, 1.5], np.float32)}
    )
    interpreted(proto, *({"x": random.standard_normal((1, 2, h, w), np.float32)} for h, w in ((3, 6), (1, 4), (2, 5))))


def test_scanned_tensors_of_other_names() -> None:
    def values(*names: str) -> list[Any]:
        return [helper.make_tensor_value_info(name, FLOAT, [3]) for name in names]

    body = helper.make_graph(
        [node("Add", "s a", "t"), node("Mul", "a b", "o")], "body", values("s", "a", "b"), values("t", "o")
    )
    nodes = [node("Scan", "first x z", "last y", num_scan_inputs=2, body=body)]
    proto = model(nodes, {"first": [3], "x": ["n", 3], "z": ["m", 3]}, "last y")
    first, x, z = (random.standard_normal(shape, np.float32) for shape in ((3,), (4, 3), (4, 3)))
    interpreted(proto, {"first": first, "x": x, "z": z})
    with pytest.raises(
        ValueError, match=r"argument 3 \('z'\): expected shape \(n, 3\) with n = 4 \(from axis 0 of 'x'\)"
    ):
        weft.build(weft.from_onnx(proto))["main"](first, x, z[:2])
    proto = model(nodes, {"first": [3], "x": [4, 3], "z": [5, 3]}, "last y")
    with pytest.raises(CompileError, match="scanned tensors have 4 and 5 elements along their axes"):
        weft.from_onnx(proto)


def _batched_scan(directions: Sequence[int], count: int | str = "n") -> tuple[Any, dict[str, Any]]:
    """A Scan of opset 8 that reads lengths, a state, two tensors and an outer value."""
    body = helper.make_graph(
        [node("Add", "s a", "t"), node("Mul", "t w", "u"), node("Sub", "u b", "o")], "body",
        *([helper.make_tensor_value_info(name, FLOAT, [3]) for name in names] for names in ("sab", "uo")),
    )  # fmt: skip
    nodes = [node("Scan", "lens first x z", "last y", num_scan_inputs=2, body=body, directions=directions)]
    shapes = {"first": ["k", 3], "x": ["k", "n", 3], "z": ["k", count, 3], "w": [3], "lens": ["k"]}
    proto = model(nodes, shapes, "last y", types={"lens": INT64}, opset=8)
    feeds = {name: random.standard_normal(shape, np.float32) for name, shape in (("first", (2, 3)), ("x", (2, 4, 3)))}
    return proto, feeds | {"z": feeds["x"][:, ::-1] + 1, "w": np.float32([1, 2, 0.5]), "lens": np.array([2, 4])}


@pytest.mark.slow
@pytest.mark.parametrize("directions", [[0, 0], [1, 0]])
def test_batched_scans(directions: Sequence[int]) -> None:
    proto, feeds = _batched_scan(directions)
    last, y = weft.build(weft.from_onnx(proto))["main"](*feeds.values())
    for at, length in enumerate(feeds["lens"]):
        state, (x, z) = feeds["first"][at], (feeds[name][at, :length] for name in "xz")
        for row, (a, b) in enumerate(zip(x[::-1] if directions[0] else x, z, strict=True)):
            state = (state + a) * feeds["w"]
            np.testing.assert_allclose(y[at, row], state - b, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(last[at], state, rtol=1e-5, atol=1e-6)
        assert not y[at, length:].any()


def test_bad_batched_scans() -> None:
    proto, _ = _batched_scan([0])
    with pytest.raises(CompileError, match="attribute 'directions'"):
        weft.from_onnx(proto)
    proto, _ = _batched_scan([0, 0], 5)
    proto.graph.input[1].type.tensor_type.shape.dim[1].dim_value = 4
    with pytest.raises(CompileError, match=re.escape("got shapes (k, 3), (k, 4, 3), (k, 5, 3), (k)")):
        weft.from_onnx(proto)
    del proto.graph.input[1].type.tensor_type.shape.dim[1:]
    with pytest.raises(CompileError, match="input 2 has 1 axes, needs at least 2: batch, then steps"):
        weft.from_onnx(proto)


def _sum_of_parts(one: str, other: str) -> Any:
    nodes = [
        node("Compress", f"x {one}", "a", axis=0),
        node("Compress", f"y {other}", "b", axis=0),
        node("Add", "a b", "z"),
    ]
    masks = dict.fromkeys((one, other))
    shapes = {"x": ["n", 3], "y": ["n", 3], **{mask: ["n"] for mask in masks}}
    return weft.from_onnx(model(nodes, shapes, "z", types=dict.fromkeys(masks, BOOL)))


def test_sizes_that_are_equal_for_some_data() -> None:
    """One mask gives one size. Sizes of different masks need checked builds, which compare them in both directions."""
    x, y = np.ones((4, 3), "float32"), np.full((4, 3), 2, "float32")
    two, other, three = (np.array(mask, bool) for mask in ([1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 0]))
    np.testing.assert_array_equal(weft.build(_sum_of_parts("m", "m"))["main"](x, y, two), np.full((2, 3), 3))
    with pytest.raises(
        weft.CompileError, match="is only known at run time: calls of builds with checked=True check it"
    ):
        weft.build(_sum_of_parts("m", "k"))
    checked = weft.build(_sum_of_parts("m", "k"), checked=True)["main"]
    np.testing.assert_array_equal(checked(x, y, two, other), np.full((2, 3), 3))
    for masks in ((two, three), (three, two)):
        with pytest.raises((ValueError, IndexError), match="main: "):
            checked(x, y, *masks)


def test_compress_by_conditions_of_other_lengths() -> None:
    """A condition may be shorter than the axis; calls refuse a longer one."""
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    proto = model([node("Compress", "x c", "y", axis=0)], {"x": ["n", 3], "c": ["k"]}, "y", types={"c": BOOL})
    check(proto, {"x": x, "c": np.ones(3, bool)}, {"x": x, "c": np.array([False, True])})
    with pytest.raises(ValueError, match=r"n must be at least k, got k = 5 \(axis 0 of 'c'\), n = 3 \(axis 0 of 'x'\)"):
        weft.build(weft.from_onnx(proto))["main"](x, np.ones(5, bool))
    known = model([node("Compress", "x c", "y", axis=0)], {"x": ["n", 3]}, "y", {"c": np.array([True, False, True])})
    check(known, {"x": x})
    with pytest.raises(ValueError, match=r"n must be at least 3, got 2 .*chooses element 2"):
        weft.build(weft.from_onnx(known))["main"](x[:2])
    longer = model([node("Compress", "x c", "y", axis=0)], {"x": [3, 3], "c": [5]}, "y", types={"c": BOOL})
    with pytest.raises(CompileError, match="at most the 3 elements of axis 0"):
        weft.from_onnx(longer)


def test_data_of_an_empty_axis() -> None:
    """A loop over what data choose of an extent of 0 runs no iteration."""
    empty = model([node("NonZero", "x", "y")], {"x": [2, 0]}, "y", types={"y": INT64})
    check(empty, {"x": np.ones((2, 0), np.float32)})
    proto = model([node("Compress", "x c", "y", axis=0)], {"x": ["n", 3], "c": ["n"]}, "y", types={"c": BOOL})
    check(proto, *({"x": np.ones((n, 3), np.float32), "c": np.ones(n, bool)} for n in (0, 2)), specialize={"n": [0]})
