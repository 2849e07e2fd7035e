"""Whole graphs: the perceptron at every level down to machine code, calls of written and of registered functions."""

import importlib.util
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import graph
from weft.driver.parsing import parse_text
from weft.driver.programs import context
from weft.interp.errors import InterpreterError
from weft.interp.interpreter import Interpreter
from weft.passes.graph.graph_bind_params import bind_params
from weft.passes.graph.graph_infer_types import GraphInferTypesPass
from weft.passes.graph.legalize_graph_to_te import LegalizeGraphToTePass
from weft.passes.graph.lower_graph_to_tir import LowerGraphToTirPass
from weft.passes.lower_graph import LowerGraphPass
from weft.passes.lower_tir_to_low import LowerTirToLowPass
from weft.passes.te.lower_te_to_tir import LowerTeToTirPass
from weft.runtime.low_module import load_low_module
from weft.support.errors import CompileError
from weft.support.target import Target
from weft.support.user_functions import register_func, unregister_func

Array = NDArray[Any]
EXAMPLES = Path(__file__).parents[4] / "examples"
random = np.random.default_rng(2)


def parse(text: str) -> ModuleOp:
    module = parse_text(context(), text, "test.mlir")
    module.verify()
    return module


def apply(module: ModuleOp, *steps: Any) -> None:
    for step in steps:
        step.apply(context(), module)
        module.verify()


