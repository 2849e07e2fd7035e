// RUN: not weft-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: low.tile_load: #low.fragment<wmma, a, row, [16, 16, 16], f16> must be in scope "wmma.matrix_a", got "wmma.matrix_b"
func.func @f(%A: memref<32x16xf16, "wmma.matrix_b">, %S: memref<32x16xf16, "shared">) {
  %c0 = arith.constant 0 : index
  %a = low.access_ptr %A[%c0, %c0] sizes [16, 16] readwrite : memref<32x16xf16, "wmma.matrix_b">
  %s = low.access_ptr %S[%c0, %c0] sizes [16, 16] readwrite : memref<32x16xf16, "shared">
  low.tile_load <wmma, a, row, [16, 16, 16], f16> %s, %c0 to %a, %c0
  func.return
}

// -----

// CHECK: low.tile_load copies to or from memory that threads share, got "wmma.matrix_a"
func.func @f(%A: memref<32x16xf16, "wmma.matrix_a">, %S: memref<32x16xf16, "wmma.matrix_a">) {
  %c0 = arith.constant 0 : index
  %a = low.access_ptr %A[%c0, %c0] sizes [16, 16] readwrite : memref<32x16xf16, "wmma.matrix_a">
  %s = low.access_ptr %S[%c0, %c0] sizes [16, 16] readwrite : memref<32x16xf16, "wmma.matrix_a">
  low.tile_load <wmma, a, row, [16, 16, 16], f16> %s, %c0 to %a, %c0
  func.return
}

// -----

// CHECK: low.tile_load: #low.fragment<wmma, a, row, [16, 16, 16], f16> is loaded from and stored to elements of its type, got memref<32x16xbf16, "shared">
func.func @f(%A: memref<32x16xf16, "wmma.matrix_a">, %S: memref<32x16xbf16, "shared">) {
  %c0 = arith.constant 0 : index
  %a = low.access_ptr %A[%c0, %c0] sizes [16, 16] readwrite : memref<32x16xf16, "wmma.matrix_a">
  %s = low.access_ptr %S[%c0, %c0] sizes [16, 16] readwrite : memref<32x16xbf16, "shared">
  low.tile_load <wmma, a, row, [16, 16, 16], f16> %s, %c0 to %a, %c0
  func.return
}

// -----

// CHECK: low.tile_load: #low.fragment<wmma, a, row, [16, 16, 16], f16> is a tile of [16, 16], got [32, 16]
func.func @f(%A: memref<32x16xf16, "wmma.matrix_a">, %S: memref<32x16xf16, "shared">) {
  %c0 = arith.constant 0 : index
  %a = low.access_ptr %A[%c0, %c0] sizes [32, 16] readwrite : memref<32x16xf16, "wmma.matrix_a">
  %s = low.access_ptr %S[%c0, %c0] sizes [16, 16] readwrite : memref<32x16xf16, "shared">
  low.tile_load <wmma, a, row, [16, 16, 16], f16> %s, %c0 to %a, %c0
  func.return
}

// -----

// CHECK: low.tile_load takes pointers of low.access_ptr
func.func @f(%a: !ptr_xdsl.ptr, %S: memref<32x16xf16, "shared">) {
  %c0 = arith.constant 0 : index
  %s = low.access_ptr %S[%c0, %c0] sizes [16, 16] readwrite : memref<32x16xf16, "shared">
  low.tile_load <wmma, a, row, [16, 16, 16], f16> %s, %c0 to %a, %c0
  func.return
}

// -----

// CHECK: low.tile_load: fragments of mma are loaded from shared memory, got none
func.func @f(%A: memref<32x16xf16, "mma.matrix_a">, %S: memref<32x16xf16>) {
  %c0 = arith.constant 0 : index
  %a = low.access_ptr %A[%c0, %c0] sizes [16, 16] readwrite : memref<32x16xf16, "mma.matrix_a">
  %s = low.access_ptr %S[%c0, %c0] sizes [16, 16] readwrite : memref<32x16xf16>
  low.tile_load <mma, a, row, [16, 16, 16], f16> %s, %c0 to %a, %c0
  func.return
}

// -----

// CHECK: low.tile_store stores accumulators, got #low.fragment<wmma, a, row, [16, 16, 16], f16>
func.func @f(%A: memref<32x16xf16, "wmma.matrix_a">, %S: memref<32x16xf16, "shared">) {
  %c0 = arith.constant 0 : index
  %a = low.access_ptr %A[%c0, %c0] sizes [16, 16] readwrite : memref<32x16xf16, "wmma.matrix_a">
  %s = low.access_ptr %S[%c0, %c0] sizes [16, 16] readwrite : memref<32x16xf16, "shared">
  low.tile_store <wmma, a, row, [16, 16, 16], f16> %a, %c0 to %s, %c0
  func.return
}

// -----

// CHECK: low.tile_fill fills f32 accumulators, got #low.fragment<wmma, a, row, [16, 16, 16], f16>
func.func @f(%A: memref<32x16xf16, "wmma.matrix_a">) {
  %c0 = arith.constant 0 : index
  %a = low.access_ptr %A[%c0, %c0] sizes [16, 16] readwrite : memref<32x16xf16, "wmma.matrix_a">
  low.tile_fill <wmma, a, row, [16, 16, 16], f16> %a, %c0 with 0.0 : f32
  func.return
}

