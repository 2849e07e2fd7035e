"""What fuzzing of schedules found: each case is a program with the schedule that broke it, as small as it got."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import weft
from weft.dialects import sched
from weft.interp.compare import compare_modules
from weft.passes.lower_tir_to_low import LowerTirToLowPass
from weft.passes.schedule.replay import apply_schedule
from weft.passes.tir.tir_lower_vectorized import LowerVectorizedPass
from weft.passes.verify_level import verify_level
from weft.runtime.library import Library
from weft.support.errors import ScheduleError


def parsed(text: str) -> tuple[ModuleOp, sched.FuncOp]:
    """A module, and the schedule that stood in it."""
    module = weft.parse(text)
    steps = next(op for op in module.ops if isinstance(op, sched.FuncOp))
    steps.detach()
    return module, steps


def check(text: str) -> ModuleOp:
    """The scheduled module is well formed, and means what the program means, interpreted and as machine code."""
    module, steps = parsed(text)
    scheduled = module.clone()
    apply_schedule(scheduled, steps)
    verify_level(scheduled, "tir")
    assert compare_modules(module, scheduled, orders=("forward", "reversed", "shuffled", "interleaved")) is None
    reference, library = (weft.build(m, default_schedule=False) for m in (module, scheduled))
    assert all(np.array_equal(a, b) for a, b in zip(run(module, reference), run(module, library), strict=True))
    return scheduled


def run(module: ModuleOp, library: Library) -> list[np.ndarray]:
    """What the only function leaves in its arrays, which held small whole numbers."""
    random = np.random.default_rng(0)
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    name = function.sym_name.data
    arrays = [random.integers(-3, 4, a.shape).astype(a.dtype) for a in library[name].signature.args]
    library[name](*arrays)
    return arrays


def refusal(text: str) -> str:
    """Why the last step of the schedule is refused; the module stays as it was before that step."""
    module, steps = parsed(text)
    last = steps.body.block.last_op
    assert last is not None
    last.detach()
    replay = apply_schedule(module, steps)
    before = str(module)
    assert isinstance(last, sched.StepOp)
    with pytest.raises(weft.ScheduleError) as refused:
        replay.run(last)
    assert str(module) == before
    return str(refused.value)


MATMUL_RELU = """
func.func @main(%A: memref<7x9xi32>, %B: memref<9x5xi32>, %C: memref<7x5xi32>) {
  %zero = arith.constant 0 : i32
  %Y = memref.alloc() : memref<7x5xi32>
  tir.for %i in 7 { tir.for %j in 5 { tir.for %k in 9 {
    tir.block "Y" iters(%vi: spatial<7>, %vj: spatial<5>, %vk: reduce<9>) = [%i, %j, %k] {
      tir.init { memref.store %zero, %Y[%vi, %vj] : memref<7x5xi32> }
      %a = memref.load %A[%vi, %vk] : memref<7x9xi32>
      %b = memref.load %B[%vk, %vj] : memref<9x5xi32>
      %0 = arith.muli %a, %b : i32
      %1 = memref.load %Y[%vi, %vj] : memref<7x5xi32>
      %2 = arith.addi %1, %0 : i32
      memref.store %2, %Y[%vi, %vj] : memref<7x5xi32>
    }
  } } }
  tir.for %i in 7 { tir.for %j in 5 {
    tir.block "C" iters(%vi: spatial<7>, %vj: spatial<5>) = [%i, %j] {
      %y = memref.load %Y[%vi, %vj] : memref<7x5xi32>
      %3 = arith.maxsi %y, %zero : i32
      memref.store %3, %C[%vi, %vj] : memref<7x5xi32>
    }
  } }
  func.return
}
"""

ROWS = """
func.func @main(%A: memref<7x15xi32>, %F: memref<7x15xi32>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %D = memref.alloc() : memref<7x15xi32>
  %S = memref.alloc() : memref<7xi32>
  tir.for %i in 7 { tir.for %j in 15 {
    tir.block "D" iters(%vi: spatial<7>, %vj: spatial<15>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : memref<7x15xi32>
      %0 = arith.addi %a, %one : i32
      memref.store %0, %D[%vi, %vj] : memref<7x15xi32>
    }
  } }
  tir.for %i in 7 { tir.for %r in 15 {
    tir.block "S" iters(%vi: spatial<7>, %vr: reduce<15>) = [%i, %r] {
      tir.init { memref.store %zero, %S[%vi] : memref<7xi32> }
      %d = memref.load %D[%vi, %vr] : memref<7x15xi32>
      %1 = memref.load %S[%vi] : memref<7xi32>
      %2 = arith.addi %1, %d : i32
      memref.store %2, %S[%vi] : memref<7xi32>
    }
  } }
  tir.for %i in 7 { tir.for %j in 15 {
    tir.block "F" iters(%vi: spatial<7>, %vj: spatial<15>) = [%i, %j] {
      %d = memref.load %D[%vi, %vj] : memref<7x15xi32>
      %s = memref.load %S[%vi] : memref<7xi32>
      %3 = arith.muli %d, %s : i32
      memref.store %3, %F[%vi, %vj] : memref<7x15xi32>
    }
  } }
  func.return
}
"""


def test_the_init_of_a_decomposed_reduction_keeps_no_guard_on_loops_of_the_updates() -> None:
    """The outer part of a loop that was split too far is bound to no iterator, but guarded."""
    scheduled = check(
        MATMUL_RELU
        + """
