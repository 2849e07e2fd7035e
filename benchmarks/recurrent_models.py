"""Recurrent nets in float32, bf16 and dynamically quantized, against onnxruntime and OpenVINO in one process.

    python benchmarks/recurrent_models.py FOLDER                       # all nets; needs torch, onnx and onnxruntime
    python benchmarks/recurrent_models.py FOLDER --only lstm-96 --rounds 40

Nets of seeded random weights over embedded words, two layers each, exported by PyTorch with a symbolic batch and
length; onnxruntime's `quantize_dynamic` makes the files of 8 bits, in which an LSTM is a `DynamicQuantizeLSTM` and a
GRU stays in float32. Each net is built once. OpenVINO takes part if it is installed: in float32 and in bf16, or with
the files of 8 bits, which it computes in float32 or bf16, in its default precision. Prints the least times of calls in
turns, the ratio of the fastest peer of the same precision, and the largest difference from onnxruntime over the largest
element of the result.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
import torch
from onnxruntime import quantization
from torch import Tensor, nn

import weft
from weft_bench.rounds import least_seconds

NETS: Final = {
    "lstm-96": (nn.LSTM, 64, 96, True),
    "lstm-256": (nn.LSTM, 128, 256, True),
    "lstm-512-forward": (nn.LSTM, 256, 512, False),
    "gru-96": (nn.GRU, 64, 96, True),
}
"""Kind, elements of a word, elements of a state, and whether the net has both directions."""
WORDS: Final = 1000


class Net(nn.Module):
    """Two layers over words, and a linear layer of 20 tags."""

    def __init__(self, kind: type[nn.RNNBase], width: int, hidden: int, is_both: bool) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.layers = kind(width, hidden, num_layers=2, bidirectional=is_both, batch_first=True)
        self.tags = nn.Linear(hidden * (1 + is_both), 20)

    def forward(self, words: Tensor) -> Tensor:
        return self.tags(self.layers(self.words(words))[0])


def files(folder: Path, name: str) -> tuple[Path, Path]:
    """The net in float32 and in 8 bits, written if they do not exist."""
    source, target = folder / f"{name}.onnx", folder / f"{name}-dynamic.onnx"
    folder.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not source.exists():
            torch.manual_seed(0)
            axes = {"words": {0: "batch", 1: "length"}, "tags": {0: "batch", 1: "length"}}
            torch.onnx.export(
                Net(*NETS[name]).eval(), (torch.zeros(2, 7, dtype=torch.int64),), str(source), dynamo=False,
                verbose=False, input_names=["words"], output_names=["tags"], dynamic_axes=axes, opset_version=17,
            )  # fmt: skip
        if not target.exists():
            quantization.quantize_dynamic(source, target, weight_type=quantization.QuantType.QInt8)
    return source, target


def openvino_runner(path: Path, precision: str = "") -> Callable[[Any], Any] | None:
    """The net in OpenVINO with one thread, in a precision (f32, bf16) or the default one; None without OpenVINO."""
    if find_spec("openvino") is None:
        return None
    import openvino  # needs openvino

    core = openvino.Core()
    options: dict[str, Any] = {"INFERENCE_NUM_THREADS": 1}
    options |= {"INFERENCE_PRECISION_HINT": precision} if precision else {}
    compiled = core.compile_model(core.read_model(path), "CPU", options)
    request = compiled.create_infer_request()
    return lambda words: request.infer({0: words}, share_inputs=True)[0]


def onnxruntime_runner(path: Path) -> Callable[[Any], Any]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda words: session.run(None, {"words": words})[0]


def compared(path: Path, rounds: int, sizes: Sequence[tuple[int, int]], *, is_float: bool) -> None:
    """Print a row of a table for each size and precision."""
    module, reference = weft.from_onnx(path), onnxruntime_runner(path)
    rows: dict[str, tuple[Callable[[Any], Any], dict[str, Callable[[Any], Any] | None]]] = {}
    for precision in ("f32", "bf16") if is_float else ("",):
        peers = {} if precision == "bf16" else {"onnxruntime": reference}
        run = weft.build(module, target="llvm -num-threads=1", precision=precision)["main"]
        rows[precision or "8 bits"] = run, {**peers, "OpenVINO": openvino_runner(path, precision)}
    for size in sizes:
        words = np.random.default_rng(0).integers(0, WORDS, size)
        wanted = reference(words)
        for precision, (run, given) in rows.items():
            peers = {name: peer for name, peer in given.items() if peer is not None}
            error = float(np.abs(np.asarray(run(words)) - wanted).max() / np.abs(wanted).max())
            times = least_seconds([partial(call, words) for call in (run, *peers.values())], rounds)
            found = dict(zip(("weft", *peers), times, strict=True))
            shown = [
                f"{found[name] * 1e3:.3f}" if name in found else "" for name in ("onnxruntime", "OpenVINO", "weft")
            ]
            ratio = f"{min(times[1:]) / times[0]:.2f}" if peers else ""
            cells = (path.stem, precision, f"{size[0]} x {size[1]}", *shown, ratio, f"{error:.1e}")
            print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=sorted(NETS), help="one of the nets")
    parser.add_argument("--rounds", type=int, default=20, help="turns of both contenders")
    parser.add_argument("--sizes", default="1x32,2x7,8x32", help="batches x words")
    parser.add_argument("--floats", action="store_true", help="without the files of 8 bits")
    arguments = parser.parse_args()
    sizes = [(int(batch), int(words)) for batch, words in (size.split("x") for size in arguments.sizes.split(","))]
    heads = ["net", "precision", "batch x words", "onnxruntime, ms", "OpenVINO, ms", "weft, ms", "ratio", "difference"]
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for name in [arguments.only] if arguments.only else NETS:
        for at, path in enumerate(files(arguments.folder, name)[: 1 if arguments.floats else 2]):
            compared(path, arguments.rounds, sizes, is_float=at == 0)


if __name__ == "__main__":
    main()
