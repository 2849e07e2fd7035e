"""The architectures of known models, as `torchvision` and `transformers` have them, in any size; weights are random.

`SMALL` are variants of a few layers and narrow channels; `WHOLE` have resolution and widths of the models of that name,
some of them fewer blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def conv(inside: int, outside: int, size: int, stride: int = 1, groups: int = 1, act: Any = nn.ReLU) -> nn.Sequential:
    """A convolution, its batch norm, and what follows it."""
    layers = [nn.Conv2d(inside, outside, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(outside)]
    return nn.Sequential(*layers, *([act()] if act else []))


class Residual(nn.Module):
    """`act(body(x) + shortcut(x))`; without shortcut the input itself is added, with `act` None nothing follows."""

    def __init__(self, body: nn.Module, shortcut: nn.Module | None = None, act: Any = nn.ReLU) -> None:
        super().__init__()
        self.body, self.shortcut, self.act = body, shortcut or nn.Identity(), act() if act else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.body(x) + self.shortcut(x))


def classifier(features: Sequence[nn.Module], channels: int, classes: int) -> nn.Sequential:
    return nn.Sequential(*features, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def resnet(width: int, blocks: Sequence[int], *, is_bottleneck: bool, classes: int) -> nn.Sequential:
    """ResNet: He et al., Deep Residual Learning for Image Recognition, 2015."""
    inside = width
    layers: list[nn.Module] = [conv(3, width, 7, 2), nn.MaxPool2d(3, 2, 1)]
    for stage, number in enumerate(blocks):
        inner = width << stage
        outside = inner * 4 if is_bottleneck else inner
        for at in range(number):
            stride = 2 if stage and not at else 1
            body = (
                [conv(inside, inner, 1), conv(inner, inner, 3, stride), conv(inner, outside, 1, act=None)]
                if is_bottleneck
                else [conv(inside, inner, 3, stride), conv(inner, outside, 3, act=None)]
            )
            shortcut = conv(inside, outside, 1, stride, act=None) if at == 0 and inside != outside else None
            layers.append(Residual(nn.Sequential(*body), shortcut))
            inside = outside
    return classifier(layers, inside, classes)


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int, inner: int, act: Any, gate: Any) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, inner, 1), nn.Conv2d(inner, channels, 1)
        self.act, self.gate = act(), gate()

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(self.up(self.act(self.down(F.adaptive_avg_pool2d(x, 1)))))


def mobilenet(
    stem: int, blocks: Sequence[tuple[int, int, int, int]], head: int, classes: int, act: Any, excite: int = 0
) -> nn.Sequential:
    """MobileNetV2 and V3, EfficientNet: inverted residuals, each of kernel size, expansion, channels and stride; with
    `excite` squeeze and excitation by that fraction."""
    gate = nn.Hardsigmoid if act is nn.Hardswish else nn.Sigmoid
    inside, layers = stem, [conv(3, stem, 3, 2, act=act)]
    for size, expansion, outside, stride in blocks:
        inner = inside * expansion
        parts: list[nn.Module] = [conv(inside, inner, 1, act=act)] if expansion > 1 else []
        parts.append(conv(inner, inner, size, stride, groups=inner, act=act))
        parts += [SqueezeExcite(inner, max(inner // excite, 4), nn.ReLU, gate)] if excite else []
        body = nn.Sequential(*parts, conv(inner, outside, 1, act=None))
        layers.append(Residual(body, act=None) if stride == 1 and inside == outside else body)
        inside = outside
    return classifier([*layers, conv(inside, head, 1, act=act)], head, classes)


class Fire(nn.Module):
    """Of SqueezeNet: Iandola et al., 2016."""

    def __init__(self, inside: int, inner: int, outside: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(inside, inner, 1)
        self.one, self.three = nn.Conv2d(inner, outside, 1), nn.Conv2d(inner, outside, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.squeeze(x))
        return torch.cat([F.relu(self.one(x)), F.relu(self.three(x))], 1)


def squeezenet(width: int, classes: int) -> nn.Sequential:
    pool = nn.MaxPool2d(3, 2, ceil_mode=True)
    fires = [
        Fire(width, width // 4, width),
        Fire(2 * width, width // 4, width),
        pool,
        Fire(2 * width, width // 2, width),
    ]
    last = [nn.Dropout(), nn.Conv2d(2 * width, classes, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(nn.Conv2d(3, width, 3, 2), nn.ReLU(), pool, *fires, *last)


class VisionTransformer(nn.Module):
    """Dosovitskiy et al., An Image is Worth 16x16 Words, 2020."""

    def __init__(self, size: int, patch: int, width: int, heads: int, layers: int, classes: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width))
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, activation="gelu", batch_first=True, norm_first=True, dropout=0.0
        )
        self.encoder = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.encoder(x)[:, 0])


class ConvNextBlock(nn.Module):
    """Liu et al., A ConvNet for the 2020s."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm, self.up, self.down = (
            nn.LayerNorm(width, 1e-6),
            nn.Linear(width, 4 * width),
            nn.Linear(4 * width, width),
        )
        self.scale = nn.Parameter(torch.rand(width))

    def forward(self, x: Tensor) -> Tensor:
        y = self.depthwise(x).permute(0, 2, 3, 1)
        return x + (self.scale * self.down(F.gelu(self.up(self.norm(y))))).permute(0, 3, 1, 2)


