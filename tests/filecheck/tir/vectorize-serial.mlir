// RUN: weft-opt %s --split-input-file -p 'tir-flatten,tir-vectorize-serial{target="llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell"},tir-lower-vectorized,low-canonicalize' | filecheck %s

// Rows into panels of 64 columns: consecutive within a panel, so eight lanes are.
func.func @panels(%B: memref<4x128xf32>, %P: memref<2x4x64xf32>) {
  tir.for %k in 4 {
    tir.for %j in 128 {
      %p = affine.apply affine_map<(d0) -> (d0 floordiv 64)> (%j)
      %c = affine.apply affine_map<(d0) -> (d0 mod 64)> (%j)
      %b = memref.load %B[%k, %j] : memref<4x128xf32>
      memref.store %b, %P[%p, %k, %c] : memref<2x4x64xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @panels
// CHECK:         tir.for %{{.*}} in 4 {
// CHECK:           tir.for %[[J0:\w+]] in 16 {
// CHECK:             vector.load {{.*}} vector<8xf32>
// CHECK:             vector.store {{.*}} vector<8xf32>
// CHECK-NOT:     memref.store

// -----

// Panels of four columns: no more than four lanes are consecutive.
func.func @narrow(%B: memref<128xf32>, %P: memref<32x16xf32>) {
  tir.for %j in 128 {
    %p = affine.apply affine_map<(d0) -> (d0 floordiv 4)> (%j)
    %c = affine.apply affine_map<(d0) -> (d0 mod 4)> (%j)
    %b = memref.load %B[%j] : memref<128xf32>
    memref.store %b, %P[%p, %c] : memref<32x16xf32>
  }
  func.return
}
// CHECK-LABEL: @narrow
// CHECK:         tir.for %[[J0:\w+]] in 32 {
// CHECK:           vector.store {{.*}} vector<4xf32>

// -----

// A short fill, and one vector: no loop is left for it.
func.func @fills(%A: memref<100xf32>, %B: memref<8xi32>, %n: i32) {
  tir.for %i in 48 {
    %zero = arith.constant 0.0 : f32
    %at = affine.apply affine_map<(d0) -> (d0 + 52)> (%i)
    memref.store %zero, %A[%at] : memref<100xf32>
  }
  tir.for %i in 8 {
    memref.store %n, %B[%i] : memref<8xi32>
  }
  func.return
}
// CHECK-LABEL: @fills
// CHECK:         tir.for %[[I0:\w+]] in 6 {
// CHECK:           vector.store {{.*}} vector<8xf32>
// CHECK:         }
// CHECK:         vector.store {{.*}} vector<8xi32>

// -----

// A long run from end to end is a call of memset to LLVM.
func.func @long(%A: memref<1000xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 1000 {
    memref.store %zero, %A[%i] : memref<1000xf32>
  }
  func.return
}
// CHECK-LABEL: @long
// CHECK:         tir.for %[[I:\w+]] in 1000 {
// CHECK-NEXT:      memref.store

// -----

// Columns, elements that may be overwritten before they are read, and gathers stay scalar.
func.func @others(%A: memref<32xf32>, %N: memref<32xindex>, %B: memref<32xf32>, %T: memref<32x32xf32>, %k: index) {
  tir.assume [0] <= [%k]
  tir.assume [%k] < [32]
  tir.for %i in 32 {
    %a = memref.load %A[%i] : memref<32xf32>
    memref.store %a, %T[%i, %k] : memref<32x32xf32>
  }
  tir.for %i in 24 {
    %at = affine.apply affine_map<(d0) -> (d0 + 1)> (%i)
    %a = memref.load %A[%i] : memref<32xf32>
    memref.store %a, %A[%at] : memref<32xf32>
  }
  tir.for %i in 24 {
    %at = affine.apply affine_map<(d0) -> (d0 + 1)> (%i)
    %a = memref.load %A[%i] : memref<32xf32>
    memref.store %a, %B[%i] : memref<32xf32>
    memref.store %a, %B[%at] : memref<32xf32>
  }
  tir.for %i in 32 {
    %n = memref.load %N[%i] : memref<32xindex>
    %a = memref.load %A[%n] : memref<32xf32>
    memref.store %a, %B[%i] : memref<32xf32>
  }
  func.return
}
// CHECK-LABEL: @others
// CHECK-NOT:     vector
// CHECK:         func.return

// -----

// Nor is a loop split whose extent no lanes divide, or that the schedule has unrolled.
func.func @odd(%A: memref<31xf32>, %B: memref<31xf32>) {
  tir.for %i in 31 {
    %a = memref.load %A[%i] : memref<31xf32>
    memref.store %a, %B[%i] : memref<31xf32>
  }
  tir.for %i in 8 unrolled {
    %a = memref.load %A[%i] : memref<31xf32>
    memref.store %a, %B[%i] : memref<31xf32>
  }
  func.return
}
// CHECK-LABEL: @odd
// CHECK-NOT:     vector
// CHECK:         func.return

// -----

// The largest of 64 elements: 32 lanes, which are four vectors, each with a maximum of its own until the end.
func.func @largest(%A: memref<64xf32>, %M: memref<1xf32>, %S: memref<1xi32>, %I: memref<48xi32>) {
  %c0 = arith.constant 0 : index
  tir.for %i in 64 {
    %a = memref.load %A[%i] : memref<64xf32>
    %m = memref.load %M[%c0] : memref<1xf32>
    %r = arith.maximumf %m, %a : f32
    memref.store %r, %M[%c0] : memref<1xf32>
  }
  tir.for %i in 48 {
    %a = memref.load %I[%i] : memref<48xi32>
    %s = memref.load %S[%c0] : memref<1xi32>
    %r = arith.addi %a, %s : i32
    memref.store %r, %S[%c0] : memref<1xi32>
  }
  func.return
}
// CHECK-LABEL: @largest
// CHECK:         tir.for %[[I0:\w+]] in 2 {
// CHECK:           arith.maximumf {{.*}} : vector<32xf32>
// CHECK:         vector.reduction <maximumf>, {{.*}} : vector<32xf32> into f32
// CHECK:         tir.for %[[I0]] in 3 {
// CHECK:           arith.addi {{.*}} : vector<16xi32>
// CHECK:         vector.reduction <add>, {{.*}} : vector<16xi32> into i32

// -----

// Sums of floats keep their order. A maximum of every second element or of elements of the same buffer stays scalar.
func.func @in_order(%A: memref<64xf32>, %M: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  tir.for %i in 64 {
    %a = memref.load %A[%i] : memref<64xf32>
    %m = memref.load %M[%c0] : memref<64xf32>
    %r = arith.addf %m, %a : f32
    memref.store %r, %M[%c0] : memref<64xf32>
  }
  tir.for %i in 32 {
    %at = affine.apply affine_map<(d0) -> (d0 * 2)> (%i)
    %a = memref.load %A[%at] : memref<64xf32>
    %m = memref.load %M[%c0] : memref<64xf32>
    %r = arith.maximumf %m, %a : f32
    memref.store %r, %M[%c0] : memref<64xf32>
  }
  tir.for %i in 64 {
    %a = memref.load %M[%i] : memref<64xf32>
    %m = memref.load %M[%c0] : memref<64xf32>
    %r = arith.maximumf %m, %a : f32
    memref.store %r, %M[%c0] : memref<64xf32>
  }
  func.return
}
// CHECK-LABEL: @in_order
// CHECK-NOT:     vector
// CHECK:         func.return

// -----

// Elementwise computations: four vectors at a time, a vector and its remainder, lanes of the widest type.
func.func @computed(%A: memref<128xf32>, %B: memref<21xf32>, %C: memref<16xi16>, %D: memref<16xi64>) {
  tir.for %i in 128 {
    %a = memref.load %A[%i] : memref<128xf32>
    %s = arith.mulf %a, %a : f32
    memref.store %s, %A[%i] : memref<128xf32>
  }
  tir.for %i in 21 {
    %b = memref.load %B[%i] : memref<21xf32>
    %s = math.exp %b : f32
    memref.store %s, %B[%i] : memref<21xf32>
  }
  tir.for %i in 16 {
    %c = memref.load %C[%i] : memref<16xi16>
    %w = arith.extsi %c : i16 to i64
    %s = arith.addi %w, %w : i64
    memref.store %s, %D[%i] : memref<16xi64>
  }
  func.return
}
// CHECK-LABEL: @computed
// CHECK:         tir.for %{{.*}} in 4 unrolled {
// CHECK:           arith.mulf {{.*}} : vector<32xf32>
// CHECK:         tir.for %{{.*}} in 2 unrolled {
// CHECK:           math.exp {{.*}} : vector<8xf32>
// CHECK:         math.exp {{.*}} : vector<4xf32>
// CHECK:         tir.for %{{.*}} in 1 {
// CHECK:           math.exp {{.*}} : f32
// CHECK-NOT:     tir.for
// CHECK:         arith.addi {{.*}} : vector<16xi64>

// -----

// A dynamic extent: whole vectors, then the remainder one by one.
func.func @dynamic(%A: memref<?xf32>, %B: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.assume_shape %B[%n] : memref<?xf32>
  tir.for %i in %n {
    %a = memref.load %A[%i] : memref<?xf32>
    %s = arith.mulf %a, %a : f32
    memref.store %s, %B[%i] : memref<?xf32>
  }
  func.return
}
// CHECK-LABEL: @dynamic
// CHECK:         %[[VECTORS:.*]] = affine.apply affine_map<(d0) -> ((d0 floordiv 8))>
// CHECK:         tir.for %{{.*}} in %[[VECTORS]] {
// CHECK:           arith.mulf {{.*}} : vector<8xf32>
// CHECK:         tir.for %{{.*}} in %{{.*}} {
// CHECK:           arith.mulf {{.*}} : f32

// -----

// In place: a distance of 64 elements leaves room for vectors, one of 4 for four lanes, one of 3 for none.
func.func @in_place(%A: memref<128xf32>, %B: memref<128xf32>, %C: memref<128xf32>) {
  tir.for %i in 64 {
    %at = affine.apply affine_map<(d0) -> (d0 + 64)> (%i)
    %a = memref.load %A[%i] : memref<128xf32>
    %s = arith.addf %a, %a : f32
    memref.store %s, %A[%at] : memref<128xf32>
  }
  tir.for %i in 64 {
    %at = affine.apply affine_map<(d0) -> (d0 + 4)> (%i)
    %b = memref.load %B[%at] : memref<128xf32>
    %s = arith.addf %b, %b : f32
    memref.store %s, %B[%i] : memref<128xf32>
  }
  tir.for %i in 64 {
    %at = affine.apply affine_map<(d0) -> (d0 + 3)> (%i)
    %c = memref.load %C[%i] : memref<128xf32>
    %s = arith.addf %c, %c : f32
    memref.store %s, %C[%at] : memref<128xf32>
  }
  func.return
}
// CHECK-LABEL: @in_place
// CHECK:         arith.addf {{.*}} : vector<32xf32>
// CHECK:         arith.addf {{.*}} : vector<4xf32>
// CHECK:         tir.for %{{.*}} in 64 {
// CHECK:           arith.addf {{.*}} : f32

// -----

// Products that are summed up, in integers; of floats if the loop is annotated so. Divisions of integers stay scalar.
func.func @products(%A: memref<64xi8>, %S: memref<1xi32>, %B: memref<64xf32>, %T: memref<1xf32>, %D: memref<64xi32>) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : i32
  tir.for %i in 64 {
    %a = memref.load %A[%i] : memref<64xi8>
    %w = arith.extsi %a : i8 to i32
    %p = arith.muli %w, %w : i32
    %s = memref.load %S[%c0] : memref<1xi32>
    %r = arith.addi %s, %p : i32
    memref.store %r, %S[%c0] : memref<1xi32>
  }
  tir.for %i in 64 attributes {reassociate} {
    %b = memref.load %B[%i] : memref<64xf32>
    %p = arith.mulf %b, %b : f32
    %t = memref.load %T[%c0] : memref<1xf32>
    %r = arith.addf %t, %p : f32
    memref.store %r, %T[%c0] : memref<1xf32>
  }
  tir.for %i in 64 {
    %d = memref.load %D[%i] : memref<64xi32>
    %q = arith.divsi %d, %c3 : i32
    memref.store %q, %D[%i] : memref<64xi32>
  }
  func.return
}
// CHECK-LABEL: @products
// CHECK:         vector.reduction <add>, {{.*}} : vector<32xi32> into i32
// CHECK:         vector.reduction <add>, {{.*}} : vector<32xf32> into f32
// CHECK:         arith.divsi {{.*}} : i32

// -----

// Products of four neighbouring bytes are dot products: two of eight sums, and one of the four that are left.
func.func @dots(%A: memref<96xi8>, %B: memref<80xi8>, %C: memref<20xi32>, %k: index) {
  tir.for %g in 20 {
    %c = memref.load %C[%g] : memref<20xi32>
    %ka0 = affine.apply affine_map<(d0) -> (d0 + 0)> (%k)
    %a0 = memref.load %A[%ka0] : memref<96xi8>
    %wa0 = arith.extsi %a0 : i8 to i32
    %kb0 = affine.apply affine_map<(d0) -> (d0 * 4 + 0)> (%g)
    %b0 = memref.load %B[%kb0] : memref<80xi8>
    %wb0 = arith.extui %b0 : i8 to i32
    %p0 = arith.muli %wa0, %wb0 : i32
    %s0 = arith.addi %c, %p0 : i32
    %ka1 = affine.apply affine_map<(d0) -> (d0 + 1)> (%k)
    %a1 = memref.load %A[%ka1] : memref<96xi8>
    %wa1 = arith.extsi %a1 : i8 to i32
    %kb1 = affine.apply affine_map<(d0) -> (d0 * 4 + 1)> (%g)
    %b1 = memref.load %B[%kb1] : memref<80xi8>
    %wb1 = arith.extui %b1 : i8 to i32
    %p1 = arith.muli %wa1, %wb1 : i32
    %s1 = arith.addi %s0, %p1 : i32
    %ka2 = affine.apply affine_map<(d0) -> (d0 + 2)> (%k)
    %a2 = memref.load %A[%ka2] : memref<96xi8>
    %wa2 = arith.extsi %a2 : i8 to i32
    %kb2 = affine.apply affine_map<(d0) -> (d0 * 4 + 2)> (%g)
    %b2 = memref.load %B[%kb2] : memref<80xi8>
    %wb2 = arith.extui %b2 : i8 to i32
    %p2 = arith.muli %wa2, %wb2 : i32
    %s2 = arith.addi %s1, %p2 : i32
    %ka3 = affine.apply affine_map<(d0) -> (d0 + 3)> (%k)
    %a3 = memref.load %A[%ka3] : memref<96xi8>
    %wa3 = arith.extsi %a3 : i8 to i32
    %kb3 = affine.apply affine_map<(d0) -> (d0 * 4 + 3)> (%g)
    %b3 = memref.load %B[%kb3] : memref<80xi8>
    %wb3 = arith.extui %b3 : i8 to i32
    %p3 = arith.muli %wa3, %wb3 : i32
    %s3 = arith.addi %s2, %p3 : i32
    memref.store %s3, %C[%g] : memref<20xi32>
  }
  func.return
}
// CHECK-LABEL: @dots
// CHECK:         tir.for %[[G:\w+]] in 2 unrolled {
// CHECK:           low.access_ptr %A[%k] sizes [4] read
// CHECK:           %[[B:\w+]] = affine.apply affine_map<(d0) -> ((d0 * 32))> (%[[G]])
// CHECK:           low.access_ptr %B[%[[B]]] sizes [32] read
// CHECK:           low.tile_dot %{{.*}} as si8, %{{.*}} as ui8 onto %{{.*}} {lanes = 8 : i64, steps = 4 : i64}
// CHECK:         low.tile_dot %{{.*}} as si8, %{{.*}} as ui8 onto %{{.*}} {lanes = 4 : i64, steps = 4 : i64}
// CHECK-NOT:     arith.muli

// -----

// Factors that are no neighbours stay products.
func.func @no_neighbours(%A: memref<96xi8>, %B: memref<80xi8>, %C: memref<20xi32>, %k: index) {
  tir.for %g in 20 {
    %c = memref.load %C[%g] : memref<20xi32>
    %ka0 = affine.apply affine_map<(d0) -> (d0 + 0)> (%k)
    %a0 = memref.load %A[%ka0] : memref<96xi8>
    %wa0 = arith.extsi %a0 : i8 to i32
    %kb0 = affine.apply affine_map<(d0) -> (d0 * 4 + 0)> (%g)
    %b0 = memref.load %B[%kb0] : memref<80xi8>
    %wb0 = arith.extui %b0 : i8 to i32
    %p0 = arith.muli %wa0, %wb0 : i32
    %s0 = arith.addi %c, %p0 : i32
    %ka1 = affine.apply affine_map<(d0) -> (d0 + 1)> (%k)
    %a1 = memref.load %A[%ka1] : memref<96xi8>
    %wa1 = arith.extsi %a1 : i8 to i32
    %kb1 = affine.apply affine_map<(d0) -> (d0 * 4 + 2)> (%g)
    %b1 = memref.load %B[%kb1] : memref<80xi8>
    %wb1 = arith.extui %b1 : i8 to i32
    %p1 = arith.muli %wa1, %wb1 : i32
    %s1 = arith.addi %s0, %p1 : i32
    %ka2 = affine.apply affine_map<(d0) -> (d0 + 2)> (%k)
    %a2 = memref.load %A[%ka2] : memref<96xi8>
    %wa2 = arith.extsi %a2 : i8 to i32
    %kb2 = affine.apply affine_map<(d0) -> (d0 * 4 + 1)> (%g)
    %b2 = memref.load %B[%kb2] : memref<80xi8>
    %wb2 = arith.extui %b2 : i8 to i32
    %p2 = arith.muli %wa2, %wb2 : i32
    %s2 = arith.addi %s1, %p2 : i32
    %ka3 = affine.apply affine_map<(d0) -> (d0 + 3)> (%k)
    %a3 = memref.load %A[%ka3] : memref<96xi8>
    %wa3 = arith.extsi %a3 : i8 to i32
    %kb3 = affine.apply affine_map<(d0) -> (d0 * 4 + 3)> (%g)
    %b3 = memref.load %B[%kb3] : memref<80xi8>
    %wb3 = arith.extui %b3 : i8 to i32
    %p3 = arith.muli %wa3, %wb3 : i32
    %s3 = arith.addi %s2, %p3 : i32
    memref.store %s3, %C[%g] : memref<20xi32>
  }
  func.return
}
// CHECK-LABEL: @no_neighbours
// CHECK-NOT:     low.tile_dot

// -----

// Pairs of bf16 are dot products if sums may be reassociated, because instructions round differently.
func.func @pairs(%A: memref<96xbf16>, %B: memref<64xbf16>, %C: memref<32xf32>, %k: index) {
  tir.for %g in 32 {
    %c = memref.load %C[%g] : memref<32xf32>
    %a0 = memref.load %A[%k] : memref<96xbf16>
    %wa0 = arith.extf %a0 : bf16 to f32
    %kb0 = affine.apply affine_map<(d0) -> (d0 * 2)> (%g)
    %b0 = memref.load %B[%kb0] : memref<64xbf16>
    %wb0 = arith.extf %b0 : bf16 to f32
    %p0 = arith.mulf %wa0, %wb0 : f32
    %s0 = arith.addf %c, %p0 : f32
    %ka1 = affine.apply affine_map<(d0) -> (d0 + 1)> (%k)
    %a1 = memref.load %A[%ka1] : memref<96xbf16>
    %wa1 = arith.extf %a1 : bf16 to f32
    %kb1 = affine.apply affine_map<(d0) -> (d0 * 2 + 1)> (%g)
    %b1 = memref.load %B[%kb1] : memref<64xbf16>
    %wb1 = arith.extf %b1 : bf16 to f32
    %p1 = arith.mulf %wa1, %wb1 : f32
    %s1 = arith.addf %s0, %p1 : f32
    memref.store %s1, %C[%g] : memref<32xf32>
  }
  func.return
}
// CHECK-LABEL: @pairs
// CHECK:         tir.for %{{.*}} in 4 unrolled {
// CHECK:           low.tile_dot %{{.*}} as bf16, %{{.*}} as bf16 onto %{{.*}} {lanes = 8 : i64, steps = 2 : i64}

// -----

// Without that assumption they stay products.
func.func @ordered(%A: memref<96xbf16>, %B: memref<64xbf16>, %C: memref<32xf32>, %k: index) attributes {tir.promises = ["noalias"]} {
  tir.for %g in 32 {
    %c = memref.load %C[%g] : memref<32xf32>
    %a0 = memref.load %A[%k] : memref<96xbf16>
    %wa0 = arith.extf %a0 : bf16 to f32
    %kb0 = affine.apply affine_map<(d0) -> (d0 * 2)> (%g)
    %b0 = memref.load %B[%kb0] : memref<64xbf16>
    %wb0 = arith.extf %b0 : bf16 to f32
    %p0 = arith.mulf %wa0, %wb0 : f32
    %s0 = arith.addf %c, %p0 : f32
    %ka1 = affine.apply affine_map<(d0) -> (d0 + 1)> (%k)
    %a1 = memref.load %A[%ka1] : memref<96xbf16>
    %wa1 = arith.extf %a1 : bf16 to f32
    %kb1 = affine.apply affine_map<(d0) -> (d0 * 2 + 1)> (%g)
    %b1 = memref.load %B[%kb1] : memref<64xbf16>
    %wb1 = arith.extf %b1 : bf16 to f32
    %p1 = arith.mulf %wa1, %wb1 : f32
    %s1 = arith.addf %s0, %p1 : f32
    memref.store %s1, %C[%g] : memref<32xf32>
  }
  func.return
}
// CHECK-LABEL: @ordered
// CHECK-NOT:     low.tile_dot
