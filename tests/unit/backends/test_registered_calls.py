"""Registered Python functions, called by compiled programs, and functions of C, called by exported ones."""

import ctypes
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context

import weft
from weft import graph as G
from weft.passes.lower_graph import LowerGraphPass
from weft.support.call_signature import LONG_BYTES
from weft.support.user_functions import registered_names, unregister_func

Array = NDArray[np.float32]
COMPILER = shutil.which("cc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
MODEL = """
!x = tensor<?x4xf32, #graph.dims<n>>
!y = tensor<?x3xf32, #graph.dims<n>>
func.func @model(%x: !x, %w: tensor<4x3xf32>) -> !y {
  %h = graph.call_dps "env.linear"(%x, %w) : (!x, tensor<4x3xf32>) -> !y
  %r = graph.relu %h : !y -> !y
  %y = graph.call_dps "env.twice"(%r) : (!y) -> !y
  func.return %y : !y
}
"""
ONE = """
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %y = graph.call_dps "{}"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}}
"""
X = np.random.default_rng(3).standard_normal((5, 4)).astype(np.float32)
W = np.random.default_rng(4).standard_normal((4, 3)).astype(np.float32)
FOUR = np.arange(4, dtype=np.float32)


@pytest.fixture(autouse=True)
def functions() -> Iterator[None]:
    before = registered_names()

    @weft.register_func("env.linear")
    def linear(x: Array, w: Array, out: Array) -> None:  # pyright: ignore[reportUnusedFunction]
        np.matmul(x, w, out=out)

    @weft.register_func("env.twice")
    def twice(x: Array, out: Array) -> Array:  # pyright: ignore[reportUnusedFunction]
        return np.multiply(x, 2, out=out)  # gives `out` back, which is no value of its own

    yield
    for name in set(registered_names()) - set(before):
        unregister_func(name)


def expected(x: Array, w: Array) -> Array:
    return np.maximum(x @ w, 0) * 2


@pytest.mark.parametrize("target", ["llvm", pytest.param("c", marks=needs_compiler)])
def test_library_and_generated_code_in_one_model(target: str) -> None:
    main = weft.build(MODEL, target=target)["model"]
    for rows in (5, 0, 1):
        np.testing.assert_allclose(main(X[:rows], W), expected(X[:rows], W), rtol=1e-6)
    out = np.empty((5, 3), np.float32)
    assert main(X, W, out) is None
    np.testing.assert_allclose(out, expected(X, W), rtol=1e-6)
    # A failure is that of the innermost call alone, and leaves nothing behind.
    weft.register_func("env.twice", override=True)(lambda x, out: main(X, W) if x.shape[0] == 1 else 1 / 0)
    for rows in (1, 5):
        with pytest.raises(ZeroDivisionError):
            main(X[:rows], W)
    weft.register_func("env.twice", override=True)(lambda x, out: np.multiply(x, 2, out=out))
    np.testing.assert_allclose(main(X, W), expected(X, W), rtol=1e-6)


def test_arrays_are_views_of_the_program() -> None:
    seen: list[Array] = []
    weft.register_func("env.look")(lambda x, out: seen.extend((x, out)))
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    weft.build(ONE.format("env.look"))["f"](x, out)
    assert [a.ctypes.data for a in seen] == [x.ctypes.data, out.ctypes.data]
    assert [a.flags.writeable for a in seen] == [False, True]
    assert not any(a.flags.owndata for a in seen)


DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint64", "float16", "float64", "bfloat16"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_element_types(dtype: str) -> None:
    bb, x = G.BlockBuilder(), G.var("x", (2, 3), dtype)
    with bb.function("f", [x]):
        bb.emit_func_output(bb.call_dps("env.flip", [x], (3, 2), dtype))
    seen: list[np.dtype[np.generic]] = []

    @weft.register_func("env.flip")
    def flip(x: Array, out: Array) -> None:  # pyright: ignore[reportUnusedFunction]
        seen.append(x.dtype)
        out[...] = x.T

    stored = "uint16" if dtype == "bfloat16" and "ml_dtypes" not in sys.modules else dtype
    array = np.array([[1, 0, 1], [0, 1, 1]]).astype(stored)
    array[0, 0] = np.array(-1 if "bool" not in dtype else 1).astype(stored)
    lowered = bb.get().clone()
    LowerGraphPass().apply(Context(), lowered)
    for run in (weft.build(bb.get())["f"], lambda x: weft.Interpreter(bb.get()).call("f", x)):
        assert run(array).tolist() == array.T.tolist()
    out = np.empty((3, 2), stored)
    weft.Interpreter(lowered).call("f", array, out)
    assert out.tolist() == array.T.tolist()
    assert {str(d) for d in seen} == {stored}


@pytest.mark.parametrize("target", ["llvm", pytest.param("c", marks=needs_compiler)])
def test_calls_in_loops_and_branches(target: str) -> None:
    def step(x: Array, limit: Array, out: Array, steps: NDArray[np.int64]) -> None:
        if x[0] > limit:
            raise ValueError(f"{x[0]} is above {limit}")
        np.add(x, 1, out=out)
        steps[...] = 2

    weft.register_func("env.step")(step)

    def stepped(x: G.Value, limit: G.Value) -> tuple[G.Value, ...]:
        return G.call_dps("env.step", [x, limit], [(4,), ()], ["float32", "int64"])

    bb, x, limit, twice = G.BlockBuilder(), G.var("x", (4,)), G.var("limit", ()), G.var("twice", (), "bool")
    with bb.function("f", [x, limit, twice]):
        y = bb.emit_loop(lambda _, v, top: stepped(v, top)[0], 5, [x], captured=[limit])
        bb.emit_func_output(bb.emit_if(twice, lambda v, top: stepped(v, top), lambda v, _: (v, G.const(1)), y, limit))
    f = weft.build(bb.get(), target=target)["f"]
    for run in (f, lambda *given: weft.Interpreter(bb.get()).call("f", *given)):
        for is_twice in (False, True):
            found, steps = run(FOUR, np.float32(7), np.array(is_twice))
            assert (found.tolist(), int(steps)) == ((FOUR + 5 + is_twice).tolist(), 1 + is_twice)
    with pytest.raises(ValueError, match=r"4.0 is above 3.0"):
        f(FOUR, np.float32(3), np.array(True))


def test_tensors_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given to `torch.from_dlpack`: writable arrays, brain floats as their bits."""
    given: list[Array] = []

    def from_dlpack(array: Array) -> Array:
        given.append(array)
        return np.from_dlpack(array)

    torch = ModuleType("torch")
    vars(torch).update(from_dlpack=from_dlpack, bfloat16=np.uint16)
    monkeypatch.setitem(sys.modules, "torch", torch)

    @weft.register_func("env.torch", arrays="torch")
    def negate(x: Array, out: Array) -> None:  # pyright: ignore[reportUnusedFunction]
        out[...] = x + 1

    np.testing.assert_array_equal(weft.build(ONE.format("env.torch"))["f"](FOUR), FOUR + 1)
    assert [a.dtype for a in given] == [np.float32] * 2
    given.clear()
    weft.build(ONE.format("env.torch").replace("f32", "bf16"))["f"](np.zeros(4, np.uint16))
    assert [a.dtype for a in given] == [np.int16] * 2


@pytest.mark.slow
def test_real_tensors_of_torch() -> None:
    torch = pytest.importorskip("torch")
    weft.register_func("env.mul", arrays="torch")(lambda x, out: torch.mul(x, 2, out=out))
    np.testing.assert_array_equal(weft.build(ONE.format("env.mul"))["f"](FOUR), FOUR * 2)


@pytest.mark.parametrize("target", ["llvm", pytest.param("c", marks=needs_compiler)])
def test_errors_of_registered_functions(target: str) -> None:
    f = weft.build(ONE.format("env.bad"), target=target)["f"]
    with pytest.raises(weft.CompileError, match=r"no function is registered as 'env.bad', did you mean 'env.b4d'"):
        weft.register_func("env.b4d")(print)
        f(FOUR)

    class OddError(Exception):
        pass

    def raises(x: Array, out: Array) -> None:
        raise OddError("odd")

    weft.register_func("env.bad")(raises)
    with pytest.raises(OddError, match="odd") as caught:
        f(FOUR)
    assert caught.value.__notes__ == ['in graph.call_dps "env.bad" of arrays float32[4], float32[4]']
    with pytest.raises(OddError):
        f.time_evaluator(number=2, repeat=1)(FOUR, np.empty(4, np.float32))
    weft.register_func("env.bad", override=True)(lambda x, out: x * 2)
    with pytest.raises(
        TypeError, match=r"'env.bad' returned a value \(ndarray of shape \(4,\)\): it gets its results as "
    ):
        f(FOUR)
    weft.register_func("env.bad", override=True)(lambda x: None)
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        f(FOUR)
    weft.register_func("env.bad", override=True)(lambda x, out: x.fill(0))
    with pytest.raises(ValueError, match="read-only"):
        f(FOUR)


def test_a_failure_ends_the_calls_of_registered_functions() -> None:
    calls: list[float] = []

    def linear(x: Array, w: Array, out: Array) -> None:
        out[...] = 7
        raise KeyboardInterrupt

    weft.register_func("env.linear", override=True)(linear)
    weft.register_func("env.twice", override=True)(lambda x, out: calls.append(x[0, 0]))
    out = np.ones((5, 3), np.float32)
    with pytest.raises(KeyboardInterrupt):
        weft.build(MODEL)["model"](X, W, out)
    assert not calls, "later functions are not called"
    assert not out.any(), "what they write is zero"


def test_long_calls_and_threads() -> None:
    """A call that may take long runs in a thread of its own; what it raises is raised by the caller."""
    main = weft.build(MODEL)["model"]
    threads: list[str] = []

    def twice(x: Array, out: Array) -> None:
        threads.append(threading.current_thread().name)
        raise ValueError(str(x.shape[0]))

    weft.register_func("env.twice", override=True)(twice)
    rows = LONG_BYTES // 16
    with pytest.raises(ValueError, match=str(rows)):
        main(np.zeros((rows, 4), np.float32), W)
    assert threads == ["weft-call"]
    failures: dict[int, str] = {}

    def call(rows: int) -> None:
        for _ in range(20):
            try:
                main(X[:rows], W)
            except ValueError as error:
                failures[rows] = str(error)

    workers = [threading.Thread(target=call, args=(rows,)) for rows in range(1, 5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == {rows: str(rows) for rows in range(1, 5)}


def test_the_interpreter_checks_what_is_written() -> None:
    def part(x: Array, out: Array) -> None:
        out[1:] = x[1:]

    weft.register_func("env.part")(part)
    for dtype in ("i32", "i1", "f16", "f32"):
        module = weft.parse(ONE.format("env.part").replace("f32", dtype))
        array = np.zeros(4, {"i1": "bool", "i32": "int32", "f16": "float16"}.get(dtype, "float32"))
        with pytest.raises(
            weft.CompileError, match=r"'env.part' left 1 of the 4 elements of result 0 unwritten, the first at \[0\]"
        ):
            weft.Interpreter(module).call("f", array)
    weft.register_func("env.part", override=True)(lambda x, out: x)
    with pytest.raises(weft.CompileError, match=r"raised TypeError: the function registered as 'env.part' returned"):
        weft.Interpreter(module).call("f", np.zeros(4, np.float32))


def test_registration() -> None:
    with pytest.raises(weft.CompileError, match=r"a function is registered under a name without zero bytes, got ''"):
        weft.register_func("")(print)
    with pytest.raises(weft.CompileError, match=r"'env.x': unknown form of arrays 'numyp', did you mean 'numpy'"):
        weft.register_func("env.x", arrays="numyp")(print)


@pytest.mark.parametrize("target", ["opencl", "cuda"])
def test_gpu_programs_call_no_registered_functions(target: str) -> None:
    with pytest.raises(
        weft.CompileError, match=r'graph.call_dps "env.linear": functions that are registered get arrays'
    ):
        weft.build(MODEL, target=target)


MAIN = r"""
#include <stdio.h>
#include <string.h>
#include "model.h"

static int32_t linear(void *context, const char *name, const weft_array *a, int32_t inputs, int32_t outputs) {
  const float *x = a[0].data, *w = a[1].data;
  float *y = a[2].data;
  if (inputs != 2 || outputs != 1 || a[0].rank != 2 || a[0].code != 2 || a[0].bits != 32 || a[0].lanes != 1) return 3;
  if (strcmp(name, "env.linear") != 0) return 4;
  const int64_t rows = a[0].shape[0], middle = a[0].shape[1], columns = a[2].shape[1];
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      float sum = 0;
      for (int64_t k = 0; k < middle; k++) sum += x[i * middle + k] * w[k * columns + j];
      y[i * columns + j] = sum;
    }
  return 0;
}