def convnext(width: int, blocks: Sequence[int], classes: int) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Conv2d(3, width, 4, 4), nn.GroupNorm(1, width)]
    for stage, number in enumerate(blocks):
        layers += [nn.Conv2d(width << (stage - 1), width << stage, 2, 2)] if stage else []
        layers += [ConvNextBlock(width << stage) for _ in range(number)]
    return classifier(layers, width << (len(blocks) - 1), classes)


class Bert(nn.Module):
    """An encoder of words with a mask, whose outputs are a dict: Devlin et al., 2018."""

    def __init__(self, words: int, width: int, heads: int, layers: int, room: int) -> None:
        super().__init__()
        self.words, self.places, self.kinds = (
            nn.Embedding(words, width),
            nn.Embedding(room, width),
            nn.Embedding(2, width),
        )
        self.norm, self.pool = nn.LayerNorm(width, 1e-12), nn.Linear(width, width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, words: Tensor, mask: Tensor) -> dict[str, Tensor]:
        places = torch.arange(words.shape[1])[None]
        x = self.norm(self.words(words) + self.places(places) + self.kinds(torch.zeros_like(words)))
        x = self.layers(x, src_key_padding_mask=mask == 0)
        return {"hidden": x, "pooled": torch.tanh(self.pool(x[:, 0]))}


class RmsNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class LlamaBlock(nn.Module):
    """Grouped queries, rotary places, and keys and values of earlier tokens in buffers."""

    def __init__(self, width: int, heads: int, groups: int, inner: int, room: int) -> None:
        super().__init__()
        self.heads, self.groups, self.each = heads, groups, width // heads
        self.before, self.after = RmsNorm(width), RmsNorm(width)
        self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, groups * self.each, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)
        self.register_buffer("keys", torch.zeros(1, groups, room, self.each))
        self.register_buffer("values", torch.zeros(1, groups, room, self.each))

    def forward(self, x: Tensor, places: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
        y, (cos, sin) = self.before(x), turns
        q, k, v = (
            layer(y).view(1, -1, number, self.each).transpose(1, 2)
            for layer, number in ((self.q, self.heads), (self.k, self.groups), (self.v, self.groups))
        )
        q, k = (t * cos + torch.cat([-t[..., self.each // 2 :], t[..., : self.each // 2]], -1) * sin for t in (q, k))
        self.keys[:, :, places], self.values[:, :, places] = k, v
        mask = torch.arange(self.keys.shape[2]) <= places[:, None]
        seen = F.scaled_dot_product_attention(q, self.keys, self.values, mask, enable_gqa=True)
        x = x + self.o(seen.transpose(1, 2).reshape(1, -1, self.heads * self.each))
        y = self.after(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """Touvron et al., 2023. Called with some words and their places, it gives a tuple: scores and the next word."""

    def __init__(self, words: int, width: int, heads: int, groups: int, inner: int, layers: int, room: int) -> None:
        super().__init__()
        self.words, self.norm = nn.Embedding(words, width), RmsNorm(width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, groups, inner, room) for _ in range(layers))
        self.head = nn.Linear(width, words, bias=False)
        each = width // heads
        self.register_buffer("speeds", 1e4 ** (-torch.arange(0, each, 2) / each), persistent=False)

    def forward(self, words: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        angles = torch.outer(places.float(), self.speeds).repeat(1, 2)
        x = self.words(words)
        for block in self.blocks:
            x = block(x, places, (angles.cos(), angles.sin()))
        scores = self.head(self.norm(x))
        return scores, scores[:, -1].argmax(-1)


class UNet(nn.Module):
    """Ronneberger et al., 2015."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        widths = [width << at for at in range(depth + 1)]
        pairs = list(pairwise(widths))
        self.first = self._block(3, width)
        self.down = nn.ModuleList(self._block(a, b) for a, b in pairs)
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in reversed(pairs))
        self.join = nn.ModuleList(self._block(b, a) for a, b in reversed(pairs))
        self.last = nn.Conv2d(width, 2, 1)

    @staticmethod
    def _block(inside: int, outside: int) -> nn.Sequential:
        return nn.Sequential(conv(inside, outside, 3), conv(outside, outside, 3))

    def forward(self, image: Tensor) -> Tensor:
        images = [self.first(image)]
        for layer in self.down:
            images.append(layer(F.max_pool2d(images[-1], 2)))
        x = images.pop()
        for up, join in zip(self.up, self.join, strict=True):
            x = join(torch.cat([images.pop(), up(x)], 1))
        return self.last(x)


class Tagger(nn.Module):
    """Labels of words by bidirectional LSTM layers."""

    def __init__(self, words: int, width: int, inner: int, layers: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, inner, layers, bidirectional=True, batch_first=True)
        self.labels = nn.Linear(2 * inner, 9)

    def forward(self, words: Tensor) -> Tensor:
        return self.labels(self.lstm(self.words(words))[0])


class Shuffle(nn.Module):
    """Halves of the channels, one of them convolved, shuffled: Ma et al., ShuffleNet V2, 2018."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.body = nn.Sequential(conv(half, half, 1), conv(half, half, 3, groups=half, act=None), conv(half, half, 1))

    def forward(self, x: Tensor) -> Tensor:
        kept, changed = x.chunk(2, 1)
        return F.channel_shuffle(torch.cat([kept, self.body(changed)], 1), 2)


class Windows(nn.Module):
    """Attention in shifted windows: Liu et al., Swin Transformer, 2021."""

    def __init__(self, width: int, heads: int, window: int, shift: int) -> None:
        super().__init__()
        self.heads, self.window, self.shift = heads, window, shift
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.bias = nn.Parameter(torch.randn(heads, window**2, window**2))

    def forward(self, image: Tensor) -> Tensor:
        x = torch.roll(self.norm(image.permute(0, 2, 3, 1)), (-self.shift, -self.shift), (1, 2))
        batch, rows, columns, width = x.shape
        m = self.window
        x = x.view(batch, rows // m, m, columns // m, m, width).transpose(2, 3).reshape(-1, m * m, width)
        q, k, v = self.qkv(x).view(x.shape[0], m * m, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-1, -2) * (width // self.heads) ** -0.5 + self.bias).softmax(-1)
        x = self.out((weights @ v).transpose(1, 2).reshape(-1, m * m, width))
        x = x.view(batch, rows // m, columns // m, m, m, width).transpose(2, 3).reshape(batch, rows, columns, width)
        return image + torch.roll(x, (self.shift, self.shift), (1, 2)).permute(0, 3, 1, 2)


def image(size: int, batch: int = 1) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: (torch.randn(batch, 3, size, size),)


def sentence(words: int, tokens: int) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: (torch.randint(0, words, (1, tokens)),)


def masked(words: int, tokens: int) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: (torch.randint(0, words, (1, tokens)), (torch.arange(tokens) < tokens - tokens // 4).long()[None])


_BLOCKS = [(3, 1, 8, 1), (3, 3, 12, 2), (5, 3, 12, 1)]
SMALL: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, ...]]]] = {
    "resnet": (lambda: resnet(8, [1, 1], is_bottleneck=False, classes=5), image(32)),
    "bottlenecks": (lambda: resnet(8, [1, 1], is_bottleneck=True, classes=5), image(32, 2)),
    "mobilenet_v2": (lambda: mobilenet(8, _BLOCKS, 16, 5, nn.ReLU6), image(32)),
    "mobilenet_v3": (lambda: mobilenet(8, _BLOCKS, 16, 5, nn.Hardswish, 4), image(32)),
    "efficientnet": (lambda: mobilenet(8, _BLOCKS, 16, 5, nn.SiLU, 4), image(33)),
    "squeezenet": (lambda: squeezenet(16, 5), image(35)),
    "vit": (lambda: VisionTransformer(16, 4, 16, 2, 1, 5), image(16)),
    "convnext": (lambda: convnext(8, [1, 1], 5), image(32)),
    "bert": (lambda: Bert(50, 16, 2, 1, 16), masked(50, 12)),
    "unet": (lambda: UNet(8, 2), image(16)),
    "tagger": (lambda: Tagger(50, 8, 6, 1), sentence(50, 7)),
    "shuffle": (lambda: nn.Sequential(conv(3, 16, 3), Shuffle(16), Shuffle(16)), image(9)),
    "windows": (lambda: nn.Sequential(conv(3, 16, 3), Windows(16, 2, 4, 0), Windows(16, 2, 4, 2)), image(8)),
}
"""Name -> a model, and its inputs."""
_V2 = [(3, 1, 16, 1), (3, 6, 24, 2), (3, 6, 24, 1), (3, 6, 32, 2), (3, 6, 32, 1), (3, 6, 64, 2), (3, 6, 64, 1)]
_V2 += [(3, 6, 96, 1), (3, 6, 96, 1), (3, 6, 160, 2), (3, 6, 160, 1), (3, 6, 320, 1)]
_B0 = [(3, 1, 16, 1), (3, 6, 24, 2), (3, 6, 24, 1), (5, 6, 40, 2), (5, 6, 40, 1), (3, 6, 80, 2), (3, 6, 80, 1)]
_B0 += [(5, 6, 112, 1), (5, 6, 112, 1), (5, 6, 192, 2), (5, 6, 192, 1), (3, 6, 320, 1)]
WHOLE: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, ...]]]] = {
    "resnet18": (lambda: resnet(64, [2, 2, 2, 2], is_bottleneck=False, classes=1000), image(224)),
    "resnet50": (lambda: resnet(64, [3, 4, 6, 3], is_bottleneck=True, classes=1000), image(224)),
    "mobilenet_v2": (lambda: mobilenet(32, _V2, 1280, 1000, nn.ReLU6), image(224)),
    "mobilenet_v3": (lambda: mobilenet(16, _B0, 960, 1000, nn.Hardswish, 4), image(224)),
    "efficientnet_b0": (lambda: mobilenet(32, _B0, 1280, 1000, nn.SiLU, 24), image(224)),
    "squeezenet": (lambda: squeezenet(64, 1000), image(224)),
    "vit_b_16": (lambda: VisionTransformer(224, 16, 768, 12, 12, 1000), image(224)),
    "convnext_t": (lambda: convnext(96, [3, 3, 9, 3], 1000), image(224)),
    "bert_base": (lambda: Bert(30522, 768, 12, 12, 512), masked(30522, 128)),
    "unet": (lambda: UNet(32, 4), image(128)),
    "tagger": (lambda: Tagger(5000, 128, 256, 2), sentence(5000, 64)),
}


def evaluated(model: nn.Module) -> nn.Module:
    """The model in evaluation, with statistics of batch norms as after training, which hide no error."""
    for part in model.modules():
        if isinstance(part, nn.BatchNorm2d):
            nn.init.normal_(part.running_mean, 0, 0.1)
            nn.init.uniform_(part.running_var, 0.5, 1.5)
            nn.init.uniform_(part.weight, 0.5, 1.5)
            nn.init.normal_(part.bias, 0, 0.1)
    return model.eval()
