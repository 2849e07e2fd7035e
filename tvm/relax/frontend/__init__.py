"""`relax.frontend`: importers of models."""

from __future__ import annotations

from weft.tvm.absent import refuses
from weft.tvm.relax.frontend import onnx, torch

__all__ = ["onnx", "torch"]
__getattr__ = refuses(
    __name__,
    {
        "nn": "graphs are built with relax.BlockBuilder, or read from models of PyTorch and ONNX",
        "tflite": "weft reads models of ONNX and PyTorch, and StableHLO",
        "stablehlo": "weft.build takes modules of stablehlo",
    },
)
