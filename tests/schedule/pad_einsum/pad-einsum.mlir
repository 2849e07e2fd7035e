// RUN: weft-opt %s -p 'tir-pad-einsum{block=C padding=16,1,4}' | filecheck %s
// RUN: weft-opt %s -p 'tir-pad-einsum{block=C padding=1,1,4}' | filecheck %s --check-prefix=STEPS

func.func @matmul(%A: memref<30x7xf32>, %B: memref<7x6xf32>, %C: memref<30x6xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 30 { tir.for %j in 6 { tir.for %k in 7 {
    tir.block "C" iters(%vi: spatial<30>, %vj: spatial<6>, %vk: reduce<7>) = [%i, %j, %k] {
      tir.init { memref.store %zero, %C[%vi, %vj] : memref<30x6xf32> }
      %a = memref.load %A[%vi, %vk] : memref<30x7xf32>
      %b = memref.load %B[%vk, %vj] : memref<7x6xf32>
      %p = arith.mulf %a, %b : f32
      %c = memref.load %C[%vi, %vj] : memref<30x6xf32>
      %s = arith.addf %c, %p : f32
      memref.store %s, %C[%vi, %vj] : memref<30x6xf32>
    } } } }
  func.return
}
// CHECK-DAG:  %C_pad = memref.alloc() : memref<32x6xf32>
// CHECK-DAG:  %B_pad = memref.alloc() : memref<8x6xf32>
// CHECK-DAG:  %A_pad = memref.alloc() : memref<32x8xf32>
// CHECK:      tir.for %ax0 in 32 {
// CHECK-NEXT:   tir.for %ax1 in 8 {
// CHECK-NEXT:     tir.block "A_pad" iters(%v0: spatial<32>, %v1: spatial<8>) = [%ax0, %ax1] {
// CHECK:            scf.if
// CHECK-NEXT:         %a = memref.load %A[%v0, %v1] : memref<30x7xf32>
// CHECK:            } else {
// CHECK-NEXT:         arith.constant 0.000000e+00 : f32
// CHECK:            memref.store {{.*}}, %A_pad[%v0, %v1] : memref<32x8xf32>
// The columns of B do not grow: one comparison.
// CHECK:          tir.block "B_pad" iters([[K:%.*]]: spatial<8>, [[J:%.*]]: spatial<6>)
// CHECK-NEXT:       arith.constant 7 : index
// CHECK-NEXT:       arith.cmpi slt, [[K]],
// CHECK-NEXT:       scf.if
// CHECK:      tir.for %i in 32 {
// CHECK-NEXT:   tir.for %j in 6 {
// CHECK-NEXT:     tir.for %k in 8 {
// CHECK-NEXT:       tir.block "C" iters(%vi: spatial<32>, %vj: spatial<6>, %vk: reduce<8>) = [%i, %j, %k] {
// CHECK-NEXT:         tir.init {
// CHECK-NEXT:           memref.store %zero, %C_pad[%vi, %vj] : memref<32x6xf32>
// CHECK:              memref.load %A_pad[%vi, %vk] : memref<32x8xf32>
// CHECK:              memref.load %B_pad[%vk, %vj] : memref<8x6xf32>
// CHECK:              memref.store %s, %C_pad[%vi, %vj] : memref<32x6xf32>
// CHECK:          tir.block "C_pad" iters([[I:%.*]]: spatial<30>, [[J:%.*]]: spatial<6>)
// CHECK-NEXT:       [[OUT:%.*]] = memref.load %C_pad{{\[}}[[I]], [[J]]] : memref<32x6xf32>
// CHECK-NEXT:       memref.store [[OUT]], %C{{\[}}[[I]], [[J]]] : memref<30x6xf32>

// Only the reduction grows: the results stay where they are.
// STEPS-NOT: C_pad
// STEPS:     tir.block "C" iters(%vi: spatial<30>, %vj: spatial<6>, %vk: reduce<8>)