sched.func @steps {
  %y = sched.get_block "Y" : block
  %i, %j, %k = sched.get_loops %y : loop, loop, loop
  %k0, %k1 = sched.split %k {factors = [0, 9]} : loop, loop
  %k00, %k01 = sched.tile %k0 {factors = [6]} : loop, loop
  %init = sched.decompose_reduction %y, %j : block
}"""
    )
    init = str(scheduled).split('tir.block "Y_init"')[1].split("{")[0]
    assert "where" not in init


def test_a_reduction_does_not_move_under_a_parallel_loop_that_it_reduces_over() -> None:
    message = refusal(
        MATMUL_RELU
        + """
sched.func @steps {
  %y = sched.get_block "Y" : block
  %a = sched.cache_read %y {index = 0, scope = "global.copy"} : block
  %ax0, %ax1 = sched.get_loops %a : loop, loop
  sched.parallel %ax1
  sched.reverse_compute_at %y, %ax1
}"""
    )
    assert ", loops that run in parallel stay independent" in message
    assert 'of block "Y" writes Y[0, 0]' in message
    assert "and %ax1 is parallel" in message


def test_a_reduction_does_not_move_under_a_vectorized_loop_that_it_reduces_over() -> None:
    message = refusal(
        ROWS
        + """
sched.func @steps {
  %d = sched.get_block "D" : block
  %s = sched.get_block "S" : block
  %i, %j = sched.get_loops %d : loop, loop
  sched.vectorize %j
  sched.reverse_compute_at %s, %j
}"""
    )
    assert ", loops that run in parallel stay independent" in message
    assert "and %j is vectorized" in message


def test_blocks_still_move_under_parallel_loops_that_stay_independent() -> None:
    scheduled = check(
        ROWS
        + """
sched.func @steps {
  %d = sched.get_block "D" : block
  %s = sched.get_block "S" : block
  %f = sched.get_block "F" : block
  %i, %j = sched.get_loops %d : loop, loop
  sched.parallel %i
  sched.reverse_compute_at %s, %i
  sched.reverse_compute_at %f, %i
}"""
    )
    assert str(scheduled).count("parallel") == 1


def test_a_copy_between_writer_and_reader_in_one_loop_holds_what_is_read() -> None:
    """It copied the whole buffer in each iteration, unwritten elements too, and then relu was taken of those."""
    scheduled = check(
        MATMUL_RELU
        + """
sched.func @steps {
  %y = sched.get_block "Y" : block
  %c = sched.get_block "C" : block
  %i, %j = sched.get_loops %c : loop, loop
  sched.compute_at %y, %j
  %y_local = sched.cache_read %c {index = 0, scope = "local"} : block
  sched.reverse_compute_inline %c
}"""
    )
    assert 'tir.block "Y_local" iters(%v0: spatial<7>, %v1: spatial<5>) = [%i, %j]' in str(scheduled)


STENCIL = """
func.func @main(%A: memref<9xi32>, %C: memref<3x4xi32>) {
  %zero = arith.constant 0 : i32
  %P = memref.alloc() : memref<9xi32>
  tir.for %i in 9 {
    tir.block "P" iters(%vi: spatial<9>) = [%i] {
      %a = memref.load %A[%vi] : memref<9xi32>
      memref.store %a, %P[%vi] : memref<9xi32>
    }
  }
  tir.for %f in 3 { tir.for %i in 4 { tir.for %r in 2 {
    tir.block "C" iters(%vf: spatial<3>, %vi: spatial<4>, %vr: reduce<2>) = [%f, %i, %r] {
      tir.init { memref.store %zero, %C[%vf, %vi] : memref<3x4xi32> }
      %at = affine.apply affine_map<(d0, d1) -> (d0 * 2 + d1)> (%vi, %vr)
      %p = memref.load %P[%at] : memref<9xi32>
      %c = memref.load %C[%vf, %vi] : memref<3x4xi32>
      %sum = arith.addi %c, %p : i32
      memref.store %sum, %C[%vf, %vi] : memref<3x4xi32>
    }
  } } }
  func.return
}
"""


def test_a_copy_between_writer_and_reader_runs_where_the_reader_does() -> None:
    """Iterations that guards cut off wrote nothing, and copied all the same."""
    scheduled = check(
        STENCIL
        + """
sched.func @steps {
  %p = sched.get_block "P" : block
  %c = sched.get_block "C" : block
  %f, %i, %r = sched.get_loops %c : loop, loop, loop
  sched.compute_at %p, %r
  %r0, %r1, %r2 = sched.split %r {factors = [0, 2, 2]} : loop, loop, loop
  %p_local = sched.cache_read %c {index = 0, scope = "local"} : block
}"""
    )
    copy = str(scheduled).split('tir.block "P_local"')[1].splitlines()[0]
    assert "where [%r1 * 2 + %r2" in copy


def test_a_copy_of_elements_that_nothing_writes_is_refused() -> None:
    """The loops of the reader reach further than its guards, which are inside of the copy."""
    message = refusal(
        STENCIL
        + """
