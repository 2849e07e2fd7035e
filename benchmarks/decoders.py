"""Decoders with 4-bit weights: milliseconds per token and prompt, compared with onnxruntime, OpenVINO and llama.cpp.

    python benchmarks/decoders.py FOLDER [--size small] [--threads 1] [--tokens 48] [--prompt 128]

Requires torch; each peer is measured if it is installed (onnxruntime and openvino with onnxscript, llama.cpp with
`llama-cpp-python` and `gguf`). The model is the decoder of examples/language_model with seeded random weights, rounded
to 4 bits in groups of 32, with scales of float16 (onnxruntime: float32). All contenders decode in turns in one process,
with one prompt and the same tokens; times are the fastest of all tokens. FOLDER keeps the files of the peers. Groups of
onnxruntime are computed with float data (accuracy level 0) and with data of 8 bits (level 4); llama.cpp computes with
data of 8 bits (Q4_0). `--cpu haswell` compiles for AVX2; ONEDNN_MAX_CPU_ISA=AVX2 in the environment limits OpenVINO.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import weft

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "language_model"))
from model import Config, Decoder, empty_caches, exported

SIZES = {
    "tiny": Config(layers=2, width=256, heads=4, cached_heads=4, hidden=512, letters=1000),
    "small": Config(layers=8, width=512, heads=8, cached_heads=8, hidden=1536, letters=32000),
    "medium": Config(layers=12, width=768, heads=12, cached_heads=12, hidden=2048, letters=32000),
    "large": Config(layers=24, width=1280, heads=20, cached_heads=20, hidden=3456, letters=32000),
}
GROUP = 32

Array = np.ndarray[Any, Any]
Step = Callable[[Array], Array]
"""Takes the next tokens (1, n), and returns the scores of the token after the last one."""
Restart = Callable[[], Step]
"""Empties the caches."""


def weft_contender(config: Config, module: Any, target: str, capacity: int) -> Restart:
    """weft, with caches of fixed capacity that calls update in place."""
    names = [str(argument.name_hint) for argument in weft.lookup(module, "main").args][2:]
    run = weft.build(module, target=target, donate=names)["main"]

    def restart() -> Step:
        caches = [cache.numpy() for _ in range(2) for cache in empty_caches(config, 1, capacity)]
        place = 0

        def step(ids: Array) -> Array:
            nonlocal caches, place
            places = np.arange(place, place + ids.shape[1])
            place += ids.shape[1]
            scores, *caches = run(ids, places, *caches)
            return np.asarray(scores)[0, -1]

        return step

    return restart


def onnx_file(decoder: Decoder, folder: Path, level: int) -> Path:
    """The decoder with growing caches and `MatMulNBits`, of an accuracy level."""
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    plain, file = folder / "plain.onnx", folder / f"level{level}.onnx"
    if not plain.exists():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(exported(decoder, in_place=False), (), str(plain), dynamo=True, verbose=False)
    if not file.exists():
        quantizer = MatMulNBitsQuantizer(onnx.load(str(plain)), block_size=GROUP, accuracy_level=level)
        quantizer.process()
        quantizer.model.save_model_to_file(str(file), use_external_data_format=True)
    return file


def growing(config: Config, run: Callable[[Sequence[Array]], Sequence[Any]]) -> Restart:
    """A contender whose caches grow by the tokens of each call."""

    def restart() -> Step:
        caches: list[Any] = [cache.numpy() for cache in empty_caches(config, 1, 0)] * 2

        def step(ids: Array) -> Array:
            nonlocal caches
            scores, *caches = run([ids, *caches])
            return np.asarray(scores)[0, -1]

        return step

    return restart


def onnxruntime_contender(config: Config, file: Path, threads: int) -> Restart:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    names = [argument.name for argument in session.get_inputs()]
    return growing(config, lambda arrays: session.run(None, dict(zip(names, arrays, strict=True))))


def openvino_file(decoder: Decoder, folder: Path) -> Path:
    """The decoder in OpenVINO's format, with compressed weights of matrix products as its own tools write them."""
    import openvino
    from openvino import opset13 as ov

    onnx_file(decoder, folder, 0)
    file = folder / "openvino.xml"
    if file.exists():
        return file
    model = openvino.Core().read_model(str(folder / "plain.onnx"))
    for op in list(model.get_ordered_ops()):
        weight = op.input_value(1).get_node() if op.get_type_name() == "MatMul" else None
        if weight is None or weight.get_type_name() != "Constant" or weight.data.ndim != 2:
            continue
        rows = weight.data if op.get_attributes()["transpose_b"] else weight.data.T
        groups = rows.reshape(len(rows), -1, GROUP)
        scale = np.maximum(groups.max(-1, keepdims=True) / 7, groups.min(-1, keepdims=True) / -8).astype(np.float16)
        steps = (np.clip(np.rint(groups / scale), -8, 7) + 8).astype(np.uint8)
        packed = np.ascontiguousarray(steps[..., 0::2] | steps[..., 1::2] << 4)
        middle = openvino.Tensor(np.array([8], np.uint8), [1, 1, 1], openvino.Type.u4)
        tensor = openvino.Tensor(packed, list(steps.shape), openvino.Type.u4)
        shifted = ov.subtract(
            ov.convert(ov.constant(tensor, shared_memory=False), "f16"),
            ov.convert(ov.constant(middle), "f16"),
        )
        scaled = ov.reshape(
            ov.multiply(shifted, ov.constant(openvino.Tensor(np.ascontiguousarray(scale)))),
            list(rows.shape),
            special_zero=False,
        )
        product = ov.matmul(op.input_value(0), ov.convert(scaled, "f32"), transpose_a=False, transpose_b=True)
        op.output(0).replace(product.output(0))
    openvino.save_model(model, str(file), compress_to_fp16=False)
    return file


