"""`tvm.nd`: arrays."""

from weft.tvm.absent import refuses
from weft.tvm.runtime import NDArray, array, cpu, cuda, empty, gpu, metal, opencl

__all__ = ["NDArray", "array", "cpu", "cuda", "empty", "gpu", "metal", "opencl"]
__getattr__ = refuses(__name__)
