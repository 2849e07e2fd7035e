"""Models processed by onnxruntime's tools: nine small models with seeded random weights in 27 variants.

    python benchmarks/onnx_variants.py write FOLDER [NAME...]     # the files; a name is that of a model or variant
    python benchmarks/onnx_variants.py check FOLDER [NAME...]     # weft against onnxruntime, at two sizes
    python benchmarks/onnx_variants.py table FOLDER RESULT.md     # the same, timed in turns with one thread

Tools: levels of the graph optimizer (`InferenceSession` with `optimized_model_filepath`), the optimizer of transformers
(`onnxruntime.transformers.optimizer`), quantisation of weights (dynamic, 4 bits) and of weights and activations
(static), conversion to float16. Requires torch, transformers, onnxscript and onnxruntime.
"""

from __future__ import annotations

import argparse
import platform
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
import torch
import transformers
from nets import Tagger, UNet
from onnxruntime import quantization
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from onnxruntime.quantization.shape_inference import quant_pre_process
from onnxruntime.transformers.float16 import convert_float_to_float16
from onnxruntime.transformers.optimizer import optimize_model
from torch import Tensor, nn

import weft

Sizes = Mapping[str, int]
Feeds = dict[str, np.ndarray[Any, Any]]
_OPSET: Final = 17


@dataclass
class Case:
    """A model, the extents of its inputs, and its kind in the tools."""

    make: Callable[[], nn.Module]
    inputs: Mapping[str, Sequence[int | str]]
    """Extents by input name: numbers, names, or sums of two names. Names of token inputs begin with `input_ids`."""
    sizes: Sequence[Sizes]
    """The sizes to compare; the model is exported with the first one."""
    kind: str = ""
    """The `model_type` for the optimizer of transformers."""
    heads: int = 0
    width: int = 0
    outputs: Sequence[str] = ("y",)
    script: bool = True
    """Whether the tracing exporter writes the file, instead of the one based on torch.export."""


class Outputs(nn.Module):
    """Selected results of a transformers model, as a tuple."""

    def __init__(self, model: nn.Module, *names: str) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, ...]:
        found = self.model(input_ids=input_ids, attention_mask=attention_mask)
        return tuple(found[name] for name in self.names)


class First(nn.Module):
    """The first result of an image or audio model."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, data: Tensor) -> Tensor:
        return self.model(data)[0]


class Causal(nn.Module):
    """A decoder with keys and values as inputs and outputs."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        cache = transformers.DynamicCache([(past[at], past[at + 1]) for at in range(0, len(past), 2)])
        found = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True)
        states = [state for layer in found.past_key_values.layers for state in (layer.keys, layer.values)]
        return (found.logits, *states)


