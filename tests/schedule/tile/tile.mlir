// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s --strict-whitespace
// RUN: weft-opt %s --split-input-file -p 'tir-tile{func=f block=B loops=0,1 factors=4,4}' | filecheck %s --strict-whitespace --check-prefix=PASS
// tile: split and moved inside, in one step.

// Factors that do not divide.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0:\w+]] in 3 {
// CHECK-NEXT: {{^}}      tir.for %[[J0:\w+]] in 2 {
// CHECK-NEXT: {{^}}        tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT: {{^}}          tir.for %[[J1:\w+]] in 6 {
// CHECK-NEXT: {{^}}            tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I0]] * 4 + %[[I1]], %[[J0]] * 6 + %[[J1]]] where [%[[I0]] * 4 + %[[I1]]] < [10] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I0:\w+]] in 3 {
// PASS-NEXT: {{^}}      tir.for %[[J0:\w+]] in 3 {
// PASS-NEXT: {{^}}        tir.for %[[I1:\w+]] in 4 {
// PASS-NEXT: {{^}}          tir.for %[[J1:\w+]] in 4 {
// PASS-NEXT: {{^}}            tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I0]] * 4 + %[[I1]], %[[J0]] * 4 + %[[J1]]] where [%[[I0]] * 4 + %[[I1]]] < [10] {
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
  %a, %b1, %c, %d = sched.tile %i, %j {factors = [4, 6]} : loop, loop, loop, loop
}

// -----

// The loops of a reduction.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0:\w+]] in 3 {
// CHECK-NEXT: {{^}}      tir.for %[[J0:\w+]] in 2 {
// CHECK-NEXT: {{^}}        tir.for %[[K0:\w+]] in 3 {
// CHECK-NEXT: {{^}}          tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT: {{^}}            tir.for %[[J1:\w+]] in 5 {
// CHECK-NEXT: {{^}}              tir.for %[[K1:\w+]] in 3 {
// CHECK-NEXT: {{^}}                tir.block "B" iters(%[[VI:\w+]]: spatial<12>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<9>) = [%[[I0]] * 4 + %[[I1]], %[[J0]] * 5 + %[[J1]], %[[K0]] * 3 + %[[K1]]] {
// CHECK: {{^}}    tir.for %[[I:\w+]] in 12 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 10 {
// CHECK-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<12>, %[[VJ]]: spatial<10>) = [%[[I]], %[[J]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I0:\w+]] in 3 {
// PASS-NEXT: {{^}}      tir.for %[[J0:\w+]] in 3 {
// PASS-NEXT: {{^}}        tir.for %[[I1:\w+]] in 4 {
// PASS-NEXT: {{^}}          tir.for %[[J1:\w+]] in 4 {
// PASS-NEXT: {{^}}            tir.for %[[K:\w+]] in 9 {
// PASS-NEXT: {{^}}              tir.block "B" iters(%[[VI:\w+]]: spatial<12>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<9>) = [%[[I0]] * 4 + %[[I1]], %[[J0]] * 4 + %[[J1]], %[[K]]] where [%[[J0]] * 4 + %[[J1]]] < [10] {
// PASS: {{^}}    tir.for %[[I:\w+]] in 12 {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 10 {
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
  sched.tile %i, %j, %k {factors = [4, 5, 3]} : loop, loop, loop, loop, loop, loop
}

// -----

// Symbolic extents: both are computed before the nest.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    %{{[0-9]+}} = affine.apply affine_map<(d0) -> (((d0 + 3) floordiv 4))> (%[[M:\w+]])
// CHECK-NEXT: {{^}}    %{{[0-9]+}} = affine.apply affine_map<(d0) -> (((d0 + 7) floordiv 8))> (%[[N:\w+]])
// CHECK-NEXT: {{^}}    tir.for %[[I0:\w+]] in %{{[0-9]+}} {
// CHECK-NEXT: {{^}}      tir.for %[[J0:\w+]] in %{{[0-9]+}} {
// CHECK-NEXT: {{^}}        tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT: {{^}}          tir.for %[[J1:\w+]] in 8 {
// CHECK-NEXT: {{^}}            tir.block "B" iters(%[[VI:\w+]]: spatial<%[[M]]>, %[[VJ:\w+]]: spatial<%[[N]]>) = [%[[I0]] * 4 + %[[I1]], %[[J0]] * 8 + %[[J1]]] where [%[[I0]] * 4 + %[[I1]], %[[J0]] * 8 + %[[J1]]] < [%[[M]], %[[N]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    %{{[0-9]+}} = affine.apply affine_map<(d0) -> (((d0 + 3) floordiv 4))> (%[[M:\w+]])
// PASS-NEXT: {{^}}    %{{[0-9]+}} = affine.apply affine_map<(d0) -> (((d0 + 3) floordiv 4))> (%[[N:\w+]])
// PASS-NEXT: {{^}}    tir.for %[[I0:\w+]] in %{{[0-9]+}} {
// PASS-NEXT: {{^}}      tir.for %[[J0:\w+]] in %{{[0-9]+}} {
// PASS-NEXT: {{^}}        tir.for %[[I1:\w+]] in 4 {
// PASS-NEXT: {{^}}          tir.for %[[J1:\w+]] in 4 {
// PASS-NEXT: {{^}}            tir.block "B" iters(%[[VI:\w+]]: spatial<%[[M]]>, %[[VJ:\w+]]: spatial<%[[N]]>) = [%[[I0]] * 4 + %[[I1]], %[[J0]] * 4 + %[[J1]]] where [%[[I0]] * 4 + %[[I1]], %[[J0]] * 4 + %[[J1]]] < [%[[M]], %[[N]]] {
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
  sched.tile %i, %j {factors = [4, 8]} : loop, loop, loop, loop
}
