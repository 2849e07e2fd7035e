// RUN: not weft-opt %s --split-input-file -t c 2>&1 | filecheck %s

// CHECK: arith.addf of f16 has no form in C: run low-legalize first
func.func @small(%A: memref<4xf16>) attributes {low.params = [#low.param<"A", memref<4xf16>, readwrite, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %a = memref.load %A[%c0] : memref<4xf16>
  %b = arith.addf %a, %a : f16
  memref.store %b, %A[%c0] : memref<4xf16>
  func.return
}

// -----

// CHECK: C has no type i128, which func.func needs
func.func @wide(%A: memref<4xi128>) attributes {low.params = [#low.param<"A", memref<4xi128>, readwrite, []>], low.symbols = []} {
  func.return
}

// -----

// CHECK: tir.for is not allowed at level low: lower the module first, with -p lower-tir-to-low{target=c}
func.func @loops(%A: memref<4xf32>) {
  tir.for %i in 4 { }
  func.return
}

// -----

// CHECK: a loop that is marked low.unroll needs constant bounds and a constant step
func.func @unrolled(%n: index) attributes {low.params = [#low.param<"n", index, read, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
  } {low.unroll}
  func.return
}

// -----

// CHECK: the local buffers of @large take 1048576 bytes, more than the 262144 that fit the stack
func.func @large() attributes {low.params = [], low.symbols = []} {
  %T = memref.alloca() : memref<262144xf32, "local">
  func.return
}

// -----

// CHECK: error: low.atomic add of f32 has no form in C
func.func @atomic(%A: memref<4xf32>, %v: f32) attributes {
    low.params = [#low.param<"A", memref<4xf32>, readwrite, []>, #low.param<"v", f32, read, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %o = low.atomic add %v, %A[%c0] : f32, memref<4xf32>
  func.return
}

// -----

// CHECK: a loop that is marked low.unroll makes 2048 copies of its body; at most 1024 are made
func.func @unroll_nested() attributes {low.params = [], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c32 step %c1 {
    scf.for %j = %c0 to %c64 step %c1 {
    } {low.unroll}
  } {low.unroll}
  func.return
}
