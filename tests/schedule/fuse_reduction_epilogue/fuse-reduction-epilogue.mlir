// RUN: weft-opt %s -p apply-schedule | filecheck %s
// RUN: weft-opt %s -p 'tir-fuse-reduction-epilogue{block=T epilogue_block=C}' | filecheck %s
// fuse_reduction_epilogue: a reduction starts from what an epilogue adds to its result.

// CHECK-LABEL: @f
// CHECK-NOT:   memref.alloc
// CHECK:       tir.for %[[I:\w+]] in 6 {
// CHECK-NEXT:    tir.for %[[K:\w+]] in 9 {
// CHECK-NEXT:      tir.block "T" iters(%[[VI:\w+]]: spatial<6>, %[[VK:\w+]]: reduce<9>) = [%[[I]], %[[K]]] {
// CHECK-NEXT:        tir.init {
// CHECK-NEXT:          %[[X:.*]] = affine.apply affine_map<(d0) -> (((d0 * -1) + 5))> (%[[VI]])
// CHECK-NEXT:          %[[B:.*]] = memref.load %bias[%[[X]]] : memref<6xf32>
// CHECK-NEXT:          %[[C:.*]] = arith.addf %[[ZERO:\w+]], %[[B]] : f32
// CHECK:               memref.store %[[C]], %C[%{{.*}}] : memref<6xf32>
// CHECK:             %[[T:\w+]] = memref.load %C[%[[Y:.*]]] : memref<6xf32>
// CHECK-NEXT:        %[[S:\w+]] = arith.addf %[[T]], %[[A:\w+]] : f32
// CHECK:             memref.store %[[S]], %C[%{{.*}}] : memref<6xf32>
// CHECK-NOT:   tir.block "C"
func.func @f(%A: memref<6x9xf32>, %bias: memref<6xf32>, %C: memref<6xf32>) {
  %zero = arith.constant 0.0 : f32
  %T = memref.alloc() : memref<6xf32>
  tir.for %i in 6 { tir.for %k in 9 {
    tir.block "T" iters(%vi: spatial<6>, %vk: reduce<9>) = [%i, %k] {
      tir.init { memref.store %zero, %T[%vi] : memref<6xf32> }
      %a = memref.load %A[%vi, %vk] : memref<6x9xf32>
      %t = memref.load %T[%vi] : memref<6xf32>
      %s = arith.addf %t, %a : f32
      memref.store %s, %T[%vi] : memref<6xf32>
    } } }
  tir.for %i in 6 { tir.block "C" iters(%v: spatial<6>) = [%i] {
    %x = affine.apply affine_map<(d0) -> (5 - d0)>(%v)
    %b = memref.load %bias[%v] : memref<6xf32>
    %t = memref.load %T[%x] : memref<6xf32>
    %c = arith.addf %t, %b : f32
    memref.store %c, %C[%v] : memref<6xf32>
  } }
  func.return
}
sched.func @schedule {
  %t = sched.get_block "T" in @f : block
  %c = sched.get_block "C" in @f : block
  sched.fuse_reduction_epilogue %t, %c
}
