"""Every scalar and lane-wise op in kernels, against what the LLVM backend computes on edge values: CUDA C++ on the CPU,
and OpenCL C on PoCL."""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from cuda_on_cpu import compiled, launch, needs_compiler
from kernel_ops import kernel_source
from numpy.typing import NDArray
from recorded_ops import RecordedOp, has_some_types, recorded_ops
from tiers import second_tier

from weft.runtime.opencl import pick_device
from weft.support.target import Target

PRECISION = {"f16": 2.0**-9, "bf16": 2.0**-6, "f32": 2.0**-19, "f64": 2.0**-49}


@cache
def records(wanted: Callable[[dict[str, Any]], bool] | None = None) -> list[RecordedOp]:
    """The scalar ops: a lane of a vector is the same text. Whether a product and a sum are fused is up to compilers."""
    return [r for r in recorded_ops(wanted) if "are_fused" not in r.name and "lanes=8" not in r.name]


def agree(record: RecordedOp, actual: NDArray[Any]) -> bool:
    """Equal, signs of zeros included; mathematical functions may differ in the last bits."""

    def values(array: NDArray[Any]) -> NDArray[Any]:
        return (array.astype(np.uint32) << 16).view(np.float32) if record.output == "bf16" else array

    a, b = values(actual), values(record.result)
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    numbers = ~np.isnan(b)
    if "maxnum" not in record.name and not np.array_equal(np.signbit(a[numbers]), np.signbit(b[numbers])):
        return False
    if "function" in record.name:
        return bool(np.allclose(a.astype(float), b.astype(float), rtol=PRECISION[record.output], equal_nan=True))
    return bool(np.array_equal(a, b, equal_nan=True))


@needs_compiler
@pytest.mark.parametrize("wanted", [has_some_types, second_tier(None)])
def test_cuda_on_the_cpu(wanted: Callable[[dict[str, Any]], bool] | None) -> None:
    source = kernel_source(records(wanted), Target("cuda"))
    library = compiled(source.text, [kernel.symbol for kernel in source.kernels], "-O0")
    for kernel, record in zip(source.kernels, records(wanted), strict=True):
        arrays = [*(np.ascontiguousarray(array) for array in record.arrays), np.zeros_like(record.result)]
        arguments = [*(ctypes.c_void_p(array.ctypes.data) for array in arrays), ctypes.c_longlong(len(arrays[-1]))]
        launch(library, kernel.symbol, (1, 1, 1), (1, 1, 1), 0, arguments)
        assert agree(record, arrays[-1]), f"{record.name}\n{record.text}"


@pytest.mark.parametrize(("wanted", "step"), [(has_some_types, 20), second_tier(None, 9)])
def test_opencl_on_pocl(wanted: Callable[[dict[str, Any]], bool] | None, step: int) -> None:
    """Some of the ops: PoCL takes a tenth of a second for each kernel."""
    cl = pytest.importorskip("pyopencl", reason="OpenCL is not installed: pip install 'weft[opencl]'")
    context = pick_device("Portable Computing Language").context
    some = records(wanted)[::step]
    source = kernel_source(some, Target("opencl"))
    queue = cl.CommandQueue(context)
    program = cl.Program(context, source.text).build(options=["-cl-std=CL1.2"])
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    for kernel, record in zip(source.kernels, some, strict=True):
        arrays = [*(np.ascontiguousarray(array) for array in record.arrays), np.zeros_like(record.result)]
        buffers = [cl.Buffer(context, flags, hostbuf=array) for array in arrays]
        cl.Kernel(program, kernel.symbol)(queue, (1,), (1,), *buffers, np.int64(len(arrays[-1])))
        cl.enqueue_copy(queue, arrays[-1], buffers[-1])
        assert agree(record, arrays[-1]), f"{record.name}\n{record.text}"