class Residual(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(*_convolution(before, after, 3, stride), nn.ReLU(), *_convolution(after, after, 3, 1))
        self.skip = nn.Identity() if stride == 1 else nn.Sequential(*_convolution(before, after, 1, stride))

    def forward(self, image: Tensor) -> Tensor:
        return nn.functional.relu(self.body(image) + self.skip(image))


class Inverted(nn.Module):
    """An inverted residual: an expansion, a depthwise convolution, and a projection."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        wide = 4 * before
        self.body = nn.Sequential(
            *_convolution(before, wide, 1, 1), nn.ReLU6(),
            *_convolution(wide, wide, 3, stride, wide), nn.ReLU6(),
            *_convolution(wide, after, 1, 1),
        )  # fmt: skip
        self.is_added = stride == 1 and before == after

    def forward(self, image: Tensor) -> Tensor:
        found = self.body(image)
        return image + found if self.is_added else found


def _convolution(before: int, after: int, kernel: int, stride: int, groups: int = 1) -> list[nn.Module]:
    conv = nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(after)]


def _resnet() -> nn.Module:
    blocks = [Residual(32, 32, 1), Residual(32, 64, 2), Residual(64, 128, 2)]
    stem = [*_convolution(3, 32, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100))


def _mobilenet() -> nn.Module:
    blocks = [Inverted(16, 24, 2), Inverted(24, 24, 1), Inverted(24, 48, 2), Inverted(48, 48, 1)]
    stem = [*_convolution(3, 16, 3, 2), nn.ReLU6()]
    head = [*_convolution(48, 192, 1, 1), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(192, 100)]
    return nn.Sequential(*stem, *blocks, *head)


def _bert() -> nn.Module:
    config = transformers.BertConfig(
        vocab_size=1000, hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512,
        attn_implementation="eager",
    )  # fmt: skip
    return Outputs(transformers.BertModel(config), "last_hidden_state", "pooler_output")


def _gpt2() -> nn.Module:
    config = transformers.GPT2Config(
        vocab_size=1000, n_embd=128, n_layer=2, n_head=4, n_positions=256, attn_implementation="eager"
    )
    return Causal(transformers.GPT2LMHeadModel(config))


def _llama() -> nn.Module:
    config = transformers.LlamaConfig(
        vocab_size=1000, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, attn_implementation="eager",
    )  # fmt: skip
    return Causal(transformers.LlamaForCausalLM(config))


def _vit() -> nn.Module:
    config = transformers.ViTConfig(
        hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512, image_size=64,
        patch_size=8, attn_implementation="eager",
    )  # fmt: skip
    return First(transformers.ViTModel(config))


def _whisper() -> nn.Module:
    config = transformers.WhisperConfig(
        d_model=128, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=512, decoder_layers=1,
        decoder_attention_heads=4, max_source_positions=100, attn_implementation="eager",
    )  # fmt: skip
    return First(transformers.WhisperModel(config).get_encoder())


def _decoder(heads: int, depth: int, layers: int = 2) -> dict[str, Sequence[int | str]]:
    shape = ("batch", heads, "past", depth)
    cache = {f"past_{layer}_{kind}": shape for layer in range(layers) for kind in ("key", "value")}
    return {"input_ids": ("batch", "length"), "attention_mask": ("batch", "past + length"), **cache}


_TEXT: Final = {"input_ids": ("batch", "length"), "attention_mask": ("batch", "length")}
_STEPS: Final = [dict(batch=2, length=3, past=5), dict(batch=1, length=1, past=64)]
_STATES: Final = ("logits", *(f"present_{layer}_{kind}" for layer in range(2) for kind in ("key", "value")))
CASES: Final[Mapping[str, Case]] = {
    "bert": Case(
        _bert, _TEXT, [dict(batch=2, length=9), dict(batch=1, length=64)], "bert", 4, 128, ("hidden", "pooled")
    ),
    "gpt2": Case(_gpt2, _decoder(4, 32), _STEPS, "gpt2", 4, 128, _STATES),
    "llama": Case(_llama, _decoder(2, 32), _STEPS, "gpt2", 4, 128, _STATES),
    "vit": Case(_vit, {"data": ("batch", 3, 64, 64)}, [dict(batch=2), dict(batch=1)], "vit", 4, 128),
    "whisper": Case(_whisper, {"data": ("batch", 80, 200)}, [dict(batch=2), dict(batch=1)], "bart", 4, 128),
    "resnet": Case(_resnet, {"data": ("batch", 3, 96, 96)}, [dict(batch=2), dict(batch=1)]),
    "mobilenet": Case(_mobilenet, {"data": ("batch", 3, 96, 96)}, [dict(batch=2), dict(batch=1)]),
    "unet": Case(lambda: UNet([16, 32, 64]), {"data": ("batch", 3, 64, 64)}, [dict(batch=2), dict(batch=1)]),
    "lstm": Case(
        lambda: Tagger(1000, 64, 96), {"input_ids": ("batch", "length")},
        [dict(batch=2, length=7), dict(batch=1, length=32)],
    ),
}  # fmt: skip


# Tools


def _level(level: str) -> Callable[[Path, Path, Case], None]:
    """The model after a level of onnxruntime's optimizer."""

    def write(source: Path, target: Path, case: Case) -> None:
        del case
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
        options.optimized_model_filepath = str(target)
        options.log_severity_level = 3
        onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])

    return write


def _fused(source: Path, case: Case) -> Any:
    return optimize_model(str(source), case.kind, case.heads, case.width, opt_level=0)


def _transformer(source: Path, target: Path, case: Case) -> None:
    _fused(source, case).save_model_to_file(str(target))


def _transformer_f16(source: Path, target: Path, case: Case) -> None:
    model = _fused(source, case)
    model.convert_float_to_float16(keep_io_types=True)
    model.save_model_to_file(str(target))


def _f16(source: Path, target: Path, case: Case) -> None:
    del case
    onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True), target)


def _dynamic(source: Path, target: Path, case: Case) -> None:
    del case
    quantization.quantize_dynamic(source, target, weight_type=quantization.QuantType.QUInt8)


def _dynamic_runs(source: Path, target: Path, case: Case) -> None:
    """8-bit weights, fused by onnxruntime's optimizer."""
    middle = target.with_suffix(".middle.onnx")
    _dynamic(source, middle, case)
    _level("EXTENDED")(middle, target, case)
    middle.unlink()


