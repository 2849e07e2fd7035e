"""The models of benchmarks/results/*-models.md: seeded random weights, batch 1, float32.

    python benchmarks/models.py FOLDER [NAME...]                        # as ONNX files
    python benchmarks/models.py FOLDER mobilenet_v2 --int8              # also quantised by onnxruntime
    weft bench FOLDER/resnet50.onnx --against onnxruntime,openvino
    weft bench benchmarks/models.py:resnet50 --against torch,torch.compile

Requires torch, torchvision, transformers and onnx, in a separate environment.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch import Tensor, nn

# PyPI's torchvision is built for CUDA torch. Its kernels are not needed, only their names.
_VISION = torch.library.Library("torchvision", "DEF")
_VISION.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
_VISION.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

import torchvision  # noqa: E402  # the definitions above come first
import transformers  # noqa: E402
from nets import Tagger, UNet  # noqa: E402

Case = tuple[nn.Module, tuple[Tensor, ...]]


class _Outputs(nn.Module):
    """Selected results of a transformers model, as a tuple."""

    def __init__(self, model: nn.Module, *names: str) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, tokens: Tensor) -> tuple[Tensor, ...]:
        # With an explicit mask of ones: otherwise transformers looks for packed sequences, which ONNX has no operator
        # for.
        outputs = self.model(tokens, attention_mask=torch.ones_like(tokens), use_cache=False)
        return tuple(outputs[name] for name in self.names)


class _Step(nn.Module):
    """One decoding step with past keys and values as inputs; returns the new ones with the logits."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, token: Tensor, position: Tensor, *cache: Tensor) -> tuple[Tensor, ...]:
        past = transformers.DynamicCache(config=self.model.config)
        for layer in range(len(cache) // 2):
            past.update(cache[2 * layer], cache[2 * layer + 1], layer)
        outputs = self.model(token, position_ids=position, past_key_values=past, use_cache=True)
        states = [state for layer in outputs.past_key_values.layers for state in (layer.keys, layer.values)]
        return (outputs.logits, *states)


def _image(size: int = 224) -> tuple[Tensor, ...]:
    return (torch.randn(1, 3, size, size),)


def _tokens(count: int, vocabulary: int) -> tuple[Tensor, ...]:
    return (torch.randint(0, vocabulary, (1, count)),)


def _vision(name: str) -> Callable[[], Case]:
    return lambda: (getattr(torchvision.models, name)(weights=None), _image())


def _bert() -> Case:
    model = transformers.BertModel(transformers.BertConfig(attn_implementation="eager"))
    return _Outputs(model, "last_hidden_state", "pooler_output"), _tokens(128, 30_522)


def _gpt2_model() -> nn.Module:
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(attn_implementation="eager"))


def _llama_model() -> nn.Module:
    sizes = transformers.LlamaConfig(
        vocab_size=32_000, hidden_size=512, intermediate_size=1536, num_hidden_layers=8, num_attention_heads=8,
        num_key_value_heads=4, attn_implementation="eager",
    )  # fmt: skip
    return transformers.LlamaForCausalLM(sizes)


def _step(model: nn.Module, layers: int, heads: int, vocabulary: int) -> Case:
    cache = [torch.randn(1, heads, 64, 64) for _ in range(2 * layers)]
    return _Step(model), (*_tokens(1, vocabulary), torch.tensor([[64]]), *cache)


MODELS: dict[str, Callable[[], Case]] = {
    "perceptron": lambda: (nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)), (torch.randn(1, 784),)),
    "squeezenet": _vision("squeezenet1_1"),
    "mobilenet_v2": _vision("mobilenet_v2"),
    "mobilenet_v3": _vision("mobilenet_v3_large"),
    "efficientnet_b0": _vision("efficientnet_b0"),
    "resnet18": _vision("resnet18"),
    "resnet50": _vision("resnet50"),
    "unet": lambda: (UNet([32, 64, 128, 256]), _image(128)),
    "tagger": lambda: (Tagger(10_000, 128, 256), _tokens(64, 10_000)),
    "convnext_t": _vision("convnext_tiny"),
    "vit_b_16": _vision("vit_b_16"),
    "bert_base": _bert,
    "gpt2": lambda: (_Outputs(_gpt2_model(), "logits"), _tokens(64, 50_257)),
    "llama": lambda: (_Outputs(_llama_model(), "logits"), _tokens(64, 32_000)),
    "gpt2_step": lambda: _step(_gpt2_model(), 12, 12, 50_257),
    "llama_step": lambda: _step(_llama_model(), 8, 4, 32_000),
}


def _randomize(model: nn.Module) -> None:
    """Randomise norms and layer scales too: a branch initialised to zero would make the comparison trivial."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d) and module.running_mean is not None and module.running_var is not None:
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.5, 0.5)
            nn.init.uniform_(module.running_mean, -0.5, 0.5)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    for name, parameter in model.named_parameters():
        if name.endswith("layer_scale"):
            nn.init.uniform_(parameter, 0.1, 1.0)
        elif not parameter.any():
            nn.init.normal_(parameter, std=0.02)


def made(name: str) -> Case:
    """A model and its inputs."""
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    _randomize(model)
    return model.eval(), inputs


def __getattr__(name: str) -> Callable[[], Case]:
    """A function that creates a model, for each model name."""
    if name not in MODELS:
        raise AttributeError(f"there is no model '{name}'")
    return partial(made, name)


def export(name: str, folder: Path) -> Path:
    """Write one model."""
    model, inputs = made(name)
    path = folder / f"{name}.onnx"
    # With gradients enabled: otherwise torch selects attention kernels that ONNX has no operator for.
    torch.onnx.export(model, inputs, str(path), dynamo=False, opset_version=17, verbose=False)
    onnx.checker.check_model(str(path))
    return path


class _Images:
    """Random calibration images in onnxruntime's interface."""

    def __init__(self, name: str, count: int = 8) -> None:
        images = np.random.default_rng(0).standard_normal((count, 1, 3, 224, 224))
        self._feeds = iter([{name: image} for image in images.astype(np.float32)])

    def get_next(self) -> dict[str, Any] | None:
        return next(self._feeds, None)


def quantize(path: Path, *, reduce_range: bool = False) -> Path:
    """Write the image model in `path` with uint8 activations and int8 weights, of 7 bits with `reduce_range`."""
    from onnxruntime import quantization

    images: Any = _Images(onnx.load(path).graph.input[0].name)
    result = path.with_name(f"{path.stem}_int{7 if reduce_range else 8}.onnx")
    quantization.quantize_static(
        path, result, images, quant_format=quantization.QuantFormat.QDQ, per_channel=True, reduce_range=reduce_range,
        activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8,
    )  # fmt: skip
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", choices=[[], *MODELS], help="all models where none is named")
    parser.add_argument("--int8", action="store_true", help="quantize them, too: weights of 8 bits, and of 7")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or MODELS:
        path = export(name, options.folder)
        quantized = [quantize(path), quantize(path, reduce_range=True)] if options.int8 else []
        for file in (path, *quantized):
            print(f"{file}  {file.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    main()
