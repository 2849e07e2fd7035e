// Regions that blocks state and that leave out an access are errors.
// RUN: not weft-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: check-regions-errors.mlir:9:7: error: block "C" reads A[2] in iteration (i=0), where its tir.reads states A[0:2]; legal: regions that cover every access, or none, and they are inferred
func.func @reads(%A: memref<32xf32>, %C: memref<30xf32>) {
  %c2 = arith.constant 2 : index
  tir.for %i in 30 {
    tir.block "C" iters(%vi: spatial<30>) = [%i] {
      tir.reads %A[%vi] sizes [2] : memref<32xf32>
      %at = arith.addi %vi, %c2 : index
      %a = memref.load %A[%at] : memref<32xf32>
      memref.store %a, %C[%vi] : memref<30xf32>
    }
  }
  func.return
}

// -----

// What the init stores counts, and what a block in the body does.
// CHECK: error: block "C" writes C[0, 1] in iteration (i=0, j=1, k=0), where its tir.writes states C[0:1, 0:1]
func.func @inner(%A: memref<4x8x16xf32>, %C: memref<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 4 {
    tir.block "C" iters(%vi: spatial<4>) = [%i] {
      tir.writes %C[%vi, 0] : memref<4x8xf32>
      tir.for %j in 8 {
        tir.for %k in 16 {
          tir.block "D" iters(%vj: spatial<8>, %vk: reduce<16>) = [%j, %k] {
            tir.init { memref.store %zero, %C[%vi, %vj] : memref<4x8xf32> }
            %c = memref.load %C[%vi, %vj] : memref<4x8xf32>
            %a = memref.load %A[%vi, %vj, %vk] : memref<4x8x16xf32>
            %s = arith.addf %c, %a : f32
            memref.store %s, %C[%vi, %vj] : memref<4x8xf32>
          }
        }
      }
    }
  }
  func.return
}

// -----

// Under a condition, what lies between two regions.
// CHECK: error: block "C" reads A[5] in iteration (i=5), where its tir.reads states A[0:5] and A[6:32]
func.func @between(%A: memref<32xf32>, %C: memref<32xf32>) {
  %c4 = arith.constant 4 : index
  tir.for %i in 32 {
    tir.block "C" iters(%vi: spatial<32>) = [%i] {
      tir.reads %A[0] sizes [5] : memref<32xf32>
      tir.reads %A[6] sizes [26] : memref<32xf32>
      %later = arith.cmpi sge, %vi, %c4 : index
      scf.if %later {
        %a = memref.load %A[%vi] : memref<32xf32>
        memref.store %a, %C[%vi] : memref<32xf32>
      }
    }
  }
  func.return
}

// -----

// CHECK: error: block "C" reads A[{{[0-9]+}}] in iteration (i={{[0-9]+}}), where its tir.reads states A[{{[0-9]+}}:{{[0-9]+}}]
func.func @dynamic(%A: memref<?xf32>, %C: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.assume_shape %C[%n] : memref<?xf32>
  tir.for %i in %n {
    tir.block "C" iters(%vi: spatial<%n>) = [%i] {
      tir.reads %A[0] sizes [16] : memref<?xf32>
      %a = memref.load %A[%vi] : memref<?xf32>
      memref.store %a, %C[%vi] : memref<?xf32>
    }
  }
  func.return
}
