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
// CHECK:         tir.for %[[I0:\w+]] in 2 {
// CHECK-NEXT:      tir.for %[[K0:\w+]] in 3 {
// CHECK-NEXT:        tir.block "C_o" iters(%[[VI_O:\w+]]: spatial<2>, %[[VK_O:\w+]]: reduce<3>) = [%[[I0]], %[[K0]]] {
// CHECK-NEXT:          tir.init {
// CHECK-NEXT:            tir.for %[[I1_INIT:\w+]] in 4 {
// CHECK-NEXT:              tir.block "C_init" iters(%[[VI_I:\w+]]: spatial<4>) = [%[[I1_INIT]]] {
// CHECK-NEXT:                %[[VI:\w+]] = affine.apply affine_map<(d0, d1) -> (((d0 * 4) + d1))> (%[[VI_O]], %[[VI_I]])
// CHECK-NEXT:                memref.store %[[ZERO:\w+]], %C[%[[VI]]] : memref<8xf32>
// CHECK-NEXT:              }
// CHECK-NEXT:            }
// CHECK-NEXT:          }
// CHECK-NEXT:          tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT:            tir.for %[[K1:\w+]] in 4 {
// CHECK-NEXT:              tir.block "C" iters(%[[I:.*]]: spatial<4>, %[[VK_I:\w+]]: reduce<4>) = [%[[I1]], %[[K1]]] {
// CHECK-NEXT:                %[[VI:.*]] = affine.apply affine_map<(d0, d1) -> (((d0 * 4) + d1))> (%[[VI_O]], %[[I]])
// CHECK-NEXT:                %[[VK:\w+]] = affine.apply affine_map<(d0, d1) -> (((d0 * 4) + d1))> (%[[VK_O]], %[[VK_I]])
// CHECK-NEXT:                %[[A:\w+]] = memref.load %A[%[[VI]], %[[VK]]] : memref<8x12xf32>
// CHECK-NEXT:                %[[C:\w+]] = memref.load %C[%[[VI]]] : memref<8xf32>
// CHECK-NEXT:                %[[S:\w+]] = arith.addf %[[C]], %[[A]] : f32
// CHECK-NEXT:                memref.store %[[S]], %C[%[[VI]]] : memref<8xf32>
