// RUN: weft-opt %s -p apply-schedule | filecheck %s
// RUN: weft-opt %s -p 'tir-cache-inplace{block=D index=1 scope=local},tir-cache-inplace{block=C index=0 scope=local}' | filecheck %s
// cache_inplace: a block updates a copy.

// Half of a temporary, there and back; all of a parameter.
// CHECK-LABEL: @f
// CHECK:         %A_local = memref.alloc() : memref<16xf32, "local">
// CHECK:         tir.for %[[AX:.*]] in 8 {
// CHECK-NEXT:      tir.block "A_local" iters(%[[V:.*]]: spatial<16>) = [%[[AX]] + 8] {
// CHECK-NEXT:        %[[A:.*]] = memref.load %A[%[[V]]] : memref<16xf32>
// CHECK-NEXT:        memref.store %[[A]], %A_local[%[[V]]] : memref<16xf32, "local">
// CHECK:           tir.block "C"
// CHECK:             %[[A:\w+]] = memref.load %A_local[%[[X:\w+]]] : memref<16xf32, "local">
// CHECK-NEXT:        %[[B:\w+]] = arith.mulf %[[A]], %[[A]] : f32
// CHECK-NEXT:        memref.store %[[B]], %A_local[%[[X]]] : memref<16xf32, "local">
// CHECK:         tir.for %[[AX:.*]] in 8 {
// CHECK-NEXT:      tir.block "A_local_1" iters(%[[V:.*]]: spatial<16>) = [%[[AX]] + 8] {
// CHECK-NEXT:        %[[A:.*]] = memref.load %A_local[%[[V]]] : memref<16xf32, "local">
// CHECK-NEXT:        memref.store %[[A]], %A[%[[V]]] : memref<16xf32>
// CHECK:         tir.for %[[AX:.*]] in 16 {
// CHECK-NEXT:      tir.block "D_local"
// CHECK:         tir.for %[[AX:.*]] in 16 {
// CHECK-NEXT:      tir.block "D_local_1" iters(%[[V:.*]]: spatial<16>) = [%[[AX]]] {
func.func @f(%D: memref<16xf32>) {
  %A = memref.alloc() : memref<16xf32>
  tir.for %i in 16 { tir.block "A" iters(%v: spatial<16>) = [%i] {
    %d = memref.load %D[%v] : memref<16xf32>
    memref.store %d, %A[%v] : memref<16xf32>
  } }
  tir.for %i in 8 { tir.block "C" iters(%v: spatial<8>) = [%i] {
    %x = affine.apply affine_map<(d0) -> (d0 + 8)>(%v)
    %a = memref.load %A[%x] : memref<16xf32>
    %b = arith.mulf %a, %a : f32
    memref.store %b, %A[%x] : memref<16xf32>
  } }
  tir.for %i in 8 { tir.block "D" iters(%v: spatial<8>) = [%i] {
    %x = affine.apply affine_map<(d0) -> (d0 + 8)>(%v)
    %a = memref.load %A[%x] : memref<16xf32>
    %d = memref.load %D[%v] : memref<16xf32>
    %b = arith.addf %a, %d : f32
    memref.store %b, %D[%v] : memref<16xf32>
  } }
  func.return
}
sched.func @schedule {
  %c = sched.get_block "C" in @f : block
  %d = sched.get_block "D" in @f : block
  %d_local, %d_back = sched.cache_inplace %d {index = 1, scope = "local"} : block, block
  %a_local, %back = sched.cache_inplace %c {index = 0, scope = "local"} : block, block
}
