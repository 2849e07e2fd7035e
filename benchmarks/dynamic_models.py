"""Models with dynamic axes: seeded random weights, exported with symbolic batch, length, past length and image size.

    python benchmarks/dynamic_models.py check [NAME...]           # exports of ONNX and torch.export, against PyTorch
    python benchmarks/dynamic_models.py table RESULT.md [NAME...]  # against onnxruntime at five sizes, equal and timed

`check` compares weft with PyTorch on each export at five sizes: `dynamo` and `script` are the two exporters of ONNX,
`export` is torch.export and `compile` torch.compile with dynamic=True. `table` times weft and onnxruntime in turns with
one thread, and writes a table of minima. Both keep the exported files in FOLDER (--folder). Requires torch,
transformers, onnxscript and onnxruntime.
"""

from __future__ import annotations

import argparse
import platform
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import torch
import transformers
from nets import Tagger, UNet
from torch import Tensor, nn
from torch.export import Dim

Sizes = Mapping[str, int]


@dataclass
class Case:
    """A model with its inputs as functions of sizes."""

    model: nn.Module
    make: Callable[[Sizes], dict[str, Tensor]]
    """The inputs by name, for given sizes."""
    axes: Mapping[str, Sequence[str | int]]
    """The extents of each input: numbers, names of sizes, or sums of two names."""
    sizes: Sequence[Sizes]
    """The sizes to run; the model is exported with `example`."""
    example: Sizes
    outputs: Sequence[str] = ()
    is_named: bool = True
    """Whether torch.export accepts named dimensions, without adding constraints."""


class Outputs(nn.Module):
    """Selected results of a transformers model, as a tuple."""

    def __init__(self, model: nn.Module, *names: str) -> None:
        super().__init__()
        self.model, self.names = model, names


class Encoder(Outputs):
    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, ...]:
        outputs = self.model(input_ids=input_ids, attention_mask=attention_mask)
        return tuple(outputs[name] for name in self.names)


class Causal(nn.Module):
    """A decoder with keys and values as inputs and outputs."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor, past: list[Tensor]) -> tuple[Tensor, ...]:
        pairs = [(past[at], past[at + 1]) for at in range(0, len(past), 2)]
        cache = transformers.DynamicCache(pairs)
        outputs = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True)
        states = [state for layer in outputs.past_key_values.layers for state in (layer.keys, layer.values)]
        return (outputs.logits, *states)


class Images(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixel_values: Tensor) -> Tensor:
        return self.model(pixel_values=pixel_values)[0]


class Features(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_features: Tensor) -> Tensor:
        return self.model(input_features)[0]


class WhisperDecoder(nn.Module):
    """Whisper's decoder on encoder states, with the keys and values of self-attention as inputs and outputs."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.decoder, self.head = model.model.decoder, model.proj_out

    def forward(self, input_ids: Tensor, encoder_states: Tensor, past: list[Tensor]) -> tuple[Tensor, ...]:
        cache = transformers.DynamicCache([(past[at], past[at + 1]) for at in range(0, len(past), 2)])
        both = transformers.EncoderDecoderCache(cache, transformers.DynamicCache())
        found = self.decoder(
            input_ids=input_ids, encoder_hidden_states=encoder_states, past_key_values=both, use_cache=True
        )
        states = [s for layer in found.past_key_values.self_attention_cache.layers for s in (layer.keys, layer.values)]
        return (self.head(found.last_hidden_state), *states)


