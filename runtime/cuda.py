"""NVIDIA devices, through cuda-bindings; NVRTC compiles the kernels."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from weft.backends.cuda.nvrtc import MissingCompilerError, compile_cubin
from weft.runtime.devices import Device, DeviceError, DeviceKernel, Queue
from weft.runtime.gpu_call import CUDA
from weft.support.gpu_machine import GpuMachine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.runtime.devices import Array, Dimensions, KernelProgram
    from weft.support.target import Target

_INSTALL = "pip install 'weft[cuda]'"
_DEFAULT_SHARED: Final = 48 << 10


@cache
def _driver() -> Any:
    """Raises `DeviceError` if the package or the driver is missing."""
    try:
        driver = importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        raise DeviceError(f"CUDA programs run through cuda-bindings, which is not installed: {_INSTALL}") from error
    try:
        (status,) = driver.cuInit(0)
    except RuntimeError as error:  # the library of the driver is missing
        raise DeviceError(f"there is no CUDA driver on this machine: {error}") from error
    if status != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(f"the CUDA driver of this machine finds no device: {_error_text(driver, status)}")
    return driver


def _error_text(driver: Any, status: Any) -> str:
    _, name = driver.cuGetErrorName(status)
    _, text = driver.cuGetErrorString(status)
    return f"{(name or b'unknown error').decode()} ({(text or b'').decode()})"


def _call(what: str, answer: tuple[Any, ...]) -> Any:
    status = answer[0]
    if status.value:
        raise DeviceError(f"{what}: {_error_text(_driver(), status)}")
    if len(answer) == 1:
        return None
    return answer[1] if len(answer) == 2 else answer[1:]


@cache
def pick_device(name: str = "") -> CudaDevice:
    """`name` is a number or part of a name (case-insensitive), by default the first. Raises `DeviceError`, with a list
    of the devices, if there is none."""
    driver = _driver()
    count: int = _call("counting CUDA devices", driver.cuDeviceGetCount())
    if not count:
        raise DeviceError("there is no CUDA device on this machine")
    names = [_device_name(number) for number in range(count)]
    for number, known in enumerate(names):
        if not name or name == str(number) or (not name.isdigit() and name.lower() in known.lower()):
            return CudaDevice(number)
    listed = ", ".join(f"{number} '{known}'" for number, known in enumerate(names))
    raise DeviceError(f"no CUDA device is named '{name}' (there are: {listed})")


def _device_name(number: int) -> str:
    driver = _driver()
    handle = _call("finding a CUDA device", driver.cuDeviceGet(number))
    name: bytes = _call("asking for a device's name", driver.cuDeviceGetName(128, handle))
    return name.split(b"\0")[0].decode()


class CudaQueue(Queue):
    def __init__(self, device: CudaDevice, stream: int) -> None:
        self.device = device
        self.stream = stream
        self._driver = _driver()

    def copy_in(self, memory: int, array: Array) -> None:
        if array.size:
            answer = self._driver.cuMemcpyHtoDAsync(memory, array.ctypes.data, array.nbytes, self.stream)
            _call("copying to the device", answer)

    def copy_out(self, array: Array, memory: int) -> None:
        if array.size:
            answer = self._driver.cuMemcpyDtoHAsync(array.ctypes.data, memory, array.nbytes, self.stream)
            _call("copying from the device", answer)
        self.synchronize()

    def launch(self, kernel: DeviceKernel, grid: Dimensions, places: int, memories: Mapping[int, int]) -> None:
        answer = self._driver.cuLaunchKernel(
            kernel.handle, *grid, *kernel.spec.threads, kernel.spec.shared_bytes, self.stream, places, 0
        )
        if answer[0].value:
            _call(f"starting kernel '{kernel.spec.name}'", answer)

    def synchronize(self) -> None:
        _call("waiting for the device", self._driver.cuStreamSynchronize(self.stream))

    def mark(self) -> Any:
        event = _call("making an event", self._driver.cuEventCreate(0))
        _call("recording an event", self._driver.cuEventRecord(event, self.stream))
        return event

    def seconds_between(self, start: Any, end: Any) -> float:
        _call("waiting for the device", self._driver.cuEventSynchronize(end))
        milliseconds: float = _call("measuring", self._driver.cuEventElapsedTime(start, end))
        for event in (start, end):
            _call("releasing an event", self._driver.cuEventDestroy(event))
        return milliseconds * 1e-3


class CudaDevice(Device):
    """It uses the primary context, which other libraries of this process share."""

    def __init__(self, number: int) -> None:
        driver = _driver()
        self._driver = driver
        self._handle = _call("finding a CUDA device", driver.cuDeviceGet(number))
        self._context = _call("taking the device's context", driver.cuDevicePrimaryCtxRetain(self._handle))
        self.dlpack = (CUDA, number)
        major, minor = self._attribute("COMPUTE_CAPABILITY_MAJOR"), self._attribute("COMPUTE_CAPABILITY_MINOR")
        self.capability = 10 * major + minor
        name = _device_name(number)
        self.description = f"{name} (CUDA device {number}, sm_{self.capability})"
        self.model = f"{name}, {self._attribute('MULTIPROCESSOR_COUNT')} units"
        block, grid = self._attributes("MAX_BLOCK_DIM"), self._attributes("MAX_GRID_DIM")
        threads, shared = (
            self._attribute(f"MAX_{name}") for name in ("THREADS_PER_BLOCK", "SHARED_MEMORY_PER_BLOCK_OPTIN")
        )
        self.limits = GpuMachine(threads, block, grid, max_shared_bytes=shared)
        self._activate()
        nonblocking = int(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)
        stream = _call("making a stream", driver.cuStreamCreate(nonblocking))
        self._queues: dict[int | None, CudaQueue] = {None: CudaQueue(self, int(stream))}

    def _attribute(self, name: str) -> int:
        attribute = getattr(self._driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(_call(f"asking for {name}", self._driver.cuDeviceGetAttribute(attribute, self._handle)))

    def _attributes(self, name: str) -> Dimensions:
        return self._attribute(f"{name}_X"), self._attribute(f"{name}_Y"), self._attribute(f"{name}_Z")

    def _activate(self) -> None:
        _call("entering the device's context", self._driver.cuCtxSetCurrent(self._context))

    def load(self, program: KernelProgram) -> Mapping[str, DeviceKernel]:
        self.check_target(program.target)
        self.check_kernels(program)
        self._activate()
        driver, architecture = self._driver, self._architecture(program)
        cubin = program.binary if architecture == program.target.arch else b""
        try:
            cubin = cubin or compile_cubin(program.text, architecture)
        except MissingCompilerError as error:
            raise DeviceError(error.message) from error
        module = _call("loading the program", driver.cuModuleLoadData(cubin))
        kernels: dict[str, DeviceKernel] = {}
        for spec in program.kernels:
            function = _call(f"finding kernel '{spec.name}'", driver.cuModuleGetFunction(module, spec.symbol.encode()))
            if spec.shared_bytes > _DEFAULT_SHARED:
                attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                answer = driver.cuFuncSetAttribute(function, attribute, spec.shared_bytes)
                _call(f"asking for {spec.shared_bytes} bytes of shared memory for kernel '{spec.name}'", answer)
            kernels[spec.name] = DeviceKernel(spec, function, self.limits)
        return kernels

    def _architecture(self, program: KernelProgram) -> str:
        """The target's, with its suffix, if its number is the device's; else the device's."""
        wanted = program.target.arch
        return wanted if wanted.rstrip("af") == f"sm_{self.capability}" else f"sm_{self.capability}"

    def check_target(self, target: Target) -> None:
        if int(target.arch.removeprefix("sm_").rstrip("af") or 0) > self.capability:
            raise DeviceError(f"the program is for {target.arch}, and the device is {self.description}")

    def queue(self, stream: int | None = None) -> CudaQueue:
        self._activate()
        known = self._queues.get(stream)
        if known is None:
            known = self._queues[stream] = CudaQueue(self, stream or 0)
        return known

    def allocate(self, size: int) -> int:
        self._activate()
        answer = self._driver.cuMemAlloc(size)
        return int(_call(f"{self.description} has no {size} bytes of memory left", answer))

    def release(self, memory: int) -> None:
        self._activate()
        _call("giving memory back", self._driver.cuMemFree(memory))  # waits for the device
