// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s
// RUN: weft-opt %s --split-input-file | weft-opt --split-input-file | filecheck %s --check-prefix=TEXT
// RUN: weft-opt %s --split-input-file -p 'apply-schedule{seed=1}' | filecheck %s
// Sampled integers are factors and notes, a sampled place is a loop, inside the readers, or where the block is.

// CHECK-LABEL: func.func @f(
// CHECK: tir.for %i0 in 3 attributes {unroll = 64 : i64} {
// CHECK-NEXT: tir.for %i1 in 2 {
// CHECK-NEXT: tir.for %i2 in 2 {
// CHECK-NEXT: tir.block "C"
// CHECK-NEXT: memref.load %A
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK-NOT: tir.block
// TEXT-LABEL: sched.func @tile {
// TEXT: %t0, %t1 = sched.sample_perfect_tile %i {n = 2, max_innermost_factor = 16, decision = [6, 2]} : int, int
// TEXT-NEXT: %v = sched.sample_categorical {candidates = [0, 64], probs = [0.1, 0.9], decision = 1} : int
// TEXT-NEXT: %i0, %i1, %i2 = sched.split %i [3, 0, %t1] : loop, loop, loop
// TEXT-NEXT: sched.annotate %i0, %v {key = "unroll"}
// TEXT-NEXT: %b = sched.get_block "B" : block
// TEXT-NEXT: %place = sched.sample_compute_location %b {decision = -2} : loop
// TEXT-NEXT: sched.compute_at %b, %place
func.func @f(%A: memref<12xf32>, %C: memref<12xf32>) {
  %B = memref.alloc() : memref<12xf32>
  tir.for %i in 12 {
    tir.block "B" iters(%v: spatial<12>) = [%i] {
      %a = memref.load %A[%v] : memref<12xf32>
      %b = arith.mulf %a, %a : f32
      memref.store %b, %B[%v] : memref<12xf32>
    }
  }
  tir.for %i in 12 {
    tir.block "C" iters(%v: spatial<12>) = [%i] {
      %b = memref.load %B[%v] : memref<12xf32>
      %c = arith.addf %b, %b : f32
      memref.store %c, %C[%v] : memref<12xf32>
    }
  }
  func.return
}
sched.func @tile {
  %c = sched.get_block "C" : block
  %i = sched.get_loops %c : loop
  %t0, %t1 = sched.sample_perfect_tile %i {n = 2, max_innermost_factor = 16, decision = [6, 2]} : int, int
  %v = sched.sample_categorical {candidates = [0, 64], probs = [0.1, 0.9], decision = 1} : int
  %i0, %i1, %i2 = sched.split %i [3, 0, %t1] : loop, loop, loop
  sched.annotate %i0, %v {key = "unroll"}
  %b = sched.get_block "B" : block
  %place = sched.sample_compute_location %b {decision = -2} : loop
  sched.compute_at %b, %place
}

// -----

// Without a decision, the step draws: here there is one tiling only.

// CHECK-LABEL: func.func @g(
// CHECK: tir.for %i0 in 1 {
// CHECK-NEXT: tir.for %i1 in 7 {
// TEXT-LABEL: sched.func @only {
// TEXT: %t0, %t1 = sched.sample_perfect_tile %i {n = 2, max_innermost_factor = 16} : int, int
func.func @g(%A: memref<7xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 7 {
    tir.block "A" iters(%v: spatial<7>) = [%i] {
      memref.store %zero, %A[%v] : memref<7xf32>
    }
  }
  func.return
}
sched.func @only {
  %a = sched.get_block "A" : block
  %i = sched.get_loops %a : loop
  %u = sched.sample_categorical {candidates = [7], probs = [1.0]} : int
  %t0, %t1 = sched.sample_perfect_tile %i {n = 2, max_innermost_factor = 16} : int, int
  %i0, %i1 = sched.split %i [0, %u] : loop, loop
}
