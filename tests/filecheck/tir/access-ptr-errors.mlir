// RUN: not weft-opt %s --split-input-file -p lower-tir-to-low -t llvm-ir 2>&1 | filecheck %s

// CHECK: reduce iterator %[[VK:\w+]] is in index 0 of the output C
func.func @reduced(%C: memref<64xf32>) {
  tir.for %k in 4 {
    tir.block "C" iters(%vk: reduce<4>) = [%k] {
      %x = affine.apply affine_map<(d0) -> (d0 * 16)>(%vk)
      %p = low.access_ptr %C[%x] sizes [16] readwrite : memref<64xf32>
    }
  }
  func.return
}

// -----

// CHECK: writes C out of bounds: in iteration (i=3, d0=4) index 0 is 64, the buffer is memref<64xf32>
func.func @outside(%C: memref<64xf32>) {
  tir.for %i in 4 {
    tir.block "C" iters(%vi: spatial<4>) = [%i] {
      %x = affine.apply affine_map<(d0) -> (d0 * 20)>(%vi)
      %p = low.access_ptr %C[%x] sizes [16] write : memref<64xf32>
    }
  }
  func.return
}

// -----

// CHECK: the loop is parallel, but iteration (i=0, d0=8) of block "C" writes C[8]; iteration (i=1, d0=0) of block "C" writes C[8] at the same time
func.func @overlapping(%C: memref<64xf32>) {
  tir.for %i in 4 parallel {
    tir.block "C" iters(%vi: spatial<4>) = [%i] {
      %x = affine.apply affine_map<(d0) -> (d0 * 8)>(%vi)
      %p = low.access_ptr %C[%x] sizes [16] write : memref<64xf32>
    }
  }
  func.return
}

// -----

// CHECK: low.access_ptr takes an index and a size a dimension, the buffer has rank 2
func.func @rank(%C: memref<8x8xf32>) {
  %c0 = arith.constant 0 : index
  %p = low.access_ptr %C[%c0] sizes [8] write : memref<8x8xf32>
  func.return
}

// -----

// CHECK: low.stride has dimension 2 for a buffer of rank 2
func.func @dimension(%C: memref<8x8xf32>) {
  %s = low.stride %C {dimension = 2} : memref<8x8xf32>
  func.return
}

// -----

// CHECK: @kernel is outside of the module: it takes numbers and pointers (low.access_ptr), got memref<64xf32>
func.func private @kernel(memref<64xf32>)
func.func @buffers(%C: memref<64xf32>) {
  tir.for %i in 4 { tir.block "C" iters(%v: spatial<4>) = [%i] {
    func.call @kernel(%C) : (memref<64xf32>) -> ()
  } }
  func.return
}

// -----

// CHECK: pragma_import_c is the text of the code, got 3 : i64
func.func @pragma(%C: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 64 attributes {pragma_import_c = 3 : i64} { tir.block "C" iters(%v: spatial<64>) = [%i] {
    memref.store %zero, %C[%v] : memref<64xf32>
  } }
  func.return
}

// -----

// CHECK: imported LLVM IR is not valid: line 1: expected top-level entity
func.func @invalid(%C: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 64 attributes {pragma_import_llvm = "int f();"} { tir.block "C" iters(%v: spatial<64>) = [%i] {
    memref.store %zero, %C[%v] : memref<64xf32>
  } }
  func.return
}

// -----

// CHECK: imported LLVM IR defines 'twice', which the module defines too
func.func @twice(%C: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 64 attributes {pragma_import_llvm = "define void @twice() {\n ret void\n}"} {
    tir.block "C" iters(%v: spatial<64>) = [%i] {
      memref.store %zero, %C[%v] : memref<64xf32>
    }
  }
  func.return
}
