// RUN: weft-opt %s -p 'default-schedule{target="llvm -mcpu=sapphirerapids -mtriple=x86_64-unknown-linux-gnu -num-threads=1 -l1-bytes=49152 -l2-bytes=2097152 -l2-ways=16 -l3-bytes=33554432"}' | filecheck %s

func.func @product(%A: memref<64x64xbf16>, %B: memref<64x128xbf16>, %C: memref<64x128xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 64 { tir.for %j in 128 { tir.for %k in 64 {
    tir.block "C" iters(%vi: spatial<64>, %vj: spatial<128>, %vk: reduce<64>) = [%i, %j, %k] {
      tir.init { memref.store %zero, %C[%vi, %vj] : memref<64x128xf32> }
      %a = memref.load %A[%vi, %vk] : memref<64x64xbf16>
      %x = arith.extf %a : bf16 to f32
      %b = memref.load %B[%vk, %vj] : memref<64x128xbf16>
      %y = arith.extf %b : bf16 to f32
      %p = arith.mulf %x, %y : f32
      %c = memref.load %C[%vi, %vj] : memref<64x128xf32>
      %s = arith.addf %c, %p : f32
      memref.store %s, %C[%vi, %vj] : memref<64x128xf32>
    } } } }
  func.return
}
// Panels of pairs of steps, and 32 x 32 sums in tile registers, which are stored to the result.
// CHECK-LABEL: @product
// CHECK:         memref.alloc() : memref<4x32x32x2xbf16>
// CHECK:         low.tile_interleave {{.*}} {lanes = 16 : i64, rows = 2 : i64}
// CHECK:         tir.for %{{.*}} in 2 {
// CHECK-NEXT:      tir.for %{{.*}} in 4 {
// CHECK-NEXT:        tir.block "C_o" iters(%{{.*}}: spatial<2>, %{{.*}}: spatial<4>)
// CHECK:               %c = low.access_ptr %C[%{{.*}}, %{{.*}}] sizes [32, 32] write
// CHECK:               low.tile_product %a[%a_rows, %a_steps] as bf16, %b[%b_rows, %b_steps] as bf16 onto %c[%c_rows] {rows = 32 : i64, columns = 32 : i64, depth = 32 : i64, extents = array<i64: 2>, from_zero}
