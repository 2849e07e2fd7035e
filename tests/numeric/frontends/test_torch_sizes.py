"""Models of PyTorch with symbolic sizes: guards as preconditions, symbols that are equal, caches written in place."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import weft


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.filterwarnings("ignore")
def test_conditions_of_the_trace_are_checked(torch: Any) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: Any, ys: list[Any]) -> Any:
            both = torch.cat([x, ys[0]])
            if x.shape[0] > 4:
                both = both + 1
            return both * 2 if x.shape[1] % 8 == 0 and x.shape[0] != 7 else both

    model, free = Model(), {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    x, y = torch.randn(6, 16), torch.randn(3, 16)
    program = torch.export.export(model, (x, [y]), dynamic_shapes=(free, [free]))
    compiled = weft.compile(program)
    for rows, more, columns in ((6, 3, 16), (5, 0, 8), (9, 1, 24)):
        x, y = torch.randn(rows, columns), torch.randn(more, columns)
        assert torch.equal(compiled(x, [y]), model(x, [y]))
    for shape, message in {
        (4, 8): r"s\d+ must be at least 5, got 4 \(axis 0 of 'x'\): PyTorch exported the model for such sizes",
        (7, 8): r"s\d+ must be at least 8 or s\d+ must be at most 6, got 7 \(axis 0 of 'x'\)",
        (9, 12): r"expected s\d+ % 8 == 0, got s\d+ = 12 \(axis 1 of 'x'\)",
    }.items():
        with pytest.raises(ValueError, match=message):
            compiled(torch.randn(*shape), [torch.randn(2, shape[1])])
    built = weft.build(weft.from_torch(program))["main"]
    with pytest.raises(ValueError, match="must be at least 5, got 4"):
        built(torch.randn(4, 8), torch.randn(2, 8))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_sizes_that_resize_and_pools_compute(torch: Any) -> None:
    functional = torch.nn.functional

    def images(x: Any) -> tuple[Any, ...]:
        half = functional.max_pool2d(x, 2)
        return (
            functional.interpolate(half, size=x.shape[2:], mode="bilinear"),
            functional.interpolate(x, scale_factor=1.5),
            functional.adaptive_avg_pool2d(x, (3, 2)),
            functional.pad(x, (0, x.shape[2] % 4, 1, 2)),
            x[:, :, -(x.shape[3] // 2) :, -3:],
            x.topk(min(3, x.shape[3]), -1).values,
        )

    class Model(torch.nn.Module):
        def forward(self, x: Any) -> tuple[Any, ...]:
            return images(x)

    free = torch.export.Dim.DYNAMIC
    x = torch.randn(2, 3, 10, 14)
    compiled = weft.compile(Model(), (x,), dynamic_shapes=({0: free, 2: free, 3: free},))
    for shape in ((1, 3, 9, 8), (3, 3, 17, 12)):
        x = torch.randn(*shape)
        for found, wanted in zip(compiled(x), images(x), strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_one_build_serves_prefill_and_steps_on_caches_in_place(torch: Any) -> None:
    nn = torch.nn

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.scores = nn.Embedding(50, 32), nn.Linear(32, 50)
            self.into = nn.Linear(32, 96)
            self.register_buffer("keys", torch.zeros(1, 2, 24, 16))
            self.register_buffer("values", torch.zeros(1, 2, 24, 16))

        def forward(self, words: Any, places: Any) -> Any:
            x = self.words(words)
            parts = self.into(x).view(*words.shape, 3, 2, 16).permute(2, 0, 3, 1, 4)
            self.keys.index_copy_(2, places, parts[1])
            self.values.index_copy_(2, places, parts[2])
            mask = torch.arange(self.keys.shape[2])[None] <= places[:, None]
            seen = nn.functional.scaled_dot_product_attention(parts[0], self.keys, self.values, attn_mask=mask)
            return self.scores(x + seen.transpose(1, 2).flatten(2))

    model = Decoder().eval()
    plain, length = copy.deepcopy(model), torch.export.Dim("length", max=24)
    words, places = torch.randint(0, 50, (1, 7)), torch.arange(7)
    compiled = weft.compile(model, (words, places), dynamic_shapes=({1: length}, {0: length}))
    assert "scatter_elements_in_place" in str(compiled.library.report())
    with torch.no_grad():
        for _ in range(9):
            wanted = plain(words, places)
            torch.testing.assert_close(compiled(words, places), wanted)
            words, places = wanted[:, -1:].argmax(-1), places[-1:] + 1
    torch.testing.assert_close(model.keys, plain.keys)