class _Samples(quantization.CalibrationDataReader):
    def __init__(self, case: Case) -> None:
        self._feeds = iter([feeds(case, case.sizes[0], seed) for seed in range(4)])

    def get_next(self) -> Feeds | None:
        return next(self._feeds, None)


def _static(form: str) -> Callable[[Path, Path, Case], None]:
    def write(source: Path, target: Path, case: Case) -> None:
        middle = target.with_suffix(".middle.onnx")
        quant_pre_process(str(source), str(middle), skip_symbolic_shape=True)
        quantization.quantize_static(
            middle, target, _Samples(case), quant_format=quantization.QuantFormat[form],
            activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8,
        )  # fmt: skip
        middle.unlink()

    return write


def _static_runs(source: Path, target: Path, case: Case) -> None:
    """Quantised operators, fused by onnxruntime's optimizer."""
    middle = target.with_suffix(".qdq.onnx")
    _static("QDQ")(source, middle, case)
    _level("EXTENDED")(middle, target, case)
    middle.unlink()


def _four_bits(source: Path, target: Path, case: Case) -> None:
    del case
    quantizer = MatMulNBitsQuantizer(onnx.load(source), 4, 32, is_symmetric=True)
    quantizer.process()
    quantizer.model.save_model_to_file(str(target))


VARIANTS: Final[Mapping[str, Callable[[Path, Path, Case], None]]] = {
    "bert-transformer": _transformer,
    "bert-f16": _transformer_f16,
    "bert-extended": _level("EXTENDED"),
    "bert-dynamic": _dynamic_runs,
    "bert-static": _static_runs,
    "gpt2-basic": _level("BASIC"),
    "gpt2-transformer": _transformer,
    "gpt2-all": _level("ALL"),
    "gpt2-dynamic": _dynamic_runs,
    "llama-transformer": _transformer,
    "llama-all": _level("ALL"),
    "llama-4bits": _four_bits,
    "vit-transformer": _transformer,
    "vit-all": _level("ALL"),
    "vit-dynamic": _dynamic,
    "whisper-transformer": _transformer,
    "whisper-dynamic": _dynamic_runs,
    "resnet-qdq": _static("QDQ"),
    "resnet-static": _static("QOperator"),
    "resnet-extended": _level("EXTENDED"),
    "resnet-all": _level("ALL"),
    "mobilenet-static": _static_runs,
    "mobilenet-all": _level("ALL"),
    "unet-f16": _f16,
    "unet-all": _level("ALL"),
    "lstm-dynamic": _dynamic,
    "lstm-all": _level("ALL"),
}
"""Variants, named after model and tool."""


# Files


def _extent(extent: int | str, sizes: Sizes) -> int:
    return extent if isinstance(extent, int) else sum(sizes[name] for name in extent.split(" + "))


def feeds(case: Case, sizes: Sizes, seed: int = 0) -> Feeds:
    """Random inputs of given sizes."""
    random = np.random.default_rng(seed)
    found: Feeds = {}
    for name, extents in case.inputs.items():
        shape = [_extent(extent, sizes) for extent in extents]
        if name == "input_ids":
            found[name] = random.integers(0, 1000, shape)
        elif name == "attention_mask":
            found[name] = np.ones(shape, np.int64)
            if shape[0] > 1:
                found[name][0, -2:] = 0
        else:
            found[name] = random.standard_normal(shape, np.float32)
    return found


def _randomize(model: nn.Module) -> None:
    """Randomise norms and biases too."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d) and module.running_mean is not None and module.running_var is not None:
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.running_mean, -0.5, 0.5)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    for parameter in model.parameters():
        if not parameter.any():
            nn.init.normal_(parameter, std=0.1)


def export(name: str, path: Path) -> None:
    """Export the base model of variants."""
    case = CASES[name]
    torch.manual_seed(0)
    model = case.make()
    _randomize(model)
    example = feeds(case, case.sizes[0])
    axes = {
        name: {axis: extent.replace(" ", "") for axis, extent in enumerate(extents) if isinstance(extent, str)}
        for name, extents in case.inputs.items()
    }
    axes |= {name: {0: "batch"} for name in case.outputs}
    torch.onnx.export(
        model.eval(), tuple(map(torch.from_numpy, example.values())), str(path), dynamo=False, verbose=False,
        input_names=list(case.inputs), output_names=list(case.outputs), dynamic_axes=axes, opset_version=_OPSET,
    )  # fmt: skip


def write(folder: Path, names: Sequence[str]) -> Iterator[tuple[str, Case, Path]]:
    """Write the variants missing from the folder; yields the name, model and file of each."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, tool in VARIANTS.items():
        base = name.split("-")[0]
        if names and not {name, base} & set(names):
            continue
        source, target = folder / f"{base}.onnx", folder / f"{name}.onnx"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if not source.exists():
                export(base, source)
            if not target.exists():
                tool(source, target, CASES[base])
        yield name, CASES[base], target


