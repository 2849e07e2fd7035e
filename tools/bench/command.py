"""Measure what weft's code reaches on this machine.

weft bench ladder --size 512       one matrix product under better and better schedules
weft bench ops --only matmul       operators against NumPy, PyTorch and onnxruntime
"""

from __future__ import annotations

import argparse
from importlib import import_module
from types import ModuleType

_BENCHMARKS = {"ladder": "weft.tools.bench.ladder_command", "ops": "weft.tools.bench.ops_command"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
    """Raises what the benchmark raises."""
    module: ModuleType = import_module(_BENCHMARKS[arguments.benchmark])
    return module.run(arguments)
