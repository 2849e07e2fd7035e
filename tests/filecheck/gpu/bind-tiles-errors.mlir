// RUN: not weft-opt %s --split-input-file -p 'tir-bind-threads{target="cuda -arch=sm_75"}' 2>&1 | filecheck %s

// CHECK: block "load" works on tiles, which the 32 threads of a warp do together, but is in loop %[[X:\w+]] over them (threadIdx.x): bind warps to threadIdx.y or threadIdx.z
func.func @f(%S: memref<32x32xf16, "shared">) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %A = memref.alloc() : memref<32x32xf16, "wmma.matrix_a">
  tir.for %x in 32 thread_binding<"threadIdx.x"> {
    tir.block "load" iters(%v: spatial<32>) = [%x] {
      %p = low.access_ptr %S[%c0, %c0] sizes [16, 16] read : memref<32x32xf16, "shared">
      %a = low.access_ptr %A[%c0, %c0] sizes [16, 16] write : memref<32x32xf16, "wmma.matrix_a">
      low.tile_load <wmma, a, row, [16, 16, 16], f16> %p, %c0 to %a, %c0
    }
  }
  func.return
}

// -----

// CHECK: block "load" works on tiles, which the 32 threads of a warp do together: loops over threadIdx.x have 32 iterations, got 64
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
    tir.for %t in 64 thread_binding<"threadIdx.x"> {
      tir.block "fetch" iters(%v: spatial<64>) = [%t] {
        %zero = arith.constant 0.0 : f16
        %r = affine.apply affine_map<(d0) -> (d0 floordiv 32)>(%v)
        %c = affine.apply affine_map<(d0) -> (d0 mod 32)>(%v)
        memref.store %zero, %S[%r, %c] : memref<32x32xf16, "shared">
      }
    }
  }
  func.return
}

// -----

// CHECK: block "scalar" uses %A in memory of space "wmma.matrix_a", which only tensor cores can use: tensorize it
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
    tir.block "scalar" iters(%v: spatial<1>) = [%x] {
      %zero = arith.constant 0.0 : f16
      memref.store %zero, %A[%c0, %c0] : memref<32x32xf16, "wmma.matrix_a">
    }
  }
  func.return
}

// -----

// CHECK: low.tile_load needs wmma bf16, which target cuda -arch=sm_75 does not have: it has ldmatrix, mma.sync m16n8k8 f16, wmma f16
func.func @f(%S: memref<32x32xbf16, "shared">) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %A = memref.alloc() : memref<32x32xbf16, "wmma.matrix_a">
  tir.for %x in 1 thread_binding<"blockIdx.x"> {
    tir.block "load" iters(%v: spatial<1>) = [%x] {
      %p = low.access_ptr %S[%c0, %c0] sizes [16, 16] read : memref<32x32xbf16, "shared">
      %a = low.access_ptr %A[%c0, %c0] sizes [16, 16] write : memref<32x32xbf16, "wmma.matrix_a">
      low.tile_load <wmma, a, row, [16, 16, 16], bf16> %p, %c0 to %a, %c0
    }
  }
  func.return
}

// -----

// CHECK: low.tile_load needs mma.sync m16n8k16 f16, which target cuda -arch=sm_75 does not have
func.func @f(%S: memref<32x32xf16, "shared">) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %A = memref.alloc() : memref<32x32xf16, "mma.matrix_a">
  tir.for %x in 1 thread_binding<"blockIdx.x"> {
    tir.block "load" iters(%v: spatial<1>) = [%x] {
      %p = low.access_ptr %S[%c0, %c0] sizes [16, 16] read : memref<32x32xf16, "shared">
      %a = low.access_ptr %A[%c0, %c0] sizes [16, 16] write : memref<32x32xf16, "mma.matrix_a">
      low.tile_load <mma, a, row, [16, 16, 16], f16> %p, %c0 to %a, %c0
    }
  }
  func.return
}
