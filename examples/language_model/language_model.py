"""A small language model: trained by PyTorch, quantised, and run by weft with key and value caches.

    pip install 'weft[torch]'
    python examples/language_model/language_model.py                # trains for about a minute
    python examples/language_model/language_model.py --steps 2000   # a better model

The text consists of the docstrings of Python's standard library; a tenth is held out. Prints the perplexity per letter
of this part in several precisions, the text generated from a prompt, and the letters per second of weft, and of
onnxruntime if it and onnxscript are installed, with one thread.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import numpy as np
import torch
from torch import nn

import weft

sys.path.insert(0, str(Path(__file__).parent))
from model import Config, Decoder, Growing, empty_caches, exported

Array = np.ndarray[Any, Any]
PROMPT = "Return the "
LEFT_OUT = ("_", "antigravity", "idlelib", "test", "this", "tkinter", "turtle")
BATCH = 16
ROUNDINGS: dict[str, dict[str, Any]] = {
    "int8, columns": {"weights": "int8", "group": 0},
    "int8, groups of 32": {"weights": "int8", "group": 32},
    "int4, groups of 64": {"weights": "int4", "group": 64},
    "int4, groups of 32": {"weights": "int4", "group": 32},
    "int4, groups of 32, zero points": {"weights": "int4", "group": 32, "symmetric": False},
}
TARGET = "llvm -num-threads=1"
WRITER = "int4, groups of 32"
WRITERS = ("float32", WRITER)
"""The weights used for text generation."""


def documentation() -> Array:
    """The docstrings of standard library modules, as ASCII bytes."""
    texts: list[str] = []
    for name in sorted(info.name for info in iter_modules() if info.name in sys.stdlib_module_names):
        if name.startswith(LEFT_OUT):
            continue
        with warnings.catch_warnings(), suppress(ImportError):
            warnings.simplefilter("ignore")
            parts = vars(import_module(name)).values()
            texts += [text for text in (getattr(part, "__doc__", None) for part in parts) if isinstance(text, str)]
    joined = "\n".join(dict.fromkeys(texts))
    return np.frombuffer(joined.encode("ascii", "replace"), np.uint8).astype(np.int64)


def trained(config: Config, text: Array, steps: int, batch: int = BATCH) -> Decoder:
    """A decoder after `steps` of AdamW on random windows of the text."""
    torch.manual_seed(0)
    decoder, random = Decoder(config), np.random.default_rng(0)
    optimizer = torch.optim.AdamW(decoder.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps + 1)
    model = Growing(decoder)
    for step in range(steps):
        starts = random.integers(0, len(text) - config.context - 1, batch)
        windows = torch.from_numpy(text[starts[:, None] + np.arange(config.context + 1)])
        scores, *_ = model(windows[:, :-1], empty_caches(config, batch, 0), empty_caches(config, batch, 0))
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 0 or step == steps - 1:
            print(f"  step {step}: {loss.item():.3f}")
    return decoder.eval()


def perplexity(config: Config, run: Callable[..., Sequence[Any]], text: Array, windows: int) -> float:
    """The perplexity of the letters of the first `windows` windows of a text, except the first of each window."""
    ids = text[: windows * config.context].reshape(windows, config.context)
    past = [cache.numpy() for cache in empty_caches(config, windows, 0)]
    scores = np.asarray(run(ids, *past, *past)[0], np.float64)[:, :-1]
    scores -= scores.max(axis=-1, keepdims=True)
    logarithms = scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))
    return float(np.exp(-np.take_along_axis(logarithms, ids[:, 1:, None], axis=-1).mean()))


class Growth:
    """Calls of a program with growing caches."""

    def __init__(self, config: Config, run: Callable[..., Sequence[Any]]) -> None:
        self.run = run
        self.layers = config.layers
        self.caches = [cache.numpy() for cache in empty_caches(config, 1, 0)] * 2

    def scores(self, ids: Array) -> Array:
        """Scores of the letter after the last one."""
        scores, *self.caches = self.run(ids, *self.caches)
        return np.asarray(scores)[0, -1]


class Capacity:
    """Calls of a program that writes into donated caches of fixed capacity."""

    def __init__(self, config: Config, run: Callable[..., Sequence[Any]], capacity: int) -> None:
        self.run = run
        self.place = 0
        self.caches = [cache.numpy() for _ in range(2) for cache in empty_caches(config, 1, capacity)]

    def scores(self, ids: Array) -> Array:
        places = np.arange(self.place, self.place + ids.shape[1])
        self.place += ids.shape[1]
        scores, *self.caches = self.run(ids, places, *self.caches)
        return np.asarray(scores)[0, -1]


def written(session: Growth | Capacity, prompt: str, count: int) -> tuple[str, float]:
    """The most likely letters after a prompt, and the letters per second."""
    ids, found = np.frombuffer(prompt.encode(), np.uint8).astype(np.int64)[None], bytearray()
    letter = int(session.scores(ids).argmax())
    start = time.perf_counter()
    for _ in range(count):
        found.append(letter)
        letter = int(session.scores(np.array([[letter]])).argmax())
    return found.decode("ascii", "replace"), count / (time.perf_counter() - start)


def modules(decoder: Decoder) -> tuple[Any, Any, list[str]]:
    """The graphs with growing caches and with in-place caches, and the names of the latter's caches."""
    growing, in_place = (weft.from_torch(exported(decoder, in_place=flag)) for flag in (False, True))
    names = weft.lookup(in_place, "main").args
    return growing, in_place, [str(argument.name_hint) for argument in names][2:]


