"""Nets of images with random operators around convolutions; `run_symbolic.py nets` makes more."""

from __future__ import annotations

import numpy as np
import pytest
from image_nets import ImageNet, check
from tiers import first_tier

import weft
from weft import graph as G
from weft.texpr.references import reference_of


@pytest.mark.parametrize("seed", first_tier(range(40), 1, 12))
def test_random_nets(seed: int) -> None:
    problem = check(seed)
    assert not problem, f"{ImageNet(seed)}\n{problem}"


def test_windows_of_symbolic_images_in_c() -> None:
    """The C compiler finishes within its limit: rows and columns of strips under masks are not all unrolled."""

    weight = np.random.default_rng(0).uniform(-1, 1, (1, 3, 2, 3)).astype(np.float32)
    builder = G.BlockBuilder()
    x = G.var("x", ("n", 3, "h", 28))
    with builder.function("main", [x]):
        builder.emit_func_output(G.conv2d(x, G.const(weight), padding=1))
    function = weft.build(builder.get(), target="c")["main"]
    for n, h in ((1, 1), (2, 13), (1, 31), (0, 4)):
        image = np.random.default_rng(1).uniform(-1, 1, (n, 3, h, 28)).astype(np.float32)
        expected = reference_of("conv2d")(image, weight, padding=1)
        result = np.full(expected.shape, np.nan, np.float32)
        function(image, result)
        np.testing.assert_allclose(result, expected, atol=1e-5)
