"""Programs on tensor cores, without one: run on the CPU, where a warp meets and the PTX ISA's tables say which thread
holds what, and compiled to machine code by NVRTC."""

import ctypes
import importlib
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from cuda_on_cpu import ORDERS, CudaOnCpu, cuda_on_cpu, errors, kernel_arguments, needs_compiler
from kernel_resources import resource_usage
from tiers import first_tier

from weft.backends.cuda.nvrtc import MissingCompilerError, compile_ptx, supported_architectures
from weft.runtime.devices import DeviceKernel, KernelSpec
from weft.runtime.gpu_call import Run
from weft.support.errors import CompileError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "gpu"
sys.path.insert(0, str(EXAMPLES))
CASES: dict[str, Any] = {case.name: case for case in importlib.import_module("tensor_cores").CASES}
LADDER = importlib.import_module("ladder")
sys.path.remove(str(EXAMPLES))
BARRIER = "__syncthreads();"

try:
    supported_architectures()
    MISSING = ""
except MissingCompilerError:
    MISSING = "NVRTC is not installed: pip install 'weft[cuda]'"
needs_nvrtc = pytest.mark.skipif(bool(MISSING), reason=MISSING)


@needs_compiler
@pytest.mark.parametrize(
    "name", first_tier(LADDER.names("CUDA on a CPU", "tensor cores"), "matmul_wmma", "matmul_mma_stages")
)
def test_odd_sizes(name: str) -> None:
    for error in errors(CASES[name], CASES[name].fitting(70, 33, 17)):
        assert error <= CASES[name].tolerance  # NaN is no less


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("numbers", [(1, 1, 1), (1, 70, 17), (70, 1, 64), (64, 17, 32)])
@pytest.mark.parametrize("name", ["matmul_mma", "linear_mma"])
def test_sizes_of_one_and_some_that_fit(name: str, numbers: tuple[int, ...]) -> None:
    for error in errors(CASES[name], CASES[name].fitting(*numbers)):
        assert error <= CASES[name].tolerance


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("name", ["matmul_wmma", "matmul_mma", "linear_mma"])
def test_one_kernel_for_all_sizes(name: str) -> None:
    case = CASES[name]
    for error in errors(case, case.fitting(65, 70, 40), case.fitting(1, 1, 1), dynamic=True):
        assert error <= case.tolerance


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(("name", "numbers"), [("matmul_wmma", (64, 64, 96)), ("matmul_mma_stages", (128, 128, 128))])
def test_each_missing_barrier_is_found(name: str, numbers: tuple[int, ...]) -> None:
    case = CASES[name]
    sizes = case.fitting(*numbers)
    texts: list[str] = []
    assert max(errors(CASES[name], sizes, change=lambda text: texts.append(text) or text)) <= case.tolerance
    count = texts[0].count(BARRIER)
    assert count > 0
    for number in range(count):

        def without(text: str, number: int = number) -> str:
            parts = text.split(BARRIER)
            return BARRIER.join([*parts[:number], parts[number] + parts[number + 1], *parts[number + 2 :]])

        found = errors(CASES[name], sizes, change=without)
        assert any(not error <= case.tolerance for error in found), f"barrier {number} of {count} is not missed"


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r"weft_ldmatrix_x4_trans\(B", "weft_ldmatrix_x4(B"),  # not transposed
        (r"% 16 \* 40", "% 8 * 40"),  # threads name the rows of another matrix
        (r"(weft_mma_m16n8k16_f16\(\w+ \+ \(.*\)), (\w+ \+ .*), (\w+ \+ .*)\);", r"\1, \3, \2);"),  # b * a
    ],
)
def test_a_wrong_layout_is_a_wrong_result(old: str, new: str) -> None:
    changed: list[int] = []

    def change(text: str) -> str:
        text, count = re.subn(old, new, text)
        changed.append(count)
        return text

    found = errors(CASES["matmul_mma_stages"], CASES["matmul_mma_stages"].fitting(128, 128, 128), change=change)
    assert changed[0] > 0
    assert all(not error <= CASES["matmul_mma_stages"].tolerance for error in found)