class AudioNet(nn.Module):
    """1-D convolutions, adaptive pooling and a linear head."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(8, 16, 5, stride=2, padding=2),
            nn.GELU(),
            nn.Conv1d(16, 16, 3, padding=1, groups=4),
            nn.ReLU(),
            nn.Conv1d(16, 32, 3, stride=2),
            nn.GroupNorm(4, 32),
            nn.ReLU(),
        )
        self.pool = nn.AdaptiveAvgPool1d(1)
        self.head = nn.Linear(32, 10)

    def forward(self, sound: Tensor) -> Tensor:
        return self.head(self.pool(self.body(sound)).flatten(1))


def _ids(vocabulary: int) -> Callable[[int, int], Tensor]:
    return lambda batch, length: torch.randint(0, vocabulary, (batch, length))


def _mask(batch: int, length: int) -> Tensor:
    mask = torch.ones(batch, length, dtype=torch.int64)
    if batch > 1 and length > 3:
        mask[0, 1] = 0
    return mask


_TEXT: Sequence[Sizes] = [dict(b=1, s=1), dict(b=1, s=7), dict(b=2, s=16), dict(b=3, s=33), dict(b=1, s=100)]
_STEPS: Sequence[Sizes] = [
    dict(b=1, s=4, p=0),
    dict(b=1, s=9, p=0),
    dict(b=1, s=1, p=9),
    dict(b=2, s=1, p=40),
    dict(b=2, s=5, p=12),
]
_BATCH: Sequence[Sizes] = [dict(b=b) for b in (1, 2, 3, 5, 8)]


def text(model: nn.Module, vocabulary: int, *names: str) -> Case:
    ids = _ids(vocabulary)
    return Case(
        Encoder(model, *names),
        lambda z: {"input_ids": ids(z["b"], z["s"]), "attention_mask": _mask(z["b"], z["s"])},
        {"input_ids": ("b", "s"), "attention_mask": ("b", "s")},
        _TEXT, dict(b=2, s=12), names,
    )  # fmt: skip


def causal(model: Any, layers: int, heads: int, size: int, vocabulary: int) -> Case:
    ids = _ids(vocabulary)
    pasts = [f"past_{at // 2}_{'key' if at % 2 == 0 else 'value'}" for at in range(2 * layers)]

    def make(z: Sizes) -> dict[str, Any]:
        given: dict[str, Any] = {
            "input_ids": ids(z["b"], z["s"]),
            "attention_mask": _mask(z["b"], z["p"] + z["s"]),
        }
        return given | {name: torch.randn(z["b"], heads, z["p"], size) for name in pasts}

    axes: dict[str, Sequence[str | int]] = {"input_ids": ("b", "s"), "attention_mask": ("b", "p+s")}
    axes |= {name: ("b", heads, "p", size) for name in pasts}
    outputs = ["logits", *(name.replace("past", "present") for name in pasts)]
    return Case(Causal(model), make, axes, _STEPS, dict(b=2, s=3, p=5), outputs)


def images(model: nn.Module, size: int, wrap: bool = True) -> Case:
    return Case(
        Images(model) if wrap else model,
        lambda z: {"pixel_values" if wrap else "image": torch.randn(z["b"], 3, z.get("h", size), z.get("w", size))},
        {"pixel_values" if wrap else "image": ("b", 3, size, size)},
        _BATCH, dict(b=2),
    )  # fmt: skip


def _bert() -> Case:
    return text(transformers.BertModel(transformers.BertConfig(
        vocab_size=500, hidden_size=256, num_hidden_layers=2, num_attention_heads=4, intermediate_size=1024)),
        500, "last_hidden_state", "pooler_output")  # fmt: skip


def _gpt2_model() -> Any:
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=500, n_embd=256, n_layer=2, n_head=4, n_positions=256))  # fmt: skip


def _llama_model() -> Any:
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=500, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512))  # fmt: skip


def _qwen3_model() -> Any:
    return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(
        vocab_size=500, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=64, max_position_embeddings=512))  # fmt: skip


def _vit() -> Case:
    return images(transformers.ViTModel(transformers.ViTConfig(
        hidden_size=192, num_hidden_layers=2, num_attention_heads=3, intermediate_size=768, image_size=48,
        patch_size=16)), 48)  # fmt: skip


def _resnet() -> Case:
    case = images(transformers.ResNetForImageClassification(transformers.ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32, 32, 64], depths=[1, 1, 1, 1], layer_type="basic")), 64)  # fmt: skip
    case.axes = {"pixel_values": ("b", 3, "h", "w")}
    case.sizes = [
        dict(b=1, h=64, w=64),
        dict(b=2, h=48, w=80),
        dict(b=1, h=33, w=57),
        dict(b=4, h=32, w=32),
        dict(b=3, h=100, w=41),
    ]
    case.example, case.is_named = dict(b=2, h=64, w=96), False
    return case


def _unet(resized: bool) -> Case:
    case = images(UNet([8, 16, 32], resized), 64, wrap=False)
    case.axes = {"image": ("b", 3, "h", "w")}
    case.sizes = [
        dict(b=1, h=64, w=64),
        dict(b=2, h=48, w=80),
        dict(b=1, h=32, w=56),
        dict(b=4, h=16, w=24),
        dict(b=1, h=104, w=40),
    ]
    if resized:
        case.sizes = [*case.sizes[:2], dict(b=1, h=33, w=57), dict(b=3, h=17, w=30), dict(b=1, h=75, w=64)]
    case.example, case.is_named = dict(b=2, h=32, w=40), False
    return case


def _tagger() -> Case:
    ids = _ids(1000)
    return Case(
        Tagger(1000, 32, 48), lambda z: {"words": ids(z["b"], z["s"])}, {"words": ("b", "s")}, _TEXT, dict(b=2, s=12)
    )


def _audio() -> Case:
    return Case(AudioNet(), lambda z: {"sound": torch.randn(z["b"], 8, z["t"])}, {"sound": ("b", 8, "t")},
        [dict(b=1, t=16), dict(b=1, t=100), dict(b=2, t=77), dict(b=4, t=64), dict(b=1, t=501)],
        dict(b=2, t=40), is_named=False)  # fmt: skip


def _whisper_model() -> Any:
    return transformers.WhisperForConditionalGeneration(transformers.WhisperConfig(
        vocab_size=500, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, num_mel_bins=16,
        max_source_positions=50, max_target_positions=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=3))  # fmt: skip


def _whisper_encoder() -> Case:
    return Case(Features(_whisper_model().model.encoder), lambda z: {"input_features": torch.randn(z["b"], 16, 100)},
        {"input_features": ("b", 16, 100)}, _BATCH, dict(b=2))  # fmt: skip


def _whisper_decoder() -> Case:
    ids = _ids(500)
    pasts = [f"past_{at // 2}_{'key' if at % 2 == 0 else 'value'}" for at in range(4)]

    def make(z: Sizes) -> dict[str, Any]:
        given = {"input_ids": ids(z["b"], z["s"]), "encoder_states": torch.randn(z["b"], z["e"], 64)}
        return given | {name: torch.randn(z["b"], 4, z["p"], 16) for name in pasts}

    axes: dict[str, Sequence[str | int]] = {"input_ids": ("b", "s"), "encoder_states": ("b", "e", 64)}
    axes |= {name: ("b", 4, "p", 16) for name in pasts}
    outputs = ["logits", *(name.replace("past", "present") for name in pasts)]
    sizes = [dict(z, e=e) for z, e in zip(_STEPS, (50, 50, 13, 50, 7), strict=True)]
    return Case(WhisperDecoder(_whisper_model()), make, axes, sizes, dict(b=2, s=3, p=5, e=11), outputs)


MODELS: dict[str, Callable[[], Case]] = {
    "bert": _bert,
    "gpt2": lambda: text(_gpt2_model(), 500, "logits"),
    "gpt2_cache": lambda: causal(_gpt2_model(), 2, 4, 64, 500),
    "llama_cache": lambda: causal(_llama_model(), 2, 2, 64, 500),
    "qwen3_cache": lambda: causal(_qwen3_model(), 2, 2, 64, 500),
    "vit": _vit,
    "resnet": _resnet,
    "unet": lambda: _unet(False),
    "unet_resized": lambda: _unet(True),
    "tagger": _tagger,
    "audio": _audio,
    "whisper_encoder": _whisper_encoder,
    "whisper_decoder": _whisper_decoder,
}


def _detection() -> onnx.ModelProto:
    """Non-maximum suppression of boxes and scores, with a data-dependent number of results."""
    make = onnx.helper
    numbers = {
        "most": np.array([20], np.int64),
        "overlap": np.array([0.5], np.float32),
        "least": np.array([0.3], np.float32),
        "columns": np.array([0, 2], np.int64),
    }
    nodes = [
        make.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["kept"]),
        make.make_node("Gather", ["kept", "columns"], ["places"], axis=1),
        make.make_node("GatherND", ["boxes", "places"], ["found"]),
    ]
    kind = onnx.TensorProto
    inputs = [make.make_tensor_value_info("boxes", kind.FLOAT, ["b", "n", 4]),
              make.make_tensor_value_info("scores", kind.FLOAT, ["b", 3, "n"])]  # fmt: skip
    outputs = [make.make_tensor_value_info("kept", kind.INT64, [None, 3]),
               make.make_tensor_value_info("found", kind.FLOAT, [None, 4])]  # fmt: skip
    tensors = [onnx.numpy_helper.from_array(array, name) for name, array in numbers.items()]
    graph = make.make_graph(nodes, "detection", inputs, outputs, tensors)
    return make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8)


def _boxes(sizes: Sizes) -> dict[str, Tensor]:
    corner = torch.rand(sizes["b"], sizes["n"], 2)
    boxes = torch.cat([corner, corner + 0.2 * torch.rand(sizes["b"], sizes["n"], 2) + 0.05], -1)
    return {"boxes": boxes, "scores": torch.rand(sizes["b"], 3, sizes["n"])}


_DETECTION: Final[Sequence[Sizes]] = [
    dict(b=1, n=1),
    dict(b=1, n=100),
    dict(b=2, n=77),
    dict(b=1, n=1000),
    dict(b=4, n=300),
]


def made(name: str) -> Case:
    """A model of `MODELS`."""
    torch.manual_seed(0)
    case = MODELS[name]()
    for module in case.model.modules():
        if isinstance(module, nn.BatchNorm2d) and module.running_mean is not None and module.running_var is not None:
            nn.init.uniform_(module.running_mean, -0.5, 0.5)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    case.model.eval()
    return case


def structured(given: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs in the model's structure: past tensors as a list."""
    plain = {name: value for name, value in given.items() if not name.startswith("past_")}
    past = [value for name, value in given.items() if name.startswith("past_")]
    return plain | ({"past": past} if past else {})


