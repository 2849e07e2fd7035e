"""A CUDA device that is none: kernels are compiled for the CPU with `tests/gpu/cuda_shim.h`, see there."""

import ctypes
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from weft.runtime import gpu_library
from weft.runtime.devices import Device, DeviceError, DeviceKernel, KernelProgram, Queue
from weft.support.gpu_machine import GpuMachine
from weft.support.target import Target

SHIM = Path(__file__).resolve().parents[1] / "gpu" / "cuda_shim.h"
COMPILER = shutil.which("g++") or shutil.which("c++")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++, c++) is on the PATH")
ORDERS = (0, 1, 7)
"""Forwards, backwards, shuffled."""


def compiled(text: str, symbols: Sequence[str], optimize: str = "-O1") -> ctypes.CDLL:
    """CUDA C++ for this CPU. Raises `AssertionError` with the compiler's words."""
    assert COMPILER is not None
    text = with_tensor_cores(
        with_late_copies(text.replace("extern __shared__ __align__(32) unsigned char weft_shared[];", ""))
    )
    source = f'#include "{SHIM}"\n{text}\n' + "".join(f"SHIM_KERNEL({symbol})\n" for symbol in symbols)
    with tempfile.TemporaryDirectory(prefix="weft-cuda-") as folder:
        path = Path(folder, "kernels.cc")
        path.write_text(source)
        library = Path(folder, "kernels.so")
        flags = [
            "-std=c++17",
            optimize,
            "-w",
            "-fno-strict-aliasing",
            "-fwrapv",
            "-ffp-contract=off",
            "-fPIC",
            "-shared",
        ]
        command = [COMPILER, *flags, str(path), "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{done.stderr[:4000]}\n{text}"
        return ctypes.CDLL(str(library))


def with_late_copies(text: str) -> str:
    """The helper functions for asynchronous copies, which copy at once on a CPU, as the shim has them."""
    text = re.sub(r"#else\n  \*\(\w+ \*\)target = .*\n#endif", "#endif", text)
    text = re.sub(
        r"(weft_async_copy_(\d+)\(void \*target, const void \*source\) \{\n)",
        r"\1  shim_async_copy(target, source, \2);\n",
        text,
    )
    text = re.sub(r"(weft_async_commit\(\) \{\n)", r"\1  shim_async_commit();\n", text)
    return re.sub(r"(weft_async_wait\(\) \{\n)", r"\1  shim_async_wait(groups);\n", text)


def with_tensor_cores(text: str) -> str:
    """The helper functions for tensor cores, which are PTX, as the shim has them."""

    def load(match: re.Match[str]) -> str:
        role, order, *shape, element = match[2], match[3], *map(int, match[4].split("x")), match[5]
        m, n, k = shape
        rows, columns = (m, k) if role == "a" else (k, n)
        if order == "col":
            rows, columns = columns, rows
        count = 16 if element == "f16" else rows * columns // 32
        return f"{match[1]}  shim_wmma_load<{rows}, {columns}, {count}>(fragment, tile, rows);\n"

    def multiply(match: re.Match[str]) -> str:
        flags = ", ".join(str(flag).lower() for flag in (match[2] == "col", match[3] == "col", match[5] == "bf16"))
        return f"{match[1]}  shim_wmma_mma<{match[4].replace('x', ', ')}, {flags}>(c, a, b);\n"

    text = re.sub(r"(void weft_wmma_load_(a|b)_(row|col)_([\dx]+)_(b?f16)_\w+\(.*\n)", load, text)
    text = re.sub(
        r"(void weft_wmma_store_(\d+)x(\d+)x\d+_f32_\w+\(.*\n)",
        r"\1  shim_wmma_store<\2, \3>(fragment, tile, rows);\n",
        text,
    )
    text = re.sub(r"(void weft_wmma_mma_(row|col)_(row|col)_([\dx]+)_(b?f16)\(.*\n)", multiply, text)
    text = re.sub(
        r"(void weft_ldmatrix_x(\d)(_trans)?\(.*\n)",
        lambda match: f"{match[1]}  shim_ldmatrix<{match[2]}, {str(match[3] is not None).lower()}>(fragment, row);\n",
        text,
    )
    return re.sub(
        r"(void weft_mma_m16n8k16_(b?f16)\(.*\n)",
        lambda match: f"{match[1]}  shim_mma<{str(match[2] == 'bf16').lower()}>(c, a, b);\n",
        text,
    )


def launch(library: ctypes.CDLL, symbol: str, grid: Any, block: Any, order: int, arguments: Sequence[Any]) -> None:
    """Run a kernel; arguments are ctypes values. Raises `DeviceError` when threads do not meet."""
    function = getattr(library, f"shim_launch_{symbol}")
    function.restype = ctypes.c_char_p
    places = (ctypes.c_void_p * max(len(arguments), 1))(*(ctypes.addressof(argument) for argument in arguments))
    error = function((ctypes.c_int * 3)(*grid), (ctypes.c_int * 3)(*block), order, places)
    if error is not None:
        raise DeviceError(f"kernel '{symbol}': {error.decode()}")


NUMBERS = {
    **{"bool": ctypes.c_bool, "int8": ctypes.c_int8, "int16": ctypes.c_int16, "int32": ctypes.c_int32},
    **{"int64": ctypes.c_int64, "float32": ctypes.c_float, "float64": ctypes.c_double},
}


def kernel_arguments(*bits: int) -> Any:
    """Pointers to the arguments of a kernel as host code passes them."""
    slots = (ctypes.c_uint64 * len(bits))(*bits)
    places = (ctypes.c_void_p * len(bits))(*(ctypes.addressof(slots) + 8 * at for at in range(len(bits))))
    places.slots = slots
    return places


class CpuQueue(Queue):
    """Work is done at once."""

    def __init__(self, device: "CudaOnCpu") -> None:
        self.device = device

    def copy_in(self, memory: Any, array: Any) -> None:
        ctypes.memmove(memory, array.ctypes.data, array.nbytes)

    def copy_out(self, array: Any, memory: Any) -> None:
        ctypes.memmove(array.ctypes.data, memory, array.nbytes)

    def launch(self, kernel: DeviceKernel, grid: Any, places: int, memories: Mapping[int, Any]) -> None:
        values = [
            ctypes.c_void_p(ctypes.addressof(value)) if kind == "buffer" else NUMBERS[kind](value)
            for kind, value in zip(kernel.spec.arguments, kernel.values(places, memories), strict=True)
        ]
        launch(kernel.handle, kernel.spec.symbol, grid, kernel.spec.threads, self.device.order, values)

    def synchronize(self) -> None:
        """Nothing is left to do."""

    def mark(self) -> float:
        return time.perf_counter()

    def seconds_between(self, start: float, end: float) -> float:
        return end - start


class CudaOnCpu(Device):
    """One order of threads. `change` may alter the text before it is compiled."""

    kind = "cuda"
    description = model = "CUDA on the CPU"
    limits = GpuMachine(1024, (1024, 1024, 64), (2**31 - 1, 65535, 65535), max_shared_bytes=227 << 10)
    exact_memory = True

    def __init__(self, order: int, change: Any = None) -> None:
        self.order = order
        self._change = change or (lambda text: text)
        self._queue = CpuQueue(self)

    def check_target(self, target: Target) -> None:
        """A CPU runs what every architecture runs."""

    def load(self, program: KernelProgram) -> Mapping[str, DeviceKernel]:
        library = compiled(self._change(program.text), [spec.symbol for spec in program.kernels])
        return {spec.name: DeviceKernel(spec, library, self.limits) for spec in program.kernels}

    def queue(self, stream: int | None = None) -> CpuQueue:
        return self._queue

    def allocate(self, size: int) -> Any:
        memory = (ctypes.c_char * (size + 32))()
        offset = -ctypes.addressof(memory) % 32
        part = (ctypes.c_char * max(size, 1)).from_buffer(memory, offset)
        ctypes.memset(part, 0xFF, size)
        return part

    def release(self, memory: Any) -> None:
        """Python does that."""


@contextmanager
def cuda_on_cpu(order: int, change: Any = None) -> Iterator[CudaOnCpu]:
    """While this lasts, CUDA programs are loaded on a CPU."""
    device = CudaOnCpu(order, change)
    usual = gpu_library.device_for
    gpu_library.device_for = lambda target: device
    try:
        yield device
    finally:
        gpu_library.device_for = usual


def errors(case: Any, *several: dict[str, int], change: Any = None, dynamic: bool = False) -> list[float]:
    """The errors of a program of the examples against NumPy for sizes, in each order of threads; infinite when threads
    do not meet. `change` changes the text of kernels; `dynamic`: one kernel for all sizes."""
    found: list[float] = []
    with cuda_on_cpu(ORDERS[0], change) as device:
        function = case.build("cuda -arch=sm_80", several[0], dynamic)["main"]
        for sizes in several:
            for device.order in ORDERS:
                arguments, expected = case.arguments(sizes)
                try:
                    function(*arguments)
                except DeviceError:
                    found.append(float("inf"))
                    continue
                found.append(case.error(arguments[-1], expected))
    return found
