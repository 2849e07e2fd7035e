"""Models of PyTorch with symbolic sizes: guards as preconditions, symbols that are equal, caches written in place."""

from __future__ import annotations

import ast
import copy
from typing import Any

import pytest

import weft
from weft.dialects.graph_shapes import symbol


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
        (7, 8): r"s\d+ must be at most 6 or s\d+ must be at least 8, got 7 \(axis 0 of 'x'\)",
        (9, 12): r"expected s\d+ % 8 == 0, got s\d+ = 12 \(axis 1 of 'x'\)",
    }.items():
        with pytest.raises(ValueError, match=message):
            compiled(torch.randn(*shape), [torch.randn(2, shape[1])])
    built = weft.build(weft.from_torch(program))["main"]
    with pytest.raises(ValueError, match="must be at least 5, got 4"):
        built(torch.randn(4, 8), torch.randn(2, 8))


@pytest.mark.filterwarnings("ignore")
def test_integers_are_sizes(torch: Any) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: Any, n: int, k: int = 1) -> Any:
            return x[:, :n].repeat(k, 1), torch.full((n, x.shape[1]), 0.5) + x.sum(), x * n, n + k

    free = torch.export.Dim.DYNAMIC
    x = torch.randn(6, 8)
    program = torch.export.export(Model(), (x, 5, 3), dynamic_shapes={"x": {0: free, 1: free}, "n": free, "k": free})
    compiled = weft.compile(program)
    signature = compiled.library["main"].signature
    assert [str(argument) for argument in signature.args[1:3]] == ["n: int64[]", "k: int64[]"]
    assert {"k.0", "n.0"} <= {*signature.symbols}
    for n, k in ((5, 3), (3, 2), (7, 4)):
        found, wanted = compiled(x, n, k), Model()(x, n, k)
        assert found[3] == wanted[3]
        for one, other in zip(found[:3], wanted[:3], strict=True):
            torch.testing.assert_close(one, other)
    with pytest.raises(ValueError, match=r"argument 2 \('n'\): expected an extent of at least 0 \(axis .*\), got -2"):
        compiled(x, -2, 3)
    with pytest.raises(ValueError, match=r"got repeat_d0 = k\.0 \* s\d+ = -42 for k\.0 = -7 \('k'\)"):
        compiled.library["main"](x.numpy(), 3, -7)
    with pytest.raises(TypeError, match="input 'n': expected an int, got Tensor"):
        compiled(x, torch.tensor(3), 3)


@pytest.mark.filterwarnings("ignore")
def test_integers_of_graphs_that_pytorch_traces(torch: Any) -> None:
    def function(x: Any, n: int) -> Any:
        return torch.arange(n) + x.sum(), x[:, :1].expand(3, n) * 2

    compiled = torch.compile(function, backend=weft.torch.backend, dynamic=True)
    x = torch.randn(3, 4)
    for n in (3, 5, 7):
        for one, other in zip(compiled(x, n), function(x, n), strict=True):
            torch.testing.assert_close(one, other)


@pytest.mark.filterwarnings("ignore")
def test_parameters_keep_their_names_if_the_first_operator_returns_its_input(torch: Any) -> None:
    class Model(torch.nn.Module):
        def forward(self, features: Any, mask: Any) -> Any:
            return features[:, :, None] * 2, mask.contiguous().to(mask.dtype) + 1

    free = {0: torch.export.Dim.DYNAMIC}
    given = torch.randn(2, 3), torch.randn(4)
    program = torch.export.export(Model(), given, dynamic_shapes={"features": free, "mask": free})
    main = weft.build(weft.from_torch(program))["main"]
    assert [argument.name for argument in main.signature.args[:2]] == ["features", "mask"]
    with pytest.raises(ValueError, match=r"argument 1 \('features'\): expected shape \(s\d+, 3\), got shape \(2, 4\)"):
        main(torch.randn(2, 4), torch.randn(4))


