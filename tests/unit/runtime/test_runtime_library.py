"""Libraries, timing, and the registry of Python functions."""

import ctypes
import subprocess
import sys

import numpy as np
import pytest

from weft.runtime.library import Library
from weft.runtime.timing import BenchmarkResult
from weft.support.call_signature import ArraySpec, Signature
from weft.support.errors import CompileError, WeftError
from weft.support.target import Target
from weft.support.user_functions import get_func, register_func, registered_names, set_func, unregister_func

HOST = Target.of_process(2)

TEXT = """
declare ptr @weft_alloc(i64)
declare void @weft_free(ptr)
declare void @weft_parallel_for(ptr, ptr, i64)

define internal void @chunk(i64 %begin, i64 %end, ptr %x) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %p = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %p
  %w = fmul float %v, 2.0
  store float %w, ptr %p
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
define void @twice(ptr noalias %x, i64 %n) {
  call void @weft_parallel_for(ptr @chunk, ptr %x, i64 %n)
  ret void
}
define void @copy(ptr noalias %x, ptr noalias %y) {
  %t = call ptr @weft_alloc(i64 8192)
  %v = load float, ptr %x
  store float %v, ptr %t
  %w = load float, ptr %t
  store float %w, ptr %y
  call void @weft_free(ptr %t)
  ret void
}
"""
DOUBLE = Signature("twice", (ArraySpec("X", "float32", ("n",), "readwrite"),), ("n",))
COPY = Signature("copy", (ArraySpec("X", "float32", (1,)), ArraySpec("Y", "float32", (1,), "write")), (), 1)


@pytest.fixture(scope="module")
def library() -> Library:
    return Library({"ll": TEXT, "note": "hello"}, [DOUBLE, COPY], HOST)


def test_functions_run(library: Library) -> None:
    x = np.arange(1000, dtype=np.float32)
    library["twice"](x)
    assert np.array_equal(x, 2 * np.arange(1000))
    assert library["copy"](np.array([7], np.float32))[0] == 7
    assert list(library) == ["twice", "copy"]
    assert "copy" in library
    assert len(library) == 2


def test_function_shows_its_signature(library: Library) -> None:
    assert repr(library["copy"]) == "<weft function copy(X: float32[1], out Y: float32[1])>"
    assert library["copy"].signature == COPY
    assert "twice(inout X: float32[n])" in repr(library)
    assert str(HOST) in repr(library)


def test_function_outlives_library() -> None:
    function = Library({"ll": TEXT}, [COPY], HOST)["copy"]
    assert function(np.array([3], np.float32))[0] == 3


def test_unknown_function(library: Library) -> None:
    with pytest.raises(KeyError, match="no function 'twic', did you mean 'twice'") as error:
        library["twic"]
    assert isinstance(error.value, WeftError)
    assert str(error.value) == "error: the library has no function 'twic', did you mean 'twice'?"


def test_sources(library: Library) -> None:
    assert library.get_source() == library.get_source("ll") == TEXT
    assert "define" in library.get_source("ll-opt")
    assert "twice:" in library.get_source("asm")
    assert library.get_source("note") == "hello"
    with pytest.raises(CompileError, match="unknown kind of source 'llopt', did you mean 'll-opt'"):
        library.get_source("llopt")


def test_library_without_the_function() -> None:
    with pytest.raises(CompileError, match="no function 'triple'"):
        Library({"ll": TEXT}, [Signature("triple", ())], HOST)


def test_library_without_code() -> None:
    with pytest.raises(CompileError, match=r"a source 'll', got \['asm'\]"):
        Library({"asm": ""}, [], HOST)


def test_unknown_symbol() -> None:
    text = "declare void @missing()\ndefine void @f() {\n call void @missing()\n ret void\n}"
    with pytest.raises(CompileError, match=r"calls functions that are neither defined, .*: 'missing'"):
        Library({"ll": text}, [Signature("f", ())], HOST)


def test_given_symbols() -> None:
    seen: list[int] = []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_int64)(seen.append)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    assert address is not None
    text = "declare void @tell(i64)\ndefine void @f() {\n call void @tell(i64 42)\n ret void\n}"
    Library({"ll": text}, [Signature("f", ())], HOST, {"tell": address})["f"]()
    assert seen == [42]


def test_other_machine() -> None:
    with pytest.raises(CompileError, match="cannot run in this process"):
        Library({"ll": TEXT}, [COPY], Target.parse("llvm -mtriple=riscv64-linux-gnu"))


