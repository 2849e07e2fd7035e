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
// CHECK:      tir.for %[[AX0:\w+]] in 32 {
// CHECK-NEXT:   tir.for %[[AX1:\w+]] in 8 {
// CHECK-NEXT:     tir.block "A_pad" iters(%[[V0:\w+]]: spatial<32>, %[[V1:\w+]]: spatial<8>) = [%[[AX0]], %[[AX1]]] {
// CHECK:            scf.if
// CHECK-NEXT:         %[[A:\w+]] = memref.load %A[%[[V0]], %[[V1]]] : memref<30x7xf32>
// CHECK:            } else {
// CHECK-NEXT:         arith.constant 0.000000e+00 : f32
// CHECK:            memref.store {{.*}}, %A_pad[%[[V0]], %[[V1]]] : memref<32x8xf32>
// The columns of B do not grow: one comparison.
// CHECK:          tir.block "B_pad" iters([[K:%.*]]: spatial<8>, [[J:%.*]]: spatial<6>)
// CHECK-NEXT:       arith.constant 7 : index
// CHECK-NEXT:       arith.cmpi slt, [[K]],
// CHECK-NEXT:       scf.if
// CHECK:      tir.for %[[I:\w+]] in 32 {
// CHECK-NEXT:   tir.for %[[J:\w+]] in 6 {
// CHECK-NEXT:     tir.for %[[K:\w+]] in 8 {
// CHECK-NEXT:       tir.block "C" iters(%[[VI:\w+]]: spatial<32>, %[[VJ:\w+]]: spatial<6>, %[[VK:\w+]]: reduce<8>) = [%[[I]], %[[J]], %[[K]]] {
// CHECK-NEXT:         tir.init {
// CHECK-NEXT:           memref.store %[[ZERO:\w+]], %C_pad[%[[VI]], %[[VJ]]] : memref<32x6xf32>
// CHECK:              memref.load %A_pad[%[[VI]], %[[VK]]] : memref<32x8xf32>
// CHECK:              memref.load %B_pad[%[[VK]], %[[VJ]]] : memref<8x6xf32>
// CHECK:              memref.store %[[S:\w+]], %C_pad[%[[VI]], %[[VJ]]] : memref<32x6xf32>
// CHECK:          tir.block "C_pad" iters([[I:%.*]]: spatial<30>, [[J:%.*]]: spatial<6>)
// CHECK-NEXT:       [[OUT:%.*]] = memref.load %C_pad{{\[}}[[I]], [[J]]] : memref<32x6xf32>
// CHECK-NEXT:       memref.store [[OUT]], %C{{\[}}[[I]], [[J]]] : memref<30x6xf32>

// Only the reduction grows: the results stay where they are.
// STEPS-NOT: C_pad
// STEPS:     tir.block "C" iters(%[[VI:\w+]]: spatial<30>, %[[VJ:\w+]]: spatial<6>, %[[VK:\w+]]: reduce<8>)
