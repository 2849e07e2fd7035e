// RUN: weft-opt %s -p 'low-lower-dots{target="llvm -mcpu=znver4"}' | filecheck %s --check-prefixes=CHECK,AVX512
// RUN: weft-opt %s -p 'low-lower-dots{target="llvm -mcpu=neoverse-v1"}' | filecheck %s --check-prefixes=CHECK,NEON
// RUN: weft-opt %s -p 'low-lower-dots{target="llvm -mcpu=haswell"}' | filecheck %s --check-prefixes=CHECK,PLAIN
// RUN: weft-opt %s -p 'low-lower-dots{target=c}' | filecheck %s --check-prefixes=CHECK,PLAIN

func.func @tile(%A: memref<?xbf16>, %B: memref<?xbf16>, %C: memref<?xf32>, %i: index, %j: index, %k: index) {
  %a = low.access_ptr %A[%i] read : memref<?xbf16>
  %b = low.access_ptr %B[%j] read : memref<?xbf16>
  %c = low.access_ptr %C[%k] readwrite : memref<?xf32>
  low.tile_dot %a as bf16, %b as bf16 onto %c {lanes = 16 : i64, steps = 2 : i64}
  func.return
}
// CHECK-LABEL: @tile
// CHECK-NEXT:    %[[A:.*]] = vector.load %A[%i] : memref<?xbf16>, vector<2xbf16>
// CHECK-NEXT:    %[[B:.*]] = vector.load %B[%j] : memref<?xbf16>, vector<32xbf16>
// CHECK-NEXT:    %[[C:.*]] = vector.load %C[%k] : memref<?xf32>, vector<16xf32>
// AVX512-NEXT:   low.dot %[[C]], %[[A]] as bf16, %[[B]] as bf16 : vector<16xf32>, vector<2xbf16>, vector<32xbf16>
// NEON-COUNT-4:  low.dot {{.*}} : vector<4xf32>, vector<2xbf16>, vector<8xbf16>
// NEON-NOT:      low.dot
// PLAIN:         vector.extract %[[A]][0]
// PLAIN-NEXT:    arith.extf {{.*}} : bf16 to f32
// PLAIN-NEXT:    vector.broadcast {{.*}} : f32 to vector<16xf32>
// PLAIN-NEXT:    vector.shuffle %[[B]], %[[B]] [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]
// PLAIN-NEXT:    arith.extf {{.*}} : vector<16xbf16> to vector<16xf32>
// PLAIN-NEXT:    vector.fma
// PLAIN:         vector.fma
// PLAIN-NOT:     low.dot

func.func @interleaved(%X: memref<?xbf16>, %Y: memref<?xbf16>, %i: index, %d: index) {
  %x = low.access_ptr %X[%i] read : memref<?xbf16>
  %y = low.access_ptr %Y[%i] write : memref<?xbf16>
  low.tile_interleave %x, %d to %y {lanes = 4 : i64, rows = 2 : i64}
  func.return
}
// CHECK-LABEL: @interleaved
// CHECK:         vector.shuffle %{{.*}}, %{{.*}} [0, 4, 1, 5, 2, 6, 3, 7]
