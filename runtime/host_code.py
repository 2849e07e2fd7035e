"""Host functions of GPU programs, compiled by LLVM into this process: what they call of the runtime is the device.

Native code that calls Python cannot pass an exception on. The first one is kept, the calls after it do nothing, and the
host function, which reads nothing of the device, runs to its end; the exception is raised then.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.backends.llvm.host_ops import SYMBOLS
from weft.backends.llvm.jit import jit
from weft.backends.names import symbol_name
from weft.runtime.call import thunk_address
from weft.support.target import Target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from weft.runtime.device_memory import MemoryPool
    from weft.runtime.devices import Kernel, Memory
    from weft.runtime.gpu_call import HostFunction, Run, Slots
    from weft.runtime.signature import Signature


_EXTENTS: Final = (ctypes.c_int64,) * 6
_PROTOTYPES: Final = (
    ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64),
    ctypes.CFUNCTYPE(None, ctypes.c_void_p),
    ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64),
    ctypes.CFUNCTYPE(None, ctypes.c_char_p, *_EXTENTS, ctypes.c_void_p),
)
"""The types of the functions named by `SYMBOLS`."""
# Python's lock is kept: most of what a host function does is call Python.
_THUNK: Final = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_FAILED: Final = 64
"""What a caller gets for memory after an exception: LLVM is told that it is not null."""


class _Runtime:
    """The device as the host functions of a program call it, for one call at a time: that of `run`."""

    def __init__(self, kernels: Mapping[str, Kernel], pool: MemoryPool) -> None:
        self._kernels = {name.encode(): kernel for name, kernel in kernels.items()}
        self._pool = pool
        self._constants: dict[int, tuple[Memory, int]] = {}
        self.run: Run | None = None
        self.error: BaseException | None = None

    def hooks(self) -> dict[str, Any]:
        """The functions named by `SYMBOLS`."""
        functions = (self._allocate, self._release, self._constant, self._launch)
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
        """The device's copy of the constant at an address, made when it is first needed."""
        if address not in self._constants:
            memory, capacity = self._pool.allocate(size)
            self._constants[address] = memory, capacity
            run.queue.copy_in(memory, np.frombuffer(ctypes.string_at(address, size), np.uint8))
            run.queue.synchronize()
        return run.handle(self._constants[address][0])

    def _launch(self, run: Run, name: bytes, gx: int, gy: int, gz: int, tx: int, ty: int, tz: int, places: int) -> None:
        run.launch(self._kernels[name], (gx, gy, gz), (tx, ty, tz), places)

    def close(self) -> None:
        """Give the memory of the constants back to the pool."""
        for memory, capacity in self._constants.values():
            self._pool.release(memory, capacity)
        self._constants.clear()


class HostFunctions:
    """The compiled host functions of a program. The code lives as long as this object."""

    def __init__(self, text: str, kernels: Mapping[str, Kernel], pool: MemoryPool) -> None:
        self._runtime = _Runtime(kernels, pool)
        self._hooks = self._runtime.hooks()
        addresses = {name: ctypes.cast(hook, ctypes.c_void_p).value or 0 for name, hook in self._hooks.items()}
        # Level 0: the code runs once a call, and everything that it does is in the calls that it makes.
        self._module = jit(text, Target.of_process(0), addresses)

    def function(self, signature: Signature) -> HostFunction:
        """A function of the program, which runs on one thread at a time. It raises what the device raised."""
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

    def close(self) -> None:
        """Give the memory of the constants back to the pool."""
        self._runtime.close()
