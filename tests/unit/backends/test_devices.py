"""Running programs of kernels: host code, memory, launches and arguments, on a device made of NumPy."""

import ctypes
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from cuda_on_cpu import kernel_arguments
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import weft
from weft import te
from weft.backends.c_family.targets import CudaTarget, MetalTarget, OpenCLTarget, PtxTarget
from weft.backends.llvm.emit import emit_host_functions
from weft.backends.metal.language import METAL
from weft.dialects.low_kernel import kernel_of
from weft.dialects.low_signature import signature_of
from weft.passes.low.low_legalize import LowLegalizePass
from weft.runtime import gpu_call, gpu_library
from weft.runtime.devices import (
    Device,
    DeviceError,
    DeviceKernel,
    Dimensions,
    KernelProgram,
    KernelSpec,
    MemoryPool,
    Queue,
)
from weft.runtime.gpu_call import HostFunctions, Run
from weft.runtime.gpu_library import GpuLibrary
from weft.support.call_signature import Signature
from weft.support.errors import CompileError
from weft.support.gpu_machine import GpuMachine
from weft.support.target import Target
from weft.te import ops

SCALE = """
builtin.module {
  func.func @main(%A: memref<?xf32>, %B: memref<?xf32>, %s: f32, %n: index) attributes {
      low.params = [#low.param<"A", memref<?xf32>, read, ["n"]>, #low.param<"B", memref<?xf32>, write, ["n"]>,
                    #low.param<"s", f32, read, []>], low.symbols = ["n"]} {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %T = memref.alloc(%n) : memref<?xf32>
    %g = arith.ceildivui %n, %c64 : index
    low.launch @k blocks(%g, %c1, %c1) threads(%c64, %c1, %c1) (%A, %T, %s, %n)
      : memref<?xf32>, memref<?xf32>, f32, index
    low.launch @k blocks(%g, %c1, %c1) threads(%c64, %c1, %c1) (%T, %B, %s, %n)
      : memref<?xf32>, memref<?xf32>, f32, index
    memref.dealloc %T : memref<?xf32>
    func.return
  }
  func.func @k(%A: memref<?xf32>, %B: memref<?xf32>, %s: f32, %n: index) attributes {
      low.kernel = #low.kernel<[64, 1, 1], source = "B">} {
    func.return
  }
}
"""
SPEC = KernelSpec("k", "k", (64, 1, 1), ("buffer", "buffer", "float32", "int64"))


class NumpyQueue(Queue):
    def __init__(self, device: "NumpyDevice") -> None:
        self.device = device
        self.time = 0.0

    def copy_in(self, memory: Any, array: Any) -> None:
        memory[: array.nbytes] = array.reshape(-1).view(np.uint8)

    def copy_out(self, array: Any, memory: Any) -> None:
        array.reshape(-1).view(np.uint8)[:] = memory[: array.nbytes]

    def launch(self, kernel: DeviceKernel, grid: Dimensions, places: int, memories: Mapping[int, Any]) -> None:
        a, b, s, n = kernel.values(places, memories)
        source, target = (_floats(x, n) for x in (a, b))
        count = min(n, grid[0] * kernel.spec.threads[0])
        target[:count] = source[:count] * np.float32(s)
        self.time += 1e-3

    def synchronize(self) -> None: ...

    def mark(self) -> float:
        return self.time

    def seconds_between(self, start: float, end: float) -> float:
        return end - start


def _floats(memory: Any, count: int) -> Any:
    """A buffer of the device: bytes of the pool, or an address that came with an array."""
    if isinstance(memory, int):
        return np.ctypeslib.as_array((ctypes.c_float * count).from_address(memory))
    return memory.view(np.float32)


