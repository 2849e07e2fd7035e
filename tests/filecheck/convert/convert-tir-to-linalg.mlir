// RUN: weft-opt %s -p convert-tir-to-linalg --split-input-file --verify-diagnostics --validate | filecheck %s

// The block tells the operation, whatever its loops are; its init becomes a fill.
// CHECK-LABEL: func.func @mm
// CHECK:         linalg.fill ins(%zero : f32) outs(%C : memref<8x6xf32>)
// CHECK-NEXT:    linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%A, %B : memref<8x4xf32>, memref<4x6xf32>) outs(%C : memref<8x6xf32>) {
// CHECK-NEXT:    ^bb0(%[[A:\w+]]: f32, %[[B:\w+]]: f32, %[[C:\w+]]: f32):
// CHECK-NEXT:      %[[P:\w+]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK-NEXT:      %[[S:\w+]] = arith.addf %[[C]], %[[P]] : f32
// CHECK-NEXT:      linalg.yield %[[S]] : f32
func.func @mm(%A: memref<8x4xf32>, %B: memref<4x6xf32>, %C: memref<8x6xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 8 parallel {
    tir.for %k in 4 {
      tir.for %j0 in 2 {
        tir.for %j1 in 3 unrolled {
          tir.block "C" iters(%vi: spatial<8>, %vj: spatial<6>, %vk: reduce<4>) = [%i, %j0 * 3 + %j1, %k] {
            tir.init { memref.store %zero, %C[%vi, %vj] : memref<8x6xf32> }
            %a = memref.load %A[%vi, %vk] : memref<8x4xf32>
            %b = memref.load %B[%vk, %vj] : memref<4x6xf32>
            %c = memref.load %C[%vi, %vj] : memref<8x6xf32>
            %p = arith.mulf %a, %b : f32
            %s = arith.addf %c, %p : f32
            memref.store %s, %C[%vi, %vj] : memref<8x6xf32>
          }
        }
      }
    }
  }
  func.return
}

// -----

// Windows, transposed outputs, iterators as values.
// CHECK-LABEL: func.func @windows
// CHECK-NEXT:    linalg.generic {indexing_maps = [affine_map<(d0, d1) -> ((d0 + d1))>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>]
// CHECK:         %[[I:\w+]] = linalg.index 0 : index
// CHECK-NEXT:    %{{.*}} = arith.index_cast %[[I]]
func.func @windows(%x: memref<10xi64>, %w: memref<3xi64>, %y: memref<8xi64>) {
  tir.for %i in 8 {
    tir.for %r in 3 {
      tir.block "y" iters(%vi: spatial<8>, %vr: reduce<3>) = [%i, %r] {
        %at = affine.apply affine_map<(d0, d1) -> (d0 + d1)>(%vi, %vr)
        %a = memref.load %x[%at] : memref<10xi64>
        %b = memref.load %w[%vr] : memref<3xi64>
        %n = arith.index_cast %vi : index to i64
        %c = memref.load %y[%vi] : memref<8xi64>
        %p = arith.muli %a, %b : i64
        %q = arith.addi %p, %n : i64
        %s = arith.addi %c, %q : i64
        memref.store %s, %y[%vi] : memref<8xi64>
      }
    }
  }
  func.return
}

// -----

// What has no form stays.
// CHECK-LABEL: func.func @left
// CHECK-COUNT-5: tir.block
func.func @left(%A: memref<8xf32>, %B: memref<8xf32>, %i: memref<8xindex>, %n: index) {
  // expected-remark@+1 {{convert-tir-to-linalg: block "diagonal" reads other elements of what it writes}}
  tir.for %k in 7 {
    tir.block "diagonal" iters(%v: spatial<7>) = [%k] {
      %next = affine.apply affine_map<(d0) -> (d0 + 1)> (%v)
      %a = memref.load %A[%next] : memref<8xf32>
      memref.store %a, %A[%v] : memref<8xf32>
    }
  }
  // expected-remark@+1 {{block "gather" is indexed by other values than its iterators}}
  tir.for %k in 8 {
    tir.block "gather" iters(%v: spatial<8>) = [%k] {
      %at = memref.load %i[%v] : memref<8xindex>
      %a = memref.load %A[%at] : memref<8xf32>
      memref.store %a, %B[%v] : memref<8xf32>
    }
  }
  // expected-remark@+1 {{no buffer of block "part" has a dimension that determines the extent of %v}}
  tir.for %k in 5 {
    tir.block "part" iters(%v: spatial<5>) = [%k] {
      %a = memref.load %A[%v] : memref<8xf32>
      memref.store %a, %B[%v] : memref<8xf32>
    }
  }
  // expected-remark@+1 {{loop %k holds more than one loop or block}}
  tir.for %k in 8 {
    tir.block "one" iters(%v: spatial<8>) = [%k] {
      %a = memref.load %A[%v] : memref<8xf32>
      memref.store %a, %B[%v] : memref<8xf32>
    }
    tir.block "two" iters(%v: spatial<8>) = [%k] {
      %a = memref.load %B[%v] : memref<8xf32>
      memref.store %a, %A[%v] : memref<8xf32>
    }
  }
  func.return
}

// -----

// Buffers that may overlap: the init cannot run in front.
// CHECK-LABEL: func.func @overlap
// CHECK:         tir.init
func.func @overlap(%A: memref<8xf32>, %B: memref<f32>) attributes {tir.promises = []} {
  %zero = arith.constant 0.0 : f32
  // expected-remark@+1 {{the buffers of block "B" may overlap, so its init cannot run before it}}
  tir.for %k in 8 {
    tir.block "B" iters(%v: reduce<8>) = [%k] {
      tir.init { memref.store %zero, %B[] : memref<f32> }
      %a = memref.load %A[%v] : memref<8xf32>
      %b = memref.load %B[] : memref<f32>
      %s = arith.addf %a, %b : f32
      memref.store %s, %B[] : memref<f32>
    }
  }
  func.return
}
