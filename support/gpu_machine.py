"""Limits of kernels on a GPU.

Sources: CUDA C++ Programming Guide (table "Technical Specifications per Compute Capability"), OpenCL 1.2 specification
(minimum of a device) and Apple's Metal feature set tables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from weft.support.errors import CompileError, did_you_mean

GPU_KINDS: Final = ("cuda", "opencl", "metal")
"""Kinds of target whose programs are kernels and the host code that launches them."""


@dataclass(frozen=True)
class GpuMachine:
    """Sizes are in bytes."""

    max_threads_per_block: int = 1024
    max_block: tuple[int, int, int] = (1024, 1024, 64)
    """Maximum threads of a block along x, y and z."""
    max_grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    """Maximum blocks of a grid along x, y and z."""
    shared_bytes: int = 48 << 10
    """Shared memory that a block may declare."""
    max_shared_bytes: int = 48 << 10
    """Shared memory that a launch may request for a block."""
    warp_size: int = 32
    """Threads that run in lockstep and exchange values by shuffles."""
    registers_per_thread: int = 255
    sector_bytes: int = 32
    """Bytes per transaction of device memory."""
    word_bytes: int = 4
    """Bytes of a register, and of a shared-memory bank's access per cycle."""
    banks: int = 32
    """Banks of shared memory."""
    has_async_copy: bool = False
    """Whether copies from device memory to shared memory can run asynchronously."""
    tensor_cores: frozenset[str] = frozenset()
    """Instructions of the tensor cores: `wmma f16`, `mma.sync m16n8k16 bf16`, and `ldmatrix` for their operands."""

    def __post_init__(self) -> None:
        for name in ("max_threads_per_block", "shared_bytes", "max_shared_bytes", "warp_size"):
            value: int = getattr(self, name)
            if value < 1:
                raise CompileError(f"target option {name.replace('_', '-')} must be positive, got {value}")


_CUDA_SHARED_KIB: Final = {
    **{60: 48, 61: 48, 62: 48, 70: 96, 72: 96, 75: 64, 80: 163, 86: 99, 87: 163, 88: 99, 89: 99},
    **{90: 227, 100: 227, 101: 227, 103: 227, 110: 227, 120: 99, 121: 99},
}
"""Maps a compute capability, times ten, to the KiB of shared memory that a launch may request for a block."""

CUDA_DEVICES: Final = {
    "nvidia/a100": "sm_80", "nvidia/h100": "sm_90", "nvidia/t4": "sm_75", "nvidia/v100": "sm_70",
    "nvidia/tesla-p100": "sm_60", "nvidia/tesla-v100": "sm_70", "nvidia/geforce-rtx-3070": "sm_86",
    "nvidia/geforce-rtx-3090": "sm_86", "nvidia/geforce-rtx-4090": "sm_89", "nvidia/rtx-a6000": "sm_86",
}  # fmt: skip
"""Architectures of devices of NVIDIA, by their names in TVM."""
DEFAULT_ARCHITECTURES: Final = {"cuda": "sm_80", "opencl": "", "metal": ""}


def cuda_capability(architecture: str) -> int:
    """Returns 90 for `sm_90` and `sm_90a`. Raises `CompileError` for an unknown architecture."""
    known = [f"sm_{number}" for number in _CUDA_SHARED_KIB]
    match = re.fullmatch(r"sm_(\d+)[af]?", architecture)
    if match is None or int(match[1]) not in _CUDA_SHARED_KIB:
        raise CompileError(f"unknown architecture '{architecture}' of target cuda{did_you_mean(architecture, known)}")
    return int(match[1])


def _tensor_cores(capability: int) -> frozenset[str]:
    """Source: PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions", target notes of each instruction."""
    since = {
        **{"wmma f16": 70, "wmma bf16": 80, "ldmatrix": 75, "mma.sync m16n8k8 f16": 75},
        **{"mma.sync m16n8k16 f16": 80, "mma.sync m16n8k16 bf16": 80},
    }
    return frozenset(name for name, first in since.items() if capability >= first)


def gpu_machine(kind: str, architecture: str) -> GpuMachine:
    """Raises `CompileError` for an unknown architecture."""
    if kind == "cuda":
        capability = cuda_capability(architecture)
        return GpuMachine(
            max_shared_bytes=_CUDA_SHARED_KIB[capability] << 10,
            has_async_copy=capability >= 80,
            tensor_cores=_tensor_cores(capability),
        )
    if architecture:
        raise CompileError(f"target {kind} has no architectures, got -arch={architecture}")
    if kind == "opencl":
        limit = 2**31 - 1
        return GpuMachine(
            max_block=(1024, 1024, 1024),
            max_grid=(limit, limit, limit),
            shared_bytes=32 << 10,
            max_shared_bytes=32 << 10,
        )
    return GpuMachine(max_block=(1024, 1024, 1024), shared_bytes=32 << 10, max_shared_bytes=32 << 10)