class NumpyDevice(Device):
    kind = "opencl"
    description = model = "NumPy"
    limits = GpuMachine(1024, (1024, 1024, 64), (1000, 100, 100), max_shared_bytes=32 << 10)
    dlpack = (2, 0)

    def __init__(self) -> None:
        self.queues: dict[int | None, NumpyQueue] = {}
        self.held: list[int] = []

    def check_target(self, target: Target) -> None:
        """There are no kernels."""

    def load(self, program: KernelProgram) -> Mapping[str, DeviceKernel]:
        return {spec.name: DeviceKernel(spec, None, self.limits) for spec in program.kernels}

    def queue(self, stream: int | None = None) -> NumpyQueue:
        return self.queues.setdefault(stream, NumpyQueue(self))

    def allocate(self, size: int) -> Any:
        self.held.append(size)
        return np.full(size, 0xFF, np.uint8)

    def release(self, memory: Any) -> None:
        self.held.remove(memory.nbytes)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> NumpyDevice:
    made = NumpyDevice()
    monkeypatch.setattr(gpu_library, "device_for", lambda target: made)
    return made


def library(text: str = SCALE, target: str = "opencl") -> GpuLibrary:
    module = weft.parse(text)
    program = KernelProgram("kernels", (SPEC,), Target.parse(target))
    return GpuLibrary(program, host_source(module), signatures(module))


def host_source(module: ModuleOp) -> str:
    LowLegalizePass("opencl").apply(Context(), module)
    return emit_host_functions(module, Target.of_process(0))


def signatures(module: ModuleOp) -> list[Signature]:
    return [signature_of(op) for op in module.ops if isinstance(op, FuncOp) and kernel_of(op) is None]


def cuda_capsule(array: Any, number: int) -> object:
    capsule = array.__dlpack__()
    tensor = gpu_call._DLTensor.from_address(gpu_call._pointer_in(capsule, b"dltensor"))
    tensor.device.type, tensor.device.number = 2, number
    return capsule


class OnDevice:
    """An array that says it lies on CUDA device `number`."""

    def __init__(self, array: Any, number: int = 0) -> None:
        self.array = array
        self.number = number

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.number

    def __dlpack__(self, stream: int | None = None) -> object:
        assert stream == 1
        return cuda_capsule(self.array, self.number)


def aligned(count: int) -> Any:
    raw = np.zeros(4 * count + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + 4 * count].view(np.float32)


def test_host_code_calls_the_device() -> None:
    text = host_source(weft.parse(SCALE.replace("@main", "@scale")))
    launch = "  call void @weft_launch(ptr @k.name, i64 %g, i64 1, i64 1, i64 64, i64 1, i64 1, ptr %places"
    assert re.findall(r"define .*|.*(?:@weft_|@k\.name|store).*", text) == [
        "define void @scale(ptr %A, ptr %B, float %s, i64 %n) nounwind {",
        "  %T = call ptr @weft_alloc(i64 %bytes)",
        *_stores(0, "ptr %A", "ptr %T", "float %s", "i64 %n"),
        f"{launch})",
        *_stores(4, "ptr %T", "ptr %B", "float %s", "i64 %n"),
        f"{launch}.1)",
        "  call void @weft_free(ptr %T)",
        "declare noalias nonnull align 64 ptr @weft_alloc(i64) nounwind allocsize(0)",
        "declare void @weft_launch(ptr, i64, i64, i64, i64, i64, i64, ptr) nounwind",
        '@k.name = private constant [2 x i8] c"\\6B\\00"',
        "declare void @weft_free(ptr captures(none)) nounwind",
    ]


def _stores(first: int, *arguments: str) -> list[str]:
    """The stores of a launch's arguments, the first of which is that number in the function."""
    ends = [f".{number}" if number else "" for number in range(first, first + len(arguments))]
    lines = (
        (f"ptr %slot{end}, ptr %place{end}", f"{a}, ptr %slot{end}") for a, end in zip(arguments, ends, strict=True)
    )
    return [f"  store {line}" for pair in lines for line in pair]