sched.func @steps {
  %p = sched.get_block "P" : block
  %c = sched.get_block "C" : block
  %f, %i, %r = sched.get_loops %c : loop, loop, loop
  sched.compute_at %p, %i
  %r0, %r1 = sched.split %r {factors = [0, 4]} : loop, loop
  %p_local = sched.cache_read %c {index = 0, scope = "local"} : block
}"""
    )
    assert "requirement 4, what is copied was written" in message
    assert "the copy would hold P[8], which nothing writes" in message


def test_the_init_of_a_blockized_reduction_keeps_guards_on_loops_of_both_kinds() -> None:
    scheduled = check(
        MATMUL_RELU
        + """
sched.func @steps {
  %y = sched.get_block "Y" : block
  %i, %j, %k = sched.get_loops %y : loop, loop, loop
  %i0, %i1 = sched.split %i {factors = [0, 3]} : loop, loop
  %fused = sched.fuse %i0, %i1, %j, %k : loop
  %outer = sched.blockize %fused : block
}"""
    )
    init = str(scheduled).split('tir.block "Y_init"')[1].splitlines()[0]
    assert "< [7]" in init


def test_the_init_of_a_blockized_reduction_has_no_guard_on_loops_that_no_iterator_has() -> None:
    check(
        MATMUL_RELU
        + """
sched.func @steps {
  %y = sched.get_block "Y" : block
  %i, %j, %k = sched.get_loops %y : loop, loop, loop
  %k0, %k1 = sched.split %k {factors = [0, 9]} : loop, loop
  %k00, %k01 = sched.tile %k0 {factors = [6]} : loop, loop
  %outer = sched.blockize %j : block
}"""
    )


def test_a_buffer_a_lane_leaves_its_accesses_whole() -> None:
    """The inner vectorised loop keeps the outer one from becoming vectors, after its buffers were given lanes."""
    text = """
func.func @main(%A: memref<13x13xi8>, %D: memref<13x13xi8>) {
  tir.for %i in 13 vectorized {
    %M = memref.alloc() : memref<1xi8>
    %c = arith.constant 0 : index
    tir.block "M" iters(%vi: spatial<13>) = [%i] {
      %a = memref.load %A[%vi, %vi] : memref<13x13xi8>
      memref.store %a, %M[%c] : memref<1xi8>
    }
    tir.for %j in 13 vectorized {
      tir.block "D" iters(%vi: spatial<13>, %vj: spatial<13>) = [%i, %j] {
        %m = memref.load %M[%c] : memref<1xi8>
        memref.store %m, %D[%vi, %vj] : memref<13x13xi8>
      }
    }
  }
  func.return
}
"""
    module = weft.parse(text)
    a, d = np.arange(169, dtype=np.int8).reshape(13, 13), np.zeros((13, 13), np.int8)
    weft.build(module)["main"](a, d)
    assert np.array_equal(d, np.repeat(a.diagonal()[:, None], 13, 1))


def test_a_trace_of_another_program_says_where_it_does_not_fit() -> None:
    """Shrinking replays traces on programs with fewer loops: that was a ValueError of zip."""
    first, second = weft.parse(MATMUL_RELU), weft.parse(ROWS)
    sch = weft.Schedule(first)
    sch.parallel(sch.get_loops(sch.get_block("C"))[0])
    text = str(sch.trace).replace('"C"', '"F"')
    assert "%i, %j = " in text
    steps = parsed(
        f"{second!s}\n{text}".replace("%i, %j = ", "%i, %j, %k = ").replace("loop, loop", "loop, loop, loop")
    )[1]
    with pytest.raises(weft.CompileError, match=r"sched\.get_loops gives 2 handles, 3 are named"):
        weft.Schedule(second).replay(steps)


def test_lanes_of_a_flat_buffer() -> None:
    """The pass alone, on flat buffers."""
    module = weft.parse(
        """
func.func @main(%D: memref<64xi8>) {
  tir.for %i in 8 vectorized {
    %M = memref.alloca() : memref<1xi8>
    %c = arith.constant 0 : index
    %seven = arith.constant 7 : i8
    memref.store %seven, %M[%c] : memref<1xi8>
    tir.for %j in 8 vectorized {
      %m = memref.load %M[%c] : memref<1xi8>
      %p = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)> (%i, %j)
      memref.store %m, %D[%p] : memref<64xi8>
    }
  }
  func.return
}
"""
    )
    LowerVectorizedPass().apply(Context(), module)
    module.verify()


DYNAMIC_ROWS = """
func.func @main(%A: memref<?xf32>, %B: memref<2x?xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.assume_shape %B[%n] : memref<2x?xf32>
  tir.for %i in 2 { tir.for %j in %n { tir.for %r in 3 {
    tir.block "S" iters(%vi: spatial<2>, %vj: spatial<%n>, %vr: reduce<3>) = [%i, %j, %r] {
      INIT
      %b = memref.load %B[%vi, %vj] : memref<2x?xf32>
      %a = memref.load %A[%vj] : memref<?xf32>
      %s = arith.addf %b, %a : f32
      memref.store %s, %B[%vi, %vj] : memref<2x?xf32>
    }
  } } }
  func.return
}
sched.func @steps {
  %s = sched.get_block "S" : block
  %i, %j, %r = sched.get_loops %s : loop, loop, loop
  %f = sched.fuse %i, %j : loop
  %o = sched.blockize %f : block
}
"""


def test_blockize_asks_for_digits_of_a_loop_fused_at_run_time_where_they_are_known() -> None:
    """The outer block and its init were bound to quotients that are computed in the loop inside."""
    message = refusal(DYNAMIC_ROWS.replace("INIT", "tir.init { memref.store %zero, %B[%vi, %vj] : memref<2x?xf32> }"))
    assert "requirement 3, each iterator splits into" in message
    assert "not proved: the init would need" in message
    without = DYNAMIC_ROWS.replace("INIT", "").replace("reduce<3>", "spatial<3>")
    module, steps = parsed(without)
    scheduled = module.clone()
    apply_schedule(scheduled, steps)
    verify_level(scheduled, "tir")
    for n in (1, 5):
        a = np.arange(n, dtype=np.float32)
        found = [np.ones((2, n), np.float32) for _ in range(2)]
        weft.Interpreter(module).call("main", a, found[0])
        weft.build(scheduled)["main"](a, found[1])
        assert np.array_equal(*found)


def test_a_part_of_a_nested_block_leaves_out_what_its_guard_says() -> None:
    check(
        MATMUL_RELU
        + """