def single_letters(module: Any) -> dict[str, list[int]]:
    """The sizes of the version for one letter: batch and letters, the axes of the first parameter."""
    from weft.dialects.graph_shapes import shape_of, show_extent

    return {show_extent(extent): [1] for extent in shape_of(weft.lookup(module, "main").args[0].type)}


def onnxruntime_runner(decoder: Decoder) -> Callable[..., Sequence[Any]] | None:
    """The model in onnxruntime; None without it."""
    if find_spec("onnxruntime") is None or find_spec("onnxscript") is None:
        return None
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = Path(folder) / "model.onnx"
        torch.onnx.export(exported(decoder, in_place=False), (), str(file), dynamo=True, verbose=False)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    names = [argument.name for argument in session.get_inputs()]
    return lambda *arrays: session.run(None, dict(zip(names, arrays, strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=600, help="steps of training")
    parser.add_argument("--layers", type=int, default=Config.layers)
    parser.add_argument("--windows", type=int, default=32, help="windows of the text that is not trained on")
    parser.add_argument("--letters", type=int, default=100, help="letters that the model writes")
    arguments = parser.parse_args()

    config, text = Config(layers=arguments.layers), documentation()
    held_out = text[-len(text) // 10 :]
    print(f"{len(text)} letters; training")
    start = time.perf_counter()
    decoder = trained(config, text[: -len(text) // 10], arguments.steps)
    print(f"trained in {time.perf_counter() - start:.0f} s")
    growing, in_place, caches = modules(decoder)

    print(f"\n{'weights':32} {'perplexity':>10}")
    builds: dict[str, Callable[..., Any]] = {}
    for name in ("float32", "bfloat16", *ROUNDINGS):
        precision = "bf16" if name == "bfloat16" else ""
        module = weft.quantize(growing, **ROUNDINGS[name]).mod if name in ROUNDINGS else growing
        versions = single_letters(growing) if name in WRITERS else ()
        builds[name] = weft.build(module, target=TARGET, precision=precision, specialize=versions)["main"]
        print(f"{name:32} {perplexity(config, builds[name], held_out, arguments.windows):10.4f}", flush=True)

    step = weft.build(in_place, target=TARGET, donate=caches, specialize=single_letters(in_place))["main"]
    small = weft.quantize(in_place, **ROUNDINGS[WRITER])
    small_step = weft.build(small.mod, target=TARGET, donate=caches, specialize=single_letters(in_place))["main"]
    capacity = len(PROMPT) + arguments.letters + 1
    sessions: dict[str, Growth | Capacity] = {
        "float32, growing caches": Growth(config, builds["float32"]),
        "float32, caches in place": Capacity(config, step, capacity),
        "int4, growing caches": Growth(config, builds[WRITER]),
        "int4, caches in place": Capacity(config, small_step, capacity),
    }
    other = onnxruntime_runner(decoder)
    if other is not None:
        sessions["onnxruntime, growing caches"] = Growth(config, other)
    print(f"\n{'':32} letters per second")
    texts: dict[str, str] = {}
    for name, session in sessions.items():
        texts[name], rate = written(session, PROMPT, arguments.letters)
        print(f"{name:32} {rate:10.0f}")
    print(f"\nfloat32: {PROMPT}{texts['float32, growing caches']}\nint4:    {PROMPT}{texts['int4, growing caches']}")
    for weights in ("float32", "int4"):
        if texts[f"{weights}, growing caches"] != texts[f"{weights}, caches in place"]:
            raise SystemExit(f"{weights}: the letters depend on the form of the caches")


if __name__ == "__main__":
    main()