HOST = """
builtin.module {
  func.func @main(%x: index, %y: index, %w: i32) attributes {
    low.params = [#low.param<"x", index, read, []>, #low.param<"y", index, read, []>, #low.param<"w", i32, read, []>],
    low.symbols = []} {
    BODY
    low.launch @k blocks(%r, %c1, %c1) threads(%c1, %c1, %c1) ()
    func.return
  }
  func.func @k() attributes {low.kernel = #low.kernel<[1, 1, 1], source = "k">} { func.return }
}
"""


class Launches(Run):
    """Notes the grids of launches, which it leaves out."""

    def __init__(self, device: Device) -> None:
        super().__init__(device.queue(), MemoryPool(device))
        self.grids: list[Dimensions] = []

    def launch(self, kernel: DeviceKernel, grid: Dimensions, block: Dimensions, slots: int) -> None:
        self.grids.append(grid)


def computed(body: str, *arguments: int) -> list[int]:
    """The values of %r with which the launches of the host function run."""
    text = HOST.replace("BODY", "%c1 = arith.constant 1 : index\n" + body)
    module = weft.parse(text)
    device = NumpyDevice()
    run = Launches(device)
    kernels = {"k": DeviceKernel(KernelSpec("k", "k", (1, 1, 1), ()), None, device.limits)}
    host = HostFunctions(host_source(module), kernels, MemoryPool(device))
    host.function(signatures(module)[0])(run, (ctypes.c_uint64 * len(arguments))(*arguments))
    return [grid[0] for grid in run.grids]


@pytest.mark.parametrize(
    ("op", "values", "expected"),
    [
        ("%r = arith.ceildivui %x, %y : index", (7, 4), 2),
        ("%r = arith.ceildivsi %x, %y : index", (-7, 4), -1),
        ("%r = arith.floordivsi %x, %y : index", (-7, 4), -2),
        ("%r = arith.divsi %x, %y : index", (-7, 4), -1),
        ("%r = arith.remsi %x, %y : index", (-7, 4), -3),
        ("%r = arith.remui %x, %y : index", (7, 4), 3),
        ("%r = arith.minsi %x, %y : index", (-7, 4), -7),
        ("%r = arith.maxui %x, %y : index", (-7, 4), -7),
        ("%r = arith.shli %x, %y : index", (3, 4), 48),
        ("%p = arith.cmpi ult, %x, %y : index\n%r = arith.select %p, %x, %y : index", (-7, 4), 4),
        ("%p = arith.cmpi slt, %x, %y : index\n%r = arith.select %p, %x, %y : index", (-7, 4), -7),
    ],
)
def test_host_arithmetic(op: str, values: tuple[int, int], expected: int) -> None:
    assert computed(op, *values, 0) == [expected]


def test_host_integers_have_their_width() -> None:
    body = "%big = arith.muli %w, %w : i32\n%r = arith.index_cast %big : i32 to index"
    assert computed(body, 0, 0, 1 << 16) == [0]
    assert computed(body, 0, 0, 46341) == [46341 * 46341 - (1 << 32)]


def test_host_loops_and_conditions_carry_values() -> None:
    body = """
    %c0 = arith.constant 0 : index
    %r = scf.for %i = %c0 to %x step %c1 iter_args(%sum = %c0) -> (index) {
      %odd = arith.andi %i, %c1 : index
      %p = arith.cmpi eq, %odd, %c1 : index
      %more = scf.if %p -> (index) { scf.yield %i : index } else { scf.yield %c0 : index }
      %next = arith.addi %sum, %more : index
      scf.yield %next : index
    }"""
    assert computed(body, 6, 0, 0) == [1 + 3 + 5]


