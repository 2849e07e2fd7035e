// RUN: not weft-opt %s --split-input-file -p 'tir-bind-threads{target="cuda -arch=sm_80"},tir-lower-blocks,tir-lower-tiles' 2>&1 | filecheck %s

// CHECK: %A holds fragments of two kinds: #low.fragment<wmma, a, row, [16, 16, 16], f16> elsewhere and #low.fragment<wmma, a, col, [16, 16, 16], f16> here
func.func @f(%S: memref<32x32xf16, "shared">) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %A = memref.alloc() : memref<32x32xf16, "wmma.matrix_a">
  tir.for %x in 1 thread_binding<"blockIdx.x"> {
    tir.block "load" iters(%v: spatial<1>) = [%x] {
      %p = low.access_ptr %S[%c0, %c0] sizes [16, 16] read : memref<32x32xf16, "shared">
      %a = low.access_ptr %A[%c0, %c0] sizes [16, 16] write : memref<32x32xf16, "wmma.matrix_a">
      low.tile_load <wmma, a, row, [16, 16, 16], f16> %p, %c0 to %a, %c0
    }
    tir.block "other" iters(%v: spatial<1>) = [%x] {
      %p = low.access_ptr %S[%c0, %c0] sizes [16, 16] read : memref<32x32xf16, "shared">
      %a = low.access_ptr %A[%c0, %c0] sizes [16, 16] write : memref<32x32xf16, "wmma.matrix_a">
      low.tile_load <wmma, a, col, [16, 16, 16], f16> %p, %c0 to %a, %c0
    }
  }
  func.return
}

// -----

// CHECK: low.tile_load: a tile of %A starts at [1, 0], which is no multiple of [16, 16]
func.func @f(%S: memref<32x32xf16, "shared">) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %A = memref.alloc() : memref<32x32xf16, "wmma.matrix_a">
  tir.for %x in 1 thread_binding<"blockIdx.x"> {
    tir.block "load" iters(%v: spatial<1>) = [%x] {
      %p = low.access_ptr %S[%c0, %c0] sizes [16, 16] read : memref<32x32xf16, "shared">
      %a = low.access_ptr %A[%c1, %c0] sizes [16, 16] write : memref<32x32xf16, "wmma.matrix_a">
      low.tile_load <wmma, a, row, [16, 16, 16], f16> %p, %c0 to %a, %c0
    }
  }
  func.return
}

// -----

// CHECK: %A of [32, 24] is not made of whole #low.fragment<wmma, a, row, [16, 16, 16], f16>
func.func @f(%S: memref<32x32xf16, "shared">) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %A = memref.alloc() : memref<32x24xf16, "wmma.matrix_a">
  tir.for %x in 1 thread_binding<"blockIdx.x"> {
    tir.block "load" iters(%v: spatial<1>) = [%x] {
      %p = low.access_ptr %S[%c0, %c0] sizes [16, 16] read : memref<32x32xf16, "shared">
      %a = low.access_ptr %A[%c0, %c0] sizes [16, 16] write : memref<32x24xf16, "wmma.matrix_a">
      low.tile_load <wmma, a, row, [16, 16, 16], f16> %p, %c0 to %a, %c0
    }
  }
  func.return
}

// -----

// CHECK: low.tile_load is under a condition that may differ between the threads of a warp
func.func @f(%S: memref<32x32xf16, "shared">, %N: memref<1xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %A = memref.alloc() : memref<32x32xf16, "wmma.matrix_a">
  tir.for %x in 1 thread_binding<"blockIdx.x"> {
    tir.block "load" iters(%v: spatial<1>) = [%x] {
      %n = memref.load %N[%v] : memref<1xi1>
      scf.if %n {
      %p = low.access_ptr %S[%c0, %c0] sizes [16, 16] read : memref<32x32xf16, "shared">
      %a = low.access_ptr %A[%c0, %c0] sizes [16, 16] write : memref<32x32xf16, "wmma.matrix_a">
      low.tile_load <wmma, a, row, [16, 16, 16], f16> %p, %c0 to %a, %c0
      }
    }
  }
  func.return
}