def test_conditions_in_conjunctive_normal_form(torch: Any) -> None:
    guards = pytest.importorskip("weft.frontends.torch.guards")
    n, m = symbol("n"), symbol("m")

    def facts(code: str) -> list[str]:
        return list(guards._facts(ast.parse(code, mode="eval").body, {"n": n, "m": m}))

    assert facts("not (L['n'] >= 2 and L['m'] == 3)") == ["n + 1 <= 2 or m + 1 <= 3 or 4 <= m"]
    assert facts("not (L['n'] >= 2 or L['m'] == 3)") == ["n + 1 <= 2", "m + 1 <= 3 or 4 <= m"]
    assert facts("(L['n'] > 1 and L['m'] > 1) or L['n'] == L['m']") == ["2 <= n or n == m", "2 <= m or n == m"]
    assert facts("1 > 2 or L['n'] <= 5") == ["n <= 5"]
    assert facts("1 < 2 or L['n'] <= 5") == []
    assert facts("not not (L['n'] <= L['n'])") == []
    with pytest.raises(ValueError, match="no size fits"):
        facts("L['n'] < L['n']")
    with pytest.raises(TypeError, match="no comparison"):
        facts("not L['n']")


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
    assert any("scatter_elements_in_place" in row.names for row in compiled.library.report().rows)
    with torch.no_grad():
        for _ in range(9):
            wanted = plain(words, places)
            torch.testing.assert_close(compiled(words, places), wanted)
            words, places = wanted[:, -1:].argmax(-1), places[-1:] + 1
    torch.testing.assert_close(model.keys, plain.keys)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_static_caches_of_transformers(torch: Any) -> None:
    """One build of a Llama with a cache of fixed capacity serves the prefill and the steps, and writes it in place."""
    transformers = pytest.importorskip("transformers")
    executorch = pytest.importorskip("transformers.integrations.executorch")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    model.generation_config.cache_implementation = "static"
    step = executorch.TorchExportableModuleWithStaticCache(model, batch_size=1, max_cache_len=16)
    words = torch.tensor([[5, 9, 3, 60, 2, 8, 7]])
    length = torch.export.Dim("length", min=1, max=15)
    example = {"input_ids": words, "cache_position": torch.arange(7)}
    axes = {"input_ids": {1: length}, "cache_position": {0: length}}
    fast = weft.compile(torch.export.export(step, (), example, dynamic_shapes=axes, strict=True))
    signature = str(fast.library["main"].signature)
    assert signature.count("inout ") == 2, signature
    with torch.no_grad():
        found = fast(**example)
        torch.testing.assert_close(found, model(words).logits, rtol=1e-4, atol=1e-6)
        for place in range(7, 11):
            token = found[:, -1:].argmax(-1)
            words = torch.cat([words, token], 1)
            found = fast(input_ids=token, cache_position=torch.tensor([place]))
            torch.testing.assert_close(found, model(words).logits[:, -1:], rtol=1e-4, atol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_counts_of_symbolic_sizes(torch: Any) -> None:
    """Medians, the factors of Fourier transforms and the statistics of a batch contain the number of elements."""

    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            running = torch.zeros(3), torch.ones(3)
            normal = torch.nn.functional.batch_norm(x, *running, training=True)
            parts = torch.fft.rfft(x, norm="ortho")
            back = torch.fft.irfft(parts, n=x.shape[2], norm="forward")
            lines = torch.fft.irfft(torch.fft.rfft(x), n=x.shape[2])
            return normal, running[1], back, lines, torch.fft.ifft(x).imag, *x.median(2), x.nanmedian(), x.median(0)[0]

    free = torch.export.Dim.DYNAMIC
    program = torch.export.export(Model(), (torch.randn(4, 3, 8),), dynamic_shapes=({0: free, 2: free},))
    main = weft.Interpreter(weft.from_torch(program))
    built = weft.build(weft.from_torch(program), cache=False)["main"]
    for batch, length in ((2, 3), (5, 8), (3, 1), (1, 17)):
        x = torch.randn(batch, 3, length)
        for found in (main.call("main", x.numpy()), built(x.numpy())):
            for one, other in zip(found, Model()(x), strict=True):
                torch.testing.assert_close(torch.from_numpy(one), other, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_borders_of_packed_images(torch: Any) -> None:
    """The width of a border between convolutions depends on the sizes; their channels are packed."""

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down, self.up = torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ConvTranspose2d(16, 8, 2, 2)
            self.last = torch.nn.Conv2d(8, 4, 3, padding=1)

        def forward(self, x: Any) -> Any:
            up = self.up(torch.nn.functional.max_pool2d(self.down(x), 2))
            border = (0, x.shape[3] - up.shape[3], 0, x.shape[2] - up.shape[2])
            return self.last(torch.nn.functional.pad(up, border))

    model = Model().eval()
    fast = torch.compile(model, backend=weft.torch.backend, dynamic=True)
    with torch.no_grad():
        for shape in ((2, 3, 32, 48), (1, 3, 33, 57), (3, 3, 8, 9)):
            x = torch.randn(*shape)
            torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