CHOICE = """
builtin.module {
  func.func @main(%c: memref<1xi1>, %A: memref<?xf32>, %B: memref<?xf32>, %n: index) attributes {
      low.params = [#low.param<"c", memref<1xi1>, read, []>, #low.param<"A", memref<?xf32>, read, ["n"]>,
                    #low.param<"B", memref<?xf32>, write, ["n"]>], low.symbols = ["n"]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %two = arith.constant 2.0 : f32
    %p = memref.load %c[%c0] : memref<1xi1>
    scf.if %p {
      low.launch @k blocks(%c1, %c1, %c1) threads(%c64, %c1, %c1) (%A, %B, %two, %n)
        : memref<?xf32>, memref<?xf32>, f32, index
      scf.yield
    }
    func.return
  }
  func.func @k(%A: memref<?xf32>, %B: memref<?xf32>, %s: f32, %n: index) attributes {
      low.kernel = #low.kernel<[64, 1, 1], source = "B">} {
    func.return
  }
}
"""


def test_host_code_reads_what_decides_which_kernels_run(device: NumpyDevice) -> None:
    choose = library(CHOICE)["main"]
    a = np.ones(4, np.float32)
    for flag in (True, False):
        b = np.zeros(4, np.float32)
        choose(np.array([flag]), a, b)
        assert (b == 2 * flag).all()


