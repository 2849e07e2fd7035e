"""Functions outside of the module: LLVM IR and C sources that come along, and what is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import weft
from weft.backends.llvm.object_file import object_symbols
from weft.runtime import c_compiler

TILES = """
func.func private @add_tile(!ptr_xdsl.ptr, !ptr_xdsl.ptr, index, index, f32) -> i32 attributes {low.pure}
func.func @f(%A: memref<64x32xf32>, %C: memref<64x32xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %i in 8 { tir.for %j in 4 {
    tir.block "C" iters(%vi: spatial<8>, %vj: spatial<4>) = [%i, %j] {
      %x = affine.apply affine_map<(d0) -> (d0 * 8)>(%vi)
      %y = affine.apply affine_map<(d0) -> (d0 * 8)>(%vj)
      %p = low.access_ptr %A[%x, %y] sizes [8, 8] read : memref<64x32xf32>
      %q = low.access_ptr %C[%x, %y] sizes [8, 8] write : memref<64x32xf32>
      %s = low.stride %A {dimension = 0} : memref<64x32xf32>
      %t = low.stride %C {dimension = 0} : memref<64x32xf32>
      %r = func.call @add_tile(%p, %q, %s, %t, %one) : (!ptr_xdsl.ptr, !ptr_xdsl.ptr, index, index, f32) -> i32
    } } }
  func.return
}"""
C_SOURCE = """
#include <stdint.h>
int add_tile(const float *a, float *c, int64_t from, int64_t to, float x) {
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j) c[i * to + j] = a[i * from + j] + x;
  return 0;
}
"""
LLVM_SOURCE = """
define i32 @add_tile(ptr %a, ptr %c, i64 %stride, i64 %stride.to, float %x) {
entry:
  br label %rows
rows:
  %i = phi i64 [ 0, %entry ], [ %i.next, %row ]
  br label %columns
columns:
  %j = phi i64 [ 0, %rows ], [ %j.next, %columns ]
  %start = mul i64 %i, %stride
  %at = add i64 %start, %j
  %from = getelementptr float, ptr %a, i64 %at
  %start.to = mul i64 %i, %stride.to
  %at.to = add i64 %start.to, %j
  %to = getelementptr float, ptr %c, i64 %at.to
  %value = load float, ptr %from
  %sum = fadd float %value, %x
  store float %sum, ptr %to
  %j.next = add i64 %j, 1
  %more = icmp slt i64 %j.next, 8
  br i1 %more, label %columns, label %row
row:
  %i.next = add i64 %i, 1
  %more.rows = icmp slt i64 %i.next, 8
  br i1 %more.rows, label %rows, label %exit
exit:
  ret i32 0
}
"""


def scheduled(pragma: str, source: str) -> weft.Schedule:
    sch = weft.Schedule(weft.parse(TILES))
    i = sch.get_loops("C")[0]
    sch.annotate(i, pragma, source)
    sch.parallel(i)
    return sch


def check(sch: weft.Schedule, target: str = "llvm") -> None:
    a, c = np.random.default_rng(0).random((64, 32), "float32"), np.zeros((64, 32), "float32")
    weft.build(sch.mod, target)["f"](a, c)
    np.testing.assert_array_equal(c, a + 1)


needs_compiler = pytest.mark.skipif(
    not any(map(c_compiler.shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler"
)


@pytest.mark.parametrize("target", ["llvm", "llvm -opt-level=0"])
def test_llvm_text_is_linked_in(target: str) -> None:
    sch = scheduled("pragma_import_llvm", LLVM_SOURCE)
    check(sch, target)
    assert "call i32 @add_tile" not in weft.build(sch.mod).get_source("ll-opt")  # it is inlined


@needs_compiler
def test_c_source_is_compiled() -> None:
    check(scheduled("pragma_import_c", C_SOURCE))


@needs_compiler
@pytest.mark.parametrize("target", ["llvm -num-threads=2", "llvm -num-threads=2 -opt-level=0"])
@pytest.mark.parametrize("pragma", ["pragma_import_c", "pragma_import_llvm"])
def test_exports_bring_what_comes_along(pragma: str, target: str, tmp_path: Path) -> None:
    source = C_SOURCE if pragma == "pragma_import_c" else LLVM_SOURCE
    library = weft.build(scheduled(pragma, source).mod, target)
    loaded = weft.load(library.export(tmp_path / "libf.so"))
    a, c = np.random.default_rng(0).random((64, 32), "float32"), np.zeros((64, 32), "float32")
    loaded["f"](a, c)
    np.testing.assert_array_equal(c, a + 1)
    table = object_symbols(library.export(tmp_path / "f.o").read_bytes())
    assert table is None or ("f" in table.defined and "add_tile" not in table.undefined)


@needs_compiler
def test_what_the_c_compiler_refuses_is_told() -> None:
    with pytest.raises(weft.CompileError, match="the C compiler refuses the source") as caught:
        check(scheduled("pragma_import_c", "int add_tile("))
    assert "error:" in str(caught.value)


@pytest.mark.parametrize(
    ("source", "language"), [("int f() { return 1; }", "C"), ('extern "C" int f() { return 1; }', r"C\+\+")]
)
def test_no_compiler(monkeypatch: pytest.MonkeyPatch, source: str, language: str) -> None:
    monkeypatch.setattr(c_compiler.shutil, "which", lambda name: None)
    with pytest.raises(weft.CompileError, match=f"comes with a {language} source, and there is no compiler for it"):
        c_compiler.compiled_symbols(f"// {language}\n{source}")


def test_an_unknown_function_is_named() -> None:
    with pytest.raises(weft.CompileError, match=r"calls functions that are neither defined.*'add_tile'"):
        weft.build(weft.parse(TILES))


def test_what_a_pointer_gives_access_to_is_a_write() -> None:
    """Producers and consumers are found through pointers, and pointers keep their buffers."""
    text = TILES.replace("%C: memref<64x32xf32>) {", "%C: memref<64x32xf32>, %D: memref<64x32xf32>) {").replace(
        "  func.return",
        """  tir.for %i in 64 { tir.for %j in 32 { tir.block "D" iters(%vi: spatial<64>, %vj: spatial<32>) = [%i, %j] {
      %c = memref.load %C[%vi, %vj] : memref<64x32xf32>
      memref.store %c, %D[%vi, %vj] : memref<64x32xf32>
    } } }
  func.return""",
    )
    sch = weft.Schedule(
        weft.parse(
            text.replace("%C: memref<64x32xf32>, ", "").replace(
                "  tir.for %i in 8", "  %C = memref.alloc() : memref<64x32xf32>\n  tir.for %i in 8"
            )
        )
    )
    assert [b.value.name_hint for b in sch.get_consumers("C")] == ["d"]
    assert [b.value.name_hint for b in sch.get_producers("D")] == ["c"]
    with pytest.raises(weft.ScheduleError, match="a pointer into C is taken"):
        sch.reverse_compute_inline("D")
    with pytest.raises(weft.ScheduleError, match=r"stores|pointer"):
        sch.compute_inline("C")
    i, j = sch.get_loops("C")
    sch.reverse_compute_at("D", j)
    sch.annotate(i, "pragma_import_llvm", LLVM_SOURCE)
    a, d = np.random.default_rng(0).random((64, 32), "float32"), np.zeros((64, 32), "float32")
    library = weft.build(sch.mod)
    library["f"](a, d)
    assert "[64 x float]" in library.get_source("ll")  # C is one tile
    np.testing.assert_array_equal(d, a + 1)
