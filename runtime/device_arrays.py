"""Arrays of other libraries that lie in a device's memory, seen as what argument checks understand.

A *shadow* is a NumPy array with the address, shape, strides and type of the device's array. It is never read or
written; it lets the same code check arguments in both kinds of memory.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from weft.runtime.devices import Array

CPU: Final = 1
CUDA: Final = 2
_DEVICE_NAMES: Final = {
    **{1: "this machine's memory", 2: "CUDA device", 3: "pinned memory", 4: "OpenCL device", 7: "Vulkan device"},
    **{8: "Metal device", 10: "ROCm device", 13: "managed memory"},
}
_MAX_RANK: Final = 64
"""Of NumPy's arrays."""
_LEGACY_STREAM: Final = 1
"""The stream that is used when nobody chose one; DLPack writes it as 1, the driver takes both."""


class _DLDevice(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("number", ctypes.c_int32))


class _DLDataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _DLTensor(ctypes.Structure):
    """`DLTensor` of dlpack.h; also what a `DLManagedTensor` begins with."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", _DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_pointer_in = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


@dataclass(frozen=True)
class DeviceArray:
    """An array on a device: its shadow, whether its elements are bfloat16 (the shadow's are then uint16), the stream on
    which its library works, and what keeps the memory alive."""

    shadow: Array
    is_bfloat16: bool
    stream: int
    owner: object


def device_of(value: object) -> tuple[int, int] | None:
    """The device (type and number, as DLPack counts them) that an array lies on; None for what is no such array, and
    for this machine's memory."""
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack_device__"):
        return None
    device_type, number = value.__dlpack_device__()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
    kind = int(device_type)  # pyright: ignore[reportUnknownArgumentType]
    return None if kind == CPU else (kind, int(number))  # pyright: ignore[reportUnknownArgumentType]


def device_name(device: tuple[int, int]) -> str:
    """`device_of`'s answer for people."""
    kind, number = device
    name = _DEVICE_NAMES.get(kind, f"device of type {kind}")
    return f"{name} {number}" if "device" in name else name


def device_array(value: Any, device: tuple[int, int]) -> DeviceArray:
    """An array on a CUDA device, which is what `device_of` says of it. Its library makes what it did to it so far
    visible on the stream that is returned.

    Raises `TypeError` for an element type that weft has no name for, `ValueError` for a capsule that is none or that
    names another device, and what the library raises when it does not export the array.
    """
    stream = current_stream(value)
    capsule: object = value.__dlpack__(stream=stream)
    tensor = _DLTensor.from_address(_pointer_in(capsule, b"dltensor"))
    if (tensor.device.type, tensor.device.number) != device:
        place = device_name((tensor.device.type, tensor.device.number))
        raise ValueError(f"its DLPack capsule is on {place}, it says {device_name(device)}")
    if not 0 <= tensor.ndim <= _MAX_RANK or (tensor.ndim and not tensor.shape):
        raise ValueError(f"its DLPack capsule has rank {tensor.ndim}" + ("" if tensor.shape else " and no shape"))
    code, bits, lanes = tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes
    kinds = {0: "i", 1: "u", 2: "f", 4: "u", 6: "b"}
    is_bfloat16 = (code, bits) == (4, 16)
    if lanes != 1 or code not in kinds or (code == 4 and not is_bfloat16):
        raise TypeError(f"its elements have a type that weft has no name for (DLPack code {code}, {bits} bits)")
    size = bits // 8
    shape = tuple(tensor.shape[d] for d in range(tensor.ndim))
    strides = tuple(tensor.strides[d] * size for d in range(tensor.ndim)) if tensor.strides else None
    address = (tensor.data or 0) + tensor.byte_offset
    shadow = np.asarray(_Interface(address, shape, strides, f"{kinds[code]}{size}"))
    return DeviceArray(shadow, is_bfloat16, stream, capsule)


class _Interface:
    """What NumPy makes an array of, without looking at the memory."""

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...] | None, kind: str) -> None:
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "strides": strides,
            "typestr": "|b1" if kind[0] == "b" else f"<{kind}",
            "data": (address or 16, False),  # an empty array may have no address; the shadow is not read
        }


def identity(value: Any) -> tuple[object, ...] | None:
    """What two arrays on devices share when a call may treat them alike: address, shape, strides, type, device.

    None for arrays of libraries that do not tell this quickly, and for everything else.
    """
    library = type(value).__module__
    if library == "torch" and hasattr(value, "data_ptr"):
        if not value.is_cuda or value.requires_grad or value.is_neg():
            return None
        return (value.data_ptr(), value.shape, value.stride(), value.dtype, value.device)
    if library.startswith("cupy") and hasattr(value, "data"):
        return (value.data.ptr, value.shape, value.strides, value.dtype, value.device)
    return None


def current_stream(value: Any) -> int:
    """The stream on which the array's library works now."""
    library = type(value).__module__.split(".")[0]
    module: Any = sys.modules.get(library)
    if library == "torch":
        # What torch's compiler uses: the same answer in a tenth of the time.
        quick = getattr(module._C, "_cuda_getCurrentRawStream", None)
        if quick is not None:
            return int(quick(value.device.index)) or _LEGACY_STREAM
        handle = int(module.cuda.current_stream(value.device).cuda_stream)
    elif library == "cupy":
        handle = int(module.cuda.get_current_stream().ptr)
    else:
        handle = _LEGACY_STREAM
    return handle or _LEGACY_STREAM
