// RUN: weft-opt %s -p 'default-schedule{target="llvm -mcpu=haswell -num-threads=1" only_trace=true}' --split-input-file | filecheck %s
// RUN: weft-opt %s -p 'default-schedule{target="llvm -mcpu=haswell -num-threads=1"}' --split-input-file | filecheck %s --check-prefix=LOOPS

// Sums of groups of two rows of data, for 32 columns at a time; both are added to totals that are stored once.
// CHECK-LABEL: sched.func @default_product
// CHECK:         %[[P:\w+]] = sched.get_producers
// CHECK:         sched.cache_write %{{\w+}} {index = 0, scope = "local"}
// CHECK:         sched.compute_at
// CHECK:         sched.decompose_reduction
// LOOPS-LABEL: func.func @product
// LOOPS:         tir.for %{{\w+}} in 2 {
// LOOPS:           tir.block "Y_init"
// LOOPS:           tir.for %[[G:\w+]] in 3 {
// LOOPS:             tir.block "P_init"
// LOOPS:             tir.for %{{\w+}} in 2 {
// LOOPS-NEXT:          tir.for %{{\w+}} in 8 unrolled {
// LOOPS-NEXT:            tir.for %{{\w+}} in 2 unrolled {
// LOOPS-NEXT:              tir.for %{{\w+}} in 4 unrolled {
// LOOPS-NEXT:                tir.for %{{\w+}} in 8 vectorized {
// LOOPS-NEXT:                  tir.block "P_update"
// LOOPS:             tir.block "Y_update"
// LOOPS:           tir.block "Y_local"
func.func @product(%X: memref<2x48xf32>, %W: memref<2x48x32xi8>, %S: memref<2x3x32xf32>, %Y: memref<2x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %P = memref.alloc() : memref<2x3x64xf32>
  tir.for %i in 2 { tir.for %g in 3 { tir.for %j in 64 { tir.for %k in 16 {
    tir.block "P" iters(%vi: spatial<2>, %vg: spatial<3>, %vj: spatial<64>, %vk: reduce<16>) = [%i, %g, %j, %k] {
      tir.init { memref.store %zero, %P[%vi, %vg, %vj] : memref<2x3x64xf32> }
      %row = affine.apply affine_map<(d0, d1) -> (d0 * 16 + d1)> (%vg, %vk)
      %panel = affine.apply affine_map<(d0) -> (d0 floordiv 32)> (%vj)
      %column = affine.apply affine_map<(d0) -> (d0 mod 32)> (%vj)
      %x = memref.load %X[%vi, %row] : memref<2x48xf32>
      %q = memref.load %W[%panel, %row, %column] : memref<2x48x32xi8>
      %w = arith.sitofp %q : i8 to f32
      %t = arith.mulf %x, %w : f32
      %p = memref.load %P[%vi, %vg, %vj] : memref<2x3x64xf32>
      %n = arith.addf %p, %t : f32
      memref.store %n, %P[%vi, %vg, %vj] : memref<2x3x64xf32>
    } } } } }
  tir.for %i in 2 { tir.for %j in 64 { tir.for %g in 3 {
    tir.block "Y" iters(%vi: spatial<2>, %vj: spatial<64>, %vg: reduce<3>) = [%i, %j, %g] {
      tir.init { memref.store %zero, %Y[%vi, %vj] : memref<2x64xf32> }
      %panel = affine.apply affine_map<(d0) -> (d0 floordiv 32)> (%vj)
      %column = affine.apply affine_map<(d0) -> (d0 mod 32)> (%vj)
      %s = memref.load %S[%panel, %vg, %column] : memref<2x3x32xf32>
      %p = memref.load %P[%vi, %vg, %vj] : memref<2x3x64xf32>
      %t = arith.mulf %s, %p : f32
      %y = memref.load %Y[%vi, %vj] : memref<2x64xf32>
      %n = arith.addf %y, %t : f32
      memref.store %n, %Y[%vi, %vj] : memref<2x64xf32>
    } } } }
  func.return
}
