"""Programs in C include the header, link what weft exports, call it and check the results."""

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exported_programs import VALGRIND, compile_c, needs_compiler, needs_valgrind, run_program

import weft
from weft import te
from weft.runtime.export import program as exporting
from weft.support.target import Target

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")


def scaled_matmul() -> weft.Schedule:
    """C[i, j] = sum over k of (A[i, k] * s + 1) * B[k, j] for any m, n, k, rows in parallel, with a temporary."""
    m, n, k = te.var("m"), te.var("n"), te.var("k")
    s = te.var("s", "float32")
    a, b = te.placeholder((m, k), "float32", name="A"), te.placeholder((k, n), "float32", name="B")
    shifted = te.compute((m, k), lambda i, j: a[i, j] * s + 1.0, name="shifted")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((m, n), lambda i, j: te.sum(shifted[i, r] * b[r, j], axis=r), name="C")
    sch = weft.Schedule(te.create_func([a, s, b, c], name="scaled_matmul"))
    for block in ("shifted", "C"):
        sch.parallel(sch.get_loops(block)[0])
    return sch


MAIN = """
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "program.h"

static int check(int64_t m, int64_t n, int64_t k) {
  float *a = malloc(m * k * sizeof *a + 1), *b = malloc(k * n * sizeof *b + 1), *c = malloc(m * n * sizeof *c + 1);
  for (int64_t i = 0; i < m * k; i++) a[i] = (float)(i % 13) - 6.0f;
  for (int64_t i = 0; i < k * n; i++) b[i] = (float)(i % 7) - 3.0f;
  scaled_matmul(a, 0.5f, b, c, m, k, n);
  int wrong = 0;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      double sum = 0;
      for (int64_t r = 0; r < k; r++) sum += (a[i * k + r] * 0.5 + 1.0) * b[r * n + j];
      if (fabs(sum - c[i * n + j]) > 1e-3) wrong++;
    }
  free(a), free(b), free(c);
  return wrong;
}

int main(void) {
  int wrong = 0;
  for (int repeat = 0; repeat < 20; repeat++) wrong += check(37, 19, 11) + check(1, 5, 0) + check(64, 1, 33);
  wrong += check(0, 3, 3) + check(200, 40, 30);
  printf("%d wrong\\n", wrong);
  return wrong != 0;
}
"""


def portable() -> Target:
    """Four threads; without the vector instructions that valgrind lacks."""
    is_x86 = Target().architecture == "x86_64"
    return Target.parse(f"llvm -num-threads=4{' -mcpu=haswell' if is_x86 else ''}")


def exported(folder: Path, *files: str, target: Target | None = None) -> weft.Library:
    library = weft.build(scaled_matmul().mod, target=target or portable())
    for file in ("program.h", *files):
        library.export(folder / file)
    return library


@needs_compiler
@pytest.mark.parametrize("file", ["program.o", "libprogram.so", "libprogram.a", "program.s"])
def test_a_c_program_calls_each_kind(file: str, tmp_path: Path) -> None:
    if file.endswith(".a") and shutil.which("ar") is None:
        pytest.skip("no ar is on the PATH")
    exported(tmp_path, file)
    assert run_program(compile_c(MAIN, [tmp_path / file], tmp_path)) == "0 wrong\n"


@needs_compiler
@needs_valgrind
def test_valgrind_finds_nothing(tmp_path: Path) -> None:
    exported(tmp_path, "program.o")
    program = compile_c(MAIN, [tmp_path / "program.o"], tmp_path)
    options = ["--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite", "--fair-sched=yes"]
    assert run_program(program, prefix=[str(VALGRIND), "-q", *options]) == "0 wrong\n"


@needs_compiler
def test_the_address_sanitizer_finds_nothing(tmp_path: Path) -> None:
    exported(tmp_path, "program.o")
    try:
        program = compile_c(MAIN, [tmp_path / "program.o"], tmp_path, "-fsanitize=address,undefined")
    except AssertionError as error:
        pytest.skip(f"the C compiler has no sanitizers: {error}")
    assert run_program(program, ASAN_OPTIONS="detect_leaks=0") == "0 wrong\n"


@needs_compiler
def test_the_header_is_cxx_too(tmp_path: Path) -> None:
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler is on the PATH")
    exported(tmp_path, "program.o")
    main = MAIN.replace("float *a = malloc", "float *a = (float *)malloc")
    main = main.replace("*b = malloc", "*b = (float *)malloc").replace("*c = malloc", "*c = (float *)malloc")
    program = compile_c(main, [tmp_path / "program.o"], tmp_path)
    assert run_program(program) == "0 wrong\n"


COUNT_THREADS = """
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
INCLUDES

static int threads(void) {
  DIR *tasks = opendir("/proc/self/task");
  int count = 0;
  for (struct dirent *entry; (entry = readdir(tasks));) count += entry->d_name[0] != '.';
  closedir(tasks);
  return count;
}

static float a[64 * 64], b[64 * 64], c[64 * 64];

int main(int argc, char **argv) {
  if (argc > 1) weft_set_num_threads(atoi(argv[1]));
  CALLS
  printf("%d", threads());
  fflush(stdout);
  if (fork() == 0) {  // a child has no workers, and starts its own
    CALLS
    printf(" %d\\n", threads());
    fflush(stdout);
    _exit(0);
  }
  int status;
  wait(&status);
  return status;
}
"""
CALL = "scaled_matmul(a, 1.0f, b, c, 64, 64, 64);"


