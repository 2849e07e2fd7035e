// RUN: weft-opt %s --split-input-file --verify-diagnostics -p lower-tir-to-low

// expected-error@+1 {{parameter A: a buffer starts at its first element: the offset is 0 or ?, got memref<4xf32, strided<[2], offset: 8>>}}
func.func @offset(%A: memref<4xf32, strided<[2], offset: 8>>) attributes {tir.function} {
  func.return
}

// -----

// expected-error@+1 {{parameter A: buffers are row-major or strided, got the layout of}}
func.func @map(%A: memref<4xf32, affine_map<(d0) -> (d0 * 2)>>) attributes {tir.function} {
  func.return
}

// -----

func.func @temporary() attributes {tir.function} {
  // expected-error@+1 {{only parameters are strided, got the layout of memref<4xf32, strided<[2]>>}}
  %A = memref.alloc() : memref<4xf32, strided<[2]>>
  func.return
}

// -----

func.func @unknown(%A: memref<4xf32, strided<[?]>>, %n: i64) {
  %s = arith.index_cast %n : i64 to index
  // expected-error@+1 {{%s must be computed from index parameters and extents of parameters, so that calls can check it}}
  tir.assume_strides %A[%s] : memref<4xf32, strided<[?]>>
  func.return
}

// -----

func.func @count(%A: memref<4x4xf32, strided<[?, 1]>>, %n: index) {
  // expected-error@+1 {{tir.assume_strides gives 2 values for 1 dynamic strides of memref<4x4xf32, strided<[?, 1]>>}}
  tir.assume_strides %A[%n, %n] : memref<4x4xf32, strided<[?, 1]>>
  func.return
}
