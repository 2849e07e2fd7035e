"""Functions that promise less than weft's own (`tir.promises`): arguments that overlap give the result of the program
as written, whatever is done to it.

Each primitive is tried on programs whose parameters may overlap. The step is refused with words that name the buffers
and say how to promise, or the scheduled program leaves memory as the program does, for arguments that overlap.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from platform import machine
from shutil import which

import numpy as np
import pytest
from overlapping_arguments import Array, compiled, forms_of, interpreted, layouts
from primitive_cases import CASES, Steps, loop
from tiers import first_tier
from upstream_tools import UpstreamLibrary, needs_mlir
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import weft
from weft import Schedule
from weft.autoschedule.default_schedule import apply_default_schedule
from weft.dialects.aliasing import set_noalias
from weft.dialects.promises import Promise, promises_of, state_promises
from weft.passes.convert.convert_linalg_to_tir import ConvertLinalgToTirPass
from weft.passes.convert.raise_affine_to_tir import RaiseAffineToTirPass
from weft.passes.lower_tir_to_low import lower_tir_to_low
from weft.script import print_script
from weft.support.call_arguments import bind_arguments, check_overlap
from weft.support.call_signature import ArraySpec, Signature
from weft.support.errors import CompileError, ScheduleError

REFUSED = (
    r"not proved: (.|\n)*(\w+) and (\w+) may overlap(.|\n)*legal: where buffers do not overlap, @f promises it: "
    r'"noalias" in tir.promises, or llvm.noalias on the argument'
)


def program(text: str, *promises: Promise) -> ModuleOp:
    """The module of a program of `primitive_cases` without its calls, whose function promises that alone."""
    lines = [re.sub(r"@@\w+ (\S+) (\S+)", r"\1 = arith.addf \2, %zero : f32", line) for line in text.splitlines()]
    module = weft.parse("\n".join(lines))
    state_promises(function_of(module), promises)
    return module


def function_of(module: ModuleOp) -> FuncOp:
    return next(op for op in module.body.block.ops if isinstance(op, FuncOp) and op.body.blocks)


def require_same(before: ModuleOp, after: ModuleOp) -> None:
    """Both leave memory alike for arguments that overlap."""
    for layout in layouts(forms_of(before), count=4):
        wanted = layout.after(interpreted(before, "f"))
        for order in ("forward", "reversed"):
            found = layout.after(interpreted(after, "f", order))
            assert layout.agree(found, wanted), f"{layout.places}, {order}:\n{after}"


PROGRAMS = ("split", "cache_inplace", "rfactor", "fuse_reduction_epilogue", "decompose_padding")
"""Cases of different programs."""
REORDERED = r'legal: (.|\n)*"reassoc" in tir.promises of @f, or fastmath<reassoc> on arith.addf'


@pytest.mark.parametrize(
    "name", first_tier(sorted(set(CASES) - {"tensorize"}), "merge", "compute_inline", "cache_write", "rolling_buffer")
)
def test_primitive_on_overlapping_parameters(name: str) -> None:
    case = CASES[name]
    sch = Schedule(program(case.program, Promise.CONTRACT, Promise.REASSOC))
    before = sch.mod.clone()
    try:
        case.prepare(sch)
        case.step(sch)
    except ScheduleError as error:
        assert re.search(REFUSED, str(error)), str(error)
        return
    require_same(before, sch.mod)


DIRECT = """
func.func @f(%A: memref<8x6xf32>, %D: memref<8x6xf32>, %E: memref<8x6xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %i in 8 { tir.for %j in 6 {
    tir.block "D" iters(%vi: spatial<8>, %vj: spatial<6>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : memref<8x6xf32>
      %d = arith.addf %a, %one : f32
      memref.store %d, %D[%vi, %vj] : memref<8x6xf32>
    } } }
  tir.for %i in 8 { tir.for %j in 6 {
    tir.block "E" iters(%vi: spatial<8>, %vj: spatial<6>) = [%i, %j] {
      %d = memref.load %D[%vi, %vj] : memref<8x6xf32>
      memref.store %d, %E[%vi, %vj] : memref<8x6xf32>
    } } }
  func.return
}"""
STEPS: dict[str, Steps] = {
    "tile": lambda s: s.tile(*s.get_loops("D"), factors=[4, 3]),
    "reorder": lambda s: s.reorder(*s.get_loops("D")[::-1]),
    "parallel": lambda s: s.parallel(loop(s, "D")),
    "vectorize": lambda s: s.vectorize(loop(s, "D", 1)),
    "bind": lambda s: s.bind(loop(s, "D"), "threadIdx.x"),
    "merge": lambda s: s.merge(loop(s, "D"), loop(s, "E")),
    "compute_at": lambda s: s.compute_at("D", loop(s, "E")),
    "reverse_compute_at": lambda s: s.reverse_compute_at("E", loop(s, "D")),
    "cache_read": lambda s: s.cache_read("D", 0, "local"),
    "cache_write": lambda s: s.cache_write("D", 0, "local"),
    "cache_write for consumers": lambda s: s.cache_write("D", 0, "local", consumer_blocks=["E"]),
    "read_at": lambda s: s.read_at(loop(s, "D"), "D", 0, "local"),
    "write_at": lambda s: s.write_at(loop(s, "D"), "D", 0, "local"),
    "reindex": lambda s: s.reindex("D", ("read", 0)),
    "reindex what is written": lambda s: s.reindex("D", ("write", 0)),
    "reindex_cache_read": lambda s: s.reindex_cache_read("D", 0, "local", lambda i, j: (j, i)),
    "reindex_cache_write": lambda s: s.reindex_cache_write("D", 0, "local", lambda i, j: (j, i)),
    "transform_layout": lambda s: s.transform_layout("D", ("read", 0), lambda i, j: (j, i)),
    "transform_block_layout": lambda s: s.transform_block_layout("D", lambda i, j: (j, i)),
}
"""Steps that overlapping parameters forbid."""
KEEP_ORDER: dict[str, Steps] = {
    "split": lambda s: s.split(loop(s, "D"), [3, 3]),
    "fuse": lambda s: s.fuse(*s.get_loops("D")),
    "loop_partition": lambda s: s.loop_partition(loop(s, "D"), [2, 0]),
    "unroll": lambda s: s.unroll(loop(s, "D")),
    "blockize": lambda s: s.blockize(loop(s, "D", 1)),
}


ROW = """
func.func @row(%D: memref<6xf32>, %E: memref<6xf32>) {
  tir.for %j in 6 {
    tir.block "E" iters(%vj: spatial<6>) = [%j] {
      %d = memref.load %D[%vj] : memref<6xf32>
      memref.store %d, %E[%vj] : memref<6xf32>
    } }
  func.return
}"""


def test_intrinsics_on_buffers_that_may_overlap() -> None:
    weft.register_tensor_intrinsic("copies 6", weft.parse(ROW), weft.parse(ROW), override=True)
    sch = Schedule(program(DIRECT))
    with pytest.raises(ScheduleError) as refused:
        sch.tensorize(loop(sch, "E", 1), "copies 6")
    assert "requirement 3, no buffer stands for two parameters" in str(refused.value)
    assert re.search(REFUSED, str(refused.value)), str(refused.value)
    sch = Schedule(program(DIRECT, Promise.NOALIAS))
    sch.tensorize(loop(sch, "E", 1), "copies 6")


@pytest.mark.parametrize("name", STEPS)
def test_refused_between_parameters(name: str) -> None:
    sch = Schedule(program(DIRECT))
    with pytest.raises(ScheduleError) as refused:
        STEPS[name](sch)
    assert re.search(REFUSED, str(refused.value)), str(refused.value)
    STEPS[name](Schedule(program(DIRECT, Promise.NOALIAS)))
    of_arguments = program(DIRECT)
    set_noalias(function_of(of_arguments), [0, 2])
    STEPS[name](Schedule(of_arguments))


APART = """
func.func @f(%P: memref<8xf32>, %Q: memref<8xf32>, %R: memref<8xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %i in 8 { tir.block "P" iters(%v: spatial<8>) = [%i] { memref.store %one, %P[%v] : memref<8xf32> } }
  tir.for %i in 8 {
    tir.block "R" iters(%v: spatial<8>) = [%i] {
      %q = memref.load %Q[%v] : memref<8xf32>
      memref.store %q, %R[%v] : memref<8xf32>
    } }
  func.return
}"""


def test_merge_of_loops_that_name_no_buffer_in_common() -> None:
    sch = Schedule(program(APART))
    with pytest.raises(ScheduleError, match=r"writes P(.|\n)*reads Q(.|\n)*may overlap"):
        sch.merge(loop(sch, "P"), loop(sch, "R"))


@pytest.mark.parametrize("name", first_tier(KEEP_ORDER, "fuse", "blockize"))
def test_steps_that_keep_the_order(name: str) -> None:
    sch = Schedule(program(DIRECT))
    before = sch.mod.clone()
    KEEP_ORDER[name](sch)
    require_same(before, sch.mod)
    call = compiled(sch.mod, "f")
    for layout in layouts(forms_of(before)):
        wanted = layout.after(interpreted(before, "f"))
        assert layout.agree(layout.after(call), wanted)


def test_calls_of_functions_that_promise_refuse_what_overlaps() -> None:
    module = program(DIRECT, Promise.NOALIAS)
    layout = next(layouts(forms_of(module)))
    for call in (compiled(module, "f"), interpreted(module, "f")):
        with pytest.raises(ValueError, match="an output that shares no memory with other arguments"):
            layout.after(call)
    apart = program(DIRECT)
    set_noalias(function_of(apart), [0])
    for call in (compiled(apart, "f"), interpreted(apart, "f")):
        with pytest.raises(ValueError, match="got one that overlaps argument 1 \\('A'\\)"):
            layout.after(call)


@pytest.mark.parametrize("kind", first_tier(["llvm", "c"], "llvm"))
@pytest.mark.parametrize("name", first_tier(PROGRAMS, "split", "rfactor"))
def test_build_of_overlapping_parameters(name: str, kind: str) -> None:
    """With the default schedule, of which no step is taken that needs a promise."""
    module = program(CASES[name].program)
    call = compiled(module, "f", weft.Target(kind))
    for layout in layouts(forms_of(module)):
        assert layout.agree(layout.after(call), layout.after(interpreted(module, "f")))


# The order and the rounding of sums

PRODUCT = """
func.func @f(%A: memref<24x40xf32>, %B: memref<40x32xf32>, %C: memref<24x32xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 24 { tir.for %j in 32 { tir.for %k in 40 {
    tir.block "C" iters(%vi: spatial<24>, %vj: spatial<32>, %vk: reduce<40>) = [%i, %j, %k] {
      tir.init { memref.store %zero, %C[%vi, %vj] : memref<24x32xf32> }
      %a = memref.load %A[%vi, %vk] : memref<24x40xf32>
      %b = memref.load %B[%vk, %vj] : memref<40x32xf32>
      %c = memref.load %C[%vi, %vj] : memref<24x32xf32>
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      memref.store %s, %C[%vi, %vj] : memref<24x32xf32>
    } } } }
  func.return
}"""
ROWS = """
func.func @f(%A: memref<64x1000xf32>, %R: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 64 { tir.for %k in 1000 {
    tir.block "R" iters(%vi: spatial<64>, %vk: reduce<1000>) = [%i, %k] {
      tir.init { memref.store %zero, %R[%vi] : memref<64xf32> }
      %a = memref.load %A[%vi, %vk] : memref<64x1000xf32>
      %r = memref.load %R[%vi] : memref<64xf32>
      %s = arith.addf %r, %a : f32
      memref.store %s, %R[%vi] : memref<64xf32>
    } } }
  func.return
}"""


def in_order(terms: Array) -> Array:
    """The sums over the first axis, one term after the other, rounded at each step."""
    total = np.zeros(terms.shape[1:], terms.dtype)
    for term in terms:
        total = total + term
    return total


@pytest.mark.parametrize("kind", first_tier(["llvm", "c"], "llvm"))
def test_default_schedules_keep_order_and_rounding(kind: str) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape, np.float32) for shape in ((24, 40), (40, 32)))
    (c,) = (weft.build(program(PRODUCT, Promise.NOALIAS), weft.Target(kind))["f"](a, b),)
    assert np.array_equal(c, in_order(a.T[:, :, None] * b[:, None, :]))
    rows = rng.standard_normal((64, 1000), np.float32)
    r = weft.build(program(ROWS, Promise.NOALIAS), weft.Target(kind))["f"](rows)
    assert np.array_equal(r, in_order(rows.T))


def test_in_place_product_without_promises() -> None:
    module = program(re.sub("24|40|32(?=[x>]| {)", "8", PRODUCT).replace("f8", "f32"))
    calls = [compiled(module, "f"), compiled(module, "f", "c")]
    for layout in layouts(forms_of(module), count=3):
        wanted = layout.after(interpreted(module, "f"))
        assert all(layout.agree(layout.after(call), wanted) for call in calls)


def vectorize_sum(sch: Schedule) -> None:
    outer, inner = sch.split(loop(sch, "R", 1), [None, 8])
    sch.annotate(inner, "reassociate", True)
    sch.decompose_reduction("R", outer)
    sch.vectorize(inner)


SUMS: dict[str, tuple[str, Steps]] = {
    "rfactor": (ROWS, lambda s: s.rfactor(s.split(loop(s, "R", 1), [None, 8])[1], 0)),
    "reorder": (ROWS, lambda s: s.reorder(*s.split(loop(s, "R", 1), [None, 8])[::-1])),
    "tile": (PRODUCT, lambda s: s.tile(*s.split(loop(s, "C", 2), [None, 8]), factors=[2, 2])),
    "vectorize": (ROWS, vectorize_sum),
    "bind": (ROWS, lambda s: s.bind(loop(s, "R", 1), "threadIdx.x")),
    "parallel": (ROWS, lambda s: s.parallel(loop(s, "R", 1))),
    "transform_block_layout": (PRODUCT, lambda s: s.transform_block_layout("C", lambda i, j, k: (i, j, 39 - k))),
}
"""Steps that change the order of a sum, or may."""


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_floats_in_another_order(name: str) -> None:
    text, step = SUMS[name]
    sch = Schedule(program(text, Promise.NOALIAS, Promise.CONTRACT))
    with pytest.raises(
        ScheduleError, match=r'legal: (.|\n)*"reassoc" in tir.promises of @f, or fastmath<reassoc> on arith'
    ):
        step(sch)
    if name != "parallel":
        step(Schedule(program(text, Promise.NOALIAS, Promise.REASSOC)))
        flagged = re.sub(r"(arith.addf %\w+, %\w+)", r"\1 fastmath<reassoc>", text)
        step(Schedule(program(flagged, Promise.NOALIAS)))
        integers = text.replace("0.0 : f32", "0 : i32").replace("addf", "addi").replace("mulf", "muli")
        step(Schedule(program(integers.replace("f32", "i32"), Promise.NOALIAS)))


SUM_OF_ROW = """
func.func @sum(%A: memref<1000xf32>, %R: memref<f32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %k in 1000 {
    tir.block "R" iters(%vk: reduce<1000>) = [%k] {
      tir.init { memref.store %zero, %R[] : memref<f32> }
      %a = memref.load %A[%vk] : memref<1000xf32>
      %r = memref.load %R[] : memref<f32>
      %s = arith.addf %r, %a : f32
      memref.store %s, %R[] : memref<f32>
    } }
  func.return
}"""


def test_intrinsics_may_sum_in_an_order_of_their_own() -> None:
    weft.register_tensor_intrinsic("sums 1000", weft.parse(SUM_OF_ROW), weft.parse(SUM_OF_ROW), override=True)
    sch = Schedule(program(ROWS, Promise.NOALIAS))
    outer = sch.blockize(loop(sch, "R", 1))
    with pytest.raises(ScheduleError, match=REORDERED):
        sch.tensorize(outer, "sums 1000")


def test_fused_epilogue_is_another_order() -> None:
    text = CASES["fuse_reduction_epilogue"].program
    with pytest.raises(ScheduleError, match=REORDERED):
        Schedule(program(text, Promise.NOALIAS)).fuse_reduction_epilogue("R", "D")


def test_orders_that_stay() -> None:
    """Tiles of the results, panels of the steps: each sum runs as before."""
    module = program(PRODUCT, Promise.NOALIAS)
    sch = Schedule(module)
    i, j, k = sch.get_loops("C")
    (i0, i1), (j0, j1), (k0, k1) = (sch.split(i, [None, 4]), sch.split(j, [None, 8]), sch.split(k, [None, 8]))
    sch.reorder(i0, j0, k0, i1, k1, j1)
    sch.decompose_reduction("C", k0)
    sch.vectorize(j1)
    sch.parallel(i0)
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(shape, np.float32) for shape in ((24, 40), (40, 32)))
    assert np.array_equal(weft.build(sch.mod)["f"](a, b), in_order(a.T[:, :, None] * b[:, None, :]))


MIXED = """
func.func @f(%I: memref<16xi32>, %F: memref<16xf32>, %J: memref<16xi32>) {
  tir.for %i in 16 {
    tir.block "F" iters(%v: spatial<16>) = [%i] {
      %n = memref.load %I[%v] : memref<16xi32>
      %x = arith.sitofp %n : i32 to f32
      memref.store %x, %F[%v] : memref<16xf32>
      %m = memref.load %I[%v] : memref<16xi32>
      memref.store %m, %J[%v] : memref<16xi32>
    } }
  func.return
}"""


def test_overlapping_buffers_of_two_types() -> None:
    """What is stored as a float is read as the integer of its bits."""
    module = program(MIXED)
    calls = [interpreted(module), compiled(module), compiled(module, target="c")]
    for layout in layouts(forms_of(module)):
        wanted = layout.after(calls[0])
        if layout.places[0] == layout.places[1]:
            start = layout.content.view(np.int32)[:16].astype(np.float32).view(np.int32)
            assert layout.places[2] != 0 or np.array_equal(wanted.view(np.int32)[:16], start)
        for call in calls[1:]:
            assert layout.agree(layout.after(call), wanted), layout.places


@pytest.mark.parametrize("name", first_tier(PROGRAMS, "fuse_reduction_epilogue"))
def test_kernels_on_overlapping_parameters(name: str) -> None:
    module = program(CASES[name].program)
    low = module.clone()
    apply_default_schedule(low, weft.Target("cuda"))
    lower_tir_to_low(Context(), low, "cuda")
    for layout in layouts(forms_of(module), count=4):
        wanted = layout.after(interpreted(module))
        assert layout.agree(layout.after(interpreted(low)), wanted), layout.places


def test_copies_on_a_device_do_not_overlap() -> None:
    spec = ArraySpec("A", "float32", (4,), "readwrite", may_overlap=True)
    signature = Signature("f", (spec, replace(spec, name="B")))
    memory = np.zeros(6, np.float32)
    bind_arguments(signature, (memory[:4], memory[2:]), {})
    with pytest.raises(ValueError, match=r"'A'.*expected an output that shares no memory with other arguments"):
        check_overlap(signature, {0: memory[:4], 1: memory[2:]}, copied=True)


@pytest.mark.slow
@pytest.mark.skipif(which("cc") is None, reason="needs a C compiler")
def test_exported_functions_whose_arguments_may_overlap(tmp_path: Path) -> None:
    module = program(DIRECT)
    library = weft.build(module)
    library.export(tmp_path / "f.so")
    library.export(tmp_path / "f.h")
    header = (tmp_path / "f.h").read_text()
    assert "void f(const float *A, float *D, float *E);" in header
    loaded = weft.load(tmp_path / "f.so")
    layout = next(layouts(forms_of(module)))
    assert layout.agree(layout.after(loaded["f"]), layout.after(interpreted(module)))


SQUARES = """
func.func @f(%A: memref<64xf32>, %C: memref<64xf32>) {
  tir.for %i in 64 {
    tir.block "C" iters(%v: spatial<64>) = [%i] {
      %x = memref.load %A[%v] : memref<64xf32>
      %p = arith.mulf %x, %x : f32
      %s = arith.addf %p, %x : f32
      memref.store %s, %C[%v] : memref<64xf32>
    } }
  func.return
}"""


@pytest.mark.slow
@pytest.mark.skipif(machine() != "x86_64" or which("gcc") is None, reason="needs gcc for an x86")
def test_compiled_c_is_not_contracted(tmp_path: Path) -> None:
    for promises, fuses in (((Promise.NOALIAS,), False), ((Promise.NOALIAS, Promise.CONTRACT), True)):
        source = tmp_path / "f.c"
        source.write_text(weft.build(program(SQUARES, *promises), "c").get_source("c"))
        command = ["gcc", "-O3", "-march=haswell", "-ffp-contract=fast", "-S", str(source), "-o", str(tmp_path / "f.s")]
        subprocess.run(command, check=True)
        assert ("vfmadd" in (tmp_path / "f.s").read_text()) == fuses


UPSTREAM = {
    "linalg": (
        """
