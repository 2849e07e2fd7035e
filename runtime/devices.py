"""Devices that run kernels, and pools of their memory.

A `Device` is hardware (or a simulator) with limits; a `Queue` runs work on it in order.
"""

from __future__ import annotations

import ctypes
import math
import struct
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.support.call_arguments import Array
    from weft.support.gpu_machine import GpuMachine
    from weft.support.target import Target

Dimensions: TypeAlias = tuple[int, int, int]
_PACKING: Final = {
    **{"buffer": "Q", "int64": "q", "int32": "i4x", "int16": "h6x", "int8": "b7x", "bool": "B7x", "uint8": "B7x"},
    **{"float64": "d", "float32": "f4x", "float16": "e6x", "bfloat16": "H6x", "uint32": "I4x", "uint64": "Q"},
}
"""The `struct` format of each kind of argument in a slot of eight bytes."""


class DeviceError(CompileError):
    """There is no device, driver or package for it, or it cannot run the program."""


@dataclass(frozen=True)
class KernelSpec:
    """A kernel of a program."""

    name: str
    """The name in the IR."""
    symbol: str
    """The name in the text."""
    threads: Dimensions
    """Threads of a block."""
    arguments: tuple[str, ...]
    """Each is "buffer" or NumPy's name of a scalar's type."""
    shared_bytes: int = 0
    """Dynamic shared memory of a launch."""
    alignment: Mapping[int, int] = field(default_factory=dict[int, int])
    """Maps positions of buffers to bytes, if tensor cores need more than other accesses."""
    function: str = ""
    """The host function that launches the kernel."""

    @property
    def slots(self) -> struct.Struct:
        return _slots(self.arguments)


@cache
def _slots(arguments: tuple[str, ...]) -> struct.Struct:
    """Not cached in the kernel, which is passed between processes."""
    return struct.Struct("=" + "".join(_PACKING[kind] for kind in arguments))


@dataclass(frozen=True)
class KernelProgram:
    """The text of kernels."""

    text: str
    kernels: tuple[KernelSpec, ...]
    target: Target
    barriers_in_branches: bool = False
    """Whether barriers are in branches that are uniform in each thread block."""
    binary: bytes = b""
    """For CUDA: the text, compiled for the architecture of the target."""


Memory: TypeAlias = Any
"""An address, or an object of the driver."""


class Queue(ABC):
    """Only `copy_out`, `synchronize` and `seconds_between` wait for the device."""

    device: Device

    @abstractmethod
    def copy_in(self, memory: Memory, array: Array) -> None:
        """The array is C-contiguous."""

    @abstractmethod
    def copy_out(self, array: Array, memory: Memory) -> None:
        """Wait for the work so far. The array is C-contiguous."""

    @abstractmethod
    def launch(self, kernel: DeviceKernel, grid: Dimensions, places: int, memories: Mapping[int, Memory]) -> None:
        """`places` is the address of an array of pointers to arguments. Raises `DeviceError` if the driver rejects the
        launch."""

    @abstractmethod
    def synchronize(self) -> None:
        """Raises `DeviceError` if a kernel failed."""

    @abstractmethod
    def mark(self) -> Any:
        """Add a timestamp event to the queue."""

    @abstractmethod
    def seconds_between(self, start: Any, end: Any) -> float:
        """Wait for `end`; returns device time. Each mark is used once."""


class Device(ABC):
    description: str
    model: str
    """The name of the processor and its number of units; times are comparable between devices of one model."""
    limits: GpuMachine
    exact_memory: bool = False
    """Allocations have exactly the requested size, because the device detects accesses past their end."""
    dlpack: tuple[int, int] | None = None
    """DLPack's device type and number; None if the device cannot use arrays of other libraries."""

    @abstractmethod
    def load(self, program: KernelProgram) -> Mapping[str, DeviceKernel]:
        """Raises `CompileError` with the compiler's messages."""

    @abstractmethod
    def check_target(self, target: Target) -> None:
        """Raises `DeviceError` if this device cannot run programs for a target."""

    def check_kernels(self, program: KernelProgram) -> None:
        """Raises `DeviceError` for a kernel that exceeds the limits for any grid."""
        for spec in program.kernels:
            threads, axes = math.prod(spec.threads), zip("xyz", spec.threads, self.limits.max_block, strict=True)
            if spec.shared_bytes > self.limits.max_shared_bytes:
                raise DeviceError(
                    f"kernel '{spec.name}' needs {spec.shared_bytes} bytes of shared memory, {self.description} has "
                    f"{self.limits.max_shared_bytes}"
                )
            if threads > self.limits.max_threads_per_block:
                raise DeviceError(
                    f"kernel '{spec.name}' has blocks of {threads} threads, {self.description} takes "
                    f"{self.limits.max_threads_per_block}"
                )
            for axis, extent, most in axes:
                if extent > most:
                    raise DeviceError(
                        f"kernel '{spec.name}' has {extent} threads on axis {axis}, {self.description} takes {most}"
                    )

    @abstractmethod
    def queue(self, stream: int | None = None) -> Queue:
        """`stream` is another library's driver handle."""

    @abstractmethod
    def allocate(self, size: int) -> Memory:
        """Raises `DeviceError` if the device lacks memory."""

    @abstractmethod
    def release(self, memory: Memory) -> None:
        """Free memory after the work that uses it."""


