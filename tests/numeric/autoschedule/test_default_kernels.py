"""Programs that nobody scheduled, as kernels: what they mean, interpreted and on PoCL, at odd sizes and at any."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from operator_references import convolved, normalized, pooled, softmax
from xdsl.context import Context

import weft
from weft import te
from weft.autoschedule.default_schedule import apply_default_schedule
from weft.interp.interpreter import Interpreter
from weft.passes.lower_tir_to_low import lower_tir_to_low
from weft.passes.lower_to_tir import lower_to_tir
from weft.support.errors import CompileError
from weft.support.target import Target
from weft.te import ops

BORDER, ONE = ((1, 1), (1, 1)), (1, 1)
Extent = Any


@dataclass(frozen=True)
class Program:
    """Placeholders of some shapes, what is computed from them, and what NumPy says; extents are names of sizes."""

    label: str
    shapes: Sequence[Sequence[str | int]]
    build: Callable[..., Any]
    reference: Callable[..., Any]
    sizes: dict[str, int]
    kernels: int = 1
    """How many of them there are, where extents are known."""

    def function(self, *, dynamic: bool) -> Any:
        extents: dict[str, Any] = {name: te.size_var(name) if dynamic else n for name, n in self.sizes.items()}
        placed = [
            te.placeholder(tuple(extents[e] if isinstance(e, str) else e for e in shape), name=f"x{at}")
            for at, shape in enumerate(self.shapes)
        ]
        return te.create_func([*placed, self.build(*placed)], name="main")

    def arguments(self, **sizes: int) -> tuple[list[Any], Any]:
        extents = {**self.sizes, **sizes}
        rng = np.random.default_rng(0)
        shapes = [[extents[e] if isinstance(e, str) else e for e in shape] for shape in self.shapes]
        inputs = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
        expected = np.asarray(self.reference(*inputs))
        kind = np.float32 if expected.dtype.kind == "f" else expected.dtype
        return [*inputs, np.full(expected.shape, 77, kind)], expected


def total(x: Any) -> Any:
    i, j = te.reduce_axis((0, x.shape[0]), name="i"), te.reduce_axis((0, x.shape[1]), name="j")
    return te.compute((1,), lambda _: te.sum(x[i, j], axis=[i, j]), name="T")


def column_maxima(x: Any) -> Any:
    k = te.reduce_axis((0, x.shape[0]), name="k")
    return te.compute((x.shape[1],), lambda j: te.max(x[k, j], axis=k), name="M")


ROWS = {"m": 5, "n": 70}
PROGRAMS = [
    Program(
        "add relu", [("m", "n")] * 2, lambda a, b: ops.relu(ops.add(a, b)), lambda a, b: np.maximum(a + b, 0), ROWS
    ),
    Program("transpose", [("m", "n")], lambda a: ops.transpose(a), lambda a: a.T, ROWS),
    Program("softmax", [("m", "n")], ops.softmax, softmax, ROWS),
    Program("layer norm", [("m", "n")], ops.layer_norm, lambda x: normalized(x, -1), ROWS),
    Program("row sums", [("m", "n")], lambda x: ops.sum(x, 1), lambda x: x.sum(1), ROWS),
    Program("short rows", [("m", "n")], lambda x: ops.sum(x, 1), lambda x: x.sum(1), {"m": 70, "n": 3}),
    Program("column maxima", [("m", "n")], column_maxima, lambda x: x.max(0), {"m": 40, "n": 1100}),
    Program("sum of all", [("m", "n")], total, lambda x: x.sum()[None], ROWS),
    Program("argmax", [("m", "n")], lambda x: ops.argmax(x, 1), lambda x: x.argmax(1), ROWS),
    Program("matmul", [("m", "k"), ("k", "n")], ops.matmul, np.matmul, {"m": 37, "k": 19, "n": 41}),
    Program("wide fetches", [("m", "k"), ("k", "n")], ops.matmul, np.matmul, {"m": 33, "k": 20, "n": 68}),
    Program("small matmul", [("m", "k"), ("k", "n")], ops.matmul, np.matmul, {"m": 3, "k": 9, "n": 5}),
    Program(
        "dense relu",
        [("m", "k"), ("n", "k"), ("n",)],
        lambda x, w, b: ops.relu(ops.dense(x, w, b)),
        lambda x, w, b: np.maximum(x @ w.T + b, 0),
        {"m": 20, "k": 11, "n": 33},
    ),
    Program("batches", [("b", "m", "k"), ("b", "k", "n")], ops.matmul, np.matmul, {"b": 3, "m": 17, "k": 9, "n": 18}),
    Program("matrix times vector", [("m", "k"), ("k", 1)], ops.matmul, np.matmul, {"m": 21, "k": 40}),
    Program(
        "convolution",
        [("b", 3, "h", 14), (5, 3, 3, 3)],
        lambda x, w: ops.relu(ops.conv2d(x, w, 1, 1)),
        lambda x, w: np.maximum(convolved(x, w, ONE, BORDER, ONE), 0),
        {"b": 2, "h": 9},
        kernels=2,
    ),
    Program(
        "strided convolution",
        [("b", 2, "h", 9), (3, 2, 3, 3)],
        lambda x, w: ops.conv2d(x, w, 2, 1),
        lambda x, w: convolved(x, w, (2, 2), BORDER, ONE),
        {"b": 1, "h": 8},
        kernels=2,
    ),
    Program(
        "pool",
        [("b", 2, "h", 9)],
        lambda x: ops.max_pool2d(x, 3, 2),
        lambda x: pooled(x, "max", 3, 2),
        {"b": 2, "h": 11},
    ),
]
EACH = pytest.mark.parametrize("program", [pytest.param(p, id=p.label) for p in PROGRAMS])


def allowed(got: Any, expected: Any, label: str) -> None:
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5, err_msg=label)


@EACH
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_kernels_in_several_orders_of_threads(program: Program, dynamic: bool) -> None:
    module = program.function(dynamic=dynamic)
    lower_to_tir(module)
    plain = module.clone()
    (trace,) = apply_default_schedule(module, Target.parse("cuda"))
    sch = weft.Schedule(plain)
    weft.run_trace(sch, trace)
    weft.assert_structural_equal(sch.mod, module)
    lower_tir_to_low(Context(), module, "cuda")
    if not dynamic:
        assert sum(op.name == "low.launch" for op in module.walk()) == program.kernels
    for order in ("forward", "reversed"):
        arguments, expected = program.arguments()
        Interpreter(module, order=order).call("main", *arguments)
        allowed(arguments[-1], expected, program.label)


@pytest.mark.slow
@EACH
def test_on_a_device(program: Program) -> None:
    pytest.importorskip("pyopencl", reason="OpenCL is not installed: pip install 'weft[opencl]'")
    fixed = weft.build(program.function(dynamic=False), target="opencl -opt-level=0")
    arguments, expected = program.arguments()
    fixed["main"](*arguments)
    allowed(arguments[-1], expected, program.label)
    assert fixed.traces
    any_size = weft.build(program.function(dynamic=True), target="opencl -opt-level=0")["main"]
    least = {"h": 3}
    for sizes in (program.sizes, {name: least.get(name, 1) for name in program.sizes}):
        arguments, expected = program.arguments(**sizes)
        any_size(*arguments)
        allowed(arguments[-1], expected, f"{program.label} {sizes}")


def test_rows_that_are_too_long_stay_in_memory_of_the_device() -> None:
    """And rows that fit one target need not fit the other."""
    long = Program("softmax", [("m", "n")], ops.softmax, softmax, {"m": 2, "n": 5000})
    launches: dict[str, int] = {}
    for target in ("opencl", "cuda -arch=sm_90"):
        module = long.function(dynamic=False)
        lower_to_tir(module)
        apply_default_schedule(module, Target.parse(target))
        lower_tir_to_low(Context(), module, target)
        launches[target] = sum(op.name == "low.launch" for op in module.walk())
    assert launches["cuda -arch=sm_90"] == 1 < launches["opencl"]


def test_what_a_user_bound_is_left_alone() -> None:
    program = PROGRAMS[0]
    sch = weft.Schedule(program.function(dynamic=False))
    sch.compute_inline("add")
    i, j = sch.get_loops("relu")
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    library = weft.build(sch.mod, target="opencl")
    assert not library.traces and "reqd_work_group_size(70, 1, 1)" in library.get_source()


SHARED = """
func.func @main(%A: memref<?x7xf32>, %C: memref<?x7xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %A, %c0 : memref<?x7xf32>
  tir.assume_shape %C[%n] : memref<?x7xf32>
  %S = memref.alloc(%n) : memref<?xf32>
  tir.for %i in %n {
    tir.for %k in 7 {
      tir.block "sum" iters(%vi: spatial<%n>, %vk: reduce<7>) = [%i, %k] {
        tir.init { memref.store %zero, %S[%vi] : memref<?xf32> }
        %a = memref.load %A[%vi, %vk] : memref<?x7xf32>
        %s = memref.load %S[%vi] : memref<?xf32>
        %t = arith.addf %s, %a : f32
        memref.store %t, %S[%vi] : memref<?xf32>
      } }
    tir.for %j in 7 {
      tir.block "share" iters(%vi: spatial<%n>, %vj: spatial<7>) = [%i, %j] {
        %a = memref.load %A[%vi, %vj] : memref<?x7xf32>
        %s = memref.load %S[%vi] : memref<?xf32>
        %d = arith.divf %a, %s : f32
        memref.store %d, %C[%vi, %vj] : memref<?x7xf32>
      } }
  }
  func.return
}
"""


def test_threads_run_what_stands_in_a_loop_of_several_blocks() -> None:
    module = weft.parse(SHARED)
    (trace,) = apply_default_schedule(module, Target.parse("opencl"))
    assert [step.name for step in trace.body.block.ops][-2:] == ["sched.bind", "sched.bind"]
    lower_tir_to_low(Context(), module, "opencl")
    x = np.random.default_rng(0).uniform(0.5, 1, (300, 7)).astype(np.float32)
    for order in ("forward", "reversed"):
        found = np.full_like(x, np.nan)
        Interpreter(module, order=order).call("main", x, found)
        allowed(found, x / x.sum(1, keepdims=True), order)


def test_loops_of_several_blocks_whose_iterations_depend_on_each_other() -> None:
    """Nothing proves that threads may run them: lowering names the loop."""
    module = weft.parse(SHARED.replace("%a = memref.load %A[%vi, %vj]", "%a = memref.load %C[%c0, %vj]"))
    assert apply_default_schedule(module, Target.parse("opencl")) == []
    with pytest.raises(CompileError, match='loop %i of block "sum" is bound to no thread axis'):
        lower_tir_to_low(Context(), module, "opencl")
