"""The checks of each program without a GPU: tests get the programs to run from here, and docs/gpu.md shows the table.

Tests are parametrized by `programs("interpreter", "odd")` and the like; `python docs/generators/gpu_docs.py --write`
writes the table of all programs and checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import tensor_cores
from gpu_programs import CASES, CUDA_CASES
from running import Case

PROGRAMS: list[Case] = CUDA_CASES
"""All programs; those for tensor cores run only on CUDA."""
INTERPRETED_SIZES = (19, 21, 13, 7)
"""Not multiples of any tile."""


@dataclass(frozen=True)
class Check:
    """One kind of check on one kind of target, and the programs that it covers."""

    target: str
    name: str
    how: str
    test: str
    takes: Callable[[Case], bool]
    of: Sequence[Case] = field(default_factory=lambda: CASES)


def _is_small(case: Case) -> bool:
    return max(case.fitting(*INTERPRETED_SIZES).values(), default=0) < 64


def _takes_any_size(case: Case) -> bool:
    return case.takes_any_size


def _all(_: Case) -> bool:
    return True


def _one_of(*names: str) -> Callable[[Case], bool]:
    return lambda case: case.name in names


def _both(first: Callable[[Case], bool], second: Callable[[Case], bool]) -> Callable[[Case], bool]:
    return lambda case: first(case) and second(case)


_KERNELS = "tests/numeric/backends/test_gpu_kernels.py"
_POCL = "tests/numeric/backends/test_opencl_programs.py"
_OCLGRIND = "tests/numeric/backends/test_opencl_oclgrind.py"
_SHIM = "tests/gpu/test_cuda_on_cpu.py"
_COMPILED = "tests/gpu/test_cuda_compiles.py"
_TENSOR_CORES = "tests/gpu/test_tensor_cores.py"
CHECKS = (
    Check("interpreter", "odd", "odd sizes, threads forwards, backwards and shuffled", _KERNELS, _is_small),
    Check("interpreter", "any", "one kernel for all sizes", _KERNELS, _both(_is_small, _takes_any_size)),
    Check(
        "interpreter",
        "steps",
        "threads advance from store to store, blocks at once; kernels for CUDA and for OpenCL",
        _KERNELS,
        _one_of("row_sum", "softmax", "matmul_shared", "transpose", "matmul_split_k", "dot"),
    ),
    Check(
        "interpreter",
        "barriers",
        "without one of its barriers it goes wrong",
        _KERNELS,
        _one_of("row_sum", "matmul_shared", "transpose"),
    ),
    Check(
        "interpreter",
        "atomics",
        "with plain stores for atomic operations it goes wrong",
        "tests/numeric/backends/test_atomics.py",
        _one_of("matmul_split_k", "dot"),
    ),
    Check("PoCL", "odd", "odd sizes, against NumPy", _POCL, _all),
    Check(
        "PoCL",
        "far",
        "extents of 1023, 17 and 1, in each place",
        _POCL,
        _all,
    ),
    Check("PoCL", "any", "one kernel for all sizes, those of one element too", _POCL, _takes_any_size),
    Check(
        "PoCL", "optimised", "as PoCL optimises it", _POCL, _one_of("window_sum", "batched_matmul", "attention", "dot")
    ),
    Check(
        "Oclgrind",
        "clean",
        "no race, no use of memory that nobody wrote, no access beyond an array",
        _OCLGRIND,
        # matmul_stages differs only on CUDA; attention_any takes minutes to simulate
        lambda case: case.name not in ("matmul_stages", "attention_any"),
    ),
    Check(
        "Oclgrind",
        "barriers",
        "without any of its barriers it is in the log",
        _OCLGRIND,
        _one_of("window_sum", "transpose", "softmax", "matmul_shared"),
    ),
    Check(
        "Oclgrind",
        "guards",
        "with a guard that lets one more through, too",
        _OCLGRIND,
        _one_of("vector_add", "window_sum"),
    ),
    Check(
        "Oclgrind",
        "atomics",
        "with plain stores for atomic operations, too",
        _OCLGRIND,
        _one_of("matmul_split_k", "dot"),
    ),
    Check("CUDA on a CPU", "odd", "odd sizes, three orders of threads, shared memory starts as NaN", _SHIM, _all),
    Check(
        "CUDA on a CPU",
        "barriers",
        "without any of its barriers it goes wrong",
        _SHIM,
        _one_of("window_sum", "transpose", "row_sum", "softmax", "matmul_shared", "matmul_stages"),
    ),
    Check("CUDA on a CPU", "waits", "without waiting for copies it goes wrong", _SHIM, _one_of("matmul_stages")),
    Check(
        "CUDA on a CPU",
        "tensor cores",
        "odd sizes, three orders of threads, tensor cores as the PTX ISA describes them",
        _TENSOR_CORES,
        _all,
        tensor_cores.CASES,
    ),
    Check(
        "NVRTC",
        "tensor cores",
        "machine code without spills for sm_75, sm_80, sm_90, or a refusal where an architecture lacks something",
        _TENSOR_CORES,
        _all,
        tensor_cores.CASES,
    ),
    Check("NVRTC", "sm_75, sm_80, sm_90", "machine code without spills", _COMPILED, _all),
    Check(
        "NVRTC",
        "PTX",
        "wide accesses, shuffles and atomic additions stand in PTX where scheduled",
        _COMPILED,
        _one_of("matmul_shared", "row_sum", "matmul_split_k", "dot"),
    ),
)


def programs(target: str, name: str) -> list[Case]:
    """The programs of a check."""
    (check,) = (check for check in CHECKS if (check.target, check.name) == (target, name))
    return [case for case in check.of if check.takes(case)]


def names(target: str, name: str) -> list[str]:
    """The names of the programs of a check."""
    return [case.name for case in programs(target, name)]
