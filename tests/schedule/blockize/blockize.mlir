// RUN: weft-opt %s -p 'tir-split{block=C loop=0 factors=0,4},tir-split{block=C loop=2 factors=0,4},apply-schedule' | filecheck %s

// The iterators fall apart, the init becomes a nest of its own in the init of the outer block.

func.func @rows(%A: memref<8x12xf32>, %C: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 8 {
    tir.for %k in 12 {
      tir.block "C" iters(%vi: spatial<8>, %vk: reduce<12>) = [%i, %k] {
        tir.init {
          memref.store %zero, %C[%vi] : memref<8xf32>
        }
        %a = memref.load %A[%vi, %vk] : memref<8x12xf32>
        %c = memref.load %C[%vi] : memref<8xf32>
        %s = arith.addf %c, %a : f32
        memref.store %s, %C[%vi] : memref<8xf32>
      }
    }
  }
  func.return
}
sched.func @tile {
  %c = sched.get_block "C" : block
  %i0, %i1, %k0, %k1 = sched.get_loops %c : loop, loop, loop, loop
  sched.reorder %i0, %k0, %i1, %k1
  %o = sched.blockize %i1 : block
}
// CHECK-LABEL: @rows
// CHECK:         tir.for %i0 in 2 {
// CHECK-NEXT:      tir.for %k0 in 3 {
// CHECK-NEXT:        tir.block "C_o" iters(%vi_o: spatial<2>, %vk_o: reduce<3>) = [%i0, %k0] {
// CHECK-NEXT:          tir.init {
// CHECK-NEXT:            tir.for %i1_init in 4 {
// CHECK-NEXT:              tir.block "C_init" iters(%vi_i: spatial<4>) = [%i1_init] {
// CHECK-NEXT:                %vi = affine.apply affine_map<(d0, d1) -> (((d0 * 4) + d1))> (%vi_o, %vi_i)
// CHECK-NEXT:                memref.store %zero, %C[%vi] : memref<8xf32>
// CHECK-NEXT:              }
// CHECK-NEXT:            }
// CHECK-NEXT:          }
// CHECK-NEXT:          tir.for %i1 in 4 {
// CHECK-NEXT:            tir.for %k1 in 4 {
// CHECK-NEXT:              tir.block "C" iters(%[[I:.*]]: spatial<4>, %vk_i: reduce<4>) = [%i1, %k1] {
// CHECK-NEXT:                %[[VI:.*]] = affine.apply affine_map<(d0, d1) -> (((d0 * 4) + d1))> (%vi_o, %[[I]])
// CHECK-NEXT:                %vk = affine.apply affine_map<(d0, d1) -> (((d0 * 4) + d1))> (%vk_o, %vk_i)
// CHECK-NEXT:                %a = memref.load %A[%[[VI]], %vk] : memref<8x12xf32>
// CHECK-NEXT:                %c = memref.load %C[%[[VI]]] : memref<8xf32>
// CHECK-NEXT:                %s = arith.addf %c, %a : f32
// CHECK-NEXT:                memref.store %s, %C[%[[VI]]] : memref<8xf32>
