"""Code for CPUs that have what this one lacks: it is compiled and exported, calls are refused, and no error of LLVM
ends the process."""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import weft
from weft import te
from weft.backends.llvm.compile import assembly, object_code
from weft.backends.llvm.link import link_ir
from weft.backends.llvm.object_file import object_symbols
from weft.support.cpu_instructions import FEATURES
from weft.support.errors import CompileError
from weft.support.target import Target

X86 = "llvm -mtriple=x86_64-unknown-linux-gnu"
EMPTY = "define void @f() {\n  ret void\n}\n"


def maxima(target: str) -> weft.Library:
    """Maxima of vectors, which have instructions of their own in AVX-512."""
    x = te.placeholder((256,), name="X")
    y = te.compute((8, 256), lambda i, j: te.max(x[j], te.sqrt(x[j])), name="Y")
    return weft.build(te.create_func([x, y], name="maxima"), target=target)


@pytest.mark.parametrize(
    "cpu", ["znver4", "skylake-avx512", "apple-m1", "sifive-u74 -mtriple=riscv64-unknown-linux-gnu"]
)
def test_built_and_exported_but_not_called(cpu: str, tmp_path: Path) -> None:
    library = maxima(f"llvm -mcpu={cpu} -num-threads=1")
    assert "maxima:" in library.get_source("asm")
    assert "define" in library.get_source("ll-opt")
    assert library.export(tmp_path / "f.o").stat().st_size > 0
    if not library.target.obstacle:
        library["maxima"](np.ones(256, np.float32))
        return
    with pytest.raises(CompileError, match=r"'maxima': code for \S+ cannot run in this process.*; export it"):
        library["maxima"]


def test_what_is_lacking_is_named() -> None:
    target = Target(features="+xop" if "x86_64" in Target().triple else "+sme2")
    lacking = target.features.removeprefix("+")
    if not target.obstacle:
        pytest.skip(f"this CPU has {lacking}")
    with pytest.raises(CompileError, match=rf"this CPU, \S+, lacks .*\b{lacking}\b"):
        maxima(str(target))["maxima"]


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (f"{X86} -mattr=-64bit", "64-bit code requested on a subtarget"),
        ("llvm -mtriple=riscv64-unknown-linux-gnu -mattr=+zfinx,+f", "'f' and 'zfinx' extensions are incompatible"),
        ("llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-v1 -mattr=-neon", "UNREACHABLE executed"),
    ],
)
def test_features_that_exclude_each_other(target: str, reason: str) -> None:
    with pytest.raises(CompileError, match=rf"LLVM cannot make code for .* with -mattr=.*{reason}"):
        Target.parse(target)


@pytest.mark.parametrize(
    ("target", "intrinsic", "reason"),
    [
        (f"{X86} -mcpu=haswell", "x86.avx512.mask.scalef.ps.512", "it needs avx512f"),
        (f"{X86} -mcpu=haswell", "x86.avx512.vpdpbusd.256", "it needs avx512vnni with avx512vl or avxvnni"),
        (f"{X86} -mcpu=znver4", "aarch64.neon.sdot.v4i32.v16i8", "it is an instruction of aarch64"),
        ("llvm -mcpu=cortex-a72", "aarch64.neon.sdot.v4i32.v16i8", "it needs dotprod"),
    ],
)
def test_intrinsics_that_the_target_lacks(target: str, intrinsic: str, reason: str) -> None:
    """Found in the text, before LLVM sees it."""
    assert intrinsic in FEATURES
    text = f"define void @f() {{\n  call void @llvm.{intrinsic}()\n  ret void\n}}\n"
    with pytest.raises(CompileError, match=rf"calls llvm\.{re.escape(intrinsic)}, which \S+ \(.*\) lacks: {reason}"):
        object_code(text, Target.parse(target))


UNKNOWN = """
declare <16 x float> @llvm.x86.avx512.vpermilvar.ps.512(<16 x float>, <16 x i32>)
define <16 x float> @f(<16 x float> %x, <16 x i32> %i) {
  %y = call <16 x float> @llvm.x86.avx512.vpermilvar.ps.512(<16 x float> %x, <16 x i32> %i)
  ret <16 x float> %y
}
"""


