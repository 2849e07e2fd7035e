"""Devices, and arrays in host memory, which GPU calls copy."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Device:
    """Ignored: the build's target decides."""

    device_type: str = "cpu"
    device_id: int = 0

    def sync(self) -> None:
        """Calls are synchronous."""

    def __str__(self) -> str:
        return f"{self.device_type}({self.device_id})"


cpu, cuda, opencl, metal = (partial(Device, kind) for kind in ("cpu", "cuda", "opencl", "metal"))
gpu = cuda


def device(dev_type: str, dev_id: int = 0) -> Device:
    return Device({"llvm": "cpu", "c": "cpu"}.get(dev_type, dev_type), dev_id)


class NDArray(np.ndarray[Any, np.dtype[Any]]):
    """A NumPy array with TVM's methods."""

    def numpy(self) -> np.ndarray[Any, np.dtype[Any]]:
        return np.array(self, copy=True, subok=False)

    asnumpy = numpy

    def __dlpack__(self, **options: Any) -> Any:
        """A copy if read-only, as operands of registered functions are, because PyTorch rejects those."""
        return np.ndarray.__dlpack__(self if self.flags.writeable else self.copy(), **options)


def array(arr: Any, device: Device | None = None) -> NDArray:
    """A copy; numbers are float32 by default."""
    given = arr if hasattr(arr, "dtype") or hasattr(arr, "__dlpack__") else np.asarray(arr, "float32")
    return np.array(given, copy=True, order="C", subok=False).view(NDArray)


def empty(shape: Any, dtype: Any = "float32", device: Device | None = None) -> NDArray:
    """Uninitialised."""
    return array(np.empty(shape, dtype), device)
