"""Winograd convolutions of one result as products: versions of kernels of symbolic images, and the rewrite itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tiers import first_tier

import weft
from weft import graph as G
from weft import te
from weft.autoschedule.winograd_pixel import filtered_image, multiply_directly
from weft.passes.module_edits import functions_of
from weft.texpr.references import reference_of

PADDINGS = {
    "border": (1, (1, 1)),
    "no border": (0, (3, 3)),
    "border before": ([[1, 0], [1, 0]], (2, 2)),
    "border of rows": ([[1, 1], [0, 0]], (1, 3)),
    "wide border": ([[2, 0], [0, 2]], (1, 1)),
}
"""Paddings, and the image that has one result."""


def uniform(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype("float32")


@pytest.mark.parametrize("target", first_tier(["llvm", "llvm -mcpu=haswell", "c"], "llvm"))
@pytest.mark.parametrize("name", first_tier(PADDINGS, "border", "no border"))
def test_version_for_one_result(name: str, target: str) -> None:
    padding, (rows, columns) = PADDINGS[name]
    weights, bias = uniform(0, 64, 32, 3, 3), uniform(1, 64, 1, 1)
    builder, x = G.BlockBuilder(), G.var("x", ("n", 32, "h", "w"))
    with builder.function("main", [x]):
        builder.emit_func_output(G.relu(G.add(G.conv2d(x, G.const(weights), padding=padding), G.const(bias))))
    library = weft.build(builder.get(), f"{target} -num-threads=1")
    if target != "c":  # which has no Winograd convolutions
        assert any(trace.sym_name.data.endswith("_single") for trace in library.traces)
    for n, h, w in ((0, 0, 0), (1, 0, 0), (3, 0, 0), (2, 1, 0), (1, 0, 1), (1, 5, 2)):
        given = uniform(n + h, n, 32, rows + h, columns + w)
        expected = np.maximum(reference_of("conv2d")(given, weights, padding=padding) + bias, 0)
        np.testing.assert_allclose(library["main"](given), expected, rtol=1e-4, atol=1e-4, err_msg=str(given.shape))


def test_images_inside_of_a_net_have_no_version() -> None:
    weights = [np.ones((32, 32, 3, 3), "float32")] * 2
    builder, x = G.BlockBuilder(), G.var("x", ("n", 32, "h", "w"))
    with builder.function("main", [x]):
        first = G.relu(G.conv2d(x, G.const(weights[0]), padding=1, strides=2))
        builder.emit_func_output(G.conv2d(first, G.const(weights[1]), padding=1))
    versions = [trace.sym_name.data for trace in weft.build(builder.get()).traces]
    assert any("winograd" in name for name in versions)
    assert not any(re.search("winograd.*_single", name) for name in versions)


def winograd(image: Sequence[int], size: int, padding: Any, factor: float = 1.0) -> Any:
    """A function over buffers of one block of 8 channels and 8 filters; the image is multiplied by `factor`."""
    x, w = te.placeholder((2, 1, *image, 8), name="x"), te.placeholder((1, size, size, 1, 8, 8), name="w")
    data = x if factor == 1 else te.compute(x.shape, lambda *i: te.tanh(x(*i)) * factor, name="scaled")
    return te.create_func([x, w, te.ops.conv2d_winograd(data, w, padding)])


@pytest.mark.parametrize("factor", [1.0, 3.0])
@pytest.mark.parametrize("size", [4, 6])
@pytest.mark.parametrize("name", PADDINGS)
def test_products_are_those_of_any_kernel(name: str, size: int, factor: float) -> None:
    """Transformed kernels are not assumed to be transforms of 3 x 3 windows."""
    padding, image = PADDINGS[name]
    module = winograd(image, size, padding, factor)
    x, w = uniform(0, 2, 1, *image, 8), uniform(1, 1, size, size, 1, 8, 8)
    expected, found = np.zeros((2, 1, 1, 1, 8), "float32"), np.zeros((2, 1, 1, 1, 8), "float32")
    weft.Interpreter(module.clone()).call("main", x, w, expected)
    (function,) = functions_of(module).values()
    assert multiply_directly(function)
    module.verify()
    assert filtered_image(function) is None
    weft.Interpreter(module).call("main", x, w, found)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("image", [(2, 1), (3, 7)])
def test_several_results_stay(image: tuple[int, int]) -> None:
    (function,) = functions_of(winograd(image, 6, 1)).values()
    before = str(function)
    assert filtered_image(function) is not None
    assert not multiply_directly(function)
    assert str(function) == before


def test_stages_that_are_not_linear_stay() -> None:
    """The text of a stage is changed: the transform of columns multiplies two elements."""
    text = str(winograd((1, 1), 4, 1))
    head, stage, rest = text.partition('tir.block "conv2d_winograd_data"')
    changed = head + stage + re.sub(r"arith\.subf (%\S+), (%\S+)", r"arith.mulf \1, \2", rest, count=1)
    assert changed != text
    module = weft.parse(changed)
    (function,) = functions_of(module).values()
    assert filtered_image(function) is not None
    assert not multiply_directly(function)
    assert str(module.clone()) == str(module)


def stays(module: Any) -> bool:
    """Whether a convolution is found, but left as it is."""
    (function,) = functions_of(module).values()
    before = str(function)
    return filtered_image(function) is not None and not multiply_directly(function) and str(function) == before


def test_results_that_add_elements_of_another_array_stay() -> None:
    """The text of the last stage is changed: it adds a bias of lower rank."""
    x, w = te.placeholder((2, 1, 1, 1, 8), name="x"), te.placeholder((1, 4, 4, 1, 8, 8), name="w")
    bias = te.placeholder((8,), name="bias")
    unused = te.compute((8,), lambda i: bias(i) + 1.0, name="unused")
    text = str(te.create_func([x, w, bias, te.ops.conv2d_winograd(x, w, 1), unused]))
    added = (
        r"%b = memref.load %bias[\2] : memref<8xf32>\n%s = arith.addf \1, %b : f32\nmemref.store %s, %conv2d_winograd["
    )
    pattern = r"memref\.store (%\S+), %conv2d_winograd\[(?=.*, (%\S+)\])"
    changed, count = re.subn(pattern, added, text)
    assert count == 1
    assert stays(weft.parse(changed))


def test_images_of_another_rank_stay() -> None:
    """The producer of the image, which repeats an array of rank 3, is inlined."""
    pixels, w = te.placeholder((2, 1, 8), name="pixels"), te.placeholder((1, 4, 4, 1, 8, 8), name="w")
    image = te.compute((2, 1, 1, 1, 8), lambda n, b, h, w, c: pixels(n, b, c), name="image")
    schedule = weft.Schedule(te.create_func([pixels, w, te.ops.conv2d_winograd(image, w, 1)]))
    schedule.compute_inline(schedule.get_block("image"))
    assert stays(schedule.mod)