sched.func @steps {
  %c = sched.get_block "C" : block
  %i, %j = sched.get_loops %c : loop, loop
  %rows = sched.blockize %j : block
  %i0, %i1 = sched.tile %i {factors = [3]} : loop, loop
  %tiles = sched.blockize %i1 : block
  %outer = sched.get_loops %tiles : loop
  %first, %rest = sched.loop_partition %outer {factors = [1, 0]} : loop, loop
}"""
    )


def test_fuse_multiplies_extents_where_they_are_known() -> None:
    """The product stood outside of a loop in which one of the extents is computed."""
    module, steps = parsed(
        """
func.func @main(%A: memref<3x?xi32>, %B: memref<3x?xi32>) {
  %c1 = arith.constant 1 : index
  %n = memref.dim %A, %c1 : memref<3x?xi32>
  tir.assume_shape %B[%n] : memref<3x?xi32>
  tir.for %i in 3 {
    %half = affine.apply affine_map<(d0) -> (d0 ceildiv 2)>(%n)
    tir.for %j0 in %half { tir.for %j1 in 2 {
      tir.block "B" iters(%vi: spatial<3>, %vj: spatial<%n>) = [%i, %j0 * 2 + %j1] where [%j0 * 2 + %j1] < [%n] {
        %a = memref.load %A[%vi, %vj] : memref<3x?xi32>
        %b = arith.addi %a, %a : i32
        memref.store %b, %B[%vi, %vj] : memref<3x?xi32>
      }
    } }
  }
  func.return
}
sched.func @steps {
  %b = sched.get_block "B" : block
  %i, %j0, %j1 = sched.get_loops %b : loop, loop, loop
  %f = sched.fuse %j0, %j1 : loop
}"""
    )
    apply_schedule(module, steps)
    verify_level(module, "tir")
    for n in (1, 5):
        a = np.arange(3 * n, dtype=np.int32).reshape(3, n)
        b = np.zeros_like(a)
        weft.build(module)["main"](a, b)
        assert np.array_equal(b, 2 * a)


PARTIAL_SUMS = """
func.func @main(%A: memref<6x2x2xi32>, %B: memref<6xi32>) {
  %zero = arith.constant 0 : i32
  tir.for %i in 6 { tir.for %r in 2 { tir.for %s in 2 {
    tir.block "B" iters(%vi: spatial<6>, %vr: reduce<2>, %vs: reduce<2>) = [%i, %r, %s] {
      tir.init { memref.store %zero, %B[%vi] : memref<6xi32> }
      %b = memref.load %B[%vi] : memref<6xi32>
      %a = memref.load %A[%vi, %vr, %vs] : memref<6x2x2xi32>
      %sum = arith.addi %b, %a : i32
      memref.store %sum, %B[%vi] : memref<6xi32>
    }
  } } }
  func.return
}
sched.func @steps {
  %b = sched.get_block "B" : block
  %i, %r, %s = sched.get_loops %b : loop, loop, loop
  %s0, %s1 = sched.split %s {factors = [FACTORS]} : loop, loop
  %b_rf = sched.rfactor %r {factor_axis = 1} : block
  %i_rf, %r_rf, %s0_rf, %s1_rf = sched.get_loops %b_rf : loop, loop, loop, loop
  sched.reverse_compute_at %b, %s0_rf
}
"""


def test_a_reduction_does_not_run_again_in_iterations_in_which_its_producer_does_nothing() -> None:
    """Iterations 1 and 2 of %s0 are cut off by guards: what iteration 0 writes is final, and was added three times."""
    message = refusal(PARTIAL_SUMS.replace("FACTORS", "3, 2"))
    assert "requirement 6, every instance of the block runs in some iteration, updates in one only" in message
    assert "would both run one instance, which updates what it reads" in message
    check(PARTIAL_SUMS.replace("FACTORS", "1, 2"))


def test_a_part_of_an_outer_block_that_never_runs_misses_nothing() -> None:
    check(
        """
func.func @main(%A: memref<1x2xi32>, %B: memref<1x2xi32>) {
  tir.for %p in 1 { tir.for %q in 2 { tir.for %j in 2 {
    tir.block "B" iters(%vi: spatial<1>, %vj: spatial<2>) = [%p * 2 + %q, %j] where [%p * 2 + %q] < [1] {
      %a = memref.load %A[%vi, %vj] : memref<1x2xi32>
      memref.store %a, %B[%vi, %vj] : memref<1x2xi32>
    }
  } } }
  func.return
}
sched.func @steps {
  %b = sched.get_block "B" : block
  %p, %q, %j = sched.get_loops %b : loop, loop, loop
  %outer = sched.blockize %j : block
  %q0, %q1 = sched.loop_partition %q {factors = [1, 0]} : loop, loop
}"""
    )


def test_blockize_leaves_no_instances_of_one_short_part_to_guards() -> None:
    """With one outer instance, the guard on both became one on the inner iterator alone, which then left out some."""
    check(
        """