@needs_compiler
@pytest.mark.slow
def test_tiles_that_are_not_aligned_are_found() -> None:
    """The launch ends with an error, as on a device."""
    sizes = CASES["matmul_wmma"].fitting(64, 64, 32)
    found = errors(CASES["matmul_wmma"], sizes, change=lambda text: re.sub(r"\), 48\);", "), 44);", text))
    assert found == [float("inf")] * len(ORDERS)


def test_a_launch_checks_where_tiles_start() -> None:
    spec = KernelSpec("k", "k", (32, 1, 1), ("buffer", "buffer"), alignment={1: 32})
    kernel = DeviceKernel(spec, None, CudaOnCpu.limits)
    launched: list[Any] = []
    queue: Any = SimpleNamespace(launch=lambda *given: launched.append(given))
    run = Run(queue, cast("Any", None))
    good, bad = kernel_arguments(16, 64), kernel_arguments(16, 80)
    run.launch(kernel, (1, 1, 1), (32, 1, 1), ctypes.addressof(good))
    assert launched == [(kernel, (1, 1, 1), ctypes.addressof(good), {})]
    with pytest.raises(ValueError, match=r"'k', argument 2: expected memory aligned to 32 bytes, .* got address 0x50"):
        run.launch(kernel, (1, 1, 1), (32, 1, 1), ctypes.addressof(bad))


@needs_compiler
def test_which_arguments_are_tiles() -> None:
    case = CASES["matmul_wmma"]
    with cuda_on_cpu(ORDERS[0]) as device:
        programs: list[Any] = []
        load = device.load
        device.load = lambda program: programs.append(program) or load(program)
        arguments, _ = case.arguments(case.fitting(64, 64, 32))
        case.build("cuda -arch=sm_80", case.fitting(64, 64, 32))["main"](*arguments)
    assert [dict(kernel.alignment) for kernel in programs[0].kernels] == [{2: 32}]  # C, which wmma stores to


@needs_nvrtc
@pytest.mark.parametrize("architecture", first_tier(["sm_75", "sm_80", "sm_90"], "sm_80"))
@pytest.mark.parametrize(
    "name", first_tier(LADDER.names("NVRTC", "tensor cores"), "matmul_wmma", "matmul_mma_stages", "linear_mma")
)
def test_everything_stays_in_registers(name: str, architecture: str) -> None:
    case = CASES[name]
    if architecture < case.since:
        with pytest.raises(
            CompileError, match=rf"which target cuda -arch={architecture} does not have: it has ldmatrix"
        ):
            case.build(f"cuda -arch={architecture}")
        return
    text = case.build(f"cuda -arch={architecture}").get_source("cuda")
    for kernel, used in resource_usage(text, architecture).items():
        assert (used.spill_bytes, used.stack_bytes) == (0, 0), f"{kernel}: {used}"
        assert used.registers <= 255


@needs_nvrtc
def test_what_was_scheduled_is_in_ptx() -> None:
    ptx = compile_ptx(CASES["matmul_mma_stages"].build("cuda -arch=sm_90").get_source("cuda"), "sm_90")
    per_step = 2 * 4 * 4  # tiles of a warp, two instructions each
    assert ptx.count("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") == 2 * per_step
    assert ptx.count("ldmatrix.sync.aligned.m8n8.x4.shared.b16") == 2 * 4
    assert ptx.count("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16") == 2 * 4
    assert "cp.async.cg.shared.global" in ptx and "st.global.v2.f32" in ptx
    ptx = compile_ptx(CASES["matmul_wmma_bf16"].build("cuda -arch=sm_80").get_source("cuda"), "sm_80")
    assert "wmma.load.a.sync.aligned.row.m16n16k16.shared.bf16" in ptx
    assert "wmma.mma.sync.aligned.row.row.m16n16k16.f32.bf16.bf16.f32" in ptx
    assert "wmma.store.d.sync.aligned.row.m16n16k16.global.f32" in ptx
