"""`weft.build(..., target="c")`: sources, calls, and what is refused."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from platform import machine

import numpy as np
import pytest
from c_programs import COMPILER, needs_compiler

import weft
from weft import te
from weft.runtime import c_compiler

TEXT = """
func.func @main(%A: memref<?x8xf32>, %s: f32, %B: memref<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %A, %c0 : memref<?x8xf32>
  tir.assume_shape %B[%m] : memref<?x8xf32>
  tir.for %i in %m { tir.for %j in 8 {
    tir.block "B" iters(%vi: spatial<%m>, %vj: spatial<8>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : memref<?x8xf32>
      %b = arith.mulf %a, %s : f32
      memref.store %b, %B[%vi, %vj] : memref<?x8xf32>
    } } }
  func.return
}"""


def test_sources_need_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_compiler, "_C_COMPILERS", ("no-such-compiler",))
    library = weft.build(weft.parse(TEXT.replace("@main", "@scale")), target="c")
    assert isinstance(library, weft.Library) and list(library) == ["scale"]
    assert "void scale(const float *restrict A, float s, float *restrict B, int64_t m)" in library.get_source("c")
    assert "// @scale(A: memref<?x8xf32> [m] read, s: f32, B: memref<?x8xf32> [m] write) for m\n" in library.get_source(
        "h"
    )
    with pytest.raises(
        weft.CompileError, match=r"is compiled where it runs, and there is no compiler for it: none of no-"
    ):
        library["scale"]
    with pytest.raises(weft.CompileError, match=r"unknown kind of source 'll'.*'c', 'h'"):
        library.get_source("ll")
    with pytest.raises(weft.CompileError, match="no function 'scal', did you mean 'scale'"):
        library["scal"]


@needs_compiler
def test_calls_are_checked_like_those_of_llvm() -> None:
    library = weft.build(weft.parse(TEXT), target="c")
    a = np.arange(40, dtype=np.float32).reshape(5, 8)
    b = np.zeros_like(a)
    library["main"](a, 2.0, b)  # `main` is another name in C
    np.testing.assert_array_equal(b, 2 * a)
    with pytest.raises(TypeError, match="float64"):
        library["main"](a.astype(np.float64), 2.0, b)
    with pytest.raises(ValueError, match="B"):
        library["main"](a, 2.0, b[:4].copy())
    assert library.time_evaluator("main", number=1, repeat=1)(a, 2.0, b).median > 0


@needs_compiler
@pytest.mark.parametrize("name, flags", [("use.c", ["-std=c99"]), ("use.cc", [])])
def test_the_header_serves_c_and_cpp(name: str, flags: list[str], tmp_path: Path) -> None:
    compiler = COMPILER if name.endswith(".c") else shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler is on the PATH")
    library = weft.build(weft.parse(TEXT.replace("@main", "@scale")), target="c")
    (tmp_path / "scale.h").write_text(library.get_source("h"))
    (tmp_path / name).write_text('#include "scale.h"\nvoid use(float *a, float *b) { scale(a, 2, b, 1); }\n')
    command = [compiler, *flags, "-Wall", "-Wextra", "-Werror", "-c", str(tmp_path / name), "-o", str(tmp_path / "o")]
    assert subprocess.run(command, check=False).returncode == 0


def test_imported_llvm_is_refused() -> None:
    module = weft.parse(TEXT)
    from xdsl.dialects.builtin import ArrayAttr, StringAttr

    module.attributes["low.import_llvm"] = ArrayAttr([StringAttr("define void @f() { ret void }")])
    with pytest.raises(weft.CompileError, match="comes with LLVM IR, which the C target cannot include"):
        weft.build(module, target="c")


SLOW_COMPILER = """#!/bin/sh
case "$*" in *probe.c*) exit 1;; esac
sleep 600 &
echo $! > {pid}
wait
"""


@pytest.mark.skipif(os.name != "posix", reason="compilers have process groups on POSIX systems")
@pytest.mark.parametrize("way", ["too slow", "interrupted"])
def test_a_compiler_that_does_not_end(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ended with the processes that it started, after a time that its input explains or by Ctrl-C."""
    (tmp_path / "cc").write_text(SLOW_COMPILER.format(pid=tmp_path / "pid"))
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(c_compiler, "_C_COMPILERS", ("cc",))
    if way == "too slow":
        monkeypatch.setattr(c_compiler, "LEAST_SECONDS", 0.2)
        monkeypatch.setattr(c_compiler, "BYTES_A_SECOND", 1 << 20)
        message = r"refuses the source slow\.c: cc was ended after 0 s, the limit for \d+ bytes of input"
        with pytest.raises(weft.CompileError, match=message):
            c_compiler.compile_source("int one;", tmp_path, "slow", ())
    else:

        def interrupted(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
            while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().endswith("\n"):
                time.sleep(0.01)
            monkeypatch.undo()
            raise KeyboardInterrupt

        monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            c_compiler.compile_source("int one;", tmp_path, "slow", (), str(tmp_path / "cc"))
    child = int((tmp_path / "pid").read_text())
    for _ in range(200):
        state = Path(f"/proc/{child}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.01)
    pytest.fail(f"process {child} still runs")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the time of processes is read from /proc")
@pytest.mark.parametrize("is_busy", [True, False])
def test_the_limit_is_processor_time(is_busy: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that waits for longer than the limit ends by itself; a busy one, also in a child, is ended."""
    monkeypatch.setattr(c_compiler, "LEAST_SECONDS", 0.3)
    monkeypatch.setattr(c_compiler, "_WAITING", 1e9 if is_busy else 100)
    command = "while :; do :; done" if is_busy else "sleep 0.6; exit 3"
    compile_ = ["sh", "-c", f"({command})"]
    if is_busy:
        with pytest.raises(
            weft.CompileError, match=r"it fails: sh was ended after 0 s, the limit for 0 bytes of input"
        ):
            c_compiler.finished(compile_, "it fails")
    else:
        assert c_compiler.finished(compile_, "it fails") == (3, "")


@pytest.mark.parametrize("command", ["no-such-file", "no\0name"])
def test_a_compiler_that_cannot_be_started(command: str, tmp_path: Path) -> None:
    with pytest.raises(weft.CompileError, match="cannot be started"):
        c_compiler.compile_source("int one;", tmp_path, "one", (), str(tmp_path / command))


@needs_compiler
def test_gcc_keeps_vectors_whatever_its_level(tmp_path: Path) -> None:
    """At -O3 GCC unrolled loops over lanes first, and made four times as many instructions of it."""
    compiler = shutil.which("gcc")
    if compiler is None or machine() != "x86_64":
        pytest.skip("needs gcc for x86-64")
    a = te.placeholder((64, 64), "float32", name="A")
    library = weft.build(te.create_prim_func([a, te.ops.matmul(a, a)]), target="c -mcpu=haswell -num-threads=1")
    source = library.get_source("c")
    (tmp_path / "f.c").write_text(source)
    lines: list[int] = []
    for level in ("-O2", "-O3"):
        command = [compiler, level, "-ftree-vectorize", "-march=haswell", "-ffp-contract=fast", "-S"]
        subprocess.run([*command, str(tmp_path / "f.c"), "-o", str(tmp_path / "f.s")], check=True)
        text = (tmp_path / "f.s").read_text()
        assert len(re.findall(r"vfmadd\w+ps\s.*%ymm", text)) >= 12, level
        lines.append(text.count("\n"))
    assert lines[1] < 2 * lines[0]
