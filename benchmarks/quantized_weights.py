"""Weights of 4 and 8 bits: the perplexity of a small language model, and the speed of products.

    python benchmarks/quantized_weights.py accuracy           # trains for a minute or two
    python benchmarks/quantized_weights.py speed --threads 1  # with onnxruntime if it is installed
    python benchmarks/quantized_weights.py memory --products 30

The model, a net of three layers trained in NumPy, predicts the next character of Python's own docstrings from the
preceding 16. Products are measured with weights beyond the caches: each call uses other weights, and the fastest call
is reported. Rates are relative to reading memory (`weft.driver.peaks`), measured in turns.
"""

from __future__ import annotations

import argparse
import pkgutil
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import weft
from weft import graph as G
from weft.driver.peaks import UNROLLED, reading
from weft.driver.pipeline import Pipeline
from weft.driver.stages import load, lower
from weft.runtime.aligned_arrays import aligned, empty
from weft.support.build_options import BuildOptions
from weft.support.target import Target

CONTEXT, LETTERS, HIDDEN = 16, 96, 512


def documentation() -> np.ndarray[Any, Any]:
    """The docstrings of Python's standard library as numbers below `LETTERS`."""
    texts: list[str] = []
    for module in sorted(info.name for info in pkgutil.iter_modules() if info.name in sys.stdlib_module_names):
        if module.startswith(("_", "idlelib", "antigravity", "this", "turtle", "tkinter", "test")):
            continue
        try:
            found = vars(import_module(module)).values()
        except ImportError:
            continue
        texts += [text for text in (getattr(value, "__doc__", None) for value in found) if isinstance(text, str)]
    joined = "\n".join(dict.fromkeys(texts))
    codes = np.frombuffer(joined.encode("ascii", "replace"), np.uint8).astype(np.int64) - 31
    return np.clip(codes, 0, LETTERS - 1)


