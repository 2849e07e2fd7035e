"""Measure weft's code on this machine.

weft bench ladder --size 512       one matrix product under successively better schedules
weft bench ops --only matmul       operators against NumPy, PyTorch and onnxruntime
weft bench model.onnx              a whole model against onnxruntime, OpenVINO and PyTorch
weft bench dynamic                 symbolic extents against numbers
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "benchmarks"
"""The folder of the package `weft_bench` in a source checkout."""
_BENCHMARKS = {
    "ladder": "weft_bench.ladder_command",
    "ops": "weft_bench.ops_command",
    "model": "weft_bench.model_command",
    "dynamic": "weft_bench.dynamic_command",
}
_MODELS = re.compile(r".*\.(onnx|mlir|py:\w+)")


def expanded(words: Sequence[str]) -> Sequence[str]:
    """Expand `weft bench model.onnx` to `weft bench model model.onnx`."""
    is_short = words and words[0] not in _BENCHMARKS and any(map(_MODELS.fullmatch, words))
    return ["model", *words] if is_short else words


def add_arguments(parser: argparse.ArgumentParser) -> None:
    if find_spec("weft_bench") is None:  # for an editable installation of an older checkout
        sys.path.append(str(SOURCES))
    subparsers = parser.add_subparsers(dest="benchmark", required=True, metavar="BENCHMARK")
    for name, place in _BENCHMARKS.items():
        module = import_module(place)
        summary, _, description = (module.__doc__ or "").partition("\n")
        sub = subparsers.add_parser(
            name,
            help=summary.partition(": ")[2],
            description=f"{summary}\n{description}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(sub)


def run(arguments: argparse.Namespace) -> int:
    return import_module(_BENCHMARKS[arguments.benchmark]).run(arguments)
