"""`weft.build(..., target="c")`: sources, calls, and what is refused."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_programs import COMPILER, needs_compiler

import weft
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
    import shutil

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
