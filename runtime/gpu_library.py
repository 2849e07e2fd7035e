"""Programs of kernels callable from Python."""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from xdsl.dialects import scf
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument

from weft.backends.c_family.kernels import emit_kernels
from weft.backends.cuda.nvrtc import compile_ptx
from weft.backends.llvm.emit import emit_host_functions
from weft.backends.low_modules import used_globals
from weft.dialects.element_types import TYPES
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.low_kernel import BarrierOp, LaunchOp, kernel_of
from weft.dialects.low_signature import signatures_of
from weft.dialects.low_tensor_cores import WMMA_ALIGNMENT, WmmaLoadOp, WmmaStoreOp
from weft.runtime.constants import take_constants
from weft.runtime.devices import DeviceError, KernelProgram, KernelSpec, MemoryPool
from weft.runtime.gpu_call import DeviceCall, HostFunctions, call_key
from weft.runtime.kernel_times import KernelTimes
from weft.runtime.library import Function, Library, Sources
from weft.support.call_arguments import returned
from weft.support.target import Target

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

    from xdsl.dialects.builtin import ModuleOp

    from weft.runtime.devices import Device
    from weft.runtime.gpu_call import HostFunction
    from weft.runtime.kernel_report import KernelRow
    from weft.runtime.timing import SecondsOf
    from weft.support.call_arguments import Array, BoundArguments
    from weft.support.call_signature import Signature


_CALLS_KEPT = 256
"""Checked calls with device arrays that a function caches."""


class DeviceProgram:
    """Loaded on first use, and again after a failure."""

    def __init__(
        self, program: KernelProgram, host: str, signatures: Sequence[Signature], constants: Mapping[str, Array]
    ) -> None:
        self.lock = threading.Lock()
        self.target = program.target
        self._program = program
        self._text = host
        self._signatures = signatures
        self._constants = constants

    @cached_property
    def device(self) -> Device:
        """Raises `DeviceError` if there is none."""
        return device_for(self.target)

    @cached_property
    def pool(self) -> MemoryPool:
        return MemoryPool(self.device)

    @cached_property
    def host(self) -> HostFunctions:
        """Raises `DeviceError` unless a device can run the kernels."""
        pool = self.pool
        host = HostFunctions(self._text, self.device.load(self._program), pool, self._constants)

        def close() -> None:
            host.close()
            pool.clear()

        weakref.finalize(self, close).atexit = False
        return host

    def load(self) -> None:
        """Raises `DeviceError` as `host` does."""
        _ = self.functions

    @cached_property
    def functions(self) -> Mapping[str, HostFunction]:
        """Raises `DeviceError` as `host` does."""
        return {signature.name: self.host.function(signature) for signature in self._signatures}


@dataclass(frozen=True)
class DeviceMemory:
    """Bytes of device memory."""

    held: int
    """Constants, temporaries and copies of arguments; freed memory is kept for later calls."""
    constants: int
    """Constants needed so far: each is copied to the device once."""
    allocations: int
    """Number of allocations on the device."""


class GpuFunction(Function):
    """A function of a GPU program.

    NumPy arrays are copied to the device and back. Arrays on the device (anything with DLPack: torch, cupy) are used in
    place: the work is enqueued on their library's current stream, without waiting for it. Raises `TypeError` and
    `ValueError` that name the argument, and `DeviceError` if there is no device or it fails.

    Times of runs are the device's, from before the first kernel to after the last one, including temporaries but not
    copies of arguments.
    """

    def __init__(self, program: DeviceProgram, signature: Signature) -> None:
        self._program = program
        self._known: dict[tuple[object, ...], DeviceCall] = {}
        self.signature = signature

    def __call__(self, *positional: Any, **keywords: Any) -> Any:
        program, function = self._program, self._program.functions[self.name]
        key = None if keywords else call_key(positional)
        known = None if key is None else self._known.get(key)
        if known is not None:
            with program.lock:
                known.repeat(function)
            return None
        call = DeviceCall(program.device, program.pool, self.signature, positional, keywords)
        with program.lock:
            try:
                call.copy_in()
                call.start(function)
                call.copy_out()
            finally:
                call.close()
        if key is not None and not call.bound.results:
            if len(self._known) >= _CALLS_KEPT:
                self._known.clear()
            self._known[key] = call
        return returned(call.bound.results)

    @contextmanager
    def runs(self, *positional: object, **keywords: object) -> Generator[SecondsOf]:
        function = self._program.functions[self.name]
        call = DeviceCall(self._program.device, self._program.pool, self.signature, positional, keywords)
        queue = call.run.queue

        def seconds_of(number: int) -> float:
            start = queue.mark()
            for _ in range(number):
                call.start(function)
            return queue.seconds_between(start, queue.mark())

        with self._program.lock:
            try:
                call.copy_in()
                yield seconds_of
                call.copy_out()
            finally:
                call.close()

    def kernel_times(
        self, rows: Sequence[KernelRow], arguments: Sequence[object], keywords: Mapping[str, object], runs: int
    ) -> tuple[KernelTimes, BoundArguments]:
        """Returns medians of `runs` runs, after one warm-up run. A kernel of a report may be several of the device."""
        function = self._program.functions[self.name]
        symbols = {name: row.symbol for row in rows for name in row.names}
        call = DeviceCall(self._program.device, self._program.pool, self.signature, arguments, keywords)
        with self._program.lock:
            try:
                call.copy_in()
                call.measure(function)
                measured = [call.measure(function) for _ in range(runs)]
                call.copy_out()
            finally:
                call.close()
        each: dict[str, list[float]] = {row.symbol: [0.0] * runs for row in rows}
        for run, (_, kernels) in enumerate(measured):
            for spec, seconds in kernels:
                if spec.function in symbols:
                    each[symbols[spec.function]][run] += seconds
        called: dict[str, int] = {}
        for (name, _), count in Counter((spec.function, spec.name) for spec, _ in measured[-1][1]).items():
            called[name] = max(called.get(name, 0), count)
        calls = {row.symbol: sum(called.get(name, 0) for name in row.names) for row in rows}
        medians = {symbol: median(times) for symbol, times in each.items()}
        return KernelTimes(medians, calls, median(total for total, _ in measured)), call.bound

    def __repr__(self) -> str:
        return f"<weft function {self.signature} for {self._program.target}>"