def windows(text: np.ndarray[Any, Any], places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The characters before each position, one-hot encoded."""
    letters = text[places[:, None] + np.arange(-CONTEXT, 0)]
    found = np.zeros((len(places), CONTEXT, LETTERS), np.float32)
    np.put_along_axis(found, letters[..., None], 1.0, axis=2)
    return found.reshape(len(places), -1)


def trained(text: np.ndarray[Any, Any], steps: int) -> list[np.ndarray[Any, Any]]:
    """Weights and biases after `steps` of Adam."""
    random = np.random.default_rng(0)
    sizes = (CONTEXT * LETTERS, HIDDEN, HIDDEN, LETTERS)
    scales = ((2 / CONTEXT) ** 0.5, (2 / HIDDEN) ** 0.5, (1 / HIDDEN) ** 0.5)
    parameters: list[np.ndarray[Any, Any]] = []
    for depth, columns, scale in zip(sizes, sizes[1:], scales, strict=False):
        parameters += [(random.standard_normal((depth, columns)) * scale).astype(np.float32)]
        parameters += [np.zeros(columns, np.float32)]
    moments = [(np.zeros_like(p), np.zeros_like(p)) for p in parameters]
    for step in range(1, steps + 1):
        places = random.integers(CONTEXT, len(text), 256)
        inputs = [windows(text, places)]
        for weight, bias in zip(parameters[0:4:2], parameters[1:4:2], strict=True):
            inputs.append(np.maximum(inputs[-1] @ weight + bias, 0.0))
        slope = probabilities(inputs[-1] @ parameters[4] + parameters[5])
        slope[np.arange(len(places)), text[places]] -= 1.0
        slope /= len(places)
        gradients: list[np.ndarray[Any, Any]] = []
        for at in (2, 1, 0):
            gradients = [inputs[at].T @ slope, slope.sum(axis=0), *gradients]
            slope = (slope @ parameters[2 * at].T) * (inputs[at] > 0.0)
        rate = 1e-3 * min(1.0, 2.0 * (1.0 - step / (steps + 1)))
        for parameter, gradient, (first, second) in zip(parameters, gradients, moments, strict=True):
            first += 0.1 * (gradient - first)
            second += 0.01 * (gradient**2 - second)
            corrected = np.sqrt(second / (1.0 - 0.99**step)) + 1e-8
            parameter -= (rate * (first / (1.0 - 0.9**step)) / corrected).astype(np.float32)
    return parameters


def probabilities(scores: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    found = np.exp(scores - scores.max(axis=1, keepdims=True))
    return found / found.sum(axis=1, keepdims=True)


def model(parameters: Sequence[np.ndarray[Any, Any]], rows: int) -> Any:
    """The net as a graph."""
    bb = G.BlockBuilder()
    x = G.var("x", (rows, CONTEXT * LETTERS))
    with bb.function("main", [x]):
        value: Any = x
        for at in (0, 2, 4):
            value = bb.emit(G.add(G.matmul(value, G.const(parameters[at])), G.const(parameters[at + 1])))
            value = value if at == 4 else bb.emit(G.relu(value))
        bb.emit_func_output(value)
    return bb.get()


def accuracy(steps: int) -> None:
    """Print a table of perplexities on a held-out part of the text."""
    text = documentation()
    split = len(text) * 9 // 10
    parameters = trained(text[:split], steps)
    places = np.random.default_rng(1).integers(split + CONTEXT, len(text), 2048)
    data = windows(text, places)
    module = model(parameters, len(data))

    def perplexity(given: Any) -> float:
        found = probabilities(np.asarray(weft.build(given)["main"](data), np.float64))
        return float(np.exp(-np.log(found[np.arange(len(places)), text[places]]).mean()))

    print(f"{len(text)} characters, {steps} steps")
    print("| weights | group | zero points | bytes | error of weights | perplexity |\n|---|---|---|---|---|---|")
    size = sum(parameters[at].nbytes for at in (0, 2, 4))
    print(f"| float32 | | | {size} | | {perplexity(module):.3f} |")
    for bits, group, symmetric in (
        *(("int8", group, True) for group in (0, 32)),
        *(("int4", group, symmetric) for group in (0, 128, 32, 16) for symmetric in (True, False)),
    ):
        found = weft.quantize(module, bits, group, symmetric)
        size, error = sum(layer.bytes_after for layer in found.layers), max(layer.error for layer in found.layers)
        shown = f"{bits} | {group or 'column'} | {'no' if symmetric else 'yes'} | {size}"
        print(f"| {shown} | {error:.2%} | {perplexity(found.mod):.3f} |", flush=True)
    calibration = windows(text, np.random.default_rng(2).integers(CONTEXT, split, len(data)))
    for method in ("minmax", "percentile", "mse"):
        found = weft.quantize(module, "int8", activations="int8", calibrate=[(calibration,)], method=method)
        size, error = sum(layer.bytes_after for layer in found.layers), max(layer.error for layer in found.layers)
        shown = f"int8, activations int8 ({method}) | column | no | {size}"
        print(f"| {shown} | {error:.2%} | {perplexity(found.mod):.3f} |", flush=True)


# Speed

DEPTH = COLUMNS = 4096
BEYOND_CACHES = 128 << 20
"""Total bytes of the weights that calls use in turn."""


def product(rows: int, bits: int, group: int, target: Target, **options: str) -> tuple[Callable[[], float], int]:
    """A function that measures the fastest call over different weights, and the bytes of weights and scales per
    call.
    """
    random = np.random.default_rng(0)
    groups = DEPTH // group
    arrays = [
        (
            random.integers(0, 256, (COLUMNS, DEPTH * bits // 8), np.uint8),
            random.uniform(0.5, 1.5, (COLUMNS, groups)).astype(np.float32),
        )
        for _ in range(max(2, BEYOND_CACHES * 8 // (DEPTH * COLUMNS * bits)))
    ]
    bb = G.BlockBuilder()
    functions = [f"product_{at}" for at in range(len(arrays))]
    for name, (weight, scale) in zip(functions, arrays, strict=True):
        x = G.var("x", (rows, DEPTH))
        with bb.function(name, [x]):
            operands, sizes = (x, G.const(weight), G.const(scale)), {"bits": bits, "group_size": group}
            bb.emit_func_output(bb.emit(G.operator("dequantized_matmul")(*operands, **sizes, **options)))
    library = weft.build(bb.get(), target=target)
    data = random.standard_normal((rows, DEPTH)).astype(np.float32)

    def measure() -> float:
        best = float("inf")
        for name in functions:
            start = time.perf_counter()
            library[name](data)
            best = min(best, time.perf_counter() - start)
        return best

    return measure, sum(array.nbytes for array in arrays[0])


def reading_memory(target: Target) -> Callable[[], float]:
    """A function that measures GB/s of the fastest sum over one of several arrays, each as large as the weights of a
    call.
    """
    lanes, threads = target.vector_bytes // 4, target.num_threads
    shape = (threads, (10 << 20) // (threads * UNROLLED * target.vector_bytes), UNROLLED, lanes)
    library = load(lower(Pipeline(reading(shape), target, BuildOptions(default_schedule=False))))
    arrays = [aligned(np.ones(shape, np.float32)) for _ in range(BEYOND_CACHES // (10 << 20))]
    result = empty((threads, UNROLLED, lanes), "float32")

    def measure() -> float:
        best = float("inf")
        for array in arrays:
            start = time.perf_counter()
            library["read"](array, result)
            best = min(best, time.perf_counter() - start)
        return arrays[0].nbytes / best / 1e9

    return measure


def peer(rows: int, bits: int, group: int, level: int, threads: int) -> Callable[[], float] | None:
    """A function that measures the product in onnxruntime, the mean of a model with twelve; None if it is not
    installed.
    """
    if find_spec("onnxruntime") is None or find_spec("onnx") is None:
        return None
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    random, groups, count = np.random.default_rng(0), DEPTH // group, 12 if rows < 32 else 2
    constants: list[Any] = []
    nodes: list[Any] = []
    for at in range(count):
        weight = random.integers(0, 256, (COLUMNS, groups, group * bits // 8), np.uint8)
        scale = random.uniform(0.5, 1.5, (COLUMNS, groups)).astype(np.float32)
        constants += [numpy_helper.from_array(weight, f"w{at}"), numpy_helper.from_array(scale, f"s{at}")]
        options = {"K": DEPTH, "N": COLUMNS, "bits": bits, "block_size": group, "accuracy_level": level}
        names = ["x", f"w{at}", f"s{at}"]
        nodes.append(helper.make_node("MatMulNBits", names, [f"y{at}"], domain="com.microsoft", **options))
    info = helper.make_tensor_value_info
    results = [info(f"y{at}", TensorProto.FLOAT, [rows, COLUMNS]) for at in range(count)]
    graph = helper.make_graph(nodes, "g", [info("x", TensorProto.FLOAT, [rows, DEPTH])], results, constants)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = threads, 1
    given = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    session = onnxruntime.InferenceSession(given, settings, providers=["CPUExecutionProvider"])
    data = random.standard_normal((rows, DEPTH)).astype(np.float32)

    def measure() -> float:
        start = time.perf_counter()
        session.run(None, {"x": data})
        return (time.perf_counter() - start) / count

    return measure


def speed(threads: int, rounds: int) -> None:
    """Print a table of products of 4096 x 4096 weights."""
    target = Target.parse(f"llvm -num-threads={threads}")
    read = reading_memory(target)
    print(f"{threads} threads, microseconds")
    print("| rows | bits | group | weft | weft, int8 data | onnxruntime 0 | onnxruntime 4 | read, GB/s |")
    print("|---|---|---|---|---|---|---|---|")
    for rows, bits, group in ((1, 4, 32), (1, 4, 128), (1, 8, 32), (1, 8, 128), (4, 4, 32), (4, 8, 32), (128, 4, 32)):
        ours, size = product(rows, bits, group, target)
        rounded, _ = product(rows, bits, group, target, compute_dtype="int8")
        peers = [peer(rows, bits, group, level, threads) if bits == 4 or level else None for level in (0, 4)]
        best, bandwidth = [float("inf")] * 4, 0.0
        for _ in range(rounds):
            bandwidth = max(bandwidth, read())
            for at, measure in enumerate((ours, rounded, *peers)):
                best[at] = best[at] if measure is None else min(best[at], measure())
        times = ["" if b == float("inf") else f"{b * 1e6:.0f}" for b in best]
        shares = [f" ({size / b / 1e9 / bandwidth:.2f})" if rows == 1 else "" for b in best[:2]]
        ours_text = f"{times[0]}{shares[0]} | {times[1]}{shares[1]}"
        print(f"| {rows} | {bits} | {group} | {ours_text} | {times[2]} | {times[3]} | {bandwidth:.1f} |", flush=True)


MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net.h"

static void peak(void) {
  char line[256];
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status))
    if (!strncmp(line, "VmHWM:", 6)) printf("%ld ", strtol(line + 6, 0, 10));
  if (status) fclose(status);
}

static float x[64 * DEPTH], y[64 * DEPTH];

int main(int count, char **arguments) {
  const char *error = count > 1 ? weft_load_weights(arguments[1]) : "no file";
  if (error) { puts(error); return 1; }
  peak();
  weft_function_main(x, y, 1);
  peak();
  for (int i = 0; i < 64 * DEPTH; i++) x[i] = (float)(i % 13) - 6.0f;
  weft_function_main(x, y, 64);
  peak();
  return 0;
}
"""
"""Prints the peak resident memory in KiB after loading the weights, after a product of one row, and after one of 64."""


def random_net(products: int, depth: int) -> Any:
    """Products with 4-bit weights in groups of 32 with float16 scales, generated without floats."""
    random, bb = np.random.default_rng(0), G.BlockBuilder()
    x = G.var("x", ("m", depth))
    with bb.function("main", [x]):
        for _ in range(products):
            weight = G.const(random.integers(0, 256, (depth, depth // 2), np.uint8))
            scale = G.const((random.uniform(0.05, 0.15, (depth, depth // 32)) * depth**-0.5).astype(np.float16))
            x = bb.emit(G.dequantized_matmul(x, weight, scale, group_size=32))
        bb.emit_func_output(x)
    return bb.get()


def resident_memory(products: int, folder: Path, depth: int = 4096) -> tuple[int, list[int]]:
    """The bytes of the weights of a C program, and its `VmHWM` in bytes as printed by `MAIN`."""
    library = weft.build(random_net(products, depth), target="llvm -num-threads=1", specialize={"m": [1]})
    weights, source = folder / "net.weights", folder / "net.c"
    for name in ("net.h", "net.o"):
        library.export(folder / name, weights=weights)
    source.write_text(MAIN.replace("DEPTH", str(depth)))
    program = folder / "net"
    command = ["cc", "-O1", f"-I{folder}", source, folder / "net.o", "-o", program, "-lm", "-lpthread"]
    subprocess.run(command, check=True)
    printed = subprocess.run([program, weights], check=True, capture_output=True, text=True).stdout
    return weights.stat().st_size, [int(number) << 10 for number in printed.split()]


def memory(products: int) -> None:
    with TemporaryDirectory() as folder:
        size, peaks = resident_memory(products, Path(folder))
    print(f"{products * 4096 * 4096 / 1e6:.0f} million parameters, {size} bytes of weights")
    for what, peak in zip(("weights loaded", "one row", "64 rows"), peaks, strict=True):
        print(f"{what:16} {peak / 1024:10.0f} KiB  {peak / size:.3f}")
    print(f"peak while building: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss} KiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("accuracy", "speed", "memory"))
    parser.add_argument("--steps", type=int, default=1500, help="of training (default 1500)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10, help="of measurements (default 10)")
    parser.add_argument("--products", type=int, default=30, help="of the net whose memory is measured (default 30)")
    arguments = parser.parse_args()
    if arguments.part == "accuracy":
        accuracy(arguments.steps)
    elif arguments.part == "speed":
        speed(arguments.threads, arguments.rounds)
    else:
        memory(arguments.products)


if __name__ == "__main__":
    main()
