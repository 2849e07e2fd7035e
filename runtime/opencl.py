"""OpenCL devices, through pyopencl (docs/gpu.md)."""

from __future__ import annotations

import importlib
import time
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.runtime.call import interruptibly
from weft.runtime.devices import Device, DeviceError, DeviceKernel, Queue
from weft.support.errors import CompileError
from weft.support.gpu_machine import GpuMachine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.runtime.devices import Array, Dimensions, KernelProgram
    from weft.support.target import Target

_INSTALL = "pip install 'weft[opencl]' brings pyopencl and PoCL, which runs OpenCL on the processor"
_PORTABLE = "Portable Computing Language"
"""PoCL. With optimisation, version 3 confuses values that threads keep across barriers on both sides of a branch."""
_SOON = 0.002
"""Seconds that the queue is polled before another thread waits for it, which Ctrl-C requires."""
_SIMULATOR = "Oclgrind"
"""Used only if named, because it is slow."""


@cache
def _pyopencl() -> Any:
    try:
        return importlib.import_module("pyopencl")
    except ImportError as error:
        raise DeviceError(f"OpenCL programs run through pyopencl, which is not installed: {_INSTALL}") from error


def _all_devices() -> list[Any]:
    cl = _pyopencl()
    try:
        platforms = cl.get_platforms()
    except cl.Error:  # the loader found no driver
        return []
    found: list[Any] = []
    for platform in platforms:
        try:
            found.extend(platform.get_devices())
        except cl.Error:
            continue  # a platform without a device
    return found


def _label(device: Any) -> str:
    return f"{device.platform.name.strip()}: {device.name.strip()} ({device.version.strip()})"


@cache
def _why_unusable(device: Any) -> str:
    """Returns the reason for which the driver of a processor compiles no program, or an empty text. PoCL 3.0 refuses
    processors that are newer than its LLVM 14."""
    cl = _pyopencl()
    if device.platform.name.strip() != _PORTABLE:
        return ""
    try:
        cl.Program(cl.Context([device]), "kernel void weft_probe(void) {}").build()
    except cl.Error as error:
        return next((line for line in str(error).splitlines() if line.startswith("error: ")), str(error))
    return ""


@cache
def pick_device(name: str = "") -> OpenClDevice:
    """`name` is in a device's name, version or platform (case-insensitive); by default a GPU, else a processor. Raises
    `DeviceError`, with a list of the devices, if there is none, or if its driver compiles no programs."""
    devices = _all_devices()
    if not devices:
        raise DeviceError(f"there is no OpenCL device on this machine: {_INSTALL}")
    if name:
        chosen = [d for d in devices if name.lower() in _label(d).lower()]
    else:
        cl = _pyopencl()
        chosen = [d for d in devices if d.platform.name.strip() != _SIMULATOR]
        chosen.sort(key=lambda d: (not d.type & cl.device_type.GPU, not d.type & cl.device_type.ACCELERATOR))
    if not chosen:
        listed = ", ".join(f"'{_label(d)}'" for d in devices)
        raise DeviceError(f"no OpenCL device is named '{name}' (there are: {listed})")
    if reason := _why_unusable(chosen[0]):
        others = ", ".join(f"'{_label(d)}'" for d in devices if d != chosen[0])
        hint = f" (-device= names another one: {others})" if others else ""
        raise DeviceError(f"the driver of '{_label(chosen[0])}' compiles no program for this processor: {reason}{hint}")
    return OpenClDevice(chosen[0])


