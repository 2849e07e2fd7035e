"""The example programs as machine code for real architectures, through NVRTC: no driver and no GPU is needed."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from kernel_resources import resource_usage
from tiers import first_tier

from weft.backends.cuda.nvrtc import MissingCompilerError, compile_ptx, supported_architectures
from weft.support.errors import CompileError

try:
    supported_architectures()
except MissingCompilerError:
    pytest.skip("NVRTC is not installed: pip install 'weft[cuda]'", allow_module_level=True)

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "gpu"
sys.path.insert(0, str(EXAMPLES))
CASES: dict[str, Any] = {case.name: case for case in importlib.import_module("gpu_programs").CASES}
LADDER = importlib.import_module("ladder")
sys.path.remove(str(EXAMPLES))


SMALLER = {"attention": {"n": 32}}
"""Sizes for which a block's rows fit the shared memory of all architectures."""


def source(name: str, architecture: str) -> str:
    return CASES[name].build(f"cuda -arch={architecture}", SMALLER.get(name)).get_source("cuda")


@pytest.mark.parametrize("architecture", first_tier(["sm_75", "sm_80", "sm_90"], "sm_80"))
@pytest.mark.parametrize(
    "name", first_tier(LADDER.names("NVRTC", "sm_75, sm_80, sm_90"), "softmax", "matmul_warps", "attention")
)
def test_everything_stays_in_registers(name: str, architecture: str) -> None:
    for kernel, used in resource_usage(source(name, architecture), architecture).items():
        assert (used.spill_bytes, used.stack_bytes) == (0, 0), f"{kernel}: {used}"
        assert used.registers <= 255 and used.shared_bytes <= 48 << 10


IN_PTX = {
    "matmul_shared": ("ld.global.nc.v4", "st.shared.v4", "bar.sync", "fma.rn.f32"),
    "row_sum": ("shfl.sync",),
    "matmul_split_k": ("atom.global.add.f32",),
    "dot": ("shfl.sync", "atom.global.add.f32"),
}
"""What was scheduled: wide accesses, shuffles, atomic additions."""


@pytest.mark.parametrize("name", LADDER.names("NVRTC", "PTX"))
def test_what_was_scheduled_is_in_ptx(name: str) -> None:
    ptx = compile_ptx(source(name, "sm_90"), "sm_90")
    assert all(instruction in ptx for instruction in IN_PTX[name])


def test_refused_text_is_an_error_with_the_place() -> None:
    with pytest.raises(CompileError, match=r"NVRTC refuses the program for sm_80: .*(\n.*)*weft.cu\(1\): error"):
        resource_usage("this is no program", "sm_80")


def test_nvrtc_writes_to_memory_of_its_own() -> None:
    """Python shares bytes of length 1 among all of a program: an empty log must not be written into them."""
    compile_ptx('extern "C" __global__ void nothing() {}', "sm_90")
    assert b" "[0] == 32 and bytes([0x20]) == b"\x20"
