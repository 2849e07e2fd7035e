"""One call of a function whose kernels run on a device.

Native host functions call the device as their runtime. An exception of Python is kept, and raised when the host
function has ended (docs/decisions/0009-devices.md).

An array of another library in device memory is represented by a *shadow*: a NumPy array with the same address, shape,
strides and type, which is never accessed.
"""

from __future__ import annotations

import ctypes
import math
import sys
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from weft.backends.llvm.host_ops import SYMBOLS
from weft.backends.llvm.jit import jit
from weft.backends.names import symbol_name
from weft.runtime.call import thunk_address
from weft.support.call_arguments import (
    argument_error,
    bind_arguments,
    by_position,
    check_overlap,
    hidden_meaning,
    memory_span,
)
from weft.support.call_signature import ArraySpec
from weft.support.target import Target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weft.runtime.devices import Device, DeviceKernel, Dimensions, KernelSpec, Memory, MemoryPool, Queue
    from weft.support.call_arguments import Array, BoundArguments
    from weft.support.call_signature import ScalarSpec, Signature


CPU: Final = 1
CUDA: Final = 2
_DEVICE_NAMES: Final = {
    **{1: "this machine's memory", 2: "CUDA device", 3: "pinned memory", 4: "OpenCL device", 7: "Vulkan device"},
    **{8: "Metal device", 10: "ROCm device", 13: "managed memory"},
}
_MAX_RANK: Final = 64
"""Of NumPy's arrays."""
_LEGACY_STREAM: Final = 1
"""The default stream of DLPack; the driver accepts 0 and 1."""


class _DLDevice(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("number", ctypes.c_int32))


class _DLDataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _DLTensor(ctypes.Structure):
    """`DLTensor` of dlpack.h, also the start of a `DLManagedTensor`."""

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
    """An array on a device."""

    shadow: Array
    """Of uint16 if the elements are bfloat16."""
    is_bfloat16: bool
    stream: int
    """The stream of the library of the array."""
    owner: object
    """The owner of the memory."""


def device_of(value: object) -> tuple[int, int] | None:
    """Returns DLPack's type and number; None for host memory and other values."""
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack_device__"):
        return None
    device_type, number = value.__dlpack_device__()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
    kind = int(device_type)  # pyright: ignore[reportUnknownArgumentType]
    return None if kind == CPU else (kind, int(number))  # pyright: ignore[reportUnknownArgumentType]


def device_name(device: tuple[int, int]) -> str:
    kind, number = device
    name = _DEVICE_NAMES.get(kind, f"device of type {kind}")
    return f"{name} {number}" if "device" in name else name


def device_array(value: Any, device: tuple[int, int]) -> DeviceArray:
    """The library makes previous work visible on the returned stream. Raises `TypeError` for an unsupported element
    type, `ValueError` for an invalid capsule or one of another device, and whatever the library raises."""
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
    """NumPy makes an array of it without accessing the memory."""

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...] | None, kind: str) -> None:
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "strides": strides,
            "typestr": "|b1" if kind[0] == "b" else f"<{kind}",
            "data": (address or 16, False),  # an empty array may have no address
        }


def identity(value: Any) -> tuple[object, ...] | None:
    """Returns address, shape, strides, type and device, on which checks depend. None for other values, and for
    libraries that do not return these quickly."""
    library = type(value).__module__
    if library == "torch" and hasattr(value, "data_ptr"):
        if not value.is_cuda or value.requires_grad or value.is_neg():
            return None
        return (value.data_ptr(), value.shape, value.stride(), value.dtype, value.device)
    if library.startswith("cupy") and hasattr(value, "data"):
        return (value.data.ptr, value.shape, value.strides, value.dtype, value.device)
    return None


def current_stream(value: Any) -> int:
    library = type(value).__module__.split(".")[0]
    module: Any = sys.modules.get(library)
    if library == "torch":
        # As torch's compiler: a tenth of the time.
        quick = getattr(module._C, "_cuda_getCurrentRawStream", None)
        if quick is not None:
            return int(quick(value.device.index)) or _LEGACY_STREAM
        handle = int(module.cuda.current_stream(value.device).cuda_stream)
    elif library == "cupy":
        handle = int(module.cuda.get_current_stream().ptr)
    else:
        handle = _LEGACY_STREAM
    return handle or _LEGACY_STREAM


