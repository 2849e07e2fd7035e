"""Residual nets of images in 8 bits, as onnxruntime's static quantizer writes them, against onnxruntime and OpenVINO.

    python benchmarks/quantized_images.py FOLDER                     # needs torch, onnx, onnxruntime and OpenVINO
    python benchmarks/quantized_images.py FOLDER --only basic-18

Nets of seeded random weights: a stem, residual blocks and a linear layer, batch 1. Files have QuantizeLinear and
DequantizeLinear with uint8 activations and int8 weights, a scale for each tensor, calibrated with random images. Prints
the least times of calls in turns in one process, one thread, and the largest difference of weft and of OpenVINO from
onnxruntime over the largest element of the result.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
import openvino
import torch
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process
from torch import Tensor, nn

import weft
from weft_bench.rounds import least_seconds

NETS: Final[dict[str, tuple[int, Sequence[tuple[int, int]], int, bool]]] = {
    "basic-small": (32, [(32, 1), (64, 1), (128, 1)], 96, False),
    "basic-18": (64, [(64, 2), (128, 2), (256, 2), (512, 2)], 224, False),
    "bottleneck-50": (64, [(64, 3), (128, 4), (256, 6), (512, 3)], 224, True),
}
"""Channels of the stem, channels and blocks of each level, the side of an image, and whether blocks are bottlenecks."""


def convolution(before: int, after: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(before, after, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(after)]


class Residual(nn.Module):
    """Two convolutions, or three of which the outer ones change the channels, added to the image or its convolution."""

    def __init__(self, before: int, width: int, stride: int, is_bottleneck: bool) -> None:
        super().__init__()
        after = 4 * width if is_bottleneck else width
        if is_bottleneck:
            first = [*convolution(before, width, 1), nn.ReLU(), *convolution(width, width, 3, stride)]
            self.body = nn.Sequential(*first, nn.ReLU(), *convolution(width, after, 1))
        else:
            first = convolution(before, width, 3, stride)
            self.body = nn.Sequential(*first, nn.ReLU(), *convolution(width, width, 3))
        is_same = stride == 1 and before == after
        self.skip = nn.Identity() if is_same else nn.Sequential(*convolution(before, after, 1, stride))

    def forward(self, image: Tensor) -> Tensor:
        return torch.relu(self.body(image) + self.skip(image))


def net(stem: int, levels: Sequence[tuple[int, int]], is_bottleneck: bool) -> nn.Module:
    layers: list[nn.Module] = [*convolution(3, stem, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = stem
    for level, (width, blocks) in enumerate(levels):
        for block in range(blocks):
            layers.append(Residual(channels, width, 2 if level and not block else 1, is_bottleneck))
            channels = 4 * width if is_bottleneck else width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 100)).eval()


class Samples(quantization.CalibrationDataReader):
    def __init__(self, side: int) -> None:
        random = np.random.default_rng(0)
        self._feeds = iter([{"data": random.standard_normal((1, 3, side, side), np.float32)} for _ in range(3)])

    def get_next(self) -> dict[str, Any] | None:
        return next(self._feeds, None)


def file(folder: Path, name: str) -> Path:
    """The quantized net, written if it does not exist."""
    stem, levels, side, is_bottleneck = NETS[name]
    source, middle, target = (folder / f"{name}{end}.onnx" for end in ("", "-prepared", "-int8"))
    folder.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        torch.manual_seed(0)
        model = net(stem, levels, is_bottleneck)
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d) and module.running_mean is not None:
                nn.init.uniform_(module.weight, 0.5, 1.5)
                nn.init.uniform_(module.running_mean, -0.5, 0.5)
        torch.onnx.export(
            model, (torch.zeros(1, 3, side, side),), str(source), dynamo=False, verbose=False, input_names=["data"],
            opset_version=17,
        )  # fmt: skip
        quant_pre_process(str(source), str(middle), skip_symbolic_shape=True)
        quantization.quantize_static(
            middle, target, Samples(side), quant_format=quantization.QuantFormat.QDQ,
            activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8,
        )  # fmt: skip
    return target


def compared(path: Path, side: int, rounds: int) -> str:
    """A row of the table."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    core = openvino.Core()
    request = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_NUM_THREADS": 1}).create_infer_request()
    run = weft.build(weft.from_onnx(path), target="llvm -num-threads=1")["main"]
    image = np.random.default_rng(5).standard_normal((1, 3, side, side), np.float32)
    calls = [
        partial(session.run, None, {"data": image}),
        partial(request.infer, {0: image}, share_inputs=True),
        partial(run, image),
    ]
    wanted, other, found = (np.asarray(result) for result in (calls[0]()[0], calls[1]()[0], calls[2]()))
    errors = [float(np.abs(result - wanted).max() / np.abs(wanted).max()) for result in (found, other)]
    best = least_seconds(calls, rounds)
    times = " | ".join(f"{seconds * 1e3:.3f}" for seconds in best)
    return f"| {path.stem} | {times} | {min(best[:2]) / best[2]:.2f} | {errors[0]:.1e} | {errors[1]:.1e} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=sorted(NETS), help="one of the nets")
    parser.add_argument("--rounds", type=int, default=20, help="turns of all contenders")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = ["net", "onnxruntime, ms", "OpenVINO, ms", "weft, ms", "ratio", "weft differs", "OpenVINO differs"]
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for name in [arguments.only] if arguments.only else NETS:
        print(compared(file(arguments.folder, name), NETS[name][2], arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