@dataclass(frozen=True)
class DeviceKernel:
    """A loaded kernel."""

    spec: KernelSpec
    handle: Any
    """The kernel of the driver."""
    limits: GpuMachine

    def values(self, places: int, memories: Mapping[int, Memory]) -> list[Any]:
        """Returns the arguments in slots from `places` on. `memories` maps handles to objects if memory is not
        identified by address."""
        layout, slots = self.spec.slots, ctypes.c_uint64.from_address(places).value
        pairs = zip(self.spec.arguments, layout.unpack(ctypes.string_at(slots, layout.size)), strict=True)
        return [memories.get(value, value) if kind == "buffer" else value for kind, value in pairs]

    def checked_grid(self, grid: Dimensions, block: Dimensions) -> Dimensions | None:
        """Returns None for an empty grid. Raises `DeviceError` if it exceeds the device's limits, or for another block
        than the compiled one."""
        if 0 in grid:
            return None
        name = self.spec.name
        if block != self.spec.threads:
            raise DeviceError(
                f"kernel '{name}' is compiled for blocks of {self.spec.threads} threads, launched with {block}"
            )
        for axis, blocks, most in zip("xyz", grid, self.limits.max_grid, strict=True):
            if not 0 < blocks <= most:
                raise DeviceError(f"kernel '{name}': {blocks} blocks on axis {axis}, the device takes 1 to {most}")
        return grid


_LEAST = 256


class MemoryPool:
    """Memory of one device for one library. Released allocations are reused until `clear`.

    Only one queue (the `owner`) uses an allocation, so its order is all the synchronisation needed. Free allocations
    beyond twice the peak in use are returned to the device, the oldest first.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._free: dict[tuple[object, int], list[tuple[int, Memory]]] = {}
        """By owner and capacity, with the number of the release, in order."""
        self._lock = threading.Lock()
        self._releases = count()
        self._in_use = self._most_in_use = 0
        self.bytes_held = 0
        """From the device, in use or free."""
        self.allocations = 0
        """Allocations on the device."""

    def allocate(self, size: int, owner: object = None, *, is_lasting: bool = False) -> tuple[Memory, int]:
        """Returns memory of at least `size` bytes and its capacity, which `release` requires. Lasting allocations are
        not rounded up for reuse. Raises `DeviceError`."""
        capacity = max(size, 1) if self._device.exact_memory or is_lasting else _capacity(size)
        with self._lock:
            self._in_use += capacity
            self._most_in_use = max(self._most_in_use, self._in_use)
            pieces = self._free.get((owner, capacity))
            if pieces:
                return pieces.pop()[1], capacity
            self.allocations += 1
            self.bytes_held += capacity
            surplus = self._take_surplus()
        try:
            for memory in surplus:
                self._device.release(memory)
            try:
                memory = self._device.allocate(capacity)
            except DeviceError:
                self.clear()
                memory = self._device.allocate(capacity)
        except BaseException:
            with self._lock:
                self._in_use -= capacity
                self.bytes_held -= capacity
            raise
        return memory, capacity

    def release(self, memory: Memory, capacity: int, owner: object = None) -> None:
        with self._lock:
            self._in_use -= capacity
            self._free.setdefault((owner, capacity), []).append((next(self._releases), memory))

    def _take_surplus(self) -> list[Memory]:
        found: list[Memory] = []
        while self.bytes_held > 2 * self._most_in_use:
            key = min((key for key, pieces in self._free.items() if pieces), key=lambda key: self._free[key][0][0])
            found.append(self._free[key].pop(0)[1])
            self.bytes_held -= key[1]
        return found

    def clear(self) -> None:
        with self._lock:
            free, self._free = self._free, {}
            self.bytes_held -= sum(capacity * len(pieces) for (_, capacity), pieces in free.items())
        for pieces in free.values():
            for _, memory in pieces:
                self._device.release(memory)


def _capacity(size: int) -> int:
    """Round up, by an eighth at most, so that similar sizes share memory."""
    step = max(_LEAST, 1 << max(0, size.bit_length() - 4))
    return max(_LEAST, -(-size // step) * step)