func.func @main(%A: memref<2xi32>, %B: memref<2xi32>) {
  tir.for %p in 1 { tir.for %q in 4 {
    tir.block "B" iters(%v: spatial<2>) = [%p * 4 + %q] where [%p * 4 + %q] < [2] {
      %a = memref.load %A[%v] : memref<2xi32>
      memref.store %a, %B[%v] : memref<2xi32>
    }
  } }
  func.return
}
sched.func @steps {
  %b = sched.get_block "B" : block
  %p, %q = sched.get_loops %b : loop, loop
  %outer = sched.blockize %q : block
  %inner = sched.get_loops %b : loop
  %q0, %q1, %q2 = sched.split %inner {factors = [1, 1, 4]} : loop, loop, loop
}"""
    )


def test_blockize_computes_the_extents_of_its_init_again() -> None:
    module, steps = parsed(
        """
func.func @main(%A: memref<?xf32>, %B: memref<2x?xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.assume_shape %B[%n] : memref<2x?xf32>
  tir.for %p in 1 { tir.for %i in 2 {
    %half = affine.apply affine_map<(d0) -> (d0 ceildiv 2)>(%n)
    tir.for %j0 in %half { tir.for %j1 in 2 { tir.for %r in 3 {
      tir.block "B" iters(%vi: spatial<2>, %vj: spatial<%n>, %vr: reduce<3>) = [%i, %j0 * 2 + %j1, %r]
          where [%j0 * 2 + %j1] < [%n] {
        tir.init { memref.store %zero, %B[%vi, %vj] : memref<2x?xf32> }
        %b = memref.load %B[%vi, %vj] : memref<2x?xf32>
        %a = memref.load %A[%vj] : memref<?xf32>
        %s = arith.addf %b, %a : f32
        memref.store %s, %B[%vi, %vj] : memref<2x?xf32>
      }
    } } }
  } }
  func.return
}
sched.func @steps {
  %b = sched.get_block "B" : block
  %p, %i, %j0, %j1, %r = sched.get_loops %b : loop, loop, loop, loop, loop
  %outer = sched.blockize %i : block
}"""
    )
    apply_schedule(module, steps)
    verify_level(module, "tir")
    for n in (1, 4):
        a, b = np.arange(n, dtype=np.float32), np.zeros((2, n), np.float32)
        weft.build(module)["main"](a, b)
        assert np.array_equal(b, np.stack([3 * a, 3 * a]))


def test_blockize_keeps_outer_iterators_inside_of_domains_known_at_run_time() -> None:
    module, steps = parsed(
        """
func.func @main(%A: memref<?xf32>, %B: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.assume_shape %B[%n] : memref<?xf32>
  tir.for %i in %n {
    tir.block "B" iters(%v: spatial<%n>) = [%i] {
      %a = memref.load %A[%v] : memref<?xf32>
      memref.store %a, %B[%v] : memref<?xf32>
    }
  }
  func.return
}
sched.func @steps {
  %b = sched.get_block "B" : block
  %i = sched.get_loops %b : loop
  %i0, %i1, %i2 = sched.split %i {factors = [0, 7, 8]} : loop, loop, loop
  %outer = sched.blockize %i2 : block
}"""
    )
    apply_schedule(module, steps)
    verify_level(module, "tir")
    for n in (6, 70):
        a, b = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
        weft.Interpreter(module).call("main", a, b)
        assert np.array_equal(a, b)


def test_merged_loops_of_a_parallel_iteration_read_what_it_wrote_before() -> None:
    check(
        """
func.func @main(%A: memref<3xi32>, %C: memref<4x3xi32>) {
  %c0 = arith.constant 0 : index
  %B = memref.alloc() : memref<3xi32>
  tir.for %p in 4 {
    tir.for %i in 3 { tir.block "B" iters(%v: spatial<3>) = [%i] {
      %a = memref.load %A[%v] : memref<3xi32>
      memref.store %a, %B[%v] : memref<3xi32>
    } }
    tir.for %j in 3 { tir.block "C" iters(%u: spatial<4>, %v: spatial<3>) = [%p, %j] {
      %b = memref.load %B[%v] : memref<3xi32>
      %d = memref.load %B[%c0] : memref<3xi32>
      %s = arith.addi %b, %d : i32
      memref.store %s, %C[%u, %v] : memref<4x3xi32>
    } }
  }
  func.return
}
sched.func @steps {
  %b = sched.get_block "B" : block
  %c = sched.get_block "C" : block
  %p, %i = sched.get_loops %b : loop, loop
  %q, %j = sched.get_loops %c : loop, loop
  sched.parallel %p
  %m = sched.merge %i, %j : loop
}"""
    )


def test_a_block_made_inside_of_one_has_a_name_of_its_own() -> None:
    scheduled = check(
        MATMUL_RELU
        + """
