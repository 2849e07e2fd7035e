"""Measure the kernels of a model: time, arithmetic and bytes, and their fraction of the machine's peak.

  weft profile model.onnx
  weft profile model.mlir --input x=x.npy --target "llvm -mcpu=znver4"

Equivalent to `weft run FILE --profile`, with the same options.
"""

from __future__ import annotations

import argparse

from weft.tools import run_command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    run_command.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Returns as `weft run` does. Raises `CompileError` and `OSError`."""
    arguments.profile = True
    return run_command.run(arguments)
