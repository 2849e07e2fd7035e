"""Recurrent nets in float32 and dynamically quantized, against onnxruntime and OpenVINO in one process.

    python benchmarks/recurrent_models.py FOLDER                       # all nets; needs torch, onnx and onnxruntime
    python benchmarks/recurrent_models.py FOLDER --only lstm-96 --rounds 40

Nets of seeded random weights over embedded words, two layers each, exported by PyTorch with a symbolic batch and
length; onnxruntime's `quantize_dynamic` makes the files of 8 bits, in which an LSTM is a `DynamicQuantizeLSTM` and a
GRU stays in float32. Each net is built once. OpenVINO takes part if it is installed, in its default precision. Prints
the least times of calls in turns, and the largest difference from onnxruntime over the largest element of the result.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
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
SIZES: Final = ((1, 32), (2, 7), (8, 32))
"""Sequences of a batch, and words."""
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


def openvino_runner(path: Path) -> Callable[[Any], Any] | None:
    """The net in OpenVINO with one thread; None without it."""
    if find_spec("openvino") is None:
        return None
    import openvino

    core = openvino.Core()
    compiled = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_NUM_THREADS": 1})
    request = compiled.create_infer_request()
    return lambda words: request.infer({0: words}, share_inputs=True)[0]


def compared(path: Path, rounds: int) -> None:
    """Print a row of a table for each size."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    other = openvino_runner(path)
    run = weft.build(weft.from_onnx(path), target="llvm -num-threads=1")["main"]
    for size in SIZES:
        words = np.random.default_rng(0).integers(0, WORDS, size)
        wanted: Any = session.run(None, {"words": words})[0]
        error = float(np.abs(np.asarray(run(words)) - wanted).max() / np.abs(wanted).max())
        calls = [partial(session.run, None, {"words": words}), partial(run, words)]
        calls += [] if other is None else [partial(other, words)]
        best = least_seconds(calls, rounds)
        peers, own = [best[0], *best[2:]], best[1]
        times = " | ".join(f"{seconds * 1e3:.3f}" for seconds in (*peers, own))
        shown = f"{size[0]} x {size[1]} | {times} | {min(peers) / own:.2f} | {error:.1e}"
        print(f"| {path.stem} | {shown} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=sorted(NETS), help="one of the nets")
    parser.add_argument("--rounds", type=int, default=20, help="turns of both contenders")
    arguments = parser.parse_args()
    names = ["onnxruntime", *["OpenVINO"] * (find_spec("openvino") is not None), "weft"]
    heads = ["net", "batch x words", *(f"{name}, ms" for name in names), "ratio", "difference"]
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for name in [arguments.only] if arguments.only else NETS:
        for path in files(arguments.folder, name):
            compared(path, arguments.rounds)


if __name__ == "__main__":
    main()
