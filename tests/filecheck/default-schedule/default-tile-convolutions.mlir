// RUN: weft-opt %s -p 'default-schedule{target="llvm -mcpu=sapphirerapids -num-threads=1 -l1-bytes=49152 -l2-bytes=2097152 -l2-ways=16 -l3-bytes=33554432"}' | filecheck %s

// A row of pixels in place; the epilogue reads the sums from L1.
// CHECK-LABEL:   func.func @rows
// CHECK:           tir.for %{{.*}} in 14 {
// CHECK:             tir.block "C_o"
// CHECK:               %[[ROWS:.*]] = low.stride %X {dimension = 3 : i64}
// CHECK:               low.tile_product %{{.*}}[%[[ROWS]], %{{.*}}, %{{.*}}, %{{.*}}] as bf16, %{{.*}} as bf16 onto %{{.*}} {rows = 14 : i64, columns = 32 : i64, depth = 32 : i64, extents = array<i64: 2, 3, 3>, from_zero}
// CHECK:             tir.for %{{.*}} in 14 {
// CHECK-NEXT:          tir.for %{{.*}} in 2 unrolled {
// CHECK-NEXT:            tir.for %{{.*}} in 16 vectorized {
func.func @rows(%X: memref<1x2x16x16x32xbf16>, %W: memref<1x2x3x3x16x32x2xbf16>, %B: memref<32xf32>, %Y: memref<1x1x14x14x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %C = memref.alloc() : memref<1x1x14x14x32xf32>
  tir.for %n in 1 { tir.for %b in 1 { tir.for %h in 14 { tir.for %w in 14 { tir.for %c in 32 {
  tir.for %rb in 2 { tir.for %rh in 3 { tir.for %rw in 3 { tir.for %rc in 16 { tir.for %rg in 2 {
    tir.block "C" iters(%vn: spatial<1>, %vb: spatial<1>, %vh: spatial<14>, %vw: spatial<14>, %vc: spatial<32>, %vrb: reduce<2>, %vrh: reduce<3>, %vrw: reduce<3>, %vrc: reduce<16>, %vrg: reduce<2>) = [%n, %b, %h, %w, %c, %rb, %rh, %rw, %rc, %rg] {
      tir.init { memref.store %zero, %C[%vn, %vb, %vh, %vw, %vc] : memref<1x1x14x14x32xf32> }
      %row = affine.apply affine_map<(d0, d1) -> (d0 + d1)>(%vh, %vrh)
      %column = affine.apply affine_map<(d0, d1) -> (d0 + d1)>(%vw, %vrw)
      %channel = affine.apply affine_map<(d0, d1) -> (d0 * 2 + d1)>(%vrc, %vrg)
      %x = memref.load %X[%vn, %vrb, %row, %column, %channel] : memref<1x2x16x16x32xbf16>
      %a = arith.extf %x : bf16 to f32
      %v = memref.load %W[%vb, %vrb, %vrh, %vrw, %vrc, %vc, %vrg] : memref<1x2x3x3x16x32x2xbf16>
      %k = arith.extf %v : bf16 to f32
      %p = arith.mulf %a, %k : f32
      %s = memref.load %C[%vn, %vb, %vh, %vw, %vc] : memref<1x1x14x14x32xf32>
      %t = arith.addf %s, %p : f32
      memref.store %t, %C[%vn, %vb, %vh, %vw, %vc] : memref<1x1x14x14x32xf32>
    } } } } } } } } } } }
  tir.for %n in 1 { tir.for %b in 1 { tir.for %h in 14 { tir.for %w in 14 { tir.for %c in 32 {
    tir.block "Y" iters(%vn: spatial<1>, %vb: spatial<1>, %vh: spatial<14>, %vw: spatial<14>, %vc: spatial<32>) = [%n, %b, %h, %w, %c] {
      %s = memref.load %C[%vn, %vb, %vh, %vw, %vc] : memref<1x1x14x14x32xf32>
      %d = memref.load %B[%vc] : memref<32xf32>
      %y = arith.addf %s, %d : f32
      memref.store %y, %Y[%vn, %vb, %vh, %vw, %vc] : memref<1x1x14x14x32xf32>
    } } } } } }
  func.return
}