def test_an_error_of_the_back_end_is_an_error_here() -> None:
    assert "vpermilps" in assembly(UNKNOWN, Target.parse(f"{X86} -mcpu=znver4"))
    with pytest.raises(CompileError, match=r"LLVM cannot make code for haswell \(x86_64.*\): LLVM ERROR: "):
        object_code(UNKNOWN, Target.parse(f"{X86} -mcpu=haswell"))
    assert object_code(EMPTY, Target.parse(f"{X86} -mcpu=haswell"))


def test_imported_code_does_not_end_the_process(capfd: pytest.CaptureFixture[str]) -> None:
    imported = 'define void @g() {\n  call void asm sideeffect "no such instruction", ""()\n  ret void\n}\n'
    text = link_ir("declare void @g()\ndefine void @f() {\n  call void @g()\n  ret void\n}\n", [imported])
    with pytest.raises(CompileError, match=r"LLVM cannot make code for .*: LLVM ERROR: Inline asm"):
        object_code(text, Target())
    assert capfd.readouterr().err == ""


IMPOSSIBLE = """
define void @f(ptr %x, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr i64, ptr %x, i64 %i
  %v = load volatile i64, ptr %p
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done, !llvm.loop !0
done:
  ret void
}
!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.full"}
"""


def test_remarks_of_llvm_about_imported_code_stay_off_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    object_code(link_ir(EMPTY.replace("@f", "@g"), [IMPOSSIBLE]), Target())
    assert capfd.readouterr().err == ""


def test_unrolled_loops_of_many_iterations_stay_loops(capfd: pytest.CaptureFixture[str]) -> None:
    """LLVM would take minutes to repeat so much, or warn that it has not."""
    x = te.placeholder((4,), name="X")
    k = te.reduce_axis((0, 60_000), name="k")
    sch = weft.Schedule(te.create_func([x, te.compute((1,), lambda i: te.sum(x[k % 4], axis=k), name="Y")], name="f"))
    sch.unroll(sch.get_loops("Y")[1])
    assert weft.build(sch.mod, default_schedule=False)["f"](np.ones(4, np.float32)) == 60_000
    assert capfd.readouterr().err == ""


def _defined_in_a_child() -> tuple[str, ...]:
    table = object_symbols(object_code(EMPTY, Target.parse(f"{X86} -mcpu=haswell")))
    assert table is not None
    return table.defined


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes cannot be forked here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_processes_have_workers_of_their_own() -> None:
    assert _defined_in_a_child() == ("f",)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.apply(_defined_in_a_child) == ("f",)
    assert _defined_in_a_child() == ("f",)


def under(cpu: str, program: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "WEFT_HOST_CPU": cpu}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.skipif(Target().architecture != "x86_64", reason="names CPUs of x86")
def test_the_host_can_be_another_cpu() -> None:
    """Everything is chosen for it; the parts of the runtime are for the CPU there is."""
    program = """if True:
        import numpy as np, weft
        from weft import te
        target = weft.Target()
        print(target.cpu, target.vector_bytes, target.has_feature("avx2"), target.l2_bytes)
        x = te.placeholder((256,), name="X")
        library = weft.build(te.create_func([x, te.compute((256,), lambda i: x[i] + 1.0, name="Y")], name="f"))
        print("%zmm" in library.get_source("asm"), "%ymm" in library.get_source("asm"))
        try:
            print(library["f"](np.ones(256, np.float32)).sum())
        except weft.CompileError as error:
            print(error)
    """
    caches = Target().l2_bytes
    old = under("x86-64-v2", program).stdout.splitlines()
    assert old == [f"x86-64-v2 16 False {caches}", "False False", "512.0"]
    new = under("znver4", program).stdout.splitlines()
    assert new[:2] == [f"znver4 64 True {caches}", "True False"]
    assert new[2] == "512.0" or "code for znver4 cannot run in this process: this CPU, " in new[2]
    refused = under("znver44", "import weft; weft.Target()").stderr
    assert "WEFT_HOST_CPU: unknown CPU 'znver44' for x86_64-" in refused