def test_time_evaluator(library: Library) -> None:
    x = np.ones(1, np.float32)
    result = library.time_evaluator("copy", number=5, repeat=4)(x, np.zeros(1, np.float32))
    assert len(result.results) == 4
    assert 0 < result.min <= result.median <= result.max
    assert library["copy"].time_evaluator(number=1, repeat=1, min_repeat_ms=2)(x).mean > 0


def test_time_evaluator_counts_runs(library: Library) -> None:
    x = np.ones(1, np.float32)
    library.time_evaluator("twice", number=3, repeat=2)(x)
    assert x[0] == 2.0 ** (1 + 3 * 2)


def test_time_evaluator_checks_arguments(library: Library) -> None:
    with pytest.raises(TypeError, match=r"copy: argument 1 \('X'\): expected elements of type float32, got float64"):
        library.time_evaluator("copy")(np.ones(1))
    for counts, kind, message in (
        ((0,), ValueError, "number: expected 1 to 1000000000, got int 0"),
        ((10**10,), ValueError, "number: expected 1 to 1000000000, got int 10000000000"),
        ((10**30,), ValueError, "argument 'number' takes integers of at most 64 bits, got an integer of 100 bits"),
        ((10**5000,), ValueError, "argument 'number' takes integers of at most 64 bits, got an integer of 16610 bits"),
        ((1, 10**10), ValueError, "repeat: expected 1 to 1000000, got int 10000000000"),
        ((2.5,), TypeError, "argument 'number' must be int, got 2.5 of type float"),
        ((1, None), TypeError, "argument 'repeat' must be int, got None of type NoneType"),
        ((1, 1, -1.0), ValueError, "min_repeat_ms: expected milliseconds, at least 0, got float -1.0"),
        ((1, 1, float("nan")), ValueError, "min_repeat_ms: expected milliseconds, at least 0, got float nan"),
        ((1, 1, float("inf")), ValueError, "min_repeat_ms: expected milliseconds, at least 0, got float inf"),
        ((1, 1, "1"), TypeError, "argument 'min_repeat_ms' must be float, got '1' of type str"),
    ):
        with pytest.raises(kind, match=f"time_evaluator: {message}"):
            library.time_evaluator("copy", *counts)
    with pytest.raises(KeyError, match="did you mean 'copy'"):
        library.time_evaluator("cop")


def test_benchmark_result() -> None:
    result = BenchmarkResult((1e-6, 2e-6, 6e-6))
    assert (result.mean, result.median, result.min, result.max) == pytest.approx((3e-6, 2e-6, 1e-6, 6e-6))
    assert result.std == pytest.approx(np.std(result.results))
    assert str(result) == "median 2, mean 3, std 2.16, min 1, max 6 us (3 repeats)"
    assert str(BenchmarkResult((2.0,))) == "median 2, mean 2, std 0, min 2, max 2 s (1 repeats)"
    assert "ns (1" in str(BenchmarkResult((2e-9,)))


def test_registry() -> None:
    @register_func("test.twice")
    def twice(x: int) -> int:
        return 2 * x

    assert get_func("test.twice") is twice
    assert "test.twice" in registered_names()
    with pytest.raises(CompileError, match=r"'test.twice' is registered already; override=True replaces it"):
        set_func("test.twice", print)
    set_func("test.twice", print, override=True)
    assert get_func("test.twice") is print
    with pytest.raises(CompileError, match=r"registered as 'test.twic', did you mean 'test.twice'"):
        get_func("test.twic")
    unregister_func("test.twice")
    with pytest.raises(CompileError, match=r"no function is registered as 'test.twice'"):
        unregister_func("test.twice")


def test_importing_the_runtime_loads_no_compiler() -> None:
    script = (
        "import sys, weft.runtime.library, weft.runtime.native_runtime, weft.support.user_functions\n"
        "sys.exit(any(name.startswith('llvmlite') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_scalar_that_is_an_extent_must_agree_with_the_arrays() -> None:
    import weft

    library = weft.build(
        weft.parse("""
        func.func @copy(%n: index, %A: memref<?xf32>, %B: memref<?xf32>) {
          tir.assume_shape %A[%n] : memref<?xf32>
          tir.assume_shape %B[%n] : memref<?xf32>
          tir.for %i in %n {
            tir.block "B" iters(%v: spatial<%n>) = [%i] {
              %a = memref.load %A[%v] : memref<?xf32>
              memref.store %a, %B[%v] : memref<?xf32>
            }
          }
          func.return
        }""")
    )
    a, b = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    library["copy"](5, a, b)
    np.testing.assert_array_equal(a, b)
    for wrong in (4, 6):
        with pytest.raises(ValueError, match=rf"argument 2 \('A'\): expected shape .* = {wrong} \(from 'n'\)"):
            library["copy"](wrong, a, b)
