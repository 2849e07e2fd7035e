"""`relax.frontend`: importers of models."""

from weft.tvm.absent import refuses
from weft.tvm.relax.frontend import nn, onnx, torch

__all__ = ["nn", "onnx", "torch"]
__getattr__ = refuses(__name__)
