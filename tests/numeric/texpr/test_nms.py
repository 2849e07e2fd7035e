"""Non-maximum suppression of several groups of boxes."""

from typing import Any

import numpy as np
import pytest
from tiers import first_tier

import weft
from weft import graph as G
from weft.texpr.references import reference_of


def _scores(shape: tuple[int, ...], kind: str, random: np.random.Generator) -> Any:
    scores = random.random(shape)
    if kind == "ties":
        return np.copysign(np.round(scores * 3) / 3, random.choice([-1.0, 1.0], shape))  # zeros of both signs
    if kind == "special":
        return random.choice([-np.inf, -1.0, 0.5, np.inf, np.nan], shape)
    return scores


@pytest.mark.parametrize("target", first_tier(["llvm", "llvm -mcpu=haswell", "c"], "llvm"))
@pytest.mark.parametrize("dtype", first_tier(["float32", "float64"], "float32"))
@pytest.mark.parametrize("options", [{}, {"score_threshold": 0.3, "limit": 5}])
def test_groups_of_boxes(options: dict[str, Any], dtype: str, target: str) -> None:
    builder, b, s = G.BlockBuilder(), G.var("b", (2, "n", 4), dtype), G.var("s", (2, "n"), dtype)
    with builder.function("main", [b, s]):
        builder.emit_func_output(G.nms(b, s, 0.5, **options))
    main = weft.build(builder.get(), target)["main"]
    for count in (0, 1, 63, 64, 65, 200):
        random = np.random.default_rng(count)
        corner = random.random((2, count, 2))
        boxes = np.concatenate([corner, corner + 0.05 + 0.4 * random.random((2, count, 2))], 2).astype(dtype)
        for kind in ("random", "ties", "special"):
            scores = _scores((2, count), kind, random).astype(dtype)
            expected = reference_of("nms")(boxes, scores, 0.5, **options)
            for found, wanted in zip(main(boxes, scores), expected, strict=True):
                np.testing.assert_array_equal(found, wanted, err_msg=f"{kind}, {count} boxes")


def test_scores_that_are_no_numbers_are_greatest() -> None:
    """As in `argsort` by descending order."""
    builder, b, s = G.BlockBuilder(), G.var("b", ("n", 4)), G.var("s", ("n",))
    with builder.function("main", [b, s]):
        builder.emit_func_output(G.nms(b, s))
    boxes = np.arange(4, dtype="float32")[:, None] * 10 + np.array([0, 0, 1, 1], "float32")
    scores = np.array([np.inf, np.nan, -np.inf, -np.nan], "float32")
    for nms in (weft.build(builder.get())["main"], reference_of("nms")):
        places, count = nms(boxes, scores)
        assert [*places] == [1, 3, 0, 2]
        assert count == 4