class OpenClQueue(Queue):
    def __init__(self, device: OpenClDevice) -> None:
        self.device = device
        cl = _pyopencl()
        self._cl = cl
        self._queue: Any = cl.CommandQueue(device.context, properties=cl.command_queue_properties.PROFILING_ENABLE)

    def copy_in(self, memory: Any, array: Array) -> None:
        if array.size:
            self._cl.enqueue_copy(self._queue, memory, array, is_blocking=True)

    def copy_out(self, array: Array, memory: Any) -> None:
        self.synchronize()
        try:
            if array.size:
                self._cl.enqueue_copy(self._queue, array, memory, is_blocking=True)
        except self._cl.Error as error:
            raise DeviceError(f"{self.device.description}: {error}") from error

    def launch(self, kernel: DeviceKernel, grid: Dimensions, places: int, memories: Mapping[int, Any]) -> None:
        handle, spec = kernel.handle, kernel.spec
        try:
            for position, (kind, value) in enumerate(zip(spec.arguments, kernel.values(places, memories), strict=True)):
                handle.set_arg(position, value if kind == "buffer" else _scalar(kind, value))
            size = tuple(blocks * threads for blocks, threads in zip(grid, spec.threads, strict=True))
            self._cl.enqueue_nd_range_kernel(self._queue, handle, size, spec.threads)
        except self._cl.Error as error:
            raise DeviceError(f"{self.device.description} refuses to start kernel '{spec.name}': {error}") from error

    def synchronize(self) -> None:
        try:
            marker = self.mark()
            self._queue.flush()
            done, deadline = self._cl.command_execution_status.COMPLETE, time.perf_counter() + _SOON
            while marker.command_execution_status > done:
                time.sleep(0)
                if time.perf_counter() > deadline:
                    interruptibly(self._wait, self)
                    break
            self._queue.finish()
        except self._cl.Error as error:
            raise DeviceError(f"{self.device.description}: {error}") from error

    def _wait(self) -> None:
        with suppress(self._cl.Error):  # the next wait reports it
            self._queue.finish()

    def mark(self) -> Any:
        return self._cl.enqueue_marker(self._queue)

    def seconds_between(self, start: Any, end: Any) -> float:
        end.wait()
        return (end.profile.end - start.profile.end) * 1e-9


class OpenClDevice(Device):
    def __init__(self, device: Any) -> None:
        cl = _pyopencl()
        self._cl = cl
        self._device = device
        self.context: Any = cl.Context([device])
        self.exact_memory = device.platform.name.strip() == _SIMULATOR
        self.description = _label(device)
        units = int(device.max_compute_units)
        self.model = f"{device.platform.name.strip()}: {device.name.strip()}, {units} units"
        x, y, z = (int(extent) for extent in device.max_work_item_sizes[:3])
        most = 2**31 - 1
        self.limits = GpuMachine(
            int(device.max_work_group_size), (x, y, z), (most, most, most), max_shared_bytes=int(device.local_mem_size)
        )
        self._queue = OpenClQueue(self)

    def check_target(self, target: Target) -> None:
        """Every device compiles the text for itself."""

    def load(self, program: KernelProgram) -> Mapping[str, DeviceKernel]:
        self.check_kernels(program)
        cl = self._cl
        mixes_up = program.barriers_in_branches and self._device.platform.name.strip() == _PORTABLE
        plain = program.target.opt_level == 0 or mixes_up
        options = ["-cl-std=CL1.2", *(["-cl-opt-disable"] if plain else [])]
        try:
            built = cl.Program(self.context, program.text).build(options=options)
        except cl.Error as error:
            raise CompileError(f"the OpenCL compiler of {self.description} refuses the program:\n{error}") from error
        return {spec.name: DeviceKernel(spec, cl.Kernel(built, spec.symbol), self.limits) for spec in program.kernels}

    def queue(self, stream: int | None = None) -> OpenClQueue:
        return self._queue

    def allocate(self, size: int) -> Any:
        try:
            return self._cl.Buffer(self.context, self._cl.mem_flags.READ_WRITE, size)
        except self._cl.Error as error:
            raise DeviceError(f"{self.description} has no {size} bytes of memory left: {error}") from error

    def release(self, memory: Any) -> None:
        self._queue.synchronize()
        memory.release()


def _scalar(kind: str, value: Any) -> Any:
    return np.dtype("uint16" if kind == "bfloat16" else "uint8" if kind == "bool" else kind).type(value)