def openvino_contender(config: Config, file: Path, threads: int) -> Restart:
    import openvino

    core = openvino.Core()
    settings: dict[str, Any] = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1}
    if "AVX2" in os.environ.get("ONEDNN_MAX_CPU_ISA", ""):
        settings["INFERENCE_PRECISION_HINT"] = "f32"  # it would choose bf16, which its AVX2 kernels lack
    request = core.compile_model(core.read_model(str(file)), "CPU", settings).create_infer_request()

    def run(arrays: Sequence[Array]) -> Sequence[Any]:
        found = request.infer(dict(enumerate(arrays)))
        return [found[at].copy() for at in range(len(arrays))]

    return growing(config, run)


def gguf_file(decoder: Decoder, folder: Path) -> Path:
    """The decoder as a model of llama.cpp without a vocabulary. The order of the channels of a head is another one
    there, so the scores differ."""
    import gguf

    config, file = decoder.config, folder / "model.gguf"
    if file.exists():
        return file
    writer = gguf.GGUFWriter(str(file), "llama")
    writer.add_context_length(2048)
    writer.add_embedding_length(config.width)
    writer.add_block_count(config.layers)
    writer.add_feed_forward_length(config.hidden)
    writer.add_head_count(config.heads)
    writer.add_head_count_kv(config.cached_heads)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(config.head)
    writer.add_vocab_size(config.letters)
    writer.add_tokenizer_model("no_vocab")

    def add(name: str, tensor: torch.Tensor) -> None:
        array = tensor.detach().numpy().astype(np.float32)
        if array.ndim == 1:
            writer.add_tensor(f"{name}.weight", array)
        else:
            packed = gguf.quants.quantize(array, gguf.GGMLQuantizationType.Q4_0)
            writer.add_tensor(f"{name}.weight", packed, raw_dtype=gguf.GGMLQuantizationType.Q4_0)

    add("token_embd", decoder.letters.weight)
    add("output_norm", decoder.norm.weight)
    add("output", decoder.scores.weight)
    for at, layer in enumerate(decoder.layers):
        attention = layer.attention
        parts: dict[str, nn.Module] = {
            "attn_norm": layer.attention_norm,
            "attn_q": attention.query,
            "attn_k": attention.key,
            "attn_v": attention.value,
            "attn_output": attention.out,
            "ffn_norm": layer.norm,
            "ffn_gate": layer.gate,
            "ffn_up": layer.up,
            "ffn_down": layer.down,
        }
        for name, part in parts.items():
            add(f"blk.{at}.{name}", part.weight)
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        write()
    writer.close()
    return file