def test_a_device_that_fails_while_a_condition_is_read(device: NumpyDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = library(CHOICE)["main"]

    def copy_out(queue: NumpyQueue, array: Any, memory: Any) -> None:
        raise DeviceError("it fell off the bus")

    monkeypatch.setattr(NumpyQueue, "copy_out", copy_out)
    with pytest.raises(DeviceError, match="fell off the bus"):
        choose(np.array([True]), np.ones(4, np.float32), np.zeros(4, np.float32))


def test_host_code_that_touches_memory_is_refused() -> None:
    text = SCALE.replace("memref.dealloc %T : memref<?xf32>", "%v = memref.load %A[%c1] : memref<?xf32>")
    message = (
        r"host code of a GPU program computes extents and starts kernels; memref\.load is for kernels: bind a loop"
    )
    with pytest.raises(CompileError, match=message):
        host_source(weft.parse(text))


def test_numpy_arrays_are_copied_in_and_out(device: NumpyDevice) -> None:
    lib = library()
    for n in (1, 64, 1000):
        a, b = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
        lib["main"](a, b, s=3.0)
        np.testing.assert_array_equal(b, a * 9)


def test_what_a_program_does_not_write_stays(device: NumpyDevice) -> None:
    text = SCALE.replace("blocks(%g,", "blocks(%c1,")
    a, b = np.ones(100, np.float32), np.full(100, 7, np.float32)
    library(text)["main"](a, b, 2.0)
    assert b[63] == 4 and (b[64:] == 7).all()


def test_device_arrays_are_used_where_they_are(device: NumpyDevice) -> None:
    lib = library()
    a, b = aligned(100), aligned(100)
    a[:] = np.arange(100)
    lib["main"](OnDevice(a), OnDevice(b), 2.0)
    np.testing.assert_array_equal(b, a * 4)
    assert set(device.queues) == {1}, "the stream of the arrays' library"
    mixed = np.zeros(100, np.float32)
    lib["main"](OnDevice(a), mixed, 2.0)
    np.testing.assert_array_equal(mixed, a * 4)


class Cupy(OnDevice):
    """An array of a library whose arrays tell quickly what they are."""

    def __init__(self, array: Any) -> None:
        super().__init__(array)
        self.data = types.SimpleNamespace(ptr=array.ctypes.data)
        self.shape, self.strides, self.dtype, self.device = array.shape, array.strides, array.dtype, "0"
        self.exports = 0

    def __dlpack__(self, stream: int | None = None) -> object:
        assert stream == 7
        self.exports += 1
        return cuda_capsule(self.array, self.number)


def test_repeated_calls_with_device_arrays_are_checked_once(
    device: NumpyDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = types.SimpleNamespace(ptr=7)
    cuda = types.SimpleNamespace(get_current_stream=lambda: stream)
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(cuda=cuda))
    Cupy.__module__ = "cupy.testing"
    main, a, b, short = library()["main"], Cupy(aligned(100)), Cupy(aligned(100)), Cupy(aligned(80))
    for factor in (2.0, 2.0, -0.0, 0.0, 2.0):
        a.array[:] += 1
        main(a, b, factor)
        np.testing.assert_array_equal(b.array, a.array * factor**2)
    assert a.exports == 3, "once for each factor"
    assert 7 in device.queues
    for _ in range(2):
        with pytest.raises(ValueError, match=r"argument 2 \('B'\): expected shape"):
            main(a, short, 2.0)


def test_views_are_copied_with_what_lies_between(device: NumpyDevice) -> None:
    text = SCALE.replace(
        '#low.param<"A", memref<?xf32>, read, ["n"]>', '#low.param<"A", memref<?xf32, strided<[2]>>, read, ["n"]>'
    )
    lib = library(text)
    whole, b = np.arange(20, dtype=np.float32), np.zeros(10, np.float32)
    lib["main"](whole[::2], b, 1.0)
    np.testing.assert_array_equal(b, whole[:10])  # the kernel of this test takes neighbours
    reversed_text = text.replace("strided<[2]>", "strided<[-1]>")
    with pytest.raises(ValueError, match=r"argument 1 \('A'\): expected strides that are not negative, got \(-4,\)"):
        library(reversed_text)["main"](whole[10::-1][:10], b, 1.0)


def test_bad_arguments_on_devices(device: NumpyDevice) -> None:
    main, a, b = library()["main"], aligned(100), aligned(100)
    wrong_device = (
        r"main: argument 'A': expected an array in this machine's memory or on NumPy, got OnDevice on CUDA device 1"
    )
    with pytest.raises(TypeError, match=re.escape(wrong_device)):
        main(OnDevice(a, 1), b, 2.0)
    with pytest.raises(
        ValueError, match=r"argument 1 \('A'\): expected memory aligned to 16 bytes, got address 0x\w+4"
    ):
        main(OnDevice(a[1:]), b[1:], 2.0)
    with pytest.raises(ValueError, match=r"argument 2 \('B'\): expected an output that shares no memory"):
        main(OnDevice(a), OnDevice(a), 2.0)
    with pytest.raises(ValueError, match=r"argument 2 \('B'\): expected shape \(n,\) with n = 100"):
        main(OnDevice(a), OnDevice(b[:80]), 2.0)
    with pytest.raises(TypeError, match=r"argument 1 \('A'\): expected elements of type float32, got int32"):
        main(OnDevice(a.view(np.int32)), b, 2.0)
    with pytest.raises(TypeError, match="expected 3 arguments, got 2"):
        main(a, b)


class Lying(OnDevice):
    """An array whose methods for DLPack do not fit each other, or fail."""

    def __init__(self, capsule: Any = None, negative: bool = False) -> None:
        super().__init__(aligned(100))
        self.capsule, self.negative = capsule, negative

    def __dlpack__(self, stream: int | None = None) -> object:
        return self.capsule(self.array) if self.capsule else super().__dlpack__(stream)

    def is_neg(self) -> bool:
        return self.negative


def rank_less(array: Any) -> object:
    capsule = cuda_capsule(array, 0)
    gpu_call._DLTensor.from_address(gpu_call._pointer_in(capsule, b"dltensor")).ndim = 1 << 30
    return capsule


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Lying(negative=True), "got Lying with its negative bit set"),
        (
            Lying(lambda array: array.__dlpack__()),
            "its DLPack capsule is on this machine's memory, it says CUDA device 0",
        ),
        (Lying(lambda array: 5), "Lying cannot be used: PyCapsule_GetPointer"),
        (Lying(lambda array: {}[1]), "Lying cannot be used: 1"),
        (Lying(rank_less), "its DLPack capsule has rank 1073741824"),
    ],
    ids=["negative", "another device", "no capsule", "raises", "rank"],
)
def test_what_device_arrays_say_is_checked(device: NumpyDevice, value: object, message: str) -> None:
    with pytest.raises(TypeError, match=f"main: argument 'A': .*{re.escape(message)}"):
        library()["main"](value, aligned(100), 2.0)


