"""`tvm.runtime`: arrays, devices, modules, registered functions."""

from weft.tvm.absent import refuses
from weft.tvm.runtime.functions import get_global_func, register_func
from weft.tvm.runtime.module import Module
from weft.tvm.runtime.ndarray import Device, NDArray, array, cpu, cuda, device, empty, gpu, metal, opencl

Tensor, tensor = NDArray, array
register_global_func = register_func
__all__ = [
    "Device",
    "Module",
    "NDArray",
    "Tensor",
    "array",
    "cpu",
    "cuda",
    "device",
    "empty",
    "get_global_func",
    "gpu",
    "metal",
    "opencl",
    "register_func",
    "register_global_func",
    "tensor",
]  # fmt: skip
__getattr__ = refuses(__name__)