static int32_t any(void *context, const char *name, const weft_array *a, int32_t inputs, int32_t outputs) {
  if (*(int *)context) return 7;
  for (int64_t i = 0; i < a[0].shape[0] * a[0].shape[1]; i++) ((float *)a[1].data)[i] = 2 * ((float *)a[0].data)[i];
  return 0;
}

int main(void) {
  float x[2][4] = {{1, 2, 3, 4}, {-1, -2, -3, -4}}, w[4][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}}, y[2][3];
  int fails = 0;
  y[0][0] = 5;
  model(x[0], w[0], y[0], 2);
  printf("%g %s\n", y[0][0], weft_failure());
  weft_set_function("env.linear", linear, NULL);
  weft_set_function(NULL, any, &fails);
  model(x[0], w[0], y[0], 2);
  printf("%g %g %g %g %d\n", y[0][0], y[0][1], y[0][2], y[1][1], weft_failure() == NULL);
  fails = 1;
  model(x[0], w[0], y[0], 2);
  model(x[0], w[0], y[0], 2);
  printf("%g %s\n", y[0][0], weft_failure());
  weft_set_function("env.linear", NULL, NULL);
  model(x[0], w[0], y[0], 2);
  printf("%s", weft_failure());
  printf(" %d\n", weft_failure() == NULL);
  return 0;
}
"""
PRINTED = """\
0 weft: no function is set under the name 'env.linear' (weft_set_function)
10 12 14 0 1
0 weft: the function set as 'env.twice' failed with status 7
weft: no function is set under the name 'env.linear' (weft_set_function) 1
"""
TOLD = "weft: no function is set under the name 'env.linear' (weft_set_function)\n"


@needs_compiler
@pytest.mark.parametrize("form", ["model.so", pytest.param("model.o", marks=pytest.mark.slow), "model.c"])
def test_exported_programs_take_functions_of_c(form: str, tmp_path: Path) -> None:
    library = weft.build(MODEL, target="c" if form.endswith(".c") else "llvm")
    library.export(tmp_path / "model.h")
    exported = library.export(tmp_path / form)
    main, program = tmp_path / "main.c", tmp_path / "main"
    main.write_text(MAIN)
    subprocess.run(
        [str(COMPILER), "-Wall", "-Werror", str(main), str(exported), "-lm", "-lpthread", "-o", str(program)],
        check=True,
    )
    done = subprocess.run([str(program)], check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (PRINTED, TOLD * 2)
    if form == "model.so":
        model = weft.load(exported)["model"]
        np.testing.assert_allclose(model(X, W), expected(X, W), rtol=1e-6)
        weft.register_func("env.twice", override=True)(lambda x, out: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model(X, W)
        assert "weft_set_function" in weft.load(exported).get_source("h")


def test_a_failure_without_a_caller_in_python_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """C code that calls a compiled function has nobody to raise an exception."""
    f = weft.build(ONE.format("env.none"))["f"]
    native = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(f._caller.address)  # pyright: ignore[reportPrivateUsage]
    out = np.ones(4, np.float32)
    native(FOUR.ctypes.data, out.ctypes.data)
    assert not out.any()
    assert "no function is registered as 'env.none'" in capsys.readouterr().err