def llama_contender(file: Path, threads: int, capacity: int) -> Restart:
    import llama_cpp

    llama = llama_cpp.Llama(
        str(file), n_ctx=capacity, n_threads=threads, n_threads_batch=threads, n_batch=512, verbose=False
    )

    def restart() -> Step:
        llama.reset()

        def step(ids: Array) -> Array:
            llama.eval([int(at) for at in ids[0]])
            return np.zeros(1, np.float32)

        return step

    return restart


def contenders(decoder: Decoder, folder: Path, threads: int, capacity: int, cpu: str) -> dict[str, Restart]:
    config, target = decoder.config, f"llvm -num-threads={threads}" + (f" -mcpu={cpu}" if cpu else "")
    module = weft.from_torch(exported(decoder, in_place=True))
    module = weft.quantize(module, "int4", group=GROUP, scales="float16").mod
    found = {"weft": weft_contender(config, module, target, capacity)}
    rounded = weft.quantize(module, "int4", group=GROUP, data="int8").mod
    found["weft, int8 data"] = weft_contender(config, rounded, target, capacity)
    if find_spec("onnxruntime") is not None and find_spec("onnxscript") is not None:
        files = {level: onnx_file(decoder, folder, level) for level in (0, 4)}
        for level, file in files.items():
            found[f"onnxruntime, level {level}"] = onnxruntime_contender(config, file, threads)
        if find_spec("openvino") is not None:
            for name, file in (("openvino", openvino_file(decoder, folder)), ("openvino, ONNX file", files[0])):
                try:
                    found[name] = openvino_contender(config, file, threads)
                except RuntimeError as error:  # its limits of instructions do not support each model
                    print(f"{name} is skipped, it cannot load the model: {error}".splitlines()[0], file=sys.stderr)
    if find_spec("llama_cpp") is not None and find_spec("gguf") is not None:
        found["llama.cpp, Q4_0"] = llama_contender(gguf_file(decoder, folder), threads, capacity)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=48, help="decoded after each prompt (default 48)")
    parser.add_argument("--prompt", type=int, default=128, help="tokens of the prompt (default 128)")
    parser.add_argument("--rounds", type=int, default=3, help="prompts per contender (default 3)")
    parser.add_argument("--cpu", default="", help="processor that weft compiles for, as haswell (default: this one)")
    arguments = parser.parse_args()

    config = SIZES[arguments.size]
    torch.manual_seed(0)
    decoder = Decoder(config).eval()
    count = sum(parameter.numel() for parameter in decoder.parameters())
    folder = arguments.folder / arguments.size
    folder.mkdir(parents=True, exist_ok=True)
    capacity = arguments.prompt + arguments.tokens
    found = contenders(decoder, folder, arguments.threads, capacity, arguments.cpu)
    random = np.random.default_rng(0)
    prompt = random.integers(0, config.letters, (1, arguments.prompt))
    tokens = random.integers(0, config.letters, arguments.tokens)
    best = {name: [float("inf")] * 2 for name in found}
    scores: dict[str, Array] = {}
    for _ in range(arguments.rounds):
        steps: dict[str, Step] = {}
        for name, restart in found.items():
            steps[name] = restart()
            start = time.perf_counter()
            steps[name](prompt)
            best[name][0] = min(best[name][0], time.perf_counter() - start)
        for token in tokens:
            for name, step in steps.items():
                start = time.perf_counter()
                scores[name] = step(np.array([[token]]))
                best[name][1] = min(best[name][1], time.perf_counter() - start)

    print(f"{count / 1e6:.0f} million parameters, {arguments.threads} threads, prompt of {arguments.prompt}")
    print("| | prompt, ms | token, ms | tokens per second | difference from weft |\n|---|---|---|---|---|")
    largest = np.abs(scores["weft"]).max()
    for name, (first, later) in best.items():
        comparable = scores[name].shape == scores["weft"].shape
        error = f"{np.abs(scores[name] - scores['weft']).max() / largest:.1%}" if comparable else ""
        print(f"| {name} | {first * 1e3:.1f} | {later * 1e3:.2f} | {1 / later:.0f} | {error} |")


if __name__ == "__main__":
    main()