def export_program(case: Case) -> Any:
    """The model exported by torch.export, which infers the relations between its sizes."""
    axes = {n: {a: Dim.DYNAMIC for a, t in enumerate(s) if isinstance(t, str)} for n, s in case.axes.items()}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        inputs = structured(case.make(case.example))
        return torch.export.export(case.model, (), inputs, dynamic_shapes=structured(axes))


def export_onnx(case: Case, path: Path, exporter: str) -> None:
    """Write the model as ONNX. The exporter based on `torch.export` gets named dimensions, except for sums."""
    dims: dict[str, Any] = {}

    def dim(text: str) -> Any:
        return Dim.DYNAMIC if "+" in text else dims.setdefault(text, Dim(text))

    axes = {n: {a: t for a, t in enumerate(s) if isinstance(t, str)} for n, s in case.axes.items()}
    options: dict[str, Any] = {"dynamic_axes": axes, "opset_version": 17}
    if exporter == "dynamo":
        kind = dim if case.is_named else lambda _: Dim.DYNAMIC
        options = {"dynamic_shapes": structured({n: {a: kind(t) for a, t in own.items()} for n, own in axes.items()})}
    inputs = structured(case.make(case.example))
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            case.model, (), str(path), kwargs=inputs, input_names=list(case.axes), verbose=False,
            output_names=list(case.outputs) or ["output"], dynamo=exporter == "dynamo", **options,
        )  # fmt: skip