sched.func @steps {
  %c = sched.get_block "C" : block
  %i, %j = sched.get_loops %c : loop, loop
  %outer = sched.blockize %i : block
  %rows, %columns = sched.get_loops %c : loop, loop
  %inner = sched.blockize %columns : block
}"""
    )
    assert 'tir.block "C_o"' in str(scheduled) and 'tir.block "C_o_1"' in str(scheduled)


def test_a_block_that_reads_what_it_wrote_may_run_again() -> None:
    check(
        """
func.func @main(%A: memref<5x6xi32>, %C: memref<2x5x6xi32>) {
  %B = memref.alloc() : memref<5x6xi32>
  tir.for %i in 5 { tir.for %j in 6 {
    tir.block "B" iters(%vi: spatial<5>, %vj: spatial<6>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : memref<5x6xi32>
      memref.store %a, %B[%vi, %vj] : memref<5x6xi32>
    } } }
  tir.for %r in 2 { tir.for %i in 5 { tir.for %j in 6 {
    tir.block "C" iters(%vr: spatial<2>, %vi: spatial<5>, %vj: spatial<6>) = [%r, %i, %j] {
      %b = memref.load %B[%vi, %vj] : memref<5x6xi32>
      memref.store %b, %C[%vr, %vi, %vj] : memref<2x5x6xi32>
    } } } }
  func.return
}
sched.func @steps {
  %c = sched.get_block "C" : block
  %r, %i, %j = sched.get_loops %c : loop, loop, loop
  %b = sched.get_block "B" : block
  sched.compute_at %b, %r
  %again, %ax0, %ax1 = sched.get_loops %b : loop, loop, loop
  %outer = sched.blockize %ax0 : block
  %copy = sched.reindex %b {buffer = ["write", 0]} : block
}"""
    )


def test_a_reduction_over_threads_is_not_hidden_in_a_block() -> None:
    steps = """
