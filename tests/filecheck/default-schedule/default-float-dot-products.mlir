// RUN: weft-opt %s -p 'default-schedule{target="llvm -mcpu=znver4 -num-threads=1 -l1-bytes=32768 -l2-bytes=1048576 -l2-ways=8 -l3-bytes=33554432"}' | filecheck %s --check-prefixes=CHECK,AVX512
// RUN: weft-opt %s -p 'default-schedule{target="llvm -mcpu=haswell -num-threads=1 -l1-bytes=32768 -l2-bytes=1048576 -l2-ways=16 -l3-bytes=33554432"}' | filecheck %s --check-prefixes=CHECK,PLAIN

func.func @product(%A: memref<48x64xbf16>, %B: memref<64x128xbf16>, %C: memref<48x128xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 48 { tir.for %j in 128 { tir.for %k in 64 {
    tir.block "C" iters(%vi: spatial<48>, %vj: spatial<128>, %vk: reduce<64>) = [%i, %j, %k] {
      tir.init { memref.store %zero, %C[%vi, %vj] : memref<48x128xf32> }
      %a = memref.load %A[%vi, %vk] : memref<48x64xbf16>
      %x = arith.extf %a : bf16 to f32
      %b = memref.load %B[%vk, %vj] : memref<64x128xbf16>
      %y = arith.extf %b : bf16 to f32
      %p = arith.mulf %x, %y : f32
      %c = memref.load %C[%vi, %vj] : memref<48x128xf32>
      %s = arith.addf %c, %p : f32
      memref.store %s, %C[%vi, %vj] : memref<48x128xf32>
    } } } }
  func.return
}
// Panels of pairs of steps.
// CHECK-LABEL:   @product
// AVX512:          memref.alloc() : memref<2x32x64x2xbf16>
// AVX512:          low.tile_interleave {{.*}} {lanes = 16 : i64, rows = 2 : i64}
// AVX512:          tir.for %{{.*}} in 32 {
// AVX512-NEXT:       tir.for %{{.*}} in 6 unrolled {
// AVX512-NEXT:         tir.for %{{.*}} in 4 unrolled {
// AVX512:                low.tile_dot %{{.*}} as bf16, %{{.*}} as bf16 onto %{{.*}} {lanes = 16 : i64, steps = 2 : i64}
// PLAIN-NOT:       low.tile_dot
// PLAIN:           arith.extf
