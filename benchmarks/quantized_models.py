"""Nets in 8 bits, as onnxruntime's quantizer writes them, against onnxruntime and OpenVINO.

    python benchmarks/quantized_models.py FOLDER                     # needs torch, onnx, onnxruntime and OpenVINO
    python benchmarks/quantized_models.py FOLDER --only basic-18,unet --form qdq-channel --threads 2
    python benchmarks/quantized_models.py FOLDER --target 'llvm -mcpu=haswell'   # with ONEDNN_MAX_CPU_ISA=AVX2

Nets of seeded random weights, batch 1. Norms have the statistics of random images, with which activations are
calibrated, too. Forms: `qdq` (uint8 activations, int8 weights), `qdq-channel` (weights with a scale for each channel),
`qdq-signed` (int8 activations), `qoperator`, and `dynamic` (products of matrices only). Prints the least times of
calls in turns in one process, and the largest difference of weft and of OpenVINO from onnxruntime over the largest
element of the result.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
import openvino
import torch
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process
from precision_models import Transformer
from torch import Tensor, nn

import weft
from weft_bench.rounds import least_seconds

Layers = list[nn.Module]


def convolution(before: int, after: int, kernel: int, stride: int = 1, groups: int = 1) -> Layers:
    return [
        nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(after)
    ]  # fmt: skip


class Residual(nn.Module):
    """Two convolutions, or three of which the outer ones change the channels, added to the image or its convolution."""

    def __init__(self, before: int, width: int, stride: int, is_bottleneck: bool, groups: int = 1) -> None:
        super().__init__()
        after = 4 * width if is_bottleneck else width
        if is_bottleneck:
            inner = 2 * width if groups > 1 else width
            first = [*convolution(before, inner, 1), nn.ReLU(), *convolution(inner, inner, 3, stride, groups)]
            self.body = nn.Sequential(*first, nn.ReLU(), *convolution(inner, after, 1))
        else:
            first = convolution(before, width, 3, stride)
            self.body = nn.Sequential(*first, nn.ReLU(), *convolution(width, width, 3))
        is_same = stride == 1 and before == after
        self.skip = nn.Identity() if is_same else nn.Sequential(*convolution(before, after, 1, stride))

    def forward(self, image: Tensor) -> Tensor:
        return torch.relu(self.body(image) + self.skip(image))


class Excitation(nn.Module):
    """Squeeze and excitation: factors of channels, computed from their means."""

    def __init__(self, channels: int, inner: int, between: nn.Module, gate: nn.Module) -> None:
        super().__init__()
        layers = [nn.Conv2d(channels, inner, 1), between, nn.Conv2d(inner, channels, 1), gate]
        self.factors = nn.Sequential(nn.AdaptiveAvgPool2d(1), *layers)

    def forward(self, image: Tensor) -> Tensor:
        return image * self.factors(image)


class Inverted(nn.Module):
    """An inverted residual block: a widening, a depthwise convolution, an excitation and a projection."""

    def __init__(
        self, before: int, inner: int, after: int, kernel: int, stride: int, function: Callable[[], nn.Module],
        excitation: nn.Module | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        layers = [] if before == inner else [*convolution(before, inner, 1), function()]
        layers += [*convolution(inner, inner, kernel, stride, inner), function()]
        layers += [] if excitation is None else [excitation]
        self.body = nn.Sequential(*layers, *convolution(inner, after, 1))
        self.is_residual = stride == 1 and before == after

    def forward(self, image: Tensor) -> Tensor:
        return image + self.body(image) if self.is_residual else self.body(image)


class Dense(nn.Module):
    """A dense layer: new channels after those of the image."""

    def __init__(self, before: int, growth: int) -> None:
        super().__init__()
        first = [nn.BatchNorm2d(before), nn.ReLU(), *convolution(before, 4 * growth, 1), nn.ReLU()]
        self.body = nn.Sequential(*first, nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False))

    def forward(self, image: Tensor) -> Tensor:
        return torch.cat([image, self.body(image)], 1)


class Inception(nn.Module):
    """Four branches of which the results are concatenated."""

    def __init__(self, before: int, single: int, middle: int, wide: int, narrow: int, large: int, pooled: int) -> None:
        super().__init__()

        def layers(*parts: tuple[int, int, int]) -> Layers:
            return [layer for part in parts for layer in (*convolution(*part), nn.ReLU())]

        self.branches = nn.ModuleList([
            nn.Sequential(*layers((before, single, 1))),
            nn.Sequential(*layers((before, middle, 1), (middle, wide, 3))),
            nn.Sequential(*layers((before, narrow, 1), (narrow, large, 3), (large, large, 3))),
            nn.Sequential(nn.AvgPool2d(3, 1, 1), *layers((before, pooled, 1))),
        ])  # fmt: skip

    def forward(self, image: Tensor) -> Tensor:
        return torch.cat([branch(image) for branch in self.branches], 1)


class Unet(nn.Module):
    """Convolutions on images of half the side each, and back, with a concatenation at each level."""

    def __init__(self, widths: Sequence[int]) -> None:
        super().__init__()

        def pair(before: int, after: int) -> nn.Module:
            return nn.Sequential(*convolution(before, after, 3), nn.ReLU(), *convolution(after, after, 3), nn.ReLU())

        self.down = nn.ModuleList(pair(*widths) for widths in zip((3, *widths), widths, strict=False))
        self.up = nn.ModuleList(pair(wide + thin, thin) for thin, wide in pairwise(widths))
        self.last = nn.Conv2d(widths[0], 2, 1)

    def forward(self, image: Tensor) -> Tensor:
        levels = [self.down[0](image)]
        for part in self.down[1:]:
            levels.append(part(nn.functional.max_pool2d(levels[-1], 2)))
        image = levels.pop()
        for part in reversed(self.up):
            larger = nn.functional.interpolate(image, scale_factor=2.0, mode="nearest")
            image = part(torch.cat([levels.pop(), larger], 1))
        return self.last(image)


def classifier(layers: Layers, channels: int) -> nn.Module:
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 100))


def residual(stem: int, levels: Sequence[tuple[int, int]], is_bottleneck: bool = False, groups: int = 1) -> nn.Module:
    layers: Layers = [*convolution(3, stem, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = stem
    for level, (width, blocks) in enumerate(levels):
        for block in range(blocks):
            layers.append(Residual(channels, width, 2 if level and not block else 1, is_bottleneck, groups))
            channels = 4 * width if is_bottleneck else width
    return classifier(layers, channels)


def mobilenet_v2() -> nn.Module:
    layers: Layers = [*convolution(3, 32, 3, 2), nn.ReLU6()]
    before = 32
    blocks = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for factor, after, count, stride in blocks:
        for at in range(count):
            layers.append(Inverted(before, before * factor, after, 3, 1 if at else stride, nn.ReLU6))
            before = after
    return classifier([*layers, *convolution(320, 1280, 1), nn.ReLU6()], 1280)


def mobilenet_v3() -> nn.Module:
    """MobileNetV3-Small, with HardSwish in all blocks after the third and HardSigmoid as the gate."""
    layers: Layers = [*convolution(3, 16, 3, 2), nn.Hardswish()]
    before = 16
    blocks = (
        (16, 16, 3, 2, True), (72, 24, 3, 2, False), (88, 24, 3, 1, False), (96, 40, 5, 2, True), (240, 40, 5, 1, True),
        (240, 40, 5, 1, True), (120, 48, 5, 1, True), (144, 48, 5, 1, True), (288, 96, 5, 2, True),
        (576, 96, 5, 1, True), (576, 96, 5, 1, True),
    )  # fmt: skip
    for at, (inner, after, kernel, stride, is_excited) in enumerate(blocks):
        gate = Excitation(inner, max(8, inner // 32 * 8), nn.ReLU(), nn.Hardsigmoid()) if is_excited else None
        layers.append(Inverted(before, inner, after, kernel, stride, nn.ReLU if at < 3 else nn.Hardswish, gate))
        before = after
    return classifier([*layers, *convolution(96, 576, 1), nn.Hardswish()], 576)


def efficientnet() -> nn.Module:
    """EfficientNet-B0: SiLU, and excitations with a sigmoid in all blocks."""
    layers: Layers = [*convolution(3, 32, 3, 2), nn.SiLU()]
    before = 32
    blocks = (
        (1, 16, 1, 3, 1), (6, 24, 2, 3, 2), (6, 40, 2, 5, 2), (6, 80, 3, 3, 2), (6, 112, 3, 5, 1), (6, 192, 4, 5, 2),
        (6, 320, 1, 3, 1),
    )  # fmt: skip
    for factor, after, count, kernel, stride in blocks:
        for at in range(count):
            inner = before * factor
            gate = Excitation(inner, before // 4, nn.SiLU(), nn.Sigmoid())
            layers.append(Inverted(before, inner, after, kernel, 1 if at else stride, nn.SiLU, gate))
            before = after
    return classifier([*layers, *convolution(320, 1280, 1), nn.SiLU()], 1280)


def densenet() -> nn.Module:
    """DenseNet with a quarter of the layers of DenseNet-121."""
    layers: Layers = [*convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for level, count in enumerate((3, 4, 6, 4)):
        if level:
            layers += [nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, channels // 2, 1), nn.AvgPool2d(2)]
            channels //= 2
        for _ in range(count):
            layers.append(Dense(channels, 32))
            channels += 32
    return classifier([*layers, nn.BatchNorm2d(channels), nn.ReLU()], channels)


def inception() -> nn.Module:
    layers: Layers = [*convolution(3, 32, 3, 2), nn.ReLU(), *convolution(32, 64, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    layers += [*convolution(64, 192, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    layers += [
        Inception(192, 64, 96, 128, 16, 32, 32),
        Inception(256, 128, 128, 192, 32, 96, 64),
        nn.MaxPool2d(3, 2, 1),
    ]
    layers += [Inception(480, 192, 96, 208, 16, 48, 64), Inception(512, 160, 112, 224, 24, 64, 64)]
    return classifier(layers, 512)


NETS: Final[dict[str, tuple[Callable[[], nn.Module], Sequence[int]]]] = {
    "basic-small": (partial(residual, 32, [(32, 1), (64, 1), (128, 1)]), (3, 96, 96)),
    "basic-18": (partial(residual, 64, [(64, 2), (128, 2), (256, 2), (512, 2)]), (3, 224, 224)),
    "bottleneck-50": (partial(residual, 64, [(64, 3), (128, 4), (256, 6), (512, 3)], True), (3, 224, 224)),
    "grouped-26": (partial(residual, 64, [(64, 2), (128, 2), (256, 2), (512, 2)], True, 32), (3, 224, 224)),
    "mobilenet-v2": (mobilenet_v2, (3, 224, 224)),
    "mobilenet-v3": (mobilenet_v3, (3, 224, 224)),
    "efficientnet": (efficientnet, (3, 224, 224)),
    "densenet": (densenet, (3, 224, 224)),
    "inception": (inception, (3, 224, 224)),
    "unet": (partial(Unet, (32, 64, 128, 256)), (3, 128, 128)),
    "vit": (partial(Transformer, 384, 6, 6, 196, 0, 100, patch=16), (3, 224, 224)),
    "encoder": (partial(Transformer, 384, 6, 6, 64, 1000, 0, norm_first=False), (64,)),
}
"""Nets and the shapes of their inputs, without the batch: images, or words."""
WORDS: Final = 1000
FORMS: Final = ("qdq", "qdq-channel", "qdq-signed", "qoperator", "dynamic")


def inputs(shape: Sequence[int], seed: int, count: int = 1) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(seed)
    return (
        random.standard_normal((count, *shape), np.float32)
        if len(shape) > 1
        else random.integers(0, WORDS, (count, *shape))
    )


class Samples(quantization.CalibrationDataReader):
    def __init__(self, shape: Sequence[int]) -> None:
        self._feeds = iter([{"data": inputs(shape, seed)} for seed in range(3)])

    def get_next(self) -> dict[str, Any] | None:
        return next(self._feeds, None)


def file(folder: Path, name: str, form: str) -> Path:
    """The quantized net, written if it does not exist."""
    make, shape = NETS[name]
    source, middle, target = (folder / f"{name}{end}.onnx" for end in ("", "-prepared", f"-{form}"))
    folder.mkdir(parents=True, exist_ok=True)
    if not middle.exists():
        torch.manual_seed(0)
        model = make()
        norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
        for module in norms:
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.5, 0.5)
            module.momentum = None
        if norms:
            with torch.no_grad():
                model.train()(torch.from_numpy(inputs(shape, 7, 2)))
        example = torch.from_numpy(inputs(shape, 0))
        torch.onnx.export(
            model.eval(), (example,), str(source), dynamo=False, verbose=False, input_names=["data"], opset_version=17,
        )  # fmt: skip
        quant_pre_process(str(source), str(middle), skip_symbolic_shape=True)
    if not target.exists() and form == "dynamic":
        quantization.quantize_dynamic(middle, target, weight_type=quantization.QuantType.QInt8)
    elif not target.exists():
        signed = form == "qdq-signed"
        quantization.quantize_static(
            middle, target, Samples(shape), per_channel=form == "qdq-channel",
            quant_format=getattr(quantization.QuantFormat, "QOperator" if form == "qoperator" else "QDQ"),
            activation_type=quantization.QuantType.QInt8 if signed else quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
        )  # fmt: skip
    return target


def compared(path: Path, shape: Sequence[int], arguments: argparse.Namespace) -> str:
    """A row of the table."""
    threads, data = arguments.threads, inputs(shape, 5)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    run = weft.build(weft.from_onnx(path), target=f"{arguments.target} -num-threads={threads}")["main"]
    calls: list[Callable[[], Any]] = [partial(run, data), partial(session.run, None, {"data": data})]
    if not arguments.only_onnxruntime:
        core = openvino.Core()
        compiled = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_NUM_THREADS": threads})
        calls.append(partial(compiled.create_infer_request().infer, {0: data}, share_inputs=True))
    found, wanted, *others = (np.asarray(result) for result in (calls[0](), *(call()[0] for call in calls[1:])))
    errors = [np.abs(result - wanted).max() / np.abs(wanted).max() for result in (found, *others)]
    own, *peers = least_seconds(calls, arguments.rounds)
    times = " | ".join(f"{seconds * 1e3:.3f}" for seconds in (*peers, own))
    return f"| {path.stem} | {times} | {min(peers) / own:.2f} | {' | '.join(f'{error:.1e}' for error in errors)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", help="names of nets, with commas between them")
    parser.add_argument("--form", choices=FORMS, default="qdq")
    parser.add_argument("--rounds", type=int, default=20, help="turns of all contenders")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--target", default="llvm", help="weft's target")
    parser.add_argument("--only-onnxruntime", action="store_true", help="without OpenVINO, which crashes on densenet")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    peers = ["onnxruntime"] if arguments.only_onnxruntime else ["onnxruntime", "OpenVINO"]
    others = [f"{name} differs" for name in ("weft", *peers[1:])]
    heads = ["net", *(f"{name}, ms" for name in (*peers, "weft")), "ratio", *others]
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for name in arguments.only.split(",") if arguments.only else NETS:
        path = file(arguments.folder, name, arguments.form)
        print(compared(path, NETS[name][1], arguments), flush=True)


if __name__ == "__main__":
    main()
