// Regions that blocks state may be larger than what is accessed, and are believed where that is not known.
// RUN: weft-opt %s --split-input-file | filecheck %s

// Conditions and guards leave out the elements beside the regions; a buffer of which nothing is stated is inferred.
// CHECK-LABEL: func.func @guarded
// CHECK: tir.reads
func.func @guarded(%A: memref<32xf32>, %B: memref<32xf32>, %C: memref<32xf32>) {
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  tir.for %i in 32 {
    tir.block "C" iters(%vi: spatial<32>) = [%i] {
      tir.reads %A[0] sizes [8] : memref<32xf32>
      tir.writes %C[0] sizes [32] : memref<32xf32>
      %early = arith.cmpi slt, %vi, %c8 : index
      %a = scf.if %early -> (f32) {
        %x = memref.load %A[%vi] : memref<32xf32>
        scf.yield %x : f32
      } else {
        scf.yield %zero : f32
      }
      %b = memref.load %B[%vi] : memref<32xf32>
      %s = arith.addf %a, %b : f32
      memref.store %s, %C[%vi] : memref<32xf32>
    }
  }
  func.return
}

// -----

// Regions that cover together; a load of the init; an update of what is stored.
// CHECK-LABEL: func.func @together
// CHECK: tir.reads
func.func @together(%A: memref<4x8xf32>, %B: memref<4xf32>, %C: memref<4xf32>) {
  tir.for %i in 4 {
    tir.for %k in 8 {
      tir.block "C" iters(%vi: spatial<4>, %vk: reduce<8>) = [%i, %k] {
        tir.reads %A[%vi, 0] sizes [1, 3] : memref<4x8xf32>
        tir.reads %A[%vi, 3] sizes [1, 5] : memref<4x8xf32>
        tir.reads %B[0] : memref<4xf32>
        tir.writes %C[%vi] : memref<4xf32>
        tir.init {
          %b = memref.load %B[%vi] : memref<4xf32>
          memref.store %b, %C[%vi] : memref<4xf32>
        }
        %c = memref.load %C[%vi] : memref<4xf32>
        %a = memref.load %A[%vi, %vk] : memref<4x8xf32>
        %s = arith.addf %c, %a : f32
        memref.store %s, %C[%vi] : memref<4xf32>
      }
    }
  }
  func.return
}

// -----

// Where data decides which elements are read, and when.
// CHECK-LABEL: func.func @data
// CHECK: tir.reads
func.func @data(%A: memref<32xf32>, %I: memref<32xindex>, %C: memref<32xf32>) {
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  tir.for %i in 32 {
    tir.block "C" iters(%vi: spatial<32>) = [%i] {
      tir.reads %A[0] sizes [4] : memref<32xf32>
      %at = memref.load %I[%vi] : memref<32xindex>
      %x = memref.load %A[%at] : memref<32xf32>
      %small = arith.cmpf olt, %x, %zero : f32
      scf.if %small {
        %y = memref.load %A[%vi] : memref<32xf32>
        memref.store %y, %C[%vi] : memref<32xf32>
      }
    }
  }
  func.return
}