// The windows of all pixels are laid out for tiles of 32 pixels of several rows.
// CHECK-LABEL:   func.func @windows
// CHECK:           %[[A:.*]] = memref.alloc() : memref<2x3x3x64x16x2xbf16>
// CHECK:           tir.for %{{.*}} in 32 vectorized {
// CHECK:             memref.store %{{.*}}, %[[A]][
// CHECK:           low.tile_product {{.*}} {rows = 32 : i64, columns = 32 : i64, depth = 32 : i64, extents = array<i64: 2, 3, 3>, from_zero}
// CHECK:           tir.block "C_reindex" {{.*}} < [49]
func.func @windows(%X: memref<1x2x9x9x32xbf16>, %W: memref<8x2x3x3x16x32x2xbf16>, %B: memref<32xf32>, %Y: memref<1x8x7x7x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %C = memref.alloc() : memref<1x8x7x7x32xf32>
  tir.for %n in 1 { tir.for %b in 8 { tir.for %h in 7 { tir.for %w in 7 { tir.for %c in 32 {
  tir.for %rb in 2 { tir.for %rh in 3 { tir.for %rw in 3 { tir.for %rc in 16 { tir.for %rg in 2 {
    tir.block "C" iters(%vn: spatial<1>, %vb: spatial<8>, %vh: spatial<7>, %vw: spatial<7>, %vc: spatial<32>, %vrb: reduce<2>, %vrh: reduce<3>, %vrw: reduce<3>, %vrc: reduce<16>, %vrg: reduce<2>) = [%n, %b, %h, %w, %c, %rb, %rh, %rw, %rc, %rg] {
      tir.init { memref.store %zero, %C[%vn, %vb, %vh, %vw, %vc] : memref<1x8x7x7x32xf32> }
      %row = affine.apply affine_map<(d0, d1) -> (d0 + d1)>(%vh, %vrh)
      %column = affine.apply affine_map<(d0, d1) -> (d0 + d1)>(%vw, %vrw)
      %channel = affine.apply affine_map<(d0, d1) -> (d0 * 2 + d1)>(%vrc, %vrg)
      %x = memref.load %X[%vn, %vrb, %row, %column, %channel] : memref<1x2x9x9x32xbf16>
      %a = arith.extf %x : bf16 to f32
      %v = memref.load %W[%vb, %vrb, %vrh, %vrw, %vrc, %vc, %vrg] : memref<8x2x3x3x16x32x2xbf16>
      %k = arith.extf %v : bf16 to f32
      %p = arith.mulf %a, %k : f32
      %s = memref.load %C[%vn, %vb, %vh, %vw, %vc] : memref<1x8x7x7x32xf32>
      %t = arith.addf %s, %p : f32
      memref.store %t, %C[%vn, %vb, %vh, %vw, %vc] : memref<1x8x7x7x32xf32>
    } } } } } } } } } } }
  tir.for %n in 1 { tir.for %b in 8 { tir.for %h in 7 { tir.for %w in 7 { tir.for %c in 32 {
    tir.block "Y" iters(%vn: spatial<1>, %vb: spatial<8>, %vh: spatial<7>, %vw: spatial<7>, %vc: spatial<32>) = [%n, %b, %h, %w, %c] {
      %s = memref.load %C[%vn, %vb, %vh, %vw, %vc] : memref<1x8x7x7x32xf32>
      %d = memref.load %B[%vc] : memref<32xf32>
      %y = arith.addf %s, %d : f32
      memref.store %y, %Y[%vn, %vb, %vh, %vw, %vc] : memref<1x8x7x7x32xf32>
    } } } } } }
  func.return
}
