"""`Target`: host detection, the command line spelling, and what it refuses."""

import pytest

from weft.support.errors import CompileError
from weft.support.machine import host_cores, host_cpu, host_triple
from weft.support.target import Target


def test_host_is_the_default() -> None:
    target = Target("llvm")
    assert (target.triple, target.cpu) == (host_triple(), host_cpu())
    assert target.cores == target.num_threads == host_cores()
    assert target.vector_bytes in (16, 32, 64)
    assert target.l1_bytes > 0


@pytest.mark.parametrize(
    "text",
    [
        "llvm",
        "llvm -num-threads=3 -opt-level=0 -reassociate",
        "llvm -l1-bytes=4096 -vector-registers=7",
        "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1 -mattr=+sve",
        "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=skylake-avx512 -mattr=-avx512f",
        "c",
        "cuda",
        "cuda -arch=sm_90a -max-threads-per-block=256",
        "opencl -shared-bytes=65536 -warp-size=64",
        "metal",
    ],
)
def test_printed_target_parses_back(text: str) -> None:
    target = Target.parse(text)
    assert Target.parse(str(target)) == target


def test_well_known_cpus_of_other_kinds_say_their_triple() -> None:
    for cpu, triples in {
        "haswell": ("x86_64-unknown-linux-gnu",),
        "neoverse-v1": ("aarch64-unknown-linux-gnu",),
        "apple-m1": ("arm64-apple-macosx",),
    }.items():
        target = Target.parse(f"llvm -mcpu={cpu}")
        assert target.triple in (*triples, host_triple())
        assert Target.parse(str(target)) == target
    assert Target.parse("llvm -mcpu=neoverse-v1 -mtriple=aarch64-linux-gnu").triple == "aarch64-linux-gnu"


def test_targets_are_values() -> None:
    assert {Target("llvm"), Target.parse("llvm")} == {Target("llvm")}


@pytest.mark.parametrize(
    ("cpu", "features", "width", "registers"),
    [
        ("x86-64", "", 16, 16),
        ("haswell", "", 32, 16),
        ("skylake-avx512", "", 64, 32),
        ("skylake-avx512", "-avx512f", 32, 16),
        ("x86-64", "+avx", 32, 16),
    ],
)
def test_vector_width_follows_cpu_and_features(cpu: str, features: str, width: int, registers: int) -> None:
    target = Target(triple="x86_64-unknown-linux-gnu", cpu=cpu, features=features)
    assert (target.vector_bytes, target.vector_registers) == (width, registers)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("llvn", "unknown target kind 'llvn', did you mean 'llvm'"),
        ("", "a target starts with its kind"),
        ("llvm num-threads=2", "must start with '-'"),
        ("llvm -num-thread=2", "unknown target option '-num-thread'.*did you mean 'num-threads'"),
        ("llvm -num-threads=two", "-num-threads' must be an integer, got 'two'"),
        ("llvm -num-threads", "needs a value"),
        ("llvm -num-threads=-1", "must not be negative, got -1"),
        ("llvm -opt-level=4", "opt-level must be 0, 1, 2 or 3, got 4"),
        ("llvm -opt-level=1 -opt-level=1", "occurs twice"),
        ("llvm -reassociate=maybe", "must be true or false, got 'maybe'"),
        ("llvm -mtriple=x86_65-linux", "unknown target triple 'x86_65-linux'.*did you mean 'x86_64'"),
        (
            "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=znver44",
            "unknown CPU 'znver44' .*did you mean 'znver4'",
        ),
        (
            "llvm -mtriple=x86_64-unknown-linux-gnu -mattr=+avx22",
            "unknown feature 'avx22' .*did you mean 'avx2'",
        ),
        ("llvm -mtriple=aarch64-linux-gnu -mattr=+neno", "unknown feature 'neno' .*did you mean 'neon'"),
        ("llvm -mattr=avx2", r"'avx2' must start with '\+' or '-'"),
        ("cuda -arch=sm_91", "unknown architecture 'sm_91' of target cuda, did you mean 'sm_90'"),
        ("opencl -arch=sm_90", "target opencl has no architectures, got -arch=sm_90"),
        ("llvm -arch=sm_90", "target llvm runs no kernels"),
        ("c -warp-size=32", "target c runs no kernels"),
        ("cuda -warp-size=0", "warp-size must be positive, got 0"),
    ],
)
def test_refusals_name_the_value(text: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        Target.parse(text)


def test_unknown_cpu_leaves_standard_error_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CompileError, match="unknown CPU 'nosuch'"):
        Target(cpu="nosuch")
    Target.parse("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=atom")
    assert capfd.readouterr() == ("", "")


def test_limits_of_kernels_follow_the_architecture() -> None:
    small, large = Target.parse("cuda -arch=sm_75").gpu, Target.parse("cuda -arch=sm_90").gpu
    assert small is not None and large is not None
    assert (small.max_shared_bytes, small.has_async_copy) == (64 << 10, False)
    assert (large.max_shared_bytes, large.has_async_copy) == (227 << 10, True)
    assert Target("llvm").gpu is None and not Target("c").has_kernels and Target("cuda").has_kernels


@pytest.mark.parametrize(
    ("text", "feature", "present"),
    [
        ("llvm -mcpu=cascadelake", "avx512vnni", True),
        ("llvm -mcpu=cascadelake -mattr=-avx512vnni", "avx512vnni", False),
        ("llvm -mcpu=haswell", "avx512vnni", False),
        ("llvm -mcpu=haswell -mattr=+avxvnni", "avxvnni", True),
        ("llvm -mcpu=neoverse-v1", "dotprod", True),
        ("llvm -mcpu=cortex-a72", "dotprod", False),
        ("llvm -mcpu=apple-m2", "i8mm", True),
    ],
)
def test_features_of_cpus(text: str, feature: str, present: bool) -> None:
    assert Target.parse(text).has_feature(feature) is present


def test_unknown_features_are_refused() -> None:
    with pytest.raises(CompileError, match="unknown feature 'dotprodd'"):
        Target.parse("llvm -mcpu=neoverse-v1").has_feature("dotprodd")
