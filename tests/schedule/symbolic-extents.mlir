// What was fused at extents that are known at run time only is split, run in parallel and reordered; facts make guards go.
// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s

func.func @fused(%A: memref<?x?xf32>, %D: memref<?x?xf32>) {
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
  %b = sched.get_block "B" in @fused : block
  %i, %j = sched.get_loops %b : loop, loop
  %f = sched.fuse %i, %j : loop
  %o, %v = sched.split %f {factors = [0, 4]} : loop, loop
  sched.parallel %o
  sched.vectorize %v
}
// CHECK-LABEL: @fused
// CHECK:         [[P:%[0-9]+]] = arith.muli %[[M:\w+]], %[[N:\w+]] : index
// CHECK-NEXT:    [[O:%[0-9]+]] = affine.apply affine_map<(d0) -> (((d0 + 3) floordiv 4))> ([[P]])
// CHECK-NEXT:    tir.for %[[I_J_FUSED0:\w+]] in [[O]] parallel {
// CHECK-NEXT:      tir.for %[[I_J_FUSED1:\w+]] in 4 vectorized {
// CHECK-NEXT:        [[F:%[0-9]+]] = affine.apply affine_map<(d0, d1) -> (((d0 * 4) + d1))> (%[[I_J_FUSED0]], %[[I_J_FUSED1]])
// CHECK-NEXT:        [[R:%[0-9]+]] = arith.remsi [[F]], %[[N]] : index
// CHECK-NEXT:        [[Q:%[0-9]+]] = arith.divsi [[F]], %[[N]] : index
// CHECK-NEXT:        tir.block "B" iters(%[[VI:\w+]]: spatial<%[[M]]>, %[[VJ:\w+]]: spatial<%[[N]]>) = {{\[}}[[Q]], [[R]]] where [%[[I_J_FUSED0]] * 4 + %[[I_J_FUSED1]]] < {{\[}}[[P]]] {

// -----

// The quotient and the remainder move inside with the loop.

func.func @reordered(%A: memref<?x?x8xf32>, %D: memref<?x?x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %A, %c0 : memref<?x?x8xf32>
  %n = memref.dim %A, %c1 : memref<?x?x8xf32>
  tir.assume_shape %D[%m, %n] : memref<?x?x8xf32>
  tir.for %i in %m {
    tir.for %j in %n {
      tir.for %k in 8 {
        tir.block "B" iters(%vi: spatial<%m>, %vj: spatial<%n>, %vk: spatial<8>) = [%i, %j, %k] {
          %a = memref.load %A[%vi, %vj, %vk] : memref<?x?x8xf32>
          memref.store %a, %D[%vi, %vj, %vk] : memref<?x?x8xf32>
        }
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @reordered : block
  %i, %j, %k = sched.get_loops %b : loop, loop, loop
  %f = sched.fuse %i, %j : loop
  sched.reorder %k, %f
}
// CHECK-LABEL: @reordered
// CHECK:         tir.for %[[K:\w+]] in 8 {
// CHECK-NEXT:      tir.for %[[I_J_FUSED:\w+]] in %{{[0-9]+}} {
// CHECK-NEXT:        [[R:%[0-9]+]] = arith.remsi %[[I_J_FUSED]], %[[N:\w+]] : index
// CHECK-NEXT:        [[Q:%[0-9]+]] = arith.divsi %[[I_J_FUSED]], %[[N]] : index
// CHECK-NEXT:        tir.block "B" {{.*}} = {{\[}}[[Q]], [[R]], %[[K]]] {

// -----

// Extents that are parameters may be negative, and two of them would multiply to a positive one.

func.func @negative(%D: memref<8xf32>, %m: index, %n: index) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  tir.for %i in %m {
    tir.for %j in %n {
      tir.block "B" iters(%vi: spatial<%m>, %vj: spatial<%n>) = [%i, %j] {
        memref.store %one, %D[%c0] : memref<8xf32>
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @negative : block
  %i, %j = sched.get_loops %b : loop, loop
  %f = sched.fuse %i, %j : loop
}
// CHECK-LABEL: @negative
// CHECK:         [[N:%[0-9]+]] = arith.maxsi %n, %{{.*}} : index
// CHECK:         arith.muli %m, [[N]] : index
// CHECK:         arith.remsi %[[I_J_FUSED:\w+]], [[N]] : index

// -----

// n is a multiple of 32, so of 8: no guard; of 64 it may not be one.

func.func @facts(%A: memref<?xf32>, %D: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.assume_shape %D[%n] : memref<?xf32>
  tir.assume [%n mod 32] == [0]
  tir.for %i in %n {
    tir.block "B" iters(%v: spatial<%n>) = [%i] {
      %a = memref.load %A[%v] : memref<?xf32>
      memref.store %a, %D[%v] : memref<?xf32>
    }
  }
  tir.for %i in %n {
    tir.block "C" iters(%v: spatial<%n>) = [%i] {
      %a = memref.load %D[%v] : memref<?xf32>
      memref.store %a, %D[%v] : memref<?xf32>
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @facts : block
  %i = sched.get_loops %b : loop
  %i0, %i1 = sched.split %i {factors = [0, 8]} : loop, loop
  %c = sched.get_block "C" in @facts : block
  %j = sched.get_loops %c : loop
  %j0, %j1 = sched.split %j {factors = [0, 64]} : loop, loop
}
// CHECK-LABEL: @facts
// CHECK:         tir.block "B" iters(%[[V:\w+]]: spatial<%[[N:\w+]]>) = [%[[I0:\w+]] * 8 + %[[I1:\w+]]] {
// CHECK:         tir.block "C" iters(%{{.*}}: spatial<%[[N]]>) = [%{{.*}} * 64 + %{{.*}}] where [%{{.*}} * 64 + %{{.*}}] < [%[[N]]] {
