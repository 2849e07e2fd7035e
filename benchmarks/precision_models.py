"""The models of benchmarks/results/*-precision.md: seeded random weights, batch 1. Requires torch and onnx.

python benchmarks/precision_models.py FOLDER [NAME...]                     # as ONNX files
python benchmarks/precision_models.py FOLDER encoder --dtype float16       # with float16 tensors
weft bench FOLDER/encoder.onnx --precision bf16,f32 --against onnxruntime,openvino
weft bench benchmarks/precision_models.py:resnet50 --precision bf16,f32 --against openvino
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

Case = tuple[nn.Module, tuple[Tensor, ...]]


class Attention(nn.Module):
    """Multi-head attention over one sequence."""

    def __init__(self, width: int, heads: int, is_causal: bool) -> None:
        super().__init__()
        self.heads, self.is_causal = heads, is_causal
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape

        def parted(y: Tensor) -> Tensor:
            return y.reshape(batch, length, self.heads, width // self.heads).transpose(1, 2)

        found = nn.functional.scaled_dot_product_attention(
            parted(self.query(x)), parted(self.key(x)), parted(self.value(x)), is_causal=self.is_causal
        )
        return self.out(found.transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    """A transformer layer, with norms before or after attention and feed-forward."""

    def __init__(self, width: int, heads: int, inner: int, *, norm_first: bool, is_causal: bool) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.attention = Attention(width, heads, is_causal)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

    def feed(self, x: Tensor) -> Tensor:
        return self.down(nn.functional.gelu(self.up(x)))

    def forward(self, x: Tensor) -> Tensor:
        first, second = self.norms
        if self.norm_first:
            x = x + self.attention(first(x))
            return x + self.feed(second(x))
        x = first(x + self.attention(x))
        return second(x + self.feed(x))


class Transformer(nn.Module):
    """Transformer layers on words or image patches; logits at all positions, or of their mean."""

    def __init__(
        self, width: int, heads: int, layers: int, length: int, words: int, classes: int, *, patch: int = 0,
        norm_first: bool = True, is_causal: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.patch = patch
        self.embedding = nn.Conv2d(3, width, patch, patch) if patch else nn.Embedding(words, width)
        self.places = nn.Parameter(0.02 * torch.randn(length, width))
        self.layers = nn.ModuleList(
            Layer(width, heads, 4 * width, norm_first=norm_first, is_causal=is_causal) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes) if classes else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        found = self.embedding(x)
        if self.patch:
            found = found.flatten(2).transpose(1, 2)
        found = found + self.places
        for layer in self.layers:
            found = layer(found)
        found = self.norm(found)
        return self.head(found.mean(1) if self.patch else found)


def _convolution(before: int, after: int, size: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    convolution = nn.Conv2d(before, after, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(after))


class Bottleneck(nn.Module):
    """ResNet-50's bottleneck: three convolutions and a shortcut."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.first = _convolution(before, width, 1)
        self.second = _convolution(width, width, 3, stride)
        self.third = _convolution(width, 4 * width, 1)
        is_same = before == 4 * width and stride == 1
        self.shortcut = nn.Identity() if is_same else _convolution(before, 4 * width, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        found = torch.relu(self.first(x))
        found = torch.relu(self.second(found))
        return torch.relu(self.third(found) + self.shortcut(x))


class Inverted(nn.Module):
    """MobileNetV2's inverted residual."""

    def __init__(self, before: int, after: int, stride: int, factor: int) -> None:
        super().__init__()
        inner = before * factor
        widening = [_convolution(before, inner, 1), nn.ReLU6()] if factor > 1 else []
        middle = [_convolution(inner, inner, 3, stride, inner), nn.ReLU6()]
        self.body = nn.Sequential(*widening, *middle, _convolution(inner, after, 1))
        self.is_residual = stride == 1 and before == after

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x) if self.is_residual else self.body(x)


def _classifier(features: list[nn.Module], width: int) -> nn.Module:
    return nn.Sequential(*features, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000))


def _resnet50() -> Case:
    features: list[nn.Module] = [_convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for at in range(count):
            features.append(Bottleneck(before, width, stride if at == 0 else 1))
            before = 4 * width
    return _classifier(features, before), (torch.randn(1, 3, 224, 224),)


def _mobilenet_v2() -> Case:
    features: list[nn.Module] = [_convolution(3, 32, 3, 2), nn.ReLU6()]
    before = 32
    blocks = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for factor, after, count, stride in blocks:
        for at in range(count):
            features.append(Inverted(before, after, stride if at == 0 else 1, factor))
            before = after
    features += [_convolution(before, 1280, 1), nn.ReLU6()]
    return _classifier(features, 1280), (torch.randn(1, 3, 224, 224),)


def _tokens(count: int, words: int) -> tuple[Tensor, ...]:
    return (torch.randint(0, words, (1, count)),)


MODELS: dict[str, Callable[[], Case]] = {
    "resnet50": _resnet50,
    "mobilenet_v2": _mobilenet_v2,
    "vit_b_32": lambda: (Transformer(768, 12, 12, 49, 0, 1000, patch=32), (torch.randn(1, 3, 224, 224),)),
    "encoder": lambda: (Transformer(768, 12, 12, 64, 30_522, 0, norm_first=False), _tokens(64, 30_522)),
    "decoder": lambda: (Transformer(512, 8, 8, 64, 32_000, 32_000, is_causal=True), _tokens(64, 32_000)),
}


def made(name: str) -> Case:
    """A model and its inputs."""
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            for parameter in (module.weight, module.running_var):
                nn.init.uniform_(parameter, 0.5, 1.5)
            for parameter in (module.bias, module.running_mean):
                nn.init.uniform_(parameter, -0.5, 0.5)
    return model.eval(), inputs


def __getattr__(name: str) -> Callable[[], Case]:
    """A function that creates a model, for each model name."""
    if name not in MODELS:
        raise AttributeError(f"there is no model '{name}'")
    return partial(made, name)


def export(name: str, folder: Path, dtype: str = "float32") -> Path:
    """Write one model, with floats of a dtype."""
    model, inputs = made(name)
    type_ = getattr(torch, dtype)
    inputs = tuple(value.to(type_) if value.is_floating_point() else value for value in inputs)
    path = folder / (f"{name}.onnx" if dtype == "float32" else f"{name}_{dtype}.onnx")
    # With gradients enabled: otherwise torch selects attention kernels that ONNX has no operator for.
    torch.onnx.export(model.to(type_), inputs, str(path), dynamo=False, opset_version=17, verbose=False)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=list(MODELS))
    parser.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), default="float32")
    arguments = parser.parse_args()
    for name in arguments.names:
        print(export(name, arguments.folder, arguments.dtype))


if __name__ == "__main__":
    main()