func.func @f(%A: memref<9x9xf32>, %B: memref<9x9xf32>, %C: memref<9x9xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%C : memref<9x9xf32>)
  linalg.matmul ins(%A, %B : memref<9x9xf32>, memref<9x9xf32>) outs(%C : memref<9x9xf32>)
  linalg.add ins(%C, %A : memref<9x9xf32>, memref<9x9xf32>) outs(%B : memref<9x9xf32>)
  func.return
}""",
        ConvertLinalgToTirPass(),
    ),
    "affine": (
        """
func.func @f(%A: memref<40xf32>, %B: memref<40xf32>, %C: memref<8xf32>) {
  %half = arith.constant 0.5 : f32
  affine.for %i = 1 to 39 {
    %a = affine.load %A[%i - 1] : memref<40xf32>
    %b = affine.load %A[%i + 1] : memref<40xf32>
    %s = arith.addf %a, %b : f32
    %h = arith.mulf %s, %half : f32
    affine.store %h, %B[%i] : memref<40xf32>
  }
  affine.for %i = 0 to 8 {
    affine.for %k = 0 to 5 {
      %b = affine.load %B[%i * 5 + %k] : memref<40xf32>
      %c = affine.load %C[%i] : memref<8xf32>
      %p = arith.mulf %b, %b : f32
      %t = arith.addf %c, %p : f32
      affine.store %t, %C[%i] : memref<8xf32>
    }
  }
  func.return
}""",
        RaiseAffineToTirPass(),
    ),
}


@pytest.mark.slow
@needs_mlir
@pytest.mark.parametrize("name", UPSTREAM)
def test_programs_of_upstream_as_upstream_runs_them(name: str) -> None:
    text, conversion = UPSTREAM[name]
    oracle = UpstreamLibrary(text, ("--convert-linalg-to-loops", "--lower-affine"))["f"]
    module = weft.parse(text)
    conversion.apply(Context(), module)
    assert promises_of(function_of(module)) == frozenset()
    for call in (compiled(module), compiled(module, target="c")):
        for layout in layouts(forms_of(module)):
            assert layout.agree(layout.after(call), layout.after(oracle)), layout.places


# Texts


@pytest.mark.parametrize("promises", [(), (Promise.CONTRACT,), (Promise.NOALIAS, Promise.REASSOC)])
def test_promises_are_printed_and_read(promises: tuple[Promise, ...]) -> None:
    module = program(DIRECT, *promises)
    printed = print_script(module)
    assert f'"tir.noalias": {Promise.NOALIAS in promises}' in printed
    for again in (weft.parse(str(module)), weft.script.parse(printed)):
        assert promises_of(function_of(again)) == frozenset(promises)
    sch = Schedule(module)
    sch.split(loop(sch, "D"), [None, 2])
    assert promises_of(function_of(sch.mod)) == frozenset(promises)


def test_script_without_noalias() -> None:
    printed = print_script(program(DIRECT, Promise.CONTRACT, Promise.REASSOC))
    short = printed.replace(', "tir.promises": ["contract", "reassoc"]', "")
    assert short != printed
    assert promises_of(function_of(weft.script.parse(short))) == {Promise.CONTRACT, Promise.REASSOC}


def test_unknown_promises() -> None:
    wrong = DIRECT.replace("memref<8x6xf32>) {", 'memref<8x6xf32>) attributes {tir.promises = ["noalis"]} {')
    with pytest.raises(CompileError, match="unknown promise 'noalis', did you mean 'noalias'"):
        weft.parse(wrong)
    with pytest.raises(CompileError, match=r"tir\.promises must be an array of names, got 1 : i32"):
        weft.parse(wrong.replace('["noalis"]', "1 : i32"))