def test_launches_beyond_the_limits(device: NumpyDevice) -> None:
    a, b = np.zeros(64 * 1001, np.float32), np.zeros(64 * 1001, np.float32)
    with pytest.raises(DeviceError, match="kernel 'k': 1001 blocks on axis x, the device takes 1 to 1000"):
        library()["main"](a, b, 1.0)
    wide, tall = (KernelSpec("k", "k", threads, ()) for threads in ((2048, 1, 1), (1, 1, 128)))
    with pytest.raises(DeviceError, match="kernel 'k' has blocks of 2048 threads, NumPy takes 1024"):
        device.check_kernels(KernelProgram("", (wide,), Target.parse("opencl")))
    with pytest.raises(DeviceError, match="kernel 'k' has 128 threads on axis z, NumPy takes 64"):
        device.check_kernels(KernelProgram("", (tall,), Target.parse("opencl")))
    with pytest.raises(DeviceError, match="kernel 'k' is compiled for blocks of"):
        DeviceKernel(wide, None, device.limits).checked_grid((1, 1, 1), (64, 1, 1))


@pytest.mark.parametrize("kind", [DeviceError, ValueError, KeyboardInterrupt])
def test_host_code_ends_with_the_first_error_of_the_device(
    device: NumpyDevice, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    main, launches = library()["main"], []

    def refuse(*arguments: object) -> None:
        launches.append(arguments)
        raise kind(f"number {len(launches)}")

    a, b = np.ones(100, np.float32), np.zeros(100, np.float32)
    with monkeypatch.context() as patched:
        patched.setattr(NumpyQueue, "launch", refuse)
        with pytest.raises(kind, match="number 1") as raised:
            main(a, b, 2.0)
    assert len(launches) == 1 and raised.traceback[-1].name == "refuse"
    held = list(device.held)
    main(a, b, 2.0)
    assert (b == 4).all() and device.held == held, "the temporary went back to the pool"


def test_memory_that_the_device_lacks_is_an_error(device: NumpyDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    main = library()["main"]
    a, b = np.ones(1000, np.float32), np.zeros(1000, np.float32)
    allocate = NumpyDevice.allocate

    def limited(self: NumpyDevice, size: int) -> object:
        if len(self.held) == 2:
            raise DeviceError("no memory is left")
        return allocate(self, size)

    monkeypatch.setattr(NumpyDevice, "allocate", limited)
    with pytest.raises(DeviceError, match="no memory is left"):
        main(a, b, 2.0)


CONSTANT = """
  "memref.global"() {sym_name = "w", type = memref<64xf32>, initial_value = dense<3.0> : tensor<64xf32>,
                     sym_visibility = "private", constant} : () -> ()"""
CONSTANT_AS_BUFFER = """%w = memref.get_global @w : memref<64xf32>
    %W = "memref.cast"(%w) : (memref<64xf32>) -> memref<?xf32>"""


def test_constants_are_copied_to_the_device_once(device: NumpyDevice) -> None:
    text = SCALE.replace("func.func @main", f"{CONSTANT}\n  func.func @main", 1)
    text = text.replace("%c1 =", f"{CONSTANT_AS_BUFFER}\n    %c1 =", 1)
    lib = library(text.replace("(%A, %T, %s, %n)", "(%W, %T, %s, %n)"))
    a, b = np.ones(64, np.float32), np.zeros(64, np.float32)
    for _ in range(2):
        lib["main"](a, b, 2.0)
        assert (b == 12).all()
    assert device.held.count(256) == 4, "two arguments, a temporary and the constant"
    del lib
    assert not device.held


def test_an_empty_grid_starts_nothing(device: NumpyDevice) -> None:
    empty = np.zeros(0, np.float32)
    library()["main"](empty, empty.copy(), 1.0)
    assert device.queues[None].time == 0


def test_temporaries_come_from_a_pool_that_goes_with_the_library(device: NumpyDevice) -> None:
    lib = library()
    a, b = np.zeros(1000, np.float32), np.zeros(1000, np.float32)
    lib["main"](a, b, 1.0)
    held = list(device.held)
    for _ in range(3):
        lib["main"](a, b, 1.0)
    assert device.held == held and len(held) == 3
    del lib
    assert not device.held


def test_pool_gives_back_what_does_not_come_again(device: NumpyDevice) -> None:
    pool = MemoryPool(device)
    for size in range(10_000, 1_000_000, 10_000):
        pieces = [pool.allocate(size) for _ in range(3)]
        assert pool.bytes_held == sum(device.held) <= 2 * sum(capacity for _, capacity in pieces)
        for memory, capacity in pieces:
            pool.release(memory, capacity)
    asked = pool.allocations
    for memory, capacity in [pool.allocate(990_000) for _ in range(3)]:
        pool.release(memory, capacity)
    assert pool.allocations == asked
    pool.clear()
    assert not device.held and pool.bytes_held == 0


def test_pool_gives_back_what_is_free_before_it_fails(device: NumpyDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = MemoryPool(device)
    pool.release(*pool.allocate(1000))
    usual = device.allocate

    def allocate(size: int) -> Any:
        if sum(device.held) + size > 5000:
            raise DeviceError("no memory")
        return usual(size)

    monkeypatch.setattr(device, "allocate", allocate)
    memory, capacity = pool.allocate(4500)
    assert device.held == [capacity]
    with pytest.raises(DeviceError, match="no memory"):
        pool.allocate(4500)
    pool.release(memory, capacity)
    assert pool.bytes_held == capacity


def test_pool_keeps_queues_apart(device: NumpyDevice) -> None:
    pool = MemoryPool(device)
    one, capacity = pool.allocate(1000, "first")
    pool.release(one, capacity, "first")
    other, _ = pool.allocate(1000, "second")
    again, _ = pool.allocate(1010, "first")
    assert other is not one and again is one and pool.bytes_held == 2 * capacity


def test_cuda_gets_pointers_to_the_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.runtime import cuda

    seen: list[Any] = []

    def start(*given: Any) -> tuple[Any]:
        seen.append(given)
        return (types.SimpleNamespace(value=0),)

    monkeypatch.setattr(cuda, "_driver", lambda: types.SimpleNamespace(cuLaunchKernel=start))
    spec = KernelSpec("k", "k", (64, 1, 1), ("buffer", "float32", "int64", "uint8"), 99)
    kernel = DeviceKernel(spec, "function", NumpyDevice.limits)
    places = kernel_arguments(0x7F0000000100, 0x40400000, (1 << 64) - 5, 200)
    cuda.CudaQueue(cast("Any", None), 7).launch(kernel, (2, 3, 4), ctypes.addressof(places), {})
    assert seen == [("function", 2, 3, 4, 64, 1, 1, 99, 7, ctypes.addressof(places), 0)]
    assert kernel.values(ctypes.addressof(places), {}) == [0x7F0000000100, 3.0, -5, 200]


def test_times_are_the_device_s(device: NumpyDevice) -> None:
    a, b = np.zeros(10, np.float32), np.zeros(10, np.float32)
    result = library().time_evaluator("main", number=5, repeat=2)(a, b, 1.0)
    assert result.results == pytest.approx((2e-3, 2e-3))
    with pytest.raises(ValueError, match="main: time_evaluator: number: expected 1 to 1000000000, got int 0"):
        library().time_evaluator("main", number=0)


def test_without_a_device_the_source_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(target: Target) -> Device:
        raise DeviceError(f"there is no {target.kind} device on this machine")

    monkeypatch.setattr(gpu_library, "device_for", missing)
    lib = library(target="cuda -arch=sm_90")
    assert lib.get_source() == lib.get_source("cuda") == lib.imported_modules[0].get_source() == "kernels"
    assert "call void @weft_launch" in lib.get_source("host")
    with pytest.raises(CompileError, match="unknown kind of source 'opencl'"):
        lib.get_source("opencl")
    with pytest.raises(DeviceError, match="there is no cuda device on this machine"):
        lib["main"](np.zeros(1, np.float32), np.zeros(1, np.float32), 1.0)


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    from weft.runtime import cuda, opencl

    for module, function, package in ((opencl, opencl._pyopencl, "pyopencl"), (cuda, cuda._driver, "cuda-bindings")):
        function.cache_clear()
        with monkeypatch.context() as patched:
            patched.setattr(module.importlib, "import_module", missing)
            with pytest.raises(DeviceError, match=rf"{package}, which is not installed: pip install 'weft\["):
                module.pick_device("nothing is remembered under this name")
        function.cache_clear()


@pytest.mark.parametrize("printer", [CudaTarget(), PtxTarget(), OpenCLTarget(), MetalTarget()])
def test_modules_without_kernels_are_refused(printer: Any) -> None:
    kind = "cuda" if printer.name == "ptx" else printer.name
    for text, functions in (("builtin.module {}", ""), ("func.func @f() { func.return }", " (functions: @f)")):
        message = f"-t {kind} prints kernels, and the module has none{functions}: loops that are bound to blockIdx"
        with pytest.raises(CompileError, match=re.escape(message)):
            printer.emit(Context(), weft.parse(text), StringIO())


@pytest.mark.parametrize("name", ["gelu", "erf", "cbrt", "argmax"])
def test_metal_has_text_for_what_its_library_lacks(name: str) -> None:
    x = te.placeholder((300, 64), "float32", name="x")
    y = ops.argmax(x, axis=1) if name == "argmax" else getattr(ops, name)(x)
    library: Any = weft.build(te.create_func([x, y], name="f"), target="metal")
    source = library.imported_modules[0].get_source("metal")
    helpers = {"cbrt": "weft_cbrt_f32(", "argmax": "weft_shuffle_down_i64("}
    assert helpers.get(name, "f_kernel") in source
    assert not re.search(r"\berf\(|\blong long\b|\dLL\b", source)


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
def test_metal_cube_roots(tmp_path: Path) -> None:
    """The helper as C++, with the functions of Metal that it calls."""
    helper = METAL.helpers["weft_cbrt_f32"].replace("$inline", 'extern "C"')
    text = f"#include <cmath>\nusing namespace std;\nnamespace precise {{ using std::pow; }}\n{helper}\n"
    library = tmp_path / "f.so"
    subprocess.run(["c++", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(library)], input=text, text=True, check=True)
    cbrt = ctypes.CDLL(str(library)).weft_cbrt_f32
    cbrt.restype, cbrt.argtypes = ctypes.c_float, [ctypes.c_float]
    with np.errstate(over="ignore"):
        x = np.concatenate([np.geomspace(1e-37, 3e38, 500), [0, np.inf, np.nan]]).astype(np.float32)
    x = np.concatenate([x, -x])
    found = np.array([cbrt(value) for value in x], np.float32)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(x))
    np.testing.assert_allclose(found, np.cbrt(x.astype(np.float64)), rtol=3e-7)


def test_metal_gives_its_source() -> None:
    module = weft.parse((Path(__file__).resolve().parents[3] / "examples" / "gpu" / "vector_add.mlir").read_text())
    library: Any = weft.build(module, target="metal")
    assert "kernel void" in library.imported_modules[0].get_source("metal")
    with pytest.raises(DeviceError, match="weft gives the source of programs for metal, and does not run them"):
        _ = library.device
