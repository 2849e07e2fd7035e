"""Small models of PyTorch, with example inputs; weights are random, seeded by the tests."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(20, 16), nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(F.relu(self.first(x)))


class ConvBlock(nn.Module):
    """A residual block with batch norms, behind a strided convolution and a pool."""

    def __init__(self, channels: int = 8) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, stride=2, padding=1)
        self.convs = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2))
        self.head = nn.Linear(channels, 5)
        for norm in self.norms:
            nn.init.uniform_(norm.running_mean, -1, 1)
            nn.init.uniform_(norm.running_var, 0.5, 2)

    def forward(self, image: Tensor) -> Tensor:
        x = F.max_pool2d(self.stem(image), 2)
        y = F.relu(self.norms[0](self.convs[0](x)))
        x = F.relu(x + self.norms[1](self.convs[1](y)))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Tagger(nn.Module):
    """Labels of the words of sentences, by two bidirectional LSTM layers."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.lstm = nn.LSTM(8, 6, num_layers=2, bidirectional=True, batch_first=True)
        self.labels = nn.Linear(12, 5)

    def forward(self, words: Tensor) -> tuple[Tensor, Tensor]:
        scores = F.log_softmax(self.labels(self.lstm(self.words(words))[0]), -1)
        return scores, scores.argmax(-1)


class Decoder(nn.Module):
    """A decoder block as GPT has it, whose keys and values of earlier tokens are buffers."""

    def __init__(self, width: int = 16, heads: int = 2, room: int = 12) -> None:
        super().__init__()
        self.heads = heads
        self.words, self.places = nn.Embedding(20, width), nn.Embedding(room, width)
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("keys", torch.zeros(1, heads, room, width // heads))
        self.register_buffer("values", torch.zeros(1, heads, room, width // heads))

    def forward(self, words: Tensor, places: Tensor) -> Tensor:
        x = self.words(words) + self.places(places)
        batch, tokens, width = x.shape
        parts = self.qkv(self.before(x)).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        self.keys[:, :, places] = key
        self.values[:, :, places] = value
        mask = torch.arange(self.keys.shape[2]) <= places[:, None]
        seen = F.scaled_dot_product_attention(query, self.keys, self.values, mask)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, tokens, width))
        x = x + self.down(F.gelu(self.up(self.after(x)), approximate="tanh"))
        return x @ self.words.weight.T


class Sizes(nn.Module):
    """Sizes as extents, bounds and factors, and outputs in a dict."""

    def forward(self, x: Tensor, y: Tensor, *, scale: float = 2.0) -> dict[str, Any]:
        rows, columns = x.shape
        half = x[: rows // 2] * scale
        later = torch.cat([x, half])[rows - 1 :]
        places = torch.arange(rows) + columns
        mean = x.sum(0) / rows
        return {
            "half": half,
            "later": (later, later.shape[0]),
            "places": places,
            "mean": mean,
            "outer": y[:, None, :1] + x.reshape(-1)[None, :, None],
            "square": torch.full((rows, rows), 0.5).triu(1),
            "names": None,
        }


class Branches(nn.Module):
    """One of two computations, as a value decides."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            shifted = x + 1
        return torch.cond(shifted.sum() > 0, lambda v: self.layer(v) * 2, lambda v: v - v.mean(), (shifted,))


class Counter(nn.Module):
    """A mean of all inputs so far, a count of them, and an input that is written."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x: Tensor, out: Tensor) -> Tensor:
        self.count += 1
        self.mean += (x - self.mean) / self.count
        out.copy_(x * 2)
        return self.mean * self.count


MODELS: dict[str, tuple[Any, Any]] = {
    "perceptron": (Perceptron, lambda: (torch.randn(3, 20),)),
    "conv_block": (ConvBlock, lambda: (torch.randn(2, 3, 16, 16),)),
    "encoder": (
        lambda: nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu"),
        lambda: (torch.randn(2, 5, 16),),
    ),
    "tagger": (Tagger, lambda: (torch.randint(0, 30, (2, 7)),)),
    "branches": (Branches, lambda: (torch.randn(3, 4),)),
}
"""Name -> class of the model, and its inputs."""