sched.func @steps {
  %y = sched.get_block "Y" : block
  %i, %j, %k = sched.get_loops %y : loop, loop, loop
  %k0, %k1 = sched.tile %k {factors = [3]} : loop, loop
  sched.bind %k0 {thread_axis = "threadIdx.x"}
  %outer = sched.blockize %k1 : block
}"""
    assert "loops that run in parallel stay independent" in refusal(MATMUL_RELU + steps)


def test_parts_of_a_block_may_each_compute_their_extents() -> None:
    """A layout of an extent that is known at run time has extents of its own, which parts of a loop compute again."""
    module, steps = parsed("""
    func.func @main(%A: memref<?x?xf64>, %X: memref<?xi64>, %Y: memref<?xi32>, %C: memref<?x?xf64>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = memref.dim %A, %c0 : memref<?x?xf64>
      %m = memref.dim %A, %c1 : memref<?x?xf64>
      tir.assume_shape %X[%n] : memref<?xi64>
      tir.assume_shape %Y[%n] : memref<?xi32>
      tir.assume_shape %C[%n, %m] : memref<?x?xf64>
      %B = memref.alloc(%n, %m) : memref<?x?xf64>
      tir.for %i in %n { tir.for %j in %m {
        tir.block "S0" iters(%vi: spatial<%n>, %vj: spatial<%m>) = [%i, %j] {
          %a = memref.load %A[%vi, %vj] : memref<?x?xf64>
          memref.store %a, %B[%vi, %vj] : memref<?x?xf64>
        } } }
      tir.for %i in %n { tir.for %j in %m { tir.for %r in 7 {
        tir.block "S1" iters(%vi: spatial<%n>, %vj: spatial<%m>, %vr: reduce<7>) = [%i, %j, %r] {
          tir.init {
            %zero = arith.constant 0.0 : f64
            memref.store %zero, %C[%vi, %vj] : memref<?x?xf64>
          }
          %x = memref.load %X[%vi] : memref<?xi64>
          %at = arith.index_cast %x : i64 to index
          %y = memref.load %Y[%vi] : memref<?xi32>
          %too = arith.index_cast %y : i32 to index
          %b = memref.load %B[%at, %too] : memref<?x?xf64>
          %c = memref.load %C[%vi, %vj] : memref<?x?xf64>
          %s = arith.addf %c, %b : f64
          memref.store %s, %C[%vi, %vj] : memref<?x?xf64>
        } } } }
      func.return
    }
    sched.func @trace {
      %s0 = sched.get_block "S0" : block
      %s1 = sched.get_block "S1" : block
      %i, %j, %r = sched.get_loops %s1 : loop, loop, loop
      sched.compute_at %s0, %r
      sched.transform_layout %s0 {buffer = ["write", 0], pad_value = 3,
          index_map = affine_map<(d0, d1) -> (d1 mod 5, d1 floordiv 5, d0)>}
      %i_1, %j_1, %r_1 = sched.get_loops %s1 : loop, loop, loop
      %r0, %r1 = sched.loop_partition %r_1 {factors = [6, 0]} : loop, loop
    }""")
    scheduled = module.clone()
    apply_schedule(scheduled, steps)
    verify_level(scheduled, "tir")
    assert compare_modules(module, scheduled) is None
    assert str(scheduled).count('tir.part_of = "S0"') == 2


def test_a_copy_of_part_of_a_copy_runs_no_more_instances_after_a_move() -> None:
    """Only element 1 is in the first copy: the second one, which is moved, still copies nothing else."""
    check("""
    func.func @main(%C: memref<2x2x2xf32>, %A: memref<2xf32>) {
      %B = memref.alloc() : memref<3x3x2xf32>
      tir.for %i in 3 { tir.for %j in 3 { tir.for %k in 2 {
        tir.block "S1" iters(%vi: spatial<3>, %vj: spatial<3>, %vk: spatial<2>) = [%i, %j, %k] {
          %c0 = arith.constant 0 : index
          %first = arith.cmpi sle, %vi, %c0 : index
          %b = scf.if %first -> (f32) {
            %x = affine.apply affine_map<(d0) -> (d0 + 1)> (%vi)
            %a = memref.load %A[%x] : memref<2xf32>
            scf.yield %a : f32
          } else {
            %zero = arith.constant 0.0 : f32
            scf.yield %zero : f32
          }
          memref.store %b, %B[%vi, %vj, %vk] : memref<3x3x2xf32>
        } } } }
      tir.for %i in 2 { tir.for %j in 2 { tir.for %k in 2 {
        tir.block "S2" iters(%vi: spatial<2>, %vj: spatial<2>, %vk: spatial<2>) = [%i, %j, %k] {
          %x = affine.apply affine_map<(d0) -> (d0 + 1)> (%vk)
          %b = memref.load %B[%vk, %x, %vj] : memref<3x3x2xf32>
          memref.store %b, %C[%vi, %vj, %vk] : memref<2x2x2xf32>
        } } } }
      func.return
    }
    sched.func @trace {
      %s1 = sched.get_block "S1" : block
      %s2 = sched.get_block "S2" : block
      %i, %j, %k = sched.get_loops %s2 : loop, loop, loop
      sched.compute_at %s1, %k
      %first = sched.cache_read %s1 {index = 0, scope = "shared"} : block
      %second = sched.cache_read %s1 {index = 0, scope = "global"} : block
      sched.transform_layout %second {buffer = ["write", 0],
          index_map = affine_map<(d0) -> (d0 floordiv 2, d0 mod 2)>, pad_value = affine_map<(d0, d1) -> (d0 mod 50)>}
      %i_1, %j_1, %k_1 = sched.get_loops %s2 : loop, loop, loop
      sched.compute_at %second, %k_1
    }""")


@pytest.mark.parametrize("factors", ["7, 0", "2, 0, 3"])
def test_a_fused_dynamic_loop_is_split_with_an_inner_factor_inferred(factors: str) -> None:
    """Quotient and remainder of the fused value come after the products that the new value is computed from."""
    loops = ", ".join("loop" for _ in factors.split(","))
    names = ", ".join(f"%f{at}" for at, _ in enumerate(factors.split(",")))
    module, steps = parsed(f"""
    func.func @main(%A: memref<?xf32>, %C: memref<?x?xf32>) {{
      %c0 = arith.constant 0 : index
      %n = memref.dim %A, %c0 : memref<?xf32>
      tir.assume_shape %C[%n, %n] : memref<?x?xf32>
      tir.for %i in %n {{ tir.for %j in %n {{
        tir.block "S" iters(%vi: spatial<%n>, %vj: spatial<%n>) = [%i, %j] {{
          %a = memref.load %A[%vi] : memref<?xf32>
          memref.store %a, %C[%vi, %vj] : memref<?x?xf32>
        }} }} }}
      func.return
    }}
    sched.func @trace {{
      %s = sched.get_block "S" : block
      %i, %j = sched.get_loops %s : loop, loop
      %f = sched.fuse %i, %j : loop
      {names} = sched.split %f {{factors = [{factors}]}} : {loops}
    }}""")
    scheduled = module.clone()
    apply_schedule(scheduled, steps)
    verify_level(scheduled, "tir")
    assert compare_modules(module, scheduled) is None


def test_an_init_stays_with_updates_that_read_the_buffer_under_another_name() -> None:
    """Hoisted, the inits of all elements would run before the first update reads them."""
    module = weft.parse("""
    func.func @main(%A: memref<2x5xi32>) {
      %B = "memref.cast"(%A) : (memref<2x5xi32>) -> memref<?x?xi32>
      tir.for %i in 2 { tir.for %f in 20 {
        tir.block "S" iters(%vi: spatial<2>, %vj: spatial<4>, %vk: reduce<5>) = [%i, %f floordiv 5, %f mod 5] {
          tir.init {
            %zero = arith.constant 0 : i32
            memref.store %zero, %B[%vi, %vj] : memref<?x?xi32>
          }
          %b = memref.load %B[%vi, %vj] : memref<?x?xi32>
          %a = memref.load %A[%vi, %vk] : memref<2x5xi32>
          %sum = arith.addi %b, %a : i32
          memref.store %sum, %B[%vi, %vj] : memref<?x?xi32>
        } } }
      func.return
    }""")
    lowered = module.clone()
    LowerTirToLowPass("llvm").apply(Context(), lowered)
    assert compare_modules(module, lowered) is None


def test_a_parallel_body_may_take_a_buffer_by_two_names() -> None:
    """The function of the body does not promise that its two parameters are apart."""
    module = weft.parse("""
    func.func @main(%A: memref<3x5xi64>) {
      %B = "memref.cast"(%A) : (memref<3x5xi64>) -> memref<?x?xi64>
      tir.for %i in 2 { tir.for %j in 5 parallel { tir.for %k in 5 {
        tir.block "S" iters(%vi: spatial<2>, %vj: spatial<5>, %vk: reduce<5>) = [%i, %j, %k] {
          tir.init {
            %zero = arith.constant 0 : i64
            memref.store %zero, %B[%vi, %vj] : memref<?x?xi64>
          }
          %b = memref.load %B[%vi, %vj] : memref<?x?xi64>
          %c1 = arith.constant 1 : index
          %a = memref.load %A[%c1, %vj] : memref<3x5xi64>
          %sum = arith.addi %b, %a : i64
          memref.store %sum, %B[%vi, %vj] : memref<?x?xi64>
        } } } }
      func.return
    }""")
    array = np.arange(15, dtype=np.int64).reshape(3, 5)
    expected = array.copy()
    weft.Interpreter(module).call("main", expected)
    weft.build(module, default_schedule=False)["main"](array)
    np.testing.assert_array_equal(array, expected)


def test_parts_of_nested_blocks_cover_their_domain_together() -> None:
    """A nested block that is bound to an outer iterator runs in each part for the instances of that part only; parts
    made inside of a block before cover their domain in each copy."""
    check(
        MATMUL_RELU
        + """
