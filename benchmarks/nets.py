"""Nets used by several benchmark tables, of any width. Requires torch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Tagger(nn.Module):
    """A two-layer bidirectional LSTM over words, with one of 20 tags per word."""

    def __init__(self, words: int, width: int, hidden: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, hidden, num_layers=2, bidirectional=True, batch_first=True)
        self.tags = nn.Linear(2 * hidden, 20)

    def forward(self, words: Tensor) -> Tensor:
        return self.tags(self.lstm(self.words(words))[0])


class UNet(nn.Module):
    """A level per number of `channels`; upsampling by transposed convolutions, or by interpolation to the size of the
    level.
    """

    def __init__(self, channels: Sequence[int], is_resized: bool = False) -> None:
        super().__init__()
        self.is_resized = is_resized
        self.down = nn.ModuleList(_twice(a, b) for a, b in zip([3, *channels], channels, strict=False))
        self.bottom = _twice(channels[-1], 2 * channels[-1])
        self.up = nn.ModuleList(self._up(width) for width in reversed(channels))
        self.merge = nn.ModuleList(_twice(2 * width, width) for width in reversed(channels))
        self.last = nn.Conv2d(channels[0], 4, 1)

    def _up(self, width: int) -> nn.Module:
        return nn.Conv2d(2 * width, width, 1) if self.is_resized else nn.ConvTranspose2d(2 * width, width, 2, stride=2)

    def forward(self, image: Tensor) -> Tensor:
        kept = []
        for down in self.down:
            image = down(image)
            kept.append(image)
            image = nn.functional.max_pool2d(image, 2)
        image = self.bottom(image)
        for up, merge, skipped in zip(self.up, self.merge, reversed(kept), strict=True):
            image = up(image)
            if self.is_resized:
                image = nn.functional.interpolate(image, size=skipped.shape[2:], mode="bilinear", align_corners=False)
            image = merge(torch.cat([image, skipped], dim=1))
        return self.last(image)


def _twice(before: int, after: int) -> nn.Sequential:
    def once(channels: int) -> list[nn.Module]:
        return [nn.Conv2d(channels, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()]

    return nn.Sequential(*once(before), *once(after))