// -----

// CHECK: low.tile_mma multiplies fragments of one family, shape and type, got #low.fragment<wmma, a, row, [16, 16, 16], f16> and #low.fragment<wmma, b, row, [16, 16, 16], bf16>
func.func @f(%A: memref<32x16xf16, "wmma.matrix_a">, %B: memref<16x16xf16, "wmma.matrix_b">, %C: memref<16x16xf32, "wmma.accumulator">) {
  %c0 = arith.constant 0 : index
  %a = low.access_ptr %A[%c0, %c0] sizes [16, 16] readwrite : memref<32x16xf16, "wmma.matrix_a">
  %b = low.access_ptr %B[%c0, %c0] sizes [16, 16] readwrite : memref<16x16xf16, "wmma.matrix_b">
  %c = low.access_ptr %C[%c0, %c0] sizes [16, 16] readwrite : memref<16x16xf32, "wmma.accumulator">
  low.tile_mma %a, %c0 by %b, %c0 onto %c, %c0 {a = #low.fragment<wmma, a, row, [16, 16, 16], f16>, b = #low.fragment<wmma, b, row, [16, 16, 16], bf16>}
  func.return
}

// -----

// CHECK: low.tile_mma multiplies a fragment of a and one of b, got #low.fragment<wmma, b, row, [16, 16, 16], f16> and #low.fragment<wmma, b, row, [16, 16, 16], f16>
func.func @f(%A: memref<32x16xf16, "wmma.matrix_a">, %B: memref<16x16xf16, "wmma.matrix_b">, %C: memref<16x16xf32, "wmma.accumulator">) {
  %c0 = arith.constant 0 : index
  %a = low.access_ptr %A[%c0, %c0] sizes [16, 16] readwrite : memref<32x16xf16, "wmma.matrix_a">
  %b = low.access_ptr %B[%c0, %c0] sizes [16, 16] readwrite : memref<16x16xf16, "wmma.matrix_b">
  %c = low.access_ptr %C[%c0, %c0] sizes [16, 16] readwrite : memref<16x16xf32, "wmma.accumulator">
  low.tile_mma %a, %c0 by %b, %c0 onto %c, %c0 {a = #low.fragment<wmma, b, row, [16, 16, 16], f16>, b = #low.fragment<wmma, b, row, [16, 16, 16], f16>}
  func.return
}

// -----

// CHECK: low.ldmatrix loads 1, 2 or 4 matrices, got 3
func.func @f() attributes {low.kernel = #low.kernel<[32, 1, 1], source = "C">} {
  %c0 = arith.constant 0 : index
  %S = memref.alloca() : memref<64xf16, "shared">
  %R = memref.alloca() : memref<8xf16, "local">
  %s = low.access_ptr %S[%c0] read : memref<64xf16, "shared">
  %r = low.access_ptr %R[%c0] write : memref<8xf16, "local">
  low.ldmatrix %s to %r {count = 3, transposed = false, element = f16}
  func.return
}

// -----

// CHECK: low.ldmatrix loads from shared memory, got memref<64xf16>
func.func @f(%S: memref<64xf16>) attributes {low.kernel = #low.kernel<[32, 1, 1], source = "C">} {
  %c0 = arith.constant 0 : index
  %R = memref.alloca() : memref<8xf16, "local">
  %s = low.access_ptr %S[%c0] read : memref<64xf16>
  %r = low.access_ptr %R[%c0] write : memref<8xf16, "local">
  low.ldmatrix %s to %r {count = 2, transposed = false, element = f16}
  func.return
}

// -----

// CHECK: low.ldmatrix works on f16 and bf16, got f32
func.func @f(%S: memref<64xf32>) attributes {low.kernel = #low.kernel<[32, 1, 1], source = "C">} {
  %c0 = arith.constant 0 : index
  %s = low.access_ptr %S[%c0] read : memref<64xf32>
  low.ldmatrix %s to %s {count = 2, transposed = false, element = f32}
  func.return
}

// -----

// CHECK: low.mma_sync keeps f16 in registers (space "local"), got memref<64xf16>
func.func @f(%S: memref<64xf16>) attributes {low.kernel = #low.kernel<[32, 1, 1], source = "C">} {
  %c0 = arith.constant 0 : index
  %s = low.access_ptr %S[%c0] read : memref<64xf16>
  low.mma_sync %s by %s onto %s {element = f16}
  func.return
}

// -----

// CHECK: low.wmma_load works on fragments of wmma, got #low.fragment<mma, a, row, [16, 16, 16], f16>
func.func @f(%S: memref<64xf16>) attributes {low.kernel = #low.kernel<[32, 1, 1], source = "C">} {
  %c0 = arith.constant 0 : index
  %s = low.access_ptr %S[%c0] read : memref<64xf16>
  low.wmma_load <mma, a, row, [16, 16, 16], f16> %s, %c0 to %s
  func.return
}

// -----

// CHECK: low.wmma_load must be in a kernel, but @f has no low.kernel
func.func @f(%S: memref<64xf16>) {
  %c0 = arith.constant 0 : index
  %s = low.access_ptr %S[%c0] read : memref<64xf16>
  low.wmma_load <wmma, a, row, [16, 16, 16], f16> %s, %c0 to %s
  func.return
}