_ALIGNMENT: Final = 16
"""Of the widest access of a kernel, relative to the start of a buffer, in bytes."""
_HANDLE_SHIFT: Final = 6
"""LLVM assumes that temporaries are aligned to 64 bytes."""

Slots: TypeAlias = "ctypes.Array[ctypes.c_uint64]"
"""Arguments of a host function and symbols, in eight bytes each."""
HostFunction: TypeAlias = "Callable[[Run, Slots], None]"
_EXTENTS: Final = (ctypes.c_int64,) * 6
_PROTOTYPES: Final = (
    ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64),
    ctypes.CFUNCTYPE(None, ctypes.c_void_p),
    ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64),
    ctypes.CFUNCTYPE(ctypes.c_uint8, ctypes.c_void_p),
    ctypes.CFUNCTYPE(None, ctypes.c_char_p, *_EXTENTS, ctypes.c_void_p),
)
"""Of the functions named by `SYMBOLS`."""
# The interpreter lock is kept, because a host function mostly calls Python.
_THUNK: Final = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_FAILED: Final = 64
"""Returned by allocations after an exception, because LLVM assumes that it is not null."""


class Run:
    """`close` frees all memory."""

    def __init__(self, queue: Queue, pool: MemoryPool) -> None:
        self.queue = queue
        self._pool = pool
        self._held: dict[int, tuple[Memory, int]] = {}
        self._memories: dict[int, Memory] = {}
        self.log: list[tuple[DeviceKernel, Any, Any]] | None = None
        """Kernels with the marks before and after them, if measured."""

    def allocate(self, size: int) -> Memory:
        memory, capacity = self._pool.allocate(size, self.queue)
        self._held[self.handle(memory)] = (memory, capacity)
        return memory

    def release(self, memory: Memory) -> None:
        _, capacity = self._held.pop(self.handle(memory))
        self._pool.release(memory, capacity, self.queue)

    def handle(self, memory: Memory) -> int:
        """The address, or a number for a driver object until `close`."""
        if isinstance(memory, int):
            return memory
        handle = id(memory) << _HANDLE_SHIFT
        self._memories[handle] = memory
        return handle

    def memory(self, handle: int) -> Memory:
        return self._memories.get(handle, handle)

    def launch(self, kernel: DeviceKernel, grid: Dimensions, block: Dimensions, places: int) -> None:
        """`places` is the address of an array of pointers to the arguments."""
        checked = kernel.checked_grid(grid, block)
        if checked is None:
            return
        if kernel.spec.alignment:
            _check_alignment(kernel, kernel.values(places, self._memories))
        start = None if self.log is None else self.queue.mark()
        self.queue.launch(kernel, checked, places, self._memories)
        if self.log is not None:
            self.log.append((kernel, start, self.queue.mark()))

    def close(self) -> None:
        for memory, capacity in self._held.values():
            self._pool.release(memory, capacity, self.queue)
        self._held.clear()
        self._memories.clear()


def _check_alignment(kernel: DeviceKernel, arguments: Sequence[Any]) -> None:
    for position, alignment in kernel.spec.alignment.items():
        place = arguments[position]
        if isinstance(place, int) and place % alignment:
            raise ValueError(
                f"kernel '{kernel.spec.name}', argument {position + 1}: expected memory aligned to {alignment} "
                f"bytes, which tensor cores need, got address {place:#x}"
            )


