// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s
// Loops of one iteration are 0 in the indices of steps that split, move, copy, reindex and factor.

func.func @f(%A: memref<4x40xf32>, %C: memref<4x38xf32>) {
  %zero = arith.constant 0.0 : f32
  %P = memref.alloc() : memref<4x40xf32>
  tir.for %i in 4 { tir.for %j in 40 {
    tir.block "P" iters(%vi: spatial<4>, %vj: spatial<40>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : memref<4x40xf32>
      %b = arith.addf %a, %a : f32
      memref.store %b, %P[%vi, %vj] : memref<4x40xf32>
    }
  } }
  tir.for %i in 4 { tir.for %j in 38 { tir.for %k in 3 {
    tir.block "C" iters(%vi: spatial<4>, %vj: spatial<38>, %vk: reduce<3>) = [%i, %j, %k] {
      tir.init { memref.store %zero, %C[%vi, %vj] : memref<4x38xf32> }
      %at = affine.apply affine_map<(d0, d1) -> (d0 + d1)>(%vj, %vk)
      %c = memref.load %C[%vi, %vj] : memref<4x38xf32>
      %p = memref.load %P[%vi, %at] : memref<4x40xf32>
      %s = arith.addf %c, %p : f32
      memref.store %s, %C[%vi, %vj] : memref<4x38xf32>
    }
  } } }
  func.return
}
sched.func @steps {
  %c = sched.get_block "C" : block
  %i, %j, %k = sched.get_loops %c : loop, loop, loop
  %i0, %i1 = sched.split %i {factors = [0, 1]} : loop, loop
  %p = sched.get_block "P" : block
  sched.compute_at %p, %j {preserve_unit_loops = true}
  %copy = sched.cache_read %c {index = 0, scope = "local"} : block
  sched.compute_at %copy, %k {preserve_unit_loops = true}
}
// CHECK:          tir.for %[[I0:\w+]] in 4 {
// CHECK-NEXT:        tir.for %[[I1:\w+]] in 1 {
// CHECK-NEXT:          tir.for %[[J:\w+]] in 38 {
// CHECK-NEXT:            tir.for %[[AX0:\w+]] in 1 {
// CHECK-NEXT:              tir.for %[[AX1:\w+]] in 3 {
// CHECK-NEXT:                tir.block "P" iters(%[[VI:\w+]]: spatial<4>, %[[VJ:\w+]]: spatial<40>) = [%[[I0]], %[[J]] + %[[AX1]]] {
// CHECK:                 tir.for %[[K:\w+]] in 3 {
// CHECK-NEXT:              tir.for %[[AX0]] in 1 {
// CHECK-NEXT:                tir.for %[[AX1]] in 1 {
// CHECK-NEXT:                  tir.block "P_local" iters(%[[V0:\w+]]: spatial<4>, %[[V1:\w+]]: spatial<40>) = [%[[I0]], %[[J]] + %[[K]]] {
// CHECK-NEXT:                    %{{.*}} = memref.load %P[%[[V0]], %[[V1]]] : memref<4x40xf32>
// CHECK:                   tir.block "C" iters(%[[VI]]: spatial<4>, %[[VJ]]: spatial<38>, %[[VK:\w+]]: reduce<3>) = [%[[I0]], %[[J]], %[[K]]] {
