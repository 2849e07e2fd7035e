"""Ops that may do anything run as often as the program says and in that order, whatever is done to it.

Each primitive is tried on programs with an opaque op in one of several places. The step is refused with words that name
the op, or the calls before and after it are the same. With a pure function in its place the step is legal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from primitive_cases import CASES, CHAIN, PRODUCT, SUM, Steps, loop
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr

import weft
from weft import Schedule, te
from weft.analysis.accesses import WORLD, accesses
from weft.autoschedule.default_schedule import DefaultSchedulePass
from weft.dialects.effects import effects_of, op_name
from weft.dialects.levels import unregister_operation
from weft.driver.parsing import parse_text
from weft.driver.programs import context
from weft.interp.compare import Reference, compare_modules
from weft.interp.registry import recorded_calls
from weft.passes.gpu_pipeline import kernels_to_low
from weft.passes.low.low_lower_intrinsics import LowerIntrinsicsPass
from weft.passes.pipelines import tir_to_low
from weft.passes.schedule.primitive import PRIMITIVES
from weft.support.errors import ScheduleError
from weft.support.user_functions import register_intrinsic, register_lowering, unregister_intrinsic

OPAQUE = (
    r"calls @seen, which may have effects \(registered with pure=False\)(.|\n)*legal: .*register_intrinsic\(..., pure"
    r"|calls @helper, in which not all ops are known to be free of effects(.|\n)*legal: .*register_intrinsic"
    r"|runs other\.op, whose effects are not known(.|\n)*legal: .*give it the trait Pure"
)
CALL = "func.call @seen({0}) : (f32) -> f32"
KINDS = {
    "intrinsic": ("func.func private @seen(f32) -> f32", CALL),
    "pure": ("func.func private @seen(f32) -> f32 attributes {low.pure}", CALL),
    "helper": (
        "func.func private @seen(f32) -> f32\n"
        "func.func @helper(%x: f32) -> f32 {\n  %y = func.call @seen(%x) : (f32) -> f32\n  func.return %y : f32\n}",
        "func.call @helper({0}) : (f32) -> f32",
    ),
    "unregistered": ("", '"other.op"({0}) : (f32) -> f32'),
}


@pytest.fixture(autouse=True)
def seen() -> Iterator[None]:
    """The function whose calls the interpreter records."""
    register_intrinsic("seen", pure=False, meaning=lambda x: x + 1)
    weft.register_operation("other.op", levels=("tir", "low"), meaning=lambda op, x: x + 1)
    yield
    unregister_intrinsic("seen")
    unregister_operation("other.op")


def parse(text: str) -> ModuleOp:
    ctx = context()
    ctx.allow_unregistered = True
    return parse_text(ctx, text, "program.mlir")


def written(program: str, at: str, kind: str) -> ModuleOp:
    """The program with an op of a kind at one of its places, `@@<place> <result> <operand>`: at the others, zero is
    added."""
    declaration, call = KINDS[kind]
    lines: list[str] = []
    for line in program.splitlines():
        if not line.strip().startswith("@@"):
            lines.append(line)
            continue
        slot, result, operand = line.strip()[2:].split()
        lines.append(f"{result} = " + (call.format(operand) if slot == at else f"arith.addf {operand}, %zero : f32"))
    return parse(declaration + "\n" + "\n".join(lines))


def test_every_primitive_is_tried() -> None:
    assert set(CASES) == set(PRIMITIVES)


@pytest.mark.parametrize("name", CASES)
def test_primitive(name: str) -> None:
    case = CASES[name]
    for kind in ("intrinsic", "helper", "unregistered"):
        for at in (*case.refused, *case.legal):
            sch = Schedule(written(case.program, at, kind))
            before = sch.mod.clone()
            try:
                case.prepare(sch)
                case.step(sch)
            except ScheduleError as error:
                text = str(error)
                assert at in case.refused, f"an op at {at} is {kind}: {text}"
                assert re.search(OPAQUE, text), text
                continue
            assert at not in case.refused, f"an op at {at} is {kind}, and the step was accepted"
            assert compare_modules(before, sch.mod) is None


@pytest.mark.parametrize("name", CASES)
def test_primitive_with_a_pure_function(name: str) -> None:
    case = CASES[name]
    for at in case.refused:
        sch = Schedule(written(case.program, at, "pure"))
        case.prepare(sch)
        case.step(sch)


# Buffers

TOUCHED = """
func.func private @touch(memref<8x6xf32>) PURE
func.func @f(%A: memref<8x6xf32>, %D: memref<8x6xf32>, %E: memref<8x6xf32>) {
  %T = memref.alloc() : memref<8x6xf32>
  tir.for %i in 8 { tir.for %j in 6 {
    tir.block "T" iters(%vi: spatial<8>, %vj: spatial<6>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : memref<8x6xf32>
      memref.store %a, %T[%vi, %vj] : memref<8x6xf32>
    } } }
  TOUCH
  tir.for %i in 8 { tir.for %j in 6 {
    tir.block "D" iters(%vi: spatial<8>, %vj: spatial<6>) = [%i, %j] {
      %t = memref.load %T[%vi, %vj] : memref<8x6xf32>
      memref.store %t, %D[%vi, %vj] : memref<8x6xf32>
    } } }
  tir.for %i in 8 { tir.for %j in 6 {
    tir.block "E" iters(%vi: spatial<8>, %vj: spatial<6>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : memref<8x6xf32>
      memref.store %a, %E[%vi, %vj] : memref<8x6xf32>
    } } }
  func.return
}"""
TOUCH = {
    "opaque call": ("", "func.call @touch(%T) : (memref<8x6xf32>) -> ()"),
    "pure call": ("attributes {low.pure}", "func.call @touch(%T) : (memref<8x6xf32>) -> ()"),
    "opaque op": ("", '"other.touch"(%T) : (memref<8x6xf32>) -> ()'),
    "op that writes": ("", '"other.op"(%T) : (memref<8x6xf32>) -> ()'),
}
PASSED: dict[str, tuple[Steps, str | None]] = {
    "compute_inline": (lambda s: s.compute_inline("T"), "OP outside of the blocks of its scope uses T"),
    "compute_at": (lambda s: s.compute_at("T", loop(s, "D")), "OP uses T and is not inside the loop"),
    "reverse_compute_at": (
        lambda s: s.reverse_compute_at("D", loop(s, "T")),
        "effects|writes T, which may be the same element, and would change places",
    ),
    "reverse_compute_inline": (lambda s: s.reverse_compute_inline("D"), "OP outside of the blocks of its scope uses T"),
    "cache_read": (lambda s: s.cache_read("D", 0, "local"), "OP outside of the blocks of the scope writes T"),
    "set_scope": (lambda s: s.set_scope("T", 0, "local"), "OP takes all of T"),
    "storage_align": (lambda s: s.storage_align("T", 0, 0, 4, 1), "has no gaps \\[storage_align.5\\]\n  OP may"),
    "transform_layout": (
        lambda s: s.transform_layout("T", ("write", 0), lambda i, j: (j, i)),
        "OP works on T in its present layout",
    ),
    "parallel": (lambda s: s.parallel(loop(s, "D")), None),
    "cache_write": (lambda s: s.cache_write("E", 0, "local"), None),
}


@pytest.mark.parametrize("name", PASSED)
def test_an_op_that_takes_a_buffer_touches_all_of_it(name: str) -> None:
    step, message = PASSED[name]
    weft.register_operation("other.op", levels=("tir",), effects=("write",), override=True)
    for pure, touch in TOUCH.values():
        sch = Schedule(parse(TOUCHED.replace("PURE", pure).replace("TOUCH", touch)))
        if message is None:
            step(sch)
        else:
            with pytest.raises(ScheduleError, match=message.replace("OP", r"(func\.call|other\.op|other\.touch)")):
                step(sch)


@pytest.mark.parametrize(
    ("kind", "reads", "writes", "opaque"),
    [
        ("opaque call", True, True, True),
        ("pure call", True, True, False),
        ("opaque op", True, True, True),
        ("op that writes", False, True, False),
    ],
)
def test_what_is_stated_of_an_op_is_all_it_does(kind: str, reads: bool, writes: bool, opaque: bool) -> None:
    weft.register_operation("other.op", levels=("tir",), effects=("write",), override=True)
    pure, touch = TOUCH[kind]
    module = parse(TOUCHED.replace("PURE", pure).replace("TOUCH", touch))
    (op,) = (op for op in module.walk() if op_name(op) in ("func.call", "other.op", "other.touch"))
    buffer = (op.operands[0],)
    effects = effects_of(op)
    assert (effects.reads, effects.writes) == (buffer * reads, buffer * writes)
    assert effects.is_opaque == opaque
    touched = {access.buffer for access in accesses(op)}
    assert (WORLD in touched) == opaque
    assert len(touched) == (5 if opaque else 1)  # the parameters, too


# Lowering

LOWERED = """
func.func private @seen(f32) -> f32
func.func @f(%A: memref<10xf32>, %B: memref<10xf32>, %C: memref<8xf32>, %R: memref<4xf32>, %S: memref<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %T = memref.alloc() : memref<10xf32>
  tir.for %i in 4 { tir.for %j in 3 {
    tir.block "guarded" iters(%v: spatial<10>) = [%i * 3 + %j] where [%i * 3 + %j] < [10] {
      %a = memref.load %A[%v] : memref<10xf32>
      %unused = func.call @seen(%zero) : (f32) -> f32
      %again = func.call @seen(%zero) : (f32) -> f32
      memref.store %again, %T[%v] : memref<10xf32>
      %b = func.call @seen(%a) : (f32) -> f32
      memref.store %b, %B[%v] : memref<10xf32>
    } } }
  tir.for %i in 2 parallel { tir.for %j in 4 vectorized {
    tir.block "lanes" iters(%v: spatial<8>) = [%i * 4 + %j] {
      %c = func.call @seen(%one) : (f32) -> f32
      memref.store %c, %C[%v] : memref<8xf32>
    } } }
  tir.for %i in 4 { tir.for %k in 10 {
    tir.block "sum" iters(%v: spatial<4>, %w: reduce<10>) = [%i, %k] {
      tir.init {
        %n = func.call @seen(%zero) : (f32) -> f32
        memref.store %n, %R[%v] : memref<4xf32>
      }
      %t = memref.load %B[%w] : memref<10xf32>
      %u = func.call @seen(%t) : (f32) -> f32
      %r = memref.load %R[%v] : memref<4xf32>
      %s = arith.addf %r, %u : f32
      memref.store %s, %R[%v] : memref<4xf32>
    } } }
  tir.for %i in 4 unrolled {
    %x = func.call @seen(%one) : (f32) -> f32
    tir.for %k in 3 {
      tir.block "start" iters(%v: spatial<4>, %w: reduce<3>) = [%i, %k] {
        tir.init { memref.store %zero, %S[%v] : memref<4xf32> }
        %y = func.call @seen(%zero) : (f32) -> f32
        %r = memref.load %S[%v] : memref<4xf32>
        %s = arith.addf %r, %y : f32
        memref.store %s, %S[%v] : memref<4xf32>
      } } }
  func.return
}"""
TWICE = LOWERED.replace("      %unused = func.call @seen(%zero) : (f32) -> f32\n", "")


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_lowering_passes(target: str) -> None:
    try:
        register_lowering("seen")(lambda call: "seen_outside")
        module = weft.parse(LOWERED)
        reference = Reference(module)
        for step in tir_to_low(target):
            step.apply(Context(), module)
            assert reference.compare(module) is None, step.name
    finally:
        register_intrinsic("seen", pure=False, override=True)


def test_a_lost_call_is_a_difference() -> None:
    found = compare_modules(weft.parse(LOWERED), weft.parse(TWICE))
    assert "calls with effects[1] was @seen(0.0), is @seen(" in str(found)


COUNTER = """
@seen.count = internal global float 0.0
define float @seen_outside(float %x) {
  %old = load float, ptr @seen.count
  %new = fadd float %old, 1.0
  store float %new, ptr @seen.count
  ret float %new
}"""


def test_machine_code_calls_in_order() -> None:
    counted = iter(range(1, 1000))
    register_intrinsic("seen", pure=False, meaning=lambda x: float(next(counted)), override=True)
    register_lowering("seen", target="llvm")(lambda call: "seen_outside")
    module = weft.parse(LOWERED.replace("parallel", ""))
    module.attributes["low.import_llvm"] = ArrayAttr([StringAttr(COUNTER)])
    shapes = (10, 10, 8, 4, 4)
    interpreted, compiled = ([np.ones(n, np.float32) for n in shapes] for _ in range(2))
    weft.Interpreter(module).call("f", *interpreted)
    weft.build(module, target="llvm")["f"](*compiled)
    for ours, theirs in zip(interpreted, compiled, strict=True):
        np.testing.assert_array_equal(ours, theirs)


KERNEL = """
func.func private @seen(f32) -> f32
func.func @f(%A: memref<8xf32>, %B: memref<8xf32>) {
  %two = arith.constant 2.0 : f32
  tir.for %b in 2 thread_binding<"blockIdx.x"> {
    tir.block "once" iters(%v: spatial<2>) = [%b] {
      %x = func.call @seen(%two) : (f32) -> f32
    }
    tir.for %t in 4 thread_binding<"threadIdx.x"> {
      tir.block "each" iters(%v: spatial<8>) = [%b * 4 + %t] {
        %a = memref.load %A[%v] : memref<8xf32>
        %y = func.call @seen(%a) : (f32) -> f32
        memref.store %y, %B[%v] : memref<8xf32>
      } } }
  func.return
}"""


def test_one_thread_does_what_stands_in_no_loop_over_threads() -> None:
    def calls(module: ModuleOp) -> list[tuple[float, ...]]:
        a, b = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
        with recorded_calls() as found:
            weft.Interpreter(module).call("f", a, b)
        return sorted(arguments for _, arguments in found)

    module = weft.parse(KERNEL)
    expected = calls(module)
    assert len(expected) == 10
    for step in kernels_to_low("cuda"):
        if isinstance(step, LowerIntrinsicsPass):
            break
        step.apply(Context(), module)
    assert "low.launch" in str(module)
    assert calls(module) == expected


@pytest.mark.parametrize("target", ["llvm -mcpu=haswell", "cuda"])
def test_default_schedules(target: str) -> None:
    for program, places in (
        (CHAIN, ("producer", "loop", "consumer")),
        (SUM, ("init", "update")),
        (PRODUCT, ("factor",)),
    ):
        for at in places:
            module = written(program, at, "intrinsic")
            before = module.clone()
            DefaultSchedulePass(target).apply(Context(), module)
            assert compare_modules(before, module) is None


def test_a_reduction_within_an_expression_is_not_split_off() -> None:
    A, k = te.placeholder((4, 8), name="A"), te.reduce_axis((0, 8), name="k")
    S = te.compute((4,), lambda i: te.sum(te.call_intrin("float32", "seen", A[i, k]), axis=k), name="S")
    te.create_func([A, S])
    B = te.compute((4,), lambda i: te.sum(te.call_intrin("float32", "seen", A[i, k]), axis=k) * 2.0, name="B")
    with pytest.raises(
        weft.CompileError, match=r'te\.compute "B" calls @seen, which may have effects.* tensor of its own'
    ):
        te.create_func([A, B])


# Globals

VARIABLE = """
"memref.global"() <{
  sym_name = "g", sym_visibility = "private", type = memref<4xf32>, initial_value = dense<0.0> : tensor<4xf32>
}> : () -> ()
func.func @count() -> f32 {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %g = memref.get_global @g : memref<4xf32>
  %old = memref.load %g[%c0] : memref<4xf32>
  %new = arith.addf %old, %one : f32
  memref.store %new, %g[%c0] : memref<4xf32>
  func.return %new : f32
}
func.func @f(%A: memref<4xf32>, %B: memref<4xf32>) {
  %T = memref.alloc() : memref<4xf32>
  %g = memref.get_global @g : memref<4xf32>
  %h = memref.get_global @g : memref<4xf32>
  tir.for %i in 4 {
    tir.block "T" iters(%v: spatial<4>) = [%i] {
      %x = func.call @count() : () -> f32
      memref.store %x, %T[%v] : memref<4xf32>
    } }
  tir.for %i in 4 {
    tir.block "G" iters(%v: spatial<4>) = [%i] {
      %a = memref.load %A[%v] : memref<4xf32>
      memref.store %a, %g[%v] : memref<4xf32>
    } }
  tir.for %i in 4 {
    tir.block "B" iters(%v: spatial<4>) = [%i] {
      %w = affine.apply affine_map<(d0) -> (3 - d0)>(%v)
      %t = memref.load %T[%w] : memref<4xf32>
      %a = memref.load %h[%w] : memref<4xf32>
      %s = arith.addf %a, %t : f32
      memref.store %s, %B[%v] : memref<4xf32>
    } }
  func.return
}"""


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda s: s.compute_inline("T"), r"calls @count, in which not all ops are known to be free of effects"),
        (lambda s: s.parallel(loop(s, "T")), r"calls @count, in which not all ops are known to be free of effects"),
        (lambda s: s.merge(loop(s, "G"), loop(s, "B")), r'"G" writes g\[2\].*"B" reads g\[2\]'),
        (lambda s: s.compute_inline("G"), 'block "G"'),
    ],
    ids=["inline", "parallel", "merge", "inline the writer"],
)
def test_variables_of_the_module_are_memory_that_functions_share(step: Steps, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        step(Schedule(weft.parse(VARIABLE)))
    constant = VARIABLE.replace("\n}> :", ", constant}> :").replace("memref.store %new, %g", "memref.store %new, %o")
    constant = constant.replace("%one = arith", "%o = memref.alloc() : memref<4xf32>\n  %one = arith", 1)
    Schedule(weft.parse(constant)).compute_inline("T")