class _Runtime:
    """The device as called by host functions, during one call at a time, `run`."""

    def __init__(self, kernels: Mapping[str, DeviceKernel], pool: MemoryPool) -> None:
        self._kernels = {symbol_name(name).encode(): kernel for name, kernel in kernels.items()}
        self._pool = pool
        self._constants: dict[int, tuple[Memory, int]] = {}
        self.run: Run | None = None
        self.error: BaseException | None = None

    def hooks(self) -> dict[str, Any]:
        functions = (self._allocate, self._release, self._constant, self._read_byte, self._launch)
        pairs = zip(_PROTOTYPES, map(self._guarded, functions), strict=True)
        return dict(zip(SYMBOLS, (prototype(hook) for prototype, hook in pairs), strict=True))

    def _guarded(self, function: Callable[..., int | None]) -> Callable[..., int | None]:
        def hook(*arguments: object) -> int | None:
            try:
                if self.run is not None and self.error is None:
                    return function(self.run, *arguments)
            except BaseException as error:  # noqa: BLE001 (raised after the native call)
                self.error = error
            return _FAILED

        return hook

    def _allocate(self, run: Run, size: int) -> int:
        return run.handle(run.allocate(size))

    def _release(self, run: Run, handle: int) -> None:
        run.release(run.memory(handle))

    def _constant(self, run: Run, address: int, size: int) -> int:
        if address not in self._constants:
            memory, capacity = self._pool.allocate(size, is_lasting=True)
            self._constants[address] = memory, capacity
            run.queue.copy_in(memory, np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address)))
            run.queue.synchronize()
        return run.handle(self._constants[address][0])

    def _read_byte(self, run: Run, handle: int) -> int:
        byte = np.empty(1, np.uint8)
        run.queue.copy_out(byte, run.memory(handle))
        return int(byte[0])

    def _launch(self, run: Run, name: bytes, gx: int, gy: int, gz: int, tx: int, ty: int, tz: int, places: int) -> None:
        run.launch(self._kernels[name], (gx, gy, gz), (tx, ty, tz), places)

    def constant_bytes(self) -> int:
        return sum(capacity for _, capacity in self._constants.values())

    def close(self) -> None:
        for memory, capacity in self._constants.values():
            self._pool.release(memory, capacity)
        self._constants.clear()


class HostFunctions:
    """The functions read `constants` under external symbols, and live as long as this object."""

    def __init__(
        self,
        text: str,
        kernels: Mapping[str, DeviceKernel],
        pool: MemoryPool,
        constants: Mapping[str, Array] = MappingProxyType({}),
    ) -> None:
        self._runtime = _Runtime(kernels, pool)
        self._constants = constants
        self._hooks = self._runtime.hooks()
        addresses = {name: ctypes.cast(hook, ctypes.c_void_p).value or 0 for name, hook in self._hooks.items()}
        addresses |= {name: array.ctypes.data for name, array in constants.items()}
        # The code runs once per call and only makes calls.
        self._module = jit(text, Target.of_process(0), addresses)

    def function(self, signature: Signature) -> HostFunction:
        """The function is for one thread at a time, and raises exceptions of the device."""
        runtime, address = self._runtime, self._module.address(symbol_name(signature.name))
        thunk = _THUNK(thunk_address(signature.parameter_types()))

        def call(run: Run, slots: Slots) -> None:
            runtime.run, runtime.error = run, None
            thunk(address, slots)
            error, runtime.run, runtime.error = runtime.error, None, None
            if error is not None:
                try:
                    raise error
                finally:
                    del error  # its traceback refers to this frame

        return call

    def constant_bytes(self) -> int:
        return self._runtime.constant_bytes()

    def close(self) -> None:
        self._runtime.close()


