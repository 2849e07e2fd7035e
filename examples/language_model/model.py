"""A Llama-like decoder: root-mean-square norms, rotary positions, grouped-query attention, gated units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Config:
    """Sizes of a decoder over ASCII bytes."""

    layers: int = 4
    width: int = 128
    heads: int = 4
    cached_heads: int = 2
    """Heads of keys and values, each shared by several query heads."""
    hidden: int = 384
    letters: int = 128
    context: int = 128
    """Positions of a training window."""

    @property
    def head(self) -> int:
        return self.width // self.heads


class Attention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        cached = config.cached_heads * config.head
        self.query = nn.Linear(config.width, config.width, bias=False)
        self.key = nn.Linear(config.width, cached, bias=False)
        self.value = nn.Linear(config.width, cached, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)

    def heads(self, x: Tensor) -> Tensor:
        """(batch, places, heads * head) as (batch, heads, places, head)."""
        return x.unflatten(2, (-1, self.config.head)).transpose(1, 2)

    def forward(self, x: Tensor, turns: tuple[Tensor, Tensor], cache: Cache, mask: Tensor) -> tuple[Tensor, Cache]:
        query = rotated(self.heads(self.query(x)), turns)
        cache = cache.extended(rotated(self.heads(self.key(x)), turns), self.heads(self.value(x)))
        mixed = nn.functional.scaled_dot_product_attention(query, cache.keys, cache.values, mask, enable_gqa=True)
        return self.out(mixed.transpose(1, 2).flatten(2)), cache


def rotated(x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    cosine, sine = turns
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat([-second, first], dim=-1) * sine


class Layer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.attention_norm, self.norm = nn.RMSNorm(config.width), nn.RMSNorm(config.width)
        self.attention = Attention(config)
        self.gate = nn.Linear(config.width, config.hidden, bias=False)
        self.up = nn.Linear(config.width, config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.width, bias=False)

    def forward(self, x: Tensor, turns: tuple[Tensor, Tensor], cache: Cache, mask: Tensor) -> tuple[Tensor, Cache]:
        mixed, cache = self.attention(self.attention_norm(x), turns, cache, mask)
        x = x + mixed
        y = self.norm(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y)), cache


@dataclass(frozen=True)
class Cache:
    """Keys and values (batch, heads, places, head) of a layer. New ones are appended, or written at `places`."""

    keys: Tensor
    values: Tensor
    places: Tensor | None = None

    def extended(self, keys: Tensor, values: Tensor) -> Cache:
        if self.places is None:
            return Cache(torch.cat([self.keys, keys], 2), torch.cat([self.values, values], 2))
        written = (old.index_copy(2, self.places, new) for old, new in ((self.keys, keys), (self.values, values)))
        return Cache(*written, self.places)


class Decoder(nn.Module):
    """Scores (batch, places, letters) of the letter after each of `ids`, and the caches of all layers."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.letters = nn.Embedding(config.letters, config.width)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width)
        self.scores = nn.Linear(config.width, config.letters, bias=False)
        self.register_buffer("rates", 10000.0 ** (-torch.arange(0, config.head, 2) / config.head), persistent=False)

    def forward(self, ids: Tensor, places: Tensor, mask: Tensor, caches: Sequence[Cache]) -> tuple[Tensor, list[Cache]]:
        angles = places[:, None] * self.rates.repeat(2)
        turns = angles.cos(), angles.sin()
        x, found = self.letters(ids), list[Cache]()
        for layer, cache in zip(self.layers, caches, strict=True):
            x, cache = layer(x, turns, cache, mask)
            found.append(cache)
        return self.scores(self.norm(x)), found


class Growing(nn.Module):
    """The decoder with caches that grow by the places of each call."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(
        self, ids: Tensor, keys: list[Tensor], values: list[Tensor]
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        past = keys[0].shape[2]
        places = torch.arange(past, past + ids.shape[1])
        mask = torch.arange(past + ids.shape[1]) <= places[:, None]
        scores, caches = self.decoder(ids, places, mask, [Cache(*pair) for pair in zip(keys, values, strict=True)])
        return scores, [cache.keys for cache in caches], [cache.values for cache in caches]


class InPlace(nn.Module):
    """The decoder with caches of fixed capacity; each call writes at `places`."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(
        self, ids: Tensor, places: Tensor, keys: list[Tensor], values: list[Tensor]
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        mask = torch.arange(keys[0].shape[2]) <= places[:, None]
        scores, caches = self.decoder(
            ids, places, mask, [Cache(*pair, places) for pair in zip(keys, values, strict=True)]
        )
        return scores, [cache.keys for cache in caches], [cache.values for cache in caches]


def empty_caches(config: Config, batch: int, places: int) -> list[Tensor]:
    """Keys or values of all layers."""
    return [torch.zeros(batch, config.cached_heads, places, config.head) for _ in range(config.layers)]


def exported(decoder: Decoder, *, in_place: bool) -> torch.export.ExportedProgram:
    """The program for any batch, any number of letters, and any length of the caches."""
    config, dim = decoder.config, torch.export.Dim
    batch, letters, length = dim("batch", min=1), dim("letters", min=1), dim("length", min=1 if in_place else 0)
    caches = [{0: batch, 2: length}] * config.layers
    ids = torch.zeros(2, 3, dtype=torch.int64)
    keys, values = empty_caches(config, 2, 5), empty_caches(config, 2, 5)
    if in_place:
        shapes = ({0: batch, 1: letters}, {0: letters}, caches, caches)
        return torch.export.export(InPlace(decoder), (ids, torch.arange(3), keys, values), dynamic_shapes=shapes)
    return torch.export.export(
        Growing(decoder), (ids, keys, values), dynamic_shapes=({0: batch, 1: letters}, caches, caches)
    )