@pytest.fixture(scope="module")
def training() -> ModuleType:
    """`examples/train_mlp.py`."""
    spec = importlib.util.spec_from_file_location("train_mlp", EXAMPLES / "train_mlp.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def weights_of(module: ModuleOp) -> dict[str, Array]:
    """The constants of a graph, by name, read without the interpreter."""
    found: dict[str, Array] = {}
    for op in module.walk():
        if op.name == "graph.constant":
            value = op.properties["value"]
            shape = op.results[0].type.get_shape()
            found[op.results[0].name_hint] = np.frombuffer(value.data.data, "<f4").reshape(shape)
    return found


def test_the_perceptron_is_the_same_at_every_level(training: ModuleType):
    module = parse((EXAMPLES / "mlp.mlir").read_text())
    images, labels = training.draw_digits(40, seed=5)
    expected = training.numpy_mlp(images, **weights_of(module))
    assert (expected.argmax(axis=1) == labels).mean() > 0.95
    close = {"rtol": 1e-4, "atol": 1e-4}

    for step in (None, GraphInferTypesPass(), LegalizeGraphToTePass(), LowerTeToTirPass()):
        apply(module, *[step] * (step is not None))
        run = Interpreter(module)
        for n in range(3):
            np.testing.assert_allclose(run.call("main", images[n : n + 1]), expected[n : n + 1], **close)
    for step in (LowerGraphToTirPass(), LowerTirToLowPass()):
        apply(module, step)
        scores = np.full((1, 10), np.nan, np.float32)
        Interpreter(module).call("main", images[:1], scores)
        np.testing.assert_allclose(scores, expected[:1], **close)
    native = load_low_module(module, Target("llvm"))["main"]
    for n in range(len(images)):
        scores = np.full((1, 10), np.nan, np.float32)
        native(images[n : n + 1].copy(), scores)
        np.testing.assert_allclose(scores, expected[n : n + 1], **close)


def test_the_example_is_what_the_script_writes(training: ModuleType):
    text = (EXAMPLES / "mlp.mlir").read_text()
    weights = weights_of(parse(text))
    assert training.module_text(weights) == text
    assert (EXAMPLES / "mlp.mlir").stat().st_size < 1_500_000


LINEAR_AND_RELU = """
func.func @linear(%X: memref<?x?xf32>, %W: memref<?x?xf32>, %B: memref<?xf32>, %Z: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %r = memref.dim %X, %c0 : memref<?x?xf32>
  %m = memref.dim %X, %c1 : memref<?x?xf32>
  %n = memref.dim %W, %c0 : memref<?x?xf32>
  tir.assume_shape %W[%n, %m] : memref<?x?xf32>
  tir.assume_shape %B[%n] : memref<?xf32>
  tir.assume_shape %Z[%r, %n] : memref<?x?xf32>
  %Y = memref.alloc(%r, %n) : memref<?x?xf32>
  tir.for %i in %r { tir.for %j in %n { tir.for %k in %m {
    tir.block "Y" iters(%vi: spatial<%r>, %vj: spatial<%n>, %vk: reduce<%m>) = [%i, %j, %k] {
      tir.init { memref.store %zero, %Y[%vi, %vj] : memref<?x?xf32> }
      %x = memref.load %X[%vi, %vk] : memref<?x?xf32>
      %w = memref.load %W[%vj, %vk] : memref<?x?xf32>
      %p = arith.mulf %x, %w : f32
      %y = memref.load %Y[%vi, %vj] : memref<?x?xf32>
      %s = arith.addf %y, %p : f32
      memref.store %s, %Y[%vi, %vj] : memref<?x?xf32>
    }
  } } }
  tir.for %i in %r { tir.for %j in %n {
    tir.block "Z" iters(%vi: spatial<%r>, %vj: spatial<%n>) = [%i, %j] {
      %y = memref.load %Y[%vi, %vj] : memref<?x?xf32>
      %b = memref.load %B[%vj] : memref<?xf32>
      %z = arith.addf %y, %b : f32
      memref.store %z, %Z[%vi, %vj] : memref<?x?xf32>
    }
  } }
  func.return
}
func.func @relu0(%X: memref<1x?xf32>, %Y: memref<1x?xf32>) {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %X, %c1 : memref<1x?xf32>
  tir.assume_shape %Y[%n] : memref<1x?xf32>
  tir.for %j in %n {
    tir.block "R" iters(%vi: spatial<1>, %vj: spatial<%n>) = [0, %j] {
      %x = memref.load %X[%vi, %vj] : memref<1x?xf32>
      %y = arith.maximumf %x, %zero : f32
      memref.store %y, %Y[%vi, %vj] : memref<1x?xf32>
    }
  }
  func.return
}
"""
ENCODED = """
!x = tensor<1x?xf32, #graph.dims<m>>
!w0 = tensor<?x?xf32, #graph.dims<n, m>>
!b0 = tensor<?xf32, #graph.dims<n>>
!w1 = tensor<?x?xf32, #graph.dims<k, n>>
!b1 = tensor<?xf32, #graph.dims<k>>
!h = tensor<1x?xf32, #graph.dims<n>>
!out = tensor<1x?xf32, #graph.dims<k>>
"""


def mlp(linear0: str, relu: str, linear1: str) -> str:
    """The perceptron of the course: three calls, extents by name. A quoted callee is registered, others are written."""

    def call(callee: str) -> str:
        return f'graph.call_dps "{callee}"' if "." in callee else f"graph.call_tir @{callee}"

    text = f"""
func.func @main(%x: !x, %w0: !w0, %b0: !b0, %w1: !w1, %b1: !b1) -> !out {{
  %r = graph.dataflow -> !out {{
    %lv0 = {call(linear0)}(%x, %w0, %b0) : (!x, !w0, !b0) -> !h
    %lv1 = {call(relu)}(%lv0) : (!h) -> !h
    %out = {call(linear1)}(%lv1, %w1, %b1) : (!h, !w1, !b1) -> !out
    graph.output %out : !out
  }}
  func.return %r : !out
}}
"""
    return ENCODED + text + LINEAR_AND_RELU


def arguments() -> tuple[Array, ...]:
    shapes = ((1, 20), (12, 20), (12,), (5, 12), (5,))
    return tuple(random.standard_normal(shape).astype(np.float32) for shape in shapes)


def numpy_mlp(x: Array, w0: Array, b0: Array, w1: Array, b1: Array) -> Array:
    return np.maximum(x @ w0.T + b0, 0) @ w1.T + b1


def test_written_functions_with_dynamic_extents():
    module = parse(mlp("linear", "relu0", "linear"))
    x, *params = arguments()
    expected = numpy_mlp(x, *params)
    np.testing.assert_allclose(Interpreter(module).call("main", x, *params), expected, rtol=1e-5, atol=1e-5)
    apply(module, LowerGraphPass())
    result = np.full((1, 5), np.nan, np.float32)
    Interpreter(module).call("main", x, *params, result)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
    apply(module, LowerTirToLowPass())
    result = np.full((1, 5), np.nan, np.float32)
    load_low_module(module, Target("llvm"))["main"](x, *params, result)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_native_calls_check_shared_extents():
    module = parse(mlp("linear", "relu0", "linear"))
    apply(module, LowerGraphPass(), LowerTirToLowPass())
    native = load_low_module(module, Target("llvm"))["main"]
    x, w0, _, w1, b1 = arguments()
    with pytest.raises(ValueError, match="b0"):
        native(x, w0, np.zeros(13, np.float32), w1, b1, np.zeros((1, 5), np.float32))


@pytest.fixture
def library() -> Iterator[list[str]]:
    """Registered NumPy functions; the list of their calls."""
    calls: list[str] = []

    @register_func("env.linear")
    def linear(x: Array, w: Array, b: Array, out: Array) -> None:  # pyright: ignore[reportUnusedFunction]
        calls.append("linear")
        np.add(x @ w.T, b, out=out)

    @register_func("env.relu")
    def relu(x: Array, out: Array) -> None:  # pyright: ignore[reportUnusedFunction]
        calls.append("relu")
        np.maximum(x, 0, out=out)

    @register_func("env.broken")
    def broken(x: Array, out: Array) -> None:  # pyright: ignore[reportUnusedFunction]
        out[...] = x @ x

    yield calls
    for name in ("env.linear", "env.relu", "env.broken"):
        unregister_func(name)


def test_registered_functions(library: list[str]):
    x, *params = arguments()
    module = parse(mlp("env.linear", "env.relu", "env.linear"))
    result = Interpreter(module).call("main", x, *params)
    np.testing.assert_allclose(result, numpy_mlp(x, *params), rtol=1e-5, atol=1e-5)
    assert library == ["linear", "relu", "linear"]


def test_library_and_written_functions_with_bound_parameters(library: list[str]):
    x, *params = arguments()
    module = parse(mlp("linear", "env.relu", "env.linear"))
    bind_params(module, "main", dict(zip(("w0", "b0", "w1", "b1"), params, strict=True)))
    module.verify()
    result = Interpreter(module).call("main", x)
    np.testing.assert_allclose(result, numpy_mlp(x, *params), rtol=1e-5, atol=1e-5)
    assert library == ["relu", "linear"]


def test_errors_of_registered_functions(library: list[str]):
    x, *params = arguments()
    with pytest.raises(
        InterpreterError, match=r"test.mlir:\d+:\d+: error: no function is registered as 'env.rleu', did"
    ):
        Interpreter(parse(mlp("linear", "env.rleu", "linear"))).call("main", x, *params)
    with pytest.raises(InterpreterError, match=r"the function 'env.broken' raised ValueError: matmul"):
        Interpreter(parse(mlp("linear", "env.broken", "linear"))).call("main", x, *params)


def test_a_callee_that_does_not_write_its_result():
    module = parse("""
func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %y = graph.call_tir @nothing(%x) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %y : tensor<2x2xf32>
}
func.func @nothing(%X: memref<2x2xf32>, %Y: memref<2x2xf32>) { func.return }
""")
    with pytest.raises(InterpreterError, match=r"test.mlir:3:8: error: @nothing did not write its result y\[0, 0\]"):
        Interpreter(module).call("main", np.zeros((2, 2), np.float32))


RESULTS = """
!x = tensor<?x2xf32, #graph.dims<n>>
!t = tensor<2x?xf32, #graph.dims<n>>
!k = tensor<2xf32>
func.func @main(%x: !x) -> (!t, !x, tuple<!k, !t>) {
  %k = graph.constant dense<[3.0, 4.0]> : !k
  %t = graph.transpose %x : !x
  %p = graph.make_tuple %k, %t : tuple<!k, !t>
  func.return %t, %x, %p : !t, !x, tuple<!k, !t>
}
"""


def test_several_results_some_of_them_not_computed():
    """A parameter, a constant and one tensor twice: each has its own result buffer."""
    module = parse(RESULTS)
    x = random.standard_normal((3, 2)).astype(np.float32)
    t, same, (k, again) = Interpreter(module).call("main", x)
    expected = [x.T, x, np.array([3, 4], np.float32), x.T]
    for actual, wanted in zip((t, same, k, again), expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)
    apply(module, LowerGraphPass(), LowerTirToLowPass())
    for run in (Interpreter(module).call, None):
        results = [np.full_like(wanted, np.nan, order="C") for wanted in expected]
        if run is None:
            load_low_module(module, Target("llvm"))["main"](x, *results)
        else:
            run("main", x, *results)
        for actual, wanted in zip(results, expected, strict=True):
            np.testing.assert_array_equal(actual, wanted)


def test_extents_that_are_computed_from_others_are_known_to_callees_and_callers():
    """A buffer of `16 * n` elements goes through several functions, and its result may be left out of a call."""
    bb = graph.BlockBuilder()
    x = graph.var("x", ("n", 16))
    with bb.function("main", [x]):
        flat = bb.emit(graph.flatten(graph.relu(x)))
        bb.emit_func_output([flat, bb.emit(graph.tanh(graph.concatenate([flat, flat], 0)))])
    main = weft.build(bb.get())["main"]
    given = random.standard_normal((3, 16)).astype(np.float32)
    flat, twice = main(given)
    np.testing.assert_array_equal(flat, np.maximum(given, 0).reshape(-1))
    np.testing.assert_allclose(twice, np.tanh(np.tile(flat, 2)), rtol=1e-6)


def test_a_callee_that_assumes_other_extents_is_refused():
    text = """
func.func @main(%x: memref<?xf32>, %y: memref<?xf32>) {
  func.call @twice(%x, %y) : (memref<?xf32>, memref<?xf32>) -> ()
  func.return
}
func.func @twice(%x: memref<?xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %m = affine.apply affine_map<(d0) -> (d0 * 2)> (%n)
  tir.assume_shape %y[%m] : memref<?xf32>
  tir.for %i in %n {
    tir.block "twice" iters(%v: spatial<%n>) = [%i] {
      %a = memref.load %x[%v] : memref<?xf32>
      memref.store %a, %y[%v] : memref<?xf32>
    }
  }
  func.return
}
"""
    with pytest.raises(CompileError, match="call of @twice, which assumes y_d0 == 2 \\* n: whether"):
        weft.build(parse(text))


def recurrent() -> ModuleOp:
    """A recurrent net with a branch behind it."""
    bb = graph.BlockBuilder()
    start, rows, weights = graph.var("start", (2, 4)), graph.var("rows", ("t", 2, 4)), graph.var("weights", (4, 4))

    def step(number: Any, state: Any, row: Any, w: Any) -> Any:
        following = graph.tanh(graph.add(graph.matmul(state, w), row))
        return following, graph.multiply(following, graph.cast(number, "float32"))

    with bb.function("main", [start, rows, weights]):
        with bb.dataflow():
            last, every = bb.emit_loop(step, "t", [start], [rows], [weights])
            chosen = bb.emit_if(graph.greater(graph.sum(last), 0.0), graph.relu, lambda a: a, last)
            outputs = [bb.emit_output(value) for value in (last, every, chosen)]
        bb.emit_func_output(outputs)
    return bb.get()


@pytest.mark.parametrize("target", ["interpreter", "llvm", "c"])
def test_control_flow(target: str):
    module = recurrent()
    main = partial(Interpreter(module).call, "main") if target == "interpreter" else weft.build(module, target)["main"]
    for steps in (3, 0, 1):
        start, rows, weights = (
            random.standard_normal(shape).astype(np.float32) for shape in ((2, 4), (steps, 2, 4), (4, 4))
        )
        last, every, chosen = main(start, rows, weights)
        state, states = start, np.zeros((steps, 2, 4), np.float32)
        for number, row in enumerate(rows):
            state = np.tanh(state @ weights + row)
            states[number] = state * number
        np.testing.assert_allclose(last, state, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(every, states, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(chosen, np.maximum(last, 0) if last.sum() > 0 else last)


@pytest.mark.parametrize("target", ["interpreter", "llvm", "c"])
def test_while(target: str):
    """No step, and as many as data decide; the steps are counted by another carried value."""
    bb = graph.BlockBuilder()
    x, end = graph.var("x", ("n", 3)), graph.var("end", ())
    with bb.function("main", [x, end]):
        count = graph.const(0, "int64")
        found = bb.emit_while(
            lambda v, c, e: graph.less(graph.sum(v), e),
            lambda v, c, e: (graph.add(v, v), graph.add(c, 1)),
            [x, count],
            [end],
        )
        bb.emit_func_output([*found, x])
    module = bb.get()
    main = partial(Interpreter(module).call, "main") if target == "interpreter" else weft.build(module, target)["main"]
    for most, steps in ((100.0, 5), (1.0, 0), (7.0, 1)):
        doubled, counted, kept = main(np.ones((2, 3), np.float32), np.array(most, np.float32))
        np.testing.assert_array_equal(doubled, np.full((2, 3), 2.0**steps))
        assert counted == steps
        np.testing.assert_array_equal(kept, np.ones((2, 3)))


def test_values_of_one_name_enter_a_loop():
    bb, x = graph.BlockBuilder(), graph.var("x", (2,))
    with bb.function("main", [x]):
        carried = [graph.negative(x), graph.negative(graph.negative(x))]
        bb.emit_func_output(bb.emit_loop(lambda t, a, b: (graph.add(a, b), b), 3, carried))
    found, _ = Interpreter(bb.get()).call("main", np.ones(2, np.float32))
    np.testing.assert_array_equal(found, [2, 2])


def test_misuse_of_control_flow_is_named():
    for emit, message in (
        (lambda bb, c, x: bb.emit_if(x, graph.relu, graph.relu, x), "a condition is a bool tensor"),
        (lambda bb, c, x: bb.emit_if(c, graph.relu, graph.sum, x), "emit_if: one function gives"),
        (lambda bb, c, x: bb.emit_if(c, lambda a: graph.add(a, x), graph.relu, x), "no parameter or value of the"),
        (lambda bb, c, x: bb.emit_loop(lambda t, a: a, 5, scanned=[x]), "number of steps, 5, got"),
        (lambda bb, c, x: bb.emit_loop(lambda t, a: graph.sum(a), 5, [x]), "the carried values are"),
        (lambda bb, c, x: bb.emit_while(graph.sum, graph.relu, [x]), r"emit_while: the test gives \(tensor<i1>\), but"),
        (
            lambda bb, c, x: bb.emit_while(lambda a: graph.less(graph.sum(a), 0.0), graph.sum, [x]),
            "the carried values are",
        ),
    ):
        bb = graph.BlockBuilder()
        condition, value = graph.var("c", (), "bool"), graph.var("x", ("n", 4))
        with pytest.raises(CompileError, match=message), bb.function("main", [condition, value]):
            emit(bb, condition, value)


def test_elements_that_data_choose() -> None:
    """NaN, and what the counts say of results that are too small."""
    bb, x = graph.BlockBuilder(), graph.var("x", ("n",))
    with bb.function("main", [x]):
        places, number = graph.nonzero(x, size=3, fill_value=-1)
        values, _, inverse, counts, different = graph.unique(x)
        bb.emit_func_output([places, number, values, inverse, counts, different, graph.gather_nd(x, places)])
    array = np.array([2, 0, np.nan, -1, 2, np.nan, 0], np.float32)
    library = weft.build(bb.get())
    for run in (library["main"], lambda a: Interpreter(bb.get()).call("main", a)):
        places, number, values, inverse, counts, different, chosen = run(array)
        assert places.tolist() == [[0, 2, 3]] and number == 5
        np.testing.assert_array_equal(values, [-1, 0, 2, np.nan, 0, 0, 0])
        assert different == 4 and counts.tolist() == [1, 2, 2, 2, 0, 0, 0]
        np.testing.assert_array_equal(values[inverse], array)
        np.testing.assert_array_equal(chosen, [2, np.nan, -1])
