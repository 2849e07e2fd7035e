// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s
// RUN: weft-opt %s --split-input-file -p 'tir-blockize{block=B blocks=C}' | filecheck %s --check-prefix=PASS
// blockize of several blocks: their nests become the body of one block.

// Iterators of both fall apart, a reduction that ends inside keeps its init there.
// CHECK-LABEL: @rows
// CHECK:         tir.for %[[I0:\w+]] in 2 {
// CHECK-NEXT:      tir.block "B_C_o" iters(%[[VI_O:\w+]]: spatial<2>) = [%[[I0]]] {
// CHECK-NEXT:        tir.for %[[AX0:\w+]] in 4 {
// CHECK-NEXT:          tir.for %[[AX1:\w+]] in 12 {
// CHECK-NEXT:            tir.block "B" iters(%{{.*}}: spatial<4>, %[[VJ:\w+]]: spatial<12>) = [%[[AX0]], %[[AX1]]] {
// CHECK:             tir.for %[[I1_INIT:\w+]] in 4 {
// CHECK-NEXT:          tir.block "C_init" iters(%{{.*}}: spatial<4>) = [%[[I1_INIT]]] {
// CHECK:             tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT:          tir.for %[[K:\w+]] in 12 {
// CHECK-NEXT:            tir.block "C" iters(%{{.*}}: spatial<4>, %[[VK:\w+]]: reduce<12>) = [%[[I1]], %[[K]]] {
//
// PASS-LABEL: @rows
// PASS:         tir.block "B_C_o" iters() = [] {
// PASS-NEXT:      tir.for %[[I:\w+]] in 8 {
// PASS-NEXT:        tir.for %[[J:\w+]] in 12 {
// PASS-NEXT:          tir.block "B" iters(%[[VI:\w+]]: spatial<8>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
// PASS:           tir.for %[[I_INIT:\w+]] in 8 {
func.func @rows(%A: memref<8x12xf32>, %C: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %B = memref.alloc() : memref<8x12xf32>
  tir.for %i in 8 { tir.for %j in 12 {
    tir.block "B" iters(%vi: spatial<8>, %vj: spatial<12>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : memref<8x12xf32>
      %b = arith.mulf %a, %a : f32
      memref.store %b, %B[%vi, %vj] : memref<8x12xf32>
    } } }
  tir.for %i in 8 { tir.for %k in 12 {
    tir.block "C" iters(%vi: spatial<8>, %vk: reduce<12>) = [%i, %k] {
      tir.init { memref.store %zero, %C[%vi] : memref<8xf32> }
      %a = memref.load %B[%vi, %vk] : memref<8x12xf32>
      %c = memref.load %C[%vi] : memref<8xf32>
      %s = arith.addf %c, %a : f32
      memref.store %s, %C[%vi] : memref<8xf32>
    } } }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @rows : block
  %c = sched.get_block "C" in @rows : block
  %i, %k = sched.get_loops %c : loop, loop
  %i0, %i1 = sched.split %i {factors = [0, 4]} : loop, loop
  sched.compute_at %b, %i0
  %o = sched.blockize %c, %b : block
}

// -----

// Blocks without loops of their own.
// CHECK-LABEL: @in_place
// CHECK:         tir.for %[[I:\w+]] in 12 {
// CHECK-NEXT:      tir.block "B_C_o" iters(%[[V:\w+]]: spatial<12>) = [%[[I]]] {
// CHECK-NEXT:        tir.block "B" iters() = [] {
// CHECK-NEXT:          %[[A:\w+]] = memref.load %A[%[[V]]] : memref<12xf32>
// CHECK-NEXT:          memref.store %[[A]], %B[%[[V]]] : memref<12xf32>
// CHECK-NEXT:        }
// CHECK-NEXT:        tir.block "C" iters() = [] {
// CHECK-NEXT:          %[[B:\w+]] = memref.load %B[%[[V]]] : memref<12xf32>
//
// PASS-LABEL: @in_place
// PASS:         tir.block "B_C_o" iters(%[[V:\w+]]: spatial<12>) = [%[[I:\w+]]] {
func.func @in_place(%A: memref<12xf32>, %C: memref<12xf32>) {
  %B = memref.alloc() : memref<12xf32>
  tir.for %i in 12 {
    tir.block "B" iters(%v: spatial<12>) = [%i] {
      %a = memref.load %A[%v] : memref<12xf32>
      memref.store %a, %B[%v] : memref<12xf32>
    }
    tir.block "C" iters(%v: spatial<12>) = [%i] {
      %b = memref.load %B[%v] : memref<12xf32>
      memref.store %b, %C[%v] : memref<12xf32>
    } }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @in_place : block
  %c = sched.get_block "C" in @in_place : block
  %o = sched.blockize %b, %c : block
}
