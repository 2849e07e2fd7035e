// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s --strict-whitespace
// RUN: weft-opt %s --split-input-file -p 'tir-parallel{func=f block=B loop=0}' | filecheck %s --strict-whitespace --check-prefix=PASS
// parallel: the iterations of a loop run on several threads.

// An outer and an inner loop.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 10 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 12 parallel {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 10 parallel {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 12 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%A: memref<10x12xf32>, %D: memref<10x12xf32>) {
  tir.for %i in 10 {
    tir.for %j in 12 {
      tir.block "B" iters(%vi: spatial<10>, %vj: spatial<12>) = [%i, %j] {
        %a = memref.load %A[%vi, %vj] : memref<10x12xf32>
        memref.store %a, %D[%vi, %vj] : memref<10x12xf32>
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %i, %j = sched.get_loops %b : loop, loop
  sched.parallel %j
}

// -----

// Two blocks below one loop: an element is read where it was written.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 10 parallel {
// CHECK-NEXT: {{^}}      tir.block "B" iters(%[[V:\w+]]: spatial<10>) = [%[[I]]] {
// CHECK: {{^}}      tir.block "C" iters(%[[V]]: spatial<10>) = [%[[I]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 10 parallel {
// PASS-NEXT: {{^}}      tir.block "B" iters(%[[V:\w+]]: spatial<10>) = [%[[I]]] {
// PASS: {{^}}      tir.block "C" iters(%[[V]]: spatial<10>) = [%[[I]]] {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%A: memref<10xf32>, %C: memref<10xf32>) {
  %T = memref.alloc() : memref<10xf32>
  tir.for %i in 10 {
    tir.block "B" iters(%v: spatial<10>) = [%i] {
      %a = memref.load %A[%v] : memref<10xf32>
      memref.store %a, %T[%v] : memref<10xf32>
    }
    tir.block "C" iters(%v: spatial<10>) = [%i] {
      %t = memref.load %T[%v] : memref<10xf32>
      memref.store %t, %C[%v] : memref<10xf32>
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %i = sched.get_loops %b : loop
  sched.parallel %i
}

// -----

// The spatial loop of a reduction.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 6 parallel {
// CHECK-NEXT: {{^}}      tir.for %[[K:\w+]] in 10 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<6>, %[[VK:\w+]]: reduce<10>) = [%[[I]], %[[K]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 6 parallel {
// PASS-NEXT: {{^}}      tir.for %[[K:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<6>, %[[VK:\w+]]: reduce<10>) = [%[[I]], %[[K]]] {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%A: memref<6x10xf32>, %S: memref<6xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 6 {
    tir.for %k in 10 {
      tir.block "B" iters(%vi: spatial<6>, %vk: reduce<10>) = [%i, %k] {
        tir.init {
          memref.store %zero, %S[%vi] : memref<6xf32>
        }
        %a = memref.load %A[%vi, %vk] : memref<6x10xf32>
        %s = memref.load %S[%vi] : memref<6xf32>
        %t = arith.addf %s, %a : f32
        memref.store %t, %S[%vi] : memref<6xf32>
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %i, %k = sched.get_loops %b : loop, loop
  sched.parallel %i
}

// -----

// A part of a split loop.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 12 {
// CHECK-NEXT: {{^}}      tir.for %[[J0:\w+]] in 3 parallel {
// CHECK-NEXT: {{^}}        tir.for %[[J1:\w+]] in 4 {
// CHECK-NEXT: {{^}}          tir.for %[[K:\w+]] in 9 {
// CHECK-NEXT: {{^}}            tir.block "B" iters(%[[VI:\w+]]: spatial<12>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<9>) = [%[[I]], %[[J0]] * 4 + %[[J1]], %[[K]]] where [%[[J0]] * 4 + %[[J1]]] < [10] {
// CHECK: {{^}}    tir.for %[[I]] in 12 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 10 {
// CHECK-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<12>, %[[VJ]]: spatial<10>) = [%[[I]], %[[J]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 12 parallel {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.for %[[K:\w+]] in 9 {
// PASS-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<12>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<9>) = [%[[I]], %[[J]], %[[K]]] {
// PASS: {{^}}    tir.for %[[I]] in 12 {
// PASS-NEXT: {{^}}      tir.for %[[J]] in 10 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<12>, %[[VJ]]: spatial<10>) = [%[[I]], %[[J]]] {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%X: memref<12x9xf32>, %W: memref<9x10xf32>, %D: memref<12x10xf32>) {
  %zero = arith.constant 0.0 : f32
  %Y = memref.alloc() : memref<12x10xf32>
  tir.for %i in 12 {
    tir.for %j in 10 {
      tir.for %k in 9 {
        tir.block "B" iters(%vi: spatial<12>, %vj: spatial<10>, %vk: reduce<9>) = [%i, %j, %k] {
          tir.init {
            memref.store %zero, %Y[%vi, %vj] : memref<12x10xf32>
          }
          %x = memref.load %X[%vi, %vk] : memref<12x9xf32>
          %w = memref.load %W[%vk, %vj] : memref<9x10xf32>
          %p = arith.mulf %x, %w : f32
          %y = memref.load %Y[%vi, %vj] : memref<12x10xf32>
          %s = arith.addf %y, %p : f32
          memref.store %s, %Y[%vi, %vj] : memref<12x10xf32>
        }
      }
    }
  }
  tir.for %i in 12 {
    tir.for %j in 10 {
      tir.block "C" iters(%vi: spatial<12>, %vj: spatial<10>) = [%i, %j] {
        %y = memref.load %Y[%vi, %vj] : memref<12x10xf32>
        %r = arith.maximumf %y, %zero : f32
        memref.store %r, %D[%vi, %vj] : memref<12x10xf32>
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %i, %j, %k = sched.get_loops %b : loop, loop, loop
  %j0, %j1 = sched.split %j {factors = [0, 4]} : loop, loop
  sched.parallel %j0
}

// -----

// A loop of symbolic extent.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in %[[M:\w+]] parallel {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in %[[N:\w+]] {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<%[[M]]>, %[[VJ:\w+]]: spatial<%[[N]]>) = [%[[I]], %[[J]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in %[[M:\w+]] parallel {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in %[[N:\w+]] {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<%[[M]]>, %[[VJ:\w+]]: spatial<%[[N]]>) = [%[[I]], %[[J]]] {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%A: memref<?x?xf32>, %D: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %A, %c0 : memref<?x?xf32>
  %n = memref.dim %A, %c1 : memref<?x?xf32>
  tir.assume_shape %D[%m, %n] : memref<?x?xf32>
  tir.for %i in %m {
    tir.for %j in %n {
      tir.block "B" iters(%vi: spatial<%m>, %vj: spatial<%n>) = [%i, %j] {
        %a = memref.load %A[%vi, %vj] : memref<?x?xf32>
        memref.store %a, %D[%vi, %vj] : memref<?x?xf32>
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %i, %j = sched.get_loops %b : loop, loop
  sched.parallel %i
}