def exported_file(name: str, exporter: str, folder: Path) -> Path:
    """The file of a model, exported if missing."""
    path = folder / f"{name}_{exporter}.onnx"
    if not path.exists():
        if name == "detection":
            onnx.save(_detection(), str(path))
        else:
            export_onnx(made(name), path, exporter)
    return path


def difference(found: Sequence[Any], wanted: Sequence[Any]) -> str:
    """The first difference above 1e-3 of an element plus 2e-5 of the largest one; empty if there is none."""
    for at, (x, y) in enumerate(zip(found, wanted, strict=True)):
        x, y = np.asarray(x), np.asarray(y)
        if x.shape != y.shape:
            return f"result {at}: shape {x.shape}, not {y.shape}"
        if y.size and not np.allclose(x, y, rtol=1e-3, atol=2e-5 * max(1.0, float(np.abs(y).max()))):
            return f"result {at}: differs by {np.abs(x - y).max():.2g}"
    return ""


def results(found: Any) -> list[Any]:
    """The results of a call as arrays."""
    items = found if isinstance(found, tuple | list) else [found]
    return [item.detach().numpy() if isinstance(item, Tensor) else item for item in items]


WAYS: Final = ("dynamo", "script", "export", "compile")


def runner(case: Case, name: str, way: str, folder: Path) -> Callable[[Mapping[str, Any]], Any]:
    """A function of the named inputs that runs weft's build of one export."""
    import weft

    if way in ("dynamo", "script"):
        main = weft.build(weft.from_onnx(str(exported_file(name, way, folder))))["main"]
        return lambda given: main(*(value.numpy() for value in given.values()))
    if way == "export":
        fast: Any = weft.compile(export_program(case))
    else:
        torch.compiler.reset()
        fast = torch.compile(case.model, backend="weft", dynamic=True, options={"fallback": False})
    return lambda given: fast(**structured(given))


def check(names: Sequence[str], ways: Sequence[str], folder: Path) -> None:
    """Print the comparison of weft with PyTorch for each export."""
    for name in names:
        case = made(name)
        for way in ways:
            try:
                run = runner(case, name, way, folder)
            except Exception as error:  # noqa: BLE001  # what is refused is a row of the table
                print(f"{name} {way}: {type(error).__name__} {str(error)[:1000]}", flush=True)
                continue
            print(f"{name} {way}: {_checked(case, run) or 'equal'}", flush=True)