sched.func @steps {
  %d = sched.get_block "C" : block
  %i, %j = sched.get_loops %d : loop, loop
  %rows = sched.blockize %j : block
  %cache = sched.cache_write %d {index = 0, scope = "local"} : block
  %cj = sched.get_loops %d : loop
  %j0, %j1 = sched.loop_partition %cj {factors = [2, 0]} : loop, loop
  %outer = sched.get_loops %rows : loop
  %first, %rest = sched.loop_partition %outer {factors = [1, 0]} : loop, loop
}"""
    )


def test_blockize_keeps_outer_iterators_from_below_zero() -> None:
    """The guard of the block went inside, where it follows from an outer iterator that was less than 0."""
    check("""
func.func @main(%A: memref<4xi32>, %B: memref<4xi32>) {
  tir.for %i in 3 { tir.for %j in 2 {
    tir.block "B" iters(%v: spatial<4>) = [%i * 2 + %j - 2] where [-1] < [%i * 2 + %j - 2] {
      %a = memref.load %A[%v] : memref<4xi32>
      memref.store %a, %B[%v] : memref<4xi32>
    }
  } }
  func.return
}
sched.func @steps {
  %b = sched.get_block "B" : block
  %i, %j = sched.get_loops %b : loop, loop
  %o = sched.blockize %j : block
}""")


def test_instances_that_store_to_one_element_keep_to_assumed_extents() -> None:
    """With m <= 9 each (v0, v2) has an element of its own; a point with v0 = 10 was taken for a counterexample."""
    module, steps = parsed("""
func.func @main(%A: memref<?xi32>, %B: memref<?x?xi32>) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %A, %c0 : memref<?xi32>
  tir.assume [%m] <= [9]
  tir.assume_shape %B[%m, %m] : memref<?x?xi32>
  tir.for %i in %m { tir.for %j in %m {
    tir.block "S" iters(%v: spatial<%m>, %w: spatial<%m>) = [%i, %j] {
      %a = memref.load %A[%v] : memref<?xi32>
      memref.store %a, %B[%w, %v] : memref<?x?xi32>
    }
  } }
  func.return
}
sched.func @trace {
  %s = sched.get_block "S" : block
  %b = sched.reindex_cache_write %s {
    index = 0, scope = "local", index_map = affine_map<(d0, d1) -> ((d0 mod 5), d1, (d0 floordiv 5))>
  } : block
  sched.transform_layout %s {
    buffer = ["write", 0], index_map = affine_map<(d0, d1, d2) -> (((d1 * 2) + d2), d0)>, pad_value = 0 : i32
  }
  sched.reverse_compute_inline %b
}""")
    scheduled = module.clone()
    apply_schedule(scheduled, steps)
    assert compare_modules(module, scheduled) is None


@pytest.mark.parametrize("first", [0, 1])
def test_loops_that_run_once_grow_before_values_pass_between_blocks(first: int) -> None:
    """A loop of extent 1 runs as often as the others on its axis, in all thread blocks; it was left out."""
    module, steps = parsed(
        """
func.func @main(%A: memref<5xf32>, %T: memref<5xf32>, %B: memref<5xf32>) {
  tir.for %o in 1 {
    tir.for %i in 5 { tir.block "P" iters(%v: spatial<5>) = [%i] {
      %a = memref.load %A[%v] : memref<5xf32>
      memref.store %a, %T[%v] : memref<5xf32>
    } }
    tir.for %i in 5 { tir.for %j in 1 { tir.block "C" iters(%v: spatial<5>, %w: spatial<1>) = [%i, %j] {
      %a = memref.load %T[%v] : memref<5xf32>
      memref.store %a, %B[%v] : memref<5xf32>
    } } }
  }
  func.return
}
sched.func @trace {
  %p = sched.get_block "P" : block
  %c = sched.get_block "C" : block
  %o, %i = sched.get_loops %p : loop, loop
  %o1, %i1, %j = sched.get_loops %c : loop, loop, loop
  sched.bind %o {thread_axis = "vthread"}
  sched.bind FIRST {thread_axis = "blockIdx.x"}
  sched.bind SECOND {thread_axis = "blockIdx.x"}
}""".replace("FIRST", ("%i", "%j")[first]).replace("SECOND", ("%j", "%i")[first])
    )
    with pytest.raises(ScheduleError, match="requirement 10, thread blocks pass nothing"):
        apply_schedule(module, steps)
