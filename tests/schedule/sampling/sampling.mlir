// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s
// RUN: weft-opt %s --split-input-file | weft-opt --split-input-file | filecheck %s --check-prefix=TEXT
// RUN: weft-opt %s --split-input-file -p 'apply-schedule{seed=1}' | filecheck %s
// Sampled integers are factors and notes, a sampled place is a loop, inside the readers, or where the block is.

// CHECK-LABEL: func.func @f(
// CHECK: tir.for %[[I0:\w+]] in 3 attributes {unroll = 64 : i64} {
// CHECK-NEXT: tir.for %[[I1:\w+]] in 2 {
// CHECK-NEXT: tir.for %[[I2:\w+]] in 2 {
// CHECK-NEXT: tir.block "C"
// CHECK-NEXT: memref.load %A
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK-NOT: tir.block
// TEXT-LABEL: sched.func @tile {
// TEXT: %[[T0:\w+]], %[[T1:\w+]] = sched.sample_perfect_tile %[[I:\w+]] {n = 2, max_innermost_factor = 16, decision = [6, 2]} : int, int
// TEXT-NEXT: %[[V:\w+]] = sched.sample_categorical {candidates = [0, 64], probs = [0.1, 0.9], decision = 1} : int
// TEXT-NEXT: %[[I0:\w+]], %[[I1:\w+]], %[[I2:\w+]] = sched.split %[[I]] [3, 0, %[[T1]]] : loop, loop, loop
// TEXT-NEXT: sched.annotate %[[I0]], %[[V]] {key = "unroll"}
// TEXT-NEXT: %[[B:\w+]] = sched.get_block "B" : block
// TEXT-NEXT: %[[PLACE:\w+]] = sched.sample_compute_location %[[B]] {decision = -2} : loop
// TEXT-NEXT: sched.compute_at %[[B]], %[[PLACE]]
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
// CHECK: tir.for %[[I0:\w+]] in 1 {
// CHECK-NEXT: tir.for %[[I1:\w+]] in 7 {
// TEXT-LABEL: sched.func @only {
// TEXT: %[[T0:\w+]], %[[T1:\w+]] = sched.sample_perfect_tile %[[I:\w+]] {n = 2, max_innermost_factor = 16} : int, int
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

// -----

// The second part, here the last factor, is a multiple of 4.

// CHECK-LABEL: func.func @h(
// CHECK: tir.for %[[I0:\w+]] in 3 {
// CHECK-NEXT: tir.for %[[I1:\w+]] in 4 {
// TEXT-LABEL: sched.func @partitioned {
// TEXT: sched.sample_partitioned_tile %[[I:\w+]] {n = 2, partition_pos = 1, innerpart_factor = 4, decision = [3, 4]} : int, int
func.func @h(%A: memref<12xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 12 {
    tir.block "A" iters(%v: spatial<12>) = [%i] {
      memref.store %zero, %A[%v] : memref<12xf32>
    }
  }
  func.return
}
sched.func @partitioned {
  %a = sched.get_block "A" : block
  %i = sched.get_loops %a : loop
  %t0, %t1 = sched.sample_partitioned_tile %i {n = 2, partition_pos = 1, innerpart_factor = 4, decision = [3, 4]} : int, int
  %i0, %i1 = sched.split %i [%t0, %t1] : loop, loop
}
