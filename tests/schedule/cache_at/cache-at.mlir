// RUN: weft-opt %s -p apply-schedule | filecheck %s
// RUN: weft-opt %s -p 'tir-read-at{func=f block=C loop=0 index=0 scope=shared},tir-write-at{func=f block=C loop=0 index=0 scope=local}' | filecheck %s --check-prefix=PASS
// read_at, write_at: copies of what an iteration of a loop reads or writes.

// CHECK-LABEL: @f
// CHECK:         %C_local = memref.alloc() : memref<8x32xf32, "local">
// CHECK:         %A_shared = memref.alloc() : memref<32x10xf32, "shared">
// CHECK:         tir.for %i in 8 {
// CHECK-NEXT:      tir.for %j0 in 4 {
// CHECK-NEXT:        tir.for %ax0 in 8 {
// CHECK-NEXT:          tir.block "A_shared" iters(%v0: spatial<32>, %v1: spatial<10>) = [%j0 * 8 + %ax0, %i + 2] {
// CHECK:             tir.for %j1 in 8 {
// CHECK-NEXT:          tir.block "C" iters(%vi: spatial<8>, %vj: spatial<32>) = [%i, %j0 * 8 + %j1] {
// CHECK-NEXT:            %x = affine.apply
// CHECK-NEXT:            %a = memref.load %A_shared[%vj, %x] : memref<32x10xf32, "shared">
// CHECK-NEXT:            memref.store %a, %C_local[%vi, %vj] : memref<8x32xf32, "local">
// CHECK:           tir.for %[[AX:.*]] in 32 {
// CHECK-NEXT:        tir.block "C_local" iters(%[[I:.*]]: spatial<8>, %[[J:.*]]: spatial<32>) = [%i, %[[AX]]] {
// CHECK-NEXT:          %[[C:.*]] = memref.load %C_local[%[[I]], %[[J]]] : memref<8x32xf32, "local">
// CHECK-NEXT:          memref.store %[[C]], %C[%[[I]], %[[J]]] : memref<8x32xf32>
//
// PASS-LABEL: @f
// PASS:         tir.for %i in 8 {
// PASS-NEXT:      tir.for %ax0 in 32 {
// PASS-NEXT:        tir.block "A_shared" iters(%v0: spatial<32>, %v1: spatial<10>) = [%ax0, %i + 2] {
// PASS:           tir.for %j in 32 {
// PASS-NEXT:        tir.block "C"
// PASS:           tir.for %[[AX:.*]] in 32 {
// PASS-NEXT:        tir.block "C_local"
func.func @f(%A: memref<32x10xf32>, %C: memref<8x32xf32>) {
  tir.for %i in 8 { tir.for %j in 32 {
    tir.block "C" iters(%vi: spatial<8>, %vj: spatial<32>) = [%i, %j] {
      %x = affine.apply affine_map<(d0) -> (d0 + 2)>(%vi)
      %a = memref.load %A[%vj, %x] : memref<32x10xf32>
      memref.store %a, %C[%vi, %vj] : memref<8x32xf32>
    } } }
  func.return
}
sched.func @schedule {
  %c = sched.get_block "C" in @f : block
  %i, %j = sched.get_loops %c : loop, loop
  %j0, %j1 = sched.split %j {factors = [0, 8]} : loop, loop
  %a_shared = sched.read_at %j0, %c {index = 0, scope = "shared"} : block
  %c_local = sched.write_at %i, %c {index = 0, scope = "local"} : block
}
