"""Measure the kernels of a model: time, arithmetic and bytes, and their share of what the machine can do.

  weft profile model.onnx
  weft profile model.mlir --input x=x.npy --target "llvm -mcpu=znver4"

The same as `weft run FILE --profile`, with its options.
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