def _checked(case: Case, run: Callable[[Mapping[str, Any]], Any]) -> str:
    problems: list[str] = []
    for sizes in case.sizes:
        torch.manual_seed(1)
        given = case.make(sizes)
        with torch.no_grad():
            try:
                problem = difference(results(run(given)), results(case.model(**structured(given))))
            except Exception as error:  # noqa: BLE001  # what is refused is a row of the table
                problem = f"{type(error).__name__} {str(error)[:400]}"
        problems += [f"\n    {dict(sizes)}: {problem}"] if problem else []
    return "".join(problems)


def _fastest(run: Callable[[], Any], seconds: float) -> float:
    """The least time of a call within `seconds`."""
    least, start = float("inf"), time.perf_counter()
    while time.perf_counter() - start < seconds:
        before = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - before)
    return least


def row(name: str, folder: Path, seconds: float) -> list[str]:
    """The rows of a model, one per size."""
    import weft

    runtime = import_module("onnxruntime")
    path = exported_file(name, "script" if name == "tagger" else "dynamo", folder)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    start = time.perf_counter()
    library = weft.build(weft.from_onnx(str(path)), weft.Target("llvm", num_threads=1))
    built = time.perf_counter() - start
    main = library["main"]
    rows: list[str] = []
    make, all_sizes = (_boxes, _DETECTION) if name == "detection" else (made(name).make, made(name).sizes)
    for sizes in all_sizes:
        torch.manual_seed(1)
        given = {key: value.numpy() for key, value in make(sizes).items()}
        text = " ".join(f"{key}={value}" for key, value in sizes.items())
        call, other = partial(main, *given.values()), partial(session.run, None, given)
        try:
            problem = difference(results(call()), other()) or "equal"
            times = [(_fastest(call, seconds / 3), _fastest(other, seconds / 3)) for _ in range(3)]
            own, peer = (min(pair[at] for pair in times) * 1e3 for at in (0, 1))
            rows.append(f"| {name} | {text} | {problem} | {own:.3f} | {peer:.3f} | {peer / own:.2f} |")
        except Exception as error:  # noqa: BLE001  # what is refused is a row of the table
            rows.append(f"| {name} | {text} | {type(error).__name__}: {str(error)[:200]} |  |  |  |")
        print(rows[-1], flush=True)
    print(f"{name}: built in {built:.1f} s", flush=True)
    return rows


def table(names: Sequence[str], result: Path, folder: Path, seconds: float) -> None:
    """Write the table of the models against onnxruntime."""
    runtime = import_module("onnxruntime")
    rows: list[str] = []
    for name in names:
        try:
            rows += row(name, folder, seconds)
        except Exception as error:  # noqa: BLE001  # what is refused is a row of the table
            text = " ".join(str(error).split())[:300]
            rows.append(f"| {name} | all | {type(error).__name__}: {text} |  |  |  |")
            print(rows[-1], flush=True)
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}, onnx {onnx.__version__}"
    result.write_text(_PAGE.format(
        versions=f"{versions}, onnxruntime {runtime.__version__}, Python {platform.python_version()}",
        processor=platform.processor() or platform.machine(), rows="\n".join(rows), seconds=seconds,
    ))  # fmt: skip


_PAGE: Final = """# Models with dynamic axes against onnxruntime

`python benchmarks/dynamic_models.py table RESULT.md`: {versions}, {processor}.

Models of two layers and random weights, exported once with symbolic axes by `torch.onnx.export(dynamo=True)` (the LSTM
by the TorchScript exporter, detection by hand), built once, and called at five sizes each with one thread. Times are
minima in milliseconds of calls in turns, {seconds} s for each program and size; the last column is onnxruntime's time
divided by weft's. *equal*: the results agree to 1e-3 of each element and 2e-5 of the largest one.

| model | sizes | results | weft | onnxruntime | ratio |
|---|---|---|---|---|---|
{rows}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("check", "table"):
        added = commands.add_parser(command)
        if command == "table":
            added.add_argument("result", type=Path)
            added.add_argument("--seconds", type=float, default=1.0, help="time for each program and size")
        else:
            added.add_argument("--ways", default=",".join(WAYS), help="exports, separated by commas")
        added.add_argument("names", nargs="*", help="all models if none is named")
        added.add_argument("--folder", type=Path, help="where exported files are kept")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as made_folder:
        folder = options.folder or Path(made_folder)
        folder.mkdir(parents=True, exist_ok=True)
        if options.command == "check":
            check(options.names or list(MODELS), options.ways.split(","), folder)
        else:
            table(options.names or [*MODELS, "detection"], options.result, folder, options.seconds)


if __name__ == "__main__":
    main()