class GpuLibrary(Library):
    """The kernels are compiled at once. Without a device only the sources are available, and calls raise
    `device_error`."""

    def __init__(
        self,
        program: KernelProgram,
        host: str,
        signatures: Iterable[Signature],
        constants: Mapping[str, Array] = MappingProxyType({}),
    ) -> None:
        self._keep(program.target, signatures, {})
        self.constants = MappingProxyType(dict(constants))
        self.device_error: DeviceError | None = None
        self._program = DeviceProgram(program, host, tuple(self._signatures.values()), self.constants)
        self._functions = {name: GpuFunction(self._program, signature) for name, signature in self._signatures.items()}
        texts: dict[str, str | Callable[[], str]] = {program.target.kind: program.text}
        if program.target.kind == "cuda":
            texts["ptx"] = partial(compile_ptx, program.text, program.target.arch)
        self._sources = Sources({**texts, "host": host})
        self.imported_modules = [Sources(texts)]
        """`get_source` returns their text."""
        try:
            self._program.load()
        except DeviceError as error:
            self.device_error = error

    @property
    def device(self) -> str:
        """The description of the device. Raises `DeviceError` if there is none."""
        return self._program.device.description

    @property
    def memory(self) -> DeviceMemory:
        """Current memory. Raises `DeviceError` if there is no device."""
        pool = self._program.pool
        return DeviceMemory(pool.bytes_held, self._program.host.constant_bytes(), pool.allocations)

    def _kernel_times(
        self,
        signature: Signature,
        rows: Sequence[KernelRow],
        call: tuple[Sequence[object], Mapping[str, object]],
        runs: int,
    ) -> tuple[KernelTimes, BoundArguments]:
        return GpuFunction(self._program, signature).kernel_times(rows, *call, runs)

    def _place(self) -> str:
        return f"{self.target} on {'no device' if self.device_error is not None else self.device}"


_ARGUMENTS: Final = {"ptr": "buffer", **{str(type_): name for name, type_ in TYPES.items()}}
"""Type of an argument in the emitter -> kind in `KernelSpec`."""


def device_for(target: Target) -> Device:
    """The named device (`-device=...`), else the first. Raises `DeviceError` that says what is missing and how to
    install it."""
    if target.kind == "opencl":
        from weft.runtime.opencl import pick_device  # start-up: 5 ms
    elif target.kind == "cuda":
        from weft.runtime.cuda import pick_device  # start-up: 5 ms
    else:
        raise DeviceError(f"weft gives the source of programs for {target.kind}, and does not run them")
    return pick_device(target.device)


def load_gpu_module(module: ModuleOp, target: Target) -> GpuLibrary:
    """Raises as `emit_program`."""
    program, host, constants = emit_program(module, target)
    return GpuLibrary(program, host, signatures_of(module), constants)


def emit_program(module: ModuleOp, target: Target) -> tuple[KernelProgram, str, dict[str, Array]]:
    """Returns the kernels in the language of `target`'s kind, the host functions as LLVM IR, and constants. Raises
    `CompileError` if kernels need a feature that the target lacks, or host code one that only kernels have."""
    kernels = [op for op in module.ops if isinstance(op, FuncOp) and kernel_of(op) is not None]
    constants = take_constants(module, kept=used_globals(kernels))
    host = emit_host_functions(module, Target.of_process(0))
    source = emit_kernels(module, target)
    launched_by = {
        op.kernel.string_value(): function.sym_name.data
        for function in module.ops
        if isinstance(function, FuncOp)
        for op in function.walk()
        if isinstance(op, LaunchOp)
    }
    alignment = {op.sym_name.data: _alignment(op) for op in module.ops if isinstance(op, FuncOp)}
    specs = tuple(
        KernelSpec(
            kernel.name,
            kernel.symbol,
            kernel.threads,
            tuple(_ARGUMENTS[parameter] for parameter in kernel.parameters),
            kernel.shared_bytes,
            alignment.get(kernel.name, {}),
            launched_by.get(kernel.name, ""),
        )
        for kernel in source.kernels
    )
    return KernelProgram(source.text, specs, target, _barriers_in_branches(module)), host, constants


def _alignment(kernel: FuncOp) -> dict[int, int]:
    found: dict[int, int] = {}
    for op in kernel.walk():
        pointer = op.source if isinstance(op, WmmaLoadOp) else op.target if isinstance(op, WmmaStoreOp) else None
        access = None if pointer is None else pointer.owner
        if isinstance(access, AccessPtrOp) and isinstance(access.buffer, BlockArgument):
            found[access.buffer.index] = WMMA_ALIGNMENT
    return found


def _barriers_in_branches(module: ModuleOp) -> bool:
    branches = (op for op in module.walk() if isinstance(op, scf.IfOp))
    return any(isinstance(inner, BarrierOp) for branch in branches for inner in branch.walk())