class DeviceCall:
    def __init__(
        self,
        device: Device,
        pool: MemoryPool,
        signature: Signature,
        positional: Sequence[object],
        keywords: Mapping[str, object],
    ) -> None:
        self._signature = signature
        views: dict[int, DeviceArray] = {}
        given = zip(signature.args, by_position(signature, positional, keywords), strict=False)
        values = [_on_device(device, signature.name, spec, value, views) for spec, value in given]
        self.bound: BoundArguments = bind_arguments(signature, values, {})
        if any(spec.may_overlap for spec in signature.arrays):
            check_overlap(signature, self._copied(views), copied=True)
        streams = {view.stream for view in views.values()}
        if len(streams) > 1:
            raise ValueError(f"{signature.name}: the arrays are in use on {len(streams)} different streams")
        self.stream = streams.pop() if streams else None
        self.run = Run(device.queue(self.stream), pool)
        self._copies: list[tuple[Array, Any, Array | None]] = []
        """The memory of an array here and on the device, and the array itself if it is written."""
        self._new = {id(array) for array in self.bound.results}
        """Omitted results, which have no contents yet."""
        try:
            self._values = self._slots(views)
        except BaseException:
            self.run.close()
            raise

    def _slots(self, views: Mapping[int, DeviceArray]) -> Slots:
        signature, bound = self._signature, self.bound
        values: list[int] = []
        for position, slot in enumerate(bound.slots):
            array = bound.arrays.get(position)
            if array is None:
                values.append(slot)
                continue
            if id(array) in views:
                if slot % _ALIGNMENT and array.size:
                    expected = f"memory aligned to {_ALIGNMENT} bytes"
                    raise argument_error(signature, position, ValueError, expected, f"address {slot:#x}")
                values.append(slot)
                continue
            spec = signature.args[position]
            try:
                span = memory_span(array)
            except ValueError as error:
                raise ValueError(f"{signature.name}: argument {position + 1} ('{spec.name}'): {error}") from None
            memory = self.run.allocate(span.nbytes)
            values.append(self.run.handle(memory))
            self._copies.append((span, memory, array if isinstance(spec, ArraySpec) and spec.writes else None))
        return (ctypes.c_uint64 * len(values))(*values)

    def _copied(self, views: Mapping[int, DeviceArray]) -> dict[int, Array]:
        return {position: array for position, array in self.bound.arrays.items() if id(array) not in views}

    def copy_in(self) -> None:
        """Copy outputs too, because a program may leave some elements unwritten."""
        for array, memory, written in self._copies:
            if id(written) not in self._new:
                self.run.queue.copy_in(memory, array)

    def start(self, function: HostFunction) -> None:
        function(self.run, self._values)

    def measure(self, function: HostFunction) -> tuple[float, list[tuple[KernelSpec, float]]]:
        """Returns the device's seconds of a run, in total and for each kernel."""
        queue, self.run.log = self.run.queue, []
        start = queue.mark()
        try:
            function(self.run, self._values)
            total = queue.seconds_between(start, queue.mark())
            return total, [(kernel.spec, queue.seconds_between(*marks)) for kernel, *marks in self.run.log]
        finally:
            self.run.log = None

    def copy_out(self) -> None:
        for span, memory, written in self._copies:
            if written is not None:
                self._copy_back(span, memory, written)
        if self._copies:
            self.run.queue.synchronize()

    def _copy_back(self, span: Array, memory: Any, written: Array) -> None:
        """Copy only elements of a view, because another output may interleave with it."""
        if written.size == span.size:
            self.run.queue.copy_out(span, memory)
            return
        room = np.empty_like(span)
        self.run.queue.copy_out(room, memory)
        written[...] = np.lib.stride_tricks.as_strided(room, written.shape, written.strides)

    def repeat(self, function: HostFunction) -> None:
        """All arrays of the checked call are on the device."""
        try:
            self.run.queue.device.queue(self.stream)
            function(self.run, self._values)
        finally:
            self.run.close()

    def close(self) -> None:
        self.run.close()


def call_key(values: Sequence[object]) -> tuple[object, ...] | None:
    """None if an argument is neither a Python number nor an array with an `identity`."""
    key: list[object] = []
    streams: dict[object, int] = {}
    for value in values:
        if isinstance(value, float):
            key.append((float, value, math.copysign(1.0, value)))
        elif isinstance(value, bool | int):
            key.append((type(value), value))
        else:
            known = identity(value)
            if known is None:
                return None
            key.append(known)
            place = (type(value), known[-1])
            if place not in streams:
                streams[place] = current_stream(value)
    return (*key, *streams.values())


def _on_device(
    device: Device, function: str, spec: ArraySpec | ScalarSpec, value: object, views: dict[int, DeviceArray]
) -> object:
    """Record shadows in `views`; values that are not on the device are unchanged."""
    where = f"{function}: argument '{spec.name}'"
    try:
        place = device_of(value)
        if place is None:
            return value
        hidden = hidden_meaning(value)
        view = device_array(value, place) if place == device.dlpack and not hidden else None
    except Exception as error:  # methods of the caller's class may raise anything
        raise TypeError(f"{where}: {type(value).__name__} cannot be used: {error}") from error
    if view is None:
        raise TypeError(
            f"{where}: expected an array in this machine's memory"
            + (f" or on {device.description}" if device.dlpack else f" (it is copied to {device.description})")
            + f", got {hidden or f'{type(value).__name__} on {device_name(place)}'}"
        )
    if view.is_bfloat16 and spec.dtype != "bfloat16":
        raise TypeError(f"{where}: expected elements of type {spec.dtype}, got bfloat16")
    views[id(view.shadow)] = view
    return view.shadow
