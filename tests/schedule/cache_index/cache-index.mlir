// RUN: weft-opt %s -p apply-schedule | filecheck %s
// RUN: weft-opt %s -p 'tir-annotate-buffer-access{block=C index=0 buffer_type=write region="lambda i, j: (i, i + 1, j, j + 1)"},tir-cache-index{block=C scope=global cse_thresh=2}' | filecheck %s
// cache_index: computed indices of loads, before the nest. annotate_buffer_access: a region that is stated.

// CHECK:      %index = memref.alloc() : memref<64xindex>
// CHECK-NEXT: tir.for %[[AX0:\w+]] in 64 {
// CHECK-NEXT:   tir.block "index" iters(%[[VI:\w+]]: spatial<64>) = [%[[AX0]]] {
// CHECK-NEXT:     %[[X:.*]] = affine.apply affine_map<(d0) -> (((d0 * 7) mod 64))> (%[[VI]])
// CHECK-NEXT:     memref.store %[[X]], %index[%[[VI]]] : memref<64xindex>
// CHECK:      tir.block "C" iters(%[[VI:.*]]: spatial<64>, %[[VJ:\w+]]: spatial<8>) = [%[[I:\w+]], %[[J:\w+]]] {
// CHECK-NEXT:   tir.writes %C[%[[VI]], %[[VJ]]] : memref<64x8xf32>
// CHECK-NEXT:   %[[Y:\w+]] = affine.apply
// CHECK-NEXT:   %[[X:.*]] = memref.load %index[%[[VI]]] : memref<64xindex>
// CHECK-NEXT:   %[[A:\w+]] = memref.load %A[%[[X]], %[[VJ]]] : memref<64x8xf32>
// CHECK-NEXT:   %[[X:.*]] = memref.load %index[%[[VI]]] : memref<64xindex>
// CHECK-NEXT:   %[[B:\w+]] = memref.load %A[%[[X]], %[[Y]]] : memref<64x8xf32>
func.func @f(%A: memref<64x8xf32>, %C: memref<64x8xf32>) {
  tir.for %i in 64 { tir.for %j in 8 {
    tir.block "C" iters(%vi: spatial<64>, %vj: spatial<8>) = [%i, %j] {
      %x = affine.apply affine_map<(d0) -> (d0 * 7 mod 64)>(%vi)
      %y = affine.apply affine_map<(d0) -> ((d0 + 3) mod 8)>(%vj)
      %a = memref.load %A[%x, %vj] : memref<64x8xf32>
      %b = memref.load %A[%x, %y] : memref<64x8xf32>
      %s = arith.addf %a, %b : f32
      memref.store %s, %C[%vi, %vj] : memref<64x8xf32>
    } } }
  func.return
}
sched.func @schedule {
  %c = sched.get_block "C" in @f : block
  sched.annotate_buffer_access %c {index = 0, buffer_type = "write", region = affine_map<(d0, d1) -> (d0, d0 + 1, d1, d1 + 1)>}
  %i = sched.cache_index %c {scope = "global", cse_thresh = 2} : block
}
