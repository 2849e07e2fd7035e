"""Sizes that depend on data: extents that programs bind, and results that calls allocate."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exported_programs import compile_c, needs_compiler, run_program
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import graph as G
from weft.driver.parsing import parse_text
from weft.driver.programs import context
from weft.interp.interpreter import Interpreter
from weft.support.errors import CompileError

Array = NDArray[Any]


def parse(text: str) -> ModuleOp:
    module = parse_text(context(), text, "test.mlir")
    module.verify()
    return module


TWO_CUTS = """
func.func @main(%x: tensor<?x4xf32, #graph.dims<n>>, %w: tensor<4x3xf32>, %mask: tensor<?xi1, #graph.dims<n>>)
    -> (tensor<?x3xf32, #graph.dims<k>>, tensor<?x3xf32, #graph.dims<n>>, tensor<1x?xi64, #graph.dims<j>>) {
  %all = graph.matmul %x, %w : tensor<?x4xf32, #graph.dims<n>>, tensor<4x3xf32> -> tensor<?x3xf32, #graph.dims<n>>
  %rows, %count = graph.compress %mask, %x {axis = 0 : i64} : tensor<?xi1, #graph.dims<n>>,
    tensor<?x4xf32, #graph.dims<n>> -> tensor<?x4xf32, #graph.dims<n>>, tensor<i64>
  graph.match_shape %count as <k> at_most <n> : tensor<i64>
  %some = graph.prefix %rows {shape = #graph.dims<k, 4>} : tensor<?x4xf32, #graph.dims<n>>
  %y = graph.matmul %some, %w : tensor<?x4xf32, #graph.dims<k>>, tensor<4x3xf32>
  %z = graph.tanh %y : tensor<?x3xf32, #graph.dims<k>>
  %sums = graph.sum %z {axis = 1 : i64} : tensor<?x3xf32, #graph.dims<k>>
  %places, %found = graph.nonzero %sums : tensor<?xf32, #graph.dims<k>>
  graph.match_shape %found as <j> at_most <k> : tensor<i64>
  %last = graph.prefix %places {shape = #graph.dims<1, j>} : tensor<1x?xi64, #graph.dims<k>>
  func.return %z, %all, %last
    : tensor<?x3xf32, #graph.dims<k>>, tensor<?x3xf32, #graph.dims<n>>, tensor<1x?xi64, #graph.dims<j>>
}
"""
"""Rows that a mask chooses, multiplied; the places of sums that are not zero."""


def two_cuts(x: Array, w: Array, mask: Array) -> tuple[Array, ...]:
    z = np.tanh(x[mask] @ w)
    return z, x @ w, np.stack(np.nonzero(z.sum(1)))


def draw(n: int, share: float) -> tuple[Array, ...]:
    random = np.random.default_rng(n)
    x, w = random.standard_normal((n, 4), np.float32), random.standard_normal((4, 3), np.float32)
    x[::3] = 0
    return x, w, random.random(n) < share


def check(found: Any, wanted: tuple[Array, ...]) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.fixture(scope="module")
def cuts() -> weft.Library:
    return weft.build(TWO_CUTS)


@pytest.mark.parametrize(
    ("target", "checked"),
    [("llvm", False), *(pytest.param(*kind, marks=pytest.mark.slow) for kind in (("llvm", True), ("c", False)))],
)
def test_results_have_their_true_size(target: str, checked: bool, cuts: weft.Library) -> None:
    """Of no rows, some, and all; memory of earlier calls is used again."""
    is_default = (target, checked) == ("llvm", False)
    function = (cuts if is_default else weft.build(TWO_CUTS, target=target, checked=checked))["main"]
    assert str(function.signature).endswith("new z: float32[k, 3], out all: float32[n, 3], new last: int64[1, j])")
    for n, share in ((300, 0.5), (5, 1.0), (5, 0.0), (0, 0.5), (301, 1.0), (1, 1.0)):
        arguments = draw(n, share)
        check(function(*arguments), two_cuts(*arguments))
    interpreted = Interpreter(parse(TWO_CUTS)).call("main", *draw(5, 0.5))
    check(interpreted, two_cuts(*draw(5, 0.5)))


def test_calls_give_no_memory_for_allocated_results(cuts: weft.Library) -> None:
    function = cuts["main"]
    x, w, mask = draw(5, 0.5)
    with pytest.raises(TypeError, match="result 'z' must be omitted: its size depends on data"):
        function(x, w, mask, z=np.zeros((5, 3), np.float32))
    with pytest.raises(TypeError, match="expected 3 to 4 arguments, got 5"):
        function(x, w, mask, np.zeros((5, 3), np.float32), np.zeros((1, 2), np.int64))
    all_ = np.empty((5, 3), np.float32)
    found = function(x, w, mask, all_)
    check((found[0], all_, found[1]), two_cuts(x, w, mask))
    keywords = {"mask": mask, "x": x, "w": w}
    check(function(**keywords), two_cuts(x, w, mask))
    with pytest.raises(ValueError, match="with n = 5"):
        function(x, w, mask[:3])


def test_threads_and_timing(cuts: weft.Library) -> None:
    function = cuts["main"]
    assert function.time_evaluator(number=3, repeat=2)(*draw(50, 0.5)).median > 0
    failures: list[BaseException] = []

    def run(seed: int) -> None:
        try:
            for n in range(seed, seed + 40):
                check(function(*draw(n, 0.5)), two_cuts(*draw(n, 0.5)))
        except BaseException as error:  # noqa: BLE001, told below
            failures.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in (1, 30, 60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


BOUND = """
func.func @main(%size: tensor<2xi32>) -> (tensor<?xi64, #graph.dims<a + b>>) {
  graph.match_shape %size as <a, b> at_most <?, 4> : tensor<2xi32>
  %y = graph.iota {shape = #graph.dims<a + b>} -> tensor<?xi64, #graph.dims<a + b>>
  func.return %y : tensor<?xi64, #graph.dims<a + b>>
}
"""


@pytest.mark.parametrize("target", ["llvm", pytest.param("c", marks=pytest.mark.slow)])
def test_checked_builds_report_bounds(target: str) -> None:
    """Others clamp."""
    plain, checked = (weft.build(BOUND, target=target, checked=flag)["main"] for flag in (False, True))
    for function in (plain, checked):
        np.testing.assert_array_equal(function(np.array([3, 4], np.int32)), np.arange(7))
    assert plain(np.array([2, 9], np.int32)).shape == (6,)
    assert plain(np.array([-2, 1], np.int32)).shape == (1,)
    with pytest.raises(ValueError, match=r"main: extent 'b', which data decide at .*, is 9, outside of 0 \.\. 4"):
        checked(np.array([2, 9], np.int32))
    with pytest.raises(ValueError, match=r"main: extent 'a', which data decide at .*, is -2, outside of 0"):
        checked(np.array([-2, 1], np.int32))
    with pytest.raises(CompileError, match=r"extent 'b' is 9, outside of 0 \.\. 4"):
        Interpreter(parse(BOUND)).call("main", np.array([2, 9], np.int32))


def test_arenas_grow_with_data() -> None:
    """A size that no input bounds, twice in a row with different sizes."""
    text = """
func.func @main(%size: tensor<i64>) -> (tensor<f32>) {
  graph.match_shape %size as <k> : tensor<i64>
  %x = graph.full {shape = #graph.dims<k, 4>, fill_value = 1.5 : f32} -> tensor<?x4xf32, #graph.dims<k>>
  %p = graph.cumsum %x {axis = 0 : i64} : tensor<?x4xf32, #graph.dims<k>> -> tensor<?x4xf32, #graph.dims<k>>
  %y = graph.sum %p {axis = [0 : i64, 1 : i64]} : tensor<?x4xf32, #graph.dims<k>> -> tensor<f32>
  func.return %y : tensor<f32>
}
"""
    function = weft.build(text)["main"]
    for k in (3, 2000, 1, 0, 4000):
        assert function(np.array(k)) == pytest.approx(6.0 * k * (k + 1) / 2, rel=1e-4)


def test_builder_binds_names() -> None:
    bb = G.BlockBuilder()
    x = G.var("x", ("n", 4))
    with bb.function("main", [x]):
        places, count = G.nonzero(x)
        (k,) = bb.match_shape(count, ["k"], at_most=["4 * n"])
        found = G.gather_nd(x, G.prefix(places, (2, k)))
        (other,) = bb.match_shape(count)
        assert (str(k), str(other)) == ("k", "u0")
        with pytest.raises(CompileError, match="match_shape: function @main has an extent 'n' already"):
            bb.match_shape(count, ["n"])
        with pytest.raises(CompileError, match=r"match_shape: graph\.match_shape takes integers of 32 or 64 bits"):
            bb.match_shape(x)
        bb.emit_func_output(found)
    function = weft.build(bb.get())["main"]
    for array in (np.eye(3, 4, dtype=np.float32), np.zeros((2, 4), np.float32), np.ones((1, 4), np.float32)):
        np.testing.assert_array_equal(function(array), array[array != 0])


def test_branches_use_and_return_sizes() -> None:
    def chosen(bb: Any, x: Any, sums: bool) -> Any:
        places, count = G.nonzero(x)
        (k,) = bb.match_shape(count, at_most=["n"])
        found = G.gather_nd(x, G.prefix(places, (1, k)))
        return G.sum(found) if sums else found

    bb = G.BlockBuilder()
    x, flag = G.var("x", ("n",)), G.var("flag", (), "bool")
    with bb.function("main", [x, flag]):
        bb.emit_func_output(bb.emit_if(flag, lambda a: chosen(bb, a, True), lambda a: G.max(a), x))
    function = weft.build(bb.get())["main"]
    array = np.array([0, 2, 0, 5], np.float32)
    assert function(array, np.array(True)) == 7 and function(array, np.array(False)) == 5
    bb = G.BlockBuilder()
    x, flag = G.var("x", ("n",)), G.var("flag", (), "bool")
    with bb.function("main", [x, flag]):
        bb.emit_func_output(bb.emit_if(flag, lambda a: chosen(bb, a, False), lambda a: a, x))
    function = weft.build(bb.get())["main"]
    np.testing.assert_array_equal(function(array, np.array(True)), [2, 5])
    np.testing.assert_array_equal(function(array, np.array(False)), array)


PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include "cuts.h"

static int calls;
static void *counted(void *context, void *old, int64_t bytes) {
  calls += *(int *)context;
  return realloc(old, (size_t)bytes);
}

int main(void) {
  float x[20], w[12], all[15];
  bool mask[5] = {true, false, true, true, false};
  int one = 1;
  weft_function_main_z z = {NULL, {0, 0}};
  weft_function_main_last last = {NULL, {0, 0}};
  for (int i = 0; i < 20; i++) x[i] = (float)(i % 4);
  for (int i = 0; i < 12; i++) w[i] = 0.5f;
  for (int round = 0; round < 3; round++) {
    weft_set_allocator(round == 1 ? counted : NULL, &one);
    weft_function_main(x, w, mask, &z, all, &last, 5 - round);
    printf("%d %d %.3f %d %d\n", (int)z.shape[0], (int)z.shape[1], z.data[0], (int)last.shape[1], (int)last.data[1]);
  }
  printf("%d\n", calls);
  free(z.data);
  free(last.data);
  return 0;
}
"""
PRINTED = "3 3 0.995 3 1\n3 3 0.995 3 1\n2 3 0.995 2 1\n2\n"


@needs_compiler
@pytest.mark.parametrize("suffix", [".so", ".c"])
def test_programs_in_c_choose_the_allocator(suffix: str, tmp_path: Path, cuts: weft.Library) -> None:
    library = weft.build(TWO_CUTS, target="c") if suffix == ".c" else cuts
    path, header, text = tmp_path / f"libcuts{suffix}", tmp_path / "cuts.h", PROGRAM
    library.export(path)
    library.export(header)
    if suffix == ".c":  # descriptors are arrays in its own header
        for name in ("z", "last"):
            text = text.replace(f"weft_function_main_{name} {name} = {{NULL, {{0, 0}}}};", "")
        types = "\n".join(
            f"static struct {{ {kind} *data; int64_t shape[2]; }} {name};"
            for kind, name in (("float", "z"), ("int64_t", "last"))
        )
        text = text.replace("int main", f"{types}\nint main").replace("&z,", "(int64_t *)&z,")
        text = text.replace("&last,", "(int64_t *)&last,").replace("x, w, mask", "x, w, (const uint8_t *)mask")
        text = text.replace("weft_function_main", library._symbols["main"])  # pyright: ignore
    program = compile_c(text, [path], tmp_path, *(["-fno-strict-aliasing"] if suffix == ".c" else []))
    assert run_program(program) == PRINTED
    if suffix == ".so":
        arguments = draw(40, 0.5)
        check(weft.load(path)["main"](*arguments), two_cuts(*arguments))