def contrib_operators(path: Path) -> str:
    """Operators of a file that are not in the ONNX standard, with their counts."""
    counts = Counter(
        (f"{node.domain}." if node.domain not in ("", "com.microsoft") else "") + node.op_type
        for node in onnx.load(path, load_external_data=False).graph.node
        if node.domain not in ("", "ai.onnx") or not onnx.defs.has(node.op_type, _OPSET, "")
    )
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


# Comparison


@dataclass
class Row:
    """The results of one variant."""

    name: str
    operators: str
    error: str = ""
    """The reason why weft rejects the file."""
    differences: list[float] = field(default_factory=list[float])
    """The largest difference at each size, relative to the largest element of the output."""
    times: list[tuple[float, float]] = field(default_factory=list["tuple[float, float]"])
    """Seconds of onnxruntime and of weft at each size."""


def compared(name: str, case: Case, path: Path, *, is_timed: bool) -> Row:
    """Build a variant and compare it with onnxruntime at each size."""
    row = Row(name, contrib_operators(path))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    try:
        module = weft.from_onnx(path)
        run = weft.build(module, target="llvm -num-threads=1")["main"]
    except weft.WeftError as error:
        row.error = str(error)
        return row
    for sizes in case.sizes:
        given = feeds(case, sizes)
        wanted: Any = session.run(None, given)
        arrays = [given[entry.name] for entry in session.get_inputs()]
        found: Any = run(*arrays)
        found = list(found) if isinstance(found, tuple | list) else [found]
        row.differences.append(max(map(_difference, found, wanted)))
        if is_timed:
            row.times.append(_minima(lambda g=given: session.run(None, g), lambda a=arrays: run(*a)))
    return row


def _difference(found: Any, wanted: Any) -> float:
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return float("inf")
    least = max(float(np.abs(wanted.astype(np.float64)).max(initial=0)), 1e-6)
    return float(np.abs(found.astype(np.float64) - wanted.astype(np.float64)).max(initial=0)) / least


def _minima(peer: Callable[[], object], own: Callable[[], object], seconds: float = 0.8) -> tuple[float, float]:
    """The least times of both, in turns."""
    best = [float("inf")] * 2
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for at, call in enumerate((peer, own)):
            call()
            for _ in range(3):
                start = time.perf_counter()
                call()
                best[at] = min(best[at], time.perf_counter() - start)
    return best[0], best[1]


def _shown(error: str) -> str:
    """The reason for a rejection, in one line."""
    lines = [re.sub(r", at .*", "", line.strip()) for line in error.splitlines()[1:]]
    return "; ".join(lines)[:300] or error[:300]


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    heads = ("variant", "operators beyond ONNX", "largest difference", "first size", "second size")
    text = f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|\n"
    for row in rows:
        if row.error:
            text += f"| {row.name} | {row.operators} | refused: {_shown(row.error)} | | |\n"
            continue
        ratios = [f"{peer / own:.2f} ({own * 1e3:.2f} ms)" for peer, own in row.times] or ["", ""]
        text += f"| {row.name} | {row.operators} | {max(row.differences):.1e} | {' | '.join(ratios)} |\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["write", "check", "table"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("result", nargs="*")
    options = parser.parse_args()
    is_table = options.command == "table"
    names = options.result[1:] if is_table else options.result
    rows: list[Row] = []
    for name, case, path in write(options.folder, names):
        if options.command == "write":
            print(f"{path}  {contrib_operators(path)}", flush=True)
            continue
        row = compared(name, case, path, is_timed=is_table)
        rows.append(row)
        print(table([row]).splitlines()[-1], flush=True)
    if is_table:
        head = f"onnxruntime {onnxruntime.__version__}, {platform.processor() or platform.machine()}, one thread"
        Path(options.result[0]).write_text(f"{datetime.now(UTC):%Y-%m-%d}, {head}\n\n{table(rows)}")


if __name__ == "__main__":
    main()