@needs_compiler
@needs_linux
def test_the_pool_has_as_many_threads_as_asked_for(tmp_path: Path) -> None:
    exported(tmp_path, "program.o")
    text = COUNT_THREADS.replace("INCLUDES", '#include "program.h"').replace("CALLS", CALL)
    program = compile_c(text, [tmp_path / "program.o"], tmp_path)
    assert run_program(program) == "4 4\n"
    assert run_program(program, WEFT_NUM_THREADS="2") == "2 2\n"
    assert run_program(program, WEFT_NUM_THREADS="many") == "4 4\n"
    assert run_program(program, "3", WEFT_NUM_THREADS="2") == "3 3\n"
    assert run_program(program, "1") == "1 1\n"


@needs_compiler
@needs_linux
def test_objects_of_one_program_share_a_pool(tmp_path: Path) -> None:
    exported(tmp_path, "program.o")
    x = te.placeholder((4096,), "float32", name="X")
    y = te.compute((4096,), lambda i: x[i] * 2.0, name="Y")
    sch = weft.Schedule(te.create_func([x, y], name="twice"))
    sch.parallel(sch.get_loops("Y")[0])
    other = weft.build(sch.mod, target=portable())
    for file in ("other.o", "other.h"):
        other.export(tmp_path / file)
    includes = '#include "program.h"\n#include "other.h"'
    text = COUNT_THREADS.replace("INCLUDES", includes).replace("CALLS", f"{CALL} twice(a, b);")
    program = compile_c(text, [tmp_path / "program.o", tmp_path / "other.o"], tmp_path)
    assert run_program(program) == "4 4\n"


@needs_compiler
@needs_linux
def test_the_pool_without_futexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What other systems than Linux get: threads sleep on a condition."""
    monkeypatch.setattr(exporting, "FUTEX_SYSCALLS", {})
    exported(tmp_path, "program.o", "program.ll")
    text = (tmp_path / "program.ll").read_text()
    assert "@pthread_cond_wait(" in text and "@syscall(" not in text
    assert run_program(compile_c(MAIN, [tmp_path / "program.o"], tmp_path)) == "0 wrong\n"
    sleepy = COUNT_THREADS.replace("INCLUDES", '#include "program.h"').replace("CALLS", f"{CALL} usleep(2000); {CALL}")
    assert run_program(compile_c(sleepy, [tmp_path / "program.o"], tmp_path)) == "4 4\n"


@needs_compiler
def test_a_loaded_library_computes_and_checks(tmp_path: Path) -> None:
    built = exported(tmp_path, "libprogram.so", target=Target.parse("llvm -num-threads=2"))
    loaded = weft.load(tmp_path / "libprogram.so")
    assert list(loaded) == ["scaled_matmul"]
    assert loaded["scaled_matmul"].signature == built["scaled_matmul"].signature
    assert loaded.target == built.target
    a, b = np.random.rand(33, 21).astype(np.float32), np.random.rand(21, 45).astype(np.float32)
    c, expected = np.empty((33, 45), np.float32), np.empty((33, 45), np.float32)
    loaded["scaled_matmul"](a, 0.25, b, c)
    built["scaled_matmul"](a, 0.25, b, expected)
    np.testing.assert_array_equal(c, expected)
    np.testing.assert_allclose(c, (a * 0.25 + 1) @ b, rtol=1e-4)
    with pytest.raises(ValueError, match=r"scaled_matmul: argument 3 \('B'\): expected shape"):
        loaded["scaled_matmul"](a, 0.25, b[:-1], c)
    with pytest.raises(TypeError, match=r"scaled_matmul: argument 1 \('A'\)"):
        loaded["scaled_matmul"](a.astype(np.float64), 0.25, b, c)
    assert "void scaled_matmul(" in loaded.get_source("h")
    assert loaded.time_evaluator("scaled_matmul", number=1, repeat=1)(a, 0.25, b, c).mean > 0


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_conversions_of_16_bit_floats_are_part_of_the_object(dtype: str, tmp_path: Path) -> None:
    x = te.placeholder((64,), dtype, name="X")
    y = te.compute((64,), lambda i: x[i] * x[i] + x[i], name="Y")
    module = te.create_func([x, y], name="poly")
    target = Target.parse("llvm -mcpu=x86-64") if Target().architecture == "x86_64" else Target()
    library = weft.build(module, target=target)
    library.export(tmp_path / "libpoly.so")
    data: np.ndarray[Any, Any] = np.linspace(-2, 2, 64).astype(np.float16)
    if dtype == "bfloat16":  # NumPy has none: its bits
        data = (data.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    result, expected = np.empty_like(data), np.empty_like(data)
    weft.load(tmp_path / "libpoly.so")["poly"](data, result)
    library["poly"](data, expected)
    np.testing.assert_array_equal(result, expected)


@needs_compiler
def test_functions_whose_names_c_cannot_say(tmp_path: Path) -> None:
    x = te.placeholder((8,), "int32", name="int")
    y = te.compute((8,), lambda i: x[i] + 1, name="Y")
    library = weft.build(te.create_func([x, y], name="write"))
    for file in ("program.o", "program.h", "libwrite.so"):
        library.export(tmp_path / file)
    main = """
#include "program.h"
int main(void) {
  const int32_t x[8] = {41};
  int32_t y[8];
  weft_function_write(x, y);
  return y[0] == 42 && y[7] == 1 ? 0 : 1;
}
"""
    run_program(compile_c(main, [tmp_path / "program.o"], tmp_path))
    assert list(weft.load(tmp_path / "libwrite.so")) == ["write"]
