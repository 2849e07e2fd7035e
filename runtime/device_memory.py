"""Memory of a device, kept for the next request of a similar size."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.runtime.devices import Device, Memory

_LEAST = 256


class MemoryPool:
    """Pieces of one device's memory, for one library. What is released is handed out again, until `clear`.

    A piece is used on one queue only (`owner` tells them apart), so that order of work is all the waiting there is.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._free: dict[tuple[object, int], list[Memory]] = {}
        self._lock = threading.Lock()
        self.bytes_held = 0
        """All that this pool has from the device, in use or not."""

    def allocate(self, size: int, owner: object = None) -> tuple[Memory, int]:
        """Memory of at least `size` bytes and its capacity, which `release` wants back. Raises `DeviceError`."""
        capacity = max(size, 1) if self._device.exact_memory else _capacity(size)
        with self._lock:
            pieces = self._free.get((owner, capacity))
            if pieces:
                return pieces.pop(), capacity
        memory = self._device.allocate(capacity)
        with self._lock:
            self.bytes_held += capacity
        return memory, capacity

    def release(self, memory: Memory, capacity: int, owner: object = None) -> None:
        """Keep a piece for the next request."""
        with self._lock:
            self._free.setdefault((owner, capacity), []).append(memory)

    def clear(self) -> None:
        """Give everything that is not in use back to the device."""
        with self._lock:
            free, self._free = self._free, {}
            self.bytes_held -= sum(capacity * len(pieces) for (_, capacity), pieces in free.items())
        for pieces in free.values():
            for memory in pieces:
                self._device.release(memory)


def _capacity(size: int) -> int:
    """`size` rounded up, by an eighth at most, so that sizes near each other share their memory."""
    step = max(_LEAST, 1 << max(0, size.bit_length() - 4))
    return max(_LEAST, -(-size // step) * step)
