// RUN: weft-opt %s --split-input-file -p tir-lower-blocks | filecheck %s --check-prefix=BLOCKS
// RUN: weft-opt %s --split-input-file -p tir-lower-blocks,tir-flatten | filecheck %s --check-prefix=FLAT
// RUN: weft-opt %s --split-input-file -p tir-lower-blocks,tir-flatten,tir-lower-vectorized | filecheck %s --check-prefix=LANES
// RUN: weft-opt %s --split-input-file -p lower-tir-to-low -t llvm-ir | filecheck %s --check-prefix=LLVM
// RUN: weft-opt %s --split-input-file -p 'lower-tir-to-low{target=c}' -t c | filecheck %s --check-prefix=SOURCE

// The next row of A and B; A is transposed where it is read, so its distance is in the other dimension.
func.func @rows(%A: memref<64x128xf32>, %B: memref<128x?xf32>, %C: memref<128x64xf32>) {
  %T = memref.alloc() : memref<128x64xf32, "local">
  tir.for %i in 128 {
    tir.for %j in 64 vectorized {
      tir.block "T" iters(%vi: spatial<128>, %vj: spatial<64>) = [%i, %j] attributes {prefetch = [["read", 0, [2, 0]], ["read", 1, [1, 0]], ["write", 0, [1, 0]]]} {
        %a = memref.load %A[%vj, %vi] : memref<64x128xf32>
        %b = memref.load %B[%vi, %vj] : memref<128x?xf32>
        %t = arith.addf %a, %b : f32
        memref.store %t, %T[%vi, %vj] : memref<128x64xf32, "local">
      }
    }
    tir.for %j in 64 vectorized {
      tir.block "C" iters(%vi: spatial<128>, %vj: spatial<64>) = [%i, %j] attributes {prefetch = [["write", 0, [1, 0]]]} {
        %t = memref.load %T[%vi, %vj] : memref<128x64xf32, "local">
        memref.store %t, %C[%vi, %vj] : memref<128x64xf32>
      }
    }
  }
  func.return
}
// BLOCKS-LABEL: @rows
// BLOCKS:         memref.load %A[{{.*}}] {tir.prefetched = array<i64: 0, 2>}
// BLOCKS:         memref.load %B[{{.*}}] {tir.prefetched = array<i64: 1, 0>}
// Registers need no memory.
// BLOCKS:         memref.store {{.*}}, %T[{{%[a-z_0-9]+, %[a-z_0-9]+}}] : memref
// BLOCKS:         memref.store {{.*}}, %C[{{.*}}] {tir.prefetched = array<i64: 1, 0>}

// FLAT-LABEL: @rows
// FLAT:         %[[V1:\w+]] = affine.apply affine_map<(d0, d1) -> (((d0 + (d1 * 128)) + 2))> (%[[I:\w+]], %[[J:\w+]])
// FLAT-NEXT:    low.prefetch %A[%[[V1]]] {lanes = 1 : i64} : memref<8192xf32>
// FLAT-NEXT:    memref.load %A
// FLAT:         low.prefetch %B
// FLAT-NEXT:    memref.load %B
// FLAT:         low.prefetch %C[{{.*}}] {lanes = 1 : i64, for_write} : memref<8192xf32>
// FLAT-NEXT:    memref.store {{.*}}, %C

// What is not consecutive over the lanes is not asked for.
// LANES-LABEL: @rows
// LANES-NOT:     low.prefetch %A
// LANES:         low.prefetch %B[{{.*}}] {lanes = 64 : i64} : memref<?xf32>
// LANES-NEXT:    vector.load %B
// LANES:         low.prefetch %C[{{.*}}] {lanes = 64 : i64, for_write} : memref<8192xf32>
// LANES:         vector.store

// LLVM-LABEL: define {{.*}}@rows
// LLVM-COUNT-4:  call void @llvm.prefetch.p0(ptr {{%.*}}, i32 0, i32 3, i32 1)
// LLVM-COUNT-4:  call void @llvm.prefetch.p0(ptr {{%.*}}, i32 1, i32 3, i32 1)

// SOURCE-LABEL: void rows
// SOURCE-NOT:     prefetch

// -----

// While T is computed, what C will store is asked for; but no temporaries, and nothing whose place only C tells.
func.func @ahead(%A: memref<128x64xf32>, %I: memref<128x64xindex>, %C: memref<64x128xf32>, %D: memref<64xf32>) {
  %T = memref.alloc() : memref<128x64xf32>
  tir.for %i in 128 {
    tir.for %j in 64 {
      tir.block "T" iters(%vi: spatial<128>, %vj: spatial<64>) = [%i, %j] attributes {prefetch = [["write", 0, [1, 2], "C"], ["write", 1, [1, 0], "C"], ["read", 0, [1, 0], "C"]]} {
        %a = memref.load %A[%vi, %vj] : memref<128x64xf32>
        memref.store %a, %T[%vi, %vj] : memref<128x64xf32>
      }
    }
    tir.for %j in 64 {
      tir.block "C" iters(%vi: spatial<128>, %vj: spatial<64>) = [%i, %j] {
        %t = memref.load %T[%vi, %vj] : memref<128x64xf32>
        %at = memref.load %I[%vi, %vj] : memref<128x64xindex>
        memref.store %t, %C[%vj, %vi] : memref<64x128xf32>
        memref.store %t, %D[%at] : memref<64xf32>
      }
    }
  }
  func.return
}
// BLOCKS-LABEL: @ahead
// BLOCKS-NOT:     low.prefetch %D
// BLOCKS-NOT:     low.prefetch %T
// BLOCKS:         [[COLUMN:%.*]] = affine.apply affine_map<(d0) -> ((d0 + 2))> (%[[J:\w+]])
// BLOCKS-NEXT:    [[ROW:%.*]] = affine.apply affine_map<(d0) -> ((d0 + 1))> (%[[I:\w+]])
// BLOCKS-NEXT:    low.prefetch %C{{\[}}[[COLUMN]], [[ROW]]{{\]}} {lanes = 1 : i64, for_write} : memref<64x128xf32>
// BLOCKS-NEXT:    memref.load %A
// BLOCKS-NOT:     low.prefetch

// FLAT-LABEL: @ahead
// FLAT:         affine.apply affine_map<(d0, d1) -> (((d0 + (d1 * 128)) + 257))> (%[[I:\w+]], %[[J:\w+]])
// FLAT-NEXT:    low.prefetch %C[{{.*}}] {lanes = 1 : i64, for_write} : memref<8192xf32>
